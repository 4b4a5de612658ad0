r"""One question asked of a person, as a locally private release with an exactly known law.

A :class:`RegressionQuery` is a regression :math:`y = f(\theta x + c)` answered with one of two values, a or b
(Pan 2025, Eq. 5):

.. math:: P(b \mid x) = \frac{1}{e^\varepsilon + 1} + \frac{e^\varepsilon - 1}{e^\varepsilon + 1} \frac{y - a}{b - a}

A :class:`FiniteQuery` is any mechanism with finitely many outputs over a finite domain. Both give the
log-likelihood of an output, which is all that the accounting of many releases needs.
"""

import hashlib
import json
import math
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from skldp.mechanisms.randomness import Noise, flip_threshold, threshold_log_odds

__all__ = ["FiniteQuery", "Query", "RegressionQuery", "query_from_json"]

Kind = Literal["linear", "truncated", "logistic"]

# Beyond this a 64-bit threshold no longer resolves 1 / (e^epsilon + 1) to the accuracy that the accounting allows for.
MAX_EPSILON = 30.0
_GRID_BITS = 53


def query_from_json(text: str) -> "Query":
    """Read back what ``to_json`` of a query wrote.

    Parameters
    ----------
    text : str

    Returns
    -------
    RegressionQuery or FiniteQuery
        With the same `key`.

    Raises
    ------
    ValueError
        If the text is no query.

    Examples
    --------
    >>> from skldp.accounting.query import RegressionQuery, query_from_json
    >>> query = RegressionQuery("linear", coef=[0.1, 0.2], intercept=0.3, output_bounds=(0, 1), epsilon=0.5)
    >>> query_from_json(query.to_json()).key == query.key
    True
    """
    fields = json.loads(text)
    kind = fields.get("kind") if isinstance(fields, dict) else None
    if kind == "finite":
        return FiniteQuery(np.array(fields["weights"], dtype=np.uint64))
    if kind in ("linear", "truncated", "logistic"):
        return RegressionQuery(**fields)
    raise ValueError(f"The text must be the JSON of a query. Got {text[:80]!r} instead.")


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number. Got {value!r} instead.")
    return float(value) + 0.0


def _checked_epsilon(value: Any) -> float:
    epsilon = _number(value, "epsilon")
    if not 0 < epsilon <= MAX_EPSILON:
        raise ValueError(f"epsilon must be above 0 and at most {MAX_EPSILON:g}. Got {value!r} instead.")
    return epsilon


def _read_only(values: np.ndarray) -> np.ndarray:
    values.flags.writeable = False
    return values


def _output_index(output: Any, n_outputs: int) -> int:
    if isinstance(output, bool | np.bool_) or not isinstance(output, int | np.integer) or not 0 <= output < n_outputs:
        raise ValueError(f"output must be an integer from 0 to {n_outputs - 1}. Got {output!r} instead.")
    return int(output)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class RegressionQuery:
    r"""A regression asked of a person, answered with one of two values.

    Parameters
    ----------
    kind : {"linear", "truncated", "logistic"}
        ``"linear"``: :math:`y = \theta x + c`, declared to stay within `output_bounds` wherever it is asked;
        ``"truncated"``: the same, clipped to them; ``"logistic"``: :math:`y = 1 / (1 + e^{-(\theta x + c)})`.
    coef : array-like of shape (n_features,)
        :math:`\theta`.
    intercept : float
        c.
    output_bounds : tuple of two floats
        (a, b), with a < b. A logistic query has (0, 1).
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
        If a parameter is not as described.

    Notes
    -----
    A prediction outside [a, b] is clipped whatever the kind, so that one answer never costs more than `epsilon`. The
    answer is drawn from integers: :math:`P(b \mid x) = T(x) / 2^{64}`, where T is kept between the integers
    :math:`\lceil 2^{64} / (e^\varepsilon + 1) \rceil` and its complement.

    References
    ----------
    M. Pan, "Actual Knowledge Gain as Privacy Loss in Local Privacy Accounting", 2025, Sections 2.5 and 5.3.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.accounting.query import RegressionQuery
    >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(-1, 1), epsilon=np.log(3))
    >>> query.probability_of_high([[-1.0], [0.0], [1.0]]).round(6)
    array([0.25, 0.5 , 0.75])
    """

    kind: Kind
    coef: npt.NDArray[np.float64]
    intercept: float
    output_bounds: tuple[float, float]
    epsilon: float

    def __post_init__(self) -> None:
        if self.kind not in ("linear", "truncated", "logistic"):
            raise ValueError(f"kind must be 'linear', 'truncated' or 'logistic'. Got {self.kind!r} instead.")
        coef = np.array(self.coef, dtype=np.float64) + 0.0
        if coef.ndim != 1 or coef.size == 0 or not np.isfinite(coef).all():
            raise ValueError(f"coef must be a non-empty vector of finite numbers. Got {self.coef!r} instead.")
        try:
            low, high = self.output_bounds
        except (TypeError, ValueError):
            raise ValueError(f"output_bounds must be (a, b). Got {self.output_bounds!r} instead.") from None
        low, high = _number(low, "output_bounds[0]"), _number(high, "output_bounds[1]")
        if not low < high or not math.isfinite(high - low):
            raise ValueError(f"output_bounds must be (a, b) with a < b. Got {self.output_bounds!r} instead.")
        if self.kind == "logistic" and (low, high) != (0.0, 1.0):
            raise ValueError(f"output_bounds of a logistic query must be (0, 1). Got {self.output_bounds!r} instead.")
        object.__setattr__(self, "coef", _read_only(coef))
        object.__setattr__(self, "intercept", _number(self.intercept, "intercept"))
        object.__setattr__(self, "output_bounds", (low, high))
        object.__setattr__(self, "epsilon", _checked_epsilon(self.epsilon))

    @property
    def n_features(self) -> int:
        """Number of features that the query reads."""
        return self.coef.size

    @property
    def n_outputs(self) -> int:
        """Number of different answers."""
        return 2

    @property
    def output_values(self) -> tuple[float, float]:
        """What the outputs 0 and 1 stand for."""
        return self.output_bounds

    @cached_property
    def exact_epsilon(self) -> float:
        """The worst log-ratio of the integers that are sampled, rounded up: at most `epsilon`."""
        return min(self.epsilon, float(threshold_log_odds(flip_threshold(self.epsilon))))

    @cached_property
    def key(self) -> str:
        """SHA-256 of the content, in hexadecimal."""
        return _sha256(self.to_json())

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

    @classmethod
    def from_json(cls, text: str) -> "RegressionQuery":
        """Read back what :meth:`to_json` wrote."""
        return cast(RegressionQuery, _of_class(query_from_json(text), cls))

    def unit_response(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Where the prediction lies between a (0) and b (1), clipped."""
        return self._unit_response(1, X)

    def probability_of_high(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Probability of the output 1 (the value b).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            Between 1/(e^epsilon + 1) and e^epsilon/(e^epsilon + 1).
        """
        return self._probability(1, X)

    def log_likelihood(self, output: int, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Log-probability of an output, given each row.

        Parameters
        ----------
        output : {0, 1}
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.log(self._probability(_output_index(output, 2), X))

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
        smallest = flip_threshold(self.epsilon)
        largest = ~smallest + np.uint64(1)
        threshold = (self.probability_of_high(X) * 2.0**64).astype(np.uint64)
        return noise.bernoulli(np.clip(threshold, smallest, largest)).astype(np.int8)

    def estimate(self, outputs: npt.ArrayLike) -> npt.NDArray[np.float64]:
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
        o = np.asarray(outputs, dtype=np.float64)
        # (E + 1) o - 1 over E - 1, written so that it neither overflows nor cancels.
        fraction = 0.5 + (o - 0.5) / math.tanh(self.epsilon / 2)
        return low + (high - low) * fraction

    def _probability(self, output: int, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        smallest = expit(-self.epsilon)
        return smallest + (1 - 2 * smallest) * self._unit_response(output, X)

    def _unit_response(self, output: int, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            raise ValueError(
                f"X must have shape (n_samples, {self.n_features}), one column per coefficient of the query. "
                f"Got shape {rows.shape} instead."
            )
        z = rows @ self.coef + self.intercept
        if not np.isfinite(z).all():
            raise ValueError("X must be finite, and so must theta x + c. Got NaN or infinity instead.")
        if self.kind == "logistic":
            return expit(z if output == 1 else -z)
        low, high = self.output_bounds
        return np.clip((z - low if output == 1 else high - z) / (high - low), 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class FiniteQuery:
    r"""Any mechanism with finitely many outputs over a finite domain, by its table.

    Make one with :meth:`from_probabilities`.

    Parameters
    ----------
    weights : array-like of int, shape (n_points, n_outputs)
        :math:`2^{53} P(\text{output} \mid \text{point})`; every row sums to :math:`2^{53}`. These integers are
        what is sampled, and `epsilon` is computed from them.

    Attributes
    ----------
    n_points, n_outputs : int
    epsilon : float
        The exact worst log-ratio of the table, rounded up.
    log_probabilities : ndarray of shape (n_points, n_outputs)
    key : str
        SHA-256 of the content.

    Raises
    ------
    ValueError
        If the rows are no probabilities, or an output is possible for some points and impossible for others.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.accounting.query import FiniteQuery
    >>> high = 0.4 + 0.2 * np.arange(11) / 10
    >>> query = FiniteQuery.from_probabilities(np.column_stack([1 - high, high]))
    >>> round(float(np.exp(query.epsilon)), 6)
    1.5
    """

    weights: npt.NDArray[np.uint64]

    def __post_init__(self) -> None:
        weights = np.array(self.weights, dtype=np.uint64)
        if weights.ndim != 2 or 0 in weights.shape or (weights > 2**_GRID_BITS).any():
            raise ValueError(f"weights must have shape (n_points, n_outputs). Got {self.weights!r} instead.")
        if weights.shape[1] >= 2**10 or (weights.sum(axis=1) != 2**_GRID_BITS).any():
            raise ValueError(f"Every row of weights must sum to 2**{_GRID_BITS}. Got {self.weights!r} instead.")
        impossible = weights == 0
        if (impossible.any(axis=0) & ~impossible.all(axis=0)).any():
            raise ValueError(
                "An output that is possible for some points must be possible for all, else its privacy loss is "
                f"infinite. Got {self.weights!r} instead."
            )
        object.__setattr__(self, "weights", _read_only(weights))

    @classmethod
    def from_probabilities(cls, probabilities: npt.ArrayLike) -> "FiniteQuery":
        """Make a query from a table of probabilities, rounded to the grid of 2^-53.

        Parameters
        ----------
        probabilities : array-like of shape (n_points, n_outputs)
            Rows sum to 1 within 1e-9.
        """
        table = np.asarray(probabilities, dtype=np.float64)
        if table.ndim != 2 or table.size == 0 or not np.isfinite(table).all() or (table < 0).any():
            raise ValueError(f"probabilities must be a table of numbers >= 0. Got {probabilities!r} instead.")
        if np.abs(table.sum(axis=1) - 1).max() > 1e-9:
            raise ValueError(f"Every row of probabilities must sum to 1. Got {probabilities!r} instead.")
        weights = np.round(table * 2.0**_GRID_BITS).astype(np.int64)
        # The largest entry of a row takes the rounding error: there it is the smallest change of a logarithm.
        rows = np.arange(len(table))
        weights[rows, weights.argmax(axis=1)] += 2**_GRID_BITS - weights.sum(axis=1)
        return cls(weights.astype(np.uint64))

    @property
    def n_points(self) -> int:
        """Number of points of the domain."""
        return int(self.weights.shape[0])

    @property
    def n_outputs(self) -> int:
        """Number of different outputs."""
        return int(self.weights.shape[1])

    @property
    def output_values(self) -> tuple[int, ...]:
        """The outputs are their own indices."""
        return tuple(range(self.n_outputs))

    @cached_property
    def log_probabilities(self) -> npt.NDArray[np.float64]:
        """Log-probability of each output (column) for each point (row)."""
        with np.errstate(divide="ignore"):
            return _read_only(np.log(self.weights.astype(np.float64)) - _GRID_BITS * math.log(2))

    @cached_property
    def epsilon(self) -> float:
        """The worst log-ratio of two points' probabilities of one output, rounded up."""
        possible = self.weights[:, (self.weights > 0).any(axis=0)].astype(np.float64)
        worst = float((possible.max(axis=0) / possible.min(axis=0)).max())
        return math.log(worst) * (1 + 2.0**-50) + 2.0**-51 if worst > 1 else 0.0

    @property
    def exact_epsilon(self) -> float:
        """The same as `epsilon`, which the sampled integers give."""
        return self.epsilon

    @cached_property
    def key(self) -> str:
        """SHA-256 of the content, in hexadecimal."""
        return _sha256(self.to_json())

    def to_json(self) -> str:
        """Write the query as JSON."""
        return json.dumps({"kind": "finite", "weights": self.weights.tolist()}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "FiniteQuery":
        """Read back what :meth:`to_json` wrote."""
        return cast(FiniteQuery, _of_class(query_from_json(text), cls))

    def log_likelihood(self, output: int, points: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Log-probability of an output, given indices into the domain."""
        return self.log_probabilities[self._checked_points(points), _output_index(output, self.n_outputs)]

    def sample(self, points: npt.ArrayLike, noise: Noise) -> npt.NDArray[np.int64]:
        """Draw an output for each index into the domain."""
        below = self.weights.cumsum(axis=1)[self._checked_points(points)]
        words = noise.words(len(below)) >> np.uint64(64 - _GRID_BITS)
        return (words[:, None] >= below).sum(axis=1)

    def _checked_points(self, points: npt.ArrayLike) -> npt.NDArray[np.intp]:
        index = np.asarray(points)
        if index.ndim != 1 or index.dtype.kind not in "iu" or ((index < 0) | (index >= self.n_points)).any():
            raise ValueError(f"points must be indices from 0 to {self.n_points - 1}. Got {points!r} instead.")
        return index.astype(np.intp)


Query = RegressionQuery | FiniteQuery


def _of_class(query: Query, cls: type) -> Query:
    if not isinstance(query, cls):
        raise ValueError(f"The text must be the JSON of a {cls.__name__}. Got a {type(query).__name__} instead.")
    return query
