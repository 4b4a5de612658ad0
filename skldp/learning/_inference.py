"""Regression protocol whose last cohorts estimate the errors of the coefficients."""

import bisect
import math
import sys
from typing import Any

import numpy as np

from skldp._arrays import Floats
from skldp.learning._constants import LEAST_PER_NUMBER, LEAST_VARIANCE, LEVELS_SHARE, PREPARATION_SHARE
from skldp.learning._levels import NormLevels
from skldp.learning._posterior import combine_reports
from skldp.learning._protocol import Question, Step, by_name, split_evenly
from skldp.learning._regression import RegressionProtocol
from skldp.learning._reports import Report
from skldp.learning._tasks import Task, noise_variance
from skldp.learning._uncertainty import Estimate, gram_edge, inverse_where_known, newton_steps, scatter, semicircle
from skldp.learning._vectors import symmetric_matrix

# Cohorts of the two Newton steps, whose scatter is their error: 48 degrees of freedom widen intervals by 3%.
_N_COHORTS = 50
# Fraction of these in the first step. Less: the second step starts far from the truth. More: it takes back less.
_FIRST_PART = 0.2
# Largest mean truncation of products, in second moments of 1, for intervals: what the second step takes back, a third.
_MOST_CUT = 2 * _FIRST_PART / (1 + _FIRST_PART)
# Largest noise of second moments of 1, at the typical radius: above it hardly any table has intervals.
_MOST_EDGE = 0.12
# Largest bias of a gradient, in standard errors of its noise, which intervals count: the smaller, the wider.
_GRADIENT_CUT = 0.05
# Largest mean truncation of products, in the largest eigenvalue of their noise: the smaller, the more noise.
_GRAM_CUT = 0.3
# Cohorts of second moments: the first one whitens the terms of the second.
_N_GRAMS = 2


class InferenceProtocol(RegressionProtocol):
    r"""Interactive protocol of linear regression with standard errors of its coefficients.

    A third of the people learn the model, as in a :class:`RegressionProtocol`, and a third report second moments. The
    others report gradients :math:`P'x (y - x'\beta)` in fifty cohorts: ten at the model, and forty after a Newton step.
    Their scatter is the error of the two steps (``newton_steps``).

    The intervals are for least squares of records clipped to their bounds. The bias of clipped gradients, by the
    reported levels, is at most a twentieth of the standard error from noise, and counted. A tail of fewer people than
    :attr:`undetected_share` may go unseen. There are no intervals if more than a third of the second moments may be
    clipped, as of rare categories, or if noise hides a direction; :attr:`refusal` says so.
    """

    def __init__(self, n_features: int, n_people: int, **settings: Any) -> None:
        self._n_model = n_people
        super().__init__(n_features, n_people, **settings)
        self._state |= {"scaling": np.eye(self.n_terms).tolist(), "grams": [], "terms_cut": 0.0}
        self._state |= {"start": None, "first": None, "second": None}

    @property
    def asks_for_errors(self) -> bool:
        """True if there are enough people for errors; otherwise all of them fit the model."""
        return self._n_model < self.n_people

    @property
    def refusal(self) -> str:
        """Reason for a missing estimate, or an empty text."""
        state, steps = self._state, [self._state[name] for name in ("first", "second")]
        if not self.asks_for_errors:
            needed = n_people_for_intervals(self)
            rule = f"It takes at least {needed:,} people for standard errors at epsilon {self.epsilon:.4g}."
            return f"{rule} Got {self.n_people:,} people."
        if state["start"] is None or any(one is None or one["cohorts"] < 2 for one in steps):
            return "At least two of the cohorts of each of the last two tasks must have answered. Got fewer."
        if state["terms_cut"] > _MOST_CUT:
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

    def _hidden(self) -> list[int]:
        """Indices of the features of directions that the noise hides."""
        _, unknown = inverse_where_known(*self._gram())
        if not unknown.size:
            return []
        weights = ((np.array(self._state["scaling"]) @ unknown) ** 2).sum(axis=1)[1:]
        return np.flatnonzero(weights >= weights.max() / 10).tolist()

    def _in_units(self) -> tuple[Floats, Floats]:
        """Return the affine map from the model's terms to those of the data."""
        middle, radius = self._box.center, self._box.radius
        shift, matrix = np.zeros(self.n_terms), np.zeros((self.n_terms,) * 2)
        matrix[1:, 1:] = np.diag(radius[-1] / radius[:-1])
        center = np.array(self._state["center"])
        shift[0] = middle[-1] + radius[-1] * center[-1]
        matrix[0] = -radius[-1] * np.append(-1.0, center[:-1] + middle[:-1] / radius[:-1])
        return shift, matrix

    def _gram(self) -> tuple[Floats, Floats]:
        """Return the second moments of the scaled terms, and the variances of their noise."""
        gram, variances = combine_reports(np.array(self._state["scaling"]).T, self._state["grams"])
        # Released products are scaled by sqrt(2) off the diagonal.
        return gram, variances * (1 + np.eye(self.n_terms)) / 2

    def _plan(self) -> list[tuple[str, int]]:
        # A third of the people each: for the model, for the scale of its terms, and for the gradients.
        n, third = self.n_people, self.n_people // 3
        n_sizes, n_levels = int(PREPARATION_SHARE * n), int(LEVELS_SHARE * n)
        n_gram = (third - n_sizes - n_levels) // _N_GRAMS - n_levels
        cohorts = split_evenly(third, _N_COHORTS)
        model = self._plan_of_model(n - (third + n_sizes + n_levels + _N_GRAMS * (n_levels + n_gram)))
        if not (
            cohorts[0] >= LEAST_PER_NUMBER
            and any(name == "products" for name, _ in model)
            and gram_edge(self.n_terms, self.n_terms, self.epsilon, _N_GRAMS * n_gram) <= _MOST_EDGE
        ):
            return self._plan_of_model(n)
        self._n_model = sum(wanted for _, wanted in model)
        scale = [("sizes", n_sizes), *[("gram_levels", n_levels), ("gram", n_gram)] * _N_GRAMS]
        n_first = round(_FIRST_PART * _N_COHORTS)
        gradients = [("first" if i < n_first else "second", people) for i, people in enumerate(cohorts)]
        return [*model, *scale, ("first_levels", n_levels), *gradients]

    def _plan_of_model(self, n_people: int) -> list[tuple[str, int]]:
        return RegressionProtocol(**self._settings() | {"n_people": max(1, n_people)})._steps

    def _scaled_terms(self) -> Floats:
        """Return the functionals of the scaled terms."""
        return np.asarray(np.array(self._state["scaling"]).T @ self._terms())

    def _gram_levels(self) -> NormLevels:
        return self._levels_of("gram", float(self.n_terms))

    def _gradient_levels(self) -> NormLevels:
        return self._levels_of("first", math.sqrt(self.n_terms) * float(self._state["deviation"]))

    @property
    def undetected_share(self) -> float:
        """Largest share of people beyond the radii who may go unseen."""
        return max(self._gram_levels().detectable, self._gradient_levels().detectable)


class _Sizes(Step[InferenceProtocol]):
    """Squares of the terms, which scale them."""

    def task(self, protocol: InferenceProtocol, name: str) -> Task:
        # No truncation: a too small estimate would stretch the scale.
        return protocol._make_task(protocol._scaled_terms(), "squares", "vector")

    def update(self, protocol: InferenceProtocol, task: Task, report: Report) -> None:
        # A hidden size is taken to be as large as the noise.
        squares = np.maximum(task.mean(report), 2 * task.standard_error(report.n_people))
        protocol._state["scaling"] = np.diag(1 / np.sqrt(squares)).tolist()


class _Gram(Question[InferenceProtocol]):
    """Products of the scaled terms, which scale those of the next step."""

    def functionals(self, protocol: InferenceProtocol) -> tuple[Floats, str]:
        return protocol._scaled_terms(), "products"

    def radius(self, protocol: InferenceProtocol) -> float:
        people = max(1, protocol._people_of("gram") // _N_GRAMS)
        noise = gram_edge(1.0, protocol.n_terms, protocol.epsilon, people)
        # The noise of both cohorts together stays below the least second moment that counts as known.
        most = LEAST_VARIANCE / noise * math.sqrt(_N_GRAMS)
        return min(protocol._gram_levels().radius_within(_GRAM_CUT, noise), most)

    def learn(self, protocol: InferenceProtocol, task: Task, report: Report) -> None:
        state, scaling = protocol._state, np.array(protocol._state["scaling"])
        state["terms_cut"] += protocol._gram_levels().bias(task.radius) / _N_GRAMS
        moments = symmetric_matrix(task.mean(report), protocol.n_terms)
        reported = [scaling.T.tolist(), moments.tolist(), task.standard_error(report.n_people)]
        state["grams"] = [*state["grams"], reported]
        moments, variances = protocol._gram()
        values, vectors = np.linalg.eigh(moments)
        # Directions that do not stand out are scaled by the noise.
        state["scaling"] = (scaling @ vectors / np.sqrt(np.maximum(values, 0) + semicircle(variances))).tolist()

    def miss(self, protocol: InferenceProtocol) -> None:
        if protocol._steps[protocol._state["step"]][0] != self._name:
            # Without levels the truncation is unbounded.
            protocol._state["terms_cut"] = sys.float_info.max


class _Newton(Question[InferenceProtocol]):
    """Gradients at the model, whose Newton step is the start of the second ones."""

    def functionals(self, protocol: InferenceProtocol) -> tuple[Floats, str]:
        start = protocol._state["start"] if self._name == "second" else None
        residual = np.eye(protocol.n_features + 2)[-1] - np.array(start or protocol._state["beta"]) @ protocol._terms()
        return np.vstack([protocol._scaled_terms(), residual]), "gradient"

    def radius(self, protocol: InferenceProtocol) -> float:
        people = max(1, protocol._people_of("first") + protocol._people_of("second"))
        noise = math.sqrt(noise_variance(protocol.n_terms, protocol.epsilon) / people)
        return protocol._gradient_levels().radius_within(_GRADIENT_CUT, noise)

    def learn(self, protocol: InferenceProtocol, task: Task, report: Report) -> None:
        state = protocol._state
        state[self._name] = spread = scatter(state[self._name], task.mean(report), report.n_people)
        if self._name == "first" and state["grams"]:
            inverse, _ = inverse_where_known(*protocol._gram())
            step = np.array(state["scaling"]) @ inverse @ np.array(spread["sum"]) / spread["people"]
            state["start"] = (np.array(state["beta"]) + step).tolist()


InferenceProtocol.steps = RegressionProtocol.steps | {
    "sizes": _Sizes(),
    **by_name(_Gram("gram"), _Newton("first")),
    "second": _Newton("second"),
}


def n_people_for_intervals(protocol: InferenceProtocol) -> int:
    """Return the number of people from which errors are estimated, or the largest number that is tried."""
    settings: dict[str, Any] = protocol._settings()
    sizes = range(1, 1 << 50)
    found = bisect.bisect_left(
        sizes, True, key=lambda n: InferenceProtocol(**settings | {"n_people": n}).asks_for_errors
    )
    return sizes[min(found, len(sizes) - 1)]
