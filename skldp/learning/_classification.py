r"""Protocol of multinomial logistic regression, one release per person."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from skldp._arrays import Floats
from skldp.learning._constants import LOG_ODDS, N_COHORTS, PREPARATION_SHARE
from skldp.learning._likelihood import Likelihood, normal_people
from skldp.learning._linear_protocol import STEPS_OF_FEATURES, LinearProtocol
from skldp.learning._posterior import Gradients, positive_means, posterior
from skldp.learning._protocol import Question, Shares, by_name, n_people_needed, split_evenly
from skldp.learning._reports import Report
from skldp.learning._tasks import Task
from skldp.learning._vectors import contrasts


@dataclass(frozen=True)
class MultinomialGradients(Gradients):
    """Gradients of the likelihood, in its contrasts of the classes."""

    likelihood: Likelihood

    def at_zero(self, model: Floats) -> Floats:
        return self.likelihood.at_zero(model)

    def designs(self, model: Floats) -> Floats:
        return self.likelihood.curvature(model)

    def traces(self, model: Floats) -> Floats:
        return self.likelihood.traces(model)


class ClassificationProtocol(LinearProtocol):
    r"""Interactive protocol of multinomial logistic regression: cohorts answer one task after the other.

    Every person belongs to one cohort and answers one task, at the full epsilon. All that this object knows is public.

    Parameters
    ----------
    n_features : int
        Number of features.
    n_people : int
        Number of people to ask. Not all need to answer.
    n_classes : int
        K, at least 2. Targets are classes counted from 0.
    epsilon : float
        Natural log, of the whole record with its class.
    low, high : array-like of shape (n_features,)
        Declared bounds of the features.
    kind : {"rounds", "once"}, default="rounds"
        ``"rounds"`` asks for gradients at the current model, cohort by cohort. ``"once"`` asks a first third for them
        at a model without slopes. All others answer one task at the fitted model, to which
        :meth:`add` takes more answers at any time.

    Notes
    -----
    The shares of the classes are the model without slopes. A gradient at a model is the mean of the contrasts of the
    class times the whitened terms, less their expectation under that model. The expectation, its derivative and their
    loss by clipping follow from simulated normal people with the reported second moments (``Likelihood``). All reports
    enter the update of the regression (``posterior``). The prior limits the log odds.

    References
    ----------
    Duchi, Jordan and Wainwright, "Minimax optimal procedures for locally private estimation", 2018, section 4.

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

    _arguments = ("n_features", "n_people", "n_classes", "epsilon", "kind")

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
    ) -> None:
        super().__init__(n_features, n_people, epsilon, low, high, kind, n_classes)
        self._stays_open = "gradient" if self.kind == "once" else ""
        self._steps = self._plan()
        self._state = self._state_of_features() | {
            # The estimate, and where people report: the estimate given that there is something to learn.
            "beta": np.zeros((n_classes - 1, self.n_terms)).tolist(),
            "asked_at": np.zeros((n_classes - 1, self.n_terms)).tolist(),
            "shares": [1 / n_classes] * n_classes,
            # Covariance of the errors of the contrasts of the logarithms of the shares.
            "shares_error": np.zeros((n_classes - 1, n_classes - 1)).tolist(),
        }

    @property
    def coefficients(self) -> Floats:
        """Coefficients in the units of the declared bounds, shape (n_classes, n_features)."""
        return self._in_data_units(self._logits())[0]

    @property
    def intercepts(self) -> Floats:
        """Intercepts in the units of the declared bounds, shape (n_classes,)."""
        return self._in_data_units(self._logits())[1]

    @property
    def n_needed(self) -> int:
        """Number of people from which the model depends on the record."""
        return n_people_needed(self.n_features, self.epsilon, self.n_classes)

    def _logits(self, name: str = "beta") -> Floats:
        return contrasts(self.n_classes) @ np.array(self._state[name])

    def _plan(self) -> list[tuple[str, int]]:
        """Return the steps with their numbers of people, from public numbers only."""
        n = self.n_people
        if not self.is_enough:
            return [("shares", n)]
        steps = [("shares", int(PREPARATION_SHARE * n))]
        steps += self._plan_of_features(n - sum(people for _, people in steps))
        steps.append(("gradient_levels", int(PREPARATION_SHARE * n)))
        left = n - sum(people for _, people in steps)
        first = left // 3
        cohorts = [first, left - first] if self.kind == "once" else split_evenly(left, N_COHORTS)
        return steps + [("gradient", people) for people in cohorts]

    def _likelihood(self, rows: Floats) -> tuple[Likelihood, Floats, Floats]:
        """Return the likelihood of simulated people, its contrasts, and the model at which people report, in these."""
        # Contrasts that are independent where nothing but the shares is known, and whitened terms.
        shares, all_contrasts = np.array(self._state["shares"]), contrasts(self.n_classes)
        turned = np.linalg.eigh(all_contrasts.T @ (np.diag(shares) - np.outer(shares, shares)) @ all_contrasts)[1]
        likelihood = Likelihood(normal_people(self._expected_moments(rows)[0]), all_contrasts @ turned)
        return likelihood, turned, turned.T @ np.array(self._state["asked_at"]) @ np.linalg.inv(rows)

    def _learn(self, value: Floats, noise: float, radius: float) -> None:
        """Add a reported gradient, and update the model."""
        state, rows = self._state, self._rows()
        likelihood, turned, model = self._likelihood(rows)
        lost, shown = likelihood.clipped(model, radius)
        at_zero = (value - turned @ lost) / shown + turned @ likelihood.at_zero(model)
        state["gradients"] = [*state["gradients"], [at_zero.tolist(), noise / shown, state["asked_at"]]]
        values, noises, asked_at = (np.array(one) for one in zip(*state["gradients"], strict=True))
        moments, unknown, _ = self._expected_moments(rows)
        # The model is a functional of the whitened terms: all gradients are about the same ones.
        at, own = turned.T @ asked_at @ np.linalg.inv(rows), np.eye(self.n_terms)
        reports = MultinomialGradients(own, moments, unknown, turned.T @ values, noises, at, likelihood)
        base = np.zeros((self.n_classes - 1, self.n_terms))
        base[:, 0] = turned.T @ contrasts(self.n_classes).T @ np.log(state["shares"]) / rows[0, 0]
        models = None if state["of_priors"] is None else np.array(state["of_priors"])
        found = posterior([reports], *self._prior(turned, rows), base, models)
        state["beta"], state["of_priors"] = (turned @ found.mean @ rows).tolist(), found.models.tolist()
        state["asked_at"] = (turned @ found.mean_if_any @ rows).tolist()

    def _prior(self, turned: Floats, rows: Floats) -> tuple[Floats, Floats]:
        """Return known variances, of the shares, and covariances in which whitened terms, or columns, are alike."""
        state, n_outcomes = self._state, self.n_classes - 1
        known, unknown = np.zeros((n_outcomes, self.n_terms)), []
        known[:, 0] = np.diag(turned.T @ np.array(state["shares_error"]) @ turned) / rows[0, 0] ** 2
        back = np.linalg.inv(rows[1:, 1:])
        for functionals in (rows[1:, 1:], np.diag(1 / self._widths[1:])):
            variances = LOG_ODDS / (self.n_terms + (functionals**2).mean(axis=1))
            alike = np.zeros((self.n_terms, self.n_terms))
            alike[0, 0] = LOG_ODDS * (1 + self._errors_of_means.mean()) / rows[0, 0] ** 2
            alike[1:, 1:] = (functionals @ back).T * variances @ functionals @ back
            unknown.append([alike] * n_outcomes)
        return known, np.array(unknown)


class _Shares(Shares[ClassificationProtocol]):
    """Shares of the classes, which are the model without slopes."""

    def learn(self, protocol: ClassificationProtocol, reported: Floats, error: float) -> None:
        state, all_contrasts = protocol._state, contrasts(protocol.n_classes)
        shares = positive_means(reported, error)
        shares /= shares.sum()
        of_logs = error * all_contrasts.T / shares @ all_contrasts
        state["shares"], state["shares_error"] = shares.tolist(), (of_logs @ of_logs).tolist()
        beta = np.array(state["beta"])
        beta[:, 0] = np.log(shares) @ all_contrasts
        state["beta"] = state["asked_at"] = beta.tolist()


class _ClassGradient(Question[ClassificationProtocol]):
    """Gradient at the current model, and before it the levels of the norms of the whitened terms."""

    def functionals(self, protocol: ClassificationProtocol) -> tuple[Floats, str]:
        return protocol._rows() @ protocol._terms(), "linear"

    def task(self, protocol: ClassificationProtocol, name: str) -> Task:
        if name != self._name:
            return super().task(protocol, name)
        functionals = np.vstack([self.functionals(protocol)[0], protocol._logits("asked_at") @ protocol._terms()])
        return protocol._make_task(functionals, "class_gradient", "vector", self.radius(protocol), protocol.n_classes)

    def radius(self, protocol: ClassificationProtocol) -> float:
        rows = protocol._rows()
        noise = protocol._noise_of(protocol.n_terms * (protocol.n_classes - 1), "gradient")
        likelihood, _, model = protocol._likelihood(rows)
        sizes, chances = likelihood.residuals(model, np.array(protocol._state["shares"]))
        return self.levels(protocol).radius_of_residuals(noise, sizes, chances)

    def learn_levels(self, protocol: ClassificationProtocol, task: Task, report: Report) -> None:
        protocol._keep_rows()
        protocol._add_levels("gradient", task, report, to_earlier=True)

    def learn(self, protocol: ClassificationProtocol, task: Task, report: Report) -> None:
        protocol._keep_rows()
        value = task.mean(report).reshape(protocol.n_classes - 1, -1)[:, : protocol.n_terms]
        sampled = self.levels(protocol).sampling_variance(task.radius, value.size * report.n_people)
        noise = math.sqrt(task.standard_error(report.n_people) ** 2 + sampled)
        protocol._learn(value, noise, task.radius)

    def expected(self, protocol: ClassificationProtocol) -> tuple[float, int]:
        return math.sqrt(protocol.n_terms), protocol.n_terms


ClassificationProtocol.steps = STEPS_OF_FEATURES | {
    "shares": _Shares(),
    **by_name(_ClassGradient("gradient")),
}
