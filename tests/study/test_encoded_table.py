"""A table's columns released one by one in a study, by every mechanism of categories."""

import numpy as np
import pandas as pd
import pytest
from laws import THRESHOLD, chi_square_pvalue

from skldp import TablePrivatizer
from skldp.estimators._table_encoding import TABLE_MECHANISMS, EncodedTablePrivatizer
from skldp.mechanisms import RandomizedResponse
from skldp.mechanisms._record import NumberOrMissing
from skldp.mechanisms.categorical._catalogue import CATEGORICAL_MECHANISMS
from skldp.mechanisms.numeric._bounded_features import BoundedFeatures
from skldp.study import load_study_data
from skldp.study._comparison import compare_mechanisms
from skldp.study._pipelines import ComparisonSettings
from skldp.study._table_files import StudyInputError

# As of penguins: a number, one that may be missing, and categories.
SCHEMA = {
    "flipper": (170, 235),
    "mass": {"type": "interval", "low": 2500, "high": 6500, "missing": "category"},
    "island": ["Biscoe", "Dream", "Torgersen"],
    "sex": {"type": "categories", "values": ["female", "male"], "missing": "category"},
}
ROWS = np.array([[0.5, -0.25, -1, -1, 1, -1], [-1, 0, 1, 1, -1, -1]])


@pytest.fixture(scope="module")
def penguins(tmp_path_factory):
    rng = np.random.default_rng(0)
    n = 300
    frame = pd.DataFrame({"flipper": rng.uniform(170, 235, n), "mass": rng.uniform(2500, 6500, n)})
    frame["island"] = np.where(frame["flipper"] > 210, "Biscoe", rng.choice(["Dream", "Torgersen"], n))
    frame["sex"] = rng.choice(["female", "male"], n)
    frame.loc[::7, "mass"] = np.nan
    frame.loc[::11, "sex"] = None
    frame["species"] = np.where(frame["island"] == "Biscoe", "Gentoo", "Adelie")
    path = tmp_path_factory.mktemp("penguins") / "penguins.csv"
    frame.to_csv(path, index=False)
    return load_study_data(path, target="species", schema=SCHEMA)


def test_what_is_encoded_is_decoded_and_released_by_column():
    table = EncodedTablePrivatizer(6.0, widths=[1, 2, 3], transform_noise=False).fit(ROWS)
    np.testing.assert_array_equal(table.transform(ROWS), [[0.5, -0.25, 0, 0, 1, 0], [-1, 0, 1, 1, 0, 0]])
    kinds = [BoundedFeatures, NumberOrMissing, RandomizedResponse]
    assert [type(part) for part in table.mechanism_.parts] == kinds
    # The very law of the table that is released in earnest.
    frame = pd.DataFrame({"x0": [0.5], "x1": [np.nan], "x2": ["a"]})
    missing = {"type": "interval", "low": -1, "high": 1, "missing": "category"}
    in_earnest = TablePrivatizer(6.0, schema={"x0": (-1, 1), "x1": missing, "x2": list("abc")}).fit(frame)
    assert table.mechanism_.exact_epsilons == in_earnest.mechanism_.exact_epsilons
    assert table.privacy_guarantee_.epsilon == in_earnest.privacy_guarantee_.epsilon
    for call in ("fit", "fit_transform"):
        with pytest.raises(ValueError, match="widths must add up to 6 columns"):
            getattr(EncodedTablePrivatizer(widths=[1, 3]), call)(ROWS)


@pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize("mechanism", CATEGORICAL_MECHANISMS)
def test_estimates_are_those_of_the_released_bits(mechanism):
    table = EncodedTablePrivatizer(2.0, widths=[4], category_mechanism=mechanism, seed=1)
    released = table.fit_transform(np.tile([[-1.0, 1.0, -1.0, -1.0]], (20_000, 1)))
    (law,) = table.mechanism_.parts
    p, q = law.support_probabilities() if mechanism == "krr" else (law.p, law.q)
    bits = released * (p - q) + q
    np.testing.assert_allclose(bits, np.rint(bits), atol=1e-9)
    for column, chance in enumerate([q, p, q, q]):
        ones = np.rint(bits[:, column]).sum()
        assert chi_square_pvalue([ones, 20_000 - ones], [chance, 1 - chance]) > THRESHOLD


def test_every_one_of_them_is_a_row_of_a_study(penguins, fixed_noise):
    assert penguins.feature_names[:3] == ("flipper", "mass", "mass_missing")
    assert penguins.n_filled > 0
    found = compare_mechanisms(penguins, [*TABLE_MECHANISMS, "best"], ComparisonSettings(epsilons=(4.0, 80.0), folds=2))
    assert not found.left_out
    assert found.weaker_than_stated() == []
    for name in TABLE_MECHANISMS:
        few, many = found.curves[name]
        assert few.exact_epsilon == pytest.approx(8.0, rel=1e-6)
        # Of so much nothing is lost, and the island tells the species.
        assert many.score_mean > 0.95
        guarantee = dict(found.curves[name].guarantees[0])["features"]
        sampled = name == "table-sampled"
        assert guarantee.basis.startswith("1 of 4 columns, chosen" if sampled else "sum over 4 columns")


def test_a_table_without_categories_has_no_such_row():
    with pytest.raises(StudyInputError, match=r"table-oue releases the columns of a table with categories"):
        compare_mechanisms(load_study_data("wine"), ["table-oue"], ComparisonSettings(epsilons=(4.0,), folds=2))
