r"""The same people asked again and again: a permanent answer to each value, and a second randomisation of it per wave.

One answer that is kept for ever protects a value however often it is asked for, but equal answers show that nothing
changed. A second law between the kept answer and what is sent blurs that, at a price in every report.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from skldp._checks import check_epsilon, check_whole
from skldp.mechanisms._categorical.frequency import FrequencyEstimate, estimate_frequencies
from skldp.mechanisms._categorical.local_hashing import LocalHashing, support_of_others
from skldp.mechanisms._categorical.randomized_response import RandomizedResponse
from skldp.mechanisms._categorical.unary import UnaryEncoding
from skldp.mechanisms._domain import Box, Codes
from skldp.mechanisms._field_key import FieldKey
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._longitudinal_laws import (
    LongitudinalBitsLaw,
    LongitudinalHashingLaw,
    LongitudinalResponseLaw,
    both_steps,
)
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._odds import TWO_64, bernoulli, log_ratio, round_up
from skldp.mechanisms._rows import RowMechanism, Workspace

__all__ = ["FlippedBits", "LongitudinalCategories", "TwoSteps", "check_wave", "ends_text", "second_response"]

# Of a second law that changes next to nothing.
_LARGEST_EPSILON = 44.0
_BASIS = "exact, from the 64-bit integer probabilities that are sampled"


@dataclass(frozen=True)
class FlippedBits(RowMechanism):
    """Flips each bit of a row on its own: the second step of RAPPOR.

    Parameters
    ----------
    n_bits : int
    flip_count : int
        How many of 2^64 draws flip a bit, from 1 to 2^63.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Examples
    --------
    >>> from skldp.mechanisms import noise_from
    >>> from skldp.mechanisms._longitudinal import FlippedBits
    >>> law = FlippedBits(4, flip_count=2**62)
    >>> law.release([[0, 1, 1, 0]], noise_from()).rows.shape, round(law.guarantee().epsilon, 4)
    ((1, 4), 4.3944)
    """

    n_bits: int
    flip_count: int

    def __post_init__(self) -> None:
        check_whole("n_bits", self.n_bits, least=1)
        check_whole("flip_count", self.flip_count, least=1, most=TWO_64 // 2)

    @cached_property
    def domain(self) -> Codes:
        """Rows of bits."""
        return Codes((2,) * self.n_bits)

    @property
    def n_outputs(self) -> int:
        """As many as there are bits."""
        return self.n_bits

    def output_dtype(self, dtype: np.dtype) -> np.dtype:
        """The type of a release: bool."""
        return np.dtype(bool)

    def guarantee(self) -> PrivacyGuarantee:
        """The exact guarantee of one row, all bits of which may differ from those of another."""
        each = (TWO_64 - self.flip_count) ** self.n_bits, self.flip_count**self.n_bits
        return PrivacyGuarantee(log_ratio(*each), basis=_BASIS)

    def _encode(self, rows: np.ndarray, out: np.ndarray, workspace: Workspace) -> None:
        out[...] = rows

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        bernoulli(noise, self.flip_count, out, workspace.take("words", out.shape, np.uint16))
        np.not_equal(out, rows, out=out)


@dataclass(frozen=True)
class TwoSteps:
    """Base: the figures of a permanent answer and of the report that is made of it.

    A subclass says by which laws, `first` and `second`, and how likely both together support the own category of a
    person and any other one, as whole numbers of 2^128.
    """

    lifetime_epsilon: float
    report_epsilon: float

    def _check(self) -> None:
        for name in ("lifetime_epsilon", "report_epsilon"):
            check_epsilon(getattr(self, name))
        if not self.report_epsilon < self.exact_lifetime_epsilon:
            raise ValueError(
                "report_epsilon must be smaller than lifetime_epsilon, or there is nothing to randomise a second "
                f"time. Got {self.report_epsilon!r} and {self.lifetime_epsilon!r} instead."
            )

    @property
    @abstractmethod
    def first(self) -> RowMechanism:
        """The law of the permanent answer."""

    @property
    @abstractmethod
    def second(self) -> RowMechanism:
        """The law of a report, of the permanent answer."""

    @property
    @abstractmethod
    def exact_epsilon(self) -> float:
        """The exact epsilon of one report, rounded up."""

    @property
    def exact_lifetime_epsilon(self) -> float:
        """The exact epsilon of the permanent answer to one value, rounded up."""
        return self.first.guarantee().epsilon

    def guarantee(self) -> PrivacyGuarantee:
        """The exact guarantee of one report alone, by both laws together."""
        return PrivacyGuarantee(self.exact_epsilon, stated=self.report_epsilon, basis=_BASIS)

    def lifetime_guarantee(self, n_values: int = 1) -> PrivacyGuarantee:
        """The guarantee of the reports of all distinct waves of a person who has so many different values.

        Parameters
        ----------
        n_values : int, default=1

        Returns
        -------
        PrivacyGuarantee
            For two people who repeat themselves alike: at any two waves both are seen with the same value as
            before, or both with another one. It is the exact sum of the epsilons of the permanent answers, which ever
            more reports come arbitrarily near to. What is seen is the category, or its bucket, the end that a number
            counts as, or which of the chosen buckets it is in, if any: where one person's new value is seen as the old
            one and another's is not, though both changed, they are told apart. Of such people only
            :meth:`change_guarantee` says something.
        """
        check_whole("n_values", n_values, least=1)
        each = Fraction(self.exact_lifetime_epsilon)
        return PrivacyGuarantee(
            round_up(each * self._distinct(n_values)),
            stated=round_up(Fraction(float(self.lifetime_epsilon)) * n_values),
            basis=f"permanent answers to {n_values} values, for people who are seen to repeat values at the same waves",
        )

    def change_guarantee(self, n_reports: int) -> PrivacyGuarantee:
        """The guarantee of the reports of so many distinct waves, whatever the values are and whenever they change.

        A wave has one report, which is kept and repeated: two different reports of one wave would reveal a change.

        Parameters
        ----------
        n_reports : int

        Returns
        -------
        PrivacyGuarantee
            By the second law alone, whose epsilon every report spends; an upper bound.
        """
        check_whole("n_reports", n_reports, least=1)
        return PrivacyGuarantee(
            round_up(Fraction(self.second.guarantee().epsilon) * n_reports),
            basis=f"the second randomisation of {n_reports} reports, whatever changed between them",
        )

    def _distinct(self, n_values: int) -> int:
        """How many permanent answers so many values have at most."""
        return n_values

    def _shares(self, rows: npt.ArrayLike, ids: Sequence[int | str], box: Box) -> npt.NDArray[np.float64]:
        """Where numbers are between the bounds of a box, from 0 to 1."""
        given = box.as_rows(rows)
        if given.shape != (len(ids), 1):
            raise ValueError(f"rows must have the shape ({len(ids)}, 1). Got another.")
        # Halves of bounds near the largest double do not overflow.
        return np.asarray((box.clip(given).rows / 2 - box.ends[0] / 2) / box.radius)

    def _reports(
        self, codes: npt.ArrayLike, ids: Sequence[int | str], key: FieldKey, wave: str, seen_by: str = ""
    ) -> np.ndarray:
        # Laws of other bounds or buckets have both steps in common, and must have no answer in common.
        kept = key.release(self.first, codes, ids, seen_by=seen_by).rows
        return key.release(self.second, kept.astype(np.int64), ids, wave=wave, seen_by=seen_by).rows


@dataclass(frozen=True)
class LongitudinalCategories(TwoSteps):
    r"""Categories of people who are asked in several waves: permanent answers, each wave randomised again.

    Parameters
    ----------
    lifetime_epsilon : float
        Natural log: of all reports of one value together.
    report_epsilon : float
        Of one report alone; smaller.
    n_classes : int
        k, at least 2 and at most 2^20.
    method : {"hashing", "sue", "krr"}, default="hashing"
        Randomized response over the categories (L-GRR), over the bits of a unary encoding (basic RAPPOR, L-SUE), or
        over the few buckets of a hash function that every person draws once (LOLOHA), of which a person has no more
        permanent answers than there are buckets, however often the value changes.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Of the first law with the probabilities :math:`p_1, q_1` and the second with :math:`p_2, q_2`, over g answers,

    .. math:: p = p_1 p_2 + (g - 1) q_1 q_2, \qquad q = p_1 q_2 + q_1 p_2 + (g - 2) q_1 q_2,

    and :math:`\varepsilon = \ln (p / q)` for one report, computed of the integers that are sampled. For bits,
    g is 2 and :math:`\varepsilon = 2 \ln (p / q)`. The second law is the one that spends `report_epsilon`, and not
    more. A wave that is asked for twice gives the same reports.

    Estimates are of one wave. Those of several waves have the permanent answers in common: their mean over waves is
    unbiased, but no mean over waves has a standard error below that of the permanent answers.

    References
    ----------
    Erlingsson, Pihur and Korolova, "RAPPOR", CCS 2014, Sections 2 and 3; Arcolezi, Pinzon, Palamidessi and Gambs,
    "Frequency estimation of evolving data under local differential privacy", EDBT 2023, Section 3.

    Examples
    --------
    >>> import os
    >>> from skldp.mechanisms import FieldKey, LongitudinalCategories, ReleaseKey
    >>> law = LongitudinalCategories(2.0, 1.0, n_classes=50)
    >>> key = FieldKey(ReleaseKey(os.urandom(32)), "home page")
    >>> monday = law.release([[3], [17]], ids=["ann", "bob"], key=key, wave="monday")
    >>> again = law.release([[3], [17]], ids=["ann", "bob"], key=key, wave="monday")
    >>> bool((monday == again).all()), law.estimate_frequencies(monday).frequencies.shape
    (True, (50,))
    >>> [round(law.lifetime_guarantee(n).epsilon, 6) for n in (1, 2, 3, 50)]
    [2.0, 4.0, 6.0, 6.0]
    """

    n_classes: int
    method: Literal["hashing", "sue", "krr"] = "hashing"

    def __post_init__(self) -> None:
        check_whole("n_classes", self.n_classes, least=2, most=2**20)
        if self.method not in ("hashing", "sue", "krr"):
            raise ValueError(f"method must be 'hashing', 'sue' or 'krr'. Got {self.method!r} instead.")
        self._check()

    @cached_property
    def n_answers(self) -> int:
        """g, among how many answers each step chooses; of bits, 2."""
        if self._hashes is not None:
            return self._hashes.n_buckets
        return 2 if self.method == "sue" else int(self.n_classes)

    @cached_property
    def first(self) -> RandomizedResponse | UnaryEncoding:
        """The law of the permanent answer."""
        if self.method == "sue":
            return UnaryEncoding(self.lifetime_epsilon, self.n_classes, "sue")
        return RandomizedResponse(self.lifetime_epsilon, self.n_answers)

    @cached_property
    def second(self) -> RandomizedResponse | FlippedBits:
        """The law of a report, of the permanent answer."""
        law = second_response(self.first.other_count, self.n_answers, self._factor, self.report_epsilon)
        return FlippedBits(int(self.n_classes), law.other_count) if self.method == "sue" else law

    @cached_property
    def exact_epsilon(self) -> float:
        """The exact epsilon of one report, rounded up."""
        return self.law.epsilon

    @cached_property
    def law(self) -> LongitudinalResponseLaw | LongitudinalBitsLaw | LongitudinalHashingLaw:
        """The integers of both laws, for a person's own device."""
        n, first = int(self.n_classes), self.first.other_count
        if isinstance(self.second, FlippedBits):
            return LongitudinalBitsLaw(n, first, self.second.flip_count)
        if self._hashes is None:
            return LongitudinalResponseLaw(n, first, self.second.other_count)
        return LongitudinalHashingLaw(n, self.n_answers, first, self.second.other_count)

    @property
    def p(self) -> float:
        """The probability that a report supports the person's own category."""
        return self.law.support[0]

    @cached_property
    def q(self) -> float:
        """The probability that a report supports any other category."""
        other = self.law.support[1]
        return other if self._hashes is None else support_of_others(self.p, other, self.n_answers, self.n_classes)

    def release(
        self, codes: npt.ArrayLike, ids: Sequence[int | str], key: FieldKey, wave: str
    ) -> npt.NDArray[np.int64] | npt.NDArray[np.bool_]:
        """Release one wave.

        Parameters
        ----------
        codes : array-like of int, shape (n, 1)
        ids : sequence of int or str, shape (n,)
            Whose value it is.
        key : FieldKey
            The same one in every wave.
        wave : str
            Its name; what is released again under the same name is the same.

        Returns
        -------
        ndarray of shape (n, 1), or (n, n_classes) for bits
            With ``"hashing"``, which hash function is the person's, and the bucket: a whole number.

        Raises
        ------
        ValueError
            If something is no code, there are not as many ids, or the wave has no name.
        """
        check_wave(wave)
        if self._hashes is None:
            return self._reports(codes, ids, key, wave)
        checked = self._hashes.domain.clip(self._hashes.domain.as_rows(codes)).rows
        if checked.shape != (len(ids), 1):
            raise ValueError(f"codes must have the shape ({len(ids)}, 1). Got another.")
        choice = f"one of {self._hashes.n_hashes} hashes"
        chosen = key.personal(choice, ids).integers(self._hashes.n_hashes, checked.shape)
        buckets = self._reports(self._hashes.hashed(chosen, checked), ids, key, wave, choice)
        reports: npt.NDArray[np.int64] = chosen * self.n_answers + buckets
        return reports

    def estimate_frequencies(
        self, reports: npt.ArrayLike, of: Literal["sample", "population"] = "sample"
    ) -> FrequencyEstimate:
        """Estimate without bias how often each category occurs in a wave.

        Parameters
        ----------
        reports : array-like
            What was released in one wave, one row a person.
        of : {"sample", "population"}, default="sample"
            Whose frequencies the standard errors are about; see `estimate_frequencies`.

        Returns
        -------
        FrequencyEstimate
            Not clipped: that would bias it.

        Raises
        ------
        ValueError
            If a report is none of this law's, or there are too few.
        """
        if self._hashes is not None:
            whole = np.asarray(reports).reshape(-1)
            counts, n = self._hashes.support_counts(whole), whole.size
        elif self.method == "sue":
            rows = np.asarray(reports).astype(np.int64, casting="safe")
            bits = self.second.domain.clip(rows).rows
            counts, n = bits.sum(axis=0), len(bits)
        else:
            given = self.first.domain.clip(np.asarray(reports)).rows.reshape(-1)
            counts, n = np.bincount(given, minlength=self.n_classes), given.size
        return estimate_frequencies(counts, n, self.p, self.q, of=of)

    # An answer over a list is one; two bits of a unary encoding differ.
    @property
    def _factor(self) -> int:
        return 2 if self.method == "sue" else 1

    @cached_property
    def _hashes(self) -> LocalHashing | None:
        """The hash functions, with as many buckets as are best for one report."""
        return LocalHashing(self.report_epsilon, self.n_classes) if self.method == "hashing" else None

    def _distinct(self, n_values: int) -> int:
        return n_values if self.method == "sue" else min(n_values, self.n_answers)


def check_wave(wave: str) -> None:
    """Refuse what names no wave."""
    if not isinstance(wave, str) or not wave:
        raise ValueError(f"wave must be a text that is not empty. Got {wave!r} instead.")


def ends_text(box: Box) -> str:
    """The bounds of one number as a text, the same for the same bounds.

    Examples
    --------
    >>> from skldp.mechanisms._domain import Box
    >>> from skldp.mechanisms._longitudinal import ends_text
    >>> ends_text(Box((-0.0,), (24,)))
    '0.0 to 24.0'
    """
    return " to ".join(repr(float(end[0]) + 0.0) for end in box.ends)


def second_response(first_count: int, n_answers: int, n_differing: int, report_epsilon: float) -> RandomizedResponse:
    """Randomized response to permanent answers, after which a report spends so much and not more.

    Examples
    --------
    >>> from skldp.mechanisms._longitudinal import second_response
    >>> round(second_response(2**62, 2, 1, 0.5).exact_epsilon, 6)
    1.071693
    """
    g, first = n_answers, (TWO_64 - (n_answers - 1) * first_count, first_count)
    p, q = first[0] / TWO_64, first[1] / TWO_64
    odds = math.exp(report_epsilon / n_differing)
    # Solved for the odds of the second law, which have no end where hardly anything is left to it.
    left = p - odds * q
    epsilon = math.log((odds * (p + (g - 2) * q) - (g - 1) * q) / left) if left > 2.0**-50 else _LARGEST_EPSILON
    lower = 2.0**-44
    while True:
        law = RandomizedResponse(epsilon, g)
        own, other = both_steps(first, (law.keep_count, law.other_count), g)
        if log_ratio(own**n_differing, other**n_differing) <= report_epsilon:
            return law
        # Rounding led beyond what was asked by a hair, or by more where it is near to that of a lifetime.
        epsilon *= 1 - lower
        lower = min(2 * lower, 0.5)
