r"""Protocol of least squares, one release per person; its states are public JSON documents."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp._checks import is_number
from skldp.learning._few_people import FewPeople
from skldp.learning._protocol import (
    CENTER_RADIUS,
    LEAST_PER_NUMBER,
    LEAST_SUFFICIENCY,
    LOG_SCALE,
    LOOSEST,
    PRODUCTS_LEAST,
    SCALE_SHARE,
    SIZE_REACH,
    SIZE_SHARE,
    as_shown_by,
    cut,
    nearest_positive,
)
from skldp.learning._reports import Report
from skldp.learning._tasks import Task, noise_variance
from skldp.learning._vectors import n_products, symmetric_matrix

# Fractions of people who report the target's centre, the norms, the centre, and the squares.
_TARGET_SHARE, _LENGTH_SHARE, _CENTER_SHARE, _SQUARES_SHARE = 0.03, 0.02, 0.04, 0.03
# For the mean only: fractions who report it first, and the distance of targets from it.
_FIRST_SHARE, _SPREAD_SHARE = 0.4, 0.1
# Sufficiency of a stage of products, and the largest number of stages; each stage uses the scale that the earlier ones
# found.
_STAGE_SUFFICIENCY, _MOST_STAGES = 8.0, 3
# Smallest sufficiency of "once": products are more numbers than gradients.
_LEAST_ONCE = 16.0
# Fraction of people in product stages if gradients follow.
_PRODUCT_SHARE = 0.25
# Average the later half of iterates if the steps cover this many times the distance.
_N_COHORTS, _LONG_WAY = 20, 4.0
# Smallest eigenvalue of the whitening, in units of the largest noise eigenvalue, and over the sufficiency in units of
# each variance: the radius truncates rare outliers, so that their directions are not visible.
_FLOOR, _RARE = 0.5, 1.0
# Smallest variance that truncation leaves to typical records, as a fraction of each variance; a smaller value indicates
# outliers, and limits the scaling.
_LEAST_SEEN = 1 / 3
# Weight of the residual in the products, and radius in units of the typical norm.
_RESIDUAL_WEIGHT, _TIGHTNESS = 0.7, 0.85
# Radii of gradients grow from this sufficiency on, so that truncation bias falls with the noise.
_LOOSE = 1_000.0
# Truncation of targets in deviations from their centre.
_MOST_DEVIATIONS = 4.0


class RegressionProtocol(FewPeople):
    r"""Interactive protocol of linear regression: cohorts answer one task after the other.

    Every person belongs to one cohort and answers one task, at the whole epsilon. A task depends on the answers of
    earlier cohorts alone, so that everything this object knows is public.

    Parameters
    ----------
    n_features : int
    n_people : int
        How many will be asked. Not all need to answer.
    epsilon : float
        Natural log, of the whole record with its target.
    low, high : array-like of shape (n_features + 1,)
        Declared bounds of the features and, last, of the target.
    kind : {"rounds", "once"}, default="rounds"
        ``"once"``: after some cohorts that tell the scale, everybody left answers one and the same task, and
        :meth:`add` takes more answers to it at any time. ``"rounds"`` goes on with gradients at the model so far.
    fit_intercept : bool, default=True
    ridge : float, default=0.5
        Added to the eigenvalues of the whitened products, in units of the largest one that noise alone has.

    Attributes
    ----------
    task : Task or None
        The task that is open; None when all is done.
    n_wanted : int
        How many people are to be asked it.

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
        kind: str = "rounds",
        fit_intercept: bool = True,
        ridge: float = 0.5,
    ) -> None:
        super().__init__(n_features, n_people, epsilon, low, high, kind)
        if not is_number(ridge) or ridge < 0:
            raise ValueError(f"ridge must be a finite number >= 0. Got {ridge!r} instead.")
        self.fit_intercept, self.ridge = bool(fit_intercept), float(ridge)
        self.least_sufficiency = _LEAST_ONCE if self.kind == "once" else LEAST_SUFFICIENCY
        self._stays_open = "products" if self.kind == "once" else ""
        self._steps = self._plan()
        width = n_features + 1
        # Without an intercept, records are relative to the zero of their own scale.
        origin = np.zeros(width) if self.fit_intercept else -self._box.center / self._box.radius
        n_terms = n_features + self.fit_intercept
        self._state: dict[str, Any] = {
            "step": 0,
            "center": origin.tolist(),
            "radius": math.sqrt(width),
            "scales": [1.0] * width,
            "seen": [0.0] * width,
            "seen_from": origin.tolist(),
            "residual": self._expected_reach if self._is_plain else 1.0,
            "spread": math.sqrt(width),
            "dimension": 0.0,
            "beta": [0.0] * n_terms,
            "whitening": np.eye(n_terms).tolist(),
            "target_error": 1.0,
            "told": [],
            "averaged": [0.0] * n_terms,
            "log_sizes": [],
            "moves": [],
            "variances": [],
            "last": None,
        }

    @property
    def coefficients(self) -> npt.NDArray[np.float64]:
        """Coefficients in the units of the declared bounds."""
        slopes = np.array(self._state["beta"])[-self.n_features :]
        result: npt.NDArray[np.float64] = slopes * self._box.radius[-1] / self._box.radius[:-1]
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
            "ridge": self.ridge,
        }

    def _vector_lengths(self) -> set[int]:
        lengths = {self.n_features + 1, max(2, self.n_features + self.fit_intercept)}
        if any(name == "products" for name, _ in self._steps):
            lengths.add(n_products(self.n_features + 1 + self.fit_intercept))
        return lengths

    def _plan(self) -> list[tuple[str, int]]:
        """Return the steps with their numbers of people, from public numbers only."""
        n, enough = self.n_people, self.sufficiency
        if not self.is_enough:
            if not self.fit_intercept:
                return [("target", n)]
            few = [("target", int(_FIRST_SHARE * n)), ("residual", int(_SPREAD_SHARE * n))]
            return [*few, ("target", n - sum(wanted for _, wanted in few))]
        if self._is_plain:
            return self._plan_of_few()
        steps = self._begin()
        left = n - sum(wanted for _, wanted in steps)
        # PrivUnit needs d >= 2.
        once = self.kind == "once" or self.n_features + self.fit_intercept < 2
        share = 1.0 if once else _PRODUCT_SHARE if self._products_pay() else 0.0
        n_stages = int(np.clip(enough * share / _STAGE_SUFFICIENCY, 1, _MOST_STAGES)) if share else 0
        for people in cut(int(share * left), n_stages):
            n_scale = int(SCALE_SHARE * people)
            steps += [("residual", n_scale), ("spread", n_scale), ("products", people - 2 * n_scale)]
        if not once:
            for people in cut(n - sum(wanted for _, wanted in steps), _N_COHORTS):
                n_scale = int(SCALE_SHARE * people)
                steps += [("size", n_scale), ("gradient", people - n_scale)]
        return steps

    def _begin(self) -> list[tuple[str, int]]:
        """Return the steps that estimate each number's centre and size, twice."""
        n = self.n_people
        sizes = [("scale", int(SIZE_SHARE * n)), ("squares", int(_SQUARES_SHARE * n))]
        if not self.fit_intercept:
            return sizes
        target, center = ("target", int(_TARGET_SHARE * n)), ("center", int(_CENTER_SHARE * n))
        return [target, ("length", int(_LENGTH_SHARE * n)), center, *sizes, target, center, *sizes]

    @property
    def _is_plain(self) -> bool:
        """Whether all tasks are gradients."""
        several = self.n_features + self.fit_intercept > 1
        early = self.sufficiency < PRODUCTS_LEAST or not self._knows_sizes
        return self.kind == "rounds" and several and self.is_enough and early

    def _terms(self) -> npt.NDArray[np.float64]:
        """Return the functionals of the model's terms: the constant, if any, and the features."""
        return np.eye(self.n_features + 2)[1 - self.fit_intercept : -1]

    def _record(self) -> npt.NDArray[np.float64]:
        """Return the functionals of the record, each number in units of its size."""
        result: npt.NDArray[np.float64] = np.eye(self.n_features + 2)[1:] / np.array(self._state["scales"])[:, None]
        return result

    def _residual_row(self) -> npt.NDArray[np.float64]:
        row = np.eye(self.n_features + 2)[-1]
        result: npt.NDArray[np.float64] = row - np.array(self._state["beta"]) @ self._terms()
        return result

    def _task_of(self, name: str) -> Task:
        functionals, form, answer, radius, least = self._asked_of_few(name) if self._is_plain else self._asked(name)
        return Task(self.epsilon, self._box.low, self._box.high, form, self._matrix(functionals), answer, radius, least)

    def _asked(self, name: str) -> tuple[npt.NDArray[np.float64], str, str, float, float]:
        """Return the functionals of a step's task, its form and answer, the radius and the smallest norm."""
        state, width = self._state, self.n_features + 1
        whitened = np.array(state["whitening"]).T @ self._terms()
        root = math.sqrt(width)
        form, answer, least = "linear", "log_norm", 0.0
        if name == "length":
            functionals, radius, least = np.eye(width + 1)[1:], root, root / 10
        elif name == "center":
            functionals, radius, answer = self._record(), CENTER_RADIUS * state["radius"], "vector"
        elif name == "scale":
            functionals, radius, form = self._record(), 2.0 * width, "squares"
            least = radius / SIZE_REACH
        elif name == "squares":
            functionals, radius, answer, form = self._record(), 2 * state["spread"], "vector", "squares"
        elif name == "target":
            functionals, answer = np.eye(width + 1)[-1:], "number"
            radius = min(1.0, _MOST_DEVIATIONS * state["residual"] / LOG_SCALE)
        elif name == "residual":
            first = not state["told"]
            radius = min(2.0, (4 if first else 2) * state["residual"])
            # An unreported size may be far below its bounds.
            least = radius / (16 if self.is_enough else 64)
            functionals = self._residual_row()[None]
        elif name == "spread":
            functionals, radius, least = whitened, 2 * root, root / 8
        elif name == "products":
            weight = _RESIDUAL_WEIGHT * state["spread"] / state["residual"] * LOG_SCALE
            functionals = np.vstack([whitened, weight * self._residual_row()])
            n_stages = sum(name == "products" for name, _ in self._steps)
            of_stage = self.n_people / n_stages * (_PRODUCT_SHARE if self._has_gradients else 1.0)
            looseness = self._looseness_of_products(len(functionals), of_stage)
            norm = _TIGHTNESS * looseness * state["spread"] * math.hypot(1, _RESIDUAL_WEIGHT)
            form, answer, radius = "products", "vector", norm**2
        else:
            functionals, form = np.vstack([whitened, self._residual_row()]), "gradient"
            if name == "size":
                # Centre on the products' estimate, which noise of earlier cohorts does not move.
                radius = 2 * state["residual"] * state["spread"]
                least = radius / 64
            else:
                answer, radius = "vector", self._looseness * self._size()
        return functionals, form, answer, radius, least

    @property
    def _has_gradients(self) -> bool:
        return any(name == "gradient" for name, _ in self._steps)

    def _take_target(self, task: Task, report: Report) -> None:
        if self.fit_intercept:
            self._move_target(task, report)

    def _take_residual(self, task: Task, report: Report) -> None:
        self._state["residual"] = float(task.mean(report)[0])

    def _take_spread(self, task: Task, report: Report) -> None:
        self._state["spread"] = float(task.mean(report)[0])

    def _take_scale(self, task: Task, report: Report) -> None:
        self._state["spread"] = float(task.mean(report)[0])

    def _take_squares(self, task: Task, report: Report) -> None:
        state = self._state
        mean, error = task.mean(report), task.standard_error(report.n_people)
        before = np.array(state["scales"])
        # Outliers are truncated only the second time: relative to the new centre, sizes are at least the first ones
        # less the noise and the shift.
        least = np.array(state["seen"]) - np.abs(np.array(state["center"]) - state["seen_from"])
        scales = np.maximum(before * np.sqrt(np.maximum(mean, error)), least)
        seen = before * np.sqrt(np.maximum(mean - 2 * error, 0))
        # The target is reported by its residual.
        state["seen"], state["seen_from"] = [*seen[:-1].tolist(), 0.0], state["center"]
        n_terms = len(state["beta"])
        state["scales"], state["residual"] = scales.tolist(), LOG_SCALE * float(scales[-1])
        whitening = np.append(np.ones(n_terms - self.n_features), 1 / scales[:-1])
        state["whitening"] = np.diag(whitening).tolist()
        state["spread"], state["radius"] = math.sqrt(n_terms), math.sqrt(self.n_features + 1)

    def _center(self, task: Task, report: Report) -> npt.NDArray[np.float64]:
        mean, error = task.mean(report), task.standard_error(report.n_people)
        # Ignore noise as large as all offsets, or as one of them.
        kept = max(0.0, 1 - len(mean) * error**2 / max(float(mean @ mean), error**2))
        each = np.maximum(0, 1 - (error / np.where(mean == 0, error, mean)) ** 2)
        result: npt.NDArray[np.float64] = mean * kept * each * np.array(self._state["scales"])
        # Separately reported numbers have better estimates.
        result[-1] = 0.0
        return result

    def _take_products(self, task: Task, report: Report) -> None:
        state = self._state
        beta, whitening = np.array(state["beta"]), np.array(state["whitening"])
        functionals = np.array(task.matrix)
        functionals[:, 0] += functionals[:, 1:] @ np.array(state["center"])
        # Terms and target, the arguments of the functionals.
        functionals = functionals[:, 1 - self.fit_intercept :]
        k = len(functionals)
        told = [*state["told"]]
        moments = symmetric_matrix(task.mean(report), k)
        told.append([functionals.tolist(), moments.tolist(), task.standard_error(report.n_people)])
        moments, variances = as_shown_by(functionals, told)
        n_terms = k - 1
        gram = nearest_positive(moments)
        edge = math.sqrt(np.mean(variances[:n_terms, :n_terms]) * 2 * n_terms)
        stretch = np.array(state["scales"])[:-1, None] * whitening[-self.n_features :]
        each = np.linalg.pinv(whitening)[:, -self.n_features :] / np.array(state["scales"])[:-1]
        seen = np.einsum("ij,ij->j", each, gram[:n_terms, :n_terms] @ each)
        unseen = stretch.T @ (np.maximum(_RARE / self.sufficiency, _LEAST_SEEN - seen)[:, None] * stretch)
        values, vectors = np.linalg.eigh(gram[:n_terms, :n_terms] + unseen)
        # Drop eigenvalues below the rounding of the largest one.
        least = 1e-12 * max(1.0, values[-1])
        ridge = values + max(self.ridge * edge, least)
        # Undo the weight of the residual.
        weight = functionals[-1, -1]
        state["beta"] = (beta + whitening @ vectors @ (vectors.T @ gram[:n_terms, -1] / ridge) / weight).tolist()
        # Gradients diverge in overstretched directions; further products correct them.
        more = any(name == "products" for name, _ in self._steps[state["step"] + 1 :])
        floor = values + max((_FLOOR if more else 2 * _FLOOR) * edge, least)
        state["whitening"] = (whitening @ vectors / np.sqrt(floor)).tolist()
        state["dimension"] = float((values / floor).sum())
        state["told"] = told
        if self.kind == "once" and state["step"] >= len(self._steps) - 1:
            # Noise of products with the residual, in the coefficients of the newly whitened terms.
            errors = np.mean(variances[:n_terms, -1]) / weight**2 * floor / ridge**2
            self._shrink(float(errors.mean()))

    def _take_gradient(self, task: Task, report: Report) -> None:
        state, error = self._state, task.standard_error(report.n_people) / self._slope
        part = self._step_length(report.n_people)
        moved = np.array(state["whitening"]) @ (task.mean(report) * part / self._slope)
        state["beta"] = (np.array(state["beta"]) + moved).tolist()
        state["moves"] = [*state["moves"], [part, error]]
        self._miss_gradient()

    def _miss_gradient(self) -> None:
        state = self._state
        people = [wanted for name, wanted in self._steps if name == "gradient"]
        # Short steps average the noise; do not average iterates before they converge.
        way = _N_COHORTS * self._step_length(people[-1])
        n_last = math.ceil(_N_COHORTS // 2 * min(1.0, way / _LONG_WAY))
        self._average(_N_COHORTS, n_last)
        if not any(name == "gradient" for name, _ in self._steps[state["step"] + 1 :]):
            self._shrink(noise_of_average(state["moves"], n_last))

    def _shrink(self, noise: float) -> None:
        """Shrink the slopes by the noise fraction of their size, to the mean only in the limit."""
        state = self._state
        slopes = np.array(state["beta"])
        slopes[: len(slopes) - self.n_features] = 0
        size = (np.linalg.solve(np.array(state["whitening"]), slopes) ** 2).sum()
        if size:
            part = min(1.0, self.n_features * noise / size)
            state["beta"] = (np.array(state["beta"]) - part * slopes).tolist()

    @property
    def _slope(self) -> float:
        """Return the derivative of a gradient by the error: the untruncated fraction of normal residuals."""
        return math.erf(LOG_SCALE * self._looseness / math.sqrt(2))

    def _step_length(self, n_people: int) -> float:
        """Return the step size, limited by the curvature and by the noise of a cohort's gradient."""
        state = self._state
        # Change of predictions by a step of pure noise, in units of the residual.
        dimension = state["dimension"] or len(state["beta"])
        across = noise_variance(len(state["beta"]), self.epsilon)
        noise = dimension * LOG_SCALE * self._looseness / self._slope * math.sqrt(across / n_people)
        return min(0.5 if state["dimension"] else 0.3, 2 * 0.35**2 / (noise**2 + 0.35**2))

    @property
    def _looseness(self) -> float:
        """Return the radius of gradients in units of their typical norm."""
        # A gradient is the product of two factors.
        return float(np.clip(math.sqrt(self.sufficiency / _LOOSE), 1, LOOSEST**2))


def noise_of_average(moves: list[list[float]], n_last: int) -> float:
    """Return the variance of the mean of the last iterates, an autoregressive average of estimates."""
    variance, weight = 0.0, 0.0
    for back, (part, error) in enumerate(reversed(moves)):
        # Weight of an estimate in the mean: in its own iterate and, discounted, in later ones.
        weight += (back < n_last) / n_last
        variance += (weight * part * error) ** 2
        weight *= 1 - part
    return variance
