"""Local differential privacy for scikit-learn."""

from skldp.estimators.composition import privacy_guarantee
from skldp.mechanisms.guarantee import PrivacyGuarantee

__all__ = [
    "PrivacyGuarantee",
    "privacy_guarantee",
]

__version__ = "0.1.0"
