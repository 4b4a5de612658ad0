"""Stages of label releases: what a model learnt from one cohort's releases is the prior of the next cohort's people."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils.validation import check_consistent_length

from skldp.estimators._class_codes import decode, encode, labels_1d
from skldp.mechanisms._categorical.row_priors import RowPriorResponse, as_priors
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise, noise_from

__all__ = [
    "cohorts",
    "guarantee_of_stages",
    "of_all_classes",
    "of_people",
    "rows_of",
    "train_in_stages",
]


def cohorts(n: int, stages: int, noise: Noise) -> list[npt.NDArray[np.int64]]:
    """Divide people at random into cohorts whose sizes differ by one at most: the order of rows may tell labels.

    Examples
    --------
    >>> from skldp.estimators._label_stages import cohorts
    >>> from skldp.mechanisms._noise import noise_from
    >>> [part.size for part in cohorts(5, 2, noise_from())]
    [3, 2]
    """
    return [np.sort(part) for part in np.array_split(noise.permutation(n), stages)]


def rows_of(table: Any, places: npt.NDArray[np.int64]) -> Any:
    """Some rows of a frame, an array, a sparse matrix or a list.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.estimators._label_stages import rows_of
    >>> rows_of(["a", "b", "c"], np.array([0, 2]))
    ['a', 'c']
    """
    if hasattr(table, "iloc"):
        return table.iloc[places]
    if isinstance(table, list | tuple):
        return [table[place] for place in places.tolist()]
    if hasattr(table, "tocsr"):
        return table.tocsr()[places]
    return (table if hasattr(table, "__getitem__") else np.asarray(table))[places]


def of_people(fit_params: dict[str, Any], n: int, places: npt.NDArray[np.int64]) -> dict[str, Any]:
    """What is passed to a fit, with those things that have one entry a person cut to some of the people.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.estimators._label_stages import of_people
    >>> of_people({"sample_weight": [1.0, 2.0, 3.0], "verbose": True}, 3, np.array([1]))
    {'sample_weight': [2.0], 'verbose': True}
    """
    return {name: rows_of(value, places) if _one_each(value, n) else value for name, value in fit_params.items()}


def _one_each(value: Any, n: int) -> bool:
    if hasattr(value, "shape"):
        return bool(value.shape) and value.shape[0] == n
    return isinstance(value, list | tuple) and len(value) == n


def of_all_classes(probabilities: np.ndarray, model: Any, classes: np.ndarray) -> np.ndarray:
    """Add columns of zeros for the classes that a model was never shown."""
    seen = np.isin(classes, model.classes_)
    if seen.all():
        return probabilities
    full = np.zeros((probabilities.shape[0], classes.size), dtype=probabilities.dtype)
    full[:, seen] = probabilities
    return full


def guarantee_of_stages(of_labels: PrivacyGuarantee, response: RowPriorResponse) -> PrivacyGuarantee:
    """The guarantee of one label, whichever stage it is in; infinite where that of the label mechanism is."""
    if math.isinf(of_labels.epsilon):
        return of_labels
    return replace(response.guarantee(), seeded=of_labels.seeded)


def train_in_stages(
    estimator: Any, mechanism: Any, X: Any, y: Any, n_stages: int, fit_params: dict[str, Any]
) -> tuple[list[Any], RowPriorResponse]:
    """Release the labels of one cohort after the other, and train a model after each on all releases so far.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``
    mechanism : LabelRR
        Fitted here.
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    n_stages : int
    fit_params : dict

    Returns
    -------
    models : list of fitted classifiers
        None after a stage, but for the last, where all releases so far are one class, of which many classifiers refuse
        to learn: the people of the next one answer as if there had been none.
    response : RowPriorResponse
        By which everybody answered.
    """
    y = labels_1d(y)
    check_consistent_length(X, y)
    if len(y) < n_stages:
        raise ValueError(f"There must be a person for each of {n_stages} stages. Got n_samples = {len(y)} instead.")
    classes = mechanism.fit(y).classes_
    response, models = RowPriorResponse(float(mechanism.epsilon), classes.size), []
    codes, released = encode(y, classes, "y"), np.empty(len(y), dtype=np.int64)
    # One stream to divide the people, and others for their releases: with a seed, too, they are independent.
    split, *noises = noise_from(mechanism.seed).spawn(1 + n_stages)
    asked, model = np.empty(0, dtype=np.int64), None
    for cohort, noise in zip(cohorts(len(y), n_stages, split), noises, strict=True):
        priors = _priors(model, classes, rows_of(X, cohort), cohort.size)
        released[cohort] = response.release(codes[cohort], priors, noise)
        asked, model = np.sort(np.concatenate([asked, cohort])), None
        if asked.size == len(y) or np.ptp(released[asked]) > 0:
            labels = decode(released[asked], classes, y.dtype)
            model = clone(estimator).fit(rows_of(X, asked), labels, **of_people(fit_params, len(y), asked))
        models.append(model)
    return models, response


def _priors(model: Any, classes: np.ndarray, X: Any, n: int) -> np.ndarray:
    """The priors of people with the rows X: uniform without a model."""
    return as_priors(
        np.ones((n, classes.size)) if model is None else of_all_classes(model.predict_proba(X), model, classes)
    )
