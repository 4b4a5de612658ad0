"""Whatever an analyst sends either is refused before anybody's values are looked at, or has an answer for everybody."""

import warnings
from contextlib import closing

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin

from skldp.accounting._regression_query import RegressionQuery
from skldp.accounting.ledger._privacy_ledger import PrivacyLedger
from skldp.estimators._from_estimator import query_from_estimator
from skldp.mechanisms._finite_query import FiniteQuery
from skldp.mechanisms._noise import noise_from

LARGEST = np.finfo(np.float64).max
EXTREMES = [0.0, 1.0, -1.0, LARGEST, -LARGEST, np.inf, -np.inf, np.nan, 5e-324, 1e150, -1e200]


def overflows_beyond(t):
    """Finding 2: theta x + c overflows for x0 > t alone."""
    return RegressionQuery("truncated", [LARGEST / 2, 0.0], LARGEST * (1 - t / 2), (-1.0, 1.0), 0.5)


def told(ledger, x, make_query):
    """What the analyst learns for nothing: whether asking this person raises."""
    try:
        query = make_query()
    except ValueError:
        return "refused"
    try:
        ledger.answer(query, ["victim"], lambda people: query.sample(x[people], noise_from()), repeat=True)
    except Exception:
        return "raised"
    return "answered"


def test_bisection_by_overflow_reads_nobody():
    seen = set()
    for secret in (0.123456789, 0.87654321):
        low, high = 0.0, 1.0
        with closing(PrivacyLedger(1.0, bounds=(0, 1))) as ledger:
            for _ in range(40):
                t = (low + high) / 2
                outcome = told(ledger, np.array([[secret, 0.3]]), lambda t=t: overflows_beyond(t))
                seen.add(outcome)
                low, high = (low, t) if outcome == "raised" else (t, high)
            assert ledger.remaining(["victim"]) == 1.0
        assert abs(high - secret) > 1e-9
    assert seen == {"refused"}


def test_bisection_by_a_short_table_reads_nobody():
    """A table of fewer points than there are: an index beyond it is answered as its last one."""
    outcomes = []
    for secret in range(10):
        for n_points in range(1, 11):
            query = FiniteQuery.from_probabilities(np.tile([0.4, 0.6], (n_points, 1)))
            with closing(PrivacyLedger(100.0)) as ledger:
                outcomes.append(told(ledger, np.array([secret]), lambda query=query: query))
    assert set(outcomes) == {"answered"}


@pytest.mark.parametrize("kind", ["linear", "truncated", "logistic", "exponential"])
@pytest.mark.parametrize("size", [1.0, 1e99, 1e-300])
def test_every_row_of_numbers_has_an_answer_within_the_law(kind, size):
    """Also where numpy was told to raise on every overflow."""
    query = RegressionQuery(kind, [size, -size / 2], -size / 4, (0.5, 1) if kind == "exponential" else (0, 1), 1.5)
    rows = np.array(np.meshgrid(EXTREMES, EXTREMES)).reshape(2, -1).T
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        chance = query.probability_of_high(rows)
        answers = query.sample(rows, noise_from())
        for output in (0, 1):
            loglikelihood = query.log_likelihood(output, rows)
            assert np.ptp(loglikelihood) <= query.epsilon + 1e-12
        # Infinity minus infinity is another infinity in another batch, with fused operations.
        alone = np.concatenate([query.probability_of_high(row[None, :]) for row in rows])
    assert np.isfinite(chance).all()
    assert alone == pytest.approx(chance, abs=1e-9)
    assert set(answers.tolist()) <= {0, 1}


@pytest.mark.parametrize(
    "changes",
    [
        {"coef": [1e308, 1e308]},
        {"coef": [6e99, 6e99]},
        {"intercept": 1e101},
        {"output_bounds": (0.0, 1e101)},
        {"output_bounds": (0.0, 5e-324)},
        {"output_bounds": (-LARGEST, LARGEST)},
    ],
)
def test_what_could_overflow_is_refused_when_it_is_made(changes):
    fields = {"kind": "truncated", "coef": [0.5, 1.0], "intercept": 0.0, "output_bounds": (0, 1), "epsilon": 1.0}
    with pytest.raises(ValueError, match="must add up to at most"):
        RegressionQuery(**{**fields, **changes})


class Model(RegressorMixin, BaseEstimator):
    """Fitted, with coefficients as an analyst would choose them."""

    def __init__(self, coef, intercept):
        self.coef_, self.intercept_ = np.array(coef), intercept

    def fit(self, X, y):
        return self

    def predict(self, X):
        with np.errstate(all="ignore"):
            return X @ self.coef_ + self.intercept_


@pytest.mark.parametrize("coef", [[LARGEST / 2, 0.0], [1e101, 1.0], [np.inf, 0.0], [np.nan, 0.0]])
@pytest.mark.parametrize("output_bounds", [None, (0, 1)])
def test_a_model_that_could_overflow_is_refused_from_the_domain_alone(coef, output_bounds):
    with pytest.raises(ValueError, match=r"must add up to at most|finite numbers"):
        query_from_estimator(Model(coef, 0.0), epsilon=1.0, bounds=(-1, 1), output_bounds=output_bounds)


@pytest.mark.parametrize("X", [[["HIV positive"]], [[object()]], [[10**400]]])
def test_rows_that_are_no_numbers_are_refused_without_their_content(X):
    query = RegressionQuery("linear", [1.0], 0.0, (0, 1), 1.0)
    with pytest.raises(ValueError, match="X must") as caught:
        query.sample(X, noise_from())
    assert "HIV" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
