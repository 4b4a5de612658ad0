"""The one form in which tasks and reports go from hand to hand, and the reading of it from strangers."""

import json
from typing import Any

__all__ = ["as_document", "from_document"]


def as_document(kind: str, content: dict[str, Any]) -> str:
    """A JSON object in one form for one content, to the bit: of it hashes are made."""
    return json.dumps({"skldp": kind, "version": 1} | content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def from_document(kind: str, text: str, names: set[str]) -> dict[str, Any]:
    """The content of a document from a stranger, which must have these names and no others.

    Raises
    ------
    ValueError
        If it is no JSON, or another object; of what the names hold nothing is known.
    """
    try:
        given = json.loads(text)
    except (ValueError, RecursionError, TypeError) as error:
        raise ValueError(f"A {kind} must be a JSON document. Got something else instead.") from error
    expected = {"skldp", "version"} | names
    if not isinstance(given, dict) or set(given) != expected or (given["skldp"], given["version"]) != (kind, 1):
        raise ValueError(f"A {kind} of version 1 must be a JSON object of {sorted(expected)}. Got another one instead.")
    return {name: given[name] for name in names}
