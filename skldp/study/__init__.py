"""Cost of privacy on data: score curves over epsilon, recommendations, audits and federated learning."""

from skldp._lazy import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
