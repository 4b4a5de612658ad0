r"""Laplace and Gaussian noise on a power-of-two lattice: exact discrete laws.

The value is rounded to the lattice without bias (up with the probability of its distance from the lattice point
below), and an integer of the exact discrete law is added. Sums are integers times a power of two below 2^53, so what
is released is exactly representable, and the same lattice points can be reached from every input.

The sampled law of the integers is exactly the stated one, without truncation. A uniform real number starts with 63
bits; its logarithm is computed in double precision with a bound on the error. If that leaves two answers (a few in a
million), more bits are drawn and the logarithm is computed in decimal arithmetic to as many digits as needed. The only
assumption about the machine is that ``numpy.log`` is within 2^-46 on [2^-45, 1], four units in the last place of its
largest values there. The laws are those of Canonne, Kamath and Steinke, "The discrete Gaussian for differential
privacy", NeurIPS 2020, Algorithms 2 and 3; an exponential variable is compared instead of rational Bernoulli trials.
"""

import decimal
import itertools
import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import erfcx

from skldp._arrays import Bools, Floats, Ints, Words
from skldp._checks import check_fraction, check_integer
from skldp.laws._odds import round_up
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms.numeric._unit_mechanisms import UnitMechanism, unit_values

_ROUNDING = 2.0**-47


def gaussian_delta(sigma: float, epsilon: float, sensitivity: float = 1.0) -> float:
    """Return the least delta of Gaussian noise, rounded up: Balle and Wang, ICML 2018, Theorem 8."""
    half, shift = sensitivity / (2 * sigma), epsilon * sigma / sensitivity
    upper = (shift - half) / math.sqrt(2)
    if upper < -20:
        return 1.0
    tail, first, second = 0.5 * math.exp(-(upper**2)), erfcx(upper), erfcx((shift + half) / math.sqrt(2))
    # The two nearly cancel where epsilon is small, and both arguments are off by some units of shift + half.
    error = _ROUNDING * (1 + shift + half) ** 2 * (1 + first + second)
    return float(min(1.0, tail * (max(0.0, first - second) + error)))


def analytic_gaussian_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Return the least standard deviation of Gaussian noise that is (epsilon, delta)-private, rounded up."""
    low, high = 1.0, 1.0
    while gaussian_delta(high, epsilon) > delta:
        high *= 2
    while gaussian_delta(low, epsilon) <= delta:
        low /= 2
    root = float(brentq(lambda s: gaussian_delta(s, epsilon) - delta, low, high, xtol=1e-300, rtol=1e-14))
    step = 2.0**-46
    while gaussian_delta(root, epsilon) > delta:
        root *= 1 + step
        step *= 2
    return root * sensitivity


# A uniform number of 2^-17 or more (as an integer out of 2^63) whose 63 bits are known, or a smaller one whose 127
# bits are known, has a logarithm that is uncertain by up to 2^-46 for the bits and less than 2^-46 for numpy.
_LEAST_FAST = 2.0**46
_LOG_ERROR = 2.0**-45
# Words from here on have a uniform number of at least 2^-45.
_LEAST_DOUBLE = np.uint64(2**19)
_LEAST_POSSIBLE = 2.0**17
_LARGEST_SCALE = 2**40
# Number of proposals for each missing number in the first rounds; the last figure holds for all later rounds, where the
# first accepted proposal counts. Three in four are accepted, and a round of few numbers costs as much as one proposal.
_PROPOSALS = (1, 1, 1, 8)


def discrete_laplace(scale: int, size: int, noise: Noise) -> Ints:
    """Draw integers z with probability tanh(1 / 2s) exp(-|z| / s): magnitude floor(-s ln U) and a fair sign."""
    check_integer("The scale", scale, least=1, most=_LARGEST_SCALE)
    words = noise.words(size)
    drawn = _signed_geometric(words, scale, noise)
    again = np.flatnonzero(drawn == 0)
    again = again[_is_odd(words[again])]
    while again.size:
        anew = noise.at(again, size)
        words = anew.words(again.size)
        drawn[again] = _signed_geometric(words, scale, anew)
        again = again[(drawn[again] == 0) & _is_odd(words)]
    return drawn


def discrete_gaussian(sigma: int, size: int, noise: Noise) -> Ints:
    """Draw z with probability ~ exp(-z^2 / 2 sigma^2): a discrete Laplace, kept by an exponential coin."""
    check_integer("The scale", sigma, least=1, most=_LARGEST_SCALE)
    drawn = np.empty(size, dtype=np.int64)
    missing = np.arange(size)
    rounds = itertools.chain(_PROPOSALS, itertools.repeat(_PROPOSALS[-1]))
    while missing.size:
        n_each, anew = next(rounds), noise.at(missing, size)
        proposed = discrete_laplace(sigma, missing.size * n_each, anew)
        kept = _accepted(proposed, sigma, anew)
        if n_each > 1:
            several = kept.reshape(-1, n_each)
            proposed = proposed.reshape(several.shape)[np.arange(len(several)), several.argmax(axis=1)]
            kept = several.max(axis=1)
        # A refused proposal stands only until the next one.
        drawn[missing] = proposed
        missing = missing[np.flatnonzero(~kept)]
    return drawn


def _is_odd(words: Words) -> Bools:
    return (words & np.uint64(1)).astype(bool)


def _log_uniform(words: Words, noise: Noise) -> tuple[Floats, dict[int, int]]:
    """Return ln U within the bound, and the 64 further bits of the few small U that need them."""
    u = (words >> np.uint64(1)).view(np.int64).astype(np.float64)
    further = {}
    small = np.flatnonzero(u < _LEAST_FAST)
    if small.size:
        drawn = noise.at(small, words.size).words(small.size)
        # Smaller numbers do not occur in practice; _doubtful settles them in decimals.
        u[small] = np.maximum(u[small] + drawn * 2.0**-64, _LEAST_POSSIBLE)
        further = dict(zip(small.tolist(), drawn.tolist(), strict=True))
    u *= 2.0**-63
    np.log(u, out=u)
    return u, further


def _doubtful(unclear: Bools, words: Words) -> list[int]:
    """Return the places to settle in decimals: doubles leave two answers, or U needs more than 127 bits."""
    return np.flatnonzero(unclear | (words < _LEAST_DOUBLE)).tolist()


def _signed_geometric(words: Words, scale: int, noise: Noise) -> Ints:
    """Return floor(-scale ln U), negated where a word is odd."""
    value, further = _log_uniform(words, noise)
    value *= -scale
    magnitude = value.astype(np.int64)
    # Distance from the middle between two integers.
    value -= magnitude
    value -= 0.5
    np.abs(value, out=value)
    for i in _doubtful(value > 0.5 - scale * _LOG_ERROR, words):
        magnitude[i] = _settle(i, words, further, noise, partial(_same_floor, scale=scale))
    # -1 for odd words: negation without a branch, m xor -1 being -m - 1.
    sign = (words & np.uint64(1)).view(np.int64)
    np.negative(sign, out=sign)
    magnitude ^= sign
    magnitude -= sign
    return magnitude


def _accepted(proposed: Ints, sigma: int, noise: Noise) -> Bools:
    """Keep each proposal with probability exp(-(|z| - sigma)^2 / (2 sigma^2))."""
    words = noise.words(proposed.shape)
    value, further = _log_uniform(words, noise)
    cost = np.abs(proposed).astype(np.float64)
    cost -= sigma
    cost *= math.sqrt(0.5) / sigma
    cost *= cost
    value += cost
    kept = value <= 0
    # The cost is within 2^-49 of its size.
    cost += 1
    cost *= _LOG_ERROR
    for i in _doubtful(np.abs(value) < cost, words):
        decide = partial(_same_side, numerator=(abs(int(proposed[i])) - sigma) ** 2, denominator=2 * sigma**2)
        kept[i] = _settle(i, words, further, noise, decide)
    return kept


def _settle(
    i: int,
    words: Words,
    further: dict[int, int],
    noise: Noise,
    decide: Callable[[decimal.Decimal, decimal.Decimal], int | None],
) -> int:
    """Extend the known bits of the i-th U until `decide`, given certified bounds of -ln U, has an answer."""
    stream, leading, n_bits = noise.at(np.array([i]), words.size), int(words[i]) >> 1, 63
    if i in further:
        leading, n_bits = leading << 64 | further[i], 127
    while True:
        with decimal.localcontext() as context:
            context.prec = 40 + n_bits // 3
            context.Emax, context.Emin = decimal.MAX_EMAX, decimal.MIN_EMIN
            slack = decimal.Decimal(10) ** -(n_bits // 3 + 10)
            unit = decimal.Decimal(2) ** n_bits
            if leading:
                low = -(decimal.Decimal(leading + 1) / unit).ln() - slack
                high = -(decimal.Decimal(leading) / unit).ln() + slack
                answer = decide(low, high)
                if answer is not None:
                    return answer
        leading = (leading << 64) | int(stream.words(1)[0])
        n_bits += 64


def _same_floor(low: decimal.Decimal, high: decimal.Decimal, scale: int) -> int | None:
    # A little below 0 can only be the slack: -ln U is positive.
    down, up = max(0, math.floor(low * scale)), math.floor(high * scale)
    return down if down == up else None


def _same_side(low: decimal.Decimal, high: decimal.Decimal, numerator: int, denominator: int) -> int | None:
    if low * denominator >= numerator:
        return 1
    return 0 if high * denominator < numerator else None


_LATTICE_BITS = 24
_LARGEST_PART = 1 - 2.0**-53
# A larger epsilon would need a finer lattice than double precision holds; the noise is 1e-7 there.
_LARGEST_EPSILON = 2.0**24


def _position(x: Floats, exponent: int) -> tuple[Floats, Words]:
    """Return the lattice point at or below x, and the probability out of 2^64 of taking the one above."""
    position = np.multiply(x, 2.0**exponent, out=np.empty(x.shape))
    below = np.floor(position)
    position -= below
    # Just below a lattice point, a difference of 1 - 1e-220 is 1 in double precision, and 2^64 is no probability.
    np.minimum(position, _LARGEST_PART, out=position)
    # In two halves: numbers of 63 bits are converted many times as fast as those of 64.
    position *= 2.0**32
    leading = np.floor(position)
    position -= leading
    position *= 2.0**32
    up = leading.astype(np.int64)
    up <<= 32
    up |= position.astype(np.int64)
    return below, up.view(np.uint64)


@dataclass(frozen=True)
class _LatticeNoise(UnitMechanism):
    """Base class of Laplace and Gaussian: the lattice step is 2^-lattice_exponent."""

    @property
    @abstractmethod
    def lattice_exponent(self) -> int:
        """The k of the lattice step 2^-k."""

    @property
    def step(self) -> float:
        """The distance of two neighbouring outputs, a power of two."""
        return 2.0**-self.lattice_exponent

    def variance(self, x: npt.ArrayLike) -> Floats:
        part = _position(unit_values(x), self.lattice_exponent)[1] * 2.0**-64
        return self.step**2 * (self._noise_variance + part * (1 - part))

    @cached_property
    def variance_coefficients(self) -> tuple[float, float, float]:
        return self.step**2 * (self._noise_variance + 0.25), 0.0, 0.0

    def log_likelihood(self, output: npt.ArrayLike, x: npt.ArrayLike) -> Floats:
        """Return the log probability of each output for each input; minus infinity off the lattice.

        Parameters
        ----------
        output, x : array-like of float
            Released numbers, and true ones in [-1, 1].
        """
        below, up = _position(unit_values(x), self.lattice_exponent)
        point = np.ldexp(np.asarray(output, dtype=np.float64), self.lattice_exponent)
        part = up * 2.0**-64
        with np.errstate(divide="ignore"):
            from_below = np.log1p(-part) + self._log_mass(point - below)
            mixed = np.logaddexp(from_below, np.log(part) + self._log_mass(point - below - 1))
        return np.where(point == np.floor(point), mixed, -np.inf)

    @property
    @abstractmethod
    def _noise_variance(self) -> float:
        """Variance of the added integers."""

    @abstractmethod
    def _integers(self, size: int, noise: Noise) -> Ints:
        """Draw what is added, in lattice steps."""

    @abstractmethod
    def _log_mass(self, z: Floats) -> Floats:
        """Return the log probabilities of the added integers."""

    def _draw_numbers(self, x: np.ndarray, noise: Noise, out: np.ndarray) -> None:
        below, up = _position(x, self.lattice_exponent)
        below += noise.bernoulli(up)
        below += self._integers(x.size, noise)
        np.multiply(below, self.step, out=out, casting="same_kind")

    def _mean(self, x: float) -> Fraction:
        below, up = _position(np.array([x], dtype=np.float64), self.lattice_exponent)
        return (int(below[0]) + Fraction(int(up[0]), 2**64)) * Fraction(self.step)


@dataclass(frozen=True)
class Laplace(_LatticeNoise):
    r"""One number in [-1, 1] with discrete Laplace noise of scale :math:`2 / \varepsilon`.

    Parameters
    ----------
    epsilon : float
        Natural log, at least 1e-6. For d values together, use ``epsilon / d`` for each.
    lattice_bits : int, default=24
        The scale is between 2^lattice_bits and twice as many lattice steps.

    Raises
    ------
    ValueError
        If `epsilon` is not a finite number of at least 1e-6.

    Notes
    -----
    The range is :math:`\Delta = 2^{k + 1}` steps of :math:`2^{-k}`, the scale the integer
    :math:`s = \lceil \Delta / \varepsilon \rceil` of steps, and the exact epsilon :math:`\Delta / s`, which -1 and 1
    attain; rounding the input to the lattice only mixes the laws of lattice points.

    References
    ----------
    Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020.

    Examples
    --------
    >>> from skldp.mechanisms import Laplace
    >>> round(Laplace(1.0).worst_variance, 6)
    8.0
    """

    lattice_bits: int = _LATTICE_BITS

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("lattice_bits", self.lattice_bits, least=2, most=28)

    @cached_property
    def lattice_exponent(self) -> int:
        """The k of the lattice step 2^-k."""
        used = min(float(self.epsilon), _LARGEST_EPSILON)
        return self.lattice_bits + max(1 - self.lattice_bits, math.ceil(math.log2(used)) - 1)

    @cached_property
    def scale(self) -> int:
        """The scale of the noise, in lattice steps."""
        steps = Fraction(2) ** (self.lattice_exponent + 1) / Fraction(min(float(self.epsilon), _LARGEST_EPSILON))
        # One above the ceiling unless exact: the float 0.1 exceeds a tenth, and ten of them must stay within 1.
        return math.ceil(steps) + (steps.denominator > 1)

    @cached_property
    def exact_epsilon(self) -> float:
        """The range over the scale, both in lattice steps."""
        return round_up(Fraction(2) ** (self.lattice_exponent + 1) / self.scale)

    @cached_property
    def _noise_variance(self) -> float:
        return 0.5 / math.sinh(0.5 / self.scale) ** 2

    def _integers(self, size: int, noise: Noise) -> Ints:
        return discrete_laplace(self.scale, size, noise)

    def _log_mass(self, z: Floats) -> Floats:
        return math.log(math.tanh(0.5 / self.scale)) - np.abs(z) / self.scale


@dataclass(frozen=True)
class Gaussian(_LatticeNoise):
    r"""Numbers in [-1, 1], several released together, with discrete Gaussian noise.

    Parameters
    ----------
    epsilon : float
        Natural log, at least 1e-6, for all values together.
    delta : float
        Inside (0, 1).
    n_values : int, default=1
        Number d of values released together; their Euclidean sensitivity is :math:`2 \sqrt{d}`.
    lattice_bits : int, default=24
        The standard deviation is between 2^lattice_bits and twice as many lattice steps, or a little more.

    Raises
    ------
    ValueError
        If a parameter is out of range, or delta is too small for the lattice.

    Notes
    -----
    In lattice steps let the standard deviation be the integer s. The discrete law has no larger delta than

    .. math:: \delta_{\text{continuous}}(s) + \frac{n (1 + \Delta / s)^2}{12 s^2}

    for all pairs of inputs, :math:`\Delta` being one value's range: replace the n sums by integrals one at a time; the
    summand is a normal density times a monotone function with values in [0, 1] and slopes up to :math:`\Delta / s^2`,
    and a sum over the integers differs from the integral by a twelfth of the total variation of the derivative at
    most (Euler and Maclaurin). At the default lattice the second term is about 1e-16 for each value. The guarantee
    has the requested epsilon and this bound as its delta. Rounding the input to the lattice only mixes such laws, which
    cannot increase delta.

    References
    ----------
    Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020; Balle and Wang,
    "Improving the Gaussian mechanism for differential privacy", ICML 2018.

    Examples
    --------
    >>> from skldp.mechanisms import Gaussian
    >>> mechanism = Gaussian(1.0, 1e-5)
    >>> round(mechanism.worst_variance**0.5 / 2, 4), mechanism.guarantee().delta <= 1e-5
    (3.7306, True)
    """

    delta: float
    n_values: int = 1
    lattice_bits: int = _LATTICE_BITS

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("lattice_bits", self.lattice_bits, least=2, most=28)
        check_fraction("The Gaussian mechanism's delta", self.delta)
        check_integer("n_values", self.n_values, least=1)
        least = 4 * self._lattice_term
        if self.delta < least:
            raise ValueError(f"delta must be at least {least:.3g} on this lattice; got {self.delta!r}.")

    @property
    def n_outputs(self) -> int:
        """The number of values that are released together."""
        return int(self.n_values)

    @cached_property
    def lattice_exponent(self) -> int:
        """The k of the lattice step 2^-k."""
        # Never below 0: the ends of [-1, 1] must be lattice points.
        return max(0, self.lattice_bits - math.floor(math.log2(self._sigma(self.delta))))

    @cached_property
    def sigma(self) -> int:
        """The standard deviation of the noise, in lattice steps."""
        aim = self.delta * (1 - 2.0**-40) - self._lattice_term
        sigma = math.ceil(math.ldexp(self._sigma(aim), self.lattice_exponent))
        # Rounded up once more: the delta of the discrete law may slightly exceed that of real numbers.
        while self._delta(sigma) > self.delta:
            sigma += 1
        return sigma

    @cached_property
    def exact_epsilon(self) -> float:
        """The requested epsilon, which holds with :attr:`exact_delta`."""
        return float(self.epsilon)

    @cached_property
    def exact_delta(self) -> float:
        """Upper bound on the delta of the sampled law at the requested epsilon."""
        return self._delta(self.sigma)

    def guarantee(self) -> PrivacyGuarantee:
        """Return the guarantee of one release of `n_values` values."""
        basis = "discrete Gaussian, delta by Balle and Wang 2018 with the lattice accounted for"
        return PrivacyGuarantee(self.exact_epsilon, self.exact_delta, stated=float(self.epsilon), basis=basis)

    @cached_property
    def zcdp(self) -> Fraction:
        r"""Return :math:`\rho = n \Delta^2 / (2 \sigma^2)`, in whole lattice steps: Canonne et al., Theorem 14."""
        return Fraction(self.n_values * 4 ** (self.lattice_exponent + 1), 2 * self.sigma**2)

    def _delta(self, sigma: int) -> float:
        sensitivity = math.ldexp(2 * math.sqrt(self.n_values), self.lattice_exponent)
        return (gaussian_delta(sigma, self.epsilon, sensitivity) + self._lattice_term) * (1 + 2.0**-50)

    @cached_property
    def _lattice_term(self) -> float:
        # The standard deviation is at least 2^lattice_bits steps, whatever is added to it afterwards.
        ratio = 2 / self._sigma(self.delta)
        return self.n_values * (1 + ratio) ** 2 / 12 * 4.0**-self.lattice_bits

    def _sigma(self, delta: float) -> float:
        sensitivity = 2 * math.sqrt(self.n_values)
        return analytic_gaussian_sigma(min(float(self.epsilon), _LARGEST_EPSILON), delta, sensitivity)

    @cached_property
    def _noise_variance(self) -> float:
        # The discrete law's variance differs from sigma^2 by a part of exp(-2 pi^2 sigma^2), and is below it.
        return float(self.sigma) ** 2

    def _integers(self, size: int, noise: Noise) -> Ints:
        return discrete_gaussian(self.sigma, size, noise)

    def _log_mass(self, z: Floats) -> Floats:
        return -0.5 * (z / self.sigma) ** 2 - math.log(self.sigma * math.sqrt(2 * math.pi))
