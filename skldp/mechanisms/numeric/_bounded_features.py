r"""Rows of numbers within declared bounds, numbers that may be missing, and the mechanisms for them by name."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from skldp._arrays import Floats, Ints
from skldp._checks import check_choice, check_epsilon, check_integer
from skldp.domains._column import Column
from skldp.domains._domain import Box
from skldp.laws._categories import bernoulli
from skldp.laws._few_answers import worst_quadratic
from skldp.laws._integers import IntegerLaw
from skldp.laws._numbers import MOST_TOGETHER, sampled_law
from skldp.laws._odds import (
    LARGEST_EPSILON,
    LEAST_EPSILON,
    TWO_64,
    calibration_epsilon,
    log_ratio,
    round_up,
    split_epsilon,
)
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._rows import RowMechanism, SampledFeatures, Workspace
from skldp.mechanisms.categorical._frequency import unbiased_share
from skldp.mechanisms.numeric._additive import Gaussian, Laplace
from skldp.mechanisms.numeric._points import Points
from skldp.mechanisms.numeric._unit_mechanisms import (
    Duchi,
    DuchiVector,
    Hybrid,
    HybridThreeOutputs,
    JointMechanism,
    Piecewise,
    SquareWave,
    ThreeOutputs,
    UnitMechanism,
)
from skldp.mechanisms.vector._privunit import PrivUnitBall

# Rows stay in single precision if centres are at most this many half-widths, and half-widths are in this range.
_NEAR = 4.0
_SINGLE_RADII = (1e-30, 1e30)


def worst_sampled_variance(mechanism: UnitMechanism, n_features: int, n_sampled: int) -> float:
    r"""Return the largest variance of one feature of [-1, 1], of which k of d are released times d / k."""
    scale = n_features / n_sampled
    if scale == 1:
        return mechanism.worst_variance
    size = np.linspace(0, 1, 4097)
    return float((scale * (mechanism.variance(size) + size**2) - size**2).max())


def mean_sampled_variance(mechanism: UnitMechanism, n_features: int, n_sampled: int, prior: tuple[float, ...]) -> float:
    """Return the mean over a prior of equal bins of [-1, 1] of the variance of one feature; see above."""
    x = (np.arange(4096) + 0.5) / 2048 - 1
    weights = np.array(prior)[((x + 1) / 2 * len(prior)).astype(np.int64)]
    scale = n_features / n_sampled
    return float(weights @ (scale * (mechanism.variance(x) + x**2) - x**2) / weights.sum())


@dataclass(frozen=True)
class BoundedFeatures(SampledFeatures):
    """Rows of numbers of center c and half-width r, released as c + r (d / k) M((x - c) / r)."""

    mechanism: UnitMechanism
    low: tuple[float, ...] = field(repr=False)
    high: tuple[float, ...] = field(repr=False)
    stated: float = field(kw_only=True)

    has_bounds: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("low", "high"):
            object.__setattr__(self, name, getattr(self.domain, name))
        together = self.mechanism.n_outputs
        if self.n_sampled % together:
            raise ValueError(f"n_sampled must be a multiple of {together} values; got {self.n_sampled}.")

    @cached_property
    def domain(self) -> Box:
        return Box(self.low, self.high)

    @cached_property
    def center(self) -> Floats:
        return self.domain.center

    @property
    def radius(self) -> Floats:
        return self.domain.radius

    @property
    def worst_variance(self) -> Floats:
        return self.radius**2 * worst_sampled_variance(self.mechanism, self.n_outputs, self.n_sampled)

    def guarantee(self) -> PrivacyGuarantee:
        of_one = self.mechanism.guarantee()
        n_releases = self.n_sampled // self.mechanism.n_outputs
        alone = of_one.epsilon if self.mechanism.n_outputs == 1 else None
        some = "" if self.n_sampled == self.n_outputs else f"{self.n_sampled} of {self.n_outputs} features; "
        return PrivacyGuarantee(
            round_up(n_releases * Fraction(of_one.epsilon)),
            delta=n_releases * of_one.delta,
            per_feature=alone if self.n_outputs > 1 else None,
            stated=self.stated,
            basis=some + of_one.basis,
        )

    @property
    def integer_law(self) -> IntegerLaw:
        return sampled_law(self.n_outputs, self.n_sampled, self.mechanism.integer_law)

    @property
    def device_law(self) -> IntegerLaw:
        return sampled_law(self.n_outputs, self.n_sampled, self.mechanism.device_law)

    @property
    def zcdp(self) -> Fraction | None:
        of_one = self.mechanism.zcdp
        return None if of_one is None else of_one * (self.n_sampled // self.mechanism.n_outputs)

    def variance(self, values: npt.ArrayLike) -> Floats:
        """Return the variance of the release of each value, for rows of shape (n, n_outputs)."""
        x = self._as_unit(values)
        scale = self.n_outputs / self.n_sampled
        return self.radius**2 * (scale * (self.mechanism.variance(x) + x**2) - x**2)

    def bias(self, values: npt.ArrayLike) -> Floats:
        """Return the mean of the release minus each value, for rows of shape (n, n_outputs)."""
        return self.radius * self.mechanism.bias(self._as_unit(values))

    def working_dtype(self, dtype: np.dtype) -> np.dtype:
        """Return float32 if the rows have it and the mechanism and the bounds lose no precision."""
        single = dtype == np.float32 and self.mechanism.takes_singles and self._fit_singles
        return np.dtype(np.float32 if single else np.float64)

    def _draw_features(
        self, values: np.ndarray, features: Ints | None, noise: Noise, out: np.ndarray, workspace: Workspace
    ) -> None:
        center, radius = self.center.astype(out.dtype, copy=False), self.radius.astype(out.dtype, copy=False)
        if features is not None:
            center, radius = center[features], radius[features]
        unit = np.subtract(values, center, out=workspace.take("unit", values.shape, out.dtype))
        unit /= radius
        # Rounding may put values within the bounds beyond 1.
        np.clip(unit, -1, 1, out=unit)
        self.mechanism._draw_numbers(unit.reshape(-1), noise, out.reshape(-1))
        out *= radius

    def _original_squares(self, squares: Floats) -> Floats:
        return self.radius**2 * self.mechanism.original_squares(squares / self.radius**2)

    def _as_unit(self, values: npt.ArrayLike) -> Floats:
        return np.clip((self._as_rows(values) - self.center) / self.radius, -1, 1)

    @cached_property
    def _fit_singles(self) -> bool:
        # A centre far from 0 for its width would be rounded by much of the width.
        near = np.abs(self.center) <= _NEAR * self.radius
        return bool((near & (self.radius > _SINGLE_RADII[0]) & (self.radius < _SINGLE_RADII[1])).all())


@dataclass(frozen=True)
class PrivUnitBox(JointMechanism):
    """Several numbers in [-1, 1], released by PrivUnit as one vector of the ball of radius sqrt(d) around their box."""

    # With second moments a along and b across a direction, the variance of a value x is d b + (a - b - 1) x^2; a - b is
    # 1 but for a billionth. The guarantee is PrivUnit's: proved for the law of real numbers, not from integers.

    _fewest: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if self.n_values == 1:
            raise ValueError("PrivUnit needs at least two numbers in a row; got n_features = 1.")
        super().__post_init__()

    @cached_property
    def inner(self) -> PrivUnitBall:
        return PrivUnitBall(int(self.n_values), float(self.epsilon), math.sqrt(self.n_values))

    @cached_property
    def device_law(self) -> IntegerLaw:
        return self.inner.sphere.closest_law(self.n_outputs, self.n_outputs)

    @property
    def exact_epsilon(self) -> float:
        return self.inner.guarantee().epsilon

    def guarantee(self) -> PrivacyGuarantee:
        return self.inner.guarantee()

    @cached_property
    def variance_coefficients(self) -> tuple[float, float, float]:
        along, across = self.inner.second_moments()
        return self.n_values * across, 0.0, along - across - 1

    def _draw_numbers(self, x: np.ndarray, noise: Noise, out: np.ndarray) -> None:
        shape = (-1, self.n_outputs)
        self.inner._draw(x.reshape(shape), noise, out.reshape(shape), Workspace())

    def _mean(self, x: float) -> Fraction:
        return Fraction(x)


_ALONE: dict[str, Callable[[float], UnitMechanism]] = {
    "duchi": Duchi,
    "three_outputs": ThreeOutputs,
    "piecewise": Piecewise,
    "piecewise_sub": lambda epsilon: Piecewise(epsilon, "sub"),
    "piecewise_opt": lambda epsilon: Piecewise(epsilon, "opt"),
    "square_wave": SquareWave,
    "hybrid": Hybrid,
    "hybrid_tp": HybridThreeOutputs,
    "laplace": Laplace,
    "points": Points,
    # Sun, Qian and Chen, IJCAI 2021: Duchi's answer about a public centre, which is the middle of the bounds.
    "ldp_fl": Duchi,
}
JOINT_MECHANISMS = ("duchi_vector", "gaussian", "privunit")
#: Names that :func:`make_mechanism` takes: those for one value, then those for several values together.
NUMERIC_MECHANISMS = (*_ALONE, *JOINT_MECHANISMS)


def number_of_sampled_features(
    n_sampled: Any, mechanism: str, epsilon: float, n_features: int, prior: tuple[float, ...] = ()
) -> int:
    """Resolve "auto" (one per 2.5 of epsilon or one more: Wang et al., ICDE 2019, Eq. 12), "all" or a number."""
    if isinstance(n_sampled, str) and n_sampled in ("auto", "all"):
        if n_sampled == "all" or mechanism in JOINT_MECHANISMS:
            return n_features
        few = max(1, int(min(n_features, epsilon // 2.5)))
        # At an epsilon below 1 for each, fewer features are better.
        if few == n_features or epsilon < few + 1:
            return few
        made = {k: make_mechanism(mechanism, epsilon, k, prior=prior) for k in (few, few + 1)}
        return min(made, key=lambda k: _error(made[k], n_features, k, prior))
    check_integer("n_sampled_features, if not 'auto' or 'all',", n_sampled, least=1, most=n_features)
    return int(n_sampled)


def make_mechanism(
    name: str, epsilon: float, n_released: int = 1, delta: float = 0.0, prior: tuple[float, ...] = ()
) -> UnitMechanism:
    """Make the mechanism that releases a number of values in [-1, 1] within one epsilon."""
    check_choice("mechanism", name, NUMERIC_MECHANISMS)
    if name == "gaussian":
        return Gaussian(epsilon, delta, n_released)
    if delta != 0:
        raise ValueError(f"Only the Gaussian mechanism has a delta; for {name!r} it must be 0; got {delta!r}.")
    if name in ("duchi_vector", "privunit"):
        return (DuchiVector if name == "duchi_vector" else PrivUnitBox)(epsilon, n_released)
    if 0 < epsilon / n_released < LEAST_EPSILON:
        least = f"{LEAST_EPSILON * n_released:.3g}"
        raise ValueError(f"epsilon must be at least {least}, since {n_released} values share it; got {epsilon!r}.")
    of_one = split_epsilon(float(epsilon), n_released)
    return Points(of_one, prior) if name == "points" else _ALONE[name](of_one)


@lru_cache(maxsize=256, typed=True)
def best_mechanism(
    epsilon: float,
    n_features: int,
    *,
    n_sampled: Any = "auto",
    delta: float = 0.0,
    prior: tuple[float, ...] = (),
    with_points: bool = False,
) -> tuple[str, UnitMechanism, int]:
    """Return the mechanism with the least worst-case variance of a feature, or mean variance under a prior."""
    best = None
    for name in NUMERIC_MECHANISMS:
        if name == "ldp_fl" or (name == "gaussian" and delta == 0) or (name == "points" and not with_points):
            continue
        n_released = number_of_sampled_features(n_sampled, name, epsilon, n_features, prior)
        fits = {"duchi_vector": n_released <= MOST_TOGETHER, "privunit": 2 <= n_released <= MOST_TOGETHER}
        if not fits.get(name, True):
            continue
        mechanism = make_mechanism(name, epsilon, n_released, delta if name == "gaussian" else 0.0, prior)
        variance = _error(mechanism, n_features, n_released, prior)
        # Equal laws may differ in the last digits: the simpler one, which comes first, keeps its place.
        if best is None or variance < best[0] * (1 - 1e-9):
            best = variance, name, mechanism, n_released
    assert best is not None
    return best[1:]


def _error(mechanism: UnitMechanism, n_features: int, n_sampled: int, prior: tuple[float, ...]) -> float:
    """Return the worst-case variance of a feature, or its mean under a prior."""
    if prior:
        return mean_sampled_variance(mechanism, n_features, n_sampled, prior)
    return worst_sampled_variance(mechanism, n_features, n_sampled)


_UNIT_COLUMN = Column(-1, 1, missing="category")
# The parts of epsilon at which the mechanism of a number that may be missing is tried.
_PARTS = (0.375, 0.5, 0.625, 0.6875, 0.75, 0.875, 1.0)


@dataclass(frozen=True)
class NumberOrMissing(RowMechanism):
    """Mechanism of one number within bounds that may be missing, which is NaN."""

    # p = `missing_given_missing` / 2^64 is the chance of the answer "missing" to a missing number, and
    # q = `missing_given_present` / 2^64 to any other number. Otherwise M answers, about the number or about 0. The loss
    # is the largest of ln(p / q), ln((1 - q) / (1 - p)) + max ln(P(M(x) = z) / P(M(0) = z)) and epsilon of M.

    values: Column
    unit: UnitMechanism
    missing_given_missing: int
    missing_given_present: int
    stated: float = field(kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.values, Column) or not self.values.may_be_nan:
            raise ValueError(f"values must be a Column with missing='category'; got {self.values!r}.")
        check_integer("missing_given_present", self.missing_given_present, least=1, most=TWO_64 - 2)
        check_integer(
            "missing_given_missing", self.missing_given_missing, least=self.missing_given_present + 1, most=TWO_64 - 1
        )
        # Raises on a mechanism of several numbers together.
        _ = self.number

    @classmethod
    def of(cls, values: Column, epsilon: float, mechanism: str = "best") -> "NumberOrMissing":
        """Make the one with the least variance at an epsilon."""
        check_epsilon(epsilon)
        return replace(_least_variance(float(epsilon), mechanism), values=values, stated=float(epsilon))

    @property
    def domain(self) -> Column:
        return self.values

    @property
    def middle(self) -> Floats:
        """Encoding of a number that was not asked: the centre, and the mean chance of an answer as missing."""
        return np.array([self.values.center, (self.p_given_missing + self.p_given_present) / 2])

    @cached_property
    def number(self) -> BoundedFeatures:
        low, high = self.values.ends
        return BoundedFeatures(self.unit, (low,), (high,), n_sampled=1, stated=self.stated)

    @property
    def p_given_missing(self) -> float:
        """The probability p that a missing number is answered as missing."""
        return self.missing_given_missing / TWO_64

    @property
    def p_given_present(self) -> float:
        """The probability q that a number that is there is answered as missing."""
        return self.missing_given_present / TWO_64

    @cached_property
    def exact_epsilon(self) -> float:
        """The worst-case log-likelihood ratio of what is sampled, rounded up."""
        told, hidden = self.missing_given_missing, self.missing_given_present
        # Of a number and a missing one, of two numbers behind a coin, and of two numbers.
        of_numbers = Fraction(log_ratio(TWO_64 - hidden, TWO_64 - told)) + Fraction(self.unit.loss_from_middle)
        return max(log_ratio(told, hidden), round_up(of_numbers), self.unit.exact_epsilon)

    @property
    def worst_variance(self) -> float:
        """The largest variance of the number's unbiased estimate, in half widths, and of the bit's, together."""
        constant, linear, square = self.unit.variance_coefficients
        # A number is kept with probability 1 - q and divided by it, else 0; a missing one has a smaller variance.
        told, hidden, kept = self.p_given_missing, self.p_given_present, 1 - self.p_given_present
        of_number = worst_quadratic(constant / kept, linear / kept, (1 + square) / kept - 1)
        return of_number + max(told * (1 - told), hidden * kept) / (told - hidden) ** 2

    def guarantee(self) -> PrivacyGuarantee:
        basis = "a number or that it is missing; exact, from the sampled integers"
        return PrivacyGuarantee(self.exact_epsilon, stated=self.stated, basis=basis)

    def unbiased(self, released: Floats) -> Floats:
        """Return unbiased scores of the number (the middle if it is missing) and of the missing bit, shape (n, 2)."""
        missing = np.isnan(released)
        p, q, middle = self.p_given_missing, self.p_given_present, self.values.center
        number = middle + np.where(missing, 0.0, released - middle) / (1 - q)
        return np.column_stack([number, unbiased_share(missing.astype(np.float64), p, q)])

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        missing = np.isnan(rows)
        there = workspace.take("there", rows.shape, out.dtype)
        there[...] = np.where(missing, self.values.center, rows)
        self.number._draw(there, noise, out, workspace)
        told, hidden = (workspace.take(name, rows.shape, bool) for name in ("told", "hidden"))
        bernoulli(noise, self.missing_given_missing, told, workspace)
        bernoulli(noise, self.missing_given_present, hidden, workspace)
        out[np.where(missing, told, hidden)] = np.nan


@lru_cache(maxsize=4096)
def _least_variance(epsilon: float, name: str) -> NumberOrMissing:
    """Return the mechanism of a number in [-1, 1], or none, with the least variance."""
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
            if 0 < hidden < told:
                found.append(NumberOrMissing(_UNIT_COLUMN, unit, told, hidden, stated=epsilon))
    found = [one for one in found if one.exact_epsilon <= epsilon]
    if not found:
        least = f"about {8 * LEAST_EPSILON:.0g}"
        raise ValueError(f"epsilon must be at least {least} for a number that may be missing; got {epsilon!r}.")
    return min(found, key=lambda one: one.worst_variance)


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
