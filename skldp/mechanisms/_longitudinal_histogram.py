"""The histogram of the same people's numbers, asked again and again, by bits of a few buckets each."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from skldp._checks import check_whole
from skldp.mechanisms._categorical.frequency import FrequencyEstimate, estimate_frequencies
from skldp.mechanisms._domain import Box
from skldp.mechanisms._field_key import FieldKey
from skldp.mechanisms._longitudinal import FlippedBits, TwoSteps, check_wave, ends_text, second_response
from skldp.mechanisms._longitudinal_laws import LongitudinalHistogramLaw
from skldp.mechanisms._odds import least_count

__all__ = ["LongitudinalHistogram"]


@dataclass(frozen=True)
class LongitudinalHistogram(TwoSteps):
    r"""The histogram of a number of people who are asked in several waves, by a few bits each: dBitFlip.

    Parameters
    ----------
    lifetime_epsilon : float
        Natural log: of all reports of one value together.
    report_epsilon : float
        Of one report alone; smaller.
    low, high : float
        Declared bounds; what lies outside is clipped.
    n_buckets : int
        b, of one width, at least 2 and at most 4096.
    n_chosen : int
        d, of how many buckets each person tells, at most b. Few cost people less when values change; of many,
        estimates are nearer to the truth.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Every person chooses d buckets once, and tells which. To whether their number is in each there is a permanent bit,
    flipped anew in each report. A person has at most d + 1 permanent answers, since all other buckets look alike to
    them: a value that moves among those changes nothing.

    With d bits, two values differ in two of them at most, and each bit spends half of epsilon, as in the paper; with
    one bit alone it spends all of it, where the paper spends half.

    .. math:: \hat h_v = \frac{c_v / n_v - q}{p - q}

    for c_v ones among the n_v people who chose bucket v, where the paper divides by the number that is expected of
    them, which is noisier.

    References
    ----------
    Ding, Kulkarni and Yekhanin, "Collecting telemetry data privately", NeurIPS 2017: dBitFlip of Section 3.2, its
    memoization in Section 4, and output perturbation in Section 4.2.

    Examples
    --------
    >>> import os
    >>> from skldp.mechanisms import FieldKey, LongitudinalHistogram, ReleaseKey
    >>> law = LongitudinalHistogram(2.0, 1.0, low=0, high=24, n_buckets=8, n_chosen=2)
    >>> key = FieldKey(ReleaseKey(os.urandom(32)), "hours")
    >>> monday = law.release([[7.5], [3.25]], ids=["ann", "bob"], key=key, wave="monday")
    >>> monday.shape, [round(law.lifetime_guarantee(n).epsilon, 6) for n in (1, 2, 100)]
    ((2, 2), [2.0, 4.0, 6.0])
    """

    low: float
    high: float
    n_buckets: int
    n_chosen: int

    def __post_init__(self) -> None:
        # Refuses what are no bounds.
        _ = self._box
        check_whole("n_buckets", self.n_buckets, least=2, most=4096)
        check_whole("n_chosen", self.n_chosen, least=1, most=self.n_buckets)
        self._check()

    @cached_property
    def first(self) -> FlippedBits:
        """The law of the permanent bits, at most two of which differ between two values."""
        return FlippedBits(self.n_chosen, least_count(self.lifetime_epsilon / self._n_differing))

    @cached_property
    def second(self) -> FlippedBits:
        """The law of a report, of the permanent bits, all of which may differ."""
        flip = self.first.flip_count
        return FlippedBits(self.n_chosen, second_response(flip, 2, self._n_differing, self.report_epsilon).other_count)

    @cached_property
    def law(self) -> LongitudinalHistogramLaw:
        """The integers of both laws, for a person's own device."""
        return LongitudinalHistogramLaw(self.n_buckets, self.n_chosen, self.first.flip_count, self.second.flip_count)

    @property
    def exact_epsilon(self) -> float:
        """The exact epsilon of one report, rounded up."""
        return self.law.epsilon

    @property
    def exact_lifetime_epsilon(self) -> float:
        """The exact epsilon of the permanent bits of one value, rounded up."""
        return self.law.lifetime_epsilon

    def release(self, rows: npt.ArrayLike, ids: Sequence[int | str], key: FieldKey, wave: str) -> npt.NDArray[np.int64]:
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
        ndarray of int64, shape (n, n_chosen)
            Of each chosen bucket, in their order, twice its number plus its bit.

        Raises
        ------
        ValueError
            If a number is not finite, there are not as many ids, or the wave has no name.
        """
        check_wave(wave)
        given = self._shares(rows, ids, self._box)
        buckets = np.minimum((given * self.n_buckets).astype(np.int64), self.n_buckets - 1)
        choice = f"{self.n_chosen} of {self.n_buckets} buckets"
        noise = key.personal(choice, ids)
        chosen = np.sort(noise.subsets(len(buckets), self.n_buckets, self.n_chosen), axis=1)
        bits = (chosen == buckets).astype(np.int64)
        seen_by = f"{choice} of {ends_text(self._box)}"
        reports: npt.NDArray[np.int64] = 2 * chosen + self._reports(bits, ids, key, wave, seen_by)
        return reports

    def estimate_histogram(self, reports: npt.ArrayLike) -> FrequencyEstimate:
        """Estimate without bias the shares of the buckets in a wave.

        Parameters
        ----------
        reports : array-like of int, shape (n, n_chosen)
            What was released in one wave, one row a person.

        Returns
        -------
        FrequencyEstimate
            Of the population that these people were drawn from at random: not clipped, which would bias it.

        Raises
        ------
        ValueError
            If a report is none of this law's, or fewer than two people chose a bucket.
        """
        given = np.asarray(reports)
        if given.ndim != 2 or given.shape[1] != self.n_chosen or given.dtype.kind not in "iu":
            raise ValueError(f"reports must be whole numbers of the shape (n, {self.n_chosen}). Got others instead.")
        if not ((given >= 0) & (given < 2 * self.n_buckets)).all() or not (np.diff(given // 2, axis=1) > 0).all():
            raise ValueError("A report must be of different buckets in their order. Got another one instead.")
        told = np.bincount(given.reshape(-1), minlength=2 * self.n_buckets).reshape(-1, 2)
        if (told.sum(axis=1) < 2).any():
            raise ValueError("Each bucket must be chosen by at least 2 people. Got one of fewer instead.")
        own, other = self.law.support
        each = [estimate_frequencies(row[1:], int(row.sum()), own, other, of="population") for row in told]
        frequencies, errors = ([getattr(one, name)[0] for one in each] for name in ("frequencies", "standard_errors"))
        return FrequencyEstimate(np.array(frequencies), np.array(errors), len(given))

    @property
    def _n_differing(self) -> int:
        return min(int(self.n_chosen), 2)

    def _distinct(self, n_values: int) -> int:
        return min(n_values, self.n_chosen + (self.n_chosen < self.n_buckets))

    @cached_property
    def _box(self) -> Box:
        return Box((self.low,), (self.high,))
