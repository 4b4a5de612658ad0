"""What a table's columns may hold, declared column by column, and its columns as numbers and places of categories."""

import datetime
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Number
from typing import Any, Literal

import numpy as np

from skldp._checks import is_number
from skldp._reading import CodeReader, DayReader, NumberReader, Reader, Unread, as_array
from skldp._value_labels import value_labels
from skldp.estimators._validation import check_bounds
from skldp.mechanisms._columns import Categories, Columns, Integers, Interval, OrMissing, domain_from_json, strict_json
from skldp.mechanisms._domain import Codes, Domain

__all__ = ["DeclaredColumn", "check_frame", "columns_of", "framed", "read_schema", "schema_by_column"]

_FORMS = (
    "(low, high) of numbers or of dates, a list of categories, a domain of skldp.mechanisms, its JSON form as a dict "
    "(or of type 'dates') with 'missing' beside it, a polars Enum, or a pandas CategoricalDtype"
)
_FORMS_OF_JSON = (
    'a list of categories such as ["S", "M", "L"], or what holds its type, such as {"type": "interval", "low": 0, '
    '"high": 100}; other types are integers, categories and dates'
)
_EPOCH = np.datetime64(0, "D")


@dataclass(frozen=True)
class DeclaredColumn:
    """One column of a schema.

    Parameters
    ----------
    domain : Interval, Integers or Categories
        For dates, Integers of days since 1970.
    missing : {"category", "middle"}, default=None
        What stands for a missing value: a category of its own, or of a number the middle of the bounds. None refuses
        it.
    is_date : bool, default=False
    """

    domain: Interval | Integers | Categories
    missing: Literal["category", "middle"] | None = None
    is_date: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.domain, Categories):
            check_bounds((self.domain.low, self.domain.high), 1)
        fitting = ("category",) if isinstance(self.domain, Categories) else ("category", "middle")
        if self.missing is not None and self.missing not in fitting:
            listed = " or ".join(map(repr, fitting))
            raise ValueError(
                f"missing must be {listed} for {type(self.domain).__name__}, or left out. Got {self.missing!r}."
            )

    @property
    def values(self) -> tuple[Any, ...] | None:
        """The categories, with None last where missing values are one; None for numbers."""
        if not isinstance(self.domain, Categories):
            return None
        return self.domain.values + ((None,) if self.missing else ())

    @property
    def coded(self) -> Domain:
        """The domain of the numbers that stand for the column."""
        if self.missing != "category":
            return self.domain
        if isinstance(self.domain, Categories):
            return Codes((len(self.domain.values) + 1,))
        return OrMissing(self.domain)

    def feature_names(self, name: str) -> list[str]:
        """The names of the columns that it is one-hot: a number and perhaps its being missing, or all categories."""
        if self.values is None:
            return [name, f"{name}_missing"] if self.missing == "category" else [name]
        return [f"{name}_{label}" for label in value_labels(self.values, "missing")]

    def as_numbers(self, values: Any, name: str, *, unknown: str, first_row: int | None = None) -> np.ndarray:
        """A column as numbers, NaN where being missing is one, or as the places of its categories.

        Raises
        ------
        ValueError
            If something is missing, cannot be read, or is no declared category; it shows no value. Rows count from
            `first_row`, or positions from 0.
        """
        cells = self._reader.read_all(values)
        missing = cells.state == Unread.MISSING
        if missing.any() and self.missing is None:
            raise ValueError(
                f"Column {name!r} must not have missing values unless its schema says what stands for them. "
                f"Input contains NaN or None in {int(missing.sum()):,} of {missing.size:,} rows."
            )
        refused = (Unread.UNREADABLE, Unread.UNKNOWN) if unknown == "error" else (Unread.UNREADABLE,)
        cells.check(values, f"Column {name!r}", self._rule, *refused, first_row=first_row)
        if isinstance(self.domain, Categories):
            # A table counts an unknown value as missing.
            return np.where(cells.state > 0, len(self.domain.values), cells.values)
        middle = self.domain.low / 2 + self.domain.high / 2
        return np.where(missing, np.nan if self.missing == "category" else middle, cells.values)

    def from_numbers(self, numbers: np.ndarray) -> np.ndarray:
        """A released column as numbers, dates or categories."""
        if self.values is not None:
            table = np.empty(len(self.values), dtype=object)
            table[:] = self.values
            return table[numbers.astype(np.int64)]
        if not self.is_date:
            return numbers
        missing = np.isnan(numbers)
        days = np.rint(np.where(missing, 0, numbers)).astype("timedelta64[D]")
        return np.where(missing, np.datetime64("NaT", "D"), _EPOCH + days)

    @cached_property
    def _reader(self) -> Reader:
        if isinstance(self.domain, Categories):
            return CodeReader(self.domain.values)
        return DayReader() if self.is_date else NumberReader()

    @property
    def _rule(self) -> str:
        if isinstance(self.domain, Categories):
            return f"only the declared {len(self.domain.values)} values"
        return "dates, or texts such as '2024-02-29'" if self.is_date else "finite numbers"


def read_schema(schema: Any, names: list[Any], dtypes: list[Any]) -> tuple[list[DeclaredColumn], list[str]]:
    """Columns in the order of a table, from a schema.

    Parameters
    ----------
    schema : dict by column, Columns, the JSON text of either, or (low, high) for all columns
    names : list
        The table's columns.
    dtypes : list
        Their types in a frame, or None: what ``"dtype"`` in a schema means.

    Returns
    -------
    columns : list of DeclaredColumn
    learnt : list of str
        Those whose categories are a pandas dtype's of the rows, which were learnt from values as a rule.

    Raises
    ------
    ValueError
        If the schema names other columns, or says of one what is no declaration.
    """
    of_json = isinstance(schema, str)
    schema = schema_by_column(schema, names)
    for what, some in (("misses", set(names) - set(schema)), ("names unknown", set(schema) - set(names))):
        if some:
            raise ValueError(f"schema must name every column once. It {what} {sorted(map(str, some))}.")
    columns, learnt = [], []
    for name, dtype in zip(names, dtypes, strict=True):
        given = schema[name]
        of_rows = isinstance(given, str) and given == "dtype"
        if of_rows and type(dtype).__name__ == "CategoricalDtype":
            learnt.append(str(name))
        try:
            columns.append(_column(dtype if of_rows else given, of_json))
        except (ValueError, TypeError, KeyError) as error:
            # The categories of a dtype are values of rows.
            got = f"Got the dtype of the column, {type(dtype).__name__}." if of_rows else error
            forms = _FORMS_OF_JSON if of_json else _FORMS
            raise ValueError(f"schema of the column {name!r} must be {forms}. {got}") from None
    return columns, learnt


def schema_by_column(schema: Any, names: list[Any]) -> Mapping[Any, Any]:
    """A schema of any form as a dict by column, of which nothing is checked yet; one (low, high) is that of `names`.

    Raises
    ------
    ValueError
        If it is a text that is no JSON, or declares columns together.
    """
    if isinstance(schema, str):
        schema = _of_json(schema)
    if isinstance(schema, Columns):
        if any(len(own) > 1 for own, _ in schema.parts):
            raise ValueError("schema must declare every column on its own. Got columns that are declared together.")
        return {own[0]: domain for own, domain in schema.parts}
    return schema if isinstance(schema, Mapping) else dict.fromkeys(names, schema)


def check_frame(X: Any) -> None:
    """Refuse a frame of another kind than pandas' and polars', or with two columns of one name.

    Raises
    ------
    ValueError
    """
    if not hasattr(X, "iloc") and not hasattr(X, "get_columns"):
        raise ValueError(f"X must be a DataFrame of pandas or polars, or an array. Got {type(X).__name__} instead.")
    names = list(X.columns)
    if len(set(names)) < len(names):
        twice = sorted({str(name) for name in names if names.count(name) > 1})
        raise ValueError(f"The columns of X must have different names. Got {twice} more than once.")


def columns_of(X: Any) -> list[Any]:
    """Return every column of a frame or an array as an array of its own type."""
    if hasattr(X, "iloc"):
        return [as_array(X.iloc[:, j]) for j in range(X.shape[1])]
    return [as_array(one) for one in X.get_columns()] if hasattr(X, "columns") else list(X.T)


def framed(X: Any, columns: list[DeclaredColumn], numbers: np.ndarray) -> Any:
    """Released columns in a frame of the kind of X, with categories and dates of its own types."""
    of_pandas = hasattr(X, "iloc")
    made: dict[Any, Any] = {}
    for j, (name, column) in enumerate(zip(X.columns, columns, strict=True)):
        values = column.from_numbers(numbers[:, j])
        if not isinstance(column.domain, Categories):
            made[name] = values if of_pandas else _without_nan(values)
        elif of_pandas:
            import pandas

            made[name] = pandas.Categorical(values, column.domain.values, column.domain.ordered)
        else:
            import polars

            of_texts = all(isinstance(value, str) for value in column.domain.values)
            made[name] = polars.Series(values.tolist(), dtype=polars.Enum(column.domain.values) if of_texts else None)
    return type(X)(made, index=X.index) if of_pandas else type(X)(made)


def _without_nan(values: np.ndarray) -> Any:
    """A column of polars, which tells nothing from no number."""
    import polars

    return polars.Series(values, nan_to_null=True)


def _column(given: Any, of_json: bool) -> DeclaredColumn:
    if isinstance(given, DeclaredColumn):
        return given
    if isinstance(given, Domain):
        return _of_domain(given)
    if isinstance(given, Mapping):
        fields = dict(given)
        missing = fields.pop("missing", None)
        if fields.get("type") == "dates":
            return DeclaredColumn(_dates(fields.get("low"), fields.get("high")), missing, is_date=True)
        # Through JSON, so that a dict means what a file says.
        return _of_domain(domain_from_json(json.dumps(fields)), missing)
    if hasattr(given, "categories"):
        values = [value.item() if isinstance(value, np.generic) else value for value in list(given.categories)]
        return DeclaredColumn(Categories(tuple(values), bool(getattr(given, "ordered", True))))
    if isinstance(given, list):
        # A file of JSON has no tuples, and would declare two dates as all that a column may hold.
        of_numbers, of_dates = (len(given) == 2 and all(map(is_one, given)) for is_one in (is_number, _is_iso_date))
        if of_numbers or of_dates:
            what, kind = ("dates", "dates") if of_dates else ("numbers", "interval")
            low, high = (json.dumps(value, default=float) for value in given)
            of_python = "" if of_json else f"{tuple(given)!r}, or in JSON "
            raise ValueError(
                f"A list of two {what} may mean bounds, for which write {of_python}"
                f'{{"type": "{kind}", "low": {low}, "high": {high}}}, and two categories, for which write '
                f'{{"type": "categories", "values": [{low}, {high}]}}.'
            )
        return DeclaredColumn(Categories(tuple(given)))
    if isinstance(given, tuple) and len(given) == 2:
        if isinstance(given[0], str | datetime.date | np.datetime64):
            return DeclaredColumn(_dates(*given), is_date=True)
        return DeclaredColumn(Interval(*given))
    raise ValueError(f"Got {given!r} instead.")


def _of_json(text: str) -> Any:
    try:
        schema = strict_json(text)
    except json.JSONDecodeError:
        raise ValueError("schema as a text must be JSON, not the path of a file. Got another text instead.") from None
    by_column = isinstance(schema, dict) and schema.get("type") != "columns"
    return schema if by_column else domain_from_json(text)


def _of_domain(domain: Domain, missing: Any = None) -> DeclaredColumn:
    if isinstance(domain, OrMissing) and missing is None:
        return DeclaredColumn(domain.number, "category")
    if not isinstance(domain, Interval | Integers | Categories):
        raise ValueError(f"Got {type(domain).__name__} instead.")
    return DeclaredColumn(domain, missing)


def _is_iso_date(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value) is not None


def _dates(low: Any, high: Any) -> Integers:
    try:
        days = np.array([low, high], dtype="datetime64[D]")
    except (ValueError, TypeError):
        days = np.array([])
    if isinstance(low, Number) or isinstance(high, Number) or not (days.size == 2 and days[0] < days[1]):
        raise ValueError(
            "Bounds of dates must be two, such as ('2020-01-01', '2024-12-31'), the first before the last; categories "
            f"are a list. Got {(low, high)!r} instead."
        )
    return Integers(*days.astype(np.int64).tolist())
