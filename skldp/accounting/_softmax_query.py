"""How probable a softmax model thinks one class to be of a person, answered with one of two values."""

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from skldp._checks import check_whole
from skldp.accounting._class_query import checked_classes
from skldp.accounting._finite_query import output_index, read_only
from skldp.accounting._limits import checked_epsilon, saturated
from skldp.accounting._regression_query import RegressionQuery
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._row_sums import weighted_sums

__all__ = ["SoftmaxQuery", "answers_by_question"]

_UNIT = 2.0**-53


@dataclass(frozen=True, eq=False)
class SoftmaxQuery:
    r"""The probability of one class in a softmax model, asked of a person, answered with 0 or 1.

    Parameters
    ----------
    coef : array-like of shape (n_classes, n_features)
        :math:`\theta_c` of each class.
    intercept : array-like of shape (n_classes,)
        :math:`\gamma_c`.
    position : int
        Which class, from 0.
    epsilon : float
        Natural-log budget of the one answer, above 0 and at most 30.

    Attributes
    ----------
    n_features, n_outputs : int
        There are 2 outputs: 0 and 1.
    output_bounds, output_values : tuple of two floats
        (0, 1).
    key : str
        SHA-256 of the content: two queries with the same key are the same release.

    Raises
    ------
    ValueError
        If a parameter is not as described.

    See Also
    --------
    ClassQuery : Which class the model sees a person in.

    Notes
    -----
    The answer is drawn from

    .. math:: P(1 \mid x) = \frac{1}{e^\varepsilon + 1} + \frac{e^\varepsilon - 1}{e^\varepsilon + 1} p(x), \quad
              p(x) = \frac{e^{\theta_k x + \gamma_k}}{\sum_c e^{\theta_c x + \gamma_c}}.

    **What answers cost.** All answers to one question depend on the one number p(x), from 0 to 1, as those to the
    linear question y = p do, whose loss over that interval is certified. It is added to the certified loss of all
    other answers: each such question is a group of its own (Appendix C of the paper), so that it never helps, nor is
    helped by, another one. One answer costs at most its epsilon.

    **Rounding.** Products are added one after another, feature by feature, so that the scores of a record are the same
    on every machine. Exponentials are taken to be right within 4 units in the last place, so that two computations of
    p differ by at most :math:`(4 n_{classes} + 32)\, 2^{-53}`; what that can move a log-likelihood by is counted.

    References
    ----------
    M. Pan, "Actual Knowledge Gain as Privacy Loss in Local Privacy Accounting", 2025, Eq. 5 and Appendix C.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.accounting import SoftmaxQuery, realized_loss
    >>> query = SoftmaxQuery(coef=[[1.0], [0.0], [-1.0]], intercept=[0.0, 0.0, 0.0], position=0, epsilon=np.log(3))
    >>> query.unit_response([[-1.0], [0.0], [1.0]]).round(3)
    array([0.09 , 0.333, 0.665])
    >>> [round(realized_loss([query] * len(answers), answers).upper, 3) for answers in ([1], [1, 1], [1, 0])]
    [1.099, 2.197, 0.288]
    """

    coef: npt.NDArray[np.float64]
    intercept: npt.NDArray[np.float64]
    position: int
    epsilon: float

    kind: ClassVar[str] = "softmax"

    def __post_init__(self) -> None:
        coef, intercept = checked_classes(self.coef, self.intercept)
        check_whole("position", self.position, least=0, most=len(coef) - 1)
        object.__setattr__(self, "coef", read_only(coef))
        object.__setattr__(self, "intercept", read_only(intercept))
        object.__setattr__(self, "position", int(self.position))
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))

    @property
    def n_features(self) -> int:
        """Number of features that the query reads."""
        return int(self.coef.shape[1])

    @property
    def n_outputs(self) -> int:
        """Number of different answers."""
        return 2

    @property
    def output_values(self) -> tuple[float, float]:
        """What the outputs 0 and 1 stand for."""
        return 0.0, 1.0

    @property
    def output_bounds(self) -> tuple[float, float]:
        """Those of a probability."""
        return 0.0, 1.0

    @cached_property
    def share(self) -> RegressionQuery:
        """The question y = p about the probability itself, whose law this one's is."""
        return RegressionQuery("linear", np.ones(1), 0.0, (0.0, 1.0), self.epsilon)

    @property
    def exact_epsilon(self) -> float:
        """The worst log-ratio of the integers that are sampled, rounded up: at most `epsilon`."""
        return self.share.exact_epsilon

    @cached_property
    def rounding(self) -> float:
        """How far two computations of one record's log-likelihood of an answer can be apart."""
        return math.expm1(self.epsilon) * (4 * len(self.coef) + 32) * _UNIT * (1 + 2.0**-20)

    @cached_property
    def key(self) -> str:
        """SHA-256 of the content, in hexadecimal."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def to_json(self) -> str:
        """Write the query as JSON; every float survives exactly."""
        fields = {"coef": self.coef.tolist(), "intercept": self.intercept.tolist(), "position": self.position}
        return json.dumps({"kind": self.kind, **fields, "epsilon": self.epsilon}, separators=(",", ":"))

    def unit_response(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The probability of the class for each row, shape (n_samples,); every row of numbers has one."""
        scores = weighted_sums(saturated(X, self.n_features), self.coef, self.intercept)
        with np.errstate(all="ignore"):
            odds = np.exp(scores - scores.max(axis=1, keepdims=True))
            total = np.zeros(len(scores))
            for of_class in odds.T:
                total += of_class
            found: npt.NDArray[np.float64] = odds[:, self.position] / total
        return found

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
        return self.share.log_likelihood(output_index(output, 2), self.unit_response(X)[:, None])

    def sample(self, X: npt.ArrayLike, noise: Noise) -> npt.NDArray[np.int8]:
        """Draw every person's answer.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        noise : Noise

        Returns
        -------
        ndarray of int8, shape (n_samples,)
        """
        return self.share.sample(self.unit_response(X)[:, None], noise)

    def estimate(self, outputs: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Turn answers into unbiased estimates of the probabilities, as :meth:`RegressionQuery.estimate` does."""
        return self.share.estimate(outputs)

    def estimate_mean(self, outputs: npt.ArrayLike) -> tuple[float, float]:
        """Unbiased mean of the probabilities and its standard error, as :meth:`RegressionQuery.estimate_mean`."""
        return self.share.estimate_mean(outputs)

    def expected_error(self, n_people: int, mean: float | None = None) -> float:
        """The standard error of the mean to expect, as :meth:`RegressionQuery.expected_error`."""
        return self.share.expected_error(n_people, mean)


def answers_by_question(
    answers: Iterable[tuple[SoftmaxQuery, int]],
) -> list[tuple[SoftmaxQuery, list[int]]]:
    """The outputs of each different question, in a fixed order."""
    found: dict[str, tuple[SoftmaxQuery, list[int]]] = {}
    for query, output in answers:
        found.setdefault(query.key, (query, []))[1].append(output)
    return [found[key] for key in sorted(found)]
