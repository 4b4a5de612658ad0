"""Recommendations follow from laws and declarations alone, and what is recommended is ready."""

import math
import pickle
import warnings

import numpy as np
import pytest
from scipy.special import entr, expit
from scipy.stats import kurtosis

from skldp import privacy_guarantee
from skldp.estimators._column_encoder import encoded_names
from skldp.estimators._declared_table import DeclaredTable
from skldp.exceptions import LearntDomainWarning, OutOfDomainWarning, SeededNoiseWarning, TooFewPeopleWarning
from skldp.mechanisms.categorical._one_hot import make_categorical_mechanism
from skldp.mechanisms.vector._privunit import PrivUnitBall
from skldp.study import recommend
from skldp.study._recommend import made_up

pd = pytest.importorskip("pandas")

PEOPLE = {
    "age": (0, 100),
    "city": ["Bonn", "Köln", "Ulm"],
    "size": {"type": "category", "values": ["S", "M", "L"], "ordered": True},
    "sick": [False, True],
    "dose": {"type": "number", "low": -2, "high": 2, "missing": "middle"},
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
TABLE = {f"x{j}": (-1, 1) for j in range(13)}


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


def spread(d):
    """Columns between -1 and 1 whose values are like those of the even table."""
    return {f"x{j}": (-1, 1) for j in range(d)}


@pytest.mark.slow
def test_a_loss_is_that_of_a_fit_to_people_like_those_assumed():
    """The declared bounds, categories and the fraction explained are all that a prediction knows."""
    rng = np.random.default_rng(7)
    common = rng.standard_normal(20_000)
    rows = np.sqrt(0.5) * (common[:, None] + rng.standard_normal((20_000, 4))) / 6
    y = rows @ [1.0, -0.5, 1.5, 1.0]
    y = (y / y.std() + rng.standard_normal(len(y))) / 6 / math.sqrt(2)
    X, option = pd.DataFrame(rows, columns=list(spread(4))), None
    (option, *_) = recommend(spread(4), "regression", 2.0, 20_000, target=(-1, 1), explained=0.5).options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        scores = [option.estimator.set_params(model__seed=seed).fit(X, y).score(X, y) for seed in range(3)]
    low, high = option.range
    assert low / 3 < max(0.01, 1 - np.mean(scores) / 0.5) < 3 * high


def test_a_loss_is_told_within_a_factor_of_three_of_all_simulated_ones_or_not_known(monkeypatch):
    """The first option is the one with the least mean loss."""
    given = {"rounds": [0.001, 0.02, 0.03, 0.04, 0.091], "once": [0.03, 0.02, 0.018, 0.19, 0.02]}
    monkeypatch.setattr("skldp.study._recommend.loss", lambda model, *table: given[model.protocol][table[-1]])
    for first, second, figures in ((0.09, 0.19, ["0.03", "not known"]), (0.5, 0.1, ["0.042", "not known"])):
        given["rounds"][-1], given["once"][3] = first, second
        advice = recommend(TABLE, "regression", 1.0, 100, target=(0, 9))
        lines = str(advice).splitlines()
        for option, line, figure in zip(advice.options, lines[2:4], figures, strict=True):
            assert figure in line
            assert math.isnan(option.figure) == (figure == "not known")
        assert advice.options[0].range == ((0.01, 0.09) if first == 0.09 else (0.018, 0.1))
    assert "0.018 to 0.1" in lines[2]


def test_a_recommendation_repeats_and_is_of_no_generator_of_the_caller():
    np.random.seed(0)
    before = np.random.get_state()[1].copy()
    first, second = (str(recommend(spread(2), "regression", 2.0, 3_000, target=(-1, 1))) for _ in range(2))
    assert first == second
    assert (np.random.get_state()[1] == before).all()


def test_made_up_tables_are_as_declared():
    """Within the bounds, the shares and the fraction explained as asked for, and skewed where bounds are positive."""
    table = DeclaredTable.of(PEOPLE | {"pay": (0, 10), "heat": (-30, 50)}, "age")
    columns, sick = list(table.columns.values()), DeclaredTable.of(PEOPLE, "sick").target
    for skew in (0.0, 0.5, 1.0):
        X, y, expected = made_up(columns, table.target, 20_000, 0.3, None, skew, 0)
        assert X.shape == (20_000, table.n_features)
        assert abs(X).max() <= 1
        assert abs(y).max() <= 1
        assert expected.var() / y.var() == pytest.approx(0.3, abs=0.06)
        X, y, expected = made_up(columns, sick, 20_000, 0.2, np.array([0.9, 0.1]), skew, 0)
        assert y.mean() == pytest.approx(0.1, abs=0.07)
        of_shares = entr(expected.mean(axis=0)).sum()
        assert 1 - entr(expected).sum(axis=1).mean() / of_shares == pytest.approx(0.2, abs=0.01)
    names = [name for column in columns for name in encoded_names(column, column.name)]
    assert kurtosis(X[:, names.index("pay")]) > 5
    assert abs(kurtosis(X[:, names.index("heat")])) < 1


@pytest.mark.slow
@pytest.mark.parametrize(("d", "epsilon"), [(10, 4.0), (30, 4.0)])
def test_the_recommended_model_of_classes_is_not_the_worse_one(d, epsilon):
    rng = np.random.default_rng(0)
    X, slopes = rng.normal(size=(8_000, d)) / 6, rng.normal(size=d)
    y = rng.uniform(size=len(X)) < expit(X @ slopes * 18 / np.linalg.norm(slopes))
    advice = recommend(spread(d), "classification", epsilon, 4_000, target=[False, True])
    X = pd.DataFrame(X, columns=list(spread(d))).clip(-1, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        warnings.simplefilter("ignore", TooFewPeopleWarning)
        first, second = (
            option.estimator.set_params(model__seed=0).fit(X[:4_000], y[:4_000]) for option in advice.options
        )
    assert first.score(X[4_000:], y[4_000:]) > second.score(X[4_000:], y[4_000:]) - 0.02


@pytest.mark.slow
def test_a_model_takes_missing_values_and_dates_and_refuses_undeclared_categories():
    schema = {
        "age": {"type": "number", "low": 0, "high": 100, "missing": "category"},
        "city": {"type": "category", "values": ["Bonn", "Köln", "Ulm"], "missing": "category"},
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
    assert "Column('since', date, 2020-01-01 to 2024-12-31)" in repr(model)
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


@pytest.mark.parametrize(
    ("schema", "task", "given", "message"),
    [
        (TABLE, "rank", {}, "task must be one of classification, frequencies"),
        (TABLE, "regression", {}, "target must name the column to predict; got None for regression"),
        (TABLE, "means", {"target": (0, 1)}, "target must be None unless"),
        (TABLE, "regression", {"target": ["a", "b"]}, "must be numbers on a linear scale"),
        (TABLE, "classification", {"target": (0, 1)}, "declared classes"),
        (
            {"age": (0, 9), "sick": {"type": "category", "values": [0, 1], "missing": "category"}},
            "classification",
            {"target": "sick"},
            "without missing ones",
        ),
        (TABLE, "classification", {"target": "sick"}, "must be a column of the schema"),
        ({"age": (0, 1)}, "regression", {"target": "age"}, "at least one column beside"),
        (
            TABLE,
            "classification",
            {"target": [0, 1], "shares": [0.5, 0.3]},
            "shares must be 2 positive numbers with sum 1",
        ),
        (TABLE, "classification", {"target": [0, 1], "shares": [1.0, 0.0]}, "shares must be 2 positive numbers"),
        (TABLE, "classification", {"target": [0, 1], "shares": [math.nan, 1.0]}, "shares must be 2 positive numbers"),
        (TABLE, "classification", {"target": [0, 1], "shares": [0.2, 0.3, 0.5]}, "shares must be 2 positive numbers"),
        (TABLE, "regression", {"target": (0, 1), "shares": [0.5, 0.5]}, "shares must be None"),
        (TABLE, "regression", {"target": (0, 1), "explained": 1}, r"explained must lie inside \(0, 1\)"),
        ({"c": ["a", "b"]}, "means", {}, "only categories"),
        (TABLE, "frequencies", {}, "at least two categories"),
        (np.zeros((2, 3)), "means", {}, "schema must be a dict by column or JSON text; got ndarray"),
        (TABLE, "means", {"epsilon": 0}, "epsilon"),
        (TABLE, "means", {"n_people": 0}, "n_people"),
        (TABLE, "means", {"n_people": 10**400}, "n_people must be a whole number from 1 to 1,000,000,000,000"),
    ],
)
def test_what_does_not_fit_is_refused(schema, task, given, message):
    with pytest.raises(ValueError, match=message):
        recommend(schema, task, **({"epsilon": 1.0, "n_people": 100} | given))


@pytest.mark.parametrize("task", ["releases", "means", "frequencies"])
def test_columns_of_an_array_are_named_by_place(task):
    X = np.array([[0.5, "a"], [0.2, "b"]], dtype=object)
    for option in recommend({0: (0, 1), 1: ["a", "b"]}, task, 4.0, 100).options:
        assert len(option.estimator.fit_transform(X)) == 2
