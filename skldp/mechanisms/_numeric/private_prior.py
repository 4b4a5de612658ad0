"""Which part of its bounds a number lies in, asked privately, and the prior that many answers tell."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from skldp.mechanisms._categorical.frequency import estimate_frequencies, project_onto_simplex
from skldp.mechanisms._categorical.unary import UnaryEncoding
from skldp.mechanisms._domain import Box
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._rows import RowMechanism, Workspace

__all__ = ["PriorQuestion"]


@dataclass(frozen=True)
class PriorQuestion(RowMechanism):
    """One noisy bit for each of equal parts of the bounds of a number, by optimised unary encoding.

    Parameters
    ----------
    epsilon : float
        Natural-log budget of one answer.
    low, high : float
        Bounds of the number, finite and ``low < high``.
    n_parts : int, default=16
        The error of a part's frequency does not depend on their number.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    References
    ----------
    Ghazi, Kamath, Kumar, Leeman, Manurangsi, Varadarajan and Zhang, "Regression with label differential privacy", ICLR
    2023, Section 3.2, who learn the prior from a share of the budget with Laplace noise on a histogram, which a trusted
    server adds; here each person does. Wang, Blocki, Li and Jha, "Locally differentially private protocols for
    frequency estimation", USENIX Security 2017, for the bits.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms import PriorQuestion, noise_from
    >>> question = PriorQuestion(20.0, 0.0, 100.0, n_parts=4)
    >>> answers = question.release(np.repeat([[10.0], [60.0]], 5000, axis=0), noise_from()).rows
    >>> question.estimate(answers).round(1).tolist()
    [0.5, 0.0, 0.5, 0.0]
    """

    epsilon: float
    low: float = field(repr=False)
    high: float = field(repr=False)
    n_parts: int = 16

    def __post_init__(self) -> None:
        # Both refuse what they cannot be made of.
        _ = self.domain, self.inner

    @property
    def n_outputs(self) -> int:
        """One bit for each part."""
        return self.n_parts

    @cached_property
    def domain(self) -> Box:
        """The declared bounds."""
        return Box((self.low,), (self.high,))

    @cached_property
    def inner(self) -> UnaryEncoding:
        """The bits of the parts."""
        return UnaryEncoding(float(self.epsilon), self.n_parts, "oue")

    def output_dtype(self, dtype: np.dtype) -> np.dtype:
        """The type of a release: bool."""
        return np.dtype(bool)

    def guarantee(self, unit: str = "label") -> PrivacyGuarantee:
        """The exact guarantee of one answer."""
        return self.inner.guarantee(unit)

    def estimate(self, answers: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Probabilities of the parts, from many answers.

        Parameters
        ----------
        answers : array-like of bool, shape (n, n_parts)

        Returns
        -------
        ndarray of shape (n_parts,)
            The unbiased frequencies, moved to the nearest probabilities.
        """
        bits = np.asarray(answers)
        frequencies = estimate_frequencies(bits.sum(axis=0), len(bits), self.inner.p, self.inner.q).frequencies
        estimate: npt.NDArray[np.float64] = project_onto_simplex(frequencies[None, :])[0]
        estimate /= estimate.sum()
        return estimate

    def _parts(self, rows: np.ndarray) -> npt.NDArray[np.int64]:
        edges = self.domain.center + self.domain.radius * np.linspace(-1, 1, self.n_parts + 1)
        return np.searchsorted(edges[1:-1], rows, side="right")

    def _encode(self, rows: np.ndarray, out: np.ndarray, workspace: Workspace) -> None:
        self.inner._encode(self._parts(rows), out, workspace)

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        self.inner._draw(self._parts(rows), noise, out, workspace)
