"""A record of numbers and categories: every column is released by a mechanism of its own, with one budget for all."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from skldp._checks import check_epsilon, check_positive
from skldp.mechanisms._categorical.catalogue import make_categorical_mechanism
from skldp.mechanisms._categorical.randomized_response import RandomizedResponse
from skldp.mechanisms._columns import Categories, Columns, Integers, Interval
from skldp.mechanisms._domain import Codes, Domain
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._numeric.bounded_features import BoundedFeatures
from skldp.mechanisms._numeric.catalogue import best_mechanism, make_mechanism
from skldp.mechanisms._odds import round_up
from skldp.mechanisms._rows import RowMechanism, Workspace

__all__ = ["MixedRecord", "least_variance_weights", "n_categories", "share_out"]

# A guarantee is to be read in one line.
_MOST_SHOWN = 8
# The least share is this part of an equal one; and how many epsilons are tried between it and all.
_LEAST_PART, _N_GRID = 50, 96


def n_categories(domain: Domain) -> int | None:
    """How many categories a column has; None for a column of numbers.

    Raises
    ------
    ValueError
        If it is neither.
    """
    if isinstance(domain, Categories):
        return len(domain.values)
    if isinstance(domain, Codes) and domain.n_features == 1:
        return domain.sizes[0]
    if not isinstance(domain, Interval | Integers):
        raise ValueError(
            "Each column of a record must be an Interval, Integers, Categories or Codes of its own. "
            f"Got {type(domain).__name__} instead."
        )
    return None


def share_out(epsilon: float, weights: Sequence[float]) -> tuple[float, ...]:
    """Shares of an epsilon in proportion to weights, each rounded down, so that they never add up to more.

    Raises
    ------
    ValueError
        If a number is none, or not above 0.

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
    return tuple(-round_up(-share) for share in exact)


def least_variance_weights(domains: Sequence[Domain], epsilon: float, mechanism: str = "best") -> list[float]:
    r"""Weights by which :func:`share_out` makes the sum of the columns' variances least.

    Parameters
    ----------
    domains : sequence of Domain
        Of single columns, as of :class:`MixedRecord`.
    epsilon : float
        Natural log, of a whole record.
    mechanism : str, default="best"
        Of the numbers.

    Returns
    -------
    list of float
        To about a hundredth.

    Notes
    -----
    Of an estimate from one person, in the worst case: of a number in units of half the width of its bounds, of a
    category's frequency by randomized response, averaged over the categories. Where the sum is least, every column's
    slope :math:`-V_j'(\varepsilon_j)` is the same; it is looked for on a grid of epsilons.

    Examples
    --------
    >>> from skldp.mechanisms import Categories, Interval
    >>> from skldp.mechanisms._record import least_variance_weights
    >>> number, many = least_variance_weights([Interval(0, 1), Categories(tuple(range(100)))], 4.0)
    >>> number < many
    True
    """
    check_epsilon(epsilon)
    sizes = [n_categories(domain) for domain in domains]
    if len(sizes) == 1:
        return [1.0]
    grid = np.geomspace(epsilon / (_LEAST_PART * len(sizes)), epsilon, _N_GRID)
    slopes = {}
    for size in set(sizes):
        falling = -np.gradient(np.array([_variance(size, one, mechanism) for one in grid]), grid)
        # What rounding makes rise again does not.
        slopes[size] = np.minimum.accumulate(np.log(np.maximum(falling, 1e-300)))

    def epsilons_at(slope: float) -> list[float]:
        return [float(np.interp(-slope, -slopes[size], grid)) for size in sizes]

    low = min(float(one[-1]) for one in slopes.values())
    high = max(float(one[0]) for one in slopes.values())
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(epsilons_at(middle)) > epsilon else (low, middle)
    return epsilons_at(high)


def _variance(size: int | None, epsilon: float, mechanism: str) -> float:
    """Of an estimate from one person, of a number or of a category's frequency."""
    if size == 1:
        return 0.0
    if size is not None:
        return make_categorical_mechanism("krr", float(epsilon), size).worst_case_variance
    unit = best_mechanism(float(epsilon), 1)[1] if mechanism == "best" else make_mechanism(mechanism, float(epsilon))
    return unit.worst_variance


@dataclass(frozen=True)
class MixedRecord(RowMechanism):
    """Numbers by an unbiased mechanism of [-1, 1] within their bounds, categories by randomized response.

    Parameters
    ----------
    columns : Columns
        Of single columns: Interval, Integers, Categories, or Codes of one column. Rows hold numbers, and the places of
        categories.
    epsilons : tuple of float
        Natural-log budget of each column; what a record spends is their sum. One of a single category spends nothing.
    mechanism : str, default="best"
        Of the numbers: one for a single number by name, or that with the least worst-case variance at each epsilon.

    Attributes
    ----------
    parts : tuple of RowMechanism
        The mechanism of each column.

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
    mechanism: str = "best"

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
        """As many as there are columns."""
        return self.columns.n_features

    @property
    def block_width(self) -> int:
        """How many numbers of a row are worked on at a time."""
        return 4

    @cached_property
    def parts(self) -> tuple[RowMechanism, ...]:
        """The mechanism of each column."""
        domains = [domain for _, domain in self.columns.parts]
        return tuple(map(self._part, domains, self.epsilons))

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
            round_up(sum(map(Fraction, self.exact_epsilons), Fraction(0))),
            per_feature=max(self.exact_epsilons),
            stated=round_up(sum(map(Fraction, self.epsilons), Fraction(0))),
            basis=f"sum over {len(self.epsilons)} columns: {by_column}",
            parts=tuple(part.guarantee().as_step(name) for name, part in zip(names, self.parts, strict=True)),
        )

    def _part(self, domain: Domain, epsilon: float) -> RowMechanism:
        size = n_categories(domain)
        if size is not None:
            return RandomizedResponse(float(epsilon), size)
        assert isinstance(domain, Interval | Integers)
        if self.mechanism == "best":
            unit = best_mechanism(float(epsilon), 1)[1]
        else:
            unit = make_mechanism(self.mechanism, float(epsilon))
        return BoundedFeatures(unit, (float(domain.low),), (float(domain.high),), n_sampled=1, stated=float(epsilon))

    def _encode(self, rows: np.ndarray, out: np.ndarray, workspace: Workspace) -> None:
        out[...] = rows

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        for j, part in enumerate(self.parts):
            codes = isinstance(part, RandomizedResponse)
            dtype = np.dtype(np.int64) if codes else out.dtype
            given = workspace.take("given" + dtype.kind, (len(rows), 1), dtype)
            given[:, 0] = rows[:, j]
            drawn = workspace.take("drawn" + dtype.kind, (len(rows), 1), dtype)
            part._draw(given, noise, drawn, workspace)
            out[:, j] = drawn[:, 0]
