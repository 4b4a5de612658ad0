"""Accounting of many releases about one person: filters, ledgers and realized loss."""

from skldp._lazy import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
