"""Guarantee of a composite estimator: the sum over its private parts."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from skldp.estimators._guarantee_mixin import GuaranteeMixin, holds_guarantee, own_guarantee
from skldp.estimators._public_steps import (
    declared_public,
    effect_of_public,
    ignores_labels,
    public_instead_of,
    repeats,
    selects_none,
)
from skldp.laws._odds import float_above, product_above
from skldp.mechanisms._guarantee import GuaranteeStep, PrivacyGuarantee, sentence


def privacy_guarantee(
    estimator: BaseEstimator, public: Iterable[str] | Mapping[str, float | None] = ()
) -> PrivacyGuarantee:
    """Return the guarantee of one fit of an estimator for one person.

    The figure is finite only if a record passes each private step once by construction: in a Pipeline, a
    ColumnTransformer or a FeatureUnion, in a private model, and within LabelPrivateClassifier or LabelPrivateRegressor.
    A private step inside anything else, such as an ensemble or a search, makes it infinite.

    Parameters
    ----------
    estimator : fitted estimator
        A skldp estimator, or a composite of scikit-learn that holds some.
    public : iterable of str, or dict of str to float, default=()
        Names of steps as in ``get_params`` (``"columntransformer__num__standardscaler"``) that you declare to have
        learnt nothing from private rows and to transform each row alone. The values of a dict bound the factor by which
        each stretches distances; None is unknown. The guarantee repeats the claim.

    Returns
    -------
    PrivacyGuarantee
        For one record with its features, and with its label if a step randomizes labels or learns from both privately.
        `basis` names unprotected parts, claims, and the reasons of an infinite epsilon with a remedy. `steps` and
        `to_frame` list each release and each reason.

    Raises
    ------
    ValueError
        If `public` names a step that gets no raw rows.
    ChangedAfterFitError
        If a parameter of a private part was changed after fit.
    sklearn.exceptions.NotFittedError
        If it is not fitted.

    Notes
    -----
    Releases add up by basic composition, as if every step's output were published, over branches as well. Any
    estimator may follow the private step at no cost. Epsilon is infinite if

    - a private step is inside an ensemble, a search, or any other estimator that holds estimators, such as
      TransformedTargetRegressor, FrozenEstimator, or imbalanced-learn's Pipeline. Release once, before it:
      ``make_pipeline(private, BaggingClassifier())``, or ``LabelPrivateClassifier(BaggingClassifier())``.
      ``privacy_guarantee(search.best_estimator_)`` covers one fit, not the choice;
    - a step gets raw rows before the first private one and is not public. Public are :class:`~skldp.BoundsScaler`,
      :class:`~skldp.ColumnEncoder`, ``FunctionTransformer()``, Normalizer, and with all that they could learn declared
      OneHotEncoder (``categories=[...], handle_unknown="ignore"``), OrdinalEncoder
      (``handle_unknown="use_encoded_value"``) and SimpleImputer (``strategy="constant", keep_empty_features=True``);
      also the steps named in `public` and a FrozenEstimator, which `basis` calls public by the caller's word;
    - columns pass unprotected, or a label is promised a guarantee and another step had it before;
    - one private object occurs twice: only its last fit is known;
    - a step before a guarantee per unit of distance stretches distances by an unknown factor, and the mechanism's
      domain has no diameter (else the guarantee is counted over it);
    - a Pipeline has a `memory`, whose files hold the raw rows and labels, or a `transform_input`;
    - classes or categories were learnt from private data.

    The steps are read as they are now: scikit-learn's containers do not record which steps `fit` used. Do not replace
    steps after `fit`. Predictions for new people are further releases of their records, and the index of a frame passes
    unchanged with ``set_output``.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skldp import BitRandTransformer, privacy_guarantee
    >>> release = BitRandTransformer(epsilon=2.0, calibration="exact")
    >>> people = [[0.5, -0.5], [0.1, 0.2]]
    >>> print(privacy_guarantee(make_pipeline(release, StandardScaler()).fit(people)).epsilon <= 2.0)
    True
    >>> print(privacy_guarantee(make_pipeline(StandardScaler(), release).fit(people)).epsilon)
    inf
    """
    check_is_fitted(estimator)
    composite = _Composite(declared_public(public))
    composite.visit("", estimator, _Given())
    unknown = sorted(composite.public.keys() - composite.named)
    if not composite.parts and not composite.repeated:
        composite.repeated.append(f"{type(estimator).__name__} has no private step")
    if unknown:
        raise ValueError(
            "public must name steps without privacy that get rows before their release; "
            f"got {', '.join(map(repr, unknown))}."
        )
    return composite.total()


@dataclass(frozen=True)
class _Given:
    """Input of a step: raw columns, whether labels are raw, and the stretch of distances so far."""

    raw: tuple[str, ...] = ("the input",)
    labels_raw: bool = True
    stretch: float | None = 1.0
    sparse: bool = False


class _Composite:
    """Visit the steps of a fitted estimator in data-flow order and collect releases and leaks."""

    def __init__(self, public: dict[str, float | None]) -> None:
        self.public = public
        self.named: set[str] = set()
        self.seen: list[Any] = []
        # Releases, with the names of their steps.
        self.parts: list[tuple[str, PrivacyGuarantee]] = []
        # Reasons that void guarantees of features, of labels, and all.
        self.row_leaks: list[str] = []
        self.label_leaks: list[str] = []
        self.repeated: list[str] = []
        self.claims: list[str] = []
        self.notes: list[str] = []
        self.passing: tuple[str, ...] = ()
        # True if a guarantee of records covers the target.
        self.of_targets = False
        # True if a private step that is not counted has a seed.
        self.seeded = False

    def visit(self, name: str, step: Any, given: _Given) -> _Given:
        """Record what a step does with its input, and return its output."""
        if step is None or isinstance(step, str):
            return given
        guarantee = own_guarantee(step)
        if guarantee is not None:
            given = self._private(name, step, guarantee, given)
        elif type(step) is Pipeline:
            given = self._pipeline(name, step, given)
        elif type(step) is ColumnTransformer:
            given = self._columns(name, step, given)
        elif type(step) is FeatureUnion:
            branches = [(inner, branch, given) for inner, branch in step.transformer_list]
            given = self._branches(name, branches, step.transformer_weights, given)
        elif holds_guarantee(step):
            given = self._repeats(name, step)
        else:
            given = self._plain(name, step, given)
        self.passing = given.raw
        return given

    def total(self) -> PrivacyGuarantee:
        """Return the guarantee of all recorded releases and leaks."""
        parts = self.parts
        if len({part.unit for _, part in parts}) > 1:
            parts = [(name, _of_the_record(part)) for name, part in parts]
        steps = tuple(part.as_step(name) for name, part in parts)
        total = reduce(add, (part for _, part in parts)) if parts else PrivacyGuarantee(math.inf)
        seeded = total.seeded or self.seeded
        total = replace(total, basis=sentence(steps) if parts else "", parts=steps, seeded=seeded, covers="")
        of_rows = any(part.unit != "label" for _, part in parts)
        of_labels = self.of_targets or any(part.unit == "label" for _, part in parts)
        leaks, notes, unprotected = list(self.repeated), list(self.notes), []
        if self.claims:
            notes.append(f"public by the caller's word: {', '.join(self.claims)}")
        if of_rows:
            leaks += self.row_leaks
            if self.passing and not leaks:
                leaks.append(f"columns of {', '.join(self.passing)} pass unprotected")
        elif self.row_leaks or self.passing:
            unprotected.append("features")
        if of_labels:
            leaks += self.label_leaks
        elif self.label_leaks:
            unprotected.append("target")
        if not leaks:
            basis = "; ".join(dict.fromkeys([total.basis, *notes]))
            return replace(total, basis=basis, unprotected=tuple(unprotected))
        leaks = list(dict.fromkeys(leaks))
        apart = total.basis if math.isinf(total.epsilon) else f"apart from that {total.headline()}, {total.basis}"
        basis = "; ".join(dict.fromkeys(["infinite: " + "; ".join(leaks), *([apart] if parts else []), *notes]))
        unbounded = tuple(GuaranteeStep("unprotected", math.inf, unit=total.unit, basis=leak) for leak in leaks)
        shown: dict[str, Any] = {"per_feature": None, "figures": (), "unprotected": tuple(unprotected)}
        return replace(total, epsilon=math.inf, basis=basis, parts=unbounded + steps, **shown)

    def _private(self, name: str, step: Any, guarantee: PrivacyGuarantee, given: _Given) -> _Given:
        """Count the release of a private step once."""
        if not type(step).__module__.startswith("skldp.") and not isinstance(step, GuaranteeMixin):
            self.notes.append(f"{_title(name, step)} states its guarantee itself")
        of_releases = getattr(type(step), "_learns_from_releases", False)
        if of_releases and not given.raw:
            # The release of the rows is counted already.
            labels = step._label_guarantee
            if labels is not None:
                self.parts.append((_join(name, "label_mechanism"), labels))
            elif given.labels_raw:
                self.label_leaks.append(f"{_title(name, step)} had the labels before they were randomized")
            return given
        if any(step is one for one in self.seen):
            self.repeated.append(f"{_title(name, step)} stands in two places, and only its last fit is known: clone it")
        self.seen.append(step)
        if of_releases and self.parts:
            self.row_leaks.append(f"columns of {', '.join(given.raw)} pass unprotected")
        called = name or type(step).__name__
        if guarantee.unit != "distance":
            self.parts.append((called, guarantee))
        elif given.raw:
            self.parts.append((called, self._of_the_input(name, step, guarantee, given)))
        else:
            self.notes.append(f"{_title(name, step)} works on what is released already")
        if getattr(type(step), "_releases_inner_targets", False):
            within = self.visit(_join(name, "estimator"), step.estimator_, replace(given, labels_raw=False))
            return replace(within, labels_raw=given.labels_raw)
        if guarantee.unit == "label" and not getattr(type(step), "_releases_its_labels", False):
            return given
        self.of_targets |= get_tags(step).target_tags.required and not of_releases
        return replace(given, raw=(), stretch=1.0, sparse=False)

    def _of_the_input(self, name: str, step: Any, guarantee: PrivacyGuarantee, given: _Given) -> PrivacyGuarantee:
        """Convert distances between inputs of the step into distances between records."""
        if given.stretch == 1:
            return guarantee
        if given.stretch is not None:
            diameter = guarantee.diameter
            if diameter is not None and given.stretch > 0:
                diameter = math.nextafter(diameter / given.stretch, math.inf)
            return replace(
                guarantee,
                epsilon=product_above(guarantee.epsilon, given.stretch),
                stated=None if guarantee.stated is None else guarantee.stated * given.stretch,
                diameter=diameter,
                figures=(),
                basis=f"{guarantee.basis}; steps before it stretch distances at most {given.stretch:.4g} times",
            )
        if guarantee.diameter is None:
            self.row_leaks.append(f"steps before {_title(name, step)} may stretch distances")
            return guarantee
        basis = f"{guarantee.basis}; counted over its diameter, as steps before it may stretch distances"
        return replace(guarantee, basis=basis).over_diameter()

    def _repeats(self, name: str, step: Any) -> _Given:
        """Record a private step inside an estimator that may pass it a record several times."""
        self.seeded |= any(
            value is not None for key, value in step.get_params().items() if key.split("__")[-1] == "seed"
        )
        what = "may give a record several times to the private step inside: release once, before it"
        if isinstance(step, Pipeline):
            what = "is not scikit-learn's Pipeline and may sample before a release: release first, sample later"
        reason = (
            f"{_title(name, step)} {what} (the private step in front of it in a scikit-learn Pipeline; for labels, "
            "LabelPrivateClassifier or LabelPrivateRegressor around it)"
        )
        if hasattr(step, "best_estimator_"):
            reason += "; privacy_guarantee(search.best_estimator_) is the figure of that one fit"
        self.repeated.append(reason)
        return _Given(raw=(), labels_raw=False)

    def _plain(self, name: str, step: Any, given: _Given) -> _Given:
        """Record a leak if a step without a private part reads rows or labels that are not released."""
        frozen = type(step) is FrozenEstimator
        if given.labels_raw and not frozen and not ignores_labels(step):
            self.label_leaks.append(f"{_title(name, step)} had the labels before they were randomized")
        if frozen or (given.raw and name in self.public):
            self.named.add(name)
            self.claims.append(_title(name, step))
        if not given.raw:
            return given
        if frozen or name in self.public:
            return replace(given, stretch=_product_above(given.stretch, self.public.get(name)))
        effect = effect_of_public(step)
        if effect is None:
            self.row_leaks.append(
                f"{_title(name, step)} may have learnt from rows before they were randomized: "
                f"{public_instead_of(step)} learns nothing"
            )
            return replace(given, stretch=None)
        stretch = _product_above(given.stretch, effect.stretch)
        return replace(given, stretch=stretch, sparse=given.sparse or effect.sparse)

    def _pipeline(self, name: str, pipeline: Any, given: _Given) -> _Given:
        if getattr(pipeline.memory, "location", pipeline.memory) is not None:
            # The cache holds released values, which are counted.
            kept = "memory= keeps on disk, unprotected, what the steps were given"
            self.row_leaks += [kept] if given.raw else []
            self.label_leaks += [kept] if given.labels_raw else []
        if getattr(pipeline, "transform_input", None) and given.raw:
            self.row_leaks.append(f"transform_input of {_title(name, pipeline)} may release a record again")
        for inner, step in pipeline.steps:
            given = self.visit(_join(name, inner), step, given)
        return given

    def _columns(self, name: str, step: Any, given: _Given) -> _Given:
        for inner, _, columns in step.transformers:
            if given.raw and callable(columns) and type(columns) is not make_column_selector:
                chosen = _join(name, inner)
                self.row_leaks.append(f"the columns of {chosen!r} are chosen by a function that gets all rows")
        branches = [
            (inner, branch, replace(given, stretch=None) if repeats(columns, step.n_features_in_) else given)
            for inner, branch, columns in step.transformers_
            if not selects_none(columns)
        ]
        given = self._branches(name, branches, step.transformer_weights, given)
        if given.raw and given.sparse and step.sparse_threshold != 0:
            self.row_leaks.append(f"whether {name!r} gives a sparse matrix depends on the rows: sparse_threshold=0")
        return given

    def _branches(
        self, name: str, branches: list[tuple[str, Any, _Given]], weights: dict[str, float] | None, given: _Given
    ) -> _Given:
        """Record branches that read the same rows, and return their outputs side by side."""
        outs = [
            (inner, self.visit(_join(name, inner), branch, each))
            for inner, branch, each in branches
            if not (isinstance(branch, str) and branch == "drop")
        ]
        factors = [abs((weights or {}).get(inner, 1.0)) for inner, _ in outs]
        stretches = [_product_above(out.stretch, factor) for (_, out), factor in zip(outs, factors, strict=True)]
        return replace(
            given,
            raw=tuple(inner for inner, out in outs if out.raw),
            stretch=_norm_above(stretches),
            sparse=any(out.sparse for _, out in outs),
        )


def _of_the_record(part: PrivacyGuarantee) -> PrivacyGuarantee:
    if part.unit != "distance" or part.diameter is not None:
        return part.over_diameter()
    return replace(part, epsilon=math.inf, unit="record", basis=f"no diameter declared for distances: {part.basis}")


def _title(name: str, step: Any) -> str:
    return f"{name!r} ({type(step).__name__})" if name else type(step).__name__


def _join(name: str, inner: str) -> str:
    return f"{name}__{inner}" if name else inner


def _product_above(stretch: float | None, factor: float | None) -> float | None:
    """Return an upper bound of the product of two numbers >= 0; None if one is unknown."""
    return None if stretch is None or factor is None else product_above(stretch, float_above(factor))


def _norm_above(stretches: list[float | None]) -> float | None:
    """Return an upper bound of the Euclidean norm; ``math.hypot`` errs by less than one unit in the last place."""
    known = [stretch for stretch in stretches if stretch is not None]
    if len(known) < len(stretches):
        return None
    norm = math.hypot(*known)
    if math.isinf(norm) or Fraction(norm) ** 2 >= sum(Fraction(stretch) ** 2 for stretch in known):
        return norm
    return math.nextafter(norm, math.inf)
