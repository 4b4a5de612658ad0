"""Faults that must each turn a test red: one changed line, and the tests that are there to see it.

Where a fault changes nothing that anybody can see, or nothing that matters for privacy, it says why it may survive.
"""

from mutations.fault_table import (
    accounting,
    bits,
    categories,
    cli,
    client,
    collection,
    estimators,
    laws,
    learning,
    ledger,
    losses,
    mechanisms,
    noise,
    numbers,
    package,
    study,
    vectors,
)
from mutations.fault_table._mutation import Mutation

__all__ = ["MUTATIONS", "Mutation"]

MUTATIONS = [
    fault
    for table in (
        accounting,
        bits,
        categories,
        cli,
        client,
        collection,
        estimators,
        laws,
        learning,
        ledger,
        losses,
        mechanisms,
        noise,
        numbers,
        package,
        study,
        vectors,
    )
    for fault in table.MUTATIONS
]
