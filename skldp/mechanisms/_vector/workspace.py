"""Working arrays that all blocks of one call share."""

import math

import numpy as np
import numpy.typing as npt

__all__ = ["Scratch"]


class Scratch:
    """Arrays by name, kept from one block to the next.

    Memory that is allocated anew for every block is cleared by the operating system page by page, which can take as
    long as the release itself.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms._vector.workspace import Scratch
    >>> scratch = Scratch()
    >>> first = scratch.take("unit", (2, 3), np.float32)
    >>> np.shares_memory(first, scratch.take("unit", (1, 3), np.float32))
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
