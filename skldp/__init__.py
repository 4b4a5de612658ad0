"""Local differential privacy for scikit-learn, with the exact epsilon of every release."""

from skldp._lazy import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)

__version__ = "0.1.0"
