"""The largest share of secrets that any attacker can recover from releases of a known epsilon."""

import math

import numpy as np
import numpy.typing as npt

from skldp._checks import check_between, check_fraction, check_whole

__all__ = ["inversion_bound", "metric_bound", "pairwise_share"]

# Far above what rounding does to the sums and exponentials below, and far below what anybody reads off them.
_ROUNDING = 1e-9
# Steps that make the certificate smaller; every one of them is valid.
_STEPS = 50


def inversion_bound(epsilon: float, n_candidates: int, *, delta: float = 0.0) -> float:
    r"""Bound the share of secrets that anybody recovers, each drawn uniformly from known candidates and released once.

    Parameters
    ----------
    epsilon : float
        The exact epsilon of one release (natural log), which may be infinite.
    n_candidates : int
        k, at least 2.
    delta : float, default=0.0
        In [0, 1).

    Returns
    -------
    float
        At most 1; rounded up.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Let :math:`p_x` be the probability that the attacker names x when it is x. Naming x has a probability of at least
    :math:`e^{-\varepsilon} (p_x - \delta)` for every other candidate, and what is named for one candidate has
    probability 1 in all. Added up over the candidates, the mean of :math:`p_x` is at most

    .. math:: \frac{e^\varepsilon + (k - 1) \delta}{e^\varepsilon + k - 1}.

    With ``delta=0``, k-ary randomized response attains it.

    Examples
    --------
    >>> from skldp.study import inversion_bound
    >>> round(inversion_bound(0.0, 4), 6), round(inversion_bound(1.0, 4), 4), round(inversion_bound(5.0, 1000), 4)
    (0.25, 0.4754, 0.1293)
    """
    check_between("epsilon", epsilon, 0, math.inf)
    check_whole("n_candidates", n_candidates, least=2)
    if delta != 0:
        check_fraction("delta", delta)
    others = (n_candidates - 1) * math.exp(-epsilon)
    return min(1.0, (1 + others * delta) / (1 + others) * (1 + _ROUNDING))


def pairwise_share(epsilons: npt.NDArray[np.float64]) -> float:
    r"""The same bound, without a delta, where every two candidates have an epsilon of their own, as in metric privacy.

    Shapes: epsilons (n_candidates, n_candidates).

    Notes
    -----
    With :math:`A_{ij} = e^{-\varepsilon_{ij}}` the :math:`p_x` of :func:`inversion_bound` satisfy :math:`A p \le 1`.
    For every :math:`y \ge 0` with :math:`A y \ge 1`, therefore, :math:`\sum_x p_x \le \sum_x y_x`. How a y was found
    does not matter: it is divided by the smallest number of :math:`A y`.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.study._audit.inversion_bound import inversion_bound, pairwise_share
    >>> abs(pairwise_share(2.0 * (1 - np.eye(5))) - inversion_bound(2.0, 5)) < 1e-8
    True
    """
    # Smaller by more than the exponential's rounding: a larger bound.
    alike = np.exp(-epsilons) * (1 - _ROUNDING)
    np.fill_diagonal(alike, 1.0)
    y, best = 1 / alike.sum(axis=1), math.inf
    for _ in range(_STEPS):
        reached = alike @ y
        best = min(best, float(y.sum() / reached.min()))
        y = y / reached
    return min(1.0, best / len(y) * (1 + _ROUNDING))


def metric_bound(epsilon: float, distances: npt.NDArray[np.float64], diameter: float | None) -> float:
    """The bound of a guarantee per unit of distance.

    Shapes: distances (n_candidates, n_candidates).

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.study._audit.inversion_bound import metric_bound
    >>> far = np.array([[0.0, 9.0], [9.0, 0.0]])
    >>> metric_bound(1.0, far, None) > metric_bound(1.0, far, 2.0)
    True
    """
    within = distances if diameter is None else np.minimum(distances, diameter)
    return pairwise_share(epsilon * within * (1 + _ROUNDING))
