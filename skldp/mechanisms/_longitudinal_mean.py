"""The mean of the same people's numbers, asked again and again, by one bit each."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from skldp.mechanisms._categorical.randomized_response import RandomizedResponse
from skldp.mechanisms._categorical.unary import UnaryEncoding
from skldp.mechanisms._domain import Box
from skldp.mechanisms._field_key import FieldKey
from skldp.mechanisms._longitudinal import FlippedBits, LongitudinalCategories, TwoSteps, check_wave, ends_text
from skldp.mechanisms._longitudinal_laws import LongitudinalMeanLaw

__all__ = ["LongitudinalMean"]


@dataclass(frozen=True)
class LongitudinalMean(TwoSteps):
    r"""The mean of a number of people who are asked in several waves, by one bit each: dBitFlip's one-bit mean.

    Parameters
    ----------
    lifetime_epsilon : float
        Natural log: of all reports of one value together; twice as much, at most, of all reports ever.
    report_epsilon : float
        Of one report alone; smaller.
    low, high : float
        Declared bounds; what lies outside is clipped.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Every person draws a threshold u once, uniform between the bounds; a value counts as `high` where it is above, and
    as `low` else, which is right in the mean over people. Of both there is a permanent answer, and a report is that
    answer, flipped anew in each wave. A value that changes without crossing its person's threshold changes nothing.

    .. math:: \hat\mu = l + (h - l) \frac{c / n - q}{p - q}

    for c of n reports of the high end, with p and q as for :class:`LongitudinalCategories` over two answers.

    References
    ----------
    Ding, Kulkarni and Yekhanin, "Collecting telemetry data privately", NeurIPS 2017: 1BitMean of Section 3.1, its
    memoization by rounding at a point of one's own in Section 4.1, and output perturbation in Section 4.2.

    Examples
    --------
    >>> import os
    >>> from skldp.mechanisms import FieldKey, LongitudinalMean, ReleaseKey
    >>> law = LongitudinalMean(2.0, 1.0, low=0, high=24)
    >>> key = FieldKey(ReleaseKey(os.urandom(32)), "hours")
    >>> monday = law.release([[7.5], [3.25]], ids=["ann", "bob"], key=key, wave="monday")
    >>> monday.shape, round(law.lifetime_guarantee(100).epsilon, 6)
    ((2, 1), 4.0)
    """

    low: float
    high: float

    _N_ENDS: ClassVar[int] = 2

    def __post_init__(self) -> None:
        # Refuses what are no bounds.
        _ = self._box
        self._check()

    @property
    def first(self) -> RandomizedResponse | UnaryEncoding:
        """The law of the permanent answer to either end."""
        return self._ends.first

    @property
    def second(self) -> RandomizedResponse | FlippedBits:
        """The law of a report, of the permanent answer."""
        return self._ends.second

    @cached_property
    def law(self) -> LongitudinalMeanLaw:
        """The integers of both laws, for a person's own device."""
        return LongitudinalMeanLaw(self._ends.law.first_count, self._ends.law.second_count)

    @property
    def exact_epsilon(self) -> float:
        """The exact epsilon of one report, rounded up."""
        return self._ends.exact_epsilon

    def release(
        self, rows: npt.ArrayLike, ids: Sequence[int | str], key: FieldKey, wave: str
    ) -> npt.NDArray[np.int64] | npt.NDArray[np.bool_]:
        """Release one wave.

        Parameters
        ----------
        rows : array-like of shape (n, 1)
        ids : sequence of int or str, shape (n,)
        key : FieldKey
            The same one in every wave. Its `steps` do not matter.
        wave : str
            Its name.

        Returns
        -------
        ndarray of int64, shape (n, 1)
            1 for the high end.

        Raises
        ------
        ValueError
            If a number is not finite, there are not as many ids, or the wave has no name.
        """
        check_wave(wave)
        share = self._shares(rows, ids, self._box)
        codes = share > key.personal("threshold", ids).uniform(share.shape)
        return self._ends._reports(codes.astype(np.int64), ids, key, wave, f"the ends of {ends_text(self._box)}")

    def estimate_mean(self, reports: npt.ArrayLike) -> tuple[float, float]:
        """Estimate the mean of a wave.

        Parameters
        ----------
        reports : array-like of int, shape (n, 1)
            At least two.

        Returns
        -------
        mean : float
            Without bias; may lie outside the bounds.
        standard_error : float
            Of the mean in the population that these people were drawn from at random, whose square is unbiased; that
            of the mean among these people is smaller.

        Raises
        ------
        ValueError
            If a report is none of this law's, or there are too few.
        """
        ends = self._ends.estimate_frequencies(reports, of="population")
        width = float(self.high) - float(self.low)
        return float(self.low) + width * float(ends.frequencies[1]), width * float(ends.standard_errors[1])

    def _distinct(self, n_values: int) -> int:
        return min(n_values, self._N_ENDS)

    @cached_property
    def _box(self) -> Box:
        return Box((self.low,), (self.high,))

    @cached_property
    def _ends(self) -> LongitudinalCategories:
        return LongitudinalCategories(self.lifetime_epsilon, self.report_epsilon, self._N_ENDS, "krr")
