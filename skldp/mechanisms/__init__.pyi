from skldp.domains._columns import Categories, Columns, Integers, Interval
from skldp.domains._constraints import Constrained, OneHot
from skldp.laws._release_key import ReleaseKey
from skldp.mechanisms._field_key import FieldKey
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise, noise_from
from skldp.mechanisms._rows import Release, RowMechanism, SampledFeatures
from skldp.mechanisms.bits._bit_flip import bitrand, latent, ome
from skldp.mechanisms.bits._fixed_point import FixedPoint
from skldp.mechanisms.categorical._frequency import estimate_frequencies
from skldp.mechanisms.categorical._randomized_response import RandomizedResponse
from skldp.mechanisms.numeric._additive import Gaussian, Laplace
from skldp.mechanisms.numeric._duchi import Duchi, DuchiVector
from skldp.mechanisms.numeric._piecewise import Hybrid, Piecewise, SquareWave
from skldp.mechanisms.vector._multivariate_laplace import MultivariateLaplace
from skldp.mechanisms.vector._privunit import PrivUnit
from skldp.mechanisms.vector._projected_dimension import (
    gordon_delta,
    projected_dimension,
    union_delta,
)

__all__ = [
    "Categories",
    "Columns",
    "Constrained",
    "Duchi",
    "DuchiVector",
    "FieldKey",
    "FixedPoint",
    "Gaussian",
    "Hybrid",
    "Integers",
    "Interval",
    "Laplace",
    "MultivariateLaplace",
    "Noise",
    "OneHot",
    "Piecewise",
    "PrivUnit",
    "PrivacyGuarantee",
    "RandomizedResponse",
    "Release",
    "ReleaseKey",
    "RowMechanism",
    "SampledFeatures",
    "SquareWave",
    "bitrand",
    "estimate_frequencies",
    "gordon_delta",
    "latent",
    "noise_from",
    "ome",
    "projected_dimension",
    "union_delta",
]
