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
from skldp.learning._person import simulate
from skldp.learning._protocol import Protocol
from skldp.mechanisms._noise import noise_from


def takes_more(estimator: Any) -> bool:
    """Return whether `partial_fit` is available."""
    # An estimator without the parameter `protocol` always has an open task.
    if getattr(estimator, "protocol", "once") != "once":
        raise AttributeError("partial_fit needs protocol='once', whose task stays open for more people.")
    return True


def ask_all(estimator: Any, protocol: Protocol, X: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> None:
    """Run a protocol in which every row reports once, and keep it as ``protocol_``."""
    simulate(protocol, X, y, noise_from(estimator.seed), n_threads=effective_n_jobs(estimator.n_jobs))
    estimator.protocol_, estimator._n_calls = protocol, 0


def ask_more(estimator: Any, X: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> None:
    """Collect reports of more people for the open task."""
    task = estimator.protocol_.frozen_task
    if task is None:
        raise ValueError("partial_fit needs a fit with enough people for an open task. Fit again with more people.")
    # Seeded noise must differ from that of `fit` and of earlier calls.
    noise = noise_from(estimator.seed).spawn(3 + estimator._n_calls)[-1]
    estimator.protocol_.add(task.release(X, y, noise, n_threads=effective_n_jobs(estimator.n_jobs)))
    estimator._n_calls += 1


def warn_too_few(protocol: Protocol, what: str) -> None:
    """Warn if nothing can be learnt, with the number of people needed."""
    if not protocol.is_enough:
        warnings.warn(
            f"Noise hides the relations between columns: {what} predicted. Got {protocol.n_people:,} people, "
            f"{protocol.n_features} features and epsilon {protocol.epsilon:.4g}; at least {protocol.n_needed:,} people "
            "are needed, or fewer features.",
            TooFewPeopleWarning,
            stacklevel=3,
        )


def warn_moved(X: npt.NDArray[np.float64], y: npt.NDArray[np.float64], box: Box, names: Sequence[str]) -> None:
    """Warn of values outside the declared bounds, by column, the target last."""
    ends = zip((*X.T, y), *box.ends, strict=True)
    *moved, targets = [np.count_nonzero((one < low) | (one > high)) for one, low, high in ends]
    wider = f"bounds, and target_bounds for the {targets:,} targets among them," if targets else "bounds"
    where = [name for name, count in zip(names, moved, strict=True) if count]
    warn_out_of_domain(sum(moved) + targets, X.size + y.size, f"Declare wider {wider}", names=lambda: where)
