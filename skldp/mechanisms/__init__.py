"""Floor 1: the mathematics of one release. Arrays in, arrays out, no scikit-learn, no state."""

from skldp._doors import door as _door

__getattr__, __dir__ = _door(__name__)
