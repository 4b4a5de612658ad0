"""Regression protocol whose last cohorts estimate the errors of the coefficients."""

import math
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp.learning._protocol import Protocol, as_shown_by, split_evenly
from skldp.learning._regression import RegressionProtocol
from skldp.learning._reports import Report
from skldp.learning._tasks import Task, noise_variance
from skldp.learning._uncertainty import (
    Estimate,
    gram_edge,
    inverse_where_known,
    newton_steps,
    scatter,
    semicircle,
)
from skldp.learning._vectors import deviation_of_tail, mean_excess, n_products, radius_that_keeps, symmetric_matrix

# Fractions of people: for the model, for each scale cohort, for the sizes of terms, for each of several cohorts of
# second moments, and of the rest, for the first Newton step.
_MODEL_SHARE, _SCALE_SHARE, _SIZES_SHARE, _GRAM_SHARE = 0.33, 0.012, 0.05, 0.09
_N_GRAMS, _FIRST_PART = 2, 0.2
# Number of cohorts of the two steps, whose spread is their error, and the smallest cohort.
_N_COHORTS, _LEAST_PEOPLE = 50, 20
# Largest noise of second moments, in a scale in which they are 1, for which errors are estimated: at the typical
# radius, and at the radius from their tail.
_MOST_EDGE, _MOST_NOISE = 0.12, 0.25
# Largest reported mean truncation of squared norms for which there are intervals; the first step diverges if a third of
# a moment in one direction is cut.
_MOST_CUT = 0.4
# Smallest largest squared weight at which a feature is named as hidden by noise.
_HIDES = 0.1
# Range of reported log norms around the typical norm: this factor up, its square down.
_REACH = 4.0
# Fractions of people who report the tails of gradient norms and of term norms: the excess of the logarithm over this
# many typical norms, truncated at eight times that.
_TAIL_SHARE, _TAIL_START, _TERMS_TAIL_SHARE, _TERMS_TAIL_START, _TAIL_WIDTH = 0.03, 3.0, 0.015, 1.5, 8.0
# Fraction of people who report the truncation of products, the largest reported multiple of the radius, and the factor
# from which two numbers differ by more than rounding.
_BEYOND_SHARE, _BEYOND, _APART = 0.02, 2.0, 1 + 1e-9
# Largest mean truncation: of a gradient in standard errors of the noise, of products in the largest noise eigenvalue.
_GRADIENT_CUT, _GRAM_CUT = 0.2, 0.3

# Range of reported residuals.
_LEAST_RESIDUAL = 1e4
# Steps besides those of the model.
_QUESTIONS = {"sizes", "norm", "terms_tail", "beyond", "gram", "residual", "reach", "tail", "first", "second"}


class InferenceProtocol(RegressionProtocol):
    r"""Interactive protocol of linear regression with standard errors of its coefficients.

    Some of the people learn the model, as they would in a :class:`RegressionProtocol`. The others are asked in radii at
    which little is cut off, for two Newton steps without a ridge: a part of them for the features' second moments,
    the last fifty cohorts for gradients at the model and where the first ten of them lead, whose scatter is the error.

    The intervals are for the coefficients of least squares of records moved into their bounds. Gradients
    :math:`P'x (y - x'\beta)` are cut off at a radius beyond which their norms reach in the mean by a fifth of the
    noise's standard error, which the intervals count. How far norms reach some people tell: by how much their
    logarithms exceed that of three times the usual norm. Beyond, they are taken to go on like those of a normal law. A
    tail that is longer still and on one side biases by more than is counted; errors that are symmetric, given the
    features, bias nothing.

    Of features that few people are far out in, such as rare categories, a radius cuts off second moments, and steps are
    too long. How much that is other people tell before, of squared norms up to twice the radius, and the tail says what
    is further out. Up to a third of a moment the second step, which is no whole one, takes it back (see
    ``newton_steps``). Where more is told to be cut off, in the mean of everybody and whatever the direction, there are
    no intervals; nor where the second moments of some direction do not stand out of the noise. :attr:`refusal` says so.
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
    ) -> None:
        self._n_model = n_people
        super().__init__(
            n_features,
            n_people,
            epsilon=epsilon,
            low=low,
            high=high,
            kind=kind,
            fit_intercept=fit_intercept,
        )
        self._state |= {
            "scaling": np.eye(self._n_terms).tolist(),
            "norm": math.sqrt(self._n_terms),
            "grams": [],
            "residual": 1.0,
            "reach": None,
            "tail": 1.0,
            "terms_tail": 0.5,
            "terms_cut": 0.0,
            "start": None,
            "first": None,
            "second": None,
        }

    @property
    def asks_for_errors(self) -> bool:
        """Whether there are enough people for errors; otherwise all of them fit the model."""
        return self._n_model < self.n_people

    @property
    def refusal(self) -> str:
        """Reason for a missing estimate, or an empty text."""
        told = [self._state[name] for name in ("first", "second")]
        if not self.asks_for_errors:
            needed = n_people_for_intervals(self)
            rule = "more than one term" if needed is None else f"at least {needed:,} people"
            return f"It takes {rule} for errors to be told at epsilon {self.epsilon:.4g}. Got {self.n_people:,} people."
        if any(one is None or one["cohorts"] < 2 for one in told):
            return "At least two of the cohorts of each of the last two tasks must have answered. Got fewer."
        if self._state["terms_cut"] > _MOST_CUT:
            return (
                "Few people's features may be so far out that their second moments are cut off. Got long tails, or "
                "categories that few people have. It takes more people, fewer features or tighter bounds."
            )
        hidden = self._hidden()
        if hidden:
            return (
                "The features' second moments must stand out of the noise in every direction. Got noise that hides "
                f"those of features {hidden}, which tell nearly the same or fill a small part of their bounds. It "
                "takes more people, fewer features or tighter bounds."
            )
        return ""

    @property
    def _n_learning(self) -> int:
        return self._n_model

    def estimate(self) -> Estimate:
        """Coefficients without a ridge, with their errors."""
        if self.refusal:
            raise ValueError(self.refusal)
        state = self._state
        shift, matrix = self._in_units()
        return newton_steps(
            shift + matrix @ np.array(state["beta"]),
            matrix @ np.array(state["scaling"]),
            self._gram(),
            state["first"],
            state["second"],
            self._task_of("second").standard_error(1) ** 2,
            _GRADIENT_CUT,
        )

    @property
    def _n_terms(self) -> int:
        return self.n_features + self.fit_intercept

    def _hidden(self) -> list[int]:
        """Indices of the features of directions that the noise hides."""
        _, unknown = inverse_where_known(*self._gram())
        if not unknown.size:
            return []
        weights = ((np.array(self._state["scaling"]) @ unknown) ** 2).sum(axis=1)[-self.n_features :]
        return np.flatnonzero(weights >= weights.max() * _HIDES).tolist()

    def _in_units(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the affine map from the model's terms to those of the data."""
        middle, radius = self._box.center, self._box.radius
        shift, matrix = np.zeros(self._n_terms), np.zeros((self._n_terms,) * 2)
        slopes = slice(self._n_terms - self.n_features, None)
        matrix[slopes, slopes] = np.diag(radius[-1] / radius[:-1])
        if self.fit_intercept:
            center = np.array(self._state["center"])
            shift[0] = middle[-1] + radius[-1] * center[-1]
            matrix[0] = -radius[-1] * np.append(-1.0, center[:-1] + middle[:-1] / radius[:-1])
        return shift, matrix

    def _gram(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the second moments of the scaled terms, and the variances of their noise."""
        gram, variances = as_shown_by(np.array(self._state["scaling"]).T, self._state["grams"])
        # Released products are scaled by sqrt(2) off the diagonal.
        return gram, variances * (1 + np.eye(self._n_terms)) / 2

    def _plan(self) -> list[tuple[str, int]]:
        n = self.n_people
        shares = (_SCALE_SHARE, _SIZES_SHARE, _GRAM_SHARE, _TERMS_TAIL_SHARE, _BEYOND_SHARE, _TAIL_SHARE)
        n_scale, n_sizes, n_gram, n_terms_tail, n_beyond, n_tail = (int(share * n) for share in shares)
        model = self._plan_of_model(int(_MODEL_SHARE * n))
        if not (
            n * _SCALE_SHARE >= 1
            # PrivUnit needs d >= 2.
            and self._n_terms > 1
            and any(name == "products" for name, _ in model)
            and gram_edge(self._n_terms, self._n_terms, self.epsilon, _N_GRAMS * n_gram) <= _MOST_EDGE
        ):
            return self._plan_of_model(n)
        self._n_model = sum(wanted for _, wanted in model)
        steps = [
            *model,
            ("sizes", n_sizes),
            *[("norm", n_scale), ("terms_tail", n_terms_tail), ("beyond", n_beyond), ("gram", n_gram)] * _N_GRAMS,
        ]
        steps += [("norm", n_scale), ("residual", n_scale), ("reach", n_scale), ("tail", n_tail)]
        left = n - sum(wanted for _, wanted in steps)
        cohorts = split_evenly(left, max(4, min(_N_COHORTS, left // _LEAST_PEOPLE)))
        n_first = max(2, round(_FIRST_PART * len(cohorts)))
        return steps + [("first" if i < n_first else "second", people) for i, people in enumerate(cohorts)]

    def _plan_of_model(self, n_people: int) -> list[tuple[str, int]]:
        return RegressionProtocol(**self._settings() | {"n_people": max(1, n_people)})._steps

    def _vector_lengths(self) -> set[int]:
        lengths = super()._vector_lengths()
        return lengths | {n_products(self._n_terms)} if self.asks_for_errors else lengths

    def _task_of(self, name: str) -> Task:
        return self._task_of_errors(name) if name in _QUESTIONS else super()._task_of(name)

    def _task_of_errors(self, name: str) -> Task:
        """Return the task of a step that the model does not need."""
        state = self._state
        functionals = np.array(self._state["scaling"]).T @ self._terms()
        form, answer, least = "gradient", "vector", 0.0
        if name == "norm":
            form, answer, radius = "linear", "log_norm", _REACH * math.sqrt(self._n_terms)
            least = radius / _REACH**3
        elif name == "terms_tail":
            form, answer, least = "linear", "log_norm", _TERMS_TAIL_START * state["norm"]
            radius = _TAIL_WIDTH * least
        elif name == "residual":
            functionals, form, answer, radius = self._residual()[None], "linear", "log_norm", 2.0
            least = radius / _LEAST_RESIDUAL
        elif name == "sizes":
            # No truncation: a too small estimate would stretch the scale.
            form, radius = "squares", math.inf
        elif name == "beyond":
            furthest = self._furthest(self._matrix(functionals), "products")
            cut_at = min(self._gram_radius(), furthest)
            # No record exceeds the bounds.
            end = furthest if cut_at * _APART < furthest < cut_at * _BEYOND else cut_at * _BEYOND
            form, answer, radius, least = "linear", "log_norm", math.sqrt(end), math.sqrt(cut_at)
        elif name == "gram":
            form, radius = "products", self._gram_radius()
        else:
            beta = state["start"] if name == "second" and state["start"] is not None else state["beta"]
            residual = np.eye(self.n_features + 2)[-1] - np.array(beta) @ self._terms()
            functionals = np.vstack([functionals, residual])
            usual = state["residual"] * state["norm"]
            if name == "reach":
                answer, radius = "log_norm", _REACH * usual
                least = radius / _REACH**3
            else:
                usual = state["reach"] or usual
                if name == "tail":
                    answer, radius, least = "log_norm", _TAIL_WIDTH * _TAIL_START * usual, _TAIL_START * usual
                else:
                    noise = math.sqrt(noise_variance(self._n_terms, self.epsilon) / self._wanted("first", "second"))
                    radius = radius_that_keeps(usual, state["tail"], _GRADIENT_CUT, noise)
        matrix = self._matrix(functionals)
        if answer == "vector":
            radius = min(radius, self._furthest(matrix, form))
        return Task(self.epsilon, self._box.low, self._box.high, form, matrix, answer, radius, least)

    def _wanted(self, *names: str) -> int:
        """Return the number of people of tasks with these names."""
        return sum(people for name, people in self._steps if name in names)

    def _furthest(self, matrix: tuple[tuple[float, ...], ...], form: str) -> float:
        """Return the largest norm of a record within its bounds."""
        furthest = np.abs(matrix).sum(axis=1)
        largest = math.hypot(*furthest[: self._n_terms])
        most = {"products": largest**2, "gradient": largest * furthest[-1], "squares": math.hypot(*furthest**2)}
        return float(most[form])

    def _gram_radius(self) -> float:
        """Return the radius of products, at most that of the bounds."""
        state = self._state
        noise = gram_edge(1.0, self._n_terms, self.epsilon, self._wanted("gram") // _N_GRAMS)
        radius = radius_that_keeps(state["norm"] ** 2, 2 * state["terms_tail"], _GRAM_CUT, noise)
        return min(radius, _MOST_NOISE / noise * math.sqrt(_N_GRAMS))

    def _take(self, name: str, task: Task, report: Report) -> None:
        if name in _QUESTIONS:
            Protocol._take(self, name, task, report)
        else:
            super()._take(name, task, report)

    def _take_residual(self, task: Task, report: Report) -> None:
        self._state["residual"] = float(task.mean(report)[0])

    def _take_sizes(self, task: Task, report: Report) -> None:
        # A hidden size is taken to be as large as the noise.
        squares = np.maximum(task.mean(report), 2 * task.standard_error(report.n_people))
        self._state["scaling"] = np.diag(1 / np.sqrt(squares)).tolist()

    def _take_norm(self, task: Task, report: Report) -> None:
        self._state["norm"] = float(task.mean(report)[0])

    def _take_beyond(self, task: Task, report: Report) -> None:
        state, start, end = self._state, task.least**2, task.radius**2
        told = math.log(float(task.mean(report)[0]) / task.least) + task.log_error(report.n_people)
        # Bound squared norms by a chord above the exponential of their logarithms.
        cut = told / math.log(task.radius / task.least) * (end - start)
        if self._furthest(task.matrix, "products") > end * _APART:
            cut += mean_excess(state["norm"] ** 2, 2 * state["terms_tail"], end)
        state["terms_cut"] += cut / _N_GRAMS

    def _miss_beyond(self) -> None:
        # Without reports the value is unbounded.
        self._state["terms_cut"] = sys.float_info.max

    def _take_gram(self, task: Task, report: Report) -> None:
        state, scaling = self._state, np.array(self._state["scaling"])
        moments = symmetric_matrix(task.mean(report), self._n_terms)
        told = [scaling.T.tolist(), moments.tolist(), task.standard_error(report.n_people)]
        state["grams"] = [*state["grams"], told]
        moments, variances = self._gram()
        values, vectors = np.linalg.eigh(moments)
        # Directions that do not stand out are scaled by the noise.
        state["scaling"] = (scaling @ vectors / np.sqrt(np.maximum(values, 0) + semicircle(variances))).tolist()

    def _take_reach(self, task: Task, report: Report) -> None:
        self._state["reach"] = float(task.mean(report)[0])

    def _take_tail(self, task: Task, report: Report) -> None:
        self._state["tail"] = _deviation(task, report, _TAIL_START)

    def _take_terms_tail(self, task: Task, report: Report) -> None:
        self._state["terms_tail"] = _deviation(task, report, _TERMS_TAIL_START)

    def _take_first(self, task: Task, report: Report) -> None:
        state = self._state
        state["first"] = told = scatter(state["first"], task.mean(report), report.n_people)
        if state["grams"]:
            inverse, _ = inverse_where_known(*self._gram())
            step = np.array(state["scaling"]) @ inverse @ np.array(told["sum"]) / told["people"]
            state["start"] = (np.array(state["beta"]) + step).tolist()

    def _take_second(self, task: Task, report: Report) -> None:
        if self._state["start"] is not None:
            self._state["second"] = scatter(self._state["second"], task.mean(report), report.n_people)


def _deviation(task: Task, report: Report, start: float) -> float:
    """Return the mean excess of log norms over a multiple of the typical norm."""
    width = math.log(_TAIL_WIDTH)
    told = math.log(float(task.mean(report)[0]) / task.least)
    # The upper confidence limit: a too wide radius adds noise, a too tight one adds bias.
    error = math.sqrt(task.log_error(report.n_people) ** 2 + width * told / report.n_people)
    return deviation_of_tail(told + error, math.log(start), math.log(start) + width)


def n_people_for_intervals(protocol: InferenceProtocol) -> int | None:
    """Return the number of people from which errors are estimated, or None."""
    settings: dict[str, Any] = protocol._settings()

    def enough(n: int) -> bool:
        return InferenceProtocol(**settings | {"n_people": n}).asks_for_errors

    most = 1
    while not enough(most):
        if most > 1 << 50:
            return None
        most *= 2
    least = most // 2
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if enough(middle) else (middle, most)
    return most
