"""Releases of tables that do not fit into memory: memory maps in blocks, and dask collections."""

import math
import sys
import uuid
import warnings
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from skldp.accounting.ledger._records import canonical_ids
from skldp.domains._columns import Columns
from skldp.domains._domain import check_finite
from skldp.estimators._base import Keyed, LocalTransformer, in_threads, warn_out_of_domain
from skldp.estimators._labels import LabelReleaser
from skldp.exceptions import RepeatedReleaseWarning
from skldp.mechanisms._field_key import FieldKey

__all__ = ["release_blocks", "release_dask"]

# Bytes of a block: one a thread stays far below 64 MB.
_BLOCK_BYTES = 1 << 22
# Bytes from which on processes are worth their start.
_WORTH_PROCESSES = 1 << 28
# Bytes of a label's code, its answer and the released label, at least.
_LEAST_ROW_BYTES = 24
_MOST_TASKS = 1024
# Ids are Python objects of some tens of bytes.
_MOST_IDS = 1 << 16


def release_blocks(
    estimator: BaseEstimator,
    X: np.ndarray,
    out: np.ndarray,
    *,
    release_key: FieldKey | None = None,
    ids: Any = None,
) -> np.ndarray:
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
    release_key : FieldKey, default=None
        Makes the noise of a row a function of this secret, the law, the person and the value, so that a run can be
        repeated without a second release of unchanged rows. None draws anew.
    ids : array-like of int or str, shape (n_samples,), default=None
        Id of each row's person; required with a `release_key`, refused without.

    Returns
    -------
    out : the same array

    Raises
    ------
    ValueError
        If `out` has the wrong shape or a type that does not hold what is released, is read-only or overlaps X, if a
        value is not finite or not declared (all blocks are checked before the first is released), or if `seed` is an
        int: every block would get the same noise. With a `release_key`, if there is a seed or a ledger beside it, no
        noise to be drawn, or not one id for each row.
    TypeError
        If `estimator`, X, `out`, `release_key` or an id is of another kind.

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
    people = _check_key(estimator, release_key, ids)
    if people is not None:
        # numpy would turn a list of numbers and strings into strings.
        people = np.asarray(people, dtype=object if isinstance(people, list | tuple) else None)
        if people.shape != (len(X),):
            raise ValueError(f"ids must be one for each of {len(X)} rows. Got the shape {people.shape} instead.")
        # Check all ids before the first release.
        for start in range(0, len(X), _MOST_IDS):
            canonical_ids(people[start : start + _MOST_IDS])
    row_bytes = max(array.dtype.itemsize * math.prod(array.shape[1:]) for array in (X, out))
    n_rows = max(1, _BLOCK_BYTES // max(row_bytes, _LEAST_ROW_BYTES))
    n_jobs = getattr(estimator, "n_jobs", None)
    for start in range(0, len(X), n_rows):
        try:
            rows = estimator._rows(X[start : start + n_rows], reset=False)
            if isinstance(estimator.mechanism_.domain, Columns):
                # Numbers may be missing.
                estimator.mechanism_.domain.clip(rows)
            elif rows.dtype.kind == "f":
                check_finite(rows)
        except ValueError as error:
            error.add_note(
                f"This is about the block of X that begins at row {start}: positions are counted from there."
            )
            raise
    # A copy of a generator in another process would repeat its noise.
    secure = estimator.seed is None
    # A secret in memory must not reach another process.
    secure_elsewhere = secure and (release_key is None or release_key.key.travels)
    in_files = _is_file(X, "r", "r+", "w+") and _is_file(out, "r+", "w+")
    large = in_files and X.nbytes >= _WORTH_PROCESSES

    def part_of(task):
        return estimator, X[task], out[task], n_rows, release_key, None if people is None else people[task]

    if secure_elsewhere and large and not getattr(estimator.mechanism_, "runs_compiled", False):
        # Few long tasks: each makes the mechanism's tables again.
        tasks = _runs(len(X), n_rows, 4 * effective_n_jobs(n_jobs))
        counts = Parallel(n_jobs=n_jobs)(delayed(_release_into)(*part_of(task)) for task in tasks)
    else:
        counts = in_threads(
            lambda task: _release_into(*part_of(task)),
            _runs(len(X), n_rows, _MOST_TASKS),
            n_jobs=n_jobs if secure else 1,
        )
    warn_out_of_domain(sum(counts), X.size)
    return out


def release_dask(estimator: BaseEstimator, X: Any, *, release_key: FieldKey | None = None, ids: Any = None) -> Any:
    """Release a dask array, data frame or series, every block in a task of its own with noise of its own.

    Parameters
    ----------
    estimator : transformer of this package
        Fitted, for example on the first rows; only the shape (and the names of columns) count. Classes and categories
        are to be declared.
    X : dask.array.Array of shape (n_samples, n_features), dask.dataframe.DataFrame, or one column of labels
        The private rows. Columns are brought into one block.
    release_key : FieldKey, default=None
        Makes the noise of a row a function of this secret, the law, the person and the value, so that a repeated task
        or computation is no second release of unchanged rows.
    ids : dask array or series of int or str, shape (n_samples,), default=None
        Id of each row's person, partitioned as a data frame X; required with a `release_key`, refused without.

    Returns
    -------
    X_released : dask array, data frame or series
        Not yet computed. **Without a key, every computation of it is a new release**: two of them cost twice the
        budget, and so does a task that is executed again. Write it to storage once, and work with what was written.

    Raises
    ------
    ValueError
        If `seed` is not None: a seed or a generator would go to every task, and give every block the same
        noise. With a `release_key`, as :func:`release_blocks`, or if its secret is not where workers find it. In the
        computation, by the task of a block with NaN or infinity: other blocks may have been written by
        then, so look for them first, with ``dask.array.isfinite(X).all().compute()``; and by that of a worker who
        finds another secret, or none.
    TypeError
        If `estimator`, `X` or `release_key` is of another kind.
    ImportError
        If dask is not installed.

    Warns
    -----
    RepeatedReleaseWarning
        Without a key, where a client of a cluster is open: what a lost worker held is computed, and released, again.

    Notes
    -----
    A task draws its key from the operating system's secure source of the worker that executes it, or reads the secret
    of the `release_key` from where that says it is; neither is part of the task graph.

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
    _check_key(estimator, release_key, ids)
    if release_key is not None and not release_key.key.travels:
        raise ValueError(
            "The secret must be where every worker finds it: ReleaseKey.from_file, or a function that asks for it. "
            "Got one of bytes, which stays in this process."
        )
    try:
        import dask.array
    except ImportError as error:
        raise ImportError('release_dask needs dask. Install it with: pip install "skldp[dask]"') from error
    if release_key is None and getattr(estimator, "transform_noise", True):
        _warn_of_a_cluster()
    # A unique name: two calls are two releases, not one cached result.
    common = {"estimator": estimator, "key": release_key, "release": uuid.uuid4().hex}
    if isinstance(X, dask.array.Array):
        empty = _empty(estimator, X._meta)
        if X.ndim == 2:
            X = X.rechunk({1: -1})
        return dask.array.map_blocks(
            _release_array,
            X,
            *([] if ids is None else [_ids_beside(X, ids)]),
            **common,
            dtype=empty.dtype,
            chunks=(X.chunks[0], *((size,) for size in empty.shape[1:])),
            meta=empty,
        )
    if hasattr(X, "map_partitions"):
        people = [] if ids is None else [ids]
        return X.map_partitions(_release_frame, *people, **common, meta=_frame(estimator, X._meta))
    raise TypeError(f"X must be a dask array or a dask data frame. Got {type(X).__name__} instead.")


def _warn_of_a_cluster():
    """Warn where a worker may be lost: no setting of the scheduler forbids computing its results again."""
    try:
        # A client exists only if distributed is imported.
        sys.modules["distributed"].default_client()
    except (KeyError, ValueError):
        return
    warnings.warn(
        "A cluster computes again what a lost worker held, and that is a second release of these rows, at their whole "
        "epsilon again. Give a release_key and ids, with which it is the same release.",
        RepeatedReleaseWarning,
        stacklevel=2,
    )


def _ids_beside(X, ids):
    """Return ids in blocks beside those of X."""
    if not hasattr(ids, "rechunk") or ids.ndim != 1:
        raise TypeError(f"The ids of a dask array must be one of one dimension. Got {type(ids).__name__} instead.")
    if math.isfinite(sum(X.chunks[0]) + sum(ids.chunks[0])):
        if ids.shape[0] != X.shape[0]:
            raise ValueError(f"ids must be one for each of {X.shape[0]} rows. Got {ids.shape[0]} instead.")
        ids = ids.rechunk((X.chunks[0],))
    return ids if X.ndim == 1 else ids[:, None]


def _check_estimator(estimator):
    if not isinstance(estimator, LocalTransformer | LabelReleaser):
        raise TypeError(f"estimator must be a transformer of this package. Got {type(estimator).__name__} instead.")
    check_is_fitted(estimator)
    estimator._check_unchanged()


def _check_key(estimator, release_key, ids):
    """Return ids; raise ValueError for a key without ids, or beside a seed or a ledger."""
    if (release_key is None) != (ids is None):
        raise ValueError(
            "A release_key makes the noise of each person's row, whom ids name: both are needed, or neither. "
            f"Got {'no release_key' if release_key is None else 'no ids'}."
        )
    if release_key is None:
        return None
    if not isinstance(release_key, FieldKey):
        raise TypeError(f"release_key must be a FieldKey. Got {type(release_key).__name__} instead.")
    if estimator.seed is not None or not getattr(estimator, "transform_noise", True):
        raise ValueError("With a release_key, noise must be drawn, and by no seed. Got seed or transform_noise=False.")
    if getattr(estimator, "ledger", None) is not None:
        raise ValueError("A ledger charges every release, and a repeated one is none: with a release_key, ledger=None.")
    return ids


def _check_out(estimator, X, out):
    """Raise unless blocks can be written to `out`, each with noise of its own."""
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
    shape = (X.shape[0], *_empty(estimator, X[:0]).shape[1:])
    if out.shape != shape:
        raise ValueError(f"out must have the shape {shape}. Got {out.shape} instead.")
    if not estimator._can_be_written_to(out.dtype):
        raise ValueError(f"out must be of a type that holds what is released. Got {out.dtype.type.__name__} instead.")
    if np.may_share_memory(X, out):
        raise ValueError("out must not overlap X. Got overlapping arrays instead.")


def _runs(n_total, n_rows, n_tasks):
    """Return at most `n_tasks` slices of entire blocks of `n_rows` rows."""
    rows_each = n_rows * -(-n_total // (n_rows * n_tasks))
    return [slice(start, start + rows_each) for start in range(0, n_total, rows_each or 1)]


def _is_file(array, *modes):
    """Return whether other processes can open the memory map and see the same numbers."""
    return isinstance(array, np.memmap) and array.filename is not None and array.mode in modes


def _release_into(estimator, X, out, n_rows, key, ids):
    counts: list[int] = []
    for start in range(0, len(X), n_rows):
        part = slice(start, start + n_rows)
        keyed = None if key is None else Keyed(key, canonical_ids(ids[part]))
        estimator._release_into(X[part], np.asarray(out[part]), keyed=keyed, counts=counts)
    return sum(counts)


def _release_array(X, ids=None, *, estimator, key, release):  # noqa: ARG001 -- dask names the task after it
    # Workers pass empty blocks after a selection, which scikit-learn refuses.
    if not len(X):
        return _empty(estimator, X)
    return _transformed(estimator, np.asarray(X), key, ids if ids is None else np.asarray(ids).reshape(-1))


def _release_frame(X, ids=None, *, estimator, key, release):  # noqa: ARG001 -- dask names the task after it
    return _frame(estimator, X) if not len(X) else _frame(estimator, X, _transformed(estimator, X, key, ids))


def _empty(estimator, X):
    """Return the release of no rows, in the dtype and kind of container of X."""
    empty = estimator._encoded(estimator._empty_release(0, np.asarray(X).dtype), X)
    if sparse.issparse(empty):
        raise ValueError("Where blocks are released, sparse_output must be False. Got True instead.")
    return empty


def _transformed(estimator, X, key, ids):
    if key is None:
        return estimator.transform(X)
    return estimator._release_into(X, None, keyed=Keyed(key, canonical_ids(ids)))


def _frame(estimator, X, released=None):
    """Return released rows as a data frame or series like X."""
    if released is None:
        released = _empty(estimator, X[:0])
    if not isinstance(released, np.ndarray):
        return released
    index = X.index[: len(released)]
    if released.ndim == 1:
        return type(X)(released, index=index, name=X.name)
    return type(X)(released, index=index, columns=estimator.get_feature_names_out())
