"""Faults of what all floors share."""

from mutations.fault_table._mutation import Mutation

__all__ = ["MUTATIONS"]

MUTATIONS = [
    Mutation("_tables.py", "{html.escape(text)}", "{text}", "mechanisms/test_guarantee.py"),
    Mutation("_arrays.py", "if not dated and array", "if array", "test_arrays.py"),
    Mutation("_arrays.py", "except (ValueError, TypeError, OverflowError):", "except TypeError:", "test_arrays.py"),
    Mutation("cli/__init__.py", '(last.line or "").startswith("raise ") and ', "", "cli/test_command_messages.py"),
]
