"""Canonical JSON of tasks and reports, and its strict parser for untrusted input."""

import binascii
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp._documents import canonical_text, read_document

Floats = npt.NDArray[np.float64]

# Error of all documents in a non-canonical form.
_VERSIONS = {"task": 3, "report": 1}
# Little-endian on every machine.
_DOUBLES = np.dtype("<f8")


def as_document(kind: str, content: dict[str, Any]) -> str:
    """Return the only JSON text of a content: tasks are hashed by it."""
    return canonical_text({"skldp": kind, "version": _VERSIONS[kind]} | content)


def from_document(kind: str, text: str, names: set[str]) -> dict[str, Any]:
    """Return the content of a document from another party, which must have these names and no others."""
    given = read_document(text, kind, _VERSIONS[kind], names)
    return {name: given[name] for name in names}


def as_text(numbers: Floats) -> str:
    """Encode numbers exactly, as base64, which is a hundred times faster than decimals."""
    return binascii.b2a_base64(numbers.astype(_DOUBLES, copy=False).tobytes(), newline=False).decode()


def from_text(name: str, text: Any, columns: int) -> Floats:
    """Parse untrusted rows of numbers, which may be NaN or infinite."""
    try:
        rows = np.frombuffer(binascii.a2b_base64(text, strict_mode=True), _DOUBLES).reshape(-1, columns)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{name} must be base64 of rows of {columns} numbers of 8 bytes. Got something else instead."
        ) from error
    return rows.astype(np.float64)
