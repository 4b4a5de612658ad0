r"""Multinomial logistic regression learnt from people who each release once."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp._checks import check_whole
from skldp.learning._protocol import LEAST_SUFFICIENCY, SCALE_SHARE, Protocol, as_shown_by, cut, nearest_positive
from skldp.learning._tasks import Report, Task
from skldp.learning._vectors import contrasts, n_products, symmetric_matrix

__all__ = ["ClassificationProtocol"]

# In how many stages products are told, and by which part of the people in each; else the part that tells a scale.
_STAGE_SUFFICIENCY, _STAGES, _STAGE_SHARE, _PLAIN_SHARE = 40.0, (2, 4), 0.1, 0.02
# Few people are cut into fewer cohorts, so that each tells something.
_N_COHORTS, _N_COHORTS_OF_FEW, _FEW = 20, 10, 30.0
_FLOOR, _TIGHTNESS = 0.35, 1.0
# Steps as long as the curvature of the likelihood allows, or as the noise does.
_LONGEST_STEP, _NOISE_STEP = 6.0, 0.1


class ClassificationProtocol(Protocol):
    r"""Who is asked what, one task after the other, until a multinomial logistic regression is learnt.

    Parameters
    ----------
    n_features : int
    n_people : int
    n_classes : int
        K, at least 2. Targets are classes counted from 0.
    epsilon : float
        Natural log, of the whole record with its class.
    low, high : array-like of shape (n_features,)
        Declared bounds of the features.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.learning import ClassificationProtocol, simulate
    >>> from skldp.mechanisms import noise_from
    >>> X = np.random.default_rng(0).uniform(-1, 1, (4_000, 2))
    >>> protocol = ClassificationProtocol(2, 4_000, 2, epsilon=4.0, low=[-1, -1], high=[1, 1])
    >>> simulate(protocol, X, (X[:, 0] > 0).astype(float), noise_from())
    >>> bool(protocol.coefficients[1, 0] > protocol.coefficients[0, 0] + 1)
    True
    """

    def __init__(
        self,
        n_features: int,
        n_people: int,
        n_classes: int,
        *,
        epsilon: float,
        low: npt.ArrayLike,
        high: npt.ArrayLike,
    ) -> None:
        check_whole("n_classes", n_classes, least=2)
        low, high = np.append(low, 0.0), np.append(high, n_classes - 1.0)
        super().__init__(n_features, n_people, epsilon, low, high, "rounds")
        self.n_classes = int(n_classes)
        self._steps = self._plan()
        n_terms, root = n_features + 1, math.sqrt(n_features + 1)
        self._state = {
            "step": 0,
            "center": [0.0] * (n_features + 1),
            "radius": root,
            "residual": math.sqrt(1 - 1 / n_classes),
            "spread": root,
            "dimension": 0.0,
            "beta": np.zeros((n_classes - 1, n_terms)).tolist(),
            "whitening": np.eye(n_terms).tolist(),
            "told": [],
            "averaged": np.zeros((n_classes - 1, n_terms)).tolist(),
            "log_sizes": [],
        }

    @property
    def sufficiency(self) -> float:
        """As of a regression, over the number of contrasts between the classes."""
        return super().sufficiency / (self.n_classes - 1)

    @property
    def coefficients(self) -> npt.NDArray[np.float64]:
        """Of every feature, in the units of the declared bounds, for every class: shape (n_classes, n_features)."""
        return self._logits()[:, 1:] / self._box.radius[:-1]

    @property
    def intercepts(self) -> npt.NDArray[np.float64]:
        """Of every class, in the units of the declared bounds."""
        center = np.array(self._state["center"])[:-1] + self._box.center[:-1] / self._box.radius[:-1]
        return self._logits()[:, 0] - self._logits()[:, 1:] @ center

    @property
    def _n_cohorts(self) -> int:
        return _N_COHORTS_OF_FEW if self.sufficiency < _FEW else _N_COHORTS

    def _logits(self) -> npt.NDArray[np.float64]:
        result: npt.NDArray[np.float64] = contrasts(self.n_classes) @ np.array(self._state["beta"])
        return result

    def _settings(self) -> dict[str, Any]:
        return {
            "n_features": self.n_features,
            "n_people": self.n_people,
            "n_classes": self.n_classes,
            "epsilon": self.epsilon,
            # The target's bounds are made again of the number of classes.
            "low": self._box.low[:-1],
            "high": self._box.high[:-1],
        }

    def _vector_lengths(self) -> set[int]:
        lengths = {max(2, self.n_features), (self.n_features + 1) * (self.n_classes - 1), 2 * (self.n_classes - 1)}
        return lengths | {n_products(self.n_features + 1)}

    def _plan(self) -> list[tuple[str, int]]:
        n, enough = self.n_people, self.sufficiency
        if enough < LEAST_SUFFICIENCY:
            return [("shares", n)]
        steps = self._begin()
        if self._products_pay:
            n_stages = int(np.clip(enough / _STAGE_SUFFICIENCY, *_STAGES))
            for people in cut(int(n_stages * _STAGE_SHARE * n), n_stages):
                n_scale = int(SCALE_SHARE * people)
                steps += [("spread", n_scale), ("products", people - n_scale)]
        else:
            steps.append(("spread", int(_PLAIN_SHARE * n)))
        for people in cut(n - sum(wanted for _, wanted in steps), self._n_cohorts):
            n_scale = int(SCALE_SHARE * people)
            steps += [("size", n_scale), ("gradient", people - n_scale)]
        return steps

    def _task_of(self, name: str) -> Task:
        state, width = self._state, self.n_features + 1
        terms = np.eye(width + 1)[:-1]
        whitened = np.array(state["whitening"]).T @ terms
        root = math.sqrt(width)
        form, answer, least, n_classes = "linear", "log_norm", 0.0, 0
        # A vector is at least two numbers long.
        features = np.vstack([terms[1:], np.zeros((max(0, 2 - self.n_features), width + 1))])
        if name == "length":
            functionals, radius, least = features, root, root / 10
        elif name == "center":
            functionals, radius, answer = features, 1.3 * state["radius"], "vector"
        elif name == "spread":
            functionals, radius, least = whitened, 2 * root, root / 8
        elif name == "products":
            functionals, form, answer, radius = whitened, "products", "vector", (_TIGHTNESS * state["spread"]) ** 2
        else:
            form, n_classes = "class_gradient", self.n_classes
            of_classes = self._logits() @ terms
            if name == "shares":
                ones = np.vstack([terms[:1], np.zeros((1, width + 1))])
                functionals, answer, radius = np.vstack([ones, of_classes]), "vector", state["residual"]
            elif name == "size":
                functionals, radius = np.vstack([whitened, of_classes]), 2 * state["residual"] * state["spread"]
                least = radius / 32
            else:
                functionals, answer, radius = np.vstack([whitened, of_classes]), "vector", self._size()
        return Task(
            self.epsilon,
            self._box.low,
            self._box.high,
            form,
            self._matrix(functionals),
            answer,
            radius,
            least,
            n_classes,
        )

    def _center(self, task: Task, report: Report) -> npt.NDArray[np.float64]:
        # The class has none.
        return np.append(super()._center(task, report)[: self.n_features], 0.0)

    def _take_shares(self, task: Task, report: Report) -> None:
        """Logits of the classes' shares, as far from 0 as their noise lets them be told."""
        told = task.mean(report).reshape(self.n_classes - 1, 2)[:, 0]
        shares = np.maximum(1 / self.n_classes + contrasts(self.n_classes) @ told, task.standard_error(report.n_people))
        beta = np.zeros((self.n_classes - 1, self.n_features + 1))
        beta[:, 0] = np.log(shares / shares.sum()) @ contrasts(self.n_classes)
        self._state["beta"] = beta.tolist()

    def _take_spread(self, task: Task, report: Report) -> None:
        self._state["spread"] = float(task.mean(report)[0])
        if not any(name == "products" for name, _ in self._steps):
            self._scale_alike()

    def _take_products(self, task: Task, report: Report) -> None:
        state = self._state
        functionals = np.array(task.matrix)
        functionals[:, 0] += functionals[:, 1:] @ np.array(state["center"])
        functionals = functionals[:, :-1]
        k = len(functionals)
        moments = symmetric_matrix(task.mean(report), k)
        state["told"] = [
            *state["told"],
            [functionals.tolist(), moments.tolist(), task.standard_error(report.n_people)],
        ]
        moments, variances = as_shown_by(functionals, state["told"])
        values, vectors = np.linalg.eigh(nearest_positive(moments))
        edge = math.sqrt(np.mean(variances) * 2 * k)
        floor = values + max(_FLOOR * edge, 1e-12 * max(1.0, values[-1]))
        state["whitening"] = (np.array(state["whitening"]) @ vectors / np.sqrt(floor)).tolist()
        state["dimension"] = float((values / floor).sum())
        # Noise may leave nothing of them, and no radius can be made of nothing.
        state["spread"] = math.sqrt(max(state["dimension"], 0.1))

    def _take_gradient(self, task: Task, report: Report) -> None:
        state = self._state
        dimension = state["dimension"] or self.n_features + 1
        noise = dimension * task.standard_error(report.n_people) ** 2
        step = min(_LONGEST_STEP, _NOISE_STEP / noise)
        gradient = task.mean(report).reshape(self.n_classes - 1, -1)
        state["beta"] = (np.array(state["beta"]) + step * gradient @ np.array(state["whitening"]).T).tolist()
        self._average(self._n_cohorts)

    def _miss_gradient(self) -> None:
        self._average(self._n_cohorts)
