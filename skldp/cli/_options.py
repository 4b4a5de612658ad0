"""What the commands share: parsers of options, a progress bar, and tables."""

import sys
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Self

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from skldp._texts import escaped
from skldp.estimators._validation import check_epsilon

__all__ = [
    "FILE_OPTIONS",
    "BoundsOption",
    "ColumnsOption",
    "EncodingOption",
    "Epsilons",
    "Missing",
    "MissingOption",
    "Names",
    "SchemaOption",
    "SepOption",
    "TargetOption",
    "printable",
    "progress_bar",
    "rich_table",
    "writable",
]

# For terminals that have no more than ASCII.
_IN_ASCII = str.maketrans({"ε": "eps", "δ": "delta", "≤": "<=", "±": "+-", "–": "-"})


class Epsilons(tuple[float, ...]):
    """Epsilons, ``"0.5,1,2"``: sorted, without repetitions."""

    def __new__(cls, text: Any) -> Self:
        try:
            epsilons = sorted({float(part) for part in str(text).split(",")})
            for epsilon in epsilons:
                check_epsilon(epsilon)
        except ValueError:
            rule = "Epsilons must be finite numbers > 0, with commas between."
            raise typer.BadParameter(f"{rule} Got {text!r} instead.") from None
        return super().__new__(cls, epsilons)

    def __str__(self) -> str:
        return ",".join(f"{epsilon:g}" for epsilon in self)


class Names(tuple[str, ...]):
    """Names, ``"bitrand,bitrand-exact"``: without repetitions."""

    def __new__(cls, text: Any) -> Self:
        found = dict.fromkeys(part.strip() for part in str(text).split(",") if part.strip())
        if not found:
            raise typer.BadParameter("It needs at least one name.")
        return super().__new__(cls, found)

    def __str__(self) -> str:
        return ",".join(self)


class Missing(StrEnum):
    """What becomes of missing values."""

    REFUSE = "refuse"
    FILL = "fill"


#: Where a command's help lists those of its files.
FILE_OPTIONS = "File options"


def _of_files(about: str, **more: Any) -> Any:
    return typer.Option(help=about, rich_help_panel=FILE_OPTIONS, **more)


TargetOption = Annotated[str | None, _of_files("The column (or npz array) of the target.")]
BoundsOption = Annotated[
    str | None, _of_files("The declared bounds of the features: low,high or a .csv file of column,low,high.")
]
ColumnsOption = Annotated[Names | None, _of_files("The features, with commas; without, all columns.", parser=Names)]
SchemaOption = Annotated[
    str | None,
    _of_files(
        "What columns may hold, as of TablePrivatizer: a .json file or its text. Categories that it does not declare "
        "are taken from the file."
    ),
]
MissingOption = Annotated[
    Missing, _of_files("fill: for missing values stands the middle of the bounds, or a category of its own.")
]
SepOption = Annotated[
    str | None,
    _of_files("What stands between the cells of a .csv file.", show_default="a comma; in a .tsv file a tabulator"),
]
EncodingOption = Annotated[str, _of_files("Of a .csv file.")]


def writable(*endings: str) -> Callable[[Any], Path]:
    """Make the parser of a file to write: what is wrong with its place is said before hours of work.

    Parameters
    ----------
    *endings : str
        Those that its name may have; any, if none are given.

    Returns
    -------
    callable
    """

    def path(text: Any) -> Path:
        found = Path(text)
        if endings and found.suffix.lower() not in endings:
            raise typer.BadParameter(f"The name of the file must end with {' or '.join(endings)}. Got {found} instead.")
        if found.is_dir() or not found.parent.is_dir():
            raise typer.BadParameter(f"Cannot write {found}: its directory must exist and it must not be one.")
        return found

    return path


def printable(text: str) -> str:
    """Return the text as the terminal shows it, invisible characters as escapes and symbols in its encoding."""
    text = escaped(text)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        # A name of a file may hold anything.
        return text.translate(_IN_ASCII).encode(encoding, "backslashreplace").decode(encoding)
    return text


def progress_bar(console: Console) -> Progress:
    """A bar that counts and goes away; none where nobody watches."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return _Bar(*columns, console=console, transient=True, disable=not console.is_terminal)


class _Bar(Progress):
    def stop(self) -> None:
        """Stop it; older versions of rich leave an empty line also where no bar was shown."""
        if not self.disable:
            super().stop()


def rich_table(
    title: str,
    headings: Iterable[str],
    rows: Iterable[Iterable[str]],
    bold: Iterable[tuple[int, int]] = (),
    ends: Iterable[int] = (),
) -> Table:
    """A table of plain text for a terminal.

    Parameters
    ----------
    title : str
    headings : iterable of str
    rows : iterable of iterable of str
    bold : iterable of (int, int), default=()
        Row and column of the cells that stand out.
    ends : iterable of int, default=()
        Rows with a line below them.

    Returns
    -------
    rich.table.Table
    """
    names, cells_of = [printable(heading) for heading in headings], [list(row) for row in rows]
    # A terminal of 80 columns has no room for what is empty, nor for headings that are longer than their numbers.
    shown = [j for j in range(len(names)) if not cells_of or any(row[j] for row in cells_of)]
    table = Table(title=printable(title))
    for j in shown:
        too_long = j and len(names[j]) > max((len(printable(row[j])) for row in cells_of), default=0)
        heading = names[j].replace(" ", "\n") if too_long else names[j]
        # A name that does not fit goes on below: of bitrand and bitrand-exact, both would be "bit…".
        table.add_column(heading, justify="right" if j else "left", no_wrap=j > 0, overflow="ellipsis" if j else "fold")
    for i, row in enumerate(cells_of):
        cells = [Text(printable(row[j]), style="bold" if (i, j) in bold else "") for j in shown]
        table.add_row(*cells, end_section=i in ends)
    return table
