"""The file beside a ledger's: the lock that every transaction holds, and the last entry that was committed.

SQLite's own locks are POSIX locks, which a process loses as soon as it closes any descriptor of the file, be it that of
a backup. This lock is ``flock``'s, which belongs to one opening of the companion and to nothing else. It is opened
for each transaction and never inherited, and whoever opens a ledger first proves that it excludes.
"""

import errno
import os
import random
import re
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from skldp.exceptions import LedgerError

__all__ = ["EMPTY", "Companion", "Entry", "Head", "companion_of", "locked"]


class Head(NamedTuple):
    """Where a ledger's record ends: its last release, and the hash of that one and of all before it."""

    release: int
    chain: str


EMPTY = Head(0, "0" * 64)


_EXPLANATION = (
    b"The lock and the last entry of the ledger beside it. Never delete it, never copy one without the other.\n"
)
_ENTRY = re.compile(rb"([0-9a-f]{32}) ([0-9]{20}) ([0-9a-f]{64})\n")
_LENGTH = len(_EXPLANATION) + 32 + 1 + 20 + 1 + 64 + 1
_MISSING = (
    "The ledger {name!r} is without {companion!r}, which keeps its lock and its last entry. Whoever copies a ledger "
    "copies budgets, and a copy of the one file must not be asked with. Put the other one beside it; if that is lost, "
    "and the ledger is the newest and the only copy, make an empty file of that name."
)
_LONGEST_PAUSE = 0.02
_DESCRIPTORS: set[int] = set()


def _close_inherited() -> None:
    """Let go of what a fork copied: the lock stays with the parent, and must not outlive it in a child."""
    while _DESCRIPTORS:
        os.close(_DESCRIPTORS.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_inherited)

if sys.platform == "win32":
    import msvcrt

    def _take(descriptor: int, *, exclusive: bool) -> None:  # noqa: ARG001 -- here every lock is exclusive
        # Windows keeps others from reading what is locked: far behind the entry nothing is read.
        os.lseek(descriptor, 2**30, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _take(descriptor: int, *, exclusive: bool) -> None:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)


class Entry(NamedTuple):
    """What a companion remembers: which ledger it belongs to, and where that ledger's record ended."""

    token: str
    head: Head


def companion_of(path: str) -> str:
    """Name the companion of a ledger."""
    return f"{path}.lock"


class Companion:
    """A companion whose lock is held.

    Parameters
    ----------
    descriptor : int
    name : str
        What errors call the ledger.
    """

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor = descriptor
        self._name = name

    def read(self) -> Entry | None:
        """Read what is remembered; None where nothing is, because the companion is empty.

        Raises
        ------
        LedgerError
            If it holds anything else than an entry, or cannot be read.
        """
        try:
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            content = os.read(self._descriptor, _LENGTH + 1)
        except OSError as error:
            raise LedgerError(
                f"The file {companion_of(self._name)!r} could not be read, and nothing was released: {error.strerror}."
            ) from error
        if not content:
            return None
        entry = _ENTRY.fullmatch(content.removeprefix(_EXPLANATION))
        if len(content) != _LENGTH or entry is None:
            raise LedgerError(
                f"The file {companion_of(self._name)!r}, which belongs to a ledger, is damaged. Put it back from where "
                "it came; if the ledger beside it is the newest and the only copy, make it an empty file."
            )
        return Entry(entry[1].decode(), Head(int(entry[2]), entry[3].decode()))

    def write(self, entry: Entry) -> None:
        """Remember the last entry, after it was committed: the companion may lag behind its ledger, never lead.

        Raises
        ------
        OSError
            If it cannot be written. Half of an entry is taken back.
        """
        text = f"{entry.token} {entry.head.release:020d} {entry.head.chain}\n"
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        if os.write(self._descriptor, _EXPLANATION + text.encode()) < _LENGTH:
            os.ftruncate(self._descriptor, 0)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextmanager
def locked(
    path: str,
    name: str,
    *,
    write: bool,
    seconds: float,
    create: bool = False,
    read_only: bool = False,
    prove: bool = False,
) -> Iterator[Companion | None]:
    """Hold the lock of a ledger.

    Parameters
    ----------
    path : str
        The ledger.
    name : str
        What errors call it.
    write : bool
        Keep out readers as well.
    seconds : float
        How long to wait for others.
    create : bool, default=False
        Make the companion where there is none.
    read_only : bool, default=False
        Do without a companion, and without a lock, where there is none.
    prove : bool, default=False
        Make sure first that the lock excludes.

    Raises
    ------
    LedgerError
        If others do not let go in time, if the companion is missing, or if the lock excludes nobody.
    """
    process = os.getpid()
    target = companion_of(path)
    flags = (os.O_RDONLY if read_only else os.O_RDWR) | (os.O_CREAT if create else 0)
    # Without O_NONBLOCK a pipe of this name would be waited for.
    for name_of_flag in ("O_NOFOLLOW", "O_BINARY", "O_NONBLOCK"):
        flags |= getattr(os, name_of_flag, 0)
    # Filled as soon as there is something to close: an interrupt must not leave a lock to nobody.
    held: list[int] = []
    try:
        try:
            _hold(held, path, name, flags, write, time.monotonic() + seconds)
            if prove:
                _prove(target, flags, name)
        except FileNotFoundError as error:
            if create:
                raise LedgerError(
                    f"The ledger {name!r} could not be made, and nothing was released: {error.strerror}."
                ) from error
            if not read_only:
                raise LedgerError(_MISSING.format(name=name, companion=companion_of(name))) from None
        except OSError as error:
            raise LedgerError(
                f"The ledger {name!r} could not be locked, and nothing was released: {error.strerror}."
            ) from error
        yield Companion(held[0], name) if held else None
    finally:
        if os.getpid() == process:
            for descriptor in held:
                _close(descriptor)


def _hold(held: list[int], path: str, name: str, flags: int, write: bool, until: float) -> None:
    """Open the companion and wait for its lock."""
    while True:
        held.append(os.open(companion_of(path), flags, 0o600))
        descriptor = held[0]
        _DESCRIPTORS.add(descriptor)
        # Where there is no O_NOFOLLOW, a link has been followed.
        if not all(stat.S_ISREG(found.st_mode) for found in (os.fstat(descriptor), os.lstat(companion_of(path)))):
            raise LedgerError(f"{companion_of(name)!r}, which belongs to a ledger, is no file.")
        # A writer that was killed left a journal, and whoever comes next undoes its write.
        exclusive = write or os.path.exists(f"{path}-journal")
        _wait(descriptor, exclusive, name, until)
        if not exclusive and os.path.exists(f"{path}-journal"):
            _wait(descriptor, True, name, until)
        if os.path.samestat(os.fstat(descriptor), os.lstat(companion_of(path))):
            return
        # It was removed while this process waited for it, and others may hold the lock of a new one.
        _close(held.pop())


def _wait(descriptor: int, exclusive: bool, name: str, until: float) -> None:
    pause = 0.0005
    while True:
        try:
            return _take(descriptor, exclusive=exclusive)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
                raise
        if time.monotonic() > until:
            raise LedgerError(
                f"The ledger {name!r} is in use: somebody has held its lock for too long, and nothing was released."
            )
        # No two who wait for one another's lock stay in step.
        time.sleep(pause * random.uniform(0.5, 1))
        pause = min(2 * pause, _LONGEST_PAUSE)


def _prove(target: str, flags: int, name: str) -> None:
    """Try to take the lock away from this very process, as a lock of the whole process would allow."""
    second = os.open(target, flags, 0o600)
    try:
        _take(second, exclusive=True)
    except OSError:
        return
    finally:
        os.close(second)
    raise LedgerError(
        f"The ledger {name!r} lies on a file system whose locks exclude nobody, and nothing was released: put it on a "
        "local disk."
    )


def _close(descriptor: int) -> None:
    _DESCRIPTORS.discard(descriptor)
    os.close(descriptor)
