"""Policies from estimators: the integers that are sampled, and nothing that was learnt from rows."""

from datetime import date, datetime

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from skldp import (
    BitRandTransformer,
    CategoricalPrivatizer,
    LabelRR,
    NumericPrivatizer,
    PrivUnitTransformer,
    TablePrivatizer,
    TargetPrivatizer,
    policy_from_estimator,
)
from skldp.client import Policy
from skldp.exceptions import LearntDomainWarning
from skldp.papers import LabelLaplace

PEOPLE = pd.DataFrame({"age": [31.0, None], "city": ["Ulm", None], "n": [1, 2], "pay": [3.5, 4.5]})
SCHEMA = {
    "age": {"type": "number", "low": 0, "high": 100, "missing": "middle"},
    "city": {"type": "category", "values": ["Bonn", "Ulm"], "missing": "category"},
    "n": {"type": "integer", "low": 0, "high": 7},
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
def test_a_policy_has_the_integers_of_its_table(parameters):
    fitted = table(**parameters)
    policy = Policy.from_json(policy_from_estimator(fitted, purpose="a test").to_json())
    laws = [getattr(part, "mechanism", part).integer_law for part in fitted.mechanism_.parts]
    assert [field.law for field in policy.fields] == laws
    assert policy.epsilon == pytest.approx(fitted.privacy_guarantee_.epsilon, rel=1e-12)
    assert policy.epsilon <= fitted.epsilon


def test_missing_and_unknown_values_have_stand_ins():
    policy = policy_from_estimator(table(), purpose="a test", units={"age": "years"})
    age, city, n, pay = policy.fields
    assert (age.column.unit, age.column.missing, n.column.whole) == ("years", 50.0, True)
    assert [one.column.encode(None) for one in (age, pay)] == [0.0, 0.0]
    assert (city.column.values, city.column.encode("Paris"), city.column.encode(None)) == (("Bonn", "Ulm", None), 2, 2)
    strict = TablePrivatizer(1.0, schema=SCHEMA | {"city": ["Bonn", "Ulm"]}).fit(PEOPLE.fillna({"city": "Ulm"}))
    city = policy_from_estimator(strict, purpose="a test").fields[1]
    assert (city.column.values, city.column.encode("Paris"), city.column.encode(None)) == (("Bonn", "Ulm"), 0, 0)


@pytest.mark.parametrize("kind", [LabelRR, LabelLaplace])
@pytest.mark.parametrize("classes", [["b", "a", "c"], [0, 1], [True, False]])
def test_labels_have_policies(kind, classes):
    fitted = kind(1.3, classes=classes).fit(classes)
    policy = Policy.from_json(policy_from_estimator(fitted, purpose="a test").to_json())
    assert policy.fields[0].column.values == tuple(fitted.classes_.tolist())
    assert policy.fields[0].law.other_count == fitted.mechanism_.law.other_count
    assert policy.fields[0].law == fitted.mechanism_.integer_law


def test_a_parameter_changed_after_fit_makes_no_policy():
    changed = table().set_params(epsilon=1.0)
    with pytest.raises(ValueError, match="epsilon"):
        policy_from_estimator(changed, purpose="a test")


NUMBERS = np.array([[0.5, -0.5, 0.0]])
MORE_BOUNDS = ([-1.0, -2.0, 0.0], [1.0, 2.0, 8.0])
EVERY = [
    *(
        NumericPrivatizer(4.0, mechanism=name, bounds=MORE_BOUNDS, n_sampled_features="all").fit(NUMBERS)
        for name in ("duchi", "three_outputs", "piecewise", "piecewise_sub", "hybrid", "hybrid_tp", "ldp_fl", "points")
    ),
    *(
        NumericPrivatizer(4.0, mechanism=name, bounds=MORE_BOUNDS, n_sampled_features=2).fit(NUMBERS)
        for name in ("hybrid", "duchi_vector", "points")
    ),
    NumericPrivatizer(1.0, mechanism="duchi_vector", bounds=MORE_BOUNDS).fit(NUMBERS),
    NumericPrivatizer(1.0, mechanism="best", bounds=(0, 5)).fit(pd.DataFrame({"age": [3.0], "size": [2.0]})),
    *(
        BitRandTransformer(e, calibration="exact", debias=True, bounds=MORE_BOUNDS, n_sampled_features=k).fit(NUMBERS)
        for e, k in ((2.0, None), (9.0, 3), (20.0, 2))
    ),
    *(
        CategoricalPrivatizer(2.0, mechanism=name, categories=[list("abcdefghijk"), [3, 1, 2], [True, False]]).fit(
            np.array([["a", 3, True]], dtype=object)
        )
        for name in ("krr", "sue", "oue", "subset", "hashing", "best")
    ),
    *(
        TargetPrivatizer(e, bounds=(10, 90), mechanism=name, prior=prior).fit([20.0, 30.0])
        for e, name, prior in (
            (1.0, "unbiased_bins", None),
            (4.0, "unbiased_bins", [0.1, 0.9]),
            (3.0, "bins", [0.5, 0.5]),
            (2.0, "best", None),
            (2.0, "piecewise", None),
        )
    ),
]


@pytest.mark.parametrize(
    "fitted",
    EVERY,
    ids=lambda one: f"{type(one).__name__}-{one.mechanism}" if hasattr(one, "mechanism") else type(one).__name__,
)
def test_a_policy_of_every_estimator_has_its_integers_and_bounds(fitted):
    policy = Policy.from_json(policy_from_estimator(fitted, purpose="a test").to_json())
    mechanism = fitted.mechanism_
    laws = [part.device_law for part in getattr(mechanism, "parts", [mechanism] * len(policy.fields))]
    assert [field.law for field in policy.fields] == laws
    assert policy.epsilon <= fitted.privacy_guarantee_.epsilon * (1 + 1e-12)
    if not isinstance(fitted, CategoricalPrivatizer):
        columns = [one for field in policy.fields for one in field.columns]
        ends = np.transpose([(one.low, one.high) for one in columns])
        np.testing.assert_array_equal(ends, np.reshape(fitted.bounds_, (2, -1)))
    record = dict.fromkeys(policy.names, 3) if "x0" not in policy.names else {"x0": "a", "x1": 3, "x2": True}
    assert policy.read(policy.release(record)).answers.keys() == {one.name for one in policy.fields}
    assert [field.epsilon for field in policy.permanent(steps=8).fields] == [field.epsilon for field in policy.fields]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_a_column_transformer_and_a_pipeline_have_one_policy():
    frame = pd.DataFrame({"age": [31.0], "pay": [9.0], "city": ["Ulm"], "x": [1], "n": [0.5]})
    columns = ColumnTransformer(
        [
            ("numbers", NumericPrivatizer(3.0, bounds=(0, 100), n_sampled_features=1), ["age", "pay"]),
            ("places", CategoricalPrivatizer(1.0, categories=[["Bonn", "Ulm"]]), ["city"]),
            (
                "rest",
                Pipeline([("first", "passthrough"), ("own", NumericPrivatizer(1.0)), ("scale", StandardScaler())]),
                [4],
            ),
        ]
    ).fit(frame)
    for fitted in (columns, Pipeline([("private", columns), ("scale", StandardScaler())]).fit(frame)):
        policy = Policy.from_json(policy_from_estimator(fitted, purpose="a test", units={"age": "years"}).to_json())
        assert policy.names == ["age", "pay", "city", "n"]
        assert [field.name for field in policy.fields] == ["numbers", "city", "n"]
        assert policy.epsilon == pytest.approx(5.0, rel=1e-6)
        assert policy.fields[0].law == columns.named_transformers_["numbers"].mechanism_.integer_law
        answers = policy.read(policy.release({"age": 3, "pay": 5, "city": "Ulm", "n": 0.5})).answers
        assert answers.keys() == {"numbers", "city", "n"}


def test_dates_and_missing_rules_are_those_of_the_table():
    schema = {
        "since": {"type": "date", "low": "2020-01-01", "high": "2024-12-31", "missing": "middle"},
        "until": ("2020-01-01", "2030-12-31"),
    }
    frame = pd.DataFrame({"since": ["2021-03-01", None], "until": pd.to_datetime(["2022-01-01", "2029-01-01"])})
    fitted = TablePrivatizer(3.0, schema=schema).fit(frame)
    policy = Policy.from_json(policy_from_estimator(fitted, purpose="a test").to_json())
    since, until = policy.fields
    for value in (
        "2021-03-01",
        "2021-03-01T23:59",
        date(2021, 3, 1),
        datetime(2021, 3, 1, 5),
        np.datetime64("2021-03-01"),
        pd.Timestamp("2021-03-01"),
    ):
        numbers = fitted.columns_[0].as_numbers(np.array(["2021-03-01"]))
        assert since.column.encode(value) == pytest.approx((numbers[0] - 19175.0) / 913.0, abs=1e-12)
    assert {since.column.encode(missing) for missing in (None, float("nan"), pd.NaT, np.datetime64("NaT", "D"))} == {
        0.0
    }
    for strange in (20210301, "2021-13-01", "20210301", "2021-03-01x", "2021-W09-1", True, 3.5, ["2021-03-01"]):
        assert until.column.encode(strange) == until.column.encode(None)


def test_what_has_no_policy_is_refused():
    cases = [
        (PrivUnitTransformer(1.0, bounds=(0, 1)).fit([[0.5, 0.5]]), "must have bounds=None"),
        (NumericPrivatizer(1.0, mechanism="laplace").fit([[0.5]]), "unbounded noise"),
        (NumericPrivatizer(1.0, mechanism="gaussian", delta=1e-6).fit([[0.5]]), "unbounded noise"),
        (BitRandTransformer(1.0, calibration="exact").fit([[0.5]]), "calibration='exact' and debias=True"),
        (table(mechanism="laplace"), "has no integer law"),
        (CategoricalPrivatizer(1.0, categories=[["a"], ["a", "b"]]).fit([["a", "b"]]), "2 values; got 1 for 'x0'"),
        (LabelRR(1.0, classes=[0, 1, 2], prior=[0.5, 0.4, 0.1]).fit([0, 1, 2]), "has no integer law"),
        (LabelRR(1.0, classes=[0.5, 1.5]).fit([0.5, 1.5]), "values of a policy must be"),
        (
            ColumnTransformer([("a", NumericPrivatizer(1.0), [0])], remainder="passthrough").fit(NUMBERS),
            "is made from one",
        ),
        (ColumnTransformer([("a", StandardScaler(), [0])]).fit(NUMBERS), "is made from one of"),
        (ColumnTransformer([("a", "drop", [0])]).fit(NUMBERS), "drops all columns"),
        (Pipeline([("scale", StandardScaler()), ("own", NumericPrivatizer(1.0))]).fit(NUMBERS), "is made from one of"),
        (
            ColumnTransformer([("a", NumericPrivatizer(1.0), [0]), ("b", NumericPrivatizer(1.0), [0])]).fit(NUMBERS),
            "must have different names",
        ),
    ]
    for estimator, rule in cases:
        with pytest.raises(ValueError, match=rule):
            policy_from_estimator(estimator, purpose="a test")
    with pytest.raises(ValueError, match="units must be of columns"):
        policy_from_estimator(table(), purpose="a test", units={"wages": "euros"})


def test_released_answers_are_those_of_the_law_in_the_mean():
    """A device's answers, over chosen words, have the person's mean: centre, width and decoding together."""
    policy = policy_from_estimator(table(epsilon=8.0), purpose="a test")
    words = np.random.default_rng(0)
    age = policy.fields[0]
    numbers = []
    for _ in range(4000):
        report = policy.vector({"age": 31.0, "city": "Ulm", "n": 3, "pay": 1.0}, words.bytes(8 * 40))
        numbers.append(age.value(policy.read(report).answers["age"]))
    # The seed is fixed; the standard error of the mean is about 0.6.
    assert abs(np.mean(numbers) - 31.0) < 3.0


def test_learnt_bounds_of_targets_are_not_published():
    with pytest.warns(LearntDomainWarning):
        learnt = TargetPrivatizer(1.0).fit([12.5, 77.25])
    with pytest.raises(ValueError, match="must be declared") as refusal:
        policy_from_estimator(learnt, purpose="a test")
    assert "12.5" not in str(refusal.value)
