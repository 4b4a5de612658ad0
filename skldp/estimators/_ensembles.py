"""How often scikit-learn's ensembles and searches give one record to what they hold, counted from their code."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV, StratifiedKFold
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier, MultiOutputRegressor, RegressorChain
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import has_fit_parameter

from skldp.estimators._guarantee_mixin import holds_guarantee
from skldp.estimators._public_steps import ignores_labels

__all__ = ["Ensemble", "count_ensemble", "count_search", "is_ensemble", "is_search", "why_not_counted"]


_LEARNS_CLASSES = "learnt the classes from the labels"


@dataclass(frozen=True)
class Ensemble:
    """What a fitted ensemble does with one record.

    Parameters
    ----------
    members : tuple of (str, estimator)
        Fitted, each with its name among the parameters. One of them, where all are clones that get as many columns.
    times : int
        How often one record is given to each of them, at most; where there is one for all, to all together.
    transforms_again : bool, default=False
        Whether something learns from what members make of rows that they were not fitted on.
    label_use : str, default=""
        What the ensemble itself does with labels before any member randomises them.
    final : estimator, default=None
        What learns from the members' predictions.
    passes_rows : bool, default=False
        Whether it gets the rows as well.
    """

    members: tuple[tuple[str, Any], ...]
    times: int
    transforms_again: bool = False
    label_use: str = ""
    final: Any = None
    passes_rows: bool = False


def is_ensemble(estimator: Any) -> bool:
    """Whether it is known how often the estimator gives a record to its members."""
    return type(estimator) in _COUNTED


def count_ensemble(estimator: Any) -> Ensemble | None:
    """Count what a fitted ensemble does with one record.

    Returns
    -------
    Ensemble or None
        None where its parameters do not tell.

    Examples
    --------
    >>> from sklearn.ensemble import VotingRegressor
    >>> from sklearn.linear_model import Ridge
    >>> from skldp.estimators._ensembles import count_ensemble
    >>> count_ensemble(VotingRegressor([("a", Ridge())]).fit([[0.0], [1.0]], [0, 1]))
    Ensemble(members=(('a', Ridge()),), times=1, transforms_again=False, label_use='', final=None, passes_rows=False)
    """
    return _COUNTED[type(estimator)](estimator)


def is_search(estimator: Any) -> bool:
    """Whether the estimator has chosen among candidates."""
    return hasattr(estimator, "best_estimator_") and hasattr(estimator, "cv_results_")


def why_not_counted(search: Any, labels_raw: bool) -> str:
    """Why what a fitted search released of one record is not known, or no sum over what its candidates released.

    Parameters
    ----------
    search : fitted search
    labels_raw : bool
        Whether it was given labels that are not released yet.

    Returns
    -------
    str
        Empty where :func:`count_search` counts it.
    """
    last = search.best_estimator_.steps[-1] if isinstance(search.best_estimator_, Pipeline) else None
    scored_alone = last is not None and ignores_labels(last[1]) and getattr(search, "scoring", "") is None
    if labels_raw and not scored_alone:
        return "candidates were chosen by scores of labels that are not randomised"
    known = type(search) in (GridSearchCV, RandomizedSearchCV) and _splits_once(search.cv)
    if not known or last is None or holds_guarantee(last[1]):
        return f"it is not known how often {type(search).__name__} releases what the candidates are given"
    varied = {varied for candidate in search.cv_results_["params"] for varied in candidate}
    if not all(varied.startswith(f"{last[0]}__") for varied in varied):
        return "the other candidates released something else, which is not added up"
    return ""


def count_search(search: Any) -> int:
    """How often a search gave one record to its candidates: on every split, and in the last fit of the chosen one."""
    scored_twice = search.return_train_score or _number_of_folds(search.cv) is None
    return len(search.cv_results_["params"]) * search.n_splits_ * (2 if scored_twice else 1) + 1


def _number_of_folds(cv: Any) -> int | None:
    """Into how many folds each record falls exactly once; None where that is not known."""
    if cv is None:
        return 5
    if isinstance(cv, Integral):
        return int(cv)
    return cv.n_splits if type(cv) in (KFold, StratifiedKFold) else None


def _splits_once(cv: Any) -> bool:
    """Whether no part of a split holds a record twice, as a list of splits of one's own may (a bootstrap)."""
    return _number_of_folds(cv) is not None or type(cv).__module__.startswith("sklearn.model_selection.")


def _voting(estimator: Any) -> Ensemble:
    label_use = _LEARNS_CLASSES if isinstance(estimator, VotingClassifier) else ""
    return Ensemble(_named_members(estimator), 1, label_use=label_use)


def _stacking(estimator: Any) -> Ensemble | None:
    n_splits = 1 if isinstance(estimator.cv, str) else _number_of_folds(estimator.cv)
    if n_splits is None:
        return None
    return Ensemble(
        _named_members(estimator),
        # In all folds but one to be fitted, in that one to be predicted, and in the fit of what is kept.
        n_splits + 1,
        transforms_again=True,
        label_use=_LEARNS_CLASSES if isinstance(estimator, StackingClassifier) else "",
        final=estimator.final_estimator_,
        passes_rows=estimator.passthrough,
    )


def _calibrated(estimator: Any) -> Ensemble | None:
    n_splits = _number_of_folds(estimator.cv)
    if n_splits is None:
        return None
    # In all folds but one to be fitted, in that one to be predicted; without an ensemble, in one fit of all as well.
    times = n_splits + (estimator.ensemble is False)
    member = ("estimator", estimator.calibrated_classifiers_[0].estimator)
    return Ensemble((member,), times, transforms_again=True, label_use=_LEARNS_CLASSES)


def _bagging(estimator: Any) -> Ensemble | None:
    if estimator.oob_score:
        return None
    draws = [np.bincount(drawn, minlength=estimator._n_samples) for drawn in estimator.estimators_samples_]
    if len(draws) != len(estimator.estimators_):
        # A warm start, which forgets what earlier members were given and how they were made.
        return None
    routed = get_routing_for_object(estimator.estimator_).consumes("fit", ["sample_weight"])
    if routed or has_fit_parameter(estimator.estimator_, "sample_weight"):
        # A member that takes weights may be given all rows, those of weight 0 too.
        draws = [np.maximum(drawn, 1) for drawn in draws]
    label_use = _LEARNS_CLASSES if isinstance(estimator, BaggingClassifier) else ""
    return Ensemble((_first(estimator),), int(np.sum(draws, axis=0).max()), label_use=label_use)


def _each(estimator: Any) -> Ensemble | None:
    label_use = "" if isinstance(estimator, MultiOutputClassifier | MultiOutputRegressor) else _LEARNS_CLASSES
    # For a class that all or none belong to, there is a member that had no rows.
    fitted = [member for member in estimator.estimators_ if type(member).__name__ != "_ConstantPredictor"]
    return _all_once(fitted, label_use) if fitted else None


def _one_versus_one(estimator: Any) -> Ensemble:
    # A record is in the pairs of its own class.
    return Ensemble((_first(estimator),), len(estimator.classes_) - 1, label_use=_LEARNS_CLASSES)


def _chain(estimator: Any) -> Ensemble | None:
    if estimator.cv is not None:
        return None
    label_use = "gave the labels of some targets as features of others"
    # Each gets a column more than the one before, by which what it releases may cost more.
    return _all_once(estimator.estimators_, label_use)


def _all_once(members: Iterable[Any], label_use: str) -> Ensemble:
    return Ensemble(tuple(("estimator", member) for member in members), 1, label_use=label_use)


def _named_members(estimator: Any) -> tuple[tuple[str, Any], ...]:
    names = [name for name, member in estimator.estimators if not isinstance(member, str)]
    return tuple(zip(names, estimator.estimators_, strict=True))


def _first(estimator: Any) -> tuple[str, Any]:
    return "estimator", estimator.estimators_[0]


_COUNTED: dict[type, Callable[[Any], Ensemble | None]] = {
    BaggingClassifier: _bagging,
    BaggingRegressor: _bagging,
    CalibratedClassifierCV: _calibrated,
    ClassifierChain: _chain,
    MultiOutputClassifier: _each,
    MultiOutputRegressor: _each,
    OneVsOneClassifier: _one_versus_one,
    OneVsRestClassifier: _each,
    OutputCodeClassifier: _each,
    RegressorChain: _chain,
    StackingClassifier: _stacking,
    StackingRegressor: _stacking,
    VotingClassifier: _voting,
    VotingRegressor: _voting,
}
