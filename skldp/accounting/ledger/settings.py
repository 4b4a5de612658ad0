"""What a ledger is made with, checked and in the form in which it is stored."""

import math
from numbers import Real
from typing import Any

import numpy as np

from skldp.accounting.ledger.decisions import RULES
from skldp.accounting.query_content import LARGEST

__all__ = ["checked_bounds", "checked_settings"]


def checked_settings(epsilon: Any, bounds: Any, rule: Any, tol: Any) -> dict[str, Any]:
    """Check the parameters of a ledger.

    Raises
    ------
    ValueError
        If one breaks its rule.
    """
    for name, value in (("epsilon", epsilon), ("tol", tol)):
        is_number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
        if not is_number or not math.isfinite(value) or value <= 0:
            raise ValueError(f"{name} must be a finite number above 0. Got {value!r} instead.")
    if not isinstance(rule, str) or rule not in RULES:
        raise ValueError(f"rule must be one of {RULES}. Got {rule!r} instead.")
    stored = None if bounds is None else checked_bounds(bounds)
    return {"epsilon": float(epsilon), "bounds": stored, "rule": str(rule), "tol": float(tol)}


def checked_bounds(bounds: Any) -> list[Any]:
    """Two numbers, or two lists with one number per feature: what JSON keeps exactly.

    Raises
    ------
    ValueError
        If they are no finite numbers with low <= high, or are beyond 1e100.
    """
    try:
        low, high = (np.asarray(side, dtype=np.float64) for side in bounds)
        box = np.stack(np.broadcast_arrays(low, high))
    except (TypeError, ValueError):
        raise ValueError(f"bounds must be (low, high), of numbers. Got {bounds!r} instead.") from None
    if box.ndim > 2 or box.size == 0 or not np.isfinite(box).all() or (box[0] > box[1]).any():
        raise ValueError(f"bounds must be finite, with low <= high. Got {bounds!r} instead.")
    if (np.abs(box) > LARGEST).any():
        raise ValueError(f"bounds must lie within -{LARGEST:g} and {LARGEST:g}. Got {bounds!r} instead.")
    # Adding 0.0 turns -0.0 into 0.0. One and the same interval for all features is written once.
    box = box + 0.0
    if box.ndim == 2 and (box == box[:, :1]).all():
        box = box[:, 0]
    return box.tolist()
