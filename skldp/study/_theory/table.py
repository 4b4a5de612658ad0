"""A table of theory that knows how it is drawn."""

from dataclasses import dataclass, replace

import numpy as np

from skldp.study._extras import require_pandas

__all__ = ["TheoryTable"]


@dataclass(frozen=True, eq=False)
class TheoryTable:
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
    >>> from skldp.study._theory.table import TheoryTable
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
    def of_rows(cls, title, names, rows, **drawing):
        """Make a table from rows and ``"comma, separated"`` names."""
        keys = names.split(", ")
        columns = zip(*rows, strict=True)
        return cls(title, {key: np.array(column) for key, column in zip(keys, columns, strict=True)}, **drawing)

    def __len__(self):
        return len(self.columns[self.x])

    def where(self, **values):
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
        columns = {name: column[wanted] for name, column in self.columns.items()}
        return replace(self, columns=columns)

    def to_frame(self):
        """Give the table as a pandas DataFrame.

        Raises
        ------
        ImportError
            If pandas is missing.
        """
        return require_pandas().DataFrame(self.columns)
