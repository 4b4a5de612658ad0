"""Local differential privacy for scikit-learn, with the exact epsilon of every release."""

from skldp.accounting.ledger.privacy_ledger import PrivacyLedger
from skldp.estimators.bayesian_filter import BayesianFilter
from skldp.estimators.bitrand import BitRandTransformer
from skldp.estimators.categorical import CategoricalPrivatizer
from skldp.estimators.composition import privacy_guarantee
from skldp.estimators.declared_scaler import BoundsScaler
from skldp.estimators.label_private_classifier import LabelPrivateClassifier
from skldp.estimators.label_sampler import LabelSampler
from skldp.estimators.labels import LabelLaplace, LabelRR
from skldp.estimators.latent_ome import LatentTransformer, OMETransformer
from skldp.estimators.numeric import NumericPrivatizer
from skldp.estimators.out_of_core import release_blocks, release_dask
from skldp.estimators.vector import (
    MultivariateLaplacePrivatizer,
    PrivUnitTransformer,
    RandomProjectionPrivatizer,
)
from skldp.mechanisms.guarantee import PrivacyGuarantee
from skldp.study.audit.lower_bound import audit_epsilon
from skldp.study.curve import privacy_utility_curve
from skldp.study.display import PrivacyUtilityDisplay
from skldp.study.grid_search import smallest_epsilon

__all__ = [
    "BayesianFilter",
    "BitRandTransformer",
    "BoundsScaler",
    "CategoricalPrivatizer",
    "LabelLaplace",
    "LabelPrivateClassifier",
    "LabelRR",
    "LabelSampler",
    "LatentTransformer",
    "MultivariateLaplacePrivatizer",
    "NumericPrivatizer",
    "OMETransformer",
    "PrivUnitTransformer",
    "PrivacyGuarantee",
    "PrivacyLedger",
    "PrivacyUtilityDisplay",
    "RandomProjectionPrivatizer",
    "audit_epsilon",
    "privacy_guarantee",
    "privacy_utility_curve",
    "release_blocks",
    "release_dask",
    "smallest_epsilon",
]

__version__ = "0.1.0"
