"""Lines that a newcomer wrote, which stopped or misled: what they do now. Each is as short as it was written."""

import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.datasets import load_diabetes, load_wine
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import skldp

pytestmark = pytest.mark.usefixtures("fixed_noise")


def test_a_transformer_of_numbers_is_one_of_targets():
    X, y = load_diabetes(return_X_y=True)
    release = skldp.NumericPrivatizer(4.0, bounds=(0, 350))
    model = TransformedTargetRegressor(Ridge(0.1), transformer=release, check_inverse=False).fit(X, y)
    assert skldp.privacy_guarantee(model).epsilon <= 4.0
    assert skldp.privacy_guarantee(model).unit == "label"


def test_numbers_to_predict_have_a_private_regressor():
    X, y = load_diabetes(return_X_y=True)
    model = skldp.LabelPrivateRegressor(Ridge(0.1), target_mechanism=skldp.TargetPrivatizer(8.0, bounds=(0, 350)))
    assert cross_val_score(model, X, y).mean() > 0.4
    with pytest.raises(ValueError, match="LabelPrivateRegressor"):
        skldp.LabelPrivateClassifier(Ridge()).fit(X, y)


def test_a_list_of_two_pairs_is_not_read_silently():
    X = [[44.0, 60_000.0]]
    with pytest.raises(ValueError, match="one pair per feature"):
        skldp.NumericPrivatizer(bounds=[(0, 100), (1_000, 200_000)]).fit(X)
    frame = pd.DataFrame(X, columns=["age", "income"])
    skldp.NumericPrivatizer(bounds={"age": (0, 100), "income": (1_000, 200_000)}).fit(frame)


def test_a_table_needs_no_scaling_by_hand():
    X, y = load_wine(return_X_y=True)
    bounds = (0, [16, 7, 4, 31, 180, 5, 6, 1, 5, 15, 2, 5, 2_000])
    release = skldp.PrivUnitTransformer(8.0, bounds=bounds, transform_noise=False)
    assert cross_val_score(make_pipeline(release, LogisticRegression()), X, y).mean() > 0.75


# From a file to a scored private pipeline, in at most ten lines each.


def penguins(path):
    people = pd.read_csv(path)
    schema = {
        "island": ["Biscoe", "Dream", "Torgersen"],
        "bill_length_mm": {"type": "interval", "low": 30, "high": 60, "missing": "middle"},
        "bill_depth_mm": (13, 22),
        "sex": {"type": "categories", "values": ["female", "male"], "missing": "category"},
    }
    table = skldp.TablePrivatizer(12.0, schema=schema, transform_noise=False)
    model = make_pipeline(table, StandardScaler(), LogisticRegression()).fit(people[[*schema]], people["species"])
    return model, model.score(people[[*schema]], people["species"])


def tips(path):
    bills = pd.read_csv(path)
    features = make_column_transformer((OneHotEncoder(), ["smoker"]), ("passthrough", ["total_bill", "size"]))
    tip = skldp.TargetPrivatizer(4.0, bounds=(0, 10))
    model = skldp.LabelPrivateRegressor(make_pipeline(features, Ridge()), target_mechanism=tip)
    model.fit(bills.drop(columns="tip"), bills["tip"])
    return model, model.score(bills.drop(columns="tip"), bills["tip"])


def diabetes(path):
    people = pd.read_csv(path)
    X, y = people.drop(columns="target"), people["target"]
    release = skldp.TargetPrivatizer(4.0, bounds=(0, 350))
    model = skldp.LabelPrivateRegressor(Ridge(0.1), target_mechanism=release).fit(X, y)
    return model, model.score(X, y)


def customers(path):
    people = pd.read_csv(path)
    schema = {
        "age": (0, 100),
        "city": {"type": "categories", "values": ["Bonn", "Kiel", "Ulm"], "missing": "category"},
        "since": ("2020-01-01", "2024-12-31"),
    }
    table = skldp.TablePrivatizer(8.0, schema=schema, transform_noise=False)
    model = make_pipeline(table, StandardScaler(), LogisticRegression()).fit(people[[*schema]], people["buys"])
    return model, model.score(people[[*schema]], people["buys"])


def penguin_columns(draw, n=2_000):
    species = draw.integers(0, 3, n)
    home = np.array(["Torgersen", "Dream", "Biscoe"])[species]
    return {
        "island": np.where(draw.uniform(size=n) < 0.8, home, "Dream"),
        "bill_length_mm": np.where(np.arange(n) % 50, np.array([39, 49, 47])[species] + draw.uniform(-6, 6, n), np.nan),
        "bill_depth_mm": np.array([18, 18.5, 15])[species] + draw.uniform(-2, 2, n),
        "sex": np.where(np.arange(n) % 30, draw.choice(["female", "male"], n), None),
        "species": np.array(["Adelie", "Chinstrap", "Gentoo"])[species],
    }


def tip_columns(draw, n=500):
    bill, size = draw.uniform(3, 50, n), draw.integers(1, 7, n)
    tip = (0.5 + 0.12 * bill + 0.2 * size + 0.5 * draw.standard_normal(n)).clip(0, 10)
    return {"total_bill": bill, "smoker": draw.choice(["No", "Yes"], n), "size": size, "tip": tip}


def customer_columns(draw, n=50_000):
    age, city = draw.uniform(18, 90, n), draw.choice(["Bonn", "Kiel", "Ulm"], n)
    return {
        "age": age,
        "city": np.where(np.arange(n) % 7, city, None),
        "since": np.datetime64("2020-01-01") + draw.integers(0, 1_800, n).astype("timedelta64[D]"),
        "buys": (age > 50) ^ (city == "Ulm") & (draw.uniform(size=n) < 0.2),
    }


@pytest.mark.parametrize(
    ("pipeline", "columns", "epsilon", "score"),
    [
        (penguins, penguin_columns, 12, 0.75),
        (tips, tip_columns, 4, 0.6),
        (diabetes, lambda draw: load_diabetes(as_frame=True).frame, 4, 0.3),
        (customers, customer_columns, 8, 0.8),
    ],
)
def test_ten_lines_lead_from_a_file_to_a_scored_private_pipeline(pipeline, columns, epsilon, score, tmp_path):
    pd.DataFrame(columns(np.random.default_rng(0))).to_csv(tmp_path / "people.csv", index=False)
    model, reached = pipeline(tmp_path / "people.csv")
    guarantee = skldp.privacy_guarantee(model)
    assert epsilon - 0.01 < guarantee.epsilon <= epsilon
    assert reached > score
    assert len(inspect.getsource(pipeline).splitlines()) - 1 <= 10
    # What was fitted is kept and copied as a whole.
    assert skldp.privacy_guarantee(pickle.loads(pickle.dumps(model))) == guarantee


@pytest.mark.parametrize(
    ("schema", "match"),
    [
        ({"age": [0, 100]}, r"may mean bounds, for which write \(0, 100\)"),
        ('{"age": [0, 100]}', 'for which write {"type": "interval", "low": 0, "high": 100}'),
        ('{"age": 3}', 'a list of categories such as .* such as {"type": "interval", .* Got 3 instead'),
        ('{"age": ["2020-01-01", "2024-12-31"]}', 'two dates may mean bounds.*"type": "dates", "low": "2020-01-01"'),
        ({"age": ("no", "yes")}, "categories are a list"),
        ({"age": ("2024-12-31", "2020-01-01")}, "the first before the last.*'2024-12-31'"),
        ({"age": ("2020-01-01", 20_000)}, "Bounds of dates must be two"),
        ({"age": {"type": "dates", "low": "2020-01-01"}}, "Bounds of dates must be two"),
        ({"age": ("2020-01-01", "2024-12-31")}, "Dates must be dates, or texts .* Got numbers"),
        ({"years": (0, 100)}, r"misses \['age'\]"),
        ("schema.json", "not the path of a file"),
    ],
)
def test_a_wrong_schema_says_what_to_write(schema, match):
    with pytest.raises(ValueError, match=match):
        skldp.TablePrivatizer(schema=schema).fit(pd.DataFrame({"age": [31.0, 64.0]}))


def test_years_as_texts_are_categories():
    frame = pd.DataFrame({"year": ["2020", "2021"]})
    table = skldp.TablePrivatizer(schema={"year": ["2020", "2021"]}).fit(frame)
    assert table.get_feature_names_out().tolist() == ["year_2020", "year_2021"]


def test_advice_takes_what_a_newcomer_has():
    two_classes = skldp.recommend({"age": (0, 100), "sick": [0, 1]}, "classification", 2.0, 1_000, target="sick")
    assert two_classes.estimator[-1].classes == [0, 1]
    given = skldp.recommend({"age": (0, 100)}, "classification", 2.0, 1_000, target=[0, 1])
    assert str(given) == str(two_classes)
    assert "PrivateLinear" in str(skldp.recommend({0: (0, 100), 1: (0, 9)}, "regression", 2.0, 1_000, target=1))
    with pytest.raises(ValueError, match="Got list instead"):
        skldp.recommend([(0, 100)], "releases", 2.0, 1_000)
    with pytest.raises(ValueError, match="a list of at least two declared classes"):
        skldp.recommend({"age": (0, 100)}, "classification", 2.0, 1_000, target=(0, 1))


@pytest.mark.parametrize("task", ["releases", "means"])
def test_whatever_is_advised_for_an_array_takes_it(task):
    X = np.random.default_rng(0).uniform(-1, 1, (30, 4))
    for option in skldp.recommend(X, task, 4.0, 30).options:
        assert 3.99 < skldp.privacy_guarantee(option.estimator.fit(X)).epsilon <= 4, option.name
        option.estimator.fit(pd.DataFrame(X))
