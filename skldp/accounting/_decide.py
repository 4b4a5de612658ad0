"""The one decision: whether people with these histories may answer one more query.

A decision sees queries and recorded outputs, never a person's values: that somebody is refused tells nothing new. It
is a function of the multiset of answers and the query, so that it is the same in whatever order the answers came, on
every machine, and however often it was made before.

:func:`decide` makes it, for one person or a million; the filters and the ledger ask there, and a ledger's verification
decides for itself. What it rests on is sums of epsilons that are rounded up, and losses that the independent check of
:mod:`~skldp.accounting._extrema.certificate` has proved. What cannot be proved is refused.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from skldp._checks import check_positive
from skldp.accounting._extrema.linear_cohort import History, LinearTable, linear_decisions
from skldp.accounting._extrema.point_cohort import PointTable
from skldp.accounting._extrema.realized_loss import LossBounds, realized_loss
from skldp.accounting._extrema.region import region_of
from skldp.accounting._extrema.sampled_law import Bounds
from skldp.accounting._query import Query, RegressionQuery

__all__ = [
    "Answers",
    "Loss",
    "OutputIndependentRule",
    "Rule",
    "RuleName",
    "Workers",
    "advanced_composition",
    "decide",
    "surely_admits",
]

OutputIndependentRule = Literal["basic", "rogers", "whitehouse"]


def advanced_composition(
    epsilons: Sequence[float], *, epsilon: float, delta: float, rule: OutputIndependentRule
) -> float:
    r"""What an output-independent filter compares with its budget after the given queries.

    Parameters
    ----------
    epsilons : sequence of float
        The epsilon of each query, chosen adaptively.
    epsilon, delta : float
        The filter's budget.
    rule : {"basic", "rogers", "whitehouse"}

    Returns
    -------
    float
        The filter accepts while this is at most `epsilon`: then, for each pair of values x and x', the log-ratio of the
        outputs' probabilities is at most `epsilon` with probability at least :math:`1 - \delta` under x.

    Notes
    -----
    With :math:`s = \sum_i \varepsilon_i^2`: ``"basic"`` is :math:`\sum_i \varepsilon_i`, ``"whitehouse"`` is

    .. math:: \sqrt{2 \ln(1/\delta) s} + s/2,

    and ``"rogers"``, with :math:`H = \varepsilon_g^2 / (28.04 \ln(1/\delta))`, is

    .. math:: \sum_i \varepsilon_i (e^{\varepsilon_i} - 1)/2
              + \sqrt{2 (s + H) (1 + \tfrac12 \ln(s/H + 1)) \ln(2/\delta)}.

    Both hold for every pair x, x' by martingales. Let :math:`L_k` be the log-ratio after k answers and
    :math:`V_k = \sum_{i \le k} \varepsilon_i^2`. One answer's log-ratio lies in :math:`[-\varepsilon, \varepsilon]` and
    drifts by at most :math:`\varepsilon \tanh(\varepsilon/2)`, which is below both :math:`\varepsilon^2/2` and
    :math:`\varepsilon (e^\varepsilon - 1)/2`. So, with :math:`X_k` for :math:`L_k` without its drift,
    :math:`e^{\lambda X_k - \lambda^2 V_k / 2}` is a supermartingale. A :math:`\lambda` fixed by the largest V that is
    accepted gives ``"whitehouse"``. A normal mixture over :math:`\lambda` with variance 1/H gives
    :math:`X_k^2 \le 2 (V_k + H)(\ln(1/\delta) + \tfrac12 \ln(V_k/H + 1))` for all k at once, with any H that is fixed
    beforehand: ``"rogers"`` is a looser form of it wherever :math:`\ln(2/\delta) \ge 1`.

    References
    ----------
    R. Rogers, A. Roth, J. Ullman and S. Vadhan, "Privacy Odometers and Filters", NeurIPS 2016, Theorem 5.1.
    J. Whitehouse, A. Ramdas, R. Rogers and Z. S. Wu, "Fully Adaptive Composition in Differential Privacy", 2022.

    Examples
    --------
    >>> from skldp.accounting import advanced_composition
    >>> round(advanced_composition([0.01] * 100, epsilon=1.0, delta=1e-6, rule="whitehouse"), 4)
    0.5307
    """
    values = list(epsilons)
    if not values:
        return 0.0
    squares = math.fsum(value * value for value in values)
    if rule == "basic":
        total = math.fsum(values)
    elif rule == "whitehouse":
        total = math.sqrt(2 * math.log(1 / delta) * squares) + squares / 2
    elif rule == "rogers":
        floor = epsilon**2 / (28.04 * math.log(1 / delta))
        drift = math.fsum(value * math.expm1(value) / 2 for value in values)
        spread = 2 * (squares + floor) * (1 + math.log1p(squares / floor) / 2) * math.log(2 / delta)
        total = drift + math.sqrt(spread)
    else:
        raise ValueError(f"rule must be 'basic', 'rogers' or 'whitehouse'. Got {rule!r} instead.")
    return total if rule == "basic" else total * (1 + 2.0**-48)


RuleName = Literal["basic", "simplified", "bayesian", "approximate"]
Answers = tuple[Sequence[Query], Sequence[int]]
# The realized loss of some answers, within bounds that need not be closer than a threshold asks for.
Loss = Callable[[Sequence[Query], Sequence[int], float | None], LossBounds]
# The built-in map, or that of an executor.
Workers = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
# Running sums of epsilons are rounded once for each answer: far more than all of that together.
_RUNNING_SUM_ERROR = 1e-9


@dataclass(frozen=True)
class Rule:
    """A person's budget, and the way of accounting for it.

    Parameters
    ----------
    name : {"basic", "simplified", "bayesian", "approximate"}
        ``"basic"`` adds up epsilons; ``"simplified"`` adds the next query's epsilon to the certified realized loss;
        ``"bayesian"`` certifies the realized loss after each output that the next query could have;
        ``"approximate"`` does so only where composition that looks at epsilons alone no longer accepts.
    epsilon : float
        The whole budget, in nats.
    bounds : tuple (low, high) or Domain, default=None
        The box of x, or another domain of its columns.
    tol : float, default=1e-3
        Width that the bounds of a loss are to have, in nats; the upper one decides.
    domain : array-like of shape (n_points, n_features), default=None
        A finite domain instead of a box.
    group_size : int, default=None
        See :func:`skldp.accounting.realized_loss`.
    delta : float, default=None
        For ``"approximate"``: above 0 and below 1/e.
    composition : {"whitehouse", "rogers", "basic"}, default="whitehouse"
        For ``"approximate"``: see :func:`skldp.accounting.advanced_composition`.

    Raises
    ------
    ValueError
        If a parameter is not as described; the box and the domain are checked where they are used.
    """

    name: RuleName
    epsilon: float
    bounds: Bounds | None = None
    tol: float = 1e-3
    domain: npt.ArrayLike | None = None
    group_size: int | None = None
    delta: float | None = None
    composition: OutputIndependentRule = "whitehouse"

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)
        check_positive("tol", self.tol)
        if self.name not in get_args(RuleName):
            raise ValueError(f"rule must be one of {get_args(RuleName)}. Got {self.name!r} instead.")
        if self.name != "approximate":
            return
        check_positive("delta", self.delta)
        if self.delta is None or self.delta >= math.exp(-1):
            raise ValueError(f"delta must be below 1/e. Got {self.delta!r} instead.")
        if self.composition not in get_args(OutputIndependentRule):
            raise ValueError(f"rule must be 'basic', 'rogers' or 'whitehouse'. Got {self.composition!r} instead.")

    def loss_bounds(
        self, queries: Sequence[Query], outputs: Sequence[int], threshold: float | None = None
    ) -> LossBounds:
        """Bound what some answers have cost: their realized loss, or the sum of their epsilons with ``"basic"``."""
        if self.name == "basic":
            total = _sum_up([query.exact_epsilon for query in queries])
            return LossBounds(total, total, None, None, True, "the epsilons were added up")
        return realized_loss(
            queries,
            outputs,
            bounds=self.bounds,
            domain=self.domain,
            tol=self.tol,
            group_size=self.group_size,
            threshold=threshold,
        )

    def table_for(self, query: Query) -> LinearTable | PointTable | None:
        """Make the table that decides quickly about many queries like this one, where there can be one."""
        jointly = self.domain is None and self.group_size is None and self.name in ("bayesian", "approximate")
        if not jointly or self.bounds is None or not isinstance(query, RegressionQuery):
            return None
        region = region_of(self.bounds, n_features=query.n_features)
        if region.is_box:
            return LinearTable(region.box)
        return PointTable(region) if PointTable.serves(region) else None


def surely_admits(rule: Rule, spent: npt.NDArray[np.float64], query: Query) -> npt.NDArray[np.bool_]:
    """Whether running sums of epsilons are small enough for :func:`decide` to admit, whatever was answered.

    Parameters
    ----------
    rule : Rule
    spent : ndarray of float
        The sums so far, up to rounding.
    query : RegressionQuery or FiniteQuery

    Returns
    -------
    ndarray of bool, same shape
    """
    return spent + query.epsilon + _RUNNING_SUM_ERROR * rule.epsilon <= rule.epsilon


def decide(
    rule: Rule,
    queries: Sequence[Query],
    histories: Sequence[History],
    query: Query,
    *,
    table: LinearTable | PointTable | None = None,
    loss: Loss | None = None,
    workers: Workers = map,
) -> list[bool]:
    """Decide for each history whether one more answer, whatever it will be, is within the budget.

    Parameters
    ----------
    rule : Rule
    queries : sequence of RegressionQuery or FiniteQuery
        Those that the histories speak of, by their position.
    histories : sequence of tuple (positions, outputs)
    query : RegressionQuery or FiniteQuery
        What is to be asked.
    table : LinearTable or PointTable, default=None
        That of :meth:`Rule.table_for`, kept from call to call. None searches for every history by itself.
    loss : callable, default=None
        In place of :meth:`Rule.loss_bounds`, for somebody who remembers losses.
    workers : map-like callable, default=map
        Applies a function to the histories that need a search, in order.

    Returns
    -------
    list of bool

    Examples
    --------
    >>> from skldp.accounting._decide import Rule, decide
    >>> from skldp.accounting import RegressionQuery
    >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(-1, 1), epsilon=0.5)
    >>> histories = [([], []), ([0, 0], [0, 1]), ([0, 0], [1, 1])]
    >>> [decide(Rule(name, 0.6, (-1, 1)), [query], histories, query) for name in ("basic", "bayesian")]
    [[True, False, False], [True, True, False]]
    """
    epsilons = [one.exact_epsilon for one in queries]
    admitted = [
        _epsilons_admit(rule, [*(epsilons[number] for number in numbers), query.exact_epsilon])
        for numbers, _ in histories
    ]
    if rule.name == "basic":
        return admitted
    left = [position for position, already in enumerate(admitted) if not already]
    if table is not None and left:
        some = [histories[position] for position in left]
        if isinstance(table, PointTable):
            quick = table.decisions(queries, some, query, epsilon=rule.epsilon)
        else:
            quick = linear_decisions(queries, some, query, epsilon=rule.epsilon, bounds=rule.bounds, table=table)
        for position, found in zip(left, quick, strict=True):
            admitted[position] = bool(found)
        left = [position for position, found in zip(left, quick, strict=True) if found is None]
    answers = [([queries[number] for number in histories[at][0]], histories[at][1]) for at in left]
    searched = workers(partial(_losses_admit, rule, loss or rule.loss_bounds, query), answers) if left else ()
    for position, found in zip(left, searched, strict=True):
        admitted[position] = found
    return admitted


def _epsilons_admit(rule: Rule, epsilons: Sequence[float]) -> bool:
    """Whether answers of these epsilons are within the budget, whatever they are."""
    if _sum_up(epsilons) <= rule.epsilon:
        return True
    if rule.name != "approximate" or rule.delta is None:
        return False
    spent = advanced_composition(epsilons, epsilon=rule.epsilon, delta=rule.delta, rule=rule.composition)
    # A few sums, products and roots are right within far less.
    return spent * (1 + 2.0**-40) <= rule.epsilon


def _losses_admit(rule: Rule, loss: Loss, query: Query, answers: Answers) -> bool:
    """Whether the certified losses of a history leave room for one more answer."""
    queries, outputs = answers
    if rule.name == "simplified":
        return _sum_up([loss(queries, outputs, None).upper, query.exact_epsilon]) <= rule.epsilon
    # Where the present loss leaves room for the whole epsilon, every output does; one search instead of several.
    if _sum_up([loss(queries, outputs, rule.epsilon).upper, query.exact_epsilon]) <= rule.epsilon:
        return True
    return all(
        loss([*queries, query], [*outputs, output], rule.epsilon).upper <= rule.epsilon
        for output in range(query.n_outputs)
    )


def _sum_up(values: Sequence[float]) -> float:
    """Sum, rounded up."""
    return math.nextafter(math.fsum(values), math.inf) if values else 0.0
