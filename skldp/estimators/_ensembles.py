"""How often scikit-learn's ensembles give one record to their members: counted from their code, type by type."""

from dataclasses import dataclass
from numbers import Integral

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
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier, MultiOutputRegressor, RegressorChain
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import has_fit_parameter

__all__ = ["Ensemble", "count_ensemble", "is_ensemble", "number_of_folds", "splits_once"]


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

    members: tuple
    times: int
    transforms_again: bool = False
    label_use: str = ""
    final: object = None
    passes_rows: bool = False


def is_ensemble(estimator):
    """Whether it is known how often the estimator gives a record to its members."""
    return type(estimator) in _COUNTED


def count_ensemble(estimator):
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


def number_of_folds(cv):
    """Into how many folds each record falls exactly once; None where that is not known."""
    if cv is None:
        return 5
    if isinstance(cv, Integral):
        return int(cv)
    return cv.n_splits if type(cv) in (KFold, StratifiedKFold) else None


def splits_once(cv):
    """Whether no part of a split holds a record twice, as a list of splits of one's own may (a bootstrap)."""
    return number_of_folds(cv) is not None or type(cv).__module__.startswith("sklearn.model_selection.")


_LEARNS_CLASSES = "learnt the classes from the labels"


def _voting(estimator):
    label_use = _LEARNS_CLASSES if isinstance(estimator, VotingClassifier) else ""
    return Ensemble(_named_members(estimator), 1, label_use=label_use)


def _stacking(estimator):
    n_splits = 1 if isinstance(estimator.cv, str) else number_of_folds(estimator.cv)
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


def _calibrated(estimator):
    n_splits = number_of_folds(estimator.cv)
    if n_splits is None:
        return None
    # In all folds but one to be fitted, in that one to be predicted; without an ensemble, in one fit of all as well.
    times = n_splits + (estimator.ensemble is False)
    member = ("estimator", estimator.calibrated_classifiers_[0].estimator)
    return Ensemble((member,), times, transforms_again=True, label_use=_LEARNS_CLASSES)


def _bagging(estimator):
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


def _each(estimator):
    label_use = "" if isinstance(estimator, MultiOutputClassifier | MultiOutputRegressor) else _LEARNS_CLASSES
    # For a class that all or none belong to, there is a member that had no rows.
    fitted = [member for member in estimator.estimators_ if type(member).__name__ != "_ConstantPredictor"]
    return _all_once(fitted, label_use) if fitted else None


def _one_versus_one(estimator):
    # A record is in the pairs of its own class.
    return Ensemble((_first(estimator),), len(estimator.classes_) - 1, label_use=_LEARNS_CLASSES)


def _chain(estimator):
    if estimator.cv is not None:
        return None
    label_use = "gave the labels of some targets as features of others"
    # Each gets a column more than the one before, by which what it releases may cost more.
    return _all_once(estimator.estimators_, label_use)


def _all_once(members, label_use):
    return Ensemble(tuple(("estimator", member) for member in members), 1, label_use=label_use)


def _named_members(estimator):
    names = [name for name, member in estimator.estimators if not isinstance(member, str)]
    return tuple(zip(names, estimator.estimators_, strict=True))


def _first(estimator):
    return "estimator", estimator.estimators_[0]


_COUNTED = {
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
