"""The transformers of embeddings under one name."""

from skldp.estimators.multivariate_laplace import MultivariateLaplacePrivatizer
from skldp.estimators.privunit import PrivUnitTransformer
from skldp.estimators.projection import RandomProjectionPrivatizer

__all__ = ["MultivariateLaplacePrivatizer", "PrivUnitTransformer", "RandomProjectionPrivatizer"]
