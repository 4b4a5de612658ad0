r"""Steps that regression and classification share: centres, widths and products of the features."""

import math
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
from skldp.learning._tasks import Task, levels_error
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
        levels = self._levels_of("width", EXPECTED_DEVIATION * math.sqrt(self.n_features), self.n_features)
        return max(1e-6, self._size_of(levels) / math.sqrt(self.n_features))

    @property
    def _errors_of_means(self) -> Floats:
        """Variances of the errors of the features' centres, in squared widths."""
        return np.asarray(np.minimum(1.0, self._state["center_error"] / self._widths[1:] ** 2))

    def _state_of_features(self) -> dict[str, Any]:
        """Return the state before anything is reported."""
        return self._state | {
            # Variance of the error of a feature's centre.
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
        shares = {"center_levels": PREPARATION_SHARE, "center": PREPARATION_SHARE, "width_levels": PREPARATION_SHARE}
        steps = [(name, int(share * n_people)) for name, share in shares.items()]
        if own_widths:
            each = ColumnWidth.n_people(n_people, self.n_features, self.epsilon)
            steps += [("column_levels", each)] * (self.n_features if each else 0)
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
        # By half of the noise's deviation: the next stage takes back what goes too far.
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
        mean = task.mean(report)[: protocol.n_features] / shortened
        error = task.standard_error(report.n_people) / shortened
        # The middle of the bounds stays the centre while the noise exceeds the means.
        moved, variances = shrunk_means(mean, error)
        state["center"] = [*np.clip(moved, -1, 1).tolist(), state["center"][-1]]
        state["center_error"] = float(variances.mean())

    def expected(self, protocol: LinearProtocol) -> tuple[float, int]:
        return EXPECTED_DEVIATION * math.sqrt(protocol.n_features), protocol.n_features


class Width(Center):
    """Levels of the norm of the centred features, which give their scale."""

    def learn_levels(self, protocol: LinearProtocol, task: Task, report: Report) -> None:
        super().learn_levels(protocol, task, report)
        protocol._state["width"] = protocol._common_width


class ColumnWidth(Question[LinearProtocol]):
    """Levels of one centred feature after the other, which give each its own width."""

    @staticmethod
    def n_people(n_people: int, n_features: int, epsilon: float) -> int:
        """Return how many people report each feature; 0 if these would not show that a quarter is at another level."""
        each = int(2 * PREPARATION_SHARE * n_people / n_features)
        return each if each and DETECTED * levels_error(epsilon, each) <= 1 / 4 else 0

    def _column(self, protocol: LinearProtocol) -> int:
        first = [name for name, _ in protocol._steps].index(f"{self._name}_levels")
        return (protocol._state["step"] - first) % protocol.n_features

    def functionals(self, protocol: LinearProtocol) -> tuple[Floats, str]:
        return np.eye(protocol.n_features + 2)[[1 + self._column(protocol)]], "linear"

    def expected(self, protocol: LinearProtocol) -> tuple[float, int]:
        return protocol._common_width, 1

    def learn_levels(self, protocol: LinearProtocol, task: Task, report: Report) -> None:
        super().learn_levels(protocol, task, report)
        widths = protocol._widths[1:]
        # Rare large values that noise may hide count, up to the common width.
        widths[self._column(protocol)] = max(1e-6, self.levels(protocol).scale_with_hidden)
        protocol._state["width"] = widths.tolist()


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
    "column_levels": ColumnWidth("column"),
}
