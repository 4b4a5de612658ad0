"""The command line: ``skldp study``, ``skldp guarantee`` and the other commands, one module each."""

import shlex
import sys

__all__ = ["main"]


def main(arguments=None):
    """Run the command line.

    Parameters
    ----------
    arguments : list of str, default=None
        None takes those of the process.
    """
    try:
        import rich  # noqa: F401 -- only asked whether it is there, before the commands import it
        import typer  # noqa: F401
    except ImportError:
        print('The command line needs typer and rich: pip install "skldp[study]".', file=sys.stderr)
        raise SystemExit(2) from None
    from skldp.cli._app import app

    arguments = sys.argv[1:] if arguments is None else list(arguments)
    # A report shows the command that made it.
    app(args=arguments, prog_name="skldp", obj=shlex.join(["skldp", *arguments]))
