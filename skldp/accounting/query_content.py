"""What all kinds of queries share: read-only content, its key, and outputs known by their index."""

import hashlib
from typing import Any

import numpy as np

__all__ = ["content_key", "output_index", "read_only"]


def read_only(values: np.ndarray) -> np.ndarray:
    """The same array, which nobody can change any more."""
    values.flags.writeable = False
    return values


def output_index(output: Any, n_outputs: int) -> int:
    """Check that an output is the index of one."""
    if isinstance(output, bool | np.bool_) or not isinstance(output, int | np.integer) or not 0 <= output < n_outputs:
        raise ValueError(f"output must be an integer from 0 to {n_outputs - 1}. Got {output!r} instead.")
    return int(output)


def content_key(text: str) -> str:
    """SHA-256 of a query written as text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()
