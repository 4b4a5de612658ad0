"""Fields of a policy from their documents."""

from typing import Any

from skldp.client._fields import AnyField, Field
from skldp.domains._column import Column
from skldp.laws._integers import law_from_dict

_ALONE, _SEVERAL = ("number", "integer", "date", "category"), ("numbers", "pair")


def field_from_dict(given: dict[str, Any]) -> AnyField:
    """Read a field of a document; the field checks that its law fits, and the policy that nothing else was stated."""
    kind, known = given["type"], (*_ALONE, *_SEVERAL, "vector")
    if kind not in known:
        raise ValueError(f"The type of a field must be one of {', '.join(map(repr, known))}; got {kind!r:.40}.")
    law: Any = law_from_dict(given["law"])
    if kind == "vector":
        # Devices without vectors do not need the module.
        from skldp.client._vector_field import VectorField

        return VectorField(given["name"], law, None if given["bound"] is None else float(given["bound"]))
    columns = tuple(map(_column, given["columns"])) if kind in _SEVERAL else _column(given)
    numbers = {name: int(given[name]) for name in ("n_knots", "steps") if name in given}
    return Field(given["name"], columns, law, **numbers)


def _column(given: dict[str, Any]) -> Column:
    kind, name = given["type"], given["name"]
    if kind == "category":
        return Column(values=tuple(given["values"]), unknown=given["unknown"], name=name)
    low, high, missing = (float(given[end]) for end in ("low", "high", "missing"))
    return Column(low, high, kind=kind, missing=missing, unit=given["unit"], name=name)
