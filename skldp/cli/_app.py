"""Commands by name, each imported when it is called."""

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, NamedTuple

import typer

import skldp


class Command(NamedTuple):
    """Module and help line of a command or a group, before its import."""

    module: str
    line: str


COMMANDS = {
    "study": Command(
        "_study", "Train a linear model on private features and targets over a range of epsilon, and compare."
    ),
    "guarantee": Command(
        "_mechanisms",
        "Print the guarantee of a mechanism, or of a model that learns, at given sizes: stated beside exact.",
    ),
    "audit": Command(
        "_mechanisms",
        "Lower-bound the epsilon of a mechanism from its outputs alone; exit code 1 if a claim is refuted.",
    ),
    "policy": Command("_policies", "Make, show and check policies, the documents by which devices release records."),
    "release": Command(
        "_policies", "Release a table: one report for each row, without columns that the policy does not name."
    ),
    "collect": Command(
        "_policies", "Collect reports of a policy, each once, and print estimates with confidence intervals."
    ),
    "ledger": Command(
        "_policies", "Report the queries, answers and refusals of a ledger, and the budgets that are left."
    ),
}


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"skldp {skldp.__version__}")
        raise typer.Exit()


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Local differential privacy for scikit-learn, with the exact epsilon of every release."""


def _named_only() -> None:
    """Placeholder of a command that is not called."""


def app_of(arguments: Sequence[str]) -> typer.Typer:
    """Return the app, with the called command imported."""
    app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
    app.callback()(_root)
    for name, command in COMMANDS.items():
        # Options come before the command, and take no values.
        if name != next((one for one in arguments if not one.startswith("-")), None):
            app.command(name, help=command.line)(_named_only)
            continue
        called = getattr(import_module(f"skldp.cli.{command.module}"), name)
        if isinstance(called, typer.Typer):
            app.add_typer(called, name=name, help=command.line)
        else:
            app.command(name)(called)
    return app
