"""Ledger of privacy budgets: recorded answers, and decisions on new queries."""

import os
import threading
import weakref
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy.typing as npt

from skldp.accounting._query import Query, ReleaseQuery, checked_query
from skldp.accounting.ledger._ledger_answers import Answering, Call, Draw, LedgerAnswers, LedgerPreview, erase, preview
from skldp.accounting.ledger._ledger_releases import LedgerRelease, Releasing
from skldp.accounting.ledger._reader import LedgerReader
from skldp.accounting.ledger._state import LedgerState, checked_settings, declared_settings, open_store
from skldp.accounting.ledger._store import MEMORY, LedgerStore
from skldp.accounting.losses._cohorts import Workers
from skldp.accounting.losses._region import Bounds
from skldp.exceptions import LedgerError
from skldp.laws._person_ids import canonical_ids, distinct_ids
from skldp.mechanisms._rows import RowMechanism

_BY_TOKEN: "weakref.WeakValueDictionary[str, PrivacyLedger]" = weakref.WeakValueDictionary()
_ALL: "weakref.WeakSet[PrivacyLedger]" = weakref.WeakSet()
_OPENING = threading.RLock()


def _reopened(token: str, path: str, read_only: bool) -> "PrivacyLedger":
    """Return the ledger of a pickle: the open one of this process, or the reopened file."""
    with _OPENING:
        ledger = None if read_only else _BY_TOKEN.get(token)
        if ledger is not None and ledger._state.store.closed:
            ledger = None
        if ledger is None and path == MEMORY:
            raise LedgerError(
                "A ledger in memory cannot be pickled to another process, since each process would spend the same "
                "budgets. Use a file: PrivacyLedger(..., path='budgets.ledger')."
            )
        ledger = PrivacyLedger.open(path, read_only=read_only) if ledger is None else ledger
        if ledger._state.token != token:
            raise LedgerError(f"The ledger at {path!r} is not the one that was pickled.")
        return ledger


def _reset_after_fork() -> None:
    """Reset locks and caches in a forked child, where the other threads do not exist."""
    global _OPENING
    _OPENING = threading.RLock()
    for ledger in list(_ALL):
        ledger._state.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


class PrivacyLedger(LedgerReader):
    """Ledger of privacy budgets and recorded answers.

    Parameters
    ----------
    epsilon : float
        Total budget of each person, in nats.
    bounds : tuple (low, high), dict or Domain, default=None
        Domain of a person's values: bounds, each a number or one number per feature; a dict of pairs by name, in the
        order of the features, which it declares; or a ``Domain`` as in :func:`realized_loss`. None uses the domain of
        an existing file. A new ledger without bounds takes those of the first :class:`~skldp.BayesianFilter` that
        queries it.
    path : str or path-like, default=":memory:"
        Path of the file, or URL of a PostgreSQL database for several hosts: ``"postgresql://role@host/database"``. A
        missing ledger is created: a file with mode 0600, or tables in the first schema of the role's search path. A
        relative path is resolved in the constructor, also for copies and pickles. Use an absolute path if a program is
        started from several folders. The lock file ``<path>.lock`` belongs to the ledger.
    rule : {"basic", "simplified", "bayesian", "approximate"}, default="bayesian"
        Accounting of a history: ``"basic"`` adds up epsilons; ``"simplified"`` adds the next query's epsilon to the
        certified realized loss; ``"bayesian"`` certifies the realized loss after each possible output of the next
        query; ``"approximate"`` does so once the sum of rho (zCDP) exceeds the (epsilon, delta) budget.
    tol : float, default=1e-3
        Target distance between the certified bounds, in nats. A larger value may refuse earlier, never later.
    delta : float, default=None
        Probability of exceeding epsilon, below 1/e. Only with ``rule="approximate"``.
    head : str, default=None
        Earlier `head` of this ledger, published where the person who restores backups cannot change it.

    Attributes
    ----------
    epsilon, bounds, path, rule, tol, delta
        Settings of the ledger, which never change.

    Raises
    ------
    ValueError
        If a parameter is invalid.
    LedgerError
        If the file has other settings, is truncated or damaged, is not a ledger, is a link, has another schema
        version, or has lost a release.

    Notes
    -----
    An answer is committed before it is returned: a crash may lose an answer, never its cost. Decisions depend only on
    queries and recorded outputs, so a refusal reveals nothing about a person's values.

    `clone`, `copy.deepcopy` and `pickle` return the same ledger, since a copied budget could be spent twice. In another
    process, a pickled ledger is opened from its file. A ledger in memory cannot be pickled to another process or used
    after a fork.

    The realized loss is about one record. With the rules ``"simplified"`` and ``"bayesian"``, a person must answer all
    queries from the same values of the same features, in the same order. Only ``"basic"`` composition holds for values
    that change between queries.

    Values are never stored. Ids are stored as given, all integers or all strings: ``7`` and ``"7"`` would be two
    people with two budgets. Refusals are stored as a number per call.

    Every call acquires the lock and checks that the file is the ledger that was opened. It must contain every release
    known to this process or to the lock file. Replaced files, older versions, hard links and symbolic links are
    refused; folders may be links. Move both files together. A copy of both files duplicates the budgets, which cannot
    be detected. A copy without the lock file is read-only.

    Close a ledger with `close` or a ``with`` block. A ledger in a file holds no open file between calls. A ledger in
    memory ends with its last reference.

    Examples
    --------
    >>> from skldp import PrivacyLedger
    >>> from skldp.accounting import RegressionQuery
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
        bounds: Bounds | dict[str, Any] | None = None,
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
        """Open an existing ledger with its own settings.

        Parameters
        ----------
        path : str or path-like
            File of the ledger, or address of a database.
        read_only : bool, default=False
            Whether to open the ledger for reports only, without queries.
        head : str, default=None
            As in the constructor.

        Raises
        ------
        ValueError
            If `head` is not a valid head.
        LedgerError
            If no usable ledger exists, or it has lost a release that the head includes.
        """
        ledger = cls.__new__(cls)
        ledger._set_up(open_store(path, read_only=read_only), {}, head)
        return ledger

    def __copy__(self) -> "PrivacyLedger":
        return self

    def __deepcopy__(self, memo: Any) -> "PrivacyLedger":
        return self

    def __reduce__(self) -> Any:
        return _reopened, (self._state.token, self.path, self._state.store.read_only)

    def declare(
        self,
        *,
        bounds: Bounds | dict[str, Any] | None = None,
        features: Sequence[str] | None = None,
        missing: Sequence[float] | None = None,
    ) -> None:
        """Declare the domain and the features of all queries permanently.

        Parameters
        ----------
        bounds : tuple (low, high), dict or Domain, default=None
            Domain of a person's values; a dict declares the features as well. None declares nothing.
        features : sequence of str, default=None
            Names of the features, in the order of the coefficients. None declares nothing.
        missing : sequence of float, default=None
            Values that replace missing features. None declares nothing.

        Raises
        ------
        ValueError
            If the bounds are invalid or a value is not finite.
        LedgerError
            If other settings were declared before. Mixing them would understate the loss: equal coefficients of other
            features are another query, and other replacements of missing values make another record.
        """
        self._state.declare(declared_settings(bounds=bounds, features=features, missing=missing))

    def answer(
        self,
        query: Query,
        ids: Iterable[Any],
        draw: Draw,
        *,
        repeat: bool = False,
        workers: Workers = map,
        idempotency_key: str | None = None,
        declare: dict[str, Any] | None = None,
    ) -> LedgerAnswers:
        """Ask people a query and return the answers of those with enough budget.

        Answers are committed before they are returned. A recorded answer to the same query is returned again, at no
        cost.

        Parameters
        ----------
        query : RegressionQuery or FiniteQuery
            Question to the people.
        ids : iterable of int or str
            Distinct ids of the people, all integers or all strings.
        draw : callable
            Function from the positions (in `ids`) of the people who answer now to their outputs. It must not fail for
            any values, since an error would be an uncharged answer. ``query.sample`` never fails.
        repeat : bool, default=False
            Whether to draw a new answer, at its full cost, even if one is recorded.
        workers : map-like callable, default=map
            Function that maps the searches over histories in order, such as the ``map`` of a
            :class:`~concurrent.futures.ProcessPoolExecutor`.
        idempotency_key : str, default=None
            Secret name of this call, such as ``uuid.uuid4().hex``. Use it to retry a call after a crash or a lost
            connection. If the call was committed, the retry returns its answers without a draw or a second cost. The
            ledger stores a hash of the key.
        declare : dict, default=None
            Keyword arguments of :meth:`declare`, whose settings are written in the transaction of the answers.

        Returns
        -------
        LedgerAnswers
            Answers, and a mask of the people who have one.

        Raises
        ------
        ValueError
            If the query is invalid, an id occurs twice, or the key is too short.
        LedgerError
            If the answers could not be committed, the ids differ in type from those in the ledger, the key belongs to
            another call, or other settings are declared. Nothing is returned then.
        """
        if isinstance(checked_query(query), ReleaseQuery):
            raise ValueError("query must not be a ReleaseQuery; got one. Use PrivacyLedger.release with its mechanism.")
        settings = self._state.prepared(declared_settings(**declare or {}), idempotency_key)
        call = Call(query, distinct_ids(ids), repeat, key=idempotency_key, settings=settings)
        return Answering(self._state, call, draw, workers).run()

    def release(
        self,
        mechanism: RowMechanism,
        rows: npt.ArrayLike,
        ids: Iterable[Any] | None = None,
        *,
        groups: Iterable[Any] | None = None,
        part: str | Sequence[str] | None = None,
        all_or_none: bool = False,
        workers: Workers = map,
        idempotency_key: str | None = None,
    ) -> LedgerRelease:
        r"""Release rows through a mechanism and charge their people.

        The charge is the epsilon of the mechanism's ``guarantee``, computed from its integer thresholds. A release of a
        named part is charged by its output. The noise comes from the operating system. Refusals and charges depend only
        on budgets and recorded outputs.

        Parameters
        ----------
        mechanism : RowMechanism
            Mechanism of :mod:`skldp.mechanisms` with a finite, pure guarantee. ``rule="approximate"`` also allows the
            Gaussian mechanism, counted by its zero-concentrated privacy.
        rows : array-like of shape (n_rows, n_features)
            Private rows. Values outside the mechanism's domain are clipped to it.
        ids : iterable of int or str, shape (n_rows,), default=None
            Id of each row's person, if each person has one row.
        groups : iterable of int or str, shape (n_rows,), default=None
            Id of each row's person, if people may have several rows. Each row is charged. A person's rows are all
            released or all refused.
        part : str or sequence of str, default=None
            Name of a fixed attribute, such as ``"employment"``, with :class:`~skldp.mechanisms.RandomizedResponse`, or
            with the ``mechanism_`` of a :class:`~skldp.CategoricalPrivatizer` of one column by ``"sue"`` or ``"oue"``.
            Releases of one part are counted together by their outputs, so opposite outputs cost little. With
            ``Duchi`` for one number, the name of a declared feature. The release is then
            counted as a query for that feature, with all other answers about the record. So is a release by
            randomized response whose part is the list of the declared features of a one-hot block. A person's value of
            a part must not change.
        all_or_none : bool, default=False
            Whether to release nothing if any person must be refused. With `groups`, all people must then have equal
            numbers of rows.
        workers : map-like callable, default=map
            As in :meth:`PrivacyLedger.answer`.
        idempotency_key : str, default=None
            Secret name of this call, as in :meth:`PrivacyLedger.answer`. A retry returns the same released rows,
            without a draw or a second cost, whatever the given rows. The ledger stores them encrypted under the key,
            and does not store the key.

        Returns
        -------
        LedgerRelease
            Released rows and a mask of the accepted ones.

        Raises
        ------
        ValueError
            If the ledger's rule cannot count the mechanism's guarantee, the rows do not fit the mechanism, the number
            of ids differs from that of rows, an id of `ids` occurs twice, or the key is too short. Nothing is drawn or
            charged then.
        BudgetExhaustedError
            With `all_or_none`, if any person must be refused.
        LedgerError
            If the charges could not be committed, or the key belongs to another call, mechanism or set of people.
            Nothing is returned then.

        Notes
        -----
        Without a key, the ledger does not store released rows, except the codes of parts. A second call is then a
        second release and is charged again. A crash may lose a release, never its cost. People with different numbers
        of rows are charged in separate commits, fewest rows first, and an error between commits may lose releases as
        well. A retry with the key returns the lost rows and continues. Erased rows are not returned.

        The realized loss of a history with releases is the sum of the loss of its other answers, the full charge of
        each release and the realized loss of each part. Parts that are declared features count as answers.

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
        if (ids is None) == (groups is None):
            raise ValueError(f"A release must have either ids or groups; got {'neither' if ids is None else 'both'}.")
        self._state.prepared({}, idempotency_key)
        people = distinct_ids(ids) if ids is not None else canonical_ids(() if groups is None else groups)
        releasing = Releasing(self._state, mechanism, rows, people, part)
        return releasing.run(all_or_none=all_or_none, workers=workers, key=idempotency_key)

    def would_answer(
        self, query: Query, ids: Iterable[Any], *, repeat: bool = False, workers: Workers = map
    ) -> LedgerPreview:
        """Preview the decisions about a query and the added losses, without asking or recording.

        Parameters
        ----------
        query : RegressionQuery or FiniteQuery
            Question to the people.
        ids : iterable of int or str
            Distinct ids of people who have answered before.
        repeat : bool, default=False
            As in :meth:`PrivacyLedger.answer`.
        workers : map-like callable, default=map
            Function that maps the searches over distinct histories, in order. Each history needs one search per output
            and one more.

        Returns
        -------
        LedgerPreview
            Decisions of :meth:`PrivacyLedger.answer` for the present record.

        Raises
        ------
        ValueError
            If the query is invalid, or an id occurs twice.
        LedgerError
            If the query has another domain, or a person has no answer.

        Notes
        -----
        A preview of people without answers is refused: they would all answer if the query's epsilon is within the
        budget. The refusal reveals that the ids include such people. **Anyone who can query a ledger can find out
        whose answers it contains**, also by `realized_loss` and `history`. Show a preview only to readers who may know
        who has answered.

        Examples
        --------
        >>> from skldp import PrivacyLedger
        >>> from skldp.accounting import RegressionQuery
        >>> ledger = PrivacyLedger(1.0, bounds=(0, 1))
        >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(0, 1), epsilon=0.75)
        >>> other = RegressionQuery("linear", coef=[-1.0], intercept=1.0, output_bounds=(0, 1), epsilon=0.5)
        >>> answers = ledger.answer(query, ids=["ann", "bob"], draw=lambda people: [1, 0])
        >>> preview = ledger.would_answer(other, ["ann", "bob"])
        >>> preview.accepted.tolist(), preview.losses.round(2).tolist()
        ([False, False], [0.75, 0.75])
        """
        checked_query(query)
        asking = partial(preview, self._state, query, distinct_ids(ids), repeat, workers)
        found: LedgerPreview = self._state.store.retry(asking)
        return found

    def erase(self, person: Any) -> int:
        """Erase all answers of a person, but keep their privacy loss.

        Parameters
        ----------
        person : int or str
            Id of the person.

        Returns
        -------
        int
            Number of erased answers.

        Raises
        ------
        LedgerError
            If the erasure could not be committed.

        Notes
        -----
        One release replaces the answers. Its charge is their certified realized loss, or the sum of their epsilons
        with ``rule="basic"``. Its rho is the sum of theirs. The record keeps the query and the time of each answer. The
        outputs are deleted, with the salts of digests that could confirm a guess. Copies in memory, in backups or in a
        server's write-ahead log remain.

        Examples
        --------
        >>> from skldp import PrivacyLedger
        >>> from skldp.accounting import RegressionQuery
        >>> ledger = PrivacyLedger(1.0, bounds=(0, 1), rule="basic")
        >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(0, 1), epsilon=0.75)
        >>> outputs = ledger.answer(query, ids=["ann", "bob"], draw=lambda people: [1, 0]).outputs
        >>> ledger.erase("ann"), ledger.remaining(["ann"]).round(6).tolist(), ledger.verify().ok
        (1, [0.25], True)
        """
        return erase(self._state, canonical_ids([person]))

    def _set_up(self, store: LedgerStore, wanted: dict[str, Any], head: str | None) -> None:
        super().__init__(LedgerState(store))
        if head is not None:
            store.check_head(head)
        for name in ("epsilon", "rule", "tol", "delta"):
            if name in wanted and wanted[name] != getattr(self, name):
                raise LedgerError(
                    f"The {name} of a ledger must not change: {store.name!r} has {name}={getattr(self, name)!r}; "
                    f"got {wanted[name]!r}."
                )
        if "bounds" in wanted:
            self._state.declare({name: value for name, value in wanted.items() if name in ("bounds", "features")})
        _ALL.add(self)
        if not store.read_only:
            with _OPENING:
                before = _BY_TOKEN.setdefault(self._state.token, self)
                if before._state.store.closed:
                    _BY_TOKEN[self._state.token] = self
