r"""What the noise of a random projection can do to distances, inner products and linear models.

Every bound holds with probability at least :math:`1 - \delta` for any m, over the noise and (but for
:func:`noise_norm_bound`) over the draw of a Gaussian projection, for vectors that were chosen without looking at it.
Half of :math:`\delta` is for the norms of the noise, half for the projection: a union bound over the chi-square tails
of the lengths that the proofs use. Propositions 7 to 9 as printed need an m with a constant that the paper leaves open,
and fail for the m that it takes.

References
----------
Feyisetan and Kasiviswanathan, "Private release of text embedding vectors", 2021, Section 4 and Appendix C.
"""

import math

from scipy import special, stats

from skldp._checks import check_dimension, check_fraction, check_positive

__all__ = ["distance_bound", "inner_product_bound", "linear_model_bound", "noise_norm_bound", "noise_norm_quantile"]


def noise_norm_bound(epsilon: float, m: int, beta: float, probability: float) -> float:
    r"""Claim 6: the norm of one draw of the noise.

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
    >>> from skldp.mechanisms._vector.utility_bounds import noise_norm_bound, noise_norm_quantile
    >>> round(noise_norm_bound(1.0, 50, 0.9, 0.01)), round(noise_norm_quantile(1.0, 50, 0.9, 0.01))
    (809, 129)
    """
    _check(epsilon, m, beta, probability)
    return m * math.log(m / probability) * (1 + beta) / epsilon


def noise_norm_quantile(epsilon: float, m: int, beta: float, probability: float) -> float:
    """The exact figure that Claim 6 bounds: the norm of the noise exceeded with the given probability.

    Parameters
    ----------
    epsilon : float
    m : int
    beta : float
    probability : float

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
        Of the loss in its first argument.
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
    check_dimension(n, least=1)
    check_positive("tau", tau)
    tail = delta / (4 * max(1, n_lengths))
    noise = noise_norm_quantile(epsilon, m, beta, delta / (2 * n))
    return noise, float(stats.chi2.ppf(tail, m)) / m, float(stats.chi2.isf(tail, m)) / m


def _check(epsilon: float, m: int, beta: float, probability: float) -> None:
    check_positive("epsilon", epsilon)
    check_dimension(m, least=1)
    check_fraction("beta", beta)
    check_fraction("The probability", probability)
