"""Integer law of a number that is rounded to one of some points, each with its own table of answers."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import ClassVar

import numpy as np

from skldp._arrays import Floats, Words
from skldp.laws._integers import Noise, UnitLaw
from skldp.laws._numbers import ascending, rounded_uniform, whole
from skldp.laws._odds import TWO_64

_TWO_53 = 2**53
_MOST_POINTS = 256
_MOST_PLACES, _MOST_COUNTS = 1024, 4096


@dataclass(frozen=True)
class PointsLaw(UnitLaw):
    """Law of a number rounded at random to one of `n_points` even points of [-1, 1], then answered by their table."""

    # `places` are the answers' values up to a factor; `counts` the words of 2^64 for each answer, by row, of points
    # below 0 (points above have the rows in reverse). The mean at each point is the point.

    name: ClassVar[str] = "points"
    n_points: int
    places: tuple[int, ...] = field(repr=False)
    counts: tuple[int, ...] = field(repr=False)

    def _check(self) -> None:
        sizes = 2 <= self.n_points <= _MOST_POINTS and self.n_points % 2 == 0
        if not sizes or not whole(self.places, _TWO_53) or not whole(self.counts, TWO_64):
            self._refuse(f"have an even number of at most {_MOST_POINTS} points and lists of integers")
        m, rows = len(self.places), self.n_points // 2
        mirrored = tuple(-place for place in reversed(self.places))
        if not 2 <= m <= _MOST_PLACES or not ascending(self.places) or self.places != mirrored:
            self._refuse("have places that ascend and are the same on both sides of 0")
        if (
            not len(self.counts) == m * rows <= _MOST_COUNTS
            or min(self.counts) < 1
            or any(sum(row) != TWO_64 for row in self.rows)
        ):
            self._refuse("give 2**64 words to the answers of each point below 0, some to each")
        last = self.n_points - 1
        means = [sum(c * place for c, place in zip(row, self.places, strict=True)) for row in self.rows[:rows]]
        # The mean of point i is (2 i / last - 1) times that of the last one.
        if means[0] >= 0 or any(mean * last != means[0] * (last - 2 * i) for i, mean in enumerate(means)):
            self._refuse("have the points as means of their answers")

    @cached_property
    def rows(self) -> tuple[tuple[int, ...], ...]:
        m = len(self.places)
        below = [self.counts[start : start + m] for start in range(0, len(self.counts), m)]
        return (*below, *(row[::-1] for row in reversed(below)))

    @property
    def n_answers(self) -> int:
        return len(self.places)

    @cached_property
    def ratio(self) -> tuple[int, int]:
        """Largest ratio of an answer's counts at two points, since rounding mixes points."""
        ratios = [(max(column), min(column)) for column in zip(*self.rows, strict=True)]
        return max(ratios, key=lambda one: Fraction(*one))

    def draw(self, x: float, words: Iterator[int]) -> int:
        point, part = divmod((round(x * 2.0**53) + _TWO_53) * (self.n_points - 1), 2 * _TWO_53)
        point += next(words) < part << 10
        word = next(words)
        return sum(word >= end for end in self._ends[point])

    def draw_many(self, x: np.ndarray, noise: Noise, out: np.ndarray) -> None:
        words = noise.words((x.size, 2))
        scaled = np.rint(x * 2.0**53).astype(np.int64) + _TWO_53
        scaled *= self.n_points - 1
        part = (scaled & (2 * _TWO_53 - 1)).astype(np.uint64) << np.uint64(10)
        point = (scaled >> 54) + (words[:, 0] < part)
        # Number of ends up to the word, by bisection.
        ends, n_ends = self._end_words, len(self.places) - 1
        found = np.zeros(x.size, dtype=np.int64)
        step = 1 << (n_ends.bit_length() - 1)
        while step:
            tried = np.minimum(found + step, n_ends + 1)
            is_up_to = (tried <= n_ends) & (ends[point, np.minimum(tried, n_ends) - 1] <= words[:, 1])
            found = np.where(is_up_to, tried, found)
            step >>= 1
        out[...] = self._values[found]

    def value(self, answer: int) -> float:
        return float(self.exact_value(answer))

    def exact_value(self, answer: int) -> Fraction:
        """Return the estimate as a fraction, whose mean at each point is the point."""
        return Fraction(self.places[answer] * TWO_64, -self._first)

    @property
    def moments(self) -> tuple[float, float, float]:
        return float(self.squares.max()), 0.0, -1.0

    def variance(self, x: Floats) -> Floats:
        return np.asarray(np.interp(x, np.linspace(-1, 1, self.n_points), self.squares) - x**2)

    @property
    def usual_square(self) -> float:
        return float(rounded_uniform(np.ones(self.n_points - 1)) @ self.squares)

    def support(self, x: float) -> tuple[Floats, list[int]]:
        point, part = divmod((round(x * 2.0**53) + _TWO_53) * (self.n_points - 1), 2 * _TWO_53)
        rows = [self.rows[point], self.rows[min(point + 1, self.n_points - 1)]]
        return self._values, [low * (2 * _TWO_53 - part) + high * part for low, high in zip(*rows, strict=True)]

    @cached_property
    def squares(self) -> Floats:
        return np.array([[c / TWO_64 for c in row] for row in self.rows]) @ self._values**2

    @cached_property
    def _values(self) -> Floats:
        return np.array([self.value(answer) for answer in range(self.n_answers)])

    @cached_property
    def _first(self) -> int:
        return sum(c * place for c, place in zip(self.rows[0], self.places, strict=True))

    @cached_property
    def _ends(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(accumulate(row))[:-1] for row in self.rows)

    @cached_property
    def _end_words(self) -> Words:
        return np.array(self._ends, dtype=np.uint64)
