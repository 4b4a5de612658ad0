"""Which ledger an estimator's people are protected by, and that copies of the estimator stay with it."""

from sklearn.base import BaseEstimator

from skldp.estimators.own_ledgers import OwnLedgers
from skldp.exceptions import LedgerError

__all__ = ["ChoosesLedger"]


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
