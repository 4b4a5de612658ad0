"""Results as text, as HTML tables for notebooks and as pandas frames, and imports of optional modules."""

import html
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from skldp._texts import escaped

# Longer tables are cut; their frame has all rows.
_MOST_ROWS = 20


def as_frame(columns: Mapping[str, Any] | Sequence[Mapping[str, Any]], index: Any = None) -> Any:
    """Return a pandas DataFrame of columns or rows by name."""
    return require("pandas").DataFrame(columns, index=index)


def require(name: str, *, extra: str = "study") -> ModuleType:
    """Import an optional module; the error names the extra to install."""
    try:
        return import_module(name)
    except ImportError:
        raise ImportError(f'This needs {name.partition(".")[0]}: pip install "skldp[{extra}]".') from None


def text_table(title: str, rows: Sequence[Sequence[str]]) -> str:
    """Return a title and rows as text, of which the first column is aligned to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]
    return "\n".join([title, *lines])


def html_table(caption: str, rows: Iterable[Sequence[str]], head: Sequence[str] = (), most: int = _MOST_ROWS) -> str:
    """Return a table of at most `most` rows whose first column names each row; every text is escaped."""
    every = list(rows)
    lines = ["".join(_cell("th", name) for name in head)] if head else []
    for name, *cells in every[:most]:
        lines.append(_cell("th", name) + "".join(_cell("td", cell) for cell in cells))
    if len(every) > most:
        lines.append(_cell("td", f"and {len(every) - most:,} more"))
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><caption>{in_html(caption)}</caption>{body}</table>"


def in_html(text: str) -> str:
    """Escape special and invisible characters of a text for HTML."""
    return html.escape(escaped(text))


def _cell(kind: str, text: str) -> str:
    return f'<{kind} style="text-align:left">{in_html(text)}</{kind}>'
