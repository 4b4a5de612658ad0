"""Categories released one-hot, a bit for each: randomized response and the unary encodings."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from skldp._checks import check_epsilon, check_whole
from skldp.mechanisms._categorical.frequency import mean_variance
from skldp.mechanisms._categorical.randomized_response import RandomizedResponse
from skldp.mechanisms._categorical.reports import ReportMechanism
from skldp.mechanisms._domain import Codes
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._odds import TWO_64, bernoulli, check_representable, least_count, log_ratio
from skldp.mechanisms._rows import RowMechanism, Workspace

__all__ = ["OneHotMechanism", "OneHotOfLaw", "OneHotRandomizedResponse", "UnaryEncoding", "original_second_moment_of"]


@dataclass(frozen=True)
class OneHotMechanism(RowMechanism):
    """Base of the mechanisms that take rows of one code, shape (n, 1), and release a bit for each category.

    The bit of the true category is 1 with probability `p`, and that of any single other one with probability `q`.
    A record hands its columns parts of its rows and of `out`, which are not contiguous.
    """

    # Three bytes for each number are worked on, fewer than elsewhere.
    block_cells: ClassVar[int] = 262_144

    epsilon: float
    n_classes: int

    @property
    @abstractmethod
    def p(self) -> float:
        """The probability that the bit of the true category is released as 1."""

    @property
    @abstractmethod
    def q(self) -> float:
        """The probability that the bit of any single other category is released as 1."""

    @property
    @abstractmethod
    def exact_epsilon(self) -> float:
        """The exact worst-case log-likelihood ratio of what is sampled, rounded up."""

    @cached_property
    def domain(self) -> Codes:
        """The codes 0 to ``n_classes - 1``."""
        return Codes((self.n_classes,))

    @property
    def n_outputs(self) -> int:
        """One bit for each category."""
        return self.n_classes

    @property
    def report_bits(self) -> int:
        """How many bits a report takes that is sent as short as it can be."""
        return self.n_classes

    @property
    def worst_case_variance(self) -> float:
        """The mean over the categories of the variance that one report gives to an unbiased frequency."""
        return mean_variance(self.p, self.q, self.n_classes)

    def output_dtype(self, dtype: np.dtype) -> np.dtype:
        """The type of a release: bool."""
        return np.dtype(bool)

    def original_second_moment(
        self, second_moment: npt.NDArray[np.float64], mean: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """The mean of products of the one-hot encoding: the frequencies on the diagonal, and 0 beside it."""
        return original_second_moment_of([self], second_moment, mean)

    def output_law(self, codes: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The probability of a 1 in each column, one row per true code."""
        own = self.domain.clip(self.domain.as_rows(codes)).rows.reshape(-1, 1)
        return np.where(own == np.arange(self.n_classes), self.p, self.q)

    def guarantee(self, unit: str = "record") -> PrivacyGuarantee:
        """The exact guarantee of one release."""
        basis = "exact, from the 64-bit integer probabilities that are sampled"
        return PrivacyGuarantee(self.exact_epsilon, unit=unit, stated=self.epsilon, basis=basis)

    def _encode(self, rows: np.ndarray, out: np.ndarray, workspace: Workspace) -> None:
        out[...] = False
        out[np.arange(len(rows)), rows[:, 0]] = True


@dataclass(frozen=True)
class UnaryEncoding(OneHotMechanism):
    r"""One bit per category, each flipped on its own: symmetric (SUE, RAPPOR's) or optimised (OUE).

    Parameters
    ----------
    epsilon : float
        Natural-log budget of one category.
    n_classes : int
        How many categories there are. A single one is released as it is, at epsilon 0.
    variant : {"sue", "oue"}, default="oue"

    Raises
    ------
    ValueError
        If a parameter is out of range, or epsilon too small for 64-bit probabilities.

    Notes
    -----
    The bit of the true category is 1 with probability p, any other bit with probability q:

    .. math:: \text{SUE: } p = \frac{e^{\varepsilon/2}}{e^{\varepsilon/2} + 1},\ q = 1 - p; \qquad
              \text{OUE: } p = \frac12,\ q = \frac{1}{e^\varepsilon + 1}; \qquad
              e^\varepsilon = \frac{p (1 - q)}{(1 - p) q}

    q is rounded up to an integer out of 2^64.

    References
    ----------
    Wang, Blocki, Li and Jha, "Locally differentially private protocols for frequency estimation", USENIX Security
    2017, Sections 4.2 and 4.3; Erlingsson, Pihur and Korolova, "RAPPOR", CCS 2014.

    Examples
    --------
    >>> from skldp.mechanisms import UnaryEncoding
    >>> law = UnaryEncoding(1.0, 4, "oue")
    >>> law.p, round(law.q, 4), law.exact_epsilon <= 1.0
    (0.5, 0.2689, True)
    """

    variant: Literal["sue", "oue"] = "oue"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_whole("n_classes", self.n_classes, least=1)
        # numpy's integers overflow where Python's do not.
        object.__setattr__(self, "n_classes", int(self.n_classes))
        if self.variant not in ("sue", "oue"):
            raise ValueError(f"variant must be 'sue' or 'oue'. Got {self.variant!r} instead.")
        if self.n_classes > 1:
            check_representable(self.epsilon, self.exact_epsilon, self._factor * 2.0**-62)

    @cached_property
    def other_count(self) -> int:
        """How many of 2^64 draws set the bit of another category; 0 for a single category."""
        return 0 if self.n_classes == 1 else least_count(self.epsilon / self._factor)

    @property
    def own_count(self) -> int:
        """How many of 2^64 draws set the bit of the true category; all of them for a single category."""
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
    def _factor(self) -> int:
        # Two bits differ between two categories. Under SUE both tell as much; under OUE the true one's is a fair coin.
        return 2 if self.variant == "sue" else 1

    def log_likelihood(self, released: npt.ArrayLike, codes: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The natural log of the probability of each released row of bits given each true code."""
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
    """Base of the mechanisms whose answer of another law, `law`, is written out as bits."""

    def __post_init__(self) -> None:
        # Refuses what cannot be answered with.
        object.__setattr__(self, "n_classes", self.law.n_classes)

    @property
    @abstractmethod
    def law(self) -> RandomizedResponse | ReportMechanism:
        """The law of the answer, over codes."""

    @property
    def exact_epsilon(self) -> float:
        """The exact worst-case log-likelihood ratio of what is sampled, rounded up."""
        return self.law.exact_epsilon


@dataclass(frozen=True)
class OneHotRandomizedResponse(OneHotOfLaw):
    """k-ary randomized response whose answer is one-hot, in the shape of the unary encodings.

    Parameters
    ----------
    epsilon : float
        Natural-log budget of one category.
    n_classes : int

    Examples
    --------
    >>> from skldp.mechanisms import OneHotRandomizedResponse, noise_from
    >>> OneHotRandomizedResponse(1.0, 3).release([[0], [2]], noise_from()).rows.sum(axis=1).tolist()
    [1, 1]
    """

    @cached_property
    def law(self) -> RandomizedResponse:
        """The randomized response over codes."""
        return RandomizedResponse(self.epsilon, self.n_classes)

    @property
    def report_bits(self) -> int:
        """How many bits a report takes: those of one category's code."""
        return (self.n_classes - 1).bit_length()

    @property
    def p(self) -> float:
        """The probability that the bit of the true category is released as 1."""
        return self.law.keep_probability

    @property
    def q(self) -> float:
        """The probability that the bit of any single other category is released as 1."""
        return self.law.other_probability

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        answers = workspace.take("answers", rows.shape, np.int64)
        self.law._draw(rows, noise, answers, workspace)
        self._encode(answers, out, workspace)


def original_second_moment_of(
    columns: Sequence[OneHotMechanism], second_moment: npt.NDArray[np.float64], mean: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    r"""From the moments of released bits to those of the one-hot encoding.

    A bit has the mean :math:`q + (p - q) x` given the true one x, and bits of different columns are independent given
    the record. Of one column, exactly one bit is 1, so that products are 0 and squares the bits themselves.
    """
    q = np.repeat([column.q for column in columns], [column.n_classes for column in columns])
    gain = np.repeat([column.p - column.q for column in columns], [column.n_classes for column in columns])
    products = second_moment - np.outer(q, mean) - np.outer(mean, q) + np.outer(q, q)
    original: npt.NDArray[np.float64] = products / np.outer(gain, gain)
    start = 0
    for column in columns:
        own = slice(start, start := start + column.n_classes)
        original[own, own] = np.diag((mean[own] - q[own]) / gain[own])
    return original
