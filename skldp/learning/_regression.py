r"""Least squares learnt from people who each release once: a protocol whose states are public JSON documents."""

import json
import math
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from skldp._checks import check_dimension, check_epsilon, check_whole, is_number
from skldp.learning._tasks import Report, Task, n_products, noise_variance, symmetric_matrix
from skldp.mechanisms._domain import Box
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._vector.privunit import PrivUnitBall

__all__ = ["LEAST_SUFFICIENCY", "RegressionProtocol", "n_people_needed", "sufficiency"]

# Below it the noise is as large as what there is to be learnt.
LEAST_SUFFICIENCY = 8.0
# Parts of all people who tell the size of records, and their centre.
_LENGTH_SHARE, _CENTER_SHARE = 0.02, 0.06
# Products are asked for in stages, so that each is told in the scale that the ones before it found: as many as leave
# each this sufficiency, and no more than that many.
_STAGE_SUFFICIENCY, _MOST_STAGES = 8.0, 8
# Of a cohort, the part that tells a scale.
_SCALE_SHARE = 0.06
# With gradients to come, the part of the people who tell products, and from which sufficiency on they do.
_PRODUCT_SHARE, _PRODUCT_SUFFICIENCY = 0.25, 50.0
_N_COHORTS = 20
# The size of a gradient is the mean of what the last so many cohorts told, who are this many people at least.
_LEAST_COHORTS, _LEAST_PEOPLE = 5, 200
# The floor of the whitening, in units of the largest eigenvalue that noise alone has.
_FLOOR = 0.5
# The residual's weight beside the features in the products, and the radius in units of the vectors' usual norm.
_RESIDUAL_WEIGHT, _TIGHTNESS = 0.7, 0.85
# What is cut off at a radius biases the answer, which matters where there is little noise: from these sufficiencies on,
# of a stage and of all, radii grow so that the noise stays as it is.
_LOOSE_STAGE, _LOOSE = 100.0, 1_000.0
# For a normal variable, exp(E ln |x|).
_LOG_SCALE = 0.53


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
    """How many people it takes before anything is learnt.

    Examples
    --------
    >>> from skldp.learning import n_people_needed
    >>> n_people_needed(9, 1.0)
    4804
    """
    return math.ceil(LEAST_SUFFICIENCY / sufficiency(1, n_features, epsilon))


class RegressionProtocol:
    r"""Who is asked what, one task after the other, until a linear regression is learnt.

    Every person belongs to one cohort and answers one task, at the whole epsilon. A task depends on the answers of
    earlier cohorts alone, so that everything this object knows is public.

    Parameters
    ----------
    n_features : int
    n_people : int
        How many will be asked. Not all need to answer.
    epsilon : float
        Natural log, of the whole record with its target.
    low, high : array-like of shape (n_features + 1,)
        Declared bounds of the features and, last, of the target.
    kind : {"rounds", "once"}, default="rounds"
        ``"once"``: after some cohorts that tell the scale, everybody left answers one and the same task, and
        :meth:`add` takes more answers to it at any time. ``"rounds"`` goes on with gradients at the model so far.
    fit_intercept : bool, default=True
    ridge : float, default=0.5
        Added to the eigenvalues of the whitened products, in units of the largest one that noise alone has.

    Attributes
    ----------
    task : Task or None
        The task that is open; None when all is done.
    n_wanted : int
        How many people are to be asked it.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.learning import RegressionProtocol
    >>> from skldp.mechanisms import noise_from
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (4_000, 2))
    >>> y = 0.5 * X[:, 0] - 0.2 * X[:, 1] + 0.1
    >>> protocol, asked = RegressionProtocol(2, 4_000, epsilon=4.0, low=[-1] * 3, high=[1] * 3), 0
    >>> task = protocol.first()
    >>> while task is not None:
    ...     people = slice(asked, asked + protocol.n_wanted)
    ...     task, asked = protocol.next(task.release(X[people], y[people], noise_from())), people.stop
    >>> asked, np.abs(protocol.coefficients - [0.5, -0.2]).max() < 0.1
    (4000, np.True_)
    """

    def __init__(
        self,
        n_features: int,
        n_people: int,
        *,
        epsilon: float,
        low: npt.ArrayLike,
        high: npt.ArrayLike,
        kind: str = "rounds",
        fit_intercept: bool = True,
        ridge: float = 0.5,
    ) -> None:
        check_dimension(n_features, least=1)
        check_whole("n_people", n_people, least=1)
        check_epsilon(epsilon)
        if kind not in ("rounds", "once"):
            raise ValueError(f"kind must be 'rounds' or 'once'. Got {kind!r} instead.")
        if not is_number(ridge) or ridge < 0:
            raise ValueError(f"ridge must be a finite number >= 0. Got {ridge!r} instead.")
        self._box = Box.of(low, high)
        if self._box.n_features != n_features + 1:
            raise ValueError(f"low and high must have {n_features + 1} numbers. Got {self._box.n_features} instead.")
        self.n_features, self.n_people, self.epsilon = int(n_features), int(n_people), float(epsilon)
        self.kind, self.fit_intercept, self.ridge = kind, bool(fit_intercept), float(ridge)
        self._steps = self._plan()
        width = n_features + 1
        # Without an intercept, records are counted from the zero of their own scale.
        origin = np.zeros(width) if self.fit_intercept else -self._box.center / self._box.radius
        n_terms = n_features + self.fit_intercept
        self._state: dict[str, Any] = {
            "step": 0,
            "center": origin.tolist(),
            "radius": math.sqrt(width),
            "residual": 1.0,
            "spread": math.sqrt(width),
            "dimension": 0.0,
            "beta": [0.0] * n_terms,
            "whitening": np.eye(n_terms).tolist(),
            "told": [],
            "averaged": [0.0] * n_terms,
            "log_sizes": [],
            "last": None,
        }

    @property
    def sufficiency(self) -> float:
        """See :func:`sufficiency`."""
        return sufficiency(self.n_people, self.n_features, self.epsilon)

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
            If a report is of another task, or all is done; then nothing has changed.
        """
        task = self.task
        if task is None:
            raise ValueError("All tasks were answered. Got reports of one more instead.")
        name = self._steps[self._state["step"]][0]
        several = [reports] if isinstance(reports, Report) else list(reports or [])
        for report in several:
            task.check(report)
        total = Report.total(several) if several else None
        if total is not None:
            getattr(self, f"_take_{name}")(task, total)
        elif name == "gradient":
            self._average()
        self._state["step"] += 1
        return self.task

    def add(self, reports: Report | Iterable[Report]) -> None:
        """Take more answers to the last task of ``"once"``, which stays open: in any order, the same to the bit.

        Parameters
        ----------
        reports : Report, or iterable of Report

        Raises
        ------
        ValueError
            If the protocol is of another kind or not as far, or a report is of another task; then nothing has changed.
        """
        last = self._state["last"]
        if last is None or self.task is not None:
            raise ValueError("Only a protocol of the kind 'once' whose tasks were all answered takes more answers.")
        task, before = Task.from_json(last["task"]), Report.from_json(last["report"])
        several = [reports] if isinstance(reports, Report) else list(reports)
        for report in several:
            task.check(report)
        total = Report.total([before, *several])
        self._state |= last["before"]
        self._take_products(task, total)

    @property
    def frozen_task(self) -> Task | None:
        """The task that :meth:`add` takes answers to, of ``"once"`` when all is done, else None."""
        last = self._state["last"]
        return None if last is None or self.task is not None else Task.from_json(last["task"])

    @property
    def coefficients(self) -> npt.NDArray[np.float64]:
        """Of every feature, in the units of the declared bounds."""
        slopes = np.array(self._state["beta"])[-self.n_features :]
        return slopes * self._box.radius[-1] / self._box.radius[:-1]

    @property
    def intercept(self) -> float:
        """In the units of the declared bounds."""
        if not self.fit_intercept:
            return 0.0
        beta, center = np.array(self._state["beta"]), np.array(self._state["center"])
        at_origin = center[-1] + beta[0] - beta[1:] @ (center[:-1] + self._box.center[:-1] / self._box.radius[:-1])
        return float(self._box.center[-1] + self._box.radius[-1] * at_origin)

    def guarantee(self) -> PrivacyGuarantee:
        """That of one person's one release, whichever their cohort: the largest of all tasks'."""
        width = self.n_features + 1
        tasks = [
            Task(self.epsilon, self._box.low, self._box.high, "linear", ((0.0,) * width + (1.0,),), "number", 1.0),
            Task(self.epsilon, self._box.low, self._box.high, "linear", ((0.0,) * (width + 1),) * 2, "vector", 1.0),
        ]
        epsilon = max(*(task.guarantee().epsilon for task in tasks), self._vector_epsilon())
        basis = "each person answers one task of one cohort; density ratio of PrivUnit, or exact integers of a number"
        return PrivacyGuarantee(epsilon, stated=self.epsilon, basis=basis)

    def to_json(self) -> str:
        """Settings and state, all public."""
        settings = self._settings() | {"low": list(self._box.low), "high": list(self._box.high)}
        return json.dumps({"settings": settings, "state": self._state}, sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Go on from a state that this same owner wrote down."""
        given = json.loads(text)
        protocol = cls(**given["settings"])
        protocol._state = given["state"]
        return protocol

    def _settings(self) -> dict[str, Any]:
        return {
            "n_features": self.n_features,
            "n_people": self.n_people,
            "epsilon": self.epsilon,
            "low": self._box.low,
            "high": self._box.high,
            "kind": self.kind,
            "fit_intercept": self.fit_intercept,
            "ridge": self.ridge,
        }

    def _vector_epsilon(self) -> float:
        """The largest of the vectors' guarantees: they differ in the last digits by their length."""
        lengths = {self.n_features + 1, max(2, self.n_features + self.fit_intercept)}
        if any(name == "products" for name, _ in self._steps):
            lengths.add(n_products(self.n_features + 1 + self.fit_intercept))
        return max(PrivUnitBall(length, self.epsilon, 1.0).guarantee().epsilon for length in lengths)

    def _plan(self) -> list[tuple[str, int]]:
        """The steps, each with how many people it wants, from public numbers alone."""
        n, enough = self.n_people, self.sufficiency
        if enough < LEAST_SUFFICIENCY:
            return [("target", n)]
        steps = []
        if self.fit_intercept:
            steps = [("length", int(_LENGTH_SHARE * n)), ("center", int(_CENTER_SHARE * n))]
        left = n - sum(wanted for _, wanted in steps)
        # A gradient of one number is none that a vector's mechanism releases.
        once = self.kind == "once" or self.n_features + self.fit_intercept < 2
        share = 1.0 if once else _PRODUCT_SHARE if enough >= _PRODUCT_SUFFICIENCY else 0.0
        n_stages = int(np.clip(enough * share / _STAGE_SUFFICIENCY, 1, _MOST_STAGES)) if share else 0
        for people in _cut(int(share * left), n_stages):
            n_scale = int(_SCALE_SHARE * people)
            steps += [("residual", n_scale), ("spread", n_scale), ("products", people - 2 * n_scale)]
        if not once:
            if not n_stages:
                n_scale = int(_LENGTH_SHARE * n)
                steps += [("residual", n_scale), ("spread", n_scale)]
            for people in _cut(n - sum(wanted for _, wanted in steps), _N_COHORTS):
                n_scale = int(_SCALE_SHARE * people)
                steps += [("size", n_scale), ("gradient", people - n_scale)]
        return steps

    def _matrix(self, functionals: npt.NDArray[np.float64]) -> tuple[tuple[float, ...], ...]:
        """The task's matrix of functionals of (1, the record less the centre)."""
        matrix = functionals.copy()
        matrix[:, 0] -= functionals[:, 1:] @ np.array(self._state["center"])
        return tuple(map(tuple, matrix.tolist()))

    def _terms(self) -> npt.NDArray[np.float64]:
        """The functionals of the model's terms: the constant where there is one, and the features."""
        return np.eye(self.n_features + 2)[1 - self.fit_intercept : -1]

    def _residual_row(self) -> npt.NDArray[np.float64]:
        row = np.eye(self.n_features + 2)[-1]
        return row - np.array(self._state["beta"]) @ self._terms()

    def _task_of(self, name: str) -> Task:
        state, width = self._state, self.n_features + 1
        whitened = np.array(state["whitening"]).T @ self._terms()
        root = math.sqrt(width)
        form, answer, least = "linear", "log_norm", 0.0
        if name == "length":
            functionals, radius, least = np.eye(width + 1)[1:], root, root / 10
        elif name == "center":
            functionals, radius, answer = np.eye(width + 1)[1:], 1.3 * state["radius"], "vector"
        elif name == "target":
            functionals, radius, answer = np.eye(width + 1)[-1:], 1.0, "number"
        elif name == "residual":
            first = not state["told"]
            radius = 1.0 if first else 2 * state["residual"]
            functionals, least = self._residual_row()[None], radius / (50 if first else 16)
        elif name == "spread":
            functionals, radius, least = whitened, 2 * root, root / 8
        elif name == "products":
            weight = _RESIDUAL_WEIGHT * state["spread"] / state["residual"] * _LOG_SCALE
            functionals = np.vstack([whitened, weight * self._residual_row()])
            n_stages = sum(name == "products" for name, _ in self._steps)
            of_stage = self.sufficiency / n_stages * (_PRODUCT_SHARE if self._has_gradients else 1.0)
            looseness = max(1.0, of_stage / _LOOSE_STAGE) ** 0.25
            norm = _TIGHTNESS * looseness * state["spread"] * math.hypot(1, _RESIDUAL_WEIGHT)
            form, answer, radius = "products", "vector", norm**2
        else:
            functionals, form = np.vstack([whitened, self._residual_row()]), "gradient"
            if name == "size":
                # About what the products told, which no earlier cohort's noise can carry away.
                radius = 2 * state["residual"] * state["spread"]
                least = radius / 64
            else:
                answer, radius = "vector", self._looseness * self._size()
        return Task(self.epsilon, self._box.low, self._box.high, form, self._matrix(functionals), answer, radius, least)

    @property
    def _has_gradients(self) -> bool:
        return any(name == "gradient" for name, _ in self._steps)

    @property
    def _looseness(self) -> float:
        """The radius of gradients, in units of their usual norm."""
        return math.sqrt(max(1.0, self.sufficiency / _LOOSE))

    def _size(self) -> float:
        """The radius of gradients: the geometric mean of their norms, of the last cohorts that told it."""
        state = self._state
        expected = math.log(state["residual"] * state["spread"])
        of_cohort = next(wanted for name, wanted in self._steps if name == "size")
        n_cohorts = max(_LEAST_COHORTS, math.ceil(_LEAST_PEOPLE / max(1, of_cohort)))
        return math.exp(np.mean([expected, *state["log_sizes"]][-n_cohorts:]))

    def _take_length(self, task: Task, report: Report) -> None:
        self._state["radius"] = float(task.mean(report)[0])

    def _take_center(self, task: Task, report: Report) -> None:
        mean, error = task.mean(report), task.standard_error(report.n_people)
        # Where the noise is larger than the mean, the middle of the bounds stays the centre.
        kept = np.maximum(0, 1 - (error / np.where(mean == 0, error, mean)) ** 2)
        self._state["center"] = (mean * kept).tolist()

    def _take_target(self, task: Task, report: Report) -> None:
        if self.fit_intercept:
            self._state["beta"] = [float(np.clip(task.mean(report)[0], -1, 1))] + [0.0] * self.n_features

    def _take_residual(self, task: Task, report: Report) -> None:
        self._state["residual"] = float(task.mean(report)[0])

    def _take_spread(self, task: Task, report: Report) -> None:
        spread, n_terms = float(task.mean(report)[0]), len(self._state["beta"])
        if not any(name == "products" for name, _ in self._steps):
            # Nothing more will be known of the features: the same scale for all, in which each has a size of about 1.
            length = math.sqrt(max(spread**2 - self.fit_intercept, (spread / 2) ** 2))
            scale = np.full(n_terms, math.sqrt(self.n_features) / length)
            scale[: n_terms - self.n_features] = 1.0
            self._state["whitening"], spread = np.diag(scale).tolist(), math.sqrt(n_terms)
        self._state["spread"] = spread

    def _take_products(self, task: Task, report: Report) -> None:
        state = self._state
        before = {name: state[name] for name in ("beta", "whitening", "told")}
        beta, whitening = np.array(state["beta"]), np.array(state["whitening"])
        functionals = np.array(task.matrix)
        functionals[:, 0] += functionals[:, 1:] @ np.array(state["center"])
        # Of the terms and the target, which the functionals are made of.
        functionals = functionals[:, 1 - self.fit_intercept :]
        k = len(functionals)
        told = [*state["told"]]
        moments = symmetric_matrix(task.mean(report), k)
        told.append([functionals.tolist(), moments.tolist(), task.standard_error(report.n_people)])
        moments, variances = _as_shown_by(functionals, told)
        n_terms = k - 1
        gram = _positive(moments)
        edge = math.sqrt(np.mean(variances[:n_terms, :n_terms]) * 2 * n_terms)
        values, vectors = np.linalg.eigh(gram[:n_terms, :n_terms])
        # What is below the rounding of the largest is nothing.
        least = 1e-12 * max(1.0, values[-1])
        ridge = values + max(self.ridge * edge, least)
        # The residual's own weight, by which its functional was multiplied.
        weight = functionals[-1, -1]
        state["beta"] = (beta + whitening @ vectors @ (vectors.T @ gram[:n_terms, -1] / ridge) / weight).tolist()
        # Gradients diverge where a direction is stretched too far, which more products would correct.
        more = any(name == "products" for name, _ in self._steps[state["step"] + 1 :])
        floor = values + max((_FLOOR if more else 2 * _FLOOR) * edge, least)
        state["whitening"] = (whitening @ vectors / np.sqrt(floor)).tolist()
        state["dimension"] = float((values / floor).sum())
        state["told"] = told
        if self.kind == "once" and state["step"] >= len(self._steps) - 1:
            state["last"] = {"task": task.to_json(), "report": report.to_json(), "before": before}

    def _take_size(self, task: Task, report: Report) -> None:
        self._state["log_sizes"] = [*self._state["log_sizes"], math.log(float(task.mean(report)[0]))]

    def _take_gradient(self, task: Task, report: Report) -> None:
        state = self._state
        # By how much the step would move predictions, in units of the residual, if it were noise alone.
        dimension = state["dimension"] or len(state["beta"])
        # By how much a gradient grows with the error: the part of normal residuals that is not cut off.
        cut = _LOG_SCALE * self._looseness
        slope = math.erf(cut / math.sqrt(2))
        noise = dimension * cut / slope * task.standard_error(report.n_people) / task.radius
        step = min(0.5 if state["dimension"] else 0.3, 2 * 0.35**2 / (noise**2 + 0.35**2))
        moved = np.array(state["whitening"]) @ task.mean(report) * (step / slope)
        state["beta"] = (np.array(state["beta"]) + moved).tolist()
        self._average()

    def _average(self) -> None:
        """The answer is the mean of the later half of the iterates."""
        state, half = self._state, _N_COHORTS // 2
        n_done = sum(name == "gradient" for name, _ in self._steps[: state["step"] + 1])
        if n_done > _N_COHORTS - half:
            state["averaged"] = (np.array(state["averaged"]) + np.array(state["beta"]) / half).tolist()
        if n_done == _N_COHORTS:
            state["beta"] = state["averaged"]


def _cut(n: int, n_parts: int) -> list[int]:
    """Cut a number into parts that differ by one at most."""
    return [(n * (i + 1)) // n_parts - (n * i) // n_parts for i in range(n_parts)]


def _positive(matrix: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The nearest positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.maximum(values, 0)) @ vectors.T


def _as_shown_by(
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
