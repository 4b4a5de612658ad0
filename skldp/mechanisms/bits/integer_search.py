"""Find the integer with the least cost."""

from collections.abc import Callable
from functools import cache

__all__ = ["least_integer"]


def least_integer(cost: Callable[[int], float], most: int) -> int:
    """Give the integer from 1 to `most` with the least cost, for a cost with one valley.

    Powers of two find the valley, halving steps its floor: about ``4 log2(most)`` evaluations.

    Examples
    --------
    >>> from skldp.mechanisms.bits.integer_search import least_integer
    >>> least_integer(lambda k: (k - 37) ** 2, 1000)
    37
    """
    known = cache(cost)
    starts = [2**i for i in range(most.bit_length()) if 2**i <= most]
    best = min([*starts, most], key=known)
    step = max(1, best // 4)
    while step:
        nearest = min((k for k in (best, best - step, best + step) if 1 <= k <= most), key=known)
        if nearest == best:
            step //= 2
        best = nearest
    return best
