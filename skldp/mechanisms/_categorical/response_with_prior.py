"""Randomized response that spends its answers on the classes a public prior makes likely."""

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from skldp.mechanisms._categorical.randomized_response import RandomizedResponse, check_codes
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._odds import check_epsilon

__all__ = ["RandomizedResponseWithPrior", "best_prior_support"]


def best_prior_support(prior: npt.ArrayLike, epsilon: float) -> npt.NDArray[np.int64]:
    r"""The classes that randomized response with a prior answers with.

    Parameters
    ----------
    prior : array-like of shape (n_classes,)
        Public probabilities of the classes.
    epsilon : float

    Returns
    -------
    ndarray of int64, sorted
        The k* most likely classes, where k* maximises :math:`\frac{e^\varepsilon}{e^\varepsilon + k - 1}` times
        their mass; the smallest such k*.

    References
    ----------
    Ghazi, Golowich, Kumar, Manurangsi and Zhang, "Deep learning with label differential privacy", NeurIPS 2021,
    Algorithm 2.

    Examples
    --------
    >>> from skldp.mechanisms._categorical.response_with_prior import best_prior_support
    >>> best_prior_support([0.1, 0.5, 0.4], epsilon=1.0).tolist()
    [1, 2]
    """
    mass = np.asarray(prior, dtype=np.float64)
    order = np.argsort(-mass, kind="stable")
    others = np.arange(mass.size)
    expected = np.cumsum(mass[order]) / (1 + others * math.exp(-epsilon))
    return np.sort(order[: int(np.argmax(expected)) + 1])


@dataclass(frozen=True)
class RandomizedResponseWithPrior:
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
    >>> from skldp.mechanisms._categorical.response_with_prior import RandomizedResponseWithPrior
    >>> RandomizedResponseWithPrior(1.0, (0.1, 0.5, 0.4)).support.tolist()
    [1, 2]
    """

    epsilon: float
    prior: tuple[float, ...]
    inner: RandomizedResponse = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        mass = np.asarray(self.prior, dtype=np.float64)
        if mass.ndim != 1 or not mass.size or not (mass >= 0).all() or not abs(mass.sum() - 1) <= 1e-6:
            raise ValueError(f"prior must be probabilities that sum to 1. Got {self.prior!r} instead.")
        object.__setattr__(self, "inner", RandomizedResponse(self.epsilon, self.support.size))

    @property
    def n_classes(self) -> int:
        """How many classes there are, answered with or not."""
        return len(self.prior)

    @cached_property
    def support(self) -> npt.NDArray[np.int64]:
        """The codes that are ever released, sorted."""
        return best_prior_support(self.prior, self.epsilon)

    @property
    def exact_epsilon(self) -> float:
        """The exact worst-case log-likelihood ratio of what is sampled, rounded up."""
        return self.inner.exact_epsilon

    def support_probabilities(self) -> tuple[float, float]:
        """The probabilities that the true code and that any single other code is released.

        Raises
        ------
        ValueError
            If some code is never released, so that its frequency cannot be estimated without bias.
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

    def output_law(self, codes: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The law of the released code for each true code: one row of probabilities each."""
        return self.flip_matrix[check_codes(codes, self.n_classes)]

    def log_likelihood(self, released: npt.ArrayLike, codes: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The natural log of the probability of each released code given each true code (broadcast)."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.flip_matrix)
        return logs[check_codes(codes, self.n_classes), check_codes(released, self.n_classes)]

    def sample(self, codes: npt.ArrayLike, noise: Noise) -> npt.NDArray[np.int64]:
        """Release each code independently."""
        values = check_codes(codes, self.n_classes)
        place = np.full(self.n_classes, -1, dtype=np.int64)
        place[self.support] = np.arange(self.support.size)
        within = place[values]
        outside = np.flatnonzero(within.reshape(-1) < 0)
        flat = within.reshape(-1)
        flat[outside] = 0
        released = self.inner.sample(within, noise)
        released.reshape(-1)[outside] = noise.integers(self.support.size, outside.size)
        return self.support[released]

    def guarantee(self, unit: str = "label") -> PrivacyGuarantee:
        """The exact guarantee of one release."""
        answers = f"{self.support.size} of {self.n_classes} classes"
        return PrivacyGuarantee(
            self.exact_epsilon,
            unit=unit,
            stated=self.epsilon,
            basis=f"exact, from the 64-bit integer probabilities; answers with {answers}",
        )
