"""What was promised at fit stays: a parameter that alters what is released cannot be changed after it."""

import copy
import pickle
from inspect import signature

import joblib
import numpy as np
import pandas as pd
import pytest
from doors import ESTIMATORS
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression

import skldp
from skldp import CategoricalPrivatizer, LabelPrivateClassifier, LabelRR, LabelSampler, privacy_guarantee
from skldp.estimators._base import LocalTransformer, TargetTransformer
from skldp.exceptions import ChangedAfterFitError
from skldp.mechanisms import Column

pytestmark = pytest.mark.filterwarnings("ignore::skldp.exceptions.PrivacyGuaranteeWarning")

X = np.random.default_rng(0).uniform(-0.9, 0.9, (20, 3))
# Older pandas shares the memory of an array with a frame.
X.flags.writeable = False
Y = np.array([0, 1] * 10)
CODES = [["a"], ["b"]] * 10

FITTED = {
    "BitRandTransformer": lambda: skldp.BitRandTransformer().fit(X),
    "CategoricalPrivatizer": lambda: CategoricalPrivatizer(categories=[["a", "b"]]).fit(CODES),
    "LabelLaplace": lambda: skldp.papers.LabelLaplace(classes=[0, 1]).fit(Y),
    "LabelLaplaceVector": lambda: skldp.papers.LabelLaplaceVector(classes=[0, 1]).fit(Y),
    "LabelRR": lambda: LabelRR(classes=[0, 1]).fit(Y),
    "LatentTransformer": lambda: skldp.papers.LatentTransformer().fit(X),
    "MultivariateLaplacePrivatizer": lambda: skldp.MultivariateLaplacePrivatizer(vocabulary=X[:5]).fit(X),
    "NumericPrivatizer": lambda: skldp.NumericPrivatizer(bounds=(np.full(3, -1.0), [1, 1, 1])).fit(X),
    "OMETransformer": lambda: skldp.papers.OMETransformer().fit(X),
    "PrivUnitTransformer": lambda: skldp.PrivUnitTransformer().fit(X),
    "RandomProjectionPrivatizer": lambda: skldp.RandomProjectionPrivatizer(n_components=2).fit(X),
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
CHANGES = [(cls, name) for cls in FITTED for name in OTHER if name in signature(ESTIMATORS[cls]).parameters]


def given(cls):
    return {"CategoricalPrivatizer": CODES}.get(cls, Y if cls.startswith("Label") else X)


def releases(estimator, data):
    yield lambda: estimator.transform(data)
    yield lambda: estimator.privacy_guarantee_
    yield lambda: privacy_guarantee(estimator)
    if isinstance(estimator, LocalTransformer) and not isinstance(estimator, TargetTransformer):
        out = np.empty((len(X), estimator.mechanism_.n_outputs))
        yield lambda: skldp.release_blocks(estimator, X, out)
        yield lambda: skldp.release_dask(estimator, X)


@pytest.mark.few(30)
@pytest.mark.parametrize(("cls", "name"), CHANGES)
@pytest.mark.parametrize("by_hand", [False, True])
def test_a_changed_parameter_is_refused_until_the_next_fit(cls, name, by_hand):
    estimator = FITTED[cls]()
    if by_hand:
        setattr(estimator, name, OTHER[name])
    else:
        estimator.set_params(**{name: OTHER[name]})
    for release in releases(estimator, given(cls)):
        with pytest.raises(ChangedAfterFitError, match=rf"got {name} changed after fit; fit it again"):
            release()
    assert "No privacy guarantee" in estimator._repr_html_()


@pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize("cls", ["MultivariateLaplacePrivatizer", "RandomProjectionPrivatizer"])
def test_words_that_are_overwritten_stay_those_of_fit(cls):
    """The mechanism held the caller's own array: a thousand times larger words kept the noise of the old ones."""
    words = X[:5].copy()
    arguments = {"n_components": 2, "sensitivity": "vocabulary"} if cls.startswith("Random") else {}
    estimator = getattr(skldp, cls)(vocabulary=words, seed=0, **arguments).fit(X)
    before = estimator.transform(X[:5])
    words *= 1000.0
    with pytest.raises(ChangedAfterFitError, match="vocabulary changed"):
        estimator.transform(X[:5])
    words /= 1000.0
    np.testing.assert_array_equal(estimator.transform(X[:5]), before)
    with pytest.raises(ValueError, match="read-only"):
        estimator.mechanism_.vocabulary[:] = 0


def arrays_within(thing, seen):
    """Every array that a fitted attribute holds, however deep."""
    if id(thing) in seen:
        return
    seen[id(thing)] = thing
    if isinstance(thing, np.ndarray):
        yield thing
    parts = thing if isinstance(thing, list | tuple) else vars(thing) if hasattr(thing, "__dict__") else thing
    for part in parts.values() if isinstance(parts, dict) else parts if isinstance(parts, list | tuple) else ():
        yield from arrays_within(part, seen)


@pytest.mark.few(4)
@pytest.mark.parametrize("n_columns", [3, 70_000])
@pytest.mark.parametrize("name", ["BitRandTransformer", "BoundsScaler", "NumericPrivatizer", "PrivUnitTransformer"])
def test_a_law_has_its_own_copy_of_an_array(name, n_columns):
    bounds = np.stack([np.full(n_columns, -1.0), np.ones(n_columns)])
    estimator = getattr(skldp, name)(bounds=bounds).fit(np.zeros((2, n_columns)))
    fitted = {key: value for key, value in vars(estimator).items() if key != "bounds" and not key.startswith("_")}
    assert not any(np.shares_memory(bounds, one) for one in arrays_within(fitted, {}))


IN_PLACE = {
    "BayesianFilter bounds": lambda: skldp.BayesianFilter(LinearRegression(), bounds=([-1.0] * 3, [1.0] * 3)),
    "BayesianFilter output_bounds": lambda: skldp.BayesianFilter(LinearRegression(), output_bounds=[-9.0, 9.0]),
    "BitRandTransformer bounds": lambda: skldp.BitRandTransformer(bounds=([-1.0] * 3, np.ones(3))),
    "CategoricalPrivatizer categories": lambda: CategoricalPrivatizer(categories=[["a", "b"]]),
    "LabelLaplace classes": lambda: skldp.papers.LabelLaplace(classes=[0, 1]),
    "LabelLaplaceVector classes": lambda: skldp.papers.LabelLaplaceVector(classes=[0, 1]),
    "LabelMatrixRR classes": lambda: skldp.papers.LabelMatrixRR(classes=[[0, 1], [0, 1]]),
    "LabelPrivateClassifier label_mechanism__classes": lambda: LabelPrivateClassifier(
        LogisticRegression(), label_mechanism=LabelRR(classes=[0, 1])
    ),
    "LabelPrivateRegressor target_mechanism__bounds": lambda: skldp.LabelPrivateRegressor(
        LinearRegression(), target_mechanism=skldp.TargetPrivatizer(bounds=[0.0, 1.0])
    ),
    "LabelRR classes": lambda: LabelRR(classes=np.array([0, 1])),
    "LabelRR prior": lambda: LabelRR(classes=[0, 1], prior=[0.4, 0.6]),
    "LabelSampler label_mechanism__classes": lambda: LabelSampler(LabelRR(classes=[0, 1])),
    "LatentTransformer bounds": lambda: skldp.papers.LatentTransformer(bounds=[-1.0, 1.0]),
    "MultivariateLaplacePrivatizer vocabulary": lambda: skldp.MultivariateLaplacePrivatizer(vocabulary=X[:5].copy()),
    "NumericPrivatizer bounds": lambda: skldp.NumericPrivatizer(bounds=(pd.Series([-1.0] * 3), pd.Series([1.0] * 3))),
    "OMETransformer bounds": lambda: skldp.papers.OMETransformer(bounds=np.array([-1.0, 1.0])),
    "PrivUnitTransformer bounds": lambda: skldp.PrivUnitTransformer(bounds=[-1.0, 1.0]),
    "PrivateDiscriminant bounds": lambda: skldp.PrivateDiscriminant(bounds=[-1.0, 1.0], classes=[0, 1]),
    "PrivateDiscriminant public": lambda: skldp.PrivateDiscriminant(
        bounds=(-1, 1), classes=[0, 1], public=pd.DataFrame(X.copy())
    ),
    "PrivateDiscriminant classes": lambda: skldp.PrivateDiscriminant(bounds=(-1, 1), classes=[0, 1]),
    "PrivateLinearRegression bounds": lambda: skldp.PrivateLinearRegression(bounds=[-1.0, 1.0], target_bounds=(0, 1)),
    "PrivateLinearRegression target_bounds": lambda: skldp.PrivateLinearRegression(target_bounds=[0.0, 1.0]),
    "PrivateLogisticRegression classes": lambda: skldp.PrivateLogisticRegression(classes=[0, 1]),
    "PrivateMoments bounds": lambda: skldp.PrivateMoments(bounds=[-1.0, 1.0]),
    "RandomProjectionPrivatizer vocabulary": lambda: skldp.RandomProjectionPrivatizer(
        n_components=2, sensitivity="vocabulary", vocabulary=X[:5].copy()
    ),
    "TablePrivatizer schema": lambda: skldp.TablePrivatizer(
        schema={name: Column(-1, 1) for name in ("x0", "x1", "x2")}
    ),
    "TablePrivatizer shares": lambda: skldp.TablePrivatizer(
        schema={"x0": (-1, 1), "x1": (-1, 1), "x2": (-1, 1)}, shares={"x0": 0.5, "x1": 0.25, "x2": 0.25}
    ),
    "TargetPrivatizer bounds": lambda: skldp.TargetPrivatizer(bounds=[0.0, 1.0]),
}


def edit(value):
    """Change the first number or text within nested containers."""
    if isinstance(value, pd.DataFrame | pd.Series | np.ndarray):
        getattr(value, "iloc", value)[(0,) * value.ndim] = 7
        return
    first = next(iter(value)) if isinstance(value, dict) else 0
    if isinstance(value[first], dict | list | np.ndarray | pd.Series):
        edit(value[first])
    else:
        value[first] = 7.0


@pytest.mark.parametrize("case", IN_PLACE)
@pytest.mark.filterwarnings("ignore::skldp.exceptions.TooFewPeopleWarning")
def test_a_parameter_that_is_edited_in_place_is_refused_until_the_next_fit(case):
    estimator, name = IN_PLACE[case](), case.split()[1]
    data = {
        "CategoricalPrivatizer": (CODES,),
        "LabelLaplace": (Y,),
        "LabelLaplaceVector": (Y,),
        "LabelMatrixRR": (np.column_stack([Y, Y]),),
        "LabelRR": (Y,),
        "TablePrivatizer": (pd.DataFrame(X, columns=["x0", "x1", "x2"]),),
        "TargetPrivatizer": (Y.astype(float),),
    }.get(case.split()[0], (X, Y))
    getattr(estimator, "fit_resample" if isinstance(estimator, LabelSampler) else "fit")(*data)
    promised = estimator.privacy_guarantee_
    assert pickle.loads(pickle.dumps(estimator)).privacy_guarantee_ == promised
    edit(estimator.get_params()[name])
    with pytest.raises(ChangedAfterFitError, match=f"{name} changed after fit"):
        _ = estimator.privacy_guarantee_
    for call in ("transform", "query", "partial_fit"):
        if hasattr(estimator, call):
            with pytest.raises(ChangedAfterFitError, match=f"{name} changed after fit"):
                getattr(estimator, call)(*data[: 1 if call != "partial_fit" else 2])


@pytest.mark.few(4)
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


@pytest.mark.few(2)
@pytest.mark.filterwarnings("ignore::skldp.exceptions.TooFewPeopleWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        skldp.PrivateLinearRegression(protocol="once"),
        skldp.PrivateLogisticRegression(protocol="once", classes=[0, 1]),
        skldp.PrivateDiscriminant(bounds=(-1, 1), classes=[0, 1]),
        skldp.PrivateMoments(),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_what_takes_more_people_says_that_each_takes_part_once(estimator):
    rows, labels = np.tile(X, (200, 1)), np.tile(Y, 200)
    for call in (estimator.fit, estimator.partial_fit):
        assert call(rows, labels).privacy_guarantee_.basis.count("each person takes part once, in one call") == 1
    if "protocol" in estimator.get_params():
        in_rounds = clone(estimator).set_params(protocol="rounds").fit(rows, labels)
        assert "one call" not in in_rounds.privacy_guarantee_.basis


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


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
@pytest.mark.parametrize(
    ("cls", "bad", "data"),
    [
        ("NumericPrivatizer", {"mechanism": "gaussian", "delta": 0.0}, X[:, :2]),
        ("NumericPrivatizer", {}, [["a", "b"]]),
        ("RandomProjectionPrivatizer", {"n_components": 9}, X),
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
        with pytest.raises(NotFittedError, match="the last fit failed"):
            release()
    assert estimator.fit(given(cls)).privacy_guarantee_ == FITTED[cls]().privacy_guarantee_
