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
from skldp.mechanisms._norms import scaled_norms
from skldp.mechanisms._vector.workspace import Scratch

__all__ = [
    "directions",
    "gaussian_rows",
    "gaussians",
    "public_step",
    "round_steps",
    "to_grid",
    "unit_rows",
]

# Of the bits of a float32, 14 resolve one standard deviation of a coordinate and 9 are left for its tails.
_GRID_BITS = 14
# Pairs of normal numbers made at a time: few enough for their arrays to stay in the cache.
_CHUNK = 16_384
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
