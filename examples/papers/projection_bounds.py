r"""Gaussian widths, and error bounds of distances, inner products and models of released vectors.

Feyisetan and Kasiviswanathan, "Private release of text embedding vectors", 2021, Section 2.3, Claim 6 and Propositions
7 to 9. Run ``python examples/papers/projection_bounds.py`` for the bounds as printed beside those that hold.

An error bound holds with probability at least :math:`1 - \delta` for any m, over the noise and (except for
:func:`noise_norm_bound`) over the draw of a Gaussian projection, for vectors chosen independently of it. Half of
:math:`\delta` covers the norms of the noise, half a union bound over the chi-square tails of the projected lengths.
Propositions 7 to 9 as printed need an m with an unspecified constant, and fail for the paper's m.
"""

import math

import numpy as np
from scipy import integrate, special, stats

from skldp._checks import check_dimension, check_fraction, check_integer, check_positive
from skldp.mechanisms import projected_dimension


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
    """
    check_dimension(d, least=1)
    above = _integral(lambda t: -np.expm1(d * special.log_ndtr(t)), 0, _far(d))
    return above - _integral(lambda t: np.exp(d * special.log_ndtr(-t)), 0, 40)


def finite_set_width(points, *, n_draws: int = 1_000, seed: int = 0) -> tuple[float, float]:
    r"""Estimate the width of a finite set of public vectors by Monte Carlo.

    Parameters
    ----------
    points : array-like of shape (n, d)
        Public vectors; the estimate depends on all of them.
    n_draws : int, default=1000
        At least 2.
    seed : int, default=0
        Seed of the draws.

    Returns
    -------
    width, standard_error : float
    """
    array = np.asarray(points, dtype=np.float64)
    if array.ndim != 2 or not array.size or not np.isfinite(array).all():
        raise ValueError(f"points must be a finite array of two dimensions; got shape {array.shape}.")
    check_integer("n_draws", n_draws, least=2)
    rng = np.random.default_rng(seed)
    suprema = np.array([(array @ rng.standard_normal(array.shape[1])).max() for _ in range(n_draws)])
    return float(suprema.mean()), float(suprema.std(ddof=1) / math.sqrt(n_draws))


def _far(d: int) -> float:
    """Return a point that the maximum of d standard normals exceeds with a probability below 1e-20."""
    return math.sqrt(2 * math.log(2 * d)) + 10


def _integral(function, low: float, high: float) -> float:
    return float(integrate.quad(function, low, high, limit=200, epsabs=1e-12)[0])


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


def main():
    """Print the dimensions of the paper, and two of its bounds beside those that hold."""
    print("m:", [projected_dimension(300, beta, 1e-6) for beta in (0.93, 0.66, 0.468)])
    m = projected_dimension(300, 0.7, 1e-6)
    claim, exact = (bound(5, m, 0.7, 0.05) for bound in (noise_norm_bound, noise_norm_quantile))
    print(f"Claim 6: {claim:.0f}, quantile: {exact:.0f}")
    published = 2 * 0.7 * 6 + 4 * m * math.log(2 * 200 * m / 1e-6) / 5
    ours = distance_bound(5, m, 0.7, 1e-6, 200, 6)
    print(f"Proposition 7 for 200 vectors of norm 6: {published:.0f} as printed, {ours:.0f}")


if __name__ == "__main__":
    main()
