"""Release tables that do not fit into memory: block by block from a memory map, or by the workers of dask."""

import math
import uuid
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from skldp.estimators._base import ReleasesRows, counted_out_of_domain, in_threads, warn_out_of_domain
from skldp.mechanisms._domain import check_finite

__all__ = ["release_blocks", "release_dask"]

# What one block takes in and gives out, in bytes: several of them, one a thread, stay far below 64 MB.
_BLOCK_BYTES = 1 << 22
# From this size on, processes gain more than their start costs.
_WORTH_PROCESSES = 1 << 28
# What codes, their answers and the labels that these stand for take, however small a label is.
_LEAST_ROW_BYTES = 24
# Enough for any number of threads, and few enough to keep in a list.
_MOST_TASKS = 1024


def release_blocks(estimator: BaseEstimator, X: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Release every row of X into `out`, a block of rows at a time; both may be memory maps of any length.

    Parameters
    ----------
    estimator : transformer of this package
        Fitted; ``estimator.fit(X[:1])`` is enough, because only the shape counts, with declared classes or categories
        for labels and columns of categories. Its `n_jobs` threads work; where X and `out` are memory maps of 256 MiB
        or more and the steps are not compiled, as many processes, which do not wait for each other.
    X : ndarray or memory map of shape (n_samples, n_features), or (n_samples,) for labels
        The private rows.
    out : ndarray or memory map of shape (n_samples, n_features_out), or (n_samples,) for labels
        Overwritten. Of a type that holds what is released. Must not overlap X.

    Returns
    -------
    out : the same array

    Raises
    ------
    ValueError
        If `out` has the wrong shape or a type that does not hold what is released, is read-only or overlaps X, if a
        value is not finite or not declared (all blocks are checked before the first is released), or if `seed` is an
        int: every block would get the same noise.
    TypeError
        If `estimator`, X or `out` is of another kind.

    Warns
    -----
    OutOfDomainWarning
        Once, with the number of values in the whole table that were moved into the declared domain.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import BitRandTransformer, release_blocks
    >>> X = np.linspace(-1, 1, 3000, dtype=np.float32).reshape(1000, 3)
    >>> released = np.empty_like(X)
    >>> estimator = BitRandTransformer(epsilon=3.0, calibration="exact").fit(X[:1])
    >>> release_blocks(estimator, X, released) is released
    True
    """
    _check_estimator(estimator)
    _check_out(estimator, X, out)
    row_bytes = max(array.dtype.itemsize * math.prod(array.shape[1:]) for array in (X, out))
    n_rows = max(1, _BLOCK_BYTES // max(row_bytes, _LEAST_ROW_BYTES))
    n_jobs = getattr(estimator, "n_jobs", None)
    for start in range(0, len(X), n_rows):
        try:
            rows = estimator._rows(X[start : start + n_rows], reset=False)
            if rows.dtype.kind == "f":
                check_finite(rows)
        except ValueError as error:
            error.add_note(
                f"This is about the block of X that begins at row {start}: positions are counted from there."
            )
            raise
    # A generator is advanced block by block, in their order; a copy in another process would repeat its noise.
    secure = estimator.seed is None
    in_files = _is_file(X, "r", "r+", "w+") and _is_file(out, "r+", "w+")
    large = in_files and X.nbytes >= _WORTH_PROCESSES
    if secure and large and not getattr(estimator.mechanism_, "runs_compiled", False):
        # Few long tasks: a worker makes the mechanism's tables anew for each.
        tasks = _runs(len(X), n_rows, 4 * effective_n_jobs(n_jobs))
        counts = Parallel(n_jobs=n_jobs)(
            delayed(_release_into)(estimator, X[task], out[task], n_rows) for task in tasks
        )
    else:
        counts = in_threads(
            lambda task: _release_into(estimator, X[task], out[task], n_rows),
            _runs(len(X), n_rows, _MOST_TASKS),
            n_jobs=n_jobs if secure else 1,
        )
    warn_out_of_domain(sum(counts), X.size)
    return out


def release_dask(estimator: BaseEstimator, X: Any) -> Any:
    """Release a dask array, data frame or series, every block in a task of its own with noise of its own.

    Parameters
    ----------
    estimator : transformer of this package
        Fitted, for example on the first rows; only the shape (and the names of columns) count. Classes and categories
        are to be declared.
    X : dask.array.Array of shape (n_samples, n_features), dask.dataframe.DataFrame, or one column of labels
        The private rows. Columns are brought into one block.

    Returns
    -------
    X_released : dask array, data frame or series
        Not yet computed. **Every computation of it is a new release**: two of them cost twice the budget, and so does
        a task that is executed again. Write it to storage once, and work with what was written.

    Raises
    ------
    ValueError
        If `seed` is not None: a seed or a generator would go to every task, and give every block the same
        noise. In the computation, by the task of a block with NaN or infinity: other blocks may have been written by
        then, so look for them first, with ``dask.array.isfinite(X).all().compute()``.
    TypeError
        If `estimator` or `X` is of another kind.
    ImportError
        If dask is not installed.

    Notes
    -----
    A task draws its key from the operating system's secure source of the worker that executes it; no key is part of
    the task graph.

    Examples
    --------
    >>> from skldp import BitRandTransformer, release_dask
    >>> estimator = BitRandTransformer(epsilon=3.0, calibration="exact")
    >>> def release(table):  # a dask array, read from anywhere
    ...     return release_dask(estimator.fit(table[:1].compute()), table).to_zarr("released.zarr")
    """
    _check_estimator(estimator)
    if getattr(estimator, "transform_noise", True) and estimator.seed is not None:
        raise ValueError(
            "seed must be None, because it would go to every task and every block would get the same noise: "
            f"two blocks would subtract to the secret. Got {estimator.seed!r} instead."
        )
    try:
        import dask.array
    except ImportError as error:
        raise ImportError('release_dask needs dask. Install it with: pip install "skldp[dask]"') from error
    # A name of its own, so that two calls are two releases and not one result under one name.
    release = uuid.uuid4().hex
    if isinstance(X, dask.array.Array):
        empty = estimator._empty_release(0, X.dtype)
        if X.ndim == 2:
            X = X.rechunk({1: -1})
        return X.map_blocks(
            _release_array,
            estimator=estimator,
            release=release,
            dtype=empty.dtype,
            chunks=(X.chunks[0], *((size,) for size in empty.shape[1:])),
            meta=empty,
        )
    if hasattr(X, "map_partitions"):
        return X.map_partitions(_release_frame, estimator=estimator, release=release, meta=_frame(estimator, X._meta))
    raise TypeError(f"X must be a dask array or a dask data frame. Got {type(X).__name__} instead.")


def _check_estimator(estimator):
    if not isinstance(estimator, ReleasesRows):
        raise TypeError(f"estimator must be a transformer of this package. Got {type(estimator).__name__} instead.")
    check_is_fitted(estimator)
    estimator._check_unchanged()


def _check_out(estimator, X, out):
    """Refuse what blocks cannot be written to, and a seed, with which their noise would be one."""
    if not isinstance(getattr(X, "dtype", None), np.dtype):
        raise TypeError(f"X must be a numpy array or a memory map. Got {type(X).__name__} instead.")
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out must be a numpy array or a memory map. Got {type(out).__name__} instead.")
    if not out.flags.writeable:
        raise ValueError("out must be writeable. Got a read-only array instead.")
    noisy = getattr(estimator, "transform_noise", True)
    if noisy and estimator.seed is not None and not hasattr(estimator.seed, "bytes"):
        raise ValueError(
            "seed must be None or a generator, because with an int every block would get the same noise, and "
            f"two blocks would subtract to the secret. Got {estimator.seed!r} instead."
        )
    shape = (X.shape[0], *estimator._empty_release(0, X.dtype).shape[1:])
    if out.shape != shape:
        raise ValueError(f"out must have the shape {shape}. Got {out.shape} instead.")
    if not estimator._can_be_written_to(out.dtype):
        raise ValueError(f"out must be of a type that holds what is released. Got {out.dtype.type.__name__} instead.")
    if np.may_share_memory(X, out):
        raise ValueError("out must not overlap X. Got overlapping arrays instead.")


def _runs(n_total, n_rows, n_tasks):
    """At most `n_tasks` slices of whole blocks of `n_rows` rows."""
    rows_each = n_rows * -(-n_total // (n_rows * n_tasks))
    return [slice(start, start + rows_each) for start in range(0, n_total, rows_each or 1)]


def _is_file(array, *modes):
    """Whether other processes can open the memory map, and see the same numbers."""
    return isinstance(array, np.memmap) and array.filename is not None and array.mode in modes


def _release_into(estimator, X, out, n_rows):
    with counted_out_of_domain() as counts:
        for start in range(0, len(X), n_rows):
            estimator._release_into(X[start : start + n_rows], np.asarray(out[start : start + n_rows]))
    return sum(counts)


def _release_array(X, estimator, release):  # noqa: ARG001 -- dask names the task after it
    # Workers hand over empty blocks after a selection, which scikit-learn refuses.
    if not len(X):
        return estimator._empty_release(0, X.dtype)
    return estimator.transform(np.asarray(X))


def _release_frame(X, estimator, release):  # noqa: ARG001 -- dask names the task after it
    return _frame(estimator, X) if not len(X) else _frame(estimator, X, estimator.transform(X))


def _frame(estimator, X, released=None):
    """A data frame or series like X of what was released; an empty one if there is nothing."""
    if released is None:
        released = estimator._empty_release(0, np.asarray(X[:0]).dtype)
    if not isinstance(released, np.ndarray):
        return released
    index = X.index[: len(released)]
    if released.ndim == 1:
        return type(X)(released, index=index, name=X.name)
    return type(X)(released, index=index, columns=estimator.get_feature_names_out())
