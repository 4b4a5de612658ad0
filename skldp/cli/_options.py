"""What the commands share: parsing of options, and errors in one line with exit code 2."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from skldp.estimators._validation import check_epsilon
from skldp.study._catalogue import FEATURE_MECHANISMS, takes_delta
from skldp.study._datasets import StudyInputError

__all__ = ["delta_option", "one_line_errors", "parse_epsilons", "parse_names", "writable"]


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


def delta_option(name: str, delta: float | None) -> dict[str, float]:
    """Give the delta to a mechanism that has one.

    Parameters
    ----------
    name : str
    delta : float or None
        None leaves the mechanism its own.

    Returns
    -------
    dict
        With "delta", or empty.

    Raises
    ------
    StudyInputError
        If the mechanism is always pure.
    """
    if delta is None:
        return {}
    if not takes_delta(name):
        raise StudyInputError(f"--delta is for {', '.join(filter(takes_delta, FEATURE_MECHANISMS))}; {name} has none.")
    return {"delta": delta}


def writable(path: Path, *endings: str) -> Path:
    """Check that a file can be written where it is asked for, before hours of work.

    Parameters
    ----------
    path : Path
    *endings : str
        Those that its name may have; any, if none are given.

    Returns
    -------
    Path
        The same.

    Raises
    ------
    StudyInputError
        If its directory does not exist, it is a directory itself, or its name has another ending.
    """
    if endings and path.suffix.lower() not in endings:
        raise StudyInputError(f"The name of the file must end with {' or '.join(endings)}. Got {path} instead.")
    if path.is_dir() or not path.parent.is_dir():
        raise StudyInputError(f"Cannot write {path}: its directory must exist and it must not be one.")
    return path
