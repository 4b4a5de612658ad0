"""Warnings and errors of the package."""

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType

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


def within_a_search() -> bool:
    """Whether scikit-learn is fitting the same again and again: a search, or a cross-validation. For this package."""
    return _outermost_of_search() is not None


def _is_new(message: str) -> bool:
    """Whether a text is said for the first time in a search, or outside of one.

    Of fits that a search hands to other processes or threads, from where it is not seen, the first candidate's in the
    first split speaks; none does where the search is known to fit again itself. Those of a cross-validation all speak.
    """
    frame = _outermost_of_search()
    if frame is None:
        return True
    if frame.f_code.co_name == "_fit_and_score" and (candidate := frame.f_locals.get("candidate_progress")):
        split = frame.f_locals.get("split_progress") or (0,)
        if candidate[0] or split[0] or getattr(frame.f_locals.get("caller"), "refit", False):
            return False
    # The call's own memory, which ends with it. Python's registry of what was said is emptied by every change of the
    # filters, of which scikit-learn makes some in each fit.
    said = frame.f_locals.setdefault("_said_by_skldp", set())
    new = message not in said
    said.add(message)
    return new


def _outermost_of_search() -> FrameType | None:
    frame, outermost = inspect.currentframe(), None
    while frame:
        if frame.f_globals.get("__name__", "").startswith("sklearn.model_selection"):
            outermost = frame
        frame = frame.f_back
    return outermost


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
    if _IS_SILENT.get() or not _is_new(message):
        return
    level, frame = 2, inspect.currentframe()
    caller = frame.f_back if frame else None
    # A frame that holds itself is kept, with its callers and their rows, until the garbage collector comes by.
    del frame
    while caller and caller.f_back and caller.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        level, caller = level + 1, caller.f_back
    warnings.warn(message, category, stacklevel=level)
