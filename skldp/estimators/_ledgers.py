"""Ledger of an estimator that asks people: ids in X, workers, and progress.

Without a given ledger, an estimator and all its clones share ledgers in memory, which nothing copies.
"""

import secrets
import threading
import weakref
from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.base import BaseEstimator

from skldp._progress import Progress
from skldp.accounting.ledger._privacy_ledger import PrivacyLedger
from skldp.accounting.ledger._records import row_identities
from skldp.estimators._validation import warn
from skldp.exceptions import LedgerError, RowIdentityWarning
from skldp.laws._person_ids import distinct_ids


def joblib_workers(n_jobs: int | None, *, show: bool = False) -> Callable[..., Any]:
    """Return a map over histories by joblib's workers, which can show its progress."""

    def workers(function, items):
        found = Parallel(n_jobs=n_jobs, return_as="generator" if show else "list")(map(delayed(function), items))
        return Progress("groups of histories certified", len(items), show=show).track(found)

    return workers


_ID_SOURCES = (
    "pass ids to query, predict or score; or name a column of X, or its index, with BayesianFilter(ids=...); or "
    "simulate without a ledger"
)


class LedgerMixin(BaseEstimator):
    """Mix-in of an estimator that asks people under its ledger, or one in memory for each set of features."""

    def _people(self, X, ids):
        """Return the features of X, and its ids or None."""
        X, in_X = split_ids(X, self.ids)
        if ids is not None and in_X is not None:
            raise ValueError(f"Ids must come once; got them as an argument and in X, where ids={self.ids!r} says.")
        ids = integer_ids(in_X) if ids is None else ids
        if ids is not None:
            return X, distinct_ids(ids)
        if self.ids is not None:
            raise ValueError(f"X must have a column or an index of ids; got X without ids={self.ids!r}.")
        if self.ledger is not None:
            raise ValueError(
                f"With a ledger people need ids, since budgets are kept by name: {_ID_SOURCES}; got no ids."
            )
        warn(
            "Without ids every row is a person of its own, in a simulation in memory: a row that was scaled, rounded "
            "or converted is a new person, with a new budget. For real people pass ids to query, predict or score, or "
            "name a column of X, or its index, with BayesianFilter(ids=...).",
            RowIdentityWarning,
        )
        return X, None

    def _find_ledger(self):
        if self.ledger is None:
            own = self._own_ledgers().get(
                tuple(getattr(self, "feature_names_in_", [self.n_features_in_])),
                epsilon=self.epsilon if self.total_epsilon is None else self.total_epsilon,
                rule=self.rule,
                tol=self.tol,
            )
            return self._same_as_before(own)
        defaults = {"total_epsilon": None, "rule": "bayesian", "tol": 1e-3}
        for name, default in defaults.items():
            wanted, has = getattr(self, name), getattr(self.ledger, name.removeprefix("total_"))
            if wanted not in (default, has):
                raise LedgerError(f"A ledger brings its own {name}: {self.ledger} has {has!r}; got {wanted!r}.")
        return self._same_as_before(self.ledger)

    def _same_as_before(self, ledger):
        before = getattr(self, "ledger_", ledger)
        if before is not ledger and any(map(before.was_asked, self._queries)):
            raise LedgerError(
                f"The filter has asked people with {before}: it stays with it, because with another ledger their "
                f"budgets would start again; got {ledger}. Clone the filter for another population."
            )
        return ledger

    def _check_same_ledger(self):
        same = self.ledger_ in self._own_ledgers() if self.ledger is None else self.ledger_ is self.ledger
        if not same:
            raise LedgerError(
                f"The filter was fitted with {self.ledger_}: fit it again; got {self.ledger or 'no ledger'}."
            )

    def _own_ledgers(self):
        return self.__dict__.setdefault("_own", OwnLedgers())

    def __sklearn_clone__(self):
        copy = super().__sklearn_clone__()
        copy._own = self._own_ledgers()
        return copy

    def __getstate__(self):
        # A copy made before the first fit shares the budgets as well.
        own = {"_own": self._own_ledgers()} if self.ledger is None else {}
        return {name: value for name, value in super().__getstate__().items() if name != "_own"} | own


_BY_TOKEN: "weakref.WeakValueDictionary[str, OwnLedgers]" = weakref.WeakValueDictionary()


def _by_token(token):
    if token not in _BY_TOKEN:
        raise LedgerError(
            "A BayesianFilter without a ledger keeps its budgets in the memory of one process and cannot be pickled to "
            "another, where the same budgets would be spent again. Give it one on a file: "
            "ledger=PrivacyLedger(..., path='budgets.ledger')."
        )
    return _BY_TOKEN[token]


class OwnLedgers:
    """Ledgers in memory, one for each set of features."""

    # Copies and clones of the estimator share them, so that cross-validation and searches spend no budget twice.

    def __init__(self):
        self._token = secrets.token_hex(16)
        self._lock = threading.Lock()
        self._ledgers = {}
        self._of_names = None
        # Never in a pickle, a file or the ledger that holds the hashes.
        self._row_key = secrets.token_bytes(32)
        _BY_TOKEN[self._token] = self

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return _by_token, (self._token,)

    def __contains__(self, ledger):
        return any(ledger is own for own in self._ledgers.values())

    def row_identities(self, X):
        """Return keyed hashes of rows as ids, for the ledgers of this family only."""
        return row_identities(X, self._row_key)

    def keep_names(self, ledger):
        """Record that this ledger has people with ids; raise LedgerError if another one has."""
        with self._lock:
            self._of_names = self._of_names or ledger
        if self._of_names is not ledger:
            raise LedgerError(
                "A BayesianFilter without a ledger, and all its clones, ask people with ids about the same features "
                "only, because others would start new budgets. To ask about others, make a new BayesianFilter "
                "for other people."
            )

    def get(self, features, *, epsilon, rule, tol):
        """Return the ledger of records with these features, by names or number."""
        settings = {"epsilon": float(epsilon), "rule": rule, "tol": float(tol)}
        with self._lock:
            if features not in self._ledgers:
                self._ledgers[features] = PrivacyLedger(**settings)
            ledger = self._ledgers[features]
        made = {name: getattr(ledger, name) for name in settings}
        if made != settings:
            raise LedgerError(
                "A BayesianFilter without a ledger shares one budget per person with all its clones, and its settings "
                f"never change: it was made with {made}; got {settings}. To compare budgets, pass a ledger for "
                "each."
            )
        return ledger


# Integers below this are exact in single precision, and larger numbers do not round below it.
_WHOLE_IN_SINGLE = 2.0**24


def split_ids(X, where):
    """Split the table X into features and ids. Shapes: `X` (n_samples, n_columns)."""
    if where is None:
        return X, None
    if isinstance(where, Integral):
        return _split_position(X, int(where))
    if not hasattr(X, "columns"):
        raise TypeError(f"ids={where!r} is the name of a column or an index of a DataFrame; got a {type(X).__name__}.")
    names = list(X.columns)
    if names.count(where) > 1:
        raise ValueError(f"ids={where!r} must name one column; got X with {names.count(where)} columns of that name.")
    levels = list(getattr(getattr(X, "index", None), "names", []))
    if where in names and where in levels:
        raise ValueError(f"ids={where!r} must name a column or an index of X; got X where it names both.")
    if where in names:
        return _without(X, names.index(where)), X[where]
    return X, X.index.get_level_values(where) if where in levels else None


def integer_ids(ids):
    """Convert ids in an array of floats to integers; return others unchanged."""
    if not isinstance(ids, np.ndarray) or ids.dtype.kind != "f":
        return ids
    exact = (np.abs(ids) < _WHOLE_IN_SINGLE) & (ids == np.floor(ids))
    if not exact.all():
        raise ValueError(
            "Ids in an array of floats must be whole numbers below 2**24, since larger ones change in single "
            f"precision: use a DataFrame, or pass ids; got another one at position {int(np.argmin(exact))} (counted "
            "from 0)."
        )
    return ids.astype(np.int64)


def _split_position(X, position):
    if sparse.issparse(X):
        return X, None
    if not hasattr(X, "columns") and not isinstance(X, np.ndarray):
        # numpy would turn numbers in a list with strings into strings.
        X = np.asarray(X, dtype=object)
    if len(X.shape) != 2:
        return X, None
    if position >= X.shape[1]:
        raise ValueError(f"ids={position} must be the position of a column of X; got X with {X.shape[1]} columns.")
    if hasattr(X, "iloc"):
        return _without(X, position), X.iloc[:, position]
    return _without(X, position), X[:, position]


def _without(X, position):
    kept = [column for column in range(X.shape[1]) if column != position]
    return X.iloc[:, kept] if hasattr(X, "iloc") else X[:, kept]
