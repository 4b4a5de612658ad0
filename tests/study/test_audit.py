import math

import numpy as np
import pytest
from laws import THRESHOLD
from scipy import stats
from sklearn.base import BaseEstimator

from skldp import PrivUnitTransformer, TargetPrivatizer
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.papers import LabelMatrixRR
from skldp.study import audit_epsilon, audit_estimator, trials_needed


def randomized_response(epsilon, n_classes=2):
    """Exact k-ary randomized response of the first column, which holds 0 to n_classes - 1."""
    keep = math.exp(epsilon) / (math.exp(epsilon) + n_classes - 1)
    rng = np.random.default_rng(1)

    def release(rows):
        truth = rows[:, 0].astype(int)
        other = (truth + 1 + rng.integers(n_classes - 1, size=len(rows))) % n_classes
        return np.where(rng.random(len(rows)) < keep, truth, other)

    return release


def laplace(scale):
    rng = np.random.default_rng(2)
    return lambda rows: rows + scale * rng.laplace(size=rows.shape)


def independent_of_the_input():
    rng = np.random.default_rng(3)
    return lambda rows: rng.integers(64, size=len(rows))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("release", "epsilon"),
    [
        (independent_of_the_input(), 0.0),
        (randomized_response(1.0, 12), 1.0),
        (randomized_response(0.5), 0.5),
        (laplace(1.0), 1.0),
    ],
    ids=["nothing", "12-ary", "binary", "laplace"],
)
@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_the_bound_is_wrong_no_more_often_than_it_says(release, epsilon, delta):
    runs = 120
    wrong = sum(
        audit_epsilon(release, [0.0], [1.0], n_trials=400, confidence=0.9, delta=delta, seed=i).epsilon_lower > epsilon
        for i in range(runs)
    )
    assert stats.binomtest(wrong, runs, 0.1, alternative="greater").pvalue > THRESHOLD


@pytest.mark.slow
def test_choosing_and_bounding_on_the_same_trials_would_be_wrong(monkeypatch):
    """The attack on the audit itself: the test above must see an event that was fitted to the trials it bounds."""
    from skldp.study import _audit as audit

    honest = audit._candidate_scores

    outputs_of, coins_of = audit._outputs, []

    def with_all_coins(release, pair, calls, companion):
        coins_of.append(np.concatenate(list(calls)))
        return outputs_of(release, pair, coins_of[-1:], companion)

    def learnt_from_all_trials(outputs, answers, pair):
        return honest(outputs, coins_of[-1], pair)

    monkeypatch.setattr(audit, "_outputs", with_all_coins)
    monkeypatch.setattr(audit, "_candidate_scores", learnt_from_all_trials)
    runs = 120
    release = independent_of_the_input()
    wrong = sum(
        audit_epsilon(release, [0.0], [1.0], n_trials=512, confidence=0.9, seed=i).epsilon_lower > 0
        for i in range(runs)
    )
    assert stats.binomtest(wrong, runs, 0.1, alternative="greater").pvalue < THRESHOLD


def test_the_bound_of_counts_is_the_clopper_pearson_one():
    """Against scipy's interval of a binomial fraction."""
    from skldp.study._audit import _lower_bound

    for hits, misses in [(1, 0), (7, 3), (500, 20), (10_000, 0)]:
        low = stats.binomtest(hits, hits + misses, alternative="greater").proportion_ci(0.97, "exact").low
        assert float(_lower_bound(hits, misses, 20_000, 20_000, 0.97, 0.0)) == pytest.approx(math.log(low / (1 - low)))
    p = stats.binomtest(90, 100, alternative="greater").proportion_ci(0.97, "exact").low
    q = stats.binomtest(20, 110, alternative="less").proportion_ci(0.97, "exact").high
    assert float(_lower_bound(90, 20, 100, 110, 0.94, 0.1)) == pytest.approx(math.log((p - 0.1) / q))


@pytest.mark.parametrize("delta", [0.0, 0.3])
@pytest.mark.parametrize("epsilon", [0.0, 2.0])
def test_trials_needed_is_the_least_number(epsilon, delta):
    from skldp.study._audit import _lower_bound

    k = trials_needed(epsilon, confidence=0.95, delta=delta) // 4
    assert float(_lower_bound(k, 0, k, k, 0.95, delta)) > epsilon
    assert k == 1 or float(_lower_bound(k - 1, 0, k - 1, k - 1, 0.95, delta)) <= epsilon


class NoNoise(BaseEstimator):
    """An estimator that claims much and does nothing."""

    privacy_guarantee_ = PrivacyGuarantee(1.0)

    def transform(self, X):
        return X


def test_an_estimator_is_audited_against_its_claim():
    result = audit_epsilon(NoNoise(), [0.0, 1.0], [0.0, 0.0], n_trials=2000)
    assert result.refutes_claim
    assert "REFUTED" in str(result)
    assert "\n" not in str(result)


@pytest.mark.parametrize(
    "view",
    [
        lambda rows: np.where(rows[:, 0] > 0, "yes", "no"),
        lambda rows: np.where(rows[:, 0] > 0, np.nan, 1.0),
        lambda rows: np.where(rows[:, 0] > 0, np.inf, np.nan),
        lambda rows: rows[:, 0] > 0,
        lambda rows: np.where(rows[:, 0] > 0, 0.0, -0.0),
        lambda rows: __import__("scipy.sparse").sparse.csr_array(rows),
    ],
    ids=["text", "nan", "infinity", "bool", "signed zero", "sparse"],
)
def test_a_leak_of_any_type_is_seen(view):
    assert audit_epsilon(view, [1.0, 2.0], [0.0, 2.0], n_trials=1000).epsilon_lower > 3


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"n_trials": 19}, "n_trials must be at least 20 to certify anything at confidence 0.95; got 19"),
        ({"n_trials": 40, "confidence": 0.99999}, "n_trials must be at least 68"),
        ({"n_trials": 2.5}, "n_trials must be a whole number"),
        ({"n_trials": True}, "n_trials must be a whole number"),
        ({"confidence": 1.0}, r"confidence must lie inside \(0, 1\); got 1.0"),
        ({"confidence": float("nan")}, "confidence must lie"),
        ({"delta": 1.0}, r"delta must be a number in \[0, 1\)"),
        ({"delta": -0.1}, "delta must be"),
        ({"rows_per_call": 0}, "rows_per_call must be a whole number"),
        ({"x_prime": [0.0]}, "x and x_prime must differ"),
        ({"x_prime": [0.0, 1.0]}, "two rows of the same length"),
        ({"release": lambda rows: rows[:1]}, "one output, a number or a vector, for each of its 100 rows"),
    ],
)
def test_bad_input_is_refused(changes, rule):
    arguments = {"release": laplace(1.0), "x": [0.0], "x_prime": [1.0], "n_trials": 100} | changes
    with pytest.raises(ValueError, match=rule):
        audit_epsilon(**arguments)


@pytest.mark.parametrize(
    ("estimator", "fitted_on"),
    [
        (PrivUnitTransformer(2.0), np.zeros((2, 3))),
        (PrivUnitTransformer(2.0, bounds=(-1, 1)), np.zeros((2, 3))),
        (TargetPrivatizer(2.0, bounds=(-3, 5)), [1.0, 2.0]),
        (LabelMatrixRR(2.0, classes=[0, 1]), [[0, 1], [1, 1]]),
    ],
    ids=["vectors", "vectors within bounds", "targets", "several labels"],
)
def test_what_is_declared_makes_the_pairs(estimator, fitted_on, fixed_noise):
    result = audit_estimator(estimator.fit(fitted_on), n_trials=2000)
    assert 1.0 < result.epsilon_lower <= 2.0


def test_a_claim_per_unit_of_distance_is_scaled_to_the_pair():
    class Metric(NoNoise):
        privacy_guarantee_ = PrivacyGuarantee(2.0, unit="distance")

    assert audit_epsilon(Metric(), [3.0, 4.0], [0.0, 0.0], n_trials=100).claimed == 10.0
