"""Local differential privacy for scikit-learn, with the exact epsilon of every release."""

from skldp._doors import door as _door

__getattr__, __dir__ = _door(__name__)

__version__ = "0.1.0"
