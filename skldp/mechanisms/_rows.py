"""The contract of every mechanism that releases rows, and the sampling of some of a row's features."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from skldp._arrays import kind_of
from skldp._checks import is_whole
from skldp.mechanisms._domain import Domain
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise

__all__ = ["Release", "RowMechanism", "SampledFeatures", "Workspace"]

# Blocks that share one stream of noise hold about this many numbers. Fixed, so that a seeded result does not depend on
# the number of threads.
_TASK_CELLS = 1 << 21
# Numbers of a block that are read or written, of which a few may be worked on.
_MOST_READ = 1 << 21
# An index takes eight bytes, as much as all other arrays together: it is made piece by piece.
_PIECE = 131_072


class Workspace:
    """Working arrays by name, kept from one block to the next.

    Memory that is allocated anew for every block is cleared by the operating system page by page, which can take as
    long as the release itself.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms._rows import Workspace
    >>> workspace = Workspace()
    >>> first = workspace.take("unit", (2, 3), np.float32)
    >>> np.shares_memory(first, workspace.take("unit", (1, 3), np.float32))
    True
    """

    def __init__(self) -> None:
        self._arrays: dict[str, np.ndarray] = {}

    def take(self, name: str, shape: tuple[int, ...], dtype: npt.DTypeLike) -> np.ndarray:
        """The array of this name, of whatever content; what was taken under the name before is overwritten."""
        size = math.prod(shape)
        kept = self._arrays.get(name)
        if kept is None or kept.size < size or kept.dtype != dtype:
            kept = self._arrays[name] = np.empty(size, dtype=dtype)
        return kept[:size].reshape(shape)

    def look_up(self, table: np.ndarray, places: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Fill `out` with ``table[places]``, for places within the table, or below 0 and counted from its end."""
        # `take` would copy indices of another type to a new array.
        index = self.take("index", (min(places.size, _PIECE),), np.intp)
        for start in range(0, places.size, _PIECE):
            piece = slice(start, start + _PIECE)
            some = index[: places[piece].size]
            np.copyto(some, places[piece], casting="unsafe")
            # The mode matters for its speed alone: no index is further out of range.
            table.take(some, out=out[piece], mode="wrap")
        return out


class Release(NamedTuple):
    """What was released, and how much of it had to be moved.

    Parameters
    ----------
    rows : ndarray of shape (n, n_outputs)
    n_moved : int
        How many values of the input lay outside the domain. To be seen where the rows are, and by nobody else.
    """

    rows: np.ndarray
    n_moved: int


@dataclass(frozen=True)
class RowMechanism(ABC):
    """A mechanism that releases every row on its own. A subclass is a frozen dataclass.

    It says its `domain`, its `n_outputs` and its `guarantee`, and has two hooks, ``_encode`` and ``_draw``, which are
    handed one block of rows at a time, inside the domain.

    Attributes
    ----------
    block_cells : int
        Numbers in one block: small enough for the working arrays to stay in the cache.
    """

    block_cells: ClassVar[int] = 32_768

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """What a row may be; what lies outside is moved into it."""

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """Columns of a release."""

    @property
    def block_width(self) -> int:
        """How many numbers of a row are worked on at a time."""
        return max(self.domain.n_features, self.n_outputs)

    @cached_property
    def rows_per_block(self) -> int:
        """Rows of one block."""
        most = _MOST_READ // max(self.domain.n_features, self.n_outputs)
        return max(1, min(self.block_cells // self.block_width, most))

    def tasks(self, n_rows: int) -> list[slice]:
        """Cut rows into tasks for threads, each of which has a stream of noise of its own: ``noise.split(tasks)``."""
        step = self.rows_per_block * max(1, _TASK_CELLS // self.block_cells)
        return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]

    @abstractmethod
    def guarantee(self) -> PrivacyGuarantee:
        """The exact guarantee of one row."""

    @property
    def zcdp(self) -> Fraction | None:
        r"""The :math:`\rho` of zero-concentrated privacy of one row, where it is known and no epsilon is finite."""
        return None

    def release(self, rows: npt.ArrayLike, noise: Noise, out: np.ndarray | None = None) -> Release:
        """Release every row with fresh noise.

        Parameters
        ----------
        rows : array-like of shape (n, n_features)
            Never written to. float32 and float64 keep their type; other numbers become float64.
        noise : Noise
        out : ndarray of shape (n, n_outputs), default=None
            Where to write; of a type that the released numbers can be rounded to, and codes written to as they are.
            Must not overlap `rows`.

        Returns
        -------
        Release
            The released rows, which are `out` where it was given, and how many values were moved into the domain.

        Raises
        ------
        ValueError
            If a value is NaN or infinite, or a shape or the type of `out` is another. What stands in `out` then is to
            be thrown away.
        """
        return self._walk(rows, noise, out)

    def encode(self, rows: npt.ArrayLike, out: np.ndarray | None = None) -> Release:
        """Represent rows as a release does, within the domain and without noise: this protects nothing.

        Parameters
        ----------
        rows : array-like of shape (n, n_features)
        out : ndarray of shape (n, n_outputs), default=None

        Returns
        -------
        Release
        """
        return self._walk(rows, None, out)

    def original_second_moment(
        self, second_moment: npt.NDArray[np.float64], mean: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        r"""Undo what the law does to the second moment: from the mean of :math:`z z^\top` to that of :math:`x x^\top`.

        Parameters
        ----------
        second_moment : ndarray of shape (n_outputs, n_outputs)
            Of released rows.
        mean : ndarray of shape (n_outputs,)
            Of the same released rows.

        Returns
        -------
        ndarray of shape (n_outputs, n_outputs)
            Unbiased for the rows inside the domain.

        Raises
        ------
        ValueError
            If the law of a release does not depend on the second moment, so that nothing can be told about it.
        """
        raise ValueError(f"{type(self).__name__} does not identify the second moments of what it releases.")

    def output_dtype(self, dtype: np.dtype) -> np.dtype:
        """The type of a release of rows of a type."""
        return dtype

    @abstractmethod
    def _encode(self, rows: np.ndarray, out: np.ndarray, workspace: Workspace) -> None:
        """Write to `out`, without noise, what a release of a block of rows stands for."""

    @abstractmethod
    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        """Release one block.

        Parameters
        ----------
        rows : ndarray of shape (n, n_features)
            Inside the domain; must not be written to.
        noise : Noise
            Every draw belongs to the rows in their order, as many words to each row; a draw for a few numbers alone is
            taken from ``noise.at(places, size)``. So that noise may be bound to rows, see
            ``RowNoise``.
        out : ndarray of shape (n, n_outputs)
            C-contiguous, of ``output_dtype`` of the rows' type; overwritten.
        workspace : Workspace
        """

    def _as_rows(self, rows: npt.ArrayLike) -> np.ndarray:
        """The rows as an array that the domain takes; sparse where a mechanism says so."""
        return self.domain.as_rows(rows)

    def _walk(self, given: npt.ArrayLike, noise: Noise | None, out: np.ndarray | None) -> Release:
        rows = self._as_rows(given)
        n_features = self.domain.n_features
        if rows.ndim != 2 or rows.shape[1] != n_features:
            raise ValueError(f"rows must have the shape (n, {n_features}). Got {kind_of(rows)} instead.")
        dtype = self.output_dtype(rows.dtype)
        if out is None:
            out = np.empty((rows.shape[0], self.n_outputs), dtype=dtype)
        elif out.shape != (rows.shape[0], self.n_outputs) or not out.flags.writeable:
            shape = (rows.shape[0], self.n_outputs)
            raise ValueError(f"out must be writeable and have the shape {shape}. Got {kind_of(out)} instead.")
        # Before a value is looked at. A code that does not fit into a shorter integer would become another one.
        rule: Literal["safe", "same_kind"] = "safe" if {dtype.kind, out.dtype.kind} <= {"i", "u"} else "same_kind"
        if not np.can_cast(dtype, out.dtype, rule):
            raise ValueError(f"out must be of a type that {dtype} can be written to. Got {kind_of(out)} instead.")
        step, workspace, n_moved = self.rows_per_block, Workspace(), 0
        whole = rows.shape[0] <= step
        direct = out.flags.carray and out.dtype == dtype
        # What numpy would warn of, such as a sum that overflows, is a fact about values.
        with np.errstate(all="ignore"):
            for start in range(0, rows.shape[0], step):
                part = slice(start, start + step)
                # A slice of a sparse matrix is a copy.
                inside = self.domain.clip(rows if whole else rows[part])
                n_moved += inside.n_moved
                block = out[part] if direct else workspace.take("out", out[part].shape, dtype)
                if noise is None:
                    self._encode(inside.rows, block, workspace)
                else:
                    self._draw(inside.rows, noise if whole else noise.block(part), block, workspace)
                if not direct:
                    np.copyto(out[part], block, casting="same_kind")
        return Release(out, n_moved)

    def __getstate__(self) -> dict[str, Any]:
        # Tables are made again where they are needed: what is pickled says what the mechanism is, and no more.
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        # A pickle forgets that nobody may change them.
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False


@dataclass(frozen=True, kw_only=True)
class SampledFeatures(RowMechanism):
    r"""Base of the mechanisms that release `n_sampled` features k of a row's d, chosen anew for each row.

    A subclass is a frozen dataclass with a field `n_sampled` and the hooks ``_draw_features`` and ``_encode``. What is
    not chosen stands at the `center`; what is chosen is scaled away from it, which keeps the mean:

    .. math:: z_j = c_j + \frac{d}{k} (M(x_j) - c_j) \text{ where j is chosen, else } z_j = c_j.
    """

    n_sampled: int

    def __post_init__(self) -> None:
        n_features = self.domain.n_features
        if not is_whole(self.n_sampled) or not 1 <= self.n_sampled <= n_features:
            raise ValueError(
                f"n_sampled must be from 1 to {n_features}, the number of features. Got {self.n_sampled!r} instead."
            )

    @cached_property
    def n_outputs(self) -> int:
        """The number of features."""
        return self.domain.n_features

    @cached_property
    def center(self) -> npt.NDArray[np.float64] | None:
        """What stands for the features that are not chosen, shape (n_features,); None is 0."""
        return None

    @property
    def block_width(self) -> int:
        """How many numbers of a row are worked on at a time."""
        return self.n_sampled

    def original_second_moment(
        self, second_moment: npt.NDArray[np.float64], mean: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """Undo the chance of two features to be chosen together, and what the law does to one alone."""
        d, k = self.n_outputs, self.n_sampled
        if d > 1 and k == 1:
            raise ValueError(
                "One feature of a row at a time tells nothing about products. n_sampled must be at least 2."
            )
        center = np.zeros(d) if self.center is None else self.center
        # About the center, where what is not chosen is 0.
        about = second_moment - np.outer(center, mean) - np.outer(mean, center) + np.outer(center, center)
        squares = self._original_squares(np.diag(about) * (k / d))
        about = about * (1.0 if d == 1 else k * (d - 1) / (d * (k - 1)))
        np.fill_diagonal(about, squares)
        return about + np.outer(center, mean) + np.outer(mean, center) - np.outer(center, center)

    def _original_squares(self, squares: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """From the mean of (M(x) - c)^2 of every feature to that of (x - c)^2, or ValueError where it does not tell."""
        raise ValueError(f"{type(self).__name__} does not identify the squares of what it releases.")

    def working_dtype(self, dtype: np.dtype) -> np.dtype:
        """The type in which features are released, before they are rounded to the type of the output."""
        return dtype

    @abstractmethod
    def _draw_features(
        self,
        values: np.ndarray,
        features: npt.NDArray[np.int64] | None,
        noise: Noise,
        out: np.ndarray,
        workspace: Workspace,
    ) -> None:
        """Release chosen numbers, less their centers.

        Parameters
        ----------
        values : ndarray of shape (n, n_sampled)
            Inside the domain; must not be written to.
        features : ndarray of int of the same shape, or None
            Which feature each number is; None is every feature in its order.
        noise, workspace
            As for ``_draw``.
        out : ndarray of the same shape
            C-contiguous, of the working type; overwritten.
        """

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        d, k = self.n_outputs, self.n_sampled
        dtype = self.working_dtype(out.dtype)
        center = self.center
        if center is not None:
            center = center.astype(dtype, copy=False)
        if k == d:
            released = out if out.dtype == dtype else workspace.take("sampled", out.shape, dtype)
            self._draw_features(rows, None, noise, released, workspace)
            if center is not None:
                released += center
            if released is not out:
                out[...] = released
            return
        released = workspace.take("sampled", (len(rows), k), dtype)
        features = noise.subsets(len(rows), d, k)
        places = features + np.arange(len(rows))[:, None] * d
        values = np.ascontiguousarray(rows).reshape(-1).take(places)
        self._draw_features(values, features, noise, released, workspace)
        released *= dtype.type(d / k)
        if center is None:
            out[...] = 0
        else:
            released += center[features]
            out[...] = center
        out.reshape(-1)[places] = released
