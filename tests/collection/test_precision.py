"""The precision that a policy promises before anybody is asked is that of the surveys that follow."""

import math
from dataclasses import replace

import numpy as np
import pytest
from laws import hadamard, hashing

from skldp import Collector
from skldp.client import Field, Policy
from skldp.mechanisms import Column, Piecewise, RandomizedResponse, bitrand
from skldp.mechanisms.categorical._one_hot import OneHotLocalHashing, SubsetSelection, UnaryEncoding
from skldp.mechanisms.numeric._bounded_features import BoundedFeatures, PrivUnitBox
from skldp.mechanisms.numeric._points import Points, ResponseOnBins
from skldp.mechanisms.numeric._unit_mechanisms import Duchi, DuchiVector, Hybrid, SquareWave, ThreeOutputs
from skldp.study import plan_survey

UNIT = ([0.0], [1.0])


def columns(letter, n):
    return tuple(Column(-1.0 - j, 1.0 + j, name=f"{letter}{j}") for j in range(n))


def features(mechanism, n, n_sampled):
    return BoundedFeatures(mechanism, (0.0,) * n, (1.0,) * n, n_sampled=n_sampled, stated=2.0)


FIELDS = (
    Field("two", Column(0.0, 10.0), Duchi(1.0).integer_law),
    Field("three", Column(0.0, 1.0), ThreeOutputs(2.0).integer_law),
    Field("cells", Column(-5.0, 250.0), Piecewise(2.0).integer_law),
    Field("mixed", Column(1.0, 9.0), Hybrid(2.0).integer_law),
    Field("wave", Column(0.0, 100.0), SquareWave(1.0).integer_law),
    Field("sharp", Column(0.0, 100.0), SquareWave(8.0).integer_law),
    Field("ages", Column(0.0, 120.0, kind="integer"), SquareWave(2.0).integer_law),
    Field("knots", Column(0.0, 100.0), ResponseOnBins(3.0, 0.0, 100.0, unbiased=True).integer_law),
    Field("points", Column(0.0, 4.0), Points(1.0).integer_law),
    Field("binary", Column(0.0, 1.0), bitrand(9.0, UNIT, calibration="exact", debias=True).integer_law),
    Field("chosen", columns("p", 4), features(Hybrid(2.0), 4, 2).integer_law),
    Field("signs", columns("q", 3), DuchiVector(2.0, 3).integer_law),
    Field("closest", columns("s", 3), PrivUnitBox(2.0, 3).device_law),
    Field("chosen signs", columns("r", 5), features(DuchiVector(2.0, 4), 5, 4).integer_law),
    Field("city", Column(values=tuple("abcde")), RandomizedResponse(1.0, 5).integer_law),
    Field("bits", Column(values=tuple("abc")), UnaryEncoding(1.0, 3, "oue").integer_law),
    Field("set", Column(values=tuple("abcdefg")), SubsetSelection(1.0, 7).integer_law),
    Field("hash", Column(values=tuple(range(9))), hashing(1.0, 9).integer_law),
    Field("row", Column(values=tuple(range(9))), hadamard(2.0, 9).integer_law),
    Field("rows", Column(values=tuple(range(7))), hadamard(0.5, 7).integer_law),
)


def survey(policy, n, seed=0):
    """Reports of people with uniform independent values, drawn by seeded words."""
    rng, collector = np.random.default_rng(seed), Collector(policy)
    for _ in range(n):
        record = {}
        for field in policy.fields:
            if field.kind == "category":
                record[field.name] = field.column.values[rng.integers(len(field.column.values))]
            else:
                ends = field.columns
                record |= {one.name: rng.uniform(one.low, one.high) for one in ends}
        collector.add(policy.vector(record, rng.bytes(8 * 200)))
    return collector


@pytest.mark.few(2)
@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_standard_errors_are_those_of_a_survey(field):
    n = 6000
    policy = Policy("one field", (field,))
    collector = survey(policy, n)
    for planned in plan_survey(policy, n).estimates:
        kind, name = planned.what.split(" of ")
        assert planned.n == n
        if kind == "median":
            found = collector.quantiles(name, [0.5])
            assert (found.high - found.low) / 2 == pytest.approx(planned.half_width, rel=0.35)
            continue
        statistic = {"mean": collector.mean, "shares": collector.frequencies, "histogram": collector.histogram}[kind]
        found = statistic(name, consistent=None)
        error, half = np.sqrt(np.mean(found.standard_errors**2)), np.mean(found.high - found.low) / 2
        assert error == pytest.approx(planned.standard_error, rel=0.06)
        assert half == pytest.approx(planned.half_width, rel=0.06)


TWO = Policy(
    "means by region",
    (
        Field("income", Column(0.0, 200_000.0), Duchi(2.0).integer_law),
        Field("region", Column(values=tuple("abcd")), RandomizedResponse(2.0, 4).integer_law),
        Field("sex", Column(values=(True, False)), RandomizedResponse(1.5, 2).integer_law),
    ),
)


@pytest.mark.few(1)
@pytest.mark.parametrize("n_sampled", [None, 2])
def test_groups_and_samples_have_the_errors_of_a_survey(n_sampled):
    policy, n = replace(TWO, n_sampled=n_sampled), 9000
    collector, planned = survey(policy, n), {one.what: one for one in plan_survey(policy, n, by="region").estimates}
    assert list(planned) == ["mean of income by region", "shares of sex by region"]
    assert planned["mean of income by region"].n == pytest.approx(n if n_sampled is None else n / 3)
    for found, one in zip(
        (collector.mean("income", by="region"), collector.frequencies("sex", by="region")),
        planned.values(),
        strict=True,
    ):
        assert found.n == pytest.approx(one.n, rel=0.05)
        assert np.sqrt(np.mean(found.standard_errors**2)) == pytest.approx(one.standard_error, rel=0.12)
        assert np.mean(found.high - found.low) / 2 == pytest.approx(one.half_width, rel=0.15)
    of_all = plan_survey(policy, n).estimates[0]
    assert of_all.n == pytest.approx(n if n_sampled is None else 6000)
    assert collector.mean("income").standard_errors[0] == pytest.approx(of_all.standard_error, rel=0.06)


AGE, CITY, SEX = (
    Column(0.0, 90.0, name="age"),
    Column(values=tuple("abc"), name="city"),
    Column(values=("f", "m"), name="sex"),
)


def pairs_policy(kind, n_knots=3):
    def pair(one, two):
        n = math.prod(n_knots if column.values is None else len(column.values) for column in (one, two))
        return Field(f"{one.name} & {two.name}", (one, two), kind(2.0, n).integer_law, n_knots=n_knots)

    return Policy("pairs", (pair(AGE, CITY), pair(CITY, SEX), pair(SEX, AGE)), n_sampled=1)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("kind", "near"),
    [(RandomizedResponse, 0.03), (SubsetSelection, 0.03), (UnaryEncoding, 0.1), (OneHotLocalHashing, 0.2)],
)
def test_columns_of_pairs_have_the_errors_of_a_survey(kind, near):
    policy, n, rng = pairs_policy(kind), 9000, np.random.default_rng(0)
    collector = Collector(policy)
    for _ in range(n):
        record = {"age": rng.uniform(0, 90), "city": "abc"[rng.integers(3)], "sex": "fm"[rng.integers(2)]}
        collector.add(policy.vector(record, rng.bytes(8 * 40)))
    whats = []
    for by in (None, "city", "sex"):
        for planned in plan_survey(policy, n, by=by).estimates:
            name = planned.what.split(" of ")[1].split(" by ")[0]
            if planned.what.startswith("table"):
                found = collector.table(*name.split(" & "))
            else:
                found = (collector.mean if name == "age" else collector.frequencies)(name, by=by)
            whats.append(planned.what)
            assert found.n == pytest.approx(planned.n, rel=0.05)
            assert np.sqrt(np.mean(found.standard_errors**2)) == pytest.approx(planned.standard_error, rel=near)
            # Intervals take the error at their ends, which a plan does not know.
            assert np.mean(found.high - found.low) / 2 == pytest.approx(planned.half_width, rel=near + 0.06)
    tables = ["table of age & city", "table of city & sex", "table of sex & age"]
    of_all = ["mean of age", "shares of city", "shares of sex"]
    groups = ["mean of age by city", "shares of sex by city", "mean of age by sex", "shares of city by sex"]
    assert whats == tables + of_all + groups
    width = plan_survey(policy, 1000, by="city").estimates[0].half_width
    assert plan_survey(policy, 1000, by="city").n_people_for("age", width) == 1000


@pytest.mark.parametrize(("n_sampled", "asked"), [(1, 2 / 3), (2, 1.0), (None, 1.0)])
def test_a_person_who_is_asked_two_pairs_of_a_column_counts_once(n_sampled, asked):
    policy = replace(pairs_policy(RandomizedResponse), n_sampled=n_sampled)
    planned = {one.what: one.n for one in plan_survey(policy, 900).estimates}
    assert planned["mean of age"] == pytest.approx(900 * asked)
    assert planned["table of age & city"] == pytest.approx(900 * (n_sampled or 3) / 3)


@pytest.mark.parametrize("n_sampled", [2, None])
def test_more_answers_of_a_person_shorten_the_planned_intervals(n_sampled):
    policy, n, rng = replace(pairs_policy(RandomizedResponse), n_sampled=n_sampled), 4000, np.random.default_rng(0)
    collector = Collector(policy)
    for _ in range(n):
        record = {"age": rng.uniform(0, 90), "city": "abc"[rng.integers(3)], "sex": "fm"[rng.integers(2)]}
        collector.add(policy.vector(record, rng.bytes(8 * 60)))
    planned = {one.what: one for one in plan_survey(policy, n).estimates}
    found = {"mean of age": collector.mean("age")}
    found |= {f"shares of {name}": collector.frequencies(name) for name in ("city", "sex")}
    for what, made in found.items():
        assert np.sqrt(np.mean(made.standard_errors**2)) == pytest.approx(planned[what].standard_error, rel=0.03)
        assert np.mean(made.high - made.low) / 2 == pytest.approx(planned[what].half_width, rel=0.06)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: plan_survey(TWO, 1), "n_people must be a whole number from 2"),
        (lambda: plan_survey(TWO, 10**13), "n_people must be a whole number from 2 to 1,000,000,000,000; got"),
        (lambda: plan_survey(TWO, 1e4), r"got 10000\.0, a float"),
        (lambda: plan_survey(TWO, 1000).n_people_for("income", 1e-9), "must be reached by 1,000,000,000,000 people"),
        (lambda: plan_survey(TWO, 100, by="income"), r"by must be one of the categories \['region', 'sex'\]"),
        (lambda: plan_survey(TWO, 100, by="nothing"), "by must be one of the categories"),
        (lambda: plan_survey(pairs_policy(RandomizedResponse), 9, by="age"), r"by must be .* \['city', 'sex'\]"),
        (lambda: plan_survey(TWO, 100, level=1.0), "level must lie inside"),
        (lambda: plan_survey(replace(TWO, n_sampled=1), 100, by="sex"), "needs people who were asked both"),
        (lambda: plan_survey(TWO, 1000).n_people_for("nothing", 1.0), "The field of a precision must be one of"),
        (lambda: plan_survey(TWO, 1000, by="sex").n_people_for("sex", 0.1), "The field of a precision must be one of"),
        (lambda: plan_survey(TWO, 1000).n_people_for("income", 0.0), "half_width must be"),
    ],
)
def test_what_cannot_be_planned_is_refused(call, match):
    with pytest.raises(ValueError, match=match):
        call()


def test_a_policy_without_means_and_shares_has_no_precision():
    law = ResponseOnBins(3.0, 0.0, 100.0).integer_law
    policy = Policy("bins", (Field("bins", Column(0.0, 100.0), law),))
    with pytest.raises(ValueError, match="A precision needs a category, or a number"):
        plan_survey(policy, 100)


def test_a_plan_needs_a_policy():
    with pytest.raises(TypeError, match="policy must be a Policy, as of"):
        plan_survey(5, 100)
