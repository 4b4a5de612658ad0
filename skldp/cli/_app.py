"""The commands, put together. A new command is a module beside this one and a line here."""

from typing import Annotated

import typer

import skldp
from skldp.cli._audit import audit
from skldp.cli._federated import federated
from skldp.cli._guarantee import guarantee
from skldp.cli._ledger import ledger
from skldp.cli._study import study

__all__ = ["app"]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"skldp {skldp.__version__}")
        raise typer.Exit()


app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False)


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
app.command()(ledger)
