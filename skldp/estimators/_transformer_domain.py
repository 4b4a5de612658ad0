"""Domain of the output columns of a transformer, from its declared parameters and never from learnt ones.

Only classes of scikit-learn and of this package are recognised: a subclass may do anything.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from skldp.domains._column import Column
from skldp.domains._columns import Columns
from skldp.domains._constraints import OneHot
from skldp.domains._domain import Domain

# Column names of a part, and their domain.
_Part = tuple[list[str], Domain]


def domain_from_transformer(transformer: Any, bounds: Mapping[Any, Any] | None = None) -> Domain:
    """Return the domain of encoded rows from an encoder with declared parameters.

    Parameters
    ----------
    transformer : ColumnTransformer or encoder
        Fitted or not. Its steps are OneHotEncoder and OrdinalEncoder with declared categories, BoundsScaler,
        pipelines that end in one of these, ``"drop"``, and ``"passthrough"``.
    bounds : dict, default=None
        (low, high), or a domain of one column, for each column that passes, by its name or position.

    Returns
    -------
    Columns
        Domain with the names of the transformer's output columns.

    Raises
    ------
    ValueError
        If a step learnt from rows, or its domain is not declared.

    Examples
    --------
    >>> from sklearn.compose import ColumnTransformer
    >>> from sklearn.preprocessing import OneHotEncoder
    >>> from skldp import domain_from_transformer
    >>> cities = OneHotEncoder(categories=[["Bonn", "Ulm"]])
    >>> encoder = ColumnTransformer([("city", cities, ["city"]), ("rest", "passthrough", ["age"])])
    >>> domain_from_transformer(encoder, bounds={"age": (0, 100)}).names
    ('city__city_Bonn', 'city__city_Ulm', 'rest__age')
    """
    declared = dict(bounds or {})
    if _kind(transformer) == "ColumnTransformer":
        parts = list(_column_transformer_parts(transformer, declared))
    else:
        parts = list(_step_parts(type(transformer).__name__, transformer, _columns_of(transformer), declared))
    if declared:
        raise ValueError(f"bounds must name columns that pass unchanged; got {sorted(map(str, declared))} as well.")
    if not parts:
        raise ValueError(f"transformer must have output columns; got a {type(transformer).__name__} without any.")
    names = [name for own, _ in parts for name in own]
    is_fitted = any(name.endswith("_") and not name.startswith("_") for name in vars(transformer))
    if is_fitted and hasattr(transformer, "get_feature_names_out"):
        made = [str(name) for name in transformer.get_feature_names_out()]
        if len(made) != len(names):
            raise ValueError(
                f"{type(transformer).__name__} must have the {len(names)} columns that it declares; got {len(made)}."
            )
        names = made
    if len(set(names)) < len(names):
        names = [f"x{position}" for position in range(len(names))]
    left = iter(names)
    return Columns(tuple((tuple(islice(left, len(own))), part) for own, part in parts))


def _kind(step: Any) -> str | None:
    """Return the class name of a step of scikit-learn or this package; None for any other."""
    return type(step).__name__ if type(step).__module__.partition(".")[0] in ("sklearn", "skldp") else None


def _column_transformer_parts(transformer: Any, bounds: dict[Any, Any]) -> Iterator[_Part]:
    """Return the parts of a ColumnTransformer, in the order of its output."""
    fitted = hasattr(transformer, "transformers_")
    steps = list(transformer.transformers_ if fitted else transformer.transformers)
    if not fitted and not (isinstance(transformer.remainder, str) and transformer.remainder == "drop"):
        raise ValueError("remainder must be 'drop' unless the ColumnTransformer is fitted. Fit it first.")
    for name, step, columns in steps:
        own = listed_columns(name, columns, transformer)
        # A step without columns need not be declared.
        for names, part in _step_parts(name, step, own, bounds) if own else ():
            prefix = f"{name}__" if transformer.verbose_feature_names_out else ""
            yield [prefix + one for one in names], part


def listed_columns(name: str, columns: Any, transformer: Any) -> list[Any]:
    """Return the columns of a step of a ColumnTransformer, by name if they have one."""
    names_in, size = (getattr(transformer, known, None) for known in ("feature_names_in_", "n_features_in_"))
    if isinstance(columns, str) or (isinstance(columns, int) and not isinstance(columns, bool)):
        columns = [columns]
    if isinstance(columns, slice) and size is not None and not isinstance(columns.start or columns.stop, str):
        columns = list(range(*columns.indices(size)))
    # Some versions of scikit-learn wrap the positions of a remainder in their own list type.
    columns = columns.tolist() if isinstance(columns, np.ndarray) else getattr(columns, "data", columns)
    if isinstance(columns, list) and columns and all(type(one) is bool for one in columns):
        columns = [place for place, chosen in enumerate(columns) if chosen]
    if not isinstance(columns, list | tuple) or not all(type(one) in (str, int) for one in columns):
        raise ValueError(
            f"The columns of step {name!r} must be a list of names or positions; got {type(columns).__name__}."
        )
    if names_in is None:
        return list(columns)
    return [str(names_in[one]) if isinstance(one, int) else one for one in columns]


def _columns_of(step: Any) -> list[Any]:
    """Return the names or positions of the columns of a single step."""
    names = getattr(step, "feature_names_in_", None)
    if names is not None:
        return [str(name) for name in names]
    declared = getattr(step, "categories", None)
    size = len(declared) if isinstance(declared, list | tuple) else getattr(step, "n_features_in_", 0)
    return list(range(size))


def _step_parts(name: str, step: Any, columns: list[Any], bounds: dict[Any, Any]) -> Iterator[_Part]:
    """Return the parts that one step makes of its columns."""
    kind = _kind(step)
    if isinstance(step, str) and step == "drop":
        return
    if kind == "FrozenEstimator":
        yield from _step_parts(name, step.estimator, columns, bounds)
    elif kind == "Pipeline":
        # Earlier steps may change a row's category, not the set of categories.
        last = step.steps[-1][1]
        if isinstance(last, str) or last is None:
            raise ValueError(f"The last step of the Pipeline {name!r} must encode; got {last!r}.")
        yield from _step_parts(f"{name}: {step.steps[-1][0]}", last, columns, bounds)
    elif (isinstance(step, str) and step == "passthrough") or (kind == "FunctionTransformer" and step.func is None):
        yield from (_passed(name, column, bounds) for column in columns)
    elif kind in ("OneHotEncoder", "OrdinalEncoder"):
        yield from _encoded(name, step, columns, kind == "OneHotEncoder")
    elif kind == "BoundsScaler":
        yield from (([_named(one)], Column(-1, 1)) for one in columns)
    else:
        raise ValueError(
            f"Step {name!r} must be a OneHotEncoder or OrdinalEncoder with declared categories, a BoundsScaler, or a "
            "passthrough with bounds, because the domain must not be learnt from rows; "
            f"got {type(step).__name__}."
        )


def _named(column: Any) -> str:
    return f"x{column}" if isinstance(column, int) else str(column)


def _passed(name: str, column: Any, bounds: dict[Any, Any]) -> _Part:
    """Return the part of a column that passes unchanged, within its declared bounds."""
    if column not in bounds:
        raise ValueError(
            f"Column {column!r} passes step {name!r} unchanged: declare bounds={{{column!r}: (low, high)}}."
        )
    own = bounds.pop(column)
    if not isinstance(own, Domain):
        try:
            own = Column(*own)
        except TypeError:
            raise ValueError(f"The bounds of column {column!r} must be (low, high) or a Domain; got {own!r}.") from None
    if own.n_features != 1:
        raise ValueError(f"The domain of column {column!r} must be of one column; got {own.n_features}.")
    return [_named(column)], own


def _encoded(name: str, step: Any, columns: list[Any], is_one_hot: bool) -> Iterator[_Part]:
    """Return the parts of an encoder with declared categories: a one-hot block or an integer for each column."""
    declared, dropped = step.categories, getattr(step, "drop", None)
    if any(given is not None for given in (dropped, step.min_frequency, step.max_categories)):
        raise ValueError(f"Step {name!r} must not drop or group categories, such as rare ones.")
    if not is_one_hot and step.handle_unknown != "error":
        raise ValueError(f"Step {name!r} must not encode unknown categories: set handle_unknown='error'.")
    if isinstance(declared, str):
        raise ValueError(
            f"The categories of step {name!r} must be declared: categories=[[...], ...]; got categories={declared!r}."
        )
    if len(declared) != len(columns):
        raise ValueError(f"Step {name!r} has {len(columns)} columns; got the categories of {len(declared)}.")
    for column, values in zip(columns, map(list, declared), strict=True):
        if is_one_hot:
            block = OneHot(len(values), at_most_one=step.handle_unknown != "error")
            yield [f"{_named(column)}_{one}" for one in values], block
        elif len(values) < 2:
            raise ValueError(f"Column {column!r} of step {name!r} must have at least two categories.")
        else:
            yield [_named(column)], Column(0, len(values) - 1, kind="integer")
