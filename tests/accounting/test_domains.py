"""Losses over domains of categories, whole numbers and inequalities: never below what some two records differ by."""

import numpy as np
import pytest
from accounting.domains import answers_over, domains, records_of
from accounting.reference import worst_sampled_loss
from hypothesis import given, settings
from hypothesis import strategies as st

from skldp.accounting import BayesianPrivacyFilter, RegressionQuery, realized_loss
from skldp.accounting._decide import Rule, decide
from skldp.accounting.losses import _region_search as region_search
from skldp.accounting.losses._certificate import Proof, Tree, certified_loss
from skldp.accounting.losses._cohorts import PointTable
from skldp.accounting.losses._region import region_of
from skldp.accounting.losses._sampled_law import answer_law
from skldp.domains._columns import Columns
from skldp.domains._constraints import Constrained, OneHot
from skldp.domains._domain import Ball, Box
from skldp.mechanisms import Column


@st.composite
def finite_problems(draw):
    domain = draw(domains())
    return (*draw(answers_over(domain)), domain)


@st.composite
def mixed_problems(draw, **options):
    domain = draw(domains(finite=False))
    return (*draw(answers_over(domain, **options)), domain)


@pytest.mark.slow
@settings(max_examples=150)
@given(finite_problems())
def test_the_certified_loss_of_a_finite_domain_is_that_of_all_its_records(problem):
    queries, outputs, domain = problem
    found = realized_loss(queries, outputs, bounds=domain)
    worst = worst_sampled_loss(queries, outputs, records_of(domain))
    box = region_of(domain).box
    room = 8 * answer_law(queries, outputs, box).allowance + 1e-12
    assert found.lower <= worst + 1e-12
    assert worst <= found.upper <= min(worst + room, sum(query.exact_epsilon for query in queries) + 1e-12)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(mixed_problems())
def test_no_two_records_of_a_mixed_domain_differ_by_more(problem):
    queries, outputs, domain = problem
    found = realized_loss(queries, outputs, bounds=domain)
    records = np.concatenate([records_of(domain, per_side=9), [found.x_high, found.x_low]])
    assert worst_sampled_loss(queries, outputs, records) <= found.upper
    ends = np.stack([found.x_high, found.x_low])
    assert np.array_equal(domain.clip(ends).rows, ends)
    assert found.lower <= worst_sampled_loss(queries, outputs, ends) + 1e-12
    assert found.upper - found.lower <= 2e-3 or not found.converged


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(mixed_problems(), st.integers(0, 2**32))
def test_whatever_a_search_proposes_proves_nothing_false(problem, seed):
    queries, outputs, domain = problem
    region, rng = region_of(domain), np.random.default_rng(seed)
    d, m = len(region.integer), len(region.limits)

    def any_slopes(leaves, low, high):
        return rng.normal(size=low.shape) * rng.choice([0.0, 1.0, 1e3, np.nan], size=low.shape)

    def any_prices(leaves):
        return rng.normal(size=(len(leaves), m)) * rng.choice([0.0, 1.0, 1e6, np.nan, np.inf], size=(len(leaves), m))

    proofs = []
    for _ in range(4):
        tree = Tree(d)
        for node in range(12):
            tree.split(node, int(rng.integers(d)), float(rng.choice([0.0, 0.5, 1.0, 0.3, -7.0, 9.0, 1e-9])))
        proofs.append(Proof(tree, any_slopes, any_prices))
    worst = worst_sampled_loss(queries, outputs, records_of(domain))
    box = region.box
    assert worst <= certified_loss(queries, outputs, box, proofs[:2], proofs[2:], region=region)
    vertices = Proof(None, any_slopes)
    assert worst <= certified_loss(queries, outputs, box, [vertices], [vertices], region=region)
    faces = Proof(Tree(d, to_the_ends=True), any_slopes)
    assert worst <= certified_loss(queries, outputs, box, [faces], [faces], region=region)


@pytest.mark.parametrize("price", [-1.0, np.inf, -np.inf, np.nan])
def test_a_price_that_proves_nothing_is_not_paid(price):
    """Whoever is paid for an inequality would get a bound below the maximum."""
    region = region_of(Constrained(Box((0.0, 0.0), (1.0, 1.0)), ((1.0, 1.0),), (1.5,), (0.0, 0.0)))
    coef, ends = np.array([[-1.0, -1.0]]), (region.box[:1], region.box[1:])
    assert region.largest_priced(coef, np.array([[price]]), *ends)[0] >= 0.0


def test_an_inequality_is_kept_with_the_roundings_that_it_was_decided_with():
    # .1 + .2 is above .3 as doubles, and so is their sum: a limit of exactly that sum must not be taken for less.
    limit = 0.1 + 0.2
    domain = Constrained(Columns.of({"a": Column(0, 1), "b": Column(0, 1)}), ((1, 1),), (limit,), (0, 0))
    record = np.array([[0.1, 0.2]])
    assert domain.clip(record).n_moved == 0
    region = region_of(domain)
    assert region.limits[0] > limit
    assert region.is_possible(record, record).all()
    just_over = np.array([[0.1, 0.2 + 1e-9]])
    assert not region.is_possible(just_over, just_over).any()


NINE = Columns.of({tuple("abc"): OneHot(3), tuple("def"): OneHot(3), tuple("ghi"): OneHot(3)})


def nine_queries(n, seed, epsilon=0.1):
    rng = np.random.default_rng(seed)
    queries = []
    for coef in rng.uniform(-1, 1, (n, 9)):
        low, high = region_of(NINE).range_of(coef)
        queries.append(RegressionQuery("linear", coef, 0.0, (low - 1e-9, high + 1e-9), epsilon))
    return queries


def test_the_table_of_a_cohort_decides_as_one_search_for_each_history():
    rng = np.random.default_rng(3)
    queries = nine_queries(14, 1)
    queries += [RegressionQuery("logistic", 4 * query.coef, 0.3, (0, 1), 0.2) for query in queries[:4]]
    rule = Rule("bayesian", 0.55, NINE)
    table = rule.table_for(queries[0])
    assert isinstance(table, PointTable)
    histories = []
    for _ in range(40):
        numbers = rng.integers(0, len(queries) - 1, rng.integers(0, 15)).tolist()
        histories.append((numbers, rng.integers(0, 2, len(numbers)).tolist()))
    quick = table.decisions(queries, histories, queries[-1], epsilon=rule.epsilon)
    slow = decide(rule, queries, histories, queries[-1])
    assert None not in quick
    assert quick == slow
    assert 5 < sum(slow) < 35
    assert decide(rule, queries, histories, queries[-1], table=table) == slow


def test_what_is_a_hair_from_the_budget_is_left_to_the_search():
    query = RegressionQuery("linear", [1.0, 0.0], 0.0, (0, 1), 0.5)
    table = PointTable(region_of(OneHot(2)))
    for history in (([], []), ([0, 0], [0, 1])):
        # One answer, or one more after two that cancel, costs about the epsilon.
        loss = max(
            realized_loss([query] * (len(history[0]) + 1), [*history[1], o], bounds=OneHot(2)).upper for o in (0, 1)
        )
        decisions = [
            table.decisions([query], [history], query, epsilon=loss + beside)[0]
            for beside in (-1e-4, -1e-8, 1e-8, 1e-4)
        ]
        assert decisions == [False, False, None, True]


def test_a_domain_lets_more_be_asked_than_its_box():
    queries, asked = nine_queries(24, 5), {}
    for name, bounds in (("domain", NINE), ("box", (0, 1))):
        person = BayesianPrivacyFilter(0.4, bounds=bounds)
        outputs = np.random.default_rng(11).integers(0, 2, 24)
        for query, output in zip(queries, outputs, strict=True):
            if person.admits(query):
                person.record(query, int(output))
        asked[name] = len(person.history)
        records = records_of(NINE)
        done, given_outputs = zip(*person.history, strict=True)
        assert worst_sampled_loss(done, given_outputs, records) <= person.realized_loss <= 0.4
    assert asked["domain"] > asked["box"]


@pytest.mark.parametrize(
    ("bounds", "text"),
    [
        (Column(values=("a", "b")), "Column .of numbers., Box, OneHot"),
        (Columns.of({"a": Column(values=("a", "b"))}), "Column .of numbers., Box, OneHot"),
        (Ball(1, 1.0), "Column .of numbers., Box, OneHot"),
        (OneHot(2), "a column for each of 1 features"),
        (Column(0, 1e101), "at most 1e"),
        (Constrained(Column(0, 1), ((1e200,),), (1e200,), (0,)), "at most 1e"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_domain_of_answers_is_refused(bounds, text):
    query = RegressionQuery("linear", [1.0], 0.0, (0, 1), 0.5)
    with pytest.raises(ValueError, match=text):
        realized_loss([query], [1], bounds=bounds)


@given(domains(finite=False), st.data())
def test_every_row_is_moved_to_one_record_whatever_it_is(domain, data):
    values = st.sampled_from([0.0, 1.0, 0.5, -1.0, np.nan, np.inf, -np.inf, 1e308, 2.0])
    row = data.draw(st.lists(values, min_size=domain.n_features, max_size=domain.n_features))
    region = region_of(domain)
    with np.errstate(all="raise"):
        moved = region.move([row])
    assert np.array_equal(domain.clip(moved).rows, moved)
    assert np.array_equal(region.move(moved), moved)
    assert (moved >= region.box[0]).all()
    assert (moved <= region.box[1]).all()


def test_no_search_goes_on_below_what_rounding_leaves_open(monkeypatch):
    """It went on to its last node, for half a minute, after what no node could give."""
    domain = Columns.of({"x": Column(0.1, 0.1 + 1e-9), "n": Column(10**12, 10**12 + 4, kind="integer")})
    ends = (333333333333366.6, 333333333334699.94)
    queries = [RegressionQuery("linear", [1e3 / 3] * 2, 0.0, ends, 0.3)] * 81
    law = answer_law(queries, [0, 1] * 40 + [1], region_of(domain).box)
    assert law.allowance > 1e-2
    steps, one_step = [], region_search.RegionSearch.step
    monkeypatch.setattr(
        region_search.RegionSearch, "step", lambda search, goal: steps.append(goal) or one_step(search, goal)
    )
    found = realized_loss(queries, [0, 1] * 40 + [1], bounds=domain)
    assert len(steps) <= 10
    assert worst_sampled_loss(queries, [0, 1] * 40 + [1], records_of(domain)) <= found.upper


@given(domains(finite=False), st.integers(0, 2**32))
def test_linear_forms_over_a_domain_and_over_its_parts(domain, seed):
    region, rng = region_of(domain), np.random.default_rng(seed)
    records, coef = records_of(domain), rng.normal(size=(3, domain.n_features))
    ends = region.box[:1], region.box[1:]
    # Inequalities aside, ends are attained.
    inner = domain.domain if isinstance(domain, Constrained) else domain
    np.testing.assert_allclose(region.largest(coef, *ends)[0], (records_of(inner) @ coef.T).max(axis=0), atol=1e-12)
    np.testing.assert_allclose([region.largest_each(c[None], *ends)[0] for c in coef], region.largest(coef, *ends)[0])
    for one in coef:
        low, high = region.range_of(one)
        assert low - 1e-9 <= (records @ one).min()
        assert (records @ one).max() <= high + 1e-9
        assert high <= (records_of(inner) @ one).max() + 1e-9
    # Every record is in one half of each cut, or the other.
    for column in range(domain.n_features):
        low, high = np.tile(region.box[0], (2, 1)), np.tile(region.box[1], (2, 1))
        cut = float(rng.choice(records[:, column]))
        high[0, column] = cut
        low[1, column] = cut + 1 if region.integer[column] else cut
        low, high = region.tightened(low, high)
        inside = ((records[:, None] >= low) & (records[:, None] <= high)).all(axis=2)
        assert inside.any(axis=1).all()
        assert region.is_possible(low, high)[inside.any(axis=0)].all()
