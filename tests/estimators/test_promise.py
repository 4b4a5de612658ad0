"""What was promised at fit stays: a parameter that alters what is released cannot be changed after it."""

import copy
import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import skldp
from skldp import CategoricalPrivatizer, LabelPrivateClassifier, LabelRR, LabelSampler, privacy_guarantee
from skldp.exceptions import ChangedAfterFitError

pytestmark = pytest.mark.filterwarnings("ignore::skldp.exceptions.PrivacyGuaranteeWarning")

X = np.random.default_rng(0).uniform(-0.9, 0.9, (20, 3))
Y = np.array([0, 1] * 10)
CODES = [["a"], ["b"]] * 10

FITTED = {
    "BitRandTransformer": lambda: skldp.BitRandTransformer().fit(X),
    "CategoricalPrivatizer": lambda: CategoricalPrivatizer(categories=[["a", "b"]]).fit(CODES),
    "LabelLaplace": lambda: skldp.LabelLaplace(classes=[0, 1]).fit(Y),
    "LabelLaplaceVector": lambda: skldp.LabelLaplaceVector(classes=[0, 1]).fit(Y),
    "LabelRR": lambda: LabelRR(classes=[0, 1]).fit(Y),
    "LatentTransformer": lambda: skldp.LatentTransformer().fit(X),
    "MultivariateLaplaceTransformer": lambda: skldp.MultivariateLaplaceTransformer(vocabulary=X[:5]).fit(X),
    "NumericPrivatizer": lambda: skldp.NumericPrivatizer(bounds=(np.full(3, -1.0), [1, 1, 1])).fit(X),
    "OMETransformer": lambda: skldp.OMETransformer().fit(X),
    "PrivUnitTransformer": lambda: skldp.PrivUnitTransformer().fit(X),
    "RandomProjectionTransformer": lambda: skldp.RandomProjectionTransformer(n_components=2).fit(X),
}
OTHER = {
    "epsilon": 9.0,
    "seed": 0,
    "transform_noise": False,
    "bounds": (-2, 2),
    "mechanism": "duchi",
    "calibration": "exact",
    "classes": [0, 1, 2],
    "categories": [["b", "c"]],
    "norm": 2.0,
    "radius": 1.0,
    "n_bits": 12,
    "debias": True,
    "noise": "privunit",
    "vocabulary": X[:4],
}
CHANGES = [(cls, name) for cls in FITTED for name in OTHER if name in getattr(skldp, cls)._get_param_names()]


def given(cls):
    return {"CategoricalPrivatizer": CODES}.get(cls, Y if cls.startswith("Label") else X)


def releases(estimator, data):
    yield lambda: estimator.transform(data)
    yield lambda: estimator.privacy_guarantee_
    yield lambda: privacy_guarantee(estimator)
    if hasattr(estimator, "nearest_indices"):
        yield lambda: estimator.nearest_indices(data)
    if isinstance(estimator, skldp.estimators._base.LocalTransformer):
        out = np.empty((len(X), estimator.mechanism_.n_outputs))
        yield lambda: skldp.release_blocks(estimator, X, out)
        yield lambda: skldp.release_dask(estimator, X)


@pytest.mark.parametrize(("cls", "name"), CHANGES)
@pytest.mark.parametrize("by_hand", [False, True])
def test_a_changed_parameter_is_refused_until_the_next_fit(cls, name, by_hand):
    estimator = FITTED[cls]()
    if by_hand:
        setattr(estimator, name, OTHER[name])
    else:
        estimator.set_params(**{name: OTHER[name]})
    for release in releases(estimator, given(cls)):
        with pytest.raises(ChangedAfterFitError, match=rf"fit it again.*Got {name} changed after fit"):
            release()
    assert "No privacy guarantee" in estimator._repr_html_()


@pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize("cls", ["MultivariateLaplaceTransformer", "RandomProjectionTransformer"])
def test_words_that_are_overwritten_stay_those_of_fit(cls):
    """The mechanism held the caller's own array: a thousand times larger words kept the noise of the old ones."""
    words = X[:5].copy()
    arguments = {"n_components": 2, "sensitivity": "vocabulary"} if cls.startswith("Random") else {}
    estimator = getattr(skldp, cls)(vocabulary=words, seed=0, **arguments).fit(X)
    before = estimator.transform(X[:5])
    words *= 1000.0
    np.testing.assert_array_equal(estimator.transform(X[:5]), before)
    with pytest.raises(ValueError, match="read-only"):
        estimator.mechanism_.vocabulary[:] = 0


def test_an_array_of_other_numbers_is_a_change():
    estimator = skldp.NumericPrivatizer(bounds=np.array([-1.0, 1.0])).fit(X)
    assert estimator.set_params(bounds=np.array([-1.0, 1.0])).privacy_guarantee_.epsilon <= 1
    with pytest.raises(ChangedAfterFitError, match="bounds changed"):
        estimator.set_params(bounds=np.array([-9.0, 9.0])).transform(X)


@pytest.mark.parametrize("cls", FITTED)
def test_what_was_not_changed_or_changes_nothing_is_released(cls):
    estimator = FITTED[cls]()
    promised = estimator.privacy_guarantee_
    for copied in (pickle.loads(pickle.dumps(estimator)), copy.deepcopy(estimator)):
        assert copied.privacy_guarantee_ == promised
        copied.transform(given(cls))
    # Set to an equal value, and copied by joblib's own pickler.
    estimator.set_params(**copy.deepcopy(estimator.get_params()))
    if "n_jobs" in estimator.get_params():
        estimator.set_params(n_jobs=2)
    joblib.Parallel(n_jobs=2)(joblib.delayed(estimator.transform)(given(cls)) for _ in range(2))
    assert estimator.privacy_guarantee_ == promised
    assert not hasattr(clone(estimator), "privacy_guarantee_")


def test_a_new_fit_makes_a_new_promise():
    estimator = FITTED["NumericPrivatizer"]().set_params(epsilon=2.0)
    assert estimator.fit(X).privacy_guarantee_.stated == 2.0
    estimator.set_params(transform_noise=False).fit_transform(X)
    assert "fit_transform alone" in estimator.privacy_guarantee_.basis


def test_a_generator_may_advance_but_not_be_exchanged():
    estimator = skldp.NumericPrivatizer(seed=np.random.default_rng(0)).fit(X)
    for copied in (estimator, estimator, pickle.loads(pickle.dumps(estimator))):
        with pytest.warns(skldp.exceptions.SeededNoiseWarning):
            copied.transform(X)
    with pytest.raises(ChangedAfterFitError, match="seed"):
        estimator.set_params(seed=np.random.default_rng(0)).transform(X)


@pytest.mark.parametrize(
    "estimator",
    [
        LabelSampler(LabelRR(classes=[0, 1])).fit(X, Y),
        LabelPrivateClassifier(LogisticRegression(), label_mechanism=LabelRR(classes=[0, 1])).fit(X, Y),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_the_mechanism_within_is_fixed_as_well(estimator):
    assert estimator.privacy_guarantee_.stated == 1.0
    estimator.set_params(label_mechanism__epsilon=0.1)
    with pytest.raises(ChangedAfterFitError, match="label_mechanism__epsilon"):
        privacy_guarantee(estimator)
    with pytest.raises(ChangedAfterFitError, match="label_mechanism"):
        privacy_guarantee(estimator.set_params(label_mechanism=LabelRR(classes=[0, 1])))


def test_a_pipeline_notices():
    pipeline = make_pipeline(skldp.NumericPrivatizer(), LogisticRegression()).fit(X, Y)
    pipeline.set_params(numericprivatizer__transform_noise=False)
    with pytest.raises(ChangedAfterFitError, match="transform_noise"):
        pipeline.predict(X)
    with pytest.raises(ChangedAfterFitError, match="transform_noise"):
        privacy_guarantee(pipeline)


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
@pytest.mark.parametrize(
    ("cls", "bad", "data"),
    [
        ("NumericPrivatizer", {"mechanism": "gaussian", "delta": 0.0}, X[:, :2]),
        ("NumericPrivatizer", {}, [["a", "b"]]),
        ("RandomProjectionTransformer", {"n_components": 9}, X),
        ("CategoricalPrivatizer", {}, [["unheard of", "a"]]),
    ],
)
def test_after_a_fit_that_failed_nothing_is_released(cls, bad, data, method):
    """Columns and bounds of one fit, and the mechanism of another, are no law."""
    estimator = FITTED[cls]()
    before = estimator.get_params()
    with pytest.raises(ValueError, match=r".") as failed:
        getattr(estimator.set_params(**bad), method)(data)
    assert not isinstance(failed.value, ChangedAfterFitError)
    estimator.set_params(**before)
    for release in releases(estimator, given(cls)):
        with pytest.raises(NotFittedError, match="nor after one that failed"):
            release()
    assert estimator.fit(given(cls)).privacy_guarantee_ == FITTED[cls]().privacy_guarantee_
