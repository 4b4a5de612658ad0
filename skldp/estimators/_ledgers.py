"""How an estimator asks: under whose budgets, and with which workers.

The budgets are those of a given ledger, or its own, which all its clones share and nothing copies.
"""

import secrets
import threading
import weakref
from collections.abc import Callable
from typing import Any

from joblib import Parallel, delayed
from sklearn.base import BaseEstimator

from skldp.accounting._ledger.identity import row_identities
from skldp.accounting._ledger.privacy_ledger import PrivacyLedger
from skldp.exceptions import LedgerError

__all__ = ["ChoosesLedger", "OwnLedgers", "joblib_workers"]


def joblib_workers(n_jobs: int | None, *, show: bool = False) -> Callable[..., Any]:
    """Make what a ledger decides with about many histories: joblib's workers, and a bar on the terminal or notebook.

    Parameters
    ----------
    n_jobs : int or None
        As in joblib.
    show : bool, default=False
        Show the bar, while decisions come in.

    Returns
    -------
    callable
        Like `map`: takes a function and a list, and gives the function's results in order.

    Raises
    ------
    ImportError
        If rich is to show something and is not installed.
    """
    track = _progress_bar() if show else None

    def workers(function, items):
        parallel = Parallel(n_jobs=n_jobs, return_as="list" if track is None else "generator")
        found = parallel(delayed(function)(item) for item in items)
        return found if track is None else track(found, len(items))

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


class ChoosesLedger(BaseEstimator):
    """Base of estimators that ask people under a ledger.

    It is the given one, or one in memory for each set of features, which all clones share. Such estimators have the
    parameters `epsilon`, `total_epsilon`, `ledger`, `rule` and `tol`, and `ledger_` once they are fitted, with all that
    they have ever been fitted to ask in `_queries`.
    """

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
