r"""What one answer of a known law says of the value behind it, without bias: scores, whose mean is what is asked.

Everything that a collector estimates is a mean of scores, a quotient of such means, or a function of a few of them.
Noise of two fields is independent given the record, so that products of scores are scores: of a number among those of
one category, for whom the category is private too.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp.mechanisms._bin_laws import BinsLaw, BitsLaw
from skldp.mechanisms._categorical.hadamard import hadamard_transform, is_odd
from skldp.mechanisms._categorical.local_hashing import linear_hash, support_of_others, support_sums
from skldp.mechanisms._category_laws import HadamardLaw, HashingLaw, SubsetLaw
from skldp.mechanisms._code_laws import ResponseLaw, UnaryLaw
from skldp.mechanisms._group_laws import SampledLaw
from skldp.mechanisms._integer_laws import CodeLaw, GroupLaw, UnitLaw
from skldp.mechanisms._longitudinal_laws import (
    LongitudinalBitsLaw,
    LongitudinalHashingLaw,
    LongitudinalHistogramLaw,
    LongitudinalResponseLaw,
)
from skldp.mechanisms._number_laws import LatticeLaw, MixtureLaw, ThreeAnswersLaw, TwoAnswersLaw
from skldp.mechanisms._numeric.distribution import Ramps, ascend, lattice_response
from skldp.mechanisms._numeric.piecewise import lattice_variance
from skldp.mechanisms._odds import TWO_64
from skldp.mechanisms._primes import number_of_digits

__all__ = [
    "Answers",
    "CellScores",
    "Floats",
    "PartScores",
    "Scores",
    "SignScores",
    "StepScores",
    "SupportScores",
    "bits",
    "code_scores",
    "each",
    "grouped_number",
    "grouped_sums",
    "lattice_of",
    "likeliest_codes",
    "number_parts",
    "numbers",
    "squares",
    "whole_answers",
]

Floats = npt.NDArray[np.float64]
Answers = npt.NDArray[np.unsignedinteger[Any]]
# Beyond it, what two parts are told apart by is rounding.
_WORST_CONDITION = 1e12
_ROWS = 1 << 16
_MOST_BITS = 1 << 28


@dataclass(frozen=True)
class Scores:
    """Unbiased score of each report, with its range, and whether only both ends of that occur."""

    values: Floats
    low: float
    high: float
    two_valued: bool = False

    def times(self, other: "Scores") -> "Scores":
        """The product with scores of another field."""
        ends = [one * two for one in (self.low, self.high) for two in (other.low, other.high)]
        return Scores(self.values * other.values, min(ends), max(ends))


class PartScores(ABC):
    """Scores of whether a value is in each of several parts: categories, or bins.

    Attributes
    ----------
    n_parts : int
    low, high : ndarray of shape (n_parts,)
        The least and the largest score of each.
    two_valued : bool
        Whether each score is one of these two.
    """

    low: Floats
    high: Floats
    two_valued: bool = False

    @property
    def n_parts(self) -> int:
        """How many parts there are."""
        return len(self.low)

    @abstractmethod
    def scores(self, answers: Answers, part: int) -> Floats:
        """The scores of one part, one for each answer."""

    @abstractmethod
    def sums(self, answers: Answers, weights: Floats) -> tuple[Floats, Floats]:
        """The sums over reports of weights times scores, and of weights times their squares, of each part."""

    def of(self, answers: Answers, parts: Sequence[int]) -> Scores:
        """The scores of whether a value is in any of some parts, at least one."""
        values = sum((self.scores(answers, part) for part in parts), np.zeros(len(answers)))
        chosen = list(parts)
        return Scores(values, float(self.low[chosen].sum()), float(self.high[chosen].sum()))


class SupportScores(PartScores):
    """Of a law of which each answer supports some codes: the true one with probability p, any other with q.

    Parameters
    ----------
    n_codes : int
    p, q : float
    supports : callable
        From answers and a code to whether each supports it.
    held : callable
        From answers and their weights to the sum over those that support each code.

    Raises
    ------
    ValueError
        If p is not above q.
    """

    two_valued = True

    def __init__(
        self,
        n_codes: int,
        p: float,
        q: float,
        supports: Callable[[Answers, int], npt.NDArray[np.bool_]],
        held: Callable[[Answers, Floats], Floats],
    ) -> None:
        if not p > q:
            raise ValueError("Answers must depend on the category. Got a law of epsilon 0 instead.")
        self.p, self.q, self.supports, self._held = p, q, supports, held
        self.low, self.high = np.full(n_codes, -q / (p - q)), np.full(n_codes, (1 - q) / (p - q))

    def scores(self, answers: Answers, part: int) -> Floats:
        """The scores of one code."""
        return np.asarray((self.supports(answers, part) - self.q) / (self.p - self.q))

    def counts(self, answers: Answers) -> npt.NDArray[np.int64]:
        """How many answers support each code."""
        return np.rint(self._held(answers, np.ones(len(answers)))).astype(np.int64)

    def sums(self, answers: Answers, weights: Floats) -> tuple[Floats, Floats]:
        """The sums of all codes."""
        held, total, gain = self._held(answers, weights), weights.sum(), self.p - self.q
        return (held - self.q * total) / gain, (held * (1 - 2 * self.q) + self.q**2 * total) / gain**2


class SignScores(PartScores):
    """Of Hadamard response: the sign of a report in a code's row, or 0 where it is of another block.

    Parameters
    ----------
    law : HadamardLaw

    Raises
    ------
    ValueError
        If its answers do not depend on the code.
    """

    def __init__(self, law: HadamardLaw) -> None:
        others = law.n_answers - law.block_size // 2
        self._gain = 1 - law.miss_count / TWO_64 * (1 + law.block_size / 2 / others)
        if not self._gain > 0:
            raise ValueError("Answers must depend on the category. Got a law of epsilon 0 instead.")
        self._law, self.two_valued = law, law.n_answers == law.block_size
        self.low, self.high = (np.full(law.n_codes, sign / self._gain) for sign in (-1.0, 1.0))

    def scores(self, answers: Answers, part: int) -> Floats:
        """The scores of one code."""
        own, of_block = self.supports(answers, part), self._is_of_block(answers, part)
        return np.asarray((2.0 * own - of_block) / self._gain)

    def supports(self, answers: Answers, part: int) -> npt.NDArray[np.bool_]:
        """Whether each report is one of the code's own."""
        row = part % (self._law.block_size - 1) + 1
        return self._is_of_block(answers, part) & ~is_odd(answers.astype(np.int64) % self._law.block_size & row)

    def sums(self, answers: Answers, weights: Floats) -> tuple[Floats, Floats]:
        """The sums of all codes, by one transform."""
        size, n = self._law.block_size, self._law.n_codes
        table = np.bincount(answers, weights, self._law.n_answers).reshape(-1, size)
        signed = hadamard_transform(table)[:, 1:].reshape(-1)[:n]
        return signed / self._gain, np.repeat(table.sum(axis=1), size - 1)[:n] / self._gain**2

    def _is_of_block(self, answers: Answers, part: int) -> npt.NDArray[np.bool_]:
        return np.asarray(answers.astype(np.int64) // self._law.block_size == part // (self._law.block_size - 1))


class CellScores(PartScores):
    """Of a law of few cells of answers, whose response to each part is known: the least-squares inverse of that.

    Parameters
    ----------
    response : ndarray of shape (n_parts, n_cells)
    cells : callable
        From answers to the numbers of their cells.
    combine : ndarray of shape (n_sums, n_parts), default=None
        Score these sums of parts instead.

    Raises
    ------
    ValueError
        If the answers do not tell the parts apart.
    """

    def __init__(
        self,
        response: Floats,
        cells: Callable[[Answers], npt.NDArray[np.int64]],
        combine: Floats | None = None,
    ) -> None:
        self.response, self.cells = response, cells
        # With the variances of the answers to evenly spread parts as weights: they do not depend on the answers seen.
        usual = response.mean(axis=0)
        weighted = response / np.where(usual > 0, usual, 1.0)
        told_apart = weighted @ response.T
        if len(response) > response.shape[1] or np.linalg.cond(told_apart) > _WORST_CONDITION:
            raise ValueError(f"The answers of a law must tell the parts apart. Got too many parts: {len(response)}.")
        inverse = np.linalg.solve(told_apart, weighted)
        self.of_cells = inverse if combine is None else combine @ inverse
        self.low, self.high = self.of_cells.min(axis=1), self.of_cells.max(axis=1)
        self.two_valued = response.shape[1] == 2

    def combined(self, combine: Floats) -> "CellScores":
        """The scores of sums of parts, shape (n_sums, n_parts)."""
        return CellScores(self.response, self.cells, combine)

    def counts(self, answers: Answers, weights: Floats | None = None) -> Floats:
        """How many answers each cell has, or the sum of their weights."""
        return np.bincount(self.cells(answers), weights, self.response.shape[1]).astype(np.float64)

    def scores(self, answers: Answers, part: int) -> Floats:
        """The scores of one part."""
        return np.asarray(self.of_cells[part][self.cells(answers)])

    def sums(self, answers: Answers, weights: Floats) -> tuple[Floats, Floats]:
        """The sums of all parts."""
        counts = self.counts(answers, weights)
        return self.of_cells @ counts, self.of_cells**2 @ counts


class StepScores(PartScores):
    """Scores of shares between the tops of ramps, the first and the last one open; see :class:`Ramps`.

    Parameters
    ----------
    ramps : Ramps
    cumulative : bool, default=False
        Score the shares below the tops instead.
    """

    def __init__(self, ramps: Ramps, *, cumulative: bool = False) -> None:
        self.ramps, self._cumulative, levels = ramps, cumulative, ramps.levels
        self.low, self.high = levels[2], levels[0]
        if not cumulative:
            self.low = np.append(self.low, 1.0) - np.append(0.0, self.high)
            self.high = np.append(self.high, 1.0) - np.append(0.0, levels[2])

    def scores(self, answers: Answers, part: int) -> Floats:
        """The scores of one share."""
        if self._cumulative:
            return self._below(answers, part)
        return self._below(answers, part) - self._below(answers, part - 1)

    def sums(self, answers: Answers, weights: Floats) -> tuple[Floats, Floats]:
        """The sums of all shares."""
        of_all, of_squares, before = [], [], None
        for part in range(self.n_parts):
            below = self._below(answers, part)
            one = below if before is None or self._cumulative else below - before
            of_all.append(weights @ one)
            of_squares.append(weights @ one**2)
            before = below
        return np.array(of_all), np.array(of_squares)

    def _below(self, answers: Answers, ramp: int) -> Floats:
        if not 0 <= ramp < self.ramps.levels.shape[1]:
            return np.full(len(answers), float(ramp >= 0))
        return np.asarray(self.ramps.levels[:, ramp][self.ramps.kinds(answers.astype(np.int64), ramp)])


def code_scores(law: CodeLaw) -> "SupportScores | SignScores":
    """The scores of the codes of a law.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.learning._answer_scores import code_scores
    >>> from skldp.mechanisms import RandomizedResponse, integer_law
    >>> scores = code_scores(integer_law(RandomizedResponse(np.log(3), 2)))
    >>> scores.scores(np.array([0, 1], dtype=np.uint8), 0).round(6).tolist()
    [1.5, -0.5]
    """
    n = law.n_codes
    if isinstance(law, ResponseLaw):
        return _of_codes(n, (TWO_64 - (n - 1) * law.other_count) / TWO_64, law.other_count / TWO_64)
    if isinstance(law, LongitudinalResponseLaw):
        return _of_codes(n, *law.support)
    if isinstance(law, LongitudinalBitsLaw):
        return _of_bits(n, *law.support)
    if isinstance(law, LongitudinalHashingLaw):
        return _of_hashes(n, law.n_buckets, *law.support)
    if isinstance(law, UnaryLaw):
        return _of_bits(n, law.own_count / TWO_64, law.other_count / TWO_64)
    if isinstance(law, SubsetLaw):
        p = 1 - law.miss_count / TWO_64
        return _of_bits(n, p, (law.set_size - p) / (n - 1))
    if isinstance(law, HashingLaw):
        g, other = law.n_buckets, law.other_count / TWO_64
        return _of_hashes(n, g, (TWO_64 - (g - 1) * law.other_count) / TWO_64, other)
    if isinstance(law, HadamardLaw):
        return SignScores(law)
    raise ValueError(f"The law of a category must be one that is estimated from. Got {law.name!r} instead.")


def likeliest_codes(law: CodeLaw, answers: Answers) -> Floats:
    """The shares of codes under which the answers are likeliest.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.learning._answer_scores import likeliest_codes
    >>> from skldp.mechanisms import RandomizedResponse, integer_law
    >>> law = integer_law(RandomizedResponse(np.log(3), 2))
    >>> likeliest_codes(law, np.repeat([0, 1], [70000, 30000]).astype(np.uint8)).round(2).tolist()
    [0.9, 0.1]
    """
    # A code is this much likelier where an answer supports it, of whichever of these laws.
    more = math.expm1(law.epsilon)
    if isinstance(law, ResponseLaw | LongitudinalResponseLaw):
        counts = np.bincount(answers, minlength=law.n_codes).astype(np.float64)
        given = np.flatnonzero(counts)

        def back_to_codes(parts: Floats) -> Floats:
            whole = np.full(law.n_codes, parts.sum())
            whole[given] += more * parts
            return whole

        return ascend(lambda shares: 1 + more * shares[given], back_to_codes, counts[given], law.n_codes)
    if len(answers) * law.n_codes > _MOST_BITS:
        raise ValueError(f"The likeliest shares need at most {_MOST_BITS:,} bits of all answers. Got more instead.")
    parts = code_scores(law)
    held = np.empty((len(answers), law.n_codes), dtype=np.float32)
    for code in range(law.n_codes):
        held[:, code] = parts.supports(answers, code)

    def mixture(shares: Floats) -> Floats:
        return np.asarray(1 + more * (held @ shares.astype(np.float32)), dtype=np.float64)

    def back(sums: Floats) -> Floats:
        return np.asarray(sums.sum() + more * (sums.astype(np.float32) @ held), dtype=np.float64)

    return ascend(mixture, back, np.ones(len(answers)), law.n_codes)


def numbers(law: UnitLaw, answers: Answers) -> Scores:
    """The scores of a number in [-1, 1] itself."""
    if isinstance(law, BinsLaw | LongitudinalHistogramLaw):
        raise ValueError("Means need answers without bias, such as those of knots. Got a law of bins instead.")
    ends = [law.value(answer) for answer in _outer_answers(law)]
    return Scores(each(law.value, answers), min(ends), max(ends), two_valued=law.n_answers == 2)


def grouped_number(law: GroupLaw, answers: Answers, place: int) -> Scores:
    """The scores of one of several numbers in [-1, 1] that are answered for together, or some of them."""
    largest = _largest_of_group(law)
    scores = each(lambda answer: law.values(answer)[place], answers)
    return Scores(scores, -largest, largest, two_valued=not isinstance(law, SampledLaw))


def grouped_sums(law: GroupLaw, answers: Answers) -> tuple[Floats, Floats, float]:
    """Return the sums of all numbers' scores and of their squares, and the largest score. Each report is read once."""
    different, place = whole_answers(answers)
    sums = np.zeros((2, law.n_values))
    for answer, count in zip(different, np.bincount(place).tolist(), strict=True):
        values = np.array(law.values(answer))
        sums += count * values, count * values**2
    return sums[0], sums[1], _largest_of_group(law)


def _largest_of_group(law: GroupLaw) -> float:
    if isinstance(law, SampledLaw) and isinstance(law.of_sampled, UnitLaw):
        of_one = max(abs(law.of_sampled.value(answer)) for answer in _outer_answers(law.of_sampled))
        return of_one * law.n_values / law.n_sampled
    # Signs of one magnitude.
    return max(map(abs, law.values(0)))


def squares(law: UnitLaw, answers: Answers) -> Scores:
    """The scores of the square of a number in [-1, 1], but for the rounding to a lattice."""
    lattice, share = lattice_of(law, "Variances")
    integers = lattice.n_cells, lattice.n_inner, lattice.base, lattice.extra
    constant, _, square = lattice_variance(*integers, 2.0**lattice.step_exponent)

    def score(answer: int) -> float:
        return (law.value(answer) ** 2 - constant) / (1 + square) / share if answer < lattice.n_cells else 0.0

    ends = [score(0), score(lattice.n_cells // 2), 0.0]
    return Scores(each(score, answers), min(ends), max(ends))


def lattice_of(law: UnitLaw, what: str) -> tuple[LatticeLaw, float]:
    """Return the lattice that a law is, or mixes in, and the share of the answers that are of it."""
    # The answer shows which law of a mixture it is from; few answers identify no squares and no bins.
    lattice = law.lattice if isinstance(law, MixtureLaw) else law
    if not isinstance(lattice, LatticeLaw):
        raise ValueError(f"{what} need a law of a lattice, such as 'square_wave'. Got {law.name!r} instead.")
    return lattice, law.lattice_count / TWO_64 if isinstance(law, MixtureLaw) else 1.0


def number_parts(law: UnitLaw, knots: Floats, *, spread: bool = False) -> CellScores:
    """Return the scores of the shares at knots, where all numbers are, or of the bins around them.

    Shapes: knots (n_knots,).
    """
    if isinstance(law, TwoAnswersLaw | ThreeAnswersLaw) and len(knots) <= law.n_answers:
        return CellScores(_few_response(law, knots), _as_cells)
    lattice, share = lattice_of(law, "Distributions")
    starts, response = lattice_response(lattice, knots, spread=spread)
    n_groups = response.shape[1]
    if isinstance(law, MixtureLaw):
        response = np.hstack([share * response, (1 - share) * _few_response(law.few, knots)])

    def cells(answers: Answers) -> npt.NDArray[np.int64]:
        found = np.searchsorted(starts, answers.astype(np.int64), side="right") - 1
        return np.where(answers < lattice.n_cells, found, n_groups + answers.astype(np.int64) - lattice.n_cells)

    return CellScores(response, cells)


def _of_bits(n_codes: int, p: float, q: float) -> SupportScores:
    """Answers with a bit for each code, the first one the highest."""

    def held(answers: Answers, weights: Floats) -> Floats:
        blocks = range(0, len(answers), _ROWS)
        sums = [weights[i : i + _ROWS] @ bits(answers[i : i + _ROWS], n_codes) for i in blocks]
        return np.asarray(sum(sums, np.zeros(n_codes)))

    def supports(answers: Answers, code: int) -> npt.NDArray[np.bool_]:
        place = n_codes - 1 - code
        if answers.ndim == 1:
            return np.asarray(answers >> answers.dtype.type(place) & answers.dtype.type(1), dtype=bool)
        return np.asarray(answers[:, -1 - place // 8] >> place % 8 & 1, dtype=bool)

    return SupportScores(n_codes, p, q, supports, held)


def _of_codes(n_codes: int, p: float, q: float) -> SupportScores:
    """Answers that are codes."""
    return SupportScores(n_codes, p, q, np.equal, lambda a, w: np.bincount(a, w, n_codes).astype(np.float64))


def _of_hashes(n: int, g: int, p: float, other: float) -> SupportScores:
    """Answers that support all codes which their hash function takes to their bucket."""
    n_digits = number_of_digits(n, g)

    def supports(answers: Answers, code: int) -> npt.NDArray[np.bool_]:
        hashes, buckets = np.divmod(answers.astype(np.int64), g)
        return np.asarray(linear_hash(hashes + 1, np.full_like(hashes, code), g, n_digits) == buckets)

    def held(answers: Answers, weights: Floats) -> Floats:
        return np.asarray(support_sums(answers.astype(np.int64), n, g, weights), dtype=np.float64)

    return SupportScores(n, p, support_of_others(p, other, g, n), supports, held)


def bits(answers: Answers, n_codes: int) -> npt.NDArray[np.uint8]:
    """The bits of answers, shape (n, n_codes)."""
    in_bytes = answers if answers.ndim == 2 else answers.astype(answers.dtype.newbyteorder(">")).view(np.uint8)
    return np.unpackbits(in_bytes.reshape(len(answers), -1), axis=1)[:, -n_codes:]


def _few_response(law: TwoAnswersLaw | ThreeAnswersLaw, knots: Floats) -> Floats:
    """Return the chances of few answers, which are linear in the number and in its magnitude."""
    if isinstance(law, TwoAnswersLaw):
        plus = 0.5 + knots * (law.slope / TWO_64)
        return np.stack([1 - plus, plus], axis=1)
    # Quotients first: an array times a large integer is none of doubles in every version of numpy.
    zero = law.zero / TWO_64 - np.abs(knots) * (law.zero_lost / TWO_64)
    lean = knots * ((law.zero_lost + 2 * law.wrong_lost) / TWO_64)
    return np.stack([(1 - zero - lean) / 2, zero, (1 - zero + lean) / 2], axis=1)


def _outer_answers(law: UnitLaw) -> list[int]:
    """Among which are those of the least and the largest value."""
    if isinstance(law, MixtureLaw):
        return [*_outer_answers(law.lattice), *(law.lattice.n_answers + one for one in _outer_answers(law.few))]
    if isinstance(law, BitsLaw):
        # Either sign, of no bit and of all bits of the magnitude.
        half = law.n_answers // 2
        return [0, half - 1, half, law.n_answers - 1]
    return [0, law.n_answers - 1]


def each(value: Callable[[int], float], answers: Answers) -> Floats:
    """A value for each answer, asked once of those that are the same."""
    different, place = whole_answers(answers)
    return np.array([value(one) for one in different], dtype=np.float64)[place]


def whole_answers(answers: Answers) -> tuple[list[int], npt.NDArray[np.intp]]:
    """The different answers as integers, and which of them each answer is."""
    different, place = np.unique(answers, axis=0, return_inverse=True)
    whole = [int(one) if one.ndim == 0 else int.from_bytes(one.tobytes(), "big") for one in different]
    return whole, place.reshape(-1)


def _as_cells(answers: Answers) -> npt.NDArray[np.int64]:
    return answers.astype(np.int64)
