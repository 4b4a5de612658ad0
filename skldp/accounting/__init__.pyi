from skldp.accounting._filters import BayesianPrivacyFilter
from skldp.accounting._regression_query import RegressionQuery
from skldp.accounting.ledger._reader import ledger_report
from skldp.accounting.losses._realized_loss import g_leakage_bound, realized_loss
from skldp.mechanisms._finite_query import FiniteQuery
from skldp.shuffle._shuffled import shuffled, shuffled_closed_form

__all__ = [
    "BayesianPrivacyFilter",
    "FiniteQuery",
    "RegressionQuery",
    "g_leakage_bound",
    "ledger_report",
    "realized_loss",
    "shuffled",
    "shuffled_closed_form",
]
