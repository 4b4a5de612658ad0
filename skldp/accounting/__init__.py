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
from skldp.accounting._ledger.privacy_ledger import PrivacyLedger
from skldp.accounting._ledger.reader import LedgerReader, ledger_report
from skldp.accounting._ledger.releasing import LedgerRelease
from skldp.accounting._ledger.store import admit_tenant
from skldp.accounting._query import FiniteQuery, Query, RegressionQuery, ReleaseQuery, query_from_json
from skldp.accounting._shuffle import shuffled, shuffled_closed_form

__all__ = [
    "ApproximateBayesianPrivacyFilter",
    "BasicPrivacyFilter",
    "BayesianPrivacyFilter",
    "FiniteQuery",
    "LedgerReader",
    "LedgerRelease",
    "LossBounds",
    "PrivacyFilter",
    "PrivacyLedger",
    "Query",
    "RegressionQuery",
    "ReleaseQuery",
    "SimplifiedBayesianPrivacyFilter",
    "admit_tenant",
    "advanced_composition",
    "g_leakage_bound",
    "ledger_report",
    "query_from_json",
    "realized_loss",
    "shuffled",
    "shuffled_closed_form",
]
