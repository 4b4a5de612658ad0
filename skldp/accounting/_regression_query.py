r"""Regression query: a locally private release with an exactly known law.

A :class:`RegressionQuery` is a regression :math:`y = f(\theta x + c)` answered with one of two values, a or b
(Pan 2025, Eq. 5):

.. math:: P(b \mid x) = \frac{1}{e^\varepsilon + 1} + \frac{e^\varepsilon - 1}{e^\varepsilon + 1} \frac{y - a}{b - a}
"""

import hashlib
import json
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal, cast, get_args

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from skldp._arrays import Floats, Words, as_numbers
from skldp._checks import check_choice
from skldp.accounting._units import LARGEST, checked_epsilon, finite_number, saturated
from skldp.domains._norms import weighted_sums
from skldp.laws._odds import flip_threshold, threshold_log_odds
from skldp.mechanisms._finite_query import output_index, read_only
from skldp.mechanisms._noise import Noise

Kind = Literal["linear", "truncated", "logistic", "exponential"]
KINDS = get_args(Kind)

_SMALLEST_SPAN = 1e-100
# Within these limits the allowance covers the rounding of the exponential.
_LEAST_GROWTH, MAX_GROWTH = 9e-7, 30.0


class KeyedQuery(ABC):
    """Base class of queries that are recorded as JSON."""

    @abstractmethod
    def to_json(self) -> str:
        """Return the query as JSON; floats are exact."""

    @cached_property
    def key(self) -> str:
        """SHA-256 of the content, in hexadecimal."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class RegressionQuery(KeyedQuery):
    r"""Query for a prediction of a regression, answered with one of two values.

    Parameters
    ----------
    kind : {"linear", "truncated", "logistic", "exponential"}
        ``"linear"``: :math:`y = \theta x + c`, declared to stay within `output_bounds` over the domain;
        ``"truncated"``: the same, clipped to them; ``"logistic"``: :math:`y = 1 / (1 + e^{-(\theta x + c)})`;
        ``"exponential"``: :math:`y = e^{\theta x + c}`, clipped to them.
    coef : array-like of shape (n_features,)
        Coefficients :math:`\theta`.
    intercept : float
        Intercept c.
    output_bounds : tuple of two floats
        Range (a, b) of the answers, with a < b. A logistic query has (0, 1). An exponential query has a > 0 and b
        between 1.000001 a and :math:`e^{30} a`.
    epsilon : float
        Privacy budget of one answer in nats, above 0 and at most 30.

    Attributes
    ----------
    n_features : int
        Number of features.
    n_outputs : int
        Number of outputs, 2: output 0 means a, output 1 means b.
    output_values : tuple of two floats
        Values (a, b) of the outputs.
    key : str
        SHA-256 of the content. Queries with equal keys are the same release.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    Notes
    -----
    Predictions of every kind are clipped to [a, b], so an answer never costs more than `epsilon`. The answer is drawn
    with an integer threshold: :math:`P(b \mid x) = T(x) / 2^{64}`, where T is clipped to
    :math:`\lceil 2^{64} / (e^\varepsilon + 1) \rceil` and its complement.

    Every row of numbers has an answer, without an error, a warning or NaN, since a failure would reveal the row at no
    charge. Parameters above 1e100 are therefore invalid, values are clipped to 1e100, and NaN becomes -1e100.
    (Estimators refuse NaN before any answer is drawn.)

    References
    ----------
    M. Pan, "Actual Knowledge Gain as Privacy Loss in Local Privacy Accounting", 2025, Sections 2.5 and 5.3.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.accounting import RegressionQuery
    >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(-1, 1), epsilon=np.log(3))
    >>> query.probability_of_high([[-1.0], [0.0], [1.0]]).round(6)
    array([0.25, 0.5 , 0.75])
    """

    kind: Kind
    coef: Floats
    intercept: float
    output_bounds: tuple[float, float]
    epsilon: float
    n_features: int = field(init=False, repr=False)
    n_outputs: ClassVar[int] = 2

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, KINDS)
        coef = np.array(self.coef, dtype=np.float64) + 0.0
        if coef.ndim != 1 or coef.size == 0 or not np.isfinite(coef).all():
            raise ValueError(f"coef must be a non-empty vector of finite numbers; got {self.coef!r}.")
        try:
            low, high = self.output_bounds
        except (TypeError, ValueError):
            raise ValueError(f"output_bounds must be (a, b); got {self.output_bounds!r}.") from None
        low, high = finite_number(low, "output_bounds[0]"), finite_number(high, "output_bounds[1]")
        if not low < high:
            raise ValueError(f"output_bounds must be (a, b) with a < b; got {self.output_bounds!r}.")
        if self.kind == "logistic" and (low, high) != (0.0, 1.0):
            raise ValueError(f"output_bounds of a logistic query must be (0, 1); got {self.output_bounds!r}.")
        if self.kind == "exponential" and not (
            low > 0 and _LEAST_GROWTH <= math.log(high) - math.log(low) <= MAX_GROWTH
        ):
            raise ValueError(
                "output_bounds of an exponential query must be positive, and their ratio from 1.000001 to "
                f"e^{MAX_GROWTH:g}; got {self.output_bounds!r}."
            )
        intercept = finite_number(self.intercept, "intercept")
        with np.errstate(over="ignore"):
            largest = max(float(np.abs(coef).sum()), abs(intercept), abs(low), abs(high))
        if largest > LARGEST or high - low < _SMALLEST_SPAN:
            raise ValueError(
                f"The magnitudes of the coefficients must add up to at most {LARGEST:g}, the intercept and the output "
                f"bounds must be at most that in magnitude, and the output bounds at least {_SMALLEST_SPAN:g} apart; "
                f"got coef={self.coef!r}, intercept={self.intercept!r} and output_bounds={self.output_bounds!r}."
            )
        object.__setattr__(self, "coef", read_only(coef))
        object.__setattr__(self, "n_features", coef.size)
        object.__setattr__(self, "intercept", intercept)
        object.__setattr__(self, "output_bounds", (low, high))
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))
        # Computed before any answer, as every decision needs them.
        _ = self.exact_epsilon, self.key

    @property
    def output_values(self) -> tuple[float, float]:
        """Values (a, b) of the outputs 0 and 1."""
        return self.output_bounds

    @cached_property
    def argument_bounds(self) -> tuple[float, float]:
        r"""Values of :math:`\theta x + c` for which the prediction is a and b; (0, 1) if logistic."""
        low, high = self.output_bounds
        return (math.log(low), math.log(high)) if self.kind == "exponential" else (low, high)

    @cached_property
    def growth(self) -> float:
        """Logarithm of b / a for an exponential query, else 0."""
        low, high = self.argument_bounds
        return high - low if self.kind == "exponential" else 0.0

    @cached_property
    def _least_threshold(self) -> Words:
        return flip_threshold(self.epsilon)

    @cached_property
    def exact_epsilon(self) -> float:
        """Largest log-ratio of the sampled integers, rounded up; at most `epsilon`."""
        return min(self.epsilon, float(threshold_log_odds(self._least_threshold)))

    def to_json(self) -> str:
        """Return the query as JSON; every float survives exactly."""
        return json.dumps(
            {
                "kind": self.kind,
                "coef": self.coef.tolist(),
                "intercept": self.intercept,
                "output_bounds": list(self.output_bounds),
                "epsilon": self.epsilon,
            },
            separators=(",", ":"),
        )

    def unit_response(self, X: npt.ArrayLike) -> Floats:
        """Rescale the clipped prediction from [a, b] to [0, 1]."""
        return self._unit_response(1, self._argument(X))

    def probability_of_high(self, X: npt.ArrayLike) -> Floats:
        """Return the probability of the output 1 (the value b).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of the respondents.
        """
        return self._probability(1, self._argument(X))

    def log_likelihood(self, output: int, X: npt.ArrayLike) -> Floats:
        """Return the log-probability of an output, given each row.

        Parameters
        ----------
        output : {0, 1}
            Answer.
        X : array-like of shape (n_samples, n_features)
            Rows of the respondents.
        """
        return np.log(self._probability(output_index(output, 2), self._argument(X)))

    def sample(self, X: npt.ArrayLike, noise: Noise) -> npt.NDArray[np.int8]:
        """Return a random answer of each row: 1 if it is b, else 0.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of the respondents.
        noise : Noise
            Source of randomness, as by :func:`~skldp.mechanisms.noise_from`.
        """
        return noise.bernoulli(self.thresholds(X)).astype(np.int8)

    def thresholds(self, X: npt.ArrayLike) -> Words:
        r"""Return the integer thresholds of :meth:`sample`: :math:`2^{64}` times the probability of the output 1."""
        z = self._argument(X)
        low, high = self._probability(0, z), self._probability(1, z)
        # Computed from the rarer answer: 1 - p cancels the digits of its log-likelihood.
        rarer = (np.minimum(low, high) * 2.0**64).astype(np.uint64)
        rarer = np.clip(rarer, self._least_threshold, np.uint64(2**63))
        # 2^64 - t in unsigned arithmetic is the two's complement of t, which is never 0.
        return np.where(high <= low, rarer, ~rarer + np.uint64(1))

    def estimate(self, outputs: npt.ArrayLike) -> Floats:
        r"""Return an unbiased estimate of the clipped prediction for each answer.

        Parameters
        ----------
        outputs : array-like of 0 and 1
            Answers.

        Notes
        -----
        .. math:: a + (b - a) \frac{(e^\varepsilon + 1) o - 1}{e^\varepsilon - 1}

        The paper's estimate of the mean has the factor b instead of b - a, so it is unbiased only if a = 0.
        """
        low, high = self.output_bounds
        o = as_numbers(outputs, "outputs")
        # (E + 1) o - 1 over E - 1, written so that it neither overflows nor cancels.
        fraction = 0.5 + (o - 0.5) / math.tanh(self.epsilon / 2)
        return low + (high - low) * fraction

    def estimate_mean(self, outputs: npt.ArrayLike) -> tuple[float, float]:
        r"""Estimate the mean prediction of the respondents, and its standard error.

        Parameters
        ----------
        outputs : array-like of 0 and 1, shape (n_people,)
            Answers of all respondents.

        Returns
        -------
        mean : float
            Unbiased estimate; NaN without answers.
        standard_error : float
            Standard error with respect to the mean of the population from which the respondents were drawn.

        Notes
        -----
        The sample variance of the estimates includes the noise and the spread of the predictions. It is replaced by the
        smallest variance of the noise if that is larger:

        .. math:: \frac{(b - a)^2}{4 \sinh^2(\varepsilon / 2)}.

        A single answer has the largest variance of the noise, :math:`(b - a)^2 / (4 \tanh^2(\varepsilon / 2))`.

        Examples
        --------
        >>> import numpy as np
        >>> from skldp.accounting import RegressionQuery
        >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(0, 1), epsilon=np.log(3))
        >>> [round(value, 6) for value in query.estimate_mean([0, 1, 1, 1])]
        [1.0, 0.5]
        """
        estimates = self.estimate(outputs)
        n = estimates.size
        if n == 0:
            return math.nan, math.nan
        width, half = self.output_bounds[1] - self.output_bounds[0], self.epsilon / 2
        if n == 1:
            variance = (width / (2 * math.tanh(half))) ** 2
        else:
            variance = max(float(estimates.var(ddof=1)), (width / (2 * math.sinh(half))) ** 2)
        return float(estimates.mean()), math.sqrt(variance / n)

    def expected_error(self, n_people: int, mean: float | None = None) -> float:
        r"""Return the expected standard error of the mean of `n_people` answers; infinity without people.

        Parameters
        ----------
        n_people : int
            Number of answers.
        mean : float, default=None
            Expected mean. None means the middle of the output bounds, where the error is largest.

        Notes
        -----
        With n people, a population mean m of the predictions and the middle :math:`\bar m` of the bounds, it is

        .. math:: \sqrt{\frac{1}{n} \left(\frac{(b - a)^2}{4 \tanh^2(\varepsilon / 2)} - (m - \bar m)^2\right)}.

        Examples
        --------
        >>> from skldp.accounting import RegressionQuery
        >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(0, 1), epsilon=1.0)
        >>> [round(query.expected_error(n), 4) for n in (0, 100, 10_000)]
        [inf, 0.1082, 0.0108]
        """
        low, high = self.output_bounds
        away = 0.0 if mean is None else abs(min(max(finite_number(mean, "mean"), low), high) - (low + high) / 2)
        largest = (high - low) / (2 * math.tanh(self.epsilon / 2))
        # A product, since squares could overflow.
        return math.sqrt(largest - away) * math.sqrt(largest + away) / math.sqrt(n_people) if n_people else math.inf

    def _argument(self, X: npt.ArrayLike) -> Floats:
        rows = saturated(X, self.n_features)
        # The limits on parameters exclude overflow. Underflow must not raise under the caller's numpy settings.
        with np.errstate(all="ignore"):
            return weighted_sums(rows, self.coef[None], np.array([self.intercept]))[:, 0]

    def _probability(self, output: int, z: Floats) -> Floats:
        smallest = float(expit(-self.epsilon))
        with np.errstate(all="ignore"):
            return smallest + (1 - 2 * smallest) * self._unit_response(output, z)

    def _unit_response(self, output: int, z: Floats) -> Floats:
        with np.errstate(all="ignore"):
            if self.kind == "logistic":
                return cast("Floats", expit(z if output == 1 else -z))
            low, high = self.argument_bounds
            w = np.clip((z - low if output == 1 else high - z) / (high - low), 0.0, 1.0)
            if self.kind != "exponential":
                return w
            growth = self.growth if output == 1 else -self.growth
            return np.expm1(growth * w) / math.expm1(growth)
