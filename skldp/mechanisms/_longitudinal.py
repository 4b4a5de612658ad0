r"""Calibration of the laws of several waves: a permanent answer, randomized again in every report.

Equal permanent answers reveal that a value did not change. The second step hides this, at the cost of noisier reports.
"""

from bisect import bisect_left
from typing import Literal

from skldp._checks import check_choice, check_epsilon, check_integer
from skldp.laws._longitudinal_laws import (
    LongitudinalBitsLaw,
    LongitudinalHashingLaw,
    LongitudinalHistogramLaw,
    LongitudinalMeanLaw,
    LongitudinalResponseLaw,
    both_steps,
)
from skldp.laws._odds import TWO_64, least_count, log_ratio
from skldp.mechanisms.categorical._local_hashing import LocalHashing
from skldp.mechanisms.categorical._randomized_response import RandomizedResponse
from skldp.mechanisms.categorical._unary import UnaryEncoding


def longitudinal_categories(
    lifetime_epsilon: float,
    report_epsilon: float,
    n_classes: int,
    method: Literal["hashing", "sue", "krr"] = "hashing",
) -> LongitudinalResponseLaw | LongitudinalBitsLaw | LongitudinalHashingLaw:
    r"""Return the law of a category that is reported in several waves.

    Parameters
    ----------
    lifetime_epsilon : float
        Natural log, of all reports of one value together.
    report_epsilon : float
        Natural log, of one report; below `lifetime_epsilon`.
    n_classes : int
        Number of categories k, from 2 to 2^20.
    method : {"hashing", "sue", "krr"}, default="hashing"
        Randomized response over the categories (L-GRR), over the bits of a unary encoding (basic RAPPOR, L-SUE), or
        over the buckets of a hash function that every person draws once (LOLOHA). With hashing, a person has no more
        permanent answers than there are buckets.

    Returns
    -------
    IntegerLaw
        For a field of a policy. ``epsilon`` is that of one report, ``epsilon_of_values(n)`` that of all reports of n
        different values, and ``epsilon_of_reports(n)`` that of n reports, whatever changes between them.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    With the probabilities :math:`p_1, q_1` of the first step and :math:`p_2, q_2` of the second, over g answers,

    .. math:: p = p_1 p_2 + (g - 1) q_1 q_2, \qquad q = p_1 q_2 + q_1 p_2 + (g - 2) q_1 q_2,

    and :math:`\varepsilon = \ln (p / q)` for one report, computed from the sampled integers. For bits, g is 2 and
    :math:`\varepsilon = 2 \ln (p / q)`. The second step spends at most `report_epsilon`.

    Estimates of several waves share the permanent answers: their mean has no standard error below that of the permanent
    answers.

    References
    ----------
    Erlingsson, Pihur and Korolova, "RAPPOR", CCS 2014, Sections 2 and 3; Arcolezi, Pinzon, Palamidessi and Gambs,
    "Frequency estimation of evolving data under local differential privacy", EDBT 2023, Section 3.

    Examples
    --------
    >>> from skldp.mechanisms import longitudinal_categories
    >>> law = longitudinal_categories(2.0, 1.0, n_classes=50)
    >>> round(law.epsilon, 6), [round(law.epsilon_of_values(n), 6) for n in (1, 2, 3, 50)]
    (1.0, [2.0, 4.0, 6.0, 6.0])
    """
    check_integer("n_classes", n_classes, least=2, most=2**20)
    check_choice("method", method, ("hashing", "sue", "krr"))
    check_epsilon(lifetime_epsilon)
    check_epsilon(report_epsilon)
    n = int(n_classes)
    if method == "sue":
        first = UnaryEncoding(lifetime_epsilon, n, "sue").other_count
        return LongitudinalBitsLaw(n, first, _second_count(first, 2, 2, lifetime_epsilon, report_epsilon))
    n_answers = LocalHashing(report_epsilon, n).n_buckets if method == "hashing" else n
    first = RandomizedResponse(lifetime_epsilon, n_answers).other_count
    second = _second_count(first, n_answers, 1, lifetime_epsilon, report_epsilon)
    if method == "hashing":
        return LongitudinalHashingLaw(n, n_answers, first, second)
    return LongitudinalResponseLaw(n, first, second)


def longitudinal_mean(lifetime_epsilon: float, report_epsilon: float) -> LongitudinalMeanLaw:
    """Return the law of a number that is reported by one bit in several waves: dBitFlip's one-bit mean.

    Every person draws a threshold once, and reports whether the number is above it. Values on one side of the threshold
    have the same permanent answer, so that a person has two at most.

    Parameters
    ----------
    lifetime_epsilon, report_epsilon : float
        As of :func:`longitudinal_categories`.

    Returns
    -------
    IntegerLaw

    Raises
    ------
    ValueError
        If a parameter is out of range.

    References
    ----------
    Ding, Kulkarni and Yekhanin, "Collecting telemetry data privately", NeurIPS 2017: 1BitMean of Section 3.1, its
    memoization by rounding at a point of one's own in Section 4.1, and output perturbation in Section 4.2.

    Examples
    --------
    >>> from skldp.mechanisms import longitudinal_mean
    >>> round(longitudinal_mean(2.0, 1.0).epsilon_of_values(100), 6)
    4.0
    """
    check_epsilon(lifetime_epsilon)
    check_epsilon(report_epsilon)
    first = RandomizedResponse(lifetime_epsilon, 2).other_count
    return LongitudinalMeanLaw(first, _second_count(first, 2, 1, lifetime_epsilon, report_epsilon))


def longitudinal_histogram(
    lifetime_epsilon: float, report_epsilon: float, n_buckets: int, n_chosen: int
) -> LongitudinalHistogramLaw:
    """Return the law of a number that is reported by the bits of a few buckets in several waves: dBitFlip.

    Every person draws `n_chosen` buckets once, and reports for each whether the number is in it. All other buckets look
    alike, so that a person has at most ``n_chosen + 1`` permanent answers.

    Parameters
    ----------
    lifetime_epsilon, report_epsilon : float
        As of :func:`longitudinal_categories`.
    n_buckets : int
        Number of equal parts of the bounds, from 2 to 4096.
    n_chosen : int
        Number of buckets that a person reports, at most `n_buckets`. Few cost less when values change; many estimate
        better.

    Returns
    -------
    IntegerLaw

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Two values differ in two bits at most, each of which spends half of epsilon. A single bit spends all of it, where
    the paper spends half.

    References
    ----------
    Ding, Kulkarni and Yekhanin, "Collecting telemetry data privately", NeurIPS 2017: dBitFlip of Section 3.2, its
    memoization in Section 4, and output perturbation in Section 4.2.

    Examples
    --------
    >>> from skldp.mechanisms import longitudinal_histogram
    >>> law = longitudinal_histogram(2.0, 1.0, n_buckets=8, n_chosen=2)
    >>> [round(law.epsilon_of_values(n), 6) for n in (1, 2, 100)]
    [2.0, 4.0, 6.0]
    """
    check_integer("n_buckets", n_buckets, least=2, most=4096)
    check_integer("n_chosen", n_chosen, least=1, most=n_buckets)
    counts = counts_of_bits(lifetime_epsilon, report_epsilon, min(int(n_chosen), 2))
    return LongitudinalHistogramLaw(int(n_buckets), int(n_chosen), *counts)


def counts_of_bits(lifetime_epsilon: float, report_epsilon: float, n_differing: int) -> tuple[int, int]:
    """Return the integers of both steps for bits, of which up to `n_differing` differ between two values."""
    check_epsilon(lifetime_epsilon)
    check_epsilon(report_epsilon)
    first = least_count(lifetime_epsilon / n_differing)
    return first, _second_count(first, 2, n_differing, lifetime_epsilon, report_epsilon)


def _second_count(
    first_count: int, n_answers: int, n_differing: int, lifetime_epsilon: float, report_epsilon: float
) -> int:
    """Return the smallest integer of the second step for which a report spends at most `report_epsilon`."""
    g, first = n_answers, (TWO_64 - (n_answers - 1) * first_count, first_count)
    if not report_epsilon < log_ratio(first[0] ** n_differing, first[1] ** n_differing):
        both = f"{report_epsilon!r} and {lifetime_epsilon!r}"
        raise ValueError(f"`report_epsilon` must be smaller than `lifetime_epsilon`; got {both}.")

    def is_enough(other: int) -> bool:
        own, another = both_steps(first, (TWO_64 - (g - 1) * other, other), g)
        return log_ratio(own**n_differing, another**n_differing) <= report_epsilon

    counts = range(1, (TWO_64 - 1) // g + 1)
    return counts[bisect_left(counts, True, key=is_enough)]
