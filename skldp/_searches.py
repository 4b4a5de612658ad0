"""What scikit-learn is doing around a call, read from the frames of its callers: no public interface tells it.

All that knows of scikit-learn's own names is here. What is not found is taken for a call outside of any search.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any

__all__ = ["AskingSearch", "is_said_first", "search_that_asks", "within_a_search"]

_SEARCHES = "sklearn.model_selection"


@dataclass(frozen=True)
class AskingSearch:
    """A search that asks its `refit` rule, and what it was called with."""

    estimator: Any
    X: Any
    y: Any
    fit_params: Mapping[str, Any]


def within_a_search() -> bool:
    """Whether scikit-learn is fitting the same again and again: a search, or a cross-validation."""
    return _outermost_of_search() is not None


def is_said_first(message: str) -> bool:
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


def search_that_asks(rule: Callable[..., int]) -> AskingSearch | None:
    """The search that calls a `refit` rule, if it is one of scikit-learn's own: a rule is handed its results alone."""

    def is_asking(frame: FrameType) -> bool:
        own = frame.f_code.co_name == "fit" and _is_of_searches(frame)
        return own and getattr(frame.f_locals.get("self"), "refit", None) is rule

    frame = inspect.currentframe()
    while frame and not is_asking(frame):
        frame = frame.f_back
    if frame is None:
        return None
    called = frame.f_locals
    return AskingSearch(called["self"].estimator, called["X"], called["y"], called["routed_params"].estimator.fit)


def _is_of_searches(frame: FrameType) -> bool:
    return bool(frame.f_globals.get("__name__", "").startswith(_SEARCHES))


def _outermost_of_search() -> FrameType | None:
    frame, outermost = inspect.currentframe(), None
    while frame:
        if _is_of_searches(frame):
            outermost = frame
        frame = frame.f_back
    return outermost
