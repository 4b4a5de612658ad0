"""A protocol carried out on rows that are at hand, as if each were on a device of its own."""

import numpy as np
import numpy.typing as npt

from skldp.learning._protocol import Protocol
from skldp.learning._tasks import Report, Task
from skldp.mechanisms._noise import Noise

__all__ = ["simulate"]


def simulate(
    protocol: Protocol,
    X: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
    noise: Noise,
    *,
    n_threads: int = 1,
) -> None:
    """Ask everybody, each in the one cohort that chance puts them in, until all tasks are answered.

    Parameters
    ----------
    protocol : Protocol
        For as many people as there are rows.
    X : ndarray of shape (n, n_features)
    y : ndarray of shape (n,)
    noise : Noise
        Of the cohorts, which are public, and of the releases.
    n_threads : int, default=1

    Raises
    ------
    ValueError
        If the protocol is for another number of people.
    """
    if len(y) != protocol.n_people:
        raise ValueError(f"There must be {protocol.n_people} rows. Got {len(y)} instead.")
    of_cohorts, of_releases = noise.spawn(2)
    order, asked = of_cohorts.permutation(len(y)), 0
    task: Task | None = protocol.first()
    while task is not None:
        cohort = order[asked : asked + protocol.n_wanted]
        asked += len(cohort)
        reports = []
        if len(cohort):
            # As documents, because that is all that passes between a collector and the people.
            read = Task.from_json(task.to_json())
            report = read.release(X, y, of_releases, rows=cohort, n_threads=n_threads)
            reports.append(Report.from_json(report.to_json()))
        task = protocol.next(reports)
