"""Releases of people's records by any mechanism, each charged to the person's budget before it is handed out."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp.accounting._decide import Rule, Workers
from skldp.accounting._ledger.book import LedgerBook
from skldp.accounting._ledger.feature_question import FeatureQuestion
from skldp.accounting._ledger.identity import Identity, canonical_ids, distinct_ids
from skldp.accounting._ledger.kept_rows import KeptRows, parameters_of
from skldp.accounting._ledger.plan import check_key
from skldp.accounting._query import Query
from skldp.accounting._release_query import ReleaseQuery
from skldp.exceptions import LedgerError
from skldp.mechanisms._noise import noise_from
from skldp.mechanisms._rows import RowMechanism

__all__ = ["LedgerRelease", "ReleasesRecords"]


@dataclass(frozen=True)
class LedgerRelease:
    """What a ledger hands out of the rows that it was given.

    Attributes
    ----------
    rows : ndarray of shape (n_accepted, n_outputs)
        The released rows of those who were not refused, in the order of the ids.
    accepted : ndarray of bool, shape (n_rows,)
        Which of the given rows they are: ``X[accepted]`` are theirs. Of a person with several rows, all or none.
    n_moved : int
        How many of their values were moved into the mechanism's domain. To be seen where the rows are, by nobody else.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.accounting import LedgerRelease
    >>> LedgerRelease(np.array([[1.0], [2.0]]), np.array([True, False, True]), 0).filled().ravel()
    array([ 1., nan,  2.])
    """

    rows: npt.NDArray[Any]
    accepted: npt.NDArray[np.bool_]
    n_moved: int

    def filled(self, value: float = np.nan) -> npt.NDArray[Any]:
        """As many rows as were given, with `value` where somebody was refused.

        Parameters
        ----------
        value : float, default=NaN
            Of codes, give a whole number that is none of them.

        Returns
        -------
        ndarray of shape (n_rows, n_outputs)

        Raises
        ------
        ValueError
            If the released rows are whole numbers and `value` is none.
        """
        if self.rows.dtype.kind in "iu" and value != np.floor(value):
            raise ValueError(f"Released codes are whole numbers, and value must be one. Got {value!r} instead.")
        whole = np.full((len(self.accepted), *self.rows.shape[1:]), value, dtype=self.rows.dtype)
        whole[self.accepted] = self.rows
        return whole


class ReleasesRecords:
    """What a ledger does for mechanisms: decide, release, commit, and only then hand out."""

    features: Any
    _rule: Rule
    _book: LedgerBook

    @abstractmethod
    def _answer(
        self,
        query: Query,
        ids: Iterable[Any],
        draw: Callable[[npt.NDArray[np.intp]], npt.ArrayLike],
        *,
        repeat: bool,
        all_or_none: bool,
        workers: Workers,
        idempotency_key: str | None = None,
        kept: KeptRows | None = None,
        contents: Any = None,
    ) -> Any:
        """Ask people a query."""

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
            Whose they are, nobody twice.
        groups : iterable of int or str, shape (n_rows,), default=None
            In place of `ids` where people have several rows: the id of each row's person, who is charged for each row,
            and is refused all of them or none.
        part : str, default=None
            With :class:`~skldp.mechanisms.RandomizedResponse`, :class:`~skldp.mechanisms.UnaryEncoding` or a
            :class:`~skldp.mechanisms.CategoricalRecord` of one column by ``"sue"`` or ``"oue"``: what of the record
            the code is, such as ``"employment"``. Releases of one part are then counted together by what they were,
            so that opposed ones cost little. With :class:`~skldp.mechanisms.Duchi` for one number: the name of a
            feature that was declared; it is then asked as the question what that feature is, and counted together
            with all other answers about the record. A person's value of a part must stay the same, as their record
            must.
        all_or_none : bool, default=False
            Release nothing if anybody must be refused. With `groups`, people must have as many rows as one another.
        workers : map-like callable, default=map
            Applies a function to the histories that need a search, in order.
        idempotency_key : str, default=None
            A name for this call that nobody can guess, as of :meth:`PrivacyLedger.answer`. Asked again with it, the
            ledger hands out the very rows that it released, at no second cost and without a draw, whatever the given
            rows are by then. It keeps them encrypted under the key, which it does not store.

        Returns
        -------
        LedgerRelease
            With the rows of those who were accepted, and which they are.

        Raises
        ------
        ValueError
            If the mechanism has no guarantee that the ledger's rule can count, the rows are not of its domain, there
            are not as many ids as rows, an id of `ids` occurs twice, or the key is too short to be no guess. Nothing is
            drawn then, and nobody charged.
        BudgetExhaustedError
            With `all_or_none`, if anybody must be refused.
        LedgerError
            If the charges could not be committed, or the key was that of another call, of another mechanism or of
            other people: nothing is handed out then.

        Notes
        -----
        Without a key, released rows are not kept in the ledger, only that they were released, and of a part its
        released code: a second call is a second release and is charged again. A crash may lose a release, never its
        cost; so may an error between the commits of people with different numbers of rows, who are charged in turn,
        the fewest first. With a key, the call made again hands out what was lost, and goes on where it ended. What is
        erased of a person is not handed out again.

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
        if (ids is None) == (groups is None):
            raise ValueError(f"A release needs either ids or groups. Got {'neither' if ids is None else 'both'}.")
        check_key(idempotency_key)
        feature = None
        if part is not None:
            feature = FeatureQuestion.of(mechanism, part, self.features, self._rule.bounds)
        if feature is None:
            self._check_charge(ReleaseQuery.of(mechanism, part=part))
        # What a row may be refused for is found now: when budgets are charged, nothing fails.
        mechanism.encode(rows)
        given = mechanism._as_rows(rows)
        people = distinct_ids(ids) if ids is not None else canonical_ids(() if groups is None else groups)
        if len(people) != given.shape[0]:
            raise ValueError(f"There must be one id for each of the {given.shape[0]} rows. Got {len(people)} instead.")
        by_number = _by_number_of_rows(people)
        numbers = [places.shape[1] for places in by_number]
        if all_or_none and len(by_number) > 1:
            raise ValueError(
                "all_or_none needs people with as many rows as one another: release those with fewer in a call of "
                f"their own. Got people with {' and with '.join(map(str, numbers))} rows."
            )
        if part is not None and max(numbers, default=1) > 1:
            raise ValueError(f"A person's part of a record is one value. Got people with {max(numbers)} rows.")
        released = np.empty((given.shape[0], mechanism.n_outputs), dtype=mechanism.output_dtype(given.dtype))
        accepted = np.zeros(given.shape[0], dtype=bool)
        # Each commit is known by the whole call, so that a key is not that of a call of which only some is the same.
        contents = [parameters_of(mechanism), part, released.dtype.str, people]

        def draw(query: Query, places: npt.NDArray[np.intp], positions: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
            own = places[positions].ravel()
            # A transaction that is tried again draws anew, and only what was drawn last is handed out.
            if feature is not None:
                released[own, 0], answers = feature.release(given[own, 0], noise_from(None))
                return answers
            released[own] = mechanism.release(given[own], noise_from(None)).rows
            if isinstance(query, ReleaseQuery) and part is not None:
                return query.outputs_of(released[own])
            return np.zeros(len(positions), dtype=np.int64)

        for number, places in enumerate(by_number):
            key = idempotency_key if idempotency_key is None or not number else f"{idempotency_key} {number}"
            own = [people[place] for place in places[:, 0]]
            whole = partial(ReleaseQuery.of, mechanism, n_rows=places.shape[1], part=part)
            query = whole() if feature is None else feature.query
            answers = self._answer(
                query,
                own,
                partial(draw, query, places),
                repeat=True,
                all_or_none=all_or_none,
                workers=workers,
                idempotency_key=key,
                kept=None if key is None else KeptRows(key, own, places, released),
                contents=contents,
            )
            accepted[places[answers.accepted]] = True
        return LedgerRelease(released[accepted], accepted, mechanism.encode(given[accepted]).n_moved)

    def _check_charge(self, query: ReleaseQuery) -> None:
        if not math.isfinite(query.epsilon) and self._rule.zcdp_budget is None:
            raise ValueError(
                "A release without a finite epsilon needs a budget with a delta: "
                f"PrivacyLedger(..., rule='approximate', delta=1e-6). Got {query.mechanism} for {self}."
            )

    def _check_part(self, query: ReleaseQuery) -> None:
        """Refuse other codes of a part that is known; what counts in full may be about anything of the record."""
        known = [one for one in self._book.queries if isinstance(one, ReleaseQuery) and one.part == query.part]
        if query.part is not None and any(one.n_classes != query.n_classes for one in known):
            raise LedgerError(
                f"The part {query.part!r} of a record has {known[0].n_classes} codes in this ledger. "
                f"Got {query.n_classes} instead."
            )


def _by_number_of_rows(people: Sequence[Identity]) -> list[npt.NDArray[np.intp]]:
    """The places of each person's rows: an array of shape (n_people, n_rows) for each number of rows, fewest first."""
    places_of: dict[Identity, list[int]] = {}
    for place, person in enumerate(people):
        places_of.setdefault(person, []).append(place)
    numbers = sorted({len(places) for places in places_of.values()})
    return [np.array([own for own in places_of.values() if len(own) == number]) for number in numbers]
