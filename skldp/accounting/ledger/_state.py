"""State of an open ledger: its store, its settings and rule, and the records that this process has read."""

import json
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import numpy as np

from skldp._arrays import Floats
from skldp.accounting._class_query import ClassQuery, SoftmaxQuery
from skldp.accounting._decide import Rule, decide, n_bounds
from skldp.accounting._query import Query, ReleaseQuery
from skldp.accounting._regression_query import RegressionQuery
from skldp.accounting._units import finite_number
from skldp.accounting.ledger._cache import Fingerprint, LedgerCache
from skldp.accounting.ledger._records import Connection, History, damage
from skldp.accounting.ledger._store import LedgerStore
from skldp.accounting.ledger._verification import certified_losses
from skldp.accounting.losses._cohorts import Workers
from skldp.accounting.losses._region import checked_box, region_of
from skldp.domains._columns import domain_from_json
from skldp.domains._domain import Domain
from skldp.exceptions import LedgerError
from skldp.laws._person_ids import Identity
from skldp.mechanisms._finite_query import FiniteQuery

_SHORTEST_KEY = 16


def open_store(
    path: str | os.PathLike[str], settings: dict[str, Any] | None = None, *, read_only: bool = False
) -> LedgerStore:
    if isinstance(path, str) and path.startswith(("postgresql:", "postgresql+psycopg:")):
        from skldp.accounting.ledger._postgres_store import PostgresStore

        return PostgresStore(path, settings, read_only=read_only)
    from skldp.accounting.ledger._sqlite_store import SQLiteStore

    return SQLiteStore(path, settings, read_only=read_only)


def checked_settings(epsilon: Any, bounds: Any, rule: Any, tol: Any, delta: Any) -> dict[str, Any]:
    if (delta is not None) != (rule == "approximate"):
        raise ValueError(f"delta must be set if and only if rule='approximate'; got delta={delta!r} and rule={rule!r}.")
    Rule(rule, epsilon, tol=tol, delta=delta)
    settings = {"epsilon": float(epsilon), "rule": str(rule), "tol": float(tol), **declared_settings(bounds=bounds)}
    return settings | {"delta": None if delta is None else float(delta)}


def declared_settings(
    *, bounds: Any = None, features: Iterable[str] | None = None, missing: Iterable[float] | None = None
) -> dict[str, Any]:
    """Return the declared settings as JSON, without those that are None; bounds by name declare the features."""
    if isinstance(bounds, dict):
        features = list(bounds if features is None else features)
        if not bounds or sorted(map(repr, features)) != sorted(map(repr, bounds)):
            raise ValueError(f"`bounds` by name must name each of the features once; got {list(bounds)!r}.")
        bounds = tuple(np.hstack([checked_box(bounds[name], n_features=1) for name in features]))
    wanted = {
        "bounds": None if bounds is None else _checked_bounds(bounds),
        "features": None if features is None else [str(name) for name in features],
        "missing": None if missing is None else [finite_number(value, "missing") for value in missing],
    }
    return {name: value for name, value in wanted.items() if value is not None}


def _checked_bounds(bounds: Any) -> list[Any] | dict[str, Any]:
    """Convert bounds to JSON: two numbers, two lists with one number per feature, or the fields of a domain."""
    region = region_of(bounds)
    if region.domain is not None and not region.is_box:
        return region.domain.to_dict()
    # Adding 0.0 converts -0.0 to 0.0. An interval shared by all features is stored once.
    box = region.box + 0.0
    same = bool((box == box[:, :1]).all())
    return cast("list[Any]", (box[:, 0] if same else box).tolist())


def declared_bounds(stored: Any) -> tuple[Any, Any] | Domain | None:
    if isinstance(stored, dict):
        with damage():
            return domain_from_json(json.dumps(stored))
    return None if stored is None else (stored[0], stored[1])


class LedgerState:
    """Open ledger: its store, rule, cache of records, and certified bounds on losses by history."""

    def __init__(self, store: LedgerStore) -> None:
        settings = store.settings
        missing = next((name for name in ("epsilon", "rule", "tol", "token") if name not in settings), None)
        if missing is not None:
            raise store.error(f"is damaged: its setting {missing!r} is missing.")
        delta = settings.get("delta")
        # A setting added to the file must not loosen the verification.
        if (delta is None) == (settings["rule"] == "approximate"):
            raise store.error("is damaged: delta must be set if and only if rule='approximate'.")
        self.store, self.token = store, settings["token"]
        # Setting from which the rule's bounds were computed.
        self._rule_bounds = settings.get("bounds")
        bounds = declared_bounds(self._rule_bounds)
        self.rule = Rule(settings["rule"], settings["epsilon"], bounds, settings["tol"], delta=delta)
        self.reset()

    def reset(self) -> None:
        """Forget all records that were read, and the lock, which another thread may have held at a fork."""
        self.lock: Any = threading.RLock()
        self.forget()

    def forget(self) -> None:
        self.cache = LedgerCache()
        self.certified: dict[Fingerprint, tuple[float, float]] = {}

    @contextmanager
    def transaction(self, *, write: bool = False, settings: dict[str, Any] | None = None) -> Iterator[Connection]:
        """Begin a transaction that declares settings and reads new records; an error discards the cache."""
        with self.lock:
            before = self.rule, self._rule_bounds
            try:
                with self.store.transaction(write=write, settings=settings) as connection:
                    if settings:
                        # Another process may have declared other settings.
                        self.undeclared(settings)
                    stored = self.store.settings.get("bounds")
                    if stored != self._rule_bounds:
                        self.rule, self._rule_bounds = self.rule.over(declared_bounds(stored)), stored
                    self.cache.catch_up(connection)
                    yield connection
            except BaseException:
                self.rule, self._rule_bounds = before
                self.forget()
                raise

    def undeclared(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """Return the settings that are not declared yet; raise LedgerError if one has another declared value."""
        declared = self.store.settings
        for name, value in wanted.items():
            if declared.get(name, value) != value:
                shown = [declared_bounds(one) if name == "bounds" else one for one in (declared[name], value)]
                raise LedgerError(
                    f"The {name} of a ledger must not change: {self.store.name!r} has {name}={shown[0]!r}; "
                    f"got {shown[1]!r}."
                )
        return {name: value for name, value in wanted.items() if name not in declared}

    def prepared(self, wanted: dict[str, Any], key: Any = None) -> dict[str, Any]:
        """Return the settings that a call declares; raise an error if it must not begin, before it reads a value."""
        # Python's own error about a lone surrogate would contain the key.
        is_text = isinstance(key, str) and key.encode(errors="replace").decode() == key
        if key is not None and not (is_text and len(key) >= _SHORTEST_KEY):
            raise ValueError(
                f"idempotency_key must be an unguessable string of at least {_SHORTEST_KEY} characters, such as "
                "uuid.uuid4().hex."
            )
        new = self.undeclared(wanted)
        self.store.check_open()
        return new

    def declare(self, settings: dict[str, Any]) -> None:
        new = self.prepared(settings)
        if new:
            self.store.retry(partial(self._declare, new))

    def _declare(self, new: dict[str, Any]) -> None:
        with self.transaction(write=True, settings=new):
            pass

    def losses_of(self, people: list[Identity]) -> Floats:
        """Return a certified upper bound on each person's loss."""
        with self.lock:
            with self.transaction():
                numbers = self.cache.numbers(people)
            return certified_losses(self.store, self.cache, self.rule, numbers, self.certified)[:, 1]

    def check_query(self, query: Query) -> None:
        """Raise LedgerError if the ledger's queries are about another domain, or the part has other codes."""
        asked = self.cache.queries
        if isinstance(query, ReleaseQuery):
            known = [one for one in asked if isinstance(one, ReleaseQuery) and one.part == query.part]
            if query.part is not None and any(one.n_classes != query.n_classes for one in known):
                raise LedgerError(
                    f"The part {query.part!r} of a record has {known[0].n_classes} codes in this ledger; "
                    f"got {query.n_classes}."
                )
            return
        before = next((one for one in asked if not isinstance(one, ReleaseQuery)), query)
        if before is not query and _domain(before) != _domain(query):
            raise LedgerError(
                f"All queries of a ledger must have one domain: {self.store.name!r} has queries over "
                f"{_domain(before)}; got a query over {_domain(query)}."
            )
        if isinstance(query, FiniteQuery) or self.rule.name == "basic":
            return
        bounds = self.rule.bounds
        if bounds is None:
            raise LedgerError(
                f"A ledger with rule={self.rule.name!r} needs bounds before the first query: declare them."
            )
        n_features = bounds.n_features if isinstance(bounds, Domain) else np.size(bounds[0])
        # A single interval fits any number of features.
        if n_features != query.n_features and (isinstance(bounds, Domain) or isinstance(bounds[0], list)):
            raise self.store.error(f"has bounds for {n_features} features; got a query with {query.n_features}.")

    def decided(
        self, undecided: dict[Fingerprint, History], query: Query, cache: LedgerCache, workers: Workers
    ) -> dict[Fingerprint, bool]:
        """Decide for each history whether it may have one more answer."""
        if cache.table is None:
            cache.table = self.rule.table_for(query)
        if not undecided:
            return {}
        after = np.full((len(undecided), n_bounds(query)), np.inf)
        histories = list(undecided.values())
        found = decide(self.rule, cache.queries, histories, query, table=cache.table, workers=workers, after=after)
        cache.remember_certified_losses(query, list(undecided), after)
        return dict(zip(undecided, found, strict=True))


def _domain(query: RegressionQuery | ClassQuery | SoftmaxQuery | FiniteQuery) -> str:
    return f"{query.n_points} points" if isinstance(query, FiniteQuery) else f"{query.n_features} features"
