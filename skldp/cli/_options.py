"""Shared options of commands, their parsers, and tables."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from skldp._checks import check_epsilon
from skldp._tables import require
from skldp._texts import escaped

if TYPE_CHECKING:
    from rich.table import Table

    from skldp.domains._column import Column

# Replacements for ASCII terminals.
_IN_ASCII = str.maketrans({"ε": "eps", "δ": "delta", "≤": "<=", "±": "+-", "–": "-"})


class Epsilons(tuple[float, ...]):
    """Epsilons from text such as ``"0.5,1,2"``: sorted, without repetitions."""

    def __new__(cls, text: Any) -> Self:
        try:
            epsilons = sorted({float(part) for part in str(text).split(",")})
            for epsilon in epsilons:
                check_epsilon(epsilon)
        except ValueError:
            raise typer.BadParameter(f"Epsilons must be finite numbers > 0, with commas; got {text!r}.") from None
        return super().__new__(cls, epsilons)

    def __str__(self) -> str:
        return ",".join(f"{epsilon:g}" for epsilon in self)


class Names(tuple[str, ...]):
    """Names from text such as ``"bitrand,bitrand-exact"``: without repetitions."""

    def __new__(cls, text: Any) -> Self:
        found = dict.fromkeys(part.strip() for part in str(text).split(",") if part.strip())
        if not found:
            raise typer.BadParameter("Give at least one name.")
        return super().__new__(cls, found)

    def __str__(self) -> str:
        return ",".join(self)


PolicyFile = Annotated[Path, typer.Argument(help="The policy, a .json file.", metavar="POLICY")]
Target = Annotated[str | None, typer.Option(help="Column of the target.")]
Bounds = Annotated[
    str | None, typer.Option(help="Declared bounds of the features: low,high or a .csv file of column,low,high.")
]
TargetBounds = Annotated[
    str | None, typer.Option(help="Declared bounds of a numeric target. Default: its row in the file of --bounds.")
]
Transform = Annotated[str, typer.Option(help="none, or log to study the logarithm of a numeric target.")]
Columns = Annotated[Names | None, typer.Option(help="Features, with commas. Default: all columns.", parser=Names)]
Schema = Annotated[
    str | None,
    typer.Option(
        help="Declared columns, as of TablePrivatizer: a .json file or its text. Other categories are taken from the "
        "file."
    ),
]
Separator = Annotated[
    str | None, typer.Option(help="Separator of the cells of a text file. Default: a comma; a tab in a .tsv file.")
]
Decimal = Annotated[str, typer.Option(help="Decimal mark of the numbers of a text file: a point or a comma.")]
Encoding = Annotated[str, typer.Option(help="Encoding of a text file.")]
Missing = Annotated[
    Names | None,
    typer.Option(
        help="Texts that mark missing cells of a text file, with commas, such as NA. Empty cells are missing.",
        parser=Names,
    ),
]
NoHeader = Annotated[
    bool, typer.Option("--no-header", help="The first row of a text file is a record. Columns are named 0, 1, ...")
]
CountUnknown = Annotated[
    bool,
    typer.Option(
        "--count-unknown",
        help="Replace undeclared categories and missing values as a policy does, instead of an error.",
    ),
]


def output_option(*flags: str, about: str, endings: Sequence[str] = ()) -> Any:
    """Return an option for a file to write, which is checked before the command runs."""

    def path(text: Any) -> Path:
        found = Path(text)
        if endings and found.suffix.lower() not in endings:
            raise typer.BadParameter(f"The name of the file must end with {' or '.join(endings)}; got {found}.")
        if found.is_dir() or not found.parent.is_dir():
            raise typer.BadParameter(f"Cannot write {found}: its directory must exist and it must not be one.")
        return found

    return typer.Option(*flags, help=about, parser=path, metavar="PATH")


def keep_inputs(read: Iterable[object], *written: Path | None) -> None:
    """Refuse to write over a file that the command reads."""
    files = {Path(str(one)).resolve() for one in read if one is not None}
    for one in written:
        if one is not None and one.resolve() in files:
            raise typer.BadParameter(f"The command reads {one} and cannot write to it; name another file to write.")


def made_up_row(columns: "Sequence[Column]") -> Any:
    """Return a frame with one row of public values: low bounds and first categories."""
    import numpy as np

    ends = [np.array([0.0 if column.has_codes else column.low]) for column in columns]
    cells = {column.name: column.from_numbers(end) for column, end in zip(columns, ends, strict=True)}
    return require("pandas").DataFrame(cells)


def printable(text: str) -> str:
    """Return the text for the terminal: invisible characters are escaped, symbols fit its encoding."""
    text = escaped(text)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        # The name of a file may hold any character.
        return text.translate(_IN_ASCII).encode(encoding, "backslashreplace").decode(encoding)
    return text


def on_terminal() -> bool:
    """Return whether progress is shown: only if standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def rich_table(
    headings: Iterable[str],
    rows: Iterable[Iterable[str]],
    bold: Iterable[tuple[int, int]] = (),
    ends: Iterable[int] = (),
    *,
    folded: bool = False,
) -> "Table":
    """Return a table of plain text for a terminal; cells are folded, or on one line but for the first."""
    from rich.table import Table
    from rich.text import Text

    names, cells_of = [printable(heading) for heading in headings], [list(row) for row in rows]
    # Empty columns and long headings do not fit a terminal of 80 columns.
    shown = [j for j in range(len(names)) if not cells_of or any(row[j] for row in cells_of)]
    table = Table()
    for j in shown:
        too_long = j and len(names[j]) > max((len(printable(row[j])) for row in cells_of), default=0)
        heading = names[j].replace(" ", "\n") if too_long else names[j]
        # Long names are folded: an ellipsis would make bitrand and bitrand-exact equal.
        how: dict[str, Any] = {"overflow": "fold"}
        if j and not folded:
            how = {"overflow": "ellipsis", "justify": "right", "no_wrap": True}
        table.add_column(heading, **how)
    for i, row in enumerate(cells_of):
        cells = [Text(printable(row[j]), style="bold" if (i, j) in bold else "") for j in shown]
        table.add_row(*cells, end_section=i in ends)
    return table
