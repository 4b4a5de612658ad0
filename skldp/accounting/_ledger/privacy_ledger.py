"""The durable record of what every person has answered, and the decision whether they may be asked again."""

import os
import threading
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp.accounting._decide import Workers, decide, n_bounds
from skldp.accounting._extrema.sampled_law import Bounds
from skldp.accounting._ledger.book import Fingerprint
from skldp.accounting._ledger.dry_run import DryRun
from skldp.accounting._ledger.eraser import LedgerEraser
from skldp.accounting._ledger.identity import distinct_ids
from skldp.accounting._ledger.kept_rows import KeptRows
from skldp.accounting._ledger.plan import Call, Draw, LedgerAnswers, Plan, check_key
from skldp.accounting._ledger.records import (
    History,
    damage,
    recorded_call,
    recorded_outputs,
    recorded_rows,
    who_answered,
    write_release,
)
from skldp.accounting._ledger.releasing import ReleasesRecords
from skldp.accounting._ledger.schema import Connection
from skldp.accounting._ledger.settings import checked_bounds, checked_settings, declared_bounds
from skldp.accounting._ledger.store import MEMORY, LedgerStore, open_store
from skldp.accounting._limits import finite_number
from skldp.accounting._query import (
    ClassQuery,
    FiniteQuery,
    Query,
    RegressionQuery,
    ReleaseQuery,
    SoftmaxQuery,
    checked_query,
)
from skldp.exceptions import BudgetExhaustedError, LedgerError
from skldp.mechanisms._domain import Domain

__all__ = ["LedgerAnswers", "PrivacyLedger"]

# After so many decisions that other processes made obsolete, decide while they wait.
_ATTEMPTS = 4
_BY_TOKEN: "weakref.WeakValueDictionary[str, PrivacyLedger]" = weakref.WeakValueDictionary()
_ALL: "weakref.WeakSet[PrivacyLedger]" = weakref.WeakSet()
_OPENING = threading.RLock()


def _reopened(token: str, path: str, read_only: bool) -> "PrivacyLedger":
    """What a pickled ledger becomes."""
    with _OPENING:
        ledger = None if read_only else _BY_TOKEN.get(token)
        if ledger is not None and ledger._store.closed:
            ledger = None
        if ledger is None and path == MEMORY:
            raise LedgerError(
                "A ledger in memory cannot be pickled to another process, because each process would spend the same "
                "budgets again. Give it a file: PrivacyLedger(..., path='budgets.ledger')."
            )
        ledger = PrivacyLedger.open(path, read_only=read_only) if ledger is None else ledger
        if ledger._token != token:
            raise LedgerError(f"There is another ledger at {path!r} than the one that was pickled.")
        return ledger


def _begin_anew() -> None:
    """A thread that was at work when another one forked does not exist in the child, and leaves its work half done."""
    global _OPENING
    _OPENING = threading.RLock()
    for ledger in list(_ALL):
        ledger._lock = threading.RLock()
        ledger._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def _domain(query: RegressionQuery | ClassQuery | SoftmaxQuery | FiniteQuery) -> str:
    return f"{query.n_points} points" if isinstance(query, FiniteQuery) else f"{query.n_features} features"


class PrivacyLedger(ReleasesRecords, DryRun, LedgerEraser):
    """Every person's privacy budget, and what they have answered, on disk.

    An answer is committed before it is handed out: a crash may lose an answer, never its cost. Decisions depend on
    queries and recorded outputs alone, so that a refusal says nothing about a person's values.

    Parameters
    ----------
    epsilon : float
        Each person's total budget, natural log.
    bounds : tuple (low, high) or Domain, default=None
        The domain of a person's values: a number or one number per feature each, or a
        :class:`~skldp.mechanisms.Domain` as in :func:`realized_loss`. None takes those of an existing file; a new
        ledger is bound to those of the first :class:`~skldp.BayesianFilter` that asks with it.
    path : str or path-like, default=":memory:"
        The file, or the URL of a PostgreSQL database, ``"postgresql://role@host/database"``, where many hosts ask at
        once. A ledger is made where there is none: in a database, in the first schema of the role's search path. A
        file is made with mode 0600 where it does not exist. Its place is fixed now, for copies and pickles
        as well; a program that is started from several folders needs an absolute path, or begins new budgets in each.
        A companion, ``<path>.lock``, is made beside it and belongs to it.
    rule : {"basic", "simplified", "bayesian", "approximate"}, default="bayesian"
        How a history is accounted for: ``"basic"`` adds up epsilons; ``"simplified"`` adds the next query's epsilon
        to the certified realized loss; ``"bayesian"`` certifies the realized loss after each output that the next
        query could have; ``"approximate"`` does so where the sum of zero-concentrated privacy has no more room in
        (epsilon, delta).
    tol : float, default=1e-3
        The certified gap that is aimed at, in units of epsilon. A wider one refuses earlier, never later.
    delta : float, default=None
        With ``rule="approximate"``, and only then: the probability with which epsilon may be passed, below 1/e.
    head : str, default=None
        The `head` that this ledger had at some time, and that was published where nobody who can restore a backup of
        it can change it.

    Attributes
    ----------
    epsilon, bounds, path, rule, tol, delta
        What the ledger was made with. A ledger's settings never change.

    Raises
    ------
    ValueError
        If a parameter is not as described.
    LedgerError
        If the file was made with other settings, is truncated, damaged, no ledger or a link, comes from another
        version, or has lost what was recorded in it.

    Notes
    -----
    `clone`, `copy.deepcopy` and `pickle` lead to the same ledger: a budget cannot be copied. In another process a
    pickled ledger is opened anew from its file; one in memory refuses that, and refuses to work after a fork.

    The realized loss is about one record: with the rules ``"simplified"`` and ``"bayesian"``, whoever is asked again
    must answer from the same values, of the same features in the same order. Only ``"basic"`` composition holds for
    values that change from query to query.

    Values are never stored. Ids are stored as given, all integers or all strings: ``7`` and ``"7"`` would be two
    people, with two budgets. Of refusals, only the number per call is stored.

    Every call locks the companion, proves that the file is the very ledger that was opened, with every release that
    this process or the companion remembers, and closes it again. A file that was replaced, laid over or rolled back,
    a hard link and a symbolic link are refused; folders may be links. Whoever moves a ledger moves both files. Whoever
    copies both files copies the budgets, which nothing can notice: there must be one. A copy of the one file can
    be read, not asked.

    A ledger is closed with `close`, or at the end of a ``with`` block. Between two calls nothing is open, so that a
    ledger that is forgotten costs nothing; one in memory ends with its last reference.

    Examples
    --------
    >>> from skldp.accounting import PrivacyLedger, RegressionQuery
    >>> ledger = PrivacyLedger(1.0, bounds=(0, 1), rule="basic")
    >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(0, 1), epsilon=0.75)
    >>> answers = ledger.answer(query, ids=["ann", "bob"], draw=lambda people: [1, 0])
    >>> answers.outputs.tolist(), ledger.remaining(["ann", "eve"]).round(6).tolist()
    ([1, 0], [0.25, 1.0])
    """

    def __init__(
        self,
        epsilon: float,
        *,
        bounds: Bounds | None = None,
        path: str | os.PathLike[str] = MEMORY,
        rule: str = "bayesian",
        tol: float = 1e-3,
        delta: float | None = None,
        head: str | None = None,
    ) -> None:
        wanted = checked_settings(epsilon, bounds, rule, tol, delta)
        self._set_up(open_store(path, wanted), wanted, head)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, read_only: bool = False, head: str | None = None) -> "PrivacyLedger":
        """Open an existing file with the settings that it was made with.

        Parameters
        ----------
        path : str or path-like
        read_only : bool, default=False
            For reports: nothing can be asked.
        head : str, default=None
            As in the constructor.

        Raises
        ------
        ValueError
            If it is no head.
        LedgerError
            If there is no usable ledger, or it has lost what was there when its head was published.
        """
        ledger = cls.__new__(cls)
        ledger._set_up(open_store(path, read_only=read_only), {}, head)
        return ledger

    def __copy__(self) -> "PrivacyLedger":
        return self

    def __deepcopy__(self, memo: Any) -> "PrivacyLedger":
        return self

    def __reduce__(self) -> Any:
        return _reopened, (self._token, self.path, self._store.read_only)

    def declare(
        self,
        *,
        bounds: Bounds | None = None,
        features: Sequence[str] | None = None,
        missing: Sequence[float] | None = None,
    ) -> None:
        """Bind the ledger to a domain, and to the features that every query is about, for good.

        Parameters
        ----------
        bounds : tuple (low, high) or Domain, default=None
            The domain of a person's values. None declares none.
        features : sequence of str, default=None
            Their names, in the order of the coefficients. None declares none.
        missing : sequence of float, default=None
            What a record has in place of each feature that is missing. None declares nothing.

        Raises
        ------
        ValueError
            If they are no bounds, or no finite numbers.
        LedgerError
            If others are declared: the same coefficients about other features would be another question, and somebody
            whose missing values are taken for others is another record. A loss that takes both for one would be too
            small.
        """
        wanted = {
            "bounds": None if bounds is None else checked_bounds(bounds),
            "features": None if features is None else [str(name) for name in features],
            "missing": None if missing is None else [finite_number(value, "missing") for value in missing],
        }
        self._store.check_open()
        for name, declared in wanted.items():
            if declared is None:
                continue
            with self._lock:
                if self._declared[name] is None:
                    self._declared[name] = self._store.add_setting(name, declared)
                    self._rule = replace(self._rule, bounds=self.bounds)
            if self._declared[name] != declared:
                raise LedgerError(
                    f"A ledger's {name} never change: {self._store.name!r} has {name}={getattr(self, name)!r}. "
                    f"Got {bounds if name == 'bounds' else declared!r} instead."
                )

    def answer(
        self,
        query: Query,
        ids: Iterable[Any],
        draw: Draw,
        *,
        repeat: bool = False,
        all_or_none: bool = False,
        workers: Workers = map,
        idempotency_key: str | None = None,
    ) -> LedgerAnswers:
        """Decide, draw, commit, and only then hand out.

        Whoever has answered this very query before is handed their recorded answer again, at no cost.

        Parameters
        ----------
        query : RegressionQuery or FiniteQuery
        ids : iterable of int or str
            The people, nobody twice; all by integers or all by strings.
        draw : callable
            Takes the positions (in `ids`) of those who answer now, and returns their outputs. It must not fail because
            of anybody's values, since that would be an answer that nobody pays for; ``query.sample`` never does.
        repeat : bool, default=False
            Ask for a fresh answer, at its full cost, also where there is a recorded one.
        all_or_none : bool, default=False
            Ask nobody if anybody must be refused.
        workers : map-like callable, default=map
            Applies a function to the histories that need a search, in order: that of a
            :class:`~concurrent.futures.ProcessPoolExecutor`, for one.
        idempotency_key : str, default=None
            A name for this call that nobody can guess, such as ``uuid.uuid4().hex``. A client that lost its connection,
            or its life, asks again with it: if the call was committed, its very answers are handed out, at no second
            cost and without a draw. It is stored as a hash.

        Returns
        -------
        LedgerAnswers

        Raises
        ------
        ValueError
            If it is no query, a person is asked twice in one call, or the key is too short to be no guess.
        BudgetExhaustedError
            With `all_or_none`, if anybody must be refused.
        LedgerError
            If the answers could not be committed, the ids are of another kind than those in the ledger, or the key was
            that of another call. Nothing is handed out then.
        """
        check_key(idempotency_key)
        if isinstance(checked_query(query), ReleaseQuery):
            raise ValueError(
                "What is charged for a release is read off its mechanism: ask with release. Got an answer."
            )
        return self._answer(
            query,
            ids,
            draw,
            repeat=repeat,
            all_or_none=all_or_none,
            workers=workers,
            idempotency_key=idempotency_key,
        )

    def _answer(
        self,
        query: Query,
        ids: Iterable[Any],
        draw: Draw,
        *,
        repeat: bool,
        all_or_none: bool,
        workers: Workers,
        idempotency_key: str | None = None,
        kept: KeptRows | None = None,
        contents: Any = None,
    ) -> LedgerAnswers:
        call = Call.make(
            query,
            distinct_ids(ids),
            repeat=repeat,
            all_or_none=all_or_none,
            key=idempotency_key,
            kept=kept,
            contents=contents,
        )
        decisions: dict[Fingerprint, bool] = {}
        with self._store.asking(call.people):
            for attempt in range(_ATTEMPTS + 1):
                last = workers if attempt == _ATTEMPTS else None
                found = self._store.repeated(partial(self._attempt, call, draw, decisions, last))
                if isinstance(found, LedgerAnswers):
                    return found
                # Nobody waits while the losses are certified. If other answers come in meanwhile, the next attempt
                # sees it.
                undecided, plan = found
                decisions |= self._decided(undecided, plan, workers)
        raise AssertionError("the last attempt decides within its transaction")

    def _attempt(
        self, call: Call, draw: Draw, decisions: dict[Fingerprint, bool], last: Workers | None
    ) -> "LedgerAnswers | tuple[dict[Fingerprint, History], Plan]":
        """Answer the call in one transaction, or give what must be decided first; the last attempt decides here."""
        with self._lock, self._forgetting_after_errors():
            # A draw that is refused when it asks about this ledger makes it forget its book.
            book, release = self._book, None
            with self._store.transaction(write=True) as connection:
                book.catch_up(connection)
                self._check_query(call.query)
                numbers = book.numbers(call.people)
                before = recorded_call(connection, self._store.tenant, call.mark)
                if before is not None:
                    return self._replayed(connection, call, numbers, *before)
                plan = Plan.make(book, call, numbers, self._served(connection, call, numbers, book.release))
                decided = decisions | plan.by_sums(self._rule)
                members = dict(zip(plan.histories, plan.members.tolist(), strict=True))
                for history in decided.keys() & members.keys():
                    del members[history]
                undecided = book.histories_of(connection, members)
                # To add up epsilons takes no time: nobody waits for it.
                if undecided and last is None and self.rule != "basic":
                    return undecided, plan
                decided |= self._decided(undecided, plan, last or map)
                admitted = plan.admitted(decided)
                refused = np.count_nonzero(~admitted)
                # What a named call hands out is the same when it is made again, also if nobody was asked anew.
                if len(plan.asked if not call.is_named else call.people) and not (call.all_or_none and refused):
                    release = plan.release(admitted, draw)
                    n_people, tenant = len(book.number_of), self._store.tenant
                    chain = write_release(
                        connection, release, call.query, n_people=n_people, chain=book.chain, tenant=tenant
                    )
            if release is not None:
                book.enter(release, call.query, chain)
        if call.all_or_none and refused:
            raise BudgetExhaustedError(
                f"{refused:,} of {len(call.people):,} people have not enough budget left for this query: nobody was "
                "asked."
            )
        return plan.answers(admitted, release)

    def _served(
        self, connection: Connection, call: Call, numbers: npt.NDArray[np.int64], until: int
    ) -> npt.NDArray[np.int64]:
        """What is handed out again."""
        query = None if call.repeat else self._book.query_number.get(call.query.key)
        return recorded_outputs(connection, query, numbers, tenant=self._store.tenant, until=until)

    def _replayed(
        self, connection: Connection, call: Call, numbers: npt.NDArray[np.int64], release: int, request: str
    ) -> LedgerAnswers:
        """What the same call was handed before, or would have been, had its connection not been lost."""
        if request != call.request:
            raise LedgerError(
                "An idempotency key is that of one call: this one was used for another query, other people or other "
                "options."
            )
        fresh = np.isin(numbers, who_answered(connection, release))
        query = self._book.query_number[call.query.key]
        last = recorded_outputs(connection, query, numbers, tenant=self._store.tenant, until=release)
        earlier = self._served(connection, call, numbers, release - 1)
        if call.kept is not None:
            rows, positions = recorded_rows(connection, release), np.flatnonzero(fresh)
            with damage():
                call.kept.restore(positions, [rows[number] for number in numbers[positions].tolist()])
        return LedgerAnswers(np.where(fresh, last, earlier), fresh)

    def _set_up(self, store: LedgerStore, wanted: dict[str, Any], head: str | None) -> None:
        super().__init__(store)
        if head is not None:
            store.check_head(head)
        for name in ("epsilon", "rule", "tol", "delta"):
            if name in wanted and wanted[name] != getattr(self, name):
                raise LedgerError(
                    f"A ledger's {name} never changes: {self._store.name!r} was made with "
                    f"{name}={getattr(self, name)!r}. Got {wanted[name]!r} instead."
                )
        if wanted.get("bounds") is not None:
            self.declare(bounds=declared_bounds(wanted["bounds"]))
        _ALL.add(self)
        if not store.read_only:
            with _OPENING:
                before = _BY_TOKEN.setdefault(self._token, self)
                if before._store.closed:
                    _BY_TOKEN[self._token] = self

    def _check_query(self, query: Query) -> None:
        if isinstance(query, ReleaseQuery):
            self._check_part(query)
            return
        before = next((one for one in self._book.queries if not isinstance(one, ReleaseQuery)), query)
        if _domain(before) != _domain(query):
            raise LedgerError(
                f"A ledger is about one domain: {self._store.name!r} has queries over "
                f"{_domain(before)}. Got a query over {_domain(query)} instead."
            )
        if isinstance(query, RegressionQuery | ClassQuery | SoftmaxQuery) and self.rule != "basic":
            bounds = self._rule.bounds
            if bounds is None:
                raise LedgerError(f"A ledger needs bounds before it is asked with rule={self.rule!r}: declare them.")
            n_features = bounds.n_features if isinstance(bounds, Domain) else np.size(bounds[0])
            # One interval may be that of any number of features.
            if n_features != query.n_features and (isinstance(bounds, Domain) or isinstance(bounds[0], list)):
                raise LedgerError(
                    f"The ledger {self._store.name!r} has bounds for {n_features} features. "
                    f"Got a query with {query.n_features} instead."
                )

    def _decided(self, undecided: dict[Fingerprint, History], plan: Plan, workers: Workers) -> dict[Fingerprint, bool]:
        book, histories, query = plan.book, list(undecided.values()), plan.call.query
        if book.table is None:
            book.table = self._rule.table_for(query)
        queries, counted = book.counted(histories)
        after = np.full((len(histories), n_bounds(query)), np.inf)
        found = decide(self._rule, queries, counted, query, table=book.table, workers=workers, after=after)
        book.foresee(query, list(undecided), after)
        return dict(zip(undecided, found, strict=True))
