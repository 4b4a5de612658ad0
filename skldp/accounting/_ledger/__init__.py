"""The durable record of what every person has answered."""

from skldp.accounting._ledger.privacy_ledger import LedgerAnswers, PrivacyLedger
from skldp.accounting._ledger.reader import LedgerReader, ledger_report

__all__ = ["LedgerAnswers", "LedgerReader", "PrivacyLedger", "ledger_report"]
