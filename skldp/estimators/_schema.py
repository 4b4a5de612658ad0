"""Schemas of tables as declared columns, and the columns of frames."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from skldp._checks import is_number
from skldp._documents import read_json
from skldp._reading import as_array
from skldp._tables import require
from skldp.domains._column import DATE_TYPES, Column, check_integers, days_of
from skldp.estimators._validation import InvalidParameterError, check_bounds

_DICTS = (
    '{"type": "number", "low": 0, "high": 100} (or "integer", or "date" with dates in quotes) or {"type": "category", '
    '"values": ["S", "M", "L"]}, with "missing": "category" if values may be missing, "scale": "log" if skewed'
)
_FORMS = f'(0, 100), ("2020-01-01", "2024-12-31"), a list of categories such as ["S", "M", "L"], or {_DICTS}'
_FORMS_OF_JSON = f'a list of categories such as ["S", "M", "L"], or {_DICTS}'
_OF_BOUNDS = {"low", "high", "missing", "scale"}
_OPTIONS = {
    "number": _OF_BOUNDS,
    "integer": _OF_BOUNDS,
    "date": _OF_BOUNDS,
    "category": {"values", "ordered", "missing"},
}


def read_schema(schema: Any, names: list[Any] | None = None) -> list[Column]:
    """Return the declared columns of a schema, in the order of the names of a table if there are some."""
    of_json = isinstance(schema, str)
    forms = _FORMS_OF_JSON if of_json else _FORMS
    schema = schema_by_column(schema, names or [])
    names = list(schema) if names is None else names
    given, own = set(schema), set(names)
    for what, some in (("It misses", own - given), ("The table lacks the declared", given - own)):
        if some:
            raise ValueError(f"schema must name every column once. {what} {sorted(map(str, some))}.")
    columns = []
    for name in names:
        try:
            columns.append(declared_column(str(name), schema[name], of_json))
        except (ValueError, TypeError) as error:
            raise ValueError(f"schema of the column {name!r} is invalid: {error} It must be {forms}.") from None
    return columns


def schema_by_column(schema: Any, names: list[Any]) -> Mapping[Any, Any]:
    """Return a schema of any form as a dict by column, unchecked; one (low, high) is for all `names`."""
    if isinstance(schema, str):
        form = '{"age": {"type": "number", "low": 0, "high": 100}, "city": ["Bonn", "Ulm"]}'
        try:
            schema = read_json(schema)
            if not isinstance(schema, dict):
                raise ValueError("It is no object.")
        except ValueError as error:
            raise ValueError(f"schema must be JSON such as {form} if it is a string, not a path. {error}") from None
    return schema if isinstance(schema, Mapping) else dict.fromkeys(names, schema)


def declared_column(name: str, given: Any, of_json: bool = False) -> Column:
    """Return the column of one declaration of a schema."""
    if isinstance(given, Column):
        column = replace(given, name=name)
    elif isinstance(given, Mapping):
        column = _of_dict(name, given)
    elif isinstance(given, list):
        _refuse_bounds(given, of_json)
        column = Column(values=tuple(given), name=name)
    elif isinstance(given, tuple) and len(given) == 2:
        if all(map(is_number, given)) and given[0] < given[1]:
            check_bounds(given, 1)
        column = Column(*given, name=name)
    else:
        raise ValueError(f"it is {given!r}.")
    if column.values is None:
        check_bounds((column.low, column.high), 1)
        if column.whole:
            check_integers(*column.ends)
    elif len(set(column.values)) < len(column.values):
        raise ValueError(f"Categories must be different values; got {column.values!r}.")
    return column


def _of_dict(name: str, given: Mapping[str, Any]) -> Column:
    kind = given.get("type")
    if kind not in _OPTIONS:
        raise ValueError(f"it is {dict(given)!r}.")
    options = {one: value for one, value in given.items() if one != "type" and (one != "missing" or value is not None)}
    if not options.keys() <= _OPTIONS[kind]:
        raise ValueError(f"The type {kind!r} has the options {sorted(_OPTIONS[kind])}; got {sorted(options)}.")
    if kind == "category":
        values = options.get("values")
        options["values"] = tuple(values) if isinstance(values, list) else values
        if options["values"] is None:
            raise ValueError("The type 'category' must have values; got none.")
    elif kind == "date" or isinstance(options.get("low"), DATE_TYPES):
        # Days are no bounds of a schema.
        options["low"], options["high"] = days_of(options.get("low"), options.get("high"))
        kind = "date"
    return Column(**options, kind=kind, name=name)


def _refuse_bounds(given: list[Any], of_json: bool) -> None:
    """Raise ValueError for two numbers or dates: JSON has no tuples, and bounds would be read as categories."""
    of_numbers, of_dates = (len(given) == 2 and all(map(is_one, given)) for is_one in (is_number, _is_iso_date))
    if of_numbers or of_dates:
        kind = "date" if of_dates else "number"
        low, high = (json.dumps(value, default=float) for value in given)
        of_python = "" if of_json else f"{tuple(given)!r}, or in JSON "
        raise ValueError(
            f"A list of two {kind}s may mean bounds, for which write {of_python}"
            f'{{"type": "{kind}", "low": {low}, "high": {high}}}, and two categories, for which write '
            f'{{"type": "category", "values": [{low}, {high}]}}.'
        )


def _is_iso_date(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value) is not None


def check_frame(X: Any) -> None:
    """Raise ValueError unless X is a frame of pandas or polars with distinct column names."""
    if not hasattr(X, "iloc") and not hasattr(X, "get_columns"):
        raise ValueError(f"X must be a DataFrame of pandas or polars, or an array; got {type(X).__name__}.")
    names = list(X.columns)
    if len(set(names)) < len(names):
        twice = sorted({str(name) for name in names if names.count(name) > 1})
        raise ValueError(f"Columns of X must have different names; got {twice} more than once.")


def check_unknown(handle_unknown: str, columns: list[Column]) -> None:
    """Raise ValueError if undeclared categories shall count as missing and a column has no missing category."""
    without = ", ".join(column.name for column in columns if column.values and column.missing == "refuse")
    if handle_unknown == "missing" and without:
        raise InvalidParameterError(f'handle_unknown=\'missing\' needs "missing": "category" for {without}.')


def check_feature_names(names: list[str]) -> None:
    """Raise ValueError if two features have one name."""
    if len(set(names)) < len(names):
        raise ValueError("Encoded columns must have different names, of a column and a category; rename a column.")


def columns_of(X: Any, places: Iterable[int] | None = None) -> list[Any]:
    """Return the columns of a frame or an array at `places`, or all, as arrays of their own types."""
    column = X.column if hasattr(X, "column_names") else lambda j: getattr(X, "iloc", X)[:, j]
    return [as_array(column(j)) for j in (range(X.shape[1]) if places is None else places)]


def framed(X: Any, names: list[Any], columns: list[Column], numbers: np.ndarray, container: str) -> Any:
    """Return released columns, with types of categories and dates, in a frame of a container, by default like X."""
    of_pandas = hasattr(X, "iloc") if container == "default" else container == "pandas"
    write = _pandas_column if of_pandas else _polars_column
    made = {
        name if of_pandas else str(name): write(column, column.from_numbers(own))
        for name, column, own in zip(names, columns, numbers.T, strict=True)
    }
    if not of_pandas:
        return require("polars").DataFrame(made)
    build = getattr(X, "_constructor", require("pandas").DataFrame)  # a subclass may need arguments of its own
    return build(made, index=getattr(X, "index", None))


def _pandas_column(column: Column, values: np.ndarray) -> Any:
    import pandas

    return values if column.values is None else pandas.Categorical(values, column.categories, column.ordered)


def _polars_column(column: Column, values: np.ndarray) -> Any:
    import polars

    if column.values is None:
        return polars.Series(values, nan_to_null=True)
    of_texts = all(isinstance(value, str) for value in column.categories)
    return polars.Series(values.tolist(), dtype=polars.Enum(column.categories) if of_texts else None)
