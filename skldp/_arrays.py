"""Description of data in messages (type, shape, column; never a value), and conversion to numbers."""

from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Positions = npt.NDArray[np.intp]
Words = npt.NDArray[np.uint64]

_DATES = (np.datetime64, np.timedelta64)


def kind_of(values: Any) -> str:
    """Describe data by type and shape."""
    name, dtype, shape = type(values).__name__, getattr(values, "dtype", None), getattr(values, "shape", None)
    if isinstance(dtype, np.dtype):
        # The name of a string dtype contains the length of the longest value.
        name += f" of {dtype.type.__name__}"
    if isinstance(shape, tuple):
        return f"{name} with shape {shape}" if shape else f"{name} without dimension"
    return f"{name} of length {len(values)}" if isinstance(values, list | tuple) else name


def where_not_numbers(values: Any) -> str:
    """Name the first column with other values than real numbers, and their types; empty if there is none."""
    try:
        if hasattr(values, "columns"):
            table = values.iloc if hasattr(values, "iloc") else values
            columns = [(f" in column {str(name)!r}", table[:, j].to_list()) for j, name in enumerate(values.columns)]
        else:
            array = np.asarray(values, dtype=object)
            table = array.T if array.ndim == 2 else [array.reshape(-1)]
            columns = [(f" in column {j}" if array.ndim == 2 else "", part.tolist()) for j, part in enumerate(table)]
    except Exception:
        # A ragged list, for example, has no columns.
        return ""
    for place, column in columns:
        strange = sorted({type(value).__name__ for value in column if not isinstance(value, Real)})
        if strange:
            return f", with {', '.join(strange[:3])}{place}"
    return ""


def as_numbers(values: npt.ArrayLike, name: str = "values", dtype: npt.DTypeLike = np.float64) -> np.ndarray:
    """Convert values to an array of real numbers."""
    if isinstance(values, np.ndarray) and values.dtype == dtype:
        return values
    try:
        array = np.asarray(values)
        # numpy converts dates to counts of their unit, also in an array of objects.
        dated = array.dtype.kind == "O" and any(isinstance(one, _DATES) for one in array.reshape(-1).tolist())
        if not dated and array.dtype.kind not in "cmM":
            return array.astype(dtype, copy=False)
    except (ValueError, TypeError, OverflowError):
        pass
    raise ValueError(f"{name} must be real numbers; got {kind_of(values)}{where_not_numbers(values)}.")
