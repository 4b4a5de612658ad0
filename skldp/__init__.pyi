from skldp.accounting.ledger._privacy_ledger import PrivacyLedger
from skldp.collection._batches import release_batches
from skldp.collection._collector import Collector
from skldp.collection._conversion import policy_from_estimator
from skldp.domains._domain import Domain
from skldp.estimators._bayesian_filter import BayesianFilter
from skldp.estimators._bitrand import BitRandTransformer
from skldp.estimators._bounds_scaler import BoundsScaler
from skldp.estimators._categorical import CategoricalPrivatizer
from skldp.estimators._column_encoder import ColumnEncoder
from skldp.estimators._composition import privacy_guarantee
from skldp.estimators._label_private import LabelPrivateRegressor, LabelSampler
from skldp.estimators._label_private_classifier import LabelPrivateClassifier
from skldp.estimators._labels import LabelRR
from skldp.estimators._noise_aware import NoiseAwareDiscriminant, NoiseAwareLinearRegression
from skldp.estimators._numeric import NumericPrivatizer
from skldp.estimators._out_of_core import release_blocks, release_dask
from skldp.estimators._private_discriminant import PrivateDiscriminant
from skldp.estimators._private_linear import PrivateLinearRegression
from skldp.estimators._private_logistic import PrivateLogisticRegression
from skldp.estimators._private_model import private_model
from skldp.estimators._private_moments import PrivateMoments
from skldp.estimators._random_projection import RandomProjectionPrivatizer
from skldp.estimators._table import TablePrivatizer
from skldp.estimators._targets import TargetPrivatizer
from skldp.estimators._transformer_domain import domain_from_transformer
from skldp.estimators._vector import MultivariateLaplacePrivatizer, PrivUnitTransformer
from skldp.mechanisms._guarantee import PrivacyGuarantee

__version__: str

__all__ = [
    "BayesianFilter",
    "BitRandTransformer",
    "BoundsScaler",
    "CategoricalPrivatizer",
    "Collector",
    "ColumnEncoder",
    "Domain",
    "LabelPrivateClassifier",
    "LabelPrivateRegressor",
    "LabelRR",
    "LabelSampler",
    "MultivariateLaplacePrivatizer",
    "NoiseAwareDiscriminant",
    "NoiseAwareLinearRegression",
    "NumericPrivatizer",
    "PrivUnitTransformer",
    "PrivacyGuarantee",
    "PrivacyLedger",
    "PrivateDiscriminant",
    "PrivateLinearRegression",
    "PrivateLogisticRegression",
    "PrivateMoments",
    "RandomProjectionPrivatizer",
    "TablePrivatizer",
    "TargetPrivatizer",
    "domain_from_transformer",
    "policy_from_estimator",
    "privacy_guarantee",
    "private_model",
    "release_batches",
    "release_blocks",
    "release_dask",
]
