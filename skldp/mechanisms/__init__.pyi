from skldp.domains._column import Column
from skldp.laws._release_key import ReleaseKey
from skldp.mechanisms._field_key import FieldKey
from skldp.mechanisms._noise import noise_from
from skldp.mechanisms._rows import RowMechanism
from skldp.mechanisms.bits._bit_flip import bitrand, latent, ome
from skldp.mechanisms.bits._fixed_point import FixedPoint
from skldp.mechanisms.categorical._frequency import estimate_frequencies
from skldp.mechanisms.categorical._randomized_response import RandomizedResponse
from skldp.mechanisms.numeric._additive import Gaussian, Laplace
from skldp.mechanisms.numeric._unit_mechanisms import Piecewise
from skldp.mechanisms.vector._privunit import PrivUnit
from skldp.mechanisms.vector._projection import projected_dimension

__all__ = [
    "Column",
    "FieldKey",
    "FixedPoint",
    "Gaussian",
    "Laplace",
    "Piecewise",
    "PrivUnit",
    "RandomizedResponse",
    "ReleaseKey",
    "RowMechanism",
    "bitrand",
    "estimate_frequencies",
    "latent",
    "noise_from",
    "ome",
    "projected_dimension",
]
