r"""What all protocols share: disjoint cohorts that answer one public task after the other."""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from skldp._checks import check_dimension, check_epsilon, check_whole
from skldp.learning._tasks import Report, Task, noise_variance, number_variance
from skldp.learning._vectors import n_products
from skldp.mechanisms._domain import Box
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._vector.privunit import PrivUnitBall

__all__ = [
    "CENTER_RADIUS",
    "LEAST_PER_NUMBER",
    "LEAST_SUFFICIENCY",
    "LOG_SCALE",
    "LOOSEST",
    "PRODUCTS_LEAST",
    "SCALE_SHARE",
    "SIZE_REACH",
    "SIZE_SHARE",
    "Protocol",
    "as_shown_by",
    "cut",
    "n_people_needed",
    "nearest_positive",
    "sufficiency",
    "weighed",
]

# Below it the noise is as large as what there is to be learnt.
LEAST_SUFFICIENCY = 8.0
# And so many people for each number of a record, because people differ even where there is no noise.
LEAST_PER_NUMBER = 5
# Parts of all people who tell the size of records, and their centre.
_LENGTH_SHARE, _CENTER_SHARE = 0.02, 0.06
# The radius of the vectors that tell it, in units of their usual norm: few are longer.
CENTER_RADIUS = 1.3
# Of a cohort, the part that tells a scale.
SCALE_SHARE = 0.06
# Products pay where their noise is below what there is: from a sufficiency of this many times the record's length on,
# and of this at least.
_PRODUCTS_PAY, PRODUCTS_LEAST = 7.0, 70.0
# And no products are asked for where so small a part of the people would tell the logarithm of a record's size, which
# reaches down to its bound over this and differs from person to person by about that much, less well than this.
SIZE_SHARE, SIZE_REACH, _LOG_SPREAD_OF_SIZE, _SIZE_KNOWN = 0.015, 2_000.0, 1.0, 0.5
# For a normal variable, exp(E ln |x|).
LOG_SCALE = 0.53
# The largest radius of vectors, in units of their usual norm: it cuts off nothing that matters, and adds noise. The
# radii of products are above their usual norm from this sufficiency on, of those who tell them.
LOOSEST, _LOOSE_PRODUCTS = 4.0, 100.0
# The size of a gradient is the mean of what the last so many cohorts told, who are this many people at least.
_LEAST_COHORTS, _LEAST_PEOPLE = 5, 200


def sufficiency(n_people: int, n_features: int, epsilon: float) -> float:
    r"""How far the people suffice: about one over the part of the variance that privacy takes from a fit.

    Parameters
    ----------
    n_people : int
    n_features : int
        Without the target.
    epsilon : float

    Returns
    -------
    float
        :math:`J = n / (v D^2)`, D being `n_features` and one, and v the variance that a released vector of norm at
        most 1 has in every direction across it.

    Examples
    --------
    >>> from skldp.learning import sufficiency
    >>> round(sufficiency(44_000, 9, 1.0)), round(sufficiency(44_000, 9, 4.0))
    (73, 1179)
    """
    width = n_features + 1
    return n_people / (noise_variance(width, epsilon) * width**2)


def n_people_needed(n_features: int, epsilon: float) -> int:
    """How many people it takes before anything is learnt in rounds; a regression's ``"once"`` takes twice as many.

    At a sufficiency of 8, and five for every number of a record, which is more where epsilon is large.

    Examples
    --------
    >>> from skldp.learning import n_people_needed
    >>> n_people_needed(9, 1.0)
    4804
    """
    by_noise = math.ceil(LEAST_SUFFICIENCY / sufficiency(1, n_features, epsilon))
    return max(by_noise, LEAST_PER_NUMBER * (n_features + 1))


class Protocol(ABC):
    """Who is asked what: a subclass says its steps, and for each the task and what is learnt from its reports.

    Parameters
    ----------
    n_features, n_people : int
    epsilon : float
    low, high : array-like of shape (n_features + 1,)
        Bounds of the features and, last, of the target.

    Notes
    -----
    Everything in ``_state`` is made of public documents alone: numbers and lists that JSON holds to the bit. For a step
    called *name* there is a hook ``_take_name(task, report)``, and where it matters that nobody answered it,
    ``_miss_name()``.
    """

    # The last step of this name is one that more people may answer later, where there is one; and what the steps after
    # it, if any, put into the state.
    _stays_open = ""
    _told_later: tuple[str, ...] = ()
    # Below these nothing is learnt but what is the same for every record: the sufficiency, and people for each number.
    least_sufficiency = LEAST_SUFFICIENCY
    _least_per_number = 0

    def __init__(
        self, n_features: int, n_people: int, epsilon: float, low: npt.ArrayLike, high: npt.ArrayLike, kind: str
    ) -> None:
        check_dimension(n_features, least=1)
        check_whole("n_people", n_people, least=1)
        check_epsilon(epsilon)
        if kind not in ("rounds", "once"):
            raise ValueError(f"kind must be 'rounds' or 'once'. Got {kind!r} instead.")
        self._box = Box.of(low, high)
        if self._box.n_features != n_features + 1:
            raise ValueError(f"low and high must have {n_features + 1} numbers. Got {self._box.n_features} instead.")
        self.n_features, self.n_people, self.epsilon = int(n_features), int(n_people), float(epsilon)
        self.kind = kind
        # What no task can be made of is refused before anybody is told or asked anything.
        self._task_of_a_number()
        self._steps: list[tuple[str, int]] = []
        self._state: dict[str, Any] = {}

    @property
    def sufficiency(self) -> float:
        """See :func:`sufficiency`."""
        return sufficiency(self._n_learning, self.n_features, self.epsilon)

    @property
    def _n_learning(self) -> int:
        """How many people the model is learnt from."""
        return self.n_people

    @property
    def n_needed(self) -> int:
        """How many people it takes before more is learnt than what is the same for every record."""
        by_noise = math.ceil(self.n_people * self.least_sufficiency / self.sufficiency)
        return max(by_noise, self._least_per_number * (self.n_features + 1))

    @property
    def is_enough(self) -> bool:
        """Whether there are as many."""
        people = self.n_people >= self._least_per_number * (self.n_features + 1)
        return people and self.sufficiency >= self.least_sufficiency

    def first(self) -> Task:
        """The first task.

        Raises
        ------
        ValueError
            If it was answered: nobody may be asked twice.
        """
        task = self.task
        if task is None or self._state["step"]:
            raise ValueError("A protocol is carried out once. Got one that is under way; make a new one.")
        return task

    @property
    def task(self) -> Task | None:
        """The open task, made of the public state alone."""
        step = self._state["step"]
        return None if step == len(self._steps) else self._task_of(self._steps[step][0])

    @property
    def n_wanted(self) -> int:
        """How many people are to be asked the open task; 0 when all is done."""
        step = self._state["step"]
        return 0 if step == len(self._steps) else self._steps[step][1]

    def next(self, reports: Report | Iterable[Report] | None) -> Task | None:
        """Take what a cohort released, and give the next task.

        Parameters
        ----------
        reports : Report, or iterable of Report, or None
            Of the open task, in any order. None, or no report, if nobody answered: then the step teaches nothing.

        Returns
        -------
        Task or None
            None when all is done.

        Raises
        ------
        ValueError
            If a report is of another task, they are of more people than were to be asked, or all is done; then nothing
            has changed.

        Notes
        -----
        A report holds no names: one that is handed in twice counts twice, which only the number of people shows.
        """
        task = self.task
        if task is None:
            raise ValueError("All tasks were answered. Got reports of one more instead.")
        name = self._steps[self._state["step"]][0]
        several = [reports] if isinstance(reports, Report) else list(reports or [])
        for report in several:
            task.check(report)
        total = Report.total(several) if several else None
        if total is not None and total.n_people > self.n_wanted:
            raise ValueError(
                f"Reports must be of the {self.n_wanted:,} people who were to be asked. Got {total.n_people:,} instead."
            )
        before = dict(self._state)
        try:
            if total is not None:
                getattr(self, f"_take_{name}")(task, total)
                if name == self._stays_open and name not in dict(self._steps[self._state["step"] + 1 :]):
                    self._state["last"] = {"task": task.to_json(), "report": total.to_json(), "before": before}
            elif hasattr(self, f"_miss_{name}"):
                getattr(self, f"_miss_{name}")()
            self._state["step"] += 1
            return self.task
        except BaseException:
            self._state = before
            raise

    def add(self, reports: Report | Iterable[Report]) -> None:
        """Take more answers to the task that stays open: in any order, the same to the bit.

        Parameters
        ----------
        reports : Report, or iterable of Report

        Raises
        ------
        ValueError
            If no task stays open, or a report is of another one; then nothing has changed.
        """
        task = self.frozen_task
        if task is None:
            raise ValueError("Only a protocol of the kind 'once' whose tasks were all answered takes more answers.")
        last, later = self._state["last"], {name: self._state[name] for name in self._told_later}
        several = [reports] if isinstance(reports, Report) else list(reports)
        for report in several:
            task.check(report)
        total = Report.total([Report.from_json(last["report"]), *several])
        self._state = dict(last["before"])
        getattr(self, f"_take_{self._stays_open}")(task, total)
        self._state |= later | {"step": len(self._steps), "last": last | {"report": total.to_json()}}

    @property
    def frozen_task(self) -> Task | None:
        """The task that :meth:`add` takes answers to, when all is done; None where no task stays open."""
        last = self._state["last"]
        return None if last is None or self.task is not None else Task.from_json(last["task"])

    def guarantee(self) -> PrivacyGuarantee:
        """That of one person's one release, whichever their cohort: the largest of all tasks'."""
        # Vectors of several lengths differ in the last digits.
        vectors = [PrivUnitBall(length, self.epsilon, 1.0).guarantee().epsilon for length in self._vector_lengths()]
        epsilon = max(self._task_of_a_number().guarantee().epsilon, *vectors)
        basis = "one task of one cohort a person; density ratio of PrivUnit, or exact integers of a number"
        return PrivacyGuarantee(epsilon, stated=self.epsilon, basis=basis)

    def to_json(self) -> str:
        """Settings and state, all public."""
        return json.dumps({"settings": self._settings(), "state": self._state}, sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Go on from a state that this same owner wrote down.

        Raises
        ------
        ValueError
            If it is none of such a protocol.
        """
        try:
            given = json.loads(text)
            protocol, state = cls(**given["settings"]), dict(given["state"])
            fits = state.keys() == protocol._state.keys() and state["step"] in range(len(protocol._steps) + 1)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"A state must be one that {cls.__name__} wrote. Got another document instead.") from error
        if not fits:
            raise ValueError(f"A state must be one that {cls.__name__} wrote. Got one of another protocol instead.")
        protocol._state = state
        return protocol

    def _task_of_a_number(self) -> Task:
        """About the target alone."""
        matrix = ((0.0,) * (self.n_features + 1) + (1.0,),)
        return Task(self.epsilon, self._box.low, self._box.high, "linear", matrix, "number", 1.0)

    def _matrix(self, functionals: npt.NDArray[np.float64]) -> tuple[tuple[float, ...], ...]:
        """The task's matrix of functionals of (1, the record less the centre)."""
        matrix = functionals.copy()
        matrix[:, 0] -= functionals[:, 1:] @ np.array(self._state["center"])
        return tuple(map(tuple, matrix.tolist()))

    def _looseness_of_products(self, n_functionals: int, n_people: float) -> float:
        """The largest norm of the functionals in units of their usual one: larger where there is little noise."""
        # In units of the noise that so many products carry, which for a large epsilon is more than a vector's.
        across = noise_variance(n_products(n_functionals), self.epsilon)
        enough = n_people / (across * (self.n_features + 1) ** 2)
        return float(np.clip((enough / _LOOSE_PRODUCTS) ** 0.25, 1, LOOSEST))

    def _size(self) -> float:
        """The radius of gradients: the geometric mean of their norms, of the last cohorts that told it."""
        state = self._state
        # Of a product, the logs of both.
        expected = math.log(state["residual"] * state["spread"])
        of_cohort = next(wanted for name, wanted in self._steps if name == "size")
        n_cohorts = max(_LEAST_COHORTS, math.ceil(_LEAST_PEOPLE / max(1, of_cohort)))
        return math.exp(np.mean([expected, *state["log_sizes"]][-n_cohorts:]))

    def _take_length(self, task: Task, report: Report) -> None:
        self._state["radius"] = float(task.mean(report)[0])

    def _take_center(self, task: Task, report: Report) -> None:
        self._state["center"] = (np.array(self._state["center"]) + self._center(task, report)).tolist()

    def _center(self, task: Task, report: Report) -> npt.NDArray[np.float64]:
        mean, error = task.mean(report), task.standard_error(report.n_people)
        # Where the noise is larger than the mean, the middle of the bounds stays the centre.
        kept = np.maximum(0, 1 - (error / np.where(mean == 0, error, mean)) ** 2)
        return mean * kept

    def _take_size(self, task: Task, report: Report) -> None:
        self._state["log_sizes"] = [*self._state["log_sizes"], math.log(float(task.mean(report)[0]))]

    def _products_pay(self, n_columns: int = 1) -> bool:
        """Whether products are worth their people, beside gradients of so many columns."""
        enough = n_columns * sufficiency(self.n_people, self.n_features, self.epsilon)
        return enough >= max(PRODUCTS_LEAST, _PRODUCTS_PAY * (self.n_features + 1))

    @property
    def _knows_sizes(self) -> bool:
        """Whether people tell how large records are, which products are told in units of."""
        of_noise = math.log(SIZE_REACH) / 2 * math.sqrt(number_variance(self.epsilon))
        return math.hypot(of_noise, _LOG_SPREAD_OF_SIZE) <= _SIZE_KNOWN * math.sqrt(SIZE_SHARE * self._n_learning)

    def _average(self, n_cohorts: int, n_last: int | None = None) -> None:
        """After a cohort of gradients: the answer is the mean of the last iterates, of the later half if not said."""
        state, n_last = self._state, n_last or n_cohorts // 2
        n_done = sum(name == "gradient" for name, _ in self._steps[: state["step"] + 1])
        if n_done > n_cohorts - n_last:
            state["averaged"] = (np.array(state["averaged"]) + np.array(state["beta"]) / n_last).tolist()
        if n_done == n_cohorts:
            state["beta"] = state["averaged"]

    @abstractmethod
    def _settings(self) -> dict[str, Any]:
        """What the protocol is made of, for JSON."""

    @abstractmethod
    def _task_of(self, name: str) -> Task:
        """The task of a step."""

    @abstractmethod
    def _vector_lengths(self) -> set[int]:
        """Of all vectors that are released."""

    def _begin(self) -> list[tuple[str, int]]:
        """The steps that tell the size of records, and their centre."""
        return [("length", int(_LENGTH_SHARE * self.n_people)), ("center", int(_CENTER_SHARE * self.n_people))]


def cut(n: int, n_parts: int) -> list[int]:
    """Cut a number into parts that differ by one at most."""
    return [(n * (i + 1)) // n_parts - (n * i) // n_parts for i in range(n_parts)]


def nearest_positive(matrix: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The nearest positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    result: npt.NDArray[np.float64] = (vectors * np.maximum(values, 0)) @ vectors.T
    return result


def as_shown_by(
    functionals: npt.NDArray[np.float64], told: list[list[Any]]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The moments of some functionals from all that was told of others, entry by entry weighted by its variance."""
    total, weights = np.zeros((len(functionals),) * 2), np.zeros((len(functionals),) * 2)
    for others, moments, error in told:
        change = np.linalg.solve(np.array(others).T, functionals.T).T
        sizes = (change**2).sum(axis=1)
        variances = np.outer(sizes, sizes) * error**2
        total += change @ np.array(moments) @ change.T / variances
        weights += 1 / variances
    return total / weights, 1 / weights


def weighed(told: float, error: float, prior: float, prior_error: float) -> float:
    """What was told and what was expected, each weighed by one over its variance."""
    weight = 1 / (1 + (error / prior_error) ** 2)
    return weight * told + (1 - weight) * prior
