"""Recommendations follow from laws and declarations alone, and what is recommended is ready."""

import math
import pickle
import re
import warnings

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LinearRegression

from skldp import privacy_guarantee, recommend
from skldp.exceptions import LearntDomainWarning, OutOfDomainWarning, SeededNoiseWarning, TooFewPeopleWarning
from skldp.learning import ClassificationProtocol, n_people_needed, sufficiency
from skldp.mechanisms.categorical._catalogue import make_categorical_mechanism
from skldp.mechanisms.vector._privunit import PrivUnitBall

pd = pytest.importorskip("pandas")

PEOPLE = {
    "age": (0, 100),
    "city": ["Bonn", "Köln", "Ulm"],
    "size": {"type": "categories", "values": ["S", "M", "L"], "ordered": True},
    "sick": [False, True],
    "dose": {"type": "interval", "low": -2, "high": 2, "missing": "middle"},
}
ROWS = pd.DataFrame(
    {
        "age": np.linspace(0, 100, 60),
        "city": ["Ulm", "Bonn", "Köln"] * 20,
        "size": ["M", "S", "L", "L"] * 15,
        "sick": [True, False] * 30,
        "dose": [0.5, None, -2.0] * 20,
    }
)
TABLE = np.zeros((2, 13))


@pytest.mark.parametrize(
    ("task", "target"),
    [
        ("regression", "age"),
        ("classification", "sick"),
        ("classification", "city"),
        ("releases", None),
        ("means", None),
    ],
)
def test_what_is_recommended_is_ready_and_keeps_the_epsilon(fixed_noise, task, target):
    advice = recommend(PEOPLE, task, 2.0, len(ROWS), target=target)
    X = ROWS if target is None else ROWS.drop(columns=target)
    for option in advice.options:
        estimator = pickle.loads(pickle.dumps(option)).estimator
        with warnings.catch_warnings():
            # Nothing is learnt from the rows but what is released.
            warnings.simplefilter("error", LearntDomainWarning)
            warnings.simplefilter("error", OutOfDomainWarning)
            warnings.simplefilter("ignore", TooFewPeopleWarning)
            fitted = estimator.fit(X, None if target is None else ROWS[target])
        assert 1.99 < privacy_guarantee(fitted).plain_epsilon <= 2
    # What is fitted through the attribute stays fitted.
    assert advice.estimator is advice.options[0].estimator


def test_a_table_shows_its_columns_and_no_value():
    for table in (np.full((2, 3), np.nan), pd.DataFrame(np.full((2, 3), np.nan), columns=list("abc"))):
        advice = recommend(table, "releases", 4.0, 100)
        assert advice.options[0].name == "PrivUnitTransformer"
        X = pd.DataFrame(np.zeros((5, 3)), columns=getattr(table, "columns", None))
        assert 3.99 < privacy_guarantee(advice.estimator.fit(X)).plain_epsilon <= 4


def test_a_column_of_recommended_releases_is_predicted_from_the_others():
    rows = np.random.default_rng(0).uniform(-1, 1, (10_000, 3))
    table = np.column_stack([5 + 5 * rows, 24 + rows @ [3.0, -2.0, 1.0]])
    schema = {f"x{i}": (0, 10) for i in range(3)} | {"y": (10, 30)}
    release = recommend(schema, "releases", 100.0, len(table)).estimator
    released = np.asarray(release.fit_transform(pd.DataFrame(table, columns=list(schema))))
    assert type(release).__name__ == "PrivUnitTransformer"
    model = LinearRegression().fit(released[:, :3], released[:, 3])
    assert model.score(rows, (table[:, 3] - 20) / 10) > 0.99


def test_a_fit_is_judged_by_its_sufficiency_and_says_how_many_people_it_takes():
    for n, d, epsilon in ((50_000, 13, 1.0), (5_000, 13, 1.0)):
        in_rounds, once = recommend(np.zeros((1, d)), "regression", epsilon, n, target=(0, 9)).options
        assert in_rounds.n_needed == math.ceil(18 * n / sufficiency(n, d, epsilon))
        assert once.n_needed == math.ceil(30 * n / sufficiency(n, d, epsilon))
        for option in (in_rounds, once):
            assert option.figure == option.n_needed / (option.n_needed + n)
    few = recommend(TABLE, "regression", 1.0, 200, target=(0, 9))
    assert f"Too few people for so many features: a model needs at least {n_people_needed(13, 1.0):,}" in few.reason
    assert [option.figure for option in few.options] == [1, 1]
    assert in_rounds.estimator[-1].get_params()["target_bounds"] == (0.0, 9.0)


def test_the_range_holds_the_predicted_loss():
    advice = recommend(TABLE, "regression", 2.0, 20_000, target=(0, 9))
    low, high = map(float, re.search(r"privacy took ([\d.]+) to ([\d.]+) of the variance", advice.reason).groups())
    people = advice.options[0].n_needed
    assert low == pytest.approx(people / 5 / (people / 5 + 20_000), rel=0.1)
    assert high == pytest.approx(5 * people / (5 * people + 20_000), rel=0.1)


def test_the_discriminant_is_for_people_who_are_too_few_for_a_logistic_regression():
    classes = {"target": ["a", "b", "c"]}
    enough = ClassificationProtocol(13, 1, 3, epsilon=2.0, low=[-1] * 13, high=[1] * 13).n_needed
    for n, name in ((enough + 10, "PrivateLogisticRegression"), (enough - 10, "PrivateDiscriminant")):
        advice = recommend(TABLE, "classification", 2.0, n, **classes)
        assert advice.options[0].name == name
        assert advice.options[0].figure < advice.options[1].figure
    assert "Too few people" in recommend(TABLE, "classification", 0.1, 20, **classes).reason


@pytest.mark.few(1)
@pytest.mark.parametrize(("d", "epsilon"), [(10, 4.0), (30, 4.0)])
def test_the_recommended_model_of_classes_is_not_the_worse_one(d, epsilon):
    rng = np.random.default_rng(0)
    X, slopes = rng.uniform(-1, 1, (8_000, d)), rng.normal(size=d)
    y = rng.uniform(size=len(X)) < expit(X @ slopes * 3 * math.sqrt(3) / np.linalg.norm(slopes))
    advice = recommend(X, "classification", epsilon, 4_000, target=[False, True])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        warnings.simplefilter("ignore", TooFewPeopleWarning)
        first, second = (
            option.estimator.set_params(**{f"{option.name.lower()}__seed": 0}).fit(X[:4_000], y[:4_000])
            for option in advice.options
        )
    assert first.score(X[4_000:], y[4_000:]) > second.score(X[4_000:], y[4_000:]) - 0.02


def test_public_rows_are_mentioned_where_they_would_help():
    wide, narrow = (recommend(np.zeros((1, d)), "classification", 4.0, 2_000, target=[0, 1]).reason for d in (50, 3))
    assert re.search(r"With 200 public rows .* knows their covariance and has as little noise from \d\d?% of", wide)
    assert "public" not in narrow


def test_a_model_takes_missing_values_and_dates_and_refuses_undeclared_categories():
    schema = {
        "age": {"type": "interval", "low": 0, "high": 100, "missing": "category"},
        "city": {"type": "categories", "values": ["Bonn", "Köln", "Ulm"], "missing": "category"},
        "since": ("2020-01-01", "2024-12-31"),
    }
    people = pd.DataFrame(
        {
            "extra": range(4),
            "age": [0.0, None, 500.0, 50.0],
            "city": ["Köln", None, "Rom", "Ulm"],
            "since": ["2020-01-01", "2024-12-31", "2020-01-01", "2024-12-31"],
        }
    )
    model = recommend(schema, "classification", 4.0, 10_000, target=["a", "b"]).estimator
    assert "NumberColumn('since', 2020-01-01 to 2024-12-31, missing: refuse)" in repr(model)
    with pytest.raises(ValueError, match="Column 'city' must hold only the declared 3 values"):
        model[0].fit_transform(people)
    people["city"] = ["Köln", None, None, "Ulm"]
    with pytest.warns(OutOfDomainWarning, match=r"1 of 12 values .*1 in 'age'"):
        encoded = model[0].fit_transform(people)
    names = ["age", "age_missing", "city_Bonn", "city_Köln", "city_Ulm", "city_missing", "since"]
    assert model[0].get_feature_names_out().tolist() == names
    np.testing.assert_array_equal(
        encoded,
        [
            [-1, -1, -1, 1, -1, -1, -1],
            [0, 1, -1, -1, -1, 1, 1],
            # Out of its bounds.
            [1, -1, -1, -1, -1, 1, -1],
            [0, -1, -1, -1, 1, -1, 1],
        ],
    )
    with pytest.raises(ValueError, match=r"'dose' must not have missing values .*\"missing\": \"category\""):
        recommend({"dose": (0, 1)}, "regression", 4.0, 100, target=(0, 1)).estimator.fit(ROWS, ROWS["age"])
    with pytest.raises(ValueError, match="must have each declared column once; got none or several for 'weight'"):
        recommend({"weight": (0, 1)}, "regression", 4.0, 100, target=(0, 1)).estimator.fit(ROWS, ROWS["age"])


def test_releases_are_judged_by_noise_over_signal():
    figures = {option.name: option.figure for option in recommend(TABLE, "releases", 8.0, 100).options}
    # The variance is linear in a feature's square, whose mean between -1 and 1 is 1/3.
    variance = PrivUnitBall(13, 8.0, math.sqrt(13)).variance(np.full((1, 13), math.sqrt(1 / 3)))
    assert figures["PrivUnitTransformer"] == pytest.approx(3 * variance[0, 0])
    # Of two categories as 1 and -1: the answer agrees with probability expit(1).
    table = {o.name: o for o in recommend({"city": ["a", "b"]}, "releases", 1.0, 100).options}["TablePrivatizer"]
    assert table.figure == pytest.approx(1 / (2 * expit(1) - 1) ** 2 - 1, rel=1e-9)


def test_errors_fall_with_the_root_of_the_people():
    for task, schema in (
        ("means", np.zeros((1, 4))),
        ("frequencies", {"c": list("abcd"), "d": ["x"]}),
        ("frequencies", PEOPLE),
        ("questions", TABLE),
    ):
        few, many = (recommend(schema, task, 2.0, n).options[0].figure for n in (100, 10_000))
        assert few == pytest.approx(10 * many)
    # Duchi's two answers of one number at a small epsilon.
    assert recommend(TABLE[:, :1], "means", 0.5, 1).options[0].figure == pytest.approx(1 / math.tanh(0.25), rel=1e-6)
    (asked,) = recommend(TABLE, "questions", 3.0, 400, n_questions=3).options
    assert asked.figure == pytest.approx(1 / math.tanh(0.5) / 20, rel=1e-6)
    assert 3 * asked.estimator.epsilon <= asked.estimator.total_epsilon == 3.0


def test_frequencies_are_those_of_every_mechanism_with_the_best_first():
    advice = recommend({"city": list("abcdefgh"), "size": ["S", "L"]}, "frequencies", 2.0, 1_000)
    assert advice.options[0].name == "CategoricalPrivatizer, best, 1 of 2 columns"
    assert advice.options[0].figure <= 1.05**0.5 * min(option.figure for option in advice.options) * (1 + 1e-9)
    fitted = advice.estimator.fit([["c", "L"]])
    assert 1.99 < privacy_guarantee(fitted).plain_epsilon <= 2


def test_people_are_asked_as_many_columns_as_serve_best():
    schema = {f"c{j}": list("abcd") for j in range(5)}
    few, many = (recommend(schema, "frequencies", epsilon, 1_000).options[0] for epsilon in (1.0, 30.0))
    assert few.name == "CategoricalPrivatizer, best, 1 of 5 columns"
    one = make_categorical_mechanism("best", 1.0, 4).worst_case_variance
    # A fifth of the people, of whom the others are a random sample.
    assert few.figure == pytest.approx(math.sqrt((5 * one + 4 * 3 / 16) / 1_000))
    assert few.figure < math.sqrt(make_categorical_mechanism("best", 0.2, 4).worst_case_variance / 1_000)
    assert many.name == "CategoricalPrivatizer, best"
    mixed = recommend(schema | {"age": (0, 9)}, "frequencies", 1.0, 1_000)
    assert mixed.options[0].name == "TablePrivatizer, 1 of 6 columns"
    assert mixed.estimator.n_sampled_features == "auto"
    assert recommend(schema | {"age": (0, 9)}, "means", 1.0, 1_000).options[0].figure < 10


def test_a_release_tells_of_declared_columns_and_what_its_error_is_of():
    people = {"age": (0, 100), "city": ["Bonn", "Kiel", "Ulm"], "sick": [False, True]}
    means, frequencies = (recommend(people, task, 2.0, 20_000) for task in ("means", "frequencies"))
    for advice in (means, frequencies, recommend(people, "releases", 2.0, 20_000)):
        assert str(advice).splitlines()[0] == f"{advice.task}, epsilon 2, 20,000 people, 3 declared columns"
        assert advice.n_features == 3
    assert means.reason.startswith(
        "Upper bound of numbers, in units of half the width of a column's bounds; shares are"
    )
    for advice in (frequencies, recommend({"city": people["city"]}, "frequencies", 2.0, 20_000)):
        assert advice.reason.startswith("Root mean square over the values of a column: that of a rare value is smaller")


def test_the_error_of_frequencies_is_that_of_all_values_of_a_column(fixed_noise):
    advice = recommend({"city": list("abc")}, "frequencies", 2.0, 4_000)
    cities = np.repeat(list("abc"), [2_800, 800, 400])[:, None]
    errors = np.array(
        [
            fitted.estimate_frequencies(fitted.transform(cities))[0].frequencies - [0.7, 0.2, 0.1]
            for fitted in [advice.estimator.fit(cities)]
            for _ in range(200)
        ]
    )
    by_value = np.sqrt((errors**2).mean(axis=0))
    assert np.sqrt((errors**2).mean()) == pytest.approx(advice.options[0].figure, rel=0.1)
    assert by_value[0] > advice.options[0].figure > by_value[2]


def test_it_prints_as_a_short_table():
    lines = str(recommend(TABLE, "classification", 2.0, 5_000, target=["a", "b"])).splitlines()
    assert lines[0] == "classification, epsilon 2, 5,000 people, 13 features"
    assert lines[1].split() == ["predicted", "loss", "people", "for", "half"]
    assert len(lines) == 5
    assert max(map(len, lines[:-1])) <= 80
    assert "people for" not in str(recommend(TABLE, "releases", 2.0, 5_000))


@pytest.mark.parametrize(
    ("schema", "task", "given", "message"),
    [
        (TABLE, "rank", {}, "task must be one of classification, frequencies"),
        (TABLE, "regression", {}, "target must name the column to predict; got None for regression"),
        (TABLE, "means", {"target": (0, 1)}, "target must be None unless"),
        (TABLE, "regression", {"target": ["a", "b"]}, "must be numbers on a linear scale"),
        (TABLE, "classification", {"target": (0, 1)}, "declared classes"),
        (
            {"age": (0, 9), "sick": {"type": "categories", "values": [0, 1], "missing": "category"}},
            "classification",
            {"target": "sick"},
            "without missing ones",
        ),
        (TABLE, "classification", {"target": "sick"}, "must be a column of the schema"),
        ({"age": (0, 1)}, "regression", {"target": "age"}, "at least one column beside"),
        (PEOPLE, "questions", {}, "need numeric columns"),
        ({"c": ["a", "b"]}, "means", {}, "only categories"),
        (TABLE, "frequencies", {}, "at least two categories"),
        (TABLE[0], "means", {}, "two dimensions"),
        (TABLE, "means", {"epsilon": 0}, "epsilon"),
        (TABLE, "means", {"n_people": 0}, "n_people"),
        (TABLE, "means", {"n_people": 10**400}, "n_people must be a whole number from 1 to 1,000,000,000,000"),
        (PEOPLE, "questions", {"n_questions": 10**400}, "n_questions must be a whole number from 1 to 1,000,000"),
    ],
)
def test_what_does_not_fit_is_refused(schema, task, given, message):
    with pytest.raises(ValueError, match=message):
        recommend(schema, task, **({"epsilon": 1.0, "n_people": 100} | given))


@pytest.mark.parametrize("task", ["means", "frequencies"])
def test_means_of_released_columns_are_the_estimates(fixed_noise, task):
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {"age": rng.uniform(20, 40, 20_000), "city": np.where(rng.random(20_000) < 0.1, "Ulm", "Bonn")}
    )
    schema = {"age": (0, 100), "city": {"type": "categories", "values": ["Bonn", "Köln", "Ulm"], "missing": "category"}}
    released = recommend(schema, task, 4.0, 20_000).estimator.set_output(transform="pandas").fit_transform(people)
    assert released["age"].mean() == pytest.approx(30, abs=2)
    assert released["city_Ulm"].mean() == pytest.approx(0.1, abs=0.03)
    assert released["city_Köln"].mean() == pytest.approx(0, abs=0.03)


def test_bounds_that_are_assumed_are_told():
    assert "between -1 and 1" in recommend(np.zeros((1, 3)), "regression", 1.0, 10_000, target=(0, 1)).reason
    assert "between -1 and 1" not in recommend({"age": (0, 100)}, "regression", 1.0, 10_000, target=(0, 1)).reason
