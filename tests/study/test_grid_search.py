import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from toy_estimators import ToyLabels, ToySigns

from skldp import BitRandTransformer, NumericPrivatizer, PrivacyGuarantee, PrivateLinearRegression, privacy_guarantee
from skldp.exceptions import PrivacyGuaranteeWarning, TooFewPeopleWarning
from skldp.study import smallest_epsilon, with_exact_epsilon


def results(candidates, scores, **more):
    return {"params": candidates, "mean_test_score": np.array(scores), **more}


@pytest.mark.parametrize(("tolerance", "chosen"), [(0, 3), (0.02, 2), (0.1, 1), (1, 0)])
def test_takes_the_smallest_epsilon_within_the_tolerance(tolerance, chosen):
    candidates = [{"a__epsilon": eps} for eps in (1, 2, 4, 8)]
    assert smallest_epsilon(tolerance)(results(candidates, [0.5, 0.75, 0.79, 0.8])) == chosen


def test_best_of_equal_epsilons_and_sum_of_several():
    candidates = [{"x__epsilon": 1, "C": 1}, {"x__epsilon": 1, "C": 2}, {"x__epsilon": 0.4, "y__epsilon": 0.7}]
    assert smallest_epsilon(0.1)(results(candidates, [0.8, 0.81, 0.85])) == 1
    assert smallest_epsilon(0.1, param_name="x__epsilon")(results(candidates, [0.8, 0.81, 0.85])) == 2


def test_candidates_without_epsilon_are_not_private():
    candidates = [{"step": "passthrough"}, {"x__epsilon": 9}, {"x__epsilon": 5}]
    assert smallest_epsilon(0.05)(results(candidates, [0.9, 0.87, 0.8])) == 1
    assert smallest_epsilon(0.01)(results(candidates, [0.9, 0.87, 0.8])) == 0


def test_failed_fits_are_passed_over():
    candidates = [{"epsilon": 1}, {"epsilon": 2}]
    assert smallest_epsilon(0.5)(results(candidates, [np.nan, 0.5])) == 1
    with pytest.raises(ValueError, match="only NaN"):
        smallest_epsilon()(results(candidates, [np.nan, np.nan]))


def test_says_when_no_parameter_ends_with_epsilon():
    with pytest.raises(ValueError, match=r"ends with epsilon.*Got \['C', 'total_epsilon'\]"):
        smallest_epsilon()(results([{"C": 1}, {"total_epsilon": 1}], [0.1, 0.2]))
    with pytest.raises(ValueError, match="among"):
        smallest_epsilon(param_name="b")(results([{"a": 1}], [0.1]))


def test_reads_one_of_several_metrics():
    more = {"mean_test_auc": np.array([0.9, 0.9])}
    found = {"params": [{"epsilon": 1}, {"epsilon": 2}], **more}
    assert smallest_epsilon(metric="auc")(found) == 0
    with pytest.raises(ValueError, match="metric must be one of"):
        smallest_epsilon()(found)


@pytest.mark.parametrize("tolerance", [-0.1, float("nan"), float("inf"), True, "1"])
def test_refuses_a_bad_tolerance(tolerance):
    with pytest.raises(ValueError, match="tolerance"):
        smallest_epsilon(tolerance)


def test_in_a_pickled_search_over_two_grids(fixed_noise):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    y = (X[:, 0] > 0).astype(int)
    search = GridSearchCV(
        make_pipeline(ToySigns(), ToyLabels(LogisticRegression())),
        [
            {"toysigns__epsilon": [0.1, 40], "toylabels__epsilon": [20]},
            {"toysigns__epsilon": [90], "toylabels__epsilon": [20], "toylabels__estimator__C": [0.1, 1]},
        ],
        refit=smallest_epsilon(0.05),
        cv=3,
    )
    search = pickle.loads(pickle.dumps(search)).fit(X, y)
    assert search.best_params_ == {"toysigns__epsilon": 40, "toylabels__epsilon": 20}


@pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")
def test_a_model_that_learns_without_rows_is_searched_as_any_other():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (9_000, 3))
    y = X @ [0.4, -0.3, 0.1] + 0.05 * rng.uniform(-1, 1, 9_000)
    search = GridSearchCV(
        PrivateLinearRegression(target_bounds=(-1, 1), seed=0),
        {"epsilon": [0.1, 4.0, 8.0]},
        refit=smallest_epsilon(0.05),
        cv=2,
    )
    with pytest.warns(TooFewPeopleWarning):
        search.fit(X, y)
    assert search.best_params_ == {"epsilon": 4.0}
    assert privacy_guarantee(search.best_estimator_).epsilon <= 4.0


def test_a_published_two_is_no_two_beside_an_exact_five():
    """What is stated as 2 and is 6.5 exactly loses against an exact 5, where exact ones are scored."""
    X = np.random.default_rng(0).uniform(-1, 1, (60, 1))
    y = np.arange(60) % 2
    model = make_pipeline(BitRandTransformer(), GaussianNB())
    grid = [
        {"bitrandtransformer__epsilon": [2.0], "bitrandtransformer__calibration": ["published"]},
        {"bitrandtransformer__epsilon": [5.0], "bitrandtransformer__calibration": ["exact"]},
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyGuaranteeWarning)
        search = GridSearchCV(
            model, grid, cv=2, scoring=with_exact_epsilon("accuracy"), refit=smallest_epsilon(1.0)
        ).fit(X, y)
    published, exact = search.cv_results_["mean_test_exact_epsilon"]
    assert published == pytest.approx(6.498, abs=0.001)
    assert 4.99 < exact <= 5
    assert search.best_params_["bitrandtransformer__calibration"] == "exact"
    # Told what to read, the rule reads it; and says that it orders what cannot be ordered by it.
    without = {name: column for name, column in search.cv_results_.items() if "exact_epsilon" not in name}
    for rule, found in (
        (smallest_epsilon(1.0, param_name="bitrandtransformer__epsilon"), search.cv_results_),
        (smallest_epsilon(1.0), without),
    ):
        with pytest.warns(PrivacyGuaranteeWarning, match="differ in bitrandtransformer__calibration, with which"):
            assert rule(found) == 0


@pytest.mark.filterwarnings("ignore::skldp.exceptions.PrivacyGuaranteeWarning")
def test_a_search_compares_exact_epsilons_without_being_told(fixed_noise):
    X = np.random.default_rng(0).uniform(-1, 1, (60, 1))
    y = np.arange(60) % 2
    model = make_pipeline(BitRandTransformer(), GaussianNB())
    grid = [
        {"bitrandtransformer__epsilon": [2.0], "bitrandtransformer__calibration": ["published"]},
        {"bitrandtransformer__epsilon": [5.0], "bitrandtransformer__calibration": ["exact"]},
        {"bitrandtransformer": ["passthrough"]},
    ]
    search = GridSearchCV(model, grid, cv=2, refit=smallest_epsilon(1.0))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search.fit(X, y)
    assert search.best_params_["bitrandtransformer__calibration"] == "exact"
    assert not [one for one in caught if "with_exact_epsilon" in str(one.message)]


class Counted(BaseEstimator):
    """Scores its `score_as`, and remembers in `FITS` what it was fitted to."""

    def __init__(self, epsilon=1.0, score_as=1.0, ledger=None):
        self.epsilon = epsilon
        self.score_as = score_as
        self.ledger = ledger

    def fit(self, X, y=None, weights=None):
        FITS.append((self.epsilon, self.score_as, len(X), None if weights is None else len(weights)))
        self.privacy_guarantee_ = PrivacyGuarantee(self.epsilon / self.score_as)
        return self

    def score(self, X, y=None):
        return self.score_as


FITS = []


def test_only_what_is_near_enough_to_the_best_is_fitted_once_more():
    X = np.zeros((6, 1))
    grid = {"epsilon": [2.0, 3.0], "score_as": [0.1, 0.8, 1.0]}
    FITS.clear()
    search = GridSearchCV(Counted(), grid, cv=2, refit=smallest_epsilon(0.3)).fit(X, weights=np.ones(6))
    assert search.best_params_ == {"epsilon": 2.0, "score_as": 1.0}
    assert [one for one in FITS if one[2] == 6] == [
        *((epsilon, score, 6, 6) for epsilon in (2.0, 3.0) for score in (0.8, 1.0)),
        (2.0, 1.0, 6, 6),
    ]
    # Where all differ in epsilon alone, none is.
    FITS.clear()
    GridSearchCV(Counted(), {"epsilon": [2.0, 3.0]}, cv=2, refit=smallest_epsilon()).fit(X)
    assert [one[2] for one in FITS] == [3] * 4 + [6]


def test_a_ledger_is_not_charged_for_a_comparison():
    FITS.clear()
    search = GridSearchCV(
        Counted(ledger="any"), {"epsilon": [2.0, 3.0], "score_as": [0.8, 1.0]}, cv=2, refit=smallest_epsilon(1.0)
    )
    with pytest.warns(PrivacyGuaranteeWarning, match="differ in score_as, with which"):
        search.fit(np.zeros((6, 1)))
    assert [one[2] for one in FITS] == [3] * 8 + [6]


UNLIKE = {"params": [{"epsilon": 2.0, "n": 1}, {"epsilon": 1.0, "n": 2}], "mean_test_score": [1, 1]}


class OtherRows:
    """A search of another package, which calls its rows by another name."""

    def __init__(self, refit):
        self.refit = refit

    def fit(self, rows):
        return self.refit(UNLIKE)


class OtherModel(OtherRows):
    """One that has another place for its model."""

    def fit(self, X):
        return self.refit(UNLIKE)


@pytest.mark.parametrize("search", [OtherRows, OtherModel])
def test_a_search_that_is_not_known_compares_what_was_set_and_says_so(search):
    with pytest.warns(PrivacyGuaranteeWarning, match="differ in n, with which"):
        assert search(smallest_epsilon()).fit([[0.0]]) == 1


@pytest.mark.filterwarnings("ignore::skldp.exceptions.PrivacyGuaranteeWarning")
def test_a_calibration_alone_is_searched_as_well(fixed_noise):
    X = np.random.default_rng(0).uniform(-1, 1, (60, 1))
    y = np.arange(60) % 2
    model = make_pipeline(BitRandTransformer(2.0), GaussianNB())
    grid = {"bitrandtransformer__calibration": ["published", "exact"]}
    search = GridSearchCV(model, grid, cv=2, refit=smallest_epsilon(1.0)).fit(X, y)
    assert search.best_params_ == {"bitrandtransformer__calibration": "exact"}
    # Nothing to compare, and no exact epsilon: what is wrong is said as ever.
    with pytest.raises(ValueError, match="needs a searched parameter"):
        GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9]}, cv=2, refit=smallest_epsilon()).fit(X, y)


def test_the_worst_fold_counts_and_what_nothing_bounds_comes_last():
    found = {
        "params": [{"epsilon": 1}, {"epsilon": 2}, {"epsilon": 3}, {"epsilon": 4}],
        "mean_test_score": np.array([0.8, 0.8, 0.8, np.nan]),
        "split0_test_exact_epsilon": np.array([1.0, 2.0, 1e150, np.nan]),
        "split1_test_exact_epsilon": np.array([9.0, 2.5, 1e150, np.nan]),
    }
    assert smallest_epsilon()(found) == 1
    found["mean_test_score"][1] = 0.5
    assert smallest_epsilon()(found) == 0


def test_exact_epsilons_are_scored_beside_any_score():
    X, y = np.random.default_rng(0).uniform(-1, 1, (60, 2)), np.arange(60) % 2
    scoring = pickle.loads(pickle.dumps(with_exact_epsilon()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Labels choose nothing here, and nothing in the second is private.
        for model, expected in ((NumericPrivatizer(2.0), 2.0), (StandardScaler(), 1e150)):
            pipeline = make_pipeline(model, GaussianNB())
            search = GridSearchCV(pipeline, {"gaussiannb__var_smoothing": [1e-9]}, cv=2, scoring=scoring, refit=False)
            column = search.fit(X, y).cv_results_["mean_test_exact_epsilon"]
            assert column == pytest.approx([expected], rel=1e-6)
    with pytest.raises(ValueError, match=r"such as .*roc_auc.*Got 'roc_acu'"):
        with_exact_epsilon("roc_acu")
    with pytest.raises(ValueError, match=r"the name of one scorer.*Got \['accuracy', 'f1_macro'\]"):
        with_exact_epsilon(["accuracy", "f1_macro"])
