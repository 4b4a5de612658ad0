"""Local differential privacy for scikit-learn."""

__version__ = "0.1.0"
