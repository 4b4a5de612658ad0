"""What released the rows that a model is fitted on: its law, and its guarantee."""

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from skldp.estimators._guarantee_mixin import own_guarantee
from skldp.mechanisms._domain import Codes
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._rows import RowMechanism

__all__ = ["law_of_releases"]


def law_of_releases(
    given: Any, n_columns: int, name: str, *, or_target: bool = False
) -> tuple[RowMechanism, PrivacyGuarantee]:
    """The mechanism of released rows and its guarantee.

    Parameters
    ----------
    given : RowMechanism or transformer
        A transformer that is not fitted is cloned and fitted to `n_columns`.
    n_columns : int
        How many numbers it must release.
    name : str
        What errors call it.
    or_target : bool, default=False
        Whether it may release one number more.

    Returns
    -------
    mechanism : RowMechanism
    guarantee : PrivacyGuarantee

    Raises
    ------
    ValueError
        If it releases no rows, codes of categories, or another count of numbers.
    """
    mechanism: Any = given
    guarantee: PrivacyGuarantee | None
    if isinstance(given, RowMechanism):
        guarantee = given.guarantee()
    else:
        try:
            check_is_fitted(given)
            transformer = given
        except NotFittedError:
            transformer = clone(given).fit(np.zeros((1, n_columns)))
        mechanism, guarantee = getattr(transformer, "mechanism_", None), own_guarantee(transformer)
    if not isinstance(mechanism, RowMechanism) or guarantee is None or isinstance(mechanism.domain, Codes):
        raise ValueError(
            f"{name} must be a RowMechanism that releases numbers without bias, or a transformer of this library that "
            f"does so by one. Got {type(given).__name__} instead."
        )
    if mechanism.n_outputs not in range(n_columns, n_columns + 1 + or_target):
        more = ", or the target as one more" if or_target else ""
        raise ValueError(
            f"{name} must release {n_columns} numbers, as many as there are columns{more}. "
            f"Got one that releases {mechanism.n_outputs} instead."
        )
    return mechanism, guarantee
