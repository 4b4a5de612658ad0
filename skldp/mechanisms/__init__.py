"""Floor 1: the mathematics of one release. Arrays in, arrays out, no scikit-learn, no state."""
