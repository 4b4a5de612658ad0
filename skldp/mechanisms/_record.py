"""Records of numbers and categories: a mechanism for each column, and the division of one budget."""

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, compress
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from skldp._arrays import Floats
from skldp._checks import check_choice, check_epsilon, check_integer, check_positive
from skldp.domains._column import Column
from skldp.domains._columns import Columns
from skldp.domains._domain import Codes, Domain
from skldp.laws._odds import round_down, split_epsilon, sum_above
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._rows import RowMechanism, Workspace
from skldp.mechanisms.categorical._one_hot import (
    CATEGORICAL_MECHANISMS,
    OneHotMechanism,
    OneHotRandomizedResponse,
    make_categorical_mechanism,
    original_second_moment_of,
)
from skldp.mechanisms.categorical._randomized_response import RandomizedResponse
from skldp.mechanisms.numeric._bounded_features import (
    NUMERIC_MECHANISMS,
    BoundedFeatures,
    NumberOrMissing,
    best_mechanism,
    make_mechanism,
)
from skldp.mechanisms.numeric._unit_mechanisms import UnitMechanism

# Columns named in the one-line basis of a guarantee.
_MOST_SHOWN = 8
# Mark of a column that was not asked: below every code and bit, and every number.
_NO_CODE, _NO_NUMBER = -1.0, -math.inf


def n_categories(domain: Domain) -> int | None:
    """Return the number of categories of a column; None for numbers."""
    if isinstance(domain, Codes) and domain.n_features == 1:
        return domain.sizes[0]
    if not isinstance(domain, Column):
        raise ValueError(f"Each part of a record must be a Column, or Codes of one; got {type(domain).__name__}.")
    return None if domain.values is None else len(domain.values)


def share_out(epsilon: float, weights: Sequence[float]) -> tuple[float, ...]:
    """Split an epsilon in proportion to weights, each share rounded down."""
    check_epsilon(epsilon)
    for weight in weights:
        check_positive("Every weight", weight)
    total = sum(map(Fraction, map(float, weights)), Fraction(0))
    exact = [Fraction(float(epsilon)) * Fraction(float(weight)) / total for weight in weights]
    return tuple(map(round_down, exact))


def sampled_shares(
    epsilon: float, domains: Sequence[Domain], weights: Sequence[float], n_sampled: int | None
) -> tuple[float, ...]:
    """Split an epsilon over the columns by weights, or equally over the `n_sampled` of a row."""
    if n_sampled is not None:
        return (split_epsilon(epsilon, n_sampled),) * len(domains)
    # A column with one possible value spends nothing, whatever its epsilon.
    several = [n_categories(domain) != 1 for domain in domains]
    if not any(several):
        return share_out(epsilon, weights)
    shares = iter(share_out(epsilon, list(compress(weights, several))))
    return tuple(next(shares) if one else float(epsilon) for one in several)


def _variance(size: int | None, may_be_missing: bool, mechanism: str, epsilon: float) -> float:
    """Return the worst-case variance of one person's estimate of a number or frequency."""
    if size is not None:
        return make_categorical_mechanism(mechanism, epsilon, size).worst_case_variance
    if may_be_missing:
        return NumberOrMissing.of(Column(-1, 1, missing="category"), epsilon, mechanism).worst_variance
    return number_mechanism(epsilon, mechanism).worst_variance


def number_mechanism(epsilon: float, mechanism: str) -> UnitMechanism:
    return best_mechanism(epsilon, 1)[1] if mechanism == "best" else make_mechanism(mechanism, epsilon)


def mechanism_names(mechanism: str | tuple[str, ...], domains: Sequence[Domain]) -> tuple[str, ...]:
    if isinstance(mechanism, str):
        return tuple(mechanism if n_categories(domain) is None else "krr" for domain in domains)
    if len(mechanism) != len(domains):
        raise ValueError(f"mechanism must be one for each of {len(domains)} columns; got {mechanism!r}.")
    for name, domain in zip(mechanism, domains, strict=True):
        known = NUMERIC_MECHANISMS if n_categories(domain) is None else CATEGORICAL_MECHANISMS
        check_choice("The mechanism of a column", name, (*known, "best"))
    return mechanism


# Variance between people of a number in half-widths, uniform within its bounds.
_OF_PEOPLE = 1 / 3


def automatic_n_asked(domains: Sequence[Domain], epsilon: float, mechanism: str | tuple[str, ...] = "best") -> int:
    """Return s of m columns with the least (m / s) sum_j (V_j(epsilon / s) + W_j), V of noise, W between people."""
    check_epsilon(epsilon)
    named = zip(domains, mechanism_names(mechanism, domains), strict=True)
    kinds = [(n_categories(one), one.may_be_nan, name) for one, name in named]
    columns = Counter(kind for kind in kinds if kind[0] != 1)
    m = max(1, columns.total())

    def error(n_asked: int) -> float:
        share = split_epsilon(epsilon, n_asked)
        # The variance between people of a uniform column: of a number, or of a category's indicator.
        between = {size: _OF_PEOPLE if size is None else (size - 1) / size**2 for size, _, _ in columns}
        each = (n * (_variance(*kind, share) + between[kind[0]]) for kind, n in columns.items())
        return m / n_asked * sum(each)

    # Below an epsilon of 1/2 a column, the noise is far above W, and more columns are never better.
    return min(range(1, min(m, math.ceil(2 * epsilon)) + 1), key=error)


def number_of_sampled_columns(
    given: int | Literal["auto", "all"], domains: Sequence[Domain], epsilon: float, mechanism: str | tuple[str, ...]
) -> int | None:
    """Resolve ``"auto"``, ``"all"`` or a number into the `n_sampled` of a record, None for all columns."""
    m = sum(n_categories(domain) != 1 for domain in domains)
    if given == "all":
        return None
    if given == "auto":
        found = automatic_n_asked(domains, epsilon, mechanism)
    else:
        check_integer("n_sampled_features, if not 'auto' or 'all',", given, least=1, most=max(m, 1))
        found = int(given)
    return found if found < m else None


@dataclass(frozen=True)
class _Record(RowMechanism):
    """Base class of records whose columns are each released by a mechanism of their own, all or `n_sampled` of them."""

    n_sampled: int | None = field(default=None, kw_only=True)

    @property
    @abstractmethod
    def parts(self) -> Sequence[RowMechanism]:
        """The mechanism of each column."""

    @cached_property
    def places(self) -> tuple[slice, ...]:
        """Columns of the release that belong to each column of the record."""
        ends = list(accumulate(part.n_outputs for part in self.parts))
        return tuple(slice(end - part.n_outputs, end) for end, part in zip(ends, self.parts, strict=True))

    @property
    def n_outputs(self) -> int:
        return sum(part.n_outputs for part in self.parts)

    @property
    def block_width(self) -> int:
        return max(part.n_outputs for part in self.parts)

    @cached_property
    def exact_epsilons(self) -> tuple[float, ...]:
        return tuple(part.guarantee().epsilon for part in self.parts)

    @cached_property
    def sampled_from(self) -> tuple[int, ...]:
        """Places of the columns that are sampled: all with more than one value."""
        return tuple(j for j, size in enumerate(self._n_categories) if size != 1)

    @property
    @abstractmethod
    def _n_categories(self) -> Sequence[int | None]:
        """Number of categories of each column, None for numbers."""

    @property
    def sampled_share(self) -> float:
        """Chance that a column is asked."""
        return 1.0 if self.n_sampled is None else self.n_sampled / len(self.sampled_from)

    def asked(self, released: np.ndarray) -> np.ndarray:
        """Return which columns each released row has an answer for, shape (n, n_columns)."""
        if self.n_sampled is None:
            return np.ones((len(released), len(self.parts)), dtype=bool)
        return np.asarray(released[:, [place.start for place in self.places]] != self._marks)

    @cached_property
    def _marks(self) -> Floats:
        return np.array([_NO_CODE if isinstance(part.domain, Codes) else _NO_NUMBER for part in self.parts])

    def _check_sample(self) -> None:
        if self.n_sampled is not None:
            check_integer("n_sampled", self.n_sampled, least=1, most=len(self.sampled_from) - 1)

    def _spent(self, epsilons: Sequence[float]) -> float:
        """Return what a row spends at most: the sum of the largest epsilons that are released together."""
        return sum_above(*sorted(epsilons, reverse=True)[: self.n_sampled])

    @property
    def _sample(self) -> str:
        if self.n_sampled is None:
            return ""
        return f"{self.n_sampled} of {len(self.sampled_from)} columns, chosen uniformly; "

    def _encode(self, rows: np.ndarray, out: np.ndarray, workspace: Workspace) -> None:
        for column, part, place in zip(rows.T, self.parts, self.places, strict=True):
            out[:, place] = _released(part, column, None, out.dtype, workspace)

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        asked = self._draw_sample(len(rows), noise)
        for j, (column, part, place) in enumerate(zip(rows.T, self.parts, self.places, strict=True)):
            if asked is None or asked[:, j].all():
                out[:, place] = _released(part, column, noise, out.dtype, workspace)
                continue
            out[:, place] = self._marks[j]
            own = np.flatnonzero(asked[:, j])
            if len(own):
                out[own, place] = _released(part, column[own], noise.at(own, len(rows)), out.dtype, workspace)

    def _draw_sample(self, n_rows: int, noise: Noise) -> npt.NDArray[np.bool_] | None:
        """Draw which columns each row is asked, shape (n_rows, n_columns), from noise alone; None if all are."""
        if self.n_sampled is None:
            return None
        chosen = noise.subsets(n_rows, len(self.sampled_from), self.n_sampled)
        asked = np.ones((n_rows, len(self.parts)), dtype=bool)
        asked[:, self.sampled_from] = False
        np.put_along_axis(asked, np.array(self.sampled_from)[chosen], True, axis=1)
        return asked


def _released(
    part: RowMechanism, column: np.ndarray, noise: Noise | None, dtype: np.dtype, workspace: Workspace
) -> np.ndarray:
    """Release the values of one column, or encode them without noise."""
    taken = np.dtype(np.int64) if isinstance(part.domain, Codes) else dtype
    given = workspace.take("given" + taken.kind, (len(column), 1), taken)
    given[:, 0] = column
    written = part.output_dtype(taken)
    drawn = workspace.take("drawn" + written.kind, (len(column), part.n_outputs), written)
    if noise is None:
        part._encode(given, drawn, workspace)
    else:
        part._draw(given, noise, drawn, workspace)
    return drawn


@dataclass(frozen=True)
class CategoricalRecord(_Record):
    """Columns of categories, released one-hot in equal shares. With `n_sampled`, bits not chosen are -1."""

    # Several columns of a block stay in the cache together.
    block_cells: ClassVar[int] = 262_144
    released_dtype: ClassVar[np.dtype] = np.dtype(bool)

    epsilon: float
    sizes: tuple[int, ...]
    method: Literal["krr", "sue", "oue", "subset", "hashing", "hadamard", "best"] = "krr"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_choice("method", self.method, (*CATEGORICAL_MECHANISMS, "best"))
        # Raises on invalid sizes, or a share that is too small.
        _ = self.domain
        self._check_sample()
        _ = self.parts

    def output_dtype(self, dtype: np.dtype) -> np.dtype:
        return super().output_dtype(dtype) if self.n_sampled is None else np.dtype(np.int8)

    @property
    def _n_categories(self) -> tuple[int, ...]:
        return self.sizes

    @cached_property
    def domain(self) -> Codes:
        return Codes(self.sizes)

    @cached_property
    def parts(self) -> tuple[OneHotMechanism, ...]:
        share = split_epsilon(self.epsilon, self.n_sampled or max(1, len(self.sampled_from)))
        return tuple(make_categorical_mechanism(self.method, share, size) for size in self.sizes)

    @property
    def code_counts(self) -> tuple[int, int, int]:
        return self.parts[0].code_counts if len(self.parts) == 1 else super().code_counts

    def guarantee(self) -> PrivacyGuarantee:
        return PrivacyGuarantee(
            # Every term is at most its share, so that the sum, rounded up, does not exceed the stated epsilon.
            self._spent(self.exact_epsilons),
            per_feature=max(self.exact_epsilons),
            stated=self.epsilon,
            basis=f"{self._sample}exact, the sum over the columns, from the 64-bit integer probabilities that are "
            "sampled",
        )

    def original_second_moment(self, second_moment: Floats, mean: Floats) -> Floats:
        if self.n_sampled is not None:
            return super().original_second_moment(second_moment, mean)
        return original_second_moment_of(self.parts, second_moment, mean)


@dataclass(frozen=True)
class MixedRecord(_Record):
    """Record of numbers and categories; codes and bits that were not chosen are -1, numbers minus infinity."""

    columns: Columns
    epsilons: tuple[float, ...]
    mechanism: str | tuple[str, ...] = "best"

    # Several columns of a block stay in the cache together.
    block_cells: ClassVar[int] = 131_072

    def __post_init__(self) -> None:
        n = self.domain.n_features
        if len(self.epsilons) != n:
            raise ValueError(f"epsilons must be one for each of {n} columns; got {self.epsilons!r}.")
        # Raises on invalid columns.
        _ = self.parts
        self._check_sample()

    @property
    def _n_categories(self) -> list[int | None]:
        return [n_categories(domain) for _, domain in self.columns.parts]

    @property
    def domain(self) -> Columns:
        return self.columns

    @property
    def block_width(self) -> int:
        return max(4, super().block_width)

    @cached_property
    def parts(self) -> tuple[RowMechanism, ...]:
        domains = [domain for _, domain in self.columns.parts]
        return tuple(map(_part, domains, self.epsilons, mechanism_names(self.mechanism, domains)))

    def guarantee(self) -> PrivacyGuarantee:
        names = [str(name) for name in self.columns.names]
        each = [f"{name} {epsilon:.4g}" for name, epsilon in zip(names, self.exact_epsilons, strict=True)]
        by_column = ", ".join(each if len(each) <= _MOST_SHOWN else [*each[:_MOST_SHOWN], "..."])
        steps = tuple(part.guarantee().as_step(name) for name, part in zip(names, self.parts, strict=True))
        return PrivacyGuarantee(
            self._spent(self.exact_epsilons),
            per_feature=max(self.exact_epsilons),
            stated=self._spent([self.epsilons[j] for j in self.sampled_from] or self.epsilons),
            basis=(self._sample or f"sum over {len(self.epsilons)} columns: ") + by_column,
            # The steps of a sample do not add up to what a row spends.
            parts=steps if self.n_sampled is None else (),
        )


def _part(domain: Domain, epsilon: float, mechanism: str) -> RowMechanism:
    size = n_categories(domain)
    if size is not None:
        made = make_categorical_mechanism(mechanism, float(epsilon), size)
        return RandomizedResponse(float(epsilon), size) if isinstance(made, OneHotRandomizedResponse) else made
    assert isinstance(domain, Column)
    if domain.may_be_nan:
        return NumberOrMissing.of(domain, float(epsilon), mechanism)
    unit, (low, high) = number_mechanism(float(epsilon), mechanism), domain.ends
    return BoundedFeatures(unit, (low,), (high,), n_sampled=1, stated=float(epsilon))
