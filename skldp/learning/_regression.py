r"""Protocol of least squares, one release per person; its states are public JSON documents."""

import math
from collections.abc import Iterable
from itertools import groupby
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from skldp._arrays import Floats
from skldp.learning._constants import DETECTED, EXPECTED_DEVIATION, N_COHORTS, PREPARATION_SHARE
from skldp.learning._linear_protocol import STEPS_OF_FEATURES, LinearProtocol, Products
from skldp.learning._posterior import Gradients, posterior, shrunk_means
from skldp.learning._protocol import Question, by_name, split_evenly
from skldp.learning._reports import Report
from skldp.learning._tasks import Task, number_variance


class RegressionProtocol(LinearProtocol):
    r"""Interactive protocol of linear regression: cohorts answer one task after the other.

    Every person belongs to one cohort and answers one task, at the full epsilon. All that this object knows is public.

    Parameters
    ----------
    n_features : int
        Number of features.
    n_people : int
        Number of people to ask. Not all need to answer.
    epsilon : float
        Natural log, of the whole record with its target.
    low, high : array-like of shape (n_features + 1,)
        Declared bounds of the features and, last, of the target.
    kind : {"rounds", "once"}, default="rounds"
        ``"once"``: after some cohorts that report the scale, everybody left answers one and the same task, and
        :meth:`add` takes more answers to it at any time. ``"rounds"`` goes on with gradients at the current model.

    Notes
    -----
    People report the mean of a number or vector, products of the terms and the residual, a gradient at the current
    model, or the level of the norm of any of these, which decides the radius (``NormLevels``): the bias of clipping
    vanishes as people grow. If people are enough, some report the squares of the features, so that every feature has a
    width of its own, in whatever bounds it is declared. All products and gradients enter one linear-Gaussian update
    (``posterior``). If people are enough for it, some report the residual, clipped at the bounds alone: these and the
    first reports of the target correct the constant, by as much as their error lets them (``shrunk_means``).

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

    _arguments = ("n_features", "n_people", "epsilon", "kind")
    _bounds_target = True

    def __init__(
        self,
        n_features: int,
        n_people: int,
        *,
        epsilon: float,
        low: npt.ArrayLike,
        high: npt.ArrayLike,
        kind: Literal["rounds", "once"] = "rounds",
    ) -> None:
        super().__init__(n_features, n_people, epsilon, low, high, kind)
        self._stays_open = "products" if self.kind == "once" else ""
        # Groups of reported gradients before the last one: they do not change any more.
        self._earlier: dict[tuple[int, int], Gradients] = {}
        self._steps = self._plan()
        self._state = self._state_of_features() | {
            # Variance of the error of the target's centre.
            "target_error": EXPECTED_DEVIATION**2,
            "deviation": EXPECTED_DEVIATION,
            # The estimate, and where people report: the estimate given that there is something to learn.
            "beta": [0.0] * self.n_terms,
            "asked_at": [0.0] * self.n_terms,
            # Models, the reported mean of the target less the features' part by each, its noise, and the people.
            "residuals": [],
        }

    @property
    def coefficients(self) -> Floats:
        """Coefficients in the units of the declared bounds, shape (n_features,)."""
        return self._in_data_units(self._model())[0] * self._box.radius[-1]

    @property
    def intercept(self) -> float:
        """Intercept in the units of the declared bounds."""
        at_origin = self._state["center"][-1] + self._in_data_units(self._model())[1]
        return float(self._box.center[-1] + self._box.radius[-1] * at_origin)

    @property
    def times_too_wide(self) -> float:
        """Ratio of the target's expected deviation to that by its reported levels, which may miss rare values."""
        return float(EXPECTED_DEVIATION / self._state["deviation"])

    def _model(self) -> Floats:
        """Return the estimate, its constant corrected where the reported mean residuals contradict it."""
        state, model, rows = self._state, np.array(self._state["beta"]), self._rows()
        means = np.linalg.solve(rows, self._expected_moments(rows)[0][:, 0])
        means /= means[0]
        predicted, lost, precision = state["center"][-1] + model @ means, 0.0, 0.0
        for asked_at, reported, error, n_people in state["residuals"]:
            away = model - asked_at
            found = reported - state["center"][-1] - away @ means
            # It may be that of a few people at the farthest bound.
            sampled = max(state["deviation"] ** 2, abs(found) * (1 + abs(state["center"][-1]))) / n_people
            # People who reported at another model tell the mean as well as those of the features are known.
            weight = 1 / (error**2 + sampled + state["center_error"] * float(away[1:] @ away[1:]))
            lost, precision = lost + weight * found, precision + weight
        if precision:
            # A bias of twice the size is half as likely: noise rarely moves the constant of a target of little spread.
            (bias,), _ = shrunk_means(np.array([lost / precision]), precision**-0.5, rarer=1.0)
            model[0] += np.clip(predicted + bias, -1, 1) - predicted
        return model

    def _plan(self) -> list[tuple[str, int]]:
        """Return the steps with their numbers of people, from public numbers only."""
        n = self.n_people
        if not self.is_enough:
            return self._plan_of_target(n, 1.0)
        share = self._share_of_outcome(number_variance(self.epsilon) + EXPECTED_DEVIATION**2)
        steps = self._plan_of_target(n, PREPARATION_SHARE + share)
        once = self.kind == "once"
        people = int(max(share, 2 * PREPARATION_SHARE) * n)
        shows_deviation = DETECTED**2 * number_variance(self.epsilon) <= people * EXPECTED_DEVIATION**2
        residual = [("residual", people)] if shows_deviation else []
        left = n - sum(people for _, people in steps + residual)
        steps += self._plan_of_features(left, all_products=once, own_widths=self.n_features > 1)
        if once:
            steps[-2:-2] = residual  # The last task, which has levels, stays open.
        else:
            steps.append(("gradient_levels", int(PREPARATION_SHARE * n)))
            for people in split_evenly(n - sum(people for _, people in steps + residual), N_COHORTS):
                n_levels = int(PREPARATION_SHARE * people)
                steps += [("gradient_levels", n_levels), ("gradient", people - n_levels)]
            steps += residual
        return steps

    def _plan_of_target(self, n_people: int, share: float) -> list[tuple[str, int]]:
        """Return the steps for the target's mean: within the bounds, then twice about it."""
        people = int(share * n_people)
        n_levels = int(min(PREPARATION_SHARE * n_people, people / 2))
        # Each step is about a better centre; bounds may be far wider than the target.
        first, second, third = split_evenly(people - n_levels, 3)
        before, after = split_evenly(n_levels, 2)
        steps = zip(("target", "target_levels") * 2, (first, before, second, after), strict=True)
        return [*steps, ("target", third)]

    def _residual(self) -> Floats:
        """Return the functional of the residual at the model at which people report."""
        return np.eye(self.n_features + 2)[-1] - np.array(self._state["asked_at"]) @ self._terms()

    def _prior(self) -> tuple[Floats, Floats]:
        """Return known variances, and of unknown scale (I + D H / deviation^2)^-1, H the second moments."""
        state = self._state
        known = np.zeros((1, self.n_terms))
        unknown = 1 / (1 + self.n_terms * self._widths**2 / state["deviation"] ** 2)
        known[0, 0] = state["target_error"]
        unknown[0] = self._errors_of_means.mean() * state["deviation"] ** 2
        return known, np.diag(unknown)[None, None]

    def _learn(self, value: Floats, noise: float, kept: float) -> None:
        """Add a reported gradient, and update the model."""
        state = self._state
        self._keep_rows()
        asked = [len(state["rows"]) - 1, len(state["moments"])]
        state["gradients"] = [*state["gradients"], [*asked, (value / kept).tolist(), noise / kept, state["asked_at"]]]
        reports = []
        for (row, n_reports), cohorts in groupby(state["gradients"], key=lambda one: one[:2]):
            reports.append(self._earlier.get((row, n_reports)) or self._group(row, n_reports, cohorts))
            if [row, n_reports] != asked:
                self._earlier[row, n_reports] = reports[-1]
        models = None if state["of_priors"] is None else np.array(state["of_priors"])
        found = posterior(reports, *self._prior(), np.zeros((1, self.n_terms)), models)
        state["beta"], state["asked_at"] = found.mean[0].tolist(), found.mean_if_any[0].tolist()
        state["of_priors"] = found.models.tolist()

    def _group(self, row: int, n_reports: int, cohorts: Iterable[list[Any]]) -> Gradients:
        """Return reported gradients of cohorts that were asked about the same functionals."""
        rows = np.array(self._state["rows"][row])
        moments, unknown, _ = self._expected_moments(rows, n_reports)
        values, noises, asked_at = (np.array(one) for one in zip(*(one[2:] for one in cohorts), strict=True))
        values = values + asked_at @ np.linalg.inv(rows) @ moments
        return Gradients(rows, moments, unknown, values[:, None], noises, asked_at[:, None])


class _Target(Question[RegressionProtocol]):
    """Mean of the target's distance from its centre, and levels of that distance."""

    answer = "number"

    def functionals(self, protocol: RegressionProtocol) -> tuple[Floats, str]:
        return np.eye(protocol.n_features + 2)[-1:], "linear"

    def expected(self, protocol: RegressionProtocol) -> tuple[float, int]:
        return EXPECTED_DEVIATION, 1

    def radius(self, protocol: RegressionProtocol) -> float:
        if "target" not in protocol._state["levels"]:
            return 1.0
        people = max(1, protocol._people_of("target"))
        best = self.levels(protocol).radius_of_gradients(math.sqrt(number_variance(protocol.epsilon) / people))
        return max(best, math.sqrt(protocol._state["target_error"]))  # The centre may be wrong by so much.

    def learn(self, protocol: RegressionProtocol, task: Task, report: Report) -> None:
        state = protocol._state
        kept = self.levels(protocol).kept(task.radius) if "target" in state["levels"] else 1.0
        sampled = min(task.radius, state["deviation"]) ** 2 / report.n_people
        error = (task.standard_error(report.n_people) ** 2 + sampled) / kept**2
        weight = state["target_error"] / (state["target_error"] + error)
        moved = state["center"][-1] + weight * float(task.mean(report)[0]) / kept
        if "target" not in state["levels"]:
            # The first one is within the bounds.
            noise = task.standard_error(report.n_people)
            state["residuals"] = [[[0.0] * protocol.n_terms, float(task.mean(report)[0]), noise, report.n_people]]
        state["center"] = [*state["center"][:-1], float(np.clip(moved, -1, 1))]
        state["target_error"] = weight * error

    def learn_levels(self, protocol: RegressionProtocol, task: Task, report: Report) -> None:
        super().learn_levels(protocol, task, report)
        protocol._state["deviation"] = max(1e-6, self.levels(protocol).scale)


class _ProductsWithResidual(Products[RegressionProtocol]):
    """Products of the terms and the residual."""

    def functionals(self, protocol: RegressionProtocol) -> tuple[Floats, str]:
        functionals, form = super().functionals(protocol)
        return np.vstack([functionals, self._weight(protocol) * protocol._residual()]), form

    def use(self, protocol: RegressionProtocol, products: Floats, noise: float, shortened: float) -> None:
        weight = self._weight(protocol)
        protocol._learn(products[:-1, -1] / weight, noise / weight, shortened)

    def expected(self, protocol: RegressionProtocol) -> tuple[float, int]:
        return 1.5 * protocol.n_terms, 1

    @staticmethod
    def _weight(protocol: RegressionProtocol) -> float:
        return math.sqrt(protocol.n_terms / 2) / float(protocol._state["deviation"])


class _Gradient(Question[RegressionProtocol]):
    """Gradient at the current model."""

    def functionals(self, protocol: RegressionProtocol) -> tuple[Floats, str]:
        return np.vstack([protocol._rows() @ protocol._terms(), protocol._residual()]), "gradient"

    def radius(self, protocol: RegressionProtocol) -> float:
        noise = protocol._noise_of(protocol.n_terms, "gradient")
        return self.levels(protocol).radius_of_gradients(noise, protocol.n_terms)

    def learn_levels(self, protocol: RegressionProtocol, task: Task, report: Report) -> None:
        # Gradients have the same units in all cohorts.
        protocol._add_levels("gradient", task, report, to_earlier=True)

    def learn(self, protocol: RegressionProtocol, task: Task, report: Report) -> None:
        levels = self.levels(protocol)
        sampled = levels.sampling_variance(task.radius, protocol.n_terms * report.n_people)
        noise = math.sqrt(task.standard_error(report.n_people) ** 2 + sampled)
        mean = task.mean(report)[: protocol.n_terms]
        protocol._learn(mean, noise, levels.kept(task.radius))

    def expected(self, protocol: RegressionProtocol) -> tuple[float, int]:
        return math.sqrt(protocol.n_terms) * protocol._state["deviation"], 1


class _Residual(Question[RegressionProtocol]):
    """Mean residual within the bounds of the target, which shows what clipping took from the constant."""

    answer = "number"

    def functionals(self, protocol: RegressionProtocol) -> tuple[Floats, str]:
        without_constant = protocol._residual()
        without_constant[0] = protocol._state["center"][-1]
        return without_constant[None], "linear"

    def radius(self, protocol: RegressionProtocol) -> float:
        return 1.0 + float(protocol._state["deviation"])  # Up to a bound and the features' part.

    def learn(self, protocol: RegressionProtocol, task: Task, report: Report) -> None:
        state, noise = protocol._state, task.standard_error(report.n_people)
        mean = float(task.mean(report)[0]) - state["asked_at"][0]
        state["residuals"] = [*state["residuals"], [state["asked_at"], mean, noise, report.n_people]]


RegressionProtocol.steps = STEPS_OF_FEATURES | {
    **by_name(_Target("target"), _ProductsWithResidual("products"), _Gradient("gradient")),
    "residual": _Residual("residual"),
}
