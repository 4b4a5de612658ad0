"""Client of one person, which answers one task ever, and simulation of many."""

import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp._arrays import Floats, Positions, as_numbers
from skldp._checks import check_epsilon, is_number
from skldp.exceptions import BudgetExhaustedError
from skldp.learning._protocol import Protocol
from skldp.learning._tasks import Task
from skldp.mechanisms._noise import Noise, noise_from


class Person:
    """Record on its owner's device, with a limit on epsilon.

    One of several threads that ask at the same time is answered. A copy could answer again: `copy`, pickle and answers
    after a fork are refused.

    Parameters
    ----------
    x : array-like of shape (n_features,)
        Features.
    y : float
        Target or class.
    epsilon : float
        The most that the one answer may cost, natural log.
    spend : callable, default=None
        Called with the cost before anything is drawn, to record it durably. An exception refuses the task.

    Raises
    ------
    ValueError
        If a number is NaN or infinite, or a shape is another.

    Examples
    --------
    >>> from skldp.learning import Person, Report
    >>> from skldp.learning._tasks import Task
    >>> task = Task(1.0, (0.0, 0.0), (1.0, 10.0), "linear", ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0)), "vector", 1.5)
    >>> Report.from_json(Person([0.25], 3.0, epsilon=1.0).answer(task.to_json())).n_people
    1
    """

    def __init__(
        self, x: npt.ArrayLike, y: Any, *, epsilon: float, spend: Callable[[float], object] | None = None
    ) -> None:
        check_epsilon(epsilon)
        record = as_numbers(x, "x")
        if record.ndim != 1 or not np.isfinite(record).all() or not is_number(y):
            raise ValueError("x must be a list of finite numbers and y one; got something else.")
        self._x, self._y, self._left = record.copy(), float(y), float(epsilon)
        self._spend = spend
        self._pid, self._lock = os.getpid(), threading.Lock()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("A Person cannot be copied or pickled, because the copy would answer as well.")

    @property
    def epsilon_left(self) -> float:
        """Remaining budget; 0 after the answer."""
        return self._left

    def answer(self, task: str) -> str:
        """Return the report on a task, both JSON documents, if it is the first one and within the limit.

        Raises ValueError if it is no task, or about another kind of record; BudgetExhaustedError if it costs too much,
        or another one was answered; RuntimeError after a fork.

        Parameters
        ----------
        task : str
            Task as JSON.
        """
        # Checked before the lock: after a fork, another thread of the parent may hold it forever.
        if os.getpid() != self._pid:
            raise RuntimeError("A Person must not answer after a fork, because parent and child would answer both.")
        # All checks come before the record is read, and are the same for every record.
        read = Task.from_json(task)
        if len(read.low) != len(self._x) + 1:
            raise ValueError(f"The task must be about {len(self._x)} features; got {len(read.low) - 1}.")
        cost = read.guarantee().epsilon
        with self._lock:
            left = self._left
            if not cost <= left:
                raise BudgetExhaustedError(f"The answer would cost epsilon {cost:.4g}, of {left:.4g} that is left.")
            # Charged before the answer exists: a crash may lose the answer, never its cost.
            self._left = 0.0
            if self._spend is not None:
                self._spend(cost)
        return read.release(self._x[None], [self._y], noise_from()).to_json()


def simulate(
    protocol: Protocol, X: Floats, y: Floats, noise: Noise, *, people: Positions | None = None, n_threads: int = 1
) -> None:
    """Let people, given by position, answer the open tasks in a random order, and then the one that stays open."""
    of_cohorts, of_releases = noise.spawn(2)
    order, asked = of_cohorts.permutation(len(y) if people is None else len(people)), 0
    order = order if people is None else people[order]
    task: Task | None = protocol.task
    while task is not None:
        wanted = protocol.n_wanted
        cohort = order[asked : asked + wanted]
        asked += len(cohort)
        # The documents that a collector and its clients exchange give the same result.
        report = task.release(X, y, of_releases, rows=cohort, n_threads=n_threads) if len(cohort) else None
        if len(cohort) < wanted and not (report and protocol.is_last):
            protocol.add([report] if report else [])
            return
        task = protocol._advance(task, protocol._collected(task, report) if protocol._held else report)
    if asked < len(order):
        task = protocol.frozen_task
        if task is None:
            raise ValueError("A task must be left for everybody; got more people than the protocol was planned for.")
        protocol.add(task.release(X, y, of_releases, rows=order[asked:], n_threads=n_threads))
