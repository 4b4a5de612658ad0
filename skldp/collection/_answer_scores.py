r"""Unbiased scores of released answers: functions whose mean, given the value, is the quantity to estimate.

Everything that a collector estimates is a mean of scores, a quotient of such means, or a function of a few of them.
Noise of two fields is independent given the record, so that products of scores are scores: of a number among those of
one category, for whom the category is private too.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skldp.laws._integers import Answers, CodeLaw, GroupLaw, UnitLaw
from skldp.mechanisms.numeric._distribution import Ramps

Floats = npt.NDArray[np.float64]
# Smaller differences between two parts are rounding.
_WORST_CONDITION = 1e12
# Numbers of reports that are in memory at once.
_CELLS = 1 << 22


@dataclass(frozen=True)
class Scores:
    """Unbiased score of each report, with its range, and whether only both ends of that occur."""

    values: Floats
    low: float
    high: float
    two_valued: bool = False

    def times(self, other: "Scores") -> "Scores":
        """Return the product with scores of another field."""
        ends = [one * two for one in (self.low, self.high) for two in (other.low, other.high)]
        return Scores(self.values * other.values, min(ends), max(ends))


class PartScores(ABC):
    """Scores of membership in each of several parts, categories or bins, between `low` and `high` of each part."""

    low: Floats
    high: Floats
    two_valued: bool = False

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return len(self.low)

    @abstractmethod
    def scores(self, answers: Answers, part: int) -> Floats:
        """Return the scores of one part, one for each answer."""

    @abstractmethod
    def sums(self, answers: Answers, weights: Floats) -> tuple[Floats, Floats]:
        """Return, for each part, the sums of weights times scores and of weights times squared scores."""

    def of(self, answers: Answers, parts: Sequence[int]) -> Scores:
        """Return the scores of membership in the union of some parts, at least one."""
        values = sum((self.scores(answers, part) for part in parts), np.zeros(len(answers)))
        chosen = list(parts)
        return Scores(values, float(self.low[chosen].sum()), float(self.high[chosen].sum()))


class CodeScores(PartScores):
    """Scores of the codes of a law of categories."""

    def __init__(self, law: CodeLaw) -> None:
        low, high = law.score_range
        self.law, self.two_valued = law, law.two_valued
        self.low, self.high = np.full(law.n_codes, low), np.full(law.n_codes, high)

    def scores(self, answers: Answers, part: int) -> Floats:
        return self.law.scores(answers, part)

    def sums(self, answers: Answers, weights: Floats) -> tuple[Floats, Floats]:
        return self.law.score_sums(answers, weights)


class CellScores(PartScores):
    """Scores of a mechanism with few outputs: the least-squares inverse of its known response to each part."""

    def __init__(
        self,
        response: Floats,
        cells: Callable[[Answers], npt.NDArray[np.int64]],
        combine: Floats | None = None,
    ) -> None:
        self.response, self.cells = response, cells
        # The weights are output variances for a uniform distribution, which do not depend on the answers seen.
        usual = response.mean(axis=0)
        weighted = response / np.where(usual > 0, usual, 1.0)
        told_apart = weighted @ response.T
        if len(response) > response.shape[1] or np.linalg.cond(told_apart) > _WORST_CONDITION:
            raise ValueError(f"The law cannot distinguish {len(response)} bins; use fewer.")
        inverse = np.linalg.solve(told_apart, weighted)
        self.of_cells = inverse if combine is None else combine @ inverse
        self.low, self.high = self.of_cells.min(axis=1), self.of_cells.max(axis=1)
        self.two_valued = response.shape[1] == 2

    def combined(self, combine: Floats) -> "CellScores":
        """Return the scores of sums of parts, shape (n_sums, n_parts)."""
        return CellScores(self.response, self.cells, combine)

    def counts(self, answers: Answers, weights: Floats | None = None) -> Floats:
        """Return the number of answers in each cell, or the sum of their weights."""
        return np.bincount(self.cells(answers), weights, self.response.shape[1]).astype(np.float64)

    def scores(self, answers: Answers, part: int) -> Floats:
        return np.asarray(self.of_cells[part][self.cells(answers)])

    def sums(self, answers: Answers, weights: Floats) -> tuple[Floats, Floats]:
        counts = self.counts(answers, weights)
        return self.of_cells @ counts, self.of_cells**2 @ counts


class StepScores(PartScores):
    """Scores of shares between knots, the first and last interval open; see :class:`Ramps`."""

    def __init__(self, ramps: Ramps) -> None:
        self.ramps, levels = ramps, ramps.levels
        self.low = np.append(levels[2], 1.0) - np.append(0.0, levels[0])
        self.high = np.append(levels[0], 1.0) - np.append(0.0, levels[2])

    def scores(self, answers: Answers, part: int) -> Floats:
        return self._below(answers, part) - self._below(answers, part - 1)

    def sums(self, answers: Answers, weights: Floats) -> tuple[Floats, Floats]:
        of_all, of_squares, before = [], [], None
        for part in range(self.n_parts):
            below = self._below(answers, part)
            one = below if before is None else below - before
            of_all.append(weights @ one)
            of_squares.append(weights @ one**2)
            before = below
        return np.array(of_all), np.array(of_squares)

    def _below(self, answers: Answers, ramp: int) -> Floats:
        if not 0 <= ramp < self.ramps.levels.shape[1]:
            return np.full(len(answers), float(ramp >= 0))
        return np.asarray(self.ramps.levels[:, ramp][self.ramps.kinds(answers.astype(np.int64), ramp)])


def numbers(law: UnitLaw, answers: Answers) -> Scores:
    """Return the scores of a number in [-1, 1]."""
    if law.has_bias:
        raise ValueError(f"Means need answers without bias, such as those of knots; got a law of {law.name}.")
    return Scores(each(law.value, answers), *law.ends, law.two_valued)


def grouped_sums(law: GroupLaw, answers: Answers, weights: Floats) -> tuple[Floats, Floats, Floats, float]:
    """Return the sums of w s, (w s)^2 and w^2 s over reports, of the scores s of all numbers, and the largest score."""
    different, place = whole_answers(answers)
    # Equal answers have equal scores.
    of_each = [np.bincount(place, w) for w in (weights, weights**2)]
    sums, size = np.zeros((3, law.n_values)), max(_CELLS // law.n_values, 1)
    for start in range(0, len(different), size):
        part = slice(start, start + size)
        values, (once, twice) = law.rows(different[part]), (of_one[part] for of_one in of_each)
        sums += once @ values, twice @ values**2, twice @ values
    return sums[0], sums[1], sums[2], law.largest


def squares(law: UnitLaw, answers: Answers) -> Scores:
    """Return the scores of the square of a number in [-1, 1], up to the rounding to a lattice."""
    lattice, share = law.lattice_part("Variances")
    constant, _, square = lattice.moments

    def score(answer: int) -> float:
        return (law.value(answer) ** 2 - constant) / (1 + square) / share if answer < lattice.n_cells else 0.0

    ends = [score(0), score(lattice.n_cells // 2), 0.0]
    return Scores(each(score, answers), min(ends), max(ends))


def each(value: Callable[[int], float], answers: Answers) -> Floats:
    """Return a value for each answer, computed once for equal answers."""
    different, place = whole_answers(answers)
    return np.array([value(one) for one in different], dtype=np.float64)[place]


def whole_answers(answers: Answers) -> tuple[list[int], npt.NDArray[np.intp]]:
    """Return the distinct answers as integers, and the index of each answer among them."""
    different, place = np.unique(answers, axis=0, return_inverse=True)
    whole = [int(one) if one.ndim == 0 else int.from_bytes(one.tobytes(), "big") for one in different]
    return whole, place.reshape(-1)
