"""A ledger that can erase what somebody has answered."""

import math
import secrets
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from skldp.accounting._ledger.erasures import erasable, erase_rows
from skldp.accounting._ledger.identity import Identity, canonical_ids
from skldp.accounting._ledger.reader import LedgerReader
from skldp.accounting._ledger.records import Release, recorded_history, write_release
from skldp.accounting._query import Query, ReleaseQuery

__all__ = ["LedgerEraser"]


class LedgerEraser(LedgerReader):
    """An open ledger, of which answers can be erased."""

    def erase(self, person: Any) -> int:
        """Erase all that a person has answered; what it has cost them stays.

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
            If an answer is in a release that a version before 3 of the schema recorded, if the ledger is of a
            PostgreSQL database and not one's own, or if nothing could be committed.

        Notes
        -----
        In their place stands one release, at the certified realized loss that they had, or at the sum of their epsilons
        with ``rule="basic"``, and at the sum of their zero-concentrated privacy. That the person answered, when and
        what, stays; what they answered goes, with the salts of the digests that it could be tried on. Whoever has them
        in memory, in a backup or a server's log of writes has them still.

        Examples
        --------
        >>> from skldp.accounting import PrivacyLedger, RegressionQuery
        >>> ledger = PrivacyLedger(1.0, bounds=(0, 1), rule="basic")
        >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(0, 1), epsilon=0.75)
        >>> outputs = ledger.answer(query, ids=["ann", "bob"], draw=lambda people: [1, 0]).outputs
        >>> ledger.erase("ann"), ledger.remaining(["ann"]).round(6).tolist(), ledger.verify().ok
        (1, [0.25], True)
        """
        people = canonical_ids([person])
        with self._store.asking(people):
            while True:
                # Certified while nobody waits, and kept for the attempt.
                self.realized_loss(people)
                n_erased = self._store.repeated(partial(self._attempt_erasure, people))
                if n_erased is not None:
                    return int(n_erased)

    def _attempt_erasure(self, people: list[Identity]) -> int | None:
        with self._lock, self._forgetting_after_errors():
            book = self._book
            with self._store.transaction(write=True) as connection:
                book.catch_up(connection)
                numbers = book.numbers(people)
                history = recorded_history(connection, int(numbers[0]), book.release)
                queries = book.answers_of([history])[0][0]
                # What was erased before is no answer, and stays as it is where nothing has come since.
                n_answers = sum(not (isinstance(one, ReleaseQuery) and one.is_erasure) for one in queries)
                if not n_answers:
                    return 0
                (one, two), loss = book.fingerprints_of(numbers)[0], None
                if self.rule != "basic":
                    certified = self._certified.get((int(one), int(two)))
                    if certified is None:
                        return None
                    loss = self._certain_loss(queries, certified[1])
                query = ReleaseQuery.erasure(queries, loss)
                erased, request = erasable(connection, int(numbers[0]))
                release = Release(
                    number=book.release + 1,
                    query_number=book.query_number.get(query.key, len(book.queries)),
                    asked=1,
                    served=0,
                    refused=0,
                    new_people=[],
                    numbers=numbers,
                    outputs=np.zeros(1, dtype=np.int64),
                    mark=secrets.token_hex(32),
                    request=request,
                )
                tenant, n_people = self._store.tenant, len(book.number_of)
                write_release(connection, release, query, n_people=n_people, chain=book.chain, tenant=tenant)
                erase_rows(connection, erased, release.number)
            self._forget()
        return n_answers

    def _certain_loss(self, queries: Sequence[Query], certified: float) -> float | None:
        """The loss to be charged, or None where the certified one holds but with the probability of a delta."""
        composed = self._rule.composed_loss(queries)
        if math.isinf(composed):
            # No decision has let it pass the budget.
            return min(certified, self.epsilon)
        return certified if certified < composed else None
