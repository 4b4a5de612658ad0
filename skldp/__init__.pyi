from skldp.accounting.ledger._privacy_ledger import PrivacyLedger
from skldp.client._policy import Policy
from skldp.collection._batches import release_batches
from skldp.collection._collector import Collector
from skldp.collection._flower import flower_client_app, flower_server_app
from skldp.domains._domain import Domain
from skldp.estimators._bayesian_filter import BayesianFilter
from skldp.estimators._bitrand import BitRandTransformer, LatentTransformer, OMETransformer
from skldp.estimators._bounds_scaler import BoundsScaler
from skldp.estimators._categorical import CategoricalPrivatizer
from skldp.estimators._column_encoder import ColumnEncoder
from skldp.estimators._composition import privacy_guarantee
from skldp.estimators._label_private import LabelPrivateRegressor, LabelSampler
from skldp.estimators._label_private_classifier import LabelPrivateClassifier
from skldp.estimators._label_vectors import LabelLaplaceVector, LabelMatrixRR
from skldp.estimators._labels import LabelLaplace, LabelRR
from skldp.estimators._noise_aware import NoiseAwareDiscriminant, NoiseAwareLinearRegression
from skldp.estimators._numeric import NumericPrivatizer
from skldp.estimators._out_of_core import release_blocks, release_dask
from skldp.estimators._private_discriminant import PrivateDiscriminant
from skldp.estimators._private_linear import PrivateLinearRegression
from skldp.estimators._private_logistic import PrivateLogisticRegression
from skldp.estimators._private_moments import PrivateMoments
from skldp.estimators._random_projection import RandomProjectionPrivatizer
from skldp.estimators._table import TablePrivatizer
from skldp.estimators._targets import TargetPrivatizer
from skldp.estimators._transformer_domain import domain_from_transformer
from skldp.estimators._vector import MultivariateLaplacePrivatizer, PrivUnitTransformer
from skldp.laws._release_key import ReleaseKey
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.study._audit import audit_epsilon
from skldp.study._choice import smallest_epsilon
from skldp.study._curve import privacy_utility_curve
from skldp.study._displays import PrivacyUtilityDisplay
from skldp.study._recommend import recommend

__version__: str

__all__ = [
    "BayesianFilter",
    "BitRandTransformer",
    "BoundsScaler",
    "CategoricalPrivatizer",
    "Collector",
    "ColumnEncoder",
    "Domain",
    "LabelLaplace",
    "LabelLaplaceVector",
    "LabelMatrixRR",
    "LabelPrivateClassifier",
    "LabelPrivateRegressor",
    "LabelRR",
    "LabelSampler",
    "LatentTransformer",
    "MultivariateLaplacePrivatizer",
    "NoiseAwareDiscriminant",
    "NoiseAwareLinearRegression",
    "NumericPrivatizer",
    "OMETransformer",
    "Policy",
    "PrivUnitTransformer",
    "PrivacyGuarantee",
    "PrivacyLedger",
    "PrivacyUtilityDisplay",
    "PrivateDiscriminant",
    "PrivateLinearRegression",
    "PrivateLogisticRegression",
    "PrivateMoments",
    "RandomProjectionPrivatizer",
    "ReleaseKey",
    "TablePrivatizer",
    "TargetPrivatizer",
    "audit_epsilon",
    "domain_from_transformer",
    "flower_client_app",
    "flower_server_app",
    "privacy_guarantee",
    "privacy_utility_curve",
    "recommend",
    "release_batches",
    "release_blocks",
    "release_dask",
    "smallest_epsilon",
]
