r"""Randomized response over classes, as an exact integer law.

Classes are codes 0 to C - 1. A mechanism here gives each other code with a probability :math:`t / 2^{64}` and keeps
the true one otherwise, so that its law is a matrix known to the last bit.
"""

from dataclasses import dataclass
from functools import cached_property
from numbers import Integral

import numpy as np
import numpy.typing as npt

from skldp._untold import kind_of
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._odds import (
    TWO_64,
    check_epsilon,
    check_representable,
    other_count,
    log_ratio,
)

__all__ = ["KeepOrLie", "RandomizedResponse", "check_codes", "check_n_classes", "respond"]

# Codes that are answered at a time, small enough for the buffers to stay in the cache.
_BLOCK = 32_768
# Above this many classes, too many values of 16 bits would be left undecided.
_LARGEST_TABLED = 4096


def check_codes(codes: npt.ArrayLike, n_classes: int) -> npt.NDArray[np.int64]:
    """Give the codes as integers, or refuse what is no code from 0 to ``n_classes - 1``."""
    values = np.asarray(codes)
    if values.dtype.kind not in "iu" or (values.size and not 0 <= values.min() <= values.max() < n_classes):
        raise ValueError(f"codes must be integers from 0 to {n_classes - 1}. Got {kind_of(codes)} instead.")
    return values.astype(np.int64, copy=False)


def check_n_classes(n_classes: int) -> None:
    """Refuse a number of classes that is no integer >= 1."""
    if isinstance(n_classes, bool) or not isinstance(n_classes, Integral) or n_classes < 1:
        raise ValueError(f"n_classes must be an integer >= 1. Got {n_classes!r} instead.")


def respond(codes: npt.NDArray[np.int64], n_classes: int, lie: int, noise: Noise) -> npt.NDArray[np.int64]:
    """Give each other code with probability ``lie / 2**64``, else keep the code.

    Parameters
    ----------
    codes : ndarray of int64
    n_classes : int
        At least 2.
    lie : int
        At least 1, with ``lie * (n_classes - 1) < 2**64``.
    noise : Noise

    Returns
    -------
    ndarray of int64, same shape

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms._categorical.randomized_response import respond
    >>> from skldp.mechanisms._noise import noise_from
    >>> respond(np.array([0, 1]), 2, 2**64 - 1, noise_from()).tolist()
    [1, 0]
    """
    # A lie adds 1 to n_classes - 1 to the code, modulo n_classes. Draws below edges[s] and not below edges[s - 1] add
    # s + 1; draws from the last edge on add nothing.
    edges = np.arange(1, n_classes, dtype=np.uint64) * np.uint64(lie)
    shifts = np.append(np.arange(1, n_classes), 0)
    table = _shift_table(edges, shifts) if n_classes <= _LARGEST_TABLED else None
    released = np.empty(codes.size, dtype=np.int64)
    flat = codes.reshape(-1)
    for start in range(0, codes.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        answers = released[block]
        if table is None:
            answers[:] = shifts[np.searchsorted(edges, noise.words(answers.size), side="right")]
        else:
            _draw_shifts(answers, table, edges, shifts, noise)
        answers += flat[block]
        # Modulo n_classes: below 0, an unsigned integer wraps to a large one.
        unsigned = answers.view(np.uint64)
        np.minimum(unsigned, unsigned - np.uint64(n_classes), out=unsigned)
    return released.reshape(codes.shape)


def _shift_table(edges: npt.NDArray[np.uint64], shifts: npt.NDArray[np.int64]) -> npt.NDArray[np.int16]:
    """The shift that each value of a draw's leading 16 bits decides, or -1 where an edge lies within."""
    leading, rest = edges >> np.uint64(48), edges & np.uint64(2**48 - 1)
    first = (leading + (rest > 0)).astype(np.int64)
    table = np.repeat(shifts.astype(np.int16), np.diff(first, prepend=0, append=2**16))
    table[leading[rest > 0].astype(np.int64)] = -1
    return table


def _draw_shifts(
    out: npt.NDArray[np.int64],
    table: npt.NDArray[np.int16],
    edges: npt.NDArray[np.uint64],
    shifts: npt.NDArray[np.int64],
    noise: Noise,
) -> None:
    words = noise.words(out.size, np.uint16)
    drawn = table.take(words, mode="clip")
    out[:] = drawn
    undecided = np.flatnonzero(drawn < 0)
    draws = (words[undecided].astype(np.uint64) << np.uint64(48)) | (noise.words(undecided.size) >> np.uint64(16))
    out[undecided] = shifts[np.searchsorted(edges, draws, side="right")]


@dataclass(frozen=True)
class KeepOrLie:
    """A law that keeps the true code with one probability and gives each other code with another."""

    epsilon: float
    n_classes: int

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_n_classes(self.n_classes)
        if self.n_classes > 1:
            largest = (TWO_64 - 1) // self.n_classes
            least_epsilon = log_ratio(TWO_64 - largest * (self.n_classes - 1), largest)
            check_representable(self.epsilon, self.exact_epsilon, least_epsilon)

    @cached_property
    def lie(self) -> int:
        """How many of 2^64 draws release each single other code; 0 for a single class."""
        return 0 if self.n_classes == 1 else self._other_count()

    @property
    def keep(self) -> int:
        """How many of 2^64 draws release the true code."""
        return TWO_64 - self.lie * (self.n_classes - 1)

    @cached_property
    def exact_epsilon(self) -> float:
        """The exact worst-case log-likelihood ratio of what is sampled, rounded up."""
        return log_ratio(self.keep, self.lie) if self.keep > self.lie > 0 else 0.0

    @property
    def keep_probability(self) -> float:
        """The probability that the true code is released."""
        return self.keep / TWO_64

    @property
    def other_probability(self) -> float:
        """The probability of each single other code."""
        return self.lie / TWO_64

    def support_probabilities(self) -> tuple[float, float]:
        """The probabilities that the true code and that any single other code is released."""
        return self.keep_probability, self.other_probability

    @property
    def flip_matrix(self) -> npt.NDArray[np.float64]:
        """The probability of releasing column j when the true code is row i, shape (n_classes, n_classes)."""
        matrix = np.full((self.n_classes, self.n_classes), self.other_probability)
        np.fill_diagonal(matrix, self.keep_probability)
        return matrix

    def output_law(self, codes: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The law of the released code for each true code: one row of probabilities each."""
        return self.flip_matrix[check_codes(codes, self.n_classes)]

    def log_likelihood(self, released: npt.ArrayLike, codes: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The natural log of the probability of each released code given each true code (broadcast)."""
        same = check_codes(released, self.n_classes) == check_codes(codes, self.n_classes)
        with np.errstate(divide="ignore"):
            logs: npt.NDArray[np.float64] = np.log(np.array([self.other_probability, self.keep_probability]))
        return logs[same.astype(np.intp)]

    def sample(self, codes: npt.ArrayLike, noise: Noise) -> npt.NDArray[np.int64]:
        """Release each code independently."""
        values = check_codes(codes, self.n_classes)
        return values.copy() if self.n_classes == 1 else respond(values, self.n_classes, self.lie, noise)

    def guarantee(self, unit: str = "label") -> PrivacyGuarantee:
        """The exact guarantee of one release."""
        return PrivacyGuarantee(self.exact_epsilon, unit=unit, stated=self.epsilon, basis=self._basis())

    def _other_count(self) -> int:
        raise NotImplementedError

    def _basis(self) -> str:
        return "exact, from the 64-bit integer probabilities that are sampled"


@dataclass(frozen=True)
class RandomizedResponse(KeepOrLie):
    r"""k-ary randomized response.

    Parameters
    ----------
    epsilon : float
        Natural-log budget of one answer.
    n_classes : int
        C. A single class is released as it is, at epsilon 0.

    Raises
    ------
    ValueError
        If a parameter is out of range, or epsilon too small for 64-bit probabilities.

    Notes
    -----
    .. math:: P(y' = y) = \frac{e^\varepsilon}{e^\varepsilon + C - 1}, \quad
              P(y' = z) = \frac{1}{e^\varepsilon + C - 1} \text{ for each } z \ne y

    The probability of each lie is rounded up to an integer out of 2^64, so that the exact epsilon is never above
    `epsilon`; it is within 1e-9 of it up to epsilon = 20 and saturates near 44.

    References
    ----------
    Kairouz, Oh and Viswanath, "Extremal mechanisms for local differential privacy", JMLR 2016; BitRand, Eq. 3.

    Examples
    --------
    >>> from skldp.mechanisms._categorical.randomized_response import RandomizedResponse
    >>> print(RandomizedResponse(1.0, 3).flip_matrix.round(3).tolist()[0])
    [0.576, 0.212, 0.212]
    """

    def _other_count(self) -> int:
        return other_count(self.epsilon, self.n_classes - 1)
