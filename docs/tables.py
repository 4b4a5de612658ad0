"""The computed tables of the pages. Each function gives a header and rows of text."""

import warnings

from skldp import BitRandTransformer
from skldp.exceptions import PrivacyGuaranteeWarning


def bitrand():
    """Stated and exact epsilon of BitRand as published."""
    rows = []
    for epsilon in (0.1, 1.0, 2.0, 5.0, 10.0):
        guarantee = _published(epsilon, 768)
        rows.append([f"{epsilon:g}", f"{guarantee.epsilon:,.0f}", f"{guarantee.epsilon / 768:.2f}"])
    return ["stated", "exact, per record", "exact, per feature"], rows


def _published(epsilon, n_features):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyGuaranteeWarning)
        release = BitRandTransformer(epsilon, n_bits=10, n_integer_bits=5, bounds=(-32, 32))
        return release.fit([[0.0] * n_features]).privacy_guarantee_
