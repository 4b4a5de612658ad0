"""The list of steps that tell nothing of the rows they were fitted on, and of those that do not look at labels."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.utils import all_estimators

from skldp import BoundsScaler
from skldp.estimators import _public_steps as public_steps
from skldp.estimators._public_steps import effect_of_public, ignores_labels

HUGE = np.finfo(np.float64).max
NUMBERS = np.array([[0.0, -1.0, 2.5], [HUGE, -HUGE, 5e-324], [-0.0, 1e-300, 3.0], [1e200, 1.0, -1e200], [0.0] * 3])
WORDS = np.array([["a", 1], ["unheard of", None], ["b", np.nan], [3, "c"], ["", b"\xff"], [True, 2.5]], dtype=object)
TEXTS = np.array(["one two", "", "two \ud800 three", b"\xff\xfe", "x" * 1000], dtype=object)
LEVELS = {"categories": [["a", "b"], [1, 2]]}
STEPS = [
    (Binarizer(threshold=0.5), NUMBERS),
    (BoundsScaler(bounds=([-1, -2, 0], [1, 2, 9])), NUMBERS),
    (FunctionTransformer(), NUMBERS),
    (GaussianRandomProjection(2, random_state=0), NUMBERS / 10),
    (HashingVectorizer(n_features=16, decode_error="replace"), TEXTS),
    (Normalizer(), NUMBERS),
    (Normalizer(norm="l1"), NUMBERS / 10),
    (Normalizer(norm="max"), NUMBERS),
    (OneHotEncoder(handle_unknown="ignore", sparse_output=False, **LEVELS), WORDS),
    (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, **LEVELS), WORDS),
    (PolynomialFeatures(), NUMBERS),
    (SimpleImputer(strategy="constant", keep_empty_features=True), np.where(NUMBERS == 2.5, np.nan, NUMBERS)),
    (SparseRandomProjection(2, random_state=0), NUMBERS / 10),
]


def numbers(released):
    return released.toarray() if hasattr(released, "toarray") else np.asarray(released)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::skldp.exceptions.OutOfDomainWarning")
@pytest.mark.parametrize(("step", "rows"), STEPS, ids=lambda one: type(one).__name__)
def test_a_public_step_learns_nothing_and_works_on_each_row_alone(step, rows):
    fits = [pickle.dumps(step.fit(some)) for some in (rows[:2], rows[:3][::-1], rows, rows[:1])]
    # GaussianRandomProjection and SimpleImputer have nothing but the shape and the type in them.
    assert len(set(fits)) == 1
    together = numbers(step.transform(rows))
    alone = [numbers(step.transform(rows[i : i + 1]))[0] for i in range(len(rows))]
    np.testing.assert_array_equal(np.vstack(alone), together)
    effect = effect_of_public(step)
    assert effect is not None
    if rows.dtype == np.float64 and not effect.may_overflow:
        assert np.isfinite(numbers(step.fit(NUMBERS).transform(NUMBERS))).all()


def test_every_type_on_the_list_is_tested():
    assert {type(step) for step, _ in STEPS} == set(public_steps._EFFECTS)


@pytest.mark.parametrize(
    "step",
    [
        FunctionTransformer(np.log1p),
        HashingVectorizer(),
        HashingVectorizer(decode_error="replace", tokenizer=str.split),
        OneHotEncoder(handle_unknown="ignore", drop="first", **LEVELS),
        OrdinalEncoder(),
        # What is NaN is refused by the step behind, and so is infinity.
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan, **LEVELS),
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, categories=[["a", np.nan]]),
        SimpleImputer(strategy="constant", keep_empty_features=True, fill_value=np.inf),
        GaussianRandomProjection(),
    ],
    ids=repr,
)
def test_without_its_condition_none_is_public(step):
    # A projection of a size that is chosen by the number of rows tells that number, which is no secret: but it also
    # refuses too few of them, so its size is to be given.
    assert effect_of_public(step) is None


def test_how_far_distances_are_stretched():
    assert effect_of_public(FunctionTransformer()).stretch == 1
    scaler = BoundsScaler(bounds=(0, [1, 8])).fit(np.zeros((1, 2)))
    assert effect_of_public(scaler).stretch == pytest.approx(2)
    assert effect_of_public(Normalizer()).stretch is None


@pytest.mark.parametrize(("step", "rows"), [case for case in STEPS if case[1].dtype == np.float64])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::skldp.exceptions.OutOfDomainWarning")
def test_no_number_is_larger_than_said(step, rows):
    few = np.nan_to_num(rows).clip(-3, 3)
    given = numbers(step.fit(few).transform(few))
    assert np.abs(given).max() <= effect_of_public(step, 3.0).largest * (1 + 1e-12)
    assert effect_of_public(step, 2.0).largest <= effect_of_public(step, 3.0).largest


OVERFLOWING = [
    PolynomialFeatures(),
    *(cls(2, random_state=0) for cls in (GaussianRandomProjection, SparseRandomProjection)),
]


@pytest.mark.parametrize("step", OVERFLOWING, ids=repr)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_may_overflow_does(step):
    step.fit(NUMBERS)
    assert effect_of_public(step).may_overflow
    assert not np.isfinite(numbers(step.transform(np.full((9, 3), HUGE)))).all()


# Texts, dictionaries, kernels or labels.
TAKES_NO_TABLE = {
    "CountVectorizer",
    "DictVectorizer",
    "KernelCenterer",
    "LabelBinarizer",
    "LabelEncoder",
    "MultiLabelBinarizer",
    "PatchExtractor",
    "TfidfVectorizer",
}


def estimators_without_labels():
    for name, cls in all_estimators():
        try:
            estimator = cls()
        except (TypeError, FutureWarning):
            # A meta-estimator that needs another one, or a name that goes away.
            continue
        try:
            if ignores_labels(estimator):
                yield pytest.param(estimator, id=name)
        except AttributeError:
            continue


@pytest.mark.parametrize("estimator", list(estimators_without_labels()))
def test_what_is_said_to_ignore_labels_does(estimator):
    rows = np.abs(np.random.default_rng(0).normal(size=(40, 5)))
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=0)
    if "RandomProjection" in type(estimator).__name__:
        estimator.set_params(n_components=2)
    if type(estimator).__name__ == "TSNE":
        # The fewest rounds that it takes, without threads that wait for one another.
        estimator.set_params(max_iter=250, method="exact")
    labels = np.arange(40) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            first = pickle.dumps(estimator.fit(rows, labels))
        except (AttributeError, TypeError, ValueError):
            assert type(estimator).__name__ in TAKES_NO_TABLE
            return
        assert pickle.dumps(estimator.fit(rows, labels[::-1])) == first
