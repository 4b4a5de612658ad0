"""One record of several categorical columns: the budget split over them, each released on its own."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from skldp.mechanisms.categorical.integer_odds import check_epsilon
from skldp.mechanisms.categorical.unary import OneHotRandomizedResponse, UnaryEncoding
from skldp.mechanisms.epsilon_rounding import round_up, split_epsilon
from skldp.mechanisms.guarantee import PrivacyGuarantee
from skldp.mechanisms.randomness import Noise
from skldp.untold import kind_of

__all__ = ["CategoricalRecord"]


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
    >>> from skldp.mechanisms.categorical.record import CategoricalRecord
    >>> from skldp.mechanisms.randomness import noise_from
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
