"""Integer laws of numbers with few answers: two (Duchi's), three (Three-Outputs), and tables of points."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import ClassVar

import numpy as np

from skldp._arrays import Bools, Floats, Ints, Words
from skldp.laws._integers import Answers, Noise, UnitLaw, ascending, whole
from skldp.laws._odds import TWO_64, calibration_epsilon, floor_to_double

_TWO_63 = 2**63
# Up to here a threshold's first 16 bits, rounded, are still a signed 16-bit integer.
_LARGEST_FIRST = 2.0**15 - 2
# Largest rounding error: one from the product in single precision, one from truncation below zero.
_FIRST_ERROR = 2


@dataclass(frozen=True)
class FewAnswersLaw(UnitLaw):
    """Base class of laws of few answers, each a group of its own, whose chances are known at every number."""

    @abstractmethod
    def chances(self, points: Floats) -> Floats:
        """Return the chances of the answers, shape (n_points, n_answers)."""

    def responses(self, points: Floats, *, spread: bool = False) -> tuple[Floats, Callable[[Answers], Ints]]:
        if len(points) > self.n_answers:
            return super().responses(points)
        return self.chances(points), lambda answers: answers.astype(np.int64)


@dataclass(frozen=True)
class TwoAnswersLaw(FewAnswersLaw):
    """Law of Duchi's mechanism: 1 for ``2**63 + x * slope`` of 2^64 words, rounded half to even, else 0."""

    name: ClassVar[str] = "two_answers"
    n_answers = 2
    slope: int

    def _check(self) -> None:
        if not 1 <= self.slope < _TWO_63 or int(float(self.slope)) != self.slope:
            self._refuse("have a slope below 2**63 that is a double")

    @property
    def ratio(self) -> tuple[int, int]:
        """Weights of the answer 1 to the inputs 1 and -1."""
        return _TWO_63 + self.slope, _TWO_63 - self.slope

    @property
    def ratio_from_middle(self) -> tuple[int, int]:
        """Weights of an end's likelier answer, at the end and at 0."""
        return _TWO_63 + self.slope, _TWO_63

    def draw(self, x: float, words: Iterator[int]) -> int:
        return int(next(words) < _TWO_63 + round(x * float(self.slope)))

    def draw_many(self, x: np.ndarray, noise: Noise, out: np.ndarray) -> None:
        """Write many estimates. 16 bits of a word decide unless next to the threshold; only then the rest is drawn."""
        scale = self.slope * 2.0**-48
        if scale > _LARGEST_FIRST:
            up = noise.words(x.shape).view(np.int64) < self._thresholds(x)
        else:
            first = noise.words(x.shape, np.uint16).view(np.int16)
            near = (x * x.dtype.type(scale)).astype(np.int16)
            up = first < near
            # Their difference modulo 2^16: where it wraps, it only adds numbers for all 64 bits to decide.
            near -= first
            near += _FIRST_ERROR
            close = (near.view(np.uint16) <= 2 * _FIRST_ERROR).nonzero()[0]
            words = noise.at(close, x.size).words(close.size) >> np.uint64(16)
            words |= first[close].astype(np.uint64) << np.uint64(48)
            up[close] = words.view(np.int64) < self._thresholds(x[close])
        write_signs(up, self.magnitude, out)

    @cached_property
    def magnitude(self) -> float:
        """The size of both estimates, ``2**63 / slope``."""
        return 2.0**63 / self.slope

    def value(self, answer: int) -> float:
        return (2 * answer - 1) * self.magnitude

    @property
    def moments(self) -> tuple[float, float, float]:
        return self.magnitude**2, 0.0, -1.0

    def support(self, x: float) -> tuple[Floats, list[int]]:
        up = _TWO_63 + round(x * float(self.slope))
        return np.array([-self.magnitude, self.magnitude]), [TWO_64 - up, up]

    def chances(self, points: Floats) -> Floats:
        plus = 0.5 + points * (self.slope / TWO_64)
        return np.stack([1 - plus, plus], axis=1)

    def _thresholds(self, x: np.ndarray) -> Ints:
        return np.rint(x.astype(np.float64, copy=False) * float(self.slope)).astype(np.int64)


def duchi(epsilon: float) -> TwoAnswersLaw:
    return TwoAnswersLaw(floor_to_double(int(math.tanh(calibration_epsilon(epsilon) / 2) * 2.0**63)))


def rounded_uniform(gaps: Floats) -> Floats:
    """Return the chances of points to which a uniform number is rounded at random, from the gaps between them."""
    # A point gets half of the length beside it.
    return np.asarray((np.append(gaps, 0.0) + np.append(0.0, gaps)) / (2 * gaps.sum()))


def write_signs(up: Bools, magnitude: float, out: np.ndarray) -> None:
    """Write `magnitude` where `up`, else its negative, without branches."""
    # All steps are exact: 2 m - m and 0 - m.
    size = out.dtype.type(magnitude)
    np.copyto(out, up)
    out *= 2 * size
    out -= size


@dataclass(frozen=True)
class ThreeAnswersLaw(FewAnswersLaw):
    """Law of Three-Outputs, 0 minus, 1 zero, 2 plus: zero for ``zero - |x| * zero_lost`` of 2^64 words, then wrong."""

    name: ClassVar[str] = "three_answers"
    n_answers = 3
    zero: int
    zero_lost: int
    wrong: int
    wrong_lost: int

    def _check(self) -> None:
        lost = (self.zero_lost, self.wrong_lost)
        kept = self.zero_lost >= 0 and (self.zero_lost < self.zero or self.zero == 0 == self.zero_lost)
        if not kept or not 0 <= self.wrong_lost < self.wrong or self.zero + 2 * self.wrong != TWO_64 or not any(lost):
            self._refuse("split 2**64 words evenly at 0, with some for each answer at 1")
        if any(int(float(number)) != number for number in lost):
            self._refuse("lose as many words as a double holds")

    @property
    def ratio(self) -> tuple[int, int]:
        """Larger ratio of zero and of a sign, at the ends, since all probabilities are monotone in abs(x)."""
        against, zero, along = self._weights(1.0)
        return max((along, against), (self.zero, zero) if zero else (0, 1), key=lambda one: Fraction(*one))

    @property
    def ratio_from_middle(self) -> tuple[int, int]:
        """Weights of the right sign at an end and at 0, where zero is likeliest."""
        return self._weights(1.0)[2], self.wrong

    def draw(self, x: float, words: Iterator[int]) -> int:
        word, size = next(words), abs(x)
        to_zero = self.zero - round(size * float(self.zero_lost))
        if word < to_zero:
            return 1
        against = word < to_zero + self.wrong - round(size * float(self.wrong_lost))
        return 2 if against == (x < 0) else 0

    def draw_many(self, x: np.ndarray, noise: Noise, out: np.ndarray) -> None:
        size = np.abs(x)
        to_zero = np.uint64(self.zero) - np.rint(size * float(self.zero_lost)).astype(np.uint64)
        to_wrong = to_zero + (np.uint64(self.wrong) - np.rint(size * float(self.wrong_lost)).astype(np.uint64))
        words = noise.words(x.shape)
        sign = ((words < to_wrong) == (x < 0)).view(np.int8)
        sign += sign
        sign -= 1
        # Integers have one zero; -0.0 would reveal the sign of x.
        sign *= (words >= to_zero).view(np.int8)
        np.multiply(sign, self.magnitude, out=out, casting="same_kind")

    @cached_property
    def magnitude(self) -> float:
        """The size of plus and minus, ``2**64 / (zero_lost + 2 * wrong_lost)``."""
        return TWO_64 / (self.zero_lost + 2 * self.wrong_lost)

    def value(self, answer: int) -> float:
        return (answer - 1) * self.magnitude

    @property
    def moments(self) -> tuple[float, float, float]:
        """Coefficients from the probability of zero, which is linear in abs(x)."""
        square = self.magnitude**2
        return square * ((TWO_64 - self.zero) / TWO_64), square * (self.zero_lost / TWO_64), -1.0

    def support(self, x: float) -> tuple[Floats, list[int]]:
        weights = self._weights(abs(x))
        values, weights = np.array([-1.0, 0.0, 1.0]) * self.magnitude, weights if x >= 0 else weights[::-1]
        return (values, weights) if self.zero else (values[::2], weights[::2])

    def chances(self, points: Floats) -> Floats:
        # Divide first: a double array times a large Python integer fails in some versions of numpy.
        zero = self.zero / TWO_64 - np.abs(points) * (self.zero_lost / TWO_64)
        lean = points * ((self.zero_lost + 2 * self.wrong_lost) / TWO_64)
        return np.stack([(1 - zero - lean) / 2, zero, (1 - zero + lean) / 2], axis=1)

    def _weights(self, size: float) -> list[int]:
        """Return the words of the wrong sign, of zero and of the right sign, at a magnitude."""
        zero = self.zero - round(size * float(self.zero_lost))
        against = self.wrong - round(size * float(self.wrong_lost))
        return [against, zero, TWO_64 - zero - against]


def three_outputs(epsilon: float) -> ThreeAnswersLaw:
    eps = calibration_epsilon(epsilon)
    odds, less = math.exp(eps), math.exp(-eps)
    # A little below its largest value, at which the wrong sign loses nothing and rounding could make it gain.
    a = three_outputs_zero_probability(eps) * (1 - 2.0**-48)
    zero = 2 * floor_to_double(int(a * 2.0**63))
    zero_lost = floor_to_double(math.floor(Fraction(zero) * Fraction(1 - less)))
    wrong = (TWO_64 - zero) // 2
    # The rest at x = 1, once its zeros are taken out, is shared 1 : E between the wrong sign and the right one.
    at_one = math.ceil(Fraction(TWO_64 - zero + zero_lost) / (1 + Fraction(odds)))
    return ThreeAnswersLaw(zero, zero_lost, wrong, floor_to_double(wrong - at_one))


def three_outputs_zero_probability(epsilon: float) -> float:
    """Return the chance of 0 at the input 0 with the least worst variance (Zhao et al., 2020, Eq. 27)."""
    odds = math.exp(min(epsilon, 700.0))
    most = odds / (odds + 2)
    if odds < 2:
        return 0.0
    if odds > (3 + math.sqrt(65)) / 2:
        return most
    from scipy.optimize import minimize_scalar

    def worst(a: float) -> float:
        square = (odds * (odds + 1) / ((odds - 1) * (odds - a))) ** 2
        return worst_quadratic(square * (1 - a), square * a * (1 - 1 / odds), -1.0)

    found = minimize_scalar(worst, bounds=(0.0, most), method="bounded", options={"xatol": 1e-12})
    return float(found.x)


def worst_quadratic(constant: float, linear: float, square: float) -> float:
    """Return the largest ``constant + linear * x + square * x**2`` for x in [0, 1], where ``linear >= 0``."""
    peak = min(1.0, -linear / (2 * square)) if square < 0 else 1.0
    return max(constant, constant + linear * peak + square * peak**2)


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
