"""LabelRR, LabelLaplace and LabelSampler: labels of any type in, the same type out, nothing released on error."""

import os
import pickle
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from imblearn.pipeline import make_pipeline
from imblearn.under_sampling import RandomUnderSampler
from joblib import Parallel, delayed
from sklearn.exceptions import SkipTestWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

from skldp.estimators import _base as base
from skldp.estimators._composition import privacy_guarantee
from skldp.estimators._label_private import LabelSampler
from skldp.estimators._label_vectors import LabelLaplaceVector, LabelMatrixRR
from skldp.estimators._labels import LabelLaplace, LabelRR

each = pytest.mark.parametrize("cls", [LabelRR, LabelLaplace])
seeds_expected = pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")
TEN = np.arange(10)


def many(n=2000):
    return np.random.default_rng(0).integers(0, 10, n)


@pytest.mark.parametrize(
    "estimator",
    [LabelRR(), LabelRR(seed=0), LabelLaplace(), LabelLaplace(seed=0), LabelLaplaceVector(), LabelSampler()],
    ids=repr,
)
def test_passes_what_scikit_learn_checks_of_a_transformer_of_y(estimator):
    with pytest.warns(SkipTestWarning, match="requires input"):
        check_estimator(estimator)


@each
@pytest.mark.parametrize(
    "y",
    [
        np.array([0, 1, 2, 1]),
        np.array([0, 1, 2, 1], dtype=np.int8),
        np.array([0.0, 1.0, 2.0, 1.0], dtype=np.float32),
        np.array([True, False, True, True]),
        np.array(["no", "yes", "maybe"]),
        np.array(["no", "yes", "maybe"], dtype=object),
        np.array([3, 3, 3]),
    ],
    ids=lambda y: f"{y.dtype}-{len(set(y.tolist()))}",
)
def test_releases_labels_of_the_same_type(cls, y):
    classes = sorted(set(y.tolist()), key=str)
    mechanism = cls(epsilon=0.5, classes=classes)
    for released in (mechanism.fit_transform(y), mechanism.fit(y).transform(y)):
        assert released.dtype == y.dtype
        assert set(released.tolist()) <= set(classes)
    assert mechanism.privacy_guarantee_.unit == "label"
    assert mechanism.privacy_guarantee_.epsilon <= (0.5 if len(classes) > 1 else 0.0)


@each
@pytest.mark.parametrize("y", [[0, 1, 7], ["0", "1"], [0.5, 1], [np.nan, 1.0], [None, 1], [[1], 0], [-1, 0]], ids=repr)
def test_a_label_outside_the_classes_is_an_error_and_nothing_is_released(cls, y, monkeypatch):
    fitted = cls(classes=[0, 1]).fit([0, 1])
    y = np.array(y, dtype=object) if any(isinstance(v, list) for v in y) else y
    monkeypatch.setattr(base, "noise_from", lambda _: pytest.fail("noise was drawn"))
    for call in (fitted.transform, fitted.fit_transform, fitted.fit):
        with (
            sklearn.config_context(assume_finite=True),
            pytest.raises(ValueError, match=r"y must hold|one-dimensional"),
        ):
            call(y)


@each
@pytest.mark.parametrize(
    ("classes", "match"),
    [
        ([], "at least one value"),
        ([[0, 1]], "at least one value"),
        ([0, 0, 1], "must be distinct"),
        ([0, np.nan], "must be distinct"),
        ([0, None], "must be distinct"),
        ([0, np.inf], "must be distinct"),
        ("ab", "classes"),
    ],
)
def test_refuses_bad_classes(cls, classes, match):
    with pytest.raises(ValueError, match=match):
        cls(classes=classes).fit([0])


@pytest.mark.parametrize("y", [[], None, [[0, 1], [1, 0]]])
def test_refuses_a_y_that_is_no_column_of_labels(y):
    with pytest.raises(ValueError, match="y"):
        LabelRR(classes=[0, 1]).fit_transform(y)


@each
@pytest.mark.parametrize("n_columns", [1, 2])
def test_a_step_of_a_pipeline_which_gets_x_names_the_classifier_to_use(cls, n_columns):
    X, y = np.zeros((4, n_columns)), [0, 1, 0, 1]
    mechanism = cls(classes=[0, 1])
    for call in (make_pipeline(mechanism, LogisticRegression()).fit, mechanism.fit_transform):
        with pytest.raises(ValueError, match=r"gets X: LabelPrivateClassifier trains a classifier on private labels"):
            call(X, y)
    with pytest.raises(ValueError, match="LabelPrivateClassifier"):
        mechanism.fit(pd.DataFrame(X))


@pytest.mark.parametrize("y", [[0.5, 1.5, 2.25], [0.0, np.nan]])
def test_learns_no_classes_from_numbers_that_are_none(y):
    with pytest.raises(ValueError, match=r"Unknown label type|NaN"):
        LabelRR().fit(y)


def test_prior_follows_the_declared_order():
    fitted = LabelRR(epsilon=1.0, classes=["z", "a", "m"], prior=[0.6, 0.0, 0.4]).fit(["a"])
    assert fitted.classes_.tolist() == ["a", "m", "z"]
    assert fitted.mechanism_.prior == (0.0, 0.4, 0.6)
    assert fitted.flip_matrix_[:, 0].tolist() == [0, 0, 0]
    assert set(fitted.transform(["a"] * 200)) == {"m", "z"}
    with pytest.raises(ValueError, match="Every class must be a possible answer"):
        fitted.estimate_frequencies(["m"])


@each
@seeds_expected
def test_frequencies_come_out_within_their_standard_errors(cls):
    y = np.repeat(["a", "b", "c"], [70_000, 20_000, 10_000])
    fitted = cls(epsilon=1.0, classes=["a", "b", "c"], seed=1)
    estimate = fitted.estimate_frequencies(fitted.fit_transform(y))
    z = (estimate.frequencies - [0.7, 0.2, 0.1]) / estimate.standard_errors
    # Three two-sided normal tests at THRESHOLD.
    assert (np.abs(z) < 4.9).all()
    assert estimate.categories.tolist() == ["a", "b", "c"]


def release(mechanism, y):
    return tuple(mechanism.transform(y).tolist())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forked_children_release_distinct_noise():
    fitted = LabelRR(epsilon=0.1, classes=TEN).fit(TEN)
    drawn = {release(fitted, many(200))}
    for _ in range(4):
        read, write = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            os.write(write, pickle.dumps(release(fitted, many(200))))
            os._exit(0)
        os.waitpid(child, 0)
        drawn.add(pickle.loads(os.read(read, 60_000)))
        os.close(read)
        os.close(write)
    assert len(drawn) == 5


def test_a_sampler_keeps_x_and_checks_its_length():
    X = pd.DataFrame({"a": [1.0, 2.0]})
    sampler = LabelSampler(LabelRR(classes=[0, 1]))
    released_X, y = sampler.fit_resample(X, [0, 1])
    assert released_X is X
    assert y.shape == (2,)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        sampler.fit_resample(X, [0, 1, 1])


@each
def test_a_label_mechanism_is_no_sampler_and_works_as_one(cls):
    mechanism = cls(epsilon=500.0, classes=[0, 1])
    assert not hasattr(mechanism, "fit_resample")
    y = np.arange(40) % 2
    pipeline = make_pipeline(LabelSampler(mechanism), RandomUnderSampler(random_state=0), LogisticRegression())
    assert pipeline.fit(y[:, None], y).score(y[:, None], y) == 1.0
    with pytest.raises(ValueError, match="label_mechanism"):
        LabelSampler(RandomUnderSampler()).fit_resample(y[:, None], y)


def test_a_sampler_works_in_an_imbalanced_learn_pipeline_and_its_grid_search(fixed_noise):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = y[:, None] + rng.normal(0, 0.1, (200, 1))
    pipeline = make_pipeline(LabelSampler(LabelRR(epsilon=1.0, classes=[0, 1])), LogisticRegression())
    name = "labelsampler__label_mechanism__epsilon"
    # The first of equals is taken: randomized labels can be learnt by chance, but not better than perfectly.
    search = GridSearchCV(pipeline, {name: [20.0, 1e-3]}, cv=2).fit(X, y)
    assert search.best_params_ == {name: 20.0}
    guarantee = privacy_guarantee(search.best_estimator_[0])
    assert (guarantee.unit, guarantee.stated) == ("label", 20.0)
    assert pipeline.fit(X, y).fit(X, y).predict(X).shape == y.shape


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"prior": [0.5, 0.5]}, "prior needs declared classes"),
        ({"prior": [1.0], "classes": [0, 1]}, "one probability for each class"),
        ({"prior": [0.7, 0.7], "classes": [0, 1]}, "sum to 1"),
        ({"prior": 3, "classes": [0, 1]}, "prior"),
    ],
)
def test_refuses_a_bad_prior(parameters, match):
    with pytest.raises(ValueError, match=match):
        LabelRR(**parameters).fit([0, 1])


@pytest.mark.parametrize("cls", [LabelRR, LabelLaplace, LabelLaplaceVector, LabelMatrixRR])
def test_an_unknown_parameter_names_the_class(cls):
    with pytest.raises(TypeError, match=rf"^{cls.__name__} has no parameter 'foo'"):
        cls(1.0, foo=1)


@pytest.mark.slow
def test_pickled_copies_in_four_processes_release_distinct_noise():
    fitted = LabelRR(epsilon=0.1, classes=TEN).fit(TEN)
    drawn = Parallel(n_jobs=4)(delayed(release)(pickle.loads(pickle.dumps(fitted)), many()) for _ in range(4))
    assert len(set(drawn)) == 4


def test_threads_release_distinct_noise():
    fitted, drawn = LabelRR(epsilon=0.1, classes=TEN).fit(TEN), []
    workers = [threading.Thread(target=lambda: drawn.append(release(fitted, many()))) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(set(drawn)) == 4
