"""What one call of a ledger decides by, lets draw, and hands out."""

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp.accounting._decide import Rule, surely_admits
from skldp.accounting._extrema.linear_cohort import MARGIN
from skldp.accounting._ledger.book import Fingerprint, LedgerBook, group_rows
from skldp.accounting._ledger.identity import Identity
from skldp.accounting._ledger.kept_rows import KeptRows
from skldp.accounting._ledger.records import Release
from skldp.accounting._query import Query, RegressionQuery

__all__ = ["Call", "Draw", "LedgerAnswers", "Plan", "check_key"]

Draw = Callable[[npt.NDArray[np.intp]], npt.ArrayLike]
_SHORTEST_KEY = 16


def check_key(key: Any) -> None:
    """Refuse an idempotency key that could be guessed.

    Raises
    ------
    ValueError
    """
    if key is None:
        return
    # Lone halves of surrogates are no characters and have no bytes: an error that said so would carry the key.
    if not isinstance(key, str) or len(key) < _SHORTEST_KEY or key.encode(errors="replace").decode() != key:
        raise ValueError(
            f"idempotency_key must be a string of at least {_SHORTEST_KEY} characters that nobody can guess, such as "
            "uuid.uuid4().hex. Got another one."
        )


@dataclass(frozen=True)
class Call:
    """One call of a ledger: whom it asks what, and the mark by which it is known if it is made again.

    Attributes
    ----------
    query : RegressionQuery, FiniteQuery or ReleaseQuery
    people : list
        Identities, nobody twice.
    repeat, all_or_none : bool
        As in :meth:`PrivacyLedger.answer`.
    mark : str
        The hash of its idempotency key.
    request : str
        What it asks, under a hash that nobody can try guesses with who has not the key.
    is_named : bool, default=False
        Whether the caller gave the key.
    kept : KeptRows, default=None
        What the call releases, where the ledger is to keep it.
    """

    query: Query
    people: list[Identity]
    repeat: bool
    all_or_none: bool
    mark: str
    request: str
    is_named: bool = False
    kept: KeptRows | None = None

    @classmethod
    def make(
        cls,
        query: Query,
        people: list[Identity],
        *,
        repeat: bool,
        all_or_none: bool,
        key: str | None = None,
        kept: KeptRows | None = None,
        contents: Any = None,
    ) -> "Call":
        """Mark a call by its idempotency key, or by a new one; `contents` is what else it asks, as plain data."""
        own = (secrets.token_hex(16) if key is None else key).encode()
        request = [query.key, repeat, all_or_none, people, *([] if contents is None else [contents])]
        asked = json.dumps(request).encode("ascii")
        mark, digest = hashlib.sha256(own).hexdigest(), hmac.digest(own, asked, "sha256").hex()
        return cls(query, people, repeat, all_or_none, mark, digest, key is not None, kept)


_NO_OUTPUTS = np.zeros(0, dtype=np.int64)


def _checked_outputs(outputs: npt.ArrayLike, n: int, query: Query) -> npt.NDArray[np.int64]:
    drawn = np.asarray(outputs)
    if drawn.shape != (n,) or drawn.dtype.kind not in "iu" or ((drawn < 0) | (drawn >= query.n_outputs)).any():
        raise ValueError(
            f"draw must return {n} outputs from 0 to {query.n_outputs - 1}. Got {drawn.dtype} of shape {drawn.shape}."
        )
    return drawn.astype(np.int64)


@dataclass(frozen=True)
class LedgerAnswers:
    """What a ledger hands out, in the order of the ids.

    Attributes
    ----------
    outputs : ndarray of int
        The recorded output; -1 where the person was refused.
    fresh : ndarray of bool
        Where the output was drawn now, not handed out again.
    """

    outputs: npt.NDArray[np.int64]
    fresh: npt.NDArray[np.bool_]

    @property
    def accepted(self) -> npt.NDArray[np.bool_]:
        """Where there is an output."""
        return self.outputs >= 0


@dataclass(frozen=True)
class Plan:
    """Everything that the decisions of one call may depend on, and nothing else: no value of anybody is in here.

    Attributes
    ----------
    book : LedgerBook
    call : Call
    numbers, recorded : ndarray of int, shape (n_people,)
        Their numbers (-1 where nothing is recorded of them), and the outputs that are handed out again (-1 for none).
    asked : ndarray of int
        The positions of the others, who are asked now.
    group : ndarray of int
        For each of those asked, the position of their history in `histories`.
    members : ndarray of int
        The number of one of those asked for each history.
    histories : list of Fingerprint
    """

    book: LedgerBook
    call: Call
    numbers: npt.NDArray[np.int64]
    recorded: npt.NDArray[np.int64]
    asked: npt.NDArray[np.intp]
    group: npt.NDArray[np.intp]
    members: npt.NDArray[np.int64]
    histories: list[Fingerprint]

    @classmethod
    def make(
        cls,
        book: LedgerBook,
        call: Call,
        numbers: npt.NDArray[np.int64],
        recorded: npt.NDArray[np.int64],
    ) -> "Plan":
        """Group those who are asked now by their history."""
        asked = np.flatnonzero(recorded < 0)
        fingerprints = book.fingerprints_of(numbers[asked])
        first, group = group_rows(fingerprints)
        histories = [(int(a), int(b)) for a, b in fingerprints[first]]
        return cls(book, call, numbers, recorded, asked, group, numbers[asked[first]], histories)

    def by_sums(self, rule: Rule) -> dict[Fingerprint, bool]:
        """The histories that running sums, of charges or since the last certified loss, are enough to admit."""
        query = self.call.query
        easy = surely_admits(rule, self.book.spent_by(self.members), query)
        if isinstance(query, RegressionQuery):
            # The table would admit these as well, with all answers together: it solves them to far less than that.
            easy |= self.book.losses_of(self.members) + query.epsilon + 3 * MARGIN <= rule.epsilon
        return {history: True for history, admitted in zip(self.histories, easy, strict=True) if admitted}

    def admitted(self, decisions: dict[Fingerprint, bool]) -> npt.NDArray[np.bool_]:
        """Who of those asked may answer; nobody whose history is undecided."""
        return np.array([decisions.get(history, False) for history in self.histories], dtype=bool)[self.group]

    def release(self, admitted: npt.NDArray[np.bool_], draw: Draw) -> Release:
        """Let those who may answer draw their outputs."""
        positions = self.asked[admitted]
        outputs = _checked_outputs(draw(positions), len(positions), self.call.query) if len(positions) else _NO_OUTPUTS
        kept = self.call.kept
        numbers = self.numbers[positions]
        new = np.flatnonzero(numbers < 0)
        n_known = len(self.book.number_of)
        numbers[new] = np.arange(n_known, n_known + len(new))
        return Release(
            number=self.book.release + 1,
            query_number=self.book.query_number.get(self.call.query.key, len(self.book.queries)),
            asked=len(self.call.people),
            served=len(self.call.people) - len(self.asked),
            refused=len(self.asked) - len(positions),
            new_people=[self.call.people[position] for position in positions[new]],
            numbers=numbers,
            outputs=outputs,
            mark=self.call.mark,
            request=self.call.request,
            sealed=() if kept is None else kept.seal(positions),
        )

    def answers(self, admitted: npt.NDArray[np.bool_], release: Release | None) -> LedgerAnswers:
        """What is handed out, after the release was committed."""
        outputs, fresh = self.recorded.copy(), np.zeros(len(self.call.people), dtype=bool)
        if release is not None:
            outputs[self.asked[admitted]], fresh[self.asked[admitted]] = release.outputs, True
        return LedgerAnswers(outputs, fresh)
