"""A number that may be missing: whether there is one is part of what is protected, and of what is told."""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from skldp._checks import check_epsilon, check_whole
from skldp.mechanisms._categorical.frequency import unbiased_share
from skldp.mechanisms._columns import OrMissing
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._numeric.bounded_features import BoundedFeatures
from skldp.mechanisms._numeric.catalogue import best_mechanism, make_mechanism
from skldp.mechanisms._numeric.unit_interval import (
    LARGEST_EPSILON,
    LEAST_EPSILON,
    UnitMechanism,
    calibration_epsilon,
    worst_quadratic,
)
from skldp.mechanisms._odds import TWO_64, bernoulli, log_ratio, round_up
from skldp.mechanisms._rows import RowMechanism, Workspace

__all__ = ["NumberOrMissing"]

# The parts of epsilon at which the number's mechanism is tried.
_PARTS = (0.375, 0.5, 0.625, 0.6875, 0.75, 0.875, 1.0)


@dataclass(frozen=True)
class NumberOrMissing(RowMechanism):
    r"""One number within bounds or none, released as a number or as missing.

    Parameters
    ----------
    values : OrMissing
        The domain. Rows hold NaN where the number is missing.
    unit : UnitMechanism
        M, of one number in [-1, 1].
    told_count : int
        Of 2^64 draws, how many tell of a missing number that it is missing.
    hidden_count : int
        Of 2^64 draws, how many say of a number that it is missing; fewer than `told_count`, and at least 1.
    stated : float
        The epsilon that was asked for.

    Raises
    ------
    ValueError
        If a parameter is not as above.

    See Also
    --------
    MixedRecord : Which makes it of every column that may be missing.

    Notes
    -----
    With p and q the two probabilities to answer "missing", a number x is answered with :math:`M(x)` where it is not,
    and a missing one with :math:`M(0)`, the answer to the middle of the bounds. The worst-case loss is the largest of

    .. math:: \ln \frac pq, \quad \ln \frac{1 - q}{1 - p} + \max_{x, z} \ln \frac{P(M(x) = z)}{P(M(0) = z)},
              \quad \varepsilon_M,

    of which the first two are made equal to the asked epsilon. Where M has two answers and the whole epsilon, this is
    randomized response with three. Of the numbers told, 1 - q of all that are there, the distance from the middle is
    unbiased once it is divided by 1 - q.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms import Interval, NumberOrMissing, OrMissing, noise_from
    >>> law = NumberOrMissing.of(OrMissing(Interval(0, 100)), 1.0)
    >>> law.guarantee().epsilon <= 1.0, round(law.told_probability, 3), round(law.hidden_probability, 3)
    (True, 0.576, 0.212)
    >>> law.release([[44.0], [np.nan]], noise_from()).rows.shape
    (2, 1)
    """

    values: OrMissing
    unit: UnitMechanism
    told_count: int
    hidden_count: int
    stated: float = field(kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.values, OrMissing):
            raise ValueError(f"values must be OrMissing. Got {self.values!r} instead.")
        check_whole("hidden_count", self.hidden_count, least=1, most=TWO_64 - 2)
        check_whole("told_count", self.told_count, least=self.hidden_count + 1, most=TWO_64 - 1)
        # Refuses a mechanism of several numbers together.
        _ = self.number

    @classmethod
    def of(cls, values: OrMissing, epsilon: float, mechanism: str = "best") -> "NumberOrMissing":
        """Make the one with the least variance at an epsilon.

        Parameters
        ----------
        values : OrMissing
        epsilon : float
            Natural log.
        mechanism : str, default="best"
            Of the number, as of :func:`make_mechanism`.

        Returns
        -------
        NumberOrMissing
            Of which `worst_variance` is least, over some parts of epsilon for the number's mechanism.

        Raises
        ------
        ValueError
            If epsilon is not a finite number, or too small.
        """
        check_epsilon(epsilon)
        unit, told, hidden = _least_variance(float(epsilon), mechanism)
        return cls(values, unit, told, hidden, stated=float(epsilon))

    @property
    def domain(self) -> OrMissing:
        """The number, or none."""
        return self.values

    @property
    def n_outputs(self) -> int:
        """One."""
        return 1

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
        """The exact guarantee of one number, and of whether there is one."""
        basis = "a number or that it is missing; exact, from the sampled integers"
        return PrivacyGuarantee(self.exact_epsilon, stated=self.stated, basis=basis)

    def unbiased(self, released: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """What is released as two unbiased numbers: the number, with the middle where it is missing, and the bit.

        Parameters
        ----------
        released : ndarray of shape (n,)

        Returns
        -------
        ndarray of shape (n, 2)
        """
        missing = np.isnan(released)
        p, q, middle = self.told_probability, self.hidden_probability, self.values.middle
        number = middle + np.where(missing, 0.0, released - middle) / (1 - q)
        return np.column_stack([number, unbiased_share(missing.astype(np.float64), p, q)])

    def _encode(self, rows: np.ndarray, out: np.ndarray, workspace: Workspace) -> None:
        out[...] = rows

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
    """The largest log-likelihood ratio of two records: of being missing, of a number from none, of two numbers."""
    of_numbers = Fraction(log_ratio(TWO_64 - hidden, TWO_64 - told)) + Fraction(unit.loss_from_middle)
    return max(log_ratio(told, hidden), round_up(of_numbers), unit.exact_epsilon)


def _variance(unit: UnitMechanism, told: float, hidden: float) -> float:
    constant, linear, square = unit.variance_coefficients
    # Of what is a number with probability 1 - q, divided by it, and 0 else; of a missing one it is less.
    kept = 1 - hidden
    of_number = worst_quadratic(constant / kept, linear / kept, (1 + square) / kept - 1)
    return of_number + max(told * (1 - told), hidden * kept) / (told - hidden) ** 2


@lru_cache(maxsize=4096)
def _least_variance(epsilon: float, name: str) -> tuple[UnitMechanism, int, int]:
    """The mechanism of the number, and the integers of its being missing, with the least variance."""
    # Beyond, numbers gain nothing, and would be given parts of epsilon that leave the bit nothing.
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
        raise ValueError(
            f"epsilon must be large enough for a number that may be missing, at least about {8 * LEAST_EPSILON:.0g}. "
            f"Got {epsilon!r} instead."
        )
    return min(found, key=lambda one: one[0])[1:]


def _counts(epsilon: float, unit: UnitMechanism) -> tuple[int, int]:
    """The integers that spend an epsilon on being missing, and as much on a number from none, both rounded below."""
    spent = calibration_epsilon(epsilon)
    left = spent - unit.loss_from_middle
    if left <= 0:
        return 0, 0
    # p = E q, and 1 - q = G (1 - p).
    odds, others = math.exp(spent), math.exp(left)
    hidden = math.ceil(math.expm1(left) / (odds * others - 1) * 2.0**64)
    told = min(math.floor(Fraction(odds) * hidden), TWO_64 - math.ceil((TWO_64 - hidden) / Fraction(others)))
    return told, hidden
