"""Floor 1: the mathematics of one release. Arrays in, arrays out, no scikit-learn, no state."""

from skldp.mechanisms.bits.bit_flip import BitFlip
from skldp.mechanisms.bits.fixed_point import FixedPoint
from skldp.mechanisms.bits.flip_laws import BitLaw
from skldp.mechanisms.bits.flip_mechanisms import bitrand, latent, ome
from skldp.mechanisms.bits.unbiased_flip import UnbiasedBitFlip
from skldp.mechanisms.categorical.frequency import FrequencyEstimate, estimate_frequencies
from skldp.mechanisms.categorical.label_correction import clean_probabilities
from skldp.mechanisms.categorical.label_laplace import LabelLaplaceMechanism
from skldp.mechanisms.categorical.randomized_response import RandomizedResponse
from skldp.mechanisms.categorical.record import CategoricalRecord
from skldp.mechanisms.categorical.response_with_prior import RandomizedResponseWithPrior
from skldp.mechanisms.categorical.unary import OneHotRandomizedResponse, UnaryEncoding
from skldp.mechanisms.guarantee import PrivacyGuarantee
from skldp.mechanisms.numeric.additive import Gaussian, Laplace
from skldp.mechanisms.numeric.catalogue import NUMERIC_MECHANISMS, best_mechanism, make_mechanism
from skldp.mechanisms.numeric.duchi_vector import DuchiVector
from skldp.mechanisms.numeric.feature_sampling import BoundedFeatures
from skldp.mechanisms.numeric.gaussian_calibration import analytic_gaussian_sigma, gaussian_delta
from skldp.mechanisms.numeric.hybrid import Hybrid, HybridThreeOutputs
from skldp.mechanisms.numeric.piecewise import Piecewise
from skldp.mechanisms.numeric.three_outputs import ThreeOutputs
from skldp.mechanisms.numeric.two_valued import LDPFL, Duchi
from skldp.mechanisms.randomness import Noise, noise_from
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
