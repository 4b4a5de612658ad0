"""Two more laws of labels: label-Laplace, and randomized response with a public prior."""

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cached_property

import numpy as np
import numpy.typing as npt

from skldp._checks import check_epsilon
from skldp.mechanisms._categorical.randomized_response import (
    CodeMechanism,
    GeneralizedRandomizedResponse,
    RandomizedResponse,
)
from skldp.mechanisms._domain import Codes
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._odds import DIGITS, TWO_64
from skldp.mechanisms._rows import Workspace

__all__ = [
    "LabelLaplaceMechanism",
    "RandomizedResponseWithPrior",
    "best_prior_support",
    "label_laplace_keep_count",
    "ranked_supports",
]

# What the label-Laplace integral, computed to DIGITS digits and more, is rounded down by before it becomes an integer.
_INTEGRAL_ERROR = Decimal(10) ** -40


def best_prior_support(prior: npt.ArrayLike, epsilon: float) -> npt.NDArray[np.int64]:
    r"""The classes that randomized response with a prior answers with.

    Shapes: prior (n_classes,).

    References
    ----------
    Ghazi, Golowich, Kumar, Manurangsi and Zhang, "Deep learning with label differential privacy", NeurIPS 2021,
    Algorithm 2.

    Examples
    --------
    >>> from skldp.mechanisms._categorical.label_laws import best_prior_support
    >>> best_prior_support([0.1, 0.5, 0.4], epsilon=1.0).tolist()
    [1, 2]
    """
    (order,), (size,) = ranked_supports(np.asarray(prior, dtype=np.float64)[None], epsilon)
    return np.sort(order[:size])


def ranked_supports(
    priors: npt.NDArray[np.float64], epsilon: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The classes by falling prior, and how many of the first of them are answered with, for one prior in each row.

    Shapes: priors (n, n_classes).

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms._categorical.label_laws import ranked_supports
    >>> order, sizes = ranked_supports(np.array([[0.1, 0.5, 0.4], [0.9, 0.05, 0.05]]), 1.0)
    >>> order.tolist(), sizes.tolist()
    ([[1, 2, 0], [0, 1, 2]], [2, 1])
    """
    order = np.argsort(-priors, axis=1, kind="stable")
    others = np.arange(priors.shape[1])
    expected = np.cumsum(np.take_along_axis(priors, order, axis=1), axis=1) / (1 + others * math.exp(-epsilon))
    return order, expected.argmax(axis=1) + 1


def label_laplace_keep_count(epsilon: float, n_classes: int) -> int:
    r"""The integer k with :math:`k / 2^{64}` at most the probability that label-Laplace keeps the true class.

    Notes
    -----
    With :math:`a = \varepsilon / 2`, :math:`\ell = e^{-a} / 2` and the law F of a standard Laplace variable,

    .. math:: \int \tfrac12 e^{-|u - a|} F(u)^{C-1} du = \frac{e^{-a}}{C 2^C}
              + \frac{e^{-a}}{4} \int_\ell^{1/2} \frac{(1 - v)^{C-1}}{v^2} dv + \frac{e^a (1 - (1 - \ell)^C)}{C}

    and the middle integral follows from a recursion over C, run here with enough decimal digits to certify the
    rounding.

    Examples
    --------
    >>> from skldp.mechanisms._categorical.label_laws import label_laplace_keep_count
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
class LabelLaplaceMechanism(GeneralizedRandomizedResponse):
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
    >>> from skldp.mechanisms import LabelLaplaceMechanism
    >>> round(LabelLaplaceMechanism(1.0, 10).exact_epsilon, 4)
    0.566
    """

    _basis = "exact, of the arg max of the noisy one-hot label, from the 64-bit integer probabilities"

    def _count_of_others(self) -> int:
        others = TWO_64 - label_laplace_keep_count(self.epsilon, self.n_classes)
        return -(-others // (self.n_classes - 1))


@dataclass(frozen=True)
class RandomizedResponseWithPrior(CodeMechanism):
    r"""Randomized response over the classes that a public prior makes worth answering with.

    Parameters
    ----------
    epsilon : float
        Natural-log budget of one answer.
    prior : tuple of float
        Public probabilities of the classes, which sum to 1.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    The k* most likely classes answer by k*-ary randomized response; a class outside them is answered uniformly over
    them. With k* = 1 the answer is a constant, at epsilon 0.

    References
    ----------
    Ghazi, Golowich, Kumar, Manurangsi and Zhang, "Deep learning with label differential privacy", NeurIPS 2021,
    Algorithm 2 (RRWithPrior).

    Examples
    --------
    >>> from skldp.mechanisms import RandomizedResponseWithPrior
    >>> RandomizedResponseWithPrior(1.0, (0.1, 0.5, 0.4)).support.tolist()
    [1, 2]
    """

    epsilon: float
    prior: tuple[float, ...]

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        mass = np.asarray(self.prior, dtype=np.float64)
        if mass.ndim != 1 or not mass.size or not (mass >= 0).all() or not abs(mass.sum() - 1) <= 1e-6:
            raise ValueError(f"prior must be probabilities that sum to 1. Got {self.prior!r} instead.")
        object.__setattr__(self, "prior", tuple(mass.tolist()))
        # Refuses what cannot be answered with.
        _ = self.inner

    @property
    def n_classes(self) -> int:
        """How many classes there are, answered with or not."""
        return len(self.prior)

    @cached_property
    def domain(self) -> Codes:
        """The codes 0 to ``n_classes - 1``."""
        return Codes((self.n_classes,))

    @cached_property
    def support(self) -> npt.NDArray[np.int64]:
        """The codes that are ever released, sorted."""
        return best_prior_support(self.prior, self.epsilon)

    @cached_property
    def inner(self) -> RandomizedResponse:
        """The randomized response over the places in the support."""
        return RandomizedResponse(self.epsilon, self.support.size)

    @property
    def exact_epsilon(self) -> float:
        """The exact worst-case log-likelihood ratio of what is sampled, rounded up."""
        return self.inner.exact_epsilon

    def support_probabilities(self) -> tuple[float, float]:
        """The probabilities that the true code and that any single other code is released.

        Raises
        ------
        ValueError
            If some code is never released, so that nothing unbiased can be said about it.
        """
        if self.support.size < self.n_classes:
            raise ValueError(
                "Every class must be answered with for its frequency to be estimated without bias. "
                f"Got answers with {self.support.size} of {self.n_classes} classes instead."
            )
        return self.inner.support_probabilities()

    @property
    def flip_matrix(self) -> npt.NDArray[np.float64]:
        """The probability of releasing column j when the true code is row i, shape (n_classes, n_classes)."""
        matrix = np.zeros((self.n_classes, self.n_classes))
        matrix[:, self.support] = 1 / self.support.size
        matrix[np.ix_(self.support, self.support)] = self.inner.flip_matrix
        return matrix

    def log_likelihood(self, released: npt.ArrayLike, codes: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The natural log of the probability of each released code given each true code (broadcast)."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.flip_matrix)
        return logs[self._codes(codes), self._codes(released)]

    def guarantee(self, unit: str = "label") -> PrivacyGuarantee:
        """The exact guarantee of one release."""
        answers = f"{self.support.size} of {self.n_classes} classes"
        return PrivacyGuarantee(
            self.exact_epsilon,
            unit=unit,
            stated=self.epsilon,
            basis=f"exact, from the 64-bit integer probabilities; answers with {answers}",
        )

    @cached_property
    def _places(self) -> npt.NDArray[np.int64]:
        """The place of each code in the support, -1 where it has none."""
        places = np.full(self.n_classes, -1, dtype=np.int64)
        places[self.support] = np.arange(self.support.size)
        return places

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        places = self._places.take(rows, mode="clip", out=workspace.take("places", rows.shape, np.int64))
        outside = np.flatnonzero(places < 0)
        places.reshape(-1)[outside] = 0
        self.inner._draw(places, noise, out, workspace)
        out.reshape(-1)[outside] = noise.at(outside, rows.size).integers(self.support.size, outside.size)
        out[...] = self.support[out]
