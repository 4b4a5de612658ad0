"""Declared columns become features, and nothing in the rows changes which."""

import pickle

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from skldp import ColumnEncoder, NumericPrivatizer, PrivateLinearRegression, TablePrivatizer, privacy_guarantee
from skldp.exceptions import OutOfDomainWarning

pd = pytest.importorskip("pandas")

SCHEMA = {"age": (0, 100), "city": ["Bonn", "Kiel", "Ulm"], "sick": [False, True]}
PEOPLE = pd.DataFrame({"sick": [True, False], "age": [20, 60], "city": ["Ulm", "Bonn"], "name": ["A", "B"]})
ENCODED = [[-0.6, -1, -1, 1, 1], [0.2, 1, -1, -1, -1]]


@parametrize_with_checks([ColumnEncoder()])
@pytest.mark.filterwarnings("ignore::skldp.exceptions.OutOfDomainWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_a_schema_of_any_form_is_the_same_encoding():
    by_name = ColumnEncoder(SCHEMA).fit(PEOPLE)
    of_json = ColumnEncoder(
        '{"age": {"type": "interval", "low": 0, "high": 100}, "city": ["Bonn", "Kiel", "Ulm"], "sick": [false, true]}'
    )
    by_place = ColumnEncoder({1: (0, 100), 2: ["Bonn", "Kiel", "Ulm"], 0: [False, True]})
    np.testing.assert_allclose(by_name.transform(PEOPLE), ENCODED)
    np.testing.assert_allclose(of_json.fit_transform(PEOPLE), ENCODED)
    np.testing.assert_allclose(by_place.fit_transform(PEOPLE.to_numpy(dtype=object)), ENCODED)
    assert by_name.get_feature_names_out().tolist() == ["age", "city_Bonn", "city_Kiel", "city_Ulm", "sick"]
    np.testing.assert_allclose(ColumnEncoder((0, 100)).fit_transform(PEOPLE[["age"]]), [[-0.6], [0.2]])


def test_the_encoding_of_fit_stays():
    encoder = ColumnEncoder(SCHEMA)
    with pytest.raises(NotFittedError):
        encoder.get_feature_names_out()
    encoder.fit(PEOPLE).set_params(schema={"age": (0, 1_000)})
    np.testing.assert_allclose(encoder.transform(PEOPLE), ENCODED)
    assert len(encoder.get_feature_names_out()) == 5


def test_a_model_behind_it_keeps_its_epsilon():
    model = make_pipeline(ColumnEncoder(SCHEMA), PrivateLinearRegression(epsilon=1, target_bounds=(0, 9)))
    model.fit(pd.concat([PEOPLE] * 500), np.tile([1.0, 2.0], 500))
    assert privacy_guarantee(model).epsilon == pytest.approx(1)


def test_rows_change_nothing():
    moved = PEOPLE.assign(age=[1_000, -5], city=["Rome", "Ulm"])
    assert pickle.dumps(ColumnEncoder(SCHEMA).fit(PEOPLE)) == pickle.dumps(ColumnEncoder(SCHEMA).fit(moved))
    with pytest.warns(OutOfDomainWarning, match=r"3 of 6 values .* \(2 in 'age', 1 in 'city'\)"):
        clipped = ColumnEncoder(SCHEMA).fit_transform(moved)
    assert np.abs(clipped).max() == 1
    with pytest.raises(ValueError, match="schema of the column 'city' is invalid"):
        ColumnEncoder(SCHEMA | {"city": "dtype"}).fit(PEOPLE.astype({"city": "category"}))


@pytest.mark.parametrize(
    "private", [NumericPrivatizer(epsilon=1.0), TablePrivatizer(epsilon=1.0)], ids=lambda one: type(one).__name__
)
def test_it_may_stand_before_a_release(private):
    fitted = make_pipeline(ColumnEncoder(SCHEMA), private, LinearRegression()).fit(PEOPLE, [1.0, 2.0])
    assert privacy_guarantee(fitted).epsilon <= 1
