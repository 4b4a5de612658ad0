"""What every mechanism and model promises at given sizes, fitted to made-up rows that are about nobody."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skldp.estimators._categorical import CategoricalPrivatizer
from skldp.estimators._label_matrix import LabelMatrixRR
from skldp.estimators._label_vector import LabelLaplaceVector
from skldp.estimators._private_moments import PrivateMoments
from skldp.estimators._schema import read_schema
from skldp.estimators._table import TablePrivatizer
from skldp.estimators._targets import TargetPrivatizer
from skldp.estimators._validation import check_epsilon
from skldp.exceptions import PrivacyGuaranteeWarning, SeededNoiseWarning, TooFewPeopleWarning
from skldp.mechanisms._categorical.catalogue import CATEGORICAL_MECHANISMS
from skldp.mechanisms._columns import Categories
from skldp.study._catalogue import (
    FEATURE_MECHANISMS,
    LABEL_MECHANISMS,
    PRIVATE_MODELS,
    feature_mechanism,
    label_mechanism,
    private_model,
    takes_delta,
)
from skldp.study._extras import require
from skldp.study._tables import StudyInputError

__all__ = ["GUARANTEED", "Sizes", "fitted_mechanism"]

_MODELS = {name: task for task, models in PRIVATE_MODELS.items() for name in models}
_OF_CATEGORIES = (*CATEGORICAL_MECHANISMS, "best-categories")
_OF_TARGETS = {f"target-{name.replace('_', '-')}": name for name in ("bins", "unbiased_bins", "best")}
#: The names of all that has a guarantee, by what it is of.
GUARANTEED: dict[str, tuple[str, ...]] = {
    "rows of numbers": tuple(FEATURE_MECHANISMS),
    "categories": _OF_CATEGORIES,
    "tables with a --schema": ("table",),
    "labels": (*LABEL_MECHANISMS, "label-matrix", "label-laplace-vector"),
    "targets": tuple(_OF_TARGETS),
    "models": (*_MODELS, "moments"),
}
# Few, for what is learnt from them is of no use.
_MADE_UP = 60


@dataclass(frozen=True)
class Sizes:
    """The public sizes that a guarantee may depend on.

    Attributes
    ----------
    n_features : int
        Columns of numbers, or of categories.
    n_classes : int
        Classes of a label, or categories of a column.
    low, high : float
        The bounds of every number.
    n_bits : int
        Of a feature, for the bit-flipping mechanisms.
    delta : float or None
        For mechanisms that have one; None takes their default.
    schema : dict by column or None
        For a table.
    """

    n_features: int = 64
    n_classes: int = 2
    low: float = -1.0
    high: float = 1.0
    n_bits: int = 10
    delta: float | None = None
    schema: Mapping[str, Any] | None = None


def fitted_mechanism(name: str, epsilon: float, sizes: Sizes, **options: Any) -> Any:
    """Fit a mechanism or a model to made-up rows of given sizes.

    Examples
    --------
    >>> from skldp.study._guarantees import Sizes, fitted_mechanism
    >>> fitted_mechanism("oue", 1.0, Sizes(n_features=1, n_classes=5)).privacy_guarantee_.stated
    1.0
    """
    check_epsilon(epsilon)
    known = [one for names in GUARANTEED.values() for one in names]
    if name not in known:
        raise StudyInputError(f"The mechanism must be one of {', '.join(known)}. Got {name!r} instead.")
    if sizes.delta is not None and not takes_delta(name):
        having = ", ".join(filter(takes_delta, FEATURE_MECHANISMS))
        raise StudyInputError(f"--delta is for {having}; {name} has none.")
    if name == "table" and sizes.schema is None:
        raise StudyInputError("table needs --schema: what its columns may hold.")
    if name != "table" and sizes.schema is not None:
        raise StudyInputError(f"--schema is for table; {name} has none.")
    with warnings.catch_warnings():
        # Both figures are in the guarantee, and nothing is learnt.
        for category in (PrivacyGuaranteeWarning, SeededNoiseWarning, TooFewPeopleWarning):
            warnings.simplefilter("ignore", category)
        return _fitted(name, epsilon, sizes, options)


def _fitted(name: str, epsilon: float, sizes: Sizes, options: dict[str, Any]) -> Any:
    classes, shape = np.arange(sizes.n_classes), (max(_MADE_UP, sizes.n_classes), sizes.n_features)
    rows, labels = np.full(shape, sizes.low / 2 + sizes.high / 2), np.arange(shape[0]) % sizes.n_classes
    bounds = (sizes.low, sizes.high)
    if name in FEATURE_MECHANISMS:
        if sizes.delta is not None:
            options = options | {"delta": sizes.delta}
        made = feature_mechanism(name, epsilon=epsilon, bounds=bounds, n_bits=sizes.n_bits, **options)
        return made.fit(rows[:1])
    if name in _OF_CATEGORIES:
        own: Any = "best" if name == "best-categories" else name
        categories = [classes] * sizes.n_features
        return CategoricalPrivatizer(epsilon, mechanism=own, categories=categories).fit(np.zeros(shape, dtype=int)[:1])
    if name == "table":
        schema = dict(sizes.schema or {})
        return TablePrivatizer(epsilon, schema=schema).fit(_admitted(schema))
    if name in LABEL_MECHANISMS:
        return label_mechanism(name, epsilon=epsilon, classes=classes).fit(classes)
    if name == "label-matrix":
        return LabelMatrixRR(epsilon, classes=classes).fit(np.zeros(shape, dtype=int)[:1])
    if name == "label-laplace-vector":
        return LabelLaplaceVector(epsilon, classes=classes).fit(classes)
    if name in _OF_TARGETS:
        return TargetPrivatizer(epsilon, bounds=bounds, mechanism=_OF_TARGETS[name]).fit(rows[:, 0])
    if name == "moments":
        return PrivateMoments(epsilon, bounds=bounds).fit(rows)
    if _MODELS[name] == "regression":
        return private_model(name, epsilon=epsilon, bounds=bounds, target_bounds=bounds).fit(rows, rows[:, 0])
    return private_model(name, epsilon=epsilon, bounds=bounds, classes=classes).fit(rows, labels)


def _admitted(schema: dict[str, Any]) -> Any:
    """A made-up table of one row that a schema admits: first categories, and low bounds."""
    columns, _ = read_schema(schema, list(schema), [None] * len(schema))
    ends = [0.0 if isinstance(column.domain, Categories) else float(column.domain.low) for column in columns]
    cells = [column.from_numbers(np.array([end])) for column, end in zip(columns, ends, strict=True)]
    return require("pandas").DataFrame(dict(zip(schema, cells, strict=True)))
