"""Estimates of a policy that asks each person some of its fields: they know the design."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from skldp import CategoricalPrivatizer, Collector, TablePrivatizer, policy_from_estimator
from skldp.client import Field, Policy
from skldp.mechanisms import Column, Piecewise, RandomizedResponse
from skldp.mechanisms.categorical._one_hot import SubsetSelection, UnaryEncoding
from skldp.mechanisms.numeric._bounded_features import BoundedFeatures
from skldp.mechanisms.numeric._unit_mechanisms import Duchi

CITY = Field("city", Column(values=("Bonn", "Köln", "Ulm", None), unknown=None), RandomizedResponse(2.0, 4).integer_law)
BITS = Field("bits", Column(values=tuple(range(64))), UnaryEncoding(3.0, 64, "oue").integer_law)
FEW = Field("set", Column(values=tuple(range(8))), SubsetSelection(0.5, 8).integer_law)
AGE = Field("age", Column(0.0, 100.0), Piecewise(3.0).integer_law)
COLUMNS = tuple(Column(-1.0, 1.0, name=name) for name in ("x", "y"))
BOTH = BoundedFeatures(Duchi(1.0), (0.0,) * 2, (1.0,) * 2, n_sampled=1, stated=1.0).integer_law
POLICY = Policy("a sample of fields", (CITY, BITS, FEW, AGE, Field("numbers", COLUMNS, BOTH)), n_sampled=3)


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    city = rng.choice(4, size=n, p=(0.5, 0.3, 0.15, 0.05))
    return {
        "city": [CITY.column.values[code] for code in city],
        "bits": rng.choice(64, size=n, p=np.r_[0.4, np.full(63, 0.6 / 63)]),
        "set": rng.choice(8, size=n, p=np.r_[0.65, np.full(7, 0.05)]),
        "age": np.where(city == 0, 30.0, 60.0) + rng.uniform(-10, 10, n),
        "x": rng.choice((-1.0, 1.0), size=n, p=(0.2, 0.8)),
        "y": np.zeros(n),
    }


def collected(policy, rows, seed=0):
    """A collector of the reports that seeded words draw, through the device's own code."""
    collector, words = Collector(policy), np.random.default_rng(seed)
    names = list(rows)
    for row in zip(*rows.values(), strict=True):
        record = {name: value if isinstance(value, str | None) else float(value) for name, value in zip(names, row)}  # noqa: B905
        collector.add(policy.vector(record, words.bytes(8 * 400)))
    return collector


@pytest.fixture(scope="module")
def survey():
    return collected(POLICY, people(6000))


def z_scores(estimate, truth):
    return (estimate.values - truth) / estimate.standard_errors


def test_estimates_use_the_reports_that_answer(survey):
    rows = people(6000)
    city = survey.frequencies("city")
    assert 3000 < city.n < 4200
    assert city.answered == city.n / 6000
    true = [np.mean([one == value for one in rows["city"]]) for value in CITY.column.values]
    for estimate, truth in (
        (city, true),
        (survey.frequencies("bits"), np.bincount(rows["bits"], minlength=64) / 6000),
        (survey.frequencies("set"), np.bincount(rows["set"], minlength=8) / 6000),
        (survey.mean("age"), rows["age"].mean()),
        (survey.mean("x"), rows["x"].mean()),
        (survey.mean("age", by="city"), [30.0, 60.0, 60.0, 60.0]),
        (survey.frequencies("set", where={"city": "Bonn"}), np.r_[0.65, np.full(7, 0.05)]),
        (survey.histogram("age", bins=2), [np.mean(rows["age"] < 50), np.mean(rows["age"] >= 50)]),
    ):
        assert np.abs(z_scores(estimate, truth)).max() < 4.5, estimate
    by = survey.mean("age", by="city")
    # Three of five fields: both are asked with a chance of 3 / 10.
    assert by.n == pytest.approx(1800, abs=4.5 * np.sqrt(6000 * 0.21))
    assert survey.quantiles("age").low[1] <= np.median(rows["age"]) <= survey.quantiles("age").high[1]


def test_fields_that_nobody_was_asked_together_have_no_joint_estimate():
    one = collected(replace(POLICY, n_sampled=1), people(50))
    for estimate in (
        lambda: one.mean("age", by="city"),
        lambda: one.frequencies("city", where={"age": (0, 50)}),
        lambda: one.mean("x", by="city"),
    ):
        with pytest.raises(ValueError, match="2 fields together needs people who were asked all of them; this policy"):
            estimate()
    assert one.mean("age").n + one.frequencies("city").n < 50
    with pytest.raises(ValueError, match="3 fields together"):
        collected(replace(POLICY, n_sampled=2), people(9)).mean("age", by="city", where={"set": 0})


def test_a_field_that_fewer_than_two_were_asked_has_no_estimate():
    reports = [POLICY.release({}) for _ in range(200)]
    others = [report for report in reports if "age" not in POLICY.read(report).answers]
    assert others
    collector = Collector(POLICY)
    for ask in (collector.histogram, collector.mean, collector.quantiles):
        with pytest.raises(ValueError, match="at least 2 reports"):
            ask("age")
    for report in others:
        collector.add(report)
    for ask in (collector.histogram, collector.mean, collector.quantiles):
        with pytest.raises(ValueError, match="at least 2 reports; got 0"):
            ask("age")


def test_forged_reports_may_all_answer_the_same_field(survey):
    """Attack: one percent of forged reports, all about one field, are more of its answers."""
    city = survey.frequencies("city")
    plain = replace(city, answered=1.0)
    np.testing.assert_allclose(city.moved_by(0.01), plain.moved_by(0.01 / city.answered))
    forged = {"bits": 0, "age": 0.0}
    policy, collector = POLICY, Collector(POLICY)
    for _ in range(600):
        collector.add(policy.release({"city": "Bonn"}))
    before = collector.frequencies("city")
    n = collector.n_reports
    for number in range(60):
        answers = [2, forged["bits"], None, 0, None]
        report = policy._pack(number.to_bytes(16, "big"), answers)
        assert collector.add(report)
    after = collector.frequencies("city")
    # 60 of 660 reports: the bound of the estimate that has them.
    moved = np.abs(after.values - before.values)
    assert (moved <= after.moved_by(60 / (n + 60)) + 1e-12).all()


SCHEMA = {"age": (0, 10), "city": {"type": "category", "values": ["x", "y"], "missing": "category"}, "s": list("SML")}
FRAME = pd.DataFrame({"age": [1.0, 9.0], "city": ["x", None], "s": ["S", "L"]})


@pytest.mark.parametrize(
    "fitted",
    [
        TablePrivatizer(3.0, schema=SCHEMA, n_sampled_features=2, category_mechanism="oue").fit(FRAME),
        TablePrivatizer(3.0, schema=SCHEMA, n_sampled_features="auto").fit(FRAME),
        CategoricalPrivatizer(3.0, categories=[["x", "y"], [1, 2, 3]], n_sampled_features=1).fit([["x", 1]]),
    ],
)
def test_an_estimator_and_its_policy_have_one_design(fitted):
    policy = policy_from_estimator(fitted, purpose="some columns")
    assert policy.n_sampled == fitted.mechanism_.n_sampled
    assert policy.epsilon == pytest.approx(fitted.privacy_guarantee_.epsilon, abs=1e-12)
    again = Policy.from_json(policy.to_json())
    assert (again, again.n_sampled) == (policy, policy.n_sampled)
