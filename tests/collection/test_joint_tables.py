"""Pairs of columns: laws by enumeration, tables, means within categories, and their error against rivals."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from laws import THRESHOLD, chi_square_pvalue

from skldp import (
    CategoricalPrivatizer,
    Collector,
    NumericPrivatizer,
    TablePrivatizer,
    policy_from_estimator,
)
from skldp.client import Field, Policy
from skldp.mechanisms import Column, RandomizedResponse
from skldp.mechanisms.categorical._one_hot import make_categorical_mechanism
from skldp.study import plan_survey

AGE, PAY = Column(0.0, 100.0, name="age"), Column(-1.0, 3.0, kind="integer", name="pay")
CITY, SEX = Column(values=("Bonn", "Köln", None), name="city"), Column(values=("f", "m"), name="sex")


def pair(first, second, epsilon=2.0, n_knots=3, **more):
    n = math.prod(n_knots if one.values is None else len(one.values) for one in (first, second))
    law = RandomizedResponse(epsilon, n).integer_law
    return Field(f"{first.name} & {second.name}", (first, second), law, n_knots=n_knots, **more)


NO_PAIR = Field("sex", Column(values=("f", "m")), RandomizedResponse(1.0, 2).integer_law)
POLICY = Policy("pairs", (pair(AGE, CITY), pair(CITY, SEX), pair(SEX, AGE)), n_sampled=1)


def population(n, seed=0):
    rng = np.random.default_rng(seed)
    city = rng.choice(3, size=n, p=(0.6, 0.3, 0.1))
    sex = (rng.random(n) < np.array([0.3, 0.5, 0.8])[city]).astype(int)
    return {"age": np.clip(20 + 30 * sex + rng.normal(0, 8, n), 0, 100), "city": city, "sex": sex}


def collected(policy, rows, seed=0):
    collector, words = Collector(policy), np.random.default_rng([seed, 1])
    for age, city, sex in zip(*rows.values(), strict=True):
        record = {"age": float(age), "city": CITY.values[city], "sex": SEX.values[sex]}
        collector.add(policy.vector(record, words.bytes(8 * 40)))
    return collector


@pytest.mark.few(2)
@pytest.mark.parametrize("place", [-1.0, -0.3, 0.0, 0.55, 1.0])
def test_a_report_follows_its_law_and_a_number_is_rounded_without_bias(place):
    field, words = pair(AGE, SEX), np.random.default_rng(2)
    law, n = field.law, 40_000
    knots = np.linspace(-1, 1, 3)
    chances = np.maximum(0, 1 - np.abs(knots - place))
    assert chances @ knots == pytest.approx(place)
    other = law.other_count / 2**64
    own = 1 - (law.n_codes - 1) * other
    expected = [chances[code // 2] * (own if code % 2 == 1 else other) + (1 - chances[code // 2]) * other
                if code % 2 == 1 else other for code in range(6)]  # fmt: skip
    stream = iter(np.frombuffer(words.bytes(8 * 2 * n), dtype=">u8").tolist())
    drawn = Counter(field.draw((place, 1), stream) for _ in range(n))
    assert sum(expected) == pytest.approx(1)
    assert chi_square_pvalue([drawn[code] for code in range(6)], expected) > THRESHOLD


def test_the_epsilon_is_that_of_the_law_for_every_two_records():
    field = pair(CITY, SEX, 1.25)
    other = Fraction(field.law.other_count, 2**64)
    own = 1 - 5 * other
    # Rounding comes before the law, and cannot raise its ratio.
    assert math.log(own / other) == pytest.approx(field.epsilon, abs=1e-12)
    policy = Policy("x", (field, pair(AGE, SEX, 1.0)), n_sampled=1)
    assert policy.epsilon == field.epsilon
    assert Policy("x", policy.fields).epsilon == pytest.approx(2.25)


def test_tables_means_and_shares_are_unbiased():
    rows, n = population(9000), 9000
    collector = collected(POLICY, rows)
    true = np.array([[np.mean((rows["city"] == i) & (rows["sex"] == j)) for j in range(2)] for i in range(3)])
    table = collector.table("city", "sex")
    assert table.labels[:3] == ("Bonn: f", "Bonn: m", "Köln: f")
    assert table.n == pytest.approx(n / 3, rel=0.1)
    assert table.answered == table.n / n
    turned = collector.table("sex", "city")
    np.testing.assert_array_equal(turned.values.reshape(2, 3).T.reshape(-1), table.values)
    by_sex = [rows["age"][rows["sex"] == j].mean() for j in range(2)]
    for estimate, truth in (
        (table, true.reshape(-1)),
        (collector.mean("age"), [rows["age"].mean()]),
        (collector.frequencies("city"), true.sum(axis=1)),
        (collector.frequencies("sex"), true.sum(axis=0)),
        (collector.mean("age", by="sex"), by_sex),
        (collector.mean("age", where={"sex": "m"}), by_sex[1:]),
        (collector.frequencies("sex", by="city"), (true / true.sum(axis=1, keepdims=True)).reshape(-1)),
        (collector.frequencies("city", where={"sex": ["f"]}), true[:, 0] / true[:, 0].sum()),
        (collector.frequencies("city", where={"sex": ["f", "m"]}), true.sum(axis=1)),
    ):
        z = (estimate.values - truth) / estimate.standard_errors
        assert np.abs(z).max() < 4.5, estimate
        assert (estimate.low <= estimate.values).all()
        assert (estimate.values <= estimate.high).all()
    assert collector.mean("age").n > collector.mean("age", by="sex").n
    assert collector.frequencies("sex", by="city").labels[0] == "Bonn: f"
    assert collector.mean("age", by="sex").labels == ("f", "m")


def test_consistent_tables_are_distributions_that_agree():
    collector = collected(POLICY, population(2000))
    tables = {
        (a, b): collector.table(a, b, consistent="project")
        for a, b in (("age", "city"), ("city", "sex"), ("sex", "age"))
    }
    for table in tables.values():
        assert table.values.sum() == pytest.approx(1)
        assert (table.values >= 0).all()
        assert (table.low <= table.values + 1e-12).all()
    ages, sexes = tables["age", "city"].values.reshape(3, 3), tables["city", "sex"].values.reshape(3, 2)
    np.testing.assert_allclose(ages.sum(axis=0), sexes.sum(axis=1), atol=1e-3)
    both = tables["sex", "age"].values.reshape(2, 3)
    np.testing.assert_allclose(both.sum(axis=0), ages.sum(axis=1), atol=1e-3)


def split_pair(X, k, epsilon, rng):
    """Rival: a table from the products of scores of two columns, each at its share of epsilon (OUE)."""
    n, m = X.shape
    p, q = 0.5, 1 / (math.exp(epsilon / m) + 1)
    scores = [
        ((rng.random((n, k)) < np.where(np.arange(k) == column[:, None], p, q)) - q) / (p - q) for column in X.T[:2]
    ]
    return scores[0].T @ scores[1] / n


def one_pair_each(X, k, epsilon, rng):
    """Rival: CALM's marginal of one random pair a person, by OUE over all combinations, raw."""
    n, m = X.shape
    q, found = 1 / (math.exp(epsilon) + 1), []
    pairs = list(itertools.combinations(range(m), 2))
    asked = rng.integers(len(pairs), size=n)
    for number, (i, j) in enumerate(pairs):
        codes = k * X[asked == number, i] + X[asked == number, j]
        held = rng.random((len(codes), k * k)) < np.where(np.arange(k * k) == codes[:, None], 0.5, q)
        found.append(((held.mean(axis=0) - q) / (0.5 - q)).reshape(k, k))
    return found


@pytest.mark.parametrize(("m", "k", "epsilon"), [(10, 2, 1.0), (5, 4, 2.0), (8, 4, 4.0)])
def test_the_error_is_at_most_that_of_one_random_pair_each(m, k, epsilon):
    names = [f"c{j}" for j in range(m)]
    table = CategoricalPrivatizer(epsilon, categories=[list(range(k))] * m).fit([[0] * m])
    policy = policy_from_estimator(table, purpose="pairs", joint="all")
    names = [field.names for field in policy.fields]
    assert policy.n_sampled == 1
    assert len(names) == m * (m - 1) // 2
    assert policy.epsilon == pytest.approx(epsilon, abs=1e-9)
    # Exact laws: the mean square of a cell's score, from as many people a pair.
    ours = plan_survey(policy, 2_000_000).estimates[0]
    q = 1 / (math.exp(epsilon) + 1)
    bit = q + (0.5 - q) / k**2
    oue = math.sqrt(bit * (1 - bit) / (0.5 - q) ** 2 / ours.n)
    assert ours.standard_error**2 <= 1.1 * oue**2
    rng = np.random.default_rng(0)
    X = rng.integers(k, size=(40_000, m))
    truth = 1 / k**2
    rival = np.mean([(one - truth) ** 2 for one in one_pair_each(X, k, epsilon, rng)])
    assert ours.standard_error**2 * 50 <= 1.1 * rival
    assert ours.standard_error**2 * 50 <= np.mean((split_pair(X, k, epsilon, rng) - truth) ** 2) / 5


SCHEMA = {
    "age": (0, 100),
    "city": {"type": "category", "values": ["x", "y"], "missing": "category"},
    "s": list("SML"),
}
FITTED = TablePrivatizer(2.0, schema=SCHEMA).fit(pd.DataFrame({"age": [1.0], "city": ["x"], "s": ["S"]}))


@pytest.mark.parametrize("shares", ["equal", {"age": 9, "city": 1, "s": 1, "pay": 2}])
def test_columns_in_no_pair_are_questions_of_their_own(shares):
    schema = SCHEMA | {"pay": {"type": "integer", "low": 0, "high": 9}}
    how = {"shares": shares, "mechanism": "square_wave", "category_mechanism": {"s": "oue"}}
    rows = pd.DataFrame({"age": [1.0], "city": ["x"], "s": ["S"], "pay": [1]})
    fitted = TablePrivatizer(2.0, schema=schema, **how).fit(rows)
    policy = policy_from_estimator(fitted, purpose="x", joint=[("city", "age")], units={"pay": "euros"})
    assert [field.names for field in policy.fields] == [("city", "age"), ("s",), ("pay",)]
    assert set(policy.names) == set(schema)
    assert (policy.n_sampled, policy.fields[1].law.name, policy.fields[2].law.name) == (1, "unary_encoding", "lattice")
    # Each question has all of epsilon: a person answers one.
    assert [field.epsilon for field in policy.fields] == pytest.approx([2.0] * 3, abs=1e-6)
    assert policy.epsilon == max(field.epsilon for field in policy.fields) <= 2.0
    assert (policy.fields[2].column.unit, policy.fields[2].column.whole) == ("euros", True)
    # The estimator is as it was.
    assert sum(fitted.epsilons_.values()) <= 2.0
    collector, words = Collector(policy), np.random.default_rng(0)
    for i in range(900):
        record = {"age": 50.0, "city": "x", "s": "SML"[i % 3], "pay": 7}
        collector.add(policy.vector(record, words.bytes(8 * 30)))
    for found, truth in (
        (collector.mean("pay"), 7),
        (collector.quantiles("pay", [0.5]), 7),
        (collector.frequencies("s"), 1 / 3),
        (collector.mean("age"), 50),
        (collector.mean("age", where={"city": "x"}), 50),
    ):
        assert (np.abs(found.values - truth) <= 5 * found.standard_errors).all()
    planned = {one.what: one.n for one in plan_survey(policy, 900).estimates}
    assert set(planned) >= {"table of city & age", "shares of s", "mean of pay", "histogram of pay", "median of pay"}
    assert list(planned.values()) == pytest.approx([300.0] * len(planned))
    with pytest.raises(ValueError, match="1 of 3"):
        collector.mean("pay", by="s")


def test_pairs_of_a_table_have_the_whole_epsilon():
    policy = policy_from_estimator(FITTED, purpose="x", joint=[("age", "city"), ("s", "age")], n_knots=5)
    assert [field.sizes for field in policy.fields] == [(5, 3), (3, 5)]
    assert policy.epsilon == pytest.approx(2.0, abs=1e-9)
    assert policy.fields[0].columns[1].values == ("x", "y", None)
    one = policy_from_estimator(FITTED, purpose="x", joint=[("age", "city")])
    assert one.n_sampled == 1
    made, alone = one.fields
    assert alone.name == "s"
    assert made.law == make_categorical_mechanism("best", 2.0, 6).integer_law
    for each in (policy, one):
        collector = Collector(each)
        for _ in range(60):
            collector.add(each.release({"age": 50.0, "city": "x", "s": "S"}))
        assert collector.mean("age").n > 10
        assert collector.to_frame().shape == (60, len(each.fields))
        assert pytest.importorskip("jinja2")
        assert "age: " not in collector.page()
        assert "age" in collector.page()


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: policy_from_estimator(FITTED, purpose="x", joint=[]), "joint must be different pairs"),
        (lambda: policy_from_estimator(FITTED, purpose="x", joint="some"), "joint must be 'all' or a list"),
        (lambda: policy_from_estimator(FITTED, purpose="x", joint=[("age", "pay")]), "joint must be different pairs"),
        (lambda: policy_from_estimator(FITTED, purpose="x", joint=[("s", "s")]), "joint must be different pairs"),
        (
            lambda: policy_from_estimator(FITTED, purpose="x", joint=[("s", "age"), ("age", "s")]),
            "joint must be different pairs",
        ),
        (lambda: policy_from_estimator(FITTED, purpose="x", joint="all", n_knots=1), "n_knots must be"),
        (lambda: policy_from_estimator(FITTED, purpose="x", joint="all", n_knots=0), "n_knots must be"),
        (lambda: policy_from_estimator(FITTED, purpose="x", joint="all", n_knots="2"), "n_knots must be"),
        (lambda: collected(POLICY, population(9)).mean("age", level=1.0), "level must lie inside"),
        (lambda: collected(POLICY, population(9)).frequencies("sex", level=2), "level must lie inside"),
        (
            lambda: policy_from_estimator(NumericPrivatizer(1.0).fit([[0.0, 0.0]]), purpose="x", joint="all"),
            "Pairs need a TablePrivatizer or CategoricalPrivatizer",
        ),
        (lambda: Field("x", (AGE,), POLICY.fields[0].law), "law of a number must be"),
        (lambda: Field("x", (AGE, AGE), POLICY.fields[0].law), "must have different names"),
        (lambda: Field("x", (AGE, SEX), POLICY.fields[0].law), "must be of 4 codes"),
        (lambda: Policy("x", (pair(AGE, SEX), pair(AGE, SEX))), "Fields must have different names"),
        (
            lambda: Policy("x", (pair(AGE, SEX), pair(Column(0.0, 9.0, name="age"), CITY))),
            "declared alike in all of its pairs",
        ),
        (
            lambda: Policy(
                "x", (pair(AGE, SEX), Field("sex", Column(values=("f", "m")), RandomizedResponse(1.0, 2).integer_law))
            ),
            "Fields must have different names",
        ),
        (lambda: Policy("x", (pair(AGE, SEX),), memo="permanent"), "must have `steps`"),
    ],
)
def test_bad_pairs_are_refused(call, match):
    with pytest.raises(ValueError, match=match):
        call()


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda c: c.table("age", "pay"), "must be in one of the policy's pairs, age & city, city & sex"),
        (lambda c: c.table("age", "age"), "must be in one of the policy's pairs"),
        (lambda c: c.table("age", "sex", consistent="likelihood"), "consistent must be None or 'project'"),
        (lambda c: c.mean("city"), "Use `frequencies` or `table`"),
        (lambda c: c.frequencies("age"), "Use `mean` or `table`"),
        (lambda c: c.frequencies("sex", consistent="likelihood"), "must be None or 'project' for a column of pairs"),
        (lambda c: c.mean("age", by="sex", where={"city": "Bonn"}), "Pairs tell of one column within another one"),
        (lambda c: c.frequencies("city", by="age"), "must be a category; got the number 'age'"),
        (lambda c: c.frequencies("city", where={"sex": []}), "must have a value"),
        (lambda c: c.frequencies("city", where={"sex": "x"}), "must be one of the values"),
        (lambda c: c.histogram("age"), "Use `table`, `mean` or `frequencies`"),
        (lambda c: Collector(POLICY).mean("age"), "at least 2 reports"),
        (lambda c: Collector(Policy("x", (NO_PAIR,))).table("age", "sex"), r"The policy has no pairs .* joint=\.\.\."),
    ],
)
def test_what_pairs_do_not_tell_is_refused(call, match):
    collector = collected(POLICY, population(60))
    with pytest.raises(ValueError, match=match):
        call(collector)


def test_answers_of_one_person_for_several_pairs_count_as_one():
    """At an epsilon of 30 answers are true: the error is that of a sample of people, asked once or twice."""
    policy, rows = (
        Policy("all pairs", (pair(CITY, SEX, 30.0), pair(SEX, AGE, 30.0), pair(AGE, CITY, 30.0))),
        population(300),
    )
    collector = collected(policy, rows)
    shares = np.bincount(rows["city"], minlength=3) / 300
    found = collector.frequencies("city")
    assert found.n == 300
    np.testing.assert_allclose(found.values, shares, atol=1e-9)
    np.testing.assert_allclose(found.standard_errors, np.sqrt(shares * (1 - shares) / 299), rtol=1e-6)
    women = collector.frequencies("city", where={"sex": "f"})
    assert women.n == 300
    np.testing.assert_allclose(
        women.values, np.bincount(rows["city"][rows["sex"] == 0], minlength=3) / (rows["sex"] == 0).sum()
    )
    planned = {one.what: one for one in plan_survey(policy, 300).estimates}
    assert planned["shares of city"].n == 300
    assert planned["shares of city"].standard_error == pytest.approx(math.sqrt(2 / 9 / 300), rel=1e-6)
    (forged,) = collector.mean("age").moved_by(0.01)
    assert 0.9 <= forged <= 1.2
