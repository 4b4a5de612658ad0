"""Data for a study: scikit-learn's bundled sets with public bounds, or a file with declared ones."""

import re
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine, make_friedman1
from sklearn.utils import Bunch
from sklearn.utils.multiclass import type_of_target

from skldp._untold import untold
from skldp.estimators._validation import check_bounds
from skldp.study._extras import require

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


# Features, labels, and the names of the features.
_Table = tuple[np.ndarray, np.ndarray, list[str]]


class StudyInputError(ValueError):
    """The data or the options of a study cannot be used; the text is one line."""


@dataclass(frozen=True)
class StudyData:
    """A data set with declared bounds, of a classification or a regression.

    Attributes
    ----------
    name : str
    X : ndarray of float64, shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    feature_names : tuple of str
    low, high : ndarray of shape (n_features,)
        The declared bounds of every feature.
    bounds_source : str
        Where they come from.
    target_bounds : (float, float) or None
        The declared bounds of a target of numbers; None where the target is a class.
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    feature_names: tuple[str, ...]
    low: np.ndarray
    high: np.ndarray
    bounds_source: str
    target_bounds: tuple[float, float] | None = None

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


def load_study_data(
    source: str | Path,
    *,
    target: str | None = None,
    bounds: Any = None,
    folds: int = 2,
    task: str = "auto",
    target_bounds: Any = None,
) -> StudyData:
    """Load a data set and check all that a study needs of it.

    Parameters
    ----------
    source : str or Path
        "digits", "breast_cancer", "wine", "diabetes", "friedman" (50,000 rows that
        :func:`sklearn.datasets.make_friedman1` makes up), or a CSV, Parquet or npz file.
    target : str, default=None
        For a file: the column of labels. In a CSV file without a header row, its number from 0. In an npz file, the
        array of labels ("y" if None); the features are the one two-dimensional array with as many rows.
    bounds : str, Path or (low, high), default=None
        Two numbers as ``"low,high"``, arrays of one number per feature, or a CSV file with the columns
        ``column,low,high``. Needed for a file; None takes the published ranges of a bundled set.
    folds : int, default=2
        Every class needs at least as many rows.
    task : {"auto", "classification", "regression"}, default="auto"
        ``"auto"`` is a regression where the target holds fractions, or more than 20 different whole numbers.
    target_bounds : str or (low, high), default=None
        Of a regression: two numbers, also as ``"low,high"``. None takes those of the target's own row in the CSV file
        of bounds, or the published ones.

    Returns
    -------
    StudyData

    Raises
    ------
    StudyInputError
        If anything is missing or cannot be used, in one line.
    ImportError
        If a CSV or Parquet file is asked for and pandas is missing.

    Examples
    --------
    >>> from skldp.study import load_study_data
    >>> digits = load_study_data("digits")
    >>> digits.X.shape, float(digits.low[0]), float(digits.high[0])
    ((1797, 64), 0.0, 16.0)
    """
    if task not in ("auto", *TASKS):
        raise StudyInputError(f"The task must be one of auto, {', '.join(TASKS)}. Got {task!r} instead.")
    published_target = None
    if str(source) in BUNDLED:
        loader, published, published_target = BUNDLED[str(source)]
        bunch = loader()
        name, X, y = str(source), bunch.data, bunch.target
        names = [str(feature) for feature in bunch.feature_names]
        if target is not None:
            raise StudyInputError(f"--target is for files; {source} has its own. Got {target!r} instead.")
    else:
        published = None
        path = Path(source)
        name = path.name
        X, y, names = _read(path, target)
    regression = _recognised(y) == TASKS[1] if task == "auto" else task == TASKS[1]
    if len(X) < folds:
        raise StudyInputError(f"{name} has {len(X)} rows, fewer than the {folds} folds.")
    y = _numbers(name, y) if regression else _checked_classes(name, y, folds)
    if target_bounds is not None and not regression:
        raise StudyInputError(f"--target-bounds are for a target of numbers; that of {name} holds classes.")
    if bounds is None and published is None:
        raise StudyInputError(
            f"{name} needs --bounds low,high, or a CSV file of column,low,high: bounds are declared from public "
            "knowledge and never learnt from the data."
        )
    low, high = _bounds(published if bounds is None else bounds, names)
    source_of_bounds = "published bounds" if bounds is None else "declared bounds"
    of_target = None
    if regression:
        if target_bounds is None and _is_table(bounds):
            own = str(target) in _table_of_bounds(Path(bounds)).index
            target_bounds = np.ravel(_bounds(bounds, [str(target)])) if own else None
        of_target = _bounds_of_target(name, published_target if target_bounds is None else target_bounds)
    return StudyData(name, X, y, tuple(names), low, high, source_of_bounds, of_target)


def _read(path: Path, target: str | None) -> _Table:
    readers = {".csv": _read_csv, ".parquet": _read_parquet, ".npz": _read_npz}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise StudyInputError(f"Data must be one of {', '.join(BUNDLED)} or a .csv, .parquet or .npz file. Got {path}.")
    if not path.is_file():
        raise StudyInputError(f"There is no file {path}.")
    if path.stat().st_size == 0:
        raise StudyInputError(f"{path.name} is empty.")
    return reader(path, target)


def _read_csv(path: Path, target: str | None) -> _Table:
    first_row = _parsed(path, header=None, nrows=1, dtype=str)
    # A first row of numbers is data, not names.
    headless = all(_is_number(cell) for cell in first_row.iloc[0])
    return _from_frame(path.name, _parsed(path, header=None if headless else 0), target)


def _parsed(path: Path, **options: Any) -> Any:
    """The table of a CSV file, or an error that names the line and shows nothing that stands in it."""
    pd = require("pandas")
    try:
        return pd.read_csv(path, **options)
    except UnicodeDecodeError as error:
        reason = f"its bytes from {error.start:,} on are not UTF-8"
    except pd.errors.EmptyDataError:
        reason = "there is nothing in it"
    except (pd.errors.ParserError, ValueError, OverflowError) as error:
        cells = re.search(r"Expected \d+ fields in line \d+, saw \d+", str(error))
        row = re.search(r"(EOF|error|overflow).*? (row|line) \d+", str(error))
        reason = cells.group() if cells else row.group() if row else "it cannot be parsed"
    raise StudyInputError(f"{path.name} is no CSV file: {reason}.")


def _read_parquet(path: Path, target: str | None) -> _Table:
    pd = require("pandas")
    try:
        frame = pd.read_parquet(path)
    except (ValueError, OSError) as error:
        raise StudyInputError(f"{path.name} is no Parquet file that can be read ({type(error).__name__}).") from None
    return _from_frame(path.name, frame, target)


def _read_npz(path: Path, target: str | None) -> _Table:
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
            f"--target must name a one-dimensional array of {path.name} ({_some(arrays)}). Got {label!r} instead."
        )
    y = arrays[label]
    tables = [key for key, array in arrays.items() if array.ndim == 2 and len(array) == len(y)]
    if len(tables) != 1:
        raise StudyInputError(
            f"{path.name} needs exactly one two-dimensional array of {len(y)} rows beside {label!r}. "
            f"Got {_some(tables) or 'none'} instead."
        )
    X = arrays[tables[0]]
    if X.dtype.kind not in "biuf" or not np.isfinite(X).all():
        raise StudyInputError(f"Array {tables[0]!r} of {path.name} must hold finite numbers only.")
    return X.astype(np.float64), y, [f"x{i}" for i in range(X.shape[1])]


def _from_frame(name: str, frame: Any, target: str | None) -> _Table:
    frame.columns = [str(column) for column in frame.columns]
    if frame.empty:
        raise StudyInputError(f"{name} has no rows.")
    if target is None:
        raise StudyInputError(f"{name} needs --target, the column of labels, one of: {_some(frame.columns)}.")
    if target not in frame.columns:
        raise StudyInputError(f"--target must be a column of {name} ({_some(frame.columns)}). Got {target!r} instead.")
    labels, features = frame[target], frame.drop(columns=target)
    if features.shape[1] == 0:
        raise StudyInputError(f"{name} has no column beside the target {target!r}.")
    if labels.isna().any():
        raise StudyInputError(
            f"Column {target!r} of {name} has {labels.isna().sum()} missing labels, the first in {_row(labels.isna())}."
        )
    pd = require("pandas")
    for column in features:
        given = features[column]
        if not pd.api.types.is_numeric_dtype(given) or pd.api.types.is_complex_dtype(given):
            strange = pd.to_numeric(given.astype(str), errors="coerce").isna() & given.notna()
            where = f", first in {_row(strange)}" if strange.any() else ""
            raise StudyInputError(f"Column {column!r} of {name} is not numeric{where}: encode it or leave it out.")
        values = given.to_numpy(dtype=np.float64, na_value=np.nan)
        if not np.isfinite(values).all():
            lost = ~np.isfinite(values)
            raise StudyInputError(
                f"Column {column!r} of {name} has {np.count_nonzero(lost)} missing or infinite values, the first in "
                f"{_row(lost)}."
            )
    y = labels.to_numpy()
    if y.dtype.kind not in "biufU":
        y = np.array([str(label) for label in y], dtype=object)
    return features.to_numpy(dtype=np.float64), y, list(features.columns)


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
        with untold(f"The target of {name} must hold classes", y):
            kind = type_of_target(y)
    except (ValueError, TypeError) as error:
        raise StudyInputError(_first_line(error)) from None
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
        raise StudyInputError(_first_line(error)) from None


def _is_table(bounds: Any) -> bool:
    return isinstance(bounds, str | Path) and str(bounds).lower().endswith(".csv")


def _two_numbers(text: str) -> tuple[float, float]:
    parts = text.split(",")
    if len(parts) != 2 or not all(_is_number(part) for part in parts):
        raise StudyInputError(f"--bounds must be low,high or a .csv file of column,low,high. Got {text!r} instead.")
    return float(parts[0]), float(parts[1])


def _table_of_bounds(path: Path) -> Any:
    if not path.is_file():
        raise StudyInputError(f"There is no file {path}.")
    table = _parsed(path)
    if not {"column", "low", "high"} <= set(table.columns):
        raise StudyInputError(f"{path.name} needs the columns column,low,high. Got {_some(table.columns)} instead.")
    return table.assign(column=table["column"].astype(str)).drop_duplicates("column").set_index("column")


def _bounds_from_file(path: Path, names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    table = _table_of_bounds(path)
    missing = [name for name in names if name not in table.index]
    if missing:
        raise StudyInputError(f"{path.name} has no bounds for {_some(missing)}.")
    return table.loc[names, "low"].to_numpy(), table.loc[names, "high"].to_numpy()


def _is_number(text: Any) -> bool:
    try:
        return np.isfinite(float(text))
    except (TypeError, ValueError):
        return False


def _row(strange: Any) -> str:
    """Where the first of the strange ones stands, the first row below the names being 1."""
    return f"row {int(np.flatnonzero(np.asarray(strange))[0]) + 1}"


def _some(names: Any) -> str:
    # Names of columns are public, and a first row of data without them is not.
    if any(map(_is_number, names)) and not all(str(name).isdigit() for name in names):
        return "not shown: a number among the names, so that the file may have none"
    shown = [str(name) for name in list(names)[:8]]
    return ", ".join(shown) + (", ..." if len(list(names)) > 8 else "")


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
