r"""Dimensions, Gaussian widths and error bounds of random projections.

An error bound holds with probability at least :math:`1 - \delta` for any m, over the noise and (except for
:func:`noise_norm_bound`) over the draw of a Gaussian projection, for vectors chosen independently of it. Half of
:math:`\delta` covers the norms of the noise, half a union bound over the chi-square tails of the projected lengths.
Propositions 7 to 9 as printed need an m with an unspecified constant, and fail for the paper's m.

References
----------
Feyisetan and Kasiviswanathan, "Private release of text embedding vectors", 2021, Section 4 and Appendix C.
"""

import math
import sys
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import integrate, special, stats

from skldp._checks import check_dimension, check_fraction, check_integer, check_positive
from skldp.mechanisms._noise import public_stream
from skldp.mechanisms.vector._multivariate_laplace import gaussians

# Bound on the relative error of sums of positive terms and of their logarithms.
_ROUNDING = 2.0**-40


def default_width(d: int) -> float:
    r"""Return :math:`\sqrt{\log_2 d}`, the convention of the paper's Section 5 (printed without base 2)."""
    check_dimension(d, least=1)
    return math.sqrt(math.log2(d))


def sparse_width(d: int, c: int) -> float:
    r"""Return :math:`\sqrt{c \ln(d / c)}`, the order of the width of c-sparse unit vectors.

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
    check_integer("c", c, least=1, most=d)
    return math.sqrt(c * math.log(d / c))


def l1_ball_width(d: int, radius: float = 1.0) -> float:
    r"""Return the width of vectors of L1 norm at most `radius`, :math:`r\, E \max_i |g_i|`, by integration.

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
    >>> from skldp.mechanisms.vector._gaussian_width import l1_ball_width
    >>> round(l1_ball_width(1), 6)  # sqrt(2 / pi)
    0.797885
    """
    check_dimension(d, least=1)
    check_positive("radius", radius)
    return radius * _integral(lambda t: -np.expm1(d * np.log1p(-2 * special.ndtr(-t))), 0, _far(d))


def simplex_width(d: int) -> float:
    r"""Return the width of the probability simplex, :math:`E \max_i g_i`, by numerical integration.

    Parameters
    ----------
    d : int

    Returns
    -------
    float
        The paper's :math:`O(\sqrt{\log d})`, with its constant.

    Examples
    --------
    >>> from skldp.mechanisms.vector._gaussian_width import simplex_width
    >>> round(simplex_width(2), 6)  # 1 / sqrt(pi)
    0.56419
    """
    check_dimension(d, least=1)
    above = _integral(lambda t: -np.expm1(d * special.log_ndtr(t)), 0, _far(d))
    return above - _integral(lambda t: np.exp(d * special.log_ndtr(-t)), 0, 40)


def finite_set_width(points: npt.ArrayLike, *, n_draws: int = 1_000, seed: int = 0) -> tuple[float, float]:
    r"""Estimate the width of a finite set of public vectors by Monte Carlo.

    Parameters
    ----------
    points : array-like of shape (n, d)
        Public vectors; the estimate depends on all of them.
    n_draws : int, default=1000
        At least 2.
    seed : int, default=0
        Seed of the public stream.

    Returns
    -------
    width, standard_error : float

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms.vector._gaussian_width import finite_set_width
    >>> width, error = finite_set_width(np.eye(2))
    >>> abs(width - 0.5642) < 5 * error
    True
    """
    array = np.asarray(points, dtype=np.float64)
    if array.ndim != 2 or not array.size or not np.isfinite(array).all():
        raise ValueError(f"points must be a finite array of two dimensions; got shape {array.shape}.")
    check_integer("n_draws", n_draws, least=2)
    stream = public_stream(seed)
    suprema = np.empty(n_draws)
    step = max(1, (1 << 22) // max(array.shape))
    for start in range(0, n_draws, step):
        part = suprema[start : start + step]
        part[:] = (array @ gaussians(stream, (array.shape[1], len(part))).astype(np.float64)).max(axis=0)
    return float(suprema.mean()), float(suprema.std(ddof=1) / math.sqrt(n_draws))


def _far(d: int) -> float:
    """Return a point that the maximum of d standard normals exceeds with a probability below 1e-20."""
    return math.sqrt(2 * math.log(2 * d)) + 10


def _integral(function: Callable[[float], float], low: float, high: float) -> float:
    return float(integrate.quad(function, low, high, limit=200, epsabs=1e-12)[0])


def projected_dimension(d: int, beta: float, delta: float, width: float | None = None) -> int:
    r"""Return the number of dimensions m to project to.

    Parameters
    ----------
    d : int
        Number of features.
    beta : float
        Distortion, in (0, 1).
    delta : float
        In (0, 1).
    width : float, default=None
        Gaussian width of the vectors; None is ``default_width``.

    Returns
    -------
    int
        From 1 to d.

    Notes
    -----
    .. math:: m = \operatorname{round}\Bigl(\frac{(\omega + \sqrt{\ln(1 / \delta)})^2}{\beta^2}\Bigr)

    The paper's :math:`\Omega(\cdot)` hides a constant; 1 gives its own dimensions.

    References
    ----------
    Feyisetan and Kasiviswanathan, "Private release of text embedding vectors", 2021, Algorithm 1.

    Examples
    --------
    >>> from skldp.mechanisms.vector._gaussian_width import projected_dimension
    >>> [projected_dimension(300, beta, 1e-6) for beta in (0.93, 0.66, 0.468)]
    [50, 100, 198]
    """
    check_dimension(d, least=1)
    check_fraction("beta", beta)
    check_fraction("delta", delta)
    width = default_width(d) if width is None else width
    if not 0 <= width < math.inf:
        raise ValueError(f"The Gaussian width must be a finite number >= 0; got {width!r}.")
    return int(min(max(round((width + math.sqrt(-math.log(delta))) ** 2 / beta**2), 1), d))


def gordon_delta(m: int, beta: float, width: float) -> float:
    r"""Return the probability, over the draw of a Gaussian Phi, of a stretch above 1 + beta.

    Parameters
    ----------
    m : int
    beta : float
    width : float
        Gaussian width of the set of DIRECTIONS of the differences of two records.

    Returns
    -------
    float
        An upper bound; 1 where the theorem says nothing.

    Notes
    -----
    Gordon's inequality and Gaussian concentration give

    .. math:: P\Bigl(\sup_{u \in S} \|\Phi u\| > 1 + \beta\Bigr) \le e^{-(\beta \sqrt m - \omega(S))^2 / 2},

    so that m of :func:`projected_dimension` has the failure probability :math:`\sqrt\delta`, not :math:`\delta`.
    Lemma 4 of the paper takes for S the set of differences itself. The width of their directions can be much larger:
    for vectors in an open set, however small, S is the whole sphere and its width about :math:`\sqrt d`.

    Examples
    --------
    >>> from skldp.mechanisms.vector._gaussian_width import gordon_delta
    >>> round(gordon_delta(50, 0.93, 2.87), 5)
    0.00104
    """
    margin = beta * math.sqrt(m) - width
    return math.exp(-margin * margin / 2) if margin > 0 else 1.0


def union_delta(m: int, beta: float, n_vectors: int) -> float:
    r"""Return the probability, over the draw of a Gaussian Phi, of too large a stretch within a finite set.

    Parameters
    ----------
    m : int
        Rows of Phi.
    beta : float
        The largest allowed stretch is 1 + beta.
    n_vectors : int
        Number of vectors, chosen independently of Phi. At least 2.

    Returns
    -------
    float
        An upper bound, rounded up; 1 where it says nothing.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    For one unit vector, :math:`m \|\Phi u\|^2` is a chi-square variable of m degrees of freedom. All pairs together:

    .. math:: \delta \le \binom{n}{2} P(\chi^2_m > m (1 + \beta)^2), \qquad
              P(\chi^2_{2 k} > 2 t) = e^{-t} \sum_{j < k} \frac{t^j}{j!}

    Odd m has the tail of m + 1 degrees of freedom at :math:`m (1 + \beta)^2`, which is larger. This needs no width, and
    nothing of Gordon's theorem.

    Examples
    --------
    >>> from skldp.mechanisms import union_delta
    >>> f"{union_delta(50, 0.93, 3_143):.1e}"
    '7.0e-11'
    """
    check_dimension(m, least=1)
    check_integer("n_vectors", n_vectors, least=2)
    check_positive("beta", beta)
    t, k = m * (1 + beta) ** 2 / 2, (m + 1) // 2
    logs = np.arange(k) * math.log(t) - special.gammaln(np.arange(1, k + 1))
    most = float(logs.max())
    pairs = math.log(n_vectors) + math.log(n_vectors - 1) - math.log(2)
    # Every term of the exponent is off by a few units in its own last place.
    slack = _ROUNDING * (1 + t + float(np.abs(logs).max()) + k * abs(math.log(t)) + pairs)
    exponent = pairs - t + most + math.log(float(np.exp(logs - most).sum())) + slack
    return min(1.0, max(math.exp(min(exponent, 0.0)), sys.float_info.min))


def noise_norm_bound(epsilon: float, m: int, beta: float, probability: float) -> float:
    r"""Bound the norm of one draw of the noise, as Claim 6 does.

    Parameters
    ----------
    epsilon : float
        Per unit of distance.
    m : int
        Dimension that the noise is added in.
    beta : float
        In (0, 1).
    probability : float
        :math:`\gamma`, that of a larger norm.

    Returns
    -------
    float

    Notes
    -----
    .. math:: \|\kappa\| \le \frac{m \ln(m / \gamma) (1 + \beta)}{\varepsilon}

    The norm's law is :math:`\Gamma(m, (1 + \beta) / \varepsilon)`, so its quantile is known:
    :func:`noise_norm_quantile`.

    Examples
    --------
    >>> from skldp.mechanisms.vector._gaussian_width import noise_norm_bound, noise_norm_quantile
    >>> round(noise_norm_bound(1.0, 50, 0.9, 0.01)), round(noise_norm_quantile(1.0, 50, 0.9, 0.01))
    (809, 129)
    """
    _check(epsilon, m, beta, probability)
    return m * math.log(m / probability) * (1 + beta) / epsilon


def noise_norm_quantile(epsilon: float, m: int, beta: float, probability: float) -> float:
    """Return the exact quantile that Claim 6 bounds: the norm that the noise exceeds with a probability.

    Parameters
    ----------
    epsilon, m, beta, probability
        As in :func:`noise_norm_bound`.

    Returns
    -------
    float
    """
    _check(epsilon, m, beta, probability)
    return float(special.gammainccinv(m, probability)) * (1 + beta) / epsilon


def distance_bound(epsilon: float, m: int, beta: float, delta: float, n: int, tau: float) -> float:
    r"""Bound the error of the distance of any two of n released vectors, as Proposition 7 does.

    Parameters
    ----------
    epsilon : float
        Per unit of distance.
    m : int
        Dimension that the noise is added in.
    beta : float
        In (0, 1). The noise is scaled to :math:`(1 + \beta) / \varepsilon`.
    delta : float
        In (0, 1).
    n : int
        Number of vectors.
    tau : float
        Their largest norm.

    Returns
    -------
    float

    Notes
    -----
    .. math:: \bigl| \|w_i - w_j\| - \|x_i - x_j\| \bigr| \le 2 \tau \max(\sqrt{h} - 1, 1 - \sqrt{l}) + 2 r

    Each norm of the noise is above r with probability at most :math:`\delta / 2n`, and each squared stretch of the
    projection outside of (l, h) with probability at most :math:`\delta / (n (n - 1))`. The paper has
    :math:`2 \beta \tau + 4 m \ln(2 n m / \delta) / \varepsilon`.
    """
    noise, low, high = _tails(epsilon, m, beta, delta, n, tau, n_lengths=n * (n - 1) // 2)
    return 2 * tau * max(math.sqrt(high) - 1, 1 - math.sqrt(low)) + 2 * noise


def inner_product_bound(epsilon: float, m: int, beta: float, delta: float, n: int, tau: float) -> float:
    r"""Bound the error of the inner product of any two of n released vectors, as Proposition 8 does.

    Parameters
    ----------
    epsilon, m, beta, delta, n, tau
        As in :func:`distance_bound`.

    Returns
    -------
    float
        For a vector with itself as well.

    Notes
    -----
    .. math:: |\langle w_i, w_j \rangle - \langle x_i, x_j \rangle| \le \tau^2 \max(h - 1, 1 - l)
              + 2 \tau \sqrt{h}\, r + r^2

    with r, l and h as in :func:`distance_bound`, of the sums and differences of two vectors of norm 1. The paper has
    :math:`\beta \tau^2 + 8 \tau m \ln(2 n m / \delta) / \varepsilon + (2 m \ln(2 n m / \delta))^2 / \varepsilon^2`.
    """
    # Sums and differences of all pairs, and every vector itself.
    noise, low, high = _tails(epsilon, m, beta, delta, n, tau, n_lengths=n**2)
    return tau**2 * max(high - 1, 1 - low) + 2 * tau * math.sqrt(high) * noise + noise**2


def linear_model_bound(
    epsilon: float, m: int, beta: float, delta: float, n: int, tau: float, *, lipschitz: float, model_norm: float
) -> float:
    r"""Bound the growth of a linear model's least training loss on released vectors, as Proposition 9 does.

    Parameters
    ----------
    epsilon, m, beta, delta, n, tau
        As in :func:`distance_bound`.
    lipschitz : float
        Lipschitz constant of the loss in its first argument.
    model_norm : float
        :math:`\|\Theta\|`, the largest norm of a model.

    Returns
    -------
    float

    Notes
    -----
    .. math:: \lambda_\ell \|\Theta\| \bigl(\tau \max(h - 1, 1 - l) + \sqrt{h}\, r\bigr)

    with r, l and h as in :func:`inner_product_bound`, of the best model and every vector. The paper has
    :math:`\lambda_\ell \|\Theta\| (4 m \ln(2 n m / \delta) / \varepsilon + \beta \tau)`. The statement minimises over
    :math:`\langle w_i, \theta \rangle`, its proof over :math:`\langle w_i, \Phi \theta \rangle`; the latter is what is
    proved.
    """
    check_positive("lipschitz", lipschitz)
    check_positive("model_norm", model_norm)
    # The model's sum with and difference from every vector, and the model itself.
    noise, low, high = _tails(epsilon, m, beta, delta, n, tau, n_lengths=2 * n + 1)
    return lipschitz * model_norm * (tau * max(high - 1, 1 - low) + math.sqrt(high) * noise)


def _tails(
    epsilon: float, m: int, beta: float, delta: float, n: int, tau: float, *, n_lengths: int
) -> tuple[float, float, float]:
    """Return the largest norm of n noises, and the least and largest squared stretch of lengths, but for delta."""
    _check(epsilon, m, beta, delta)
    check_integer("n", n, least=1)
    check_positive("tau", tau)
    tail = delta / (4 * max(1, n_lengths))
    noise = noise_norm_quantile(epsilon, m, beta, delta / (2 * n))
    return noise, float(stats.chi2.ppf(tail, m)) / m, float(stats.chi2.isf(tail, m)) / m


def _check(epsilon: float, m: int, beta: float, probability: float) -> None:
    check_positive("epsilon", epsilon)
    check_dimension(m, least=1)
    check_fraction("beta", beta)
    check_fraction("The probability", probability)
