"""Account of the releases of one person's device, in an SQLite file."""

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
_TABLE = "CREATE TABLE IF NOT EXISTS spent (policy TEXT PRIMARY KEY, units INTEGER NOT NULL, reports INTEGER NOT NULL)"
_KEPT = "CREATE TABLE IF NOT EXISTS kept (tag TEXT PRIMARY KEY)"
# NULL marks a wave whose report the limit did not admit.
_WAVES = "CREATE TABLE IF NOT EXISTS waves (wave TEXT PRIMARY KEY, report BLOB)"
# Locks out other writers between the read of the sum and the write of the charge.
_BEGIN = "BEGIN IMMEDIATE"
_CHARGE = (
    "INSERT INTO spent VALUES (?, ?, 1) "
    "ON CONFLICT (policy) DO UPDATE SET units = units + excluded.units, reports = reports + 1"
)


class DeviceLedger:
    """Account of one person's releases from a device, with a limit.

    Parameters
    ----------
    path : str or path-like
        File, created for its owner alone if there is none (on a file system with hard links). It holds digests of
        policies, numbers of reports, epsilons and the reports of waves, and no values. Deleting it forgets what was
        released.
    lifetime_epsilon : float
        Largest total epsilon (natural log) of all reports, set by the person.

    Raises
    ------
    ValueError
        If `lifetime_epsilon` is not a finite number > 0.

    Notes
    -----
    A charge is on the disk before anything is drawn: a crash may lose a report, never its cost. Charges are rounded up
    to a multiple of :math:`2^{-40}`. Several processes may share the file.

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
        # Absolute: the process may change its directory, and SQLite takes ":memory:" for no file.
        self.path = os.path.abspath(path)
        self.lifetime_epsilon = float(lifetime_epsilon)

    @property
    def spent(self) -> float:
        """The sum of all charged epsilons."""
        with self._opened() as connection:
            return float(Fraction(_total(connection), _UNITS))

    def charge(self, policy: str, epsilon: float) -> None:
        """Charge one report of the policy with this SHA-256.

        Raises
        ------
        BudgetExhaustedError
            If it would exceed the limit; nothing is charged then.
        ValueError
            If epsilon is not a finite number > 0.
        LedgerError
            If the file cannot be read or written, or is another file; nothing is drawn then.
        """
        units = _units(epsilon)
        with self._opened() as connection:
            connection.execute(_BEGIN)
            self._spend(connection, policy, units)

    def charge_once(self, policy: str, charges: Mapping[str, float]) -> None:
        """Charge one report for the answers that were never charged before.

        `charges` has the epsilon of each answer by its tag, a keyed hash of the value that is kept in the file. Errors
        are those of :meth:`charge`.
        """
        units = {tag: _units(epsilon) for tag, epsilon in charges.items()}
        with self._opened() as connection:
            connection.execute(_BEGIN)
            self._spend(connection, policy, _new_units(connection, units))

    def keep_wave(self, policy: str, wave: str, charges: Mapping[str, float], report: bytes) -> bytes:
        """Charge and store the first report of a wave, and return the stored one.

        Parameters
        ----------
        policy : str
            SHA-256 of the policy.
        wave : str
            Digest of policy, person and wave.
        charges : dict of str to float
            As of :meth:`charge_once`.
        report : bytes
            Stored and charged if the wave has none.

        Returns
        -------
        bytes
            The stored report, which is on the disk.

        Raises
        ------
        BudgetExhaustedError
            If the limit does not admit it, or did not when the wave was first asked. The wave never has a report then.
        ValueError, LedgerError
            As of :meth:`charge`.
        """
        units = {tag: _units(epsilon) for tag, epsilon in charges.items()}
        with self._opened() as connection:
            connection.execute(_BEGIN)
            kept = self._kept_report(connection, wave)
            if kept is not None:
                return kept
            connection.execute("SAVEPOINT charges")
            try:
                connection.execute("INSERT INTO waves VALUES (?, ?)", (wave, report))
                self._spend(connection, policy, _new_units(connection, units))
            except BudgetExhaustedError:
                connection.execute("ROLLBACK TO charges")
                connection.execute("INSERT INTO waves VALUES (?, NULL)", (wave,))
                connection.execute("COMMIT")
                raise
            return report

    def reports(self) -> dict[str, int]:
        """Return the number of charged reports by the SHA-256 of their policy."""
        with self._opened() as connection:
            return dict(connection.execute("SELECT policy, reports FROM spent ORDER BY policy").fetchall())

    def __repr__(self) -> str:
        return f"DeviceLedger({self.path!r}, lifetime_epsilon={self.lifetime_epsilon!r})"

    def _kept_report(self, connection: Any, wave: str) -> bytes | None:
        """Return the report of a wave, or None; raises BudgetExhaustedError if it was refused."""
        row = connection.execute("SELECT report FROM waves WHERE wave = ?", (wave,)).fetchone()
        if row is None:
            return None
        if row[0] is None:
            raise BudgetExhaustedError("The lifetime limit did not admit a report of this wave. Got the wave again.")
        return bytes(row[0])

    def _spend(self, connection: Any, policy: str, units: int) -> None:
        """Charge within a transaction; an error rolls it back."""
        limit = math.floor(min(Fraction(self.lifetime_epsilon), _MOST) * _UNITS)
        # A report without new charges is admitted even if the limit was lowered.
        if units and _total(connection) + units > limit:
            raise BudgetExhaustedError(
                f"A report must stay within the lifetime limit of {self.lifetime_epsilon:g} that is set on this "
                f"device. Got one of epsilon {units / _UNITS:.6g}, which exceeds what is left of it."
            )
        connection.execute(_CHARGE, (policy, units))
        connection.execute("COMMIT")

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        # Not at the top: a device that only shows a policy need not wait for it. A connection each time, since one
        # must not pass a fork.
        import sqlite3

        try:
            _create(self.path)
            with closing(sqlite3.connect(self.path, isolation_level=None, timeout=30)) as connection:
                connection.execute("PRAGMA synchronous = FULL")
                for table in (_TABLE, _KEPT, _WAVES):
                    connection.execute(table)
                yield connection
        except (sqlite3.Error, OSError) as error:
            raise LedgerError(
                f"The account must be a file that can be read and written. Got {type(error).__name__} of {self.path!r}."
            ) from None


def _create(path: str) -> None:
    """Create an empty file for its owner alone unless there is one; SQLite gives its journal the same mode."""
    if os.path.lexists(path):
        return
    from tempfile import TemporaryDirectory

    # Linked after it is closed: closing a file drops the locks of the process on it.
    with TemporaryDirectory(prefix=".skldp-", dir=os.path.dirname(path)) as folder:
        draft = os.path.join(folder, "account")
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with suppress(FileExistsError):
            os.link(draft, path)


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
