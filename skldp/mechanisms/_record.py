"""Records of numbers and categories: a mechanism for each column, one budget for all."""

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate, compress
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from skldp._arrays import Floats
from skldp._checks import check_choice, check_epsilon, check_integer, check_positive
from skldp.domains._columns import Categories, Columns, Integers, Interval, OrMissing
from skldp.domains._domain import Codes, Domain
from skldp.laws._categories import bernoulli
from skldp.laws._few_answers import worst_quadratic
from skldp.laws._odds import (
    LARGEST_EPSILON,
    LEAST_EPSILON,
    TWO_64,
    calibration_epsilon,
    log_ratio,
    round_down,
    round_up,
    split_epsilon,
    sum_above,
)
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._rows import RowMechanism, Workspace
from skldp.mechanisms.categorical._frequency import unbiased_share
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
    best_mechanism,
    make_mechanism,
)
from skldp.mechanisms.numeric._unit_interval import UnitMechanism

# The parts of epsilon at which the number's mechanism is tried.
_PARTS = (0.375, 0.5, 0.625, 0.6875, 0.75, 0.875, 1.0)


@dataclass(frozen=True)
class NumberOrMissing(RowMechanism):
    r"""Mechanism of one number within bounds that may be missing, which is NaN.

    `unit` is M, the mechanism of one number. Let p and q be the probabilities of the answer "missing" for a missing and
    for a present number, `told_count` and `hidden_count` out of 2^64. Any other answer is :math:`M(x)`, or :math:`M(0)`
    for a missing one. The worst-case loss is the largest of

    .. math:: \ln \frac pq, \quad \ln \frac{1 - q}{1 - p} + \max_{x, z} \ln \frac{P(M(x) = z)}{P(M(0) = z)},
              \quad \varepsilon_M,

    and the first two are made equal to epsilon. Released distances from the middle are unbiased after division by 1 -
    q.
    """

    values: OrMissing
    unit: UnitMechanism
    told_count: int
    hidden_count: int
    stated: float = field(kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.values, OrMissing):
            raise ValueError(f"values must be OrMissing; got {self.values!r}.")
        check_integer("hidden_count", self.hidden_count, least=1, most=TWO_64 - 2)
        check_integer("told_count", self.told_count, least=self.hidden_count + 1, most=TWO_64 - 1)
        # Raises on a mechanism of several numbers together.
        _ = self.number

    @classmethod
    def of(cls, values: OrMissing, epsilon: float, mechanism: str = "best") -> "NumberOrMissing":
        """Make the one with the least variance at an epsilon."""
        check_epsilon(epsilon)
        unit, told, hidden = _least_variance(float(epsilon), mechanism)
        return cls(values, unit, told, hidden, stated=float(epsilon))

    @property
    def domain(self) -> OrMissing:
        """The number, or none."""
        return self.values

    @cached_property
    def number(self) -> BoundedFeatures:
        """The release of the number alone."""
        low, high = float(self.values.number.low), float(self.values.number.high)
        return BoundedFeatures(self.unit, (low,), (high,), n_sampled=1, stated=self.stated)

    @property
    def told_probability(self) -> float:
        """The probability p that a missing number is answered as missing."""
        return self.told_count / TWO_64

    @property
    def hidden_probability(self) -> float:
        """The probability q that a number that is there is answered as missing."""
        return self.hidden_count / TWO_64

    @cached_property
    def exact_epsilon(self) -> float:
        """The worst-case log-likelihood ratio of what is sampled, rounded up."""
        return _loss(self.unit, self.told_count, self.hidden_count)

    @property
    def worst_variance(self) -> float:
        """The largest variance of the number's unbiased estimate, in half widths, and of the bit's, together."""
        return _variance(self.unit, self.told_probability, self.hidden_probability)

    def guarantee(self) -> PrivacyGuarantee:
        """Return the exact guarantee of one number and of whether it is missing."""
        basis = "a number or that it is missing; exact, from the sampled integers"
        return PrivacyGuarantee(self.exact_epsilon, stated=self.stated, basis=basis)

    def unbiased(self, released: Floats) -> Floats:
        """Return unbiased scores of the number (the middle if it is missing) and of the missing bit, shape (n, 2)."""
        missing = np.isnan(released)
        p, q, middle = self.told_probability, self.hidden_probability, self.values.middle
        number = middle + np.where(missing, 0.0, released - middle) / (1 - q)
        return np.column_stack([number, unbiased_share(missing.astype(np.float64), p, q)])

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        missing = np.isnan(rows)
        there = workspace.take("there", rows.shape, out.dtype)
        there[...] = np.where(missing, self.values.middle, rows)
        self.number._draw(there, noise, out, workspace)
        words = workspace.take("words", rows.shape, np.uint16)
        told, hidden = (workspace.take(name, rows.shape, bool) for name in ("told", "hidden"))
        bernoulli(noise, self.told_count, told, words)
        bernoulli(noise, self.hidden_count, hidden, words)
        out[np.where(missing, told, hidden)] = np.nan


def _loss(unit: UnitMechanism, told: int, hidden: int) -> float:
    """Return the largest log-likelihood ratio of two records: both numbers, or one or both missing."""
    of_numbers = Fraction(log_ratio(TWO_64 - hidden, TWO_64 - told)) + Fraction(unit.loss_from_middle)
    return max(log_ratio(told, hidden), round_up(of_numbers), unit.exact_epsilon)


def _variance(unit: UnitMechanism, told: float, hidden: float) -> float:
    constant, linear, square = unit.variance_coefficients
    # A number is kept with probability 1 - q and divided by it, else 0; a missing one has a smaller variance.
    kept = 1 - hidden
    of_number = worst_quadratic(constant / kept, linear / kept, (1 + square) / kept - 1)
    return of_number + max(told * (1 - told), hidden * kept) / (told - hidden) ** 2


@lru_cache(maxsize=4096)
def _least_variance(epsilon: float, name: str) -> tuple[UnitMechanism, int, int]:
    """Return the number's mechanism and the two counts of missing numbers with the least variance."""
    # A larger epsilon does not improve the number, and would leave nothing to the bit.
    epsilon, found = min(epsilon, LARGEST_EPSILON), []
    for part in _PARTS:
        share = part * epsilon
        if share < LEAST_EPSILON:
            continue
        # Two answers leave the most to the bit.
        both = [best_mechanism(share, 1)[1], make_mechanism("duchi", share)]
        for unit in both if name == "best" else [make_mechanism(name, share)]:
            told, hidden = _counts(epsilon, unit)
            if 0 < hidden < told and _loss(unit, told, hidden) <= epsilon:
                found.append((_variance(unit, told / TWO_64, hidden / TWO_64), unit, told, hidden))
    if not found:
        least = f"about {8 * LEAST_EPSILON:.0g}"
        raise ValueError(f"epsilon must be at least {least} for a number that may be missing; got {epsilon!r}.")
    return min(found, key=lambda one: one[0])[1:]


def _counts(epsilon: float, unit: UnitMechanism) -> tuple[int, int]:
    """Return the counts of missing numbers that spend an epsilon, both rounded down."""
    spent = calibration_epsilon(epsilon)
    left = spent - unit.loss_from_middle
    if left <= 0:
        return 0, 0
    # p = E q, and 1 - q = G (1 - p).
    odds, others = math.exp(spent), math.exp(left)
    hidden = math.ceil(math.expm1(left) / (odds * others - 1) * 2.0**64)
    told = min(math.floor(Fraction(odds) * hidden), TWO_64 - math.ceil((TWO_64 - hidden) / Fraction(others)))
    return told, hidden


# Columns named in the one-line basis of a guarantee.
_MOST_SHOWN = 8
# The least share is this part of an equal one; number of epsilons tried between it and the whole.
_LEAST_PART, _N_GRID = 50, 96
# Evaluate slow mechanisms at every fifth epsilon.
_EVERY = 5


def n_categories(domain: Domain) -> int | None:
    """Return the number of categories of a column; None for numbers."""
    if isinstance(domain, Categories):
        return len(domain.values)
    if isinstance(domain, Codes) and domain.n_features == 1:
        return domain.sizes[0]
    if not isinstance(domain, Interval | Integers | OrMissing):
        kinds = "Interval, Integers, OrMissing, Categories or Codes of one column"
        raise ValueError(f"Each column of a record must be {kinds}; got {type(domain).__name__}.")
    return None


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


def least_variance_weights(
    domains: Sequence[Domain], epsilon: float, mechanism: str | tuple[str, ...] = "best"
) -> list[float]:
    r"""Return the weights by which :func:`share_out` makes the sum of the columns' variances least.

    At the minimum all columns have the same slope :math:`-V_j'(\varepsilon_j)`, which is found on a grid of epsilons.
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
        # Rounding can make a falling slope rise.
        slopes[column] = np.minimum.accumulate(np.log(np.maximum(falling, 1e-300)))

    def epsilons_at(slope: float) -> list[float]:
        return [float(np.interp(-slope, -slopes[column], grid)) for column in columns]

    low = min(float(one[-1]) for one in slopes.values())
    high = max(float(one[0]) for one in slopes.values())
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(epsilons_at(middle)) > epsilon else (low, middle)
    return epsilons_at(high)


def _variances(size: int | None, may_be_missing: bool, mechanism: str, grid: Floats) -> Floats:
    """Return the variance of one person's estimate of a number or frequency, at each epsilon."""
    if size == 1:
        return np.zeros_like(grid)
    if may_be_missing:
        # Slow to make: interpolate between a few, log-log.
        few, anywhere = grid[::_EVERY], OrMissing(Interval(-1, 1))
        made = [math.log(NumberOrMissing.of(anywhere, float(one), mechanism).worst_variance) for one in few]
        return np.exp(np.interp(np.log(grid), np.log(few), made))
    if size is not None:
        return np.array([make_categorical_mechanism(mechanism, float(one), size).worst_case_variance for one in grid])
    return np.array([_of_number(float(one), mechanism).worst_variance for one in grid])


def _of_number(epsilon: float, mechanism: str) -> UnitMechanism:
    return best_mechanism(epsilon, 1)[1] if mechanism == "best" else make_mechanism(mechanism, epsilon)


def _by_column(mechanism: str | tuple[str, ...], domains: Sequence[Domain]) -> tuple[str, ...]:
    """Return the name of each column's mechanism."""
    if isinstance(mechanism, str):
        return tuple(mechanism if n_categories(domain) is None else "krr" for domain in domains)
    if len(mechanism) != len(domains):
        raise ValueError(f"mechanism must be one for each of {len(domains)} columns; got {mechanism!r}.")
    for name, domain in zip(mechanism, domains, strict=True):
        known = NUMERIC_MECHANISMS if n_categories(domain) is None else CATEGORICAL_MECHANISMS
        check_choice("The mechanism of a column", name, (*known, "best"))
    return mechanism


# Mark of a column that was not asked: below every code and bit, and every number.
_NO_CODE, _NO_NUMBER = -1.0, -math.inf
# Variance between people of a number in half-widths, uniform within its bounds.
_OF_PEOPLE = 1 / 3


def automatic_n_asked(domains: Sequence[Domain], epsilon: float, mechanism: str | tuple[str, ...] = "best") -> int:
    r"""Return how many columns to ask of each person for the least sum of predicted variances.

    .. math:: \frac ms \sum_j \bigl(V_j(\varepsilon / s) + W_j\bigr)

    with the worst-case variance V of a release and the variance W between people of uniform values.
    """
    check_epsilon(epsilon)
    named = zip(domains, _by_column(mechanism, domains), strict=True)
    kinds = [(n_categories(one), isinstance(one, OrMissing), name) for one, name in named]
    columns = Counter(kind for kind in kinds if kind[0] != 1)
    m = max(1, columns.total())

    def error(n_asked: int) -> float:
        share = np.array([split_epsilon(epsilon, n_asked)])
        each = (n * (float(_variances(*kind, share)[0]) + _between(kind[0])) for kind, n in columns.items())
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


def _between(size: int | None) -> float:
    """Return the variance between people of a uniform column: of a number, or of a category's indicator."""
    return _OF_PEOPLE if size is None else (size - 1) / size**2


@dataclass(frozen=True)
class _Record(RowMechanism):
    """Base class of records whose columns are each released by a mechanism of their own.

    With `n_sampled`, each row releases so many of the columns that have more than one value. They are chosen uniformly
    and independently of the values, and the others are marked. The mark tells which columns were chosen.
    """

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
        """Columns of the release."""
        return sum(part.n_outputs for part in self.parts)

    @property
    def block_width(self) -> int:
        """Numbers of a row that are processed at a time: those of one column."""
        return max(part.n_outputs for part in self.parts)

    @cached_property
    def exact_epsilons(self) -> tuple[float, ...]:
        """The exact epsilon of each column."""
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
    """Columns of categories, released one-hot, with one budget for the record in equal shares.

    With `n_sampled`, the bits of columns that were not chosen are -1.
    """

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
        """Return the type of bits, with a mark if some columns are sampled."""
        return super().output_dtype(dtype) if self.n_sampled is None else np.dtype(np.int8)

    @property
    def _n_categories(self) -> tuple[int, ...]:
        return self.sizes

    @cached_property
    def domain(self) -> Codes:
        """The codes of each column."""
        return Codes(self.sizes)

    @cached_property
    def parts(self) -> tuple[OneHotMechanism, ...]:
        """The mechanism of each column."""
        share = split_epsilon(self.epsilon, self.n_sampled or max(1, len(self.sampled_from)))
        return tuple(make_categorical_mechanism(self.method, share, size) for size in self.sizes)

    @property
    def code_counts(self) -> tuple[int, int, int]:
        """Counts of the mechanism of the only column."""
        return self.parts[0].code_counts if len(self.parts) == 1 else super().code_counts

    def guarantee(self) -> PrivacyGuarantee:
        """Return the exact guarantee of one record with all its columns, and of one column alone."""
        return PrivacyGuarantee(
            # Every term is at most its share, so that the sum, rounded up, does not exceed the stated epsilon.
            self._spent(self.exact_epsilons),
            per_feature=max(self.exact_epsilons),
            stated=self.epsilon,
            basis=f"{self._sample}exact, the sum over the columns, from the 64-bit integer probabilities that are "
            "sampled",
        )

    def original_second_moment(self, second_moment: Floats, mean: Floats) -> Floats:
        """Return the mean products of the one-hot encoding: how often two categories occur together."""
        if self.n_sampled is not None:
            return super().original_second_moment(second_moment, mean)
        return original_second_moment_of(self.parts, second_moment, mean)


@dataclass(frozen=True)
class MixedRecord(_Record):
    """Record of numbers and categories, each column released by its own mechanism and epsilon.

    The name of a mechanism applies to all numbers, and categories are then released by randomized response, as codes. A
    tuple names that of each column; mechanisms of categories other than ``"krr"`` release a bit for each category. A
    column of a single category spends nothing. With `n_sampled`, codes and bits of columns that were not chosen are -1,
    and numbers minus infinity.
    """

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
        """The declared columns."""
        return self.columns

    @property
    def block_width(self) -> int:
        """Numbers of a row that are processed at a time."""
        return max(4, super().block_width)

    @cached_property
    def parts(self) -> tuple[RowMechanism, ...]:
        """The mechanism of each column."""
        domains = [domain for _, domain in self.columns.parts]
        return tuple(map(_part, domains, self.epsilons, _by_column(self.mechanism, domains)))

    def guarantee(self) -> PrivacyGuarantee:
        """Return the exact guarantee of one record with all its columns: the sum, rounded up."""
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
    if isinstance(domain, OrMissing):
        return NumberOrMissing.of(domain, float(epsilon), mechanism)
    assert isinstance(domain, Interval | Integers)
    low, high = (float(domain.low),), (float(domain.high),)
    return BoundedFeatures(_of_number(float(epsilon), mechanism), low, high, n_sampled=1, stated=float(epsilon))
