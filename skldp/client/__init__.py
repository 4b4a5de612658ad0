"""On a person's own device: policies that are checked before they are believed, reports, and an account."""

from skldp.client._columns import NumberColumn
from skldp.client._fields import CategoryField, NumberField, NumbersField
from skldp.client._ledger import DeviceLedger
from skldp.client._policy import Policy, Report
from skldp.client._prefixes import PrefixDomain, PrefixTask
from skldp.mechanisms._release_key import ReleaseKey

__all__ = [
    "CategoryField",
    "DeviceLedger",
    "NumberColumn",
    "NumberField",
    "NumbersField",
    "Policy",
    "PrefixDomain",
    "PrefixTask",
    "ReleaseKey",
    "Report",
]
