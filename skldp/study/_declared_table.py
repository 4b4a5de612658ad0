"""A declared table, and the encoders that make features between -1 and 1 of it and learn nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from skldp.estimators._bounds_scaler import BoundsScaler
from skldp.estimators._schema import DeclaredColumn, read_schema, schema_by_column
from skldp.mechanisms._columns import Categories, Columns, Interval

__all__ = ["DeclaredTable"]


@dataclass(frozen=True)
class DeclaredTable:
    """The columns of a table, and of its target where there is one.

    Attributes
    ----------
    columns : dict of DeclaredColumn
    target : DeclaredColumn or None

    Examples
    --------
    >>> from skldp.study._declared_table import DeclaredTable
    >>> table = DeclaredTable.of({"age": (0, 100), "city": ["Bonn", "Köln", "Ulm"], "sick": ["no", "yes"]}, "sick")
    >>> table.n_features, list(table.numbers), table.target.values
    (4, ['age'], ('no', 'yes'))
    """

    columns: dict[Any, DeclaredColumn]
    target: DeclaredColumn | None

    @classmethod
    def of(cls, schema: Any, target: Any = None, *, of_classes: bool = False) -> "DeclaredTable":
        """Read a schema, or of an array or a frame the number or the names of its columns.

        `of_classes` says that a list is the target's classes, even one of two numbers.

        Raises
        ------
        ValueError
            If nothing is left beside the target, or something is no declaration.
        """
        if hasattr(schema, "shape") and not isinstance(schema, Mapping):
            if len(schema.shape) != 2:
                raise ValueError(f"A table must have two dimensions. Got shape {schema.shape} instead.")
            schema = dict.fromkeys(getattr(schema, "columns", range(schema.shape[1])), (-1, 1))
        if not isinstance(schema, str | Mapping | Columns):
            raise ValueError(
                f"schema must be a dict by column, JSON text, Columns or a table. Got {type(schema).__name__} instead."
            )
        by_column = dict(schema_by_column(schema, []))
        of_target = None
        if target is not None:
            is_name = isinstance(target, str | int)
            given = by_column.pop(target, None) if is_name else target
            if given is None:
                raise ValueError(f"target must be a column of the schema, or what it may hold. Got {target!r} instead.")
            if of_classes and isinstance(given, list):
                given = Categories(tuple(given))
            name = target if is_name else "target"
            of_target = read_schema({name: given}, [name], [None])[0][0]
        if not by_column:
            raise ValueError("schema must declare at least one column beside the target. Got none instead.")
        columns, _ = read_schema(by_column, list(by_column), [None] * len(by_column))
        return cls(dict(zip(by_column, columns, strict=True)), of_target)

    @property
    def numbers(self) -> dict[Any, DeclaredColumn]:
        """The columns of numbers and dates."""
        return {name: column for name, column in self.columns.items() if column.values is None}

    @property
    def categories(self) -> dict[Any, DeclaredColumn]:
        """The columns of categories."""
        return {name: column for name, column in self.columns.items() if column.values is not None}

    @property
    def n_features(self) -> int:
        """How many features the encoder makes."""
        return sum(_width(column) for column in self.columns.values())

    @property
    def bounds(self) -> Any:
        """Those of the columns of numbers, by name where they have names."""
        ends = [
            (float(column.domain.low), float(column.domain.high))
            for column in self.numbers.values()
            if not isinstance(column.domain, Categories)
        ]
        by_name = all(isinstance(name, str) for name in self.numbers)
        # Two pairs in a list could be read as all lower and all upper bounds.
        return dict(zip(self.numbers, ends, strict=True)) if by_name else tuple(np.transpose(ends).tolist())

    @property
    def schema(self) -> Any:
        """As TablePrivatizer takes it, which names the columns of an array itself: of like numbers the bounds alone."""
        first, *others = self.columns.values()
        alike = self.needs_no_encoder and all(other == first for other in others)
        if alike and not any(isinstance(name, str) for name in self.columns) and isinstance(first.domain, Interval):
            return (float(first.domain.low), float(first.domain.high))
        return dict(self.columns)

    @property
    def needs_no_encoder(self) -> bool:
        """Whether there are numbers alone, none of which may be missing."""
        return not self.categories and not any(c.missing or c.is_date for c in self.columns.values())

    @property
    def not_encoded(self) -> list[str]:
        """The columns that no encoder of scikit-learn takes without an error that tells of a value."""
        return [str(name) for name, c in self.columns.items() if c.is_date or c.missing == "category"]

    def encoder(self) -> Any:
        """Make an encoder: numbers and ordered categories from -1 to 1, other categories one-hot.

        Returns
        -------
        transformer
            Its fit learns nothing from values, and its transform is a function of one row alone.
        """
        if self.needs_no_encoder:
            return BoundsScaler(self.bounds)
        parts = [(str(name), _encoder_of(column), [name]) for name, column in self.columns.items()]
        return ColumnTransformer(parts, verbose_feature_names_out=False)


def _width(column: DeclaredColumn) -> int:
    return 1 if column.values is None or _is_one_number(column) else len(column.values)


def _is_one_number(column: DeclaredColumn) -> bool:
    """Whether categories are two, or ordered, so that their place says all."""
    assert column.values is not None
    ordered = isinstance(column.domain, Categories) and column.domain.ordered and column.missing is None
    return ordered or len(column.values) <= 2


def _encoder_of(column: DeclaredColumn) -> Any:
    if isinstance(column.domain, Categories):
        values = list(column.domain.values)
        if not _is_one_number(column):
            return OneHotEncoder(categories=[values], handle_unknown="ignore", sparse_output=False)
        places = OrdinalEncoder(categories=[values], handle_unknown="use_encoded_value", unknown_value=-1)
        return make_pipeline(places, BoundsScaler((0, max(1, len(values) - 1))))
    low, high = float(column.domain.low), float(column.domain.high)
    if column.missing is None:
        return BoundsScaler((low, high))
    middle = SimpleImputer(strategy="constant", fill_value=low / 2 + high / 2, keep_empty_features=True)
    return make_pipeline(middle, BoundsScaler((low, high)))
