"""Categories released as a bit for each: unary encodings, one-hot randomized response, and subset selection."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from skldp._arrays import Floats, Ints
from skldp._checks import check_choice
from skldp.laws._categories import SubsetLaw, UnaryLaw
from skldp.laws._integers import IntegerLaw
from skldp.laws._odds import TWO_64, check_representable, least_count, log_ratio
from skldp.mechanisms._noise import Noise, bernoulli
from skldp.mechanisms._rows import Workspace
from skldp.mechanisms.categorical._frequency import ReportMechanism, mean_variance
from skldp.mechanisms.categorical._randomized_response import CategoryMechanism, FavouringMechanism, RandomizedResponse


@dataclass(frozen=True)
class OneHotMechanism(CategoryMechanism):
    """Base class of mechanisms that take rows of one code, shape (n, 1), and release a bit for each category.

    The bit of the true category is 1 with probability `p`, and that of any single other one with probability `q`.
    """

    released_dtype: ClassVar[np.dtype] = np.dtype(bool)
    # The working arrays take three bytes per number, fewer than elsewhere.
    block_cells: ClassVar[int] = 262_144

    @property
    @abstractmethod
    def p(self) -> float:
        """The probability that the bit of the true category is released as 1."""

    @property
    @abstractmethod
    def q(self) -> float:
        """The probability that the bit of any single other category is released as 1."""

    @property
    def n_outputs(self) -> int:
        """One bit for each category."""
        return self.n_classes

    @property
    def report_bits(self) -> int:
        """Length of the shortest report in bits."""
        return self.n_classes

    @property
    def worst_case_variance(self) -> float:
        """The mean over the categories of the variance that one report gives to an unbiased frequency."""
        return mean_variance(self.p, self.q, self.n_classes)

    def original_second_moment(self, second_moment: Floats, mean: Floats) -> Floats:
        """Return the mean products of the one-hot encoding: the frequencies, as a diagonal matrix."""
        return original_second_moment_of([self], second_moment, mean)

    @property
    def mean_bit(self) -> float:
        """The mean of a released bit under uniform categories."""
        return self.q + (self.p - self.q) / self.n_classes

    def output_law(self, codes: npt.ArrayLike) -> Floats:
        """Return the probability of a 1 in each column, one row per true code."""
        own = self._inside(codes).reshape(-1, 1)
        return np.where(own == np.arange(self.n_classes), self.p, self.q)

    def _encode(self, rows: np.ndarray, out: np.ndarray, workspace: Workspace) -> None:
        out[...] = False
        out[np.arange(len(rows)), rows[:, 0]] = True


@dataclass(frozen=True)
class UnaryEncoding(OneHotMechanism):
    r"""Unary encoding: one bit per category, each flipped independently, symmetric (SUE, RAPPOR) or optimized (OUE).

    The bit of the true category is 1 with probability p, any other bit with q, rounded up to an integer out of 2^64:

    .. math:: \text{SUE: } p = \frac{e^{\varepsilon/2}}{e^{\varepsilon/2} + 1},\ q = 1 - p; \qquad
              \text{OUE: } p = \frac12,\ q = \frac{1}{e^\varepsilon + 1}; \qquad
              e^\varepsilon = \frac{p (1 - q)}{(1 - p) q}

    Wang, Blocki, Li and Jha, "Locally differentially private protocols for frequency estimation", USENIX Security 2017.
    """

    variant: Literal["sue", "oue"] = "oue"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("variant", self.variant, ("sue", "oue"))
        if self.n_classes > 1:
            check_representable(self.epsilon, self.exact_epsilon, self._factor * 2.0**-62)

    @cached_property
    def other_count(self) -> int:
        """Number of 2^64 draws that set the bit of another category; 0 for a single category."""
        return 0 if self.n_classes == 1 else least_count(self.epsilon / self._factor)

    @property
    def own_count(self) -> int:
        """Number of 2^64 draws that set the bit of the true category; all of them for a single category."""
        return TWO_64 // 2 if self.variant == "oue" and self.n_classes > 1 else TWO_64 - self.other_count

    @property
    def p(self) -> float:
        """The probability that the bit of the true category is released as 1."""
        return self.own_count / TWO_64

    @property
    def q(self) -> float:
        """The probability that the bit of any single other category is released as 1."""
        return self.other_count / TWO_64

    @cached_property
    def exact_epsilon(self) -> float:
        """The exact worst-case log-likelihood ratio of what is sampled, rounded up."""
        if self.n_classes == 1:
            return 0.0
        kept = TWO_64 - self.other_count
        return log_ratio(kept**self._factor, self.other_count**self._factor) if kept > self.other_count else 0.0

    @property
    def code_counts(self) -> tuple[int, int, int]:
        """Number of codes, `other_count` and `own_count`."""
        return self.n_classes, self.other_count, self.own_count

    def _integer_law(self) -> IntegerLaw:
        return UnaryLaw(self.n_classes, self.own_count, self.other_count)

    @property
    def _factor(self) -> int:
        # Two bits differ between two categories: both are informative under SUE, and one is a fair coin under OUE.
        return 2 if self.variant == "sue" else 1

    def log_likelihood(self, released: npt.ArrayLike, codes: npt.ArrayLike) -> Floats:
        """Return the natural log of the probability of each released row of bits given each true code."""
        ones = self.output_law(codes)
        with np.errstate(divide="ignore"):
            logs = np.log(np.where(np.asarray(released, dtype=bool), ones, 1 - ones))
        return np.asarray(logs.sum(axis=-1))

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        if self.n_classes == 1:
            self._encode(rows, out, workspace)
            return
        bernoulli(noise, self.other_count, out, workspace.take("words", out.shape, np.uint16))
        own = workspace.take("own", rows.shape, bool)
        bernoulli(noise, self.own_count, own, workspace.take("words", rows.shape, np.uint16))
        out[np.arange(len(rows)), rows[:, 0]] = own[:, 0]


@dataclass(frozen=True)
class OneHotOfLaw(OneHotMechanism):
    """Base class of mechanisms that release the answer of another law, `law`, as bits."""

    def __post_init__(self) -> None:
        # Raises on an invalid law.
        object.__setattr__(self, "n_classes", self.law.n_classes)

    @property
    @abstractmethod
    def law(self) -> RandomizedResponse | ReportMechanism:
        """The law of the answer, whose `support_probabilities` are those of the bits."""

    @property
    def report_bits(self) -> int:
        """Length of a report in bits, sent as it is drawn."""
        return self.law.report_bits

    @property
    def p(self) -> float:
        """The probability that the bit of the true category is released as 1."""
        return self.law.support_probabilities()[0]

    @property
    def q(self) -> float:
        """The probability that the bit of any single other category is released as 1."""
        return self.law.support_probabilities()[1]

    @property
    def integer_law(self) -> IntegerLaw:
        """The integer law of the answer."""
        return self.law.integer_law

    @property
    def exact_epsilon(self) -> float:
        """The exact worst-case log-likelihood ratio of what is sampled, rounded up."""
        return self.law.exact_epsilon

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        answers = workspace.take("answers", rows.shape, np.int64)
        self.law._draw(rows, noise, answers, workspace)
        self._write_bits(answers, out, workspace)

    @abstractmethod
    def _write_bits(self, answers: Ints, out: np.ndarray, workspace: Workspace) -> None:
        """Write the bits of the categories that answers support."""


@dataclass(frozen=True)
class OneHotRandomizedResponse(OneHotOfLaw):
    """k-ary randomized response whose answer is one-hot, in the shape of the unary encodings."""

    @cached_property
    def law(self) -> RandomizedResponse:
        """The randomized response over codes."""
        return RandomizedResponse(self.epsilon, self.n_classes)

    def _write_bits(self, answers: Ints, out: np.ndarray, workspace: Workspace) -> None:
        self._encode(answers, out, workspace)


def original_second_moment_of(columns: Sequence[OneHotMechanism], second_moment: Floats, mean: Floats) -> Floats:
    """Convert the moments of released bits to those of the one-hot encoding.

    A bit has the mean :math:`q + (p - q) x` given the true one x, and bits of different columns are independent given
    the record. In one column, products are 0 and squares are the bits.
    """
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
class SubsetSelection(FavouringMechanism, OneHotMechanism):
    r"""Subset selection: a set of fixed size that contains the true category more often than any other one.

    A set of w categories holds the true one with probability p; all sets with it are equally likely, and all sets
    without it. Any single other category is in the set with probability q:

    .. math:: w = \max\Bigl(1, \Bigl[\frac{k}{e^\varepsilon + 1}\Bigr]\Bigr), \quad
              p = \frac{e^\varepsilon w}{e^\varepsilon w + k - w}, \quad q = \frac{w - p}{k - 1}

    1 - p is rounded up to an integer out of 2^64. At w = 1 this is k-ary randomized response.

    Ye and Barg, "Optimal schemes for discrete distribution estimation under locally differential privacy", IEEE
    Transactions on Information Theory 2018.
    """

    # Each member costs a few calls, which more rows share.
    block_cells: ClassVar[int] = 1 << 21

    @property
    def report_bits(self) -> int:
        """Length of a report in bits: its members' codes, or a bit for each category if that is shorter."""
        return min(self.n_classes, self.set_size * (self.n_classes - 1).bit_length())

    @cached_property
    def set_size(self) -> int:
        """Size of a released set."""
        # In this form nothing overflows.
        odds = math.exp(-self.epsilon)
        return max(1, round(self.n_classes * odds / (1 + odds)))

    @property
    def _sizes(self) -> tuple[int, int]:
        # (k - w) / w times as many sets lack the true category as hold it.
        return self.set_size, self.n_classes - self.set_size

    def _integer_law(self) -> IntegerLaw:
        return SubsetLaw(self.n_classes, self.set_size, self.miss_count)

    @property
    def p(self) -> float:
        """The probability that the true category is in the set."""
        return self.own_count / TWO_64

    @property
    def q(self) -> float:
        """The probability that any single other category is in the set."""
        if self.n_classes == 1:
            return 0.0
        return float(Fraction(self.set_size * TWO_64 - self.own_count, (self.n_classes - 1) * TWO_64))

    def log_likelihood(self, released: npt.ArrayLike, codes: npt.ArrayLike) -> Floats:
        """Return the natural log of the probability of each released row of bits given each true code."""
        own = self._inside(codes).reshape(-1, 1) == np.arange(self.n_classes)
        members = np.asarray(released, dtype=bool)
        k, w = self.n_classes, self.set_size
        held, missed = (
            math.log(count) - math.log(TWO_64) - math.log(math.comb(k - 1, size)) if count else -math.inf
            for count, size in ((self.own_count, w - 1), (self.miss_count, w))
        )
        logs = np.where((members & own).any(axis=-1), held, missed)
        return np.asarray(np.where(members.sum(axis=-1) == w, logs, -math.inf))

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        if self.n_classes == 1:
            self._encode(rows, out, workspace)
            return
        # Draw other categories only; the true one then replaces any of them.
        members = noise.subsets(len(rows), self.n_classes - 1, self.set_size)
        members += members >= rows
        places = noise.integers(self.set_size, len(rows))
        held = workspace.take("held", rows.shape, bool)
        bernoulli(noise, self.own_count, held, workspace.take("words", rows.shape, np.uint16))
        holders = np.flatnonzero(held)
        members[holders, places[holders]] = rows[holders, 0]
        out[...] = False
        out[np.arange(len(rows))[:, None], members] = True
