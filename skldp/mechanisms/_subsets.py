"""Sets of some of the first whole numbers: drawn uniformly, and numbered."""

import math
from collections.abc import Collection, Iterator

from skldp.mechanisms._integer_laws import uniform_below

__all__ = ["rank_of_subset", "subset_of_rank", "uniform_subset"]


def uniform_subset(n: int, size: int, words: Iterator[int]) -> list[int]:
    """A set of so many numbers below n, in ascending order; each set is as likely (Floyd's algorithm).

    Examples
    --------
    >>> from skldp.mechanisms._subsets import uniform_subset
    >>> uniform_subset(5, 3, iter([1, 1, 0]))
    [0, 1, 3]
    """
    chosen: set[int] = set()
    for last in range(n - size, n):
        number = uniform_below(last + 1, words)
        chosen.add(last if number in chosen else number)
    return sorted(chosen)


def rank_of_subset(n: int, members: Collection[int]) -> int:
    """The number of a set among all sets of its size: the sum of the binomials of its i-th number, from 1, over i.

    Examples
    --------
    >>> from skldp.mechanisms._subsets import rank_of_subset
    >>> rank_of_subset(5, [0, 1, 3])
    1
    """
    held, left, rank = frozenset(members), len(members), 0
    binomial = math.comb(n - 1, left)
    # One binomial is a small quotient of the one before: each computed anew would take a stranger's device seconds.
    for place in range(n - 1, 0, -1):
        if place in held:
            rank += binomial
            binomial, left = binomial * left // place, left - 1
        else:
            binomial = binomial * (place - left) // place
    return rank


def subset_of_rank(n: int, size: int, rank: int) -> list[int]:
    """The set of a number, in ascending order.

    Examples
    --------
    >>> from skldp.mechanisms._subsets import subset_of_rank
    >>> subset_of_rank(5, 3, 1)
    [0, 1, 3]
    """
    members, left = [], size
    binomial = math.comb(n - 1, left)
    for place in range(n - 1, -1, -1):
        if left and rank >= binomial:
            members.append(place)
            rank -= binomial
            binomial, left = binomial * left // max(place, 1), left - 1
        else:
            binomial = binomial * (place - left) // max(place, 1)
    return members[::-1]
