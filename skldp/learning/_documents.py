"""The one form in which tasks and reports go from hand to hand, and the reading of it from strangers."""

import binascii
import json
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp._checks import each_once

__all__ = ["as_document", "as_text", "from_document", "from_text"]

# Of every kind of document, raised when what one says is written in another way.
_VERSIONS = {"task": 2, "report": 1}
# Whatever the machine.
_DOUBLES = np.dtype("<f8")


def as_document(kind: str, content: dict[str, Any]) -> str:
    """A JSON object in one form for one content, to the bit: of it hashes are made."""
    head = {"skldp": kind, "version": _VERSIONS[kind]}
    return json.dumps(head | content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def from_document(kind: str, text: str, names: set[str]) -> dict[str, Any]:
    """The content of a document from a stranger, which must have these names and no others."""
    try:
        given = json.loads(text, object_pairs_hook=each_once)
    except (ValueError, RecursionError, TypeError) as error:
        raise ValueError(f"A {kind} must be a JSON document. Got something else instead.") from error
    expected, head = {"skldp", "version"} | names, (kind, _VERSIONS[kind])
    # Of numbers, 1 is equal to True and to 1.0.
    known = isinstance(given, dict) and set(given) == expected and type(given["version"]) is int
    if not known or (given["skldp"], given["version"]) != head:
        raise ValueError(
            f"A {kind} of version {_VERSIONS[kind]} must be a JSON object of {sorted(expected)}. "
            "Got another one instead."
        )
    return {name: given[name] for name in names}


def as_text(numbers: npt.NDArray[np.float64]) -> str:
    """Numbers to the bit, as text that is read and written a hundred times faster than their decimals."""
    return binascii.b2a_base64(numbers.astype(_DOUBLES, copy=False).tobytes(), newline=False).decode()


def from_text(name: str, text: Any, columns: int) -> npt.NDArray[np.float64]:
    """Rows of numbers from a stranger, which may be NaN or infinite."""
    try:
        rows = np.frombuffer(binascii.a2b_base64(text, strict_mode=True), _DOUBLES).reshape(-1, columns)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{name} must be base64 of rows of {columns} numbers of 8 bytes. Got something else instead."
        ) from error
    return rows.astype(np.float64)
