r"""Protocol of a linear discriminant, one release per person of the tensor of vector and class."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp._arrays import Floats, as_numbers, kind_of
from skldp.learning._constants import (
    DETECTED,
    EXPECTED_DEVIATION,
    LEAST_VARIANCE,
    PREPARATION_SHARE,
    PRODUCTS_SHARE,
)
from skldp.learning._levels import NormLevels, shares_of_levels
from skldp.learning._linear_rule import (
    expected_means,
    expected_shares,
    likeliest_numbers,
    n_directions,
    nearest_mean,
    self_trained,
    shrunk_covariance,
    whitened_rule,
)
from skldp.learning._protocol import Protocol, Question, Shares, Step, by_name, n_people_to_detect, sufficiency
from skldp.learning._reports import Report
from skldp.learning._tasks import N_LEVELS, Task, noise_variance
from skldp.learning._vectors import contrasts, symmetric_matrix

# Smallest eigenvalue of public vectors that counts as a direction, and norm of scores that counts.
_NOTHING = 1e-9
# Error of shares of levels that are public.
_KNOWN = 1e-6
# Minimum number of public vectors.
_LEAST_PUBLIC = 10


class DiscriminantProtocol(Protocol):
    """Protocol of a linear discriminant: vectors u (x) (e_y - shares) have the means shares_k (mean_k - mean)."""

    _stays_open = "tensor"

    _arguments = ("n_features", "n_people", "n_classes", "epsilon", "in_ball")

    def __init__(
        self,
        n_features: int,
        n_people: int,
        n_classes: int,
        *,
        epsilon: float,
        low: npt.ArrayLike,
        high: npt.ArrayLike,
        in_ball: bool = False,
        public: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(n_features, n_people, epsilon, low, high, "once", n_classes)
        self.in_ball = bool(in_ball)
        self._public = None if public is None else as_numbers(public, "public")
        self._inside = None if self._public is None else self._public_inside(self._public)
        # Vectors of a ball may all be as long as its radius.
        self._known_levels = NormLevels(1.0, np.eye(N_LEVELS)[0], _KNOWN, self.n_people, 1.0) if self.in_ball else None
        self._state |= {
            "shares": [1 / n_classes] * n_classes,
            "axes": np.eye(n_features).tolist(),
            "variances": None,
            "n_directions": n_features,
            "tensor": np.zeros((n_classes - 1, n_features)).tolist(),
            "error": 0.0,
            "slope": 1.0,
        }
        if self._inside is not None:
            self._look_at_public(self._inside)
        self._steps = self._plan()

    def _public_inside(self, rows: Floats) -> Floats:
        """Return public vectors in the units in which the bounds are -1 and 1."""
        if rows.ndim != 2 or rows.shape[1] != self.n_features or len(rows) < _LEAST_PUBLIC:
            raise ValueError(
                f"public must be at least {_LEAST_PUBLIC} vectors of {self.n_features} numbers; got {kind_of(rows)}."
            )
        if not np.isfinite(rows).all():
            raise ValueError("public must hold finite numbers; got NaN or infinity.")
        return np.clip((rows - self._box.center[:-1]) / self._box.radius[:-1], -1, 1)

    def _look_at_public(self, rows: Floats) -> None:
        """Set the centre, the axes and the number of axes to report, from public numbers only."""
        values, vectors = np.linalg.eigh(shrunk_covariance(rows))
        values, vectors = values[::-1], vectors[:, ::-1]
        seen = values > _NOTHING * max(values[0], _NOTHING)
        if not seen.any():
            raise ValueError("public must hold vectors that differ; got the same one again and again.")
        values, vectors = values[seen], vectors[:, seen]
        state = self._state
        state["center"] = [*rows.mean(axis=0).tolist(), 0.0]
        state["axes"] = (vectors / values**0.25).tolist()
        state["variances"] = np.sqrt(values).tolist()
        most = min(len(values), len(rows) - 1)
        n_reported = n_directions(values[:most], self.n_people, self.n_classes, self.epsilon)
        state["n_directions"], state["tensor"] = n_reported, np.zeros((self.n_classes - 1, n_reported)).tolist()
        norms = np.linalg.norm(self._public_points(rows)[:, :n_reported], axis=1)
        top = max(float(norms.max()), _NOTHING)
        scale = math.sqrt(float(np.mean(norms**2)))
        self._known_levels = NormLevels(top, shares_of_levels(norms, top), _KNOWN, len(rows), scale, n_reported)

    def _public_points(self, rows: Floats) -> Floats:
        """Return public vectors along the axes."""
        center, axes = np.array(self._state["center"]), np.array(self._state["axes"])
        return (rows - center[:-1]) @ axes

    @property
    def n_needed(self) -> int:
        """Number of people from which the model depends on the record."""
        return n_people_to_detect(self._tensor_length, 1.0, noise_variance(self._tensor_length, self.epsilon))

    @property
    def _tensor_length(self) -> int:
        return max(2, (self.n_classes - 1) * self._state["n_directions"])

    @property
    def coefficients(self) -> Floats:
        """Coefficients in the units of the declared bounds, shape (n_classes, n_features)."""
        return self._in_data_units(self._logits())[0]

    @property
    def intercepts(self) -> Floats:
        """Intercepts in the units of the declared bounds."""
        return self._in_data_units(self._logits())[1]

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | {"public": None if self._public is None else self._public.tolist()}

    def _plan(self) -> list[tuple[str, int]]:
        n, d = self.n_people, self.n_features
        if not self.is_enough:
            return [("shares", n)]
        noise = noise_variance(self.n_classes - 1, self.epsilon)
        # Enough people to detect shares that differ as much as random ones, since an error of a rare class costs most.
        needed = n_people_to_detect(self.n_classes - 1, 1 / (self.n_classes + 1), noise)
        share = self._share_of_outcome(noise + 1 / self.n_classes)
        steps = [("shares", int(min(max(share * n, needed), PRODUCTS_SHARE * n)))]
        if self._public is None:
            if not self.in_ball:
                # Balance the error of the centre with the noise from fewer tensor reports.
                noise = d * noise_variance(d, self.epsilon) / n
                share = np.clip(math.sqrt(noise**2 + noise) - noise, PREPARATION_SHARE, PRODUCTS_SHARE)
                steps += [("center_levels", int(PREPARATION_SHARE * n)), ("center", int(share * n))]
            # Whiten if the largest eigenvalue of the noise is significantly below that of the products.
            whitened = d > 1 and PRODUCTS_SHARE * sufficiency(n, d, self.epsilon) >= 2 * DETECTED**2 * (d + 1)
            if whitened:
                n_levels = int(PREPARATION_SHARE * n)
                steps += [("products_levels", n_levels), ("products", int(PRODUCTS_SHARE * n) - n_levels)]
            if whitened or not self.in_ball:
                steps.append(("spread_levels", int(PREPARATION_SHARE * n)))
        left = n - sum(wanted for _, wanted in steps)
        if self._public is not None:
            return [*steps, ("tensor", left)]
        n_levels, left = int(PREPARATION_SHARE * n), left - int(PREPARATION_SHARE * n)
        return [*steps, ("tensor", left // 2), ("scores_levels", n_levels), ("tensor", left - left // 2)]

    def _along(self) -> Floats:
        """Return the functionals of the reported vector."""
        axes = np.array(self._state["axes"])[:, : self._state["n_directions"]].T
        nothing = np.zeros(len(axes))
        return np.column_stack([nothing, axes, nothing])

    def _levels_about(self, question: str) -> NormLevels:
        """Return the distribution of the norms of a question's vectors."""
        if question == "spread" and self._known_levels is not None and question not in self._state["levels"]:
            return self._known_levels
        is_white = question == "spread" and self._state["variances"] is not None
        expected = math.sqrt(self.n_features) * (1.0 if is_white else EXPECTED_DEVIATION)
        return self._levels_of(
            question, expected**2 if question == "products" else expected, self._state["n_directions"]
        )

    def _clipping_of_tensor(self) -> tuple[float, float]:
        """Return the radius of the tensor, and the fraction of it that clipping leaves."""
        shares = np.array(self._state["shares"])
        sizes = np.sqrt((1 - shares) ** 2 - shares**2 + shares @ shares)
        # Vectors are clipped alike in all classes: otherwise rare ones would lose more.
        noise = self._noise_of(self._tensor_length, "tensor") * sizes.max() / math.sqrt(shares @ sizes**2)
        levels = self._levels_about("spread")
        radius = levels.radius_of_moments(noise)
        return radius * float(sizes.max()), levels.shortened(radius)

    def _logits(self) -> Floats:
        """Return the logits of (1, centred record) where the bounds are -1 and 1, shape (n_classes, 1 + n_features)."""
        state, shares = self._state, np.array(self._state["shares"])
        if not state["error"]:
            return np.column_stack([np.log(shares), np.zeros((self.n_classes, self.n_features))])
        if self._inside is not None:
            points = self._public_points(self._inside)
            weights, intercepts = self_trained(points, *self._class_means(), np.array(state["variances"]), shares)
            return np.column_stack([intercepts, weights @ np.array(state["axes"]).T])
        weights, means, axes = self._rule()
        weights = state["slope"] * weights
        return np.column_stack([np.log(shares) - (weights * means).sum(axis=1) / 2, weights @ axes.T])

    def _class_means(self) -> tuple[Floats, Floats]:
        """Return the reported means of the classes along the axes about that of all, and their variances."""
        state, shares = self._state, np.array(self._state["shares"])
        noise = state["error"] ** 2 * (1 - 1 / self.n_classes) / shares**2
        means = contrasts(self.n_classes) @ np.array(state["tensor"]) / shares[:, None]
        return means, np.repeat(noise[:, None], means.shape[1], axis=1)

    def _rule(self) -> tuple[Floats, Floats, Floats]:
        """Return the weights of the logits, the expected class means, and the axes of both."""
        state, shares, (means, noise) = self._state, np.array(self._state["shares"]), self._class_means()
        k, axes, variances = means.shape[1], np.array(state["axes"]), state["variances"]
        square = self._levels_about("spread").scale_with_hidden ** 2
        if variances is None:
            total = np.full(k, square / k)
            expected = expected_means(means, noise, total, shares)[0]
            return nearest_mean(expected, total, shares)[0], expected, axes
        # Clipped products miss people whom the levels of the norms show.
        total = np.maximum(variances, LEAST_VARIANCE)
        root = np.sqrt(total * max(1.0, square / total.sum()))
        expected = expected_means(means / root, noise / root**2, np.ones(k), shares)[0]
        return whitened_rule(means / root, noise / root**2, shares)[0], expected, axes / root

    def _mean_squares_of_scores(self) -> tuple[float, float]:
        """Return the mean squares of the contrasts of the scores, by the rule: within classes, and between them."""
        if not self._state["error"]:
            return 0.0, 0.0
        weights, means, _ = self._rule()
        scores = contrasts(self.n_classes).T @ weights @ means.T
        within = float(np.trace(scores @ contrasts(self.n_classes)))
        return within, float((scores**2 @ np.array(self._state["shares"])).sum())


class _Shares(Shares[DiscriminantProtocol]):
    def learn(self, protocol: DiscriminantProtocol, reported: Floats, error: float) -> None:
        protocol._state["shares"] = expected_shares(reported, error).tolist()


class _Spread(Question[DiscriminantProtocol]):
    """Levels of the norm of the vectors."""

    def functionals(self, protocol: DiscriminantProtocol) -> tuple[Floats, str]:
        return protocol._along(), "linear"

    def levels(self, protocol: DiscriminantProtocol) -> NormLevels:
        return protocol._levels_about(self._name)


class _Center(_Spread):
    """Means of the features."""

    def learn(self, protocol: DiscriminantProtocol, task: Task, report: Report) -> None:
        shortened = self.levels(protocol).shortened(task.radius)
        means, error = task.mean(report)[: protocol.n_features] / shortened, task.standard_error(report.n_people)
        # The class has no centre.
        moved = np.append(likeliest_numbers(means, error / shortened), 0.0)
        protocol._state["center"] = (np.array(protocol._state["center"]) + moved).tolist()


class _Products(_Spread):
    """Products of the features, which whiten them."""

    def functionals(self, protocol: DiscriminantProtocol) -> tuple[Floats, str]:
        return protocol._along(), "products"

    def learn(self, protocol: DiscriminantProtocol, task: Task, report: Report) -> None:
        state, d = protocol._state, protocol.n_features
        shortened = self.levels(protocol).shortened(task.radius)
        error = task.standard_error(report.n_people) / shortened
        values, vectors = np.linalg.eigh(symmetric_matrix(task.mean(report) / shortened, d))
        mean = values.mean()
        # Move the eigenvalues to their mean by what noise and sampling add to their spread (Ledoit and Wolf, 2004).
        noise = d * (d + 1) / 2 * (error**2 + 2 * mean**2 / report.n_people)
        kept = max(0.0, 1 - noise / max(np.finfo(float).tiny, float(np.square(values - mean).sum())))
        values, edge = np.maximum(mean + kept * (values - mean), 0), kept * error * math.sqrt(2 * d)
        # Directions that noise hides are not stretched; the rest of their variance is known.
        floor = values + max(edge / 2, 1e-12 * max(1.0, values[-1]))
        state["axes"] = (np.array(state["axes"]) @ vectors / np.sqrt(floor)).tolist()
        state["variances"] = (values / floor).tolist()


class _Scores(Question[DiscriminantProtocol]):
    """Levels of the norm of the contrasts of the scores, of which the common slope of the logits follows."""

    def functionals(self, protocol: DiscriminantProtocol) -> tuple[Floats, str]:
        rows = contrasts(protocol.n_classes).T @ protocol._logits()
        # Scores without their intercepts.
        rows[:, 0] = 0
        return np.pad(rows, ((0, 0), (0, 1))), "linear"

    def expected(self, protocol: DiscriminantProtocol) -> tuple[float, int]:
        square = sum(protocol._mean_squares_of_scores())
        return math.sqrt(max(square, _NOTHING**2)), protocol.n_classes - 1

    def learn_levels(self, protocol: DiscriminantProtocol, task: Task, report: Report) -> None:
        super().learn_levels(protocol, task, report)
        stated, between = protocol._mean_squares_of_scores()
        # Noise may hide rare large scores: then the rule stays as it is.
        square = self.levels(protocol).scale_with_hidden ** 2
        if stated > 0:
            protocol._state["slope"] = stated / max(square - between, LEAST_VARIANCE * square)


class _Tensor(Step[DiscriminantProtocol]):
    """Contrasts of the class times the vector."""

    def task(self, protocol: DiscriminantProtocol, name: str) -> Task:
        logits = np.zeros((protocol.n_classes, protocol.n_features + 2))
        logits[:, 0] = np.log(protocol._state["shares"])
        radius, _ = protocol._clipping_of_tensor()
        functionals = np.vstack([protocol._along(), logits])
        return protocol._make_task(functionals, "class_gradient", "vector", radius, protocol.n_classes)

    def update(self, protocol: DiscriminantProtocol, task: Task, report: Report) -> None:
        state, left = protocol._state, protocol._clipping_of_tensor()[1]
        mean = task.mean(report).reshape(protocol.n_classes - 1, -1)[:, : state["n_directions"]] / left
        error, before = task.standard_error(report.n_people) / left, state["error"]
        # Both cohorts count by the precision of their reports.
        share = before**2 / (before**2 + error**2) if before else 1.0
        state["tensor"] = (np.array(state["tensor"]) + share * (mean - np.array(state["tensor"]))).tolist()
        state["error"] = error * math.sqrt(share)


DiscriminantProtocol.steps = {
    "shares": _Shares(),
    **by_name(_Center("center"), _Products("products")),
    "spread_levels": _Spread("spread"),
    "scores_levels": _Scores("scores"),
    "tensor": _Tensor(),
}
