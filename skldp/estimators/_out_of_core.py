"""Releases of tables that do not fit in memory: memory maps in blocks, and dask collections."""

import math
import sys
import uuid
from copy import copy
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from skldp.domains._columns import Columns
from skldp.domains._domain import check_finite_rows
from skldp.estimators._base import Keyed, LocalTransformer, counted_in, in_threads, warn_out_of_domain
from skldp.estimators._validation import warn
from skldp.exceptions import RepeatedReleaseWarning
from skldp.laws._person_ids import canonical_ids
from skldp.mechanisms._field_key import FieldKey

# Bytes of a block. One block per thread stays far below 64 MB.
_BLOCK_BYTES = 1 << 22
# Processes take too long to start for smaller tables.
_WORTH_PROCESSES = 1 << 28
# Least bytes of a label's code, answer and release together.
_LEAST_ROW_BYTES = 24
_MOST_TASKS = 1024


def release_blocks(
    estimator: BaseEstimator, X: np.ndarray, out: np.ndarray, *, release_key: FieldKey | None = None, ids: Any = None
) -> np.ndarray:
    """Release X into `out` block by block; both may be memory maps of any length.

    Parameters
    ----------
    estimator : transformer of this package
        Fitted; ``estimator.fit(X[:1])`` is enough if classes and categories are declared, because only the shape is
        used. It runs `n_jobs` threads, or as many processes if X and `out` are memory maps of 256 MiB or more and the
        steps are not compiled.
    X : ndarray or memory map of shape (n_samples, n_features), or (n_samples,) for labels
        The private rows.
    out : ndarray or memory map of shape (n_samples, n_features_out), or (n_samples,) for labels
        Overwritten. Its dtype must hold released values, and it must not overlap X.
    release_key : FieldKey, default=None
        Makes the noise of a row a function of this secret, the law, the person and the value, so that a repeated run
        repeats the release of unchanged rows. None draws new noise.
    ids : array-like of int or str, shape (n_samples,), default=None
        Id of each row's person; required with a `release_key`, refused without.

    Returns
    -------
    out : ndarray or memory map
        The argument.

    Raises
    ------
    ValueError
        If `out` has the wrong shape or dtype, is read-only or overlaps X; if a value is not finite or not declared (all
        blocks are checked before the first release); or if `seed` is an int, with which every block would get the same
        noise. With a `release_key`, if there is a seed, a ledger, ``transform_noise=False``, or not one id per row.
    TypeError
        If `estimator`, X, `out`, `release_key` or an id has another type.

    Warns
    -----
    OutOfDomainWarning
        Once, with the number of values of X that were moved into the declared domain.

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
    estimator, people = _checked(estimator, release_key, ids, in_turn=True), None
    _check_out(estimator, X, out)
    if ids is not None:
        # numpy would turn a list of numbers and strings into strings.
        people = np.asarray(ids, dtype=object if isinstance(ids, list | tuple) else None)
        if people.shape != (len(X),):
            raise ValueError(f"ids must have one entry for each of {len(X)} rows; got shape {people.shape}.")
    row_bytes = max(array.dtype.itemsize * math.prod(array.shape[1:]) for array in (X, out))
    n_rows = max(1, _BLOCK_BYTES // max(row_bytes, _LEAST_ROW_BYTES))
    n_jobs = getattr(estimator, "n_jobs", None)
    # Check everything before the first release.
    for start in range(0, len(X), n_rows):
        part = slice(start, start + n_rows)
        try:
            if people is not None:
                canonical_ids(people[part])
            rows = estimator._rows(estimator._as_given(X[part]), reset=False)
            if isinstance(estimator.mechanism_.domain, Columns):
                # Numbers may be missing.
                estimator.mechanism_.domain.clip(rows)
            elif rows.dtype.kind == "f":
                check_finite_rows(rows)
        except ValueError as error:
            error.add_note(f"Positions are counted within the block of X that begins at row {start}.")
            raise
    # A copy of a generator in another process would repeat its noise.
    secure = estimator.seed is None
    # A secret in memory must stay in this process.
    secure_elsewhere = secure and (release_key is None or release_key.key.travels)
    in_files = _is_file(X, "r", "r+", "w+") and _is_file(out, "r+", "w+")
    large = in_files and X.nbytes >= _WORTH_PROCESSES

    def part_of(task):
        return estimator, X[task], out[task], n_rows, release_key, None if people is None else people[task]

    if secure_elsewhere and large and not getattr(estimator.mechanism_, "runs_compiled", False):
        # Each task builds the mechanism's tables, so that a few long ones are faster.
        tasks = _runs(len(X), n_rows, 4 * effective_n_jobs(n_jobs))
        counts = Parallel(n_jobs=n_jobs)(delayed(_release_into)(*part_of(task)) for task in tasks)
    else:
        tasks = _runs(len(X), n_rows, _MOST_TASKS)
        counts = in_threads(lambda task: _release_into(*part_of(task)), tasks, n_jobs=n_jobs if secure else 1)
    warn_out_of_domain(estimator, sum(counts), **counted_in(estimator, X, estimator.mechanism_.domain))
    return out


def release_dask(estimator: BaseEstimator, X: Any, *, release_key: FieldKey | None = None, ids: Any = None) -> Any:
    """Release a dask array, data frame or series, each block in its own task with its own noise.

    Parameters
    ----------
    estimator : transformer of this package
        Fitted, for example on the first rows: only the shape and the names of columns are used. Classes and categories
        must be declared.
    X : dask.array.Array of shape (n_samples, n_features), dask.dataframe.DataFrame, or one column of labels
        The private rows. Columns are rechunked into one block.
    release_key : FieldKey, default=None
        Makes the noise of a row a function of this secret, the law, the person and the value, so that a repeated task
        repeats the release of unchanged rows.
    ids : dask array or series of int or str, shape (n_samples,), default=None
        Id of each row's person, with partitions and index of a frame X; required with a `release_key`, else refused.

    Returns
    -------
    X_released : dask array, data frame or series
        Not yet computed. **Without a key, each computation is a new release**: two computations cost twice the budget,
        and so does a task that is executed again. Write the result to storage once, and use the stored copy.

    Raises
    ------
    ValueError
        If `seed` is not None, with which every block would get the same noise. With a `release_key`, as for
        :func:`release_blocks`, or if its secret is in memory only. A task raises for a block with NaN or infinity, when
        other blocks may already be written: check first with ``dask.array.isfinite(X).all().compute()``. A task also
        raises on a worker without the secret, or with another one.
    TypeError
        If `estimator`, `X` or `release_key` has another type.
    ImportError
        If dask is not installed.

    Warns
    -----
    RepeatedReleaseWarning
        Without a key, if a client of a cluster is open: results of a lost worker are computed and released again.

    Notes
    -----
    A task draws its key from the secure source of its worker's operating system, or reads the secret of the
    `release_key` on the worker. Neither is part of the task graph.

    Examples
    --------
    >>> from skldp import BitRandTransformer, release_dask
    >>> estimator = BitRandTransformer(epsilon=3.0, calibration="exact")
    >>> def release(table):  # a dask array, read from anywhere
    ...     return release_dask(estimator.fit(table[:1].compute()), table).to_zarr("released.zarr")
    """
    estimator = _checked(estimator, release_key, ids)
    if release_key is not None and not release_key.key.travels:
        raise ValueError(
            "release_key must read its secret on every worker: use ReleaseKey.from_file, or a function that fetches "
            "it; got a secret in the memory of this process."
        )
    try:
        import dask.array
    except ImportError as error:
        raise ImportError('release_dask needs dask. Install it with: pip install "skldp[dask]"') from error
    if release_key is None and getattr(estimator, "transform_noise", True):
        _warn_of_a_cluster()
    # Two calls are two releases, so that dask must not share their names.
    common = {"estimator": estimator, "key": release_key, "release": uuid.uuid4().hex}
    if isinstance(X, dask.array.Array):
        empty = _empty(estimator, X._meta)
        if X.ndim == 2:
            X = X.rechunk({1: -1})
        return dask.array.map_blocks(
            _release_block,
            X,
            *([] if ids is None else [_ids_beside(X, ids)]),
            **common,
            dtype=empty.dtype,
            chunks=(X.chunks[0], *((size,) for size in empty.shape[1:])),
            meta=empty,
        )
    if hasattr(X, "map_partitions"):
        people = [] if ids is None else [ids]
        if people and getattr(ids, "npartitions", 0) != X.npartitions:
            raise ValueError(f"ids must be of dask, with the partitions and index of X; got {type(ids).__name__}.")
        meta = _like(X._meta, _empty(estimator, X._meta[:0]), estimator)
        return X.map_partitions(_release_block, *people, **common, meta=meta)
    raise TypeError(f"X must be a dask array or a dask data frame; got {type(X).__name__}.")


def _warn_of_a_cluster():
    """Warn if a cluster is connected, whose scheduler may compute a block twice."""
    try:
        # A client exists only if distributed is imported.
        sys.modules["distributed"].default_client()
    except (KeyError, ValueError):
        return
    warn(
        "A cluster recomputes the results of a lost worker, which releases these rows a second time at their full "
        "epsilon. With release_key and ids a retry repeats the same release.",
        RepeatedReleaseWarning,
    )


def _ids_beside(X, ids):
    """Return ids in blocks beside those of X."""
    if not hasattr(ids, "rechunk") or ids.ndim != 1:
        raise TypeError(f"ids of a dask array must be a dask array of one dimension; got {type(ids).__name__}.")
    if math.isfinite(sum(X.chunks[0]) + sum(ids.chunks[0])):
        if ids.shape[0] != X.shape[0]:
            raise ValueError(f"ids must have one entry for each of {X.shape[0]} rows; got {ids.shape[0]}.")
        ids = ids.rechunk((X.chunks[0],))
    return ids if X.ndim == 1 else ids[:, None]


def _checked(estimator, release_key, ids, *, in_turn=False):
    """Return a fitted transformer without `set_output`, or raise unless each block has noise of its own."""
    if not isinstance(estimator, LocalTransformer):
        raise TypeError(f"estimator must be a transformer of this package; got {type(estimator).__name__}.")
    check_is_fitted(estimator)
    estimator._check_unchanged()
    seed, noisy = estimator.seed, getattr(estimator, "transform_noise", True)
    if (release_key is None) != (ids is None):
        raise ValueError(
            f"release_key and ids must be given together; got {'no release_key' if release_key is None else 'no ids'}."
        )
    if not isinstance(release_key, FieldKey | None):
        raise TypeError(f"release_key must be a FieldKey; got {type(release_key).__name__}.")
    if release_key is not None and (seed is not None or not noisy):
        raise ValueError(f"release_key needs seed=None and transform_noise=True; got {estimator!r}.")
    if release_key is not None and getattr(estimator, "ledger", None) is not None:
        raise ValueError("ledger must be None with a release_key, as a repeated release is free; got a ledger.")
    if noisy and seed is not None and not (in_turn and hasattr(seed, "bytes")):
        raise ValueError(
            f"seed must be None{' or a generator' * in_turn}: every block would get the same noise, and the difference "
            f"of two blocks would show their values; got {seed!r}."
        )
    own = copy(estimator)
    own.__dict__.pop("_sklearn_output_config", None)
    return own.set_output(transform="default") if hasattr(own, "set_output") else own


def _check_out(estimator, X, out):
    """Raise unless blocks can be written to `out`, each with its own noise."""
    if not isinstance(getattr(X, "dtype", None), np.dtype):
        raise TypeError(f"X must be a numpy array or a memory map; got {type(X).__name__}.")
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out must be a numpy array or a memory map; got {type(out).__name__}.")
    if not out.flags.writeable:
        raise ValueError("out must be writeable; got a read-only array.")
    shape = (X.shape[0], *_empty(estimator, X[:0]).shape[1:])
    if out.shape != shape:
        raise ValueError(f"out must have the shape {shape}; got {out.shape}.")
    if not estimator._can_be_written_to(out.dtype):
        raise ValueError(f"out must have a dtype that holds released values; got {out.dtype.type.__name__}.")
    if np.may_share_memory(X, out):
        raise ValueError("out must not overlap X; got overlapping arrays.")


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
        keyed = None if key is None else Keyed(key, ids[part])
        estimator._release_into(X[part], np.asarray(out[part]), keyed=keyed, counts=counts)
    return sum(counts)


def _release_block(X, ids=None, *, estimator, key, release):  # noqa: ARG001 -- dask names the task after it
    # Dask matches partitions by position: ids in another order are those of other people.
    if hasattr(ids, "iloc") and not ids.index.equals(X.index):
        raise ValueError("ids must have the index of X in its order; got another one.")
    rows = X if hasattr(X, "iloc") else np.asarray(X)
    # Workers pass empty blocks after a selection, which scikit-learn refuses.
    if not len(X):
        released = _empty(estimator, X)
    elif key is None:
        released = estimator.transform(rows)
    else:
        keyed = Keyed(key, ids if hasattr(ids, "iloc") else np.asarray(ids).reshape(-1))
        released = estimator._release_into(rows, None, keyed=keyed)
    return _like(X, released, estimator)


def _empty(estimator, X):
    """Return the release of no rows, in the dtype and kind of container of X."""
    empty = estimator._encoded(estimator._empty_release(0, np.asarray(X).dtype), X)
    if sparse.issparse(empty):
        raise ValueError("sparse_output must be False in a release by blocks; got True.")
    return empty


def _like(X, released, estimator):
    """Return released rows as a data frame or series if X is one."""
    if not hasattr(X, "iloc") or not isinstance(released, np.ndarray):
        return released
    index = X.index[: len(released)]
    if released.ndim == 1:
        return type(X)(released, index=index, name=X.name)
    return type(X)(released, index=index, columns=estimator.get_feature_names_out())
