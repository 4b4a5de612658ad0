"""Laws of several numbers that are answered for together: some of them, chosen anew for every record, or all."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from skldp.mechanisms._integer_laws import GroupLaw, TwoStepLaw, UnitLaw
from skldp.mechanisms._odds import TWO_64, log_ratio, round_up
from skldp.mechanisms._subsets import rank_of_subset, subset_of_rank, uniform_subset

__all__ = ["SampledLaw", "SignsLaw"]

_MOST_VALUES = 2**16
# What a device has room for, of one report's field.
_MOST_ANSWER_BITS = 2**16


@dataclass(frozen=True)
class SignsLaw(GroupLaw):
    """Duchi's vector: a sign for every number, more often of those that agree with most of the numbers' own.

    Each number is rounded at random to a sign. For `agreeing_count` of 2^64 words the answer is uniform over all rows
    of signs that agree with those in more than half of the places, else over all others.
    """

    name: ClassVar[str] = "signs"
    agreeing_count: int

    def _check(self) -> None:
        if not 1 <= self.n_values <= _MOST_ANSWER_BITS or not 1 <= self.agreeing_count < TWO_64:
            self._refuse(f"have 1 to {_MOST_ANSWER_BITS} signs, and a chance of both kinds of answers")
        if self._of_agreeing <= self._of_others:
            self._refuse("give an answer that agrees more often than another one")

    @property
    def n_answers(self) -> int:
        """One for every row of signs."""
        return 1 << self.n_values

    @property
    def epsilon(self) -> float:
        """Of one row of signs, from numbers with which it agrees and from others."""
        return log_ratio(self._of_agreeing, self._of_others)

    def draw(self, places: Sequence[float], words: Iterator[int]) -> int:
        """Answer for the numbers, from a word for each, one more, and those of rows until one is of the kind."""
        own = 0
        for x in places:
            own = 2 * own + int((next(words) >> 1) < round(x * 2.0**62) + 2**62)
        agree = next(words) < self.agreeing_count
        while True:
            answer: int = 0
            for _ in range(-(-self.n_values // 64)):
                answer = answer * TWO_64 + next(words)
            answer >>= -self.n_values % 64
            if (2 * (self.n_values - (own ^ answer).bit_count()) > self.n_values) == agree:
                return answer

    def values(self, answer: int) -> list[float]:
        """Plus or minus one magnitude, the first number's sign the highest bit."""
        return [self._magnitude * (2 * (answer >> place & 1) - 1) for place in reversed(range(self.n_values))]

    @cached_property
    def _n_agreeing(self) -> int:
        d = self.n_values
        return (1 << d - 1) - (0 if d % 2 else math.comb(d, d // 2) // 2)

    # The chances of one row of signs of each kind, times a common number.
    @property
    def _of_agreeing(self) -> int:
        return self.agreeing_count * ((1 << self.n_values) - self._n_agreeing)

    @property
    def _of_others(self) -> int:
        return (TWO_64 - self.agreeing_count) * self._n_agreeing

    @cached_property
    def _magnitude(self) -> float:
        agreeing, others = self._n_agreeing, (1 << self.n_values) - self._n_agreeing
        share = Fraction(self.agreeing_count, TWO_64 * agreeing) - Fraction(
            TWO_64 - self.agreeing_count, TWO_64 * others
        )
        # Over all rows that agree, a sign times its own number's sums to this binomial; over others, to its negative.
        return float(1 / (share * math.comb(self.n_values - 1, self.n_values // 2)))


@dataclass(frozen=True)
class SampledLaw(GroupLaw):
    """Of the numbers some, chosen uniformly for every record; each is answered for, or all of them by one law.

    The answer tells which: by the sum of binomials of the i-th chosen place (from 0) over i, for i from 1, as the
    highest digit; then one answer for each in the order of places, or one for all.
    """

    name: ClassVar[str] = "sampled"
    n_sampled: int
    of_sampled: UnitLaw | SignsLaw

    def _check(self) -> None:
        if not 1 <= self.n_sampled < self.n_values <= _MOST_VALUES:
            self._refuse(f"choose some of 2 to {_MOST_VALUES} numbers, and not all")
        one = self.of_sampled
        of_one_step = isinstance(one, UnitLaw | SignsLaw) and not isinstance(one, TwoStepLaw)
        if not of_one_step or (isinstance(one, SignsLaw) and one.n_values != self.n_sampled):
            self._refuse("have a law of one number, or of all that are chosen")
        if self.n_answers.bit_length() > _MOST_ANSWER_BITS:
            self._refuse(f"have answers of at most {_MOST_ANSWER_BITS} bits")

    @cached_property
    def n_answers(self) -> int:
        """The choices times the answers for what was chosen."""
        return math.comb(self.n_values, self.n_sampled) * self._of_chosen

    @cached_property
    def epsilon(self) -> float:
        """The sum over the chosen numbers: which they are tells nothing."""
        return round_up(self._n_draws * Fraction(self.of_sampled.epsilon))

    def draw(self, places: Sequence[float], words: Iterator[int]) -> int:
        """Answer for the numbers, from the words of the choice, and those of the answers in the order of places."""
        chosen = uniform_subset(self.n_values, self.n_sampled, words)
        answer = rank_of_subset(self.n_values, chosen)
        if isinstance(self.of_sampled, SignsLaw):
            return answer * self._of_chosen + self.of_sampled.draw([places[place] for place in chosen], words)
        for place in chosen:
            answer = answer * self.of_sampled.n_answers + self.of_sampled.draw(places[place], words)
        return answer

    def values(self, answer: int) -> list[float]:
        """The numbers of what was chosen, times n_values / n_sampled, and 0 for all others."""
        choice, rest = divmod(answer, self._of_chosen)
        if isinstance(self.of_sampled, SignsLaw):
            numbers = self.of_sampled.values(rest)
        else:
            numbers = []
            for _ in range(self.n_sampled):
                rest, digit = divmod(rest, self.of_sampled.n_answers)
                numbers.append(self.of_sampled.value(digit))
            numbers.reverse()
        all_numbers = [0.0] * self.n_values
        for place, number in zip(subset_of_rank(self.n_values, self.n_sampled, choice), numbers, strict=True):
            all_numbers[place] = number * self.n_values / self.n_sampled
        return all_numbers

    @property
    def _n_draws(self) -> int:
        return 1 if isinstance(self.of_sampled, SignsLaw) else self.n_sampled

    @cached_property
    def _of_chosen(self) -> int:
        answers: int = self.of_sampled.n_answers**self._n_draws
        return answers
