"""Data of a study: data sets of scikit-learn with public bounds, or a file with declared bounds."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes, load_digits, load_wine, make_friedman1
from sklearn.utils import Bunch
from sklearn.utils.multiclass import type_of_target

from skldp._arrays import kind_of
from skldp._checks import check_choice
from skldp._reading import as_array
from skldp.domains._column import Column
from skldp.estimators._validation import check_bounds
from skldp.study._table_files import (
    TABLE_FILES,
    USUAL,
    StudyInputError,
    TextFormat,
    counted,
    features_of,
    is_number_text,
    is_table_file,
    is_text_file,
    numbers_of,
    read_study_schema,
    read_table,
    some_names,
    table_columns,
)

# Public ranges of the columns, from the descriptions of the data.
_WINE = (
    (11.0, 0.74, 1.36, 10.6, 70.0, 0.98, 0.34, 0.13, 0.41, 1.3, 0.48, 1.27, 278),
    (14.8, 5.80, 3.23, 30.0, 162.0, 3.88, 5.08, 0.66, 3.58, 13.0, 1.71, 4.00, 1680),
)
# A target with more distinct integers is numeric.
_MOST_CLASSES = 20
TASKS = ("classification", "regression")


def _load_friedman() -> Bunch:
    """Return Friedman's first regression problem: 20,000 simulated rows, 5 of 10 features informative."""
    X, y = make_friedman1(20_000, noise=1.0, random_state=0)
    return Bunch(data=X, target=y, feature_names=[f"x{i}" for i in range(X.shape[1])])


# Loader, bounds of the features, and bounds of a target of numbers.
BUNDLED: dict[str, tuple[Any, Any, tuple[float, float] | None]] = {
    "digits": (load_digits, (0.0, 16.0), None),
    "wine": (load_wine, _WINE, None),
    "diabetes": (load_diabetes, (-0.2, 0.2), (25.0, 346.0)),
    # Range of the formula without noise.
    "friedman": (_load_friedman, (0.0, 1.0), (0.0, 30.0)),
}


@dataclass(frozen=True)
class StudyData:
    """Data set with declared bounds of each feature, of a classification, or a regression with `target_bounds`."""

    name: str
    X: np.ndarray
    y: np.ndarray
    feature_names: tuple[str, ...]
    low: np.ndarray
    high: np.ndarray
    bounds_source: str
    target_bounds: tuple[float, float] | None = None
    of_column: tuple[str, ...] = ()  # of each feature
    found: tuple[str, ...] = ()  # columns whose categories come from the file
    n_filled: int = 0  # missing cells
    skewed: tuple[str, ...] = ()  # columns that a log scale may fit

    @property
    def task(self) -> str:
        """Either "classification" or "regression"."""
        return TASKS[self.target_bounds is not None]

    @property
    def n_targets_clipped(self) -> int:
        """Number of targets of a regression outside their declared bounds."""
        if self.target_bounds is None:
            return 0
        low, high = self.target_bounds
        return int(np.count_nonzero((self.y < low) | (self.y > high)))

    @property
    def classes(self) -> np.ndarray:
        """Sorted classes."""
        return np.unique(self.y)

    def scaled(self) -> tuple[np.ndarray, int]:
        """Map the declared bounds of every feature to -1 and 1, clip, and count the clipped values."""
        unit = (self.X - self.low) / (self.high - self.low) * 2 - 1
        return np.clip(unit, -1, 1), int(np.count_nonzero(np.abs(unit) > 1))

    def columns_clipped(self) -> list[str]:
        """Return the columns with values outside their bounds, the most frequent first."""
        outside = np.count_nonzero((self.low > self.X) | (self.high < self.X), axis=0)
        names = self.of_column or self.feature_names
        return [names[j] for j in np.argsort(-outside, kind="stable") if outside[j]]

    def row_numbers(self) -> list[str]:
        """Return the columns of whole numbers that ascend from row to row, of at least ten rows."""
        ascending = (np.diff(self.X, axis=0) > 0).all(axis=0) & (np.rint(self.X) == self.X).all(axis=0)
        names = self.of_column or self.feature_names
        return [names[j] for j in np.flatnonzero(ascending)] if len(self.X) >= 10 else []


def load_study_data(
    source: str | Path,
    *,
    target: str | None = None,
    bounds: Any = None,
    folds: int = 2,
    task: str = "auto",
    target_bounds: Any = None,
    columns: Iterable[str] | None = None,
    schema: Any = None,
    count_unknown: bool = False,
    form: TextFormat = USUAL,
    target_transform: str = "none",
) -> StudyData:
    """Load and check a bundled set or a table for a study; the parameters are the options of ``skldp study``."""
    for name, given, known in (
        ("The task", task, ("auto", *TASKS)),
        ("--target-transform", target_transform, ("none", "log")),
    ):
        check_choice(name, given, known, StudyInputError)
    path, by_column = Path(source), read_study_schema(schema)
    transformed = task, folds, target_transform, target_bounds
    if str(source) in BUNDLED:
        if columns is not None or by_column or form != USUAL:
            raise StudyInputError(f"--columns, --schema and formats are for tables, {TABLE_FILES}; got {source}.")
        if target is not None:
            raise StudyInputError(f"--target is for files; {source} has its own; got {target!r}.")
        loader, published, of_target = BUNDLED[str(source)]
        bunch = loader()
        names = tuple(map(str, bunch.feature_names))
        y, ends = _target(str(source), bunch.target, of_target, *transformed)
        low, high = _bounds(published if bounds is None else bounds, list(names))
        kind = "published bounds" if bounds is None else "declared bounds"
        return StudyData(str(source), bunch.data, y, names, low, high, kind, ends)
    if not is_table_file(path):
        raise StudyInputError(f"Data must be one of {', '.join(BUNDLED)} or a {TABLE_FILES} file; got {path}.")
    needed = [] if target is None else [str(target)]
    wanted = None if columns is None or target is None else [*columns, *needed]
    name, frame = path.name, read_table(path, columns=wanted, needed=needed, declared=by_column, form=form)
    column = by_column.pop(str(target), None)
    y, frame = _split(name, frame, target, column, form)
    declared, found, problems = table_columns(name, frame, by_column, count_unknown=count_unknown, form=form)
    without = [own for own, known in declared.items() if known is None]
    of_target, low, high = None, np.empty(0), np.empty(0)
    with _noted(problems):
        of_target = _target_bounds(str(target), bounds, column)
    if without and bounds is None:
        only = "" if len(without) == frame.shape[1] else f" for {some_names(without)}"
        problems.append(
            f"{name} needs --bounds low,high, or a CSV file of column,low,high{only}: bounds are declared from "
            "public knowledge and never learnt from the data."
        )
    if task == "auto" and column is not None and column.has_codes:
        transformed = TASKS[0], *transformed[1:]
    with _noted(problems):
        y, ends = _target(name, y, of_target, *transformed)
    with _noted(problems):
        if without and bounds is not None:
            low, high = _bounds(bounds, without)
    if problems:
        raise StudyInputError(" ".join(dict.fromkeys(problems)))
    numbers = dict(zip(without, map(Column, low.tolist(), high.tolist()), strict=True))
    filling = "middle" if count_unknown else "refuse"
    of_file = {own: known or replace(numbers[own], name=own, missing=filling) for own, known in declared.items()}
    features = features_of(name, frame, of_file, count_unknown=count_unknown)
    return StudyData(name=name, y=y, found=found, **features, bounds_source="declared bounds", target_bounds=ends)


@contextmanager
def _noted(problems: list[str]) -> Iterator[None]:
    """Add an error of the input to a list: all are shown at once, because each run of a large file takes long."""
    try:
        yield
    except ValueError as error:
        problems.append(str(error))


def _target(
    name: str, y: np.ndarray, known: Any, task: str, folds: int, transform: str, bounds: Any
) -> tuple[np.ndarray, tuple[float, float] | None]:
    """Return the target and, of a regression, its bounds: given ones, or those `known`."""
    if len(y) < folds:
        raise StudyInputError(f"{name} has {len(y)} row{'s' * (len(y) > 1)}, fewer than the {folds} folds.")
    is_numeric = y.dtype.kind in "iuf"
    if task == "auto":
        has_fractions = y.dtype.kind == "f" and bool((y != np.rint(y)).any())
        task = TASKS[is_numeric and (has_fractions or len(np.unique(y)) > _MOST_CLASSES)]
    if task == TASKS[0]:
        if bounds is not None or transform != "none":
            what = "--target-transform" if bounds is None else "--target-bounds"
            raise StudyInputError(f"{what} is for a target of numbers; that of {name} holds classes.")
        _check_classes(name, y, folds)
        return y, None
    if not is_numeric or not np.isfinite(y).all():
        raise StudyInputError(f"The target of {name} must hold finite numbers for a regression.")
    if len(np.unique(y)) < 2:
        raise StudyInputError(f"The target of {name} holds one number only.")
    y, bounds = y.astype(np.float64), known if bounds is None else bounds
    if bounds is None:
        raise StudyInputError(
            f"The target of {name} holds numbers: a regression, which needs --target-bounds low,high, declared from "
            "public knowledge and never learnt from the data (--task classification, if they are classes)."
        )
    low, high = (float(end[0]) for end in _bounds(bounds, ["the target"], "--target-bounds"))
    if transform == "none":
        return y, (low, high)
    if low <= 0:
        way = f", such as --target-bounds 1,{high:.12g}" if high > 1 else ""
        raise StudyInputError(f"--target-transform log needs target bounds above 0{way}; got {low:g} and {high:g}.")
    # A target of at most 0 is below its bounds, and is clipped later.
    return np.log(np.where(y > 0, y, low / 2)), (float(np.log(low)), float(np.log(high)))


def _target_bounds(target: str, bounds: Any, column: Column | None) -> Any:
    """Return the bounds of a target of numbers in a schema, or in a file of bounds, or None."""
    if column is None and _is_table(bounds):
        return _bounds_in_file(Path(bounds)).get(target)
    if column is None or column.has_codes:
        return None
    if column.scale != "linear":
        raise StudyInputError(f"The target {target!r} must have no scale in the schema; use --target-transform log.")
    return column.low, column.high


def _split(name: str, frame: Any, target: Any, column: Column | None, form: TextFormat) -> tuple[Any, Any]:
    """Return the labels of a table, and its features."""
    if frame.empty:
        raise StudyInputError(f"{name} has no rows.")
    if target is None:
        raise StudyInputError(f"{name} needs --target, the column of labels, one of its {frame.shape[1]}.")
    labels, features = frame[target], frame.drop(columns=target)
    if features.shape[1] == 0:
        raise StudyInputError(f"{name} has no column but the target {target!r}.")
    if labels.isna().any():
        raise StudyInputError(f"Column {target!r} of {name} has {counted(labels.isna(), 'missing label')}.")
    text = is_text_file(name)
    if column is not None:
        numbers = column.as_numbers(as_array(labels), text=text, first_row=1)
        return numbers if column.values is None else np.array(column.from_numbers(numbers).tolist()), features
    cells = numbers_of(name, labels, form)
    return np.array([str(one) for one in labels], dtype=object) if cells.state.any() else cells.values, features


def _check_classes(name: str, y: np.ndarray, folds: int) -> None:
    try:
        kind = type_of_target(y)
    except (ValueError, TypeError):
        raise StudyInputError(f"The target of {name} must hold classes; got {kind_of(y)}.") from None
    if kind not in ("binary", "multiclass"):
        raise StudyInputError(f"The target of {name} must hold classes; got {kind} values.")
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise StudyInputError(f"The target of {name} has only one class.")
    if counts.min() < folds:
        rows = "1 row" if counts.min() == 1 else f"{counts.min()} rows"
        raise StudyInputError(f"A class of the target of {name} has {rows}, fewer than the {folds} folds.")


def _bounds(bounds: Any, names: list[str], option: str = "--bounds") -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and the upper bounds of some columns, from two numbers, arrays or a file."""
    if _is_table(bounds):
        by_column = _bounds_in_file(Path(bounds))
        missing = [name for name in names if name not in by_column]
        if missing:
            raise StudyInputError(f"{Path(bounds).name} has no bounds for {some_names(missing)}.")
        pairs = {f"of {name!r} ": by_column[name] for name in names}
    elif isinstance(bounds, str | Path):
        parts = str(bounds).split(",")
        if len(parts) != 2 or not all(map(is_number_text, parts)):
            file = " or a .csv file of column,low,high" if option == "--bounds" else ""
            raise StudyInputError(f"{option} must be low,high{file}; got {str(bounds)!r}.")
        pairs = {"": (parts[0], parts[1])}
    elif isinstance(bounds, tuple) and len(bounds) == 2 and all(map(is_number_text, bounds)):
        pairs = {"": bounds}
    else:
        pairs = {}
    wrong = [
        f"{option} {whose}must be finite numbers with low < high; got {low} and {high}."
        for whose, (low, high) in pairs.items()
        if not (is_number_text(low) and is_number_text(high) and float(low) < float(high))
    ]
    if wrong:
        raise StudyInputError(" ".join(wrong))
    if pairs:
        ends = np.array(list(pairs.values()), dtype=np.float64)
        bounds = tuple(ends.T if len(ends) > 1 else ends[0])
    return check_bounds(bounds, len(names))


def _is_table(bounds: Any) -> bool:
    return isinstance(bounds, str | Path) and str(bounds).lower().endswith(".csv")


def _bounds_in_file(path: Path) -> dict[str, tuple[Any, Any]]:
    """Return the bounds of each column in a CSV file of column,low,high; the first row of a column counts."""
    table = read_table(path, columns=("column", "low", "high"))
    rows = zip(table["column"], table["low"], table["high"], strict=True)
    return {column: (low, high) for column, low, high in reversed(list(rows))}
