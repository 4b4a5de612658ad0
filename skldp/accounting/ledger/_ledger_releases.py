"""Releases of records through mechanisms, charged to budgets before they are returned."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from skldp._arrays import Bools, Ints, Positions
from skldp.accounting._class_query import ClassQuery
from skldp.accounting._query import Query, ReleaseQuery
from skldp.accounting._regression_query import RegressionQuery
from skldp.accounting.ledger._ledger_answers import Answering, Call, KeptRows, parameters_of
from skldp.accounting.ledger._state import LedgerState, declared_bounds
from skldp.accounting.losses._cohorts import Workers
from skldp.accounting.losses._region import Bounds, Region, region_of
from skldp.domains._domain import Box
from skldp.laws._person_ids import Identity
from skldp.mechanisms._noise import Noise, noise_from
from skldp.mechanisms._record import CategoricalRecord
from skldp.mechanisms._rows import RowMechanism
from skldp.mechanisms.categorical._randomized_response import RandomizedResponse
from skldp.mechanisms.numeric._bounded_features import BoundedFeatures
from skldp.mechanisms.numeric._unit_mechanisms import Duchi

# Name of an attribute, or names of the features that declare it.
Part = str | Sequence[str]


@dataclass(frozen=True)
class FeatureQuestion:
    """Query for a number, or for the category of a one-hot block, of a record."""

    query: RegressionQuery | ClassQuery
    columns: list[int]
    region: Region

    @classmethod
    def of(
        cls, mechanism: RowMechanism, part: Part, features: Sequence[str] | None, bounds: Bounds | None
    ) -> "FeatureQuestion | None":
        """Return the query equivalent to a release of features by one name or several; None if it names no feature."""
        law = mechanism.mechanism if isinstance(mechanism, BoundedFeatures) else mechanism
        domain = mechanism.domain if isinstance(mechanism, RowMechanism) else None
        is_number = isinstance(law, Duchi) and isinstance(domain, Box) and domain.n_features == 1
        if not is_number and not isinstance(part, list | tuple):
            return None
        names = list(part) if isinstance(part, list | tuple) else [str(part)]
        known = [] if features is None else list(features)
        if bounds is None or any(known.count(name) != 1 for name in names):
            raise ValueError(
                "part must be one of the declared features, or all of a one-hot block; got "
                f"{part!r} and the features {features!r}. Call PrivacyLedger.declare(bounds=..., features=[...]) first."
            )
        region, columns = region_of(bounds, n_features=len(known)), [known.index(name) for name in names]
        if isinstance(law, Duchi) and isinstance(domain, Box) and len(names) == 1:
            return cls(_number(law, names[0], domain, region, columns[0]), columns, region)
        law = law.parts[0] if isinstance(law, CategoricalRecord) and len(law.parts) == 1 else law
        own = [range(block.columns.start, block.columns.stop) for block in region.blocks if not block.at_most_one]
        if not isinstance(law, RandomizedResponse) or columns not in map(list, own) or len(region.limits):
            raise ValueError(
                "part must be the features of a one-hot block of a domain without inequalities, in their order, for a "
                f"release by randomized response; got part={part!r} and {type(mechanism).__name__}."
            )
        query = ClassQuery(np.eye(len(known))[columns], np.zeros(len(columns)), law.epsilon)
        if query.mechanism.code_counts != law.code_counts:
            raise ValueError(f"There must be a class for each of the {len(columns)} features; got {law.n_classes}.")
        return cls(query, columns, region)

    def release(self, values: npt.NDArray[Any], noise: Noise) -> tuple[npt.NDArray[Any], Ints]:
        """Draw answers; return the released values or codes, shape (n,), and the recorded outputs."""
        is_code = isinstance(self.query, ClassQuery)
        records = np.zeros((len(values), self.region.box.shape[1]))
        records[:, self.columns] = values[:, None] == np.arange(len(self.columns)) if is_code else values[:, None]
        answers = self.query.sample(records if is_code else self.region.move(records), noise).astype(np.int64)
        return answers if is_code else self.query.estimate(answers), answers


def _number(law: Duchi, part: str, domain: Box, region: Region, column: int) -> RegressionQuery:
    """Return the query with the law of Duchi's mechanism for one number."""
    if region.in_block[column] or len(region.limits):
        raise ValueError(
            f"The feature {part!r} must not be in a one-hot block or an inequality, since its value alone cannot "
            "be clipped to the domain. Release the full record, or release the feature without part."
        )
    (low,), (high,) = domain.low, domain.high
    inside = low <= region.box[0, column] and region.box[1, column] <= high
    kind: Literal["linear", "truncated"] = "linear" if inside else "truncated"
    return RegressionQuery(kind, np.eye(region.box.shape[1])[column], 0.0, (low, high), law.exact_epsilon)


@dataclass(frozen=True)
class LedgerRelease:
    """Released rows, with a mask of the accepted ones.

    Attributes
    ----------
    rows : ndarray of shape (n_accepted, n_outputs)
        Released rows of the accepted people, in the order of the ids.
    accepted : ndarray of bool, shape (n_rows,)
        Mask of the given rows that were released. All rows of a person are released, or none.
    n_moved : int
        Number of values clipped to the mechanism's domain. It depends on private values: do not publish it.
    """

    rows: npt.NDArray[Any]
    accepted: Bools
    n_moved: int


class Releasing:
    """Release of rows, with the query that charges each person."""

    def __init__(
        self,
        state: LedgerState,
        mechanism: RowMechanism,
        rows: npt.ArrayLike,
        people: list[Identity],
        part: Part | None,
    ) -> None:
        settings = state.store.settings
        self._state, self._mechanism, self._part, self._people = state, mechanism, part, people
        bounds = declared_bounds(settings.get("bounds"))
        self._feature = None if part is None else FeatureQuestion.of(mechanism, part, settings.get("features"), bounds)
        if self._feature is None:
            query = self._charged(1)
            if not math.isfinite(query.epsilon) and state.rule.zcdp_budget is None:
                raise ValueError(
                    "A release without a finite epsilon needs a ledger with a delta, such as PrivacyLedger(..., "
                    f"rule='approximate', delta=1e-6); got {query.mechanism} for a ledger with "
                    f"rule={state.rule.name!r}."
                )
        # Nothing may fail after budgets are charged.
        mechanism.encode(rows)
        self._given = mechanism._as_rows(rows)
        n_rows = self._given.shape[0]
        if len(people) != n_rows:
            raise ValueError(f"There must be one id for each of the {n_rows} rows; got {len(people)}.")
        self._by_number = _by_number_of_rows(people)
        if part is not None and self._numbers[-1:] > [1]:
            raise ValueError(f"With part, each person must have one row; got people with {self._numbers[-1]} rows.")
        self._rows = np.empty((n_rows, mechanism.n_outputs), dtype=mechanism.output_dtype(self._given.dtype))

    def run(self, *, all_or_none: bool, workers: Workers, key: str | None) -> LedgerRelease:
        """Charge the people and return the rows of those who can pay, fewest rows first."""
        if all_or_none and len(self._by_number) > 1:
            raise ValueError(
                "With all_or_none, all people must have the same number of rows; "
                f"got people with {' and with '.join(map(str, self._numbers))} rows. Use one call per number of rows."
            )
        # Hashing the full call with each commit keeps a key from matching part of another call.
        contents = [parameters_of(self._mechanism), self._part, self._rows.dtype.str, self._people]
        accepted = np.zeros(len(self._rows), dtype=bool)
        for number, places in enumerate(self._by_number):
            own = [self._people[place] for place in places[:, 0]]
            own_key = key if key is None or not number else f"{key} {number}"
            kept = None if own_key is None else KeptRows(own_key, own, places, self._rows)
            query = self._charged(places.shape[1]) if self._feature is None else self._feature.query
            call = Call(query, own, True, all_or_none, own_key, kept, contents)
            answers = Answering(self._state, call, partial(self._draw, query, places), workers).run()
            accepted[places[answers.accepted]] = True
        n_moved = self._mechanism.encode(self._given[accepted]).n_moved
        return LedgerRelease(self._rows[accepted], accepted, n_moved)

    @property
    def _numbers(self) -> list[int]:
        """Numbers of rows that people have, ascending."""
        return [places.shape[1] for places in self._by_number]

    def _charged(self, n_rows: int) -> ReleaseQuery:
        part: Any = self._part
        return ReleaseQuery.of(self._mechanism, n_rows=n_rows, part=part)

    def _draw(self, query: Query, places: Positions, positions: Positions) -> Ints:
        """Release the rows of some people; a retried transaction draws again, and only the last draw is returned."""
        own = places[positions].ravel()
        if self._feature is not None:
            self._rows[own, 0], answers = self._feature.release(self._given[own, 0], noise_from(None))
            return answers
        self._rows[own] = self._mechanism.release(self._given[own], noise_from(None)).rows
        if isinstance(query, ReleaseQuery) and self._part is not None:
            return query.outputs_of(self._rows[own])
        return np.zeros(len(positions), dtype=np.int64)


def _by_number_of_rows(people: Sequence[Identity]) -> list[Positions]:
    """Return the positions of people's rows, one array of shape (n_people, n_rows) per number of rows, ascending."""
    places_of: dict[Identity, list[int]] = {}
    for place, person in enumerate(people):
        places_of.setdefault(person, []).append(place)
    numbers = sorted({len(places) for places in places_of.values()})
    return [np.array([own for own in places_of.values() if len(own) == number]) for number in numbers]
