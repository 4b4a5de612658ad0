"""Release on a device: policies that are checked, reports, and an account."""

from skldp._lazy import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
