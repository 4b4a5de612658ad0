"""A pipeline for a declared table, in the ways in which scikit-learn's users call one."""

import json

import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, cross_val_score

from skldp import (
    PrivateDiscriminant,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    privacy_guarantee,
    private_model,
)

pd = pytest.importorskip("pandas")
pytestmark = [
    pytest.mark.usefixtures("fixed_noise"),
    pytest.mark.filterwarnings("ignore::skldp.exceptions.TooFewPeopleWarning"),
    pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning"),
]

SCHEMA = {
    "age": (0, 100),
    "city": ["Bonn", "Kiel", "Ulm"],
    "pay": (0, 10),
    "sick": {"type": "category", "values": ["no", "yes"]},
}


def people(n=400):
    rng = np.random.default_rng(0)
    age, city = rng.uniform(0, 100, n), rng.choice(["Bonn", "Kiel", "Ulm"], n)
    pay = np.clip(age / 12 + (city == "Ulm") + rng.normal(0, 0.3, n), 0, 10)
    sick = np.where(age + rng.normal(0, 10, n) > 50, "yes", "no")
    return pd.DataFrame({"number": range(n), "age": age, "city": city, "pay": pay, "sick": sick})


@pytest.mark.parametrize(
    ("target", "model", "kind"),
    [
        ("pay", "auto", PrivateLinearRegression),
        ("pay", "linear", PrivateLinearRegression),
        ("sick", "auto", PrivateLogisticRegression),
        ("city", "logistic", PrivateLogisticRegression),
        ("sick", "discriminant", PrivateDiscriminant),
    ],
)
def test_the_target_decides_the_model_and_the_encoder_ignores_it(target, model, kind):
    frame = people()
    made = private_model(SCHEMA, target, 2.0, model=model, seed=0)
    assert list(made.named_steps) == ["encoder", "model"]
    assert type(made[-1]) is kind
    assert (is_regressor if target == "pay" else is_classifier)(made)
    without = made.fit(frame.drop(columns=[target, "number"]), frame[target]).predict(frame)
    assert (without == made.fit(frame, frame[target]).predict(frame)).all()
    assert target not in made[0].columns_
    assert 1.99 < privacy_guarantee(made).epsilon <= 2


def test_a_domain_is_a_target_that_the_table_does_not_hold():
    features = {name: SCHEMA[name] for name in ("age", "city")}
    frame = people()
    for given, y in (((0, 10), frame["pay"]), (["no", "yes"], frame["sick"])):
        name = y.name
        own, named = (
            private_model(s, t, 2.0, seed=0) for s, t in ((features, given), (features | {name: given}, name))
        )
        assert (own.fit(frame, y).predict(frame) == named.fit(frame, y).predict(frame)).all()
    binary = private_model(features, [0, 1], model="logistic")
    assert binary[-1].classes == [0, 1]


def test_polars_and_json_are_frames_and_schemas_too():
    polars = pytest.importorskip("polars")
    frame = people()
    table, schema = (
        polars.from_pandas(frame),
        json.dumps({"age": {"type": "number", "low": 0, "high": 100}, "city": SCHEMA["city"]}),
    )
    for target, y in (((0, 10), "pay"), (["no", "yes"], "sick")):
        made = private_model(schema, target, seed=0)
        of_pandas = made.fit(frame, frame[y]).predict(frame)
        assert (made.fit(table, table[y]).predict(table) == of_pandas).all()


def test_searches_and_scores_go_through_the_pipeline():
    frame = people(5_000)
    assert cross_val_score(private_model(SCHEMA, "sick", 8.0, seed=0), frame, frame["sick"], cv=3).min() > 0.8
    search = GridSearchCV(private_model(SCHEMA, "pay", seed=0), {"model__epsilon": [0.01, 16.0]}, cv=2)
    assert search.fit(frame, frame["pay"]).best_params_ == {"model__epsilon": 16.0}
    assert 15.9 < privacy_guarantee(search.best_estimator_).epsilon <= 16


def test_intervals_of_coefficients_need_no_further_choice():
    made = private_model(SCHEMA, "pay", inference=True, protocol="once")
    assert made[0].drop == "first"
    assert made[-1].inference
    assert private_model(SCHEMA, "pay")[0].drop is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"target": "pays"}, "target must be a column of the schema, or its domain; got 'pays'. Did you mean 'pay'"),
        ({"target": None}, "target must be a column of the schema, or its domain; got None"),
        ({"schema": people(3)}, "schema must be a dict by column or JSON text; got DataFrame"),
        ({"schema": {"pay": (0, 1)}}, "schema must declare at least one column beside the target"),
        ({"epsilon": 0}, "epsilon must be"),
        ({"model": "linea"}, "model must be one of .*Did you mean 'linear'"),
        ({"model": "logistic"}, "target of a classification must be a list"),
        ({"target": "sick", "model": "linear"}, "target of a regression must be numbers"),
        ({"target": ("2020-01-01", "2024-01-01")}, "target of a regression must be numbers"),
        ({"protocoll": "once"}, "other ones of PrivateLinearRegression; got 'protocoll'. Did you mean 'protocol'"),
        ({"bounds": (0, 1)}, "other ones of PrivateLinearRegression; got 'bounds'. The schema sets it"),
        ({"target": "sick", "inference": True}, "other ones of PrivateLogisticRegression; got 'inference'"),
    ],
)
def test_parameters_that_do_not_fit_are_refused_at_once(given, message):
    with pytest.raises(ValueError, match=message):
        private_model(**{"schema": SCHEMA, "target": "pay"} | given)


def test_data_that_do_not_fit_are_named_by_column():
    frame, made = people(), private_model(SCHEMA, "pay")
    with pytest.raises(ValueError, match="X must have each declared column once; got none or several for 'city'"):
        made.fit(frame.drop(columns="city"), frame["pay"])
    with pytest.raises(ValueError, match="Column 'city' must hold only the declared 3 values"):
        made.fit(frame.assign(city="Rom"), frame["pay"])
