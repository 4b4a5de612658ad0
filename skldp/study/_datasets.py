"""Data for a study: scikit-learn's bundled sets with public bounds, or a file with declared ones."""

import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine, make_friedman1
from sklearn.utils import Bunch
from sklearn.utils.multiclass import type_of_target

from skldp._arrays import kind_of
from skldp.estimators._schema import DeclaredColumn, read_schema
from skldp.estimators._validation import check_bounds
from skldp.mechanisms._columns import Categories, Interval
from skldp.study._features import features_of, first_line, first_row, read_study_schema, table_columns
from skldp.study._tables import (
    TABLE_FILES,
    StudyInputError,
    is_number,
    is_table_file,
    read_table,
    some_names,
)

__all__ = ["BUNDLED", "StudyData", "StudyInputError", "load_study_data"]

# What the descriptions that come with the data publish as the range of each column, so public knowledge.
_WINE = (
    (11.0, 0.74, 1.36, 10.6, 70.0, 0.98, 0.34, 0.13, 0.41, 1.3, 0.48, 1.27, 278),
    (14.8, 5.80, 3.23, 30.0, 162.0, 3.88, 5.08, 0.66, 3.58, 13.0, 1.71, 4.00, 1680),
)
_BREAST_CANCER = (
    # Means, then standard errors, then the worst of every nucleus.
    (
        *(6.981, 9.71, 43.79, 143.5, 0.053, 0.019, 0.0, 0.0, 0.106, 0.05),
        *(0.112, 0.36, 0.757, 6.802, 0.002, 0.002, 0.0, 0.0, 0.008, 0.001),
        *(7.93, 12.02, 50.41, 185.2, 0.071, 0.027, 0.0, 0.0, 0.156, 0.055),
    ),
    (
        *(28.11, 39.28, 188.5, 2501.0, 0.163, 0.345, 0.427, 0.201, 0.304, 0.097),
        *(2.873, 4.885, 21.98, 542.2, 0.031, 0.135, 0.396, 0.053, 0.079, 0.03),
        *(36.04, 49.54, 251.2, 4254.0, 0.223, 1.058, 1.252, 0.291, 0.664, 0.208),
    ),
)
# More distinct whole numbers than this are no classes.
_MOST_CLASSES = 20
TASKS = ("classification", "regression")


def _load_friedman() -> Bunch:
    """Friedman's first regression problem: 50,000 made-up people, 5 features that matter and 5 that do not."""
    X, y = make_friedman1(50_000, noise=1.0, random_state=0)
    return Bunch(data=X, target=y, feature_names=[f"x{i}" for i in range(X.shape[1])])


# How to load them, the bounds of the features, and of a target of numbers.
BUNDLED: dict[str, tuple[Any, Any, tuple[float, float] | None]] = {
    "digits": (load_digits, (0.0, 16.0), None),
    "breast_cancer": (load_breast_cancer, _BREAST_CANCER, None),
    "wine": (load_wine, _WINE, None),
    "diabetes": (load_diabetes, (-0.2, 0.2), (25.0, 346.0)),
    # By its formula, but for the noise.
    "friedman": (_load_friedman, (0.0, 1.0), (0.0, 30.0)),
}


@dataclass(frozen=True)
class StudyData:
    """A data set with declared bounds, of a classification or a regression.

    Attributes
    ----------
    name : str
    X : ndarray of float64, shape (n_samples, n_features)
    y : ndarray of shape (n_samples,) or (n_samples, n_attributes)
    feature_names : tuple of str
    low, high : ndarray of shape (n_features,)
        The declared bounds of every feature.
    bounds_source : str
        Where they come from.
    target_bounds : (float, float) or None
        The declared bounds of a target of numbers; None where the target is a class.
    of_column : tuple of str
        The column of the file that each feature belongs to: categories have one feature each.
    found : tuple of str
        The columns whose categories were taken from the file.
    n_filled : int
        Missing values that the middle of the bounds, or a category of their own, stands for.
    attributes : tuple of str
        Of several targets their names; y has a column for each then, 0 for the first of two classes and 1 for the
        other.
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    feature_names: tuple[str, ...]
    low: np.ndarray
    high: np.ndarray
    bounds_source: str
    target_bounds: tuple[float, float] | None = None
    of_column: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    n_filled: int = 0
    attributes: tuple[str, ...] = ()

    @property
    def task(self) -> str:
        """One of "classification" and "regression"."""
        return TASKS[self.target_bounds is not None]

    @property
    def n_targets_moved(self) -> int:
        """How many targets of a regression lie outside their declared bounds."""
        if self.target_bounds is None:
            return 0
        low, high = self.target_bounds
        return int(np.count_nonzero((self.y < low) | (self.y > high)))

    @property
    def classes(self) -> np.ndarray:
        """The sorted classes."""
        return np.unique(self.y)

    def scaled(self) -> tuple[np.ndarray, int]:
        """Map the declared bounds of every feature to -1 and 1, and clip what lies outside.

        The map knows only the bounds, so it costs no privacy.

        Returns
        -------
        X : ndarray of float64, shape (n_samples, n_features)
        n_moved : int
            How many values lay outside.
        """
        unit = (self.X - self.low) / (self.high - self.low) * 2 - 1
        return np.clip(unit, -1, 1), int(np.count_nonzero(np.abs(unit) > 1))

    def columns_moved(self) -> list[str]:
        """The columns in which values lie outside their bounds, the one with most of them first."""
        outside = np.count_nonzero((self.low > self.X) | (self.high < self.X), axis=0)
        names = self.of_column or self.feature_names
        return [names[j] for j in np.argsort(-outside, kind="stable") if outside[j]]


def load_study_data(
    source: str | Path,
    *,
    target: str | Sequence[str] | None = None,
    bounds: Any = None,
    folds: int = 2,
    task: str = "auto",
    target_bounds: Any = None,
    columns: Iterable[str] | None = None,
    schema: Any = None,
    missing: str = "refuse",
    separator: str | None = None,
    encoding: str = "utf-8",
) -> StudyData:
    """Load a data set and check all that a study needs of it.

    Parameters
    ----------
    source : str or Path
        "digits", "breast_cancer", "wine", "diabetes", "friedman" (50,000 rows that
        :func:`sklearn.datasets.make_friedman1` makes up), or a CSV (.csv, .tsv, also with .gz), Parquet, Arrow or npz
        file. Categories become one feature each, or one together where they are ordered, or two.
    target : str or sequence of str, default=None
        For a file: the column of labels. In a CSV file without a header row, its number from 0. In an npz file, the
        array of labels ("y" if None); the features are the one two-dimensional array with as many rows. Several, for a
        table: attributes that a record has or has not.
    bounds : str, Path or (low, high), default=None
        Of the columns of numbers that `schema` does not declare: two numbers as ``"low,high"``, arrays of one number
        per column, or a CSV file with the columns ``column,low,high``. Needed for a file that has such columns; None
        takes the published ranges of a bundled set.
    folds : int, default=2
        Every class needs at least as many rows.
    task : {"auto", "classification", "regression"}, default="auto"
        ``"auto"`` is a regression where the target holds fractions, or more than 20 different whole numbers.
    target_bounds : str or (low, high), default=None
        Of a regression: two numbers, also as ``"low,high"``. None takes those of the target's own row in the CSV file
        of bounds, or in `schema`, or the published ones.
    columns : iterable of str, default=None
        The features, for a table; None takes all but the target.
    schema : dict by column, str or Path, default=None
        What columns of a table may hold, as of :class:`~skldp.TablePrivatizer`: a dict, its JSON text, or a .json file.
        The categories of a column of texts that it does not name are taken from the file.
    missing : {"refuse", "fill"}, default="refuse"
        What becomes of missing values where the schema says nothing: ``"fill"`` puts the middle of the declared bounds
        for numbers, and a category of its own.
    separator : str, default=None
        Of a CSV file; None is a comma, and in .tsv files a tabulator.
    encoding : str, default="utf-8"
        Of a CSV file.

    Returns
    -------
    StudyData

    Raises
    ------
    StudyInputError
        If anything is missing or cannot be used, in one line.
    ImportError
        If a table is asked for and pandas, or for Parquet and Arrow pyarrow, is missing.

    Examples
    --------
    >>> from skldp.study import load_study_data
    >>> digits = load_study_data("digits")
    >>> digits.X.shape, float(digits.low[0]), float(digits.high[0])
    ((1797, 64), 0.0, 16.0)
    """
    if task not in ("auto", *TASKS):
        raise StudyInputError(f"The task must be one of auto, {', '.join(TASKS)}. Got {task!r} instead.")
    if missing not in ("refuse", "fill"):
        raise StudyInputError(f"missing must be refuse or fill. Got {missing!r} instead.")
    path, by_column = Path(source), read_study_schema(schema)
    of_table = str(source) not in BUNDLED and is_table_file(path)
    if not of_table and (columns is not None or by_column or separator is not None):
        raise StudyInputError(f"--columns, --schema and --sep are for tables, {TABLE_FILES}. Got {source}.")
    published = published_target = frame = None
    several = _several(target)
    if several and (not of_table or len(set(several)) < 2 or task == TASKS[1]):
        raise StudyInputError("Several targets are different columns of a table, of classes. Got others instead.")
    of_target, *_ = [by_column.pop(one, None) for one in several or [str(target)]]
    if str(source) in BUNDLED:
        loader, published, published_target = BUNDLED[str(source)]
        bunch = loader()
        name, X, y = str(source), bunch.data, bunch.target
        names = [str(feature) for feature in bunch.feature_names]
        if target is not None:
            raise StudyInputError(f"--target is for files; {source} has its own. Got {target!r} instead.")
    elif of_table:
        name = path.name
        wanted = None if columns is None or target is None else [*columns, *(several or [str(target)])]
        frame = read_table(path, columns=wanted, separator=separator, encoding=encoding)
        y, frame = _attributes(name, frame, several, folds) if several else _split(name, frame, target)
        found = table_columns(name, frame, by_column, fill=missing == "fill")
        names = found.without_bounds
    else:
        name = path.name
        X, y, names = _read_npz(path, target)
    y, regression = _checked(name, y, task, folds, is_checked=bool(several))
    if target_bounds is not None and not regression:
        raise StudyInputError(f"--target-bounds are for a target of numbers; that of {name} holds classes.")
    if names and bounds is None and published is None:
        raise StudyInputError(
            f"{name} needs --bounds low,high, or a CSV file of column,low,high{_for(names, frame)}: bounds are "
            "declared from public knowledge and never learnt from the data."
        )
    low, high = _bounds(published if bounds is None else bounds, names) if names else (np.empty(0), np.empty(0))
    source_of_bounds = "published bounds" if bounds is None and published is not None else "declared bounds"
    if regression:
        target_bounds = _declared_target(str(target), target_bounds, bounds, of_target)
        target_bounds = _bounds_of_target(name, published_target if target_bounds is None else target_bounds)
    if frame is None:
        return StudyData(name, X, y, tuple(names), low, high, source_of_bounds, target_bounds)
    numbers = dict(zip(names, map(Interval, low.tolist(), high.tolist()), strict=True))
    filling: Any = "middle" if missing == "fill" else None
    declared = {own: column or DeclaredColumn(numbers[own], filling) for own, column in found.declared.items()}
    features = features_of(name, frame, declared)
    return StudyData(
        *(name, features.X, y, features.names, features.low, features.high, source_of_bounds, target_bounds),
        features.of_column,
        found.found,
        features.n_filled,
        tuple(several),
    )


def _several(target: Any) -> list[str]:
    """The names of several targets; none where there is one."""
    return [str(name) for name in target] if isinstance(target, Iterable) and not isinstance(target, str) else []


def _checked(name: str, y: np.ndarray, task: str, folds: int, *, is_checked: bool) -> tuple[np.ndarray, bool]:
    """Targets as a study takes them, and whether they are numbers."""
    if len(y) < folds:
        raise StudyInputError(f"{name} has {len(y)} rows, fewer than the {folds} folds.")
    if is_checked:
        return y, False
    regression = (_recognised(y) if task == "auto" else task) == TASKS[1]
    return (_numbers(name, y) if regression else _checked_classes(name, y, folds)), regression


def _for(names: list[str], frame: Any) -> str:
    """Which columns need bounds, where others do not."""
    return "" if frame is None or len(names) == frame.shape[1] else f" for {some_names(names)}"


def _declared_target(target: str, given: Any, bounds: Any, of_schema: Any) -> Any:
    """The bounds of a target of numbers, wherever they are declared; None where nowhere."""
    if given is not None:
        return given
    if of_schema is not None:
        try:
            domain = read_schema({target: of_schema}, [target], [None])[0][0].domain
        except ValueError as error:
            raise StudyInputError(first_line(error)) from None
        return None if isinstance(domain, Categories) else (float(domain.low), float(domain.high))
    if _is_table(bounds) and target in _table_of_bounds(Path(bounds)).index:
        return np.ravel(_bounds(bounds, [target]))
    return None


def _read_npz(path: Path, target: Any) -> tuple[np.ndarray, np.ndarray, list[str]]:
    if path.suffix.lower() != ".npz":
        raise StudyInputError(f"Data must be one of {', '.join(BUNDLED)} or a {TABLE_FILES} or .npz file. Got {path}.")
    if not path.is_file():
        raise StudyInputError(f"There is no file {path}.")
    try:
        # numpy leaves open what it cannot read, if it opened it.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise StudyInputError(f"{path.name} is no npz file of plain arrays ({type(error).__name__}).") from None
    label = "y" if target is None else target
    if not all(isinstance(array, np.ndarray) for array in arrays.values()):
        raise StudyInputError(f"{path.name} is no npz file of plain arrays.")
    if label not in arrays or arrays[label].ndim != 1:
        raise StudyInputError(
            f"--target must name a one-dimensional array of {path.name} ({some_names(arrays)}). Got {label!r} instead."
        )
    y = arrays[label]
    tables = [key for key, array in arrays.items() if array.ndim == 2 and len(array) == len(y)]
    if len(tables) != 1:
        raise StudyInputError(
            f"{path.name} needs exactly one two-dimensional array of {len(y)} rows beside {label!r}. "
            f"Got {some_names(tables) or 'none'} instead."
        )
    X = arrays[tables[0]]
    if X.dtype.kind not in "biuf" or not np.isfinite(X).all():
        raise StudyInputError(f"Array {tables[0]!r} of {path.name} must hold finite numbers only.")
    return X.astype(np.float64), y, [f"x{i}" for i in range(X.shape[1])]


def _split(name: str, frame: Any, target: Any) -> tuple[np.ndarray, Any]:
    """The labels of a table, and its features."""
    if frame.empty:
        raise StudyInputError(f"{name} has no rows.")
    if target is None:
        raise StudyInputError(f"{name} needs --target, the column of labels, one of: {some_names(frame.columns)}.")
    if target not in frame.columns:
        names = some_names(frame.columns)
        parted = len(frame.columns) == 1 and any(mark in names for mark in ";\t|")
        hint = " Say by --sep what stands between its cells." if parted else ""
        raise StudyInputError(f"--target must be a column of {name} ({names}). Got {target!r} instead.{hint}")
    labels, features = frame[target], frame.drop(columns=target)
    if features.shape[1] == 0:
        raise StudyInputError(f"{name} has no column beside the target {target!r}.")
    if labels.isna().any():
        raise StudyInputError(
            f"Column {target!r} of {name} has {labels.isna().sum()} missing labels, the first in "
            f"{first_row(labels.isna())}."
        )
    y = labels.to_numpy()
    if y.dtype.kind not in "biufU":
        y = np.array([str(label) for label in y], dtype=object)
    return y, features


def _attributes(name: str, frame: Any, targets: list[str], folds: int) -> tuple[np.ndarray, Any]:
    """Several targets of a table as columns of 0 and 1, and its features."""
    columns = []
    for target in targets:
        y, rest = _split(name, frame.drop(columns=[one for one in targets if one != target], errors="ignore"), target)
        classes, codes = np.unique(_checked_classes(name, y, folds), return_inverse=True)
        if len(classes) != 2:
            raise StudyInputError(f"Of several targets each must have two classes. Got {len(classes)} of {target!r}.")
        columns.append(codes)
    return np.column_stack(columns), rest


def _recognised(y: np.ndarray) -> str:
    """The task that a target is for."""
    if y.dtype.kind not in "iuf":
        return TASKS[0]
    whole = y.dtype.kind != "f" or bool((y == np.rint(y)).all())
    return TASKS[not whole or len(np.unique(y)) > _MOST_CLASSES]


def _numbers(name: str, y: np.ndarray) -> np.ndarray:
    if y.dtype.kind not in "iuf" or not np.isfinite(y).all():
        raise StudyInputError(f"The target of {name} must hold finite numbers for a regression.")
    if len(np.unique(y)) < 2:
        raise StudyInputError(f"The target of {name} holds one number only.")
    return y.astype(np.float64)


def _bounds_of_target(name: str, bounds: Any) -> tuple[float, float]:
    if bounds is None:
        raise StudyInputError(
            f"The target of {name} holds numbers: a regression, which needs --target-bounds low,high, declared from "
            "public knowledge and never learnt from the data (--task classification, if they are classes)."
        )
    low, high = _bounds(bounds, ["target"])
    return float(low[0]), float(high[0])


def _checked_classes(name: str, y: np.ndarray, folds: int) -> np.ndarray:
    try:
        kind = type_of_target(y)
    except (ValueError, TypeError):
        raise StudyInputError(f"The target of {name} must hold classes. Got {kind_of(y)} instead.") from None
    if kind not in ("binary", "multiclass"):
        raise StudyInputError(f"The target of {name} must hold classes. Got {kind} values instead.")
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise StudyInputError(f"The target of {name} has only one class.")
    if counts.min() < folds:
        rows = "1 row" if counts.min() == 1 else f"{counts.min()} rows"
        raise StudyInputError(f"A class of the target of {name} has {rows}, fewer than the {folds} folds.")
    return y


def _bounds(bounds: Any, names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    try:
        if isinstance(bounds, str | Path):
            bounds = _bounds_from_file(Path(bounds), names) if _is_table(bounds) else _two_numbers(str(bounds))
        return check_bounds(bounds, len(names))
    except StudyInputError:
        raise
    except ValueError as error:
        raise StudyInputError(first_line(error)) from None


def _is_table(bounds: Any) -> bool:
    return isinstance(bounds, str | Path) and str(bounds).lower().endswith(".csv")


def _two_numbers(text: str) -> tuple[float, float]:
    parts = text.split(",")
    if len(parts) != 2 or not all(is_number(part) for part in parts):
        raise StudyInputError(f"--bounds must be low,high or a .csv file of column,low,high. Got {text!r} instead.")
    return float(parts[0]), float(parts[1])


def _table_of_bounds(path: Path) -> Any:
    table = read_table(path)
    if not {"column", "low", "high"} <= set(table.columns):
        raise StudyInputError(
            f"{path.name} needs the columns column,low,high. Got {some_names(table.columns)} instead."
        )
    return table.assign(column=table["column"].astype(str)).drop_duplicates("column").set_index("column")


def _bounds_from_file(path: Path, names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    table = _table_of_bounds(path)
    missing = [name for name in names if name not in table.index]
    if missing:
        raise StudyInputError(f"{path.name} has no bounds for {some_names(missing)}.")
    return table.loc[names, "low"].to_numpy(), table.loc[names, "high"].to_numpy()
