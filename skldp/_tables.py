"""A result as a table: of HTML, for notebooks, and of pandas, where that is installed."""

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from skldp._texts import escaped

__all__ = ["as_frame", "html_table", "in_html"]

# A longer table is for its frame.
_MOST_ROWS = 20


def as_frame(columns: Mapping[str, Any] | Sequence[Mapping[str, Any]], index: Any = None) -> Any:
    """A pandas DataFrame, of columns or of rows by name.

    Raises
    ------
    ImportError
        If pandas is missing.
    """
    try:
        from pandas import DataFrame
    except ImportError:
        raise ImportError('This needs pandas: pip install "skldp[study]".') from None
    return DataFrame(columns, index=index)


def html_table(caption: str, rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """A table whose first column names each row, with every text escaped.

    Parameters
    ----------
    caption : str
    rows : iterable of sequences of str
        The first twenty are shown, and how many there are beside them.
    head : sequence of str, default=()
        Names of the columns.

    Returns
    -------
    str

    Examples
    --------
    >>> from skldp._tables import html_table
    >>> "<td>&lt; 18</td>" in html_table("Ages", [("low", "< 18")]).replace(' style="text-align:left"', "")
    True
    """
    every = list(rows)
    lines = ["".join(_cell("th", name) for name in head)] if head else []
    for name, *cells in every[:_MOST_ROWS]:
        lines.append(_cell("th", name) + "".join(_cell("td", cell) for cell in cells))
    if len(every) > _MOST_ROWS:
        lines.append(_cell("td", f"and {len(every) - _MOST_ROWS:,} more"))
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><caption>{in_html(caption)}</caption>{body}</table>"


def in_html(text: str) -> str:
    """Return the text for HTML: its special characters and invisible ones are escaped."""
    return html.escape(escaped(text))


def _cell(kind: str, text: str) -> str:
    return f'<{kind} style="text-align:left">{in_html(text)}</{kind}>'
