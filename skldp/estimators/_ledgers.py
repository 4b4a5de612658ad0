"""How an estimator asks: whom, under whose budgets, and with which workers.

The budgets are those of a given ledger, or its own, which all its clones share and nothing copies.
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

from skldp.accounting._ledger.identity import row_identities
from skldp.accounting._ledger.privacy_ledger import PrivacyLedger
from skldp.estimators._callbacks import TellsCallbacks
from skldp.exceptions import LedgerError

__all__ = ["ChoosesLedger", "OwnLedgers", "joblib_workers", "split_ids", "whole_numbers"]


def joblib_workers(
    n_jobs: int | None, *, show: bool = False, tell: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """Make what a ledger decides with about many histories: joblib's workers, and a bar on the terminal or notebook.

    Parameters
    ----------
    n_jobs : int or None
        As in joblib.
    show : bool, default=False
        Show the bar, while decisions come in.
    tell : callable, default=None
        Is handed the decisions as they come in, with their number, and hands them on.

    Returns
    -------
    callable
        Like `map`: takes a function and a list, and gives the function's results in order.

    Raises
    ------
    ImportError
        If rich is to show something and is not installed.
    """
    watchers = [watch for watch in (_progress_bar() if show else None, tell) if watch is not None]

    def workers(function, items):
        parallel = Parallel(n_jobs=n_jobs, return_as="generator" if watchers else "list")
        found = parallel(delayed(function)(item) for item in items)
        for watch in watchers:
            found = watch(found, len(items))
        return found

    return workers


def _progress_bar():
    try:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        raise ImportError('verbose=True needs rich: pip install "skldp[study]".') from None

    def track(decisions, total):
        columns = TextColumn("certifying histories"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        with Progress(*columns) as bar:
            yield from bar.track(decisions, total=total)

    return track


class ChoosesLedger(TellsCallbacks, BaseEstimator):
    """Base of estimators that ask people under a ledger.

    It is the given one, or one in memory for each set of features, which all clones share. Such estimators have the
    parameters `epsilon`, `total_epsilon`, `ledger`, `rule`, `tol`, `n_jobs` and `verbose`, and `ledger_` once they are
    fitted, with all that they have ever been fitted to ask in `_queries`.
    """

    def _workers(self):
        tell = self._tell_of_decisions if self._has_callbacks() else None
        return joblib_workers(self.n_jobs, show=self.verbose, tell=tell)

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
                raise LedgerError(f"A ledger brings its own {name}: {self.ledger} has {has!r}. Got {wanted!r} instead.")
        return self._same_as_before(self.ledger)

    def _same_as_before(self, ledger):
        before = getattr(self, "ledger_", ledger)
        if before is not ledger and any(map(before.was_asked, self._queries)):
            raise LedgerError(
                f"The filter has asked people with {before}: it stays with it, because with another ledger their "
                f"budgets would begin anew. Got {ledger} instead. Clone the filter for another population."
            )
        return ledger

    def _check_same_ledger(self):
        same = self.ledger_ in self._own_ledgers() if self.ledger is None else self.ledger_ is self.ledger
        if not same:
            raise LedgerError(
                f"The filter was fitted with {self.ledger_}: fit it again. Got {self.ledger or 'no ledger'} instead."
            )

    def _own_ledgers(self):
        return self.__dict__.setdefault("_own", OwnLedgers())

    def __sklearn_clone__(self):
        copy = super().__sklearn_clone__()
        copy._own = self._own_ledgers()
        return copy

    def __getstate__(self):
        # A copy made before the first fit shares the budgets as well. With a ledger there are none to share.
        own = {"_own": self._own_ledgers()} if self.ledger is None else {}
        return {name: value for name, value in super().__getstate__().items() if name != "_own"} | own


_BY_TOKEN: "weakref.WeakValueDictionary[str, OwnLedgers]" = weakref.WeakValueDictionary()


def _found_again(token):
    if token not in _BY_TOKEN:
        raise LedgerError(
            "A BayesianFilter without a ledger keeps its budgets in the memory of one process and cannot be pickled to "
            "another, where the same budgets would be spent again. Give it one on a file: "
            "ledger=PrivacyLedger(..., path='budgets.ledger')."
        )
    return _BY_TOKEN[token]


class OwnLedgers:
    """Ledgers in memory, one for each set of features: a row with other columns is another record.

    Copying and cloning the estimator leads to the same ledgers, so that neither cross-validation nor a grid search
    spends a budget twice.
    """

    def __init__(self):
        self._token = secrets.token_hex(16)
        self._lock = threading.Lock()
        self._ledgers = {}
        self._of_names = None
        # Only here, where the people are rows: never in a pickle, a file or the ledger that holds the hashes.
        self._row_key = secrets.token_bytes(32)
        _BY_TOKEN[self._token] = self

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return _found_again, (self._token,)

    def __contains__(self, ledger):
        return any(ledger is own for own in self._ledgers.values())

    def row_identities(self, X):
        """Ids of people who are their rows, for the ledgers of this family and no others."""
        return row_identities(X, self._row_key)

    def keep_names(self, ledger):
        """Remember that people are known by name in this ledger.

        Raises
        ------
        LedgerError
            If they are in another one of the family, since a person's name says nothing of features: there would be
            a second budget.
        """
        with self._lock:
            self._of_names = self._of_names or ledger
        if self._of_names is not ledger:
            raise LedgerError(
                "A BayesianFilter without a ledger, and all its clones, ask people with ids about the same features "
                "alone, because others would begin their budgets anew. To ask about others, make a new BayesianFilter "
                "for other people."
            )

    def get(self, features, *, epsilon, rule, tol):
        """Find or make the ledger of records with these features: their names, or how many there are.

        Raises
        ------
        LedgerError
            If it was made with other settings.
        """
        settings = {"epsilon": float(epsilon), "rule": rule, "tol": float(tol)}
        with self._lock:
            if features not in self._ledgers:
                self._ledgers[features] = PrivacyLedger(**settings)
            ledger = self._ledgers[features]
        made = {name: getattr(ledger, name) for name in settings}
        if made != settings:
            raise LedgerError(
                "A BayesianFilter without a ledger shares one budget per person with all its clones, and its settings "
                f"never change: it was made with {made}. Got {settings} instead. To compare budgets, pass a ledger for "
                "each."
            )
        return ledger


# Every whole number below this is exact in single precision, and none that is rounded to single precision falls below.
_WHOLE_IN_SINGLE = 2.0**24


def split_ids(X, where):
    """Split the table X into what a model sees and the ids of its rows.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_columns)
        A pandas or polars DataFrame where `where` is a name.
    where : None, int or str
        The position of the column of ids, or its name, or in pandas the name of an index level.

    Returns
    -------
    features : array-like
        `X` without the column; `X` itself where the ids are in the index, or there are none.
    ids : iterable or None
        As they are in X; None where it has no such column or index: public rows need none.

    Raises
    ------
    TypeError
        If `where` is a name and X is no DataFrame.
    ValueError
        If a position is outside of X, or a name is no single column or index.
    """
    if where is None:
        return X, None
    if isinstance(where, Integral):
        return _split_position(X, int(where))
    if not hasattr(X, "columns"):
        raise TypeError(
            f"ids={where!r} is the name of a column or an index of a DataFrame. Got a {type(X).__name__} instead."
        )
    names = list(X.columns)
    if names.count(where) > 1:
        raise ValueError(f"ids={where!r} must name one column. Got X with {names.count(where)} columns of that name.")
    levels = list(getattr(getattr(X, "index", None), "names", []))
    if where in names and where in levels:
        raise ValueError(f"ids={where!r} must name a column or an index of X. Got X where it names both.")
    if where in names:
        return _without(X, names.index(where)), X[where]
    return X, X.index.get_level_values(where) if where in levels else None


def whole_numbers(ids):
    """Read ids off an array that can hold nothing but floats; any others are given back.

    Parameters
    ----------
    ids : iterable or None

    Returns
    -------
    iterable or None

    Raises
    ------
    ValueError
        If an array of floats holds anything but whole numbers below 2^24, which all floats hold exactly.
    """
    if not isinstance(ids, np.ndarray) or ids.dtype.kind != "f":
        return ids
    exact = (np.abs(ids) < _WHOLE_IN_SINGLE) & (ids == np.floor(ids))
    if not exact.all():
        raise ValueError(
            "Ids in an array of floats must be whole numbers below 2**24, since larger ones change in single "
            f"precision: use a DataFrame, or pass ids. Got another one at position {int(np.argmin(exact))} (counted "
            "from 0)."
        )
    return ids.astype(np.int64)


def _split_position(X, position):
    if sparse.issparse(X):
        return X, None
    if not hasattr(X, "columns") and not isinstance(X, np.ndarray):
        # Of a list of lists with strings, numpy would make strings of the numbers as well.
        X = np.asarray(X, dtype=object)
    if len(X.shape) != 2:
        return X, None
    if position >= X.shape[1]:
        raise ValueError(f"ids={position} must be the position of a column of X. Got X with {X.shape[1]} columns.")
    if hasattr(X, "iloc"):
        return _without(X, position), X.iloc[:, position]
    return _without(X, position), X[:, position]


def _without(X, position):
    kept = [column for column in range(X.shape[1]) if column != position]
    return X.iloc[:, kept] if hasattr(X, "iloc") else X[:, kept]
