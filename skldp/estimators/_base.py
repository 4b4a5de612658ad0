"""Base classes of the transformers of X: validate, clip to the declared domain, release in blocks."""

import math
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from joblib.parallel import get_active_backend
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from skldp._arrays import Floats
from skldp._checks import check_epsilon
from skldp.domains._domain import Ball, Box, Codes, NotFiniteError
from skldp.estimators._guarantee_mixin import GuaranteeMixin, attach_guarantee, own_guarantee
from skldp.estimators._validation import (
    EPSILON,
    FLOATS,
    NOISE_PARAMETERS,
    Form,
    check_bounds_by_column,
    check_finite,
    fit_context,
    input_names,
    is_fitted,
    output_container,
    validate_finite,
    warn,
)
from skldp.exceptions import OutOfDomainWarning
from skldp.mechanisms._field_key import FieldKey
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import noise_from
from skldp.mechanisms._rows import RowMechanism


def in_threads(function, *arguments, n_jobs):
    """Map a function over its arguments in threads."""
    if len(arguments[0]) <= 1:
        return list(map(function, *arguments))
    backend, configured = get_active_backend(require="sharedmem")
    n_threads = backend.effective_n_jobs(configured if n_jobs is None else n_jobs)
    if n_threads == 1:
        return list(map(function, *arguments))
    # joblib's threads take 12 ms to start, enough to release millions of numbers.
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(function, *arguments))


_AT_ONCE, _MOST_NAMED = 65_536, 4


class Keyed(NamedTuple):
    """Repeatable release: the secret for its field, and the ids of the rows."""

    key: FieldKey
    ids: Any


class _IsLedger(Form):
    """Constraint of a parameter that takes a ledger, which is imported only to check a given one."""

    def __init__(self) -> None:
        super().__init__("a PrivacyLedger, such as PrivacyLedger(epsilon, path='budgets.ledger')")

    def is_satisfied_by(self, val: Any) -> bool:
        """Return whether `val` is a ledger."""
        from skldp.accounting.ledger._privacy_ledger import PrivacyLedger

        return isinstance(val, PrivacyLedger)


LEDGER: list = [None, _IsLedger()]


class LocalTransformer(GuaranteeMixin, TransformerMixin, BaseEstimator):
    """Base class of the transformers that release every row of X through a local mechanism.

    A subclass defines ``__init__`` with the parameters `epsilon` and `seed` beside its own (`transform_noise`,
    `n_jobs`, `bounds` and `ledger` are optional) and one hook, ``_make_mechanism(X)``, which may use only the shape
    and the dtype of X and returns a :class:`~skldp.mechanisms.RowMechanism`.
    """

    _parameter_constraints: dict = {"epsilon": EPSILON, "transform_noise": ["boolean"], **NOISE_PARAMETERS}

    mechanism_: Any
    bounds_: Any = None
    # Further arguments of validate_data.
    _input: dict = {}

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Declare the mechanism and its guarantee.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Checked. Only its shape, dtype and feature names are used, and categories where they are learnt.
        y : None
            Ignored.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        self._fit_rows(X)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X: Any, y: Any = None, ids: Any = None) -> Any:
        """Fit, then release every row of X with noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The private rows.
        y : None
            Ignored.
        ids : array-like of int or str, shape (n_samples,), default=None
            Distinct ids of the people; required with a `ledger`, refused without.

        Returns
        -------
        X_released : ndarray of shape (n_samples, n_features_out)
            Released rows.

        Raises
        ------
        BudgetExhaustedError
            If the ledger refuses a person. Then nothing is released or charged.
        """
        return self._encoded(self._release(self._fit_rows(X), ids=ids), X)

    def transform(self, X: Any, ids: Any = None) -> Any:
        """Release every row of X; with ``transform_noise=False``, return the same encoding without noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The private rows.
        ids : array-like of int or str, shape (n_samples,), default=None
            Distinct ids of the people; required with a `ledger`, refused without.

        Returns
        -------
        X_released : ndarray of shape (n_samples, n_features_out)
            Released rows.

        Raises
        ------
        BudgetExhaustedError
            If the ledger refuses a person. Then nothing is released or charged.
        """
        return self._release_into(X, None, ids)

    def _fit_rows(self, X):
        """Declare the mechanism, and return the rows that it takes."""
        self._forget_guarantee()
        rows = self._rows(X, reset=True)
        self._declare(rows)
        return rows

    def _as_given(self, X):
        """Return X, or y as an array."""
        return X

    def _rows(self, X, *, reset):
        """Validate X, and return the rows that the mechanism takes."""
        # After fit, the mechanism refuses NaN and infinity in the thread that releases the numbers.
        return validate_finite(self, X, reset=reset, ensure_all_finite=reset, **self._input)

    def _declare(self, X):
        if hasattr(self, "bounds"):
            self.bounds_ = None if self.bounds is None else check_bounds_by_column(self.bounds, self)
        check_epsilon(self.epsilon)
        self.mechanism_ = self._make_mechanism(X)
        attach_guarantee(self, self.mechanism_.guarantee())

    def _empty_release(self, n_rows, dtype):
        """Return an uninitialised array for the release of `n_rows` rows of a dtype."""
        mechanism = self.mechanism_
        taken = np.dtype(dtype if dtype in FLOATS else np.float64)
        return np.empty((n_rows, mechanism.n_outputs), dtype=mechanism.output_dtype(taken))

    def _can_be_written_to(self, dtype):
        """Return whether a dtype holds released values, up to rounding."""
        return np.can_cast(self.mechanism_.output_dtype(np.dtype(np.float64)), dtype, "same_kind")

    def _release_into(self, X, out, ids=None, keyed=None, counts=None):
        """Release as :meth:`transform`, into `out`; with a :class:`Keyed`, repeatably.

        The number of moved values is appended to a list `counts`; without one it is warned of.
        """
        check_is_fitted(self)
        self._check_unchanged()
        X = self._as_given(X)
        noisy = getattr(self, "transform_noise", True)
        direct = out if type(self)._encoded is LocalTransformer._encoded else None
        rows = self._rows(X, reset=False)
        try:
            released = self._release(rows, direct, noisy=noisy, ids=ids, keyed=keyed, counts=counts)
        except NotFiniteError:
            check_finite(rows, estimator=self)
            raise
        encoded = self._encoded(released, X, noisy=noisy)
        if out is None or encoded is out:
            return encoded
        out[...] = encoded
        return out

    def _encoded(self, released, X, *, noisy=True):
        """Encode released rows as :meth:`transform` returns them."""
        return released

    def _release(self, rows, out=None, *, noisy=True, ids=None, keyed=None, counts=None):
        """Release validated rows, with or without noise, in threads."""
        if self.bounds_ is not None:
            check_bounds_of_type(self.bounds_, rows.dtype)
        output_container(self)
        mechanism, n_rows = self.mechanism_, rows.shape[0]
        if out is None:
            out = self._empty_release(n_rows, rows.dtype)
        if noisy and is_charged(self, ids):
            out[...] = release_charged(self, rows, ids)
            return out
        tasks = mechanism.tasks(n_rows)
        n_before = 0
        if keyed is None:
            noise = noise_from(self.seed) if noisy else None
        else:
            rows, noise, n_before = keyed.key.bind(mechanism, rows, keyed.ids)

        def release(rows, stream, out):
            return (mechanism.encode(rows, out) if stream is None else mechanism.release(rows, stream, out)).n_moved

        if len(tasks) <= 1:
            # A slice of a sparse matrix is a copy.
            n_moved = release(rows, noise, out)
        else:
            streams = [None] * len(tasks) if noise is None else noise.split(tasks)
            n_jobs = getattr(self, "n_jobs", None)
            n_moved = sum(
                in_threads(lambda task, stream: release(rows[task], stream, out[task]), tasks, streams, n_jobs=n_jobs)
            )
        if counts is None:
            warn_moved_rows(self, n_before + n_moved, rows, mechanism.domain)
        else:
            counts.append(n_before + n_moved)
        return out

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class TargetTransformer(LocalTransformer, auto_wrap_output_keys=None):
    """Base class of the transformers of y. Hooks are those of :class:`LocalTransformer`, given y instead of X."""

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, y: Any) -> Self:  # type: ignore[override]  # a transformer of y
        """Declare the mechanism and its guarantee.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            The private labels or targets, which are only checked if their classes or bounds are declared.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If a label is not one of the declared classes, or a target is not a finite number.
        """
        self._fit_rows(self._as_given(y))
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, y: Any, ids: Any = None) -> np.ndarray:  # type: ignore[override]  # a transformer of y
        """Fit, then release every label or target with noise.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            The private labels or targets.
        ids : array-like of int or str, shape (n_samples,), default=None
            Distinct ids of the people, as in `transform`.

        Returns
        -------
        y_released : ndarray
            As by `transform`.
        """
        given = self._as_given(y)
        return self._encoded(self._release(self._fit_rows(given), ids=ids), given)

    def transform(self, y: Any, ids: Any = None) -> np.ndarray:
        """Release every label or target.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            The private labels or targets.
        ids : array-like of int or str, shape (n_samples,), default=None
            Distinct ids of the people; required with a `ledger`, refused without.

        Returns
        -------
        y_released : ndarray
            Labels of the same type, numbers of the shape of y, or the vectors that the mechanism releases.

        Raises
        ------
        ValueError
            If a label is not one of the classes; nothing is released then.
        BudgetExhaustedError
            If the ledger refuses a person. Then nothing is released or charged.
        """
        return self._release_into(y, None, ids)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64"]
        tags.input_tags.two_d_array = False
        return tags


def is_charged(estimator, ids):
    """Return whether a ledger charges a release; raise ValueError unless ids come with a ledger."""
    ledger = getattr(estimator, "ledger", None)
    if (ledger is None) != (ids is None):
        raise ValueError(
            "ledger and ids must be given together: a ledger charges people by their ids; "
            f"got {'no ledger' if ledger is None else 'no ids'}."
        )
    return ledger is not None


def release_charged(estimator, rows, ids):
    """Release validated rows under the estimator's ledger: all or none."""
    guarantee = estimator.privacy_guarantee_
    if guarantee.delta == 0 and not math.isfinite(guarantee.plain_epsilon):
        raise ValueError(f"ledger needs a release with a finite epsilon; got {guarantee}.")
    part = getattr(estimator, "_part", None)
    mechanism = estimator.mechanism_
    # A warning that is turned into an error must not come after the charge.
    warn_moved_rows(estimator, mechanism.encode(rows).n_moved, rows, mechanism.domain)
    return estimator.ledger.release(mechanism, rows, ids, part=part, all_or_none=True).rows


def check_bounds_of_type(bounds, dtype):
    """Raise ValueError for bounds beyond the range of the dtype of X, which would make NaN."""
    low, high = bounds
    if max(-np.min(low), np.max(high)) > np.finfo(dtype).max:
        raise ValueError(f"bounds must be within the range of the type of X, {dtype}; got larger ones.")


def warn_moved_rows(estimator, n_moved, rows, domain):
    """Warn of the number of values, or of rows, that were moved into a domain, with the names of their columns."""
    where = partial(_columns_outside, estimator, rows, domain)
    warn_out_of_domain(estimator, n_moved, names=where, **counted_in(estimator, rows, domain))


def counted_in(estimator, rows, domain):
    """Return what a domain counts, how many there are, and the parameter that moves fewer."""
    of_rows = isinstance(domain, Ball)
    names = ("norm", "radius") if of_rows else ("bounds", "schema")
    name = next((one for one in names if hasattr(estimator, one)), "vocabulary or max_nonzeros")
    how = f"Declare {'a ' * (name != 'bounds')}{'larger' if of_rows else 'wider'} {name}"
    total, what = (rows.shape[0], "rows") if of_rows else (math.prod(rows.shape), "values")
    return {"total": total, "how": how, "what": what}


def _columns_outside(estimator, rows, domain):
    """Return the number of values outside a domain that bounds each column, with its name; else nothing."""
    if not hasattr(estimator, "n_features_in_") or not isinstance(rows, np.ndarray):
        return []
    names = input_names(estimator)
    if not domain.is_by_column or len(names) != rows.shape[1]:
        return []
    outside = np.zeros(rows.shape[1], dtype=np.intp)
    for start in range(0, len(rows), _AT_ONCE):
        block = rows[start : start + _AT_ONCE]
        inside = domain.clip(block).rows
        # A missing value is not outside.
        outside += np.count_nonzero((inside != block) & (block == block), axis=0)
    return [f"{count:,} in {str(name)!r}" for name, count in zip(names, outside, strict=True) if count]


def warn_out_of_domain(estimator, moved, total, how, names=list, what="values"):
    """Warn of the number of values that were moved into the declared domain, if any; once of a search."""
    if moved:
        where = names()
        shown = ", ".join(where[:_MOST_NAMED]) + (", ..." if len(where) > _MOST_NAMED else "")
        warn(
            f"{moved:,} of {total:,} {what} ({moved / total:.1%}) lay outside the declared domain and were moved into "
            f"it{f' ({shown})' if shown else ''}. {how} if that is too many, from public knowledge, not from these "
            "data.",
            OutOfDomainWarning,
            once=vars(estimator).get("_family"),
        )


def warn_moved(estimator: BaseEstimator, X: Floats, y: Floats, box: Box) -> None:
    """Warn of values outside the declared bounds, by column; `y` has one column, none for classes."""
    ends = zip((*map(repr, input_names(estimator)), "the target"), (*X.T, *y.T), *box.ends, strict=False)
    outside = [(np.count_nonzero((one < low) | (one > high)), name) for name, one, low, high in ends]
    moved, of_x = sum(count for count, _ in outside), sum(count for count, _ in outside[: X.shape[1]])
    wider = " and ".join(name for name, n in (("bounds", of_x), ("target_bounds", moved - of_x)) if n)
    where = [f"{count:,} in {name}" for count, name in outside if count]
    warn_out_of_domain(estimator, moved, X.size + y.size, f"Declare wider {wider}", names=lambda: where)


def law_of_releases(
    given: Any, n_columns: int, name: str, *, or_target: bool = False
) -> tuple[RowMechanism, PrivacyGuarantee]:
    """Return the mechanism of released rows and its guarantee."""
    mechanism: Any = given
    guarantee: PrivacyGuarantee | None
    if isinstance(given, RowMechanism):
        guarantee = given.guarantee()
    else:
        transformer = given if is_fitted(given) else clone(given).fit(np.zeros((1, n_columns)))
        mechanism, guarantee = getattr(transformer, "mechanism_", None), own_guarantee(transformer)
    if not isinstance(mechanism, RowMechanism) or guarantee is None or isinstance(mechanism.domain, Codes):
        raise ValueError(
            f"{name} must be a RowMechanism that releases numbers without bias, or a transformer of skldp with such a "
            f"mechanism; got {type(given).__name__}."
        )
    if mechanism.n_outputs not in range(n_columns, n_columns + 1 + or_target):
        more = ", or one more with the target" if or_target else ""
        raise ValueError(
            f"{name} must release one number for each of {n_columns} columns{more}; got {mechanism.n_outputs}."
        )
    return mechanism, guarantee
