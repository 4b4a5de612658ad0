"""Table of the coefficients of a regression, with their errors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from skldp._arrays import Floats
from skldp._tables import as_frame, html_table, text_table
from skldp.learning._uncertainty import Estimate


@dataclass(frozen=True)
class RegressionSummary:
    """Table of the terms of a regression: an estimate with intervals at a level. It prints as text."""

    names: Sequence[str]
    estimate: Estimate
    level: float
    title: str

    def to_dict(self) -> dict[str, Floats]:
        """Return the columns, one number per term; the last is the share of the standard error due to privacy."""
        lower, upper = self.estimate.intervals(self.level).T
        tail = (1 - self.level) / 2
        return {
            "coef": self.estimate.values,
            "std err": self.estimate.standard_errors,
            "t": self.estimate.statistics,
            "P>|t|": self.estimate.p_values,
            f"[{tail:.4g}": lower,
            f"{1 - tail:.4g}]": upper,
            "due to privacy": self.estimate.noise_shares,
        }

    def to_frame(self) -> Any:
        """Return the columns as a pandas DataFrame, indexed by term."""
        return as_frame(self.to_dict(), index=list(self.names))

    def __str__(self) -> str:
        return text_table(self.title, self._cells())

    def _repr_html_(self) -> str:
        head, *rows = self._cells()
        return html_table(self.title, rows, head)

    def _cells(self) -> list[list[str]]:
        columns, formats = self.to_dict(), [".4g", ".4g", ".3f", ".3f", ".4g", ".4g", ".0%"]
        rows = zip(self.names, zip(*columns.values(), strict=True), strict=True)
        return [["", *columns], *([name, *map(format, numbers, formats)] for name, numbers in rows)]
