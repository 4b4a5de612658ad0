"""Declared classes and categories: labels of any type to codes 0 to C - 1 and back."""

import math
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from skldp._arrays import kind_of
from skldp._reading import CodeReader, Unread, as_array
from skldp.estimators._validation import check_numbers

_NUMERIC = "iuf"


def labels_1d(y: Any, *, columns: int = 1) -> np.ndarray:
    """Return labels as a non-empty array of shape (n_samples,); a matrix may have at most `columns` columns."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    shape = tuple(getattr(y, "shape", ()))
    if len(shape) == 2 and shape[-1] > columns:
        raise ValueError(
            f"y should be a 1d array, got an array of shape {shape} instead. Use LabelMatrixRR for several labels of a "
            "record. A step of a pipeline gets X: LabelPrivateClassifier trains a classifier on private labels."
        )
    check_numbers(y, "y", or_text=True)
    labels = column_or_1d(as_array(y), warn=True)  # which would read nullable booleans as floats
    if not labels.size:
        raise ValueError("y must hold at least one label; got an empty y.")
    return labels


def declared_values(values: Any, name: str) -> np.ndarray:
    """Return declared classes or categories as a distinct array (n_classes,), sorted if possible."""
    declared = _as_array(values)
    got = kind_of(values)  # They may be the labels of people.
    if declared.ndim != 1 or not declared.size:
        raise ValueError(f"{name} must be a list of at least one value; got {got}.")
    as_list = declared.tolist()
    try:
        distinct = len(set(as_list)) == len(as_list) and not any(map(_is_missing, as_list))
    except TypeError:
        distinct = False
    if not distinct:
        raise ValueError(f"{name} must be distinct, hashable, finite and not missing; got {got}.")
    try:
        return np.sort(declared)
    except TypeError:
        if name.startswith("categories"):
            return declared
        types = " and ".join(sorted({type(value).__name__ for value in as_list}))
        raise ValueError(f"{name} must be all texts or all numbers, as scikit-learn sorts them; got {types}.") from None


def classes_of(y: np.ndarray, declared: Any) -> np.ndarray:
    """Return declared classes, or codes 0 to K - 1 if y holds all of these and no class, as within an ensemble."""
    classes = declared_values(declared, "classes")
    codes = np.arange(classes.size)
    is_encoded = y.dtype.kind in "iu" and np.array_equal(np.unique(y), codes)
    return codes if is_encoded and CodeReader(list(classes)).read_all(codes).state.all() else classes


def learnt_values(y):
    """Return the sorted classes of a discrete y."""
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("Labels must be finite. Input y contains NaN or infinity.")
    check_classification_targets(y)
    return declared_values(np.unique(y), "The labels in y")


def encode(values: np.ndarray, domain: np.ndarray, name: str) -> np.ndarray:
    """Return the codes of values (n_samples,) in a declared domain (n_classes,)."""
    # numpy turns times as objects into integers.
    reader = CodeReader(list(domain) if domain.dtype.kind in "mM" else domain.tolist())
    cells = reader.read_all(values)
    # The message must show neither the value nor a domain that may be learnt.
    types = " or ".join(sorted({type(value).__name__ for value in domain.tolist()}))
    rule = f"only the declared {domain.size} values of type {types}"
    if name == "y" and cells.state.any() and values.dtype.kind in "iu" and set(values) <= set(range(domain.size)):
        rule += f" (ensembles and cross_val_predict encode y: inside them declare classes=range({domain.size}))"
    cells.check(values, name, rule, *Unread)
    return cells.values


def decoded_dtype(domain, dtype):
    """Return the dtype of the private values if it holds the domain, else the domain's."""
    if dtype.kind == "O" or (
        dtype.kind in _NUMERIC and domain.dtype.kind in _NUMERIC and (domain.astype(dtype) == domain).all()
    ):
        return dtype
    return domain.dtype


def decode(codes, domain, dtype):
    """Return the values of codes, in the dtype of :func:`decoded_dtype`."""
    return domain.astype(decoded_dtype(domain, dtype), copy=False)[codes]


def _is_missing(value):
    return value is None or value != value or (isinstance(value, float) and math.isinf(value))


def _as_array(values):
    array = np.asarray(values)
    # numpy turns [1, "a"] into strings, which equal no label.
    if array.dtype.kind == "U" and not all(isinstance(value, str) for value in values):
        return np.array(list(values), dtype=object)
    return array
