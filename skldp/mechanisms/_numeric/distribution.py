r"""The distribution of numbers from answers of a law of cells: its response to bins, and the likeliest shares."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skldp.mechanisms._number_laws import LatticeLaw

__all__ = ["DistributionEstimate", "ascend", "lattice_response", "likeliest_shares"]

_Floats = npt.NDArray[np.float64]

_MOST_ITERATIONS = 20_000


@dataclass(frozen=True)
class DistributionEstimate:
    """Shares of equal bins of the bounds, none below 0, and their sum 1.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,)
    shares : ndarray of shape (n_bins,)
    n : int
        How many answers they are made from.
    """

    edges: _Floats
    shares: _Floats
    n: int

    def cumulative(self, values: npt.ArrayLike) -> _Floats:
        """The share of numbers up to each value, as if those of a bin were spread evenly."""
        sums = np.append(0.0, np.cumsum(self.shares))
        return np.asarray(np.interp(np.asarray(values, dtype=np.float64), self.edges, sums))

    def quantile(self, levels: npt.ArrayLike) -> _Floats:
        """The number below which each share lies.

        Raises
        ------
        ValueError
            If a level is not from 0 to 1.
        """
        wanted = np.asarray(levels, dtype=np.float64)
        if not ((wanted >= 0) & (wanted <= 1)).all():
            raise ValueError("levels must be from 0 to 1. Got others among them instead.")
        filled = np.flatnonzero(self.shares > 0)
        sums = np.append(0.0, np.cumsum(self.shares[filled]))
        bins = np.clip(np.searchsorted(sums, wanted, side="left") - 1, 0, len(filled) - 1)
        inside = np.clip((wanted - sums[bins]) / self.shares[filled][bins], 0.0, 1.0)
        starts, ends = self.edges[filled[bins]], self.edges[filled[bins] + 1]
        return np.asarray(starts + inside * (ends - starts))


def lattice_response(
    law: LatticeLaw, low: _Floats, high: _Floats, n_groups: int
) -> tuple[npt.NDArray[np.int64], _Floats]:
    r"""The chance of groups of cells, for numbers that are spread evenly between two ends, or are the same.

    Parameters
    ----------
    law : LatticeLaw
    low, high : ndarray of shape (n_bins,)
        In [-1, 1], ``low <= high``.
    n_groups : int

    Returns
    -------
    starts : ndarray of shape (n_groups + 1,)
        The first cell of each group, and the number of cells.
    response : ndarray of shape (n_bins, n_groups)

    Notes
    -----
    Of T words, a number whose inner interval of m cells starts at s has
    :math:`w u + Q \min(\max(u - s, 0), m)` for the first u cells. The start is linear in the number, so that over a bin
    the second summand is a quotient of differences of its antiderivative.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms import SquareWave, integer_law
    >>> from skldp.mechanisms._numeric.distribution import lattice_response
    >>> law = integer_law(SquareWave(1.0))
    >>> _, response = lattice_response(law, np.array([-1.0, 0.0]), np.array([0.0, 1.0]), 2)
    >>> response.round(4).tolist()
    [[0.6368, 0.3632], [0.3632, 0.6368]]
    """
    n_groups = min(n_groups, law.n_cells)
    starts = np.arange(n_groups + 1, dtype=np.int64) * law.n_cells // n_groups
    first = (law.n_cells - law.n_inner) // 2
    begin, end = (x[:, None] * law.reach + first for x in (low, high))
    same = end - begin <= 0
    reached = np.clip(starts - begin, 0, law.n_inner)
    over = _antiderivative(starts - begin, law.n_inner) - _antiderivative(starts - end, law.n_inner)
    inner = np.where(same, reached, over / np.where(same, 1.0, end - begin))
    total = law.n_cells * law.base + law.n_inner * law.extra
    sums = starts * (law.base / total) + inner * (law.extra / total)
    return starts, np.diff(sums, axis=1)


def likeliest_shares(counts: _Floats, response: _Floats, *, smooth: bool = False) -> _Floats:
    r"""The shares of inputs under which the answers are likeliest, by expectation and maximisation.

    Parameters
    ----------
    counts : ndarray of shape (n_answers,)
        How often each was given; none below 0, and not all 0.
    response : ndarray of shape (n_inputs, n_answers)
        The probability of each answer for each input.
    smooth : bool, default=False
        Mix each share with its neighbours' after each step, by 1/4, 1/2 and 1/4: for bins of a smooth density, whose
        maximum of likelihood is rugged.

    Returns
    -------
    ndarray of shape (n_inputs,)
        None below 0; they sum to 1.

    References
    ----------
    Li, Wang, Lopuhaä-Zwakenberg, Li and Škoric, "Estimating numerical distributions under local differential privacy",
    SIGMOD 2020, Section 5.4, whose rule to stop is another one, see :func:`ascend`.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms._numeric.distribution import likeliest_shares
    >>> likeliest_shares(np.array([7e5, 3e5]), np.array([[0.75, 0.25], [0.25, 0.75]])).round(3).tolist()
    [0.9, 0.1]
    """
    given = np.flatnonzero(counts > 0)
    chances = response[:, given]
    return ascend(
        lambda shares: shares @ chances, lambda parts: chances @ parts, counts[given], len(response), smooth=smooth
    )


def ascend(
    mixture: Callable[[_Floats], _Floats],
    back: Callable[[_Floats], _Floats],
    counts: _Floats,
    n_inputs: int,
    *,
    smooth: bool = False,
) -> _Floats:
    r"""Expectation and maximisation, of a response that is given by its two products.

    Parameters
    ----------
    mixture : callable
        From shares of inputs to the probability of each answer that was given, or so many times that.
    back : callable
        From a number for each of these answers to the sum over them of that times each input's probability of it.
    counts : ndarray of shape (n_given,)
        How often each was given, all above 0.
    n_inputs : int
    smooth : bool, default=False

    Returns
    -------
    ndarray of shape (n_inputs,)

    Notes
    -----
    Of n answers, no shares have a log-likelihood above that of the present ones by more than n times what the largest
    factor of the next step exceeds 1 by. The truth's own lies about half the number of inputs below the largest one;
    steps end where no more than an eighth of that is left, or after 20,000. With `smooth`, they end where shares no
    longer move.

    References
    ----------
    Lindsay, "The geometry of mixture likelihoods: a general theory", Annals of Statistics 1983, Theorem 4.1.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms._numeric.distribution import ascend
    >>> ascend(lambda shares: shares, lambda parts: parts, np.array([3e6, 1e6]), 2).round(3).tolist()
    [0.75, 0.25]
    """
    n, shares = float(counts.sum()), np.full(n_inputs, 1 / n_inputs)
    for _ in range(_MOST_ITERATIONS):
        factors = back(counts / n / mixture(shares))
        if not smooth and n * (factors.max() - 1) < n_inputs / 16:
            break
        step = shares * factors
        if smooth:
            padded = np.concatenate([step[:1], step, step[-1:]])
            step = padded[:-2] / 4 + padded[1:-1] / 2 + padded[2:] / 4
        step /= step.sum()
        # Far below what the noise of so many answers moves.
        is_near = np.abs(step - shares).sum() < 1e-4 / math.sqrt(n) / n_inputs
        shares = step
        if smooth and is_near:
            break
    return np.asarray(shares, dtype=np.float64)


def _antiderivative(u: _Floats, width: int) -> _Floats:
    """Of what is reached of an interval: 0 before it, then the length so far, then all of it."""
    inside = np.clip(u, 0.0, width)
    return np.asarray(inside**2 / 2 + width * np.maximum(u - width, 0.0))
