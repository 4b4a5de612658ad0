r"""Uniform directions made from noise, and the public grid that released vectors are rounded to.

The continuous laws of :mod:`skldp.mechanisms.vector` hold for real numbers. A computer draws floats, whose low bits
can tell one input from another (Mironov, CCS 2012). Every released vector is therefore rounded to multiples of a power
of two that depends on public parameters alone: rounding is post-processing, so it cannot weaken the real-valued law,
and it throws away the low bits in which the arithmetic of one input differs from that of another.
"""

import math

import numpy as np
import numpy.typing as npt

from skldp.mechanisms.randomness import Noise
from skldp.mechanisms.vector.scratch import Scratch

__all__ = [
    "directions",
    "gaussians",
    "public_step",
    "row_norms",
    "shorten_rows",
    "shrink_factors",
    "to_grid",
    "unit_rows",
]

# Of the bits of a float32, 14 resolve one standard deviation of a coordinate and 9 are left for its tails.
_GRID_BITS = 14
# Pairs of normal numbers made at a time: few enough for their arrays to stay in the cache.
_CHUNK = 16_384
# A row normalised by other code may be this many units in the last place too long.
_ROUNDING = 64
_TURN = np.float32(2 * math.pi * 2.0**-32)


def gaussians(
    noise: Noise, shape: tuple[int, ...], dtype: npt.DTypeLike = np.float32, scratch: Scratch | None = None
) -> npt.NDArray[np.floating]:
    """Independent standard normal numbers: Box and Muller's transform of words of the type's own length.

    Parameters
    ----------
    noise : Noise
    shape : tuple of int
    dtype : float32 or float64, default=float32
    scratch : Scratch, default=None
        Where the numbers stand until the next call with it.

    Returns
    -------
    ndarray of `dtype`
        No larger than 6.8 in magnitude in single precision, 8.6 in double: the tails that are cut have the
        probability 2^-33 and 2^-53.

    Examples
    --------
    >>> from skldp.mechanisms.randomness import noise_from
    >>> from skldp.mechanisms.vector.sphere import gaussians
    >>> gaussians(noise_from(), (2, 3)).shape
    (2, 3)
    """
    size = math.prod(shape)
    half = (size + 1) // 2
    scratch = Scratch() if scratch is None else scratch
    out = scratch.take("gaussians", (2 * half,), dtype)
    if dtype == np.float64:
        out[:] = noise.uniform(2 * half)
    else:
        # The words are drawn where the numbers will stand.
        noise.fill(out.view(np.uint32))
    for start in range(0, half, _CHUNK):
        stop = min(start + _CHUNK, half)
        cosine, sine = out[start:stop], out[half + start : half + stop]
        if dtype == np.float64:
            radius, angle = cosine.copy(), sine * (2 * math.pi)
        else:
            radius, angle = cosine.view(np.uint32).astype(np.float32), sine.view(np.uint32).astype(np.float32)
            radius += np.float32(0.5)
            radius *= np.float32(2.0**-32)
            angle *= _TURN
        np.log(radius, out=radius)
        radius *= -2
        np.sqrt(radius, out=radius)
        np.cos(angle, out=cosine)
        np.sin(angle, out=sine)
        cosine *= radius
        sine *= radius
    return out[:size].reshape(shape)


def row_norms(values: np.ndarray) -> npt.NDArray[np.float64]:
    """Euclidean norms of the rows, in the precision of the values, without overflow or underflow of the squares.

    Parameters
    ----------
    values : ndarray of shape (n, d)

    Returns
    -------
    ndarray of shape (n,)
    """
    with np.errstate(over="ignore", under="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", values, values), dtype=np.float64)
        extreme = _extreme(norms, values.dtype)
        if extreme.size:
            wide = values[extreme].astype(np.float64)
            largest = np.abs(wide).max(axis=1, initial=0.0)
            wide /= np.where(largest > 0, largest, 1)[:, None]
            norms[extreme] = largest * np.sqrt(np.einsum("ij,ij->i", wide, wide))
    return norms


def unit_rows(values: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Rows divided by their norms: of norm 1 to rounding, also where the values themselves are near overflow or 0.

    Parameters
    ----------
    values : ndarray of shape (n, d)
    out : ndarray, default=None
        Where to write; may be `values` itself.

    Returns
    -------
    ndarray of shape (n, d)

    Raises
    ------
    ValueError
        If a row is zero: it has no direction.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms.vector.sphere import unit_rows
    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 5e-324]])).tolist()
    [[0.6, 0.8], [0.0, 1.0]]
    """
    norms = row_norms(values)
    if not norms.all():
        zero = np.flatnonzero(norms == 0)
        raise ValueError(f"Every row needs a direction, so none may be zero. Got {zero.size} zero rows instead.")
    extreme = _extreme(norms, values.dtype)
    wide = values[extreme].astype(np.float64)
    with np.errstate(over="ignore"):
        unit = np.divide(values, norms[:, None].astype(values.dtype), out=out)
    if extreme.size:
        # A norm that overflows, or is subnormal and so of few bits, would leave a row that is not of norm 1, and a
        # release whose length tells it from the others. Powers of two scale exactly.
        wide = np.ldexp(wide, -np.frexp(np.abs(wide).max(axis=1))[1][:, None])
        unit[extreme] = wide / row_norms(wide)[:, None]
    return unit


def shrink_factors(values: np.ndarray, radius: float) -> npt.NDArray[np.float64]:
    """Factors, at most 1, that bring the rows to norms of at most `radius`.

    Parameters
    ----------
    values : ndarray of shape (n, d)
    radius : float

    Returns
    -------
    ndarray of shape (n,)
    """
    norms = row_norms(values)
    # Only rows that rounding leaves near the radius, or beyond it, need their norms in double precision.
    near = np.flatnonzero(norms > radius * (1 - (values.shape[1] + 8) * float(np.finfo(values.dtype).eps)))
    norms[near] = row_norms(values[near].astype(np.float64, copy=False))
    factors = radius / np.maximum(norms, radius)
    # A row that is shortened must not end up longer than the radius by the rounding of its own type.
    return np.where(factors < 1, factors * (1 - 2 * np.finfo(values.dtype).eps), 1.0)


def shorten_rows(values: np.ndarray, radius: float) -> int:
    """Shorten, in place, the rows that are longer than `radius`.

    Parameters
    ----------
    values : ndarray of shape (n, d)
    radius : float

    Returns
    -------
    int
        How many values were changed by more than rounding: a row normalised to the radius itself does not count.
    """
    factors = shrink_factors(values, radius)
    longer = np.flatnonzero(factors < 1)
    # In double precision: a factor that is subnormal in single precision has too few bits to keep within the radius.
    values[longer] = values[longer] * factors[longer, None]
    return int(np.count_nonzero(values[factors < 1 - _ROUNDING * np.finfo(values.dtype).eps]))


def directions(
    noise: Noise, lengths: npt.NDArray[np.float64], d: int, dtype: npt.DTypeLike, scratch: Scratch | None = None
) -> np.ndarray:
    """Vectors of given lengths, in uniform directions of d dimensions that are drawn in single precision.

    Parameters
    ----------
    noise : Noise
    lengths : ndarray of shape (n,)
    d : int
    dtype : float32 or float64
    scratch : Scratch, default=None
        Where the vectors stand until the next call with it.

    Returns
    -------
    ndarray of `dtype`, shape (n, d)
    """
    scratch = Scratch() if scratch is None else scratch
    points = gaussians(noise, (len(lengths), d), scratch=scratch)
    norms = row_norms(points)
    # A Gaussian vector of exactly 0 has no direction; in one dimension that happens about once in 10^8 draws.
    while not norms.all():
        zero = np.flatnonzero(norms == 0)
        points[zero] = gaussians(noise, (zero.size, d))
        norms[zero] = row_norms(points[zero])
    scaled = points if dtype == np.float32 else scratch.take("directions", points.shape, dtype)
    return np.multiply(points, (lengths / norms)[:, None].astype(dtype), out=scaled)


def public_step(spread: float) -> float:
    """The largest power of two that is at most 2^-14 of a coordinate's standard deviation.

    Parameters
    ----------
    spread : float
        The standard deviation of one released coordinate, from public parameters alone.

    Returns
    -------
    float

    Examples
    --------
    >>> from skldp.mechanisms.vector.sphere import public_step
    >>> public_step(1.0) == 2.0**-14
    True
    """
    return math.ldexp(1.0, math.frexp(spread)[1] - 1 - _GRID_BITS)


def to_grid(values: np.ndarray, step: float) -> np.ndarray:
    """Round an array, in place, to multiples of a power of two, and return it.

    Parameters
    ----------
    values : ndarray of float
    step : float
        A power of two.

    Returns
    -------
    ndarray
        `values` itself. Zeros are all positive, because the sign of a rounded-off number is a low bit too.
    """
    values *= values.dtype.type(1 / step)
    np.rint(values, out=values)
    values *= values.dtype.type(step)
    values += values.dtype.type(0)
    return values


def _extreme(norms: npt.NDArray[np.float64], dtype: np.dtype) -> npt.NDArray[np.intp]:
    """Rows whose squares may have left the range of the type, or lost their digits."""
    limit = 1e-15 if dtype == np.float32 else 1e-150
    return np.flatnonzero((norms < limit) | (norms > 1 / limit))
