"""Reader of CSV, Parquet and Arrow files as pandas frames, and encoder of their columns as features."""

import codecs
import gzip
import re
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from skldp._reading import is_missing
from skldp._tables import require
from skldp.domains._columns import Categories
from skldp.domains._declared_columns import DeclaredColumn, NumberColumn
from skldp.estimators._column_encoder import encoded, encoded_names
from skldp.estimators._schema import columns_of, declared_column, read_schema, schema_by_column

# Endings of table files, for errors and help texts.
TABLE_FILES = ".csv, .tsv (both also with .gz), .parquet or .arrow"
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_OF_ARROW = (".parquet", ".arrow", ".feather")
# A chunk of 100 columns has about 50 MB.
_CHUNK = 65_536
_NAMELESS = "\0"


class StudyInputError(ValueError):
    """Error about data or options of a study, in one line."""


def read_table(
    path: str | Path, *, columns: Iterable[str] | None = None, separator: str | None = None, encoding: str = "utf-8"
) -> Any:
    """Return a complete table."""
    return next(table_chunks(path, columns=columns, separator=separator, encoding=encoding, n_rows=None))


def table_chunks(
    path: str | Path,
    *,
    columns: Iterable[str] | None = None,
    separator: str | None = None,
    encoding: str = "utf-8",
    n_rows: int | None = _CHUNK,
    as_texts: bool = False,
) -> Iterator[Any]:
    """Yield a table in chunks, one of which is in memory at a time; None for `n_rows` is all rows."""
    path = Path(path)
    ending = _ending(path)
    if not is_table_file(path):
        raise StudyInputError(f"A table must be a {TABLE_FILES} file; got {path}.")
    if not path.is_file():
        raise StudyInputError(f"There is no file {path}.")
    if path.stat().st_size == 0:
        raise StudyInputError(f"{path.name} is empty.")
    wanted = None if columns is None else list(dict.fromkeys(columns))
    if ending not in _SEPARATORS:
        if separator is not None:
            raise StudyInputError(f"A separator is for .csv and .tsv files; got {separator!r} for {path.name}.")
        yield from _read_arrow(path, wanted, n_rows)
        return
    options: dict[str, Any] = {"sep": _separator(separator, _SEPARATORS[ending]), "encoding": _encoding(encoding)}
    # A text such as NA may be a category; only an empty cell is missing.
    options |= {"dtype": str, "keep_default_na": False, "na_values": [""]} if as_texts else {}
    yield from _read_csv(path, wanted, n_rows, options)


def is_table_file(path: str | Path) -> bool:
    """Return whether :func:`read_table` reads files of that name."""
    return _ending(Path(path)) in (*_SEPARATORS, *_OF_ARROW)


def is_text_file(path: str | Path) -> bool:
    """Return whether a table file holds text."""
    return _ending(Path(path)) in _SEPARATORS


def is_number(text: Any) -> bool:
    """Return whether a text is that of a finite number."""
    try:
        return bool(np.isfinite(float(text)))
    except (TypeError, ValueError):
        return False


def some_names(names: Iterable[Any]) -> str:
    """Return the first names of columns, unless they may be cells of a row."""
    listed = list(names)
    # With another separator, a row is read as one name.
    cells = [cell for name in listed for cell in re.split(r"[,;|\t]", str(name))]
    # Names of columns are public; a first row of data is not.
    if any(map(is_number, cells)) and not all(str(name).isdigit() for name in listed):
        return "not shown: a number among the names, so that the file may have none"
    return ", ".join(str(name) for name in listed[:8]) + (", ..." if len(listed) > 8 else "")


def _ending(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz")
    ending = Path(name).suffix
    # Only text is read through gzip.
    return "" if path.suffix.lower() == ".gz" and ending not in _SEPARATORS else ending


def _separator(given: str | None, usual: str) -> str:
    if given is None:
        return usual
    character = "\t" if given == "\\t" else given
    # pandas reads a longer separator as a regular expression; letters and digits occur in cells.
    if len(character) != 1 or character.isalnum() or character in '"\r\n.+-':
        raise StudyInputError(f"The separator must be one character, such as ; or \\t; got {given!r}.")
    return character


def _encoding(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise StudyInputError(f"The encoding must be one that Python knows, such as latin-1; got {name!r}.") from None


def _read_csv(path: Path, wanted: list[str] | None, n_rows: int | None, options: dict[str, Any]) -> Iterator[Any]:
    first_row = _parse_csv(path, **options | {"header": None, "nrows": 1, "dtype": str})
    # A first row of numbers is data, not names.
    headless = all(is_number(cell) for cell in first_row.iloc[0])
    header = None if headless else 0
    names = list(map(str, _parse_csv(path, header=header, nrows=0, **options).columns))
    places = range(len(names)) if wanted is None else _places(path, wanted, names)
    given = [] if headless else first_row.iloc[0].tolist()
    if twice := [name for name in wanted or [] if given.count(name) > 1]:
        # pandas would take the first one.
        raise StudyInputError(f"A column that is read must be in {path.name} once; got {twice[0]!r} more than once.")
    # An additional column catches cells without a name, which versions of pandas treat differently.
    options |= {"header": None, "skiprows": int(not headless), "names": [*names, _NAMELESS]}
    # In a table of one column, an empty line is a row whose cell is missing.
    options |= {"chunksize": n_rows, "iterator": True, "skip_blank_lines": len(names) > 1}
    with _parse_csv(path, **options) as file:
        read = file.read if n_rows is None else lambda: next(file, None)
        n_before = 0
        while (chunk := _call_reader(path, read, options["encoding"])) is not None:
            nameless = chunk[_NAMELESS].notna().to_numpy()
            if nameless.any():
                row = n_before + int(nameless.argmax()) + 1
                raise StudyInputError(f"{path.name} is no CSV file: row {row:,} has more cells than there are names.")
            if not n_before and [str(cell) for cell in chunk.head(1).to_numpy().ravel()[:-1]] == names:
                raise StudyInputError(f"{path.name} is no CSV file: it begins with an empty line.")
            n_before += len(chunk)
            yield _with_text_names(chunk.iloc[:, list(places)])
            if n_rows is None:
                return


def _parse_csv(path: Path, **options: Any) -> Any:
    pd = require("pandas")
    # Infer types from complete columns; no column is an index.
    read = partial(pd.read_csv, path, low_memory=False, index_col=False, **options)
    return _call_reader(path, read, options["encoding"])


def _call_reader(path: Path, read: Any, encoding: str) -> Any:
    """Return the result of a text reader; its error names the line and shows no cell."""
    pd = require("pandas")
    try:
        with warnings.catch_warnings():
            # Cells without a name are detected below.
            warnings.simplefilter("ignore", pd.errors.ParserWarning)
            return read()
    except UnicodeError:
        # The position within a cell would reveal part of it.
        reason = f"its bytes are not {encoding.upper()}; --encoding says what they are"
    except pd.errors.EmptyDataError:
        reason = "there is nothing in it"
    except (gzip.BadGzipFile, zlib.error, EOFError):
        reason = "it is not compressed by gzip, or broken off"
    except (pd.errors.ParserError, ValueError, OverflowError) as error:
        cells = re.search(r"(?<=fields in )line \d+, saw \d+", str(error))
        row = re.search(r"(EOF|error|overflow).*? (row|line) \d+", str(error))
        reason = (
            f"{cells.group()} cells, more than there are names"
            if cells
            else row.group()
            if row
            else "it cannot be parsed"
        )
    raise StudyInputError(f"{path.name} is no CSV file: {reason}.")


def _read_arrow(path: Path, wanted: list[str] | None, n_rows: int | None) -> Iterator[Any]:
    require("pandas")
    arrow = require("pyarrow", extra="arrow")
    is_parquet = path.suffix.lower() == ".parquet"
    try:
        schema, read = _open_parquet(path, n_rows) if is_parquet else _open_arrow(path)
        names = schema.names
        chosen = names if wanted is None else [names[place] for place in _places(path, wanted, names)]
        schema = arrow.schema([schema.field(name) for name in chosen])
        parts = read(chosen)
        if n_rows is None:
            yield _with_text_names(arrow.Table.from_batches(parts, schema=schema).to_pandas())
            return
        n_read = 0
        for part in parts:
            n_read += part.num_rows
            for start in range(0, part.num_rows, n_rows):
                yield _with_text_names(part.slice(start, n_rows).to_pandas())
        if not n_read:
            yield _with_text_names(schema.empty_table().to_pandas())
    except StudyInputError:
        raise
    except (arrow.ArrowException, ValueError, OSError, NotImplementedError) as error:
        kind = "Parquet" if is_parquet else "Arrow"
        raise StudyInputError(f"{path.name} is no {kind} file that can be read ({type(error).__name__}).") from None


def _open_parquet(path: Path, n_rows: int | None) -> tuple[Any, Callable[[list[str]], Iterable[Any]]]:
    """Return the schema of a file, and the reader of batches of some columns."""
    file = require("pyarrow.parquet", extra="arrow").ParquetFile(path)
    return file.schema_arrow, lambda names: file.iter_batches(batch_size=n_rows or _CHUNK, columns=names)


def _open_arrow(path: Path) -> tuple[Any, Callable[[list[str]], Iterable[Any]]]:
    """Return the schema of a file or stream, and the reader of batches of some columns."""
    arrow, ipc = require("pyarrow", extra="arrow"), require("pyarrow.ipc", extra="arrow")
    source = arrow.memory_map(str(path))
    try:
        file = ipc.open_file(source)
        batches: Iterable[Any] = (file.get_batch(i) for i in range(file.num_record_batches))
    except arrow.ArrowInvalid:
        # A stream has no footer.
        source.seek(0)
        batches = file = ipc.open_stream(source)
    return file.schema, lambda names: (batch.select(names) for batch in batches)


def _places(path: Path, wanted: list[str], names: list[str]) -> list[int]:
    if not wanted:
        raise StudyInputError(f"Name at least one column of {path.name}, {some_names(names)}; got none.")
    if unknown := [name for name in wanted if name not in names]:
        got = ", ".join(map(repr, unknown[:4]))
        # With another separator, all names are one.
        other = next((one for one in ";\t|," if len(names) == 1 and one in names[0]), "")
        hint = f" Its separator may be {other!r}: use --sep." if other else ""
        raise StudyInputError(f"{path.name} must have the column {got}; it has {some_names(names)}.{hint}")
    return sorted(names.index(name) for name in wanted)


def _with_text_names(frame: Any) -> Any:
    frame.columns = [str(column) for column in frame.columns]
    return frame


# A column of more different texts holds names or comments, not categories.
_MOST_CATEGORIES = 50
# Columns that are named in an error.
_MOST_NAMED = 4
_DECLARE = "declare it in --schema{}, or leave it out by --columns"
_AS_DATES = ' as {"type": "dates", "low": FIRST, "high": LAST}, its first and last possible date'


class Features(NamedTuple):
    """Columns as numbers: one feature for each category, or one for ordered or two categories.

    Shapes: `X` (n_samples, n_features); `low, high` (n_features,).
    """

    X: np.ndarray
    feature_names: tuple[str, ...]
    low: np.ndarray
    high: np.ndarray
    of_column: tuple[str, ...]
    n_filled: int
    wide: tuple[str, ...]


def read_study_schema(schema: Any) -> dict[str, Any]:
    """Return a schema by column from a dict, JSON text, or a .json file."""
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


def table_columns(
    file: str, frame: Any, schema: Mapping[str, Any], *, fill: bool
) -> tuple[dict[str, DeclaredColumn | None], tuple[str, ...], list[str]]:
    """Return the columns of a table, None for numbers without bounds, those with found categories, and problems."""
    declared: dict[str, DeclaredColumn | None] = dict.fromkeys(map(str, frame.columns))
    found: list[str] = []
    refused: list[str] = []
    problems: list[str] = []
    invalid: list[str] = []
    if unknown := [name for name in schema if name not in frame.columns]:
        beside = ", ".join(map(repr, unknown[:4]))
        problems.append(f"The schema must name columns of {file} alone; got {beside} as well.")
    pd = require("pandas")
    for name in frame.columns:
        given, where = frame[name], f"Column {name!r} of {file}"
        missing = np.asarray(given.isna(), dtype=bool)
        of_numbers = pd.api.types.is_numeric_dtype(given) and not pd.api.types.is_complex_dtype(given)
        try:
            if name in schema:
                (declared[name],), learnt = read_schema({name: schema[name]}, [name], [given.dtype])
                found += learnt
            elif not of_numbers:
                found.append(name)
                declared[name] = declared_column(name, _categories(where, given))
        except (ValueError, TypeError) as error:
            if not invalid or name not in schema:
                problems.append(first_line(error))
            invalid += [repr(name)] if name in schema else []
            # It is no column of numbers, which would need bounds.
            del declared[name]
            continue
        column = declared[name]
        if missing.any() and not fill and (column is None or column.missing == "refuse"):
            what = f"column {name!r} has" if refused else f"{where} has"
            refused.append(f"{what} {np.count_nonzero(missing):,} missing values, the first in {first_row(missing)}")
        if column is None:
            values = pd.to_numeric(given, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
            infinite = np.isinf(values)
            if infinite.any():
                n = np.count_nonzero(infinite)
                problems.append(f"{where} has {n:,} infinite values, the first in {first_row(infinite)}.")
        elif missing.any() and column.missing == "refuse":
            filled: Any = {"values": (*column.values, None), "unknown": None} if column.values else {"missing": None}
            declared[name] = replace(column, **filled)
    if invalid[1:]:
        problems.append(f"The schema of {', '.join(invalid[1:])} is invalid as well.")
    more = [f"and {len(refused) - _MOST_NAMED} more"] if len(refused) > _MOST_NAMED else []
    listed = "; ".join([*refused[:_MOST_NAMED], *more])
    if refused:
        problems.append(f"{listed}: fill them by --missing fill, or declare them in --schema.")
    return declared, tuple(found), problems


def features_of(file: str, frame: Any, declared: Mapping[str, DeclaredColumn]) -> Features:
    """Encode a table by its declared columns."""
    blocks, n_filled = [], 0
    for column, values in zip(declared.values(), columns_of(frame), strict=True):
        try:
            numbers = column.as_numbers(values, first_row=1)
        except ValueError as error:
            raise StudyInputError(f"{file}: {first_line(error)}") from None
        n_filled += sum(map(is_missing, values.tolist())) if values.dtype.kind == "O" else int((values != values).sum())
        blocks.append(encoded(column, numbers))
    names = {name: encoded_names(column, name) for name, column in declared.items()}
    widths = [len(own) for own in names.values()]
    return Features(
        np.column_stack([block for block, _, _ in blocks]),
        tuple(feature for own in names.values() for feature in own),
        np.repeat([low for _, low, _ in blocks], widths),
        np.repeat([high for _, _, high in blocks], widths),
        tuple(name for name, own in names.items() for _ in own),
        n_filled,
        tuple(name for name, column in declared.items() if isinstance(column, NumberColumn) and column.is_wide),
    )


def first_row(marked: Any) -> str:
    """Return the 1-based number of the first marked row."""
    return f"row {int(np.flatnonzero(np.asarray(marked))[0]) + 1}"


def _is_dates(given: Any) -> bool:
    """Return whether a column holds dates, or texts such as 2020-01-31."""
    pd = require("pandas")
    if pd.api.types.is_datetime64_any_dtype(given):
        return True
    texts = given.dropna().tolist()
    return bool(texts) and all(isinstance(one, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", one) for one in texts)


def _categories(where: str, given: Any) -> Categories:
    """Return the categories found in a column of text."""
    pd = require("pandas")
    ordered = False
    if _is_dates(given):
        raise StudyInputError(f"{where} holds dates: {_DECLARE.format(_AS_DATES)}.")
    if isinstance(given.dtype, pd.CategoricalDtype):
        values, ordered = given.cat.categories.tolist(), bool(given.cat.ordered)
    else:
        texts = given.dropna()
        values = list(dict.fromkeys(texts.tolist())) if all(isinstance(one, str | bool) for one in texts) else []
        numbers = pd.to_numeric(given.astype(str), errors="coerce").notna() & given.notna()
        unreadable = ~numbers & given.notna()
        if not values or numbers.any():
            row = f", first in {first_row(unreadable)}" if unreadable.any() else ""
            raise StudyInputError(f"{where} is not numeric{row}: {_DECLARE.format('')}.")
        values.sort(key=str)
    if not 1 < len(values) <= _MOST_CATEGORIES:
        count = "one category only" if len(values) == 1 else f"{len(values):,} different texts"
        raise StudyInputError(f"{where} holds {count}: {_DECLARE.format('')}.")
    try:
        return Categories(tuple(values), ordered)
    except (ValueError, TypeError):
        # The error of Categories may show a category, which is a cell.
        raise StudyInputError(f"{where} must hold texts, numbers or booleans.") from None


def first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
