"""Lock file of a ledger, with the last committed entry.

Each transaction holds the lock. SQLite uses POSIX locks, which a process loses when it closes any descriptor of the
file, for example after a backup. This lock uses ``flock``, which belongs to one open descriptor of the lock file. The
file is opened for each transaction and never inherited. Opening a ledger tests that the lock excludes other processes.
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


class Head(NamedTuple):
    """End of a ledger's record: the number of its last release and the hash of all releases."""

    release: int
    chain: str


EMPTY = Head(0, "0" * 64)


_EXPLANATION = (
    b"The lock and the last entry of the ledger beside it. Never delete it, never copy one without the other.\n"
)
_ENTRY = re.compile(rb"([0-9a-f]{32}) ([0-9]{20}) ([0-9a-f]{64})\n")
_LENGTH = len(_EXPLANATION) + 32 + 1 + 20 + 1 + 64 + 1
_MISSING = (
    "The ledger {name!r} has no lock file {lock_file!r}, which holds its last entry. A copy without it can only be "
    "read: PrivacyLedger.open(path, read_only=True). To ask again, restore both files together."
)
_LONGEST_PAUSE = 0.02
_DESCRIPTORS: set[int] = set()


def _close_inherited() -> None:
    """Close inherited descriptors in a forked child: the lock belongs to the parent."""
    while _DESCRIPTORS:
        os.close(_DESCRIPTORS.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_inherited)

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int, *, exclusive: bool) -> None:  # noqa: ARG001 -- all locks are exclusive here
        # Windows blocks reads of locked bytes, so the locked byte lies far behind the entry.
        os.lseek(descriptor, 2**30, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int, *, exclusive: bool) -> None:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)


class Entry(NamedTuple):
    """Content of a lock file: the ledger's token, and the end of its record."""

    token: str
    head: Head


def lock_file_of(path: str) -> str:
    return f"{path}.lock"


class LockFile:
    """Locked lock file."""

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor = descriptor
        self._name = name

    def read(self) -> Entry | None:
        """Return the last entry, or None if the lock file is empty."""
        try:
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            content = os.read(self._descriptor, _LENGTH + 1)
        except OSError as error:
            raise LedgerError(
                f"The file {lock_file_of(self._name)!r} could not be read, and nothing was released: {error.strerror}."
            ) from error
        if not content:
            return None
        entry = _ENTRY.fullmatch(content.removeprefix(_EXPLANATION))
        if len(content) != _LENGTH or entry is None:
            raise LedgerError(
                f"The lock file {lock_file_of(self._name)!r} of a ledger is damaged. Restore both files together; "
                "to read the ledger alone, use PrivacyLedger.open on a copy of it, with read_only=True."
            )
        return Entry(entry[1].decode(), Head(int(entry[2]), entry[3].decode()))

    def write(self, entry: Entry) -> None:
        """Write the last entry; call this after its commit, so that the entry is never newer than the ledger."""
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
    check_exclusive: bool = False,
) -> Iterator[LockFile | None]:
    process = os.getpid()
    target = lock_file_of(path)
    flags = (os.O_RDONLY if read_only else os.O_RDWR) | (os.O_CREAT if create else 0)
    # Without O_NONBLOCK, opening a pipe of this name would block.
    for name_of_flag in ("O_NOFOLLOW", "O_BINARY", "O_NONBLOCK"):
        flags |= getattr(os, name_of_flag, 0)
    # Storing the descriptor at once keeps an interrupt from leaking it locked.
    held: list[int] = []
    try:
        try:
            _acquire(held, path, name, flags, write, time.monotonic() + seconds)
            if check_exclusive:
                _check_exclusive(target, flags, name)
        except FileNotFoundError as error:
            if create:
                raise LedgerError(
                    f"The ledger {name!r} could not be created, and nothing was released: {error.strerror}."
                ) from error
            if not read_only:
                raise LedgerError(_MISSING.format(name=name, lock_file=lock_file_of(name))) from None
        except OSError as error:
            raise LedgerError(
                f"The ledger {name!r} could not be locked, and nothing was released: {error.strerror}."
            ) from error
        yield LockFile(held[0], name) if held else None
    finally:
        if os.getpid() == process:
            for descriptor in held:
                _close(descriptor)


def _acquire(held: list[int], path: str, name: str, flags: int, write: bool, until: float) -> None:
    while True:
        held.append(os.open(lock_file_of(path), flags, 0o600))
        descriptor = held[0]
        _DESCRIPTORS.add(descriptor)
        # Without O_NOFOLLOW the open has followed a link.
        if not all(stat.S_ISREG(found.st_mode) for found in (os.fstat(descriptor), os.lstat(lock_file_of(path)))):
            raise LedgerError(f"The lock file {lock_file_of(name)!r} of a ledger is not a regular file.")
        # The next process rolls back the journal of a killed writer.
        exclusive = write or os.path.exists(f"{path}-journal")
        _wait(descriptor, exclusive, name, until)
        if not exclusive and os.path.exists(f"{path}-journal"):
            _wait(descriptor, True, name, until)
        if os.path.samestat(os.fstat(descriptor), os.lstat(lock_file_of(path))):
            return
        # The file was replaced during the wait; others may lock the new one.
        _close(held.pop())


def _wait(descriptor: int, exclusive: bool, name: str, until: float) -> None:
    pause = 0.0005
    while True:
        try:
            return _try_lock(descriptor, exclusive=exclusive)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
                raise
        if time.monotonic() > until:
            raise LedgerError(
                f"The ledger {name!r} is in use: another process holds its lock, and nothing was released."
            )
        # Random pauses keep waiting processes out of step.
        time.sleep(pause * random.uniform(0.5, 1))
        pause = min(2 * pause, _LONGEST_PAUSE)


def _check_exclusive(target: str, flags: int, name: str) -> None:
    """Raise LedgerError if this process can take its own lock twice."""
    second = os.open(target, flags, 0o600)
    try:
        _try_lock(second, exclusive=True)
    except OSError:
        return
    finally:
        os.close(second)
    raise LedgerError(
        f"The ledger {name!r} is on a file system without working locks, and nothing was released. Move it to a "
        "local disk."
    )


def _close(descriptor: int) -> None:
    _DESCRIPTORS.discard(descriptor)
    os.close(descriptor)
