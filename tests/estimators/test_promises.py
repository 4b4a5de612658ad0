"""What every public transformer of X promises, whatever its mechanism."""

import pickle
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from doors import ESTIMATORS
from joblib import Parallel, delayed
from sklearn.base import clone

import skldp
from skldp.estimators._base import LocalTransformer, TargetTransformer
from skldp.exceptions import (
    LearntDomainWarning,
    OutOfDomainWarning,
    PrivacyGuaranteeWarning,
    SeededNoiseWarning,
)
from skldp.mechanisms import RowMechanism

ALL = list(ESTIMATORS.values())
OF_NUMBERS = [cls for cls in ALL if cls is not skldp.CategoricalPrivatizer and not issubclass(cls, TargetTransformer)]
TRANSFORMERS = [cls for cls in OF_NUMBERS if issubclass(cls, LocalTransformer)]
BOUNDED = [cls for cls in TRANSFORMERS if getattr(cls(), "bounds", None) is not None]
EXPECTED = (PrivacyGuaranteeWarning, LearntDomainWarning)

each_transformer = pytest.mark.parametrize("cls", TRANSFORMERS, ids=lambda cls: cls.__name__)
each_bounded = pytest.mark.parametrize("cls", BOUNDED, ids=lambda cls: cls.__name__)
pytestmark = [pytest.mark.filterwarnings(f"ignore::{w.__module__}.{w.__name__}") for w in EXPECTED]


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_has_at_most_five_bases_of_this_package(cls):
    assert sum(base.__module__.startswith("skldp.") for base in cls.__mro__[1:]) <= 5


def rows(n=40, d=3, dtype=np.float64):
    return np.random.default_rng(0).uniform(-0.9, 0.9, (n, d)).astype(dtype)


def released(estimator, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return estimator.fit_transform(X)


@each_transformer
@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), True, "1", None])
@pytest.mark.parametrize("skip", [False, True])
def test_refuses_a_bad_epsilon_even_where_validation_is_off(cls, epsilon, skip):
    with sklearn.config_context(skip_parameter_validation=skip), pytest.raises(ValueError, match="epsilon"):
        cls(epsilon=epsilon).fit_transform(rows())


@each_transformer
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("assume_finite", [False, True])
def test_refuses_nan_and_infinity_even_where_that_is_assumed_away(cls, bad, assume_finite):
    X = rows()
    fitted = cls().fit(X)
    X[3, 1] = bad
    with sklearn.config_context(assume_finite=assume_finite):
        for call in (fitted.transform, fitted.fit, fitted.fit_transform):
            with pytest.raises(ValueError, match=r"^Input X contains (NaN|infinity)"):
                call(X)


@pytest.mark.few(2)
@pytest.mark.parametrize("cls", [skldp.BitRandTransformer, skldp.papers.LatentTransformer, skldp.NumericPrivatizer])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_nan_at_the_end_of_a_large_frame_is_refused_as_any_other(cls, n_jobs):
    X = pd.DataFrame(np.zeros((3000, 800), dtype=np.float32)).rename(columns=str)
    fitted = cls(n_jobs=n_jobs).fit(X)
    X.iloc[-1, -1] = np.nan
    with pytest.raises(ValueError, match=r"^Input X contains NaN or infinity in column '799'\."):
        fitted.transform(X)


@each_transformer
@pytest.mark.parametrize("X", [np.zeros((0, 3)), np.zeros(3), [["a", "b", "c"]]], ids=["empty", "1d", "strings"])
def test_refuses_other_input(cls, X):
    with pytest.raises(ValueError, match=r"."):
        cls().fit_transform(X)


@pytest.mark.parametrize(
    "estimator",
    [
        skldp.PrivUnitTransformer(norm=True),
        skldp.MultivariateLaplacePrivatizer(radius=True),
        skldp.RandomProjectionPrivatizer(radius=True),
        skldp.RandomProjectionPrivatizer(n_components=True),
        skldp.RandomProjectionPrivatizer(projection_seed=True),
        skldp.NumericPrivatizer(delta=False),
        skldp.NumericPrivatizer(n_sampled_features=True),
        skldp.BitRandTransformer(n_bits=np.True_),
    ],
    ids=str,
)
def test_a_bool_is_no_number(estimator):
    with pytest.raises(ValueError, match="must be"):
        estimator.fit(rows())


@each_bounded
@pytest.mark.parametrize(
    "bounds",
    [
        (1, -1),
        (0, 0),
        (-np.inf, 1),
        (-1, np.nan),
        (0,),
        "ab",
        ("a", "b"),
        ([0, 0], [1, 1]),
        (None, 1),
        3,
        (False, True),
        ("0", "1"),
    ],
    ids=str,
)
def test_refuses_bad_bounds(cls, bounds):
    with pytest.raises(ValueError, match="bounds"):
        cls(bounds=bounds).fit_transform(rows())


@each_transformer
def test_the_guarantee_is_exact_or_warned_of(cls):
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        guarantee = cls(epsilon=1.5).fit(rows()).privacy_guarantee_
    warned = [str(one.message) for one in issued if one.category is PrivacyGuaranteeWarning]
    assert guarantee.stated == 1.5
    assert not guarantee.seeded
    published_delta = dict(guarantee.figures).get("delta as published", guarantee.delta)
    assert (guarantee.epsilon <= 1.5 and guarantee.delta <= published_delta) == (not warned)
    proved = guarantee.epsilon if guarantee.epsilon > 1.5 else guarantee.delta
    assert all(f"{proved:.4g}" in text for text in warned)


@each_transformer
def test_noise_is_new_in_every_call_copy_process_and_thread(cls):
    X = rows()
    estimator = cls().fit(X)
    outputs = [estimator.transform(X) for _ in range(2)]
    outputs += [clone(estimator).fit_transform(X), pickle.loads(pickle.dumps(estimator)).transform(X)]
    outputs += Parallel(n_jobs=2)(delayed(estimator.transform)(X) for _ in range(2))
    workers = [threading.Thread(target=lambda: outputs.append(estimator.transform(X))) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len({output.tobytes() for output in outputs}) == 8


@each_transformer
def test_the_global_seed_has_no_influence(cls):
    state = np.random.get_state()
    try:
        outputs = []
        for _ in range(2):
            np.random.seed(0)
            outputs.append(cls().fit_transform(rows()))
    finally:
        np.random.set_state(state)
    assert not np.array_equal(*outputs)


@each_transformer
def test_a_seed_repeats_warns_and_voids_the_guarantee(cls):
    X = rows()
    with pytest.warns(SeededNoiseWarning):
        outputs = [cls(seed=1).fit_transform(X) for _ in range(2)]
    np.testing.assert_array_equal(*outputs)
    assert "void" in str(cls(seed=1).fit(X).privacy_guarantee_)


def small_blocks_and_tasks(monkeypatch):
    """Blocks of 12 numbers, of which a task holds two, in every mechanism."""
    monkeypatch.setattr("skldp.mechanisms._rows._TASK_CELLS", 24)
    kinds = [RowMechanism]
    for kind in kinds:
        kinds += kind.__subclasses__()
        monkeypatch.setattr(kind, "block_cells", 12)


@each_transformer
def test_a_seeded_release_does_not_depend_on_the_number_of_threads(cls, monkeypatch):
    small_blocks_and_tasks(monkeypatch)
    X = rows(n=50)
    np.testing.assert_array_equal(released(cls(seed=2, n_jobs=1), X), released(cls(seed=2, n_jobs=3), X))


@each_transformer
def test_no_two_tasks_share_their_noise(cls, monkeypatch):
    """The same row many times over, in blocks and streams of a few rows: no run of releases repeats."""
    small_blocks_and_tasks(monkeypatch)
    output = cls().fit_transform(np.full((400, 3), 0.25))
    runs = [output[start : start + 40].tobytes() for start in range(0, 400, 40)]
    assert len(set(runs)) == len(runs)


@each_transformer
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_keeps_the_dtype_and_leaves_the_input_alone(cls, dtype):
    X = rows(dtype=dtype)
    before = X.copy()
    estimator = cls().fit(X)
    assert estimator.transform(X).dtype == dtype
    assert estimator.set_params(transform_noise=False).fit(X).transform(X).dtype == dtype
    np.testing.assert_array_equal(X, before)


@each_transformer
def test_without_noise_only_fit_transform_randomizes(cls):
    X = rows()
    estimator = cls(transform_noise=False)
    first, second = estimator.fit_transform(X), estimator.fit_transform(X)
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(estimator.transform(X), estimator.transform(X))


@each_bounded
def test_clips_and_counts_what_lies_outside(cls):
    X = rows()
    X[0, 0], X[5, 2] = 3.0, -1.5
    estimator = cls(transform_noise=False).fit(X)
    with pytest.warns(OutOfDomainWarning, match="2 of 120"):
        encoded = estimator.transform(X)
    np.testing.assert_array_equal(encoded, estimator.transform(X.clip(-1, 1)))


@each_transformer
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_never_written_to(cls, dtype, monkeypatch):
    """Not even a view, which is handed on without a copy, in one task or in several."""
    small_blocks_and_tasks(monkeypatch)
    whole = np.repeat(rows(n=120), 2, axis=1).astype(dtype)
    kept = whole.copy()
    for view in (whole[5:100, ::2], whole[7:9, :3], np.asfortranarray(whole)[:, :3]):
        before = view.copy()
        cls().fit(view).transform(view)
        cls(transform_noise=False).fit(view).transform(view)
        np.testing.assert_array_equal(view, before)
    np.testing.assert_array_equal(whole, kept)
