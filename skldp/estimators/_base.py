"""The base of the transformers of X: validate, move into the declared domain, release block by block."""

import math
import warnings
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, Self

import numpy as np
from joblib.parallel import get_active_backend
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from skldp.estimators._guarantee_mixin import GuaranteeMixin, attach_guarantee
from skldp.estimators._validation import (
    BOUNDS_BY_COLUMN,
    EPSILON,
    FLOATS,
    NOISE_PARAMETERS,
    check_bounds_by_column,
    check_epsilon,
    fit_context,
    input_names,
    validate_finite,
)
from skldp.exceptions import OutOfDomainWarning
from skldp.mechanisms._columns import Columns
from skldp.mechanisms._domain import Box
from skldp.mechanisms._field_key import FieldKey
from skldp.mechanisms._noise import noise_from

__all__ = [
    "BoundedTransformer",
    "Keyed",
    "LocalTransformer",
    "ReleasesRows",
    "check_bounds_of_type",
    "counted_out_of_domain",
    "in_threads",
    "outside_by_name",
    "warn_out_of_domain",
]


def in_threads(function, *arguments, n_jobs):
    """List what a function returns for each of its arguments, as ``map`` does.

    Parameters
    ----------
    function : callable
    *arguments : sequences of equal length
    n_jobs : int or None
        As joblib counts threads, :func:`joblib.parallel_config` and calls within its workers included.

    Returns
    -------
    list

    Examples
    --------
    >>> from skldp.estimators._base import in_threads
    >>> in_threads(pow, [2, 3, 4], [5, 2, 3], n_jobs=2)
    [32, 9, 64]
    """
    if len(arguments[0]) <= 1:
        return list(map(function, *arguments))
    backend, configured = get_active_backend(require="sharedmem")
    n_threads = backend.effective_n_jobs(configured if n_jobs is None else n_jobs)
    if n_threads == 1:
        return list(map(function, *arguments))
    # joblib's own threads take 12 ms to start, in which millions of numbers are released.
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(function, *arguments))


_AT_ONCE, _MOST_NAMED = 65_536, 4
# Where a caller releases in blocks, it warns once, of all of them.
_COUNTS: ContextVar[list | None] = ContextVar("counts", default=None)


class Keyed(NamedTuple):
    """A release that can be repeated: the secret for its field, and whose row each is."""

    key: FieldKey
    ids: Any


class ReleasesRows(GuaranteeMixin, ABC):
    """Mix-in of the estimators that release rows through a mechanism, which ``mechanism_`` is after fit.

    They have a parameter `seed`, may have `n_jobs` and `transform_noise`, and the hook
    ``_rows(X, reset)``, which checks input and gives the rows that the mechanism takes.
    """

    mechanism_: Any
    seed: Any
    ledger: Any
    # What of the record a ledger is to count by what was released of it; None counts in full.
    _part: Any = None

    @abstractmethod
    def _rows(self, X, *, reset):
        """Check X, and give the rows that the mechanism takes; with `reset`, as in fit."""

    def _empty_release(self, n_rows, dtype):
        """An array for what is released of as many rows of a type, of whatever content."""
        mechanism = self.mechanism_
        taken = np.dtype(dtype if dtype in FLOATS else np.float64)
        return np.empty((n_rows, mechanism.n_outputs), dtype=mechanism.output_dtype(taken))

    def _can_be_written_to(self, dtype):
        """Whether numbers of a type can hold what is released, but for rounding."""
        return np.can_cast(self.mechanism_.output_dtype(np.dtype(np.float64)), dtype, "same_kind")

    def _release_into(self, X, out, ids=None, keyed=None):
        """Release what :meth:`transform` would, into `out`; with a :class:`Keyed`, what it gives to these people."""
        check_is_fitted(self)
        self._check_unchanged()
        noisy = getattr(self, "transform_noise", True)
        return self._release(self._rows(X, reset=False), out, noisy=noisy, ids=ids, keyed=keyed)

    def _encoded(self, released, X, *, noisy=True):
        """What :meth:`transform` makes of released rows: here the rows themselves."""
        return released

    def _release(self, rows, out=None, *, noisy=True, ids=None, keyed=None):
        """Release rows that were checked, with noise or without it, task by task in threads."""
        mechanism, n_rows = self.mechanism_, rows.shape[0]
        if out is None:
            out = self._empty_release(n_rows, rows.dtype)
        if noisy and self._is_charged(ids):
            out[...] = self._charged(rows, ids)
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
            # Also because a slice of a sparse matrix is a copy.
            n_moved = release(rows, noise, out)
        else:
            streams = [None] * len(tasks) if noise is None else noise.split(tasks)
            n_jobs = getattr(self, "n_jobs", None)
            n_moved = sum(
                in_threads(lambda task, stream: release(rows[task], stream, out[task]), tasks, streams, n_jobs=n_jobs)
            )
        warn_out_of_domain(n_before + n_moved, math.prod(rows.shape), names=lambda: self._columns_outside(rows))
        return out

    def _is_charged(self, ids):
        """Whether a release is a ledger's, to which ids belong."""
        ledger = getattr(self, "ledger", None)
        if (ledger is None) != (ids is None):
            raise ValueError(
                "A ledger charges people by their ids, and ids are for a ledger: both are needed, or neither. "
                f"Got {'no ledger' if ledger is None else 'no ids'}."
            )
        return ledger is not None

    def _charged(self, rows, ids):
        """Release rows that were checked under the ledger, or nothing at all."""
        guarantee = self.privacy_guarantee_
        if guarantee.delta == 0 and not math.isfinite(guarantee.plain_epsilon):
            raise ValueError(f"A ledger charges a finite epsilon. Got {guarantee} instead.")
        released = self.ledger.release(self.mechanism_, rows, ids, part=self._part, all_or_none=True)
        warn_out_of_domain(released.n_moved, math.prod(rows.shape), names=lambda: self._columns_outside(rows))
        return released.rows

    def _columns_outside(self, rows):
        """The names of the columns in which something lies outside their bounds, where columns have bounds."""
        own = hasattr(self, "n_features_in_") and isinstance(rows, np.ndarray)
        return outside_by_name(rows, self.mechanism_.domain, input_names(self)) if own else []


class LocalTransformer(ReleasesRows, TransformerMixin, BaseEstimator):
    """Base of the transformers that release every row of X through a local mechanism.

    A subclass defines ``__init__`` with the parameters `epsilon`, `transform_noise`, `seed` and `n_jobs` beside its
    own, and one hook, ``_make_mechanism(X)``, which may use only the shape and the dtype of X and gives a
    :class:`~skldp.mechanisms.RowMechanism`.
    """

    _parameter_constraints: dict = {
        "epsilon": EPSILON,
        "transform_noise": ["boolean"],
        **NOISE_PARAMETERS,
    }

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Declare the mechanism and its guarantee from the parameters and the shape of X alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Only its shape, dtype and feature names are used.
        y : None
            Ignored.

        Returns
        -------
        self : object
        """
        self._forget_guarantee()
        self._declare(validate_finite(self, X, reset=True, **self._input))
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, then release every row of X with noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The private rows.
        y : None
            Ignored.

        Returns
        -------
        X_released : ndarray of shape (n_samples, n_features_out)
        """
        return self._release(self._fit_rows(X))

    def transform(self, X: Any) -> Any:
        """Release every row of X: with noise, or with ``transform_noise=False`` in the same encoding without it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The private rows.

        Returns
        -------
        X_released : ndarray of shape (n_samples, n_features_out)
        """
        return self._release_into(X, None)

    def _fit_rows(self, X):
        """Declare the mechanism, and give the rows that it takes."""
        self._forget_guarantee()
        rows = self._rows(X, reset=True)
        self._declare(rows)
        return rows

    # What else validation is told of X.
    _input: dict = {}

    def _rows(self, X, *, reset):
        # The mechanism refuses NaN and infinity when it looks at the numbers, in the thread that releases them.
        return validate_data(self, X, reset=reset, **({"dtype": FLOATS, "ensure_all_finite": False} | self._input))

    def _declare(self, X):
        check_epsilon(self.epsilon)
        self.mechanism_ = self._make_mechanism(X)
        attach_guarantee(self, self.mechanism_.guarantee())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.seed is None
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class BoundedTransformer(LocalTransformer):
    """Base of the transformers whose features lie within declared `bounds`; what lies outside is clipped."""

    _parameter_constraints: dict = {**LocalTransformer._parameter_constraints, "bounds": BOUNDS_BY_COLUMN}

    def _declare(self, X):
        self.bounds_ = check_bounds_by_column(self.bounds, self)
        super()._declare(X)

    def _release(self, rows, out=None, *, noisy=True, ids=None, keyed=None):
        check_bounds_of_type(self.bounds_, rows.dtype)
        return super()._release(rows, out, noisy=noisy, ids=ids, keyed=keyed)


def check_bounds_of_type(bounds, dtype):
    """Refuse, by the type of X alone and before a value is looked at, bounds of which NaN could come."""
    if np.abs(bounds).max() > np.finfo(dtype).max:
        raise ValueError(f"bounds must be numbers of the type of X, {dtype}. Got larger ones instead.")


@contextmanager
def counted_out_of_domain():
    """Collect in a list, within this thread, the counts that :func:`warn_out_of_domain` would warn of."""
    counts: list = []
    token = _COUNTS.set(counts)
    try:
        yield counts
    finally:
        _COUNTS.reset(token)


def outside_by_name(rows, domain, names):
    """Those of the columns' names in which values lie outside a domain that bounds each on its own; else none."""
    if not isinstance(domain, Box | Columns) or len(names) != rows.shape[1]:
        return []
    outside = np.zeros(rows.shape[1], dtype=bool)
    for start in range(0, len(rows), _AT_ONCE):
        block = rows[start : start + _AT_ONCE]
        inside = domain.clip(block).rows
        # What is missing is no number, and nowhere outside.
        outside |= ((inside != block) & (block == block)).any(axis=0)
    return [str(name) for name, one in zip(names, outside, strict=True) if one]


def warn_out_of_domain(moved, total, how="Declare a wider one", names=list):
    """Count, in an OutOfDomainWarning, the values that were moved into the declared domain; none, no warning.

    Parameters
    ----------
    moved, total : int
    how : str, default="Declare a wider one"
        What is to be done.
    names : callable, default=list
        Gives the columns that they lay in, of which some are named; asked only if there is a warning.
    """
    counts = _COUNTS.get()
    if counts is not None:
        counts.append(moved)
    elif moved:
        where = [repr(name) for name in names()]
        shown = ", ".join(where[:_MOST_NAMED]) + (", ..." if len(where) > _MOST_NAMED else "")
        warnings.warn(
            f"{moved:,} of {total:,} values ({moved / total:.1%}) lay outside the declared domain and were moved into "
            f"it{f' (in {shown})' if shown else ''}. {how} if that is too many, from public knowledge and not from "
            "these data.",
            OutOfDomainWarning,
            stacklevel=3,
        )
