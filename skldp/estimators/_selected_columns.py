"""What the columns that a branch of a ColumnTransformer is given tell of it."""

from typing import Any

import numpy as np

__all__ = ["repeats", "selects_none"]


def repeats(columns: Any, n_columns: int) -> bool:
    """Whether a column is listed twice, which stretches distances."""
    is_list = hasattr(columns, "__len__") and not isinstance(columns, str)
    if not is_list or np.asarray(columns).dtype == bool:
        return False
    # The last column is -1 as well.
    return len({column if isinstance(column, str) else column % n_columns for column in columns}) < len(columns)


def selects_none(columns: Any) -> bool:
    """Whether a branch has no column, and so is not fitted."""
    if not hasattr(columns, "__len__"):
        return False
    selected = np.asarray(columns)
    return not (selected.any() if selected.dtype == bool else selected.size)
