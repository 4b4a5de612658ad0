r"""Protocol of the mean and covariance of all columns, one release per person."""

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from skldp._arrays import Floats
from skldp.learning._constants import PRODUCTS_SHARE, USUAL_BIAS
from skldp.learning._levels import NormLevels
from skldp.learning._linear_protocol import STEPS_OF_FEATURES, LinearProtocol, Products
from skldp.learning._moment_estimates import MomentEstimates, ReleasedProducts
from skldp.learning._posterior import positive_part, with_least_eigenvalues
from skldp.learning._protocol import Question, by_name, n_people_to_detect, split_evenly
from skldp.learning._reports import Report
from skldp.learning._tasks import Task, noise_variance
from skldp.learning._vectors import n_products, symmetric_matrix


class MomentsProtocol(LinearProtocol):
    """Protocol of mean and covariance: cohorts whiten records, a tenth report their means, all others products."""

    _arguments = ("n_features", "n_people", "epsilon")

    def __init__(
        self, n_features: int, n_people: int, *, epsilon: float, low: npt.ArrayLike, high: npt.ArrayLike
    ) -> None:
        super().__init__(n_features, n_people, epsilon, np.append(low, -1.0), np.append(high, 1.0), "once")
        self._steps = self._plan()
        # With too few people for products, use the centre.
        self._stays_open = self._steps[-1][0]
        # Means of the functionals, the expected and the largest variance of each without sampling, and the people.
        self._state = self._state_of_features() | {"means": [[0.0] * n_features, 1e12, 1e12, 1]}

    @property
    def _constant(self) -> float:
        """Weight of the constant, whose products with the columns are their means."""
        # With it, the mean squared errors of means and covariances have the least sum.
        return math.sqrt((math.sqrt(1 + 8 * self.n_features) - 1) / 4)

    @property
    def n_needed(self) -> int:
        """Number of people from which products are reported."""
        noise = noise_variance(self.n_terms, self.epsilon, "products")
        return n_people_to_detect(n_products(self.n_terms), 1 / self.n_terms, noise)

    @property
    def estimates(self) -> MomentEstimates:
        """Current estimates, in the units of the declared bounds."""
        k, units, last = self.n_features, self._box.radius[:-1], self._state["last"]
        center = self._box.center[:-1] + units * np.array(self._state["center"])[:k]
        # Functionals of the constant and the centred columns.
        functionals = self._rows() / np.append(1.0, units)
        back = np.linalg.inv(functionals[1:, 1:])
        if last is None or self._steps[-1][0] != "products":
            # Second moments of the functionals are about 1.
            return MomentEstimates(center, np.full((k, k), np.nan), back @ back.T, back @ back.T, None)
        task, report = Task.from_json(last["task"]), Report.from_json(last["report"])
        error, levels, constant = task.standard_error(report.n_people), _PRODUCTS.levels(self), functionals[0, 0]
        moments = symmetric_matrix(task.mean(report), k + 1)
        # Means of the products with the constant, and means alone, weighted by their expected errors.
        usual = (error**2 + levels.bias(task.radius, USUAL_BIAS) ** 2) / (2 * constant**2) + 1 / report.n_people
        alone, usual_alone, most_alone, n_alone = self._state["means"]
        weight = usual / (usual + usual_alone + 1 / n_alone)
        means = weight * np.array(alone) + (1 - weight) * moments[0, 1:] / constant
        location = center + back @ (means - functionals[1:, 0])
        functionals[1:, 0] = means
        raw = moments[1:, 1:] - np.outer(means, means)
        covariance = back @ positive_part(raw, error * math.sqrt((k + 1) / 2)) @ back.T
        # Spread of a squared norm beyond that of a normal law: that of one direction at most, as of a rare value.
        kurtosis = min(max(0.0, levels.kurtosis * k / (k + 2) - 1) * k * (k + 2), task.radius) / 3
        cut = levels.bias_with_hidden(task.radius, _share_of_tail(k)) / error
        law = ReleasedProducts(task, report.n_people, functionals, covariance, kurtosis, cut)
        of_location = (1 - weight) ** 2 * law.covariances_of_means()
        of_location += weight**2 * (most_alone * back @ back.T + covariance / n_alone)
        # The square of a noisy mean is biased by its variance.
        raw = back @ raw @ back.T + of_location
        # Products of matrices round asymmetrically.
        raw, covariance = (raw + raw.T) / 2, (covariance + covariance.T) / 2
        within = np.clip(location, self._box.low[:-1], self._box.high[:-1])
        return MomentEstimates(within, of_location, raw, covariance, law)

    def _size_of(self, levels: NormLevels) -> float:
        return levels.scale_with_hidden

    def _raise_variances(self, spread: Floats, rows: Floats, least: Floats) -> Floats:
        # Use the average variance: scaling each direction would clip rare values.
        return with_least_eigenvalues(spread, rows, float(least.mean()))

    def _plan(self) -> list[tuple[str, int]]:
        n = self.n_people
        if not self.is_enough:
            return [("center_levels", n // 5), ("center", n - n // 5)]
        # Products that are cut off mislead covariances and whitening: more people report levels than for a regression.
        steps = self._plan_of_features(n, share_of_levels=PRODUCTS_SHARE / 2)
        left = n - sum(people for _, people in steps)
        n_levels, n_means = split_evenly(int(PRODUCTS_SHARE * left), 2)
        return [*steps, ("products_levels", n_levels), ("means", n_means), ("products", left - n_levels - n_means)]


class _Products(Products[MomentsProtocol]):
    """Products of the columns, at a radius that limits their bias."""

    def radius(self, protocol: MomentsProtocol) -> float:
        return self.levels(protocol).radius_of_moments(self.noise(protocol), _share_of_tail(protocol.n_features))

    def learn_levels(self, protocol: MomentsProtocol, task: Task, report: Report) -> None:
        # Whitened columns have norms of about the same law in all cohorts.
        protocol._add_levels("products", task, report, to_earlier=True)

    def learn(self, protocol: MomentsProtocol, task: Task, report: Report) -> None:
        # The last report is the estimate. Earlier ones whiten.
        if protocol._state["step"] < len(protocol._steps) - 1:
            super().learn(protocol, task, report)


class _Means(Question[MomentsProtocol]):
    """Means of the columns, whose vectors are much shorter than their products where a few people are far away."""

    def functionals(self, protocol: MomentsProtocol) -> tuple[Floats, str]:
        return (protocol._rows() @ protocol._terms())[1:], "linear"

    def levels(self, protocol: MomentsProtocol) -> NormLevels:
        return replace(_PRODUCTS.levels(protocol), power=0.5)

    def radius(self, protocol: MomentsProtocol) -> float:
        noise = self.noise(protocol) / math.sqrt(protocol.n_features)
        return self.levels(protocol).radius_of_moments(noise, _share_of_tail(protocol.n_features))

    def learn(self, protocol: MomentsProtocol, task: Task, report: Report) -> None:
        noise, levels = task.standard_error(report.n_people) ** 2, self.levels(protocol)
        usual = noise + levels.bias(task.radius, USUAL_BIAS) ** 2
        most = noise + levels.bias_with_hidden(task.radius, _share_of_tail(protocol.n_features)) ** 2
        means = task.mean(report)[: protocol.n_features].tolist()
        protocol._state["means"] = [means, usual, most, report.n_people]


def _share_of_tail(n_features: int) -> float:
    """Return the fraction of a usual tail's bias in one direction: it is in all of them, a rare value in one."""
    return 1 / math.sqrt(max(1, n_features - 1))


_PRODUCTS = _Products("products")
MomentsProtocol.steps = STEPS_OF_FEATURES | by_name(_PRODUCTS) | {"means": _Means("means")}
