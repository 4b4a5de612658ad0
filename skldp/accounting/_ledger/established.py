"""Whether an answer was within the budget: the judgement of a ledger's verification, which takes no decision's word."""

import math
from collections.abc import Iterable
from decimal import Context, Decimal
from fractions import Fraction

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
    pairs = list(zip(queries, outputs, strict=True))
    if rule.name != "simplified" and all(
        _fits(rule, [*pairs, (query, output)], budget) for output in _possible(query, pairs)
    ):
        return True
    return _fits(rule, pairs, budget - Fraction(more))


def _fits(rule: Rule, pairs: list[tuple[Query, int]], budget: Fraction) -> bool:
    """Whether answers and releases have cost at most a budget, the answers by a search and a proof of its own."""
    released = [(query, output) for query, output in pairs if isinstance(query, ReleaseQuery)]
    asked = [(query, output) for query, output in pairs if not isinstance(query, ReleaseQuery)]
    room = budget - _cost_of_releases(released)
    if room < 0:
        return False
    loss = realized_loss(
        [query for query, _ in asked],
        [output for _, output in asked],
        bounds=rule.bounds,
        tol=rule.tol,
        threshold=math.nextafter(float(room), 0.0),
    )
    return Fraction(loss.upper) <= room


def _cost_of_releases(released: list[tuple[ReleaseQuery, int]]) -> Fraction:
    """In full, and of each part by the worst of two codes, of which one may be any that was never given."""
    full = sum((Fraction(_exact_charge(query)) for query, _ in released if query.part is None), Fraction(0))
    for part in {query.part for query, _ in released} - {None}:
        own = [(query, output) for query, output in released if query.part == part]
        votes = [(query, output, _vote(query)) for query, output in own]
        scores: dict[int, Fraction] = {}
        for query, output, vote in votes:
            for code in _codes(query, output):
                scores[code] = scores.get(code, Fraction(0)) + vote
        unseen = [] if len(scores) == own[0][0].n_classes else [Fraction(0)]
        found = [*scores.values(), *unseen]
        # With what the digits leave open, but where everything cancels.
        apart = max(found) - min(found)
        full += apart + (Fraction(1, 10**40) if apart else 0)
    return full


def _possible(query: Query, pairs: list[tuple[Query, int]]) -> Iterable[int]:
    """The outputs of a query; of a part, where each code votes for itself, those of one code, one for all new codes."""
    if not isinstance(query, ReleaseQuery) or query.part is None:
        return range(query.n_outputs)
    votes = [_codes(one, output) for one, output in pairs if isinstance(one, ReleaseQuery) and one.part == query.part]
    old: set[int] = set().union(*votes)
    new = next(code for code in range(len(old) + 1) if code not in old)
    codes = [*old, new] if new < query.n_classes else [*old]
    return [2**code for code in codes] if query.own_count else codes


def _codes(query: ReleaseQuery, output: int) -> list[int]:
    """The codes for which what was released is likelier than for the others."""
    digits = reversed(f"{output:b}")
    return [code for code, digit in enumerate(digits) if digit == "1"] if query.own_count else [output]


def _vote(query: ReleaseQuery) -> Fraction:
    """By how much, as a log-ratio, in fifty digits."""
    own, other, whole = query.own_count, query.other_count, 2**64
    likely, unlikely = whole - (query.n_classes - 1) * other, other
    if own:
        likely, unlikely = own * (whole - other), other * (whole - own)
    digits = Context(prec=50)
    return Fraction(digits.ln(digits.divide(Decimal(likely), Decimal(unlikely))))


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
