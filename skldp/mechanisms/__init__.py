"""Floor 1: the mathematics of one release. Arrays in, arrays out, no scikit-learn, no state."""

from skldp.mechanisms.additive import Gaussian, Laplace
from skldp.mechanisms.bit_flip import BitFlip
from skldp.mechanisms.categorical import RandomizedResponse
from skldp.mechanisms.categorical_record import CategoricalRecord
from skldp.mechanisms.duchi_vector import DuchiVector
from skldp.mechanisms.feature_sampling import BoundedFeatures
from skldp.mechanisms.fixed_point import FixedPoint
from skldp.mechanisms.flip_laws import BitLaw
from skldp.mechanisms.flip_mechanisms import bitrand, latent, ome
from skldp.mechanisms.frequency import FrequencyEstimate, estimate_frequencies
from skldp.mechanisms.gaussian_calibration import analytic_gaussian_sigma, gaussian_delta
from skldp.mechanisms.guarantee import PrivacyGuarantee
from skldp.mechanisms.hybrid import Hybrid, HybridThreeOutputs
from skldp.mechanisms.label_correction import clean_probabilities
from skldp.mechanisms.label_laplace import LabelLaplaceMechanism
from skldp.mechanisms.numeric import NUMERIC_MECHANISMS, best_mechanism, make_mechanism
from skldp.mechanisms.piecewise import Piecewise
from skldp.mechanisms.randomness import Noise, noise_from
from skldp.mechanisms.response_with_prior import RandomizedResponseWithPrior
from skldp.mechanisms.two_valued import LDPFL, Duchi, ThreeOutputs
from skldp.mechanisms.unary import OneHotRandomizedResponse, UnaryEncoding
from skldp.mechanisms.unbiased_flip import UnbiasedBitFlip
from skldp.mechanisms.vector import MultivariateLaplace, PrivUnit, PrivUnitBall, ProjectedRelease, RandomProjection

__all__ = [
    "LDPFL",
    "NUMERIC_MECHANISMS",
    "BitFlip",
    "BitLaw",
    "BoundedFeatures",
    "CategoricalRecord",
    "Duchi",
    "DuchiVector",
    "FixedPoint",
    "FrequencyEstimate",
    "Gaussian",
    "Hybrid",
    "HybridThreeOutputs",
    "LabelLaplaceMechanism",
    "Laplace",
    "MultivariateLaplace",
    "Noise",
    "OneHotRandomizedResponse",
    "Piecewise",
    "PrivUnit",
    "PrivUnitBall",
    "PrivacyGuarantee",
    "ProjectedRelease",
    "RandomProjection",
    "RandomizedResponse",
    "RandomizedResponseWithPrior",
    "ThreeOutputs",
    "UnaryEncoding",
    "UnbiasedBitFlip",
    "analytic_gaussian_sigma",
    "best_mechanism",
    "bitrand",
    "clean_probabilities",
    "estimate_frequencies",
    "gaussian_delta",
    "latent",
    "make_mechanism",
    "noise_from",
    "ome",
]
