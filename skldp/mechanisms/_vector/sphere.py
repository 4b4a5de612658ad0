r"""Uniform directions made from noise, and the public grid that released vectors are rounded to.

The continuous laws of :mod:`skldp.mechanisms._vector` hold for real numbers. A computer draws floats, whose low bits
can tell one input from another (Mironov, CCS 2012). Every released vector is therefore rounded to multiples of a power
of two that depends on public parameters alone: rounding is post-processing, so it cannot weaken the real-valued law,
and it throws away the low bits in which the arithmetic of one input differs from that of another.
"""

import math

import numpy as np
import numpy.typing as npt

from skldp.mechanisms._noise import Noise
from skldp.mechanisms._vector.workspace import Scratch

__all__ = [
    "directions",
    "factors_of_norms",
    "gaussian_rows",
    "gaussians",
    "public_step",
    "round_steps",
    "row_norms",
    "scaled_norms",
    "shorten_rows",
    "shortening_by_rounding",
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
# In fewer dimensions the directions that single precision can tell apart are too few beside the cells of the grid.
_FLOAT64_BELOW = 16
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
    >>> from skldp.mechanisms._noise import noise_from
    >>> from skldp.mechanisms._vector.sphere import gaussians
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


def scaled_norms(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Bring rows, in place, to a scale at which their squares neither overflow nor underflow; return their norms then.

    Parameters
    ----------
    rows : ndarray of float64, shape (n, d)
        Rows of a norm below 1e-150 or above 1e150 are multiplied by a power of two, which is exact.

    Returns
    -------
    ndarray of shape (n,)
        0 for a row of zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms._vector.sphere import scaled_norms
    >>> scaled_norms(np.array([[3.0, 4.0], [0.0, 5e-324], [0.0, 0.0]])).tolist()
    [5.0, 0.5, 0.0]
    """
    with np.errstate(over="ignore", under="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        extreme = _extreme(norms, rows.dtype)
        if extreme.size:
            far = rows[extreme]
            far = np.ldexp(far, -np.frexp(np.abs(far).max(axis=1, initial=0.0))[1][:, None])
            rows[extreme], norms[extreme] = far, np.sqrt(np.einsum("ij,ij->i", far, far))
    return norms


def unit_rows(values: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Rows divided by their norms, in double precision; a row of zeros stays as it is.

    Parameters
    ----------
    values : ndarray of shape (n, d)
    out : ndarray, default=None
        Where to write; may be `values` itself.

    Returns
    -------
    ndarray of shape (n, d), dtype of `values`

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms._vector.sphere import unit_rows
    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 5e-324], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 1.0], [0.0, 0.0]]
    """
    rows = values.astype(np.float64)
    norms = scaled_norms(rows)
    rows /= np.where(norms > 0, norms, 1.0)[:, None]
    if out is None:
        return rows.astype(values.dtype, copy=False)
    out[...] = rows
    return out


def shrink_factors(values: np.ndarray, radius: float) -> npt.NDArray[np.float64]:
    """Factors, at most 1, that bring the rows to norms of at most `radius`, with every rounding counted.

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
    return factors_of_norms(norms, radius, values.dtype, values.shape[1])


def factors_of_norms(norms: npt.NDArray[np.float64], radius: float, dtype: np.dtype, d: int) -> npt.NDArray[np.float64]:
    """The same for rows of d numbers whose norms have been found in double precision."""
    with np.errstate(over="ignore"):
        factors = radius / np.maximum(norms * (1 + _norm_error(d)), radius)
    # A row that is shortened must not end up longer than the radius by the rounding of its own type.
    return np.where(factors < 1, factors * (1 - 2 * np.finfo(dtype).eps), 1.0)


def shortening_by_rounding(dtype: np.dtype, d: int) -> float:
    """How far below 1 the factor of a row may be that was normalised to the radius itself."""
    return _ROUNDING * float(np.finfo(dtype).eps) + 2 * _norm_error(d)


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
    return int(np.count_nonzero(values[factors < 1 - shortening_by_rounding(values.dtype, values.shape[1])]))


def directions(
    noise: Noise, lengths: npt.NDArray[np.float64], d: int, scratch: Scratch | None = None
) -> npt.NDArray[np.float64]:
    """Vectors of given lengths in uniform directions of d dimensions.

    Parameters
    ----------
    noise : Noise
    lengths : ndarray of shape (n,)
    d : int
    scratch : Scratch, default=None
        Where the vectors stand until the next call with it.

    Returns
    -------
    ndarray of shape (n, d)
    """
    scratch = Scratch() if scratch is None else scratch
    points, norms = gaussian_rows(noise, (len(lengths), d), scratch)
    # A Gaussian vector of exactly 0 has no direction.
    while not norms.all():
        zero = np.flatnonzero(norms == 0)
        points[zero], norms[zero] = gaussian_rows(noise, (zero.size, d), Scratch())
    points *= (lengths / norms)[:, None]
    return points


def gaussian_rows(
    noise: Noise, shape: tuple[int, int], scratch: Scratch
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Rows of independent normal numbers, drawn in the precision that their dimension needs, and their norms."""
    if shape[1] < _FLOAT64_BELOW:
        points = gaussians(noise, shape, np.float64, scratch).astype(np.float64, copy=False)
    else:
        points = scratch.take("directions", shape, np.float64)
        points[...] = gaussians(noise, shape, scratch=scratch)
    return points, np.sqrt(np.einsum("ij,ij->i", points, points))


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
    >>> from skldp.mechanisms._vector.sphere import public_step
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
    return round_steps(values, step)


def round_steps(values: np.ndarray, step: float) -> np.ndarray:
    """Round an array in place, like :func:`to_grid`, that is in units of the step already."""
    np.rint(values, out=values)
    values *= values.dtype.type(step)
    values += values.dtype.type(0)
    return values


def _norm_error(d: int) -> float:
    """By what part the norm of d numbers, added up in double precision, may be too small: twice the worst case."""
    return (d + 8) * 2.0**-53


def _extreme(norms: npt.NDArray[np.float64], dtype: np.dtype) -> npt.NDArray[np.intp]:
    """Rows whose squares may have left the range of the type, or lost their digits."""
    limit = 1e-15 if dtype == np.float32 else 1e-150
    return np.flatnonzero((norms < limit) | (norms > 1 / limit))
