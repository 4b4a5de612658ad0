"""Reader of CSV, Parquet and Arrow files as pandas frames, and encoder of their columns as features."""

import codecs
import csv
import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

import numpy as np

from skldp._reading import Cells, CodeReader, DayReader, NumberReader, Unread, as_array, seems, value_key
from skldp._tables import require
from skldp.domains._column import Column
from skldp.estimators._column_encoder import encoded, encoded_names
from skldp.estimators._schema import columns_of, read_schema

# Endings of table files, for errors and help texts.
TABLE_FILES = ".csv, .tsv (both also with .gz), .parquet or .arrow"
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_OF_ARROW = (".parquet", ".arrow", ".feather")
# A chunk of 100 columns has about 50 MB.
_CHUNK = 65_536


class StudyInputError(ValueError):
    """Error about data or options of a study, in one line."""


@dataclass(frozen=True)
class TextFormat:
    """Format of a text file, by the options of the commands; nothing is guessed from its cells."""

    separator: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    missing: tuple[str, ...] = ()  # beside empty cells, unless the column declares such a category
    header: bool = True  # else columns are named "0", "1", ...

    def cells(self, texts: Iterable[str], column: Column | None) -> list[str | None]:
        """Return the cells of a column, None if they are missing, and numbers with a decimal point."""
        values = column.categories if column is not None else ()
        reader = CodeReader(values, text=True)
        missing = {"", *(text for text in self.missing if isinstance(reader.read(text), Unread))}
        found = [None if text in missing else text for text in texts]
        kinds = {value_key(value)[0] for value in values}
        of_numbers = column is not None and not column.is_date and kinds <= {value_key(0)[0]}
        return self.with_points(found) if of_numbers else found

    def with_points(self, cells: list[str | None]) -> list[str | None]:
        """Return numbers with a decimal point; other points become commas, which no number has."""
        swapped = str.maketrans({self.decimal: ".", ".": self.decimal})
        return cells if self.decimal == "." else [None if cell is None else cell.translate(swapped) for cell in cells]


USUAL = TextFormat()


def read_table(path: str | Path, **options: Any) -> Any:
    """Return a complete table, with the options of :func:`table_chunks`."""
    return next(table_chunks(path, n_rows=None, **options))


def table_chunks(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    needed: Sequence[str] = (),
    declared: Mapping[str, Column | None] | None = None,
    form: TextFormat = USUAL,
    n_rows: int | None = _CHUNK,
) -> Iterator[Any]:
    """Yield a table in chunks of `n_rows`, or at once; `declared` says which columns of a text file are numbers."""
    path = Path(path)
    if not is_table_file(path):
        raise StudyInputError(f"A table must be a {TABLE_FILES} file; got {path}.")
    if not path.is_file():
        raise StudyInputError(f"There is no file {path}.")
    if path.stat().st_size == 0:
        raise StudyInputError(f"{path.name} is empty.")
    if not is_text_file(path):
        if form != USUAL:
            options = "--separator, --decimal, --encoding, --missing and --no-header"
            raise StudyInputError(f"{options} are for .csv and .tsv files; got {path.name}.")
        yield from _read_arrow(path, columns, needed, n_rows)
        return
    declared = declared or {}
    for column in declared.values():
        if column is not None and column.values is not None:
            CodeReader(column.values, text=True).check_texts()
    pd = require("pandas")
    for texts in _read_text(path, columns, needed, n_rows, form):
        own = {name: form.cells(cells, declared.get(name)) for name, cells in texts.items()}
        yield pd.DataFrame(own, dtype=object)


def is_table_file(path: str | Path) -> bool:
    """Return whether :func:`read_table` reads files of that name."""
    return _ending(Path(path)) in (*_SEPARATORS, *_OF_ARROW)


def is_text_file(path: str | Path) -> bool:
    """Return whether a table file holds text."""
    return _ending(Path(path)) in _SEPARATORS


def is_number_text(text: Any) -> bool:
    """Return whether a text is that of a finite number."""
    try:
        return bool(np.isfinite(float(text)))
    except (TypeError, ValueError):
        return False


def some_names(names: Sequence[str]) -> str:
    """Return the first names of columns in quotes."""
    return ", ".join(map(repr, names[:8])) + ", ..." * (len(names) > 8)


def _ending(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz")
    ending = Path(name).suffix
    # Only text is read through gzip.
    return "" if path.suffix.lower() == ".gz" and ending not in _SEPARATORS else ending


def _read_text(
    path: Path, wanted: Sequence[str] | None, needed: Sequence[str], n_rows: int | None, form: TextFormat
) -> Iterator[dict[str, tuple[str, ...]]]:
    """Yield the columns of a text file in chunks; an error shows no cell."""
    open_text: Any = gzip.open if path.suffix.lower() == ".gz" else open
    separator = _SEPARATORS[_ending(path)] if form.separator is None else form.separator.replace("\\t", "\t")
    # Letters, digits and signs occur in cells.
    if len(separator) != 1 or separator.isalnum() or separator in '"\r\n.+-':
        raise StudyInputError(f"--separator must be one character, such as ; or \\t; got {separator!r}.")
    if form.decimal not in (".", ","):
        raise StudyInputError(f"--decimal must be a point or a comma; got {form.decimal!r}.")
    try:
        # Other programs write a mark before UTF-8, which is no part of a name.
        is_utf8 = codecs.lookup(form.encoding).name == "utf-8"
        with open_text(path, "rt", encoding="utf-8-sig" if is_utf8 else form.encoding, newline="") as file:
            parsed = csv.reader(file, delimiter=separator, strict=True)
            if not (first := next(parsed, [])):
                raise StudyInputError(f"{path.name} is no CSV file: it begins with an empty line.")
            names = first if form.header else list(map(str, range(len(first))))
            text = separator.join(first)
            other = next((one for one in ";\t|," if one != separator and text.count(one) >= len(first)), None)
            hint = f" Its separator may be {other!r}: use --separator." if other else ""
            places = _places(path, wanted, needed, names, hint)
            rows = _rows(path, parsed if form.header else chain([first], parsed), len(names), hint)
            for n_before in count():
                cells = list(zip(*islice(rows, n_rows), strict=True))
                if n_before and not cells:
                    return
                # A table without rows has its columns.
                yield {names[place]: cells[place] if cells else () for place in places}
    except UnicodeError:
        # The position within a cell would reveal part of it.
        reason = f"its bytes are not {form.encoding.upper()}; --encoding says what they are"
    except LookupError:
        raise StudyInputError(
            f"--encoding must be one that Python knows, such as latin-1; got {form.encoding!r}."
        ) from None
    except (gzip.BadGzipFile, zlib.error, EOFError):
        reason = "it is not compressed by gzip, or broken off"
    except csv.Error:
        reason = f"line {parsed.line_num:,} has a quote that does not end, or a cell of more than 131,072 characters"
    raise StudyInputError(f"{path.name} is no CSV file: {reason}.")


def _rows(path: Path, parsed: Iterable[list[str]], n_names: int, hint: str) -> Iterator[list[str]]:
    """Yield rows of equal length; Excel omits empty cells at the end of a row, or adds some."""
    n = 0
    for row in parsed:
        if not row and n_names > 1:
            continue
        # In a table of one column, an empty line is a row whose cell is missing.
        n += 1
        excess = len(row) - n_names
        if excess > 0 and any(row[n_names:]):
            raise StudyInputError(f"{path.name} is no CSV file: row {n:,} has more cells than there are names.{hint}")
        yield [*row[:n_names], *[""] * -excess] if excess else row


def _read_arrow(path: Path, wanted: Sequence[str] | None, needed: Sequence[str], n_rows: int | None) -> Iterator[Any]:
    require("pandas")
    arrow = require("pyarrow", extra="arrow")
    is_parquet = path.suffix.lower() == ".parquet"
    try:
        schema, read = _open_parquet(path, n_rows) if is_parquet else _open_arrow(path)
        index = (schema.pandas_metadata or {}).get("index_columns", [])
        own = wanted if wanted is not None else [name for name in schema.names if name not in index]
        chosen = [schema.names[place] for place in _places(path, own, needed, schema.names)]
        # Without the metadata, by which pandas would make a column its index.
        schema = arrow.schema([schema.field(name) for name in chosen])
        n_read = 0
        for part in [read(chosen)] if n_rows is None else ([one] for one in read(chosen)):
            whole = arrow.Table.from_batches(part, schema=schema)
            for start in range(0, whole.num_rows, n_rows or max(whole.num_rows, 1)):
                piece = whole.slice(start, n_rows)
                # An error about bytes that are not UTF-8 would come later, and hold them.
                piece.validate(full=True)
                n_read += piece.num_rows
                # Integers beside missing cells would become doubles.
                yield piece.to_pandas(integer_object_nulls=True)
        if not n_read:
            yield schema.empty_table().to_pandas()
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


def _places(
    path: Path, wanted: Sequence[str] | None, needed: Sequence[str], names: Sequence[str], hint: str = ""
) -> list[int]:
    """Return the places of columns. An error shows no name that was not asked for: it may be a cell of a person."""
    if unknown := [name for name in (*(wanted or ()), *needed) if name not in names]:
        of_folded = {name.strip().casefold(): name for name in names}
        close = get_close_matches(unknown[0].strip().casefold(), of_folded)
        meant = (
            f" Close to {unknown[0]!r}: {some_names([of_folded[one] for one in close])}." if close and not hint else ""
        )
        n = f"{len(names)} column{'s' * (len(names) > 1)}"
        row = "; the first row holds the names, unless --no-header is given" if is_text_file(path) else ""
        got = ", ".join(map(repr, unknown[:4]))
        raise StudyInputError(f"{path.name} must have the column {got}; it has {n}{row}.{meant}{hint}")
    places = [place for place, name in enumerate(names) if wanted is None or name in wanted]
    for place in places:
        name = names[place]
        if not name:
            raise StudyInputError(
                f"Column {place + 1} of {path.name} has no name, as row numbers of pandas: write the file without "
                f"them (index=False), or name the columns to read by --columns.{hint}"
            )
        if (first := names.index(name)) < place:
            raise StudyInputError(
                f"A column that is read must be in {path.name} once; got columns {first + 1} and {place + 1} of "
                "one name."
            )
    return places


# A column of more different texts holds names or comments, not categories.
_MOST_CATEGORIES = 50
_DECLARE = "declare it in --schema{}, or leave it out by --columns"
_AS_DATES = ' as {"type": "date", "low": FIRST, "high": LAST}, its first and last possible date'


def read_study_schema(schema: Any) -> dict[str, Column]:
    """Return the declared columns of a schema, which is a dict, JSON text, or a .json file."""
    if isinstance(schema, Path) or (isinstance(schema, str) and schema.lower().endswith(".json")):
        try:
            # Editors of Windows write a mark.
            schema = Path(schema).read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise StudyInputError(f"{Path(schema).name} is no JSON file: its bytes are not UTF-8.") from None
    return {column.name: column for column in read_schema(schema or {})}


def table_columns(
    file: str, frame: Any, schema: Mapping[str, Column], *, count_unknown: bool, form: TextFormat
) -> tuple[dict[str, Column | None], tuple[str, ...], list[str]]:
    """Return the columns of a table, None for numbers without bounds, those with found categories, and problems."""
    declared: dict[str, Column | None] = {}
    found: list[str] = []
    refused: list[str] = []
    problems: list[str] = []
    if unknown := [name for name in schema if name not in frame.columns]:
        problems.append(f"The schema must name columns of {file} alone; got {some_names(unknown)} as well.")
    for name in frame.columns:
        column, missing = schema.get(name), np.asarray(frame[name].isna(), dtype=bool)
        if column is None:
            cells = numbers_of(file, frame[name], form)
            if hasattr(frame[name], "cat") or missing.all() or Unread.UNREADABLE in cells.state:
                found.append(name)
                try:
                    column = _categories(file, frame[name], cells.state)
                except StudyInputError as error:
                    problems.append(str(error))
                    continue
            else:
                frame[name] = np.where(cells.state > 0, np.nan, cells.values)
        if missing.any() and (column is None or column.missing == "refuse"):
            refused.append(f"column {name!r} of {file} has {counted(missing, 'missing value')}")
            # Declared categories have the stand-in of their policy.
            if column is not None and (column.values is None or name in found):
                new: Any = (
                    {"values": (*column.values, None), "unknown": None} if column.values else {"missing": "middle"}
                )
                column = replace(column, **new)
        declared[name] = column
    if refused and not count_unknown:
        listed = "; ".join(refused[:4]) + "; ..." * (len(refused) > 4)
        problems.append(f"C{listed[1:]}: replace them by --count-unknown, or declare them in --schema.")
    return declared, tuple(found), problems


def numbers_of(file: str, given: Any, form: TextFormat) -> Cells:
    """Return the cells of an undeclared column as numbers."""
    text = is_text_file(file)
    return NumberReader(text=text).read_all(form.with_points(given.tolist()) if text else as_array(given))


def features_of(file: str, frame: Any, declared: Mapping[str, Column], *, count_unknown: bool) -> dict[str, Any]:
    """Return the fields of a study about features: one for a number, ordered or two categories, else one a category."""
    blocks, skewed, n_filled, text = [], [], int(frame.isna().to_numpy().sum()), is_text_file(file)
    for (name, column), values in zip(declared.items(), columns_of(frame), strict=True):
        numbers = column.as_numbers(values, refuse_unknown=not count_unknown, text=text, first_row=1)
        if column.values is not None:
            n_filled += int((CodeReader(column.values, text=text).read_all(values).state == Unread.UNKNOWN).sum())
        blocks.append(encoded(column, numbers))
        skewed += [name] * looks_skewed(column, numbers)
    names = {name: encoded_names(column, name) for name, column in declared.items()}
    widths = [len(own) for own in names.values()]
    return {
        "X": np.column_stack([block for block, _, _ in blocks]),
        "feature_names": tuple(feature for own in names.values() for feature in own),
        "low": np.repeat([low for _, low, _ in blocks], widths),
        "high": np.repeat([high for _, _, high in blocks], widths),
        "of_column": tuple(name for name, own in names.items() for _ in own),
        "n_filled": n_filled,
        "skewed": tuple(skewed),
    }


def looks_skewed(column: Column, numbers: np.ndarray) -> bool:
    """Return whether linear bounds span a factor of 100, or half of the values lie in their lowest twentieth."""
    if column.values is not None or column.scale != "linear" or column.is_date or column.low < 0:
        return False
    return column.is_wide or bool(np.nanmedian(numbers) < column.low + column.radius / 10)


def counted(marked: Any, what: str) -> str:
    """Return the number of marked rows, and the first of them from 1."""
    n = int(np.count_nonzero(marked))
    return f"{n:,} {what}{'s' * (n > 1)}, the first in row {int(np.argmax(marked)) + 1:,}"


def _categories(file: str, given: Any, state: np.ndarray) -> Column:
    """Return the categories found in a column of texts or booleans, whose `state` is that of its cells as numbers."""
    cells, where = given.dropna().tolist(), f"Column {given.name!r} of {file}"
    kinds, ordered = set(map(type, cells)), False
    if cells and not DayReader().read_all(cells).state.any():
        raise StudyInputError(f"{where} holds dates: {_DECLARE.format(_AS_DATES)}.")
    if hasattr(given, "cat"):
        values, ordered = given.cat.categories.tolist(), bool(given.cat.ordered)
    elif not (kinds <= {str} or kinds == {bool}) or (is_text_file(file) and 0 in state):
        # Numbers beside texts are codes, or cells that have another format.
        first = int(np.argmax(state == Unread.UNREADABLE))
        row = f"first in row {first + 1:,}"
        raise StudyInputError(f"{where} is not numeric, {row}: {_DECLARE.format('')}.{seems(given.iloc[first])}")
    else:
        values = [False, True] if kinds == {bool} else sorted(set(cells))
    if not 1 < len(values) <= _MOST_CATEGORIES:
        count = {0: "no value", 1: "one category only"}.get(len(values), f"{len(values):,} different texts")
        raise StudyInputError(f"{where} holds {count}: {_DECLARE.format('')}.")
    try:
        return Column(values=tuple(values), ordered=ordered)
    except (ValueError, TypeError):
        # The error of a column may show a category, which is a cell.
        raise StudyInputError(f"{where} must hold texts, numbers or booleans.") from None
