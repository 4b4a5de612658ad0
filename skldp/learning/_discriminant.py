r"""Protocol of a linear discriminant, one release per person of the tensor of vector and class."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp._arrays import as_numbers, kind_of
from skldp._checks import check_integer
from skldp.learning._linear_rule import (
    clear_shares,
    likeliest_numbers,
    linear_rule,
    n_directions,
    self_trained,
    shrunk_covariance,
)
from skldp.learning._protocol import Protocol, nearest_positive
from skldp.learning._reports import Report
from skldp.learning._tasks import Task, noise_variance
from skldp.learning._vectors import contrasts, n_products, symmetric_matrix

# Fractions of people who report class shares, norms, centred norms, scores, the mean score, and products.
_SHARES_SHARE, _LENGTH_SHARE, _SPREAD_SHARE, _BREADTH_SHARE = 0.03, 0.01, 0.02, 0.01
_LEVEL_SHARE, _PRODUCT_SHARE = 0.1, 0.25
# From this sufficiency on, more people report the shares, which divide all other estimates.
_MANY, _SHARES_SHARE_OF_MANY = 30.0, 0.1
# Bounds of the fraction who report the centre, and the weight of its error, which is corrected at the end.
_LEAST_CENTER_SHARE, _MOST_CENTER_SHARE, _LASTING_ERROR = 0.02, 0.25, 0.6
# Ratio of the largest to the smallest reported norm; a wider range needs more noise.
_NORM_RANGE = 4.0
# Radius in units of the typical norm of vectors, and smallest eigenvalue of the whitening in units of the largest noise
# eigenvalue.
_TIGHTNESS, _FLOOR = 0.85, 0.5
# Products are asked for from this sufficiency of a regression on, in units of its terms.
_PRODUCTS_PAY = 100.0
# Smallest eigenvalue of public vectors that counts as a direction.
_NOTHING = 1e-9
# Minimum number of public vectors.
_LEAST_PUBLIC = 10
# Smallest fraction of the variance that lies within classes.
_LEAST_WITHIN = 0.25


class DiscriminantProtocol(Protocol):
    r"""Interactive protocol of a linear discriminant: cohorts answer one task after the other.

    Shapes: `low, high` (n_features,); `public` (n_public, n_features).

    Nearly everybody releases the tensor of a vector u and what their class differs by from the classes' shares. Its
    mean is :math:`\pi_k (\mu_k - \mu)` for every class k: K - 1 times as many numbers as u has, at the whole epsilon,
    whatever the number of classes. u is the record less its centre; with public vectors, in their main directions, each
    divided by the square root of its standard deviation, halfway between telling what differs most and telling all
    alike.
    """

    # Below this sufficiency the noise of the tensor exceeds its signal.
    least_sufficiency = 0.5
    _stays_open = "tensor"
    _told_later = ("breadth", "level")

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
        check_integer("n_classes", n_classes, least=2)
        low, high = np.append(low, 0.0), np.append(high, n_classes - 1.0)
        super().__init__(n_features, n_people, epsilon, low, high, "once")
        self.n_classes, self.in_ball = int(n_classes), bool(in_ball)
        self._public = None if public is None else as_numbers(public, "public")
        inside = None if self._public is None else self._public_inside(self._public)
        self._state = {
            "step": 0,
            "center": [0.0] * (n_features + 1),
            "shares": [1 / n_classes] * n_classes,
            "radius": math.sqrt(n_features),
            "spread": 1.0 if in_ball else math.sqrt(n_features),
            "axes": np.eye(n_features).tolist(),
            "variances": None,
            "told": n_features,
            "breadth": 0.0,
            "level": None,
            "tensor": np.zeros((n_classes - 1, n_features)).tolist(),
            "error": 0.0,
            "last": None,
        }
        if inside is not None:
            self._look_at_public(inside)
        self._steps = self._plan()

    def _public_inside(self, rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return public vectors in the units in which the bounds are -1 and 1."""
        if rows.ndim != 2 or rows.shape[1] != self.n_features or len(rows) < _LEAST_PUBLIC:
            raise ValueError(
                f"public must be at least {_LEAST_PUBLIC} vectors of {self.n_features} numbers. "
                f"Got {kind_of(rows)} instead."
            )
        if not np.isfinite(rows).all():
            raise ValueError("public must hold finite numbers. Got NaN or infinity instead.")
        result: npt.NDArray[np.float64] = np.clip((rows - self._box.center[:-1]) / self._box.radius[:-1], -1, 1)
        return result

    def _look_at_public(self, rows: npt.NDArray[np.float64]) -> None:
        """Return the centre, the axes and the number of axes to report, from public numbers only."""
        values, vectors = np.linalg.eigh(shrunk_covariance(rows))
        values, vectors = values[::-1], vectors[:, ::-1]
        seen = values > _NOTHING * max(values[0], _NOTHING)
        if not seen.any():
            raise ValueError("public must hold vectors that differ. Got the same one again and again instead.")
        values, vectors = values[seen], vectors[:, seen]
        state = self._state
        state["center"] = [*rows.mean(axis=0).tolist(), 0.0]
        state["axes"] = (vectors / values**0.25).tolist()
        state["variances"] = np.sqrt(values).tolist()
        most = min(len(values), len(rows) - 1)
        told = n_directions(values[:most], self.n_people, self.n_classes, self.epsilon)
        state["told"], state["tensor"] = told, np.zeros((self.n_classes - 1, told)).tolist()
        norms = np.linalg.norm(self._public_points(rows)[:, :told], axis=1)
        state["spread"] = float(np.exp(np.log(np.maximum(norms, _NOTHING)).mean()))

    def _public_points(self, rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return public vectors along the axes."""
        center, axes = np.array(self._state["center"]), np.array(self._state["axes"])
        result: npt.NDArray[np.float64] = (rows - center[:-1]) @ axes
        return result

    @property
    def sufficiency(self) -> float:
        """Sufficiency of the tensor: n over its length times the variance of each number."""
        length = self._tensor_length
        return self.n_people / (length * noise_variance(length, self.epsilon))

    @property
    def _tensor_length(self) -> int:
        length: int = max(2, (self.n_classes - 1) * self._state["told"])
        return length

    @property
    def coefficients(self) -> npt.NDArray[np.float64]:
        """Coefficients in the units of the declared bounds, shape (n_classes, n_features)."""
        result: npt.NDArray[np.float64] = self._rule[0] / self._box.radius[:-1]
        return result

    @property
    def intercepts(self) -> npt.NDArray[np.float64]:
        """Intercepts in the units of the declared bounds."""
        slopes, at_origin = self._rule
        result: npt.NDArray[np.float64] = at_origin - slopes @ (self._box.center[:-1] / self._box.radius[:-1])
        return result

    def _settings(self) -> dict[str, Any]:
        return {
            "n_features": self.n_features,
            "n_people": self.n_people,
            "n_classes": self.n_classes,
            "epsilon": self.epsilon,
            # Recompute the bounds of the target from the number of classes.
            "low": self._box.low[:-1],
            "high": self._box.high[:-1],
            "in_ball": self.in_ball,
            "public": None if self._public is None else self._public.tolist(),
        }

    def _vector_lengths(self) -> set[int]:
        lengths = {max(2, self.n_features), max(2, self.n_classes - 1), self._tensor_length}
        if any(name == "products" for name, _ in self._steps):
            lengths.add(n_products(self.n_features))
        return lengths

    def _plan(self) -> list[tuple[str, int]]:
        n, d = self.n_people, self.n_features
        if self.sufficiency < self.least_sufficiency:
            return [("shares", n)]
        steps = []
        n_shares = int((_SHARES_SHARE_OF_MANY if self.sufficiency > _MANY else _SHARES_SHARE) * n)
        # Use equal shares if the noise would hide shares half or twice as large.
        if n_shares and self._task_of("shares").standard_error(n_shares) < 1 / (2 * self.n_classes):
            steps = [("shares", n_shares)]
        ends: list[tuple[str, int]] = []
        if self._public is None:
            if not self.in_ball:
                # Balance the error of the centre with the noise from fewer tensor reports.
                noise = _LASTING_ERROR * d * noise_variance(max(2, d), self.epsilon) / n
                share = np.clip(math.sqrt(noise**2 + noise) - noise, _LEAST_CENTER_SHARE, _MOST_CENTER_SHARE)
                steps += [("length", int(_LENGTH_SHARE * n)), ("center", int(share * n))]
                steps.append(("spread", int(_SPREAD_SHARE * n)))
            if d > 1 and super().sufficiency >= _PRODUCTS_PAY * (d + 1):
                steps.append(("products", int(_PRODUCT_SHARE * n)))
            elif d > self.n_classes - 1 and not self.in_ball:
                ends = [("breadth", int(_BREADTH_SHARE * n)), ("level", int(_LEVEL_SHARE * n))]
        return [*steps, ("tensor", n - sum(wanted for _, wanted in [*steps, *ends])), *ends]

    def _along(self) -> npt.NDArray[np.float64]:
        """Return the functionals of the reported vector."""
        axes = np.array(self._state["axes"])[:, : self._state["told"]].T
        nothing = np.zeros(len(axes))
        return np.column_stack([nothing, axes, nothing])

    def _task_of(self, name: str) -> Task:
        state, d, n_classes = self._state, self.n_features, self.n_classes
        root = math.sqrt(d)
        form, answer, least, classes = "linear", "vector", 0.0, 0
        if name == "shares":
            # PrivUnit needs d >= 2.
            functionals = np.zeros((1 + (n_classes == 2) + n_classes, d + 2))
            functionals[0, 0] = 1.0
            form, radius, classes = "class_gradient", math.sqrt(1 - 1 / n_classes), n_classes
        elif name == "length":
            functionals, answer, radius, least = _long_enough(self._along()), "log_norm", root, root / _NORM_RANGE
        elif name == "center":
            functionals, radius = _long_enough(self._along()), _TIGHTNESS * state["radius"]
        elif name == "spread":
            functionals, answer, radius, least = _long_enough(self._along()), "log_norm", root, root / _NORM_RANGE
        elif name == "products":
            functionals, form, radius = self._along(), "products", state["spread"] ** 2
        elif name == "tensor":
            shares = np.array(state["shares"])
            logits = np.zeros((n_classes, d + 2))
            logits[:, 0] = np.log(shares)
            along = self._along()
            functionals = np.vstack([_long_enough(along) if n_classes == 2 else along, logits])
            # Worst case over the classes.
            farthest = math.sqrt(np.max((1 - shares) ** 2 - shares**2 + shares @ shares))
            form, radius, classes = "class_gradient", _TIGHTNESS * farthest * state["spread"], n_classes
        else:
            functionals = _long_enough(self._contrast() @ self._along())
            if name == "breadth":
                answer, radius, least = "log_norm", state["spread"], state["spread"] / math.sqrt(2 * state["told"])
            else:
                radius = _TIGHTNESS * (state["breadth"] or state["spread"])
        low, high = self._box.low, self._box.high
        return Task(self.epsilon, low, high, form, self._matrix(functionals), answer, radius, least, classes)

    def _take_shares(self, task: Task, report: Report) -> None:
        n_classes = self.n_classes
        told = task.mean(report).reshape(n_classes - 1, -1)[:, 0]
        # Variance of the release and of the sample.
        noise = (n_classes - 1) * (task.standard_error(report.n_people) ** 2 + 1 / (n_classes * report.n_people))
        self._state["shares"] = clear_shares(1 / n_classes + contrasts(n_classes) @ told, noise).tolist()

    def _center(self, task: Task, report: Report) -> npt.NDArray[np.float64]:
        told = task.mean(report)[: self.n_features]
        # The class has no people.
        return np.append(likeliest_numbers(told, task.standard_error(report.n_people)), 0.0)

    def _take_spread(self, task: Task, report: Report) -> None:
        self._state["spread"] = float(task.mean(report)[0])

    def _take_products(self, task: Task, report: Report) -> None:
        state, d = self._state, self.n_features
        edge = task.standard_error(report.n_people) * math.sqrt(2 * d)
        values, vectors = np.linalg.eigh(nearest_positive(symmetric_matrix(task.mean(report), d)))
        floor = values + max(_FLOOR * edge, 1e-12 * max(1.0, values[-1]))
        state["axes"] = (np.array(state["axes"]) @ vectors / np.sqrt(floor)).tolist()
        state["variances"] = (values / floor).tolist()
        state["spread"] = math.sqrt(max((values / floor).sum(), _NOTHING))

    def _take_tensor(self, task: Task, report: Report) -> None:
        mean = task.mean(report).reshape(self.n_classes - 1, -1)[:, : self._state["told"]]
        self._state["tensor"], self._state["error"] = mean.tolist(), task.standard_error(report.n_people)

    def _take_breadth(self, task: Task, report: Report) -> None:
        self._state["breadth"] = float(task.mean(report)[0])

    def _take_level(self, task: Task, report: Report) -> None:
        """Return the error of the centre in the directions of the tensor."""
        told, error = task.mean(report)[: self.n_classes - 1], task.standard_error(report.n_people)
        size = float(told @ told)
        kept = max(0.0, 1 - len(told) * error**2 / size) if size > 0 else 0.0
        self._state["level"] = np.linalg.lstsq(self._contrast(), kept * told, rcond=None)[0].tolist()

    def _contrast(self) -> npt.NDArray[np.float64]:
        """Return the mean tensor as a matrix of norm 1, or 0 without reports."""
        tensor = np.array(self._state["tensor"])
        result: npt.NDArray[np.float64] = tensor / max(np.linalg.norm(tensor), _NOTHING)
        return result

    @property
    def _rule(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return slopes and intercepts of the logits, in the units in which the bounds are -1 and 1."""
        state, shares = self._state, np.array(self._state["shares"])
        tensor, error = np.array(state["tensor"]), state["error"]
        if not error:
            return np.zeros((self.n_classes, self.n_features)), np.log(shares)
        weights, intercepts, axes = self._of_the_axes(tensor, error, shares)
        slopes = weights @ axes.T
        origin = np.array(state["center"])[:-1]
        at_origin = intercepts - slopes @ origin
        if state["level"] is not None:
            at_origin = at_origin - weights @ np.array(state["level"])
        return slopes, at_origin

    def _of_the_axes(
        self, tensor: npt.NDArray[np.float64], error: float, shares: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        state, k = self._state, self._state["told"]
        axes = np.array(state["axes"])
        means = contrasts(self.n_classes) @ tensor / shares[:, None]
        noise = np.repeat((error**2 * (1 - 1 / self.n_classes) / shares**2)[:, None], k, axis=1)
        if self._public is not None:
            points = self._public_points(self._public_inside(self._public))
            means, noise, within = self_trained(points, means, noise, np.array(state["variances"]), shares)
        elif state["variances"] is not None:
            # Products are of all people: subtract the variance between classes, then whiten the rest.
            between = (means.T * shares) @ means - np.diag(shares @ noise)
            values, vectors = np.linalg.eigh(np.diag(np.array(state["variances"])) - between)
            turn = vectors / np.sqrt(np.maximum(values, _LEAST_WITHIN))
            axes, means, noise, within = axes @ turn, means @ turn, noise @ turn**2, np.ones(k)
        else:
            between = shares @ (means**2 - noise).sum(axis=1)
            square = float(state["spread"]) ** 2
            within = np.full(k, max(square - float(between), square / 4) / k)
        return *linear_rule(means, noise, within, shares), axes


def _long_enough(functionals: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Append a row of zeros to a single row, since PrivUnit needs d >= 2."""
    result: npt.NDArray[np.float64] = np.vstack(
        [functionals, np.zeros((max(0, 2 - len(functionals)), functionals.shape[1]))]
    )
    return result
