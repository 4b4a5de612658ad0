"""Draw a table of theory."""

import numpy as np

from skldp.study._extras import require_pyplot

__all__ = ["TheoryDisplay"]


class TheoryDisplay:
    """Draw one of the papers' theory figures from its table.

    Parameters
    ----------
    table : TheoryTable

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        One a panel.
    figure_ : matplotlib Figure
    lines_ : list of Line2D

    Examples
    --------
    >>> from skldp.study._theory.figures import label_flips
    >>> from skldp.study._theory.display import TheoryDisplay
    >>> len(TheoryDisplay.from_table(label_flips([0.1, 1.0])).lines_)
    2
    """

    def __init__(self, table):
        self.table = table

    @classmethod
    def from_table(cls, table, *, y=None, x=None):
        """Draw a table.

        Parameters
        ----------
        table : TheoryTable
        y : str, default=None
            Another column to draw, such as "q_top_k" or "exact_epsilon".
        x : str, default=None
            Another horizontal axis, such as "exact_epsilon".

        Returns
        -------
        TheoryDisplay
        """
        return cls(table).plot(y=y, x=x)

    def plot(self, *, y=None, x=None):
        """Draw; parameters as in :meth:`from_table`.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If the table has no such column.
        """
        plt = require_pyplot()
        table = self.table
        x, y = x or table.x, y or table.y
        for name in (x, y):
            if name not in table.columns:
                raise ValueError(f"Columns are {list(table.columns)}. Got {name!r} instead.")
        panels = [None] if table.panels is None else list(dict.fromkeys(table.columns[table.panels].tolist()))
        self.figure_, axes = plt.subplots(
            1, len(panels), figsize=(4.2 * len(panels) + 1.6, 4), sharey=True, squeeze=False, layout="constrained"
        )
        self.axes_, self.lines_ = axes[0], []
        for ax, panel in zip(self.axes_, panels, strict=True):
            part = table if panel is None else table.where(**{table.panels: panel})
            self._draw_panel(ax, part, x, y)
            ax.set_xlabel(x.replace("_", " "))
            if panel is not None:
                ax.set_title(f"{table.panels} {panel:g}")
        self.axes_[0].set_ylabel(y.replace("_", " "))
        if self.axes_[-1].get_legend_handles_labels()[1]:
            self.figure_.legend(*self.axes_[-1].get_legend_handles_labels(), loc="outside right center")
        self.figure_.suptitle(table.title)
        return self

    def _draw_panel(self, ax, table, x, y):
        keys = list(zip(*(table.columns[name].tolist() for name in table.lines), strict=True)) or [()] * len(table)
        names = list(dict.fromkeys(keys))
        colors = require_pyplot().get_cmap("tab10" if len(names) <= 10 else "tab20").colors
        for i, key in enumerate(names):
            rows = np.array([other == key for other in keys])
            label = ", ".join(
                part if isinstance(part, str) else f"{name.replace('_', ' ')} {part:g}"
                for name, part in zip(table.lines, key, strict=True)
            )
            style = {"marker": "osD^vP*Xh<>"[i % 11], "color": colors[i % len(colors)], "ms": 4, "lw": 1.3}
            (line,) = ax.plot(table.columns[x][rows], table.columns[y][rows], label=label or None, **style)
            self.lines_.append(line)
        if table.log_x or x == "exact_epsilon":
            ax.set_xscale("log")
        if table.log_y or y == "exact_epsilon":
            ax.set_yscale("log")
