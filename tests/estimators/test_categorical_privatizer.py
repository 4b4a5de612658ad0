"""CategoricalPrivatizer: columns of any type in, one-hot out, frequencies back."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from joblib import Parallel, delayed
from laws import THRESHOLD, chi_square_pvalue
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OneHotEncoder

from skldp.estimators import _base as base
from skldp.estimators._categorical import CategoricalPrivatizer
from skldp.exceptions import LearntDomainWarning, SeededNoiseWarning
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


@each
@seeds_expected
def test_released_columns_follow_their_laws(mechanism):
    privatizer = declared(epsilon=2.0, mechanism=mechanism, seed=0).fit(ROWS)
    released = privatizer.transform(np.tile(np.array([["green", 2]], dtype=object), (50_000, 1)))
    for column, part, code in zip(privatizer.mechanism_.parts, privatizer.mechanism_.places, (1, 1), strict=True):
        for j in range(column.n_classes):
            ones = released[:, part][:, j].sum()
            p = column.p if j == code else column.q
            assert chi_square_pvalue([ones, 50_000 - ones], [p, 1 - p]) > THRESHOLD
    if mechanism == "krr":
        np.testing.assert_array_equal(released.sum(axis=1), 2)


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


def test_frequencies_refuse_what_was_not_released():
    privatizer = declared().fit(ROWS)
    for bad in (np.zeros((2, 4)), np.full((2, 5), 0.5)):
        with pytest.raises(ValueError, match="zeros and ones in 5 columns"):
            privatizer.estimate_frequencies(bad)


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


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), True, "1", None])
@pytest.mark.parametrize("skip", [False, True])
def test_refuses_a_bad_epsilon(epsilon, skip):
    with sklearn.config_context(skip_parameter_validation=skip), pytest.raises(ValueError, match="epsilon"):
        declared(epsilon=epsilon).fit_transform(ROWS)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_learns_no_category_from_nan_or_infinity(bad):
    with sklearn.config_context(assume_finite=True):
        for X in ([[1.0], [bad]], pd.DataFrame({"a": [1.0, bad]})):
            with pytest.raises(ValueError, match=r"NaN|infinity|not missing"):
                CategoricalPrivatizer().fit(X)


def test_a_frame_without_rows_is_refused():
    with pytest.raises(ValueError, match="at least one row"):
        declared().fit(pd.DataFrame({"a": [], "b": []}))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_set_output_and_column_transformer(library):
    frame = pd.DataFrame(ROWS, columns=["colour", "size"])
    if library == "polars":
        frame = pl.from_pandas(frame)
    transformer = make_column_transformer((declared(), ["colour", "size"])).set_output(transform=library)
    released = transformer.fit_transform(frame)
    assert type(released) is type(frame)
    assert released.columns[0] == "categoricalprivatizer__colour_blue"


def release(privatizer, X):
    return privatizer.transform(X).tobytes()


@pytest.mark.slow
def test_pickled_copies_in_four_processes_release_distinct_noise():
    X = np.array(ROWS * 300, dtype=object)
    fitted = pickle.dumps(declared().fit(X))
    drawn = Parallel(n_jobs=4)(delayed(release)(pickle.loads(fitted), X) for _ in range(4))
    assert len(set(drawn)) == 4


def test_a_seed_repeats_the_noise_and_says_so():
    X = np.array(ROWS * 300, dtype=object)
    with pytest.warns(SeededNoiseWarning):
        first, second = (declared(seed=3).fit_transform(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert declared(seed=3).fit(X).privacy_guarantee_.seeded
