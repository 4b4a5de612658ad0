r"""Queries about a linear classifier: the predicted class, or the probability of one class.

The person's class is :math:`\arg\max_c \theta_c x + \gamma_c`; ties go to the first class. A :class:`ClassQuery` is
answered by k-ary randomized response. Let d be the count of the most frequent answer to a query minus the count of the
rarest. The log-likelihood of all answers to this query differs between two people by at most epsilon times d.

A :class:`SoftmaxQuery` for class k is answered with 0 or 1 (Pan 2025, Eq. 5 and Appendix C):

.. math:: P(1 \mid x) = \frac{1}{e^\varepsilon + 1} + \frac{e^\varepsilon - 1}{e^\varepsilon + 1} p(x), \quad
          p(x) = \frac{e^{\theta_k x + \gamma_k}}{\sum_c e^{\theta_c x + \gamma_c}}.

All answers to one such query depend on a single number p(x), so they have the law of the linear query y = p.

**Rounding.** Products are added one feature at a time, so a record has the same scores in any batch and on any machine.
Exponentials are assumed to be accurate to 4 units in the last place. Two computations of p then differ by at most
:math:`(4 n_{classes} + 32)\, 2^{-53}`, and the loss includes the resulting change of the log-likelihood.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from skldp._arrays import Floats, Ints
from skldp._checks import check_integer
from skldp.accounting._regression_query import KeyedQuery, RegressionQuery
from skldp.accounting._units import LARGEST, checked_epsilon, saturated
from skldp.domains._norms import weighted_sums
from skldp.mechanisms._finite_query import output_index, read_only
from skldp.mechanisms._noise import Noise
from skldp.mechanisms.categorical._frequency import estimate_frequencies
from skldp.mechanisms.categorical._randomized_response import RandomizedResponse

_MOST_CLASSES = 1000


@dataclass(frozen=True, eq=False)
class _LinearClasses(KeyedQuery):
    """Base class of queries of a linear model with coefficients for each class."""

    # Shapes: `coef` (n_classes, n_features); `intercept` (n_classes,).

    coef: Floats
    intercept: Floats

    kind: ClassVar[str]
    output_bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __post_init__(self) -> None:
        coef = np.array(self.coef, dtype=np.float64) + 0.0
        intercept = np.array(self.intercept, dtype=np.float64) + 0.0
        if coef.ndim != 2 or 0 in coef.shape or not 2 <= len(coef) <= _MOST_CLASSES:
            raise ValueError(
                f"coef must have shape (n_classes, n_features), of 2 to {_MOST_CLASSES} classes; "
                f"got shape {coef.shape}."
            )
        if intercept.shape != (len(coef),):
            raise ValueError(f"intercept must have shape ({len(coef)},); got shape {intercept.shape}.")
        with np.errstate(over="ignore", invalid="ignore"):
            is_small = np.abs(coef).sum(axis=1).max() <= LARGEST and np.abs(intercept).max() <= LARGEST
        # NaN is not small.
        if not is_small:
            raise ValueError(
                f"The magnitudes of a class's coefficients must add up to at most {LARGEST:g}, and each intercept "
                f"must be at most that in magnitude; got coef={self.coef!r} and intercept={self.intercept!r}."
            )
        object.__setattr__(self, "coef", read_only(coef))
        object.__setattr__(self, "intercept", read_only(intercept))

    @property
    def n_features(self) -> int:
        """Number of features that the query reads."""
        return int(self.coef.shape[1])

    def to_json(self) -> str:
        """Write the query as JSON; every float survives exactly."""
        values = {one.name: np.asarray(getattr(self, one.name)).tolist() for one in fields(self)}
        return json.dumps({"kind": self.kind, **values}, separators=(",", ":"))

    def scores(self, X: npt.ArrayLike) -> Floats:
        """Return the score of each class for each row, equal to the bit in any batch."""
        return weighted_sums(saturated(X, self.n_features), self.coef, self.intercept)


@dataclass(frozen=True, eq=False)
class ClassQuery(_LinearClasses):
    """Query for the predicted class; output c is the position of class c."""

    epsilon: float

    kind: ClassVar[str] = "classes"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))
        # Raises if epsilon is too small for 64-bit probabilities.
        _ = self.mechanism

    @property
    def n_outputs(self) -> int:
        """Number of classes."""
        return len(self.coef)

    @property
    def output_values(self) -> tuple[int, ...]:
        """Outputs, which are the positions of the classes."""
        return tuple(range(self.n_outputs))

    @cached_property
    def mechanism(self) -> RandomizedResponse:
        """Mechanism that draws the answers."""
        return RandomizedResponse(self.epsilon, self.n_outputs)

    @cached_property
    def exact_epsilon(self) -> float:
        """Largest log-ratio of the sampled integers, rounded up; at most `epsilon`."""
        return min(self.epsilon, self.mechanism.exact_epsilon)

    def classes(self, X: npt.ArrayLike) -> Ints:
        """Return the predicted class of each row, shape (n_samples,)."""
        classes: Ints = self.scores(X).argmax(axis=1).astype(np.int64)
        return classes

    def log_likelihood(self, output: int, X: npt.ArrayLike) -> Floats:
        """Return the log-probability of an output, given each row."""
        kept, other = (math.log(chance) for chance in self.mechanism.support_probabilities())
        return np.where(self.classes(X) == output_index(output, self.n_outputs), kept, other)

    def sample(self, X: npt.ArrayLike, noise: Noise) -> Ints:
        """Draw the answer of each row."""
        answers: Ints = self.mechanism.release(self.classes(X)[:, None], noise).rows[:, 0]
        return answers

    def estimate(self, outputs: npt.ArrayLike) -> Floats:
        """Convert answers to unbiased estimates of the indicators of the classes, shape (n_people, n_classes)."""
        given = np.asarray(outputs, dtype=np.int64)[:, None] == np.arange(self.n_outputs)
        kept, other = self.mechanism.support_probabilities()
        estimates: Floats = (given - other) / (kept - other)
        return estimates

    def estimate_mean(self, outputs: npt.ArrayLike) -> tuple[Floats, Floats]:
        """Estimate the population shares of the classes without bias, with standard errors; NaN without answers."""
        answers = np.asarray(outputs, dtype=np.int64)
        n = len(answers)
        if not n:
            return np.full(self.n_outputs, np.nan), np.full(self.n_outputs, np.nan)
        if n == 1:
            return self.estimate(answers)[0], np.full(self.n_outputs, np.inf)
        counts = np.bincount(answers, minlength=self.n_outputs)
        found = estimate_frequencies(counts, n, *self.mechanism.support_probabilities(), of="population")
        return found.frequencies, found.standard_errors

    def expected_error(self, n_people: int, mean: npt.ArrayLike | None = None) -> float:
        """Return the largest expected standard error of a share; without expected shares, for the largest variance."""
        kept, other = self.mechanism.support_probabilities()
        reported = np.array([0.5]) if mean is None else other + (kept - other) * np.clip(mean, 0.0, 1.0)
        largest = math.sqrt(float((reported * (1 - reported)).max())) / (kept - other)
        return largest / math.sqrt(n_people) if n_people else math.inf


def loss_of_classes(answers: Iterable[tuple[ClassQuery, int]]) -> float:
    """Return the loss of answers to class queries, rounded up."""
    counts: dict[str, tuple[float, Ints]] = {}
    for query, output in answers:
        of_query = counts.setdefault(query.key, (query.exact_epsilon, np.zeros(query.n_outputs, dtype=np.int64)))
        of_query[1][output] += 1
    # One exact term per answer; fsum rounds once.
    terms = [epsilon for epsilon, count in counts.values() for _ in range(int(np.ptp(count)))]
    return math.nextafter(math.fsum(terms), math.inf) if terms else 0.0


_UNIT = 2.0**-53


@dataclass(frozen=True, eq=False)
class SoftmaxQuery(_LinearClasses):
    """Query for the probability of the class at a position; the law is that of the linear query `share`."""

    position: int
    epsilon: float

    kind: ClassVar[str] = "softmax"
    n_outputs: ClassVar[int] = 2
    output_values: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("position", self.position, least=0, most=len(self.coef) - 1)
        object.__setattr__(self, "position", int(self.position))
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))

    @cached_property
    def share(self) -> RegressionQuery:
        """Linear query y = p with the same law."""
        return RegressionQuery("linear", np.ones(1), 0.0, (0.0, 1.0), self.epsilon)

    @property
    def exact_epsilon(self) -> float:
        """Largest log-ratio of the sampled integers, rounded up; at most `epsilon`."""
        return self.share.exact_epsilon

    @cached_property
    def rounding(self) -> float:
        """Bound the difference of two computations of one log-likelihood."""
        return math.expm1(self.epsilon) * (4 * len(self.coef) + 32) * _UNIT * (1 + 2.0**-20)

    def unit_response(self, X: npt.ArrayLike) -> Floats:
        """Return the probability of the class for each row, shape (n_samples,)."""
        scores = self.scores(X)
        with np.errstate(all="ignore"):
            odds = np.exp(scores - scores.max(axis=1, keepdims=True))
            total = np.zeros(len(scores))
            for of_class in odds.T:
                total += of_class
            found: Floats = odds[:, self.position] / total
        return found

    def log_likelihood(self, output: int, X: npt.ArrayLike) -> Floats:
        """Return the log-probability of an output, given each row."""
        return self.share.log_likelihood(output_index(output, 2), self.unit_response(X)[:, None])

    def sample(self, X: npt.ArrayLike, noise: Noise) -> npt.NDArray[np.int8]:
        """Draw the answer of each row."""
        return self.share.sample(self.unit_response(X)[:, None], noise)

    def estimate(self, outputs: npt.ArrayLike) -> Floats:
        """Convert answers to unbiased estimates of the probabilities."""
        return self.share.estimate(outputs)

    def estimate_mean(self, outputs: npt.ArrayLike) -> tuple[float, float]:
        """Estimate the mean probability and its standard error."""
        return self.share.estimate_mean(outputs)

    def expected_error(self, n_people: int, mean: float | None = None) -> float:
        """Return the expected standard error of the mean."""
        return self.share.expected_error(n_people, mean)


def answers_by_question(answers: Iterable[tuple[SoftmaxQuery, int]]) -> list[tuple[SoftmaxQuery, list[int]]]:
    """Return the outputs of each distinct query, in a fixed order."""
    found: dict[str, tuple[SoftmaxQuery, list[int]]] = {}
    for query, output in answers:
        found.setdefault(query.key, (query, []))[1].append(output)
    return [found[key] for key in sorted(found)]
