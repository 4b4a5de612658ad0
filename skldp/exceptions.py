"""Warnings and errors of the package."""

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from skldp._searches import is_said_first

__all__ = [
    "BudgetExhaustedError",
    "BudgetExhaustedWarning",
    "ChangedAfterFitError",
    "LearntDomainWarning",
    "LedgerError",
    "OutOfDomainWarning",
    "PrivacyGuaranteeWarning",
    "RepeatedReleaseWarning",
    "RowIdentityWarning",
    "SeededNoiseWarning",
    "TooFewPeopleWarning",
]

# Code whose calls a warning is not about.
_BETWEEN = {"skldp", "sklearn", "joblib"}
_IS_SILENT: ContextVar[bool] = ContextVar("is_silent", default=False)


class PrivacyGuaranteeWarning(UserWarning):
    """A published calibration does not give the epsilon it states; both figures are in the text."""


class SeededNoiseWarning(UserWarning):
    """Noise comes from a seed: repeatable, and no protection against whoever knows the seed."""


class OutOfDomainWarning(UserWarning):
    """Values outside the declared domain were moved into it; the text counts them."""


class LearntDomainWarning(UserWarning):
    """Classes or categories were learnt from private data; the text says how to declare them."""


class RowIdentityWarning(UserWarning):
    """People without ids are their rows: a simulation in memory, and no protection of anybody who has two rows."""


class RepeatedReleaseWarning(UserWarning):
    """What is executed again releases its rows again; the text says how it would be the same release."""


class TooFewPeopleWarning(UserWarning):
    """Too few people for anything to be learnt at the epsilon; the text says how many it takes."""


class BudgetExhaustedWarning(UserWarning):
    """Nobody's privacy budget admits a question; the text says why."""


class LedgerError(RuntimeError):
    """A privacy ledger cannot be used as asked; nothing was released."""


class BudgetExhaustedError(RuntimeError):
    """A person's privacy budget does not admit the release; nothing was released."""


class ChangedAfterFitError(ValueError, AttributeError):
    """A parameter that a release and its guarantee depend on was changed after fit; nothing was released.

    An AttributeError as well, as scikit-learn's NotFittedError is: what lists attributes goes on without the guarantee.
    """


@contextmanager
def without_warnings() -> Iterator[None]:
    """Warn of nothing, and keep nothing for said: what goes on is still to be told. For this package alone."""
    token = _IS_SILENT.set(True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        _IS_SILENT.reset(token)


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn of the line that called this package, through scikit-learn or not, once a search. For this package alone."""
    if _IS_SILENT.get() or not is_said_first(message):
        return
    level, frame = 2, inspect.currentframe()
    caller = frame.f_back if frame else None
    # A frame that holds itself is kept, with its callers and their rows, until the garbage collector comes by.
    del frame
    while caller and caller.f_back and caller.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        level, caller = level + 1, caller.f_back
    warnings.warn(message, category, stacklevel=level)
