"""Checker of the part of JSON Schema that policy.schema.json uses."""

import re

TYPES = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "null": type(None)}


def fits(value, schema, root):
    """Return whether a value has the form of a schema."""
    if "$ref" in schema:
        return fits(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root)
    if "oneOf" in schema:
        return sum(fits(value, one, root) for one in schema["oneOf"]) == 1
    if "const" in schema or "enum" in schema:
        return any(type(value) is type(one) and value == one for one in schema.get("enum", [schema.get("const")]))
    if type(value) is not TYPES[schema["type"]]:
        return False
    if isinstance(value, dict):
        is_known = set(schema["required"]) <= set(value) <= set(schema["properties"])
        return is_known and all(fits(one, schema["properties"][name], root) for name, one in value.items())
    if isinstance(value, list):
        is_long = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value))
        return is_long and all(fits(one, schema["items"], root) for one in value)
    if isinstance(value, str):
        is_long = schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value))
        # A line break could follow "$".
        return is_long and bool(re.fullmatch(schema.get("pattern", "(?s:.*)").strip("^$"), value))
    return not isinstance(value, int) or schema.get("minimum", value) <= value <= schema.get("maximum", value)
