"""CategoricalPrivatizer: columns of any type in, one-hot out, frequencies back."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.preprocessing import OneHotEncoder

from skldp.estimators import _base as base
from skldp.estimators._categorical import CategoricalPrivatizer
from skldp.exceptions import LearntDomainWarning
from skldp.mechanisms.categorical._one_hot import CATEGORICAL_MECHANISMS

MECHANISMS = [*CATEGORICAL_MECHANISMS, "best"]
each = pytest.mark.parametrize("mechanism", MECHANISMS)
seeds_expected = pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")
COLOURS, SIZES = ["red", "green", "blue"], [1, 2]
ROWS = [["red", 1], ["blue", 2], ["green", 1]]


def declared(**parameters):
    return CategoricalPrivatizer(**({"categories": [COLOURS, SIZES]} | parameters))


@each
@pytest.mark.parametrize(
    "X",
    [
        ROWS,
        np.array(ROWS, dtype=object),
        pd.DataFrame(ROWS, columns=["colour", "size"]),
        pd.DataFrame(ROWS, columns=["colour", "size"]).astype("category"),
        pl.DataFrame(ROWS, schema=["colour", "size"], orient="row"),
    ],
    ids=["list", "object", "pandas", "pandas-category", "polars"],
)
def test_without_noise_it_is_the_one_hot_encoder(mechanism, X):
    privatizer = declared(mechanism=mechanism, transform_noise=False).fit(X)
    encoder = OneHotEncoder(categories=[sorted(COLOURS), SIZES], sparse_output=False).fit(np.array(ROWS, dtype=object))
    np.testing.assert_array_equal(privatizer.transform(X), encoder.transform(np.array(ROWS, dtype=object)))
    names = ["colour", "size"] if hasattr(X, "columns") else None
    assert privatizer.get_feature_names_out().tolist() == encoder.get_feature_names_out(names).tolist()


@each
def test_the_budget_is_that_of_the_whole_record(mechanism):
    guarantee = declared(epsilon=2.0, mechanism=mechanism).fit(ROWS).privacy_guarantee_
    assert guarantee.unit == "record"
    assert -1e-9 <= guarantee.epsilon - 2.0 <= 0
    assert guarantee.per_feature == pytest.approx(1.0, abs=1e-9)


@pytest.mark.few(3)
@each
@seeds_expected
def test_frequencies_come_out_within_their_standard_errors(mechanism):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.choice(COLOURS, 50_000, p=[0.7, 0.2, 0.1]), rng.choice(SIZES, 50_000)]).astype(object)
    X[:, 1] = X[:, 1].astype(int)
    privatizer = declared(mechanism=mechanism, seed=1)
    estimates = privatizer.estimate_frequencies(privatizer.fit_transform(X))
    for estimate, column in zip(estimates, X.T, strict=True):
        truth = [np.mean(column == value) for value in estimate.categories]
        # Two-sided normal tests at THRESHOLD.
        assert (np.abs(estimate.frequencies - truth) < 4.9 * estimate.standard_errors).all()
    wider = privatizer.estimate_frequencies(privatizer.transform(X), of="population")
    assert (wider[0].standard_errors > estimates[0].standard_errors).all()


def test_learning_the_categories_warns():
    with pytest.warns(LearntDomainWarning, match="categories="):
        fitted = CategoricalPrivatizer().fit(ROWS)
    assert [values.tolist() for values in fitted.categories_] == [sorted(COLOURS), SIZES]


@pytest.mark.parametrize(
    ("value", "column"), [(["pink", 1], "colour"), (["red", 3], "size"), ([None, 1], "colour"), (["red", 1.5], "size")]
)
def test_an_unseen_value_is_an_error_that_names_its_column_and_nothing_is_released(value, column, monkeypatch):
    frame = pd.DataFrame(ROWS, columns=["colour", "size"])
    fitted = declared().fit(frame)
    monkeypatch.setattr(base, "noise_from", lambda _: pytest.fail("noise was drawn"))
    bad = pd.DataFrame([*ROWS, value], columns=["colour", "size"])
    for call in (fitted.transform, fitted.fit, fitted.fit_transform):
        with pytest.raises(ValueError, match=f"Column {column} must hold only the declared"):
            call(bad)


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"categories": [COLOURS]}, "one list for each of the 2 columns"),
        ({"categories": [COLOURS, []]}, "categories of column x1"),
        ({"categories": [COLOURS, [1, 1]]}, "must be distinct"),
        ({"categories": "learn"}, "categories"),
        ({"mechanism": "rappor"}, "mechanism"),
        ({"transform_noise": 2}, "transform_noise"),
    ],
)
def test_refuses_bad_parameters(parameters, match):
    with pytest.raises(ValueError, match=match):
        declared(**parameters).fit(ROWS)
