"""Optimized local hashing with linear hash functions, whose support counts are one fast transform."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import fft

from skldp._arrays import Bools, Floats, Ints
from skldp.laws._categories import HashingLaw
from skldp.laws._integers import IntegerLaw, is_prime, number_of_digits
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._rows import Workspace
from skldp.mechanisms.categorical._frequency import (
    FrequencyEstimate,
    ReportMechanism,
    estimate_frequencies,
    mean_variance,
)
from skldp.mechanisms.categorical._randomized_response import RandomizedResponse
from skldp.mechanisms.categorical._unary import OneHotOfLaw

# The largest prime whose square is below 2^24.
_MOST_BUCKETS = 4093
# Beyond this the best number of buckets is above the largest one.
_LARGEST_EPSILON = 40.0


@dataclass(frozen=True)
class LocalHashing(ReportMechanism):
    r"""Optimized local hashing: a hash function, and randomized response to the hash of the category.

    Parameters
    ----------
    epsilon : float
        Natural-log budget of one category.
    n_classes : int
        Number k of categories, at most 2^20. A single category is released unchanged, at epsilon 0.

    Raises
    ------
    ValueError
        If a parameter is out of range, or epsilon too small for 64-bit probabilities.

    Notes
    -----
    The number g of buckets is prime, and a category x has m digits :math:`x_i` to base g. A hash function is a uniform
    number a from 1 to :math:`g^m - 1`, with digits :math:`a_i`. The answer y is randomized response over g buckets:

    .. math:: h_a(x) = \sum_i a_i x_i \bmod g, \quad P(y = h_a(x)) = p = \frac{e^\varepsilon}{e^\varepsilon + g - 1},
              \quad P(h_a(x) = h_a(x')) = c = \frac{g^{m - 1} - 1}{g^m - 1} \text{ for all } x \ne x'

    Neither the guarantee nor the estimates assume anything of a hash function: epsilon is that of randomized response
    over the buckets, from its integers, and c follows from linearity, so that any other category is supported with
    probability :math:`q = c p + (1 - c) (1 - p) / (g - 1)` exactly. The report is :math:`(a - 1) g + y`. Its support is
    linear as well: one transform of the table of reports gives the support of all k categories.

    g is the prime next to :math:`e^\varepsilon + 1` with the smaller variance, at most 4093.

    References
    ----------
    Wang, Blocki, Li and Jha, "Locally differentially private protocols for frequency estimation", USENIX Security
    2017, Section 4.4; Carter and Wegman, "Universal classes of hash functions", Journal of Computer and System
    Sciences, 1979; Feldman, Nelson, Nguyen and Talwar, "Private frequency estimation via projective geometry", ICML
    2022, on linear structure and fast transforms.

    Examples
    --------
    >>> from skldp.mechanisms import noise_from
    >>> from skldp.mechanisms.categorical._local_hashing import LocalHashing
    >>> law = LocalHashing(1.0, 1024)
    >>> law.n_buckets, law.n_digits, law.report_bits, law.exact_epsilon <= 1.0
    (3, 7, 13, True)
    >>> law.estimate_frequencies(law.release([[5]] * 100, noise_from()).rows).frequencies.shape
    (1024,)
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        # Raises if epsilon is too small.
        _ = self.answers

    @cached_property
    def n_buckets(self) -> int:
        """Number g of buckets: a prime, or 1 for a single category."""
        if self.n_classes == 1:
            return 1
        odds = math.exp(min(self.epsilon, _LARGEST_EPSILON))
        aim = math.floor(min(odds + 1, self.n_classes, _MOST_BUCKETS))
        below, above = aim, aim + 1
        while not is_prime(below):
            below -= 1
        while not is_prime(above):
            above += 1

        def variance(g: int) -> float:
            p, other = odds / (odds + g - 1), 1 / (odds + g - 1)
            return mean_variance(p, support_of_others(p, other, g, self.n_classes), self.n_classes)

        return above if above <= _MOST_BUCKETS and variance(above) < variance(below) else below

    @cached_property
    def n_digits(self) -> int:
        """Number m of digits of a category to base g."""
        return number_of_digits(self.n_classes, self.n_buckets)

    @property
    def n_hashes(self) -> int:
        """The number of hash functions."""
        return max(1, int(self.n_buckets**self.n_digits) - 1)

    @property
    def n_reports(self) -> int:
        """The number of different reports: a bucket for each hash function."""
        return self.n_hashes * self.n_buckets

    @cached_property
    def answers(self) -> RandomizedResponse:
        """The randomized response over buckets."""
        return RandomizedResponse(self.epsilon, self.n_buckets)

    def _integer_law(self) -> IntegerLaw:
        return HashingLaw(self.n_classes, self.n_buckets, self.answers.other_count)

    @property
    def exact_epsilon(self) -> float:
        """The exact worst-case log-likelihood ratio of what is sampled, rounded up."""
        return self.answers.exact_epsilon

    @property
    def p(self) -> float:
        """The probability that a report supports the true category."""
        return self.answers.keep_probability

    @property
    def q(self) -> float:
        """The probability that a report supports any single other category."""
        law = self.answers
        return support_of_others(law.keep_probability, law.other_probability, self.n_buckets, self.n_classes)

    @property
    def worst_case_variance(self) -> float:
        """The mean over the categories of the variance that one report gives to an unbiased frequency."""
        return mean_variance(self.p, self.q, self.n_classes)

    def _frequencies(self, checked: Ints, of: Literal["sample", "population"]) -> FrequencyEstimate:
        return estimate_frequencies(self.support_counts(checked), checked.size, self.p, self.q, of=of)

    def support_probabilities(self) -> tuple[float, float]:
        """Return the probabilities that a report supports the true category, and any single other one."""
        return self.p, self.q

    def support_counts(self, reports: npt.ArrayLike) -> Ints:
        """Count the reports that support each category, shape (n_classes,)."""
        checked = self._reports(reports).reshape(-1)
        if self.n_classes == 1:
            return np.array([checked.size])
        counts: Ints = support_sums(checked, self.n_classes, self.n_buckets)
        return counts

    def supported(self, reports: npt.ArrayLike) -> Bools:
        """Return the categories that each report supports, shape (n, n_classes)."""
        hashes, buckets = (part.reshape(-1, 1) for part in self._parts(reports))
        g = self.n_buckets
        dtype = np.min_scalar_type(2 * g)
        # Highest digit first: each category so far becomes g of them.
        hashed = np.zeros(hashes.shape, dtype=dtype)
        for place in range(self.n_digits - 1, -1, -1):
            summands = (hashes // g**place % g * np.arange(g) % g).astype(dtype)
            hashed = (hashed[:, :, None] + summands[:, None, :]).reshape(len(hashes), hashed.shape[1] * g)
            hashed = hashed[:, : -(-self.n_classes // g**place)]
            # Below 0, an unsigned integer wraps to a large one.
            hashed = np.minimum(hashed, hashed - dtype.type(g))
        return np.asarray(hashed == buckets.astype(dtype))

    def hashed(self, chosen: Ints, codes: Ints) -> Ints:
        """Return the bucket of each code by the hash functions numbered from 0 to ``n_hashes - 1``."""
        return linear_hash(chosen + 1, codes, self.n_buckets, self.n_digits)

    def log_likelihood(self, released: npt.ArrayLike, codes: npt.ArrayLike) -> Floats:
        """Return the natural log of the probability of each report given each true code (broadcast)."""
        hashes, buckets = self._parts(released)
        chosen, categories = np.broadcast_arrays(hashes, self._inside(codes))
        own = linear_hash(chosen, categories, self.n_buckets, self.n_digits)
        return self.answers.log_likelihood(buckets, own) - math.log(self.n_hashes)

    def _parts(self, reports: npt.ArrayLike) -> tuple[Ints, Ints]:
        """Return the hash function and the bucket of each report."""
        hashes, buckets = np.divmod(self._reports(reports), self.n_buckets)
        return hashes + 1, buckets

    def _encode(self, rows: np.ndarray, out: np.ndarray, workspace: Workspace) -> None:
        # The first hash function, which is the lowest digit.
        out[...] = rows % self.n_buckets

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        chosen = noise.integers(self.n_hashes, rows.shape)
        self.answers._draw(self.hashed(chosen, rows), noise, out, workspace)
        out += chosen * self.n_buckets


@dataclass(frozen=True)
class OneHotLocalHashing(OneHotOfLaw):
    """Local hashing whose report is released as the bits of all categories that it supports."""

    @cached_property
    def law(self) -> LocalHashing:
        """The local hashing whose reports these are."""
        return LocalHashing(self.epsilon, self.n_classes)

    def _write_bits(self, answers: Ints, out: np.ndarray, workspace: Workspace) -> None:
        out[...] = self.law.supported(answers)


def support_sums(reports: Ints, n_classes: int, g: int, weights: Floats | None = None) -> Any:
    """Count the reports that support each category, or add up their weights, shape (n_classes,)."""
    hashes = linear_hashes(n_classes, g)
    sums = hashes.supporting(hashes.keys(reports), np.ones(len(reports)) if weights is None else weights)
    # Transforms of whole numbers below 2^40 are off by less than 1e-3.
    return np.rint(sums).astype(np.int64) if weights is None else sums


@lru_cache(maxsize=4)
def linear_hashes(n_classes: int, g: int) -> "LinearHashes":
    """Return the tables of the hash functions of some categories and buckets."""
    return LinearHashes(n_classes, g)


class LinearHashes:
    r"""Sums over what reports of linear hash functions support, by Fourier transforms.

    With :math:`\hat f` the transform of the shares over the digits of the categories, the sums of each bucket by a hash
    function a are the transform over :math:`\omega` of :math:`\hat f(\omega a)`. A multiple c a with the bucket c y
    supports the same categories, so one function of each line is enough.
    """

    def __init__(self, n_classes: int, g: int) -> None:
        m = number_of_digits(n_classes, g)
        n_low = m if m == 1 or g**m <= 4 * n_classes else m - 1
        self._n_classes, self._g, self._size, self._shape = n_classes, g, g**n_low, (g,) * n_low
        self._n_tables = -(-n_classes // self._size)
        points, places = np.arange(self._size), g ** np.arange(n_low)
        digits = points[:, None] // places % g
        self._inverse = np.array([0, *(pow(one, -1, g) for one in range(1, g))])
        # The lowest digit that is not 0 makes a function the first of its line; 0 is a line of its own.
        self._factor = self._inverse[digits[points, (digits != 0).argmax(axis=1)]]
        lines, line_of = np.unique((digits * self._factor[:, None] % g) @ places, return_inverse=True)
        self._n_lines, self._line_of = len(lines), line_of.reshape(-1)
        half = np.arange(g // 2 + 1)
        self._frequencies, self._opposite = (np.zeros((len(lines), len(half)), dtype=np.int64) for _ in range(2))
        for i, place in enumerate(places.tolist()):
            self._frequencies += digits[lines, i, None] * half % g * place
            self._opposite += digits[lines, i, None] * (g - half) % g * place

    def keys(self, reports: Ints) -> Ints:
        """Return the same number for reports that support the same categories."""
        g = self._g
        hashes, buckets = np.divmod(reports, g)
        high, low = np.divmod(hashes + 1, self._size)
        scale = np.where(low > 0, self._factor[low], self._inverse[high])
        return np.asarray((self._line_of[low] * g + high * scale % g) * g + buckets * scale % g)

    def supported(self, keys: Ints, shares: Floats) -> Floats:
        """Return the sum of the shares of the categories that each key supports."""
        padded = np.zeros(self._n_tables * self._size)
        padded[: self._n_classes] = shares
        total = np.zeros(len(keys))
        for table, cells in zip(padded.reshape(self._n_tables, *self._shape), self._cells(keys), strict=True):
            transformed = fft.fftn(table).reshape(-1)[self._frequencies]
            total += fft.irfft(transformed, n=self._g, axis=1).reshape(-1)[cells]
        return total

    def supporting(self, keys: Ints, weights: Floats) -> Floats:
        """Return the sum of the weights of the keys that support each category."""
        found, g = np.empty((self._n_tables, self._size)), self._g
        for table, cells in enumerate(self._cells(keys)):
            sums = np.bincount(cells, weights, self._n_lines * g).reshape(-1, g)
            transformed = fft.rfft(sums, axis=1)
            spectrum = np.empty(self._size, dtype=complex)
            spectrum[self._opposite[:, 1:]] = transformed[:, 1:].conj()
            spectrum[self._frequencies[:, 1:]] = transformed[:, 1:]
            # All functions hold the frequency 0; the function 0 holds it g times.
            spectrum[0] = sums.sum() - sums[0].sum() + g * sums[0, 0]
            found[table] = fft.ifftn(spectrum.reshape(self._shape)).real.reshape(-1) * (self._size / g)
        return found.reshape(-1)[: self._n_classes]

    def _cells(self, keys: Ints) -> Iterator[Ints]:
        """Return the line and bucket of each key among the categories of each highest digit."""
        functions, buckets = np.divmod(keys, self._g)
        lines, high = np.divmod(functions, self._g)
        for table in range(self._n_tables):
            yield lines * self._g + (buckets - high * table) % self._g


def support_of_others(p: float, other: float, g: int, n_classes: int) -> float:
    """Return the probability that a report supports a category other than the true one."""
    if n_classes == 1:
        return 0.0
    m = number_of_digits(n_classes, g)
    alike = float(Fraction(g ** (m - 1) - 1, g**m - 1))
    return alike * p + (1 - alike) * other


def linear_hash(left: Ints, right: Ints, base: int, n_digits: int) -> Ints:
    """Return the sum of products of digits, modulo the base, of integers of one shape."""
    total = np.zeros(left.shape, dtype=np.int64)
    for place in range(n_digits):
        total += (left // base**place % base) * (right // base**place % base)
    return total % base
