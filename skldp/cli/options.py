"""What the commands share: parsing of options, and errors in one line with exit code 2."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from skldp.estimators.validation import check_epsilon
from skldp.study.datasets import StudyInputError

__all__ = ["one_line_errors", "parse_epsilons", "parse_names", "writable"]


@contextmanager
def one_line_errors(*expected: type[Exception]) -> Iterator[None]:
    """Turn errors about the input into one line on stderr and exit code 2.

    Parameters
    ----------
    *expected : exception types
        Beside :class:`StudyInputError`.
    """
    expected = (StudyInputError, *expected)
    try:
        yield
    except expected as error:
        print(f"skldp: {' '.join(str(error).split())}", file=sys.stderr)
        raise typer.Exit(2) from None


def parse_epsilons(text: str) -> list[float]:
    """Read ``"0.5,1,2"``.

    Parameters
    ----------
    text : str

    Returns
    -------
    list of float
        Sorted, without repetitions.

    Raises
    ------
    StudyInputError
        If one is not a finite number > 0.
    """
    try:
        epsilons = sorted({float(part) for part in text.split(",")})
        for epsilon in epsilons:
            check_epsilon(epsilon)
    except ValueError:
        raise StudyInputError(f"Epsilons must be finite numbers > 0, with commas between. Got {text!r}.") from None
    return epsilons


def parse_names(text: str) -> list[str]:
    """Read ``"bitrand,bitrand-exact"``.

    Parameters
    ----------
    text : str

    Returns
    -------
    list of str
    """
    return list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def writable(path: Path) -> Path:
    """Check that a file can be written where it is asked for, before hours of work.

    Parameters
    ----------
    path : Path

    Returns
    -------
    Path
        The same.

    Raises
    ------
    StudyInputError
        If its directory does not exist, or it is a directory itself.
    """
    if path.is_dir() or not path.parent.is_dir():
        raise StudyInputError(f"Cannot write {path}: its directory must exist and it must not be one.")
    return path
