r"""Integer law of a vector: a public seed gives random directions, and the answer is one of the closest, or another.

The number of closest directions is fixed, so that epsilon follows from integers alone: it is that of subset selection,
whatever the directions are. Seeds make the directions uniform on the sphere, so that the answers are unbiased.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from skldp._arrays import Floats
from skldp.laws._integers import GroupLaw, uniform_below
from skldp.laws._odds import TWO_64

#: Largest number of numbers in a vector, and in all directions of a seed: seconds of a device.
MOST_NUMBERS, MOST_DRAWN = 2**16, 2**28
# Numbers of a direction are Gaussian in units of 2^-16, one of 1,024 for each power of two of the tail's probability.
_SCALE, _CELLS, _OCTAVES = 2.0**16, 1024, 31
# A unit vector in integers; dot products with directions are exact in double precision.
_UNIT = 2**24
# Numbers of directions that are in memory at once.
_BLOCK = 1 << 20


@dataclass(frozen=True)
class ClosestLaw(GroupLaw):
    """Law of PrivUnit on random directions, `n_close` of them close (k-closest encoding, Isik et al., NeurIPS 2023)."""

    # A `square_radius` of 0 is directions of vectors of any norm; a ball is lifted to the sphere by one more number.

    name: ClassVar[str] = "closest"
    version: ClassVar[int] = 4
    square_radius: int
    n_directions: int
    n_close: int
    miss_count: int

    def _check(self) -> None:
        if not 2 <= self.n_values <= MOST_NUMBERS or self.square_radius not in (0, 1, self.n_values):
            self._refuse(f"be of 2 to {MOST_NUMBERS} numbers, in a ball of square radius 1 or that number, or 0")
        n, k = self.n_directions, self.n_close
        if not 1 <= k < n <= 2**16 or n * self.n_values > MOST_DRAWN or not 1 <= self.miss_count < TWO_64:
            self._refuse(f"have 2 to 65536 directions, of {MOST_DRAWN} numbers at most; some are close, and not all")
        if (TWO_64 - self.miss_count) * (n - k) <= self.miss_count * k:
            self._refuse("answer a close direction more often than another one")

    @property
    def n_answers(self) -> int:
        """Number of pairs of a seed and a direction."""
        return TWO_64 * self.n_directions

    @property
    def ratio(self) -> tuple[int, int]:
        """Ratio of a close direction and another one; the seed is independent of the vector."""
        n, k = self.n_directions, self.n_close
        return (TWO_64 - self.miss_count) * (n - k), self.miss_count * k

    @property
    def dimension(self) -> int:
        return self.n_values + (self.square_radius > 0)

    def draw(self, places: Sequence[float], words: Iterator[int]) -> int:
        seed, close = next(words), next(words) >= self.miss_count
        n, k = self.n_directions, self.n_close
        rank = uniform_below(k, words) if close else k + uniform_below(n - k, words)
        # The first of equally close directions counts as the closer one.
        order = np.argsort(-self.closeness(seed, places), kind="stable")
        return seed * n + int(order[rank])

    def closeness(self, seed: int, places: Sequence[float]) -> Floats:
        """Return the cosines of a seed's directions with a vector, times its norm; shape (n_directions,)."""
        unit = np.rint(np.array(places, dtype=np.float64) * (_UNIT / math.sqrt(self.square_radius or 1)))
        if self.square_radius:
            left = _UNIT**2 - sum(number**2 for number in map(int, unit.tolist()))
            unit = np.append(unit, float(math.isqrt(max(left, 0))))
        size = max(_BLOCK // self.dimension, 1)
        blocks = [range(i, min(i + size, self.n_directions)) for i in range(0, self.n_directions, size)]
        found = []
        for block in blocks:
            rows = _gaussian_rows([(seed, i) for i in block], self.dimension)
            found.append(rows @ unit / np.sqrt(np.einsum("ij,ij->i", rows, rows)))
        return np.concatenate(found)

    def values(self, answer: int) -> list[float]:
        estimates: list[float] = self.rows([answer])[0].tolist()
        return estimates

    def rows(self, answers: Sequence[int]) -> Floats:
        rows = _gaussian_rows([divmod(answer, self.n_directions) for answer in answers], self.dimension)
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        return np.asarray(rows[:, : self.n_values] * (self.largest / norms)[:, None])

    @cached_property
    def largest(self) -> float:
        """Norm of the estimates of an answer, with the number that is not estimated."""
        miss, n, k = self.miss_count / TWO_64, self.n_directions, self.n_close
        # Cosines of all directions sum up to 0 in the mean.
        lean = self._of_close * ((1 - miss) / k - miss / (n - k))
        return math.sqrt(self.square_radius or 1) / lean

    @property
    def usual_square(self) -> float:
        return 1 / 3 + self.across * self.square_radius

    @property
    def across(self) -> float:
        """Mean square of a coordinate across the vector, per square radius; along it, about 1 more."""
        return (self.largest**2 / (self.square_radius or 1) - 1) / self.dimension

    @cached_property
    def _of_close(self) -> float:
        """Mean sum of the cosines of the close directions, from the law Beta(k, n - k) of the first cosine left out."""
        from scipy import special

        n, k, a = self.n_directions, self.n_close, (self.dimension - 1) / 2
        # The logit of a beta variable has a smooth density without bounds: sums of even steps converge at once.
        spread = 40 * math.sqrt(1 / k + 1 / (n - k))
        logits = math.log(k / (n - k)) + np.linspace(-spread, spread, 2001)
        logs = k * special.log_expit(logits) + (n - k) * special.log_expit(-logits)
        weights = np.exp(logs - logs.max())
        # Half of 1 - t; the distribution of t is symmetric.
        half = special.betaincinv(a, a, special.expit(-np.abs(logits)))
        of_t = (4 * half * (1 - half)) ** a
        scale = math.exp(-special.betaln(0.5, a)) / (2 * a)
        return n * scale * float(weights @ of_t / weights.sum())


def _gaussian_rows(named: Sequence[tuple[int, int]], d: int) -> Floats:
    """Return the vectors of seeds and numbers of directions, whole numbers, shape (n, d)."""
    data = b"".join(
        hashlib.shake_128(seed.to_bytes(8, "big") + number.to_bytes(8, "big")).digest(4 * d) for seed, number in named
    )
    words = np.frombuffer(data, dtype=">u4").astype(np.uint32)
    sizes = (words >> 1).astype(np.float64)
    # The power of two of the tail's probability, and the next ten bits.
    part, exponent = np.frexp(sizes + 0.5)
    place = exponent * _CELLS + ((part - 0.5) * (2 * _CELLS)).astype(np.int64)
    numbers = _quantiles()[place]
    return np.asarray(np.where(words & 1, -numbers, numbers).reshape(len(named), d))


@lru_cache(maxsize=1)
def _quantiles() -> Floats:
    """Return Gaussian quantiles in units of 2^-16, rounded, by exponent and the next bits of a tail's probability."""
    from statistics import NormalDist

    quantile = NormalDist().inv_cdf
    table = np.zeros((_OCTAVES + 1, _CELLS))
    for exponent in range(_OCTAVES + 1):
        for cell in range(_CELLS):
            tail = math.ldexp(_CELLS + cell + 0.5, exponent - _OCTAVES - 12)
            table[exponent, cell] = round(-_SCALE * quantile(tail))
    return table.reshape(-1)
