"""Score of a model by people who did not train it: half report its loss, the others that of the mean or the shares."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from skldp.learning._reports import Report
from skldp.learning._tasks import Task, number_variance

# Standard errors from the estimate to the ends of a 95% interval.
_REACH = 1.96


class ScoreEstimate(NamedTuple):
    """Share of the bounded loss of the mean, or of the classes' shares, that a model explains.

    `error` is the standard error and `interval` the 95% interval, by noise and the choice of people. It has no lower
    end if the loss of the mean may be 0.
    """

    value: float
    error: float
    interval: tuple[float, float]
    n_people: int

    def __str__(self) -> str:
        return f"{self.value:.2f} +- {self.error:.2f} by {self.n_people:,} people who did not train it"


def score_tasks(learnt: Any) -> tuple[Task, Task]:
    """Return the tasks about the losses of the mean, or of the shares, and of the model that a protocol has learnt.

    Squared errors are bounded by the square of twice the reported deviation of the target, and the negative log
    likelihood by that of the rarest class at half of its probability.

    Parameters
    ----------
    learnt : RegressionProtocol or ClassificationProtocol
        Protocol at its end.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import PrivateLinearRegression
    >>> from skldp.learning import score_tasks
    >>> x = np.linspace(-1, 1, 20_000)
    >>> [task.form for task in score_tasks(PrivateLinearRegression(epsilon=4.0).fit(x[:, None], x).protocol_)]
    ['loss', 'loss']
    """
    box, state, n_classes = learnt._box, learnt._state, getattr(learnt, "n_classes", 0)
    slopes = np.atleast_2d(learnt.coefficients)
    constants = np.atleast_1d(learnt.intercepts if n_classes else learnt.intercept)
    model = np.column_stack([constants + slopes @ box.center[:-1], slopes * box.radius[:-1], np.zeros(len(slopes))])
    baseline = np.zeros_like(model)
    if n_classes:
        baseline[:, 0] = np.log(state["shares"])
        bound = math.log(2) - float(baseline[:, 0].min())
    else:
        model[0, 0] -= box.center[-1]
        model /= box.radius[-1]
        baseline[0, 0], bound = state["center"][-1], 4 * min(1.0, state["deviation"] ** 2)

    def task(rows: Any) -> Task:
        return Task(learnt.epsilon, box.low, box.high, "loss", rows, "number", bound, n_classes)

    return task(baseline), task(model)


def score_estimate(tasks: Sequence[Task], reports: Sequence[Sequence[Report]]) -> ScoreEstimate:
    r"""Return the score from the reports on each task.

    With the mean losses V and W it is 1 - W / V. The interval holds all t with :math:`|W - (1 - t) V| \le 1.96 (s_W^2 +
    (1 - t)^2 s_V^2)^{1/2}` (Fieller, "Some problems in interval estimation", 1954).

    Parameters
    ----------
    tasks : pair of Task
        Tasks by :func:`score_tasks`.
    reports : pair of iterables of Report
        Answers to each.

    Examples
    --------
    >>> from skldp.learning import Report, score_estimate
    >>> from skldp.learning._tasks import Task
    >>> mean, model = (
    ...     Task(4.0, (-1.0,) * 2, (1.0,) * 2, "loss", ((0.0, slope, 0.0),), "number", 1.0) for slope in (0.0, 1.0)
    ... )
    >>> score_estimate((mean, model), [[Report(task.hash, 1_000, (0,))] for task in (mean, model)]).value
    0.0
    """
    losses, variances, n_people = [], [], 0
    for task, several in zip(tasks, reports, strict=True):
        total = Report.total(Report.uncounted(several, ()))
        number, noise = float(task.mean(total)[0]) / task.radius, number_variance(task.epsilon)
        # Numbers of mean m in [-1, 1] have a variance of at most 1 - m^2, at the least |m| within two errors.
        most = noise + 1
        for _ in range(5):
            most = noise + 1 - min(1.0, max(0.0, abs(number) - 2 * math.sqrt(most / total.n_people))) ** 2
        variances.append(most / (4 * total.n_people))
        losses.append((number + 1) / 2)
        n_people += total.n_people
    (v, w), (of_v, of_w) = losses, variances
    # Of the quadratic in the ratio of the losses.
    a, root = v**2 - _REACH**2 * of_v, of_w * v**2 + of_v * (w**2 - _REACH**2 * of_w)
    if v <= 0:
        return ScoreEstimate(math.nan, math.inf, (-math.inf, 1.0), n_people)
    low, high = -math.inf, 1.0
    if a > 0:
        low, high = (1 - (v * w + sign * _REACH * math.sqrt(max(0.0, root))) / a for sign in (1, -1))
    return ScoreEstimate(1 - w / v, math.sqrt(of_w + (w / v) ** 2 * of_v) / v, (low, min(1.0, high)), n_people)
