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

from skldp._arrays import Floats
from skldp._checks import check_epsilon, check_integer
from skldp.domains._domain import Codes
from skldp.laws._categories import ResponseLaw
from skldp.laws._integers import CodeLaw, IntegerLaw
from skldp.laws._odds import TWO_64, check_representable, least_count
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._rows import RowMechanism, Workspace


@dataclass(frozen=True)
class CodeMechanism(RowMechanism):
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

    def guarantee(self, unit: str | None = None) -> PrivacyGuarantee:
        """Return the exact guarantee of one release.

        Parameters
        ----------
        unit : str, default=None
            What is protected; None means one value.
        """
        return PrivacyGuarantee(self.exact_epsilon, unit=unit or self._unit, stated=self.epsilon, basis=self._basis)


@dataclass(frozen=True)
class CategoryMechanism(CodeMechanism):
    """Base class of releases of the law of a category, by its one free count; a single class has no law."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_classes > 1:
            own, others, counted = self._odds
            # The largest count of a law whose epsilon is above 0.
            most = (counted * TWO_64 - 1) // (own + others)
            exact = self.exact_epsilon if self._count <= most else 0.0
            check_representable(self.epsilon, exact, self._law_of(most).epsilon)

    @property
    @abstractmethod
    def _odds(self) -> tuple[int, int, int]:
        """Numbers of true and of untrue answers, and how many of the untrue ones are counted."""

    @cached_property
    def _count(self) -> int:
        """Number of 2^64 draws of an untrue answer, from the epsilon."""
        own, others, counted = self._odds
        return least_count(self.epsilon, others, n_own=own, n_counted=counted)

    @abstractmethod
    def _law_of(self, count: int) -> CodeLaw:
        """Return the law of a count."""

    @cached_property
    def law(self) -> CodeLaw:
        """The law of two classes or more, whose integers are sampled."""
        return self._law_of(self._count)

    @property
    def integer_law(self) -> IntegerLaw:
        """The integers that are sampled, if a device can have them; a single class has none."""
        if self.n_classes == 1:
            return super().integer_law
        self.law.check_size()
        return self.law

    @cached_property
    def exact_epsilon(self) -> float:
        return self.law.epsilon if self.n_classes > 1 else 0.0

    @property
    def p(self) -> float:
        """The probability that a release supports the true category."""
        return self.law.support[0] if self.n_classes > 1 else 1.0

    @property
    def q(self) -> float:
        """The probability that a release supports any single other category."""
        return self.law.support[1] if self.n_classes > 1 else 0.0

    @property
    def mean_bit(self) -> float:
        """The mean of the bit of a category under uniform categories."""
        return self.q + (self.p - self.q) / self.n_classes

    @property
    def report_bits(self) -> int:
        """Length of a report in bits, sent as it is drawn."""
        return self.law.report_bits if self.n_classes > 1 else 0


@dataclass(frozen=True)
class RandomizedResponse(CategoryMechanism):
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

    released_dtype: ClassVar[np.dtype] = np.dtype(np.int64)
    _unit: ClassVar[str] = "label"

    @property
    def _odds(self) -> tuple[int, int, int]:
        return 1, self.n_classes - 1, 1

    def _law_of(self, count: int) -> CodeLaw:
        return ResponseLaw(self.n_classes, count)

    @property
    def code_counts(self) -> tuple[int, int, int]:
        """Number of codes, the count of each other code, and 0."""
        return self.n_classes, self._count if self.n_classes > 1 else 0, 0

    def support_probabilities(self) -> tuple[float, float]:
        """Return the probabilities that the true code and that any single other code is released."""
        return self.p, self.q

    @property
    def flip_matrix(self) -> Floats:
        """The probability of releasing column j when the true code is row i, shape (n_classes, n_classes)."""
        matrix = np.full((self.n_classes, self.n_classes), self.q)
        np.fill_diagonal(matrix, self.p)
        return matrix

    def log_likelihood(self, released: npt.ArrayLike, codes: npt.ArrayLike) -> Floats:
        """Return the natural log of the probability of each released code given each true code (broadcast).

        Parameters
        ----------
        released, codes : array-like of int
            Released and true codes.
        """
        same = self._inside(released) == self._inside(codes)
        with np.errstate(divide="ignore"):
            kept, other = np.log([self.p, self.q])
        return np.asarray(np.where(same, kept, other))

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        if self.n_classes == 1:
            out[...] = rows
        else:
            self.law.draw_many(rows, noise, out, workspace)
