"""Regression protocol whose last cohorts estimate the errors of the coefficients."""

import math
from typing import Any

import numpy as np

from skldp._arrays import Floats
from skldp.learning._constants import N_COHORTS, PREPARATION_SHARE, USUAL_BIAS
from skldp.learning._linear_protocol import Products
from skldp.learning._posterior import Moments, combine_moments, positive_means
from skldp.learning._protocol import Question, by_name, n_people_needed, noise_of_moments, split_evenly
from skldp.learning._regression import RegressionProtocol
from skldp.learning._reports import Report
from skldp.learning._tasks import Task, noise_variance
from skldp.learning._uncertainty import Estimate, errors_along, inverse_where_known, newton_steps, semicircle

# Cohorts of the two Newton steps, whose scatter is their error.
_N_NEWTON_COHORTS = N_COHORTS // 2, 2 * N_COHORTS
# Largest mean truncation of second moments of 1: what the second step takes back, a third.
_MOST_CUT = 2 * _N_NEWTON_COHORTS[0] / (2 * _N_NEWTON_COHORTS[0] + _N_NEWTON_COHORTS[1])

_WAY_OUT = "It takes more people, fewer features or tighter bounds."


class InferenceProtocol(RegressionProtocol):
    """Linear regression with errors: a fifth of people fit it, two fifths whiten, two fifths take two Newton steps."""

    def __init__(self, n_features: int, n_people: int, **settings: Any) -> None:
        super().__init__(n_features, n_people, **settings)
        # Rows and products of the Newton steps, apart from those of the model.
        self._state |= {"start": None, "first": [], "second": [], "error_rows": [], "error_moments": []}
        if self.asks_for_errors:
            self._stays_open = ""

    @property
    def n_needed_for_errors(self) -> int:
        """Number of people from which errors are estimated."""
        return n_people_needed(self.n_features, self.epsilon, intervals=True)

    @property
    def asks_for_errors(self) -> bool:
        """True if there are enough people for errors; otherwise all of them fit the model."""
        return self.n_people >= self.n_needed_for_errors

    @property
    def refusal(self) -> str:
        """Reason for a missing estimate, or an empty text."""
        state = self._state
        if not self.asks_for_errors:
            rule = f"It takes at least {self.n_needed_for_errors:,} people for standard errors"
            return f"{rule} at epsilon {self.epsilon:.4g}; got {self.n_people:,} people."
        if state["start"] is None or min(len(state[name]) for name in ("error_moments", "first", "second")) < 2:
            return "Two cohorts of products with levels and of each Newton step must have answered; got fewer."
        _, unknown = inverse_where_known(*self._hessian())
        if unknown.size:
            weights = ((self._error_rows().T @ unknown) ** 2).sum(axis=1)[1:]
            hidden = np.flatnonzero(weights >= weights.max() / 10).tolist()
            return (
                "Second moments must stand out of the noise in every direction; got noise that hides those of features "
                f"{hidden}, which are nearly collinear or fill a small part of their bounds. {_WAY_OUT}"
            )
        if self._may_be_cut():
            return (
                "Second moments must not be cut off by more than a third; got long tails, or categories that few "
                f"people have. {_WAY_OUT}"
            )
        return ""

    def _may_be_cut(self) -> bool:
        """Return whether the first products, which are cut least, may exceed the mean of all by too much."""
        values, vectors = np.linalg.eigh(self._hessian()[0])
        first, variances = self._hessian(1)
        most = np.einsum("ik,ij,jk->k", vectors, first, vectors) + errors_along(vectors, variances)
        return bool((most > values / (1 - _MOST_CUT)).any())

    @property
    def coefficients(self) -> Floats:
        """Coefficients in the units of the declared bounds, the estimated ones if there are any."""
        return super().coefficients if self.refusal else self.estimate().values[1:]

    @property
    def intercept(self) -> float:
        """Intercept in the units of the declared bounds."""
        return super().intercept if self.refusal else float(self.estimate().values[0])

    def estimate(self) -> Estimate:
        """Coefficients without a ridge, with their errors."""
        if self.refusal:
            raise ValueError(self.refusal)
        state, middle, radius = self._state, self._box.center, self._box.radius
        task = self._task_of("second")
        # The affine map from the model's terms to those of the data.
        shift, matrix = np.zeros(self.n_terms), np.zeros((self.n_terms,) * 2)
        matrix[1:, 1:] = np.diag(radius[-1] / radius[:-1])
        center = np.array(state["center"])
        shift[0] = middle[-1] + radius[-1] * center[-1]
        matrix[0] = -radius[-1] * np.append(-1.0, center[:-1] + middle[:-1] / radius[:-1])
        return newton_steps(
            shift + matrix @ np.array(state["beta"]),
            matrix @ self._error_rows().T,
            self._hessian(),
            state["first"],
            state["second"],
            task.standard_error(1) ** 2,
            self._levels_of("first", 1.0).bias_with_hidden(task.radius, 1.0),
        )

    @property
    def undetected_share(self) -> float:
        """The larger one of second moments and gradients."""
        of_products = self._undetected("moments") if self.asks_for_errors else 0.0
        return max(super().undetected_share, of_products)

    def _hessian(self, n_reports: int | None = None) -> tuple[Floats, Floats]:
        """Return the second moments of the whitened terms by all or the first reports, and their noise's variances."""
        reports = [Moments(*map(np.array, one)) for one in self._state["error_moments"][:n_reports]]
        found = combine_moments(self._error_rows(), reports)
        # Released products are scaled by sqrt(2) off the diagonal.
        return found.values, found.variances * (1 + np.eye(self.n_terms)) / 2

    def _error_rows(self) -> Floats:
        """Return the functionals of the terms in which products and Newton steps are reported."""
        return np.array(self._state["error_rows"][-1]) if self._state["error_rows"] else self._scaled_rows()

    def _plan(self) -> list[tuple[str, int]]:
        if not self.asks_for_errors:
            return super()._plan()
        n, fifth, n_levels = self.n_people, self.n_people // 5, int(PREPARATION_SHARE * self.n_people)
        model = RegressionProtocol(**self._settings() | {"n_people": fifth, "kind": "rounds"})._steps
        # Nothing corrects what gradients lose to clipping: more people report their levels.
        names = ["first"] * _N_NEWTON_COHORTS[0] + ["second"] * _N_NEWTON_COHORTS[1]
        newton = [*zip(names, split_evenly(2 * fifth, len(names)), strict=True)]
        left = n - sum(people for _, people in model + newton) - 3 * n_levels
        steps = model
        for people in split_evenly(left, 3):
            steps += [("moments_levels", n_levels), ("moments", people - n_levels)]
        return [*steps, ("first_levels", 3 * n_levels), *newton]


class _Moments(Products[InferenceProtocol]):
    """Products of the terms alone, at a radius at which clipping counts in full."""

    def functionals(self, protocol: InferenceProtocol) -> tuple[Floats, str]:
        return protocol._error_rows() @ protocol._terms(), "products"

    def radius(self, protocol: InferenceProtocol) -> float:
        people = max(1, protocol._people_of("moments"))
        best = self.levels(protocol).radius_of_moments(self.noise(protocol), 1.0)
        # Second moments of 1 are twice the noise.
        return min(best, 1 / (2 * noise_of_moments(protocol.n_terms, protocol.epsilon, people)))

    def learn(self, protocol: InferenceProtocol, task: Task, report: Report) -> None:
        # Without levels the truncation is unbounded.
        if self._name in protocol._state["levels"]:
            super().learn(protocol, task, report)

    def keep(self, protocol: InferenceProtocol, moments: Floats, variances: Floats) -> None:
        reported = [protocol._error_rows().tolist(), moments.tolist(), variances.tolist()]
        protocol._state["error_moments"] = [*protocol._state["error_moments"], reported]

    def whiten(self, protocol: InferenceProtocol) -> None:
        # Without a prior: intervals need directions of small second moments to stand out.
        moments, variances = protocol._hessian()
        values, vectors = np.linalg.eigh(moments)
        sizes = np.sqrt(np.maximum(positive_means(values, semicircle(variances) / 2), 1e-9))
        rows = ((vectors / sizes).T @ protocol._error_rows()).tolist()
        protocol._state["error_rows"] = [*protocol._state["error_rows"], rows]

    def miss(self, protocol: InferenceProtocol) -> None:
        state = protocol._state
        if protocol._steps[state["step"]][0] != self._name:
            state["levels"] = {name: one for name, one in state["levels"].items() if name != self._name}


class _Newton(Question[InferenceProtocol]):
    """Gradients at the model, whose Newton step is the start of the second ones."""

    def functionals(self, protocol: InferenceProtocol) -> tuple[Floats, str]:
        start = protocol._state["start"] if self._name == "second" else None
        residual = np.eye(protocol.n_features + 2)[-1] - np.array(start or protocol._state["beta"]) @ protocol._terms()
        return np.vstack([protocol._error_rows() @ protocol._terms(), residual]), "gradient"

    def radius(self, protocol: InferenceProtocol) -> float:
        people = max(1, protocol._people_of("first") + protocol._people_of("second"))
        noise = math.sqrt(noise_variance(protocol.n_terms, protocol.epsilon) / people)
        levels = protocol._levels_of("first", math.sqrt(protocol.n_terms) * float(protocol._state["deviation"]))
        return levels.radius_within(USUAL_BIAS, noise)

    def learn(self, protocol: InferenceProtocol, task: Task, report: Report) -> None:
        state = protocol._state
        state[self._name] = cohorts = [*state[self._name], [report.n_people, task.mean(report).tolist()]]
        if self._name == "first" and state["error_moments"]:
            inverse, _ = inverse_where_known(*protocol._hessian())
            people, means = zip(*cohorts, strict=True)
            step = protocol._error_rows().T @ inverse @ np.average(means, axis=0, weights=people)
            state["start"] = (np.array(state["beta"]) + step).tolist()


InferenceProtocol.steps = RegressionProtocol.steps | {
    **by_name(_Moments("moments"), _Newton("first")),
    "second": _Newton("second"),
}
