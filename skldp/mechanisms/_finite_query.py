"""Mechanisms with finitely many outputs over a finite domain, given by a table of probabilities."""

import hashlib
import json
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from skldp._arrays import Floats, Ints, Words, kind_of
from skldp._checks import check_integer
from skldp.mechanisms._noise import Noise


def read_only(values: np.ndarray) -> np.ndarray:
    values.flags.writeable = False
    return values


def output_index(output: Any, n_outputs: int) -> int:
    """Check that an output is the index of one."""
    check_integer("output", output, least=0, most=n_outputs - 1)
    return int(output)


_GRID_BITS = 53


@dataclass(frozen=True, eq=False)
class FiniteQuery:
    r"""Mechanism with finitely many outputs over a finite domain, given by its table.

    Make one with :meth:`from_probabilities`.

    Parameters
    ----------
    weights : array-like of int, shape (n_points, n_outputs)
        :math:`2^{53} P(\text{output} \mid \text{point})`; every row sums to :math:`2^{53}`. These integers are
        sampled, and `epsilon` is computed from them.

    Attributes
    ----------
    n_points, n_outputs : int
        Size of the table.
    epsilon : float
        The exact worst log-ratio of the table, rounded up.
    log_probabilities : ndarray of shape (n_points, n_outputs)
        Natural log of the probabilities.
    key : str
        SHA-256 of the content.

    Raises
    ------
    ValueError
        If the rows are not probabilities, or an output is possible only for some points.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.accounting import FiniteQuery
    >>> high = 0.4 + 0.2 * np.arange(11) / 10
    >>> query = FiniteQuery.from_probabilities(np.column_stack([1 - high, high]))
    >>> round(float(np.exp(query.epsilon)), 6)
    1.5
    """

    weights: Words

    def __post_init__(self) -> None:
        weights = np.array(self.weights, dtype=np.uint64)
        if weights.ndim != 2 or 0 in weights.shape or (weights > 2**_GRID_BITS).any():
            raise ValueError(f"weights must have shape (n_points, n_outputs); got {self.weights!r}.")
        if weights.shape[1] >= 2**10 or (weights.sum(axis=1) != 2**_GRID_BITS).any():
            raise ValueError(f"Every row of weights must sum to 2**{_GRID_BITS}; got {self.weights!r}.")
        impossible = weights == 0
        if (impossible.any(axis=0) & ~impossible.all(axis=0)).any():
            raise ValueError(f"An output must be possible for all points or for none; got {self.weights!r}.")
        object.__setattr__(self, "weights", read_only(weights))

    @classmethod
    def from_probabilities(cls, probabilities: npt.ArrayLike) -> "FiniteQuery":
        """Make a query from a table of probabilities, rounded to the grid of 2^-53.

        Parameters
        ----------
        probabilities : array-like of shape (n_points, n_outputs)
            Rows sum to 1 within 1e-9.
        """
        table = np.asarray(probabilities, dtype=np.float64)
        if table.ndim != 2 or table.size == 0 or not np.isfinite(table).all() or (table < 0).any():
            raise ValueError(f"probabilities must be a table of numbers >= 0; got {probabilities!r}.")
        if np.abs(table.sum(axis=1) - 1).max() > 1e-9:
            raise ValueError(f"Every row of probabilities must sum to 1; got {probabilities!r}.")
        weights = np.round(table * 2.0**_GRID_BITS).astype(np.int64)
        # The largest entry of a row takes the rounding error: there it is the smallest change of a logarithm.
        rows = np.arange(len(table))
        weights[rows, weights.argmax(axis=1)] += 2**_GRID_BITS - weights.sum(axis=1)
        return cls(weights.astype(np.uint64))

    @property
    def n_points(self) -> int:
        """Number of points of the domain."""
        return int(self.weights.shape[0])

    @property
    def n_outputs(self) -> int:
        """Number of different outputs."""
        return int(self.weights.shape[1])

    @property
    def output_values(self) -> tuple[int, ...]:
        """The outputs are their own indices."""
        return tuple(range(self.n_outputs))

    @cached_property
    def log_probabilities(self) -> Floats:
        """Log-probability of each output (column) for each point (row)."""
        with np.errstate(divide="ignore"):
            return read_only(np.log(self.weights.astype(np.float64)) - _GRID_BITS * math.log(2))

    @cached_property
    def epsilon(self) -> float:
        """The worst log-ratio of two points' probabilities of one output, rounded up."""
        possible = self.weights[:, (self.weights > 0).any(axis=0)].astype(np.float64)
        worst = float((possible.max(axis=0) / possible.min(axis=0)).max())
        return math.log(worst) * (1 + 2.0**-50) + 2.0**-51 if worst > 1 else 0.0

    @property
    def exact_epsilon(self) -> float:
        """The same as `epsilon`, which the sampled integers give."""
        return self.epsilon

    @cached_property
    def key(self) -> str:
        """SHA-256 of the content, in hexadecimal."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def to_json(self) -> str:
        """Return the query as JSON."""
        return json.dumps({"kind": "finite", "weights": self.weights.tolist()}, separators=(",", ":"))

    def log_likelihood(self, output: int, points: npt.ArrayLike) -> Floats:
        """Return the log-probability of an output, given indices into the domain.

        Parameters
        ----------
        output : int
            Index of the output.
        points : array-like of int
            Indices into the domain.
        """
        index = _whole_numbers(points)
        if ((index < 0) | (index >= self.n_points)).any():
            raise ValueError(f"points must be indices from 0 to {self.n_points - 1}; got some that are not.")
        return cast("Floats", self.log_probabilities[index, output_index(output, self.n_outputs)])

    def sample(self, points: npt.ArrayLike, noise: Noise) -> Ints:
        """Return a random output for each index into the domain; an index outside counts as the nearest inside.

        Parameters
        ----------
        points : array-like of int
            Indices into the domain.
        noise : Noise
            Source of randomness.
        """
        # An error would reveal, at no cost, that a person's index is outside.
        index = np.clip(_whole_numbers(points), 0, self.n_points - 1).astype(np.intp)
        below = self.weights.cumsum(axis=1)[index]
        words = noise.words(len(below)) >> np.uint64(64 - _GRID_BITS)
        return cast("Ints", (words[:, None] >= below).sum(axis=1))


def _whole_numbers(points: npt.ArrayLike) -> npt.NDArray[np.integer]:
    index = np.asarray(points)
    if index.ndim != 1 or index.dtype.kind not in "iu":
        raise ValueError(f"points must be a vector of integers; got {kind_of(index)}.")
    return index
