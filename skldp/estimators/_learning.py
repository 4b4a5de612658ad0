"""Functions of the estimators that learn from reports: `partial_fit` and warnings."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs

from skldp.domains._domain import Box
from skldp.estimators._base import warn_out_of_domain
from skldp.exceptions import TooFewPeopleWarning
from skldp.learning._inference import InferenceProtocol
from skldp.learning._person import simulate
from skldp.learning._protocol import Protocol
from skldp.mechanisms._noise import noise_from

__all__ = ["ask_all", "ask_more", "takes_more", "warn_moved", "warn_no_errors", "warn_too_few"]


def takes_more(estimator: Any) -> bool:
    """Whether `partial_fit` is available."""
    # An estimator without `protocol` asks one question that stays open, as "once" does.
    if getattr(estimator, "protocol", "once") != "once":
        raise AttributeError("Only protocol='once' has a task that stays open for more people.")
    return True


def ask_all(estimator: Any, protocol: Protocol, X: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> None:
    """Run a protocol in which every row reports once, and keep it as ``protocol_``."""
    simulate(protocol, X, y, noise_from(estimator.seed), n_threads=effective_n_jobs(estimator.n_jobs))
    estimator.protocol_, estimator._n_calls = protocol, 0


def ask_more(estimator: Any, X: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> None:
    """Ask more people the open task."""
    task = estimator.protocol_.frozen_task
    if task is None:
        raise ValueError("Too few people were asked at first for a question that could stay open: fit with more.")
    # With a seed, too, the noise differs from that of `fit` and earlier calls.
    noise = noise_from(estimator.seed).spawn(3 + estimator._n_calls)[-1]
    estimator.protocol_.add(task.release(X, y, noise, n_threads=effective_n_jobs(estimator.n_jobs)))
    estimator._n_calls += 1


def warn_too_few(protocol: Protocol, what: str) -> None:
    """Warn if nothing can be learnt, with the number of people needed."""
    if not protocol.is_enough:
        warnings.warn(
            f"With {protocol.n_people:,} people, {protocol.n_features} features and epsilon {protocol.epsilon:.4g} the "
            f"noise is as large as what there is to be learnt, so that {what} predicted. It takes at least "
            f"{protocol.n_needed:,} people, or fewer features.",
            TooFewPeopleWarning,
            stacklevel=3,
        )


def warn_no_errors(protocol: Protocol) -> None:
    """Warn if standard errors were requested and do not exist."""
    if isinstance(protocol, InferenceProtocol) and protocol.refusal:
        warnings.warn(f"There are no intervals. {protocol.refusal}", TooFewPeopleWarning, stacklevel=3)


def warn_moved(X: npt.NDArray[np.float64], y: npt.NDArray[np.float64], box: Box, names: Sequence[str]) -> None:
    """Warn of values outside the declared bounds, by column, the target last."""
    ends = zip((*X.T, y), *box.ends, strict=True)
    *moved, targets = [np.count_nonzero((one < low) | (one > high)) for one, low, high in ends]
    wider = f"bounds, and target_bounds for the {targets:,} targets among them," if targets else "bounds"
    where = [name for name, count in zip(names, moved, strict=True) if count]
    warn_out_of_domain(sum(moved) + targets, X.size + y.size, f"Declare wider {wider}", names=lambda: where)
