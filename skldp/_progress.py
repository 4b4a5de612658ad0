"""Progress of a long call, as one line on standard error."""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Self, TypeVar

from skldp._texts import escaped

_SILENT_SECONDS, _SECONDS_BETWEEN = 2.0, 0.5
_Item = TypeVar("_Item")


class Progress:
    """Line that counts what a long call has done, from two seconds on; nothing with `show` False."""

    def __init__(self, what: str, total: int | None = None, *, show: bool = True) -> None:
        self._what, self._total, self._done, self._show = what, total, 0, show
        self._start = time.monotonic()
        self._next, self._width = self._start + _SILENT_SECONDS, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._width:
            self._write("\n")

    def advance(self, n: int = 1) -> None:
        """Count `n` more."""
        self._done += n
        if self._show and time.monotonic() >= self._next:
            self._next = time.monotonic() + _SECONDS_BETWEEN
            self._write()

    def track(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """Yield the items and count each when the next one is asked for."""
        with self:
            for item in items:
                yield item
                self.advance()

    def _write(self, end: str = "") -> None:
        """Write the line over the last one."""
        seconds = time.monotonic() - self._start
        text = f"{escaped(self._what)}: {self._done:,}"
        if self._total is not None:
            text += f" of {self._total:,}"
        text += f", {seconds:.0f} s"
        if self._total and 0 < self._done < self._total:
            text += f", about {seconds * (self._total / self._done - 1):.0f} s left"
        # A closed terminal must not end the call.
        with suppress(OSError, ValueError):
            print(f"\r{text.ljust(self._width)}", end=end, file=sys.stderr, flush=True)
        self._width = len(text)
