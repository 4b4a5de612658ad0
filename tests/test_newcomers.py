"""Lines that a newcomer wrote, which stopped or misled: what they do now. Each is as short as it was written."""

import inspect
import pickle
import runpy
import warnings
from pathlib import Path

import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skldp
from skldp.exceptions import OutOfDomainWarning, PrivacyGuaranteeWarning

pytest.importorskip("typer")
pytest.importorskip("matplotlib").use("Agg")
pytestmark = pytest.mark.usefixtures("fixed_noise")


def test_a_search_chooses_by_what_is_guaranteed_and_not_by_what_is_printed():
    X, y = load_wine(return_X_y=True)
    release = skldp.BitRandTransformer(bounds=(0, 2_000), transform_noise=False)
    grid = [{"bitrandtransformer__epsilon": [2.0], "bitrandtransformer__calibration": ["published"]}]
    grid += [{"bitrandtransformer__epsilon": [5.0], "bitrandtransformer__calibration": ["exact"]}]
    search = GridSearchCV(
        make_pipeline(release, StandardScaler(), LogisticRegression()),
        grid,
        cv=2,
        scoring={"score": "accuracy", "exact_epsilon": lambda model, X, y: skldp.privacy_guarantee(model).epsilon},
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


# What the command line says.


# From a file to a scored private pipeline, in at most ten lines each: the lines are those of the gallery's example.
EXAMPLE = runpy.run_path(
    str(Path(__file__).parents[1] / "examples" / "start" / "from_file_to_score.py"), run_name="example"
)


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
        ('{"age": 3}', 'it is 3. It must be a list of categories such as .* or {"type": "number"'),
        ('{"age": ["2020-01-01", "2024-12-31"]}', 'two dates may mean bounds.*"type": "date", "low": "2020-01-01"'),
        ({"age": ("no", "yes")}, "categories are a list"),
        ({"age": ("2024-12-31", "2020-01-01")}, "low < high.*'2024-12-31'"),
        ({"age": ("2020-01-01", 20_000)}, "Bounds of dates must be two dates"),
        ({"age": {"type": "date", "low": "2020-01-01"}}, "Bounds of dates must be two dates"),
        ({"age": ("2020-01-01", "2024-12-31")}, "must hold dates, or texts .*, of type float64"),
        ({"years": (0, 100)}, r"misses \['age'\]"),
        ("schema.json", "must be JSON such as .*, not a path"),
    ],
)
def test_a_wrong_schema_says_what_to_write(schema, match):
    with pytest.raises(ValueError, match=match):
        skldp.TablePrivatizer(schema=schema).fit(pd.DataFrame({"age": [31.0, 64.0]}))


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


def test_public_rows_outside_the_declared_bounds_are_warned_of():
    """People's values are clipped to the same bounds, and the mean would be wrong without a word."""
    public = pd.DataFrame({"age": [20.0, 40.0, 60.0], "member": [0.0, 1.0, 1.0]})
    survey = skldp.BayesianFilter(Ridge(), bounds=(0, 1), seed=0)
    with pytest.warns(OutOfDomainWarning, match=r"3 of 6 values .* \(3 in 'age'\)"):
        survey.fit(public, [1.0, 2.0, 3.0])


def test_an_interval_of_dates_is_declared_as_one_of_numbers():
    interval = {"type": "date", "low": "2020-01-01", "high": "2020-12-31", "missing": "middle"}
    frame = pd.DataFrame({"since": pd.to_datetime(["2020-05-05", None])})
    released = skldp.TablePrivatizer(4.0, schema={"since": interval}, encoding="columns").fit_transform(frame)
    assert released["since"].dtype.kind == "M"
    wrong = interval | {"high": 7}
    with pytest.raises(ValueError, match="two dates with low < high"):
        skldp.TablePrivatizer(4.0, schema={"since": wrong}).fit(frame)
