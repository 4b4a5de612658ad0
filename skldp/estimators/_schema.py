"""Declared columns of a table, and their values as numbers and codes of categories."""

import datetime
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from skldp._checks import is_number
from skldp._documents import read_json
from skldp._reading import DayReader, as_array
from skldp._tables import require
from skldp.domains._columns import Categories, Columns, Integers, Interval, OrMissing, domain_from_json
from skldp.domains._declared_columns import CategoryColumn, DeclaredColumn, NumberColumn
from skldp.domains._domain import Domain
from skldp.estimators._validation import InvalidParameterError, check_bounds

_DICTS = (
    '{"type": "number", "low": 0, "high": 100} (or "integer", or "date" with dates in quotes) or {"type": "category", '
    '"values": ["S", "M", "L"]}, with "missing": "category" if values may be missing, "scale": "log" if skewed'
)
_FORMS = f'(0, 100), ("2020-01-01", "2024-12-31"), a list of categories such as ["S", "M", "L"], or {_DICTS}'
_FORMS_OF_JSON = f'a list of categories such as ["S", "M", "L"], or {_DICTS}'
# Words of schemas and policies, with those of domains.
_TYPES = {"number": "interval", "integer": "integers", "date": "dates", "category": "categories"}
_DATE_TYPES = (str, datetime.date, np.datetime64)


def read_schema(schema: Any, names: list[Any], dtypes: list[Any]) -> tuple[list[DeclaredColumn], list[str]]:
    """Return the declared columns in the order of a table."""
    of_json = isinstance(schema, str)
    schema = schema_by_column(schema, names)
    given, own = set(schema), set(names)
    for what, some in (("It misses", own - given), ("The table lacks the declared", given - own)):
        if some:
            raise ValueError(f"schema must name every column once. {what} {sorted(map(str, some))}.")
    columns, learnt = [], []
    for name, dtype in zip(names, dtypes, strict=True):
        given = schema[name]
        of_rows = isinstance(given, str) and given == "dtype"
        if of_rows and type(dtype).__name__ == "CategoricalDtype":
            learnt.append(str(name))
        try:
            columns.append(_column(str(name), dtype if of_rows else given, of_json))
        except (ValueError, TypeError, KeyError) as error:
            # The categories of a dtype are learnt from rows.
            got = f"Got the dtype of the column, {type(dtype).__name__}." if of_rows else error
            forms = _FORMS_OF_JSON if of_json else _FORMS
            raise ValueError(f"schema of the column {name!r} is invalid. {got} It must be {forms}.") from None
    return columns, learnt


def declared_column(name: str, domain: Domain, missing: Any = None, **kind: Any) -> DeclaredColumn:
    """Return the column of a domain; `missing` is "category", "middle" or None (refused), `kind` as in NumberColumn."""
    if isinstance(domain, OrMissing) and missing is None:
        domain, missing = domain.number, "category"
    if not isinstance(domain, Interval | Integers | Categories):
        raise ValueError(f"Got {type(domain).__name__} instead.")
    fitting = ("category",) if isinstance(domain, Categories) else ("category", "middle")
    if missing is not None and missing not in fitting:
        listed = " or ".join(map(repr, fitting))
        raise ValueError(f"missing must be {listed} for {type(domain).__name__}, or left out. Got {missing!r}.")
    if isinstance(domain, Categories):
        if kind:
            raise ValueError(f"{' and '.join(kind)} must be left out for Categories.")
        return CategoryColumn(name, domain.values + ((None,) if missing else ()), ordered=domain.ordered)
    check_bounds((domain.low, domain.high), 1)
    stand_in = {None: "refuse", "category": "category", "middle": None}[missing]
    whole = isinstance(domain, Integers)
    return NumberColumn(name, domain.low, domain.high, whole=whole, missing=stand_in, **kind)


def schema_by_column(schema: Any, names: list[Any]) -> Mapping[Any, Any]:
    """Return a schema of any form as a dict by column, unchecked; one (low, high) is for all `names`."""
    if isinstance(schema, str):
        schema = _of_json(schema)
    if isinstance(schema, Columns):
        if any(len(own) > 1 for own, _ in schema.parts):
            raise ValueError("schema must declare each column separately. Got columns with a joint domain.")
        return {own[0]: domain for own, domain in schema.parts}
    return schema if isinstance(schema, Mapping) else dict.fromkeys(names, schema)


def check_frame(X: Any) -> None:
    """Raise ValueError unless X is a frame of pandas or polars with distinct column names."""
    if not hasattr(X, "iloc") and not hasattr(X, "get_columns"):
        raise ValueError(f"X must be a DataFrame of pandas or polars, or an array. Got {type(X).__name__} instead.")
    names = list(X.columns)
    if len(set(names)) < len(names):
        twice = sorted({str(name) for name in names if names.count(name) > 1})
        raise ValueError(f"Columns of X must have different names. Got {twice} more than once.")


def check_unknown(handle_unknown: str, columns: list[DeclaredColumn]) -> None:
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


def framed(X: Any, names: list[Any], columns: list[DeclaredColumn], numbers: np.ndarray, container: str) -> Any:
    """Return released columns, with types of categories and dates, in a frame of a container, by default like X."""
    of_pandas = hasattr(X, "iloc") if container == "default" else container == "pandas"
    write = _pandas_column if of_pandas else _polars_column
    made = {
        name if of_pandas else str(name): write(column.domain, column.from_numbers(own))
        for name, column, own in zip(names, columns, numbers.T, strict=True)
    }
    if not of_pandas:
        return require("polars").DataFrame(made)
    build = getattr(X, "_constructor", require("pandas").DataFrame)  # a subclass may need arguments of its own
    return build(made, index=getattr(X, "index", None))


def _pandas_column(domain: Domain, values: np.ndarray) -> Any:
    import pandas

    return pandas.Categorical(values, domain.values, domain.ordered) if isinstance(domain, Categories) else values


def _polars_column(domain: Domain, values: np.ndarray) -> Any:
    import polars

    if not isinstance(domain, Categories):
        return polars.Series(values, nan_to_null=True)
    of_texts = all(isinstance(value, str) for value in domain.values)
    return polars.Series(values.tolist(), dtype=polars.Enum(domain.values) if of_texts else None)


def _column(name: str, given: Any, of_json: bool) -> DeclaredColumn:
    # A field of a policy is a column with a law, which a table would ignore.
    if type(given) in (NumberColumn, CategoryColumn) and given.name == name:
        return given
    if isinstance(given, Domain):
        return declared_column(name, given)
    if isinstance(given, Mapping) and given.get("type") in (*_TYPES, *_TYPES.values(), "or_missing"):
        fields = dict(given) | {"type": _TYPES.get(given["type"], given["type"])}
        missing = fields.pop("missing", None)
        scale = {"scale": fields.pop("scale")} if "scale" in fields else {}
        if fields["type"] == "dates" or isinstance(fields.get("low"), _DATE_TYPES):
            return declared_column(name, _dates(fields.get("low"), fields.get("high")), missing, is_date=True, **scale)
        # Through JSON, so that a dict and a file mean the same.
        return declared_column(name, domain_from_json(json.dumps(fields)), missing, **scale)
    if hasattr(given, "categories"):
        values = [value.item() if isinstance(value, np.generic) else value for value in list(given.categories)]
        return declared_column(name, Categories(tuple(values), bool(getattr(given, "ordered", True))))
    if isinstance(given, list):
        # JSON has no tuples: two dates would be read as categories.
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
        return declared_column(name, Categories(tuple(given)))
    if isinstance(given, tuple) and len(given) == 2:
        if isinstance(given[0], _DATE_TYPES):
            return declared_column(name, _dates(*given), is_date=True)
        return declared_column(name, Interval(*given))
    raise ValueError(f"Got {given!r} instead.")


def _of_json(text: str) -> Any:
    try:
        schema = read_json(text)
        by_column = isinstance(schema, dict) and schema.get("type") != "columns"
        return schema if by_column else domain_from_json(text)
    except ValueError as error:
        form = '{"age": {"type": "number", "low": 0, "high": 100}, "city": ["Bonn", "Ulm"]}'
        raise ValueError(f"schema must be JSON such as {form} if it is a string, not a path. {error}") from None


def _is_iso_date(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value) is not None


def _dates(low: Any, high: Any) -> Integers:
    of_dates = all(_is_iso_date(one) if isinstance(one, str) else isinstance(one, _DATE_TYPES) for one in (low, high))
    (first, last), unread = DayReader().read_all([low, high])
    if not of_dates or unread.any() or not first < last:
        raise ValueError(
            "Bounds of dates must be two dates with low < high, such as ('2020-01-01', '2024-12-31'); numbers have no "
            f"quotes, and categories are a list. Got {(low, high)!r} instead."
        )
    return Integers(int(first), int(last))
