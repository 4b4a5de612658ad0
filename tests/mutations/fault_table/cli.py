"""Faults of cli."""

from mutations.fault_table._mutation import Mutation

__all__ = ["MUTATIONS"]

MUTATIONS = [
    Mutation("cli/__init__.py", " if error.filename else str(error)", "", "test_cli.py"),
    Mutation(
        "cli/_releases.py",
        "    if any(is_missing(cell) for cell in cells):",
        "    if False:",
        "cli/test_policies.py",
    ),
    Mutation("cli/_releases.py", "    check_secret(policy, key, ids)\n", "    pass\n", "cli/test_policies.py"),
    Mutation(
        "cli/_releases.py",
        "        part.unlink(missing_ok=True)",
        "        part.exists()",
        "cli/test_policies.py",
    ),
    Mutation(
        "cli/_releases.py",
        "        os.replace(part, output)\n    finally:",
        "    finally:\n        os.replace(part, output)",
        "cli/test_policies.py",
    ),
]
