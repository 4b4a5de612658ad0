"""Learning from releases made for a model: public tasks, one answer per person, and sums of reports."""

from skldp._lazy import lazy_exports as _lazy_exports

__getattr__, __dir__ = _lazy_exports(__name__)
