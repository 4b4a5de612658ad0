"""Mechanisms of one release: arrays in, arrays out, without scikit-learn and without state."""

from skldp._lazy import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
