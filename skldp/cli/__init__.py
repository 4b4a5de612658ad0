"""The command line: ``skldp study``, ``skldp guarantee`` and the other commands."""

import shlex
import sys
from collections.abc import Iterable

from skldp._texts import escaped

__all__ = ["main"]


def main(arguments: Iterable[str] | None = None) -> None:
    """Run the command line and exit. An error about the input is one line on stderr, with exit code 2.

    The line has the text of the error, as Python prints it. Only texts of skldp are free of values.

    Parameters
    ----------
    arguments : iterable of str, default=None
        None takes those of the process.
    """
    try:
        import rich  # noqa: F401 -- only asked whether it is there, before the commands import it
        import typer
    except ImportError:
        print('The command line needs typer and rich: pip install "skldp[study]".', file=sys.stderr)
        raise SystemExit(2) from None
    from skldp.cli._app import app_of
    from skldp.exceptions import LedgerError

    arguments = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    try:
        # A report shows the command that made it.
        command = shlex.join(["skldp", *arguments])
        raise SystemExit(app_of(arguments)(args=arguments, prog_name="skldp", obj=command, standalone_mode=False))
    except typer.Abort:
        message = "stopped"
    except (FileNotFoundError, FileExistsError) as error:
        there = "There is no file" if isinstance(error, FileNotFoundError) else "There is already a file"
        # Other libraries name it in their own words.
        message = f"{there} {error.filename}." if error.filename else str(error)
    except (LedgerError, ImportError, OSError, ValueError) as error:
        message = str(error) or type(error).__name__
    except Exception as error:
        # What typer says of an option; its class has no public name in all of its versions.
        if not hasattr(error, "format_message"):
            raise
        message = error.format_message()
    print(f"skldp: {escaped(' '.join(message.split()))}", file=sys.stderr)
    raise SystemExit(2)
