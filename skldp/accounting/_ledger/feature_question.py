r"""Duchi's release of one feature, as the question that it is.

Its answers are :math:`\pm B` with :math:`P(+B) = \frac12 + \frac{x}{2} \tanh \frac{\varepsilon}{2}`: the law by
which a person answers the linear question :math:`y = x_j` (:class:`~skldp.accounting.RegressionQuery`), at the epsilon
of the mechanism's own integers. Asked as that question, its realized loss is certified together with that of all other
answers about the same record, and it is drawn from the very integers that certificates are about.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from skldp.accounting._extrema.region import Region, region_of
from skldp.accounting._extrema.sampled_law import Bounds
from skldp.accounting._query import RegressionQuery
from skldp.mechanisms._domain import Box
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._numeric.bounded_features import BoundedFeatures
from skldp.mechanisms._numeric.duchi import Duchi
from skldp.mechanisms._rows import RowMechanism

__all__ = ["FeatureQuestion"]


@dataclass(frozen=True)
class FeatureQuestion:
    """What a feature of the record is.

    Attributes
    ----------
    query : RegressionQuery
    column : int
        Which feature.
    region : Region
        What a record can be.

    Examples
    --------
    >>> from skldp.accounting._ledger.feature_question import FeatureQuestion
    >>> from skldp.mechanisms import Duchi
    >>> found = FeatureQuestion.of(Duchi(0.5), "age", ("height", "age"), (-1, 1))
    >>> found.query.coef.tolist(), found.query.output_bounds
    ([0.0, 1.0], (-1.0, 1.0))
    """

    query: RegressionQuery
    column: int
    region: Region

    @classmethod
    def of(
        cls, mechanism: RowMechanism, part: str, features: Sequence[str] | None, bounds: Bounds | None
    ) -> "FeatureQuestion | None":
        """Find the question that a mechanism puts, or None where it is not Duchi's for one number.

        Raises
        ------
        ValueError
            If the part is not the name of one declared feature, or the feature is not free of the others.
        """
        law = mechanism.mechanism if isinstance(mechanism, BoundedFeatures) else mechanism
        domain = mechanism.domain if isinstance(mechanism, RowMechanism) else None
        if not isinstance(law, Duchi) or not isinstance(domain, Box) or domain.n_features != 1:
            return None
        if bounds is None or features is None or list(features).count(part) != 1:
            raise ValueError(
                "A number that is counted by what was released of it is a feature of the record: declare them first, "
                "PrivacyLedger.declare(bounds=..., features=[...]), each under its own name. "
                f"Got part={part!r} and the features {features!r}."
            )
        region, column = region_of(bounds, n_features=len(features)), list(features).index(part)
        if region.in_block[column] or len(region.limits):
            raise ValueError(
                f"The feature {part!r} is not free of the others, in a one-hot block or by inequalities, and cannot be "
                "moved into the domain alone: ask for it with the whole record, or release it without part."
            )
        (low,), (high,) = domain.low, domain.high
        inside = low <= region.box[0, column] and region.box[1, column] <= high
        kind: Literal["linear", "truncated"] = "linear" if inside else "truncated"
        coef = np.eye(len(features))[column]
        return cls(RegressionQuery(kind, coef, 0.0, (low, high), law.exact_epsilon), column, region)

    def release(self, values: npt.NDArray[Any], noise: Noise) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """Draw people's answers, as what Duchi's mechanism releases, shape (n,), and as they are recorded."""
        records = np.zeros((len(values), self.region.box.shape[1]))
        records[:, self.column] = values
        answers = self.query.sample(self.region.move(records), noise).astype(np.int64)
        return self.query.estimate(answers), answers
