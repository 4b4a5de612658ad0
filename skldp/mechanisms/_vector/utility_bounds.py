r"""What the noise of a random projection can do to distances, inner products and linear models.

Every bound holds with probability at least :math:`1 - \delta`, over the noise and (but for :func:`noise_norm_bound`)
over the draw of the projection, on the conditions of Gordon's theorem. The natural logarithm is meant throughout.
They are the paper's, with its hidden constant of m taken as 1, and loose: see the Notes of :func:`noise_norm_bound`.

References
----------
Feyisetan and Kasiviswanathan, "Private release of text embedding vectors", 2021, Section 4 and Appendix C.
"""

import math

from scipy import special

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
    r"""Proposition 7: the error of the distance of any two of n released vectors.

    Parameters
    ----------
    epsilon : float
        Per unit of distance.
    m : int
        Dimension that the noise is added in.
    beta : float
        In (0, 1).
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
    .. math:: \bigl| \|w_i - w_j\| - \|x_i - x_j\| \bigr| \le 2 \beta \tau + \frac{4 m \ln(2 n m / \delta)}{\varepsilon}
    """
    _check(epsilon, m, beta, delta)
    check_dimension(n, least=1)
    check_positive("tau", tau)
    return 2 * beta * tau + 4 * m * math.log(2 * n * m / delta) / epsilon


def inner_product_bound(epsilon: float, m: int, beta: float, delta: float, n: int, tau: float) -> float:
    r"""Proposition 8: the error of the inner product of any two of n released vectors.

    Parameters
    ----------
    epsilon, m, beta, delta, n, tau
        As in :func:`distance_bound`.

    Returns
    -------
    float

    Notes
    -----
    .. math:: |\langle w_i, w_j \rangle - \langle x_i, x_j \rangle| \le \beta \tau^2
              + \frac{8 \tau m \ln(2 n m / \delta)}{\varepsilon} + \frac{(2 m \ln(2 n m / \delta))^2}{\varepsilon^2}
    """
    _check(epsilon, m, beta, delta)
    check_dimension(n, least=1)
    check_positive("tau", tau)
    size = 2 * m * math.log(2 * n * m / delta) / epsilon
    return beta * tau**2 + 4 * tau * size + size**2


def linear_model_bound(
    epsilon: float, m: int, beta: float, delta: float, n: int, tau: float, *, lipschitz: float, model_norm: float
) -> float:
    r"""Proposition 9: how much the least training loss of a linear model grows when it is fitted to released vectors.

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
    .. math:: \frac{4 \lambda_\ell\, m \ln(2 n m / \delta) \|\Theta\|}{\varepsilon} + \lambda_\ell \beta \tau \|\Theta\|

    The statement minimises over :math:`\langle w_i, \theta \rangle`, its proof over :math:`\langle w_i, \Phi \theta
    \rangle`; the latter is what is proved.
    """
    _check(epsilon, m, beta, delta)
    check_dimension(n, least=1)
    for name, value in (("tau", tau), ("lipschitz", lipschitz), ("model_norm", model_norm)):
        check_positive(name, value)
    noise = 4 * m * math.log(2 * n * m / delta) / epsilon
    return lipschitz * model_norm * (noise + beta * tau)


def _check(epsilon: float, m: int, beta: float, probability: float) -> None:
    check_positive("epsilon", epsilon)
    check_dimension(m, least=1)
    check_fraction("beta", beta)
    check_fraction("The probability", probability)
