"""Laws of a number whose report is one of few answers or a cell of a lattice, given by their integers alone."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from skldp.mechanisms._integer_laws import MOST_EXPONENT, UnitLaw
from skldp.mechanisms._odds import TWO_64, log_ratio

__all__ = ["LatticeLaw", "MixtureLaw", "ThreeAnswersLaw", "TwoAnswersLaw"]

_TWO_63 = 2**63


@dataclass(frozen=True)
class TwoAnswersLaw(UnitLaw):
    """Duchi's: the answer is 1 for ``2**63 + x * slope`` of 2^64 words, rounded half to even, else 0."""

    name: ClassVar[str] = "two_answers"
    slope: int

    def _check(self) -> None:
        if not 1 <= self.slope < _TWO_63 or int(float(self.slope)) != self.slope:
            self._refuse("have a slope below 2**63 that is a double")

    @property
    def n_answers(self) -> int:
        """Two."""
        return 2

    @property
    def epsilon(self) -> float:
        """Of the two ends."""
        return log_ratio(_TWO_63 + self.slope, _TWO_63 - self.slope)

    def draw(self, x: float, words: Iterator[int]) -> int:
        """Answer for a number, from one word."""
        return int(next(words) < _TWO_63 + round(x * float(self.slope)))

    def value(self, answer: int) -> float:
        """Plus or minus ``2**63 / slope``."""
        return (2 * answer - 1) * (2.0**63 / self.slope)


@dataclass(frozen=True)
class ThreeAnswersLaw(UnitLaw):
    """Three-Outputs: minus, zero or plus.

    The answer is 1, zero, for ``zero - |x| * zero_lost`` of 2^64 words, and has the wrong sign for the next
    ``wrong - |x| * wrong_lost``, products rounded half to even; 0 is minus and 2 plus.
    """

    name: ClassVar[str] = "three_answers"
    zero: int
    zero_lost: int
    wrong: int
    wrong_lost: int

    def _check(self) -> None:
        lost = (self.zero_lost, self.wrong_lost)
        kept = self.zero_lost >= 0 and (self.zero_lost < self.zero or self.zero == 0 == self.zero_lost)
        if not kept or not 0 <= self.wrong_lost < self.wrong or self.zero + 2 * self.wrong != TWO_64 or not any(lost):
            self._refuse("share out 2**64 words evenly at 0, and leave some for each answer at 1")
        if any(int(float(number)) != number for number in lost):
            self._refuse("lose as many words as a double holds")

    @property
    def n_answers(self) -> int:
        """Three."""
        return 3

    @property
    def epsilon(self) -> float:
        """The larger of: of zero, and of one sign. All chances are monotone in abs(x), so that the ends decide."""
        zero_end, wrong_end = self.zero - self.zero_lost, self.wrong - self.wrong_lost
        of_sign = log_ratio(TWO_64 - zero_end - wrong_end, wrong_end)
        return max(of_sign, log_ratio(self.zero, zero_end)) if self.zero else of_sign

    def draw(self, x: float, words: Iterator[int]) -> int:
        """Answer for a number, from one word."""
        word, size = next(words), abs(x)
        to_zero = self.zero - round(size * float(self.zero_lost))
        if word < to_zero:
            return 1
        against = word < to_zero + self.wrong - round(size * float(self.wrong_lost))
        return 2 if against == (x < 0) else 0

    def value(self, answer: int) -> float:
        """Minus, zero or plus ``2**64 / (zero_lost + 2 * wrong_lost)``."""
        return (answer - 1) * (TWO_64 / (self.zero_lost + 2 * self.wrong_lost))


@dataclass(frozen=True)
class LatticeLaw(UnitLaw):
    """Piecewise on a lattice of cells: each has the weight `base`, and `extra` more within an interval about x.

    A word without its lowest bit is drawn anew until it is below ``n_cells * base + n_inner * extra``. The answer is
    the number of a cell; the cells are ``2**step_exponent`` wide and have their middle one at 0.
    """

    name: ClassVar[str] = "lattice"
    n_cells: int
    n_inner: int
    base: int
    extra: int
    step_exponent: int

    def _check(self) -> None:
        odd = bool(self.n_cells % 2 and self.n_inner % 2) and 1 <= self.n_inner < self.n_cells <= 2**32
        if not odd or self.base < 1 or self.extra < 1 or not 2**60 < self._total <= _TWO_63:
            self._refuse("have odd numbers of cells whose weights add up to more than 2**60 and at most 2**63")
        if abs(self.step_exponent) > MOST_EXPONENT or self.reach > (self.n_cells - self.n_inner) // 2:
            self._refuse("keep its inner interval among its cells")

    @property
    def n_answers(self) -> int:
        """As many as there are cells."""
        return self.n_cells

    @property
    def epsilon(self) -> float:
        """Of a cell wholly inside the inner interval and of one outside."""
        return log_ratio(self.base + self.extra, self.base)

    def draw(self, x: float, words: Iterator[int]) -> int:
        """Answer for a number, from one word, or with a chance below 7/8 from one more each time."""
        drawn = next(words) >> 1
        while drawn >= self._total:
            drawn = next(words) >> 1
        near = drawn - self.n_cells * self.base
        if near < 0:
            return drawn // self.base
        position = x * self.reach + (self.n_cells - self.n_inner) // 2
        start = math.floor(position)
        part = min(self.extra, round((position - start) * float(self.extra)))
        return start + (near + part) // self.extra

    def value(self, answer: int) -> float:
        """The middle of a cell."""
        return math.ldexp(answer - self.n_cells // 2, self.step_exponent)

    @property
    def _total(self) -> int:
        return self.n_cells * self.base + self.n_inner * self.extra

    @property
    def reach(self) -> float:
        """How many cells the inner interval moves as x goes from 0 to 1: one quotient, rounded to a double."""
        return math.ldexp(self._total / (self.n_inner * self.extra), -self.step_exponent)


@dataclass(frozen=True)
class MixtureLaw(UnitLaw):
    """The lattice for `lattice_count` of 2^64 words, whatever x is, else the few answers, numbered after its cells."""

    name: ClassVar[str] = "mixture"
    lattice_count: int
    lattice: LatticeLaw
    few: TwoAnswersLaw | ThreeAnswersLaw

    def _check(self) -> None:
        parts = isinstance(self.lattice, LatticeLaw) and isinstance(self.few, TwoAnswersLaw | ThreeAnswersLaw)
        if not parts or not 1 <= self.lattice_count < TWO_64:
            self._refuse("have a chance of a lattice, and of few answers")

    @property
    def n_answers(self) -> int:
        """Those of both."""
        return self.lattice.n_answers + self.few.n_answers

    @property
    def epsilon(self) -> float:
        """The larger of both: the chance of each tells nothing."""
        return max(self.lattice.epsilon, self.few.epsilon)

    def draw(self, x: float, words: Iterator[int]) -> int:
        """Answer for a number, from one word and what one of the laws takes."""
        if next(words) < self.lattice_count:
            return self.lattice.draw(x, words)
        return self.lattice.n_answers + self.few.draw(x, words)

    def value(self, answer: int) -> float:
        """The number of the law that an answer is of."""
        n = self.lattice.n_answers
        return self.lattice.value(answer) if answer < n else self.few.value(answer - n)
