r"""Label-Laplace: Laplace noise on the one-hot label and the arg max of it, as the exact law that this gives."""

from dataclasses import dataclass
from decimal import Decimal, localcontext

import numpy as np
import numpy.typing as npt

from skldp.mechanisms._categorical.randomized_response import KeepOrLie
from skldp.mechanisms._odds import DIGITS, TWO_64

__all__ = ["LabelLaplaceMechanism", "clean_probabilities", "label_laplace_keep_count", "project_onto_simplex"]


def clean_probabilities(
    noisy: npt.NDArray[np.floating], flip_matrix: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    r"""Probabilities of the true classes from those of the randomized ones.

    Parameters
    ----------
    noisy : ndarray of shape (n_samples, n_classes)
        Rows of :math:`P(y' | x)`.
    flip_matrix : ndarray of shape (n_classes, n_classes)
        T. Classes that are never released (columns of zeros) get probability 0: nothing is known about them.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
        The solution of :math:`T^\top p = q`, then the nearest point (Euclidean) of the probability simplex.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms._categorical.label_laplace import clean_probabilities
    >>> clean_probabilities(np.array([[0.7, 0.3]]), np.array([[0.75, 0.25], [0.25, 0.75]])).round(6).tolist()
    [[0.9, 0.1]]
    """
    released = np.flatnonzero(flip_matrix.any(axis=0))
    law = flip_matrix[np.ix_(released, released)]
    solved = np.asarray(np.linalg.solve(law.T, noisy[:, released].T).T, dtype=np.float64)
    clean = np.zeros(noisy.shape)
    clean[:, released] = project_onto_simplex(solved)
    return clean


def project_onto_simplex(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The nearest point of the probability simplex to each row, in Euclidean distance.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_classes)

    Returns
    -------
    ndarray of shape (n_samples, n_classes)

    References
    ----------
    Duchi, Shalev-Shwartz, Singer and Chandra, "Efficient projections onto the l1-ball for learning in high
    dimensions", ICML 2008, Figure 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms._categorical.label_laplace import project_onto_simplex
    >>> project_onto_simplex(np.array([[1.5, -0.5], [0.25, 0.25]])).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    descending = -np.sort(-rows, axis=1)
    excess = np.cumsum(descending, axis=1) - 1
    ranks = np.arange(1, rows.shape[1] + 1)
    support = np.count_nonzero(descending * ranks > excess, axis=1)
    shift = excess[np.arange(rows.shape[0]), support - 1] / support
    return np.maximum(rows - shift[:, None], 0.0)


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
    >>> from skldp.mechanisms._categorical.label_laplace import label_laplace_keep_count
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
    >>> from skldp.mechanisms._categorical.label_laplace import LabelLaplaceMechanism
    >>> round(LabelLaplaceMechanism(1.0, 10).exact_epsilon, 4)
    0.566
    """

    def _other_count(self) -> int:
        lies = TWO_64 - label_laplace_keep_count(self.epsilon, self.n_classes)
        return -(-lies // (self.n_classes - 1))

    def _basis(self) -> str:
        return "exact, of the arg max of the noisy one-hot label, from the 64-bit integer probabilities"
