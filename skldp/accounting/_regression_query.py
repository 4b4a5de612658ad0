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
        """Write the query as JSON; every float survives exactly."""

    @cached_property
    def key(self) -> str:
        """SHA-256 of the content, in hexadecimal."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class RegressionQuery(KeyedQuery):
    r"""Regression query, answered with one of two values.

    Parameters
    ----------
    kind : {"linear", "truncated", "logistic", "exponential"}
        ``"linear"``: :math:`y = \theta x + c`, declared to stay within `output_bounds` wherever it is asked;
        ``"truncated"``: the same, clipped to them; ``"logistic"``: :math:`y = 1 / (1 + e^{-(\theta x + c)})`;
        ``"exponential"``: :math:`y = e^{\theta x + c}`, clipped to them.
    coef : array-like of shape (n_features,)
        :math:`\theta`.
    intercept : float
        c.
    output_bounds : tuple of two floats
        (a, b), with a < b. A logistic query has (0, 1), and an exponential one a > 0 and b between 1.000001 a and
        :math:`e^{30} a`.
    epsilon : float
        Natural-log budget of the one answer, above 0 and at most 30.

    Attributes
    ----------
    n_features : int
    n_outputs : int
        2: output 0 means a, output 1 means b.
    output_values : tuple of two floats
        (a, b).
    key : str
        SHA-256 of the content: two queries with the same key are the same release.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    Notes
    -----
    A prediction outside [a, b] is clipped whatever the kind, so that one answer never costs more than `epsilon`. The
    answer is drawn from integers: :math:`P(b \mid x) = T(x) / 2^{64}`, where T is kept between the integers
    :math:`\lceil 2^{64} / (e^\varepsilon + 1) \rceil` and its complement.

    Every row of numbers has an answer, and none raises, warns or gives NaN: a failure would be a second answer without
    a charge. So parameters above 1e100 are refused when the query is made, values are clipped to 1e100, and NaN becomes
    -1e100. (scikit-learn's checks refuse NaN before any answer is drawn.)

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
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {KINDS}. Got {self.kind!r} instead.")
        coef = np.array(self.coef, dtype=np.float64) + 0.0
        if coef.ndim != 1 or coef.size == 0 or not np.isfinite(coef).all():
            raise ValueError(f"coef must be a non-empty vector of finite numbers. Got {self.coef!r} instead.")
        try:
            low, high = self.output_bounds
        except (TypeError, ValueError):
            raise ValueError(f"output_bounds must be (a, b). Got {self.output_bounds!r} instead.") from None
        low, high = finite_number(low, "output_bounds[0]"), finite_number(high, "output_bounds[1]")
        if not low < high:
            raise ValueError(f"output_bounds must be (a, b) with a < b. Got {self.output_bounds!r} instead.")
        if self.kind == "logistic" and (low, high) != (0.0, 1.0):
            raise ValueError(f"output_bounds of a logistic query must be (0, 1). Got {self.output_bounds!r} instead.")
        if self.kind == "exponential" and not (
            low > 0 and _LEAST_GROWTH <= math.log(high) - math.log(low) <= MAX_GROWTH
        ):
            raise ValueError(
                "output_bounds of an exponential query must be positive, and their ratio from 1.000001 to "
                f"e^{MAX_GROWTH:g}. Got {self.output_bounds!r} instead."
            )
        intercept = finite_number(self.intercept, "intercept")
        with np.errstate(over="ignore"):
            largest = max(float(np.abs(coef).sum()), abs(intercept), abs(low), abs(high))
        if largest > LARGEST or high - low < _SMALLEST_SPAN:
            raise ValueError(
                "A query must stay far from overflow: coefficients that add up to at most "
                f"{LARGEST:g}, an intercept and output bounds of at most that size, and output bounds at least "
                f"{_SMALLEST_SPAN:g} apart. Got the coefficients {self.coef!r}, the intercept {self.intercept!r} and "
                f"the output bounds {self.output_bounds!r} instead."
            )
        object.__setattr__(self, "coef", read_only(coef))
        object.__setattr__(self, "n_features", coef.size)
        object.__setattr__(self, "intercept", intercept)
        object.__setattr__(self, "output_bounds", (low, high))
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))
        # Computed before any answer, as every decision needs it.
        _ = self.exact_epsilon

    @property
    def output_values(self) -> tuple[float, float]:
        """Values of the outputs 0 and 1."""
        return self.output_bounds

    @cached_property
    def argument_bounds(self) -> tuple[float, float]:
        r"""Values of :math:`\theta x + c` at which the prediction is a and b; (0, 1) if logistic."""
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
        """Write the query as JSON; every float survives exactly."""
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
        """Probability of the output 1 (the value b).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            Between 1/(e^epsilon + 1) and e^epsilon/(e^epsilon + 1).
        """
        return self._probability(1, self._argument(X))

    def log_likelihood(self, output: int, X: npt.ArrayLike) -> Floats:
        """Log-probability of an output, given each row.

        Parameters
        ----------
        output : {0, 1}
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.log(self._probability(output_index(output, 2), self._argument(X)))

    def sample(self, X: npt.ArrayLike, noise: Noise) -> npt.NDArray[np.int8]:
        """Draw every person's answer.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        noise : Noise

        Returns
        -------
        ndarray of int8, shape (n_samples,)
            1 where the answer is b, else 0.
        """
        return noise.bernoulli(self.thresholds(X)).astype(np.int8)

    def thresholds(self, X: npt.ArrayLike) -> Words:
        r"""Integers that :meth:`sample` draws with: :math:`2^{64}` times the probability of the output 1.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of uint64, shape (n_samples,)
        """
        z = self._argument(X)
        low, high = self._probability(0, z), self._probability(1, z)
        # Computed from the rarer answer: 1 - p cancels the digits of its log-likelihood.
        rarer = (np.minimum(low, high) * 2.0**64).astype(np.uint64)
        rarer = np.clip(rarer, self._least_threshold, np.uint64(2**63))
        # 2^64 - t in unsigned arithmetic is the two's complement of t, which is never 0.
        return np.where(high <= low, rarer, ~rarer + np.uint64(1))

    def estimate(self, outputs: npt.ArrayLike) -> Floats:
        r"""Turn answers into unbiased estimates of the (clipped) predictions.

        Parameters
        ----------
        outputs : array-like of 0 and 1

        Returns
        -------
        ndarray of float64, same shape

        Notes
        -----
        .. math:: a + (b - a) \frac{(e^\varepsilon + 1) o - 1}{e^\varepsilon - 1}

        The paper's estimate of the mean lacks the factor's :math:`- a`: it is unbiased for a = 0 alone.
        """
        low, high = self.output_bounds
        o = as_numbers(outputs, "outputs")
        # (E + 1) o - 1 over E - 1, written so that it neither overflows nor cancels.
        fraction = 0.5 + (o - 0.5) / math.tanh(self.epsilon / 2)
        return low + (high - low) * fraction

    def estimate_mean(self, outputs: npt.ArrayLike) -> tuple[float, float]:
        r"""Unbiased mean of the predictions of those who answered, and its standard error.

        Parameters
        ----------
        outputs : array-like of 0 and 1, shape (n_people,)

        Returns
        -------
        mean : float
            NaN without answers.
        standard_error : float
            As an estimate of the mean over the population that these people were drawn from.

        Notes
        -----
        The sample variance of the estimates holds both the noise and the spread of the predictions. By chance it can
        fall below what the noise alone has at least,

        .. math:: \frac{(b - a)^2}{4 \sinh^2(\varepsilon / 2)},

        which is then taken instead; a single answer is given the most that its noise can have,
        :math:`(b - a)^2 / (4 \tanh^2(\varepsilon / 2))`.

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
        r"""Expected standard error of the mean of `n_people` answers.

        Parameters
        ----------
        n_people : int
        mean : float, default=None
            What the mean is expected to be. None takes the middle of the output bounds, where the error is largest.

        Returns
        -------
        float
            Infinity for 0 people.

        Notes
        -----
        Of n people drawn from a population whose predictions have the mean m, with the bounds' middle :math:`\bar m`,

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
