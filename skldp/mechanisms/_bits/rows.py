"""Walk over rows block by block, move them into the domain, and draw which features a record releases."""

import math
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skldp._untold import as_numbers
from skldp.mechanisms._bits.buffers import Buffers
from skldp.mechanisms._bits.kernels import CompiledBuffers, compiled_loops
from skldp.mechanisms._domain import round_inward
from skldp.mechanisms._noise import Noise

__all__ = ["NOT_FINITE", "Inside", "RowRelease", "into_bounds"]

# Numbers in one block. Each step over them is long enough for other threads to run meanwhile; the working arrays, nine
# bytes a number (13 with compiled steps), still stay in a third-level cache. Releases of less than one block take a
# millisecond, for which numba is not imported.
_BLOCK = 262_144
# Numbers that a block is taken from, of which a few may be released.
_MOST_READ = 2_097_152


NOT_FINITE = "values must be finite. Got NaN or infinity instead."


class Inside(NamedTuple):
    """Rows within bounds.

    Parameters
    ----------
    rows : ndarray of shape (n, n_features)
    extent : float
        The largest magnitude among them.
    n_moved : int
        How many values were moved into the bounds.
    """

    rows: np.ndarray
    extent: float
    n_moved: int


def into_bounds(rows: np.ndarray, low: npt.NDArray[np.float64], high: npt.NDArray[np.float64]) -> Inside:
    """Move what lies outside to the nearest bound.

    Parameters
    ----------
    rows : ndarray of shape (n, n_features)
        Returned as they are where nothing is to be moved, and never written to.
    low, high : ndarray of shape (n_features,)

    Returns
    -------
    Inside

    Raises
    ------
    ValueError
        If a value is NaN or infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms._bits.rows import into_bounds
    >>> into_bounds(np.array([[0.5, -9.0]]), np.zeros(2), np.ones(2))
    Inside(rows=array([[0.5, 0. ]]), extent=0.5, n_moved=1)
    """
    # Both are NaN if any value is.
    lowest, highest = float(rows.min(initial=math.inf)), float(rows.max(initial=-math.inf))
    if not (-math.inf < lowest and highest < math.inf):
        raise ValueError(NOT_FINITE)
    # Two passes over numbers in the cache spare most blocks the clipping, which takes several times as long.
    if low.max() <= lowest and highest <= high.min():
        return Inside(rows, max(-lowest, highest), 0)
    inner_low, inner_high = round_inward(low, high, rows.dtype)
    if (inner_low == inner_low[0]).all() and (inner_high == inner_high[0]).all():
        inner_low, inner_high = inner_low[0], inner_high[0]
    inside = np.clip(rows, inner_low, inner_high, out=np.empty(rows.shape, dtype=rows.dtype))
    extent = max(-float(inside.min(initial=math.inf)), float(inside.max(initial=-math.inf)))
    return Inside(inside, extent, int(np.count_nonzero(inside != rows)))


class RowRelease:
    """What the releases of rows share. A subclass is a frozen dataclass with the fields below and ``_release``.

    Parameters
    ----------
    low, high : ndarray of shape (n_features,)
        The declared domain.
    n_released : int or None
        Features released per record, drawn anew for each one without regard to the data. None is all.
    """

    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    n_released: int | None

    def __getstate__(self) -> dict[str, Any]:
        # Tables are made again where they are needed: what is pickled says what the mechanism is, and no more.
        # Only the subclasses are dataclasses, which no type can say here.
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    @property
    def n_outputs(self) -> int:
        """Columns of a release."""
        return len(self.low)

    @property
    def n_drawn(self) -> int:
        """Features released per record, as a number."""
        return self.n_outputs if self.n_released is None else self.n_released

    def sample(self, values: npt.ArrayLike, noise: Noise, out: np.ndarray | None = None) -> np.ndarray:
        """Release rows.

        Parameters
        ----------
        values : array-like of shape (n, n_features), float32 or float64
            Finite; what lies outside the domain is clipped.
        noise : Noise
        out : ndarray of the same shape, default=None
            Where to write; what is released is rounded to its dtype.

        Returns
        -------
        ndarray of shape (n, n_features)

        Raises
        ------
        ValueError
            If a value is NaN or infinite, or the shape is another.
        """
        x = self._check(values)
        if out is not None and out.shape != x.shape:
            raise ValueError(f"out must have the shape of values, {x.shape}. Got {out.shape} instead.")
        if out is not None and out.flags.carray and out.dtype == x.dtype:
            self.sample_into(x, noise, out)
            return out
        released = np.empty(x.shape, dtype=x.dtype)
        self.sample_into(x, noise, released)
        if out is None:
            return released
        np.copyto(out, released, casting="same_kind")
        return out

    def sample_into(self, rows: np.ndarray, noise: Noise, released: np.ndarray) -> int:
        """Release rows as :meth:`sample` does, and count the values that lay outside the domain.

        Parameters
        ----------
        rows : ndarray of shape (n, n_features), float32 or float64
            Never written to.
        noise : Noise
        released : ndarray of the same shape and dtype
            C-contiguous, aligned and writeable; overwritten.

        Returns
        -------
        int

        Raises
        ------
        ValueError
            If a value is NaN or infinite, or `released` is not as described.
        """
        if rows.shape != released.shape or rows.shape[1:] != (self.n_outputs,):
            raise ValueError(f"out must have the shape of values, (n, {self.n_outputs}). Got {released.shape} instead.")
        if not (released.flags.carray and released.dtype == rows.dtype):
            raise ValueError(
                f"out must be a writeable, aligned and C-contiguous array of {rows.dtype}. Got one of "
                f"{released.dtype}, with strides {released.strides} and writeable={released.flags.writeable}, instead."
            )
        step = max(1, min(_BLOCK // self.n_drawn, _MOST_READ // self.n_outputs))
        buffers = self._make_buffers(min(step, len(rows)), len(rows))
        n_outside = 0
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            n_outside += self._release_rows(
                rows[part], noise, released[part], buffers.of(len(rows[part]) * self.n_drawn)
            )
        return n_outside

    def bias(self, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Mean of the released number minus the value, for values of shape (n, n_features)."""
        return self._moments(values)[0] - as_numbers(values)

    def variance(self, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Variance of the released number, for values of shape (n, n_features)."""
        mean, square = self._moments(values)
        return square - mean**2

    def _make_buffers(self, n_at_once: int, n_rows: int) -> Buffers:
        loops = compiled_loops() if n_rows * self.n_drawn >= _BLOCK else None
        if loops is None:
            return Buffers(n_at_once * self.n_drawn, self._code_dtype)
        return CompiledBuffers(n_at_once * self.n_drawn, self._code_dtype, loops)

    def _release_rows(self, rows: np.ndarray, noise: Noise, released: np.ndarray, buffers: Buffers) -> int:
        """Release the rows of one block, and count the values that lay outside the domain."""
        inside = into_bounds(rows, self.low, self.high)
        if self.n_drawn == self.n_outputs:
            self._release(inside, None, noise, released, buffers)
        else:
            self._sample_features(inside, noise, released, buffers)
        return inside.n_moved

    def _sample_features(self, inside: Inside, noise: Noise, out: np.ndarray, buffers: Buffers) -> None:
        columns = noise.subsets(len(inside.rows), self.n_outputs, self.n_drawn)
        places = columns + np.arange(len(inside.rows))[:, None] * self.n_outputs
        chosen = inside.rows.reshape(-1).take(places)
        released = np.empty_like(chosen)
        self._release(inside._replace(rows=chosen), columns, noise, released, buffers)
        scale = self.n_outputs / self.n_drawn
        # What is not released stands at the centre, and the rest is scaled away from it: the mean stays what it was.
        centre = self._centre.astype(out.dtype)
        out[:] = centre
        released -= centre[columns]
        released *= released.dtype.type(scale)
        released += centre[columns]
        out.reshape(-1)[places] = released

    def _check(self, values: npt.ArrayLike) -> np.ndarray:
        x = np.asarray(values)
        if x.dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
            x = as_numbers(values)
        if x.ndim != 2 or x.shape[1] != self.n_outputs:
            raise ValueError(f"values must have the shape (n, {self.n_outputs}). Got {x.shape} instead.")
        return x

    def _check_domain(self) -> None:
        if not 1 <= self.n_drawn <= self.n_outputs:
            raise ValueError(
                f"n_released must be from 1 to {self.n_outputs}, the number of features. "
                f"Got {self.n_released!r} instead."
            )

    @property
    def _centre(self) -> npt.NDArray[np.float64]:
        return np.zeros(self.n_outputs)

    @property
    def _code_dtype(self) -> np.dtype:
        raise NotImplementedError

    def _release(
        self, inside: Inside, columns: np.ndarray | None, noise: Noise, out: np.ndarray, buffers: Buffers
    ) -> None:
        """Release numbers of the domain, which are not to be overwritten."""
        raise NotImplementedError

    def _moments(self, values: npt.ArrayLike) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Mean and mean square of the output."""
        raise NotImplementedError
