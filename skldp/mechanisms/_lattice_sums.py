r"""The law of a sum of many independent copies, from above: what a convex measure makes of it is never too small.

Laws are masses on the multiples of a step. All masses are positive and convolutions are sums of products, so that no
digits cancel and the relative error of every mass has a bound. Where a law has too many points, the points between
those of a coarser lattice are spread to their two neighbours, which only raises a convex measure. Mass beyond the left
end is moved up to it; mass beyond the right end is taken away, and what it is worth at most is counted.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["LatticeLaw", "Measure", "sum_of_copies"]

_UNIT = 2.0**-53
# A bound on what products below the smallest float are worth together.
_UNDERFLOW = 1e-280


@dataclass(frozen=True)
class LatticeLaw:
    """Masses at the places first, first + 1, ... of a lattice.

    Parameters
    ----------
    masses : ndarray of float64, shape (n_places,)
        None is below the true one by more than a part of `error`.
    first : int
    error : float
    """

    masses: npt.NDArray[np.float64]
    first: int
    error: float

    def plus(self, other: "LatticeLaw") -> "LatticeLaw":
        """The law of the sum of two independent numbers."""
        # However n products of positive numbers are summed, the relative error is below n + 1 units.
        terms = min(self.masses.size, other.masses.size) + 2
        masses = np.convolve(self.masses, other.masses)
        return LatticeLaw(masses, self.first + other.first, self.error + other.error + 2 * terms * _UNIT)

    def coarser(self, down: float, up: float) -> "LatticeLaw":
        """The law on every other place; of what lies between, these shares go to the two neighbours."""
        odd_start = self.first % 2
        masses = np.concatenate([np.zeros(odd_start), self.masses])
        even, odd = masses[0::2], masses[1::2]
        spread = np.zeros(masses.size // 2 + 1)
        spread[: even.size] = even
        spread[: odd.size] += down * odd
        spread[1 : 1 + odd.size] += up * odd
        return LatticeLaw(spread, (self.first - odd_start) // 2, self.error + 8 * _UNIT)


class Measure(ABC):
    """What is measured of the sum: an increasing function, convex along the spreads that it names."""

    @abstractmethod
    def shares(self, level: int) -> tuple[float, float]:
        """The shares that go down and up when places of step 2^level become places of twice that step."""

    @abstractmethod
    def worth(self, law: LatticeLaw, single: LatticeLaw, level: int, n_copies: int) -> npt.NDArray[np.float64]:
        """What a unit of mass at each place of a law of `n_copies` adds to the measure of the whole sum at most.

        The rest of the sum is made of such laws and of the single one.
        """


def sum_of_copies(
    single: LatticeLaw, n: int, measure: Measure, *, budget: float, most: int
) -> tuple[LatticeLaw, int, float]:
    """The law of a sum of n independent copies."""
    bits = bin(n)[3:]
    level, lost, share = 0, _UNDERFLOW, budget / (2 * len(bits) + 2)
    law, n_copies = single, 1
    for done, bit in enumerate(["", *bits]):
        if done:
            law, n_copies = law.plus(law), 2 * n_copies
        if bit == "1":
            law, n_copies = law.plus(single), n_copies + 1
        # The sum is made of this many such sums, and of single copies.
        n_blocks = 2 ** (len(bits) - done)
        law, cost = _trimmed(law, n_blocks, measure.worth(law, single, level, n_copies), share)
        lost += cost
        while law.masses.size > most:
            down, up = measure.shares(level)
            law, single, level = law.coarser(down, up), single.coarser(down, up), level + 1
    return law, level, lost


def _trimmed(law: LatticeLaw, n_blocks: int, worth: npt.NDArray[np.float64], share: float) -> tuple[LatticeLaw, float]:
    """Without the ends: the left one moved up, the right one taken away, each of about `share` in all blocks."""
    masses = law.masses
    # Rounding of the sums, and the masses' own error.
    costs = np.cumsum((masses * worth)[::-1]) * (n_blocks * (1 + 2 * law.error + 2.0**-30))
    n_right = min(int(np.searchsorted(costs, share, side="right")), masses.size - 1)
    n_left = int(np.searchsorted(np.cumsum(masses) * n_blocks, share, side="right"))
    n_left = min(n_left, masses.size - n_right - 1)
    kept = masses[n_left : masses.size - n_right].copy()
    kept[0] += masses[:n_left].sum()
    cost = float(costs[n_right - 1]) if n_right else 0.0
    return LatticeLaw(kept, law.first + n_left, law.error + masses.size * _UNIT), cost
