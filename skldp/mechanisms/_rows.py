"""Base class of mechanisms that release rows, and of those that sample some features of a row."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from skldp._arrays import Floats, Ints, kind_of
from skldp._checks import check_integer
from skldp.domains._domain import Domain
from skldp.laws._integers import IntegerLaw
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise

# Numbers in the blocks that share one stream of noise. Fixed, so that a seeded result does not depend on the number of
# threads.
_TASK_CELLS = 1 << 21
# Largest number of values that a block reads or writes.
_MOST_READ = 1 << 21
# Eight-byte indices are made in pieces of this size: they take as much memory as all other arrays together.
_PIECE = 131_072


class Workspace:
    """Working arrays by name, kept from one block to the next, since new memory is cleared page by page."""

    def __init__(self) -> None:
        self._arrays: dict[str, np.ndarray] = {}

    def take(self, name: str, shape: tuple[int, ...], dtype: npt.DTypeLike) -> np.ndarray:
        """Return the array of this name; its previous content is overwritten."""
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
            # "wrap" is the fastest mode; no index is out of range.
            table.take(some, out=out[piece], mode="wrap")
        return out


class Release(NamedTuple):
    """Released rows, and the number of values moved into the domain, which depends on raw data: do not pass it on."""

    rows: np.ndarray
    n_moved: int


@dataclass(frozen=True)
class RowMechanism(ABC):
    """Mechanism that releases every row independently. Subclasses are frozen dataclasses.

    A subclass defines `domain`, `n_outputs` and `guarantee`, and the hook ``_draw``, which takes one block of rows
    within the domain at a time. Its hook ``_encode`` writes the rows themselves unless it is overridden.

    Attributes
    ----------
    block_cells : int
        Numbers in one block: small enough for the working arrays to stay in the cache.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms import Laplace, RowMechanism, noise_from
    >>> isinstance(Laplace(1.0), RowMechanism), Laplace(1.0).release(np.zeros((3, 1)), noise_from()).rows.shape
    (True, (3, 1))
    """

    block_cells: ClassVar[int] = 32_768
    # Whether the integer law is of places within declared bounds.
    has_bounds: ClassVar[bool] = False
    # Type of every release; None is that of the rows.
    released_dtype: ClassVar[np.dtype | None] = None

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """Set of valid rows; a row outside is moved into it."""

    @property
    def n_outputs(self) -> int:
        """Columns of a release; by default as many as features."""
        return self.domain.n_features

    @property
    def block_width(self) -> int:
        """Numbers of a row that are processed at a time."""
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
        """Return the exact guarantee of one row."""

    @property
    def integer_law(self) -> IntegerLaw:
        """The law that is sampled, by its integers alone: the same probabilities, to the last bit.

        If the rows have bounds, it is the law of places in [-1, 1].

        Raises
        ------
        ValueError
            If the mechanism has no such law.
        """
        raise ValueError(f"A mechanism of unbounded noise or a single answer has no integer law; got {self!r}.")

    @property
    def device_law(self) -> IntegerLaw:
        """The law that a device samples: `integer_law`, or for PrivUnit the one of about its variance.

        Raises ValueError as `integer_law`, or if the law is too large for a device.
        """
        law = self.integer_law
        law.check_size()
        return law

    @property
    def code_counts(self) -> tuple[int, int, int]:
        """Number of codes, and the counts out of 2^64 of another code and of the own one, or 0 if it has the rest."""
        raise ValueError(
            "The mechanism of a `part` must be randomized response to one code, or a unary encoding by 'sue' or 'oue'; "
            f"got {type(self).__name__}, which counts in full without `part`."
        )

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
            Source of randomness, by :func:`noise_from`.
        out : ndarray of shape (n, n_outputs), default=None
            Output array, of a type that holds codes exactly and numbers after rounding. Must not overlap `rows`.

        Returns
        -------
        Release
            The released rows, which are `out` if given, and the number of values moved into the domain.

        Raises
        ------
        ValueError
            If a value is NaN or infinite, or a shape or the type of `out` is wrong. The content of `out` is then
            undefined.
        """
        return self._walk(rows, noise, out)

    def encode(self, rows: npt.ArrayLike, out: np.ndarray | None = None) -> Release:
        """Return rows as a release does, clipped to the domain and without noise. This protects nothing.

        Parameters
        ----------
        rows : array-like of shape (n, n_features)
            Never written to.
        out : ndarray of shape (n, n_outputs), default=None
            As of :meth:`release`.
        """
        return self._walk(rows, None, out)

    def original_second_moment(self, second_moment: Floats, mean: Floats) -> Floats:
        r"""Convert the mean of :math:`z z^\top` of released rows to that of :math:`x x^\top` of the rows, without bias.

        Parameters
        ----------
        second_moment : ndarray of shape (n_outputs, n_outputs)
            Second moment of released rows.
        mean : ndarray of shape (n_outputs,)
            Mean of the same rows.

        Returns
        -------
        ndarray of shape (n_outputs, n_outputs)
            Unbiased for the rows inside the domain.

        Raises
        ------
        ValueError
            If the law of a release does not identify the second moment.
        """
        raise ValueError(f"{type(self).__name__} does not identify the second moments of what it releases.")

    def output_dtype(self, dtype: np.dtype) -> np.dtype:
        """Return the type of a release of rows of a type."""
        return dtype if self.released_dtype is None else self.released_dtype

    def _encode(self, rows: np.ndarray, out: np.ndarray, workspace: Workspace) -> None:
        """Write the noise-free encoding of a block of rows to `out`: by default the rows."""
        out[...] = rows

    @abstractmethod
    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        """Release one block: `rows` (n, n_features) into `out` (n, n_outputs)."""

    def _as_rows(self, rows: npt.ArrayLike) -> np.ndarray:
        """Return the rows as an array that the domain takes; some mechanisms take sparse rows."""
        return self.domain.as_rows(rows)

    def _precise(self, rows: Any) -> Any:
        """Return a block of rows in the precision in which it is clipped and encoded: by default its own."""
        return rows

    def _inside(self, values: npt.ArrayLike) -> np.ndarray:
        """Return values of any shape, clipped to the domain; raises ValueError for invalid ones."""
        return self.domain.clip(self.domain.as_rows(values)).rows

    def _walk(self, given: npt.ArrayLike, noise: Noise | None, out: np.ndarray | None) -> Release:
        rows = self._as_rows(given)
        n_features = self.domain.n_features
        if rows.ndim != 2 or rows.shape[1] != n_features:
            raise ValueError(f"rows must have the shape (n, {n_features}); got {kind_of(rows)}.")
        dtype = self.output_dtype(rows.dtype)
        if out is None:
            out = np.empty((rows.shape[0], self.n_outputs), dtype=dtype)
        elif out.shape != (rows.shape[0], self.n_outputs) or not out.flags.writeable:
            shape = (rows.shape[0], self.n_outputs)
            raise ValueError(f"out must be writeable and have the shape {shape}; got {kind_of(out)}.")
        # Before any value is read: a code that does not fit a shorter integer would become another code.
        rule: Literal["safe", "same_kind"] = "safe" if {dtype.kind, out.dtype.kind} <= {"i", "u"} else "same_kind"
        if not np.can_cast(dtype, out.dtype, rule):
            raise ValueError(f"out must be of a type that {dtype} can be written to; got {kind_of(out)}.")
        step, workspace, n_moved = self.rows_per_block, Workspace(), 0
        whole = rows.shape[0] <= step
        direct = out.flags.carray and out.dtype == dtype
        # numpy's warnings, such as that of an overflow, would reveal values.
        with np.errstate(all="ignore"):
            for start in range(0, rows.shape[0], step):
                part = slice(start, start + step)
                # A slice of a sparse matrix is a copy.
                inside = self.domain.clip(self._precise(rows if whole else rows[part]))
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
        # Cached tables are not pickled.
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        # Unpickled arrays are writeable.
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False


@dataclass(frozen=True, kw_only=True)
class SampledFeatures(RowMechanism):
    """Base class that releases z_j = c_j + (d / k) (M(x_j) - c_j) for `n_sampled` of d features, and c_j for others."""

    n_sampled: int

    def __post_init__(self) -> None:
        check_integer("n_sampled", self.n_sampled, least=1, most=self.domain.n_features)

    @cached_property
    def center(self) -> Floats | None:
        """Release of the features that are not chosen, shape (n_features,); None is 0."""
        return None

    @property
    def block_width(self) -> int:
        return self.n_sampled

    def original_second_moment(self, second_moment: Floats, mean: Floats) -> Floats:
        """Correct for the chance that two features are sampled together, and for the law of one feature."""
        d, k = self.n_outputs, self.n_sampled
        if d > 1 and k == 1:
            raise ValueError("`n_sampled` must be at least 2 to identify products of features; got 1.")
        center = np.zeros(d) if self.center is None else self.center
        # Moments about the center, where features that are not chosen are 0.
        about = second_moment - np.outer(center, mean) - np.outer(mean, center) + np.outer(center, center)
        squares = self._original_squares(np.diag(about) * (k / d))
        about = about * (1.0 if d == 1 else k * (d - 1) / (d * (k - 1)))
        np.fill_diagonal(about, squares)
        return about + np.outer(center, mean) + np.outer(mean, center) - np.outer(center, center)

    def _original_squares(self, squares: Floats) -> Floats:
        """Convert the mean of (M(x) - c)^2 of every feature to that of (x - c)^2, or raise ValueError."""
        raise ValueError(f"{type(self).__name__} does not identify the squares of what it releases.")

    def working_dtype(self, dtype: np.dtype) -> np.dtype:
        """Return the type in which features are released, before they are rounded to the type of the output."""
        return dtype

    @abstractmethod
    def _draw_features(
        self, values: np.ndarray, features: Ints | None, noise: Noise, out: np.ndarray, workspace: Workspace
    ) -> None:
        """Release chosen numbers (n, n_sampled), less their centers."""

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
