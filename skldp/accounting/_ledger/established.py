"""Whether an answer was within the budget: the judgement of a ledger's verification, which takes no decision's word."""

import math
from decimal import Context, Decimal
from fractions import Fraction
from functools import partial

from skldp.accounting._decide import Answers, Rule
from skldp.accounting._extrema.realized_loss import realized_loss
from skldp.accounting._query import Query, ReleaseQuery

__all__ = ["is_established"]


def is_established(rule: Rule, query: Query, answers: Answers) -> bool:
    """Whether one more answer was within the budget, whatever it was to be.

    Nothing of :mod:`skldp.accounting._decide` is asked, so that a fault there is found: epsilons are added up as
    fractions, and every loss is searched for and proved anew.
    """
    queries, outputs = answers
    budget, more = Fraction(rule.epsilon), _exact_charge(query)
    charges = sum((_exact_charge(one) for one in queries), more)
    if charges <= budget:
        return True
    if rule.delta is not None and _is_concentrated([*queries, query], budget, rule.delta):
        return True
    if rule.name == "basic" or not math.isfinite(charges):
        return False
    loss = partial(realized_loss, bounds=rule.bounds, tol=rule.tol)
    if rule.name != "simplified" and all(
        loss([*queries, query], [*outputs, output], threshold=rule.epsilon).upper <= budget
        for output in range(query.n_outputs)
    ):
        return True
    return Fraction(loss(queries, outputs).upper) + more <= budget


def _exact_charge(query: Query) -> Fraction | float:
    """A query's epsilon without a rounding; infinite where none is finite."""
    if not isinstance(query, ReleaseQuery):
        return Fraction(query.exact_epsilon)
    return math.inf if query.row_charge is None else Fraction(query.n_rows * query.row_charge, 2**60)


def _is_concentrated(queries: list[Query], budget: Fraction, delta: float) -> bool:
    """Whether rho + 2 sqrt(rho ln(1/delta)) of all these queries is at most the budget, in fractions and 50 digits."""
    rho = sum(
        (
            Fraction(one.n_rows * one.row_zcdp, 2**60) if isinstance(one, ReleaseQuery)
            else Fraction(one.exact_epsilon) ** 2 / 2
            for one in queries
        ),
        Fraction(0),
    )  # fmt: skip
    inverse = Fraction(-Context(prec=50).ln(Decimal(delta))) * (1 + Fraction(1, 10**45))
    return rho <= budget and (budget - rho) ** 2 >= 4 * rho * inverse
