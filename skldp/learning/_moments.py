r"""Protocol of the mean and covariance of all columns, one release per person."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp._arrays import Floats
from skldp.learning._constants import (
    EXPECTED_DEVIATION,
    LEAST_SUFFICIENCY,
    LEAST_VARIANCE,
    LEVELS_SHARE,
    PREPARATION_SHARE,
    PRODUCTS_SHARE,
)
from skldp.learning._levels import NormLevels
from skldp.learning._moment_estimates import MomentEstimates, estimates_of, share_of_tail
from skldp.learning._posterior import combine_reports, shrunk_means, with_least_variances
from skldp.learning._protocol import Protocol, Question, by_name, nearest_positive
from skldp.learning._protocol import sufficiency as sufficiency_of
from skldp.learning._reports import Report
from skldp.learning._tasks import Task, noise_variance
from skldp.learning._vectors import n_products, symmetric_matrix

# Stages of products before the last one, each of which whitens the next.
_N_STAGES = 3


class MomentsProtocol(Protocol):
    r"""Interactive protocol of mean and covariance: cohorts answer one task after the other.

    Some cohorts report the columns' scales and products of their numbers, which whiten records. Everybody else answers
    one task, products of a whitened record, and :meth:`add` takes more answers to it at any time. The target is 0.

    Parameters
    ----------
    n_features : int
    n_people : int
        Number of people to ask. Not all need to answer.
    epsilon : float
        Natural log, of the whole record.
    low, high : array-like of shape (n_features,)
        Declared bounds of the columns.

    Notes
    -----
    Products longer than the radius of the last task are shortened to it, which biases their mean. The radius follows
    from reported levels of the norms: it minimises the noise together with the bound of that bias, which standard
    errors include. No column is whitened by less than about half of its reported deviation: otherwise values that few
    people have would be cut off, their column's variance would be underestimated, and the next whitening would enlarge
    them further.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.learning import MomentsProtocol
    >>> from skldp.learning._person import simulate
    >>> from skldp.mechanisms import noise_from
    >>> X = np.random.default_rng(0).uniform(-1, 1, (20_000, 2))
    >>> X[:, 1] = (X[:, 0] + X[:, 1]) / 2
    >>> protocol = MomentsProtocol(2, 20_000, epsilon=4.0, low=[-1, -1], high=[1, 1])
    >>> simulate(protocol, X, np.zeros(20_000), noise_from())
    >>> bool(np.abs(protocol.estimates.covariance - np.cov(X.T)).max() < 0.05)
    True
    """

    _arguments = ("n_features", "n_people", "epsilon")
    least_sufficiency = 8.0

    def __init__(
        self, n_features: int, n_people: int, *, epsilon: float, low: npt.ArrayLike, high: npt.ArrayLike
    ) -> None:
        super().__init__(n_features, n_people, epsilon, np.append(low, -1.0), np.append(high, 1.0), "once")
        self._steps = self._plan()
        # With too few people for products, use the centre.
        self._stays_open = self._steps[-1][0]
        k = self.n_features
        self._state: dict[str, Any] = {
            "step": 0,
            "center": [0.0] * k,
            "levels": {},
            "columns": [],
            "whitening": np.eye(k).tolist(),
            "remembered": [1.0] * k,
            "reports": [],
            "last": None,
        }

    @property
    def sufficiency(self) -> float:
        """Sufficiency of a regression with as many coordinates."""
        return sufficiency_of(self.n_people, max(1, self.n_features - 1), self.epsilon)

    @property
    def estimates(self) -> MomentEstimates:
        """Current estimates, in the units of the declared bounds."""
        last, report = self._state["last"], None
        if last is not None and self._steps[-1][0] == "products":
            report = Task.from_json(last["task"]), Report.from_json(last["report"])
        return estimates_of(self._box, self._state, report, self._levels_of_products())

    def _plan(self) -> list[tuple[str, int]]:
        n, enough = self.n_people, self.sufficiency
        if enough < self.least_sufficiency:
            return [("center_levels", n // 5), ("center", n - n // 5)]
        n_step, n_levels = int(PREPARATION_SHARE * n), int(LEVELS_SHARE * n)
        stage = PRODUCTS_SHARE / _N_STAGES
        steps = [("center_levels", n_levels), ("center", n_step)]
        steps += [("column_levels", n_step // self.n_features) for _ in range(self.n_features)]
        if enough * stage >= LEAST_SUFFICIENCY:
            steps += [("products_levels", n_levels // 2), ("products", int(stage * n) - n_levels // 2)] * _N_STAGES
        left = n - sum(wanted for _, wanted in steps)
        return [*steps, ("products_levels", 2 * n_levels), ("products", left - 2 * n_levels)]

    def _matrix(self, functionals: Floats) -> Any:
        """Return the task's matrix of functionals of (1, coordinates)."""
        return np.insert(functionals, self.n_features + 1, 0.0, axis=1)

    def _whitened(self) -> Floats:
        """Return the constant and the whitened, centred coordinates, as functionals of (1, coordinates)."""
        result = np.eye(1 + self.n_features)
        result[1:, 1:] = np.array(self._state["whitening"]).T
        result[1:, 0] = -result[1:, 1:] @ np.array(self._state["center"])
        return result

    def _levels_of_records(self) -> NormLevels:
        """Return the distribution of the norms of records."""
        k = self.n_features
        return self._levels_of("center", EXPECTED_DEVIATION * math.sqrt(k), k)

    @property
    def undetected_share(self) -> float:
        """Largest share of people with products beyond the last radius who may go unseen."""
        return self._levels_of_products().detectable

    def _levels_of_products(self) -> NormLevels:
        """Return the distribution of the norms of the products."""
        return self._levels_of("products", 1.0 + self.n_features)

    def _add_column(self, scale: float) -> None:
        state = self._state
        state["columns"] = [*state["columns"], scale]
        if len(state["columns"]) == self.n_features:
            state["whitening"] = np.diag(1 / np.array(state["columns"])).tolist()


class _Center(Question[MomentsProtocol]):
    """Means of the coordinates."""

    def functionals(self, protocol: MomentsProtocol) -> tuple[Floats, str]:
        return np.eye(protocol.n_features + 1)[1:], "linear"

    def radius(self, protocol: MomentsProtocol) -> float:
        noise = protocol._noise_of(max(2, protocol.n_features), "center")
        return protocol._levels_of_records().radius_of_moments(noise)

    def learn(self, protocol: MomentsProtocol, task: Task, report: Report) -> None:
        shortened = protocol._levels_of_records().shortened(task.radius)
        mean, error = task.mean(report)[: protocol.n_features], task.standard_error(report.n_people)
        # The middle of the bounds stays the centre while the noise exceeds the mean.
        moved, _ = shrunk_means(mean / shortened, error / shortened)
        protocol._state["center"] = (np.array(protocol._state["center"]) + moved).tolist()


class _Column(Question[MomentsProtocol]):
    """Levels of one column's distance from its centre, which give its scale."""

    def functionals(self, protocol: MomentsProtocol) -> tuple[Floats, str]:
        j = min(len(protocol._state["columns"]), protocol.n_features - 1)
        functionals = np.eye(protocol.n_features + 1)[[1 + j]]
        functionals[0, 0] = -protocol._state["center"][j]
        return functionals, "linear"

    def learn_levels(self, protocol: MomentsProtocol, task: Task, report: Report) -> None:
        super().learn_levels(protocol, task, report)
        protocol._add_column(protocol._levels_of("column", EXPECTED_DEVIATION).scale_with_hidden)

    def miss(self, protocol: MomentsProtocol) -> None:
        protocol._add_column(EXPECTED_DEVIATION)


class _Products(Question[MomentsProtocol]):
    """Products of the constant and the whitened coordinates, which whiten those of the next step."""

    def functionals(self, protocol: MomentsProtocol) -> tuple[Floats, str]:
        return protocol._whitened(), "products"

    def radius(self, protocol: MomentsProtocol) -> float:
        step, k = protocol._state["step"], protocol.n_features
        # Noise of a whitened square, for a radius of 1.
        variance = noise_variance(n_products(k + 1), protocol.epsilon) / max(1, protocol.n_wanted)
        noise, levels = math.sqrt(variance) * math.sqrt(k), protocol._levels_of_products()
        if step < len(protocol._steps) - 1:
            return levels.radius_of_moments(noise)
        # Nothing corrects what the last task shortens.
        return levels.radius_of_moments(noise, share_of_tail(k))

    def learn(self, protocol: MomentsProtocol, task: Task, report: Report) -> None:
        state, k = protocol._state, protocol.n_features
        if state["step"] == len(protocol._steps) - 1:
            # Later reports to this task are added to its sum.
            return
        functionals = protocol._whitened()
        moments = symmetric_matrix(task.mean(report), k + 1)
        # The constant has no error.
        moments[0, 0] = 1.0
        reported = [functionals.tolist(), moments.tolist(), task.standard_error(report.n_people)]
        state["reports"] = [*state["reports"], reported]
        moments, variances = combine_reports(functionals, state["reports"])
        mean = moments[0, 1:]
        edge = math.sqrt(np.mean(variances) * 2 * k)
        covariance = nearest_positive(moments[1:, 1:] - np.outer(mean, mean))
        least = LEAST_VARIANCE * np.square(state["columns"])
        values, vectors = np.linalg.eigh(with_least_variances(covariance, functionals[1:, 1:], least))
        # Drop eigenvalues below the rounding of the largest one.
        least = 1e-12 * max(1.0, values[-1])
        floor = values + max(edge / 2, least)
        whitening = np.array(state["whitening"])
        moved, _ = shrunk_means(mean, np.sqrt(variances[0, 1:]))
        state["center"] = (np.array(state["center"]) + np.linalg.solve(whitening.T, moved)).tolist()
        state["whitening"] = (whitening @ vectors / np.sqrt(floor)).tolist()
        state["remembered"] = ((values + max(edge / 4, least)) / floor).tolist()


MomentsProtocol.steps = {
    **by_name(_Center("center"), _Products("products")),
    "column_levels": _Column("column"),
}
