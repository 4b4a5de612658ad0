"""What the answers of many people say about all of them."""

import math
from typing import Any

import numpy.typing as npt

from skldp.accounting._query import RegressionQuery

__all__ = ["mean_of_answers"]


def mean_of_answers(query: RegressionQuery, outputs: npt.NDArray[Any]) -> tuple[float, float]:
    r"""Unbiased mean of the predictions of those who answered, and its standard error.

    Parameters
    ----------
    query : RegressionQuery
    outputs : ndarray of 0 and 1, shape (n_people,)

    Returns
    -------
    mean : float
        NaN if nobody answered.
    standard_error : float
        As an estimate of the mean over the population that these people were drawn from.

    Notes
    -----
    The sample variance of the estimates holds both the noise and the spread of the predictions. By chance it can fall
    below what the noise alone has at least,

    .. math:: \frac{(b - a)^2}{4 \sinh^2(\varepsilon / 2)},

    which is then taken instead; a single answer is given the most that its noise can have,
    :math:`(b - a)^2 / (4 \tanh^2(\varepsilon / 2))`.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.accounting._estimates import mean_of_answers
    >>> from skldp.accounting._query import RegressionQuery
    >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(0, 1), epsilon=np.log(3))
    >>> [round(value, 6) for value in mean_of_answers(query, np.array([0, 1, 1, 1]))]
    [1.0, 0.5]
    """
    n = len(outputs)
    if n == 0:
        return math.nan, math.nan
    estimates = query.estimate(outputs)
    width, half = query.output_bounds[1] - query.output_bounds[0], query.epsilon / 2
    if n == 1:
        variance = (width / (2 * math.tanh(half))) ** 2
    else:
        variance = max(float(estimates.var(ddof=1)), (width / (2 * math.sinh(half))) ** 2)
    return float(estimates.mean()), math.sqrt(variance / n)
