"""Run calls in threads, as many as ``n_jobs`` says."""

from concurrent.futures import ThreadPoolExecutor

from joblib.parallel import get_active_backend

__all__ = ["in_threads"]


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
    >>> from skldp.estimators.threads import in_threads
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
