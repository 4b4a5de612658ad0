"""What the estimators that learn under local privacy have in common: more people, and what the analyst is told."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs

from skldp.estimators._base import warn_out_of_domain
from skldp.exceptions import TooFewPeopleWarning
from skldp.learning._inference import InferenceProtocol
from skldp.learning._protocol import Protocol
from skldp.mechanisms._domain import Box
from skldp.mechanisms._noise import noise_from

__all__ = [
    "ask_more",
    "takes_more",
    "warn_moved",
    "warn_no_errors",
    "warn_too_few",
]


def takes_more(estimator: Any) -> bool:
    """Whether there is a `partial_fit`."""
    # What has no such parameter asks one question that stays open, as of "once".
    if getattr(estimator, "protocol", "once") != "once":
        raise AttributeError("Only protocol='once' has a task that stays open for more people.")
    return True


def ask_more(estimator: Any, X: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> None:
    """Ask more people the task that stays open."""
    task = estimator.protocol_.frozen_task
    if task is None:
        raise ValueError("Too few people were asked at first for a question that could stay open: fit with more.")
    # Of a seed, too, neither the noise of `fit` nor that of a call before.
    noise = noise_from(estimator.seed).spawn(3 + estimator._n_calls)[-1]
    estimator.protocol_.add(task.release(X, y, noise, n_threads=effective_n_jobs(estimator.n_jobs)))
    estimator._n_calls += 1


def warn_too_few(protocol: Protocol, what: str) -> None:
    """Warn where nothing can be learnt, and say how many people it takes."""
    if not protocol.is_enough:
        warnings.warn(
            f"With {protocol.n_people:,} people, {protocol.n_features} features and epsilon {protocol.epsilon:.4g} the "
            f"noise is as large as what there is to be learnt, so that {what} predicted. It takes at least "
            f"{protocol.n_needed:,} people, or fewer features.",
            TooFewPeopleWarning,
            stacklevel=3,
        )


def warn_no_errors(protocol: Protocol) -> None:
    """Warn where errors were asked for and there are none."""
    if isinstance(protocol, InferenceProtocol) and protocol.refusal:
        warnings.warn(f"There are no intervals. {protocol.refusal}", TooFewPeopleWarning, stacklevel=3)


def warn_moved(X: npt.NDArray[np.float64], y: npt.NDArray[np.float64], box: Box, names: Sequence[str]) -> None:
    """Count what lay outside the declared bounds, column by column, the target last; `names` are those of X."""
    ends = zip((*X.T, y), *box.ends, strict=True)
    *moved, targets = [np.count_nonzero((one < low) | (one > high)) for one, low, high in ends]
    wider = f"bounds, and target_bounds for the {targets:,} targets among them," if targets else "bounds"
    where = [name for name, count in zip(names, moved, strict=True) if count]
    warn_out_of_domain(sum(moved) + targets, X.size + y.size, f"Declare wider {wider}", names=lambda: where)
