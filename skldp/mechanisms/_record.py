"""A record of numbers and categories: every column is released by a mechanism of its own, with one budget for all."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from skldp._checks import check_epsilon, check_positive
from skldp.mechanisms._categorical.catalogue import CATEGORICAL_MECHANISMS, make_categorical_mechanism
from skldp.mechanisms._categorical.randomized_response import RandomizedResponse
from skldp.mechanisms._categorical.unary import OneHotRandomizedResponse
from skldp.mechanisms._columns import Categories, Columns, Integers, Interval, OrMissing
from skldp.mechanisms._domain import Codes, Domain
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._number_or_missing import NumberOrMissing
from skldp.mechanisms._numeric.bounded_features import BoundedFeatures
from skldp.mechanisms._numeric.catalogue import NUMERIC_MECHANISMS, best_mechanism, make_mechanism
from skldp.mechanisms._numeric.unit_interval import UnitMechanism
from skldp.mechanisms._odds import round_down, sum_above
from skldp.mechanisms._rows import RowMechanism, Workspace

__all__ = ["MixedRecord", "least_variance_weights", "n_categories", "share_out"]

# A guarantee is to be read in one line.
_MOST_SHOWN = 8
# The least share is this part of an equal one; and how many epsilons are tried between it and all.
_LEAST_PART, _N_GRID = 50, 96
# Of what takes long, one of so many.
_EVERY = 5


def n_categories(domain: Domain) -> int | None:
    """How many categories a column has; None for a column of numbers."""
    if isinstance(domain, Categories):
        return len(domain.values)
    if isinstance(domain, Codes) and domain.n_features == 1:
        return domain.sizes[0]
    if not isinstance(domain, Interval | Integers | OrMissing):
        raise ValueError(
            "Each column of a record must be an Interval, Integers, one of these OrMissing, Categories or Codes of its "
            f"own. Got {type(domain).__name__} instead."
        )
    return None


def share_out(epsilon: float, weights: Sequence[float]) -> tuple[float, ...]:
    """Shares of an epsilon in proportion to weights, each rounded down, so that they never add up to more.

    Examples
    --------
    >>> from skldp.mechanisms._record import share_out
    >>> share_out(3.0, [1, 1, 2])
    (0.75, 0.75, 1.5)
    """
    check_epsilon(epsilon)
    for weight in weights:
        check_positive("Every weight", weight)
    total = sum(map(Fraction, map(float, weights)), Fraction(0))
    exact = [Fraction(float(epsilon)) * Fraction(float(weight)) / total for weight in weights]
    return tuple(map(round_down, exact))


def least_variance_weights(
    domains: Sequence[Domain], epsilon: float, mechanism: str | tuple[str, ...] = "best"
) -> list[float]:
    r"""Weights by which :func:`share_out` makes the sum of the columns' variances least.

    Notes
    -----
    Of an estimate from one person, in the worst case: of a number in units of half the width of its bounds, of a
    category's frequency, averaged over the categories, and of a number that may be missing both that of the number and
    that of its being missing. Where the sum is least, every column's slope :math:`-V_j'(\varepsilon_j)` is the same; it
    is looked for on a grid of epsilons.

    Examples
    --------
    >>> from skldp.mechanisms import Categories, Interval
    >>> from skldp.mechanisms._record import least_variance_weights
    >>> number, many = least_variance_weights([Interval(0, 1), Categories(tuple(range(100)))], 4.0)
    >>> number < many
    True
    """
    check_epsilon(epsilon)
    columns = [
        (n_categories(domain), isinstance(domain, OrMissing), name)
        for domain, name in zip(domains, _by_column(mechanism, domains), strict=True)
    ]
    if len(columns) == 1:
        return [1.0]
    grid = np.geomspace(epsilon / (_LEAST_PART * len(columns)), epsilon, _N_GRID)
    slopes = {}
    for column in set(columns):
        falling = -np.gradient(_variances(*column, grid), grid)
        # What rounding makes rise again does not.
        slopes[column] = np.minimum.accumulate(np.log(np.maximum(falling, 1e-300)))

    def epsilons_at(slope: float) -> list[float]:
        return [float(np.interp(-slope, -slopes[column], grid)) for column in columns]

    low = min(float(one[-1]) for one in slopes.values())
    high = max(float(one[0]) for one in slopes.values())
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(epsilons_at(middle)) > epsilon else (low, middle)
    return epsilons_at(high)


def _variances(
    size: int | None, may_be_missing: bool, mechanism: str, grid: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Of an estimate from one person at each epsilon, of a number or of a category's frequency."""
    if size == 1:
        return np.zeros_like(grid)
    if may_be_missing:
        # Made of many mechanisms each: between a few of them, a power of epsilon.
        few, anywhere = grid[::_EVERY], OrMissing(Interval(-1, 1))
        made = [math.log(NumberOrMissing.of(anywhere, float(one), mechanism).worst_variance) for one in few]
        return np.exp(np.interp(np.log(grid), np.log(few), made))
    if size is not None:
        return np.array([make_categorical_mechanism(mechanism, float(one), size).worst_case_variance for one in grid])
    return np.array([_of_number(float(one), mechanism).worst_variance for one in grid])


def _of_number(epsilon: float, mechanism: str) -> UnitMechanism:
    return best_mechanism(epsilon, 1)[1] if mechanism == "best" else make_mechanism(mechanism, epsilon)


def _by_column(mechanism: str | tuple[str, ...], domains: Sequence[Domain]) -> tuple[str, ...]:
    """The name of each column's mechanism."""
    if isinstance(mechanism, str):
        return tuple(mechanism if n_categories(domain) is None else "krr" for domain in domains)
    if len(mechanism) != len(domains):
        raise ValueError(f"mechanism must be one for each of {len(domains)} columns. Got {mechanism!r} instead.")
    for name, domain in zip(mechanism, domains, strict=True):
        known = NUMERIC_MECHANISMS if n_categories(domain) is None else CATEGORICAL_MECHANISMS
        if name not in (*known, "best"):
            raise ValueError(f"The mechanism of a column must be one of {(*known, 'best')}. Got {name!r} instead.")
    return mechanism


@dataclass(frozen=True)
class MixedRecord(RowMechanism):
    """Numbers by an unbiased mechanism of [-1, 1] within their bounds, categories by a mechanism of their own.

    Parameters
    ----------
    columns : Columns
        Of single columns: Interval, Integers, one of these OrMissing, Categories, or Codes of one column. Rows hold
        numbers, NaN for a missing one, and the places of categories.
    epsilons : tuple of float
        Natural-log budget of each column; what a record spends is their sum. One of a single category spends nothing.
    mechanism : str or tuple of str, default="best"
        Of the numbers: one for a single number by name, or that with the least worst-case variance at each epsilon;
        categories are released by randomized response then, as their places. A tuple names that of each column: of
        categories one of ``CATEGORICAL_MECHANISMS`` or ``"best"``, which but ``"krr"`` release a bit for each category.

    Attributes
    ----------
    parts : tuple of RowMechanism
        The mechanism of each column.
    places : tuple of slice
        Which columns of the release belong to each column of the record.

    Raises
    ------
    ValueError
        If a column is of another kind, there are not as many epsilons, or one is too small.

    Examples
    --------
    >>> from skldp.mechanisms import Categories, Columns, Interval, MixedRecord, noise_from
    >>> people = Columns.of({"age": Interval(0, 100), "city": Categories(("Bonn", "Ulm"))})
    >>> record = MixedRecord(people, (1.5, 0.5))
    >>> record.release([[44.0, 1.0], [61.0, 0.0]], noise_from()).rows.shape
    (2, 2)
    >>> print(record.guarantee())
    epsilon 2 per record (stated 2, per feature 1.5); sum over 2 columns: age 1.5, city 0.5
    """

    columns: Columns
    epsilons: tuple[float, ...]
    mechanism: str | tuple[str, ...] = "best"

    # Several columns of a block stay in the cache together.
    block_cells: ClassVar[int] = 131_072

    def __post_init__(self) -> None:
        if len(self.epsilons) != self.domain.n_features:
            raise ValueError(
                f"epsilons must be one for each of {self.domain.n_features} columns. Got {self.epsilons!r} instead."
            )
        # Refuses what it cannot be made of.
        _ = self.parts

    @property
    def domain(self) -> Columns:
        """The declared columns."""
        return self.columns

    @property
    def n_outputs(self) -> int:
        """One for each column, or one for each category of a column."""
        return sum(part.n_outputs for part in self.parts)

    @property
    def block_width(self) -> int:
        """How many numbers of a row are worked on at a time."""
        return max(4, *(part.n_outputs for part in self.parts))

    @cached_property
    def parts(self) -> tuple[RowMechanism, ...]:
        """The mechanism of each column."""
        domains = [domain for _, domain in self.columns.parts]
        return tuple(map(_part, domains, self.epsilons, _by_column(self.mechanism, domains)))

    @cached_property
    def places(self) -> tuple[slice, ...]:
        """Which columns of the release belong to each column of the record."""
        ends = list(accumulate(part.n_outputs for part in self.parts))
        return tuple(slice(end - part.n_outputs, end) for end, part in zip(ends, self.parts, strict=True))

    @cached_property
    def exact_epsilons(self) -> tuple[float, ...]:
        """The exact epsilon of each column."""
        return tuple(part.guarantee().epsilon for part in self.parts)

    def guarantee(self) -> PrivacyGuarantee:
        """The exact guarantee of one record with all its columns: the sum, rounded up."""
        names = [str(name) for name in self.columns.names]
        each = [f"{name} {epsilon:.4g}" for name, epsilon in zip(names, self.exact_epsilons, strict=True)]
        by_column = ", ".join(each if len(each) <= _MOST_SHOWN else [*each[:_MOST_SHOWN], "..."])
        return PrivacyGuarantee(
            sum_above(*self.exact_epsilons),
            per_feature=max(self.exact_epsilons),
            stated=sum_above(*self.epsilons),
            basis=f"sum over {len(self.epsilons)} columns: {by_column}",
            parts=tuple(part.guarantee().as_step(name) for name, part in zip(names, self.parts, strict=True)),
        )

    def _encode(self, rows: np.ndarray, out: np.ndarray, workspace: Workspace) -> None:
        for j in range(len(self.parts)):
            self._of_column(j, rows, None, out, workspace)

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        for j in range(len(self.parts)):
            self._of_column(j, rows, noise, out, workspace)

    def _of_column(self, j: int, rows: np.ndarray, noise: Noise | None, out: np.ndarray, workspace: Workspace) -> None:
        part = self.parts[j]
        dtype = out.dtype if n_categories(self.columns.parts[j][1]) is None else np.dtype(np.int64)
        given = workspace.take("given" + dtype.kind, (len(rows), 1), dtype)
        given[:, 0] = rows[:, j]
        written = part.output_dtype(dtype)
        drawn = workspace.take("drawn" + written.kind, (len(rows), part.n_outputs), written)
        if noise is None:
            part._encode(given, drawn, workspace)
        else:
            part._draw(given, noise, drawn, workspace)
        out[:, self.places[j]] = drawn


def _part(domain: Domain, epsilon: float, mechanism: str) -> RowMechanism:
    size = n_categories(domain)
    if size is not None:
        if mechanism == "krr":
            return RandomizedResponse(float(epsilon), size)
        made = make_categorical_mechanism(mechanism, float(epsilon), size)
        return made.law if isinstance(made, OneHotRandomizedResponse) else made
    if isinstance(domain, OrMissing):
        return NumberOrMissing.of(domain, float(epsilon), mechanism)
    assert isinstance(domain, Interval | Integers)
    low, high = (float(domain.low),), (float(domain.high),)
    return BoundedFeatures(_of_number(float(epsilon), mechanism), low, high, n_sampled=1, stated=float(epsilon))
