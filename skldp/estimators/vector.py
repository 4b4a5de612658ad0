"""The transformers of embeddings under one name."""

from skldp.estimators.multivariate_laplace import MultivariateLaplacePrivatizer
from skldp.estimators.privunit import PrivUnitTransformer

__all__ = ["MultivariateLaplacePrivatizer", "PrivUnitTransformer"]
