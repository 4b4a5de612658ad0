"""One record of several columns of categories, released one-hot with the budget split over them."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from skldp._checks import check_epsilon
from skldp.mechanisms._categorical.catalogue import CATEGORICAL_MECHANISMS, make_categorical_mechanism
from skldp.mechanisms._categorical.unary import OneHotMechanism, original_second_moment_of
from skldp.mechanisms._domain import Codes
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._odds import split_epsilon, sum_above
from skldp.mechanisms._rows import RowMechanism, Workspace

__all__ = ["CategoricalRecord"]


@dataclass(frozen=True)
class CategoricalRecord(RowMechanism):
    """Columns of categories, released one-hot, with one budget for the whole record.

    Parameters
    ----------
    epsilon : float
        Natural-log budget of a record, split equally over the columns with at least two categories: a column with
        one has nothing to hide.
    sizes : tuple of int
        How many categories each column has.
    method : {"krr", "sue", "oue", "subset", "hashing", "hadamard", "best"}, default="krr"
        ``"best"`` is chosen for each column; see `best_categorical_mechanism`.

    Raises
    ------
    ValueError
        If a parameter is out of range, or a column's share too small for 64-bit probabilities.

    Examples
    --------
    >>> from skldp.mechanisms import CategoricalRecord, noise_from
    >>> record = CategoricalRecord(2.0, (3, 2))
    >>> record.release([[0, 1], [2, 0]], noise_from()).rows.shape, record.guarantee().epsilon
    ((2, 5), 2.0)
    """

    # Several columns of a block stay in the cache together.
    block_cells: ClassVar[int] = 262_144

    epsilon: float
    sizes: tuple[int, ...]
    method: Literal["krr", "sue", "oue", "subset", "hashing", "hadamard", "best"] = "krr"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if self.method not in (*CATEGORICAL_MECHANISMS, "best"):
            names = (*CATEGORICAL_MECHANISMS, "best")
            raise ValueError(f"method must be one of {names}. Got {self.method!r} instead.")
        # Both refuse what they cannot be made of.
        _ = self.domain, self.columns

    @cached_property
    def domain(self) -> Codes:
        """The codes of each column."""
        return Codes(self.sizes)

    @cached_property
    def columns(self) -> tuple[OneHotMechanism, ...]:
        """The mechanism of each column."""
        share = split_epsilon(self.epsilon, max(1, sum(size > 1 for size in self.sizes)))
        return tuple(make_categorical_mechanism(self.method, share, size) for size in self.sizes)

    @property
    def n_outputs(self) -> int:
        """Columns of the release."""
        return sum(self.sizes)

    @property
    def block_width(self) -> int:
        """How many numbers of a row are worked on at a time: one column's."""
        return max(self.sizes)

    @cached_property
    def parts(self) -> list[slice]:
        """Which columns of the release belong to each column of the record."""
        ends = np.cumsum(self.sizes).tolist()
        return [slice(end - size, end) for end, size in zip(ends, self.sizes, strict=True)]

    def output_dtype(self, dtype: np.dtype) -> np.dtype:
        """The type of a release: bool."""
        return np.dtype(bool)

    def guarantee(self) -> PrivacyGuarantee:
        """The exact guarantee of one record with all its columns, and of one column alone."""
        exact = [column.exact_epsilon for column in self.columns]
        return PrivacyGuarantee(
            # Every term is at most its share, so the sum rounded up is still not above the stated epsilon.
            sum_above(*exact),
            per_feature=max(exact),
            stated=self.epsilon,
            basis="exact, the sum over the columns, from the 64-bit integer probabilities that are sampled",
        )

    def original_second_moment(
        self, second_moment: npt.NDArray[np.float64], mean: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """The mean of products of the one-hot encoding: how often two categories occur together."""
        return original_second_moment_of(self.columns, second_moment, mean)

    def _encode(self, rows: np.ndarray, out: np.ndarray, workspace: Workspace) -> None:
        for j, (column, part) in enumerate(zip(self.columns, self.parts, strict=True)):
            column._encode(rows[:, j : j + 1], out[:, part], workspace)

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        for j, (column, part) in enumerate(zip(self.columns, self.parts, strict=True)):
            column._draw(rows[:, j : j + 1], noise, out[:, part], workspace)
