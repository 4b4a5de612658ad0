"""What studies find: tables that can be read as columns, as a DataFrame and as a CSV file."""

import csv
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from os import PathLike
from typing import Any

import numpy as np

from skldp._tables import html_table
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.study._extras import require

__all__ = ["CurvePoint", "PrivacyUtilityCurve", "ResultTable", "columns_of", "columns_of_records"]


class ResultTable(ABC):
    """A table of results. pandas is needed for :meth:`to_frame` alone."""

    @abstractmethod
    def to_dict(self) -> dict[str, np.ndarray]:
        """Give the table as a dict of arrays, one entry a column."""

    def to_frame(self) -> Any:
        """Give the table as a pandas DataFrame.

        Raises
        ------
        ImportError
            If pandas is missing.
        """
        return require("pandas").DataFrame(self.to_dict())

    def _repr_html_(self) -> str:
        columns = self.to_dict()
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        return html_table(type(self).__name__, ([_cell(value) for value in row] for row in rows), list(columns))

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write the table as CSV, with a header row."""
        columns = self.to_dict()
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def columns_of(table: Any) -> dict[str, np.ndarray]:
    """Give the columns of what a display draws: a result, a DataFrame, or a dict of arrays.

    Examples
    --------
    >>> from skldp.study._results import columns_of
    >>> columns_of({"epsilon": [1.0, 2.0]})
    {'epsilon': array([1., 2.])}
    """
    columns: Mapping[str, Any] = table.to_dict() if isinstance(table, ResultTable) else table
    return {name: np.asarray(columns[name]) for name in columns}


def columns_of_records(kind: type, records: tuple[Any, ...]) -> dict[str, np.ndarray]:
    """Give the columns of records of one dataclass, in the order of its fields."""
    return {field.name: np.array([getattr(record, field.name) for record in records]) for field in fields(kind)}


@dataclass(frozen=True)
class CurvePoint:
    """One epsilon of a privacy-utility curve.

    Attributes
    ----------
    epsilon : float
        What the parameters were set to.
    stated_epsilon : float
        What the whole estimator states: the sum over its private steps.
    exact_epsilon : float
        The exact worst-case loss of the whole estimator (natural log), infinite where something is unprotected.
    delta : float
        The delta that goes with it.
    score_mean, score_std : float
        Over all folds and repeats.
    fit_time, score_time : float
        Seconds, the mean of one fold; `score_time` includes the transformation of the test rows.
    n_fits : int
        Folds times repeats.
    score_worst : float
        The worst of them.
    also : tuple of float
        The means of further scores.
    """

    epsilon: float
    stated_epsilon: float
    exact_epsilon: float
    delta: float
    score_mean: float
    score_std: float
    fit_time: float
    score_time: float
    n_fits: int
    score_worst: float = math.nan
    also: tuple[float, ...] = ()


@dataclass(frozen=True)
class PrivacyUtilityCurve(ResultTable):
    """What :func:`~skldp.privacy_utility_curve` found: a sequence of :class:`CurvePoint` with two baselines.

    Attributes
    ----------
    points : tuple of CurvePoint
    param_names : tuple of str
    scoring : str
        The name of the score.
    majority_mean, majority_std : float
        The score of always answering the most frequent class (the mean, for a regressor).
    clean_mean, clean_std : float
        The score without privacy; NaN if it was left out.
    guarantees : tuple of tuple of (str, PrivacyGuarantee)
        For every point, the name of each private step with its guarantee.
    also : tuple of str
        The names of further scores, whose means are in `also` of every point.
    majority_also, clean_also : tuple of float
        Theirs of the baselines.
    """

    points: tuple[CurvePoint, ...]
    param_names: tuple[str, ...]
    scoring: str
    majority_mean: float
    majority_std: float
    clean_mean: float
    clean_std: float
    guarantees: tuple[tuple[tuple[str, PrivacyGuarantee], ...], ...] = ()
    also: tuple[str, ...] = ()
    majority_also: tuple[float, ...] = ()
    clean_also: tuple[float, ...] = ()

    def __iter__(self) -> Iterator[CurvePoint]:
        return iter(self.points)

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: Any) -> Any:
        return self.points[index]

    def to_dict(self) -> dict[str, np.ndarray]:
        """Give the table as a dict of arrays: a column for each field of a point, the score's name, the baselines."""
        same = ("scoring", "clean_mean", "clean_std", "majority_mean", "majority_std")
        repeated = {name: np.array([getattr(self, name)] * len(self)) for name in same}
        columns = columns_of_records(CurvePoint, self.points) | repeated
        of_points = np.reshape(columns.pop("also"), (len(self), -1))
        for name, means, *baselines in zip(self.also, of_points.T, self.clean_also, self.majority_also, strict=True):
            columns[f"{name}_mean"] = means
            for whose, value in zip(("clean", "majority"), baselines, strict=True):
                columns[f"{whose}_{name}_mean"] = np.full(len(self), value)
        return columns

    def __str__(self) -> str:
        lines = [f"{'stated eps':>10}  {'exact eps':>12}  {self.scoring}"]
        lines += [
            f"{p.stated_epsilon:>10.4g}  {p.exact_epsilon:>12.6g}  {p.score_mean:.3f} +- {p.score_std:.3f}"
            for p in self
        ]
        lines.append(f"{'clean':>24}  {self.clean_mean:.3f} +- {self.clean_std:.3f}")
        lines.append(f"{'majority':>24}  {self.majority_mean:.3f} +- {self.majority_std:.3f}")
        return "\n".join(lines)
