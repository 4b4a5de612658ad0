"""A table of theory that knows how it is drawn, and its picture."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from skldp._tables import require
from skldp.study._results import ResultTable, result_columns

__all__ = ["TheoryDisplay", "TheoryTable"]

_MARKERS = "osD^vP*Xh<>"


@dataclass(frozen=True, eq=False)
class TheoryTable(ResultTable):
    """Named columns of equal length.

    Attributes
    ----------
    title : str
    columns : dict of str to ndarray
    x, y : str
        The columns that are drawn.
    lines : tuple of str
        Rows that agree in these columns make one line.
    panels : str or None
        Rows that agree in this column make one panel.
    log_x, log_y : bool
        Whether that axis is logarithmic.

    Examples
    --------
    >>> from theory_table import TheoryTable
    >>> table = TheoryTable.of_rows("squares", "n, square", [(1, 1), (2, 4)], x="n", y="square")
    >>> len(table), table.columns["square"].tolist()
    (2, [1, 4])
    """

    title: str
    columns: dict[str, np.ndarray]
    x: str
    y: str
    lines: tuple[str, ...] = ()
    panels: str | None = None
    log_x: bool = False
    log_y: bool = False

    @classmethod
    def of_rows(cls, title: str, names: str, rows: list[tuple[Any, ...]], **drawing: Any) -> Self:
        """Make a table from rows and ``"comma, separated"`` names."""
        columns = zip(*rows, strict=True)
        return cls(title, {name: np.array(c) for name, c in zip(names.split(", "), columns, strict=True)}, **drawing)

    def __len__(self) -> int:
        return len(self.columns[self.x])

    def where(self, **values: Any) -> Self:
        """Take the rows that have these values.

        Parameters
        ----------
        **values
            Column names and what they must equal.

        Returns
        -------
        TheoryTable
        """
        wanted = np.all([self.columns[name] == value for name, value in values.items()], axis=0)
        return replace(self, columns={name: column[wanted] for name, column in self.columns.items()})

    def to_dict(self) -> dict[str, np.ndarray]:
        """Give the columns."""
        return dict(self.columns)


class TheoryDisplay:
    """Draw one of the papers' theory figures from its table.

    Parameters
    ----------
    frame : TheoryTable, DataFrame or dict of arrays
    x, y : str, default=None
        The columns to draw, such as "exact_epsilon" over "q". None takes the table's own, which a frame does not have.
    lines : tuple of str, default=None
        Rows that agree in these columns make one line. None takes the table's own.
    panels : str, default=None
        Rows that agree in this column make one panel. None takes the table's own.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        One a panel.
    figure_ : matplotlib Figure
    lines_ : list of Line2D

    Examples
    --------
    >>> from theory_table import TheoryDisplay
    >>> from theory_figures import label_flips
    >>> len(TheoryDisplay.from_frame(label_flips([0.1, 1.0])).lines_)
    2
    """

    def __init__(
        self,
        frame: Any,
        *,
        x: str | None = None,
        y: str | None = None,
        lines: tuple[str, ...] | None = None,
        panels: str | None = None,
    ) -> None:
        self.frame = frame
        self.x = x
        self.y = y
        self.lines = lines
        self.panels = panels

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        x: str | None = None,
        y: str | None = None,
        lines: tuple[str, ...] | None = None,
        panels: str | None = None,
    ) -> Self:
        """Draw a table; parameters as in the class.

        Returns
        -------
        TheoryDisplay
        """
        return cls(frame, x=x, y=y, lines=lines, panels=panels).plot()

    def plot(self) -> Self:
        """Draw into a new figure, which may have several panels.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If the table has no such column.
        """
        plt = require("matplotlib.pyplot")
        table = self._table()
        for name in (table.x, table.y, *table.lines, *([table.panels] if table.panels else [])):
            if name not in table.columns:
                raise ValueError(f"Columns are {list(table.columns)}; got {name!r}.")
        parts = {"": table}
        if table.panels is not None:
            values = dict.fromkeys(table.columns[table.panels].tolist())
            parts = {f"{table.panels} {value:g}": table.where(**{table.panels: value}) for value in values}
        size = (4.2 * len(parts) + 1.6, 4)
        self.figure_, axes = plt.subplots(1, len(parts), figsize=size, sharey=True, squeeze=False, layout="constrained")
        self.axes_ = axes[0]
        self.lines_: list[Any] = []
        for ax, (title, part) in zip(self.axes_, parts.items(), strict=True):
            self._draw_panel(ax, part)
            ax.set_xlabel(table.x.replace("_", " "))
            ax.set_title(title)
        self.axes_[0].set_ylabel(table.y.replace("_", " "))
        if self.axes_[-1].get_legend_handles_labels()[1]:
            self.figure_.legend(*self.axes_[-1].get_legend_handles_labels(), loc="outside right center")
        self.figure_.suptitle(table.title)
        return self

    def _table(self) -> TheoryTable:
        given = {"x": self.x, "y": self.y, "lines": self.lines, "panels": self.panels}
        chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if isinstance(self.frame, TheoryTable):
            return replace(self.frame, **chosen)
        if "x" not in chosen or "y" not in chosen:
            raise ValueError(f"A frame needs x and y, the columns to draw; got x={self.x!r} and y={self.y!r}.")
        return TheoryTable("", result_columns(self.frame), **chosen)

    def _draw_panel(self, ax: Any, table: TheoryTable) -> None:
        keys = list(zip(*(table.columns[name].tolist() for name in table.lines), strict=True)) or [()] * len(table)
        names = list(dict.fromkeys(keys))
        colors = require("matplotlib").colormaps["tab10" if len(names) <= 10 else "tab20"].colors
        for i, key in enumerate(names):
            rows = np.array([other == key for other in keys])
            label = ", ".join(
                part if isinstance(part, str) else f"{name.replace('_', ' ')} {part:g}"
                for name, part in zip(table.lines, key, strict=True)
            )
            style = {"marker": _MARKERS[i % len(_MARKERS)], "color": colors[i % len(colors)], "ms": 4, "lw": 1.3}
            (line,) = ax.plot(table.columns[table.x][rows], table.columns[table.y][rows], label=label or None, **style)
            self.lines_.append(line)
        if table.log_x or table.x == "exact_epsilon":
            ax.set_xscale("log")
        if table.log_y or table.y == "exact_epsilon":
            ax.set_yscale("log")
