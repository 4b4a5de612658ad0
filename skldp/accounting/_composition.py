"""Composition that looks at epsilons alone: what filters do that take no notice of outputs."""

import math
from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Literal

from skldp.accounting._units import UNITS
from skldp.mechanisms._odds import round_up, sum_above

__all__ = ["OutputIndependentRule", "advanced_composition", "loss_of_zcdp", "zcdp_budget"]

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
        total = sum_above(*values)
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


# Digits that are computed with, and a bound on the relative error that a few such operations make.
_DECIMALS = Context(prec=80)
_DECIMAL_ERROR = Decimal(10) ** -60


def zcdp_budget(epsilon: float, delta: float) -> int:
    r"""How much zero-concentrated privacy an (epsilon, delta) budget has room for, in units and rounded down.

    Parameters
    ----------
    epsilon, delta : float

    Returns
    -------
    int
        The largest :math:`\rho` in units of :math:`2^{-60}` nats, within a unit or two, with

        .. math:: \rho + 2 \sqrt{\rho \ln(1/\delta)} \le \varepsilon.

    Notes
    -----
    A filter that accepts while the :math:`\rho` of all queries, chosen adaptively, add up to at most this keeps the
    log-ratio of the outputs' probabilities at most epsilon, with probability at least :math:`1 - \delta`, for each pair
    of values: with :math:`\alpha` fixed, :math:`e^{(\alpha - 1)(L_k - \alpha (\rho_1 + \dots + \rho_k))}` is a
    supermartingale. Where every :math:`\rho_i` is :math:`\varepsilon_i^2 / 2` it is ``"whitehouse"`` of
    :func:`advanced_composition`. Solved for :math:`\rho`, the room is
    :math:`(\sqrt{\varepsilon + \ln(1/\delta)} - \sqrt{\ln(1/\delta)})^2`.

    References
    ----------
    M. Bun and T. Steinke, "Concentrated Differential Privacy", TCC 2016, Lemma 3.5; J. Whitehouse, A. Ramdas, R. Rogers
    and Z. S. Wu, "Fully Adaptive Composition in Differential Privacy", 2022.

    Examples
    --------
    >>> from skldp.accounting._composition import zcdp_budget
    >>> round(zcdp_budget(1.0, 1e-6) / 2**60, 6)
    0.017469
    """
    with localcontext(_DECIMALS):
        inverse = -Decimal(delta).ln()
        # epsilon over the sum of the roots is their difference, without what that would lose.
        root = Decimal(epsilon) / ((inverse + Decimal(epsilon)).sqrt() + inverse.sqrt())
        return math.floor(root * root * UNITS * (1 - _DECIMAL_ERROR))


def loss_of_zcdp(rho: int, delta: float) -> float:
    r"""Give :math:`\rho + 2 \sqrt{\rho \ln(1/\delta)}` in nats, rounded up, for a rho in units.

    Examples
    --------
    >>> from skldp.accounting._composition import loss_of_zcdp, zcdp_budget
    >>> round(loss_of_zcdp(zcdp_budget(1.0, 1e-6), 1e-6), 9)
    1.0
    """
    with localcontext(_DECIMALS):
        loss = Decimal(rho) / UNITS
        return round_up(Fraction((loss + 2 * (loss * -Decimal(delta).ln()).sqrt()) * (1 + _DECIMAL_ERROR)))
