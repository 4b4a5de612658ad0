r"""Gaussian widths: how many dimensions a set of vectors really fills.

.. math:: \omega(S) = E \sup_{x \in S} \langle x, g \rangle, \qquad g \sim N(0, I_d)
"""

import math

import numpy as np
import numpy.typing as npt
from scipy import integrate, special

from skldp.mechanisms.randomness import public_stream
from skldp.mechanisms.vector.parameters import check_dimension, check_positive
from skldp.mechanisms.vector.sphere import gaussians

__all__ = [
    "default_width",
    "difference_directions",
    "finite_set_width",
    "l1_ball_width",
    "simplex_width",
    "sparse_width",
]


def default_width(d: int) -> float:
    r""":math:`\sqrt{\log_2 d}`, what the paper's experiments take for any set of embeddings.

    Parameters
    ----------
    d : int
        At least 1.

    Returns
    -------
    float

    Notes
    -----
    The paper prints :math:`\sqrt{\log d}`. Base 2 is what its dimensions come out with: 50, 100 and 198 for d = 300,
    delta = 1e-6 and beta = 0.93, 0.66 and 0.468. It is a convention, not a bound on the width of anything.

    References
    ----------
    Feyisetan and Kasiviswanathan, "Private release of text embedding vectors", 2021, Section 5.

    Examples
    --------
    >>> from skldp.mechanisms.vector.gaussian_width import default_width
    >>> default_width(256) ** 2
    8.000000000000002
    """
    check_dimension(d, least=1)
    return math.sqrt(math.log2(d))


def sparse_width(d: int, c: int) -> float:
    r""":math:`\sqrt{c \ln(d / c)}`, the order of the width of the unit vectors with at most c non-zero coordinates.

    Parameters
    ----------
    d, c : int
        With c at most d.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If c is not from 1 to d.

    Notes
    -----
    As printed, without its constant: the width itself is at most :math:`\sqrt{2 c \ln(e d / c)} + \sqrt{c}`, and is
    :math:`\sqrt d` for c = d, where the printed formula gives 0. A difference of two c-sparse vectors is 2c-sparse.

    References
    ----------
    Feyisetan and Kasiviswanathan (2021), Section 2.3.
    """
    check_dimension(d, least=1)
    check_dimension(c, least=1)
    if c > d:
        raise ValueError(f"c must be at most d = {d}. Got {c!r} instead.")
    return math.sqrt(c * math.log(d / c))


def l1_ball_width(d: int, radius: float = 1.0) -> float:
    r"""The width of the vectors of L1 norm at most `radius`: :math:`r\, E \max_i |g_i|`, by numerical integration.

    Parameters
    ----------
    d : int
    radius : float, default=1.0

    Returns
    -------
    float
        The paper's :math:`O(c \sqrt{\log d})`, with its constant.

    Examples
    --------
    >>> from skldp.mechanisms.vector.gaussian_width import l1_ball_width
    >>> round(l1_ball_width(1), 6)  # sqrt(2 / pi)
    0.797885
    """
    check_dimension(d, least=1)
    check_positive("radius", radius)
    return radius * _integral(lambda t: -np.expm1(d * np.log1p(-2 * special.ndtr(-t))), 0, _far(d))


def simplex_width(d: int) -> float:
    r"""The width of the probability simplex: :math:`E \max_i g_i`, by numerical integration.

    Parameters
    ----------
    d : int

    Returns
    -------
    float
        The paper's :math:`O(\sqrt{\log d})`, with its constant.

    Examples
    --------
    >>> from skldp.mechanisms.vector.gaussian_width import simplex_width
    >>> round(simplex_width(2), 6)  # 1 / sqrt(pi)
    0.56419
    """
    check_dimension(d, least=1)
    above = _integral(lambda t: -np.expm1(d * special.log_ndtr(t)), 0, _far(d))
    return above - _integral(lambda t: np.exp(d * special.log_ndtr(-t)), 0, 40)


def finite_set_width(points: npt.ArrayLike, *, n_draws: int = 1_000, seed: int = 0) -> tuple[float, float]:
    r"""Monte Carlo estimate of the width of a finite set of public vectors.

    Parameters
    ----------
    points : array-like of shape (n, d)
        Public: the estimate depends on every one of them.
    n_draws : int, default=1000
        At least 2.
    seed : int, default=0
        Of the public stream.

    Returns
    -------
    width, standard_error : float

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms.vector.gaussian_width import finite_set_width
    >>> width, error = finite_set_width(np.eye(2))
    >>> abs(width - 0.5642) < 5 * error
    True
    """
    array = np.asarray(points, dtype=np.float64)
    if array.ndim != 2 or not array.size or not np.isfinite(array).all():
        raise ValueError(f"points must be a finite array of two dimensions. Got shape {array.shape} instead.")
    check_dimension(n_draws, least=2)
    stream = public_stream(seed)
    suprema = np.empty(n_draws)
    step = max(1, (1 << 22) // max(array.shape))
    for start in range(0, n_draws, step):
        part = suprema[start : start + step]
        part[:] = (array @ gaussians(stream, (array.shape[1], len(part))).astype(np.float64)).max(axis=0)
    return float(suprema.mean()), float(suprema.std(ddof=1) / math.sqrt(n_draws))


def difference_directions(points: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Unit vectors along the differences of all pairs of a small finite set: what Gordon's theorem is about.

    Parameters
    ----------
    points : array-like of shape (n, d)

    Returns
    -------
    ndarray of shape (at most n (n - 1), d)
        Both signs of every pair of distinct rows.
    """
    array = np.asarray(points, dtype=np.float64)
    first, second = np.triu_indices(len(array), 1)
    differences = array[first] - array[second]
    norms = np.linalg.norm(differences, axis=1)
    unit = differences[norms > 0] / norms[norms > 0, None]
    return np.vstack([unit, -unit])


def _far(d: int) -> float:
    """A point beyond which the maximum of d standard normals lies with a probability below 1e-20."""
    return math.sqrt(2 * math.log(2 * d)) + 10


def _integral(function, low: float, high: float) -> float:  # type: ignore[no-untyped-def]
    return float(integrate.quad(function, low, high, limit=200, epsabs=1e-12)[0])
