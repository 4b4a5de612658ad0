"""Command line: ``skldp study``, ``skldp guarantee`` and the other commands."""

import shlex
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path

from skldp._texts import escaped

__all__ = ["main"]

_HIDDEN_TEXT = (
    "Another library raised {}; its text is not printed, because it may contain a value. "
    "python -X dev -m skldp shows it."
)


def main(arguments: Iterable[str] | None = None) -> None:
    """Run the command line and exit. An error about the input is one line on stderr, with exit code 2.

    The text of an error that another library raised may contain a cell and is not printed.

    Parameters
    ----------
    arguments : iterable of str, default=None
        None takes those of the process.
    """
    try:
        import rich  # noqa: F401 -- fails early if it is missing
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
        # Other libraries have other messages.
        message = f"{there} {error.filename}." if error.filename else str(error)
    except (LedgerError, ImportError, OSError) as error:
        message = str(error)
    except Exception as error:
        if hasattr(error, "format_message"):
            # An error of typer about an option; its class has no public name in all versions.
            message = error.format_message()
        elif sys.flags.dev_mode:
            raise
        else:
            message = str(error) if _is_own(error) else _HIDDEN_TEXT.format(type(error).__name__)
    print(f"skldp: {escaped(' '.join(message.split()))}", file=sys.stderr)
    raise SystemExit(2)


def _is_own(error: BaseException) -> bool:
    """Return whether skldp raised the error, by its class or by a raise statement in the source of skldp."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    # An error of compiled code ends at our call, which is no raise statement.
    raised_here = (last.line or "").startswith("raise ") and Path(__file__).parents[1] in Path(last.filename).parents
    return type(error).__module__.startswith("skldp.") or raised_here
