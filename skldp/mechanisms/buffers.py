"""Arrays that the steps of one release write into, block after block."""

import numpy as np
import numpy.typing as npt

__all__ = ["Buffers"]

# An index takes eight bytes, as much as all other arrays together: it is made piece by piece.
_PIECE = 131_072


class Buffers:
    """Working arrays, one block long, that all blocks of one call share.

    Parameters
    ----------
    size : int
        Numbers in a block.
    code_dtype : dtype
        Of the codes.

    Attributes
    ----------
    codes : ndarray of `code_dtype`, shape (size,)
    words, mask : ndarray of uint16, shape (size,)
    signed : ndarray of int16, shape (size,)
    flags : ndarray of bool, shape (size,)
    index : ndarray of intp, at most of shape (131072,)
        What a table is looked up with, piece by piece; `take` would copy indices of another type to a new array.
    """

    def __init__(self, size: int, code_dtype: npt.DTypeLike) -> None:
        self.codes = np.empty(size, dtype=code_dtype)
        self.words = np.empty(size, dtype=np.uint16)
        self.mask = np.empty(size, dtype=np.uint16)
        self.signed = np.empty(size, dtype=np.int16)
        self.flags = np.empty(size, dtype=bool)
        self.index = np.empty(min(size, _PIECE), dtype=np.intp)

    def of(self, size: int) -> "Buffers":
        """The same buffers, `size` long."""
        if size == self.codes.size:
            return self
        shorter = object.__new__(Buffers)
        shorter.__dict__ = {name: buffer[:size] for name, buffer in vars(self).items()}
        return shorter

    def look_up(self, table: np.ndarray, places: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Fill `out` with ``table[places]``, for places within the table, or below 0 and counted from its end."""
        for start in range(0, places.size, self.index.size):
            piece = slice(start, start + self.index.size)
            index = self.index[: places[piece].size]
            np.copyto(index, places[piece], casting="unsafe")
            # The mode matters for its speed alone: no index is further out of range.
            table.take(index, out=out[piece], mode="wrap")
        return out
