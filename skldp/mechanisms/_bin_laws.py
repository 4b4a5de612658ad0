"""Laws of a number that becomes a code before it is randomized: of bins, of knots and of bits.

What becomes of a number before its code is randomized cannot make a ratio of probabilities larger: epsilon is that of
the code, whatever the places are.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

from skldp._checks import is_whole
from skldp.mechanisms._code_laws import ResponseLaw
from skldp.mechanisms._integer_laws import UnitLaw
from skldp.mechanisms._odds import TWO_64, log_ratio, sum_above

__all__ = ["PLACES", "BinsLaw", "BitsLaw", "KnotsLaw"]

#: Places in [-1, 1] and answers are whole multiples of 1 / PLACES.
PLACES = 2**53
_TWO_63 = 2**63
_MOST_BINS = 4096
_MOST_BITS = 53


@dataclass(frozen=True)
class BinsLaw(UnitLaw):
    """Randomized response to the number of a bin: an answer stands for its own public number, with bias.

    Parameters
    ----------
    response : ResponseLaw
        Over the bins.
    edges : tuple of int
        Ascending, of 2^53 for 1: a number is in the bin after all edges up to it.
    answers : tuple of int
        Of 2^53 for 1, what each bin stands for.
    """

    name: ClassVar[str] = "bins"
    response: ResponseLaw
    edges: tuple[int, ...]
    answers: tuple[int, ...]

    def _check(self) -> None:
        listed = _whole(self.edges, PLACES) and _whole(self.answers, PLACES) and _ascending(self.edges)
        if not isinstance(self.response, ResponseLaw) or not listed:
            self._refuse("answer for bins, whose edges ascend, within [-1, 1]")
        if not self.response.n_codes == len(self.answers) == len(self.edges) + 1 <= _MOST_BINS:
            self._refuse(f"have as many answers as bins, at most {_MOST_BINS}, and an edge between each two")

    @property
    def n_answers(self) -> int:
        """As many as there are bins."""
        return len(self.answers)

    @property
    def epsilon(self) -> float:
        """That of the response."""
        return self.response.epsilon

    def draw(self, x: float, words: Iterator[int]) -> int:
        """Answer for a number, from one word."""
        # A double times a power of two, and its comparison with an integer, are exact.
        return self.response.draw(sum(edge <= x * PLACES for edge in self.edges), words)

    def value(self, answer: int) -> float:
        """What a bin stands for."""
        return self.answers[answer] / PLACES


@dataclass(frozen=True)
class KnotsLaw(UnitLaw):
    """A number is rounded at random to one of the knots beside it, and the knot answered for by randomized response.

    Parameters
    ----------
    response : ResponseLaw
        Over the knots.
    knots : tuple of int
        Ascending, of 2^53 for 1, from -1 to 1.
    """

    name: ClassVar[str] = "knots"
    response: ResponseLaw
    knots: tuple[int, ...]

    def _check(self) -> None:
        listed = _whole(self.knots, PLACES) and _ascending(self.knots) and len(self.knots) >= 2
        if not listed or (self.knots[0], self.knots[-1]) != (-PLACES, PLACES):
            self._refuse("have knots that ascend from -1 to 1")
        if not isinstance(self.response, ResponseLaw) or not self.response.n_codes == len(self.knots) <= _MOST_BINS:
            self._refuse(f"answer for its knots, at most {_MOST_BINS}")
        if self._gain < 1:
            self._refuse("keep a knot more often than it gives another")

    @property
    def n_answers(self) -> int:
        """As many as there are knots."""
        return len(self.knots)

    @property
    def epsilon(self) -> float:
        """That of the response."""
        return self.response.epsilon

    def draw(self, x: float, words: Iterator[int]) -> int:
        """Answer for a number, from two words."""
        place = round(x * PLACES)
        below = sum(knot <= place for knot in self.knots[1:-1])
        low, high = self.knots[below], self.knots[below + 1]
        upward = next(words) * (high - low) < (place - low) * TWO_64
        return self.response.draw(below + upward, words)

    def value(self, answer: int) -> float:
        """The number whose mean over answers is the knot's place: one quotient of integers."""
        other = self.response.other_count
        return (self.knots[answer] * TWO_64 - other * self._sum) / (self._gain * PLACES)

    @cached_property
    def _sum(self) -> int:
        return sum(self.knots)

    @property
    def _gain(self) -> int:
        return TWO_64 - self.response.n_codes * self.response.other_count


@dataclass(frozen=True)
class BitsLaw(UnitLaw):
    """A sign and bits of a magnitude, to which a number is rounded at random; each bit is flipped on its own.

    Parameters
    ----------
    flip_counts : tuple of int
        For how many of 2^64 words a bit is flipped, below one half: the sign first, which is 1 from 0 on, then J bits
        of the magnitude, the highest first. Of a sign alone, the magnitude is 1, and the sign what is rounded to.
    """

    name: ClassVar[str] = "sign_and_bits"
    flip_counts: tuple[int, ...]

    def _check(self) -> None:
        flips = self.flip_counts
        if not _whole(flips, _TWO_63) or not 1 <= len(flips) <= _MOST_BITS or not all(0 < t < _TWO_63 for t in flips):
            self._refuse(f"flip 1 to {_MOST_BITS} bits, each less than half the time and sometimes")

    @property
    def n_answers(self) -> int:
        """One for every row of bits."""
        return 1 << len(self.flip_counts)

    @property
    def epsilon(self) -> float:
        """Of two numbers whose bits are all different: the sum over bits."""
        return sum_above(*(log_ratio(TWO_64 - t, t) for t in self.flip_counts))

    def draw(self, x: float, words: Iterator[int]) -> int:
        """Answer for a number, from a word for its rounding and one for each bit."""
        n_magnitude = len(self.flip_counts) - 1
        position, sign = (abs(x) * self._last, x >= 0) if n_magnitude else ((1 + x) / 2, False)
        magnitude = int(position)
        magnitude += next(words) < int((position - magnitude) * 2.0**64)
        code = (sign << n_magnitude) + magnitude
        for flip_count in self.flip_counts:
            n_magnitude, code = n_magnitude - 1, code ^ (next(words) < flip_count) << n_magnitude
        return code

    def value(self, answer: int) -> float:
        """The sign's mean times the magnitude's, each without bias."""
        n_magnitude = len(self.flip_counts) - 1
        # A bit counts as (b - q) / (1 - 2 q), of which the sign takes twice, less 1.
        means = [
            Fraction((answer >> n_magnitude - i & 1) * TWO_64 - flips, TWO_64 - 2 * flips)
            for i, flips in enumerate(self.flip_counts)
        ]
        magnitude = sum((mean * 2 ** (n_magnitude - i) for i, mean in enumerate(means) if i), Fraction(0))
        return float((2 * means[0] - 1) * (magnitude / self._last if n_magnitude else 1))

    @property
    def _last(self) -> int:
        return (1 << len(self.flip_counts) - 1) - 1


def _whole(numbers: Any, most: int) -> bool:
    """Whether something is a tuple of whole numbers of so large a magnitude."""
    return isinstance(numbers, tuple) and all(is_whole(number) and abs(number) <= most for number in numbers)


def _ascending(numbers: tuple[int, ...]) -> bool:
    return all(before < after for before, after in pairwise(numbers))
