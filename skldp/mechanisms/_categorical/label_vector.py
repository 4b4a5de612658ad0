"""Laplace noise on the whole one-hot label, exact on a lattice."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from skldp._checks import check_whole
from skldp.mechanisms._domain import Anywhere, Codes
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._numeric.additive import Laplace
from skldp.mechanisms._numeric.discrete_noise import discrete_laplace
from skldp.mechanisms._rows import RowMechanism, Workspace

__all__ = ["LabelLaplaceVectorMechanism"]


@dataclass(frozen=True)
class LabelLaplaceVectorMechanism(RowMechanism):
    r"""A one-hot label with discrete Laplace noise of scale :math:`2 / \varepsilon` on every entry.

    Takes rows of one code, shape (n, 1), and releases all C noisy numbers. Their mean is the one-hot label.

    Parameters
    ----------
    epsilon : float
        Natural-log budget of one label, at least 1e-6.
    n_classes : int
        C. A single one is released as it is, at epsilon 0.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Two labels differ in two entries, by 1 in each: together as far as the ends of [-1, 1], so that lattice, scale and
    exact epsilon are those of :class:`Laplace`, and the exact epsilon is attained. 0 and 1 are lattice points.

    References
    ----------
    Phan, Thai, Hu, Jin, Sun and Dou, "Scalable differential privacy with certified robustness in adversarial learning",
    ICML 2020, as the BitRand paper describes it (Section 7): noise across the C classes of a label.

    Examples
    --------
    >>> from skldp.mechanisms import LabelLaplaceVectorMechanism, noise_from
    >>> law = LabelLaplaceVectorMechanism(1.0, 4)
    >>> law.release([[0], [3]], noise_from()).rows.shape, law.exact_epsilon
    ((2, 4), 1.0)
    """

    epsilon: float
    n_classes: int

    def __post_init__(self) -> None:
        check_whole("n_classes", self.n_classes, least=1)
        # numpy's integers overflow where Python's do not.
        object.__setattr__(self, "n_classes", int(self.n_classes))
        # Refuses an epsilon that has no lattice.
        _ = self.law

    @cached_property
    def law(self) -> Laplace:
        """The law of one number in [-1, 1], whose noise every entry gets."""
        return Laplace(self.epsilon)

    @cached_property
    def domain(self) -> Codes:
        """The codes 0 to ``n_classes - 1``."""
        return Codes((self.n_classes,))

    @property
    def n_outputs(self) -> int:
        """One number for each class."""
        return self.n_classes

    @property
    def exact_epsilon(self) -> float:
        """The exact worst-case log-likelihood ratio of what is sampled, rounded up."""
        return self.law.exact_epsilon if self.n_classes > 1 else 0.0

    @property
    def noise_variance(self) -> float:
        """The variance of every released number."""
        return float(self.law.variance(0.0)) if self.n_classes > 1 else 0.0

    def output_dtype(self, dtype: np.dtype) -> np.dtype:
        """The type of a release: float64."""
        return np.dtype(np.float64)

    def guarantee(self, unit: str = "label") -> PrivacyGuarantee:
        """The exact guarantee of one release."""
        basis = "exact, of the discrete Laplace noise on the whole one-hot label"
        return PrivacyGuarantee(self.exact_epsilon, unit=unit, stated=float(self.epsilon), basis=basis)

    def log_likelihood(self, released: npt.ArrayLike, codes: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The natural log of the probability of each released row given each true code.

        Parameters
        ----------
        released : array-like of shape (n, n_classes)
        codes : array-like of shape (n, 1)

        Returns
        -------
        ndarray of shape (n,)
        """
        rows = Anywhere(self.n_classes).as_rows(released)
        own = self.domain.clip(self.domain.as_rows(codes)).rows.reshape(-1, 1)
        one_hot = (own == np.arange(self.n_classes)).astype(np.float64)
        if self.n_classes == 1:
            return np.where(rows[:, 0] == 1, 0.0, -np.inf)
        return np.asarray(self.law.log_likelihood(rows, one_hot).sum(axis=1))

    def _encode(self, rows: np.ndarray, out: np.ndarray, workspace: Workspace) -> None:
        out[...] = 0
        out[np.arange(len(rows)), rows[:, 0]] = 1

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        self._encode(rows, out, workspace)
        if self.n_classes == 1:
            return
        # In steps of the lattice every sum is a whole number, so that no low bit of a float tells where it began.
        out *= math.ldexp(1.0, self.law.lattice_exponent)
        out += discrete_laplace(self.law.scale, out.size, noise).reshape(out.shape)
        out *= self.law.step
