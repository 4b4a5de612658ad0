"""The commands, put together, and ``skldp ledger``. A new command is a function and a line at the end."""

from typing import Annotated

import typer
from rich.console import Console

import skldp
from skldp.accounting import ledger_report
from skldp.cli._federated import federated
from skldp.cli._mechanisms import audit, guarantee
from skldp.cli._options import rich_table
from skldp.cli._policies import policy_app
from skldp.cli._releases import collect, release
from skldp.cli._study import study
from skldp.estimators._ledgers import joblib_workers

__all__ = ["app"]

_SETTINGS = ("epsilon", "delta", "rule", "bounds", "head", "people", "answers", "refused", "exhausted")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"skldp {skldp.__version__}")
        raise typer.Exit()


app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Local differential privacy for scikit-learn, with the exact epsilon of every release."""


app.command()(study)
app.command()(guarantee)
app.command()(audit)
app.command()(federated)
app.add_typer(policy_app, name="policy")
app.command()(release)
app.command()(collect)


@app.command()
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
        console.print(f"{name}: {found[name]}")
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
            console.print(f"problem: {problem}")
        console.print("verified: every decision was right" if verification["ok"] else "NOT verified")
        if not verification["ok"]:
            raise typer.Exit(1)
