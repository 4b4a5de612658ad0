"""``skldp ledger``: what a file of answers says about budgets, and whether every decision in it was right."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from skldp.accounting import ledger_report
from skldp.cli._options import one_line_errors
from skldp.estimators._ledgers import joblib_workers
from skldp.exceptions import LedgerError

__all__ = ["ledger"]

_SETTINGS = ("epsilon", "rule", "bounds", "people", "answers", "refused", "exhausted")


def ledger(
    file: Annotated[Path, typer.Argument(help="The ledger.")],
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Check every decision again from the raw answers; exit code 1 if one fails."),
    ] = False,
    jobs: Annotated[int | None, typer.Option(help="Processes; -1 takes all cores.")] = None,
) -> None:
    """Report what was asked, answered and refused, and what is left of the budgets."""
    console = Console()
    with one_line_errors(LedgerError, OSError, ValueError):
        found = ledger_report(file, verify=verify, workers=joblib_workers(jobs))
    for name in _SETTINGS:
        console.print(f"{name}: {found[name]}", highlight=False, markup=False)
    for name in ("loss_quantiles", "remaining_quantiles"):
        if found[name]:
            shares = ", ".join(f"{share}: {value:.4g}" for share, value in dict(found[name]).items())
            console.print(f"{name.replace('_', ' ')}: {shares}", highlight=False, markup=False)
    if found["queries"]:
        table = Table(title="Queries")
        columns = [name for name in found["queries"][0] if name not in ("key", "first_asked")]
        for name in columns:
            table.add_column(name.replace("_", " "), justify="right")
        for row in found["queries"]:
            table.add_row(*(f"{row[name]}" for name in columns))
        console.print(table)
    if verify:
        verification = found["verification"]
        for problem in verification["problems"]:
            console.print(f"problem: {problem}", highlight=False, markup=False)
        console.print("verified: every decision was right" if verification["ok"] else "NOT verified", highlight=False)
        if not verification["ok"]:
            raise typer.Exit(1)
