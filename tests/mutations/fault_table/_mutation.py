"""What a fault is, and the tests that several tables name."""

from typing import NamedTuple

__all__ = ["Mutation"]


class Mutation(NamedTuple):
    """One fault.

    Parameters
    ----------
    path : str
        Below ``skldp/``.
    old, new : str
        `old` occurs once in the file.
    tests : str
        What must go red, as pytest takes it, below ``tests/``; several are separated by blanks.
    survives : str, default=""
        Why no test can be expected to see it.
    needs : str, default=""
        Modules without which its tests are skipped.
    """

    path: str
    old: str
    new: str
    tests: str
    survives: str = ""
    needs: str = ""


OR_MISSING = "mechanisms/test_number_or_missing.py"
COLLECTOR = "collection/test_collector.py"
HITTERS = "collection/test_heavy_hitters.py"
CATEGORIES = "mechanisms/test_sampled_categories.py"
NUMBERS = "mechanisms/test_sampled_numbers.py"
SPHERE = "mechanisms/test_sphere_precision.py"
SOFTMAX = "accounting/test_softmax_query.py"
PARTS = "accounting/test_parts.py"
ERASED = "accounting/test_ledger_erasing.py"
DRIVER = "sqlalchemy psycopg"
CHARGED = (
    "accounting/test_charges.py accounting/test_units.py accounting/test_parts.py accounting/test_deltas.py "
    "accounting/test_charges_verified.py"
)
SPARSE = "mechanisms/test_sparse_rows.py"
SHUFFLED = "mechanisms/test_shuffling.py accounting/test_shuffle.py"
