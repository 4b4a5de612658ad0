r"""Regression with few people: location and scale of the records, then gradients only."""

import math

import numpy as np
import numpy.typing as npt

from skldp.learning._protocol import CENTER_RADIUS, LOG_SCALE, Protocol, cut, weighed
from skldp.learning._reports import Report
from skldp.learning._tasks import Task

# Fractions of people who report, in turn, the target's location, its spread, both again more precisely, the norms, the
# centre, and the feature widths.
_SHARES = (
    ("location", 0.04),
    ("reach", 0.04),
    ("location", 0.06),
    ("reach", 0.04),
    ("length", 0.02),
    ("middle", 0.08),
    ("width", 0.05),
)
_N_COHORTS = 20
# Prior of the target's deviation, in units of half the range: mean, and standard deviation of the logarithm.
_EXPECTED_DEVIATION, _LOG_ERROR = 1 / 3, 0.7
# Standard deviation of the logarithm of a normal distance: pi / sqrt(8).
_LOG_SPREAD = 1.1
# Truncation of targets, in deviations from the current centre; a location needs no more.
_LOCATION_DEVIATIONS = 1.5
# Reported range of the target's reach, as factors above and below its estimate; largest feature width in units of the
# bounds, and its ratio to the smallest.
_REACH_ABOVE, _REACH_BELOW, _WIDEST, _WIDTH_RATIO = 4.0, 8.0, 1.2, 24.0
# Radius of gradients in units of their typical norm. Below about 1, truncation shortens steps as much
# as it reduces noise.
_TIGHTNESS = 0.35
# Prior of R2.
_EXPECTED = 0.5
# Longest steps of the constant and of slopes, also at most 2 over the number of terms: steps diverge beyond that if all
# features are equal.
_LONGEST_OF_CONSTANT, _LONGEST = 0.3, 0.2


class FewPeople(Protocol):
    """Steps of a regression protocol for few people, where products would be noise.

    Notes
    -----
    Errors of the model's terms are taken to be independent before anybody is asked, and features of second moment 1.
    A cohort's gradient then tells every term's error with a variance that is known, so that a Kalman filter says how
    far to move: no step needs to be tuned, what noise cannot tell stays at 0, and the last model is the answer.

    References
    ----------
    Duchi, Jordan and Wainwright, "Minimax optimal procedures for locally private estimation", 2018, section 4. Kalman,
    "A new approach to linear filtering and prediction problems", 1960, equations 28 to 30. Huber, "Robust estimation of
    a location parameter", 1964, section 4 (what is cut off costs little).
    """

    fit_intercept: bool

    def _plan_of_few(self) -> list[tuple[str, int]]:
        """Return the steps with their numbers of people."""
        centered = ("location", "length", "middle")
        shares = [(name, share) for name, share in _SHARES if self.fit_intercept or name not in centered]
        steps = [(name, int(share * self.n_people)) for name, share in shares]
        left = self.n_people - sum(wanted for _, wanted in steps)
        return steps + [("step", people) for people in cut(left, _N_COHORTS)]

    def _asked_of_few(self, name: str) -> tuple[npt.NDArray[np.float64], str, str, float, float]:
        """Return the functionals of a step's task, its form and answer, the radius and the smallest norm."""
        state, width = self._state, self.n_features + 1
        each = np.eye(width + 1)[1:]
        if name == "location":
            return each[-1:], "linear", "number", min(1.0, _LOCATION_DEVIATIONS * self._deviation), 0.0
        if name == "reach":
            radius = min(2 * self._room[-1], _REACH_ABOVE * state["residual"])
            return each[-1:], "linear", "log_norm", radius, radius / (_REACH_ABOVE * _REACH_BELOW)
        if name == "length":
            return each, "linear", "log_norm", math.sqrt(width), math.sqrt(width) / 10
        if name == "middle":
            return each, "linear", "vector", CENTER_RADIUS * state["radius"], 0.0
        if name == "width":
            radius = _WIDEST * float(np.linalg.norm(self._room[:-1]))
            return each[:-1], "linear", "log_norm", radius, radius / _WIDTH_RATIO
        beta, terms = np.array(state["beta"]), np.eye(width + 1)[1 - self.fit_intercept : -1]
        functionals = np.vstack([np.array(state["whitening"]).T @ terms, each[-1] - beta @ terms])
        # Residual deviation of the target, as estimated by the filter.
        unknown = (1 - _EXPECTED) * self._deviation**2 + float(self._variances().sum())
        radius = _TIGHTNESS * LOG_SCALE * math.sqrt(unknown * len(terms))
        return functionals, "gradient", "vector", radius, 0.0

    @property
    def _room(self) -> npt.NDArray[np.float64]:
        """Return the largest distance of each number from the middle of its bounds, or without intercept from zero."""
        offsets = self._box.center / self._box.radius
        return np.ones(len(offsets)) if self.fit_intercept else 1 + np.abs(offsets)

    @property
    def _expected_reach(self) -> float:
        """Prior geometric mean of the distances of targets."""
        return LOG_SCALE * _EXPECTED_DEVIATION * float(self._room[-1])

    @property
    def _deviation(self) -> float:
        """Return the geometric mean of the target's distances from its current centre."""
        return float(self._state["residual"]) / LOG_SCALE

    def _take_location(self, task: Task, report: Report) -> None:
        # Growth of the mean residual with the error.
        slope = math.erf(_LOCATION_DEVIATIONS / math.sqrt(2))
        self._move_target(task, report, slope, self._deviation**2 / report.n_people)

    def _move_target(self, task: Task, report: Report, slope: float = 1.0, of_people: float = 0.0) -> None:
        state = self._state
        before, error = state["target_error"] ** 2, (task.standard_error(report.n_people) / slope) ** 2 + of_people
        # The prior counts as well; initially it is that a target lies within its bounds.
        moved = state["center"][-1] + float(task.mean(report)[0]) / slope * before / (before + error)
        state["center"] = [*state["center"][:-1], float(np.clip(moved, -1, 1))]
        state["target_error"] = math.sqrt(before * error / (before + error))

    def _take_reach(self, task: Task, report: Report) -> None:
        told = math.log(float(task.mean(report)[0]))
        error = math.hypot(task.log_error(report.n_people), _LOG_SPREAD / math.sqrt(report.n_people))
        self._state["residual"] = math.exp(weighed(told, error, math.log(self._expected_reach), _LOG_ERROR))

    def _take_middle(self, task: Task, report: Report) -> None:
        told, error = task.mean(report), task.standard_error(report.n_people)
        # Shrink all together (James and Stein); the noise would hide each alone.
        kept = max(0.0, 1 - len(told) * error**2 / max(float(told @ told), error**2))
        center = np.array(self._state["center"]) + kept * told
        # The target has its own, better estimate.
        self._state["center"] = [*center[:-1].tolist(), self._state["center"][-1]]

    def _take_width(self, task: Task, report: Report) -> None:
        scale = math.sqrt(self.n_features) / float(task.mean(report)[0])
        constants = [1.0] * (len(self._state["beta"]) - self.n_features)
        self._state["whitening"] = np.diag(constants + [scale] * self.n_features).tolist()

    def _variances(self) -> npt.NDArray[np.float64]:
        """Return the covariance of the errors of the terms, in units in which features are of size about 1."""
        state = self._state
        if state["variances"]:
            return np.array(state["variances"])
        total = _EXPECTED * self._deviation**2
        # The reach was reported with the largest possible error of the centre.
        constants = [min(state["target_error"] ** 2, total)] if self.fit_intercept else []
        of_slopes = max(total - sum(constants), total / 10) / self.n_features
        return np.array(constants + [of_slopes] * self.n_features)

    def _take_step(self, task: Task, report: Report) -> None:
        state = self._state
        # Growth of a gradient with the error: the untruncated fraction of normal residuals.
        slope = math.erf(_TIGHTNESS * LOG_SCALE / math.sqrt(2))
        longest = np.full(len(state["beta"]), min(_LONGEST, 2 / len(state["beta"])))
        longest[: len(longest) - self.n_features] = _LONGEST_OF_CONSTANT
        # Gradients vary between people and are at most as long as the radius.
        of_people = task.radius**2 / (len(longest) * report.n_people)
        noise = (task.standard_error(report.n_people) ** 2 + of_people) / slope**2
        steps, left = kalman_steps(self._variances(), noise, longest)
        moved = np.array(state["whitening"]) @ (steps * task.mean(report) / slope)
        state["beta"] = (np.array(state["beta"]) + moved).tolist()
        state["variances"] = left.tolist()


def kalman_steps(
    variances: npt.NDArray[np.float64], noise: float, longest: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the update towards a report, and the variances of the remaining errors.

    Shapes: variances (n,), longest (n,); returns steps, left (n,).
    """
    steps = np.minimum(variances / (variances + noise), longest)
    return steps, (1 - steps) ** 2 * variances + steps**2 * noise
