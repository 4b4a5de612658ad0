"""Commands by name, each imported when it is called."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer

import skldp
from skldp.cli import _names


class Command(NamedTuple):
    """Module and help line of a command or a group, before its import."""

    module: str
    line: str


COMMANDS = {
    "study": Command("_study", "Compare private models and mechanisms on a table."),
    "guarantee": Command("_mechanisms", "Print the stated and the exact epsilon of a mechanism."),
    "audit": Command("_mechanisms", "Test the epsilon of a mechanism by its outputs alone."),
    "policy": Command("_policies", "Make, show and check policies, which devices release by."),
    "release": Command("_reports", "Release a table by a policy: one report for each row."),
    "collect": Command("_reports", "Print estimates from the reports of a policy."),
    "ledger": Command("_reports", "Report what a ledger answered and which budgets are left."),
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


def app_of(arguments: Sequence[str]) -> Callable[..., Any]:
    """Return the app, with the called command imported."""
    # Without markup, help is plain text, and flags have no type.
    app = typer.Typer(pretty_exceptions_enable=False, add_completion=False, rich_markup_mode=None)
    app.callback()(_root)
    for name, command in COMMANDS.items():
        # Options come before the command, and take no values.
        if name != next((one for one in arguments if not one.startswith("-")), None):
            app.command(name, help=command.line)(_named_only)
            continue
        module = import_module(f"skldp.cli.{command.module}")
        called = getattr(module, name)
        if isinstance(called, typer.Typer):
            app.add_typer(called, name=name, help=command.line)
        else:
            app.command(name, epilog=module.EPILOGS[name])(called)
    root = typer.main.get_command(app)
    _name_values(root)
    return root


def _name_values(command: Any) -> None:
    """Name the values of options and arguments in capitals; typer would show Python types."""
    for one in command.params:
        if one.param_type_name == "argument":
            one.metavar = one.metavar or one.name.upper()
            shown = (one.metavar if one.required else f"[{one.metavar}]") + "..." * (one.nargs != 1)
            one.get_usage_pieces = lambda _, shown=shown: [shown]
            one.display_type_rich = lambda **_: ""
        elif not one.is_flag:
            one.metavar = one.metavar or _names.VALUES.get(one.name, "VALUE")
    for one in getattr(command, "commands", {}).values():
        _name_values(one)
