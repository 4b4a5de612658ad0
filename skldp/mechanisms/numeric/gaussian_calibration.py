r"""How much Gaussian noise an epsilon and a delta need: the exact trade-off and the least standard deviation."""

import math

from scipy.optimize import brentq
from scipy.special import erfcx

__all__ = ["analytic_gaussian_sigma", "gaussian_delta"]

_ROUNDING = 2.0**-47


def gaussian_delta(sigma: float, epsilon: float, sensitivity: float = 1.0) -> float:
    r"""Give the least delta of Gaussian noise, rounded up.

    Parameters
    ----------
    sigma : float
        Standard deviation.
    epsilon : float
        Natural log.
    sensitivity : float, default=1.0
        Largest Euclidean distance D of two inputs.

    Returns
    -------
    float

    Notes
    -----
    .. math:: \delta = \Phi\Bigl(\frac{D}{2\sigma} - \frac{\varepsilon \sigma}{D}\Bigr)
                       - e^\varepsilon \Phi\Bigl(-\frac{D}{2\sigma} - \frac{\varepsilon \sigma}{D}\Bigr)

    computed from scaled complementary error functions, which keeps its digits where it is tiny.

    References
    ----------
    Balle and Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018, Theorem 8.

    Examples
    --------
    >>> from skldp.mechanisms.numeric.gaussian_calibration import gaussian_delta
    >>> round(gaussian_delta(3.7306, 1.0), 7)
    1e-05
    """
    half, shift = sensitivity / (2 * sigma), epsilon * sigma / sensitivity
    upper = (shift - half) / math.sqrt(2)
    if upper < -20:
        return 1.0
    tail, first, second = 0.5 * math.exp(-(upper**2)), erfcx(upper), erfcx((shift + half) / math.sqrt(2))
    # The two nearly cancel where epsilon is small, and both arguments are off by some units of shift + half.
    error = _ROUNDING * (1 + shift + half) ** 2 * (1 + first + second)
    return float(min(1.0, tail * (max(0.0, first - second) + error)))


def analytic_gaussian_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    r"""Find the least standard deviation of Gaussian noise that is (epsilon, delta)-private, rounded up.

    Parameters
    ----------
    epsilon : float
        Natural log, above 0.
    delta : float
        Inside (0, 1).
    sensitivity : float, default=1.0
        Largest Euclidean distance of two inputs.

    Returns
    -------
    float

    References
    ----------
    Balle and Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018.

    Examples
    --------
    >>> from skldp.mechanisms.numeric.gaussian_calibration import analytic_gaussian_sigma
    >>> round(analytic_gaussian_sigma(1.0, 1e-5), 4)
    3.7306
    """
    low, high = 1.0, 1.0
    while gaussian_delta(high, epsilon) > delta:
        high *= 2
    while gaussian_delta(low, epsilon) <= delta:
        low /= 2
    root = float(brentq(lambda s: gaussian_delta(s, epsilon) - delta, low, high, xtol=1e-300, rtol=1e-14))
    step = 2.0**-46
    while gaussian_delta(root, epsilon) > delta:
        root *= 1 + step
        step *= 2
    return root * sensitivity
