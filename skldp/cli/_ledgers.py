"""``skldp ledger``: what a ledger holds."""

from typing import Annotated

import typer
from rich.console import Console

from skldp.accounting import ledger_report
from skldp.cli._options import printable, rich_table
from skldp.estimators._ledgers import joblib_workers

__all__ = ["ledger"]

_SETTINGS = ("epsilon", "delta", "rule", "bounds", "head", "people", "answers", "refused", "exhausted")


def ledger(
    file: Annotated[str, typer.Argument(help="The ledger: a file, or the URL of a PostgreSQL database.")],
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Check every decision again from the raw answers; exit code 1 if one fails."),
    ] = False,
    jobs: Annotated[int | None, typer.Option(help="Processes; -1 takes all cores.")] = None,
    head: Annotated[
        str | None,
        typer.Option(help="A head that this report once showed: refuse a ledger that has lost anything since."),
    ] = None,
) -> None:
    """Report what was asked, answered and refused, and what is left of the budgets."""
    console = Console(highlight=False, markup=False)
    found = ledger_report(file, verify=verify, workers=joblib_workers(jobs), head=head)
    for name in _SETTINGS:
        # A head that a narrow terminal breaks in two would be none when it is given back.
        console.print(printable(f"{name}: {found[name]}"), soft_wrap=True)
    for name in ("loss_quantiles", "remaining_quantiles", "zcdp_quantiles"):
        if found[name] and (name != "zcdp_quantiles" or found["delta"] is not None):
            shares = ", ".join(f"{share}: {value:.4g}" for share, value in dict(found[name]).items())
            console.print(f"{name.replace('_', ' ')}: {shares}")
    if found["queries"]:
        columns = [name for name in found["queries"][0] if name not in ("key", "first_asked")]
        rows = [[f"{row[name]}" for name in columns] for row in found["queries"]]
        console.print(rich_table("Queries", [name.replace("_", " ") for name in columns], rows))
    if verify:
        verification = found["verification"]
        for problem in verification["problems"]:
            console.print(printable(f"problem: {problem}"))
        console.print("verified: every decision was right" if verification["ok"] else "NOT verified")
        if not verification["ok"]:
            raise typer.Exit(1)
