"""Domains of intervals beside categories: searched as one box for each combination, all in one search."""

import itertools

import numpy as np
import pytest
from accounting.domains import answers_over, domains, records_of
from accounting.reference import worst_sampled_loss
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skldp.accounting import RegressionQuery, realized_loss
from skldp.accounting.losses import _region_branching as region_branching
from skldp.accounting.losses import _region_parts as region_choices
from skldp.accounting.losses import _region_search as region_search
from skldp.accounting.losses._box_search import BoxSearch
from skldp.accounting.losses._certificate import _leaves, certified_maximum
from skldp.accounting.losses._region import region_of
from skldp.accounting.losses._region_parts import RegionChoices
from skldp.accounting.losses._region_search import RegionSearch
from skldp.accounting.losses._relaxation import dual_bound
from skldp.accounting.losses._sampled_law import answer_law
from skldp.accounting.losses._sigmoid_sum import sigmoid_sum
from skldp.domains._columns import Columns
from skldp.domains._constraints import Constrained, OneHot
from skldp.mechanisms import Column


@st.composite
def mixed_problems(draw):
    domain = draw(domains(finite=False))
    return (*draw(answers_over(domain)), domain)


def five_numbers_and(*sizes):
    numbers = {f"n{column}": Column(-1.0, 1.0) for column in range(5)}
    return Columns.of(numbers | {tuple(f"b{b}_{c}" for c in range(size)): OneHot(size) for b, size in enumerate(sizes)})


def opposite_answers(domain, n, seed, epsilon=0.2):
    """Linear, truncated and steep logistic answers that pull both ways."""
    rng, region = np.random.default_rng(seed), region_of(domain)
    queries = []
    for number in range(n):
        coef = rng.uniform(-1, 1, domain.n_features)
        low, high = region.range_of(coef)
        middle, half = (low + high) / 2, (high - low) / 2
        if number % 3 == 2:
            queries.append(RegressionQuery("logistic", 10 * coef / np.abs(coef).sum(), 0.0, (0, 1), epsilon))
        else:
            reach = half * (1.0, 0.3)[number % 3]
            kind = ("linear", "truncated")[number % 3]
            queries.append(RegressionQuery(kind, coef, 0.0, (middle - reach - 1e-9, middle + reach + 1e-9), epsilon))
    return queries, rng.integers(0, 2, n).tolist()


def law_over(domain, queries, outputs):
    region = region_of(domain)
    return answer_law(queries, outputs, region.box, region)


def boxes_of(domain):
    """Numbers of a domain that come first, and everything that its blocks can be, in another way than the package."""
    sizes = [part.size for _, part in domain.parts if isinstance(part, OneHot)]
    return [np.concatenate(one) for one in itertools.product(*(np.eye(size) for size in sizes))]


@pytest.mark.few(1)
@pytest.mark.parametrize("sizes", [(4, 3), (5, 2, 2)])
def test_five_numbers_and_blocks_close_where_answers_pull_both_ways(sizes):
    # By linear programs the first stayed .02 to .08 nats open after their last node, and 40 answers .8 to 1.5.
    domain = five_numbers_and(*sizes)
    for seed in range(2):
        queries, outputs = opposite_answers(domain, 15, seed)
        found = realized_loss(queries, outputs, bounds=domain)
        assert found.converged, found.reason
        assert found.gap <= 1e-3 + 1e-9


@pytest.mark.few(1)
@pytest.mark.parametrize("sign", [1, -1])
def test_one_search_finds_what_a_search_of_each_box_finds(sign):
    domain = five_numbers_and(3, 2)
    queries, outputs = opposite_answers(domain, 9, 5)
    whole = RegionSearch(law_over(domain, queries, outputs), sign)
    best = []
    for blocks in boxes_of(domain):
        # What the blocks add to a prediction, as its intercept.
        own = [
            RegressionQuery(q.kind, q.coef[:5], q.intercept + q.coef[5:] @ blocks, q.output_bounds, q.epsilon)
            for q in queries
        ]
        best.append(BoxSearch(answer_law(own, outputs, np.stack([-np.ones(5), np.ones(5)])), sign))
    for search in (whole, *best):
        while not search.is_exhausted and search.upper - search.lower > 1e-4:
            search.step(search.lower + 1e-4)
        assert search.upper - search.lower <= 1e-4
    assert whole.lower <= max(search.upper for search in best) + 1e-9
    assert max(search.lower for search in best) <= whole.upper + 1e-9


@settings(max_examples=10, deadline=None)
@given(mixed_problems())
def test_no_two_records_differ_by_more_than_is_proved(problem):
    queries, outputs, domain = problem
    with pytest.MonkeyPatch.context() as patch:
        # As where many columns are not whole.
        patch.setattr(region_search, "_FEW_FEATURES", -1)
        patch.setattr(region_search, "_MAX_NODES", 300)
        patch.setattr(region_branching, "_MAX_NODES", 40)
        found = realized_loss(queries, outputs, bounds=domain)
    assert worst_sampled_loss(queries, outputs, records_of(domain)) <= found.upper
    assert found.lower <= found.upper


def corners_of_leaves(law, tree):
    """The lowest and the highest corner of each leaf, as the check rebuilds them."""
    parts = [zip(leaves.tolist(), low, high, strict=True) for leaves, low, high, _, _ in _leaves(law, tree)]
    return {leaf: (low, high) for part in parts for leaf, low, high in part}


def nodes_of(search):
    """The node of each combination before any was looked at."""
    rough = np.flatnonzero(search._search._is_rough)
    return rough[search._search._root[rough].argsort()].tolist()


def points_of(search):
    return [search.region.point(int(code), search._integer) for code in search._codes]


@settings(max_examples=40)
@given(domains(finite=False, curbed=False), st.integers(0, 2**32 - 1))
@example(
    Columns.of({"n": Column(-3, 0, kind="integer"), "i": Column(0, 1), ("a", "b"): OneHot(2, at_most_one=True)}), 0
)
def test_every_combination_of_whole_columns_is_a_leaf_of_its_own(domain, seed):
    rng, region = np.random.default_rng(seed), region_of(domain)
    queries = [RegressionQuery("logistic", rng.uniform(0.1, 1, domain.n_features), 0.0, (0, 1), 0.3)]
    law = law_over(domain, queries, [1])
    if not RegionChoices.serves(law):
        assert region.is_finite
        return
    search = RegionChoices(law, 1, sigmoid_sum(law), np.zeros(1), -np.inf)
    settled = region.integer & (region.box[0] < region.box[1])
    at_leaf = corners_of_leaves(law, search.tree)
    assert sorted(nodes_of(search)) == sorted(at_leaf)
    for node, point in zip(nodes_of(search), points_of(search), strict=True):
        low, high = at_leaf[node]
        assert np.array_equal(low[settled], point[settled])
        assert np.array_equal(high[settled], point[settled])


@pytest.mark.few(2)
@pytest.mark.parametrize("slope", [0.0, 1.0, np.nan, np.inf])
def test_a_search_that_is_wrong_proves_nothing_false(monkeypatch, slope):
    domain = five_numbers_and(3, 2)
    queries, outputs = opposite_answers(domain, 9, 5)
    truth = realized_loss(queries, outputs, bounds=domain)
    rng = np.random.default_rng(0)

    def broken(problem, low, high, tangent, start, goal, offset):
        # The bounds that it claims would prove anything.
        return np.full(len(low), -1e3), slope * rng.normal(size=low.shape), start

    monkeypatch.setattr("skldp.accounting.losses._relaxation.relaxed", broken)
    found = realized_loss(queries, outputs, bounds=domain)
    assert truth.converged
    assert truth.lower <= found.upper <= sum(query.exact_epsilon for query in queries) + 1e-12
    assert not found.converged


def test_the_boxes_together_prove_what_each_bounds():
    domain = five_numbers_and(3, 2)
    queries, outputs = opposite_answers(domain, 6, 2)
    law = law_over(domain, queries, outputs)
    rng = np.random.default_rng(0)
    for sign in (1, -1):
        problem = sigmoid_sum(law) if sign > 0 else sigmoid_sum(law).reversed()
        search = RegionChoices(law, sign, problem, np.zeros(len(law)), -np.inf)
        for _ in range(6):
            search.step(-np.inf)
        proved = certified_maximum(law, sign, search.tree, lambda leaves, low, high, s=search: s.proposed(leaves))
        # The check counts roundings that the search does not.
        assert search.upper == pytest.approx(proved, abs=1e-9)
        point = search.point
        assert np.array_equal(region_of(domain).move(point[None])[0], point)
        at_point = sigmoid_sum(law).value(law.coef @ point + law.offset) @ law.count
        assert search.lower == pytest.approx(sign * at_point, abs=1e-9)
        # A bound with offsets of its own holds within each box.
        own = search._problem
        for root, offset in enumerate(search._offsets):
            slopes = rng.uniform(-1, 1, (4, len(law)))
            ends = np.tile(offset - own.spread, (4, 1)), np.tile(offset + own.spread, (4, 1))
            bounds = dual_bound(own, slopes, *ends, np.tile(offset, (4, 1)))
            values = own.total(rng.uniform(-1, 1, (50, 5)), offset)
            assert bounds.min() >= values.max(), root


def test_wide_whole_numbers_close_and_are_rounded():
    domain = Columns.of(
        {f"n{column}": Column(-1.0, 1.0) for column in range(5)}
        | {"age": Column(17, 90, kind="integer"), "hours": Column(1, 99, kind="integer"), ("a", "b", "c"): OneHot(3)}
    )
    region, rng = region_of(domain), np.random.default_rng(3)
    queries, outputs = [], []
    for number in range(15):
        coef = rng.uniform(-1, 1, 10) / np.array([1, 1, 1, 1, 1, 73, 98, 1, 1, 1])
        low, high = region.range_of(coef)
        reach = (high - low) / 2 * (1.0, 0.3)[number % 2] + 1e-9
        ends = ((low + high) / 2 - reach, (low + high) / 2 + reach)
        queries.append(RegressionQuery(("linear", "truncated")[number % 2], coef, 0.0, ends, 0.2))
        outputs.append(int(rng.integers(2)))
    found = realized_loss(queries, outputs, bounds=domain)
    assert found.gap <= 1e-3 + 1e-9
    for end in (found.x_high, found.x_low):
        assert np.array_equal(region.move(end[None])[0], end)
    records = region.move(rng.uniform(*region.box, (20_000, 10)))
    assert worst_sampled_loss(queries, outputs, records) <= found.upper
    # What is searched as an interval is not taken for attained.
    law = law_over(domain, queries, outputs)
    search = RegionChoices(law, 1, sigmoid_sum(law), np.zeros(len(law)), -np.inf)
    assert len(search._codes) == 3 * 74
    assert search.lower == pytest.approx(
        float(sigmoid_sum(law).value(law.coef @ search.point + law.offset) @ law.count), abs=1e-9
    )
    assert np.array_equal(region.move(search.point[None])[0], search.point)


@pytest.mark.slow
def test_numbers_of_many_values_leave_each_combination_a_search():
    """Twenty-one values of each of four columns: 9,261 combinations of three of them left .02 nats open."""
    rng = np.random.default_rng(0)
    numbers = {f"n{column}": Column(0, 20, kind="integer") for column in range(4)}
    domain = Columns.of(numbers | {f"i{column}": Column(0.0, 20.0) for column in range(5)})
    queries, outputs = [], []
    for number in range(12):
        coef = rng.uniform(-1, 1, 9)
        low, high = region_of(domain).range_of(coef)
        kind, cut = (("linear", -1e-9), ("truncated", 0.35), ("logistic", 0.0))[number % 3]
        if kind == "logistic":
            steep = np.abs(coef).sum()
            queries.append(RegressionQuery(kind, coef / steep, -(low + high) / 2 / steep, (0, 1), 0.3))
        else:
            width = high - low
            queries.append(RegressionQuery(kind, coef, 0.0, (low + cut * width, high - cut * width), 0.3))
        outputs.append(int(rng.integers(2)))
    found = realized_loss(queries, outputs, bounds=domain)
    assert found.converged, found
    law = law_over(domain, queries, outputs)
    assert len(RegionChoices(law, 1, sigmoid_sum(law), np.zeros(len(law)), -np.inf)._codes) == 21**2
    # Numbers of few values are no intervals: all that they can be is combined.
    few = Columns.of({f"n{column}": Column(0, 1, kind="integer") for column in range(12)} | {"i": Column(0.0, 1.0)})
    law = law_over(few, [RegressionQuery("linear", np.ones(13), 0.0, (-1, 14), 0.3)], [1])
    assert len(RegionChoices(law, 1, sigmoid_sum(law), np.zeros(1), -np.inf)._codes) == 2**12


def test_what_it_serves():
    queries, outputs = opposite_answers(five_numbers_and(4, 3), 3, 0)
    assert RegionChoices.serves(law_over(five_numbers_and(4, 3), queries, outputs))
    coef = np.ones(6)
    query = RegressionQuery("linear", coef, 0.0, (-9, 9999), 0.3)
    numbers = {f"n{column}": Column(-1.0, 1.0) for column in range(5)}
    few, many = (
        Columns.of(numbers | {"age": Column(0, most, kind="integer")}) for most in (99, region_choices._MOST_CHOICES)
    )
    assert RegionChoices.serves(law_over(few, [query], [1]))
    # Too many whole numbers are searched as an interval; too many combinations of categories are not searched so.
    law = law_over(many, [query], [1])
    assert RegionChoices.serves(law)
    assert len(RegionChoices(law, 1, sigmoid_sum(law), np.zeros(1), -np.inf)._codes) == 1
    wide = five_numbers_and(150, 150)
    assert not RegionChoices.serves(law_over(wide, [RegressionQuery("linear", np.ones(305), 0.0, (-9, 9), 0.3)], [1]))
    # An inequality between columns that are not whole has its price in the linear programs alone.
    curbed = Constrained(few, ((1.0, 1.0, 0.0, 0.0, 0.0, 0.0),), (0.0,), (0.0,) * 6)
    assert not RegionChoices.serves(law_over(curbed, [query], [1]))
    # One between whole columns leaves combinations out.
    tied = Constrained(few, ((0.0, 0.0, 0.0, 0.0, 0.0, -1.0),), (-90.0,), (0.0,) * 5 + (99.0,))
    law = law_over(tied, [query], [1])
    search = RegionChoices(law, 1, sigmoid_sum(law), np.zeros(1), -np.inf)
    corners = corners_of_leaves(law, search.tree)
    assert [point[5] for point in points_of(search)] == list(range(90, 100))
    assert [corners[node][0][5] for node in nodes_of(search)] == list(range(90, 100))
