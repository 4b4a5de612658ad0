"""What a whole scikit-learn object guarantees: the sum of all that its private parts release about one record."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from skldp.estimators._ensembles import count_ensemble, count_search, is_ensemble, is_search, why_not_counted
from skldp.estimators._guarantee_mixin import holds_guarantee, own_guarantee
from skldp.estimators._label_private import LabelPrivate
from skldp.estimators._label_sampler import LabelSampler
from skldp.estimators._labels import LabelPrivatizer
from skldp.estimators._noise_aware_discriminant import NoiseAwareDiscriminant
from skldp.estimators._noise_aware_regression import NoiseAwareLinearRegression
from skldp.estimators._public_steps import declared_public, effect_of_public, ignores_labels, is_row_wise
from skldp.estimators._selected_columns import repeats, selects_none
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._guarantee_steps import GuaranteeStep, sentence
from skldp.mechanisms._odds import float_above, product_above

__all__ = ["privacy_guarantee"]

# Single precision holds numbers a few times as large.
_LARGEST = 1e38
# What learns from the predictions of a stage for people whose labels the next one releases.
_PRIOR = "the prior of the next stage"


def privacy_guarantee(
    estimator: BaseEstimator, public: Iterable[str] | Mapping[str, float | None] = ()
) -> PrivacyGuarantee:
    """Add up what a fitted estimator, Pipeline, ensemble or search releases about one person.

    Parameters
    ----------
    estimator : fitted estimator
        A skldp estimator, or anything of scikit-learn that holds some.
    public : iterable of str, or dict of str to float, default=()
        Steps that you declare to have learnt nothing from private rows, by the names that ``get_params`` gives them
        (``"columntransformer__num__standardscaler"``). A dict also says how far each can stretch the distance of two
        rows at most, or None. The guarantee repeats the claim.

    Returns
    -------
    PrivacyGuarantee
        Of one record with its features, and its label where a step randomises labels or learns from both privately.
        What no step protects is said in `basis`, and where something knows more than was released, epsilon is infinite.
        Its `steps`, and `to_frame` as a table, name each step with what it releases.

    Raises
    ------
    ValueError
        If nothing in `estimator` protects anything, or `public` names what is no public step of it.
    ChangedAfterFitError
        If a private part was changed after it was fitted.
    sklearn.exceptions.NotFittedError
        If it is not fitted.

    Notes
    -----
    Releases add up by basic composition, as if the output of every step were handed out. Epsilon is infinite if

    - a step learnt from rows before the first private step. Steps that learn nothing are known by a list: Normalizer,
      Binarizer, ``FunctionTransformer()``, :class:`~skldp.BoundsScaler`, behind one of them PolynomialFeatures and
      random projections of a given size (which overflow at large values, and so show them, if nothing bounds these),
      and, with all that they could learn declared, OneHotEncoder (``categories=[...], handle_unknown="ignore"``),
      OrdinalEncoder (``handle_unknown="use_encoded_value"``), SimpleImputer (``strategy="constant",
      keep_empty_features=True``) and HashingVectorizer (``decode_error="replace"``). What a FrozenEstimator holds was
      learnt elsewhere, which `basis` repeats;
    - columns pass unprotected, or labels are promised a guarantee and something else had them before, such as the
      transformer of a TransformedTargetRegressor that is not declared in `public`;
    - a step before a guarantee per unit of distance may stretch distances by an unknown factor, and no diameter of the
      mechanism's own domain is declared (over which the guarantee is counted then);
    - ``Pipeline(memory=...)``, whose cache holds the rows and labels that each step was given: joblib writes them
      into a file ``metadata.json``, shortened, and the output of steps before the private one in full;
    - classes or categories were learnt from private data;
    - a search chose by scores of private labels or of rows without noise, or among candidates that differ in what
      they release (else its fits and scores are counted). What it chose has a figure of its own,
      ``privacy_guarantee(search.best_estimator_)``, which says nothing about the choice;
    - private parts are within something of which it is not known how often it gives them a record.

    Bagging, voting, stacking, calibration, several outputs, one versus the rest or one, and chains are counted: how
    often each record is given to a member, by fits and by predictions that something learns from. Predictions for new
    people are releases of those, one from each member. Parameters of scikit-learn's own objects, such as the `cv` of a
    stacking, are read as they are now: no promise of theirs remembers what they were at fit.

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
    walk = _Walk(declared_public(public))
    walk.visit("", estimator, _Given())
    unknown = sorted(walk.public.keys() - walk.named)
    if not walk.parts:
        raise ValueError(
            "privacy_guarantee needs a fitted estimator with at least one private step. "
            f"Got {type(estimator).__name__} without one instead."
        )
    if unknown:
        raise ValueError(
            "public must name steps that are not private and get rows that are not released yet. "
            f"Got {', '.join(map(repr, unknown))} instead."
        )
    return walk.total()


@dataclass(frozen=True)
class _Given:
    """What reaches an estimator.

    Parameters
    ----------
    raw : tuple of str
        Whose columns are not released yet; empty where all are.
    labels_raw : bool
    stretch : float or None
        How far distances were stretched on the way, at most; None where that is not known.
    times : int
        How often each record comes along.
    again : str
        What learns from transforms of rows that were not fitted on; "" where nothing does.
    largest : float
        The largest magnitude of a number, as far as steps before have set bounds.
    sparse : bool
        Whether it may be a sparse matrix that a step made.
    transformed : bool
        Whether something learns from the transform of the rows that the estimator was fitted on.
    predicted : bool
        Whether labels are released by what is predicted for rows that it was not fitted on.
    """

    raw: tuple[str, ...] = ("the whole",)
    labels_raw: bool = True
    stretch: float | None = 1.0
    times: int = 1
    again: str = ""
    largest: float = math.inf
    sparse: bool = False
    transformed: bool = False
    predicted: bool = False


class _Walk:
    """Visits what a fitted estimator holds, in the order in which rows pass, and notes releases and leaks."""

    def __init__(self, public: dict[str, float | None]) -> None:
        self.public = public
        self.named: set[str] = set()
        # What is released, with the name of the step that does.
        self.parts: list[tuple[str, PrivacyGuarantee]] = []
        # What void a guarantee of features, one of labels, and any.
        self.row_leaks: list[str] = []
        self.label_leaks: list[str] = []
        self.leaks: list[str] = []
        self.notes: list[str] = []
        self.passing: tuple[str, ...] = ()
        # Whether a part promises its guarantee to the record with its target.
        self.of_targets = False

    def visit(self, name: str, step: Any, given: _Given) -> _Given:
        """Note what one step does with what it is given, and return what it gives on."""
        if step is None or isinstance(step, str):
            return given
        if isinstance(step, FrozenEstimator):
            return self._frozen(name, step.estimator, given)
        guarantee = own_guarantee(step)
        if guarantee is not None:
            given = self._private(name, step, guarantee, given)
        elif isinstance(step, Pipeline) and _is_known(step):
            given = self._pipeline(name, step, given)
        elif type(step) is ColumnTransformer:
            given = self._columns(name, step, given)
        elif type(step) is FeatureUnion:
            branches = [(inner, branch, given) for inner, branch in step.transformer_list]
            given = self._branches(name, branches, step.transformer_weights, given)
        elif not holds_guarantee(step):
            given = self._plain(name, step, given)
        elif is_ensemble(step):
            given = self._ensemble(name, step, given)
        elif type(step) is TransformedTargetRegressor:
            given = self._target(name, step, given)
        elif is_search(step):
            given = self._search(name, step, given)
        else:
            self._unknown(name, step)
        self.passing = given.raw
        return given

    def total(self) -> PrivacyGuarantee:
        """The guarantee of all that was noted."""
        parts = self.parts
        if len({part.unit for _, part in parts}) > 1:
            parts = [(name, _of_the_record(part)) for name, part in parts]
        whole = reduce(add, [_repeated(part, times) for part, times in Counter(part for _, part in parts).items()])
        steps = tuple(part.as_step(name, times) for (name, part), times in Counter(parts).items())
        whole = replace(whole, basis=sentence(steps), parts=steps)
        of_rows = any(part.unit != "label" for _, part in parts)
        of_labels = self.of_targets or any(part.unit == "label" for _, part in self.parts)
        leaks = list(self.leaks)
        notes = list(self.notes)
        if self.named:
            named = " and ".join(map(repr, sorted(self.named)))
            notes.append(f"{named} {'is' if len(self.named) == 1 else 'are'} public, the caller says")
        if of_rows:
            leaks += self.row_leaks
            if self.passing and not leaks:
                leaks.append(f"columns of {', '.join(self.passing)} pass unprotected")
        elif self.row_leaks or self.passing:
            notes.append("features are not randomised")
        if of_labels:
            leaks += self.label_leaks
        elif self.label_leaks:
            notes.append("labels are not randomised")
        if leaks:
            leaks = list(dict.fromkeys(leaks))
            apart = whole.basis if math.isinf(whole.epsilon) else f"apart from that {whole.headline()}, {whole.basis}"
            basis = "; ".join(dict.fromkeys(["infinite: " + "; ".join(leaks), apart, *notes]))
            unbounded = tuple(GuaranteeStep("unprotected", math.inf, unit=whole.unit, basis=leak) for leak in leaks)
            return replace(whole, epsilon=math.inf, per_feature=None, figures=(), basis=basis, parts=unbounded + steps)
        return replace(whole, basis="; ".join(dict.fromkeys([whole.basis, *notes])))

    def _private(self, name: str, step: Any, guarantee: PrivacyGuarantee, given: _Given) -> _Given:
        of_releases = isinstance(step, NoiseAwareDiscriminant | NoiseAwareLinearRegression)
        is_model = guarantee.unit != "label" and get_tags(step).target_tags.required and not of_releases
        if given.again and (not getattr(step, "transform_noise", True) or (is_model and given.predicted)):
            does = "predicts" if is_model else "transforms"
            self.leaks.append(f"{_title(name, step)} {does} without noise, and {given.again} learns from that")
        if of_releases and not given.raw:
            # The rows' release was counted where it happened.
            labels = step.label_guarantee_
            if labels is not None:
                self.parts += [(_join(name, "label_mechanism"), labels)] * given.times
            elif given.labels_raw:
                self.label_leaks.append(f"{_title(name, step)} had the labels before they were randomised")
            return given
        called = name or type(step).__name__
        if guarantee.unit != "distance":
            self.parts += [(called, guarantee)] * given.times
        elif given.raw:
            self.parts += [(called, self._of_the_input(name, step, guarantee, given))] * given.times
        else:
            self.notes.append(f"{_title(name, step)} works on what is released already")
        if isinstance(step, LabelPrivatizer):
            return replace(given, raw=(), labels_raw=False)
        if isinstance(step, LabelSampler):
            return replace(given, labels_raw=False)
        if isinstance(step, LabelPrivate):
            within = replace(given, labels_raw=False)
            if getattr(step, "stages", 1) > 1:
                # The model of a stage is fitted to the rows of all before, and transforms those of the next.
                within = replace(within, times=given.times * step.stages, again=_PRIOR, predicted=True)
            inner = self.visit(_join(name, "estimator"), step.estimator_, within)
            return replace(inner, labels_raw=given.labels_raw)
        if guarantee.unit == "label":
            return given
        self.of_targets |= is_model
        return replace(given, raw=(), stretch=1.0, sparse=False)

    def _of_the_input(self, name: str, step: Any, guarantee: PrivacyGuarantee, given: _Given) -> PrivacyGuarantee:
        """Turn distances of what the step gets into those of the record."""
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

    def _plain(self, name: str, step: Any, given: _Given) -> _Given:
        """Note whether a step that holds nothing private had rows or labels that are not released yet."""
        if given.labels_raw and not ignores_labels(step):
            self.label_leaks.append(f"{_title(name, step)} had the labels before they were randomised")
        if not given.raw:
            return given
        if name in self.public:
            if hasattr(step, "fit_resample"):
                self.row_leaks.append(f"{_title(name, step)} may give a record several times")
            return self._named(name, given)
        effect = effect_of_public(step, given.largest)
        if effect is None:
            self.row_leaks.append(f"{_title(name, step)} may have learnt from rows before they were randomised")
            return replace(given, stretch=None)
        if effect.may_overflow and effect.largest > _LARGEST:
            self.row_leaks.append(f"{_title(name, step)} may overflow, which shows large values: bound them before")
        stretch = _product_above(given.stretch, effect.stretch)
        return replace(given, stretch=stretch, largest=effect.largest, sparse=given.sparse or effect.sparse)

    def _named(self, name: str, given: _Given) -> _Given:
        self.named.add(name)
        return replace(given, stretch=_product_above(given.stretch, self.public[name]), largest=math.inf)

    def _frozen(self, name: str, inner: Any, given: _Given) -> _Given:
        if holds_guarantee(inner):
            given = replace(given, again=f"what follows the FrozenEstimator {name!r}")
            return self.visit(name, inner, given)
        if not given.raw:
            return given
        if name in self.public:
            return self._named(name, given)
        if is_row_wise(inner):
            self.notes.append(f"what the FrozenEstimator {name!r} holds is taken as public")
        else:
            self.row_leaks.append(f"{name!r} is frozen, but may look at many rows at once, or refuse some values")
        return replace(given, stretch=None, largest=math.inf)

    def _pipeline(self, name: str, pipeline: Any, given: _Given) -> _Given:
        if getattr(pipeline.memory, "location", pipeline.memory) is not None:
            # What is released is in the cache as well, and is not counted twice.
            kept = "memory= keeps on disk, unprotected, what the steps were given"
            self.row_leaks += [kept] if given.raw else []
            self.label_leaks += [kept] if given.labels_raw else []
        passed_on = len(getattr(pipeline, "transform_input", None) or ())
        if passed_on:
            # Such as the rows for early stopping, in which anybody may be.
            times = given.times * (1 + passed_on)
            given = replace(given, times=times, again=f"what gets the transform_input of {_title(name, pipeline)}")
        transformed = given.transformed
        for place, (inner, step) in enumerate(pipeline.steps, 1):
            given = replace(given, transformed=transformed or place < len(pipeline.steps))
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
        """Every branch reads the rows, and what comes out of them stands side by side."""
        outs = [
            (inner, self.visit(_join(name, inner), branch, replace(each, transformed=True)))
            for inner, branch, each in branches
            if not (isinstance(branch, str) and branch == "drop")
        ]
        factors = [abs((weights or {}).get(inner, 1.0)) for inner, _ in outs]
        stretches = [_product_above(out.stretch, factor) for (_, out), factor in zip(outs, factors, strict=True)]
        largest = [out.largest * factor if factor else 0.0 for (_, out), factor in zip(outs, factors, strict=True)]
        return replace(
            given,
            raw=tuple(inner for inner, out in outs if out.raw),
            stretch=_norm_above(stretches),
            largest=max(largest, default=0.0),
            sparse=any(out.sparse for _, out in outs),
        )

    def _ensemble(self, name: str, ensemble: Any, given: _Given) -> _Given:
        counted = count_ensemble(ensemble)
        if counted is None:
            return self._unknown(name, ensemble)
        if counted.label_use and given.labels_raw:
            self.label_leaks.append(f"{_title(name, ensemble)} {counted.label_use}")
        # Between other steps it has to transform, after fit, the rows that it was fitted on: its members predict them.
        again = type(ensemble).__name__ if counted.transforms_again or given.transformed else given.again
        stretch = None if getattr(ensemble, "bootstrap_features", False) else given.stretch
        times = given.times * (counted.times + given.transformed)
        within = replace(given, times=times, again=again, stretch=stretch, transformed=False)
        outs = [(member, self.visit(_join(name, member), each, within)) for member, each in counted.members]
        raw = tuple(dict.fromkeys(member for member, out in outs if out.raw))
        if counted.final is not None:
            raw = given.raw if counted.passes_rows else raw
            final = replace(given, raw=raw, stretch=None)
            return self.visit(_join(name, "final_estimator"), counted.final, final)
        return replace(given, raw=raw, stretch=None)

    def _target(self, name: str, step: Any, given: _Given) -> _Given:
        transformer = step.transformer_
        guarantee = own_guarantee(transformer)
        if guarantee is None:
            if holds_guarantee(transformer):
                return self._unknown(name, step)
            if _join(name, "transformer") in self.public:
                self.named.add(_join(name, "transformer"))
            elif given.labels_raw and not (type(transformer) is FunctionTransformer and transformer.func is None):
                self.label_leaks.append(f"{_title(name, step)} had the labels before they were randomised")
            return self.visit(_join(name, "regressor"), step.regressor_, given)
        if not getattr(transformer, "transform_noise", True):
            self.label_leaks.append(f"{_title(name, transformer)} transforms targets without noise")
        # check_inverse transforms some targets a second time.
        releases = given.times * (2 if step.check_inverse else 1)
        self.parts += [(_join(name, "transformer"), replace(_of_the_record(guarantee), unit="label"))] * releases
        out = self.visit(_join(name, "regressor"), step.regressor_, replace(given, labels_raw=False))
        return replace(out, labels_raw=given.labels_raw)

    def _search(self, name: str, search: Any, given: _Given) -> _Given:
        reason = why_not_counted(search, given.labels_raw)
        if reason:
            self.leaks.append(f"{reason}, and best_estimator_ has a figure of its own")
            if given.labels_raw:
                self.label_leaks.append(f"{_title(name, search)} scored candidates with labels")
        else:
            # The chosen one transforms the rows that it was fitted on as well, where it stands between other steps.
            times = given.times * (count_search(search) + given.transformed)
            given = replace(given, times=times, again=f"the choice of {_title(name, search)}")
        return self.visit(_join(name, "estimator"), search.best_estimator_, given)

    def _unknown(self, name: str, step: Any) -> _Given:
        seeded = any(value is not None for key, value in step.get_params().items() if key.split("__")[-1] == "seed")
        unknown = PrivacyGuarantee(math.inf, basis="not added up", seeded=seeded)
        self.parts.append((name or type(step).__name__, unknown))
        self.leaks.append(f"it is not known how often {_title(name, step)} releases what its private parts are given")
        return _Given(raw=())


def _is_known(pipeline: Pipeline) -> bool:
    return type(pipeline).__module__.partition(".")[0] in ("sklearn", "imblearn")


def _repeated(part: PrivacyGuarantee, times: int) -> PrivacyGuarantee:
    if times == 1:
        return part
    return replace(
        part,
        epsilon=product_above(part.epsilon, times),
        delta=min(1.0, product_above(part.delta, times)),
        per_feature=None,
        stated=None if part.stated is None else part.stated * times,
        figures=(),
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
    """No less than the exact product of two numbers >= 0; None where one is not known."""
    return None if stretch is None or factor is None else product_above(stretch, float_above(factor))


def _norm_above(stretches: list[float | None]) -> float | None:
    """No less than the exact Euclidean norm, from which ``math.hypot`` is less than one unit in the last place away."""
    known = [stretch for stretch in stretches if stretch is not None]
    if len(known) < len(stretches):
        return None
    norm = math.hypot(*known)
    if math.isinf(norm) or Fraction(norm) ** 2 >= sum(Fraction(stretch) ** 2 for stretch in known):
        return norm
    return math.nextafter(norm, math.inf)
