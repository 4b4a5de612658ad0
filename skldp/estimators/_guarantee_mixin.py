"""Guarantee of a fitted estimator: valid until a parameter changes, and shown in notebooks."""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, wraps
from inspect import Parameter, getattr_static, signature
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skldp._checks import did_you_mean
from skldp._tables import in_html
from skldp.estimators._validation import in_family, warn
from skldp.exceptions import ChangedAfterFitError, LearntDomainWarning, PrivacyGuaranteeWarning
from skldp.mechanisms._guarantee import PUBLISHED_DELTA, PrivacyGuarantee


def box(estimator: Any, caption: str) -> Any:
    """Return the diagram box of an estimator with a caption, above those of inner estimators."""
    name = type(estimator).__name__
    own = _block("single", estimator, name, str(estimator), caption)
    held = {
        key: part
        for key, part in estimator.get_params(deep=False).items()
        if hasattr(part, "get_params") and hasattr(part, "fit") and not isinstance(part, type)
    }
    if not held:
        return own
    names = [f"{key}: {type(part).__name__}" for key, part in held.items()]
    parts = _block("parallel", list(held.values()), names, [str(part) for part in held.values()])
    return _block("serial", [own, parts], [None, None], [None, None])


def _block(kind: str, estimators: Any, names: Any, details: Any, caption: str | None = None) -> Any:
    shown = {"names": names, "name_details": details, "name_caption": caption, "doc_link_label": None}
    block = SimpleNamespace(kind=kind, estimators=estimators, dash_wrapped=False, **shown)
    block._sk_visual_block_ = lambda: block
    return block


@cache
def _parameter_names(kind: type) -> list[str]:
    """Return the sorted names of a class's parameters; reading a signature takes longer than a small release."""
    return sorted(signature(kind).parameters)


_MOST_COPIED = 2**20
_FIXED = frozenset({bool, int, float, str})


class GuaranteeMixin:
    """Mixin for ``privacy_guarantee_``, which is valid until a parameter changes and is shown in notebooks.

    Setting ``privacy_guarantee_`` in ``fit`` copies the parameters, so that an edit in place counts as a change. An
    array above 1 MiB is kept by reference. Every release calls ``_check_unchanged`` first. Parameters in
    ``_may_change`` do not influence releases. The mixin precedes ``BaseEstimator`` among the bases.
    """

    _may_change = frozenset({"n_jobs", "verbose"})
    # Not shown in notebooks: they may be learnt from people.
    _hidden_attributes = frozenset({"classes_", "categories_", "columns_"})
    # Why methods are absent, by name.
    _absent: ClassVar[dict[str, str]] = {}
    # True if the estimator learns from releases; releases the targets of an inner estimator; or takes labels as input.
    _learns_from_releases: ClassVar[bool] = False
    _releases_inner_targets: ClassVar[bool] = False
    _releases_its_labels: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = _naming_the_class(cls.__init__)  # type: ignore[method-assign]

    @property
    def privacy_guarantee_(self) -> PrivacyGuarantee:
        """Guarantee declared by fit.

        Raises
        ------
        ChangedAfterFitError
            If a parameter was changed after fit.
        sklearn.exceptions.NotFittedError
            If not fitted, or if the last fit failed. Also an AttributeError.
        """
        self._check_unchanged()
        return self._guarantee_at_fit[0]

    @privacy_guarantee_.setter
    def privacy_guarantee_(self, guarantee: PrivacyGuarantee) -> None:
        if hasattr(self, "partial_fit"):
            basis = f"{guarantee.basis}; if each person takes part once, in one call of fit or partial_fit"
            guarantee = replace(guarantee, basis=basis)
        guarantee = replace(guarantee, covers="this step alone; for a pipeline use privacy_guarantee(pipeline)")
        parameters = self._guarantee_parameters()
        self._guarantee_at_fit = guarantee, parameters, _copied(parameters)

    def _forget_guarantee(self) -> None:
        """Remove the guarantee of an earlier fit, so that a fit that fails leaves none."""
        vars(self).pop("_guarantee_at_fit", None)

    def _guarantee_parameters(self) -> dict[str, Any]:
        """Return the parameters that the law depends on, by name."""
        kind: Any = type(self)
        return {name: getattr(self, name) for name in _parameter_names(kind) if name not in self._may_change}

    def _check_unchanged(self) -> None:
        """Raise unless fitted with the present parameters."""
        if "_guarantee_at_fit" not in vars(self):
            raise NotFittedError(
                f"This {type(self).__name__} has no privacy_guarantee_: it is not fitted, or the last fit failed."
            )
        _, given, copies = self._guarantee_at_fit
        now = self._guarantee_parameters()
        changed = sorted(given.keys() ^ now.keys()) or [
            name
            for name, value in now.items()
            if not (value is given[name] and _is_fixed(value)) and not _same(copies[name], _copied(value))
        ]
        if changed:
            raise ChangedAfterFitError(
                f"Parameters of {type(self).__name__} must not change after fit, because its guarantee would not hold; "
                f"got {', '.join(changed)} changed after fit; fit it again."
            )

    def __sklearn_clone__(self) -> Any:
        return in_family(self, super().__sklearn_clone__())  # type: ignore[misc]  # of BaseEstimator

    def __getattr__(self, name: str) -> Any:
        if name in self._absent:
            raise AttributeError(self._absent[name])
        # Raises the error that led here.
        return object.__getattribute__(self, name)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()  # type: ignore[misc]  # of BaseEstimator, beside it among the bases
        tags.non_deterministic = getattr(self, "seed", 0) is None
        return tags

    @property
    def _repr_html_(self) -> Any:
        # As in scikit-learn, a property that raises AttributeError for display as text.
        draw = super()._repr_html_  # type: ignore[misc]  # of BaseEstimator, beside it among the bases
        return lambda: draw() + _guarantee_html(self)

    @property
    def _sk_visual_block_(self) -> Any:
        caption = _guarantee_caption(self)
        if caption is None:
            raise AttributeError("Not fitted: scikit-learn draws its own box.")
        return lambda: box(self, caption)

    def _get_fitted_attr_html(self, *args: Any, **kwargs: Any) -> Any:
        shown = super()._get_fitted_attr_html(*args, **kwargs)  # type: ignore[misc]  # as above
        for name in self._hidden_attributes:
            shown.pop(name, None)
        return shown

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]  # as above
        if "text/html" in bundle:
            bundle["text/html"] += _guarantee_html(self)
        return bundle


def attach_guarantee(estimator, guarantee, learnt="", declaration=""):
    """Set ``privacy_guarantee_``, and warn if it is weaker than the stated epsilon or delta.

    `learnt` names the part of the domain that was learnt from private data, and `declaration` the parameter that
    declares it.
    """
    if getattr(estimator, "ledger", None) is not None and estimator.seed is not None:
        raise ValueError(f"seed must be None with a ledger; got {estimator.seed!r}.")
    basis = guarantee.basis
    if learnt:
        basis = f"infinite: {learnt} were learnt from private data, which no epsilon covers"
        guarantee = replace(guarantee, epsilon=math.inf, per_feature=None, figures=())
    if not getattr(estimator, "transform_noise", True):
        basis += "; of fit_transform alone: with transform_noise=False, transform does not protect what it is given"
    if basis != guarantee.basis or estimator.seed is not None:
        guarantee = replace(guarantee, basis=basis, seeded=estimator.seed is not None)
    estimator.privacy_guarantee_ = guarantee
    name, stated = type(estimator).__name__, guarantee.stated
    if learnt:
        warn(
            f"{name} learnt {learnt} from private data, which no epsilon covers. Declare them from public knowledge: "
            f"{name}({declaration}).",
            LearntDomainWarning,
        )
        return
    if guarantee.unit == "distance" and 20 < guarantee.plain_epsilon < math.inf:
        plain = f"{guarantee.plain_epsilon:.4g} per record over the declared diameter of {guarantee.diameter:.4g}"
        text = f"{name} states epsilon {guarantee.epsilon:.4g} per unit of distance, which is {plain}"
        warn(f"{text} and hides next to nothing. Scale the records, or lower epsilon.", PrivacyGuaranteeWarning)
    if stated is not None and guarantee.epsilon > stated * (1 + 1e-9):
        alone = "" if guarantee.per_feature is None else f" ({guarantee.per_feature:.4g} for one feature alone)"
        warn(
            f"{name} states epsilon {stated:.4g}, as published, but the exact worst-case loss "
            f"of what it releases is {guarantee.epsilon:.4g} per {guarantee.unit}{alone}. "
            "calibration='exact' provides the stated epsilon.",
            PrivacyGuaranteeWarning,
        )
    elif guarantee.delta > (delta := dict(guarantee.figures).get(PUBLISHED_DELTA, 1.0)):
        warn(
            f"{name} states delta {delta:.4g}, as published, but the delta that is proved is {guarantee.delta:.4g}. "
            "sensitivity='spectral' holds for every two vectors, without delta.",
            PrivacyGuaranteeWarning,
        )


def own_guarantee(step: Any) -> PrivacyGuarantee | None:
    """Return the guarantee that a fitted estimator states; None if it states none."""
    if isinstance(step, GuaranteeMixin):
        check_is_fitted(step)
        return step.privacy_guarantee_
    # An estimator that forwards attributes to its member may fit that member several times.
    states = getattr_static(step, "privacy_guarantee_", None) is not None
    return getattr(step, "privacy_guarantee_", None) if states else None


def holds_guarantee(thing: Any, seen: set[int] | None = None) -> bool:
    """Return whether an estimator holds a private part among its parameters and attributes, at any depth."""
    seen = set() if seen is None else seen
    if id(thing) in seen:
        return False
    seen.add(id(thing))
    if isinstance(thing, GuaranteeMixin):
        return True
    if isinstance(thing, BaseEstimator):
        attributes = vars(thing)
        return "privacy_guarantee_" in attributes or any(holds_guarantee(part, seen) for part in attributes.values())
    if isinstance(thing, Mapping):
        return any(holds_guarantee(part, seen) for part in thing.values())
    if isinstance(thing, list | tuple | set) or (isinstance(thing, np.ndarray) and thing.dtype == object):
        return any(holds_guarantee(part, seen) for part in (thing.ravel() if hasattr(thing, "ravel") else thing))
    return False


def _naming_the_class(init: Any) -> Any:
    """Return an ``__init__`` whose error of an unknown parameter names the class, not the base that defines it."""
    known = signature(init).parameters
    by_name = [name for name, one in known.items() if one.kind is Parameter.KEYWORD_ONLY]

    @wraps(init)
    def checked(self: Any, *args: Any, **given: Any) -> None:
        if by_name and len(args) >= len(known) - len(by_name):
            raise TypeError(f"{type(self).__name__} takes {by_name[0]} by name: write {by_name[0]}=...")
        for name in sorted(given.keys() - known.keys()):
            repeats = " Its noise is secure; for tests, `seed` repeats it." if name == "random_state" else ""
            raise TypeError(f"{type(self).__name__} has no parameter {name!r}.{repeats or did_you_mean(name, known)}")
        init(self, *args, **given)

    return checked


def _copied(value: Any) -> Any:
    """Copy containers and array-likes at any depth; return other objects unchanged."""
    if isinstance(value, Mapping):
        return {name: _copied(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value), [_copied(one) for one in value]
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        if array.nbytes > _MOST_COPIED:
            # Too large to be read at every release.
            return value
        # Bytes of NaN are equal, NaN is not.
        content = _copied(array.tolist()) if array.dtype.hasobject else array.tobytes()
        return type(value), array.dtype, array.shape, content
    return set(value) if isinstance(value, set) else value


def _is_fixed(value: Any) -> bool:
    """Return whether a value cannot change in place."""
    return value is None or type(value) in _FIXED or (type(value) is tuple and all(map(_is_fixed, value)))


def _same(before: Any, now: Any) -> bool:
    """Compare two values as :func:`_copied` returns them."""
    if before is now:
        return True
    if type(before) is not type(now):
        return False
    if isinstance(before, dict):
        return list(before) == list(now) and all(map(_same, before.values(), now.values()))
    if isinstance(before, list | tuple):
        return len(before) == len(now) and all(map(_same, before, now))
    equal = np.array_equal(before, now) if isinstance(before, np.ndarray) else before == now
    # A comparison without a truth value (a frame) counts as a change.
    return isinstance(equal, bool | np.bool_) and bool(equal)


def _guarantee_caption(estimator: GuaranteeMixin) -> str | None:
    try:
        guarantee = estimator.privacy_guarantee_
    except ChangedAfterFitError:
        return "no privacy guarantee: changed after fit"
    except AttributeError:
        return None
    return guarantee.headline() + ("; void for anyone who knows the seed" if guarantee.seeded else "")


def _guarantee_html(estimator: GuaranteeMixin) -> str:
    try:
        guarantee = estimator.privacy_guarantee_
    except ChangedAfterFitError as error:
        return f'<div class="skldp-guarantee">No privacy guarantee: {in_html(str(error))}</div>'
    except AttributeError:
        return ""
    return f'<div class="skldp-guarantee">{guarantee._repr_html_()}</div>'
