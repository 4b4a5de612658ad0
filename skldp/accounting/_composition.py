"""What answers cost with high probability, whatever they are: composition that looks at epsilons alone."""

import math
from collections.abc import Sequence
from typing import Literal

__all__ = ["OutputIndependentRule", "advanced_composition"]

OutputIndependentRule = Literal["basic", "rogers", "whitehouse"]


def advanced_composition(
    epsilons: Sequence[float], *, epsilon: float, delta: float, rule: OutputIndependentRule
) -> float:
    r"""What an output-independent filter compares with its budget after the given queries.

    Parameters
    ----------
    epsilons : sequence of float
        The epsilon of each query, chosen adaptively.
    epsilon, delta : float
        The filter's budget.
    rule : {"basic", "rogers", "whitehouse"}

    Returns
    -------
    float
        The filter accepts while this is at most `epsilon`: then, for each pair of values x and x', the log-ratio of the
        outputs' probabilities is at most `epsilon` with probability at least :math:`1 - \delta` under x.

    Notes
    -----
    With :math:`s = \sum_i \varepsilon_i^2`: ``"basic"`` is :math:`\sum_i \varepsilon_i`, ``"whitehouse"`` is

    .. math:: \sqrt{2 \ln(1/\delta) s} + s/2,

    and ``"rogers"``, with :math:`H = \varepsilon_g^2 / (28.04 \ln(1/\delta))`, is

    .. math:: \sum_i \varepsilon_i (e^{\varepsilon_i} - 1)/2
              + \sqrt{2 (s + H) (1 + \tfrac12 \ln(s/H + 1)) \ln(2/\delta)}.

    Both hold for every pair x, x' by martingales. Let :math:`L_k` be the log-ratio after k answers and
    :math:`V_k = \sum_{i \le k} \varepsilon_i^2`. One answer's log-ratio lies in :math:`[-\varepsilon, \varepsilon]` and
    drifts by at most :math:`\varepsilon \tanh(\varepsilon/2)`, which is below both :math:`\varepsilon^2/2` and
    :math:`\varepsilon (e^\varepsilon - 1)/2`. So, with :math:`X_k` for :math:`L_k` without its drift,
    :math:`e^{\lambda X_k - \lambda^2 V_k / 2}` is a supermartingale. A :math:`\lambda` fixed by the largest V that is
    accepted gives ``"whitehouse"``. A normal mixture over :math:`\lambda` with variance 1/H gives
    :math:`X_k^2 \le 2 (V_k + H)(\ln(1/\delta) + \tfrac12 \ln(V_k/H + 1))` for all k at once, with any H that is fixed
    beforehand: ``"rogers"`` is a looser form of it wherever :math:`\ln(2/\delta) \ge 1`.

    References
    ----------
    R. Rogers, A. Roth, J. Ullman and S. Vadhan, "Privacy Odometers and Filters", NeurIPS 2016, Theorem 5.1.
    J. Whitehouse, A. Ramdas, R. Rogers and Z. S. Wu, "Fully Adaptive Composition in Differential Privacy", 2022.

    Examples
    --------
    >>> from skldp.accounting import advanced_composition
    >>> round(advanced_composition([0.01] * 100, epsilon=1.0, delta=1e-6, rule="whitehouse"), 4)
    0.5307
    """
    values = list(epsilons)
    if not values:
        return 0.0
    squares = math.fsum(value * value for value in values)
    if rule == "basic":
        total = math.fsum(values)
    elif rule == "whitehouse":
        total = math.sqrt(2 * math.log(1 / delta) * squares) + squares / 2
    elif rule == "rogers":
        floor = epsilon**2 / (28.04 * math.log(1 / delta))
        drift = math.fsum(value * math.expm1(value) / 2 for value in values)
        spread = 2 * (squares + floor) * (1 + math.log1p(squares / floor) / 2) * math.log(2 / delta)
        total = drift + math.sqrt(spread)
    else:
        raise ValueError(f"rule must be 'basic', 'rogers' or 'whitehouse'. Got {rule!r} instead.")
    return total if rule == "basic" else total * (1 + 2.0**-48)
