"""Run calls in threads, as many as ``n_jobs`` says."""

from concurrent.futures import ThreadPoolExecutor

from joblib import effective_n_jobs

__all__ = ["in_threads"]


def in_threads(function, *arguments, n_jobs):
    """List what a function returns for each of its arguments, as ``map`` does.

    Parameters
    ----------
    function : callable
    *arguments : sequences of equal length
    n_jobs : int or None
        As joblib counts them, :func:`joblib.parallel_config` included. joblib's own threads take 12 ms to start, in
        which a release is done with a million numbers.

    Returns
    -------
    list

    Examples
    --------
    >>> from skldp.estimators.threads import in_threads
    >>> in_threads(pow, [2, 3, 4], [5, 2, 3], n_jobs=2)
    [32, 9, 64]
    """
    n_threads = min(effective_n_jobs(n_jobs), len(arguments[0]))
    if n_threads <= 1:
        return list(map(function, *arguments))
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(function, *arguments))
