"""Exact p-values for tests of laws over fixed seeds, and streams of chosen words that read a law out of the code."""

import decimal
import math
from fractions import Fraction

import numpy as np
from scipy import stats

from skldp.laws._categories import SubsetLaw, UnaryLaw
from skldp.laws._hashing import HashingLaw
from skldp.laws._numbers import n_agreeing
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._rows import Release, Workspace
from skldp.mechanisms.categorical._one_hot import OneHotHadamard, OneHotLocalHashing

# For fixed seeds: what passes once passes always.
THRESHOLD = 1e-6
# For noise that is new in every run, where workers cannot be given keys. The chi-square law is an approximation, but
# not by so much: with five expected in the rarest cell a p-value is below this with a chance of less than 1e-10.
UNSEEDED_THRESHOLD = 1e-13


def binomial_pvalue(successes, trials, probability):
    """Two-sided exact p-value of a count."""
    return stats.binomtest(int(successes), int(trials), float(probability)).pvalue


def chi_square_pvalue(counts, probabilities):
    """P-value of observed counts against a finite law; outcomes expected less than 5 times are pooled."""
    counts = np.asarray(counts, dtype=float).ravel()
    expected = np.asarray(probabilities, dtype=float).ravel() * counts.sum()
    assert counts[expected == 0].sum() == 0, "an impossible outcome was drawn"
    order = np.argsort(expected)
    counts, expected = counts[order], expected[order]
    rare = np.searchsorted(np.cumsum(expected), 5.0) + 1 if expected[0] < 5 else 0
    if rare:
        counts = np.append(counts[rare:], counts[:rare].sum())
        expected = np.append(expected[rare:], expected[:rare].sum())
    return stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), len(counts) - 1)


def ks_pvalue(sample, cdf):
    """P-value of a sample against a continuous distribution function."""
    return stats.kstest(np.asarray(sample).ravel(), cdf).pvalue


def released(mechanism, values, noise):
    """What a mechanism releases for numbers of any shape, each run of as many as it takes being a row."""
    values = np.asarray(values)
    rows = values.reshape(-1, mechanism.domain.n_features)
    return mechanism.release(rows, noise).rows.reshape(values.shape)


def duchi_vector_law(mechanism, x):
    """All 2^d answers of a DuchiVector to x of shape (d,), and their exact probabilities."""
    d = mechanism.n_outputs
    signs = 1 - 2 * ((np.arange(2**d)[:, None] >> np.arange(d)) & 1)
    n_agree, p = n_agreeing(d), Fraction(mechanism.integer_law.agreeing_count, 2**64)
    means = [Fraction(round(value * 2.0**62), 2**62) for value in np.asarray(x, dtype=np.float64).tolist()]
    chances = [math.prod((1 + v * mean) / 2 for v, mean in zip(row, means, strict=True)) for row in signs.tolist()]
    law = []
    for s in signs:
        agreeing = sum(chance for chance, agrees in zip(chances, signs @ s > 0, strict=True) if agrees)
        law.append(p * agreeing / n_agree + (1 - p) * (1 - agreeing) / (2**d - n_agree))
    return signs.astype(np.float64) * mechanism.integer_law.largest, law


def seeded(number=0):
    key = bytes([number]) * 32 if number < 256 else number.to_bytes(32, "big")
    return Noise(key, secure=False)


class Coin(Noise):
    """The first word is given; all others are zero."""

    def __init__(self, word):
        super().__init__(bytes(32), secure=False)
        self.word = word

    def fill(self, buffer):
        buffer[...] = self.word
        self.word = 0
        return buffer


class ScriptedNoise(Noise):
    """A stream that hands out chosen words, one after the other, to the real sampling code.

    Everything that a `Noise` draws comes from `fill`, so that nothing but the words themselves is replaced.

    Parameters
    ----------
    words : iterable of int
        One for each element of whatever array is filled, of its type.
    """

    def __init__(self, words):
        super().__init__(bytes(32), secure=False)
        self.script = list(words)

    def fill(self, buffer):
        flat = buffer.reshape(-1)
        taken, self.script = self.script[: flat.size], self.script[flat.size :]
        if len(taken) < flat.size:
            raise EOFError("the script has no more words")
        flat[:] = np.array(taken, dtype=object).astype(buffer.dtype)
        assert flat.tolist() == taken, "a word of the script does not fit"
        return buffer


class OneDraw(Noise):
    """A stream in which every draw is one and the same number, in whatever pieces the sampling code asks for it.

    Parameters
    ----------
    draw : int
        Of `n_bits` bits.
    pieces : tuple of int
        How many bits of a draw the code takes at a time; each stands in the highest bits of its word. Words of another
        length than the first piece's begin no draw.
    n_bits : int, default=64
    """

    def __init__(self, draw, pieces=(64,), n_bits=64):
        super().__init__(bytes(32), secure=False)
        self.pieces, self.place = [], 0
        for size in pieces:
            n_bits -= size
            self.pieces.append(draw >> n_bits & (1 << size) - 1)
        self.sizes = pieces

    def fill(self, buffer):
        if not buffer.size:
            return buffer
        length = 8 * buffer.itemsize
        # Words of 16 bits begin draws; longer ones go on with them.
        first = length == 16 or len(self.sizes) == 1
        self.place = 0 if first else self.place + 1
        buffer[...] = self.pieces[self.place] << (length - self.sizes[self.place])
        return buffer


class PicksThenDraw(ScriptedNoise):
    """Chosen words of 64 bits, and then one number for the draw that decides, in runs of 16 and 48 bits."""

    def __init__(self, picks, draw):
        super().__init__(picks)
        self.last = OneDraw(draw, (16, 48))

    def fill(self, buffer):
        return super().fill(buffer) if self.script and buffer.dtype == np.uint64 else self.last.fill(buffer)


def intervals(outcome, low, high):
    """Where the outcome changes, as a function of a whole number from `low` to below `high`: [(start, outcome), ...].

    The code is asked, by bisection, and its answer taken at its word; every outcome must be an interval.
    """
    if low >= high:
        return []
    found = [(low, outcome(low))]
    last = outcome(high - 1)

    def between(left, left_outcome, right, right_outcome):
        if left_outcome == right_outcome:
            return
        if right - left == 1:
            found.append((right, right_outcome))
            return
        middle = (left + right) // 2
        middle_outcome = outcome(middle)
        between(left, left_outcome, middle, middle_outcome)
        between(middle, middle_outcome, right, right_outcome)

    between(low, found[0][1], high - 1, last)
    return found


def lengths(found, high):
    """How many whole numbers have each outcome, from what :func:`intervals` found."""
    law = {}
    stops = [*[start for start, _ in found[1:]], high][: len(found)]
    for (start, outcome), stop in zip(found, stops, strict=True):
        law[outcome] = law.get(outcome, 0) + stop - start
    return law


def worst_ratio(laws):
    """The largest ratio of one outcome's weights between two laws, as a fraction; infinite is an error."""
    outcomes = set().union(*laws)
    return max(Fraction(max(law[outcome] for law in laws), min(law[outcome] for law in laws)) for outcome in outcomes)


def logarithm(ratio):
    """The natural logarithm of a fraction, to 50 digits."""
    with decimal.localcontext() as context:
        context.prec = 60
        return decimal.Decimal(ratio.numerator).ln() - decimal.Decimal(ratio.denominator).ln()


def assert_is_the_guarantee(laws, epsilon, slack=1e-9):
    """The laws that the code drew are those of which `epsilon` is the exact, least and proved figure."""
    exact = logarithm(worst_ratio(laws))
    assert exact <= decimal.Decimal(epsilon)
    assert decimal.Decimal(epsilon) <= exact * (1 + decimal.Decimal(slack)) + decimal.Decimal(10) ** -15


def code_law(law, code):
    """Probability of every output code, shape (2**n_bits,), of a code whose bits a `BitLaw` randomizes."""
    chances = np.ones(1)
    for place in range(law.n_bits):
        one = law.ones[code >> (law.n_bits - 1 - place) & 1, place]
        chances = (chances[:, None] * [1 - one, one]).reshape(-1)
    return chances


def log_likelihood(mechanism, released, codes):
    """Logarithm of the probability of each release of a category given each code; bits may be numbers."""
    law = mechanism.law
    if not isinstance(law, UnaryLaw | SubsetLaw):
        return mechanism.log_likelihood(released, codes)
    bits, own = np.asarray(released), np.asarray(codes)[:, None] == np.arange(law.n_codes)
    bits = (bits if bits.ndim == 2 else bits[:, None] >> np.arange(law.n_codes)[::-1] & 1).astype(bool)
    if isinstance(law, UnaryLaw):
        ones = np.where(own, *law.support)
        return np.log(np.where(bits, ones, 1 - ones)).sum(axis=1)
    kinds = (law.own_count, law.set_size - 1), (law.miss_count, law.set_size)
    held, missed = (count / 2**64 / math.comb(law.n_codes - 1, size) for count, size in kinds)
    of_sets = np.log(np.where((bits & own).any(axis=1), held, missed))
    return np.where(bits.sum(axis=1) == law.set_size, of_sets, -math.inf)


class Reports:
    """Reports of a law of categories as a collector holds them, with probabilities by the formula of the law."""

    def __init__(self, epsilon, law):
        self.epsilon, self.law, self.integer_law, self.n_classes = epsilon, law, law, law.n_codes
        self.exact_epsilon = law.epsilon

    def __repr__(self):
        return f"Reports({self.law!r})"

    def release(self, codes, noise):
        codes = np.asarray(codes)
        out = np.empty(codes.shape, dtype=np.int64)
        self.law.draw_many(codes, noise, out, Workspace())
        return Release(out, 0)

    def supports(self, report, code):
        """Whether a report supports a code, digit by digit or bit by bit."""
        if isinstance(self.law, HashingLaw):
            a, bucket = divmod(report, self.law.n_buckets)
            a, g, total = a + 1, self.law.n_buckets, 0
            while a:
                total += a % g * (code % g)
                a, code = a // g, code // g
            return total % g == bucket
        return ((1 + code) & report).bit_count() % 2 == 0

    def log_likelihood(self, reports, codes):
        """Logarithm of the probability of each report given each code (broadcast)."""
        law = self.law
        held = np.vectorize(self.supports)(*np.broadcast_arrays(reports, codes))
        if isinstance(law, HashingLaw):
            p, other = law.response.own_count / 2**64, law.other_count / 2**64
            return np.log(np.where(held, p, other) / law.n_hashes)
        own, others = law.sizes
        return np.log(np.where(held, law.own_count / 2**64 / own, law.miss_count / 2**64 / others))


def hashing(epsilon, n_codes):
    """Reports of local hashing."""
    return Reports(epsilon, OneHotLocalHashing(epsilon, n_codes).law)


def hadamard(epsilon, n_codes):
    """Reports of Hadamard response."""
    return Reports(epsilon, OneHotHadamard(epsilon, n_codes).law)
