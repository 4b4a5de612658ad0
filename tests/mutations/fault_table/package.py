"""Faults of what all floors share."""

from mutations.fault_table._mutation import Mutation

__all__ = ["MUTATIONS"]

MUTATIONS = [
    Mutation("_tables.py", "{html.escape(text)}", "{text}", "mechanisms/test_guarantee.py"),
    Mutation("_searches.py", "said.add(message)", "pass", "estimators/test_out_of_domain.py"),
    Mutation("_searches.py", "if candidate[0] or split[0] or", "if", "estimators/test_out_of_domain.py"),
]
