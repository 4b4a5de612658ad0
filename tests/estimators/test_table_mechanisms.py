"""TablePrivatizer's other mechanisms: missing numbers as an answer of their own, and every mechanism for categories."""

import itertools
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from laws import THRESHOLD, chi_square_pvalue, log_likelihood
from sklearn.base import clone

from skldp import TablePrivatizer
from skldp.domains._columns import Columns
from skldp.estimators._table_encoding import as_estimates, as_one_hot
from skldp.exceptions import OutOfDomainWarning
from skldp.mechanisms import Column
from skldp.mechanisms._record import MixedRecord
from skldp.mechanisms.categorical._one_hot import CATEGORICAL_MECHANISMS
from skldp.mechanisms.numeric._bounded_features import NumberOrMissing

seeds_expected = pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")
# As of penguins: numbers, categories and dates, all with gaps.
GAPS = {
    "mass": [4200.0, None, 3100.0, 5050.0],
    "island": ["Biscoe", "Dream", None, "Torgersen"],
    "ringed": ["2007-11-11", None, "2008-02-29", "2009-12-01"],
    "flipper": [181.0, 195.0, 210.0, 224.0],
}
SCHEMA = {
    "mass": {"type": "number", "low": 2500, "high": 6500, "missing": "category"},
    "island": {"type": "category", "values": ["Biscoe", "Dream", "Torgersen"], "missing": "category"},
    "ringed": {"type": "date", "low": "2007-01-01", "high": "2009-12-31", "missing": "category"},
    "flipper": (170, 235),
}
NAMES = ["mass", "mass_missing", "island_Biscoe", "island_Dream", "island_Torgersen", "island_missing"]
NAMES += ["ringed", "ringed_missing", "flipper"]
FRAMES = {"pandas": lambda: pd.DataFrame(GAPS), "polars": lambda: pl.DataFrame(GAPS)}
SETS = sorted(set(CATEGORICAL_MECHANISMS) - {"krr"})
with_each_frame = pytest.mark.parametrize("kind", FRAMES)


def days(text):
    return (np.datetime64(text, "D") - np.datetime64(0, "D")).astype(int)


@with_each_frame
@pytest.mark.parametrize(
    "schema",
    [SCHEMA, json.dumps(SCHEMA | {"flipper": {"type": "number", "low": 170, "high": 235}})],
    ids=["dict", "text"],
)
def test_a_missing_number_has_a_column_of_its_own(kind, schema):
    frame = FRAMES[kind]()
    table = TablePrivatizer(8.0, schema=schema, transform_noise=False).fit(frame)
    assert table.get_feature_names_out().tolist() == NAMES
    encoded = table.transform(frame)
    # The declared middle stands for what is missing.
    np.testing.assert_array_equal(encoded[:, 0], [4200, 4500, 3100, 5050])
    np.testing.assert_array_equal(encoded[:, 1], [0, 1, 0, 0])
    np.testing.assert_array_equal(encoded[:, 7], [0, 1, 0, 0])
    assert encoded[1, 6] == days("2007-01-01") / 2 + days("2009-12-31") / 2
    np.testing.assert_array_equal(
        clone(table).set_params(sparse_output=True).fit(frame).transform(frame).toarray(), encoded
    )
    np.testing.assert_array_equal(clone(table).set_params(encoding="estimates").fit(frame).transform(frame), encoded)
    assert isinstance(table.mechanisms_["mass"], NumberOrMissing)


@with_each_frame
def test_a_released_frame_has_gaps_where_the_answer_is_missing(kind):
    frame = FRAMES[kind]()
    plain = TablePrivatizer(8.0, schema=SCHEMA, encoding="columns", transform_noise=False).fit(frame)
    same = plain.transform(frame)
    assert type(same) is type(frame)
    nothing = None if kind == "polars" else np.nan
    assert [repr(mass) for mass in same["mass"].to_list()] == [repr(nothing if m is None else m) for m in GAPS["mass"]]
    masses = [None if mass is None or mass != mass else mass for mass in same["mass"].to_list()]
    assert masses == GAPS["mass"]
    assert [str(day)[:10] for day in same["ringed"].to_list()] == [
        "2007-11-11",
        str(same["ringed"].to_list()[1]),
        *GAPS["ringed"][2:],
    ]
    many = pd.concat([pd.DataFrame(GAPS)] * 400) if kind == "pandas" else pl.concat([pl.DataFrame(GAPS)] * 400)
    with_seed = clone(plain).set_params(seed=3, transform_noise=True)
    with pytest.warns(UserWarning, match="repeatable"):
        released = with_seed.fit_transform(many)
    law = with_seed.mechanisms_["mass"]
    missing = np.array([one is None or one != one for one in released["mass"].to_list()]).reshape(-1, 4)
    for j, chance in enumerate([law.p_given_present, law.p_given_missing] + [law.p_given_present] * 2):
        told = missing[:, j].sum()
        assert chi_square_pvalue([told, 400 - told], [chance, 1 - chance]) > THRESHOLD


def test_the_epsilon_is_the_sum_and_stated_by_column():
    table = TablePrivatizer(8.0, schema=SCHEMA, shares={"mass": 2, "island": 1, "ringed": 1, "flipper": 4}).fit(
        FRAMES["pandas"]()
    )
    assert table.privacy_guarantee_.epsilon <= 8.0
    assert table.epsilons_["mass"] == pytest.approx(2.0, rel=1e-6)
    assert table.epsilons_["mass"] == table.mechanisms_["mass"].guarantee().epsilon <= 2.0
    assert "mass 2, island 1, ringed 1, flipper 4" in table.privacy_guarantee_.basis
    assert [step.name for step in table.privacy_guarantee_.steps] == list(SCHEMA)


def test_a_table_of_an_array_and_of_one_domain():
    rows = np.array([[1.0, np.nan], [0.0, 0.5]])
    schema = {"x0": (0, 1), "x1": {"type": "number", "low": 0, "high": 1, "missing": "category"}}
    table = TablePrivatizer(2.0, schema=schema, transform_noise=False).fit(rows)
    np.testing.assert_array_equal(table.transform(rows), [[1, 0.5, 1], [0, 0.5, 0]])
    np.testing.assert_array_equal(clone(table).set_params(encoding="columns").fit(rows).transform(rows), rows)
    # Of all columns at once there is no number that may be missing.
    with pytest.raises(ValueError, match="NaN"):
        TablePrivatizer(2.0, schema=(0, 1)).fit(rows)


WORDS = pd.DataFrame({"size": list("SMLSM"), "age": [1.0, 20.0, 99.0, 40.0, 7.0], "city": list("aabde")})
OF_WORDS = {"size": ["S", "M", "L"], "age": (0, 100), "city": list("abcde")}


@seeds_expected
@pytest.mark.parametrize("mechanism", SETS)
def test_categories_are_released_by_the_law_that_is_named(mechanism):
    frame = pd.DataFrame({"city": ["b"] * 20_000, "age": 3.0})
    schema = {"city": list("abcde"), "age": (0, 100)}
    table = TablePrivatizer(2.0, schema=schema, category_mechanism={"city": mechanism}, seed=5)
    released = table.fit_transform(frame)
    law = table.mechanisms_["city"]
    expected = law.output_law([[1]])[0]
    for column, chance in enumerate(expected):
        ones = released[:, column].sum()
        assert chi_square_pvalue([ones, 20_000 - ones], [chance, 1 - chance]) > THRESHOLD
    sparse = clone(table).set_params(sparse_output=True).fit_transform(frame)
    np.testing.assert_array_equal(sparse.toarray(), released)
    estimates = clone(table).set_params(encoding="estimates").fit_transform(frame)
    np.testing.assert_allclose(estimates[:, :5], (released[:, :5] - law.q) / (law.p - law.q))


@pytest.mark.parametrize("mechanism", ["krr", "sue", "oue"])
def test_estimates_have_no_bias(mechanism):
    record = MixedRecord(Columns.of({"size": Column(values=("S", "M", "L"))}), (0.7,), (mechanism,))
    columns = TablePrivatizer(schema={"size": ["S", "M", "L"]}).fit(WORDS[["size"]]).columns_
    (law,) = record.parts
    if mechanism == "krr":
        answers, chances = np.arange(3.0)[:, None], law.flip_matrix
    else:
        answers = np.array(list(itertools.product([0.0, 1.0], repeat=3)))
        chances = np.exp([log_likelihood(law, answers, [code]) for code in range(3)])
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    np.testing.assert_allclose(chances @ as_estimates(answers, record, columns), np.eye(3), atol=1e-9)
    assert set(np.unique(as_one_hot(answers, record, columns))) == {0, 1}


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"category_mechanism": "laplace"}, "category_mechanism"),
        ({"category_mechanism": {"city": "laplace"}}, "mechanism of a column must be one of"),
        ({"category_mechanism": {"age": "oue"}}, "must name columns of categories only"),
        ({"category_mechanism": {"name": "oue"}}, "must name columns of categories only"),
        ({"category_mechanism": "oue", "encoding": "columns"}, "answers with one category.*size, city"),
        ({"encoding": "estimates", "sparse_output": True}, "sparse_output=True needs encoding='onehot'"),
    ],
)
def test_refuses_what_has_no_meaning(parameters, match):
    with pytest.raises(ValueError, match=match):
        TablePrivatizer(9.0, schema=OF_WORDS, **parameters).fit(WORDS)


NOTHING = {
    "None": None,
    "nan": float("nan"),
    "single": np.float32("nan"),
    "half": np.float16("nan"),
    "long": np.longdouble("nan"),
    "decimal": Decimal("NaN"),
    "pandas": pd.NA,
    "pandas date": pd.NaT,
    "date": np.datetime64("NaT", "D"),
    "days": np.timedelta64("NaT", "D"),
}


@pytest.mark.parametrize("nothing", NOTHING.values(), ids=NOTHING)
@pytest.mark.parametrize("kind", ["frame", "array"])
@pytest.mark.parametrize(
    ("declared", "given", "middle"),
    [
        ({"type": "number", "low": 2, "high": 10}, 4.0, 6.0),
        ({"type": "date", "low": "1970-01-03", "high": "1970-01-11"}, "1970-01-05", 6.0),
        ({"type": "category", "values": ["a", "b"]}, "b", None),
    ],
    ids=["number", "date", "category"],
)
def test_nothing_is_missing_of_whatever_type_it_is(declared, given, middle, kind, nothing):
    """numpy takes a date that is none, among other objects, for the number -2^63."""
    held = np.array([[given], [nothing]], dtype=object)
    X = held if kind == "array" else pd.DataFrame(held, columns=["x0"])
    with pytest.raises(ValueError, match=r"must not have missing values.* in 1 of 2 rows"):
        TablePrivatizer(schema={"x0": declared}).fit_transform(X)
    said = TablePrivatizer(schema={"x0": declared | {"missing": "category"}}, transform_noise=False).fit(X)
    assert said.transform(X).tolist() == ([[0, 1, 0], [0, 0, 1]] if middle is None else [[4.0, 0], [middle, 1]])
    if middle is not None:
        filled = TablePrivatizer(schema={"x0": declared | {"missing": "middle"}}, transform_noise=False).fit(X)
        assert filled.transform(X).tolist() == [[4.0], [middle]]


def test_what_is_missing_lies_nowhere_outside():
    frame = FRAMES["pandas"]().assign(flipper=[1000.0, 195.0, 210.0, 224.0])
    table = TablePrivatizer(8.0, schema=SCHEMA).fit(frame)
    with pytest.warns(OutOfDomainWarning, match=r"1 of 16 values .*\(1 in 'flipper'\)"):
        table.transform(frame)
