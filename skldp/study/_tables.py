"""The reader of tables, for every command: CSV, Parquet and Arrow files as frames of pandas, whole or in chunks."""

import codecs
import gzip
import re
import warnings
import zlib
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from skldp.study._extras import require

__all__ = [
    "TABLE_FILES",
    "StudyInputError",
    "is_number",
    "is_table_file",
    "is_text_file",
    "read_table",
    "some_names",
    "table_chunks",
]

#: What they end with, as an error or a help text says it.
TABLE_FILES = ".csv, .tsv (both also with .gz), .parquet or .arrow"
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_OF_ARROW = (".parquet", ".arrow", ".feather")
# A chunk of a table of a hundred columns then has some 50 MB.
_CHUNK = 65_536
_NAMELESS = "\0"


class StudyInputError(ValueError):
    """The data or the options of a study cannot be used; the text is one line."""


def read_table(
    path: str | Path, *, columns: Iterable[str] | None = None, separator: str | None = None, encoding: str = "utf-8"
) -> Any:
    r"""Read a table whole.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from skldp.study._tables import read_table
    >>> path = pathlib.Path(tempfile.mkdtemp(), "people.tsv")
    >>> _ = path.write_text("age\tcity\n31\tUlm\n64\tBonn\n")
    >>> read_table(path)["city"].tolist()
    ['Ulm', 'Bonn']
    """
    return next(_frames(Path(path), columns, separator, encoding, None))


def table_chunks(
    path: str | Path,
    *,
    columns: Iterable[str] | None = None,
    separator: str | None = None,
    encoding: str = "utf-8",
    n_rows: int = _CHUNK,
    as_texts: bool = False,
) -> Iterator[Any]:
    r"""Read a table in chunks, of which one is in memory at a time.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from skldp.study._tables import table_chunks
    >>> path = pathlib.Path(tempfile.mkdtemp(), "people.csv")
    >>> _ = path.write_text("age\n31\n64\n55\n")
    >>> [len(chunk) for chunk in table_chunks(path, n_rows=2)]
    [2, 1]
    """
    return _frames(Path(path), columns, separator, encoding, n_rows, as_texts)


def is_table_file(path: str | Path) -> bool:
    """Whether :func:`read_table` reads files of such a name.

    Examples
    --------
    >>> from skldp.study._tables import is_table_file
    >>> is_table_file("people.csv.gz"), is_table_file("people.npz")
    (True, False)
    """
    return _ending(Path(path)) in (*_SEPARATORS, *_OF_ARROW)


def is_text_file(path: str | Path) -> bool:
    """Whether a table file holds texts alone."""
    return _ending(Path(path)) in _SEPARATORS


def is_number(text: Any) -> bool:
    """Whether a text is that of a finite number."""
    try:
        return bool(np.isfinite(float(text)))
    except (TypeError, ValueError):
        return False


def some_names(names: Iterable[Any]) -> str:
    """The first few names of columns, unless they may be cells of a first row."""
    listed = list(names)
    # Read with another separator, a row is one name.
    cells = [cell for name in listed for cell in re.split(r"[,;|\t]", str(name))]
    # Names of columns are public, and a first row of data without them is not.
    if any(map(is_number, cells)) and not all(str(name).isdigit() for name in listed):
        return "not shown: a number among the names, so that the file may have none"
    return ", ".join(str(name) for name in listed[:8]) + (", ..." if len(listed) > 8 else "")


def _ending(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz")
    ending = Path(name).suffix
    # Only text is read through gzip.
    return "" if path.suffix.lower() == ".gz" and ending not in _SEPARATORS else ending


def _frames(
    path: Path,
    columns: Iterable[str] | None,
    separator: str | None,
    encoding: str,
    n_rows: int | None,
    as_texts: bool = False,
) -> Iterator[Any]:
    ending = _ending(path)
    if not is_table_file(path):
        raise StudyInputError(f"A table must be a {TABLE_FILES} file. Got {path}.")
    if not path.is_file():
        raise StudyInputError(f"There is no file {path}.")
    if path.stat().st_size == 0:
        raise StudyInputError(f"{path.name} is empty.")
    wanted = None if columns is None else list(dict.fromkeys(columns))
    if ending in _SEPARATORS:
        options: dict[str, Any] = {"sep": _separator(separator, _SEPARATORS[ending]), "encoding": _encoding(encoding)}
        # A text such as NA may be a category, and then an empty cell alone is missing.
        options |= {"dtype": str, "keep_default_na": False, "na_values": [""]} if as_texts else {}
        yield from _of_csv(path, wanted, n_rows, options)
        return
    if separator is not None:
        raise StudyInputError(f"A separator is for .csv and .tsv files. Got {separator!r} for {path.name}.")
    yield from _of_arrow(path, wanted, n_rows)


def _separator(given: str | None, usual: str) -> str:
    if given is None:
        return usual
    character = "\t" if given == "\\t" else given
    # pandas takes a longer one for a regular expression, and a letter or a digit for part of cells.
    if len(character) != 1 or character.isalnum() or character in '"\r\n.+-':
        raise StudyInputError(f"The separator must be one character, such as ; or \\t. Got {given!r} instead.")
    return character


def _encoding(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise StudyInputError(f"The encoding must be one that Python knows, such as latin-1. Got {name!r}.") from None


def _of_csv(path: Path, wanted: list[str] | None, n_rows: int | None, options: dict[str, Any]) -> Iterator[Any]:
    first_row = _parsed(path, **options | {"header": None, "nrows": 1, "dtype": str})
    # A first row of numbers is data, not names.
    headless = all(is_number(cell) for cell in first_row.iloc[0])
    header = None if headless else 0
    names = list(map(str, _parsed(path, header=header, nrows=0, **options).columns))
    places = range(len(names)) if wanted is None else _places(path, wanted, names)
    given = [] if headless else first_row.iloc[0].tolist()
    if twice := [name for name in wanted or [] if given.count(name) > 1]:
        # pandas takes the first one, whatever is meant.
        raise StudyInputError(f"A column that is read must be in {path.name} once. Got {twice[0]!r} more than once.")
    # One column more than there are: what stands in it has no name. Left to pandas, such cells are refused or dropped,
    # by its version and by where a chunk begins.
    options |= {"header": None, "skiprows": int(not headless), "names": [*names, _NAMELESS]}
    # In a table of one column, an empty line is a row whose cell is missing.
    options |= {"chunksize": n_rows, "iterator": True, "skip_blank_lines": len(names) > 1}
    with _parsed(path, **options) as file:
        # In chunks until there is none, or all at once.
        read = file.read if n_rows is None else lambda: next(file, None)
        n_before = 0
        while (chunk := _read_by(path, read, options["encoding"])) is not None:
            nameless = chunk[_NAMELESS].notna().to_numpy()
            if nameless.any():
                row = n_before + int(nameless.argmax()) + 1
                raise StudyInputError(f"{path.name} is no CSV file: row {row:,} has more cells than there are names.")
            if not n_before and [str(cell) for cell in chunk.head(1).to_numpy().ravel()[:-1]] == names:
                raise StudyInputError(f"{path.name} is no CSV file: it begins with an empty line.")
            n_before += len(chunk)
            yield _named(chunk.iloc[:, list(places)])
            if n_rows is None:
                return


def _parsed(path: Path, **options: Any) -> Any:
    pd = require("pandas")
    # Types by the whole column, where it is read whole. No column of cells is one of names of rows.
    read = partial(pd.read_csv, path, low_memory=False, index_col=False, **options)
    return _read_by(path, read, options["encoding"])


def _read_by(path: Path, read: Any, encoding: str) -> Any:
    """What a reader of text gives, or an error that names the line and shows nothing that stands in it."""
    pd = require("pandas")
    try:
        with warnings.catch_warnings():
            # Of cells that have no name, which are looked for.
            warnings.simplefilter("ignore", pd.errors.ParserWarning)
            return read()
    except UnicodeError:
        # Where they are not is counted within one cell, and would tell something of it.
        reason = f"its bytes are not {encoding.upper()}; --encoding says what they are"
    except pd.errors.EmptyDataError:
        reason = "there is nothing in it"
    except (gzip.BadGzipFile, zlib.error, EOFError):
        reason = "it is not compressed by gzip, or broken off"
    except (pd.errors.ParserError, ValueError, OverflowError) as error:
        cells = re.search(r"Expected \d+ fields in line \d+, saw \d+", str(error))
        row = re.search(r"(EOF|error|overflow).*? (row|line) \d+", str(error))
        reason = cells.group() if cells else row.group() if row else "it cannot be parsed"
    raise StudyInputError(f"{path.name} is no CSV file: {reason}.")


def _of_arrow(path: Path, wanted: list[str] | None, n_rows: int | None) -> Iterator[Any]:
    require("pandas")
    arrow = require("pyarrow", extra="arrow")
    frames = _frames_of_arrow(path, wanted, n_rows)
    while True:
        try:
            frame = next(frames, None)
        except StudyInputError:
            raise
        except (arrow.ArrowException, ValueError, OSError, NotImplementedError) as error:
            kind = "Parquet" if path.suffix.lower() == ".parquet" else "Arrow"
            raise StudyInputError(f"{path.name} is no {kind} file that can be read ({type(error).__name__}).") from None
        if frame is None:
            return
        yield _named(frame)


def _frames_of_arrow(path: Path, wanted: list[str] | None, n_rows: int | None) -> Iterator[Any]:
    if path.suffix.lower() == ".parquet":
        file = require("pyarrow.parquet", extra="arrow").ParquetFile(path)
        schema = file.schema_arrow
        names = _wanted(path, wanted, schema.names)
        batches = file.iter_batches(batch_size=n_rows or _CHUNK, columns=names)
    else:
        arrow, ipc = require("pyarrow", extra="arrow"), require("pyarrow.ipc", extra="arrow")
        source = arrow.memory_map(str(path))
        try:
            file = ipc.open_file(source)
            batches = (file.get_batch(i) for i in range(file.num_record_batches))
        except arrow.ArrowInvalid:
            # Written as a stream, which has no list of its batches at its end.
            source.seek(0)
            batches = file = ipc.open_stream(source)
        schema = file.schema
        names = _wanted(path, wanted, schema.names)
    of_names = require("pyarrow", extra="arrow").schema([schema.field(name) for name in names])
    if n_rows is None:
        table = require("pyarrow").Table.from_batches([batch.select(names) for batch in batches], schema=of_names)
        yield table.to_pandas()
        return
    none = True
    for batch in batches:
        for start in range(0, batch.num_rows, n_rows):
            none = False
            yield batch.select(names).slice(start, n_rows).to_pandas()
    if none:
        yield of_names.empty_table().to_pandas()


def _wanted(path: Path, wanted: list[str] | None, names: list[str]) -> list[str]:
    return names if wanted is None else [names[place] for place in _places(path, wanted, names)]


def _places(path: Path, wanted: list[str], names: list[str]) -> list[int]:
    unknown = [name for name in wanted if name not in names]
    if unknown or not wanted:
        got = ", ".join(map(repr, unknown[:4])) or "none"
        raise StudyInputError(f"Columns must be some of {path.name} ({some_names(names)}). Got {got} instead.")
    return sorted(names.index(name) for name in wanted)


def _named(frame: Any) -> Any:
    frame.columns = [str(column) for column in frame.columns]
    return frame
