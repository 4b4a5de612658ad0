"""Declared columns of a table and of its target."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skldp._checks import did_you_mean
from skldp.domains._column import Column
from skldp.estimators._column_encoder import encoded_names
from skldp.estimators._schema import read_schema, schema_by_column


@dataclass(frozen=True)
class DeclaredTable:
    """Declared columns of a table and of its target."""

    columns: Mapping[Any, Column]
    target: Column | None

    @classmethod
    def of(cls, schema: Any, target: Any = None, *, of_classes: bool = False) -> "DeclaredTable":
        """Read a schema; with `of_classes`, a list of two numbers is the classes of the target as well."""
        if not isinstance(schema, str | Mapping):
            raise ValueError(f"schema must be a dict by column or JSON text; got {type(schema).__name__}.")
        by_column = dict(schema_by_column(schema, []))
        of_target = None
        if target is not None:
            is_name = isinstance(target, str | int)
            given = by_column.pop(target, None) if is_name else target
            if given is None:
                near = did_you_mean(target, by_column)
                raise ValueError(f"target must be a column of the schema, or its domain; got {target!r}.{near}")
            if of_classes and isinstance(given, list):
                given = Column(values=tuple(given))
            [of_target] = read_schema({target if is_name else "target": given})
        if not by_column:
            raise ValueError("schema must declare at least one column beside the target.")
        return cls(dict(zip(by_column, read_schema(by_column), strict=True)), of_target)

    @property
    def numbers(self) -> dict[Any, Column]:
        """The columns of numbers and dates."""
        return {name: column for name, column in self.columns.items() if not column.has_codes}

    @property
    def categories(self) -> dict[Any, Column]:
        """The columns of categories."""
        return {name: column for name, column in self.columns.items() if column.has_codes}

    @property
    def n_features(self) -> int:
        """The number of features of the encoder."""
        return sum(len(encoded_names(column, str(name))) for name, column in self.columns.items())

    @property
    def bounds(self) -> Any:
        """The bounds of the numbers, by name if they have names."""
        ends = [(column.low, column.high) for column in self.numbers.values()]
        by_name = all(isinstance(name, str) for name in self.numbers)
        # A list of two pairs is ambiguous; lower and upper bounds are not.
        return dict(zip(self.numbers, ends, strict=True)) if by_name else tuple(np.transpose(ends).tolist())

    @property
    def schema(self) -> Any:
        """The schema for TablePrivatizer, which names the columns of an array x0, x1, ..."""
        return {name if isinstance(name, str) else f"x{name}": column for name, column in self.columns.items()}

    @property
    def needs_no_encoder(self) -> bool:
        """True if all columns are numbers without missing values."""
        is_plain = [c.missing == "refuse" and not c.is_date and c.scale == "linear" for c in self.numbers.values()]
        return not self.categories and all(is_plain)
