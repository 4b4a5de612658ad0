"""Account of the releases from one person's device, in an SQLite file."""

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from fractions import Fraction
from os import PathLike
from typing import Any

from skldp._checks import check_epsilon
from skldp.exceptions import BudgetExhaustedError, LedgerError

# Epsilons are integers in units of 2^-40: sums are exact, and 64 bits hold eight million.
_UNITS = 2**40
_MOST = Fraction(2**62, _UNITS)
_TABLES = (
    "CREATE TABLE spent (policy TEXT PRIMARY KEY, units INTEGER NOT NULL, reports INTEGER NOT NULL)",
    "CREATE TABLE kept (tag TEXT PRIMARY KEY)",
    "CREATE TABLE unsent (policy TEXT PRIMARY KEY, report BLOB NOT NULL)",
)
# An immediate transaction excludes other writers between reading the sum and writing the charge.
_BEGIN = "BEGIN IMMEDIATE"
_CHARGE = (
    "INSERT INTO spent VALUES (?, ?, 1) "
    "ON CONFLICT (policy) DO UPDATE SET units = units + excluded.units, reports = reports + 1"
)


class DeviceLedger:
    """Account of the releases from one person's device, with a lifetime limit.

    Parameters
    ----------
    path : str or path-like
        Path of the file. A missing file is created with access for its owner only (on a file system with hard links).
        The file contains digests of policies, numbers of reports, epsilons and unsent reports, but no values.
        Deleting it deletes the record of past releases.
    lifetime_epsilon : float
        Largest total epsilon of all reports in nats, set by the person. The file does not contain it: a person may
        open the same account with another limit, which then counts for past reports as well.

    Raises
    ------
    ValueError
        If `lifetime_epsilon` is not a finite number > 0.
    LedgerError
        If the path is not that of an account, or the account cannot be created.

    Notes
    -----
    A charge is on disk before its report is drawn: a crash may lose a report, never its cost. Charges are rounded up to
    a multiple of :math:`2^{-40}`. Several processes may share the file.

    Examples
    --------
    >>> import os, tempfile
    >>> from skldp.client import DeviceLedger
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = DeviceLedger(os.path.join(folder, "mine.sqlite"), lifetime_epsilon=2.0)
    ...     ledger.charge("a digest", 1.5)
    ...     ledger.spent
    1.5
    """

    def __init__(self, path: str | PathLike[str], *, lifetime_epsilon: float) -> None:
        check_epsilon(lifetime_epsilon)
        # An absolute path survives a change of directory, and SQLite does not take it for ":memory:".
        self.path = os.path.abspath(path)
        self.lifetime_epsilon = float(lifetime_epsilon)
        with self._opened():
            pass

    @property
    def spent(self) -> float:
        """Sum of all charged epsilons."""
        with self._opened() as connection:
            return float(Fraction(_total(connection), _UNITS))

    def charge(self, policy: str, epsilon: float) -> None:
        """Charge one report of the policy with this SHA-256.

        Parameters
        ----------
        policy : str
            SHA-256 of the policy, in hexadecimal digits.
        epsilon : float
            Epsilon of the report (natural log).

        Raises
        ------
        BudgetExhaustedError
            If the charge would exceed the limit. Nothing is charged then.
        ValueError
            If epsilon is not a finite number > 0.
        LedgerError
            If the file cannot be read or written, or is not an account. Nothing is drawn then.
        """
        units = _units(epsilon)
        with self._opened() as connection:
            connection.execute(_BEGIN)
            self._spend(connection, policy, units)

    def _charge_once(self, policy: str, charges: Mapping[str, float]) -> None:
        """Charge one report for the answers that were not charged before, by tag: a keyed hash of the value."""
        units = {tag: _units(epsilon) for tag, epsilon in charges.items()}
        with self._opened() as connection:
            connection.execute(_BEGIN)
            self._spend(connection, policy, _new_units(connection, units))

    def _unsent(self, policy: str) -> bytes | None:
        """Return the report of a policy that is stored for its delivery, or None."""
        with self._opened() as connection:
            row = connection.execute("SELECT report FROM unsent WHERE policy = ?", (policy,)).fetchone()
            return None if row is None else bytes(row[0])

    def _store(self, policy: str, report: bytes) -> bytes:
        """Store a charged report until it is delivered, and return the stored one, which may be another process's."""
        with self._opened() as connection:
            connection.execute("INSERT OR IGNORE INTO unsent VALUES (?, ?)", (policy, report))
        return self._unsent(policy) or report

    def _delivered(self, policy: str, report: bytes) -> None:
        with self._opened() as connection:
            connection.execute("DELETE FROM unsent WHERE policy = ? AND report = ?", (policy, report))

    def reports(self) -> dict[str, int]:
        """Return the number of charged reports by the SHA-256 of their policy."""
        with self._opened() as connection:
            return dict(connection.execute("SELECT policy, reports FROM spent ORDER BY policy").fetchall())

    def __repr__(self) -> str:
        return f"DeviceLedger({self.path!r}, lifetime_epsilon={self.lifetime_epsilon!r})"

    def _spend(self, connection: Any, policy: str, units: int) -> None:
        """Charge within a transaction; an error rolls it back."""
        limit = math.floor(min(Fraction(self.lifetime_epsilon), _MOST) * _UNITS)
        # A report without new charges is admitted even if the limit was lowered.
        left = max(0, limit - _total(connection))
        if units > left:
            raise BudgetExhaustedError(
                f"This report costs epsilon {units / _UNITS:.12g}, but only {left / _UNITS:.12g} of the lifetime limit "
                f"of {self.lifetime_epsilon:g} is left."
            )
        connection.execute(_CHARGE, (policy, units))
        connection.execute("COMMIT")

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        # A device that only shows a policy does not need sqlite3. A connection must not be shared across a fork, so
        # each call opens its own.
        import sqlite3

        try:
            _create(self.path)
            with closing(sqlite3.connect(self.path, isolation_level=None, timeout=30)) as connection:
                connection.execute("PRAGMA synchronous = FULL")
                _check_whole(connection, self.path)
                yield connection
        except (sqlite3.Error, OSError) as error:
            raise LedgerError(
                f"The account must be a readable and writable file; got {type(error).__name__} for {self.path!r}."
            ) from None


def _create(path: str) -> None:
    """Create an account with access for its owner only, unless it exists; SQLite copies the mode to its journal."""
    if os.path.lexists(path):
        return
    import sqlite3
    from tempfile import TemporaryDirectory

    # Closing a file releases the process's locks on it, so the file is linked after it is closed.
    with TemporaryDirectory(prefix=".skldp-", dir=os.path.dirname(path)) as folder:
        draft = os.path.join(folder, "account")
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(sqlite3.connect(draft)) as connection:
            connection.executescript(";".join(_TABLES))
        with suppress(FileExistsError):
            os.link(draft, path)


def _check_whole(connection: Any, path: str) -> None:
    """Raise LedgerError unless the file has all of its pages and exactly the tables of an account beside SQLite's."""
    # Within a transaction nobody else changes the size.
    connection.execute("BEGIN")
    own = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*' ORDER BY rowid"
    tables = [sql for (sql,) in connection.execute(own)]
    (pages,), (page_size,) = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size"))
    connection.execute("ROLLBACK")
    if tables != list(_TABLES) or os.path.getsize(path) < pages * page_size:
        raise LedgerError(
            f"The file must be a whole account; {path!r} is empty, cut off or another file. Restore a copy: a new "
            "account would not count past releases."
        )


def _new_units(connection: Any, units: Mapping[str, int]) -> int:
    """Store the tags of charges, and return the sum of the new ones."""
    known = "SELECT 1 FROM kept WHERE tag = ?"
    new = [tag for tag in units if connection.execute(known, (tag,)).fetchone() is None]
    connection.executemany("INSERT INTO kept VALUES (?)", [(tag,) for tag in new])
    return sum(units[tag] for tag in new)


def _units(epsilon: float) -> int:
    check_epsilon(epsilon)
    return math.ceil(Fraction(float(epsilon)) * _UNITS)


def _total(connection: Any) -> int:
    return int(connection.execute("SELECT coalesce(sum(units), 0) FROM spent").fetchone()[0])
