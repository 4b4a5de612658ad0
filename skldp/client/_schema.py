"""Documents from strangers: JSON that is read strictly, and the part of JSON Schema that the package's own one uses."""

import hashlib
import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from skldp._checks import each_once
from skldp._texts import escaped, is_visible

__all__ = ["canonical_text", "digest", "policy_error", "policy_schema", "read_json", "schema_error"]

# More than the largest policy that the schema lets pass with short names.
_MOST_CHARACTERS = 2**24
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}


def canonical_text(content: Any) -> str:
    """The one JSON text of a content without floats: keys in order, no spaces, nothing escaped that need not be."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(content: dict[str, Any]) -> str:
    """The SHA-256 of the canonical text of a document without its own ``"sha256"``, in hexadecimal.

    Examples
    --------
    >>> from skldp.client._schema import digest
    >>> digest({"a": 1})[:8] == digest({"sha256": "any", "a": 1})[:8]
    True
    """
    bare = {name: value for name, value in content.items() if name != "sha256"}
    return hashlib.sha256(canonical_text(bare).encode()).hexdigest()


def read_json(text: str) -> Any:
    """Read a JSON text that holds no name twice and no number but integers.

    Raises
    ------
    ValueError
        If it is another text.
    """
    if not isinstance(text, str) or len(text) > _MOST_CHARACTERS:
        raise ValueError(f"A document must be a text of at most {_MOST_CHARACTERS} characters. Got another.")
    try:
        content = json.loads(text, object_pairs_hook=each_once, parse_float=_no_number, parse_constant=_no_number)
        # An escape may stand for half a character, which no file holds.
        canonical_text(content).encode()
    except (ValueError, RecursionError) as error:
        rule = "A document must be JSON with each name once and no number but integers"
        raise ValueError(f"{rule}. Got {type(error).__name__} while reading it.") from None
    return content


@cache
def policy_schema() -> dict[str, Any]:
    """The JSON Schema of a policy, as it is shipped beside this module."""
    # Not at the top: it takes as long to import as all that is beside it.
    import pkgutil

    schema: dict[str, Any] = json.loads(pkgutil.get_data("skldp.client", "policy.schema.json") or b"")
    return schema


def policy_error(content: Any) -> str | None:
    """Return the rule that a policy's document breaks, or None: one about its texts, or one of the schema."""
    if len(canonical_text(content)) > _MOST_CHARACTERS:
        return f"its text must have at most {_MOST_CHARACTERS} characters"
    hidden = next((text for text in _texts(content) if not is_visible(text)), None)
    if hidden is not None:
        return f"texts must have no control, format or other invisible characters, unlike '{escaped(hidden[:60])}'"
    return schema_error(content, policy_schema(), policy_schema())


def _texts(content: Any) -> Iterator[str]:
    """Yield every text of a document, which may nest deeper than Python's stack."""
    rest = [content]
    while rest:
        one = rest.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict | list):
            rest.extend(one.values() if isinstance(one, dict) else one)


def schema_error(value: Any, schema: dict[str, Any], root: dict[str, Any], place: str = "document") -> str | None:
    """What of a schema a value breaks and where, or None.

    Parameters
    ----------
    value : object
        As :func:`read_json` gives it.
    schema : dict
        Of the keywords that are read below, and others that say nothing about values.
    root : dict
        The whole schema, for ``"$ref"``.
    place : str, default="document"

    Examples
    --------
    >>> from skldp.client._schema import schema_error
    >>> schema_error(3, {"type": "string"}, {})
    'document must be of type string'
    """
    if "$ref" in schema:
        return schema_error(value, _meant(schema, root), root, place)
    if "oneOf" in schema:
        # Most forms are of another type, which is seen at once: a list may have a million values.
        possible = [one for one in schema["oneOf"] if type(value) in _TYPES.get(one.get("type"), (type(value),))]
        fitting = sum(schema_error(value, one, root, place) is None for one in possible)
        return None if fitting == 1 else f"{place} must have one of {len(schema['oneOf'])} forms"
    if "const" in schema or "enum" in schema:
        allowed = schema["enum"] if "enum" in schema else [schema["const"]]
        fits = any(type(value) is type(one) and value == one for one in allowed)
        return None if fits else f"{place} must be one of {allowed}"
    if type(value) not in _TYPES[schema["type"]]:
        return f"{place} must be of type {schema['type']}"
    if isinstance(value, dict):
        return _object_error(value, schema, root, place)
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            return f"{place} must have another number of items"
        items = _meant(schema["items"], root)
        # The place is told of the one that is refused, and of no other.
        broken = next((i for i, one in enumerate(value) if schema_error(one, items, root)), None)
        return None if broken is None else schema_error(value[broken], items, root, f"{place}[{broken}]")
    if isinstance(value, str):
        if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
            return f"{place} must have another length"
        # With "$" a line could follow.
        if "pattern" not in schema or re.fullmatch(schema["pattern"].strip("^$"), value):
            return None
        return f"{place} must match {schema['pattern']}"
    if isinstance(value, int) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        return f"{place} must be from {schema['minimum']} to {schema['maximum']}"
    return None


def _meant(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """The definition that a reference stands for, or the schema itself."""
    found: dict[str, Any] = root["$defs"][schema["$ref"].removeprefix("#/$defs/")] if "$ref" in schema else schema
    return found


def _object_error(value: dict[str, Any], schema: dict[str, Any], root: dict[str, Any], place: str) -> str | None:
    missing, strange = set(schema["required"]) - set(value), set(value) - set(schema["properties"])
    if missing:
        return f"{place} must have {sorted(missing)}"
    if strange:
        return f"{place} must have no other names than {sorted(schema['properties'])}"
    errors = (schema_error(value[name], schema["properties"][name], root, f"{place}.{name}") for name in value)
    return next((error for error in errors if error), None)


def _no_number(text: str) -> Any:
    raise ValueError(f"{len(text)} signs that are no integer")
