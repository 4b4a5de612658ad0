r"""Steps that regression and classification share: centres, widths and products of the features."""

import math
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from skldp._arrays import Floats
from skldp.learning._constants import (
    DETECTED,
    EXPECTED_DEVIATION,
    LEAST_VARIANCE,
    N_COHORTS,
    PREPARATION_SHARE,
    PRODUCTS_SHARE,
    REDUNDANT,
)
from skldp.learning._levels import NormLevels
from skldp.learning._posterior import (
    Moments,
    combine_moments,
    positive_means,
    positive_part,
    shrunk_means,
    with_least_eigenvalues,
    with_least_variances,
)
from skldp.learning._protocol import Protocol, Question, Step, by_name, split_evenly, sufficiency
from skldp.learning._reports import Report
from skldp.learning._tasks import Task, noise_variance
from skldp.learning._vectors import symmetric_matrix

P = TypeVar("P", bound="LinearProtocol")


class LinearProtocol(Protocol):
    """Base class of protocols that learn linear models by gradients in whitened terms.

    Subclasses add steps for the target, and what a gradient says about the model.
    """

    _last_expected: tuple[Any, Any] = (None, None)

    @property
    def _constant(self) -> float:
        """Weight of the constant in reported products and gradients; that of a whitened feature is about 1."""
        return 1.0

    @property
    def _widths(self) -> Floats:
        """Deviations of the terms: that of the constant counts as 1."""
        return np.append(1.0, np.broadcast_to(self._state["width"], self.n_features))

    @property
    def _common_width(self) -> float:
        """Root mean square of the deviations of the features, by the levels of the norm."""
        return max(1e-6, self._size_of(self._levels_of_width) / math.sqrt(self.n_features))

    @property
    def _levels_of_width(self) -> NormLevels:
        """Levels of the norm of the centred features."""
        return self._levels_of("width", *Width("width").expected(self))

    @property
    def _errors_of_means(self) -> Floats:
        """Variances of the errors of the features' centres, in squared widths."""
        return np.asarray(np.minimum(1.0, self._state["center_error"] / self._widths[1:] ** 2))

    def _state_of_features(self) -> dict[str, Any]:
        """Return the state before anything is reported."""
        return self._state | {
            # Sum of the reported centres by their precision, the precision, and the variance of the error of one.
            "centers": [[0.0] * self.n_features, 0.0],
            "center_error": 0.0,
            "width": EXPECTED_DEVIATION,
            # The functionals of the terms that products and gradients were about, and what was reported of them.
            "rows": [],
            "moments": [],
            "gradients": [],
            # The estimates under each prior.
            "of_priors": None,
        }

    @property
    def n_terms(self) -> int:
        """Number of terms: the constant and the features."""
        return self.n_features + 1

    def _plan_of_features(
        self,
        n_people: int,
        *,
        all_products: bool = False,
        share_of_levels: float = PREPARATION_SHARE,
        own_widths: bool = False,
    ) -> list[tuple[str, int]]:
        """Return the steps for the features: of so many people, with products for all of them or for a part."""
        people = int(PREPARATION_SHARE * n_people)
        noise = noise_variance(self.n_features, self.epsilon) * self.n_features / max(people, 1)
        # A column that is always 0 differs from the expected one by three errors.
        own_widths = own_widths and math.sqrt(noise) <= 1 / 3
        steps = []
        # The second centre is about the first one, where vectors are shorter.
        for part in split_evenly(people, 1 + own_widths):
            steps += [("center_levels", part), ("center", part)]
        steps += [("width_levels", people)] + [("squares", people)] * own_widths
        left = n_people - sum(people for _, people in steps)
        # Number of stages of products, each with a sufficiency of 1 for each term, if everybody reported them.
        most = sufficiency(self.n_people, self.n_features, self.epsilon) / self.n_terms
        share = 1.0 if all_products else PRODUCTS_SHARE / (1 + 2 / most)
        people = int(share * left)
        # Several people report the levels of a stage. Without a stage, all features keep the common width.
        n_most = N_COHORTS if self.kind == "rounds" else round(PRODUCTS_SHARE * N_COHORTS)
        n_stages = min(n_most, int(PREPARATION_SHARE * people / DETECTED), round(share * most))
        for cohort in split_evenly(people, n_stages or int(all_products)):
            n_levels = int(share_of_levels * cohort)
            steps += [("products_levels", n_levels), ("products", cohort - n_levels)]
        return steps

    def _terms(self) -> Floats:
        """Return the functionals of the terms: the constant and the features."""
        return np.eye(self.n_features + 2)[:-1]

    def _rows(self) -> Floats:
        """Return the functionals of the terms in which people report: whitened ones."""
        return np.array(self._state["rows"][-1]) if self._state["rows"] else self._scaled_rows()

    def _scaled_rows(self) -> Floats:
        """Return the functionals of the terms before any whitening, each divided by its width."""
        rows = np.diag(1 / self._widths)
        rows[0, 0] = self._constant
        return rows

    def _keep_rows(self) -> None:
        """Keep the functionals of the first reports."""
        if not self._state["rows"]:
            self._state["rows"] = [self._rows().tolist()]

    def _moments(self, rows: Floats, n_reports: int | None = None) -> Moments:
        """Return the second moments of functionals of the terms, from reports and what is expected before."""
        state = self._state
        reports = [Moments(*map(np.array, one)) for one in state["moments"][:n_reports]]
        # Correlations may differ from 0 by so much that their largest eigenvalue is like a variance.
        expected = np.eye(self.n_terms)
        variances = LEAST_VARIANCE * np.maximum(expected, 1 / self.n_terms)
        variances[0, 1:] = variances[1:, 0] = LEAST_VARIANCE / self.n_terms + self._errors_of_means
        variances[0, 0] = variances[0, 1:].mean()
        found = combine_moments(rows, [Moments(np.diag(1 / self._widths), expected, variances), *reports])
        if not rows[0, 1:].any():
            # The constant is known.
            found.values[0, 0] = rows[0, 0] ** 2
        return found

    def _expected_moments(self, rows: Floats, n_reports: int | None = None) -> tuple[Floats, Floats, float]:
        """Return the means of second moments given that they are positive, their variances, and the noise's edge."""
        # All that they depend on; nothing in the state is changed in place. Several steps ask for the same ones.
        key = rows.tobytes(), n_reports, *(self._state[name] for name in ("moments", "width", "center_error"))
        known, expected = self._last_expected
        if known != key:
            found = self._moments(rows, n_reports)
            edge = math.sqrt(2 * self.n_terms * float(np.mean(found.variances)))
            expected = positive_part(found.values, edge / 2), found.variances, edge
            self._last_expected = key, expected
        return expected

    def _size_of(self, levels: NormLevels) -> float:
        """Return the size of the centred features, by the levels of their norms."""
        return levels.scale

    def _raise_variances(self, spread: Floats, rows: Floats, least: Floats) -> Floats:
        """Raise small variances, which bounds leverage: those of single columns."""
        return with_least_variances(spread, rows, least)

    def _whiten(self) -> None:
        """Make functionals of the terms whose second moments are about 1."""
        state, rows = self._state, self._rows()
        moments, _, edge = self._expected_moments(rows)
        change = np.eye(self.n_terms)
        means = moments[0, 1:] / moments[0, 0]
        spread = moments[1:, 1:] - np.outer(means, means) * moments[0, 0]
        # Clipping hides the variance of rare values from products, and not from levels.
        variances = self._widths[1:] ** 2
        spread = self._raise_variances(spread, rows[1:, 1:], LEAST_VARIANCE * variances)
        spread = with_least_eigenvalues(spread, rows[1:, 1:], REDUNDANT * float(variances.mean()))
        values, vectors = np.linalg.eigh(spread)
        # Shrink by half a standard error; the next stage corrects an excess.
        whitening = (vectors / np.sqrt(np.maximum(positive_means(values, edge / 4), 1e-9))).T
        change[1:, 1:] = whitening
        change[1:, 0] = -whitening @ means
        state["rows"] = [*state["rows"], (change @ rows).tolist()]


class Center(Question[LinearProtocol]):
    """Means of the features."""

    def functionals(self, protocol: LinearProtocol) -> tuple[Floats, str]:
        return np.eye(protocol.n_features + 2)[1:-1], "linear"

    def learn(self, protocol: LinearProtocol, task: Task, report: Report) -> None:
        state, shortened = protocol._state, self.levels(protocol).shortened(task.radius)
        mean = np.array(state["center"][:-1]) + task.mean(report)[: protocol.n_features] / shortened
        weight = (shortened / task.standard_error(report.n_people)) ** 2
        total, precision = np.array(state["centers"][0]) + weight * mean, state["centers"][1] + weight
        state["centers"] = [total.tolist(), precision]
        # The middle of the bounds stays the centre while the noise exceeds the means.
        moved, variances = shrunk_means(total / precision, precision**-0.5)
        state["center"] = [*np.clip(moved, -1, 1).tolist(), state["center"][-1]]
        state["center_error"] = float(variances.mean())

    def expected(self, protocol: LinearProtocol) -> tuple[float, int]:
        return EXPECTED_DEVIATION * math.sqrt(protocol.n_features), protocol.n_features


class Width(Center):
    """Levels of the norm of the centred features, which give their scale."""

    def learn_levels(self, protocol: LinearProtocol, task: Task, report: Report) -> None:
        super().learn_levels(protocol, task, report)
        protocol._state["width"] = protocol._common_width


class Squares(Question[LinearProtocol]):
    """Squares of the centred features, which give each its own width."""

    def functionals(self, protocol: LinearProtocol) -> tuple[Floats, str]:
        return np.eye(protocol.n_features + 2)[1:-1], "squares"

    def levels(self, protocol: LinearProtocol) -> NormLevels:
        return replace(protocol._levels_of_width, power=2.0)

    def learn(self, protocol: LinearProtocol, task: Task, report: Report) -> None:
        shortened = self.levels(protocol).shortened(task.radius)
        squares = task.mean(report)[: protocol.n_features] / shortened
        mean = max(0.0, float(squares.mean()))
        about, variances = shrunk_means(squares - mean, task.standard_error(report.n_people) / shortened)
        # A column is as wide as noise may hide, and all together as wide as the levels say.
        found = np.sqrt(np.hypot(np.maximum(0, mean + about), np.sqrt(variances)))
        widths = found * (protocol._common_width / max(1e-9, float(np.sqrt((found**2).mean()))))
        protocol._state["width"] = np.maximum(1e-6, widths).tolist()


class Products(Question[P]):
    """Products of the terms, which whiten them."""

    def functionals(self, protocol: P) -> tuple[Floats, str]:
        return protocol._rows() @ protocol._terms(), "products"

    def learn(self, protocol: P, task: Task, report: Report) -> None:
        n_terms = protocol.n_terms
        shortened = self.levels(protocol).shortened(task.radius)
        products = symmetric_matrix(task.mean(report), len(task.matrix))
        error = task.standard_error(report.n_people)
        sampled = self.levels(protocol).sampling_variance(task.radius, task.n_outputs * report.n_people)
        protocol._keep_rows()
        moments = products[:n_terms, :n_terms] / shortened
        self.keep(protocol, moments, np.full_like(moments, (error**2 + sampled) / shortened**2))
        self.use(protocol, products, math.sqrt(error**2 / 2 + sampled), shortened)
        self.whiten(protocol)

    def learn_levels(self, protocol: P, task: Task, report: Report) -> None:
        # Whitened terms have about the same norms in all stages.
        protocol._add_levels(self._name, task, report, to_earlier=True)

    def whiten(self, protocol: P) -> None:
        """Make the terms of the next stage."""
        protocol._whiten()

    def keep(self, protocol: P, moments: Floats, variances: Floats) -> None:
        """Keep reported second moments with the variances of their entries."""
        reported = [protocol._rows().tolist(), moments.tolist(), variances.tolist()]
        protocol._state["moments"] = [*protocol._state["moments"], reported]

    def use(self, protocol: P, products: Floats, noise: float, shortened: float) -> None:
        """Use products with the residual, where there are any."""

    def expected(self, protocol: P) -> tuple[float, int]:
        return 1.0 * protocol.n_terms, 1


STEPS_OF_FEATURES: dict[str, Step[Any]] = {
    **by_name(Center("center"), Products("products")),
    "width_levels": Width("width"),
    "squares": Squares("squares"),
}
