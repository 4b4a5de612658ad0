"""Mechanisms of the papers that nothing but their pages needs."""

from skldp._lazy import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
