r"""Public random projections: the matrix, and certified bounds on its stretch of distances.

Let :math:`\Phi` have columns of norm 1, any two with an inner product of magnitude at most :math:`\mu`. For a vector u
with at most k non-zero values, Gershgorin's theorem gives

.. math:: \|\Phi u\|^2 \le (1 + (k - 1) \mu) \|u\|^2, \qquad \mu \le 1.

Two records of at most c non-zero values differ in at most 2 c.
"""

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse, special

from skldp._arrays import Floats, Ints
from skldp._checks import check_choice, check_dimension, check_fraction, check_integer, check_positive
from skldp.laws._integers import is_prime, number_of_digits
from skldp.mechanisms._noise import Noise, public_stream
from skldp.mechanisms.vector._multivariate_laplace import gaussians

_ROUNDING = 1 + 2.0**-48
# Bound on the relative error of sums of positive terms and of their logarithms.
_SUM_ERROR = 2.0**-40


def default_width(d: int) -> float:
    r"""Return :math:`\sqrt{\log_2 d}`, the convention of the paper's Section 5 (printed without base 2)."""
    check_dimension(d, least=1)
    return math.sqrt(math.log2(d))


def projected_dimension(d: int, beta: float, delta: float, width: float | None = None) -> int:
    r"""Return the number of dimensions m to project to, from 1 to d.

    Parameters
    ----------
    d : int
        Number of features.
    beta : float
        Distortion, in (0, 1).
    delta : float
        In (0, 1).
    width : float, default=None
        Gaussian width of the vectors; None is ``default_width``.

    Notes
    -----
    .. math:: m = \operatorname{round}\Bigl(\frac{(\omega + \sqrt{\ln(1 / \delta)})^2}{\beta^2}\Bigr)

    The paper's :math:`\Omega(\cdot)` hides a constant; 1 gives its own dimensions.

    References
    ----------
    Feyisetan and Kasiviswanathan, "Private release of text embedding vectors", 2021, Algorithm 1.

    Examples
    --------
    >>> from skldp.mechanisms import projected_dimension
    >>> [projected_dimension(300, beta, 1e-6) for beta in (0.93, 0.66, 0.468)]
    [50, 100, 198]
    """
    check_dimension(d, least=1)
    check_fraction("beta", beta)
    check_fraction("delta", delta)
    width = default_width(d) if width is None else width
    if not 0 <= width < math.inf:
        raise ValueError(f"The Gaussian width must be a finite number >= 0; got {width!r}.")
    return int(min(max(round((width + math.sqrt(-math.log(delta))) ** 2 / beta**2), 1), d))


def gordon_delta(m: int, beta: float, width: float) -> float:
    """Bound P(stretch > 1 + beta) <= exp(-(beta sqrt(m) - width)^2 / 2), the width being that of DIRECTIONS."""
    # The m of projected_dimension therefore fails with probability sqrt(delta), not delta: Lemma 4 takes the set of the
    # differences. In an open set, directions are the whole sphere, of width about sqrt(d).
    margin = beta * math.sqrt(m) - width
    return math.exp(-margin * margin / 2) if margin > 0 else 1.0


def union_delta(m: int, beta: float, n_vectors: int) -> float:
    """Bound P(stretch > 1 + beta) of n vectors by (n choose 2) P(chi^2_m > m (1 + beta)^2), rounded up."""
    # P(chi^2_2k > 2 t) = e^-t sum_{j < k} t^j / j!; odd m has the larger tail of m + 1 degrees of freedom.
    check_dimension(m, least=1)
    check_integer("n_vectors", n_vectors, least=2)
    check_positive("beta", beta)
    t, k = m * (1 + beta) ** 2 / 2, (m + 1) // 2
    logs = np.arange(k) * math.log(t) - special.gammaln(np.arange(1, k + 1))
    most = float(logs.max())
    pairs = math.log(n_vectors) + math.log(n_vectors - 1) - math.log(2)
    # Every term of the exponent is off by a few units in its own last place.
    slack = _SUM_ERROR * (1 + t + float(np.abs(logs).max()) + k * abs(math.log(t)) + pairs)
    exponent = pairs - t + most + math.log(float(np.exp(logs - most).sum())) + slack
    return min(1.0, max(math.exp(min(exponent, 0.0)), sys.float_info.min))


def next_prime(least: int) -> int:
    prime = max(least, 2)
    while not is_prime(prime):
        prime += 1
    return prime


def square_of_prime(least: int, most: int) -> int:
    """Return the least square of a prime >= `least`, or the largest one <= `most`."""
    prime = next_prime(math.isqrt(max(least, 1) - 1) + 1)
    while prime > 2 and (prime * prime > most or not is_prime(prime)):
        prime -= 1
    return prime * prime


def check_square_of_prime(m: int) -> int:
    """Return the prime whose square this is."""
    prime = math.isqrt(m)
    if prime * prime != m or not is_prime(prime):
        around = next_prime(max(prime, 2)) ** 2
        raise ValueError(f"n_components of a polynomial projection must be a squared prime, as {around}; got {m}.")
    return prime


def degree_of(n_columns: int, prime: int) -> int:
    """Return the least degree with as many polynomials over the field of `prime` elements as columns."""
    return max(number_of_digits(n_columns, prime), 1) - 1


def polynomial_rows(first: int, n_columns: int, m: int) -> Ints:
    """Return rows (q, n_columns) of entries, of which two columns share few (DeVore, Journal of Complexity, 2007)."""
    prime = check_square_of_prime(m)
    left = np.arange(first, first + n_columns)
    places = np.arange(prime)[:, None]
    values, power = np.zeros((prime, n_columns), dtype=np.int64), np.ones((prime, 1), dtype=np.int64)
    while left.any():
        left, digits = np.divmod(left, prime)
        values += digits * power
        values %= prime
        power = power * places % prime
    return values + prime * places


def coherent_stretch(k: int, n_bands: int, shared: int, entry: float) -> float:
    r"""Return a bound on :math:`\|\Phi u\|` for unit vectors of k non-zero values, rounded up."""
    return math.sqrt(n_bands + (k - 1) * min(shared, n_bands)) * entry * _ROUNDING


def support_stretch(m: int, d: int, k: int, delta: float) -> float:
    """Bound the stretch of unit vectors of k non-zero values, but for a chance of delta (Davidson and Szarek, 2001)."""
    # 1 + (sqrt(k) + sqrt(2 k ln(e d / k) + 2 ln(1 / delta))) / sqrt(m): a singular value of m by k normal numbers
    # exceeds sqrt(m) + sqrt(k) + t with chance exp(-t^2 / 2), Theorem II.13, for each of (e d / k)^k sets of columns.
    for number in (m, d, k):
        check_dimension(number, least=1)
    check_fraction("delta", delta)
    choices = 0.0 if k >= d else k * (1 + math.log(d / k))
    return (1 + (math.sqrt(min(k, d)) + math.sqrt(2 * (choices - math.log(delta)))) / math.sqrt(m)) * _ROUNDING


# Entries that are added up at a time: few enough for the working arrays to stay in the cache.
_ENTRIES = 1 << 17


def _bands(m: int) -> list[slice]:
    edges = np.linspace(0, m, math.ceil(math.sqrt(m)) + 1).astype(np.int64).tolist()
    return [slice(low, high) for low, high in pairwise(edges)]


def entry_size(n_bands: int) -> float:
    """Return the magnitude of every entry, in single precision, of columns with `n_bands` of them."""
    return float(np.float32(1) / np.float32(math.sqrt(n_bands)))


def draw_codes(stream: Noise, n_columns: int, m: int) -> npt.NDArray[np.unsignedinteger]:
    rows = np.stack([band.start + stream.integers(band.stop - band.start, n_columns) for band in _bands(m)])
    return _signed(stream, rows, m)


def _signed(stream: Noise, rows: Ints, m: int) -> npt.NDArray[np.unsignedinteger]:
    negative = stream.bernoulli(2**63, rows.shape)
    return np.ascontiguousarray((2 * rows + negative).T.astype(np.min_scalar_type(2 * m - 1)))


def sparse_matrix(codes: npt.NDArray[np.unsignedinteger], m: int) -> Any:
    """Return the columns as a sparse matrix of shape (m, n_columns), single precision."""
    return _signs(codes, m, np.float32(entry_size(codes.shape[1])))


def _signs(codes: npt.NDArray[np.unsignedinteger], m: int, size: Any) -> Any:
    n_columns, n_bands = codes.shape
    data = np.where(codes & 1, -size, size).ravel()
    pointers = np.arange(0, n_bands * n_columns + 1, n_bands)
    return sparse.csc_matrix((data, (codes >> 1).ravel().astype(np.int32), pointers), shape=(m, n_columns))


def project_sparse(
    values: Any, codes: npt.NDArray[np.unsignedinteger], m: int, out: np.ndarray | None = None
) -> np.ndarray:
    """Project rows (n, d) by codes (d, n_bands) into `out` (n, m); the cost is that of non-zero entries."""
    rows = values.tocsr()
    n_bands = codes.shape[1]
    projected = np.empty((rows.shape[0], m), dtype=values.dtype) if out is None else out
    size = values.dtype.type(entry_size(n_bands))
    # Entries to look up, and numbers of the dense sums.
    step = max(1, min(_ENTRIES * rows.shape[0] // max(1, rows.nnz * n_bands), _ENTRIES // (2 * m)))
    for start in range(0, rows.shape[0], step):
        pointers = rows.indptr[start : start + step + 1]
        entries = slice(pointers[0], pointers[-1])
        places = codes.take(rows.indices[entries], axis=0).ravel().astype(np.int32)
        numbers = np.repeat(rows.data[entries] * size, n_bands)
        shape = (len(pointers) - 1, 2 * m)
        # toarray() adds up entries of the same place.
        sums = sparse.csr_matrix((numbers, places, (pointers - pointers[0]) * n_bands), shape=shape).toarray()
        np.subtract(sums[:, ::2], sums[:, 1::2], out=projected[start : start + step])
    return projected


def code_gram(codes: npt.NDArray[np.unsignedinteger], m: int) -> Floats:
    """Return Phi Phi' of shape (m, m) for codes (d, n_bands), counted in integers."""
    signs = _signs(codes, m, np.int64(1))
    counts: Floats = (signs @ signs.T).toarray().astype(np.float64)
    return counts * entry_size(codes.shape[1]) ** 2


# Columns of Phi that share a stream, so that a block of them can be made without the others.
_BLOCK_COLUMNS = 4096
# Dense rows that are projected at a time: a tenth faster than all at once, and still enough for several threads.
_BLOCK_ROWS = 1024
# A matrix of at most this many numbers (128 MiB) is kept; a larger one is computed in blocks at every use.
_KEPT = 1 << 25
# Numbers of Phi in use at a time (16 MiB): few enough to stay small, enough to pass over the output rarely.
_CHUNK = 1 << 22
# Pairs of vocabulary words whose ratio is within this of the largest are recomputed without cancellation.
_PAIR_SLACK = 1e-5


@dataclass(frozen=True)
class RandomProjection:
    """Public random matrix Phi of shape (m, d), determined by its seed, in single precision."""

    n_features: int
    n_components: int
    seed: int = 0
    kind: str = "gaussian"

    def __post_init__(self) -> None:
        check_integer("n_features", self.n_features, least=1)
        check_integer("n_components", self.n_components, least=1, most=self.n_features)
        check_choice("kind", self.kind, ("gaussian", "sparse", "polynomial", "orthonormal"))
        if self.kind == "polynomial":
            check_square_of_prime(self.n_components)
        if self.kind == "orthonormal" and not self.kept:
            size = f"{self.n_features * self.n_components:,}"
            raise ValueError(f"An orthonormal projection must have at most {_KEPT:,} numbers; got {size}.")
        public_stream(self.seed)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the parameters alone; the matrix is made again."""
        return {name: getattr(self, name) for name in ("n_features", "n_components", "seed", "kind")}

    @property
    def kept(self) -> bool:
        return self.has_sparse_columns or self.n_features * self.n_components <= _KEPT

    @property
    def has_sparse_columns(self) -> bool:
        """True if the columns are held as the places of their few entries."""
        return self.kind in ("sparse", "polynomial")

    @property
    def matrix(self) -> Any:
        """Phi, of shape (m, d): an array or a sparse matrix. Large if it is not `kept`."""
        if self.has_sparse_columns:
            return sparse_matrix(self._codes, self.n_components)
        return self._array if self.kept else self._all_columns()

    @cached_property
    def _array(self) -> npt.NDArray[np.float32]:
        return self._all_columns()

    @cached_property
    def _double(self) -> Floats:
        """Phi turned and in double precision, for rows of double precision."""
        return self._array.T.astype(np.float64)

    def _all_columns(self) -> npt.NDArray[np.float32]:
        # Stored by columns, the order in which dense and sparse rows read it.
        columns = np.vstack([block.T for _, block in self._fresh_blocks()])
        if self.kind == "orthonormal":
            orthonormal = np.linalg.qr(columns.astype(np.float64))[0]
            columns = (orthonormal * math.sqrt(self.n_features / self.n_components)).astype(np.float32)
        return columns.T

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """Yield Phi in blocks of columns: the slice, and the block as an array."""
        if self.kept:
            width = max(1, _CHUNK // self.n_components)
            for start in range(0, self.n_features, width):
                columns = slice(start, min(start + width, self.n_features))
                if self.has_sparse_columns:
                    yield columns, sparse_matrix(self._codes[columns], self.n_components).toarray(order="F")
                else:
                    yield columns, self._array[:, columns]
            return
        waiting: list[np.ndarray] = []
        start = 0
        for columns, block in self._fresh_blocks():
            waiting.append(block.T)
            if (columns.stop - start) * self.n_components >= _CHUNK or columns.stop == self.n_features:
                yield slice(start, columns.stop), np.vstack(waiting).T
                start, waiting = columns.stop, []

    def apply(self, values: Any) -> np.ndarray:
        if values.dtype not in (np.float32, np.float64):
            values = values.astype(np.float64)
        out = np.empty((values.shape[0], self.n_components), dtype=values.dtype)
        if sparse.issparse(values) and self.has_sparse_columns:
            return project_sparse(values, self._codes, self.n_components, out)
        if sparse.issparse(values) and self.kept:
            out[...] = values @ self._array.T
            return out
        if self.kept and not self.has_sparse_columns:
            turned = self._array.T if values.dtype == np.float32 else self._double
            for start in range(0, len(values), _BLOCK_ROWS):
                rows = slice(start, start + _BLOCK_ROWS)
                np.matmul(values[rows], turned, out=out[rows])
            return out
        out[...] = 0
        by_columns = values.tocsc() if sparse.issparse(values) else values
        for columns, block in self.blocks():
            out += by_columns[:, columns] @ block.T
        return out

    @cached_property
    def gram(self) -> Floats:
        if self.has_sparse_columns:
            return code_gram(self._codes, self.n_components)
        total = np.zeros((self.n_components, self.n_components))
        for _, block in self.blocks():
            wide = block.astype(np.float64)
            total += wide @ wide.T
        return total

    def spectral_bound(self) -> float:
        """Return the largest singular value of this Phi, rounded up by a bound on all rounding errors."""
        gram, m = self.gram, self.n_components
        largest = linalg.eigvalsh(gram, subset_by_index=[m - 1, m - 1])[0]
        unit = np.finfo(np.float64).eps
        # Each entry of the Gram matrix is a sum of d products; the eigenvalue solver is backward stable.
        error = unit * (self.n_features + 2) * np.trace(gram) + 10 * m * unit * largest
        return float(math.sqrt(largest + error) * (1 + 4 * unit))

    def sparse_bound(self, n_nonzeros: int, delta: float = 0.0) -> float:
        """Bound the stretch of a vector with this number of non-zero values, rounded up."""
        m, d = self.n_components, self.n_features
        if self.kind == "gaussian":
            return support_stretch(m, d, n_nonzeros, delta)
        if not self.has_sparse_columns:
            raise ValueError(f"A projection of kind {self.kind!r} has no bound for sparse vectors. Use another kind.")
        n_bands = len(_bands(m))
        # Random columns may share all their rows.
        shared = degree_of(d, n_bands) if self.kind == "polynomial" else n_bands
        return coherent_stretch(min(n_nonzeros, d), n_bands, shared, entry_size(n_bands))

    def vocabulary_bound(self, vocabulary: np.ndarray) -> float:
        """Return the largest stretch of the distance of two rows of a public finite set, rounded up."""
        words = np.asarray(vocabulary, dtype=np.float64)
        images = self.apply(words)
        best = 0.0
        step = max(1, (1 << 21) // len(words))
        for start in range(0, len(words), step):
            block = slice(start, start + step)
            distance, noise = _squared_distances(words[block], words)
            image, image_noise = _squared_distances(images[block], images)
            # Recompute pairs whose distance is lost in rounding, or whose ratio may be the largest.
            clear = distance > noise / _PAIR_SLACK
            likely = np.full(distance.shape, np.inf)
            likely[clear] = (image[clear] + image_noise) / (distance[clear] - noise)
            reached = np.where(np.isfinite(likely), likely, 0).max(initial=best) * (1 - _PAIR_SLACK)
            rows, columns = np.nonzero(likely >= max(reached, best))
            for part in np.array_split(np.arange(len(rows)), 1 + len(rows) * words.shape[1] // (1 << 21)):
                difference = words[start + rows[part]] - words[columns[part]]
                squares = np.einsum("ij,ij->i", difference, difference)
                stretched = self.apply(difference[squares > 0])
                ratios = np.einsum("ij,ij->i", stretched, stretched) / squares[squares > 0]
                best = max(best, ratios.max(initial=0.0))
        if best == 0:
            raise ValueError("`vocabulary` must have at least two rows with different projections; got none.")
        return float(math.sqrt(best) * (1 + 1e-9))

    @cached_property
    def _codes(self) -> npt.NDArray[np.unsignedinteger]:
        m, blocks = self.n_components, []
        for part, stream in self._streams():
            n_columns = part.stop - part.start
            if self.kind == "sparse":
                blocks.append(draw_codes(stream, n_columns, m))
            else:
                blocks.append(_signed(stream, polynomial_rows(part.start, n_columns, m), m))
        return np.concatenate(blocks)

    def _streams(self) -> Iterator[tuple[slice, Noise]]:
        starts = range(0, self.n_features, _BLOCK_COLUMNS)
        for start, stream in zip(starts, public_stream(self.seed).spawn(len(starts)), strict=True):
            yield slice(start, min(start + _BLOCK_COLUMNS, self.n_features)), stream

    def _fresh_blocks(self) -> Iterator[tuple[slice, Any]]:
        for columns, stream in self._streams():
            n_columns = columns.stop - columns.start
            # Drawn as one row, so that a seed gives the same Phi.
            flat = gaussians(stream, (1, n_columns * self.n_components))
            yield columns, flat.reshape(n_columns, self.n_components).T / np.float32(math.sqrt(self.n_components))


def _squared_distances(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, float]:
    """Return squared distances of all pairs by a matrix product, and a bound on their rounding errors."""
    left_squares, right_squares = (np.einsum("ij,ij->i", side, side) for side in (left, right))
    distances = np.maximum(left_squares[:, None] + right_squares - 2 * (left @ right.T), 0)
    return distances, float(8 * np.finfo(np.float64).eps * left.shape[1] * (left_squares.max() + right_squares.max()))
