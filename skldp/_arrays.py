"""Description of data in messages (type, shape, column; never a value), and conversion to numbers."""

from datetime import date, time, timedelta
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Positions = npt.NDArray[np.intp]
Words = npt.NDArray[np.uint64]

_DATES = (np.datetime64, np.timedelta64, date, time, timedelta)


def is_sparse(values: Any) -> bool:
    """Return whether values are a sparse matrix or array of scipy, which need not be imported."""
    return hasattr(values, "tocsr")


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
            table = array.T if array.ndim == 2 else [array.reshape(-1)] * bool(array.ndim)
            columns = [(f" in column {j}" if array.ndim == 2 else "", part.tolist()) for j, part in enumerate(table)]
    except Exception:
        # A ragged list, for example, has no columns.
        return ""
    found = [({type(one).__name__ for one in column if not isinstance(one, Real)}, place) for place, column in columns]
    # A column of numbers some of which are missing is rarely the reason.
    strange, place = min(found, key=lambda one: (not one[0] - {"NAType", "NoneType"}, not one[0]), default=(set(), ""))
    return f", with {', '.join(sorted(strange)[:3])}{place}" if strange else ""


def as_numbers(values: npt.ArrayLike, name: str = "values", dtype: npt.DTypeLike = np.float64) -> np.ndarray:
    """Convert values to an array of real numbers."""
    refuse_masked(values, name)
    if isinstance(values, np.ndarray) and values.dtype == dtype:
        return values
    try:
        array = np.asarray(values)
        if not has_dates(array) and array.dtype.kind != "c":
            return array.astype(dtype, copy=False)
    except (ValueError, TypeError, OverflowError):
        pass
    raise ValueError(not_numbers(values, name))


def refuse_masked(values: Any, name: str) -> None:
    """Raise ValueError for masked cells of an array or of its rows, which numpy would read as values."""
    rows = values if isinstance(values, list | tuple) else [values]
    if any(isinstance(row, np.ma.MaskedArray) and np.ma.is_masked(row) for row in rows):
        raise ValueError(f"{name} must not have masked cells, which are missing; got {kind_of(values)}.")


def has_dates(array: np.ndarray) -> bool:
    """Return whether an array holds dates, which numpy converts to counts of their unit, also as objects."""
    return array.dtype.kind in "mM" or (array.dtype.kind == "O" and any(isinstance(one, _DATES) for one in array.flat))


def not_numbers(values: Any, name: str) -> str:
    """Return the text of an error for values that are not numbers."""
    return f"{name} must be real numbers in the range of float64; got {kind_of(values)}{where_not_numbers(values)}."
