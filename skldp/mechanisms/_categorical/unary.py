"""One record of several categorical columns: the budget split over them, each released on its own."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from skldp._untold import kind_of
from skldp.mechanisms._categorical.randomized_response import RandomizedResponse, check_codes, check_n_classes
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._odds import (
    TWO_64,
    bernoulli,
    check_epsilon,
    check_representable,
    other_count,
    log_ratio,
    round_up,
    split_epsilon,
)

__all__ = ["CategoricalRecord", "OneHotRandomizedResponse", "UnaryEncoding"]


@dataclass(frozen=True)
class UnaryEncoding:
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
    >>> from skldp.mechanisms._categorical.unary import UnaryEncoding
    >>> law = UnaryEncoding(1.0, 4, "oue")
    >>> law.p, round(law.q, 4), law.exact_epsilon <= 1.0
    (0.5, 0.2689, True)
    """

    epsilon: float
    n_classes: int
    variant: Literal["sue", "oue"] = "oue"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_n_classes(self.n_classes)
        if self.variant not in ("sue", "oue"):
            raise ValueError(f"variant must be 'sue' or 'oue'. Got {self.variant!r} instead.")
        if self.n_classes > 1:
            check_representable(self.epsilon, self.exact_epsilon, self._factor * 2.0**-62)

    @cached_property
    def lie(self) -> int:
        """How many of 2^64 draws set the bit of another category; 0 for a single category."""
        return 0 if self.n_classes == 1 else other_count(self.epsilon / self._factor)

    @property
    def p(self) -> float:
        """The probability that the bit of the true category is released as 1."""
        if self.n_classes == 1:
            return 1.0
        return 0.5 if self.variant == "oue" else (TWO_64 - self.lie) / TWO_64

    @property
    def q(self) -> float:
        """The probability that the bit of another category is released as 1."""
        return self.lie / TWO_64

    @cached_property
    def exact_epsilon(self) -> float:
        """The exact worst-case log-likelihood ratio of what is sampled, rounded up."""
        if self.n_classes == 1:
            return 0.0
        kept = TWO_64 - self.lie
        return log_ratio(kept**self._factor, self.lie**self._factor) if kept > self.lie else 0.0

    @property
    def n_outputs(self) -> int:
        """Columns of the encoding."""
        return self.n_classes

    @property
    def _factor(self) -> int:
        # Two bits differ between two categories. Under SUE both tell as much; under OUE the true one's is a fair coin.
        return 2 if self.variant == "sue" else 1

    def encode(self, codes: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Encode one-hot without noise."""
        return _one_hot(check_codes(codes, self.n_classes), self.n_classes)

    def sample(self, codes: npt.ArrayLike, noise: Noise) -> npt.NDArray[np.bool_]:
        """Release the bits of each code, shape (n, n_classes)."""
        values = check_codes(codes, self.n_classes)
        if self.n_classes == 1:
            return self.encode(values)
        bits = bernoulli(noise, self.lie, (values.size, self.n_classes))
        own = TWO_64 // 2 if self.variant == "oue" else TWO_64 - self.lie
        bits[np.arange(values.size), values] = bernoulli(noise, own, values.size)
        return bits

    def output_law(self, codes: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The probability of a 1 in each column, the columns being independent; one row per true code."""
        return np.where(self.encode(codes), self.p, self.q)

    def log_likelihood(self, released: npt.ArrayLike, codes: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The natural log of the probability of each released row of bits given each true code."""
        ones = self.output_law(codes)
        with np.errstate(divide="ignore"):
            return np.log(np.where(np.asarray(released, dtype=bool), ones, 1 - ones)).sum(axis=-1)

    def guarantee(self, unit: str = "record") -> PrivacyGuarantee:
        """The exact guarantee of one release."""
        basis = "exact, from the 64-bit integer probabilities that are sampled"
        return PrivacyGuarantee(self.exact_epsilon, unit=unit, stated=self.epsilon, basis=basis)


@dataclass(frozen=True)
class OneHotRandomizedResponse:
    """k-ary randomized response whose answer is one-hot, in the shape of the unary encodings.

    Parameters
    ----------
    epsilon : float
        Natural-log budget of one category.
    n_classes : int

    Examples
    --------
    >>> from skldp.mechanisms._noise import noise_from
    >>> from skldp.mechanisms._categorical.unary import OneHotRandomizedResponse
    >>> OneHotRandomizedResponse(1.0, 3).sample([0, 2], noise_from()).sum(axis=1).tolist()
    [1, 1]
    """

    epsilon: float
    n_classes: int

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        _ = self.law

    @cached_property
    def law(self) -> RandomizedResponse:
        """The randomized response over codes."""
        return RandomizedResponse(self.epsilon, self.n_classes)

    @property
    def p(self) -> float:
        """The probability that the column of the true category is 1."""
        return self.law.keep_probability

    @property
    def q(self) -> float:
        """The probability that the column of any single other category is 1."""
        return self.law.other_probability

    @property
    def exact_epsilon(self) -> float:
        """The exact worst-case log-likelihood ratio of what is sampled, rounded up."""
        return self.law.exact_epsilon

    @property
    def n_outputs(self) -> int:
        """Columns of the encoding."""
        return self.n_classes

    def encode(self, codes: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Encode one-hot without noise."""
        return _one_hot(check_codes(codes, self.n_classes), self.n_classes)

    def sample(self, codes: npt.ArrayLike, noise: Noise) -> npt.NDArray[np.bool_]:
        """Release each code independently, one-hot, shape (n, n_classes)."""
        return _one_hot(self.law.sample(codes, noise), self.n_classes)

    def output_law(self, codes: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The probability of a 1 in each column, exactly one of which is 1; one row per true code."""
        return self.law.output_law(codes)

    def guarantee(self, unit: str = "record") -> PrivacyGuarantee:
        """The exact guarantee of one release."""
        return self.law.guarantee(unit)


def _one_hot(codes: npt.NDArray[np.int64], n_classes: int) -> npt.NDArray[np.bool_]:
    encoded = np.zeros((codes.size, n_classes), dtype=bool)
    encoded[np.arange(codes.size), codes] = True
    return encoded


@dataclass(frozen=True)
class CategoricalRecord:
    """Columns of categories, released one-hot, with one budget for the whole record.

    Parameters
    ----------
    epsilon : float
        Natural-log budget of a record, split equally over the columns with at least two categories: a column with
        one has nothing to hide.
    sizes : tuple of int
        How many categories each column has.
    method : {"krr", "sue", "oue"}, default="krr"

    Raises
    ------
    ValueError
        If a parameter is out of range, or a column's share too small for 64-bit probabilities.

    Examples
    --------
    >>> from skldp.mechanisms._categorical.unary import CategoricalRecord
    >>> from skldp.mechanisms._noise import noise_from
    >>> record = CategoricalRecord(2.0, (3, 2))
    >>> record.sample([[0, 1], [2, 0]], noise_from()).shape, record.guarantee().epsilon
    ((2, 5), 2.0)
    """

    epsilon: float
    sizes: tuple[int, ...]
    method: Literal["krr", "sue", "oue"] = "krr"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if self.method not in ("krr", "sue", "oue"):
            raise ValueError(f"method must be 'krr', 'sue' or 'oue'. Got {self.method!r} instead.")
        if not self.sizes:
            raise ValueError(f"sizes must hold at least one column. Got {self.sizes!r} instead.")
        _ = self.columns

    @cached_property
    def columns(self) -> tuple[OneHotRandomizedResponse | UnaryEncoding, ...]:
        """The mechanism of each column."""
        share = split_epsilon(self.epsilon, max(1, sum(size > 1 for size in self.sizes)))
        if self.method == "krr":
            return tuple(OneHotRandomizedResponse(share, size) for size in self.sizes)
        return tuple(UnaryEncoding(share, size, self.method) for size in self.sizes)

    @property
    def n_outputs(self) -> int:
        """Columns of the release."""
        return sum(self.sizes)

    @property
    def parts(self) -> list[slice]:
        """Which columns of the release belong to each column of the record."""
        ends = np.cumsum(self.sizes).tolist()
        return [slice(end - size, end) for end, size in zip(ends, self.sizes, strict=True)]

    def encode(self, codes: npt.ArrayLike, dtype: npt.DTypeLike = np.float64) -> np.ndarray:
        """Encode one-hot without noise, shape (n, n_outputs)."""
        return self._columnwise(codes, None, dtype)

    def sample(self, codes: npt.ArrayLike, noise: Noise, dtype: npt.DTypeLike = np.float64) -> np.ndarray:
        """Release each row of codes, shape (n, n_columns), independently; shape (n, n_outputs)."""
        return self._columnwise(codes, noise, dtype)

    def guarantee(self) -> PrivacyGuarantee:
        """The exact guarantee of one record with all its columns, and of one column alone."""
        exact = [column.exact_epsilon for column in self.columns]
        return PrivacyGuarantee(
            # Every term is at most its share, so the sum rounded up is still not above the stated epsilon.
            round_up(sum(map(Fraction, exact), Fraction(0))),
            per_feature=max(exact),
            stated=self.epsilon,
            basis="exact, the sum over the columns, from the 64-bit integer probabilities that are sampled",
        )

    def _columnwise(self, codes: npt.ArrayLike, noise: Noise | None, dtype: npt.DTypeLike) -> np.ndarray:
        values = np.asarray(codes)
        if values.ndim != 2 or values.shape[1] != len(self.sizes):
            raise ValueError(f"codes must have one column per column of the record. Got {kind_of(codes)} instead.")
        released = np.empty((values.shape[0], self.n_outputs), dtype=dtype)
        for j, (column, part) in enumerate(zip(self.columns, self.parts, strict=True)):
            released[:, part] = column.encode(values[:, j]) if noise is None else column.sample(values[:, j], noise)
        return released
