from skldp.mechanisms._bits.bit_flip import BitFlip, bitrand, latent, ome
from skldp.mechanisms._bits.fixed_point import FixedPoint
from skldp.mechanisms._bits.flip_laws import BitLaw
from skldp.mechanisms._bits.unbiased import UnbiasedBitFlip
from skldp.mechanisms._categorical.catalogue import CATEGORICAL_MECHANISMS, best_categorical_mechanism
from skldp.mechanisms._categorical.frequency import FrequencyEstimate, clean_probabilities, estimate_frequencies
from skldp.mechanisms._categorical.hadamard import HadamardResponse, OneHotHadamard
from skldp.mechanisms._categorical.label_laws import LabelLaplaceMechanism, RandomizedResponseWithPrior
from skldp.mechanisms._categorical.label_vector import LabelLaplaceVectorMechanism
from skldp.mechanisms._categorical.local_hashing import LocalHashing, OneHotLocalHashing
from skldp.mechanisms._categorical.randomized_response import RandomizedResponse
from skldp.mechanisms._categorical.record import CategoricalRecord
from skldp.mechanisms._categorical.subset import SubsetSelection
from skldp.mechanisms._categorical.unary import OneHotRandomizedResponse, UnaryEncoding
from skldp.mechanisms._columns import Categories, Columns, Integers, Interval, OrMissing, domain_from_json
from skldp.mechanisms._domain import Anywhere, Ball, Box, Codes, Domain, FiniteSet
from skldp.mechanisms._field_key import FieldKey, KeyedRows
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._guarantee_steps import GuaranteeStep
from skldp.mechanisms._law_of import integer_law, law_within_bounds
from skldp.mechanisms._linked import Constrained, OneHot
from skldp.mechanisms._longitudinal import FlippedBits, LongitudinalCategories
from skldp.mechanisms._longitudinal_histogram import LongitudinalHistogram
from skldp.mechanisms._longitudinal_mean import LongitudinalMean
from skldp.mechanisms._noise import Noise, noise_from
from skldp.mechanisms._number_or_missing import NumberOrMissing
from skldp.mechanisms._numeric.additive import Gaussian, Laplace, analytic_gaussian_sigma, gaussian_delta
from skldp.mechanisms._numeric.bounded_features import BoundedFeatures
from skldp.mechanisms._numeric.catalogue import NUMERIC_MECHANISMS, best_mechanism, make_mechanism
from skldp.mechanisms._numeric.distribution import DistributionEstimate
from skldp.mechanisms._numeric.duchi import Duchi, DuchiVector
from skldp.mechanisms._numeric.hybrid import Hybrid, HybridThreeOutputs
from skldp.mechanisms._numeric.piecewise import Piecewise
from skldp.mechanisms._numeric.private_prior import PriorQuestion
from skldp.mechanisms._numeric.response_on_bins import ResponseOnBins
from skldp.mechanisms._numeric.square_wave import SquareWave
from skldp.mechanisms._numeric.three_outputs import ThreeOutputs
from skldp.mechanisms._record import MixedRecord
from skldp.mechanisms._release_key import ReleaseKey
from skldp.mechanisms._rows import Release, RowMechanism, SampledFeatures
from skldp.mechanisms._sparse_domain import SparseRows
from skldp.mechanisms._vector.gaussian_width import (
    default_width,
    difference_directions,
    finite_set_width,
    gordon_delta,
    l1_ball_width,
    projected_dimension,
    simplex_width,
    sparse_width,
    union_delta,
)
from skldp.mechanisms._vector.multivariate_laplace import MultivariateLaplace
from skldp.mechanisms._vector.privunit import PrivUnit, PrivUnitBall
from skldp.mechanisms._vector.projected_release import ProjectedRelease
from skldp.mechanisms._vector.projection import RandomProjection
from skldp.mechanisms._vector.scaled_rows import ScaledRows
from skldp.mechanisms._vector.utility_bounds import (
    distance_bound,
    inner_product_bound,
    linear_model_bound,
    noise_norm_bound,
    noise_norm_quantile,
)

__all__ = [
    "CATEGORICAL_MECHANISMS",
    "NUMERIC_MECHANISMS",
    "Anywhere",
    "Ball",
    "BitFlip",
    "BitLaw",
    "BoundedFeatures",
    "Box",
    "CategoricalRecord",
    "Categories",
    "Codes",
    "Columns",
    "Constrained",
    "DistributionEstimate",
    "Domain",
    "Duchi",
    "DuchiVector",
    "FieldKey",
    "FiniteSet",
    "FixedPoint",
    "FlippedBits",
    "FrequencyEstimate",
    "Gaussian",
    "GuaranteeStep",
    "HadamardResponse",
    "Hybrid",
    "HybridThreeOutputs",
    "Integers",
    "Interval",
    "KeyedRows",
    "LabelLaplaceMechanism",
    "LabelLaplaceVectorMechanism",
    "Laplace",
    "LocalHashing",
    "LongitudinalCategories",
    "LongitudinalHistogram",
    "LongitudinalMean",
    "MixedRecord",
    "MultivariateLaplace",
    "Noise",
    "NumberOrMissing",
    "OneHot",
    "OneHotHadamard",
    "OneHotLocalHashing",
    "OneHotRandomizedResponse",
    "OrMissing",
    "Piecewise",
    "PriorQuestion",
    "PrivUnit",
    "PrivUnitBall",
    "PrivacyGuarantee",
    "ProjectedRelease",
    "RandomProjection",
    "RandomizedResponse",
    "RandomizedResponseWithPrior",
    "Release",
    "ReleaseKey",
    "ResponseOnBins",
    "RowMechanism",
    "SampledFeatures",
    "ScaledRows",
    "SparseRows",
    "SquareWave",
    "SubsetSelection",
    "ThreeOutputs",
    "UnaryEncoding",
    "UnbiasedBitFlip",
    "analytic_gaussian_sigma",
    "best_categorical_mechanism",
    "best_mechanism",
    "bitrand",
    "clean_probabilities",
    "default_width",
    "difference_directions",
    "distance_bound",
    "domain_from_json",
    "estimate_frequencies",
    "finite_set_width",
    "gaussian_delta",
    "gordon_delta",
    "inner_product_bound",
    "integer_law",
    "l1_ball_width",
    "latent",
    "law_within_bounds",
    "linear_model_bound",
    "make_mechanism",
    "noise_from",
    "noise_norm_bound",
    "noise_norm_quantile",
    "ome",
    "projected_dimension",
    "simplex_width",
    "sparse_width",
    "union_delta",
]
