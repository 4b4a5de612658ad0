"""What the transformers of embeddings share: a declared radius instead of bounds."""

import numpy as np

from skldp.estimators._base import LocalTransformer
from skldp.mechanisms._norms import shorten_rows

__all__ = ["RadiusTransformer"]


class RadiusTransformer(LocalTransformer):
    """Base of the transformers whose rows may lie within a declared radius; longer rows are shortened to it.

    A subclass sets ``radius_`` in ``_make_mechanism``: a number, or None where no radius is declared.
    """

    def _into_domain(self, block):
        if self.radius_ is None:
            return block, 0
        copy = np.array(block, order="C")
        return copy, shorten_rows(copy, self.radius_)
