"""Categories released as a bit for each, by the name of their law, and the choice of the best one."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from skldp._arrays import Floats
from skldp._checks import check_choice
from skldp.laws._categories import SubsetLaw, UnaryLaw
from skldp.laws._hashing import MOST_BUCKETS, HadamardLaw, HashingLaw
from skldp.laws._integers import CodeLaw, is_prime
from skldp.laws._odds import TWO_64, least_count
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._rows import Workspace
from skldp.mechanisms.categorical._frequency import mean_variance
from skldp.mechanisms.categorical._randomized_response import CategoryMechanism, RandomizedResponse

# Beyond this the best number of buckets is above the largest one.
_LARGEST_EPSILON = 40.0


def original_second_moment_of(columns: Sequence["OneHotMechanism"], second_moment: Floats, mean: Floats) -> Floats:
    """Convert the moments of released bits, of mean q + (p - q) x given x, to those of the one-hot encoding."""
    q = np.repeat([column.q for column in columns], [column.n_classes for column in columns])
    gain = np.repeat([column.p - column.q for column in columns], [column.n_classes for column in columns])
    products = second_moment - np.outer(q, mean) - np.outer(mean, q) + np.outer(q, q)
    original: Floats = products / np.outer(gain, gain)
    start = 0
    for column in columns:
        own = slice(start, start := start + column.n_classes)
        original[own, own] = np.diag((mean[own] - q[own]) / gain[own])
    return original


@dataclass(frozen=True)
class OneHotMechanism(CategoryMechanism):
    """Base class of releases of a code as bits: 1 with probability `p` for the true category, `q` for any other."""

    released_dtype: ClassVar[np.dtype] = np.dtype(bool)
    # The working arrays take three bytes per number, fewer than elsewhere.
    block_cells: ClassVar[int] = 262_144

    @property
    def n_outputs(self) -> int:
        return self.n_classes

    @property
    def worst_case_variance(self) -> float:
        """The mean over the categories of the variance that one report gives to an unbiased frequency."""
        return mean_variance(self.p, self.q, self.n_classes)

    def original_second_moment(self, second_moment: Floats, mean: Floats) -> Floats:
        """Return the mean products of the one-hot encoding: the frequencies, as a diagonal matrix."""
        return original_second_moment_of([self], second_moment, mean)

    def output_law(self, codes: npt.ArrayLike) -> Floats:
        """Return the probability of a 1 in each column, one row per true code."""
        own = self._inside(codes).reshape(-1, 1)
        return np.where(own == np.arange(self.n_classes), self.p, self.q)

    def _encode(self, rows: np.ndarray, out: np.ndarray, workspace: Workspace) -> None:
        out[...] = False
        out[np.arange(len(rows)), rows[:, 0]] = True

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        if self.n_classes == 1:
            self._encode(rows, out, workspace)
        else:
            self.law.draw_bits(rows, noise, out, workspace)


@dataclass(frozen=True)
class UnaryEncoding(OneHotMechanism):
    """Unary encoding, symmetric (SUE, RAPPOR) or optimized (OUE): Wang et al., USENIX Security 2017."""

    _odds: ClassVar[tuple[int, int, int]] = (1, 1, 1)

    variant: Literal["sue", "oue"] = "oue"

    def __post_init__(self) -> None:
        check_choice("variant", self.variant, ("sue", "oue"))
        super().__post_init__()

    @cached_property
    def _count(self) -> int:
        # Two bits differ between two categories: both are informative under SUE, and one is a fair coin under OUE.
        return least_count(self.epsilon / (2 if self.variant == "sue" else 1))

    def _law_of(self, count: int) -> CodeLaw:
        return UnaryLaw(self.n_classes, TWO_64 // 2 if self.variant == "oue" else TWO_64 - count, count)

    @property
    def code_counts(self) -> tuple[int, int, int]:
        """Number of codes, and the counts of a 1 for another category and for the true one; all for a single one."""
        if self.n_classes == 1:
            return 1, 0, TWO_64
        law = self.law
        assert isinstance(law, UnaryLaw)
        return law.n_codes, law.other_count, law.own_count

    @property
    def report_bits(self) -> int:
        return self.n_classes


@dataclass(frozen=True)
class OneHotRandomizedResponse(OneHotMechanism):
    """k-ary randomized response whose answer is one-hot, in the shape of the unary encodings."""

    _odds = RandomizedResponse._odds
    _law_of = RandomizedResponse._law_of


@dataclass(frozen=True)
class SubsetSelection(OneHotMechanism):
    """Subset selection of w = max(1, [k / (e^eps + 1)]) categories (Ye and Barg, 2018)."""

    # Each member costs a few calls, which more rows share.
    block_cells: ClassVar[int] = 1 << 21

    @cached_property
    def set_size(self) -> int:
        # In this form nothing overflows.
        odds = math.exp(-self.epsilon)
        return max(1, round(self.n_classes * odds / (1 + odds)))

    @property
    def _odds(self) -> tuple[int, int, int]:
        # (k - w) / w times as many sets lack the true category as hold it.
        return self.set_size, self.n_classes - self.set_size, self.n_classes - self.set_size

    def _law_of(self, count: int) -> CodeLaw:
        return SubsetLaw(self.n_classes, self.set_size, count)


@dataclass(frozen=True)
class OneHotHadamard(OneHotMechanism):
    """Hadamard response of one block (Acharya, Sun and Zhang, AISTATS 2019, Section 3)."""

    _most_classes: ClassVar[int | None] = 2**20

    @property
    def _odds(self) -> tuple[int, int, int]:
        half = self._n_reports // 2
        return half, half, half

    @property
    def _n_reports(self) -> int:
        return 1 << self.n_classes.bit_length()

    def _law_of(self, count: int) -> CodeLaw:
        return HadamardLaw(self.n_classes, 1, self._n_reports, count)


@dataclass(frozen=True)
class OneHotLocalHashing(OneHotMechanism):
    """Optimized local hashing (Wang et al., USENIX Security 2017, Section 4.4) with linear hash functions."""

    _most_classes: ClassVar[int | None] = 2**20

    @cached_property
    def n_buckets(self) -> int:
        """Number g of buckets: a prime."""
        odds = math.exp(min(self.epsilon, _LARGEST_EPSILON))
        aim = math.floor(min(odds + 1, self.n_classes, MOST_BUCKETS))
        below, above = aim, aim + 1
        while not is_prime(below):
            below -= 1
        while not is_prime(above):
            above += 1

        def variance(g: int) -> float:
            p, other = odds / (odds + g - 1), 1 / (odds + g - 1)
            return mean_variance(p, HashingLaw.of_others(p, other, g, self.n_classes), self.n_classes)

        return above if above <= MOST_BUCKETS and variance(above) < variance(below) else below

    @property
    def _odds(self) -> tuple[int, int, int]:
        return 1, self.n_buckets - 1, 1

    def _law_of(self, count: int) -> CodeLaw:
        return HashingLaw(self.n_classes, self.n_buckets, count)


_ONE_HOT: dict[str, Callable[[float, int], OneHotMechanism]] = {
    "krr": OneHotRandomizedResponse,
    "sue": lambda epsilon, n_classes: UnaryEncoding(epsilon, n_classes, "sue"),
    "oue": lambda epsilon, n_classes: UnaryEncoding(epsilon, n_classes, "oue"),
    "subset": SubsetSelection,
    "hashing": OneHotLocalHashing,
    "hadamard": OneHotHadamard,
}
#: Names of the mechanisms of a column of categories; each releases a bit per category.
CATEGORICAL_MECHANISMS = tuple(_ONE_HOT)
# A shorter report is worth 5% of variance.
_TOLERANCE = 1.05


def make_categorical_mechanism(name: str, epsilon: float, n_classes: int) -> OneHotMechanism:
    """Make the mechanism of one of :data:`CATEGORICAL_MECHANISMS`, or of ``"best"``."""
    return best_categorical_mechanism(epsilon, n_classes)[1] if name == "best" else _ONE_HOT[name](epsilon, n_classes)


def best_categorical_mechanism(epsilon: float, n_classes: int) -> tuple[str, OneHotMechanism]:
    """Return the mechanism of the shortest report among those of nearly the least worst-case variance."""
    made = {name: make(epsilon, n_classes) for name, make in _ONE_HOT.items()}
    most = _TOLERANCE * min(mechanism.worst_case_variance for mechanism in made.values())
    near = [name for name, mechanism in made.items() if mechanism.worst_case_variance <= most]
    best = min(near, key=lambda name: made[name].report_bits)
    return best, made[best]
