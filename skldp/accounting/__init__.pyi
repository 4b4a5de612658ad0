from skldp.accounting._class_query import ClassQuery, SoftmaxQuery
from skldp.accounting._filters import (
    ApproximateBayesianPrivacyFilter,
    BayesianPrivacyFilter,
    Household,
    SimplifiedBayesianPrivacyFilter,
)
from skldp.accounting._learned import Belief, learning_limit, loss_history
from skldp.accounting._regression_query import RegressionQuery
from skldp.accounting.ledger._privacy_ledger import PrivacyLedger
from skldp.accounting.ledger._reader import ledger_report
from skldp.accounting.ledger._store import admit_tenant
from skldp.accounting.losses._realized_loss import g_leakage_bound, realized_loss
from skldp.mechanisms._finite_query import FiniteQuery
from skldp.shuffle._shuffled import shuffled, shuffled_closed_form

__all__ = [
    "ApproximateBayesianPrivacyFilter",
    "BayesianPrivacyFilter",
    "Belief",
    "ClassQuery",
    "FiniteQuery",
    "Household",
    "PrivacyLedger",
    "RegressionQuery",
    "SimplifiedBayesianPrivacyFilter",
    "SoftmaxQuery",
    "admit_tenant",
    "g_leakage_bound",
    "learning_limit",
    "ledger_report",
    "loss_history",
    "realized_loss",
    "shuffled",
    "shuffled_closed_form",
]
