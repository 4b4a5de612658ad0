r"""Protocol of multinomial logistic regression, one release per person."""

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from skldp._checks import check_integer, is_number
from skldp.learning._likelihood import Likelihood, normal_people, step
from skldp.learning._posterior import combine_reports
from skldp.learning._protocol import (
    CENTER_RADIUS,
    LEAST_PER_NUMBER,
    LOOSEST,
    SCALE_SHARE,
    Protocol,
    inverse_variance_mean,
    nearest_positive,
    split_evenly,
)
from skldp.learning._reports import Report
from skldp.learning._tasks import Task
from skldp.learning._vectors import contrasts, n_products, symmetric_matrix

# Fraction of people in product stages, sufficiency of a stage in units of the number of terms, and maximum number of
# stages. A protocol with few tasks always asks for products: no later step corrects an overlong one.
_PRODUCT_SHARE, _STAGE_SUFFICIENCY, _MOST_STAGES = 0.3, 0.4, 6
# Smallest eigenvalue kept by the whitening, in units of the largest noise eigenvalue.
_FLOOR = 0.35
# Number of cohorts, and the number below this sufficiency.
_N_COHORTS, _N_COHORTS_OF_FEW, _FEW = 20, 10, 100.0
# Fraction of the gradient cohorts of "once" that fix the model at which the others are asked.
_FIRST_MODEL = 0.35
# Radii grow from this sufficiency on, where truncation bias exceeds the noise.
_LOOSE = 100.0
# Fractions of people who report class shares, the same with few people (rare classes need more reports), and feature
# widths.
_SHARES_SHARE, _SHARES_OF_FEW, _WIDTH_SHARE = 0.05, 0.1, 0.05
# Prior of feature widths in units of the bounds: mean, standard deviation of the logarithm, largest width, and its
# ratio to the smallest.
_EXPECTED_WIDTH, _LOG_ERROR, _WIDEST, _WIDTH_RATIO = 1 / 3, 0.7, 1.2, 24.0
# Radius of gradients with few people, in units of their typical norm; the bias of a normal model is corrected.
_TIGHTNESS = 0.7
# Floor of divisors.
_NOTHING = 1e-6


class ClassificationProtocol(Protocol):
    r"""Interactive protocol of multinomial logistic regression: cohorts answer one task after the other.

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
    kind : {"rounds", "once"}, default="rounds"
        ``"rounds"`` asks for gradients at the model so far, cohort by cohort. ``"once"`` asks a first third for them
        where nothing is known, and everybody left at the model which that gives: one and the same task, to which
        :meth:`add` takes more answers at any time.
    fit_intercept : bool, default=True
    ridge : float, default=4.0
        The inverse of the variance that coefficients of whitened features are expected to have, between each class and
        the others: the noise of the gradients is weighed against it.
    class_weight : None, "balanced", or sequence of float, default=None
        Factors of the classes' odds. ``"balanced"`` makes all classes equally frequent, for which a cohort of 5% of the
        people tells how frequent they are.

    Attributes
    ----------
    task : Task or None
        The task that is open; None when all is done.
    n_wanted : int
        How many people are to be asked it.

    Notes
    -----
    Products of the features tell how to whiten them. A gradient, shortened to a radius, is then told at the model so
    far. How it grows with the model's error is known where features are taken to be normal, and how large its noise
    is, so that a Kalman filter says how far to move: long steps while little is known, and in the end the mean of all
    that was told. Where people are so few that products would be noise, some tell the classes' shares instead, so that
    the constant starts from those and is as uncertain as they are, and slopes that turn out to be small are shrunk.

    A weight of a class in the likelihood moves that class's log odds by the weight's logarithm wherever the model
    holds, which is what is done here: it costs nobody an answer, and lengthens no gradient.

    References
    ----------
    Duchi, Jordan and Wainwright, "Minimax optimal procedures for locally private estimation", 2018, section 4. Kalman,
    "A new approach to linear filtering and prediction problems", 1960, equations 28 to 30. King and Zeng, "Logistic
    regression in rare events data", 2001, equation 7. James and Stein, "Estimation with quadratic loss", 1961,
    section 2.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.learning import ClassificationProtocol
    >>> from skldp.learning._person import simulate
    >>> from skldp.mechanisms import noise_from
    >>> X = np.random.default_rng(0).uniform(-1, 1, (4_000, 2))
    >>> protocol = ClassificationProtocol(2, 4_000, 2, epsilon=4.0, low=[-1, -1], high=[1, 1])
    >>> simulate(protocol, X, (X[:, 0] > 0).astype(float), noise_from())
    >>> bool(protocol.coefficients[1, 0] > protocol.coefficients[0, 0] + 1)
    True
    """

    least_sufficiency = 8.0
    _least_per_number = LEAST_PER_NUMBER

    def __init__(
        self,
        n_features: int,
        n_people: int,
        n_classes: int,
        *,
        epsilon: float,
        low: npt.ArrayLike,
        high: npt.ArrayLike,
        kind: Literal["rounds", "once"] = "rounds",
        fit_intercept: bool = True,
        ridge: float = 4.0,
        class_weight: Literal["balanced"] | Sequence[float] | None = None,
    ) -> None:
        check_integer("n_classes", n_classes, least=2)
        low, high = np.append(low, 0.0), np.append(high, n_classes - 1.0)
        super().__init__(n_features, n_people, epsilon, low, high, kind)
        if not is_number(ridge) or ridge < 0:
            raise ValueError(f"ridge must be a finite number >= 0. Got {ridge!r} instead.")
        self.n_classes, self.fit_intercept, self.ridge = int(n_classes), bool(fit_intercept), float(ridge)
        self.class_weight = _checked_weights(class_weight, self.n_classes)
        if self.class_weight is not None and not self.fit_intercept:
            raise ValueError("class_weight moves intercepts: it must be None without one. Got weights instead.")
        self._stays_open = "gradient" if self.kind == "once" else ""
        self._steps = self._plan()
        n_terms = n_features + self.fit_intercept
        root = math.sqrt(n_features + 1)
        # Without an intercept, records are relative to the zero of their own scale.
        origin = np.zeros(n_features) if self.fit_intercept else -self._box.center[:-1] / self._box.radius[:-1]
        self._state = {
            "step": 0,
            "center": [*origin.tolist(), 0.0],
            "radius": root,
            "residual": math.sqrt(1 - 1 / n_classes),
            "spread": root,
            "beta": np.zeros((n_classes - 1, n_terms)).tolist(),
            "covariance": (np.eye(n_classes - 1) / max(self.ridge, _NOTHING)).tolist(),
            "of_constant": [],
            "whitening": np.eye(n_terms).tolist(),
            "told": [],
            "shares": [1 / n_classes] * n_classes,
            "log_sizes": [],
            "last": None,
        }

    @property
    def sufficiency(self) -> float:
        """Sufficiency of the regression, divided by the number of contrasts between classes."""
        return super().sufficiency / (self.n_classes - 1)

    @property
    def coefficients(self) -> npt.NDArray[np.float64]:
        """Coefficients in the units of the declared bounds, shape (n_classes, n_features)."""
        result: npt.NDArray[np.float64] = self._logits()[:, -self.n_features :] / self._box.radius[:-1]
        return result

    @property
    def intercepts(self) -> npt.NDArray[np.float64]:
        """Intercepts in the units of the declared bounds, shape (n_classes,)."""
        if not self.fit_intercept:
            return np.zeros(self.n_classes)
        center = np.array(self._state["center"])[:-1] + self._box.center[:-1] / self._box.radius[:-1]
        logits = self._logits()
        result: npt.NDArray[np.float64] = logits[:, 0] - logits[:, 1:] @ center + self._log_weights()
        return result

    def _log_weights(self) -> npt.NDArray[np.float64]:
        if self.class_weight is None:
            return np.zeros(self.n_classes)
        weights = 1 / np.array(self._state["shares"]) if self.class_weight == "balanced" else self.class_weight
        logs = np.log(weights)
        result: npt.NDArray[np.float64] = logs - logs.mean()
        return result

    @property
    def _n_cohorts(self) -> int:
        return _N_COHORTS_OF_FEW if self.sufficiency < _FEW else _N_COHORTS

    @property
    def _is_plain(self) -> bool:
        """Whether all tasks are gradients: the noise of products does not grow with classes, but needs more people."""
        # The curvature of a class is at most half that of least squares.
        pays = self._knows_sizes and self._products_pay(2 * (self.n_classes - 1))
        return self.kind == "rounds" and not pays

    @property
    def _room(self) -> float:
        """Largest distance of a feature from the middle of its bounds, or from zero without an intercept."""
        offsets = 0 if self.fit_intercept else self._box.center[:-1] / self._box.radius[:-1]
        return float(np.linalg.norm(np.ones(self.n_features) + np.abs(offsets)))

    def _logits(self) -> npt.NDArray[np.float64]:
        result: npt.NDArray[np.float64] = contrasts(self.n_classes) @ np.array(self._state["beta"])
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
            "kind": self.kind,
            "fit_intercept": self.fit_intercept,
            "ridge": self.ridge,
            "class_weight": self.class_weight,
        }

    def _vector_lengths(self) -> set[int]:
        # PrivUnit needs d >= 2.
        n_terms = max(2, self.n_features + self.fit_intercept)
        return {max(2, self.n_features), n_terms * (self.n_classes - 1), 2 * (self.n_classes - 1), n_products(n_terms)}

    def _plan(self) -> list[tuple[str, int]]:
        """Return the steps with their numbers of people, from public numbers only."""
        n = self.n_people
        if not self.is_enough:
            return [("shares", n)]
        steps = self._begin() if self.fit_intercept else []
        if self._is_plain and self.fit_intercept:
            steps.append(("shares", int(_SHARES_OF_FEW * n)))
        elif self.class_weight == "balanced":
            steps.append(("shares", int(_SHARES_SHARE * n)))
        of_products = super().sufficiency
        if not self._is_plain:
            each = _STAGE_SUFFICIENCY * (self.n_features + 1)
            n_stages = int(np.clip(of_products * _PRODUCT_SHARE / each, 1, _MOST_STAGES))
            for people in split_evenly(int(_PRODUCT_SHARE * n), n_stages):
                n_scale = int(SCALE_SHARE * people)
                steps += [("spread", n_scale), ("products", people - n_scale)]
        else:
            steps.append(("spread", int(_WIDTH_SHARE * n)))
        left = n - sum(wanted for _, wanted in steps)
        n_first = int(_FIRST_MODEL * left)
        for people in [n_first, left - n_first] if self.kind == "once" else split_evenly(left, self._n_cohorts):
            if self._is_plain:
                steps.append(("gradient", people))
            else:
                n_scale = int(SCALE_SHARE * people)
                steps += [("size", n_scale), ("gradient", people - n_scale)]
        return steps

    def _terms(self) -> npt.NDArray[np.float64]:
        """Return the functionals of the terms of the model: the constant, if any, and the features."""
        return np.eye(self.n_features + 2)[1 - self.fit_intercept : -1]

    def _task_of(self, name: str) -> Task:
        state, width = self._state, self.n_features + 1
        terms = self._terms()
        whitened = _at_least_two(np.array(state["whitening"]).T @ terms)
        of_classes = self._logits() @ terms
        root = math.sqrt(width)
        form, answer, least, n_classes = "linear", "log_norm", 0.0, 0
        features = _at_least_two(np.eye(width + 1)[1:-1])
        if name == "length":
            functionals, radius, least = features, root, root / 10
        elif name == "center":
            functionals, radius, answer = features, CENTER_RADIUS * state["radius"], "vector"
        elif name == "spread" and self._is_plain:
            functionals, radius = features, _WIDEST * self._room
            least = radius / _WIDTH_RATIO
        elif name == "spread":
            functionals, radius, least = whitened, 2 * root, root / 8
        elif name == "products":
            functionals, form, answer = whitened, "products", "vector"
            of_stage = _PRODUCT_SHARE * self.n_people / sum(step == "products" for step, _ in self._steps)
            radius = (self._looseness_of_products(len(functionals), of_stage) * state["spread"]) ** 2
        elif name == "shares":
            ones = _at_least_two(np.eye(width + 1)[:1])
            functionals, radius = np.vstack([ones, 0 * of_classes]), state["residual"]
            form, answer, n_classes = "class_gradient", "vector", self.n_classes
        else:
            form, n_classes = "class_gradient", self.n_classes
            functionals = np.vstack([whitened, of_classes])
            if self._is_plain:
                answer, radius = "vector", _TIGHTNESS * state["residual"] * math.sqrt(len(terms))
            elif name == "size":
                radius = 2 * state["residual"] * state["spread"]
                least = radius / 32
            else:
                looseness = float(np.clip((self.sufficiency / _LOOSE) ** 0.25, 1, LOOSEST))
                answer, radius = "vector", looseness * self._size()
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
        # The class has no people.
        return np.append(super()._center(task, report)[: self.n_features], 0.0)

    def _take_shares(self, task: Task, report: Report) -> None:
        """Set the class shares, and the initial model without slopes."""
        told = task.mean(report).reshape(self.n_classes - 1, 2)[:, 0]
        # Bound shares away from 0 by their noise.
        shares = np.maximum(1 / self.n_classes + contrasts(self.n_classes) @ told, task.standard_error(report.n_people))
        shares /= shares.sum()
        self._state["shares"] = shares.tolist()
        if self.fit_intercept:
            beta = np.zeros((self.n_classes - 1, self.n_features + 1))
            beta[:, 0] = np.log(shares) @ contrasts(self.n_classes)
            self._state["beta"] = beta.tolist()
            if self._is_plain:
                # Intercepts are log shares, shrunk by the noise of the shares.
                of_logs = contrasts(self.n_classes).T / shares @ contrasts(self.n_classes)
                of_logs *= task.standard_error(report.n_people)
                self._state["of_constant"] = (of_logs @ of_logs).tolist()

    def _take_spread(self, task: Task, report: Report) -> None:
        told = float(task.mean(report)[0])
        if not self._is_plain:
            self._state["spread"] = told
            return
        expected, error = math.log(_EXPECTED_WIDTH * self._room), task.log_error(report.n_people)
        # One scale for all features, which makes them of size about 1.
        scale = math.sqrt(self.n_features) / math.exp(
            inverse_variance_mean(math.log(told), error, expected, _LOG_ERROR)
        )
        self._state["whitening"] = np.diag([1.0] * self.fit_intercept + [scale] * self.n_features).tolist()

    def _take_products(self, task: Task, report: Report) -> None:
        state = self._state
        n_terms = self.n_features + self.fit_intercept
        functionals = np.array(task.matrix)
        functionals[:, 0] += functionals[:, 1:] @ np.array(state["center"])
        # Drop the padding of a vector of one number.
        functionals = functionals[:n_terms, 1 - self.fit_intercept : -1]
        moments = symmetric_matrix(task.mean(report), len(task.matrix))[:n_terms, :n_terms]
        state["told"] = [*state["told"], [functionals.tolist(), moments.tolist(), task.standard_error(report.n_people)]]
        moments, variances = combine_reports(functionals, state["told"])
        values, vectors = np.linalg.eigh(nearest_positive(moments))
        edge = math.sqrt(np.mean(variances) * 2 * n_terms)
        # Drop eigenvalues below the rounding of the largest one.
        floor = values + max(_FLOOR * edge, _NOTHING * max(1.0, values[-1]))
        state["whitening"] = (np.array(state["whitening"]) @ vectors / np.sqrt(floor)).tolist()
        state["spread"] = math.sqrt(max(_NOTHING, (values / floor).sum()))

    def _take_gradient(self, task: Task, report: Report) -> None:
        state = self._state
        beta, whitening = np.array(state["beta"]), np.array(state["whitening"])
        # Whitened features have second moments of at least 1.
        root = np.linalg.pinv(whitening)
        people = normal_people(root.T @ root, self.fit_intercept)
        expected, curvature = Likelihood(people @ whitening, self.n_classes).expected(people @ beta.T, task.radius)
        gradient = task.mean(report).reshape(self.n_classes - 1, -1)[:, : beta.shape[1]] - expected
        # Gradients vary between people, besides the noise.
        variance = task.standard_error(report.n_people) ** 2 + task.radius**2 / (gradient.size * report.n_people)
        moved, covariance = step(np.array(state["covariance"]), gradient, curvature, variance)
        if state["of_constant"]:
            # Without mixing of terms, the error of the constant differs.
            moved[:, :1], left = step(np.array(state["of_constant"]), gradient[:, :1], curvature, variance)
            state["of_constant"] = left.tolist()
        state["beta"] = (beta + moved @ whitening.T).tolist()
        state["covariance"] = covariance.tolist()
        self._miss_gradient()

    def _miss_gradient(self) -> None:
        if self._is_plain and self._state["step"] == len(self._steps) - 1:
            self._shrink()

    def _shrink(self) -> None:
        """Shrink slopes below their expected size (James and Stein)."""
        state, least = self._state, max(self.ridge, _NOTHING)
        beta, covariance = np.array(state["beta"]), np.array(state["covariance"])
        slopes = beta[:, -self.n_features :]
        size = ((slopes / np.diag(state["whitening"])[-self.n_features :]) ** 2).sum()
        # Fraction of the filter's correction so far, and the expected slopes if all were 0.
        way = 1 - least * np.trace(covariance) / len(covariance)
        noise = (np.trace(covariance) - least * (covariance**2).sum()) / len(covariance)
        if size and way > 0:
            kept = max(0.0, 1 - max(0, slopes.size - 2) * noise / size)
            beta[:, -self.n_features :] *= min(1.0, kept / way)
            state["beta"] = beta.tolist()


def _checked_weights(given: Any, n_classes: int) -> str | tuple[float, ...] | None:
    if given is None:
        return None
    if isinstance(given, str) and given == "balanced":
        return given
    if (
        isinstance(given, str)
        or len(given) != n_classes
        or not all(is_number(one) and 1e-30 <= one <= 1e30 for one in given)
    ):
        raise ValueError(
            f"class_weight must be None, 'balanced', or {n_classes} numbers between 1e-30 and 1e30. "
            f"Got {given!r} instead."
        )
    return tuple(map(float, given))


def _at_least_two(functionals: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Append a row of zeros to a single row, since PrivUnit needs d >= 2."""
    missing = np.zeros((max(0, 2 - len(functionals)), functionals.shape[1]))
    return np.vstack([functionals, missing])
