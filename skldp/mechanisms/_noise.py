r"""Source of all noise: secure by default, seedable for tests.

A :class:`Noise` is a stream of uniform random bits: AES-256 in counter mode, keyed from the operating system's
secure source. :func:`noise_from` makes a new one inside every release, so that two releases, processes or threads
never share a stream. A stream cannot be copied, pickled or used after a fork: the same noise would be added twice, and
the difference of two releases with the same noise is exact.

Every discrete law drawn here is exact: a probability is an integer fraction :math:`t / 2^{64}` with
:math:`1 \le t \le 2^{64} - 1`, so that a guarantee can be computed from the integers that are sampled.
"""

import hashlib
import os
import threading
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from skldp._arrays import Bools, Floats, Ints, Words
from skldp._checks import check_integer, is_integer
from skldp.exceptions import SeededNoiseWarning

# Long calls cost less, and release the interpreter lock.
_ZEROS = bytes(1 << 19)
# Older releases of cryptography need this many spare bytes behind an in-place write.
_SLACK = 15


def noise_from(seed: Any = None) -> "Noise":
    """Return a new stream of noise for one release.

    Parameters
    ----------
    seed : None, int, numpy.random.Generator or numpy.random.RandomState
        None keys the stream from the operating system. Anything else is for tests and reproducible studies: an int
        gives the same noise at every call, a generator is advanced by it.

    Raises
    ------
    TypeError
        If `seed` is a bool or of another type.
    ValueError
        If it is a negative int.

    Warns
    -----
    SeededNoiseWarning
        If the noise is repeatable.

    Examples
    --------
    >>> from skldp.mechanisms._noise import noise_from
    >>> noise_from().secure
    True
    """
    if seed is None:
        return Noise(os.urandom(32), secure=True)
    if is_integer(seed):
        if seed < 0:
            raise ValueError(f"An int seed must not be negative; got {seed!r}.")
        key = hashlib.sha256(b"skldp seeded noise %d" % int(seed)).digest()
    elif isinstance(seed, np.random.Generator | np.random.RandomState):
        key = seed.bytes(32)
    else:
        raise TypeError(f"seed must be None, an int, or a numpy Generator or RandomState; got {seed!r}.")
    warnings.warn(
        "The noise comes from a seed and is repeatable: anyone who knows it can remove the noise, and two releases "
        "with one seed differ by exactly the secret. Use seed=None for data that matter.",
        SeededNoiseWarning,
        stacklevel=3,
    )
    return Noise(key, secure=False)


def public_stream(seed: int) -> "Noise":
    """Make a reproducible stream for choices that are public, such as a projection: never for noise."""
    check_integer("The seed of a public stream", seed, least=0)
    return Noise(hashlib.sha256(b"skldp public stream %d" % int(seed)).digest(), secure=False)


def as_uniform(words: Words) -> Floats:
    """Return odd multiples of 2^-53 inside (0, 1), from the first 52 bits of random words."""
    return ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


class Noise:
    """Stream of uniform random bits for one release, of a key of 32 bytes; :func:`noise_from` makes one."""

    def __init__(self, key: bytes, *, secure: bool) -> None:
        self.secure = secure
        self._key = key
        self._n_children = 0
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def __repr__(self) -> str:
        return f"Noise(secure={self.secure})"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("A Noise stream must not be copied or pickled; make a new one with noise_from in the worker.")

    def fill(self, buffer: np.ndarray) -> np.ndarray:
        """Overwrite a C-contiguous array with random bits, and return it; a copy would be overwritten instead."""
        if not buffer.flags.c_contiguous:
            raise ValueError(f"buffer must be C-contiguous; got strides {buffer.strides!r}.")
        view = buffer.reshape(-1).view(np.uint8).data
        self._refuse_after_fork()
        with self._lock:
            position = 0
            while len(view) - position > _SLACK:
                step = min(len(view) - position - _SLACK, len(_ZEROS))
                self._stream.update_into(memoryview(_ZEROS)[:step], view[position:])
                position += step
            if position < len(view):
                view[position:] = self._stream.update(_ZEROS[: len(view) - position])
        return buffer

    def words(self, size: int | tuple[int, ...], dtype: npt.DTypeLike = np.uint64) -> np.ndarray:
        """Draw random words of an unsigned integer type, in an array of the given size."""
        return self.fill(np.empty(size, dtype=dtype))

    def bernoulli(self, threshold: npt.ArrayLike, size: int | tuple[int, ...] | None = None) -> Bools:
        """Draw booleans that are True with probability exactly ``threshold / 2**64``, in the shape of both."""
        t = np.asarray(threshold, dtype=np.uint64)
        return self.words(t.shape if size is None else size) < t

    def integers(self, high: int, size: int | tuple[int, ...]) -> Ints:
        """Draw uniform integers from 0 to ``high - 1``, for a `high` up to 2^63, without modulo bias."""
        if not 1 <= high <= 2**63:
            raise ValueError(f"high must be from 1 to 2**63; got {high!r}.")
        words = self.words(size).reshape(-1)
        # The last, incomplete run of remainders would favour small ones: draw those words again.
        last = np.uint64(2**64 - 1 - 2**64 % high)
        again = np.flatnonzero(words > last)
        while again.size:
            words[again] = self.at(again, words.size).words(again.size)
            again = again[words[again] > last]
        return (words % np.uint64(high)).astype(np.int64).reshape(size)

    def uniform(self, size: int | tuple[int, ...]) -> Floats:
        """Draw odd multiples of 2^-53, uniform inside (0, 1), to invert distribution functions."""
        return as_uniform(self.words(size))

    def permutation(self, n: int) -> Ints:
        """Draw a uniform random order of 0 to ``n - 1``."""
        keys = self.words(n)
        # Words that are all different have every order equally often.
        while np.unique(keys).size < n:
            keys = self.words(n)
        return np.argsort(keys)

    def subsets(self, n_rows: int, n: int, k: int) -> Ints:
        """Draw `k` of 0 to ``n - 1`` without replacement for each row: (n_rows, k) (Bentley and Floyd, CACM 1987)."""
        if not 0 <= k <= n:
            raise ValueError(f"k must be from 0 to n = {n}; got {k!r}.")
        chosen = np.empty((k, n_rows), dtype=np.int64)
        taken, row_starts = np.zeros(n_rows * n, dtype=bool), np.arange(n_rows) * n
        for draws, newest in zip(chosen, range(n - k, n), strict=True):
            draws[:] = self.integers(newest + 1, n_rows)
            # The newest number was in no earlier draw.
            draws[taken[row_starts + draws]] = newest
            taken[row_starts + draws] = True
        return np.ascontiguousarray(chosen.T)

    def spawn(self, n: int) -> list["Noise"]:
        """Independent streams for threads; which ones depends only on this stream's key and on earlier spawns."""
        self._refuse_after_fork()
        with self._lock:
            children = range(self._n_children, self._n_children + n)
            self._n_children += n
        numbers = (child.to_bytes(8, "big") for child in children)
        keys = (hashlib.blake2b(one, key=self._key, digest_size=32, person=b"skldp spawn").digest() for one in numbers)
        return [Noise(key, secure=self.secure) for key in keys]

    def at(self, places: npt.NDArray[np.integer], size: int) -> "Noise":
        """Return the stream for more noise about a few of `size` numbers, at ascending places: this one."""
        return self

    def split(self, parts: list[slice]) -> list["Noise"]:
        """Return one stream for each part of the rows, for threads."""
        return self.spawn(len(parts))

    def block(self, part: slice) -> "Noise":
        """Return the stream for a block of the rows: this stream, whose words belong to no row."""
        return self

    def _refuse_after_fork(self) -> None:
        # Before the lock: a thread of the parent may have held it at the fork, and it is never released here.
        if os.getpid() != self._pid:
            raise RuntimeError("A Noise stream must not be used after a fork; make one with noise_from in the child.")


class RowNoise(Noise):
    """Stream whose word t of a row with the nonce r is AES_k(r xor t): it depends on no other row, block or thread."""

    def __init__(self, key: bytes, nonces: Words) -> None:
        super().__init__(key, secure=True)
        if nonces.dtype != np.uint64 or nonces.ndim != 2 or nonces.shape[1] != 2:
            raise ValueError(f"nonces must be uint64 numbers of the shape (n_rows, 2); got {nonces.dtype}.")
        self._nonces = nonces
        self._block = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
        # Cipher blocks used by each row, shared by all streams over some of these rows.
        self._used = np.zeros(len(nonces), dtype=np.uint64)
        self._rows = np.arange(len(nonces))

    def fill(self, buffer: np.ndarray) -> np.ndarray:
        """Overwrite a C-contiguous array with the random bits of the rows, an equal run of it for each."""
        if not buffer.flags.c_contiguous:
            raise ValueError(f"buffer must be C-contiguous; got strides {buffer.strides!r}.")
        if not buffer.size:
            return buffer
        n = len(self._rows)
        if not n or buffer.size % n:
            raise ValueError(f"Noise of rows comes in equal runs for {n} of them; got a draw of {buffer.size}.")
        self._refuse_after_fork()
        run = buffer.nbytes // n
        n_blocks = -(-run // 16)
        with self._lock:
            # Several runs of one row follow each other.
            first = np.searchsorted(self._rows, self._rows)
            starts: Words = self._used[self._rows] + ((np.arange(n) - first) * n_blocks).astype(np.uint64)
            self._used[self._rows] = starts + np.uint64(n_blocks)
            counters = np.repeat(self._nonces[self._rows][:, None, :], n_blocks, axis=1)
            counters[:, :, 1] ^= np.add.outer(starts, np.arange(n_blocks, dtype=np.uint64))
            drawn = np.frombuffer(self._block.update(counters.reshape(-1).view(np.uint8).data), dtype=np.uint8)
        buffer.reshape(-1).view(np.uint8).reshape(n, run)[...] = drawn.reshape(n, -1)[:, :run]
        return buffer

    def at(self, places: npt.NDArray[np.integer], size: int) -> "RowNoise":
        """Return the stream of the rows that a few of `size` numbers belong to, a run for each number."""
        n = len(self._rows)
        if size and (not n or size % n):
            raise ValueError(f"Noise of rows comes in equal runs for {n} of them; got {size} numbers.")
        return self._of(self._rows[np.asarray(places, dtype=np.intp) // max(1, size // max(1, n))])

    def block(self, part: slice) -> "RowNoise":
        return self._of(self._rows[part])

    def split(self, parts: list[slice]) -> list[Noise]:
        return [self.block(part) for part in parts]

    def spawn(self, n: int) -> list[Noise]:
        """Raise TypeError: the words of new streams would belong to no row."""
        raise TypeError("The noise of rows cannot be spawned, because its bits belong to rows. Use split instead.")

    def _of(self, rows: npt.NDArray[np.intp]) -> "RowNoise":
        part = object.__new__(RowNoise)
        vars(part).update(vars(self), _rows=rows)
        return part
