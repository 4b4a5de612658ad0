"""The durable record of what every person has answered, and the decision whether they may be asked again."""

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from skldp.accounting._decide import Rule, RuleName, Workers, decide, surely_admits
from skldp.accounting._extrema.region import region_of
from skldp.accounting._extrema.sampled_law import Bounds
from skldp.accounting._ledger.book import (
    Fingerprint,
    History,
    LedgerBook,
    Release,
    group_rows,
    recorded_history,
    recorded_outputs,
    write_release,
)
from skldp.accounting._ledger.dry_run import DryRun
from skldp.accounting._ledger.identity import Identity, distinct_ids
from skldp.accounting._ledger.reader import RULES, declared_bounds
from skldp.accounting._ledger.store import MEMORY, LedgerStore
from skldp.accounting._query import ClassQuery, FiniteQuery, Query, RegressionQuery, checked_query
from skldp.exceptions import BudgetExhaustedError, LedgerError
from skldp.mechanisms._domain import Domain

__all__ = ["LedgerAnswers", "PrivacyLedger"]

Draw = Callable[[npt.NDArray[np.intp]], npt.ArrayLike]
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


def _domain(query: Query) -> str:
    return f"{query.n_points} points" if isinstance(query, FiniteQuery) else f"{query.n_features} features"


def checked_settings(epsilon: Any, bounds: Any, rule: Any, tol: Any) -> dict[str, Any]:
    """Check the parameters of a ledger.

    Raises
    ------
    ValueError
        If one breaks its rule.
    """
    if not isinstance(rule, str) or rule not in RULES:
        raise ValueError(f"rule must be one of {RULES}. Got {rule!r} instead.")
    Rule(cast("RuleName", rule), epsilon, tol=tol)
    stored = None if bounds is None else checked_bounds(bounds)
    return {"epsilon": float(epsilon), "bounds": stored, "rule": str(rule), "tol": float(tol)}


def checked_bounds(bounds: Any) -> list[Any] | dict[str, Any]:
    """Two numbers, or two lists with one number per feature, or a domain by its fields: what JSON keeps exactly.

    Raises
    ------
    ValueError
        If they are no finite numbers with low <= high, are beyond 1e100, or no domain of answers.
    """
    region = region_of(bounds)
    if region.domain is not None and not region.is_box:
        return region.domain.to_dict()
    # Adding 0.0 turns -0.0 into 0.0. One and the same interval for all features is written once.
    box = region.box + 0.0
    same = bool((box == box[:, :1]).all())
    return cast("list[Any]", (box[:, 0] if same else box).tolist())


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
    query : RegressionQuery or FiniteQuery
    people : list
        Identities, nobody twice.
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
    query: Query
    people: list[Identity]
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
        query: Query,
        people: list[Identity],
        numbers: npt.NDArray[np.int64],
        recorded: npt.NDArray[np.int64],
    ) -> "Plan":
        """Group those who are asked now by their history."""
        asked = np.flatnonzero(recorded < 0)
        fingerprints = book.fingerprints_of(numbers[asked])
        first, group = group_rows(fingerprints)
        histories = [(int(a), int(b)) for a, b in fingerprints[first]]
        return cls(book, query, people, numbers, recorded, asked, group, numbers[asked[first]], histories)

    def by_sums(self, rule: Rule) -> dict[Fingerprint, bool]:
        """The histories that running sums of epsilons are enough to admit."""
        easy = surely_admits(rule, self.book.spent_by(self.members), self.query)
        return {history: True for history, admitted in zip(self.histories, easy, strict=True) if admitted}

    def admitted(self, decisions: dict[Fingerprint, bool]) -> npt.NDArray[np.bool_]:
        """Who of those asked may answer; nobody whose history is undecided."""
        return np.array([decisions.get(history, False) for history in self.histories], dtype=bool)[self.group]

    def release(self, admitted: npt.NDArray[np.bool_], draw: Draw) -> Release:
        """Let those who may answer draw their outputs."""
        positions = self.asked[admitted]
        outputs = _checked_outputs(draw(positions), len(positions), self.query) if len(positions) else _NO_OUTPUTS
        numbers = self.numbers[positions]
        new = np.flatnonzero(numbers < 0)
        n_known = len(self.book.number_of)
        numbers[new] = np.arange(n_known, n_known + len(new))
        return Release(
            number=self.book.release + 1,
            query_number=self.book.query_number.get(self.query.key, len(self.book.queries)),
            asked=len(self.people),
            served=len(self.people) - len(self.asked),
            refused=len(self.asked) - len(positions),
            new_people=[self.people[position] for position in positions[new]],
            numbers=numbers,
            outputs=outputs,
        )

    def answers(self, admitted: npt.NDArray[np.bool_], release: Release | None) -> LedgerAnswers:
        """What is handed out, after the release was committed."""
        outputs, fresh = self.recorded.copy(), np.zeros(len(self.people), dtype=bool)
        if release is not None:
            outputs[self.asked[admitted]], fresh[self.asked[admitted]] = release.outputs, True
        return LedgerAnswers(outputs, fresh)


class PrivacyLedger(DryRun):
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
        The file, which is made with mode 0600 where it does not exist. Its place is fixed now, for copies and pickles
        as well; a program that is started from several folders needs an absolute path, or begins new budgets in each.
        A companion, ``<path>.lock``, is made beside it and belongs to it.
    rule : {"basic", "simplified", "bayesian"}, default="bayesian"
        How a history is accounted for: ``"basic"`` adds up epsilons; ``"simplified"`` adds the next query's epsilon
        to the certified realized loss; ``"bayesian"`` certifies the realized loss after each output that the next
        query could have.
    tol : float, default=1e-3
        The certified gap that is aimed at, in units of epsilon. A wider one refuses earlier, never later.

    Attributes
    ----------
    epsilon, bounds, path, rule, tol
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
    ) -> None:
        wanted = checked_settings(epsilon, bounds, rule, tol)
        self._set_up(LedgerStore(path, wanted), wanted)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, read_only: bool = False) -> "PrivacyLedger":
        """Open an existing file with the settings that it was made with.

        Parameters
        ----------
        path : str or path-like
        read_only : bool, default=False
            For reports: nothing can be asked.

        Raises
        ------
        LedgerError
            If there is no usable ledger.
        """
        ledger = cls.__new__(cls)
        ledger._set_up(LedgerStore(path, read_only=read_only), {})
        return ledger

    def __copy__(self) -> "PrivacyLedger":
        return self

    def __deepcopy__(self, memo: Any) -> "PrivacyLedger":
        return self

    def __reduce__(self) -> Any:
        return _reopened, (self._token, self.path, self._store.read_only)

    def declare(self, *, bounds: Bounds | None = None, features: Sequence[str] | None = None) -> None:
        """Bind the ledger to a domain, and to the features that every query is about, for good.

        Parameters
        ----------
        bounds : tuple (low, high) or Domain, default=None
            The domain of a person's values. None declares none.
        features : sequence of str, default=None
            Their names, in the order of the coefficients. None declares none.

        Raises
        ------
        ValueError
            If they are no bounds.
        LedgerError
            If others are declared: the same coefficients about other features would be another question, and a loss
            that takes both for one would be too small.
        """
        wanted = {
            "bounds": None if bounds is None else checked_bounds(bounds),
            "features": None if features is None else [str(name) for name in features],
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

        Returns
        -------
        LedgerAnswers

        Raises
        ------
        ValueError
            If it is no query, or a person is asked twice in one call.
        BudgetExhaustedError
            With `all_or_none`, if anybody must be refused.
        LedgerError
            If the answers could not be committed, or the ids are of another kind than those in the ledger. Nothing is
            handed out then.
        """
        checked_query(query)
        people = distinct_ids(ids)
        decisions: dict[Fingerprint, bool] = {}
        for attempt in range(_ATTEMPTS + 1):
            with self._lock, self._forgetting_after_errors():
                # A draw that is refused when it asks about this ledger makes it forget its book.
                book, release = self._book, None
                with self._store.transaction(write=True) as connection:
                    book.catch_up(connection)
                    self._check_query(query)
                    numbers = book.numbers(people)
                    before = None if repeat else book.query_number.get(query.key)
                    plan = Plan.make(book, query, people, numbers, recorded_outputs(connection, before, numbers))
                    decisions |= plan.by_sums(self._rule)
                    undecided = {
                        history: recorded_history(connection, int(member), book.release)
                        for history, member in zip(plan.histories, plan.members, strict=True)
                        if history not in decisions
                    }
                    if attempt == _ATTEMPTS:
                        decisions |= self._decided(undecided, plan, workers)
                        undecided = {}
                    admitted = plan.admitted(decisions)
                    refused = 0 if undecided else np.count_nonzero(~admitted)
                    if len(plan.asked) and not undecided and not (all_or_none and refused):
                        release = plan.release(admitted, draw)
                        n_people = len(book.number_of)
                        chain = write_release(connection, release, query, n_people=n_people, chain=book.chain)
                if release is not None:
                    book.enter(release, query, chain)
            if all_or_none and refused:
                raise BudgetExhaustedError(
                    f"{refused:,} of {len(people):,} people have not enough budget left for this query: nobody was "
                    "asked."
                )
            if not undecided:
                return plan.answers(admitted, release)
            # Nobody waits while the losses are certified. If other answers come in meanwhile, the next attempt sees it.
            decisions |= self._decided(undecided, plan, workers)
        raise AssertionError("the last attempt decides within its transaction")

    def _set_up(self, store: LedgerStore, wanted: dict[str, Any]) -> None:
        super().__init__(store)
        for name in ("epsilon", "rule", "tol"):
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
        if self._book.queries and _domain(self._book.queries[0]) != _domain(query):
            raise LedgerError(
                f"A ledger is about one domain: {self._store.name!r} has queries over "
                f"{_domain(self._book.queries[0])}. Got a query over {_domain(query)} instead."
            )
        if isinstance(query, RegressionQuery | ClassQuery) and self.rule != "basic":
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
        book, histories = plan.book, list(undecided.values())
        if book.table is None:
            book.table = self._rule.table_for(plan.query)
        found = decide(self._rule, book.queries, histories, plan.query, table=book.table, workers=workers)
        return dict(zip(undecided, found, strict=True))
