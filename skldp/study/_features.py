"""A table's columns as features of a study: numbers within declared bounds, dates, and categories as indicators."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from skldp._reading import is_missing
from skldp.estimators._schema import DeclaredColumn, columns_of, read_schema, schema_by_column
from skldp.mechanisms._columns import Categories
from skldp.study._extras import require
from skldp.study._tables import StudyInputError

__all__ = ["Features", "TableColumns", "features_of", "first_line", "read_study_schema", "table_columns"]

# A column of more different texts is no list of categories that could be declared: names of people, or comments.
_MOST_CATEGORIES = 50
_SAY = "say what stands for them by --missing fill, or in --schema"


@dataclass(frozen=True)
class TableColumns:
    """What is known of a table's columns before their bounds are.

    Attributes
    ----------
    declared : dict of str to DeclaredColumn or None
        None of numbers, whose bounds are still to be declared.
    found : tuple of str
        Those whose categories were taken from the file.
    """

    declared: dict[str, DeclaredColumn | None]
    found: tuple[str, ...]

    @property
    def without_bounds(self) -> list[str]:
        """The columns of numbers that still need bounds."""
        return [name for name, column in self.declared.items() if column is None]


@dataclass(frozen=True)
class Features:
    """Columns as numbers: of categories one for each, or one alone where they are ordered, or two.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
    names : tuple of str
    low, high : ndarray of shape (n_features,)
    of_column : tuple of str
        The column that each feature belongs to.
    n_filled : int
        Missing values that something else stands for.
    """

    X: np.ndarray
    names: tuple[str, ...]
    low: np.ndarray
    high: np.ndarray
    of_column: tuple[str, ...]
    n_filled: int


def read_study_schema(schema: Any) -> dict[str, Any]:
    """A schema by column, from a dict, a text of JSON, or a file of it."""
    if schema is None:
        return {}
    if isinstance(schema, Path) or (isinstance(schema, str) and schema.lower().endswith(".json")):
        path = Path(schema)
        if not path.is_file():
            raise StudyInputError(f"There is no file {path}.")
        try:
            schema = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise StudyInputError(f"{path.name} is no JSON file: its bytes are not UTF-8.") from None
    try:
        by_column = schema_by_column(schema, [])
    except (ValueError, TypeError) as error:
        raise StudyInputError(first_line(error)) from None
    return {str(name): given for name, given in by_column.items()}


def table_columns(file: str, frame: Any, schema: Mapping[str, Any], *, fill: bool) -> TableColumns:
    """Take what is declared of a table's columns, and of columns of texts the categories that are found."""
    unknown = [name for name in schema if name not in frame.columns]
    if unknown:
        beside = ", ".join(map(repr, unknown[:4]))
        raise StudyInputError(f"The schema must name columns of {file} alone. Got {beside} as well.")
    of_schema = [name for name in frame.columns if name in schema]
    try:
        columns, learnt = read_schema(
            {name: schema[name] for name in of_schema}, of_schema, [frame[name].dtype for name in of_schema]
        )
    except (ValueError, TypeError) as error:
        raise StudyInputError(first_line(error)) from None
    declared: dict[str, DeclaredColumn | None] = dict.fromkeys(map(str, frame.columns))
    declared |= dict(zip(of_schema, columns, strict=True))
    found = list(learnt)
    pd = require("pandas")
    for name in frame.columns:
        given, where = frame[name], f"Column {name!r} of {file}"
        missing = np.asarray(given.isna(), dtype=bool)
        if name not in schema and not _holds_numbers(given):
            declared[name] = DeclaredColumn(_categories(where, given))
            found.append(name)
        column = declared[name]
        if missing.any() and not fill and (column is None or column.missing is None):
            raise StudyInputError(
                f"{where} has {np.count_nonzero(missing):,} missing values, the first in {first_row(missing)}: {_SAY}."
            )
        if column is None:
            values = pd.to_numeric(given, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
            infinite = np.isinf(values)
            if infinite.any():
                raise StudyInputError(
                    f"{where} has {np.count_nonzero(infinite):,} missing or infinite values, the first in "
                    f"{first_row(infinite)}."
                )
        elif missing.any() and column.missing is None:
            of_categories = isinstance(column.domain, Categories)
            declared[name] = replace(column, missing="category" if of_categories else "middle")
    return TableColumns(declared, tuple(found))


def features_of(file: str, frame: Any, declared: Mapping[str, DeclaredColumn]) -> Features:
    """Encode a table by what is declared of its columns."""
    blocks, n_filled = [], 0
    for (name, column), values in zip(declared.items(), columns_of(frame), strict=True):
        try:
            numbers = column.as_numbers(values, name, unknown="error", first_row=1)
        except ValueError as error:
            raise StudyInputError(f"{file}: {first_line(error)}") from None
        n_filled += sum(map(is_missing, values.tolist())) if values.dtype.kind == "O" else int((values != values).sum())
        blocks.append(_block(name, column, numbers))
    return Features(
        np.column_stack([block[0] for block in blocks]),
        tuple(feature for block in blocks for feature in block[1]),
        np.concatenate([np.full(len(block[1]), block[2]) for block in blocks]),
        np.concatenate([np.full(len(block[1]), block[3]) for block in blocks]),
        tuple(name for name, block in zip(declared, blocks, strict=True) for _ in block[1]),
        n_filled,
    )


def first_row(strange: Any) -> str:
    """Where the first of the strange ones stands, the first row below the names being 1."""
    return f"row {int(np.flatnonzero(np.asarray(strange))[0]) + 1}"


def _holds_numbers(given: Any) -> bool:
    types = require("pandas").api.types
    return bool(types.is_numeric_dtype(given) and not types.is_complex_dtype(given))


def _categories(where: str, given: Any) -> Categories:
    """The categories that are found in a column of texts."""
    pd = require("pandas")
    ordered = False
    if isinstance(given.dtype, pd.CategoricalDtype):
        values, ordered = [_plain(value) for value in given.cat.categories], bool(given.cat.ordered)
    else:
        texts = given.dropna()
        values = list(dict.fromkeys(texts.tolist())) if all(isinstance(one, str | bool) for one in texts) else []
        numbers = pd.to_numeric(given.astype(str), errors="coerce").notna() & given.notna()
        strange = ~numbers & given.notna()
        if not values or numbers.any():
            row = f", first in {first_row(strange)}" if strange.any() else ""
            raise StudyInputError(f"{where} is not numeric{row}: declare it in --schema, or leave it out by --columns.")
        values.sort(key=str)
    if not 1 < len(values) <= _MOST_CATEGORIES:
        count = "one category only" if len(values) == 1 else f"{len(values):,} different texts"
        raise StudyInputError(
            f"{where} holds {count}: declare its categories in --schema, or leave it out by --columns."
        )
    try:
        return Categories(tuple(values), ordered)
    except (ValueError, TypeError):
        # The error of Categories may show a category, and those of a file are values of rows.
        raise StudyInputError(f"{where} must hold texts, numbers or booleans.") from None


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _block(name: str, column: DeclaredColumn, numbers: np.ndarray) -> tuple[np.ndarray, list[str], float, float]:
    """A column's features with their names and bounds."""
    domain, values = column.domain, column.values or ()
    if not isinstance(domain, Categories):
        low, high, names = float(domain.low), float(domain.high), column.feature_names(name)
        if len(names) == 1:
            return numbers[:, None], names, low, high
        # Both between the bounds of the number.
        missing = np.isnan(numbers)
        both = np.column_stack([np.where(missing, low / 2 + high / 2, numbers), np.where(missing, high, low)])
        return both, names, low, high
    if len(values) <= 2 or (domain.ordered and column.missing is None):
        # One category alone says nothing, and has no second place.
        return numbers[:, None], [name], 0.0, float(max(len(values) - 1, 1))
    indicators = (numbers[:, None] == np.arange(len(values))).astype(np.float64)
    return indicators, column.feature_names(name), 0.0, 1.0


def first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
