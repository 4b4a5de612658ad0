r"""Uniform directions made from noise, and the public grid that released vectors are rounded to.

The continuous laws of :mod:`skldp.mechanisms._vector` hold for real numbers. A computer draws floats, whose low bits
can tell one input from another (Mironov, CCS 2012). Every released vector is therefore rounded to multiples of a power
of two that depends on public parameters alone: rounding is post-processing, so it cannot weaken the real-valued law,
and it throws away the low bits in which the arithmetic of one input differs from that of another.
"""

import math

import numpy as np
import numpy.typing as npt

from skldp.mechanisms._noise import Noise, as_uniform
from skldp.mechanisms._norms import scaled_norms
from skldp.mechanisms._rows import Workspace

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
_CHUNK = 32_768
# In fewer dimensions the directions that single precision can tell apart are too few beside the cells of the grid.
_FLOAT64_BELOW = 16
_TURN = np.float32(2 * math.pi * 2.0**-32)


def gaussians(
    noise: Noise,
    shape: tuple[int, int],
    dtype: npt.DTypeLike = np.float32,
    workspace: Workspace | None = None,
    out: npt.NDArray[np.floating] | None = None,
) -> npt.NDArray[np.floating]:
    """Independent standard normal numbers: Box and Muller's transform of words of the type's own length.

    The two numbers of a pair stand in one row, so that every row has words of its own.

    Examples
    --------
    >>> from skldp.mechanisms import noise_from
    >>> from skldp.mechanisms._vector.sphere import gaussians
    >>> gaussians(noise_from(), (2, 3)).shape
    (2, 3)
    """
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
            # The last sine of an odd number has no place.
            if left < d - half:
                np.sin(angle, out=angle)
                angle *= radius
                out[rows, half + left : half + right] = angle[:, : d - half - left]
    return out


def unit_rows(values: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Rows divided by their norms, in double precision; a row of zeros stays as it is.

    Shapes: values (n, d); returns (n, d).

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


def directions(noise: Noise, lengths: npt.NDArray[np.float64], d: int, workspace: Workspace) -> npt.NDArray[np.float64]:
    """Vectors of given lengths in uniform directions of d dimensions.

    Shapes: lengths (n,); returns (n, d).
    """
    n = len(lengths)
    points, norms = gaussian_rows(noise, (n, d), workspace)
    # A Gaussian vector of exactly 0 has no direction.
    while not norms.all():
        zero = np.flatnonzero(norms == 0)
        points[zero], norms[zero] = gaussian_rows(noise.at(zero, n), (zero.size, d), Workspace())
    points *= (lengths / norms)[:, None]
    return points


def gaussian_rows(
    noise: Noise, shape: tuple[int, int], workspace: Workspace
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Rows of independent normal numbers, drawn in the precision that their dimension needs, and their norms."""
    dtype = np.float64 if shape[1] < _FLOAT64_BELOW else np.float32
    points = workspace.take("directions", shape, np.float64)
    gaussians(noise, shape, dtype, workspace, points)
    return points, np.sqrt(np.einsum("ij,ij->i", points, points))


def public_step(spread: float) -> float:
    """The largest power of two that is at most 2^-14 of a coordinate's standard deviation.

    Examples
    --------
    >>> from skldp.mechanisms._vector.sphere import public_step
    >>> public_step(1.0) == 2.0**-14
    True
    """
    return math.ldexp(1.0, math.frexp(spread)[1] - 1 - _GRID_BITS)


def to_grid(values: np.ndarray, step: float) -> np.ndarray:
    """Round an array, in place, to multiples of a power of two, and return it."""
    values *= values.dtype.type(1 / step)
    return round_steps(values, step)


def round_steps(values: np.ndarray, step: float) -> np.ndarray:
    """Round an array in place, like :func:`to_grid`, that is in units of the step already."""
    np.rint(values, out=values)
    values *= values.dtype.type(step)
    values += values.dtype.type(0)
    return values
