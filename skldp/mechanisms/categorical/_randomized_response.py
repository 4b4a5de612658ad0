r"""Randomized response over classes, as exact integer laws.

Classes are codes 0 to C - 1. A mechanism releases each other code with probability :math:`t / 2^{64}` and else the
true one, so that its law is an exact matrix.
"""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from skldp._arrays import Floats, Ints, Words
from skldp._checks import check_epsilon, check_integer
from skldp.domains._domain import Codes
from skldp.laws._categories import ResponseLaw
from skldp.laws._integers import IntegerLaw
from skldp.laws._odds import TWO_64, check_representable, least_count, log_ratio
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._rows import RowMechanism, Workspace

# With more classes, too many 16-bit values would be undecided.
_LARGEST_TABLED = 4096


class CodeShifts:
    """Law of the shift of a code modulo C: each of 1 to C - 1 with one probability, else 0."""

    def __init__(self, n_classes: int, count: int) -> None:
        self._n_classes = np.uint64(n_classes)
        # Draws below edges[s] and not below edges[s - 1] add s + 1; draws from the last edge on add nothing.
        self._edges = np.arange(1, n_classes, dtype=np.uint64) * np.uint64(count)
        self._shifts = np.append(np.arange(1, n_classes), 0)
        self._table = self._by_leading_bits() if n_classes <= _LARGEST_TABLED else None

    def add(self, codes: Ints, noise: Noise, out: Ints, workspace: Workspace) -> None:
        """Write the answers to codes of shape (n, 1), which must not overlap `out`."""
        if self._table is None:
            out[...] = self._shift(noise.words(codes.shape))
        else:
            words = workspace.take("words", codes.shape, np.uint16)
            decided = workspace.take("decided", codes.shape, np.int16)
            out[...] = self._table.take(noise.fill(words), mode="clip", out=decided)
            undecided = np.flatnonzero(decided < 0)
            further = noise.at(undecided, codes.size).words(undecided.size) >> np.uint64(16)
            draws = (words.reshape(-1)[undecided].astype(np.uint64) << np.uint64(48)) | further
            out.reshape(-1)[undecided] = self._shift(draws)
        out += codes
        # Modulo n_classes: below 0, an unsigned integer wraps to a large one.
        unsigned = out.view(np.uint64)
        np.minimum(unsigned, unsigned - self._n_classes, out=unsigned)

    def _shift(self, draws: Words) -> Ints:
        return self._shifts[np.searchsorted(self._edges, draws, side="right")]

    def _by_leading_bits(self) -> npt.NDArray[np.int16]:
        """Return the shift that each value of a draw's leading 16 bits decides, or -1 where an edge lies within."""
        leading, rest = self._edges >> np.uint64(48), self._edges & np.uint64(2**48 - 1)
        first = (leading + (rest > 0)).astype(np.intp)
        table = np.repeat(self._shifts.astype(np.int16), np.diff(first, prepend=0, append=2**16))
        table[leading[rest > 0].astype(np.int64)] = -1
        return table


@dataclass(frozen=True)
class CategoryMechanism(RowMechanism):
    """Base class of mechanisms of one code, from 0 to ``n_classes - 1``, at an epsilon."""

    epsilon: float
    n_classes: int

    _unit: ClassVar[str] = "record"
    _basis: ClassVar[str] = "exact, from the 64-bit integer probabilities that are sampled"
    _most_classes: ClassVar[int | None] = None

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_integer("n_classes", self.n_classes, least=1, most=self._most_classes)
        # numpy's integers overflow where Python's do not.
        object.__setattr__(self, "n_classes", int(self.n_classes))

    @property
    @abstractmethod
    def exact_epsilon(self) -> float:
        """The exact worst-case log-likelihood ratio of what is sampled, rounded up."""

    @cached_property
    def domain(self) -> Codes:
        """The codes 0 to ``n_classes - 1``."""
        return Codes((self.n_classes,))

    @property
    def integer_law(self) -> IntegerLaw:
        """The integers that are sampled; a single class has none."""
        return self._integer_law() if self.n_classes > 1 else super().integer_law

    def _integer_law(self) -> IntegerLaw:
        """Return the law of two classes or more."""
        return super().integer_law

    def guarantee(self, unit: str | None = None) -> PrivacyGuarantee:
        """Return the exact guarantee of one release."""
        return PrivacyGuarantee(self.exact_epsilon, unit=unit or self._unit, stated=self.epsilon, basis=self._basis)


@dataclass(frozen=True)
class FavouringMechanism(CategoryMechanism):
    """Base class of mechanisms with a set of answers for each category, which are likelier than the others.

    A draw answers uniformly from the category's own answers or from the others.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_classes > 1:
            own, others = self._sizes
            largest = (others * TWO_64 - 1) // (own + others)
            check_representable(self.epsilon, self.exact_epsilon, log_ratio((TWO_64 - largest) * others, largest * own))

    @property
    @abstractmethod
    def _sizes(self) -> tuple[int, int]:
        """Numbers of own answers and of others, up to a common factor."""

    @cached_property
    def miss_count(self) -> int:
        """Number of 2^64 draws that answer with one of the others; 0 for a single category."""
        own, others = self._sizes
        return least_count(self.epsilon, others, n_own=own, n_counted=others) if self.n_classes > 1 else 0

    @property
    def own_count(self) -> int:
        """Number of 2^64 draws that answer with one of the category's own; all of them for a single category."""
        return TWO_64 - self.miss_count

    @cached_property
    def exact_epsilon(self) -> float:
        """The exact worst-case log-likelihood ratio of what is sampled, rounded up."""
        own, others = self._sizes
        held, missed = self.own_count * others, self.miss_count * own
        return log_ratio(held, missed) if held > missed > 0 else 0.0


@dataclass(frozen=True)
class CodeMechanism(RowMechanism):
    """Base class of mechanisms of rows of one code, shape (n, 1), that release int64 codes."""

    released_dtype: ClassVar[np.dtype] = np.dtype(np.int64)

    @property
    @abstractmethod
    def domain(self) -> Codes:
        """The codes of the classes."""

    @property
    @abstractmethod
    def flip_matrix(self) -> Floats:
        """The probability of releasing column j when the true code is row i, shape (n_classes, n_classes)."""

    @abstractmethod
    def support_probabilities(self) -> tuple[float, float]:
        """Return the probabilities that the true code and that any single other code is released."""

    def original_second_moment(self, second_moment: Floats, mean: Floats) -> Floats:
        """Return the mean square of the true code, from that of the released one."""
        (n,) = self.domain.sizes
        p, q = self.support_probabilities()
        return (second_moment - q * ((n - 1) * n * (2 * n - 1) // 6)) / (p - q)

    def output_law(self, codes: npt.ArrayLike) -> Floats:
        """Return the law of the released code for each true code: one row of probabilities each."""
        return np.asarray(self.flip_matrix[self._inside(codes)])


@dataclass(frozen=True)
class GeneralizedRandomizedResponse(CategoryMechanism, CodeMechanism):
    """Base class of laws that release the true code with one probability and each other code with another."""

    _unit: ClassVar[str] = "label"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_classes > 1:
            exact, largest = self.exact_epsilon, (TWO_64 - 1) // self.n_classes
            check_representable(self.epsilon, exact, log_ratio(TWO_64 - largest * (self.n_classes - 1), largest))

    @cached_property
    def other_count(self) -> int:
        """Number of 2^64 draws that release each single other code; 0 for a single class."""
        return 0 if self.n_classes == 1 else self._count_of_others()

    @cached_property
    def keep_count(self) -> int:
        """Number of 2^64 draws that release the true code."""
        return TWO_64 - self.other_count * (self.n_classes - 1)

    @cached_property
    def exact_epsilon(self) -> float:
        """The exact worst-case log-likelihood ratio of what is sampled, rounded up."""
        return log_ratio(self.keep_count, self.other_count) if self.keep_count > self.other_count > 0 else 0.0

    @property
    def code_counts(self) -> tuple[int, int, int]:
        """Number of codes, `other_count`, and 0."""
        return self.n_classes, self.other_count, 0

    def _integer_law(self) -> IntegerLaw:
        return ResponseLaw(self.n_classes, self.other_count)

    @property
    def report_bits(self) -> int:
        """Length of a report in bits."""
        return (self.n_classes - 1).bit_length()

    @property
    def keep_probability(self) -> float:
        """The probability that the true code is released."""
        return self.keep_count / TWO_64

    @property
    def other_probability(self) -> float:
        """The probability of each single other code."""
        return self.other_count / TWO_64

    def support_probabilities(self) -> tuple[float, float]:
        """Return the probabilities that the true code and that any single other code is released."""
        return self.keep_probability, self.other_probability

    @property
    def flip_matrix(self) -> Floats:
        """The probability of releasing column j when the true code is row i, shape (n_classes, n_classes)."""
        matrix = np.full((self.n_classes, self.n_classes), self.other_probability)
        np.fill_diagonal(matrix, self.keep_probability)
        return matrix

    def log_likelihood(self, released: npt.ArrayLike, codes: npt.ArrayLike) -> Floats:
        """Return the natural log of the probability of each released code given each true code (broadcast)."""
        same = self._inside(released) == self._inside(codes)
        with np.errstate(divide="ignore"):
            kept, other = np.log([self.keep_probability, self.other_probability])
        return np.asarray(np.where(same, kept, other))

    @abstractmethod
    def _count_of_others(self) -> int:
        """Return `other_count` for two classes or more."""

    @cached_property
    def _code_shifts(self) -> CodeShifts:
        return CodeShifts(self.n_classes, self.other_count)

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        if self.n_classes == 1:
            out[...] = rows
        else:
            self._code_shifts.add(rows, noise, out, workspace)


@dataclass(frozen=True)
class RandomizedResponse(GeneralizedRandomizedResponse):
    r"""k-ary randomized response.

    Parameters
    ----------
    epsilon : float
        Natural-log budget of one answer.
    n_classes : int
        Number C of classes. A single class is released unchanged, at epsilon 0.

    Raises
    ------
    ValueError
        If a parameter is out of range, or epsilon too small for 64-bit probabilities.

    Notes
    -----
    .. math:: P(y' = y) = \frac{e^\varepsilon}{e^\varepsilon + C - 1}, \quad
              P(y' = z) = \frac{1}{e^\varepsilon + C - 1} \text{ for each } z \ne y

    The probability of each other class is rounded up to an integer out of 2^64, so that the exact epsilon never exceeds
    `epsilon`; it is within 1e-9 of it up to epsilon = 20 and saturates near 44.

    References
    ----------
    Kairouz, Oh and Viswanath, "Extremal mechanisms for local differential privacy", JMLR 2016; BitRand, Eq. 3.

    Examples
    --------
    >>> from skldp.mechanisms import RandomizedResponse
    >>> print(RandomizedResponse(1.0, 3).flip_matrix.round(3).tolist()[0])
    [0.576, 0.212, 0.212]
    """

    def _count_of_others(self) -> int:
        return least_count(self.epsilon, self.n_classes - 1)
