"""Lines that a newcomer wrote, which stopped or misled: what they do now. Each is as short as it was written."""

import inspect
import pickle
import runpy
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_wine
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skldp
from skldp.cli import main
from skldp.exceptions import OutOfDomainWarning, PrivacyGuaranteeWarning
from skldp.study._catalogue import GUARANTEED

pytest.importorskip("typer")
pytest.importorskip("matplotlib").use("Agg")
pytestmark = pytest.mark.usefixtures("fixed_noise")


def test_a_transformer_of_numbers_is_one_of_targets():
    X, y = load_diabetes(return_X_y=True)
    release = skldp.NumericPrivatizer(4.0, bounds=(0, 350))
    model = TransformedTargetRegressor(Ridge(0.1), transformer=release, check_inverse=False).fit(X, y)
    assert model.transformer_.privacy_guarantee_.epsilon <= 4.0
    assert "LabelPrivateRegressor" in skldp.privacy_guarantee(model).basis


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


def test_the_best_mechanism_of_a_value_is_not_advised_for_a_model():
    X, y = load_wine(return_X_y=True)
    bounds = (0, [16, 7, 4, 31, 180, 5, 6, 1, 5, 15, 2, 5, 2_000])
    best = skldp.NumericPrivatizer(8.0, bounds=bounds, transform_noise=False)
    vector = skldp.PrivUnitTransformer(8.0, bounds=bounds, transform_noise=False)
    by_values, by_vectors = (
        cross_val_score(make_pipeline(release, StandardScaler(), LogisticRegression()), X, y).mean()
        for release in (best, vector)
    )
    assert by_vectors > by_values + 0.1
    schema = {number: (low, high) for number, (low, high) in enumerate(zip([0] * 13, bounds[1], strict=True))}
    assert "PrivUnit" in skldp.study.recommend(schema, "releases", 8.0, len(X)).options[0].name


def test_a_search_chooses_by_what_is_guaranteed_and_not_by_what_is_printed():
    X, y = load_wine(return_X_y=True)
    release = skldp.BitRandTransformer(bounds=(0, 2_000), transform_noise=False)
    grid = [{"bitrandtransformer__epsilon": [2.0], "bitrandtransformer__calibration": ["published"]}]
    grid += [{"bitrandtransformer__epsilon": [5.0], "bitrandtransformer__calibration": ["exact"]}]
    search = GridSearchCV(
        make_pipeline(release, StandardScaler(), LogisticRegression()),
        grid,
        cv=2,
        scoring=skldp.study.with_exact_epsilon("accuracy"),
        # Every score is good enough: the smallest epsilon wins, and published 2 is more than 5.
        refit=skldp.study.smallest_epsilon(1.0),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyGuaranteeWarning)
        search.fit(X, y)
    assert search.best_params_["bitrandtransformer__calibration"] == "exact"
    assert 4.9 < skldp.privacy_guarantee(search.best_estimator_).epsilon <= 5


def test_a_warning_about_bounds_names_the_column():
    people = pd.DataFrame({"age": [31.0, 640.0], "pay": [1.0, 2.0]})
    with pytest.warns(OutOfDomainWarning, match="'age'") as told:
        skldp.NumericPrivatizer(bounds={"age": (0, 100), "pay": (0, 9)}).fit_transform(people)
    assert "pay" not in str(told[0].message)


def test_many_categories_fit_in_memory():
    codes = np.random.default_rng(0).integers(0, 5_000, (2_000, 1))
    shares = skldp.TablePrivatizer(2.0, schema={"x0": [*range(5_000)]}, sparse_output=True).fit_transform(codes)
    # One-hot in doubles it would be 80 MB.
    assert shares.shape == (2_000, 5_000)
    assert shares.data.nbytes + shares.indices.nbytes + shares.indptr.nbytes < 1e6


def test_a_notebook_shows_what_a_step_costs():
    X, y = load_wine(return_X_y=True)
    release = skldp.PrivUnitTransformer(8.0, bounds=(0, 2_000), transform_noise=False)
    labels = skldp.LabelRR(2.0, classes=[0, 1, 2])
    model = make_pipeline(release, skldp.LabelPrivateClassifier(LogisticRegression(), label_mechanism=labels)).fit(X, y)
    guarantee = skldp.privacy_guarantee(model)
    assert guarantee.to_frame()["epsilon"].round(2).tolist() == [8.0, 2.0]
    assert all(f"epsilon {one}" in model._repr_html_() for one in (8, 2))
    assert "<table" in skldp.PrivacyLedger(1.0, bounds=(0, 1))._repr_html_()


def test_nullable_booleans_are_labels():
    sick = pd.Series([True, False] * 50, dtype="boolean")
    assert set(skldp.LabelRR(20.0, classes=[False, True]).fit_transform(sick)) == {False, True}
    with pytest.raises(ValueError, match="only the declared 2 values"):
        skldp.LabelRR(classes=[False, True]).fit_transform(pd.Series([True, None], dtype="boolean"))


def test_an_interval_of_dates_is_declared_as_one_of_numbers():
    interval = {"type": "interval", "low": "2020-01-01", "high": "2020-12-31", "missing": "middle"}
    frame = pd.DataFrame({"since": pd.to_datetime(["2020-05-05", None])})
    released = skldp.TablePrivatizer(4.0, schema={"since": interval}, encoding="columns").fit_transform(frame)
    assert released["since"].dtype.kind == "M"
    wrong = interval | {"high": 7}
    with pytest.raises(ValueError, match="two dates with low < high"):
        skldp.TablePrivatizer(4.0, schema={"since": wrong}).fit(frame)


def test_missing_values_are_not_advised_an_imputer():
    X = [[1.0, np.nan]] * 4
    for estimator in (skldp.NumericPrivatizer(bounds=(0, 2)), skldp.PrivateLinearRegression(bounds=(0, 2))):
        with pytest.raises(ValueError, match="public constant, or declare them in the schema") as refused:
            estimator.fit(X, [0.0, 1.0, 0.0, 1.0])
        assert "imputer" not in str(refused.value)


def test_public_rows_outside_the_declared_bounds_are_warned_of():
    """People's values are clipped to the same bounds, and the mean would be wrong without a word."""
    public = pd.DataFrame({"age": [20.0, 40.0, 60.0], "member": [0.0, 1.0, 1.0]})
    survey = skldp.BayesianFilter(Ridge(), bounds=(0, 1), seed=0)
    with pytest.warns(OutOfDomainWarning, match=r"3 of 6 values .* \(3 in 'age'\)"):
        survey.fit(public, [1.0, 2.0, 3.0])


# What the command line says.


@pytest.fixture
def skldp_says(tmp_path, monkeypatch, capsys):
    """Run a command in a directory with the four files, and return its exit code and all that it says."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    EXAMPLE["write_files"](tmp_path)

    def run(line):
        with pytest.raises(SystemExit) as stop:
            main(line.split())
        said = capsys.readouterr()
        return stop.value.code or 0, said.out + said.err

    return run


def test_a_study_of_numbers_is_a_regression(skldp_says):
    code, said = skldp_says("study diabetes.csv --target target --bounds=-0.2,0.2 --epsilons 2 --folds 2")
    assert (code, "a regression, which needs --target-bounds low,high" in said) == (2, True)
    more = "--target-bounds 0,350 --mechanism piecewise"
    code, said = skldp_says(f"study diabetes.csv --target target --bounds=-0.2,0.2 --epsilons 2 --folds 2 {more}")
    assert (code, "r2" in said) == (0, True)


def test_a_study_takes_penguins_with_their_islands_and_their_gaps(skldp_says):
    code, said = skldp_says("study penguins.csv --target species --bounds 10,60 --epsilons 2 --folds 2")
    assert (code, "'bill_length_mm' of penguins.csv has 40 missing values" in said) == (2, True)
    assert "--count-unknown" in said
    more = "--count-unknown --mechanism privunit"
    code, said = skldp_says(f"study penguins.csv --target species --bounds 10,60 --epsilons 2 --folds 2 {more}")
    assert (code, "privunit" in said) == (0, True)


def test_a_mistyped_scorer_is_told_those_that_are_near(skldp_says):
    code, said = skldp_says("study penguins.csv --target species --bounds 10,60 --count-unknown --scoring acuracy")
    assert code == 2
    assert "Did you mean 'accuracy'" in said
    assert len(said) < 200


def test_every_kind_of_mechanism_has_its_guarantee_at_the_command_line(skldp_says, tmp_path):
    (tmp_path / "schema.json").write_text('{"age": {"type": "interval", "low": 0, "high": 100}}')
    for kind in GUARANTEED.values():
        first = next(iter(kind))
        schema = "--schema schema.json" if first == "table" else ""
        code, said = skldp_says(f"guarantee {first} --epsilon 2 --features 4 {schema}")
        assert code == 0
        assert said.startswith(f"{first}: epsilon ")
        assert "(stated 2" in said


# From a file to a scored private pipeline, in at most ten lines each: the lines are those of the gallery's example.
EXAMPLE = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "from_file_to_score.py"), run_name="example")


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "epsilon", "score"),
    [("penguins", 12, 0.75), ("tips", 4, 0.6), ("diabetes", 4, 0.3), ("customers", 1, 0.8)],
)
def test_ten_lines_lead_from_a_file_to_a_scored_private_pipeline(name, epsilon, score, tmp_path):
    pipelines = {pipeline.__name__: pipeline for pipeline in EXAMPLE["write_files"](tmp_path)}
    model, reached = pipelines[name](tmp_path / f"{name}.csv", epsilon)
    guarantee = skldp.privacy_guarantee(model)
    assert epsilon - 0.01 < guarantee.epsilon <= epsilon
    assert reached > score
    assert len(inspect.getsource(pipelines[name]).splitlines()) - 1 <= 10
    # What was fitted is kept and copied as a whole.
    assert skldp.privacy_guarantee(pickle.loads(pickle.dumps(model))) == guarantee


@pytest.mark.parametrize(
    ("schema", "match"),
    [
        ({"age": [0, 100]}, r"may mean bounds, for which write \(0, 100\)"),
        ('{"age": [0, 100]}', 'for which write {"type": "number", "low": 0, "high": 100}'),
        ('{"age": 3}', 'Got 3 instead. It must be a list of categories such as .* or {"type": "number"'),
        ('{"age": ["2020-01-01", "2024-12-31"]}', 'two dates may mean bounds.*"type": "date", "low": "2020-01-01"'),
        ({"age": ("no", "yes")}, "categories are a list"),
        ({"age": ("2024-12-31", "2020-01-01")}, "low < high.*'2024-12-31'"),
        ({"age": ("2020-01-01", 20_000)}, "Bounds of dates must be two dates"),
        ({"age": {"type": "dates", "low": "2020-01-01"}}, "Bounds of dates must be two dates"),
        ({"age": ("2020-01-01", "2024-12-31")}, "must hold dates, or texts .*, of type float64"),
        ({"years": (0, 100)}, r"misses \['age'\]"),
        ("schema.json", "must be JSON such as .*, not a path"),
    ],
)
def test_a_wrong_schema_says_what_to_write(schema, match):
    with pytest.raises(ValueError, match=match):
        skldp.TablePrivatizer(schema=schema).fit(pd.DataFrame({"age": [31.0, 64.0]}))


@pytest.mark.parametrize("wrong", [{"min": 0, "max": 9}, {"type": "float", "low": 0, "high": 9}, {"low": 0}])
def test_a_wrong_dict_shows_the_form_to_write_and_no_class(wrong):
    with pytest.raises(ValueError, match=r'\(0, 100\), .*{"type": "number", "low": 0, "high": 100}') as caught:
        skldp.TablePrivatizer(schema={"age": wrong}).fit(pd.DataFrame({"age": [31.0, 64.0]}))
    assert not any(word in str(caught.value) for word in ("one_hot", "constrained", "Domain"))
    assert str(wrong) in str(caught.value)


def test_a_label_mechanism_as_a_step_names_what_trains_on_its_labels():
    X, y = load_wine(return_X_y=True)
    with pytest.raises(ValueError, match="LabelPrivateClassifier trains a classifier on private labels"):
        make_pipeline(skldp.LabelRR(classes=[0, 1, 2]), LogisticRegression()).fit(X, y)


@pytest.mark.parametrize("cls", [skldp.BitRandTransformer, skldp.papers.LatentTransformer, skldp.TablePrivatizer])
def test_an_unknown_parameter_names_the_class_and_seed(cls):
    with pytest.raises(TypeError, match=rf"^{cls.__name__} has no parameter 'random_state'.*`seed` repeats"):
        cls(random_state=0)
    with pytest.raises(TypeError, match=rf"^{cls.__name__} has no parameter 'epsilom'\. Did you mean 'epsilon'\?$"):
        cls(epsilom=3)
    assert "epsilon" in inspect.signature(cls).parameters
    assert "random_state" not in cls().get_params()


def test_years_as_texts_are_categories():
    frame = pd.DataFrame({"year": ["2020", "2021"]})
    table = skldp.TablePrivatizer(schema={"year": ["2020", "2021"]}).fit(frame)
    assert table.get_feature_names_out().tolist() == ["year_2020", "year_2021"]


def test_advice_takes_what_a_newcomer_has():
    two_classes = skldp.study.recommend({"age": (0, 100), "sick": [0, 1]}, "classification", 2.0, 1_000, target="sick")
    assert two_classes.estimator[-1].classes == [0, 1]
    given = skldp.study.recommend({"age": (0, 100)}, "classification", 2.0, 1_000, target=[0, 1])
    assert str(given) == str(two_classes)
    assert "PrivateLinear" in str(skldp.study.recommend({0: (0, 100), 1: (0, 9)}, "regression", 2.0, 1_000, target=1))
    with pytest.raises(ValueError, match="got list"):
        skldp.study.recommend([(0, 100)], "releases", 2.0, 1_000)
    with pytest.raises(ValueError, match="a list of at least two declared classes"):
        skldp.study.recommend({"age": (0, 100)}, "classification", 2.0, 1_000, target=(0, 1))


@pytest.mark.parametrize("task", ["releases", "means"])
def test_whatever_is_advised_for_an_array_takes_it(task):
    X = np.random.default_rng(0).uniform(-1, 1, (30, 4))
    for option in skldp.study.recommend(X, task, 4.0, 30).options:
        assert 3.99 < skldp.privacy_guarantee(option.estimator.fit(X)).epsilon <= 4, option.name
        option.estimator.fit(pd.DataFrame(X))


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            lambda: skldp.LabelPrivateClassifier(LogisticRegression(), skldp.LabelRR()),
            "LabelPrivateClassifier takes label_mechanism by name: write label_mechanism=...",
        ),
        (lambda: skldp.BitRandTransformer(1.0, 10), "BitRandTransformer takes n_bits by name: write n_bits=..."),
        (lambda: skldp.PrivateLinearRegression().partial_fit, "partial_fit needs protocol='once' and inference=False"),
        (
            lambda: skldp.PrivateLinearRegression(protocol="once", inference=True).partial_fit,
            "partial_fit needs protocol='once' and inference=False",
        ),
        (
            lambda: skldp.PrivateLogisticRegression(classes=[0, 1]).partial_fit([[0.0]], [0]),
            "partial_fit needs protocol='once'",
        ),
        (lambda: skldp.LabelPrivateClassifier(LogisticRegression()).partial_fit, "Release y once by a mechanism"),
        (lambda: skldp.LabelPrivateClassifier(LogisticRegression()).partial, "has no attribute 'partial'"),
        (lambda: skldp.NumericPrivatizer().privacy_guarantee_, "This NumericPrivatizer has no privacy_guarantee_"),
        (
            lambda: skldp.NumericPrivatizer(mechanism="picewise").fit([[0.0]]),
            "'three_outputs' (Did you mean 'piecewise' or",
        ),
        (lambda: skldp.CategoricalPrivatizer(mechanism="QUE").fit([[0]]), "(Did you mean 'sue' or 'oue'?)"),
        (lambda: skldp.NumericPrivatizer(mechanism="xyz").fit([[0.0]]), "'three_outputs'. Got 'xyz'"),
        (
            lambda: skldp.PrivateLinearRegression(1e-12).fit([[0.0]], [0.0]),
            "`epsilon` must be a number from 1e-06 to 1e+06 in a task; got 1e-12.",
        ),
        (lambda: skldp.PrivateMoments(1e-12).fit([[0.0]]), "`epsilon` must be a number from 1e-06"),
    ],
)
def test_an_error_names_what_to_write(call, told):
    with pytest.raises((AttributeError, TypeError, ValueError)) as refused:
        call()
    assert told in str(refused.value)


@pytest.mark.parametrize("given", [Fraction(1, 2), np.float32(0.5), np.float16(0.5)])
def test_an_epsilon_may_be_any_number(given):
    X, y = np.zeros((2, 2)), np.array([0, 1])
    for release in (skldp.NumericPrivatizer, skldp.PrivUnitTransformer, skldp.TablePrivatizer):
        assert (
            release(given).fit(X + 0.5).privacy_guarantee_.epsilon
            == release(0.5).fit(X + 0.5).privacy_guarantee_.epsilon
        )
    assert skldp.LabelRR(given, classes=[0, 1]).fit(y).privacy_guarantee_.epsilon <= 0.5
    ledger = skldp.PrivacyLedger(given, bounds=(0, 1))
    assert ledger.remaining(["ann"]).tolist() == [0.5]
    for wrong in (Fraction(10) ** 400, Fraction(0), Fraction(1, 10**400), -given):
        with pytest.raises(ValueError, match="epsilon"):
            skldp.NumericPrivatizer(wrong).fit(X)
