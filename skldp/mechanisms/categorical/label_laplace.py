r"""Label-Laplace: Laplace noise on the one-hot label and the arg max of it, as the exact law that this gives."""

from dataclasses import dataclass
from decimal import Decimal, localcontext

from skldp.mechanisms.categorical.integer_odds import DIGITS, TWO_64
from skldp.mechanisms.categorical.randomized_response import KeepOrLie

__all__ = ["LabelLaplaceMechanism", "label_laplace_keep_count"]

# What the label-Laplace integral, computed to DIGITS digits and more, is rounded down by before it becomes an integer.
_INTEGRAL_ERROR = Decimal(10) ** -40


def label_laplace_keep_count(epsilon: float, n_classes: int) -> int:
    r"""The integer k with :math:`k / 2^{64}` at most the probability that label-Laplace keeps the true class.

    Parameters
    ----------
    epsilon : float
        The Laplace noise on the one-hot label has scale :math:`2 / \varepsilon`.
    n_classes : int
        C, at least 2.

    Returns
    -------
    int

    Notes
    -----
    With :math:`a = \varepsilon / 2`, :math:`\ell = e^{-a} / 2` and the law F of a standard Laplace variable,

    .. math:: \int \tfrac12 e^{-|u - a|} F(u)^{C-1} du = \frac{e^{-a}}{C 2^C}
              + \frac{e^{-a}}{4} \int_\ell^{1/2} \frac{(1 - v)^{C-1}}{v^2} dv + \frac{e^a (1 - (1 - \ell)^C)}{C}

    and the middle integral follows from a recursion over C, run here with enough decimal digits to certify the
    rounding.

    Examples
    --------
    >>> from skldp.mechanisms.categorical.label_laplace import label_laplace_keep_count
    >>> round(label_laplace_keep_count(1.0, 2) / 2**64, 4)
    0.6209
    """
    a = Decimal(min(float(epsilon), 400.0)) / 2
    with localcontext(prec=DIGITS + int(a) + len(str(n_classes))):
        growth = a.exp()
        low, high = 1 / (2 * growth), Decimal("0.5")
        # by_v and by_v2 are the integrals of (1-v)^n / v and (1-v)^n / v^2 from low to high, here for n = 0.
        by_v, by_v2 = a, 1 / low - 1 / high
        low_power, high_power = Decimal(1), Decimal(1)
        for n in range(1, n_classes):
            by_v2 -= by_v
            low_power *= 1 - low
            high_power *= high
            by_v -= (low_power - high_power) / n
        inner = by_v2 / (4 * growth) + high_power * high / (growth * n_classes)
        keep = inner + growth * (1 - low_power * (1 - low)) / n_classes
        return min(int((keep - _INTEGRAL_ERROR) * TWO_64), TWO_64 - 1)


@dataclass(frozen=True)
class LabelLaplaceMechanism(KeepOrLie):
    r"""Laplace noise on the one-hot label, then the arg max: sampled as the exact law that this gives.

    Parameters
    ----------
    epsilon : float
        The stated budget: the noise has scale :math:`2 / \varepsilon`, since two one-hot labels are 2 apart.
    n_classes : int
        C.

    Raises
    ------
    ValueError
        If a parameter is out of range, or epsilon too small for 64-bit probabilities.

    Notes
    -----
    Only the arg max is released, and by symmetry every class but the true one is equally likely: the release is a
    k-ary randomized response at a smaller epsilon, which the guarantee gives beside the stated one.
    No floating-point noise is drawn, so there are no low bits to leak.

    Examples
    --------
    >>> from skldp.mechanisms.categorical.label_laplace import LabelLaplaceMechanism
    >>> round(LabelLaplaceMechanism(1.0, 10).exact_epsilon, 4)
    0.566
    """

    def _lie_count(self) -> int:
        lies = TWO_64 - label_laplace_keep_count(self.epsilon, self.n_classes)
        return -(-lies // (self.n_classes - 1))

    def _basis(self) -> str:
        return "exact, of the arg max of the noisy one-hot label, from the 64-bit integer probabilities"
