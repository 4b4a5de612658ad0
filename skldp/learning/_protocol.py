r"""Base class of protocols: disjoint cohorts answer one public task after the other."""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt

from skldp._arrays import Floats
from skldp._checks import check_dimension, check_epsilon, check_integer
from skldp._documents import parsing, read_json
from skldp.domains._domain import Box
from skldp.learning._constants import DETECTED, PREPARATION_SHARE
from skldp.learning._levels import NormLevels, pooled, reported_levels
from skldp.learning._reports import Report
from skldp.learning._tasks import N_LEVELS, Task, levels_error, noise_variance
from skldp.learning._vectors import contrasts
from skldp.mechanisms._guarantee import PrivacyGuarantee

P = TypeVar("P", bound="Protocol")

# Of the open task: the sum of the answers so far, and the ids of reports that earlier cohorts gave to the same task.
_NO_ANSWERS: dict[str, Any] = {"held": None, "counted": {}}


def sufficiency(n_people: int, n_features: int, epsilon: float) -> float:
    r"""Return the sufficiency: the number of people in units of the noise, to compare tables of even columns.

    It is :math:`J = n / (v D^2)`, with D = `n_features` + 1 and v the variance of a released vector of norm at most 1
    in every direction across it.

    Parameters
    ----------
    n_people : int
        Number of reports.
    n_features : int
        Number of features.
    epsilon : float
        Epsilon of a report (natural log).

    Examples
    --------
    >>> from skldp.learning import sufficiency
    >>> round(sufficiency(44_000, 9, 1.0)), round(sufficiency(44_000, 9, 4.0))
    (73, 1179)
    """
    width = n_features + 1
    return n_people / (noise_variance(width, epsilon) * width**2)


def n_people_needed(n_features: int, epsilon: float, n_classes: int = 2, *, intervals: bool = False) -> int:
    """Return the least number of people with whom a linear model depends on the features, or has intervals.

    With fewer a regression predicts the mean, and a logistic regression of `n_classes` classes their shares. From this
    number on, noise does not hide a perfect relation. A useful model needs more, of skewed columns many times more.
    With `intervals`, return the number from which a linear regression asks for the errors of its coefficients.

    Parameters
    ----------
    n_features : int
        Number of features.
    epsilon : float
        Epsilon of a report (natural log).
    n_classes : int, default=2
        Number of classes; a regression counts as two.
    intervals : bool, default=False
        Whether the coefficients need intervals.

    Examples
    --------
    >>> from skldp.learning import n_people_needed
    >>> n_people_needed(9, 1.0), n_people_needed(9, 1.0, intervals=True)
    (1093, 2766919)
    """
    if intervals:
        if n_classes != 2:
            raise ValueError(f"n_classes must be 2 with intervals, which classifiers do not have; got {n_classes}.")
        n_terms = n_features + 1
        # The radius may be twice the typical norm of the products, which vary by about their size among people.
        noise = (2 * n_terms * noise_of_moments(n_terms, epsilon, 1)) ** 2 + 2 * (n_terms + 1)
        return math.ceil(DETECTED**2 * noise / (0.4 - 5 * PREPARATION_SHARE))
    n_numbers = (n_classes - 1) * (n_features + 1)
    return n_people_to_detect(n_numbers, 1 / (n_features + 1), noise_variance(n_numbers, epsilon))


def n_people_to_detect(n_numbers: int, signal: float, noise: float) -> int:
    """Return the number of people from whom a squared length, `signal` of the squared radius, exceeds its noise."""
    # The largest mean variance of the numbers among people counts as well.
    variance = noise + 1 / n_numbers
    return math.ceil(DETECTED * math.sqrt(2 * n_numbers) * variance / signal)


def noise_of_moments(n_terms: int, epsilon: float, n_people: int) -> float:
    """Return the largest eigenvalue of the noise of the mean of products, for a radius of 1."""
    # An entry's variance is v on the diagonal and v / 2 off it.
    return math.sqrt(2 * (n_terms + 1) * noise_variance(n_terms, epsilon, "products") / n_people)


class Protocol(ABC):
    """Base class of protocols. Subclasses define the steps: a task to publish and an update from its reports.

    Every person belongs to one cohort and answers one task, at the full epsilon. A task depends on the reports of
    earlier cohorts alone. Shapes: `low, high` (n_features + 1,), or with `n_classes` those of the features.

    Everything in ``_state`` is made of public documents alone: numbers and lists that JSON holds to the bit.
    """

    # Steps by name.
    steps: "ClassVar[dict[str, Step[Any]]]"
    # Arguments of the constructor besides the bounds, and whether these have the target's.
    _arguments: ClassVar[tuple[str, ...]]
    _bounds_target = False
    n_classes: int
    # Name of the last step that stays open for more people.
    _stays_open = ""

    def __init__(
        self,
        n_features: int,
        n_people: int,
        epsilon: float,
        low: npt.ArrayLike,
        high: npt.ArrayLike,
        kind: str,
        n_classes: int | None = None,
    ) -> None:
        if n_classes is not None:
            check_integer("n_classes", n_classes, least=2)
            self.n_classes = int(n_classes)
            low, high = np.append(low, 0.0), np.append(high, n_classes - 1.0)
        check_dimension(n_features, least=1)
        check_integer("n_people", n_people, least=1)
        check_epsilon(epsilon)
        if kind not in ("rounds", "once"):
            raise ValueError(f"kind must be 'rounds' or 'once'; got {kind!r}.")
        self._box = Box.of(low, high)
        if self._box.n_features != n_features + 1:
            raise ValueError(f"low and high must have {n_features + 1} numbers; got {self._box.n_features}.")
        self.n_features, self.n_people, self.epsilon = int(n_features), int(n_people), float(epsilon)
        self.kind = kind
        # Refuse impossible settings before any task is published: the functional of the target.
        matrix = ((0.0,) * (self.n_features + 1) + (1.0,),)
        Task(self.epsilon, self._box.low, self._box.high, "linear", matrix, "number", 1.0)
        self._steps: list[tuple[str, int]] = []
        self._state: dict[str, Any] = {"step": 0, "center": [0.0] * (n_features + 1), "levels": {}, "last": None}
        self._state["answers"] = _NO_ANSWERS

    @property
    def n_needed(self) -> int:
        """Number of people from which the model depends on the record."""
        return n_people_needed(self.n_features, self.epsilon)

    @property
    def is_enough(self) -> bool:
        """True if there are at least `n_needed` people."""
        return self.n_people >= self.n_needed

    @property
    def undetected_share(self) -> float:
        """Share of people far outside the rest whom the levels of the last question may not show, at most 1."""
        asked = [name.removesuffix("_levels") for name, _ in self._steps if name.endswith("_levels")]
        return self._undetected(asked[-1]) if asked else 0.0

    def _undetected(self, question: str) -> float:
        """Return the share of people whom the levels may not show, before the first answer as planned."""
        levels = self._levels_of(question, 1.0)
        if not self._state["step"]:
            people = max(1, self._people_of(f"{question}_levels"))
            levels = replace(levels, error=levels_error(self.epsilon, people), n_people=people)
        return min(1.0, levels.detectable)

    def first(self) -> Task:
        """Return the first task; raise ValueError if it was answered, because each person reports once."""
        task = self.task
        if task is None or self._state["step"]:
            raise ValueError("A protocol is carried out once; got one that is under way; make a new one.")
        return task

    @property
    def _open(self) -> tuple[str, int]:
        """Open step and its number of people; at the end no name and 0."""
        return [*self._steps, ("", 0)][self._state["step"]]

    @property
    def task(self) -> Task | None:
        """Open task, a function of the public state; None at the end."""
        name, _ = self._open
        return self._task_of(name) if name else None

    @property
    def n_wanted(self) -> int:
        """Number of people whose answers the open task still waits for; 0 at the end."""
        return self._open[1] - sum(report.n_people for report in self._held)

    @property
    def is_last(self) -> bool:
        """True if the open task is the one that stays open at the end."""
        return self._open[0] == self._stays_open and self._state["step"] == len(self._steps) - 1

    @property
    def n_missing(self) -> int:
        """Number of people who answer before anything is learnt from the question that stays open at the end."""
        names = [name for name, _ in self._steps]
        end = min(names.index(self._stays_open) + 1, len(names) - 1) if self._stays_open in names else 0
        missing = sum(people for _, people in self._steps[self._state["step"] : end])
        return max(0, missing - self._open[1] + self.n_wanted)

    def next(self, reports: Report | Iterable[Report] | None = None) -> Task | None:
        """Return the next task, or None at the end, after closing the open one with more answers in any order.

        The reports are None or empty without answers. A repeated report counts once, by its id, and a sum counts if no
        release in it was counted. Raises ValueError if a report is of another task, there are more people than were
        asked, or all is done; nothing changes then.

        Parameters
        ----------
        reports : Report or iterable of Report, default=None
            Last answers to the open task.
        """
        task = self.task
        if task is None:
            raise ValueError("All tasks were answered; got reports of one more.")
        return self._advance(task, self._collected(task, reports))

    def add(self, reports: Report | Iterable[Report]) -> None:
        """Add answers to the open task, or at the end to the one that stays open, in any order with identical results.

        An open task stays open until :meth:`next`. Repeated reports count once, as there. Raises ValueError if no task
        stays open, a report is of another one, or there are more people than were asked; nothing changes then.

        Parameters
        ----------
        reports : Report or iterable of Report
            Answers.
        """
        task, last = self.task, self._state["last"]
        if task is not None:
            total = self._collected(task, reports)
            held = None if total is None else total.to_json()
            self._state["answers"] = self._state["answers"] | {"held": held}
            return
        if last is None:
            raise ValueError("No task stays open: only protocols of the kind 'once' take more answers at the end.")
        task, now = Task.from_json(last["task"]), self._state
        self._state = last["before"] | {"answers": last["before"]["answers"] | {"held": last["report"]}}
        try:
            self._advance(task, self._collected(task, reports, math.inf))
        except BaseException:
            self._state = now
            raise

    def _collected(
        self, task: Task, reports: Report | Iterable[Report] | None, most: float | None = None
    ) -> Report | None:
        """Return the sum of the answers to the open task so far and of new reports that were not counted yet."""
        new = [reports] if isinstance(reports, Report) else list(reports or [])
        for report in new:
            task.check(report)
        held = self._held
        several = Report.uncounted(held + new, self._state["answers"]["counted"].get(task.hash, ()))
        total = Report.total(several) if several else None
        most = self._open[1] if most is None else most
        if total is not None and total.n_people > most:
            raise ValueError(f"Reports must be of the {most:,} people who were to be asked; got {total.n_people:,}.")
        return total

    @property
    def _held(self) -> list[Report]:
        """The sum of the answers to the open task so far, if there are any."""
        held = self._state["answers"]["held"]
        return [] if held is None else [Report.from_json(held)]

    def _advance(self, task: Task, total: Report | None) -> Task | None:
        """Update the state by all answers to the open task, and return the next one."""
        name, before = self._open[0], dict(self._state)
        counted = before["answers"]["counted"]
        if total is not None:
            # Another cohort may get the same task, at once or later: a repeated report would count in both.
            counted = counted | {task.hash: sorted([*counted.get(task.hash, ()), *total.ids])}
        self._state["answers"] = _NO_ANSWERS | {"counted": counted}
        try:
            if total is not None:
                self.steps[name].update(self, task, total)
                if self.is_last:
                    answers = before["answers"] | {"held": None}
                    self._state["last"] = {
                        "task": task.to_json(),
                        "report": total.to_json(),
                        "before": before | {"answers": answers},
                    }
            else:
                self.steps[name].miss(self)
            self._state["step"] += 1
            return self.task
        except BaseException as error:
            self._state = before
            if isinstance(error, np.linalg.LinAlgError):
                message = "Reports must have sums from which a model can be estimated; got some that no people make."
                raise ValueError(message) from None
            raise

    @property
    def frozen_task(self) -> Task | None:
        """Task that :meth:`add` accepts at the end, or None."""
        last = self._state["last"]
        return None if last is None or self.task is not None else Task.from_json(last["task"])

    def guarantee(self) -> PrivacyGuarantee:
        """Return the guarantee of one person's release, the largest over all tasks."""
        # Vectors of different lengths differ in the last digits.
        epsilon = max(self._task_of(name).guarantee().epsilon for name in dict(self._steps))
        basis = "each person answers one task; density ratio of PrivUnit, or the integers of a number"
        return PrivacyGuarantee(epsilon, stated=self.epsilon, basis=basis)

    def to_json(self) -> str:
        """Return the public settings and state as JSON."""
        content = {"settings": self._settings(), "plan": self._steps, "state": self._state}
        return json.dumps(content, sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Restore a state that the same collector saved; raise ValueError for any other text.

        Parameters
        ----------
        text : str
            Document by :meth:`to_json`.
        """
        with parsing(f"A state of {cls.__name__}"):
            given = read_json(text)
            protocol, state = cls(**given["settings"]), dict(given["state"])
            plan = [list(one) for one in protocol._steps]
            fits = (state.keys(), given["plan"]) == (protocol._state.keys(), plan)
            fits = fits and state["step"] in range(len(plan) + 1)
            held, counted = (state["answers"][name] for name in _NO_ANSWERS)
            if held is not None:
                Report.from_json(held)
            for task, ids in counted.items():
                Report(task, len(ids), (0,), ids)
        if not fits:
            raise ValueError(f"A state must be one that {cls.__name__} wrote; got one of another protocol.")
        protocol._state = state
        return protocol

    def _task_of(self, name: str) -> Task:
        """Return the task of a step."""
        return self.steps[name].task(self, name)

    def _people_of(self, name: str) -> int:
        """Return the number of people of all steps of a name."""
        return sum(people for other, people in self._steps if other == name)

    def _noise_of(self, length: int, name: str, form: str = "linear") -> float:
        """Return the noise of the mean over all people of a name, of products where it meets a vector; radius 1."""
        variance = noise_variance(length, self.epsilon, form) / max(1, self._people_of(name))
        return math.sqrt(max(2, length) * variance)

    def _share_of_outcome(self, variance: float) -> float:
        """Return the fraction of people for the outcome, of this variance, in proportion to errors (Neyman)."""
        n_terms = self.n_features + 1
        of_gradients = n_terms + n_terms**2 * noise_variance(n_terms, self.epsilon)
        return max(PREPARATION_SHARE, 1 / (1 + math.sqrt(of_gradients / variance)))

    def _add_levels(self, question: str, task: Task, report: Report, *, to_earlier: bool = False) -> None:
        """Keep the reported levels of a question, alone or with those of earlier cohorts."""
        levels = self._state["levels"]
        before = levels.get(question) if to_earlier else None
        added = pooled(before, task.radius, task.mean(report), report.n_people)
        self._state["levels"] = levels | {question: added}

    def _levels_of(self, question: str, expected: float, degrees: int = 1) -> NormLevels:
        """Return the distribution of norms that is known, or expected before anybody reports them."""
        known = self._state["levels"].get(question)
        if known is None:
            return reported_levels(16 * expected, (0.0,) * N_LEVELS, 1e6, 1, expected, degrees)
        error = levels_error(self.epsilon, known["people"])
        return reported_levels(known["top"], tuple(known["shares"]), error, known["people"], expected, degrees)

    def _make_task(
        self, functionals: Floats, form: str, answer: str, radius: float = math.inf, n_classes: int = 0
    ) -> Task:
        """Return a task about functionals of a record, whose radius no record needs to exceed."""
        n_vector = len(functionals) - n_classes - (form == "gradient")
        # PrivUnit needs d >= 2.
        if answer == "vector" and form != "products" and n_vector * max(1, n_classes - 1) < 2:
            functionals = np.insert(functionals, 1, 0.0, axis=0)
        # Functionals of the record, whose centre is a part of the first number.
        matrix: Any = functionals.copy()
        matrix[:, 0] -= functionals[:, 1:] @ np.array(self._state["center"])
        reach = np.abs(matrix).sum(axis=1)
        most = {
            "linear": lambda: math.hypot(*reach),
            "squares": lambda: math.hypot(*reach**2),
            "products": lambda: math.hypot(*reach) ** 2,
            "gradient": lambda: math.hypot(*reach[:-1]) * float(reach[-1]),
            # A class and its probabilities differ by at most the square root of 2.
            "class_gradient": lambda: math.hypot(*reach[:-n_classes]) * math.sqrt(2),
        }[form]()
        most = max(1e-12, most)  # Smallest radius of a task.
        if answer == "levels":
            # Levels of a power of two add up over cohorts.
            most = radius = 2.0 ** math.ceil(math.log2(most))
        bounds = self._box.low, self._box.high
        return Task(self.epsilon, *bounds, form, matrix, answer, min(radius, most), n_classes=n_classes)

    def _in_data_units(self, model: Floats) -> tuple[Floats, Floats]:
        """Return slopes and constants in the units of the declared bounds, of models about the features' centre."""
        middle, radius = self._box.center[:-1], self._box.radius[:-1]
        slopes = model[..., 1:]
        center = np.array(self._state["center"])[: self.n_features]
        return slopes / radius, model[..., 0] - slopes @ (center + middle / radius)

    def _settings(self) -> dict[str, Any]:
        """Return the constructor arguments, for JSON."""
        low, high = self._box.low, self._box.high
        bounds = {"low": low, "high": high} if self._bounds_target else {"low": low[:-1], "high": high[:-1]}
        return {name: getattr(self, name) for name in self._arguments} | bounds


class Step(ABC, Generic[P]):
    """Step of a protocol: the task that it publishes, and what its report changes."""

    @abstractmethod
    def task(self, protocol: P, name: str) -> Task:
        """Return the task, a function of the public state."""

    @abstractmethod
    def update(self, protocol: P, task: Task, report: Report) -> None:
        """Update the public state."""

    def miss(self, protocol: P) -> None:
        """Update the public state if there is no report."""


class Shares(Step[P]):
    """Shares of the classes, by the contrasts of the class."""

    def task(self, protocol: P, name: str) -> Task:
        n_classes = protocol.n_classes
        functionals = np.zeros((1 + n_classes, protocol.n_features + 2))
        functionals[0, 0] = 1.0
        return protocol._make_task(functionals, "class_gradient", "vector", math.sqrt(1 - 1 / n_classes), n_classes)

    def update(self, protocol: P, task: Task, report: Report) -> None:
        k = task.n_classes
        shares = 1 / k + contrasts(k) @ task.mean(report).reshape(k - 1, -1)[:, 0]
        variance = task.standard_error(report.n_people) ** 2 + 1 / (k * report.n_people)
        self.learn(protocol, shares, math.sqrt(variance))

    @abstractmethod
    def learn(self, protocol: P, reported: Floats, error: float) -> None:
        """Update the public state from reported shares and the error of the release and of the sample."""


class Question(Step[P]):
    """Vectors whose mean people report by the step of its name, and earlier the levels of their norm."""

    # Answer of the task about the vectors, in the words of `Task`.
    answer = "vector"

    def __init__(self, name: str) -> None:
        self._name = name

    @abstractmethod
    def functionals(self, protocol: P) -> tuple[Floats, str]:
        """Return the functionals and the form of the vectors."""

    def expected(self, protocol: P) -> tuple[float, int]:
        """Return the expected norm, and the degrees of freedom of its distribution."""
        raise NotImplementedError

    def levels(self, protocol: P) -> NormLevels:
        """Return the distribution of the norms."""
        return protocol._levels_of(self._name, *self.expected(protocol))

    def noise(self, protocol: P) -> float:
        """Return the noise of the mean, for a radius of 1."""
        functionals, form = self.functionals(protocol)
        return protocol._noise_of(len(functionals), self._name, form)

    def radius(self, protocol: P) -> float:
        """Return the radius of the vectors, the best one for their mean."""
        return self.levels(protocol).radius_of_moments(self.noise(protocol))

    def learn(self, protocol: P, task: Task, report: Report) -> None:
        """Update the public state from vectors."""

    def learn_levels(self, protocol: P, task: Task, report: Report) -> None:
        """Update the public state from levels."""
        protocol._add_levels(self._name, task, report)

    def task(self, protocol: P, name: str) -> Task:
        functionals, form = self.functionals(protocol)
        if name != self._name:
            return protocol._make_task(functionals, form, "levels")
        return protocol._make_task(functionals, form, self.answer, self.radius(protocol))

    def update(self, protocol: P, task: Task, report: Report) -> None:
        (self.learn_levels if task.answer == "levels" else self.learn)(protocol, task, report)


def by_name(*asked: Question[Any]) -> "dict[str, Step[Any]]":
    """Return the steps of some questions: of the levels, and of the vectors."""
    return {name: one for one in asked for name in (f"{one._name}_levels", one._name)}


def split_evenly(n: int, n_parts: int) -> list[int]:
    """Split a number into parts that differ by at most one."""
    return [(n * (i + 1)) // n_parts - (n * i) // n_parts for i in range(n_parts)]
