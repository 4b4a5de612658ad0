"""The list of steps that learn nothing from the rows they are fitted on, and of those that do not look at labels."""

import pickle
import re
import warnings

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.utils import all_estimators

from skldp import BoundsScaler, ColumnEncoder, TablePrivatizer, privacy_guarantee
from skldp.estimators import _public_steps as public_steps
from skldp.estimators._public_steps import effect_of_public, ignores_labels

HUGE = np.finfo(np.float64).max
NUMBERS = np.array([[0.0, -1.0, 2.5], [HUGE, -HUGE, 5e-324], [-0.0, 1e-300, 3.0], [1e200, 1.0, -1e200], [0.0] * 3])
WORDS = np.array([["a", 1], ["unheard of", None], ["b", np.nan], [3, "c"], ["", b"\xff"], [True, 2.5]], dtype=object)
LEVELS = {"categories": [["a", "b"], [1, 2]]}
OR_MISSING = {j: {"type": "category", "values": LEVELS["categories"][j], "missing": "category"} for j in (0, 1)}
STEPS = [
    (BoundsScaler(bounds=([-1, -2, 0], [1, 2, 9])), NUMBERS),
    (FunctionTransformer(), NUMBERS),
    (Normalizer(), NUMBERS),
    (Normalizer(norm="l1"), NUMBERS / 10),
    (Normalizer(norm="max"), NUMBERS),
    (OneHotEncoder(handle_unknown="ignore", sparse_output=False, **LEVELS), WORDS),
    (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, **LEVELS), WORDS),
    (ColumnEncoder({0: (0, 9), 2: {"type": "number", "low": -1, "high": 1, "missing": "category"}}), NUMBERS),
    (ColumnEncoder(OR_MISSING, handle_unknown="missing"), np.array([["a", 1], ["c", None], [None, 2.5]], dtype=object)),
    (SimpleImputer(strategy="constant", keep_empty_features=True), np.where(NUMBERS == 2.5, np.nan, NUMBERS)),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::skldp.exceptions.OutOfDomainWarning")
@pytest.mark.parametrize(("step", "rows"), STEPS, ids=lambda one: type(one).__name__)
def test_a_public_step_learns_nothing_and_works_on_each_row_alone(step, rows):
    fits = [pickle.dumps(step.fit(some)) for some in (rows[:2], rows[:3][::-1], rows, rows[:1])]
    assert len(set(fits)) == 1
    together = np.asarray(step.transform(rows))
    alone = [np.asarray(step.transform(rows[i : i + 1]))[0] for i in range(len(rows))]
    np.testing.assert_array_equal(np.vstack(alone), together)
    assert effect_of_public(step) is not None
    if rows.dtype == np.float64:
        assert np.isfinite(np.asarray(step.fit(NUMBERS).transform(NUMBERS))).all()


def test_every_type_on_the_list_is_tested():
    assert {type(step) for step, _ in STEPS} == set(public_steps._EFFECTS)


@pytest.mark.parametrize(
    "step",
    [
        Binarizer(),
        PolynomialFeatures(),
        FunctionTransformer(np.log1p),
        OneHotEncoder(handle_unknown="ignore", drop="first", **LEVELS),
        OrdinalEncoder(),
        # A code of NaN or infinity is refused by the step behind.
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan, **LEVELS),
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, categories=[["a", np.nan], [1, 2]]),
        SimpleImputer(strategy="constant", keep_empty_features=True, fill_value=np.inf),
    ],
    ids=repr,
)
def test_without_its_condition_none_is_public(step):
    rows = WORDS[:1] if "categories" in step.get_params() else NUMBERS[:1]
    assert effect_of_public(step.fit(rows)) is None


@pytest.mark.parametrize(
    "step",
    [SimpleImputer(), OneHotEncoder(sparse_output=False, **LEVELS), OrdinalEncoder(**LEVELS), StandardScaler()],
    ids=lambda one: type(one).__name__,
)
@pytest.mark.filterwarnings("ignore::skldp.exceptions.OutOfDomainWarning")
def test_the_reason_names_a_step_that_learns_nothing(step):
    """In the place of the step, what it names is finite."""
    rows = np.array([["a", 1], ["b", 2]], dtype=object) if hasattr(step, "categories") else np.eye(3)
    release = TablePrivatizer(8.0)
    reason = privacy_guarantee(make_pipeline(step, release).fit(rows)).basis
    named = re.search(r"randomized: (.*) learns nothing", reason)[1].replace("[...]", repr(LEVELS["categories"]))
    for way in named.split(" or "):
        made = eval(way if way.endswith(")") else f"{way}()", globals())
        if isinstance(made, OneHotEncoder):
            made.set_params(sparse_output=False)
        assert privacy_guarantee(make_pipeline(made, release).fit(rows)).epsilon <= 8


@pytest.mark.parametrize(
    ("learnt", "declared"),
    [
        (OneHotEncoder(handle_unknown="ignore"), {"categories": [["a", "b"], [1]]}),
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), {"categories": [["a", "c"], [1]]}),
        (SimpleImputer(strategy="most_frequent", keep_empty_features=True), {"strategy": "constant"}),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_declaration_after_fit_makes_nothing_public(learnt, declared):
    rows = np.array([["a", 1], ["a", 1]], dtype=object)
    assert effect_of_public(learnt.fit(rows).set_params(**declared)) is None
    assert effect_of_public(learnt.fit(rows)) is not None


def test_how_far_distances_are_stretched():
    assert effect_of_public(FunctionTransformer()).stretch == 1
    scaler = BoundsScaler(bounds=(0, [1, 8])).fit(np.zeros((1, 2)))
    assert effect_of_public(scaler).stretch == pytest.approx(2)
    assert effect_of_public(Normalizer()).stretch is None


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


@pytest.mark.few(20)
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
