"""Policies from estimators: the integers that are sampled, and nothing that was learnt from rows."""

import numpy as np
import pandas as pd
import pytest

from skldp import LabelLaplace, LabelRR, NumericPrivatizer, Policy, TablePrivatizer
from skldp.exceptions import LearntDomainWarning
from skldp.mechanisms import integer_law

PEOPLE = pd.DataFrame({"age": [31.0, None], "city": ["Ulm", None], "n": [1, 2], "pay": [3.5, 4.5]})
SCHEMA = {
    "age": {"type": "interval", "low": 0, "high": 100, "missing": "middle"},
    "city": {"type": "categories", "values": ["Bonn", "Ulm"], "missing": "category"},
    "n": {"type": "integers", "low": 0, "high": 7},
    "pay": (0.1, 9.9),
}


def table(epsilon=7.3, **more):
    return TablePrivatizer(epsilon, schema=SCHEMA, **more).fit(PEOPLE)


TABLES = [
    {},
    {"handle_unknown": "missing"},
    {"shares": {"age": 1, "city": 0.3, "n": 2.7, "pay": 1}},
    {"mechanism": "duchi", "epsilon": 0.1},
    {"mechanism": "three_outputs"},
    {"mechanism": "piecewise_opt"},
    {"epsilon": 1.7},
]


@pytest.mark.parametrize("parameters", TABLES, ids=str)
def test_a_round_trip_changes_no_integer(parameters):
    fitted = table(**parameters)
    policy = Policy.from_json(Policy.from_estimator(fitted, purpose="a test").to_json())
    again = policy.to_estimator().fit(PEOPLE)
    assert Policy.from_estimator(again, purpose="a test") == policy
    for before, after in zip(fitted.mechanism_.parts, again.mechanism_.parts, strict=True):
        assert integer_law(getattr(before, "mechanism", before)) == integer_law(getattr(after, "mechanism", after))
    assert policy.epsilon == pytest.approx(fitted.privacy_guarantee_.epsilon, rel=1e-12)
    assert policy.epsilon <= fitted.epsilon


def test_a_policy_treats_values_as_the_table_does():
    policy = Policy.from_estimator(table(handle_unknown="missing"), purpose="a test", units={"age": "years"})
    age, city, n, pay = policy.fields
    assert (age.unit, age.missing, pay.missing, n.whole) == ("years", 50.0, None, True)
    assert (city.values, city.encode("Paris")) == (("Bonn", "Ulm", None), 2)
    strict = Policy.from_estimator(table(), purpose="a test").fields[1]
    with pytest.raises(ValueError, match="must be one of its values"):
        strict.encode("Paris")


@pytest.mark.parametrize("kind", [LabelRR, LabelLaplace])
@pytest.mark.parametrize("classes", [["b", "a", "c"], [0, 1], [True, False]])
def test_labels_have_policies(kind, classes):
    fitted = kind(1.3, classes=classes).fit(classes)
    policy = Policy.from_json(Policy.from_estimator(fitted, purpose="a test").to_json())
    assert policy.fields[0].values == tuple(fitted.classes_.tolist())
    assert policy.fields[0].law.other_count == fitted.mechanism_.other_count
    again = policy.to_estimator().fit(classes)
    assert type(again) is kind
    assert again.mechanism_ == fitted.mechanism_


def test_what_was_learnt_from_rows_is_not_published():
    with pytest.warns(LearntDomainWarning):
        labels = LabelRR(1.0).fit(["a secret", "another"])
    with pytest.raises(ValueError, match="must be declared") as refusal:
        Policy.from_estimator(labels, purpose="a test")
    assert "secret" not in str(refusal.value)
    frame = PEOPLE.astype({"city": "category"})
    with pytest.warns(LearntDomainWarning):
        learnt = TablePrivatizer(1.0, schema=SCHEMA | {"city": "dtype"}).fit(frame.fillna({"city": "Ulm"}))
    with pytest.raises(ValueError, match="must be declared"):
        Policy.from_estimator(learnt, purpose="a test")


def test_a_parameter_changed_after_fit_makes_no_policy():
    changed = table().set_params(epsilon=1.0)
    with pytest.raises(ValueError, match="epsilon"):
        Policy.from_estimator(changed, purpose="a test")


def test_what_has_no_policy_is_refused():
    cases = [
        (NumericPrivatizer(1.0).fit([[0.5]]), "is made from a TablePrivatizer"),
        (table(mechanism="laplace"), "must be of integers"),
        (LabelRR(1.0, classes=[0, 1, 2], prior=[0.5, 0.4, 0.1]).fit([0, 1, 2]), "must be of integers"),
        (LabelRR(1.0, classes=[0.5, 1.5]).fit([0.5, 1.5]), "values must be a tuple of texts"),
    ]
    dates = pd.DataFrame({"since": ["2021-03-01"]})
    cases.append((TablePrivatizer(1.0, schema={"since": ("2020-01-01", "2024-12-31")}).fit(dates), "Got dates"))
    for estimator, rule in cases:
        with pytest.raises(ValueError, match=rule):
            Policy.from_estimator(estimator, purpose="a test")
    with pytest.raises(ValueError, match="units must be of columns"):
        Policy.from_estimator(table(), purpose="a test", units={"wages": "euros"})


def test_what_is_passed_to_a_policy_can_be_changed_without_it():
    policy = Policy.from_estimator(table(), purpose="a test")
    asked = {"epsilon": "7.3", "mechanism": "best", "weights": ["1.0", "1.0", "1.0", "1.0"]}
    own = Policy("a test", policy.fields, None, asked)
    asked["weights"][0] = "2.0"
    assert own == policy
    assert hash(own) == hash(policy)
    assert Policy.from_json(own.to_json()) == own


def test_asked_parameters_that_give_other_integers_are_refused():
    policy = Policy.from_estimator(table(), purpose="a test")
    with pytest.raises(ValueError, match="must give the integers of the policy"):
        Policy(policy.purpose, policy.fields, None, policy.asked | {"epsilon": "7.4"}).to_estimator()
    with pytest.raises(ValueError, match="Got one written by hand"):
        Policy(policy.purpose, policy.fields).to_estimator()


def test_released_answers_are_those_of_the_law_in_the_mean():
    """A device's answers, over chosen words, have the person's mean: centre, width and decoding together."""
    policy = Policy.from_estimator(table(epsilon=8.0), purpose="a test")
    words = np.random.default_rng(0)
    age = policy.fields[0]
    numbers = []
    for _ in range(4000):
        report = policy.vector({"age": 31.0, "city": "Ulm", "n": 3, "pay": 1.0}, words.bytes(8 * 40))
        numbers.append(age.value(policy.read(report).answers["age"]))
    # The seed is fixed; the standard error of the mean is about 0.6.
    assert abs(np.mean(numbers) - 31.0) < 3.0
