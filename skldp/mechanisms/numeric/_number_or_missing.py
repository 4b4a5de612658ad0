"""Mechanism of one number that may be missing: a mechanism of numbers, and a bit."""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from skldp._arrays import Floats
from skldp._checks import check_epsilon, check_integer
from skldp.domains._columns import OrMissing
from skldp.laws._few_answers import worst_quadratic
from skldp.laws._odds import LARGEST_EPSILON, LEAST_EPSILON, TWO_64, calibration_epsilon, log_ratio, round_up
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise, bernoulli
from skldp.mechanisms._rows import RowMechanism, Workspace
from skldp.mechanisms.categorical._frequency import unbiased_share
from skldp.mechanisms.numeric._bounded_features import BoundedFeatures, best_mechanism, make_mechanism
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
