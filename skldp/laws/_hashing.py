"""Integer laws of a category whose sums over many answers are fast transforms: local hashing, Hadamard response."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from skldp._arrays import Bools, Floats, Ints
from skldp.laws._categories import FavouringLaw, ResponseLaw
from skldp.laws._integers import (
    MOST_CODES,
    AnswerProducts,
    Answers,
    CodeLaw,
    Noise,
    is_prime,
    number_of_digits,
    uniform_below,
)
from skldp.laws._odds import TWO_64

# The largest prime whose square is below 2^24.
MOST_BUCKETS = 4093


@dataclass(frozen=True)
class HashingLaw(CodeLaw):
    """Law of local hashing: a uniform linear hash function modulo a prime, and randomized response to the bucket."""

    name: ClassVar[str] = "local_hashing"
    n_buckets: int
    other_count: int

    def _check(self) -> None:
        codes = 2 <= self.n_codes <= MOST_CODES and 2 <= self.n_buckets <= MOST_BUCKETS
        if not codes or not is_prime(self.n_buckets):
            self._refuse(f"hash 2 to {MOST_CODES} codes to a prime number of buckets, at most {MOST_BUCKETS}")
        # Raises on an invalid response.
        _ = self.response

    @property
    def n_answers(self) -> int:
        """Number of pairs of a hash function and a bucket."""
        return self.n_hashes * self.n_buckets

    @cached_property
    def n_hashes(self) -> int:
        digits: int = self.n_buckets**self._n_digits
        return digits - 1

    @property
    def ratio(self) -> tuple[int, int]:
        """Ratio of the randomized response over buckets; the hash function is independent of the code."""
        return self.response.ratio

    @property
    def support(self) -> tuple[float, float]:
        """Probabilities that an answer supports the true code, and any other one, whose bucket may be the same."""
        p, other = self.response.support
        return p, self.of_others(p, other, self.n_buckets, self.n_codes)

    @staticmethod
    def of_others(p: float, other: float, g: int, n_codes: int) -> float:
        """Return the probability that an answer supports a code other than the true one."""
        m = number_of_digits(n_codes, g)
        alike = float(Fraction(g ** (m - 1) - 1, g**m - 1))
        return alike * p + (1 - alike) * other

    def draw(self, code: int, words: Iterator[int]) -> int:
        chosen = uniform_below(self.n_hashes, words)
        return chosen * self.n_buckets + self.response.draw(self.bucket(chosen, code), words)

    def bucket(self, chosen: Any, code: Any) -> Any:
        """Return the bucket of a code, or the buckets of integers of one shape."""
        base, total = self.n_buckets, 0
        for place in range(self._n_digits):
            total = total + ((chosen + 1) // base**place % base) * (code // base**place % base)
        return total % base

    def draw_many(self, codes: Ints, noise: Noise, out: np.ndarray, workspace: Any) -> None:
        chosen = noise.integers(self.n_hashes, codes.shape)
        self.response.draw_many(self.bucket(chosen, codes), noise, out, workspace)
        out += chosen * self.n_buckets

    def write_bits(self, answers: Ints, out: Bools) -> None:
        g = self.n_buckets
        hashes, buckets = np.divmod(answers, g)
        hashes += 1
        dtype = np.min_scalar_type(2 * g)
        # Highest digit first: each code so far becomes g of them.
        hashed = np.zeros(hashes.shape, dtype=dtype)
        for place in range(self._n_digits - 1, -1, -1):
            summands = (hashes // g**place % g * np.arange(g) % g).astype(dtype)
            hashed = (hashed[:, :, None] + summands[:, None, :]).reshape(len(hashes), hashed.shape[1] * g)
            hashed = hashed[:, : -(-self.n_codes // g**place)]
            # Below 0, an unsigned integer wraps to a large one.
            hashed = np.minimum(hashed, hashed - dtype.type(g))
        np.equal(hashed, buckets.astype(dtype), out=out)

    def supports(self, answers: Answers, code: int) -> Bools:
        hashes, buckets = np.divmod(answers.astype(np.int64), self.n_buckets)
        return np.asarray(self.bucket(hashes, code) == buckets)

    def supporting(self, answers: Answers, weights: Floats) -> Floats:
        return self._tables.supporting(self._tables.keys(answers.astype(np.int64)), weights)

    def products(self, answers: Answers) -> AnswerProducts:
        """Return the answers that support different codes, with their two products."""
        tables = self._tables
        keys, counts = np.unique(tables.keys(answers.astype(np.int64)), return_counts=True)
        return AnswerProducts(
            counts.astype(np.float64),
            lambda shares: tables.supported(keys, shares),
            lambda parts: tables.supporting(keys, parts),
        )

    @cached_property
    def response(self) -> ResponseLaw:
        return ResponseLaw(self.n_buckets, self.other_count)

    @property
    def _tables(self) -> "LinearHashes":
        return linear_hashes(self.n_codes, self.n_buckets)

    @cached_property
    def _n_digits(self) -> int:
        return number_of_digits(self.n_codes, self.n_buckets)


@lru_cache(maxsize=4)
def linear_hashes(n_classes: int, g: int) -> "LinearHashes":
    """Return the tables of the hash functions of some categories and buckets."""
    return LinearHashes(n_classes, g)


class LinearHashes:
    """Sums over what reports of linear hash functions support, by Fourier transforms over the categories' digits."""

    # With f^ the transform of the shares over digits, the sums of each bucket by a hash function a are the transform of
    # f^(w a) over w. A multiple c a with the bucket c y supports the same: one function of each line is enough.

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
        # A device has no scipy.
        from scipy import fft

        padded = np.zeros(self._n_tables * self._size)
        padded[: self._n_classes] = shares
        total = np.zeros(len(keys))
        for table, cells in zip(padded.reshape(self._n_tables, *self._shape), self._cells(keys), strict=True):
            transformed = fft.fftn(table).reshape(-1)[self._frequencies]
            total += fft.irfft(transformed, n=self._g, axis=1).reshape(-1)[cells]
        return total

    def supporting(self, keys: Ints, weights: Floats) -> Floats:
        """Return the sum of the weights of the keys that support each category."""
        from scipy import fft

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


@dataclass(frozen=True)
class HadamardLaw(FavouringLaw):
    """Law of Hadamard response: a report where row ``1 + x`` of Sylvester's matrix is 1, else, by `miss_count`, not."""

    name: ClassVar[str] = "hadamard"
    n_blocks: int
    block_size: int
    miss_count: int

    def _check(self) -> None:
        size = self.block_size
        if self.n_blocks != 1 or not 2 <= size <= 2 * MOST_CODES or size & (size - 1):
            self._refuse("have one block of a power of two reports")
        if not 2 <= self.n_codes < min(size, MOST_CODES + 1):
            self._refuse(f"have a row of the block for each of 2 to {MOST_CODES} codes")
        if not self._favours():
            self._refuse("favour the code's own reports and allow all others")

    @property
    def n_answers(self) -> int:
        return self.block_size

    @property
    def sizes(self) -> tuple[int, int]:
        return self.block_size // 2, self.block_size // 2

    @property
    def support(self) -> tuple[float, float]:
        return self.own_count / TWO_64, 0.5

    def draw(self, code: int, words: Iterator[int]) -> int:
        held = next(words) >= self.miss_count
        return int(self._report(np.int64(code), held, uniform_below(self.block_size // 2, words)))

    def draw_many(self, codes: Ints, noise: Noise, out: np.ndarray, workspace: Any) -> None:
        own, other = (noise.integers(size, codes.shape) for size in self.sizes)
        held = self._draw_held(codes, noise, workspace)
        out[...] = self._report(codes, held, np.where(held, own, other))

    def _report(self, codes: Any, held: Any, numbers: Any) -> Any:
        """Return the reports of numbers among the codes' own reports, if `held`, or else among all other ones."""
        # A bit is inserted where the row has its lowest one, and decides the sign.
        rows = codes + 1
        lowest = rows & -rows
        below = numbers & (lowest - 1)
        columns = ((numbers - below) << 1) + below
        return columns + np.where(is_odd(columns & rows) != ~np.asarray(held), lowest, 0)

    def write_bits(self, answers: Ints, out: Bools) -> None:
        # Short integers, of which there are many.
        np.logical_not(is_odd(answers.astype(np.uint32) & np.arange(1, self.n_codes + 1, dtype=np.uint32)), out=out)

    def supports(self, answers: Answers, code: int) -> Bools:
        return np.asarray(~is_odd(answers.astype(np.uint32) & np.uint32(code + 1)))

    def supporting(self, answers: Answers, weights: Floats) -> Floats:
        sums = np.asarray(np.bincount(answers.astype(np.int64, copy=False), weights, self.n_answers), dtype=np.float64)
        return np.asarray((sums.sum() + hadamard_transform(sums)[1 : self.n_codes + 1]) / 2)

    def _supported(self, answers: Ints, shares: Floats) -> Floats:
        table = np.zeros(self.block_size)
        table[1 : self.n_codes + 1] = shares
        return np.asarray((shares.sum() + hadamard_transform(table))[answers] / 2)


def is_odd(numbers: Any) -> Any:
    """Return whether the number of one bits is odd, for numbers below 2^32."""
    folded = numbers
    for shift in (16, 8, 4, 2, 1):
        folded = folded ^ (folded >> shift)
    return np.asarray(folded & 1, dtype=bool)


def hadamard_transform(values: Floats) -> Floats:
    """Multiply numbers, of which there are a power of two, by Sylvester's Hadamard matrix."""
    step = 1
    while step < values.size:
        pairs = values.reshape(-1, 2, step)
        values = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
        step *= 2
    return values
