r"""Gaussian widths and error bounds of random projections: Section 2.3, Claim 6 and Propositions 7 to 9.

Feyisetan and Kasiviswanathan, "Private release of text embedding vectors", 2021, Sections 2.3 and 4 and Appendix C.

An error bound holds with probability at least :math:`1 - \delta` for any m, over the noise and (except for
:func:`noise_norm_bound`) over the draw of a Gaussian projection, for vectors chosen independently of it. Half of
:math:`\delta` covers the norms of the noise, half a union bound over the chi-square tails of the projected lengths.
The propositions as printed need an m with an unspecified constant, and fail for the paper's m.

    python examples/papers/projection_bounds.py     # share of draws in which each bound fails, as printed and here
"""

import math

import numpy as np
from scipy import integrate, special, stats

from skldp import RandomProjectionPrivatizer
from skldp.exceptions import PrivacyGuaranteeWarning

__all__ = [
    "distance_bound",
    "failures",
    "finite_set_width",
    "inner_product_bound",
    "l1_ball_width",
    "linear_model_bound",
    "noise_norm_bound",
    "noise_norm_quantile",
    "simplex_width",
    "sparse_width",
]


def sparse_width(d, c):
    r"""Return :math:`\sqrt{c \ln(d / c)}`, the order of the width of c-sparse unit vectors, as printed.

    It lacks a constant: the width itself is at most :math:`\sqrt{2 c \ln(e d / c)} + \sqrt{c}`, and is
    :math:`\sqrt d` for c = d, where the printed formula gives 0. A difference of two c-sparse vectors is 2c-sparse.
    """
    return math.sqrt(c * math.log(d / c))


def l1_ball_width(d, radius=1.0):
    r"""Return the width of vectors of L1 norm at most `radius`, :math:`r\, E \max_i |g_i|`, by integration."""
    return radius * _integral(lambda t: -np.expm1(d * np.log1p(-2 * special.ndtr(-t))), _far(d))


def simplex_width(d):
    r"""Return the width of the probability simplex, :math:`E \max_i g_i`, by integration."""
    above = _integral(lambda t: -np.expm1(d * special.log_ndtr(t)), _far(d))
    return above - _integral(lambda t: np.exp(d * special.log_ndtr(-t)), 40)


def finite_set_width(points, *, n_draws=1_000, seed=0):
    """Estimate the width of a set of points of shape (n, d), with its standard error."""
    directions = np.random.default_rng(seed).normal(size=(np.shape(points)[1], n_draws))
    suprema = (np.asarray(points) @ directions).max(axis=0)
    return float(suprema.mean()), float(suprema.std(ddof=1) / math.sqrt(n_draws))


def _far(d):
    """Return a point that the maximum of d standard normals exceeds with a probability below 1e-20."""
    return math.sqrt(2 * math.log(2 * d)) + 10


def _integral(function, high):
    return float(integrate.quad(function, 0, high, limit=200, epsabs=1e-12)[0])


def noise_norm_bound(epsilon, m, beta, probability):
    r"""Return the bound of Claim 6 on the norm of one noise, :math:`m \ln(m / \gamma) (1 + \beta) / \varepsilon`."""
    return m * math.log(m / probability) * (1 + beta) / epsilon


def noise_norm_quantile(epsilon, m, beta, probability):
    r"""Return the quantile that Claim 6 bounds, that of :math:`\Gamma(m, (1 + \beta) / \varepsilon)`."""
    return float(special.gammainccinv(m, probability)) * (1 + beta) / epsilon


def distance_bound(epsilon, m, beta, delta, n, tau):
    r"""Bound the error of the distance of any two of n released vectors of norm at most tau (Proposition 7).

    .. math:: \bigl| \|w_i - w_j\| - \|x_i - x_j\| \bigr| \le 2 \tau \max(\sqrt{h} - 1, 1 - \sqrt{l}) + 2 r

    Each norm of the noise is above r with probability at most :math:`\delta / 2n`, and each squared stretch of the
    projection outside of (l, h) with probability at most :math:`\delta / (n (n - 1))`. The paper has
    :math:`2 \beta \tau + 4 m \ln(2 n m / \delta) / \varepsilon`.
    """
    noise, low, high = _tails(epsilon, m, beta, delta, n, n_lengths=n * (n - 1) // 2)
    return 2 * tau * max(math.sqrt(high) - 1, 1 - math.sqrt(low)) + 2 * noise


def inner_product_bound(epsilon, m, beta, delta, n, tau):
    r"""Bound the error of the inner product of any two of n released vectors, or of one with itself (Proposition 8).

    .. math:: |\langle w_i, w_j \rangle - \langle x_i, x_j \rangle| \le \tau^2 \max(h - 1, 1 - l)
              + 2 \tau \sqrt{h}\, r + r^2

    with r, l and h as in :func:`distance_bound`, of the sums and differences of two vectors of norm 1. The paper has
    :math:`\beta \tau^2 + 8 \tau m \ln(2 n m / \delta) / \varepsilon + (2 m \ln(2 n m / \delta))^2 / \varepsilon^2`.
    """
    # Sums and differences of all pairs, and every vector itself.
    noise, low, high = _tails(epsilon, m, beta, delta, n, n_lengths=n**2)
    return tau**2 * max(high - 1, 1 - low) + 2 * tau * math.sqrt(high) * noise + noise**2


def linear_model_bound(epsilon, m, beta, delta, n, tau, *, lipschitz=1.0, model_norm=1.0):
    r"""Bound the growth of a linear model's least training loss on released vectors (Proposition 9).

    .. math:: \lambda_\ell \|\Theta\| \bigl(\tau \max(h - 1, 1 - l) + \sqrt{h}\, r\bigr)

    with r, l and h as in :func:`inner_product_bound`, of the best model and every vector. The paper has
    :math:`\lambda_\ell \|\Theta\| (4 m \ln(2 n m / \delta) / \varepsilon + \beta \tau)`. The statement minimises over
    :math:`\langle w_i, \theta \rangle`, its proof over :math:`\langle w_i, \Phi \theta \rangle`; the latter is what is
    proved.
    """
    # The model's sum with and difference from every vector, and the model itself.
    noise, low, high = _tails(epsilon, m, beta, delta, n, n_lengths=2 * n + 1)
    return lipschitz * model_norm * (tau * max(high - 1, 1 - low) + math.sqrt(high) * noise)


def _tails(epsilon, m, beta, delta, n, *, n_lengths):
    """Return the largest norm of n noises, and the least and largest squared stretch of lengths, but for delta."""
    tail = delta / (4 * max(1, n_lengths))
    noise = noise_norm_quantile(epsilon, m, beta, delta / (2 * n))
    return noise, float(stats.chi2.ppf(tail, m)) / m, float(stats.chi2.isf(tail, m)) / m


def failures(d, m, beta, delta, epsilon, *, n=5, n_draws=300):
    """Count the draws in which each proposition fails for n vectors of norm 1, as printed and here, shape (2, 3)."""
    X = np.random.default_rng(0).normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    size, limits = 2 * m * math.log(2 * n * m / delta) / epsilon, (epsilon, m, beta, delta, n, 1.0)
    printed = 2 * beta + 2 * size, beta + 4 * size + size**2, beta + 2 * size
    bounds = [printed, [how(*limits) for how in (distance_bound, inner_product_bound, linear_model_bound)]]
    failed = np.zeros((2, 3), dtype=int)
    for seed in range(n_draws):
        release = RandomProjectionPrivatizer(epsilon, beta=beta, n_components=m, projection_seed=seed, seed=seed)
        W = release.fit(X).transform(X)
        distances = np.abs(np.linalg.norm(W[:, None] - W, axis=2) - np.linalg.norm(X[:, None] - X, axis=2))
        # The absolute loss of the model that is the first vector, whose least value is 0.
        growth = np.abs(W @ (release.components_ @ X[0]) - X @ X[0]).mean()
        failed += [distances.max(), np.abs(W @ W.T - X @ X.T).max(), growth] > np.array(bounds)
    return failed


if __name__ == "__main__":
    import warnings

    from skldp.exceptions import SeededNoiseWarning

    warnings.simplefilter("ignore", PrivacyGuaranteeWarning)
    warnings.simplefilter("ignore", SeededNoiseWarning)
    for m in (8, 100):
        printed, here = failures(200, m, 0.2, 0.05, 1e6) / 300
        print(f"m = {m}, Propositions 7 to 9: as printed {printed.round(3)}, here {here.round(3)}")
