r"""Protocol of least squares, one release per person; its states are public JSON documents."""

import math
from abc import ABC, abstractmethod
from itertools import groupby
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from skldp.learning._levels import NormLevels
from skldp.learning._posterior import (
    Gradients,
    Moments,
    combine_moments,
    positive_means,
    positive_part,
    posterior,
)
from skldp.learning._protocol import LEAST_PER_NUMBER, Protocol, split_evenly
from skldp.learning._reports import Report
from skldp.learning._tasks import Task, number_variance
from skldp.learning._vectors import n_products, symmetric_matrix

Floats = npt.NDArray[np.float64]

# Fractions of people. Where little besides the target's mean can be learnt, more of them report it.
_TARGET_SHARE, _TARGET_MOST, _TARGET_LEVELS = 0.06, 0.9, 0.05
_CENTER_LEVELS, _CENTER_SHARE, _WIDTH_LEVELS, _GRADIENT_LEVELS = 0.02, 0.05, 0.03, 0.03
# Fraction of a cohort that reports levels.
_LEVELS_SHARE = 0.08
# Fraction of people in products at a large sufficiency, and the sufficiency at which it is half of that.
_PRODUCTS_SHARE, _PRODUCTS_HALF = 0.3, 50.0
# Cohorts of gradients, and of products: each of these whitens the next one.
_N_COHORTS, _N_STAGES = 20, 3
# Smallest cohort of products.
_LEAST_COHORT = 20
# Smallest fraction of an error that clipped gradients are taken to show.
_LEAST_KEPT = 0.05
# Prior standard deviation of a target, in half widths of its bounds.
_EXPECTED_DEVIATION = 1 / 3
# Prior of the whitened second moments: variance of a correlation, and of a square.
_CORRELATION, _SQUARE = 0.02, 0.25
_SURELY = 2.0
# Smallest variance of a feature in the whitening, in units of their mean: bounds the leverage of rare values.
_LEAST_VARIANCE = 0.3
# Weight of the constant in the gradients of d features, in units of sqrt(d + 1).
_CONSTANT = 0.3


class LinearGradients(Gradients):
    """Gradients of least squares, which are linear in the model."""

    def expected(self, model: Floats) -> tuple[Floats, Floats]:
        return model @ np.linalg.inv(self.rows) @ self.moments, self.moments[None]


class RegressionProtocol(Protocol):
    r"""Interactive protocol of linear regression: cohorts answer one task after the other.

    Every person belongs to one cohort and answers one task, at the full epsilon. A task depends on the reports of
    earlier cohorts alone, so that everything this object knows is public.

    Parameters
    ----------
    n_features : int
    n_people : int
        Number of people to ask. Not all need to answer.
    epsilon : float
        Natural log, of the whole record with its target.
    low, high : array-like of shape (n_features + 1,)
        Declared bounds of the features and, last, of the target.
    kind : {"rounds", "once"}, default="rounds"
        ``"once"``: after some cohorts that report the scale, everybody left answers one and the same task, and
        :meth:`add` takes more answers to it at any time. ``"rounds"`` goes on with gradients at the current model.
    fit_intercept : bool, default=True

    Attributes
    ----------
    task : Task or None
        The open task; None at the end.
    n_wanted : int
        Number of people to ask for it.

    Notes
    -----
    There are four kinds of questions: the mean of a number or vector, products of the terms and the residual, a
    gradient at the current model, and the level of the norm of any of these. The levels decide the radius
    (``NormLevels``), so that the bias of clipping vanishes as people grow, whatever their distribution. All products
    and gradients enter one linear-Gaussian update (``posterior``) with their known noise. Its prior says what the
    declared bounds say.

    References
    ----------
    Duchi, Jordan and Wainwright, "Minimax optimal procedures for locally private estimation", 2018, section 4. Kalman,
    "A new approach to linear filtering and prediction problems", 1960, equations 28 to 30.

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
    >>> asked, bool(np.abs(protocol.coefficients - [0.5, -0.2]).max() < 0.1)
    (4000, True)
    """

    _least_per_number = LEAST_PER_NUMBER

    def __init__(
        self,
        n_features: int,
        n_people: int,
        *,
        epsilon: float,
        low: npt.ArrayLike,
        high: npt.ArrayLike,
        kind: Literal["rounds", "once"] = "rounds",
        fit_intercept: bool = True,
    ) -> None:
        super().__init__(n_features, n_people, epsilon, low, high, kind)
        self.fit_intercept = bool(fit_intercept)
        self._stays_open = "products" if self.kind == "once" else ""
        self._steps = self._plan()
        # Without an intercept, records are relative to the zero of their own scale.
        origin = np.zeros(n_features + 1) if self.fit_intercept else -self._box.center / self._box.radius
        n_terms = n_features + self.fit_intercept
        self._state: dict[str, Any] = {
            "step": 0,
            "center": origin.tolist(),
            # Variance of the error of the target's centre, and of each feature's.
            "target_error": _EXPECTED_DEVIATION**2,
            "center_error": 0.0,
            "levels": {},
            "deviation": _EXPECTED_DEVIATION * float(self._reach[-1]),
            "width": _EXPECTED_DEVIATION * float(np.mean(self._reach[:-1])),
            "beta": [0.0] * n_terms,
            # The estimates under each scale of the prior.
            "models": None,
            # The functionals of the terms that products and gradients were about, and what was reported of them.
            "rows": [],
            "moments": [],
            "gradients": [],
            "last": None,
        }

    @property
    def coefficients(self) -> Floats:
        """Coefficients in the units of the declared bounds, shape (n_features,)."""
        slopes = np.array(self._state["beta"])[-self.n_features :]
        result: Floats = slopes * self._box.radius[-1] / self._box.radius[:-1]
        return result

    @property
    def intercept(self) -> float:
        """Intercept in the units of the declared bounds."""
        if not self.fit_intercept:
            return 0.0
        beta, center = np.array(self._state["beta"]), np.array(self._state["center"])
        at_origin = center[-1] + beta[0] - beta[1:] @ (center[:-1] + self._box.center[:-1] / self._box.radius[:-1])
        return float(self._box.center[-1] + self._box.radius[-1] * at_origin)

    def _settings(self) -> dict[str, Any]:
        return {
            "n_features": self.n_features,
            "n_people": self.n_people,
            "epsilon": self.epsilon,
            "low": self._box.low,
            "high": self._box.high,
            "kind": self.kind,
            "fit_intercept": self.fit_intercept,
        }

    def _vector_lengths(self) -> set[int]:
        # PrivUnit needs d >= 2.
        lengths = {max(2, self.n_features), max(2, self.n_terms)}
        if any(name == "products" for name, _ in self._steps):
            lengths.add(n_products(self.n_terms + 1))
        return lengths

    @property
    def n_terms(self) -> int:
        """Number of terms: the features, and the constant where there is one."""
        return self.n_features + self.fit_intercept

    def _plan(self) -> list[tuple[str, int]]:
        """Return the steps with their numbers of people, from public numbers only."""
        n, enough = self.n_people, self.sufficiency
        if not self.is_enough:
            return self._plan_of_target(n, 1.0) if self.fit_intercept else [("target_levels", n)]
        shares = [(_WIDTH_LEVELS, "width_levels")]
        steps = [("target_levels", int(_TARGET_LEVELS * n))]
        if self.fit_intercept:
            shares = [(_CENTER_LEVELS, "center_levels"), (_CENTER_SHARE, "center"), *shares]
            steps = self._plan_of_target(n, _TARGET_SHARE + _TARGET_MOST / (1 + enough))
        left = n - sum(people for _, people in steps)
        steps += [(name, int(share * left)) for share, name in shares]
        left = n - sum(people for _, people in steps)
        # A gradient of one term has no direction.
        once = self.kind == "once" or self.n_terms < 2
        share = 1.0 if once else _PRODUCTS_SHARE * enough / (enough + _PRODUCTS_HALF)
        for people in split_evenly(int(share * left), _N_STAGES):
            if once or people >= _LEAST_COHORT:
                n_levels = int(_LEVELS_SHARE * people)
                steps += [("products_levels", n_levels), ("products", people - n_levels)]
        if not once:
            steps.append(("gradient_levels", int(_GRADIENT_LEVELS * n)))
            for people in split_evenly(n - sum(people for _, people in steps), _N_COHORTS):
                n_levels = int(_LEVELS_SHARE * people)
                steps += [("gradient_levels", n_levels), ("gradient", people - n_levels)]
        return steps

    def _plan_of_target(self, n_people: int, share: float) -> list[tuple[str, int]]:
        """Return the steps for the target's mean: within the bounds, then about it."""
        people = int(share * n_people)
        n_levels = int(min(_TARGET_LEVELS * n_people, people / 2))
        first = int(0.4 * (people - n_levels))
        second = ("target", people - n_levels - first)
        if share == 1:
            return [("target", first), ("target_levels", n_levels), second]
        # The second levels are about a better centre.
        return [
            ("target", first),
            ("target_levels", n_levels // 2),
            second,
            ("target_levels", n_levels - n_levels // 2),
        ]

    def _task_of(self, name: str) -> Task:
        return _STEPS[name].task(self, name)

    def _take(self, name: str, task: Task, report: Report) -> None:
        _STEPS[name].update(self, task, report)

    @property
    def _reach(self) -> Floats:
        """Largest distance of each number from the middle of its bounds, or without intercept from zero."""
        offsets = self._box.center / self._box.radius
        return np.ones(len(offsets)) if self.fit_intercept else 1 + np.abs(offsets)

    def _terms(self) -> Floats:
        """Return the functionals of the terms: the constant, if any, and the features."""
        return np.eye(self.n_features + 2)[1 - self.fit_intercept : -1]

    def _residual(self) -> Floats:
        """Return the functional of the residual at the current model."""
        result: Floats = np.eye(self.n_features + 2)[-1] - np.array(self._state["beta"]) @ self._terms()
        return result

    def _rows(self) -> Floats:
        """Return the functionals of the terms in which people report: whitened ones."""
        if self._state["rows"]:
            return np.array(self._state["rows"][-1])
        rows: Floats = np.eye(self.n_terms) / self._state["width"]
        if self.fit_intercept:
            rows[0, 0] = max(1.0, _CONSTANT * math.sqrt(self.n_terms))
        return rows

    def _prior(self) -> Floats:
        r"""Return the prior covariance of the model.

        No coefficient times the width of its column exceeds the range of the target, and the predictions do not exceed
        the deviation of the target: :math:`(I + D H / \tau^2)^{-1}` with the second moments H.
        """
        state, constants = self._state, int(self.fit_intercept)
        variances = 1 / (1 + self.n_terms * state["width"] ** 2 / state["deviation"] ** 2)
        prior: Floats = np.eye(self.n_terms) * variances
        if constants:
            of_centers = min(1.0, state["center_error"] / state["width"] ** 2)
            prior[0, 0] = state["target_error"] + of_centers * state["deviation"] ** 2
        return prior

    def _moments(self, rows: Floats, n_reports: int | None = None) -> Moments:
        """Return the second moments of functionals of the terms, from reports and what is expected before."""
        state, start = self._state, slice(int(self.fit_intercept), None)
        rows_of_prior = np.eye(self.n_terms) / state["width"]
        reports = [Moments(*map(np.array, told)) for told in state["moments"][:n_reports]]
        correlation, square = _CORRELATION, _SQUARE
        if reports:
            # The spread of what was reported about what is expected.
            told = combine_moments(rows_of_prior, reports)
            noise = told.variances[start, start]
            about = (told.values - np.eye(self.n_terms))[start, start] ** 2 - noise
            diagonal = np.eye(len(about), dtype=bool)
            square = max(square, _spread(about[diagonal], noise[diagonal]))
            correlation = (
                max(correlation, _spread(about[~diagonal], noise[~diagonal])) if len(about) > 1 else correlation
            )
        variances = np.full((self.n_terms,) * 2, correlation) + (square - correlation) * np.eye(self.n_terms)
        expected = np.eye(self.n_terms)
        if self.fit_intercept:
            rows_of_prior[0, 0] = 1.0
            variances[0] = variances[:, 0] = _CORRELATION + min(1.0, state["center_error"] / state["width"] ** 2)
        found = combine_moments(rows, [Moments(rows_of_prior, expected, variances), *reports])
        if self.fit_intercept and not rows[0, 1:].any():
            # The constant is known.
            found.values[0, 0] = rows[0, 0] ** 2
        return found

    def _expected_moments(self, rows: Floats, n_reports: int | None = None) -> tuple[Floats, Floats, float]:
        """Return the means of second moments given that they are positive, their variances, and the noise's edge."""
        found = self._moments(rows, n_reports)
        edge = math.sqrt(2 * self.n_terms * float(np.mean(found.variances)))
        return positive_part(found.values, edge / 2), found.variances, edge

    def _learn(self, value: Floats, noise: float, kept: float) -> None:
        """Add a reported gradient, and update the model."""
        state = self._state
        if not state["rows"]:
            state["rows"] = [self._rows().tolist()]
        asked = [len(state["rows"]) - 1, len(state["moments"])]
        state["gradients"] = [*state["gradients"], [*asked, (value / kept).tolist(), noise / kept, state["beta"]]]
        reports = []
        for (row, n_reports), cohorts in groupby(state["gradients"], key=lambda one: one[:2]):
            rows = np.array(state["rows"][row])
            moments, unknown, _ = self._expected_moments(rows, n_reports)
            values, noises, models = (np.array(one) for one in zip(*(told[2:] for told in cohorts), strict=True))
            values = values + models @ np.linalg.inv(rows) @ moments
            reports.append(LinearGradients(rows, moments, unknown, values[:, None], noises, models[:, None]))
        models = None if state["models"] is None else np.array(state["models"])
        base = np.zeros((1, self.n_terms))
        found = posterior(reports, self._prior()[None], base, int(self.fit_intercept), models)
        state["beta"], state["models"] = found.mean[0].tolist(), found.models.tolist()

    def _whiten(self) -> None:
        """Make functionals of the terms whose second moments are about 1."""
        state, rows, constants = self._state, self._rows(), int(self.fit_intercept)
        moments, _, edge = self._expected_moments(rows)
        change = np.eye(self.n_terms)
        means = moments[0, 1:] / moments[0, 0] if constants else np.zeros(self.n_features)
        spread = moments[constants:, constants:] - np.outer(means, means) * (moments[0, 0] if constants else 0)
        # Floor the variances of the columns, not of the directions.
        back = np.linalg.inv(rows[constants:, constants:])
        variances = np.diag(back @ spread @ back.T)
        floor = np.maximum(0, _LEAST_VARIANCE * variances.mean() - variances)
        spread = spread + rows[constants:, constants:] * floor @ rows[constants:, constants:].T
        values, vectors = np.linalg.eigh(spread)
        whitening = (vectors / np.sqrt(np.maximum(positive_means(values, edge / 2), 1e-9))).T
        change[constants:, constants:] = whitening
        if constants:
            change[1:, 0] = -whitening @ means
        state["rows"] = [*state["rows"], (change @ rows).tolist()]


def _spread(squares: Floats, noise: Floats) -> float:
    """Return the mean of squares that exceed the noise, less two standard errors under the noise alone."""
    return float(squares.mean() - _SURELY * math.sqrt(4 / squares.size) * noise.mean())


class Step(ABC):
    """Step of the protocol: the task that it publishes, and what its report changes."""

    @abstractmethod
    def task(self, protocol: RegressionProtocol, name: str) -> Task:
        """Return the task, a function of the public state."""

    @abstractmethod
    def update(self, protocol: RegressionProtocol, task: Task, report: Report) -> None:
        """Update the public state."""


class _TargetMean(Step):
    """Mean of the target's distance from its centre."""

    def task(self, protocol: RegressionProtocol, name: str) -> Task:
        functionals = np.eye(protocol.n_features + 2)[-1:]
        return protocol._make_task(functionals, "linear", "number", self._radius(protocol))

    def update(self, protocol: RegressionProtocol, task: Task, report: Report) -> None:
        state = protocol._state
        kept = self._levels(protocol).kept(task.radius) if "target" in state["levels"] else 1.0
        kept = max(kept, _LEAST_KEPT)
        sampled = min(task.radius, state["deviation"]) ** 2 / report.n_people
        error = (task.standard_error(report.n_people) ** 2 + sampled) / kept**2
        weight = state["target_error"] / (state["target_error"] + error)
        moved = state["center"][-1] + weight * float(task.mean(report)[0]) / kept
        state["center"] = [*state["center"][:-1], float(np.clip(moved, -1, 1))]
        state["target_error"] = weight * error

    def _radius(self, protocol: RegressionProtocol) -> float:
        if "target" not in protocol._state["levels"]:
            return 1.0
        people = max(1, protocol._people_of("target"))
        return self._levels(protocol).radius_of_gradients(math.sqrt(number_variance(protocol.epsilon) / people))

    @staticmethod
    def _levels(protocol: RegressionProtocol) -> NormLevels:
        return protocol._levels_of("target", _EXPECTED_DEVIATION * float(protocol._reach[-1]))


class _Levels(Step):
    """Levels of the norm of a question's vectors."""

    def __init__(self, question: str) -> None:
        self._question = question

    def task(self, protocol: RegressionProtocol, name: str) -> Task:
        functionals, form = self.functionals(protocol)
        return protocol._make_task(functionals, form, "levels")

    def functionals(self, protocol: RegressionProtocol) -> tuple[Floats, str]:
        """Return the functionals and the form of the question."""
        each = np.eye(protocol.n_features + 2)[1:]
        return (each[-1:] if self._question == "target" else each[:-1]), "linear"

    def update(self, protocol: RegressionProtocol, task: Task, report: Report) -> None:
        state = protocol._state
        # Only gradients are asked for again and again, in the same units.
        protocol._add_levels(self._question, task, report, to_earlier=self._question == "gradient")
        if self._question == "target":
            state["deviation"] = max(1e-6, _TargetMean._levels(protocol).scale)
        elif self._question == "width":
            reach = float(np.linalg.norm(protocol._reach[:-1]))
            levels = protocol._levels_of("width", _EXPECTED_DEVIATION * reach, protocol.n_features)
            state["width"] = max(1e-6, levels.scale / math.sqrt(protocol.n_features))


class _Center(Step):
    """Means of the features."""

    def task(self, protocol: RegressionProtocol, name: str) -> Task:
        noise = protocol._noise_of(max(2, protocol.n_features), name)
        radius = self._levels(protocol).radius_of_moments(noise)
        return protocol._make_task(np.eye(protocol.n_features + 2)[1:-1], "linear", "vector", radius)

    def update(self, protocol: RegressionProtocol, task: Task, report: Report) -> None:
        state, shortened = protocol._state, self._levels(protocol).shortened(task.radius)
        mean = task.mean(report)[: protocol.n_features] / shortened
        error = task.standard_error(report.n_people) / shortened
        # The middle of the bounds stays the centre while the noise exceeds the mean.
        kept = np.maximum(0, 1 - (error / np.where(mean == 0, error, mean)) ** 2)
        center = np.array(state["center"])
        center[:-1] = np.clip(center[:-1] + kept * mean, -1, 1)
        state["center"] = center.tolist()
        state["center_error"] = float(error**2 * np.mean(np.maximum(kept, 0.3)))

    @staticmethod
    def _levels(protocol: RegressionProtocol) -> NormLevels:
        reach = float(np.linalg.norm(protocol._reach[:-1]))
        return protocol._levels_of("center", _EXPECTED_DEVIATION * reach, protocol.n_features)


class _Products(_Levels):
    """Products of the terms and the residual."""

    def functionals(self, protocol: RegressionProtocol) -> tuple[Floats, str]:
        weight = math.sqrt(protocol.n_terms / 2) / protocol._state["deviation"]
        return np.vstack([protocol._rows() @ protocol._terms(), weight * protocol._residual()]), "products"

    def task(self, protocol: RegressionProtocol, name: str) -> Task:
        functionals, form = self.functionals(protocol)
        if name != self._question:
            return protocol._make_task(functionals, form, "levels")
        # Noise counts where it meets the terms, and clipping in whatever direction.
        noise = protocol._noise_of(n_products(len(functionals)), name, protocol.n_terms)
        return protocol._make_task(functionals, form, "vector", self._levels(protocol).radius_of_moments(noise))

    def update(self, protocol: RegressionProtocol, task: Task, report: Report) -> None:
        if task.answer == "levels":
            super().update(protocol, task, report)
            return
        state, n_terms = protocol._state, protocol.n_terms
        shortened = self._levels(protocol).shortened(task.radius)
        weight = math.sqrt(n_terms / 2) / state["deviation"]
        products = symmetric_matrix(task.mean(report), n_terms + 1)
        error = task.standard_error(report.n_people)
        sampled = task.radius**2 / (task.n_outputs * report.n_people)
        told = [
            protocol._rows().tolist(),
            (products[:-1, :-1] / shortened).tolist(),
            np.full((n_terms, n_terms), (error**2 + sampled) / shortened**2).tolist(),
        ]
        state["moments"] = [*state["moments"], told]
        noise = math.sqrt(error**2 / 2 + sampled) / weight
        protocol._learn(products[:-1, -1] / weight, noise, shortened)
        protocol._whiten()

    @staticmethod
    def _levels(protocol: RegressionProtocol) -> NormLevels:
        return protocol._levels_of("products", 1.5 * protocol.n_terms)


class _GradientStep(_Levels):
    """Gradient at the current model."""

    def functionals(self, protocol: RegressionProtocol) -> tuple[Floats, str]:
        return np.vstack([protocol._rows() @ protocol._terms(), protocol._residual()]), "gradient"

    def task(self, protocol: RegressionProtocol, name: str) -> Task:
        functionals, form = self.functionals(protocol)
        if name != self._question:
            return protocol._make_task(functionals, form, "levels")
        noise = protocol._noise_of(max(2, protocol.n_terms), name)
        return protocol._make_task(functionals, form, "vector", self._levels(protocol).radius_of_gradients(noise))

    def update(self, protocol: RegressionProtocol, task: Task, report: Report) -> None:
        if task.answer == "levels":
            super().update(protocol, task, report)
            return
        levels = self._levels(protocol)
        sampled = min(levels.scale, task.radius) ** 2 / (protocol.n_terms * report.n_people)
        noise = math.sqrt(task.standard_error(report.n_people) ** 2 + sampled)
        mean = task.mean(report)
        if len(mean) > protocol.n_terms:
            mean = mean[: protocol.n_terms]
        protocol._learn(mean, noise, max(_LEAST_KEPT, levels.kept(task.radius)))

    @staticmethod
    def _levels(protocol: RegressionProtocol) -> NormLevels:
        expected = 0.7 * math.sqrt(protocol.n_terms) * protocol._state["deviation"]
        return protocol._levels_of("gradient", expected)


_STEPS: dict[str, Step] = {
    "target": _TargetMean(),
    "target_levels": _Levels("target"),
    "center_levels": _Levels("center"),
    "center": _Center(),
    "width_levels": _Levels("width"),
    "products_levels": _Products("products"),
    "products": _Products("products"),
    "gradient_levels": _GradientStep("gradient"),
    "gradient": _GradientStep("gradient"),
}
