"""Base class of the estimators that learn from reports."""

from abc import ABC, abstractmethod
from functools import wraps
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.metaestimators import available_if

from skldp._arrays import Floats
from skldp._checks import check_epsilon
from skldp.domains._domain import Box
from skldp.estimators._base import warn_moved
from skldp.estimators._guarantee_mixin import GuaranteeMixin, attach_guarantee
from skldp.estimators._validation import (
    BOUNDS_BY_COLUMN,
    EPSILON,
    NOISE_PARAMETERS,
    NumberRange,
    fit_context,
    warn,
)
from skldp.exceptions import TooFewPeopleWarning
from skldp.learning._person import simulate
from skldp.learning._protocol import Protocol
from skldp.learning._score import ScoreEstimate, score_estimate, score_tasks
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise, noise_from

# People for whom a stream plans if their number is not declared, in units of those whom a model needs.
_TIMES_NEEDED = 10
# Constraint of the estimators whose score is estimated.
SCORE_SHARE: dict = {"score_share": [NumberRange(Real, 0, 0.5, closed="both")]}


def unqualified(method: Any) -> Any:
    """Name a method without its class: the TypeError of a wrong argument then names no private base class."""

    @wraps(method)
    def checked(self: Any, *args: Any, **given: Any) -> Any:
        if given.pop("sample_weight", None) is not None:
            raise TypeError("sample_weight is refused: a person's weight is a value that epsilon would not cover.")
        return method(self, *args, **given)

    method.__qualname__ = checked.__qualname__ = method.__name__
    return checked


def takes_more(estimator: Any) -> bool:
    """Return whether `partial_fit` is available."""
    # An estimator without the parameter `protocol` always has an open task.
    return getattr(estimator, "protocol", "once") == "once" and not getattr(estimator, "inference", False)


class ProtocolEstimator(GuaranteeMixin, BaseEstimator, ABC):
    """Base class of estimators that learn by a protocol, in which every row reports once."""

    epsilon: float
    bounds: Any
    n_people: int | None
    seed: Any
    n_jobs: int | None
    protocol_: Any
    score_estimate_: ScoreEstimate | None
    _parameter_constraints: dict = {
        "epsilon": EPSILON,
        "bounds": BOUNDS_BY_COLUMN,
        "n_people": [NumberRange(Integral, 1, None, closed="left"), None],
        **NOISE_PARAMETERS,
    }
    _absent = {"partial_fit": "partial_fit needs protocol='once' and inference=False, for a task that stays open."}
    # Prediction of a fit with too few people, for its warning.
    _without_features: str
    # Part of the domain that is learnt from the rows.
    _learnt = ""

    @fit_context(prefer_skip_nested_validation=True)
    @unqualified
    def fit(self, X: npt.ArrayLike, y: Any) -> Self:
        """Fit the model; every row is one person who reports once.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The private records.
        y : array-like of shape (n_samples,)
            Their private targets or classes.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        return self._fit(X, y)

    @available_if(takes_more)
    @fit_context(prefer_skip_nested_validation=True)
    @unqualified
    def partial_fit(self, X: npt.ArrayLike, y: Any) -> Self:
        """Return self with the reports of more people for the open tasks. Each person may report once.

        The first people of a stream answer the first tasks, each of which waits until it has its people.

        Parameters
        ----------
        X, y : array-like of shape (n_samples, n_features), and of shape (n_samples,)
            As of `fit`.
        """
        return self._fit_more(X, y) if "_guarantee_at_fit" in vars(self) else self._fit(X, y, is_stream=True)

    def _fit(self, X: Any, y: Any, *, is_stream: bool = False) -> Self:
        self._forget_guarantee()
        check_epsilon(self.epsilon)
        rows, target = self._records(X, y, reset=True)
        # Declared bounds at fit: predictions are clipped to these, whatever `set_params` changes later.
        share = 0.0 if is_stream else getattr(self, "score_share", 0.0)
        protocol = self._planned(len(rows)) if is_stream else self._protocol(max(1, int((1 - share) * len(rows))))
        if share and not protocol.is_enough:
            protocol = self._protocol(len(rows))
        self._box, self._n_calls = self._domain(), 0
        if not protocol.is_enough:
            warn(
                f"Too few people: noise hides the relations between columns, and {self._without_features} predicted; "
                f"got {protocol.n_people:,} people, {protocol.n_features} features and epsilon {protocol.epsilon:.4g}; "
                f"at least {protocol.n_needed:,} people are needed, or fewer features.",
                TooFewPeopleWarning,
            )
        if protocol.is_enough and not is_stream and protocol.undetected_share == 1:
            message = "Noise may hide outlying values of any share of people (undetected_share_ is 1), which are cut"
            warn(f"{message}: skewed columns need more people or a larger epsilon.", TooFewPeopleWarning)
        n_apart = 0 if is_stream else len(rows) - protocol.n_people
        self._answered(protocol, rows, target, noise_from(self.seed), n_apart)
        return self

    def _fit_more(self, X: Any, y: Any) -> Self:
        self._check_unchanged()
        rows, target = self._records(X, y, reset=False)
        # Too few people for a model have no task that more could answer.
        protocol = self.protocol_ if self.protocol_.is_enough else self._planned(len(rows))
        # Seeded noise must differ from that of `fit` and of earlier calls.
        noise = noise_from(self.seed).spawn(4 + self._n_calls)[-1]
        self._n_calls += 1
        return self._answered(protocol, rows, target, noise)

    def _planned(self, n_people: int) -> Protocol:
        """Return a protocol for a stream, whose first people are so many."""
        needed = self._protocol(n_people).n_needed
        return self._protocol(max(n_people, needed, self.n_people or _TIMES_NEEDED * needed))

    def _answered(self, protocol: Protocol, rows: Floats, target: Floats, noise: Noise, n_apart: int = 0) -> Self:
        """Learn from the reports of these people, and estimate the score by those apart."""
        self._warn_moved(rows, target)
        people = noise.permutation(len(rows)) if n_apart else np.arange(len(rows))
        X, y = self._prepared(rows, target)
        simulate(protocol, X, y, noise, people=people[n_apart:], n_threads=effective_n_jobs(self.n_jobs))
        is_new, self.score_estimate_ = protocol is not vars(self).get("protocol_"), None
        self.protocol_ = protocol
        self._learn()
        if n_apart > 1:
            tasks, halves, of_scores = score_tasks(protocol), np.array_split(people[:n_apart], 2), noise.spawn(1)[0]
            reports = [[task.release(X, y, of_scores, rows=some)] for task, some in zip(tasks, halves, strict=True)]
            self.score_estimate_ = score_estimate(tasks, reports)
            if self.score_estimate_.interval[1] <= 0:
                message = f"The model is no better than if {self._without_features} predicted"
                warn(f"{message}: its score is {self.score_estimate_}.", TooFewPeopleWarning)
        if protocol.is_enough and protocol.n_missing:
            missing = f"{protocol.n_missing:,} more people: {self._without_features} predicted."
            warn(f"The first tasks wait for {missing}", TooFewPeopleWarning)
        if is_new:
            attach_guarantee(self, self._promise(protocol.guarantee()), self._learnt, "classes=[...]")
        return self

    @abstractmethod
    def _records(self, X: Any, y: Any, *, reset: bool) -> tuple[Floats, Floats]:
        """Return validated rows and targets."""

    @abstractmethod
    def _protocol(self, n_people: int) -> Protocol:
        """Return the protocol for this many people."""

    def _settings(self, n_people: int) -> dict[str, Any]:
        """Return what every protocol is made of but the bounds."""
        return {"n_features": self.n_features_in_, "n_people": n_people, "epsilon": float(self.epsilon)}

    @abstractmethod
    def _domain(self) -> Box:
        """Return the declared bounds of the records, with the target."""

    def _learn(self) -> None:
        """Set the fitted attributes from ``protocol_``."""
        self.undetected_share_ = self.protocol_.undetected_share

    def _prepared(self, rows: Floats, target: Floats) -> tuple[Floats, Floats]:
        """Return the records in the form that the protocol takes."""
        return rows, target

    def _promise(self, guarantee: PrivacyGuarantee) -> PrivacyGuarantee:
        """Return the protocol's guarantee and its assumptions."""
        return guarantee

    def _warn_moved(self, rows: Floats, target: Floats) -> None:
        warn_moved(self, rows, target[:, None][:, is_classifier(self) :], self._box)
