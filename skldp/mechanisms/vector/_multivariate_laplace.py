r"""Normal numbers, the public grid of released vectors, spherical caps, and the multivariate Laplace mechanism.

The low bits of floats can identify an input (Mironov, CCS 2012). Every released vector is therefore rounded to
multiples of a power of two that depends on public parameters alone. Rounding is post-processing: it cannot weaken the
law of the real numbers, and it removes the bits in which the arithmetic of one input differs from that of another.

**Multivariate Laplace noise** is drawn in real numbers, of which exactly the nearest lattice point is computed. Take
:math:`z = \|h\| g` with independent standard normal g in d and h in d + 1 dimensions. Given h, z is normal with
variance :math:`\|h\|^2` per coordinate, and this mixture has the density :math:`\propto e^{-\|z\|}` (the square of
:math:`\|h\|` is chi-square with d + 1 degrees of freedom: Andrews and Mallows, "Scale mixtures of normal
distributions", 1974). Box and Muller's transform makes normal numbers from uniform ones, and :math:`\|h\|^2` from
exponential ones, all without rejection.

A uniform real number is a word with infinitely many further bits. Every operation keeps a bound on its error, from
these bits and from rounding, so the lattice point of a coordinate is certain unless a border between two cells is
within the bound. Then the same operations are made in decimals, with further bits of the words where they are needed.
The released point is that of the real numbers, whose law is exact, and rounding them is post-processing. Logarithms,
sines and cosines of floats are assumed to be accurate to 4 units in the last place.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt
from scipy import special

from skldp._arrays import Floats, Positions, Words, as_numbers
from skldp._checks import check_dimension, check_positive
from skldp.domains._domain import Anywhere, Ball, own_vectors
from skldp.domains._norms import nearest_rows, scaled_norms
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise, as_uniform
from skldp.mechanisms._rows import RowMechanism, Workspace

# 14 of the bits of a float32 resolve one standard deviation of a coordinate; 9 are left for its tails.
_GRID_BITS = 14
# Pairs of normal numbers made at a time: few enough for their arrays to stay in the cache.
_CHUNK = 32_768
# In fewer dimensions, single precision has too few directions for the cells of the grid.
_FLOAT64_BELOW = 16
_TURN = np.float32(2 * math.pi * 2.0**-32)


def gaussians(
    noise: Noise,
    shape: tuple[int, int],
    dtype: npt.DTypeLike = np.float32,
    workspace: Workspace | None = None,
    out: npt.NDArray[np.floating] | None = None,
) -> npt.NDArray[np.floating]:
    """Draw standard normal numbers by Box and Muller's transform of words; both of a pair are in one row."""
    n, d = shape
    half = (d + 1) // 2
    workspace = Workspace() if workspace is None else workspace
    single = np.dtype(dtype) == np.float32
    words = workspace.take("words", (n, 2 * half), np.uint32 if single else np.uint64)
    noise.fill(words)
    if out is None:
        out = words.view(dtype)[:, :d]
    step = max(1, _CHUNK // half)
    for start in range(0, n, step):
        for left in range(0, half, _CHUNK):
            right = min(left + _CHUNK, half)
            rows = slice(start, start + step)
            radius, angle = words[rows, left:right], words[rows, half + left : half + right]
            if single:
                radius, angle = radius.astype(np.float32), angle.astype(np.float32)
                radius += np.float32(0.5)
                radius *= np.float32(2.0**-32)
                angle *= _TURN
            else:
                radius, angle = as_uniform(radius), as_uniform(angle) * (2 * math.pi)
            np.log(radius, out=radius)
            radius *= -2
            np.sqrt(radius, out=radius)
            cosine = np.cos(angle)
            cosine *= radius
            out[rows, left:right] = cosine
            # With an odd number, the last sine is not needed.
            if left < d - half:
                np.sin(angle, out=angle)
                angle *= radius
                out[rows, half + left : half + right] = angle[:, : d - half - left]
    return out


def unit_rows(values: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Divide rows (n, d) by their norms, in double precision; a row of zeros stays as it is."""
    rows = values.astype(np.float64)
    norms = scaled_norms(rows)
    rows /= np.where(norms > 0, norms, 1.0)[:, None]
    if out is None:
        return rows.astype(values.dtype, copy=False)
    out[...] = rows
    return out


def gaussian_rows(noise: Noise, shape: tuple[int, int], workspace: Workspace) -> tuple[Floats, Floats]:
    """Draw rows of normal numbers, in the precision that their dimension needs, and return their norms too."""
    dtype = np.float64 if shape[1] < _FLOAT64_BELOW else np.float32
    points = workspace.take("directions", shape, np.float64)
    gaussians(noise, shape, dtype, workspace, points)
    return points, np.sqrt(np.einsum("ij,ij->i", points, points))


def public_step(spread: float) -> float:
    """Return the largest power of two that is at most 2^-14 of a coordinate's standard deviation."""
    return math.ldexp(1.0, math.frexp(spread)[1] - 1 - _GRID_BITS)


def round_steps(values: np.ndarray, step: float) -> np.ndarray:
    """Round an array in units of the step, in place, to multiples of it, and return it."""
    np.rint(values, out=values)
    values *= values.dtype.type(step)
    values += values.dtype.type(0)
    return values


def cap_probability(height: float, d: int) -> float:
    """Return c = I_{1 - g^2}((d - 1) / 2, 1/2) / 2 with g = 1 - height; off by at most 1.6e-11 up to d = 1,000,000."""
    if d < 2:
        raise ValueError(f"d must be at least 2; got {d!r}.")
    if not 0 < height <= 1:
        raise ValueError(f"height must lie in (0, 1]; got {height!r}.")
    a = (d - 1) / 2
    gamma, x = 1 - height, height * (2 - height)
    scale = math.exp(_power_log(gamma, x, a)) * _inverse_beta(a)
    if gamma * gamma < min(0.5, 4 / a):
        return 0.5 - scale * gamma * _series(a + 0.5, 1.5, gamma * gamma)
    return scale * gamma / (2 * a) * _continued_fraction(a, x)


def cap_height(c: float, d: int) -> float:
    """Return the height of the cap of a given probability: the inverse of :func:`cap_probability`."""
    a = (d - 1) / 2
    height = 2 * float(special.betaincinv(a, a, c))
    for _ in range(2):
        # Newton's step on the logarithm, since an old scipy is good to ten digits only.
        gamma, x = 1 - height, height * (2 - height)
        density = math.exp(_power_log(gamma, x, a) - math.log(x)) * _inverse_beta(a)
        now = cap_probability(height, d)
        height -= now * math.log(now / c) / density
    return height


def log_mean_density(height: float, d: int) -> float:
    r"""Return the log of :math:`\int_\gamma^1 t f(t) dt`, f the density of a coordinate of a sphere's point."""
    a = (d - 1) / 2
    return _power_log(1 - height, height * (2 - height), a) + math.log(_inverse_beta(a) / (2 * a))


def _power_log(gamma: float, x: float, a: float) -> float:
    """Return the log of (1 - gamma^2)^a, from the smaller of gamma and 1 - gamma^2."""
    return a * (math.log1p(-gamma * gamma) if x > 0.5 else math.log(x))


def _inverse_beta(a: float) -> float:
    """Return 1 / B(1/2, a) = Gamma(a + 1/2) / (Gamma(a) sqrt(pi))."""
    if a < 100:
        return math.exp(math.lgamma(a + 0.5) - math.lgamma(a)) / math.sqrt(math.pi)
    t = 1 / a
    ratio = 1 + t * (-1 / 8 + t * (1 / 128 + t * (5 / 1024 + t * (-21 / 32768 + t * (-399 / 262144)))))
    return math.sqrt(a / math.pi) * ratio


def _series(numerator: float, denominator: float, z: float) -> float:
    """Return Gauss's function F(numerator, 1; denominator; z) by its series of positive terms."""
    term = total = 1.0
    n = 0
    while term > total * 1e-17:
        term *= (numerator + n) / (denominator + n) * z
        total += term
        n += 1
    return total


def _continued_fraction(a: float, x: float) -> float:
    """Return Gauss's function F(a + 1/2, 1; a + 1; x) by Lentz's method."""
    tiny = 1e-300
    b = 0.5
    c, value = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (value if abs(value) > tiny else tiny)
    total = d
    for m in range(1, 1_000_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d, c = 1 / (1 + even * d), 1 + even / c
        total *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d, c = 1 / (1 + odd * d), 1 + odd / c
        total *= d * c
        if abs(d * c - 1) < 1e-16:
            break
    return total


@dataclass(frozen=True)
class _Arithmetic:
    """Functions of arrays of floats or decimals, the relative error of each, and the error of a uniform number."""

    log: Callable[[Any], Any]
    cosine: Callable[[Any], Any]
    sine: Callable[[Any], Any]
    turn: Any
    unit: Any
    width: Any


_FLOATS = _Arithmetic(np.log, np.cos, np.sin, 2 * math.pi, 2.0**-53, 2.0**-53)


def noisy_points(rows: Floats, noise: Noise, scale: Fraction, step: float) -> Floats:
    """Return the nearest lattice points (n, d) of rows with noise of density proportional to exp(-||z|| / scale)."""
    (n, d), in_steps = rows.shape, scale / Fraction(step)
    words = noise.words((n, n_words(d)))
    with np.errstate(all="ignore"):
        noises, errors = _noise(as_uniform(words), d, float(in_steps), _FLOATS)
        # Exact but for underflow: noise is added to what is left of a row beyond its own lattice point.
        own = rows * (1 / step)
        base = np.rint(own)
        rest = np.where(np.isfinite(base), own - base, 0.0)
        total = noises + rest
        moved = np.rint(total)
        # NaN is unsure.
        unsure = ~(np.abs(total - moved) + 2.0**-51 * (np.abs(total) + 1) + errors < 0.5)
        for row in np.flatnonzero(unsure.any(axis=1)):
            columns = np.flatnonzero(unsure[row])
            stream = noise.at(np.array([row]), n)
            moved[row, columns] = decided(words[row], stream, rest[row, columns], columns, d, in_steps)
        base += moved
        return base * step


def n_words(d: int) -> int:
    """Return the number of uniform numbers for d dimensions: for pairs of normal numbers, and for the scale."""
    return 3 * ((d + 1) // 2) + 2 * (1 - d % 2)


def decided(words: Words, noise: Noise, rest: Floats, columns: Positions, d: int, in_steps: Fraction) -> list[float]:
    """Return the lattice points of some coordinates of one row, from as many further bits as they need."""
    known, bits = [int(word) for word in words], 64
    while True:
        with localcontext(prec=bits // 3 + 40) as context:
            tiny = Decimal(10) ** (12 - context.prec)
            by = _decimals(tiny, Decimal(2) ** -bits)
            uniform = np.array([[(word + Decimal("0.5")) / 2**bits for word in known]], dtype=object)
            scale = Decimal(in_steps.numerator) / Decimal(in_steps.denominator)
            noises, errors = _noise(uniform, d, scale, by)
            total = [noises[0, column] + Decimal(float(own)) for column, own in zip(columns, rest, strict=True)]
            moved = [one.to_integral_value() for one in total]
            apart = (abs(one - near) + tiny * (abs(one) + 1) for one, near in zip(total, moved, strict=True))
            if max(apart) + errors[0, 0] < Decimal("0.5"):
                return [float(one) for one in moved]
        known = [(word << 64) + int(more) for word, more in zip(known, noise.words(len(known)), strict=True)]
        bits += 64


def _decimals(unit: Decimal, width: Decimal) -> _Arithmetic:
    """Return functions of arrays of decimals in the precision of the context."""
    turn = 2 * _pi()
    log, cosine = np.frompyfunc(Decimal.ln, 1, 1), np.frompyfunc(_cosine, 1, 1)
    return _Arithmetic(log, cosine, lambda angle: cosine(angle - turn / 4), turn, unit, width)


def _noise(uniform: np.ndarray, d: int, scale: Any, by: _Arithmetic) -> tuple[np.ndarray, np.ndarray]:
    """Return the noise in lattice steps, shape (n, d), and the bound on each row's errors, shape (n, 1)."""
    half = (d + 1) // 2
    # Radii of the pairs, their angles in turns, and for the scale the exponential numbers and a last radius and angle.
    pairs, turns, scales, last = np.split(uniform, [half, 2 * half, 3 * half], axis=1)
    radius, off, *_ = _radii(pairs, by)
    _, _, total, error = _radii(scales, by)
    total, error = total.sum(axis=1)[:, None], error.sum(axis=1)[:, None]
    # The cosine's error counts its angle.
    turned = 32 * (by.width + by.unit)
    if last.shape[1]:
        one, its, _, _ = _radii(last[:, :1], by)
        normal, its = one * by.cosine(by.turn * last[:, 1:]), its + turned * one
        total, error = total + normal**2, error + its * (2 * abs(normal) + its)
    error = error + (half + 8) * by.unit * total
    length = np.sqrt(total)
    error = error / length + 4 * by.unit * length
    angles = by.turn * turns
    normals = np.concatenate([radius * by.cosine(angles), radius * by.sine(angles)], axis=1)[:, :d] * (scale * length)
    # A normal number is at most its radius.
    most, its = radius.max(axis=1)[:, None], (off + turned * radius).max(axis=1)[:, None]
    bound = scale * (length * its + error * (most + its) + 8 * by.unit * length * most)
    # The bounds were computed with rounding themselves.
    return normals, bound + bound / 64


def _radii(uniform: np.ndarray, by: _Arithmetic) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    r"""Return radii :math:`\sqrt{-2 \ln u}` with their errors, and their squares with theirs."""
    squares = -2 * by.log(uniform)
    left = uniform - by.width
    # A word of zeros has to be extended by further bits.
    off = 2 * by.width / np.where(left > 0, left, by.width**2) + 8 * by.unit * squares
    radius = np.sqrt(squares)
    # With a square of e +- a the root is within a / sqrt(e), even where a exceeds e.
    return radius, off / radius, squares, off


def _pi() -> Decimal:
    """Return pi to the precision of the context, by the recipe of the decimal module."""
    term, total, last, n, up, below, more = Decimal(3), Decimal(3), Decimal(0), 1, 0, 0, 24
    while total != last:
        last = total
        n, up = n + up, up + 8
        below, more = below + more, more + 32
        term = term * n / below
        total += term
    return total


def _cosine(angle: Decimal) -> Decimal:
    """Return the cosine of an angle of at most one turn, by its series."""
    term = total = Decimal(1)
    n = 0
    while total + term != total:
        n += 2
        term *= -angle * angle / (n * (n - 1))
        total += term
    return total


@dataclass(frozen=True)
class MultivariateLaplace(RowMechanism):
    """Noise of density ~ exp(-epsilon ||z|| / sensitivity), exact on a lattice (Feyisetan et al., WSDM 2020)."""

    n_features: int
    epsilon: float
    sensitivity: float = 1.0
    radius: float | None = None
    vocabulary: np.ndarray | None = None

    # A smaller block would cost more in calls than the cache saves.
    block_cells: ClassVar[int] = 131_072

    def __post_init__(self) -> None:
        check_dimension(self.n_features, least=1)
        check_positive("epsilon", self.epsilon)
        check_positive("sensitivity", self.sensitivity)
        if not 2.0**-900 <= self.sensitivity / self.epsilon <= 2.0**900:
            # Rows in units of the lattice would overflow to NaN, which no noise hides.
            raise ValueError(
                "sensitivity / epsilon must be from 2^-900 to 2^900; "
                f"got sensitivity={self.sensitivity!r} and epsilon={self.epsilon!r}."
            )
        if self.radius is not None:
            check_positive("radius", self.radius)
        if self.vocabulary is not None:
            object.__setattr__(self, "vocabulary", own_vectors("vocabulary", self.vocabulary, self.n_features))

    @cached_property
    def domain(self) -> Anywhere | Ball:
        """The ball of the radius, or all vectors: a vocabulary is chosen from after the noise, not before."""
        return Anywhere(self.n_features) if self.radius is None else Ball(self.n_features, self.radius)

    @property
    def step(self) -> float:
        """Releases are multiples of this power of two."""
        return public_step(math.sqrt(self.n_features + 1) * self.sensitivity / self.epsilon)

    def guarantee(self) -> PrivacyGuarantee:
        """Return the guarantee per unit of distance; the diameter is twice a declared radius."""
        diameter = None if self.radius is None else 2 * self.radius
        epsilon = float(self.epsilon)
        basis = "multivariate Laplace, rounded to a lattice"
        return PrivacyGuarantee(epsilon, unit="distance", stated=epsilon, diameter=diameter, basis=basis)

    def bias(self, values: np.ndarray) -> np.ndarray:
        values = as_numbers(values)
        return cast("np.ndarray", self.domain.clip(values).rows - values)

    def variance(self, values: np.ndarray) -> np.ndarray:
        """Return the variance of every noisy coordinate: the same for all."""
        return np.full(np.shape(values), self._variance)

    def log_likelihood(self, outputs: np.ndarray, values: np.ndarray) -> Floats:
        d, rate = self.n_features, self.epsilon / self.sensitivity
        sphere = math.log(2) + d / 2 * math.log(math.pi) - special.gammaln(d / 2)
        distance = np.linalg.norm(as_numbers(outputs, "outputs") - self.domain.clip(as_numbers(values)).rows, axis=-1)
        law = d * math.log(rate) - special.gammaln(d) - sphere - rate * distance
        return cast("Floats", law)

    def original_second_moment(self, second_moment: Floats, mean: Floats) -> Floats:
        """Subtract the variance of the noise, which is the same in every direction."""
        if self.vocabulary is not None:
            raise ValueError("The nearest words of a vocabulary do not identify the second moments of the rows.")
        return second_moment - self._variance * np.eye(self.n_features)

    @property
    def _variance(self) -> float:
        return (self.n_features + 1) * (self.sensitivity / self.epsilon) ** 2

    def _precise(self, rows: np.ndarray) -> np.ndarray:
        # Rounding adds to every distance.
        return rows.astype(np.float64, copy=False)

    def _encode(self, rows: np.ndarray, out: np.ndarray, workspace: Workspace) -> None:
        out[...] = rows if self.vocabulary is None else self.vocabulary[nearest_rows(rows, self.vocabulary)]

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        scale = Fraction(self.sensitivity) / Fraction(self.epsilon)
        out[...] = noisy_points(rows, noise, scale, self.step)
        if self.vocabulary is not None:
            out[...] = self.vocabulary[nearest_rows(out, self.vocabulary)]
