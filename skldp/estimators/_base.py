"""The base of the transformers of X: validate, move into the declared domain, release block by block."""

import math
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

import numpy as np
from joblib.parallel import get_active_backend
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skldp.estimators._guarantee_mixin import GuaranteeMixin
from skldp.estimators._validation import (
    BOUNDS,
    EPSILON,
    FLOATS,
    NOISE_PARAMETERS,
    check_bounds,
    check_epsilon,
    check_finite,
    fit_context,
    validate,
    validate_finite,
)
from skldp.exceptions import OutOfDomainWarning, PrivacyGuaranteeWarning, warn_user
from skldp.mechanisms._bits.rows import RowRelease
from skldp.mechanisms._domain import into_bounds
from skldp.mechanisms._noise import noise_from

__all__ = [
    "BoundedTransformer",
    "LocalTransformer",
    "attach_guarantee",
    "counted_out_of_domain",
    "in_threads",
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
    n_threads = min(backend.effective_n_jobs(configured if n_jobs is None else n_jobs), len(arguments[0]))
    if n_threads == 1:
        return list(map(function, *arguments))
    # joblib's own threads take 12 ms to start, in which millions of numbers are released.
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(function, *arguments))


# Numbers in one block: what a mechanism works on at a time, small enough for its buffers to stay in the cache.
_BLOCK = 32_768
# Blocks that share one stream of noise. Fixed, so that a seeded result does not depend on the number of threads.
_BLOCKS_PER_STREAM = 64
# Where a caller releases in blocks, it warns once, of all of them.
_COUNTS: ContextVar[list | None] = ContextVar("counts", default=None)


def attach_guarantee(estimator, guarantee, learnt=""):
    """Set ``privacy_guarantee_``, and warn where it is weaker than the epsilon that was asked for.

    Parameters
    ----------
    estimator : estimator with a `seed`
    guarantee : PrivacyGuarantee
    learnt : str, default=""
        What of the domain was learnt from private data, such as "the classes": then there is no guarantee.

    Warns
    -----
    PrivacyGuaranteeWarning
        With both figures, if the exact epsilon is larger than the stated one.
    """
    basis = guarantee.basis
    if learnt:
        basis = f"infinite: {learnt} were learnt from private data, which no epsilon covers"
        guarantee = replace(guarantee, epsilon=math.inf, per_feature=None, figures=())
    if not getattr(estimator, "transform_noise", True):
        basis += "; of fit_transform alone: with transform_noise=False, transform does not protect what it is given"
    estimator.privacy_guarantee_ = replace(guarantee, basis=basis, seeded=estimator.seed is not None)
    stated = guarantee.stated
    if not learnt and stated is not None and guarantee.epsilon > stated * (1 + 1e-9):
        alone = "" if guarantee.per_feature is None else f" ({guarantee.per_feature:.4g} for one feature alone)"
        warn_user(
            f"{type(estimator).__name__} states epsilon {stated:.4g}, as published, but the exact worst-case loss "
            f"of what it releases is {guarantee.epsilon:.4g} per {guarantee.unit}{alone}. "
            "calibration='exact' gives the epsilon that it states.",
            PrivacyGuaranteeWarning,
        )


class LocalTransformer(GuaranteeMixin, TransformerMixin, BaseEstimator):
    """Base of the transformers that release every row through a local mechanism.

    A subclass defines ``__init__`` with the parameters `epsilon`, `transform_noise`, `seed` and `n_jobs`
    beside its own, and one hook, ``_make_mechanism(X)``, which may use only the shape and the dtype of X. Its
    mechanism offers ``sample(values, noise, out=None)``, ``encode(values, out=None)``, ``guarantee()`` and
    ``n_outputs``; it is handed one block of rows at a time, which it must not write to. One with ``make_buffers`` is
    handed its working arrays with every block. A :class:`~skldp.mechanisms._bits.rows.RowRelease` is handed all
    rows, and walks over them itself.
    """

    _parameter_constraints: dict = {
        "epsilon": EPSILON,
        "transform_noise": ["boolean"],
        **NOISE_PARAMETERS,
    }

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
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
        self._declare(self._validate(X, reset=True))
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X, y=None):
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
        self._forget_guarantee()
        X = self._validate_to_release(X, reset=True)
        self._declare(X)
        return self._release(X, noise_from(self.seed))

    def transform(self, X):
        """Release every row of X: with noise, or with ``transform_noise=False`` in the same encoding without it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The private rows.

        Returns
        -------
        X_released : ndarray of shape (n_samples, n_features_out)
        """
        return self._transform(X)

    def _transform(self, X, out=None):
        """Release the rows of X, into `out` if there is one."""
        check_is_fitted(self)
        self._check_unchanged()
        X = self._validate_to_release(X, reset=False)
        noise = noise_from(self.seed) if self.transform_noise else None
        if out is None or (out.dtype == X.dtype and out.flags.c_contiguous):
            return self._release(X, noise, out)
        out[...] = self._release(X, noise)
        return out

    def _validate(self, X, *, reset):
        return validate_finite(self, X, reset=reset)

    def _validate_to_release(self, X, *, reset):
        """The same, but that ``_release`` may be what refuses NaN and infinity."""
        return self._validate(X, reset=reset)

    def _declare(self, X):
        check_epsilon(self.epsilon)
        self.mechanism_ = self._make_mechanism(X)
        attach_guarantee(self, self.mechanism_.guarantee())

    def _into_domain(self, block):
        """The block within the declared domain, itself if nothing is to be moved, and how many values were moved."""
        return block, 0

    def _release(self, X, noise, released=None):
        n_rows = X.shape[0]
        n_outputs = self.mechanism_.n_outputs
        if released is None:
            released = np.empty((n_rows, n_outputs), dtype=X.dtype)
        at_once = getattr(self.mechanism_, "blocks_at_once", 1)
        block_rows = max(1, at_once * _BLOCK // max(X.shape[1], n_outputs))
        task_rows = block_rows * max(1, _BLOCKS_PER_STREAM // at_once)
        starts = range(0, n_rows, task_rows)
        streams = [None] * len(starts) if noise is None else noise.spawn(len(starts))
        parts = [slice(start, min(start + task_rows, n_rows)) for start in starts]
        moved = in_threads(
            lambda part, stream: self._release_silently(X[part], released[part], stream, block_rows),
            parts,
            streams,
            n_jobs=self.n_jobs,
        )
        warn_out_of_domain(sum(moved), n_rows * X.shape[1])
        return released

    def _release_silently(self, *arguments):
        # What numpy would warn of, such as a sum that overflows, is a fact about values. Set in each thread anew.
        with np.errstate(all="ignore"):
            return self._release_part(*arguments)

    def _release_part(self, X, released, noise, block_rows):
        mechanism = self.mechanism_
        if isinstance(mechanism, RowRelease) and noise is not None:
            return mechanism.sample_into(X, noise, released)
        moved = 0
        shared = {"buffers": mechanism.make_buffers()} if hasattr(mechanism, "make_buffers") else {}
        for start in range(0, X.shape[0], block_rows):
            rows = slice(start, start + block_rows)
            block, outside = self._into_domain(X[rows])
            moved += outside
            if noise is None:
                mechanism.encode(block, out=released[rows])
                continue
            mechanism.sample(block, noise, out=released[rows], **shared)
        return moved

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.seed is None
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class BoundedTransformer(LocalTransformer):
    """Base of the transformers whose features lie within declared `bounds`; what lies outside is clipped."""

    _parameter_constraints: dict = {**LocalTransformer._parameter_constraints, "bounds": BOUNDS}

    def _declare(self, X):
        self.bounds_ = check_bounds(self.bounds, X.shape[1])
        super()._declare(X)

    def _validate_to_release(self, X, *, reset):
        # What moves values into the bounds looks at each of them anyway, in the thread that releases it.
        return validate(self, X, reset=reset, dtype=FLOATS, ensure_all_finite=False)

    def _release(self, X, noise, released=None):
        # By the type of X alone, before a value is looked at: NaN could come of infinite bounds.
        if max(np.abs(end).max() for end in self.bounds_) > np.finfo(X.dtype).max:
            raise ValueError(f"bounds must be numbers of the type of X, {X.dtype}. Got {self.bounds!r} instead.")
        try:
            return super()._release(X, noise, released)
        except ValueError:
            # Where X is not finite, say so as scikit-learn does.
            check_finite(self, X)
            raise

    def _into_domain(self, block):
        inside = into_bounds(block, *self.bounds_)
        return inside.rows, inside.n_moved


@contextmanager
def counted_out_of_domain():
    """Collect in a list, within this thread, the counts that :func:`warn_out_of_domain` would warn of."""
    counts: list = []
    token = _COUNTS.set(counts)
    try:
        yield counts
    finally:
        _COUNTS.reset(token)


def warn_out_of_domain(moved, total):
    """Count, in an OutOfDomainWarning, the values that were moved into the declared domain; none, no warning."""
    counts = _COUNTS.get()
    if counts is not None:
        counts.append(moved)
    elif moved:
        warn_user(
            f"{moved:,} of {total:,} values ({moved / total:.1%}) lay outside the declared domain and were moved into "
            "it. Declare a wider one if that is too many, from public knowledge and not from these data.",
            OutOfDomainWarning,
        )
