"""Dimensions of random projections, and the probability that one of them stretches a distance too far."""

import math
import sys

import numpy as np
from scipy import special

from skldp._checks import check_dimension, check_fraction, check_integer, check_positive

# Bound on the relative error of sums of positive terms and of their logarithms.
_ROUNDING = 2.0**-40


def default_width(d: int) -> float:
    r"""Return :math:`\sqrt{\log_2 d}`, the convention of the paper's Section 5 (printed without base 2)."""
    check_dimension(d, least=1)
    return math.sqrt(math.log2(d))


def projected_dimension(d: int, beta: float, delta: float, width: float | None = None) -> int:
    r"""Return the number of dimensions m to project to, from 1 to d.

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

    Notes
    -----
    .. math:: m = \operatorname{round}\Bigl(\frac{(\omega + \sqrt{\ln(1 / \delta)})^2}{\beta^2}\Bigr)

    The paper's :math:`\Omega(\cdot)` hides a constant; 1 gives its own dimensions.

    References
    ----------
    Feyisetan and Kasiviswanathan, "Private release of text embedding vectors", 2021, Algorithm 1.

    Examples
    --------
    >>> from skldp.mechanisms import projected_dimension
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
    """Bound P(stretch > 1 + beta) <= exp(-(beta sqrt(m) - width)^2 / 2), the width being that of DIRECTIONS."""
    # The m of projected_dimension therefore fails with probability sqrt(delta), not delta: Lemma 4 takes the set of the
    # differences. In an open set, directions are the whole sphere, of width about sqrt(d).
    margin = beta * math.sqrt(m) - width
    return math.exp(-margin * margin / 2) if margin > 0 else 1.0


def union_delta(m: int, beta: float, n_vectors: int) -> float:
    """Bound P(stretch > 1 + beta) of n vectors by (n choose 2) P(chi^2_m > m (1 + beta)^2), rounded up."""
    # P(chi^2_2k > 2 t) = e^-t sum_{j < k} t^j / j!; odd m has the larger tail of m + 1 degrees of freedom.
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
