"""Randomized response on bins of a number: for targets of regressions, with a public prior of their values."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from skldp._checks import check_epsilon
from skldp.mechanisms._categorical.frequency import clean_probabilities
from skldp.mechanisms._categorical.randomized_response import RandomizedResponse
from skldp.mechanisms._domain import Box
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._numeric.best_bins import Bins, best_bins, best_knots, refined_prior
from skldp.mechanisms._rows import RowMechanism, Workspace

__all__ = ["ResponseOnBins"]

_MOST_PARTS = 1024


@dataclass(frozen=True)
class ResponseOnBins(RowMechanism):
    r"""One number within bounds, answered with the number of its bin or of another one.

    Parameters
    ----------
    epsilon : float
        Natural-log budget of one answer.
    low, high : float
        Bounds of the number, finite and ``low < high``.
    prior : tuple of float, default=None
        Public probabilities of equal parts of the bounds, at most 1,024 of them, which sum to 1. None is uniform.
    unbiased : bool, default=False
        False: the least expected square error under the prior, as published. True: the mean of the answers is the
        number, whichever it is.

    Attributes
    ----------
    answers : ndarray of shape (n_answers,)
        What is released, ascending; outside the bounds where it is unbiased.
    expected_loss : float
        The mean square error of an answer under the prior.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    The bin of a number, among k, is released by randomized response, and the answer is a function of the bin. With
    ``unbiased=True`` the number is first rounded at random to one of its two neighbours among k knots, so that its mean
    stays. Neither needs a proof of its own: what becomes of a number before the randomized response cannot make the
    ratio of two probabilities larger than the randomized response makes it, and that is known from its integers.

    References
    ----------
    Ghazi, Kamath, Kumar, Leeman, Manurangsi, Varadarajan and Zhang, "Regression with label differential privacy", ICLR
    2023, Theorem 1: no mechanism of this epsilon has a smaller expected square error. Badanidiyuru, Ghazi, Kamath,
    Kumar, Leeman, Manurangsi, Varadarajan and Zhang, "Optimal unbiased randomizers for regression with label
    differential privacy", NeurIPS 2023, for why a model that is trained on answers wants them unbiased.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms import ResponseOnBins, noise_from
    >>> ages = ResponseOnBins(1.0, 0.0, 100.0)
    >>> ages.answers.round(2).tolist()
    [38.45, 61.55]
    >>> ages.release(np.array([[20.0], [130.0]]), noise_from()).n_moved
    1
    >>> bool(abs(ResponseOnBins(1.0, 0.0, 100.0, unbiased=True).bias([0.0, 35.0, 100.0])).max() < 1e-9)
    True
    """

    epsilon: float
    low: float = field(repr=False)
    high: float = field(repr=False)
    prior: tuple[float, ...] | None = None
    unbiased: bool = False

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if self.prior is not None:
            mass = np.asarray(self.prior, dtype=np.float64)
            fits = mass.ndim == 1 and 1 <= mass.size <= _MOST_PARTS and (mass >= 0).all()
            if not fits or not abs(mass.sum() - 1) <= 1e-6:
                raise ValueError(
                    f"prior must be at most {_MOST_PARTS:,} probabilities that sum to 1. Got {self.prior!r} instead."
                )
            object.__setattr__(self, "prior", tuple(mass.tolist()))
        # Both refuse what they cannot be made of.
        _ = self.domain, self.inner

    @property
    def n_outputs(self) -> int:
        """One."""
        return 1

    @cached_property
    def domain(self) -> Box:
        """The declared bounds."""
        return Box((self.low,), (self.high,))

    @cached_property
    def inner(self) -> RandomizedResponse:
        """The randomized response over the answers."""
        return RandomizedResponse(float(self.epsilon), len(self.unit_bins.answers))

    @cached_property
    def answers(self) -> npt.NDArray[np.float64]:
        """What is released, ascending."""
        return self._of_unit(self.unit_bins.answers)

    @cached_property
    def places(self) -> npt.NDArray[np.float64]:
        """The inner edges of the bins; with ``unbiased=True`` the knots, of which the bounds are the outer ones."""
        return self._of_unit(self.unit_bins.places)

    @property
    def expected_loss(self) -> float:
        """The mean square error of an answer under the prior."""
        return float(self.domain.radius[0] ** 2 * self.unit_bins.expected_loss)

    @property
    def exact_epsilon(self) -> float:
        """The exact worst-case log-likelihood ratio of what is sampled, rounded up."""
        return self.inner.exact_epsilon

    def guarantee(self, unit: str = "label") -> PrivacyGuarantee:
        """The exact guarantee of one answer."""
        return PrivacyGuarantee(
            self.exact_epsilon,
            unit=unit,
            stated=float(self.epsilon),
            basis=f"exact, of randomized response over {self.answers.size} answers, from its 64-bit integers",
        )

    def output_law(self, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The probability of each answer for each of n values: shape (n, n_answers)."""
        inside = self.domain.clip(self.domain.as_rows(values)).rows.reshape(-1)
        place, share = self._place_and_share(inside)
        law: npt.NDArray[np.float64] = self.inner.flip_matrix[place]
        if self.unbiased:
            law = law * (1 - share[:, None]) + self.inner.flip_matrix[place + 1] * share[:, None]
        return law

    def bias(self, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Mean of the answers minus each of n values: shape (n,)."""
        inside = self.domain.clip(self.domain.as_rows(values)).rows.reshape(-1)
        return np.asarray(self.output_law(values) @ self.answers - inside)

    def variance(self, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Variance of the answers for each of n values: shape (n,)."""
        law = self.output_law(values)
        # About the middle, so that bounds far from 0 lose no digits.
        about = self.answers - self.domain.center[0]
        return np.asarray(law @ about**2 - (law @ about) ** 2)

    def estimate_prior(self, answers: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Probabilities of equal parts of the bounds, from the answers of some people, for questions to others.

        Parameters
        ----------
        answers : array-like
            Of this mechanism with ``unbiased=False``.

        Returns
        -------
        ndarray of shape (n_parts,)
            Those of the bins, without bias but for what it takes to have none below 0, spread evenly within each.

        Raises
        ------
        ValueError
            If the mechanism is unbiased, or something is no answer of it.
        """
        if self.unbiased:
            raise ValueError("A prior is estimated from answers of bins. Got unbiased=True instead.")
        given = self.domain.as_rows(answers).reshape(-1)
        codes = np.searchsorted(self.answers.astype(given.dtype), given).clip(0, self.answers.size - 1)
        if not given.size or not (self.answers.astype(given.dtype)[codes] == given).all():
            raise ValueError("answers must be what this mechanism releases, and at least one. Got something else.")
        shares = np.bincount(codes, minlength=self.answers.size)[None, :] / given.size
        of_bins = clean_probabilities(shares, self.inner.flip_matrix)[0]
        n_parts = refined_prior(self.prior).size
        middles = (np.arange(n_parts) + 0.5) * (2 / n_parts) - 1
        bins = np.searchsorted(np.asarray(self.unit_bins.places), middles)
        estimate: npt.NDArray[np.float64] = (of_bins / np.bincount(bins, minlength=of_bins.size))[bins]
        return estimate

    @cached_property
    def unit_bins(self) -> Bins:
        """Where the bins or knots lie within [-1, 1], and their answers."""
        return (best_knots if self.unbiased else best_bins)(float(self.epsilon), self.prior)

    def _of_unit(self, unit: tuple[float, ...]) -> npt.NDArray[np.float64]:
        return np.asarray(self.domain.center + self.domain.radius * np.asarray(unit, dtype=np.float64))

    def _place_and_share(self, values: np.ndarray) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """The bin of each value, or the knot below it and how far the value is on its way to the next one."""
        if not self.unbiased:
            return np.searchsorted(self.places, values, side="right"), np.empty(0)
        lower = np.searchsorted(self.places[1:-1], values, side="right")
        knots = self.places
        return lower, np.clip((values - knots[lower]) / (knots[lower + 1] - knots[lower]), 0.0, 1.0)

    def _encode(self, rows: np.ndarray, out: np.ndarray, workspace: Workspace) -> None:
        out[...] = rows

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        codes, share = self._place_and_share(rows)
        if self.unbiased:
            codes = codes + (noise.uniform(rows.shape) < share)
        drawn = workspace.take("drawn", rows.shape, np.int64)
        self.inner._draw(np.ascontiguousarray(codes, dtype=np.int64), noise, drawn, workspace)
        out[...] = self.answers[drawn]
