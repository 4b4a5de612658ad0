"""Tables of results as columns, DataFrames and CSV files."""

import csv
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from os import PathLike
from typing import Any

import numpy as np

from skldp._tables import as_frame, html_table
from skldp.mechanisms._guarantee import PrivacyGuarantee


class ResultTable(ABC):
    """Table of results. Only :meth:`to_frame` needs pandas."""

    @abstractmethod
    def to_dict(self) -> dict[str, np.ndarray]:
        """Return the table as a dict of arrays, one entry a column."""

    def to_frame(self) -> Any:
        """Return the table as a pandas DataFrame; raise ImportError if pandas is missing."""
        return as_frame(self.to_dict())

    def _repr_html_(self) -> str:
        columns = self.to_dict()
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        return html_table(type(self).__name__, ([_cell(value) for value in row] for row in rows), list(columns))

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write the table as CSV, with a header row."""
        write_csv(path, [self])


def score_label(scoring: str) -> str:
    """Return the name of a score for tables and axes."""
    return "R2" if scoring == "r2" else scoring


def write_csv(path: str | PathLike[str], tables: Sequence[ResultTable]) -> None:
    """Write tables with the same columns as one CSV file."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(tables[0].to_dict())
        for table in tables:
            writer.writerows(zip(*(column.tolist() for column in table.to_dict().values()), strict=True))


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def result_columns(table: Any) -> dict[str, np.ndarray]:
    """Return the columns of a result, a DataFrame or a dict of arrays."""
    columns: Mapping[str, Any] = table.to_dict() if isinstance(table, ResultTable) else table
    return {name: np.asarray(columns[name]) for name in columns}


def stacked(key: str, curves: "Mapping[Any, PrivacyUtilityCurve]") -> dict[str, np.ndarray]:
    """Return the columns of several curves as one table, with the keys of the mapping as its first column."""
    tables = [{key: np.array([name] * len(curve))} | curve.to_dict() for name, curve in curves.items()]
    return {column: np.concatenate([table[column] for table in tables]) for column in tables[0]}


def columns_of_records(kind: type, records: tuple[Any, ...]) -> dict[str, np.ndarray]:
    """Return the columns of records of one dataclass, in the order of its fields."""
    return {field.name: np.array([getattr(record, field.name) for record in records]) for field in fields(kind)}


@dataclass(frozen=True)
class CurvePoint:
    """One epsilon of a curve; :func:`~skldp.study.privacy_utility_curve` describes it."""

    epsilon: float
    stated_epsilon: float
    exact_epsilon: float
    delta: float
    score_mean: float
    score_std: float
    fit_time: float
    score_time: float
    n_fits: int


@dataclass(frozen=True)
class PrivacyUtilityCurve(ResultTable):
    """Sequence of points over epsilon with two baselines; :func:`~skldp.study.privacy_utility_curve` describes it."""

    points: tuple[CurvePoint, ...]
    param_names: tuple[str, ...]
    scoring: str
    majority_mean: float
    majority_std: float
    clean_mean: float
    clean_std: float
    guarantees: tuple[tuple[tuple[str, PrivacyGuarantee], ...], ...] = ()

    def __iter__(self) -> Iterator[CurvePoint]:
        return iter(self.points)

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: Any) -> Any:
        return self.points[index]

    def to_dict(self) -> dict[str, np.ndarray]:
        """Return the table as a dict of arrays: the fields of the points, the name of the score, the baselines."""
        same = ("scoring", "clean_mean", "clean_std", "majority_mean", "majority_std")
        repeated = {name: np.array([getattr(self, name)] * len(self)) for name in same}
        return columns_of_records(CurvePoint, self.points) | repeated

    def __str__(self) -> str:
        lines = [f"{'stated eps':>10}  {'exact eps':>12}  {self.scoring}"]
        lines += [
            f"{p.stated_epsilon:>10.4g}  {p.exact_epsilon:>12.6g}  {p.score_mean:.3f} +- {p.score_std:.3f}"
            for p in self
        ]
        lines.append(f"{'clean':>24}  {self.clean_mean:.3f} +- {self.clean_std:.3f}")
        lines.append(f"{'majority':>24}  {self.majority_mean:.3f} +- {self.majority_std:.3f}")
        return "\n".join(lines)
