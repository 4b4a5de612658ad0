"""The chain of a ledger's entries: a hash of each release and of all before it, so that a head tells the whole record.

No key is in it: it finds what went back, was lost or was damaged, not a forger who writes a chain of his own.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skldp.accounting.ledger.identity import Identity

__all__ = ["EMPTY", "Head", "Link", "seal"]


class Head(NamedTuple):
    """Where a ledger's record ends: its last release, and the hash of that one and of all before it."""

    release: int
    chain: str


EMPTY = Head(0, "0" * 64)


class Link:
    """One release on its way into the chain.

    Parameters
    ----------
    previous : str
        The hash of all releases before.
    entry : sequence of int and str
        The release itself: numbers, counts, time and the key of its query.
    identities : sequence of int or str
        The people who are new with it.

    Examples
    --------
    >>> from skldp.accounting.ledger.chain import EMPTY, Link
    >>> one, two = (Link(EMPTY.chain, [1, "key"], ["ann"]) for _ in range(2))
    >>> one.add([0], [1])
    >>> two.add([0], [0])
    >>> one.chain == two.chain
    False
    """

    def __init__(self, previous: str, entry: Sequence[int | str], identities: Sequence[Identity]) -> None:
        # JSON in ASCII is the same on every version of Python.
        head = json.dumps([previous, list(entry), list(identities)])
        self._hash = hashlib.sha256(head.encode("ascii"))

    def add(self, numbers: npt.ArrayLike, outputs: npt.ArrayLike) -> None:
        """Count in the next answers, in the order of the people's numbers."""
        self._hash.update(np.column_stack([numbers, outputs]).astype("<i8").tobytes())

    @property
    def chain(self) -> str:
        """The hash of what was counted in, and of all releases before."""
        return self._hash.hexdigest()


def seal(token: Any, name: Any, value: Any) -> str:
    """Tell whether a setting is the one that was written into this very ledger."""
    return hashlib.sha256(json.dumps([token, name, value]).encode("ascii")).hexdigest()
