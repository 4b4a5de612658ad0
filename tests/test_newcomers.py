"""Lines that a newcomer wrote, which stopped or misled: what they do now. Each is as short as it was written."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_wine
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

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


def test_a_table_with_dates_categories_and_missing_values_becomes_a_private_pipeline():
    draw = np.random.default_rng(0)
    n = 50_000
    people = pd.DataFrame(
        {
            "age": draw.uniform(18, 90, n),
            "city": draw.choice(["Bonn", "Kiel", "Ulm"], n),
            "since": np.datetime64("2020-01-01") + draw.integers(0, 1_800, n).astype("timedelta64[D]"),
        }
    )
    buys = (people["age"] > 50) ^ (people["city"] == "Ulm") & (draw.uniform(size=n) < 0.2)
    people.loc[::7, "city"] = None

    schema = {
        "age": (0, 100),
        "city": {"type": "categories", "values": ["Bonn", "Kiel", "Ulm"], "missing": "category"},
        "since": ("2020-01-01", "2024-12-31"),
    }
    table = skldp.TablePrivatizer(8.0, schema=schema, transform_noise=False)
    pipeline = make_pipeline(table, StandardScaler(), LogisticRegression())
    pipeline.fit(people, buys)
    assert skldp.privacy_guarantee(pipeline).epsilon <= 8.0
    assert pipeline.score(people, buys) > 0.8
