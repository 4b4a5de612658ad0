from skldp.estimators._bitrand import LatentTransformer, OMETransformer
from skldp.estimators._label_vectors import LabelLaplaceVector, LabelMatrixRR
from skldp.estimators._labels import LabelLaplace

__all__ = [
    "LabelLaplace",
    "LabelLaplaceVector",
    "LabelMatrixRR",
    "LatentTransformer",
    "OMETransformer",
]
