"""Release on a device: policies that are checked, reports, and an account."""

import typing as _typing

from skldp.client._fields import CategoryField, NumberField, NumbersField, PairField
from skldp.client._ledger import DeviceLedger
from skldp.client._policy import Policy
from skldp.client._report_bytes import PolicyReport
from skldp.domains._declared_columns import CategoryColumn, NumberColumn
from skldp.laws._release_key import ReleaseKey

if _typing.TYPE_CHECKING:
    from skldp.client._flower_mod import flower_mod
    from skldp.client._text_field import TextField
    from skldp.client._vector_field import VectorField

__all__ = [
    "CategoryColumn",
    "CategoryField",
    "DeviceLedger",
    "NumberColumn",
    "NumberField",
    "NumbersField",
    "PairField",
    "Policy",
    "PolicyReport",
    "ReleaseKey",
    "TextField",
    "VectorField",
    "flower_mod",
]


# Imported on use, since a device that releases records does not need them.
_LAZY = {
    "TextField": "_text_field",
    "VectorField": "_vector_field",
    "flower_mod": "_flower_mod",
}


def __getattr__(name: str) -> _typing.Any:
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(f"skldp.client.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
