"""The mechanisms for vectors under one name: multivariate Laplace, PrivUnit, random projection."""

from skldp.mechanisms.multivariate_laplace import MultivariateLaplace, nearest_rows
from skldp.mechanisms.privunit import PrivUnit
from skldp.mechanisms.privunit_ball import PrivUnitBall
from skldp.mechanisms.spherical_cap import cap_probability

__all__ = ["MultivariateLaplace", "PrivUnit", "PrivUnitBall", "cap_probability", "nearest_rows"]
