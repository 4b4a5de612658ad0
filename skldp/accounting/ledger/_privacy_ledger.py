"""Ledger of privacy budgets: recorded answers, and decisions on new queries."""

import os
import threading
import weakref
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy.typing as npt

from skldp.accounting._decide import Workers
from skldp.accounting._query import Query, ReleaseQuery, checked_query
from skldp.accounting.ledger._ledger_answers import Call, Draw, LedgerAnswers, answer
from skldp.accounting.ledger._ledger_releases import LedgerRelease, release
from skldp.accounting.ledger._preview import LedgerPreview, erase, preview
from skldp.accounting.ledger._reader import LedgerReader, checked_settings, declared_settings
from skldp.accounting.ledger._records import canonical_ids, check_key, distinct_ids
from skldp.accounting.ledger._store import MEMORY, LedgerStore, open_store
from skldp.accounting.losses._region import Bounds
from skldp.exceptions import LedgerError
from skldp.mechanisms._rows import RowMechanism

_BY_TOKEN: "weakref.WeakValueDictionary[str, PrivacyLedger]" = weakref.WeakValueDictionary()
_ALL: "weakref.WeakSet[PrivacyLedger]" = weakref.WeakSet()
_OPENING = threading.RLock()


def _reopened(token: str, path: str, read_only: bool) -> "PrivacyLedger":
    """Return the ledger that was pickled: the open one of this process, or the file opened again."""
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


def _reset_after_fork() -> None:
    """Reset locks and caches in a forked child, where the other threads do not exist."""
    global _OPENING
    _OPENING = threading.RLock()
    for ledger in list(_ALL):
        ledger._lock = threading.RLock()
        ledger._reset_cache()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


class PrivacyLedger(LedgerReader):
    """Privacy budgets and recorded answers of all people, on disk.

    An answer is committed before it is returned: a crash may lose an answer, never its cost. Decisions depend only on
    queries and recorded outputs, so a refusal reveals nothing about a person's values.

    Parameters
    ----------
    epsilon : float
        Each person's total budget, natural log.
    bounds : tuple (low, high) or Domain, default=None
        The domain of a person's values: a number or one number per feature each, or a
        ``Domain`` as in :func:`realized_loss`. None takes those of an existing file; a new
        ledger is bound to those of the first :class:`~skldp.BayesianFilter` that asks with it.
    path : str or path-like, default=":memory:"
        The file, or, for several hosts, the URL of a PostgreSQL database: ``"postgresql://role@host/database"``. A
        missing ledger is created: a file with mode 0600, or tables in the first schema of the role's search path. A
        relative path is resolved now, also for copies and pickles; use an absolute path if a program is started from
        several folders. The lock file ``<path>.lock`` belongs to the ledger.
    rule : {"basic", "simplified", "bayesian", "approximate"}, default="bayesian"
        Accounting of a history: ``"basic"`` adds up epsilons; ``"simplified"`` adds the next query's epsilon to the
        certified realized loss; ``"bayesian"`` certifies the realized loss after each possible output of the next
        query; ``"approximate"`` does so once the sum of rho (zCDP) exceeds the (epsilon, delta) budget.
    tol : float, default=1e-3
        Target gap of the certified bounds, in nats. A wider gap refuses earlier, never later.
    delta : float, default=None
        Probability with which epsilon may be exceeded, below 1/e; only with ``rule="approximate"``.
    head : str, default=None
        An earlier `head` of this ledger, published where the person who restores backups cannot change it.

    Attributes
    ----------
    epsilon, bounds, path, rule, tol, delta
        What the ledger was made with. A ledger's settings never change.

    Raises
    ------
    ValueError
        If a parameter is invalid.
    LedgerError
        If the file was made with other settings, is truncated, damaged, no ledger or a link, comes from another
        version, or has lost what was recorded in it.

    Notes
    -----
    `clone`, `copy.deepcopy` and `pickle` return the same ledger: a budget cannot be copied. In another process, a
    pickled ledger is opened from its file. One in memory cannot be pickled to another process or used after a fork.

    The realized loss is about one record: with the rules ``"simplified"`` and ``"bayesian"``, a person who is asked
    again must answer from the same values, of the same features in the same order. Only ``"basic"`` composition holds
    for values that change from query to query.

    Values are never stored. Ids are stored as given, all integers or all strings: ``7`` and ``"7"`` would be two
    people, with two budgets. Of refusals, only the number per call is stored.

    Every call takes the lock and checks that the file is the ledger that was opened, with every release known to this
    process or to the lock file. A file that was replaced or rolled back, a hard link and a symbolic link are refused;
    folders may be links. Move both files together. A copy of both files duplicates the budgets, which cannot be
    detected. A copy without the lock file can be read, not asked.

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
            If others are declared. The same coefficients about other features are another query, and other values for
            missing ones make another record: a loss that mixes them would be too small.
        """
        self._declare(declared_settings(bounds=bounds, features=features, missing=missing))

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
        declare: dict[str, Any] | None = None,
    ) -> LedgerAnswers:
        """Decide, draw and commit, then return the answers.

        A person who answered this query before gets their recorded answer again, at no cost.

        Parameters
        ----------
        query : RegressionQuery or FiniteQuery
        ids : iterable of int or str
            The people, each once; all integers or all strings.
        draw : callable
            Takes the positions (in `ids`) of those who answer now, and returns their outputs. It must not fail because
            of a person's values: the error would be an uncharged answer. ``query.sample`` never fails.
        repeat : bool, default=False
            Ask for a fresh answer, at its full cost, even if one is recorded.
        all_or_none : bool, default=False
            Ask no one if any person must be refused.
        workers : map-like callable, default=map
            Applies a function to the histories that need a search, in order: that of a
            :class:`~concurrent.futures.ProcessPoolExecutor`, for one.
        idempotency_key : str, default=None
            Secret name of this call, such as ``uuid.uuid4().hex``. A client that lost its connection, or crashed,
            retries the call with it: if the call was committed, its answers are returned without a draw or a second
            cost. The ledger stores a hash of it.
        declare : dict, default=None
            Keyword arguments of :meth:`declare`, whose settings are written in the transaction of the answers.

        Returns
        -------
        LedgerAnswers

        Raises
        ------
        ValueError
            If it is no query, a person is asked twice in one call, or the key is too short to be no guess.
        BudgetExhaustedError
            With `all_or_none`, if any person must be refused.
        LedgerError
            If the answers could not be committed, the ids are of another kind than those in the ledger, the key was
            that of another call, or other settings are declared. Nothing is returned then.
        """
        check_key(idempotency_key)
        if isinstance(checked_query(query), ReleaseQuery):
            raise ValueError(
                "What is charged for a release is read off its mechanism: ask with release. Got an answer."
            )
        settings = declared_settings(**declare or {})
        call = Call.make(
            query,
            distinct_ids(ids),
            repeat=repeat,
            all_or_none=all_or_none,
            key=idempotency_key,
            settings=self._new_settings(settings),
        )
        return answer(self, call, draw, workers)

    def release(
        self,
        mechanism: RowMechanism,
        rows: npt.ArrayLike,
        ids: Iterable[Any] | None = None,
        *,
        groups: Iterable[Any] | None = None,
        part: str | None = None,
        all_or_none: bool = False,
        workers: Workers = map,
        idempotency_key: str | None = None,
    ) -> LedgerRelease:
        r"""Release people's rows through a mechanism, at its full epsilon, or by what is released of a named part.

        The epsilon is that of ``guarantee`` of the mechanism, from the integers that it samples with, and the noise
        is the operating system's. Who is refused, and what it costs, depends on budgets and recorded outputs alone.

        Parameters
        ----------
        mechanism : RowMechanism
            Any of :mod:`skldp.mechanisms` whose guarantee is finite and pure. With ``rule="approximate"``, the Gaussian
            as well, by its zero-concentrated privacy.
        rows : array-like of shape (n_rows, n_features)
            The private rows. What lies outside the mechanism's domain is moved into it.
        ids : iterable of int or str, shape (n_rows,), default=None
            Person of each row, each once.
        groups : iterable of int or str, shape (n_rows,), default=None
            In place of `ids` where people have several rows: the id of each row's person, who is charged for each row,
            and is refused all of them or none.
        part : str, default=None
            With :class:`~skldp.mechanisms.RandomizedResponse`, or the ``mechanism_`` of a
            :class:`~skldp.CategoricalPrivatizer` of one column by ``"sue"`` or ``"oue"``: the name of the attribute,
            such as ``"employment"``. Releases of one part are then counted together by their outputs, so that opposed
            ones cost little. With :class:`~skldp.mechanisms.Duchi` for one number: the name of a
            feature that was declared; it is then asked as the question what that feature is, and counted together
            with all other answers about the record. A person's value of a part must stay the same, as their record
            must.
        all_or_none : bool, default=False
            Release nothing if any person must be refused. With `groups`, people must have as many rows as one another.
        workers : map-like callable, default=map
            Applies a function to the histories that need a search, in order.
        idempotency_key : str, default=None
            Secret name of this call, as in :meth:`PrivacyLedger.answer`. A retry with it returns the rows that were
            released, without a draw or a second cost, independent of the rows given. The ledger stores them encrypted
            under the key, and does not store the key.

        Returns
        -------
        LedgerRelease
            With the rows of those who were accepted, and which they are.

        Raises
        ------
        ValueError
            If the mechanism has no guarantee that the ledger's rule can count, the rows are not of its domain, there
            are not as many ids as rows, an id of `ids` occurs twice, or the key is too short to be no guess. Nothing is
            drawn or charged then.
        BudgetExhaustedError
            With `all_or_none`, if any person must be refused.
        LedgerError
            If the charges could not be committed, or the key was that of another call, of another mechanism or of
            other people: nothing is returned then.

        Notes
        -----
        Without a key, released rows are not kept in the ledger, only that they were released, and of a part its
        released code: a second call is a second release and is charged again. A crash may lose a release, never its
        cost; so may an error between the commits of people with different numbers of rows, who are charged in turn,
        the fewest first. A retry with the key returns what was lost and continues. Erased rows are not returned.

        The realized loss of a history with releases is that of its other answers plus the full charge of each release,
        and the realized loss of each part.

        Examples
        --------
        >>> from skldp import PrivacyLedger
        >>> from skldp.mechanisms import RandomizedResponse
        >>> ledger = PrivacyLedger(1.0)
        >>> mechanism = RandomizedResponse(0.75, n_classes=3)
        >>> ledger.release(mechanism, [[0], [2]], ids=["ann", "bob"]).accepted.tolist()
        [True, True]
        >>> ledger.release(mechanism, [[0], [1]], ids=["ann", "eve"]).accepted.tolist()
        [False, True]
        >>> ledger.remaining(["ann"]).round(6).tolist()
        [0.25]
        """
        return release(
            self,
            mechanism,
            rows,
            ids,
            groups,
            part=part,
            all_or_none=all_or_none,
            workers=workers,
            idempotency_key=idempotency_key,
        )

    def would_answer(
        self, query: Query, ids: Iterable[Any], *, repeat: bool = False, workers: Workers = map
    ) -> LedgerPreview:
        """Preview who would answer a query, and the loss it would add. Nothing is asked or recorded.

        Parameters
        ----------
        query : RegressionQuery or FiniteQuery
        ids : iterable of int or str
            People who have answered before, each once.
        repeat : bool, default=False
            As in :meth:`PrivacyLedger.answer`.
        workers : map-like callable, default=map
            Applies a function to the different histories, in order. Each is searched as often as the query has
            outputs, and once more.

        Returns
        -------
        LedgerPreview
            What :meth:`PrivacyLedger.answer` would decide if it were called now.

        Raises
        ------
        ValueError
            If it is no query, or a person is named twice.
        LedgerError
            If the query is about another domain, or a person has no answer known to the caller.

        Notes
        -----
        A preview of people without answers is refused: they would all answer if the query's epsilon is within the
        budget. The refusal reveals that such people are among the ids. **Anyone who can query a ledger can find out
        whose answers it contains**, also by `realized_loss` and `history`. A tenant of a PostgreSQL database is refused
        a preview of people asked only by others. Show a preview only to those who may know who has answered.

        Examples
        --------
        >>> from skldp.accounting import PrivacyLedger, RegressionQuery
        >>> ledger = PrivacyLedger(1.0, bounds=(0, 1))
        >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(0, 1), epsilon=0.75)
        >>> other = RegressionQuery("linear", coef=[-1.0], intercept=1.0, output_bounds=(0, 1), epsilon=0.5)
        >>> answers = ledger.answer(query, ids=["ann", "bob"], draw=lambda people: [1, 0])
        >>> preview = ledger.would_answer(other, ["ann", "bob"])
        >>> preview.accepted.tolist(), preview.losses.round(2).tolist()
        ([False, False], [0.75, 0.75])
        """
        checked_query(query)
        found: LedgerPreview = self._store.retry(partial(preview, self, query, distinct_ids(ids), repeat, workers))
        return found

    def erase(self, person: Any) -> int:
        """Erase all answers of a person; their privacy loss stays.

        Parameters
        ----------
        person : int or str

        Returns
        -------
        int
            How many answers were erased.

        Raises
        ------
        LedgerError
            If the ledger is of a PostgreSQL database and not one's own, or if nothing could be committed.

        Notes
        -----
        In their place stands one release, at the certified realized loss that they had, or at the sum of their epsilons
        with ``rule="basic"``, and at the sum of their zero-concentrated privacy. That the person answered, when and
        what, stays; the outputs are deleted, with the salts of the digests that could be used to test candidates.
        Copies in memory, in backups or in a server's write-ahead log remain.

        Examples
        --------
        >>> from skldp.accounting import PrivacyLedger, RegressionQuery
        >>> ledger = PrivacyLedger(1.0, bounds=(0, 1), rule="basic")
        >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(0, 1), epsilon=0.75)
        >>> outputs = ledger.answer(query, ids=["ann", "bob"], draw=lambda people: [1, 0]).outputs
        >>> ledger.erase("ann"), ledger.remaining(["ann"]).round(6).tolist(), ledger.verify().ok
        (1, [0.25], True)
        """
        return erase(self, canonical_ids([person]))

    def _declare(self, settings: dict[str, Any]) -> None:
        new = self._new_settings(settings)
        if new:
            self._store.retry(partial(self._declare_now, new))

    def _declare_now(self, new: dict[str, Any]) -> None:
        with self._transaction(write=True, settings=new):
            pass

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
            self._declare({"bounds": wanted["bounds"]})
        _ALL.add(self)
        if not store.read_only:
            with _OPENING:
                before = _BY_TOKEN.setdefault(self._token, self)
                if before._store.closed:
                    _BY_TOKEN[self._token] = self
