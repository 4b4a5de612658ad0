"""Release on a device: policies that are checked, reports, and an account."""

import typing as _typing

from skldp.client._fields import CategoryField, NumberField, NumbersField, PairField
from skldp.client._ledger import DeviceLedger
from skldp.client._policy import Policy
from skldp.client._report_bytes import PolicyReport
from skldp.domains._declared_columns import CategoryColumn, NumberColumn
from skldp.laws._release_key import ReleaseKey

if _typing.TYPE_CHECKING:
    from skldp.client._prefixes import PrefixDomain, PrefixTask

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
    "PrefixDomain",
    "PrefixTask",
    "ReleaseKey",
]


def __getattr__(name: str) -> _typing.Any:
    # Imported on use, since a device that releases records does not need it.
    if name in ("PrefixDomain", "PrefixTask"):
        from skldp.client import _prefixes

        return getattr(_prefixes, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
