import pickle
import warnings

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.experimental import enable_halving_search_cv  # noqa: F401 -- makes HalvingGridSearchCV importable
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from toy_estimators import ToyLabels, ToySigns

from skldp import (
    BitRandTransformer,
    LabelPrivateClassifier,
    LabelRR,
    privacy_guarantee,
)
from skldp.exceptions import PrivacyGuaranteeWarning
from skldp.study import smallest_epsilon


def exact_epsilon(model, X, y):
    return privacy_guarantee(model).plain_epsilon


EXACT = {"score": "accuracy", "exact_epsilon": exact_epsilon}


def results(candidates, scores, **more):
    return {"params": candidates, "mean_test_score": np.array(scores), **more}


@pytest.mark.parametrize(("tolerance", "chosen"), [(0, 3), (0.02, 2), (0.1, 1), (1, 0)])
def test_takes_the_smallest_epsilon_within_the_tolerance(tolerance, chosen):
    candidates = [{"a__epsilon": eps} for eps in (1, 2, 4, 8)]
    assert smallest_epsilon(tolerance)(results(candidates, [0.5, 0.75, 0.79, 0.8])) == chosen


@pytest.mark.parametrize("second", [{"y__epsilon": 0.7}, {"x__epsilon": 0.4, "y__epsilon": 0.7}])
def test_two_epsilons_need_exact_scores_or_a_name(second):
    candidates = [{"x__epsilon": 1}, second]
    with pytest.raises(ValueError, match=r"exactly one .* or an exact_epsilon in scoring"):
        smallest_epsilon(0.1)(results(candidates, [0.8, 0.8]))
    scored = {"split0_test_exact_epsilon": [3.0, 4.0], "split1_test_exact_epsilon": [3.0, 4.0]}
    assert smallest_epsilon(0.1)(results(candidates, [0.8, 0.8], **scored)) == 0


def test_candidates_without_epsilon_are_not_private():
    candidates = [{"step": "passthrough"}, {"x__epsilon": 9}, {"x__epsilon": 5}]
    assert smallest_epsilon(0.05)(results(candidates, [0.9, 0.87, 0.8])) == 1
    assert smallest_epsilon(0.01)(results(candidates, [0.9, 0.87, 0.8])) == 0


def test_in_a_pickled_search_over_two_grids(fixed_noise):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    y = (X[:, 0] > 0).astype(int)
    search = GridSearchCV(
        make_pipeline(ToySigns(), ToyLabels(LogisticRegression(), epsilon=20)),
        [
            {"toysigns__epsilon": [0.1, 40]},
            {"toysigns__epsilon": [90], "toylabels__estimator__C": [0.1, 1]},
        ],
        refit=smallest_epsilon(0.05),
        cv=3,
    )
    search = pickle.loads(pickle.dumps(search)).fit(X, y)
    assert search.best_params_ == {"toysigns__epsilon": 40}


def test_a_published_two_is_no_two_beside_an_exact_five():
    """A stated 2 that is exactly 6.5 loses against an exact 5 where exact epsilons are scored."""
    X = np.random.default_rng(0).uniform(-1, 1, (60, 1))
    y = np.arange(60) % 2
    model = make_pipeline(BitRandTransformer(), GaussianNB())
    grid = [
        {"bitrandtransformer__epsilon": [2.0], "bitrandtransformer__calibration": ["published"]},
        {"bitrandtransformer__epsilon": [5.0], "bitrandtransformer__calibration": ["exact"]},
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyGuaranteeWarning)
        search = GridSearchCV(model, grid, cv=2, scoring=EXACT, refit=smallest_epsilon(1.0)).fit(X, y)
    published, exact = search.cv_results_["mean_test_exact_epsilon"]
    assert published == pytest.approx(6.498, abs=0.001)
    assert 4.99 < exact <= 5
    assert search.best_params_["bitrandtransformer__calibration"] == "exact"
    # Without exact scores, the only epsilon is compared as it was set.
    without = {name: column for name, column in search.cv_results_.items() if "exact_epsilon" not in name}
    assert smallest_epsilon(1.0)(without) == 0


def two_private_steps():
    """Rows by bits that are stated as 2, and are 6.5 exactly as published, and labels."""
    labels = LabelRR(1.0, classes=[0, 1])
    return Pipeline(
        [("x", BitRandTransformer(2.0)), ("m", LabelPrivateClassifier(GaussianNB(), label_mechanism=labels))]
    )


@pytest.mark.filterwarnings("ignore::skldp.exceptions.PrivacyGuaranteeWarning")
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_exact_epsilons_of_two_private_steps_are_compared_where_scored(n_jobs, fixed_noise):
    """The epsilons add up to 3 and 4.5 as set, and to 7.5 and 7.43 exactly."""
    X = np.random.default_rng(0).uniform(-1, 1, (60, 1))
    y = np.arange(60) % 2
    grid = [
        {"x__epsilon": [2.0], "m__label_mechanism__epsilon": [1.0]},
        {"x__epsilon": [0.5], "m__label_mechanism__epsilon": [4.0]},
    ]
    with parallel_config("threading"):
        search = GridSearchCV(two_private_steps(), grid, cv=2, refit=smallest_epsilon(1.0), n_jobs=n_jobs)
        with pytest.raises(ValueError, match="exact_epsilon"):
            search.fit(X, y)
        search.set_params(scoring=EXACT).fit(X, y)
    exact = search.cv_results_["mean_test_exact_epsilon"]
    assert search.best_index_ == 1
    assert privacy_guarantee(search.best_estimator_).plain_epsilon == exact[1] < exact[0]


def test_the_worst_fold_counts_and_what_nothing_bounds_comes_last():
    found = {
        "params": [{"epsilon": 1}, {"epsilon": 2}, {"epsilon": 3}, {"epsilon": 4}],
        "mean_test_score": np.array([0.8, 0.8, 0.8, np.nan]),
        "split0_test_exact_epsilon": np.array([1.0, 2.0, np.inf, np.nan]),
        "split1_test_exact_epsilon": np.array([9.0, 2.5, np.inf, np.nan]),
    }
    assert smallest_epsilon()(found) == 1
    found["mean_test_score"][1] = 0.5
    assert smallest_epsilon()(found) == 0
