"""Faults that must each turn a test red: one changed line, and the tests that are there to see it.

Each module beside this one has those of a part of the package. Where a fault changes nothing that anybody can see, or
nothing that matters for privacy, it says why it may survive.
"""

from importlib import import_module
from pathlib import Path

from mutations.fault_table._mutation import Mutation

__all__ = ["MUTATIONS", "Mutation"]

MUTATIONS = [
    fault
    for table in sorted(Path(__file__).parent.glob("[!_]*.py"))
    for fault in import_module(f"{__name__}.{table.stem}").MUTATIONS
]
