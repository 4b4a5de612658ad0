"""The mechanisms for vectors under one name: multivariate Laplace, PrivUnit, random projection, and their bounds."""

from skldp.mechanisms._vector.gaussian_width import (
    default_width,
    difference_directions,
    finite_set_width,
    gordon_delta,
    l1_ball_width,
    projected_dimension,
    simplex_width,
    sparse_width,
)
from skldp.mechanisms._vector.multivariate_laplace import MultivariateLaplace, nearest_rows
from skldp.mechanisms._vector.privunit import PrivUnit, cap_probability
from skldp.mechanisms._vector.privunit_ball import PrivUnitBall
from skldp.mechanisms._vector.projected_release import ProjectedRelease
from skldp.mechanisms._vector.projection import RandomProjection
from skldp.mechanisms._vector.utility_bounds import (
    distance_bound,
    inner_product_bound,
    linear_model_bound,
    noise_norm_bound,
    noise_norm_quantile,
)

__all__ = [
    "MultivariateLaplace",
    "PrivUnit",
    "PrivUnitBall",
    "ProjectedRelease",
    "RandomProjection",
    "cap_probability",
    "default_width",
    "difference_directions",
    "distance_bound",
    "finite_set_width",
    "gordon_delta",
    "inner_product_bound",
    "l1_ball_width",
    "linear_model_bound",
    "nearest_rows",
    "noise_norm_bound",
    "noise_norm_quantile",
    "projected_dimension",
    "simplex_width",
    "sparse_width",
]
