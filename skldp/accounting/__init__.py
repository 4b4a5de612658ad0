"""Floor 2: many releases about one person."""

from skldp.accounting._composition import advanced_composition
from skldp.accounting._extrema.realized_loss import LossBounds, g_leakage_bound, realized_loss
from skldp.accounting._filters import (
    ApproximateBayesianPrivacyFilter,
    BasicPrivacyFilter,
    BayesianPrivacyFilter,
    PrivacyFilter,
    SimplifiedBayesianPrivacyFilter,
)
from skldp.accounting._household import Household
from skldp.accounting._learned import Belief, knowledge_gain, learning_limit, realized_g_leakage, sharpest_belief
from skldp.accounting._ledger.dry_run import LedgerPreview
from skldp.accounting._ledger.privacy_ledger import PrivacyLedger
from skldp.accounting._ledger.reader import LedgerReader, ledger_report
from skldp.accounting._ledger.releasing import LedgerRelease
from skldp.accounting._ledger.store import admit_tenant
from skldp.accounting._odometer import LossHistory, Utilization, budget_utilization, loss_history
from skldp.accounting._query import (
    ClassQuery,
    FiniteQuery,
    Query,
    RegressionQuery,
    ReleaseQuery,
    SoftmaxQuery,
    query_from_json,
)
from skldp.accounting._shuffle import shuffled, shuffled_closed_form

__all__ = [
    "ApproximateBayesianPrivacyFilter",
    "BasicPrivacyFilter",
    "BayesianPrivacyFilter",
    "Belief",
    "ClassQuery",
    "FiniteQuery",
    "Household",
    "LedgerPreview",
    "LedgerReader",
    "LedgerRelease",
    "LossBounds",
    "LossHistory",
    "PrivacyFilter",
    "PrivacyLedger",
    "Query",
    "RegressionQuery",
    "ReleaseQuery",
    "SimplifiedBayesianPrivacyFilter",
    "SoftmaxQuery",
    "Utilization",
    "admit_tenant",
    "advanced_composition",
    "budget_utilization",
    "g_leakage_bound",
    "knowledge_gain",
    "learning_limit",
    "ledger_report",
    "loss_history",
    "query_from_json",
    "realized_g_leakage",
    "realized_loss",
    "sharpest_belief",
    "shuffled",
    "shuffled_closed_form",
]
