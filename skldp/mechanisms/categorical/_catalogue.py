"""Mechanisms of categories by name, the choice of the best one, and records of several columns of categories."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from skldp._arrays import Floats
from skldp._checks import check_epsilon
from skldp.domains._domain import Codes
from skldp.laws._odds import split_epsilon, sum_above
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._rows import RowMechanism, Workspace
from skldp.mechanisms.categorical._hadamard import OneHotHadamard
from skldp.mechanisms.categorical._local_hashing import OneHotLocalHashing
from skldp.mechanisms.categorical._unary import (
    OneHotMechanism,
    OneHotRandomizedResponse,
    SubsetSelection,
    UnaryEncoding,
    original_second_moment_of,
)

__all__ = ["CATEGORICAL_MECHANISMS", "CategoricalRecord", "best_categorical_mechanism", "make_categorical_mechanism"]

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
    r"""Find the mechanism with the shortest report among those with nearly the least worst-case variance.

    The variance is that of an unbiased frequency, averaged over the categories, which is the same whatever people
    hold. That of subset selection is the least (Ye and Barg); the shortest report (`report_bits`) within 1.05 times of
    it is chosen: randomized response for few categories, local hashing for many, whose reports are logarithmic in their
    number, subset selection between them, and Hadamard response of one block at small epsilon.

    Wang, Blocki, Li and Jha, "Locally differentially private protocols for frequency estimation", USENIX Security
    2017, Section 4.5; Ye and Barg, "Optimal schemes for discrete distribution estimation under locally differential
    privacy", IEEE Transactions on Information Theory 2018.
    """
    made = {name: make(epsilon, n_classes) for name, make in _ONE_HOT.items()}
    most = _TOLERANCE * min(mechanism.worst_case_variance for mechanism in made.values())
    near = [name for name, mechanism in made.items() if mechanism.worst_case_variance <= most]
    best = min(near, key=lambda name: made[name].report_bits)
    return best, made[best]


@dataclass(frozen=True)
class CategoricalRecord(RowMechanism):
    """Columns of categories, released one-hot, with one budget for the whole record."""

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
        # Raises on invalid sizes, or a share that is too small.
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
        """Numbers of a row that are processed at a time: one column's."""
        return max(self.sizes)

    @cached_property
    def parts(self) -> list[slice]:
        """Columns of the release that belong to each column of the record."""
        ends = np.cumsum(self.sizes).tolist()
        return [slice(end - size, end) for end, size in zip(ends, self.sizes, strict=True)]

    def output_dtype(self, dtype: np.dtype) -> np.dtype:
        """The type of a release: bool."""
        return np.dtype(bool)

    def guarantee(self) -> PrivacyGuarantee:
        """The exact guarantee of one record with all its columns, and of one column alone."""
        exact = [column.exact_epsilon for column in self.columns]
        return PrivacyGuarantee(
            # Every term is at most its share, so that the sum, rounded up, does not exceed the stated epsilon.
            sum_above(*exact),
            per_feature=max(exact),
            stated=self.epsilon,
            basis="exact, the sum over the columns, from the 64-bit integer probabilities that are sampled",
        )

    def original_second_moment(self, second_moment: Floats, mean: Floats) -> Floats:
        """The mean of products of the one-hot encoding: how often two categories occur together."""
        return original_second_moment_of(self.columns, second_moment, mean)

    def _encode(self, rows: np.ndarray, out: np.ndarray, workspace: Workspace) -> None:
        for j, (column, part) in enumerate(zip(self.columns, self.parts, strict=True)):
            column._encode(rows[:, j : j + 1], out[:, part], workspace)

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        for j, (column, part) in enumerate(zip(self.columns, self.parts, strict=True)):
            column._draw(rows[:, j : j + 1], noise, out[:, part], workspace)
