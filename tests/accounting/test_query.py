import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from accounting.reference import naive_probability, regression_queries
from hypothesis import given, settings
from hypothesis import strategies as st

from skldp.accounting._query import query_from_json
from skldp.accounting._regression_query import RegressionQuery
from skldp.mechanisms._finite_query import FiniteQuery


class ScriptedNoise:
    """Hands out given words, to see what every word leads to."""

    def __init__(self, words):
        self.given = np.array(words, dtype=np.uint64)
        self.thresholds = None

    def bernoulli(self, thresholds):
        self.thresholds = thresholds
        return self.given < thresholds

    def words(self, size):
        assert size == len(self.given)
        return self.given


def exact_log(ratio):
    with localcontext() as context:
        context.prec = 60
        return (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()


@given(regression_queries(3), st.integers(0, 1), st.lists(st.floats(-1, 1), min_size=3, max_size=3))
def test_log_likelihood_is_the_papers_formula(query, output, x):
    expected = naive_probability(query, output, x)
    assert query.log_likelihood(output, [x])[0] == pytest.approx(math.log(expected), abs=1e-12)
    assert query.probability_of_high([x])[0] == pytest.approx(naive_probability(query, 1, x), abs=1e-14)


@given(regression_queries(2, epsilons=(1e-6, 30.0)), st.lists(st.floats(-3, 3), min_size=2, max_size=2))
def test_sampled_integers_never_exceed_epsilon(query, x):
    noise = ScriptedNoise([0])
    query.sample([x], noise)
    threshold = int(noise.thresholds[0])
    # Every reachable threshold lies between the two extremes: theirs is the worst ratio of any two people.
    extremes = ScriptedNoise([0, 0])
    far = 1e6 * np.where(query.coef == 0, 1.0, np.sign(query.coef))
    query.sample(np.stack([-far, far]), extremes)
    smallest, largest = sorted(int(t) for t in extremes.thresholds)
    assert smallest <= threshold <= largest
    for ratio in (Fraction(largest, smallest), Fraction(2**64 - smallest, 2**64 - largest)):
        assert exact_log(ratio) <= Decimal(query.exact_epsilon) <= Decimal(query.epsilon)


@given(regression_queries(2), st.lists(st.floats(-1, 1), min_size=2, max_size=2))
def test_estimate_is_unbiased(query, x):
    low, high = query.output_bounds
    p = naive_probability(query, 1, x)
    estimates = query.estimate([0, 1])
    y = low + (high - low) * query.unit_response([x])[0]
    spread = abs(estimates[1] - estimates[0])
    assert (1 - p) * estimates[0] + p * estimates[1] == pytest.approx(y, abs=1e-11 * (1 + spread))


@pytest.mark.parametrize("a", [0.0, 2.0])
def test_the_printed_estimate_is_wrong_unless_a_is_zero(a):
    b, epsilon, y = a + 1.0, 1.0, a + 0.3
    query = RegressionQuery("linear", [1.0], 0.0, (a, b), epsilon)
    p = query.probability_of_high([[y]])[0]
    growth = math.exp(epsilon)
    printed = a + b * ((growth + 1) * p - 1) / (growth - 1)
    assert (printed == pytest.approx(y)) == (a == 0)
    assert p * query.estimate(1) + (1 - p) * query.estimate(0) == pytest.approx(y)


def test_key_sees_every_field_and_nothing_else():
    def key(**changes):
        fields = {"kind": "linear", "coef": [0.5], "intercept": 0.0, "output_bounds": (0, 1), "epsilon": 1.0}
        return RegressionQuery(**{**fields, **changes}).key

    changed = [
        {"kind": "truncated"},
        {"coef": [0.25]},
        {"intercept": 1e-300},
        {"output_bounds": (0, 2)},
        {"epsilon": 2},
    ]
    assert len({key(), *(key(**change) for change in changed)}) == 6
    assert key() == key(coef=(0.5,), intercept=-0.0, output_bounds=[0.0, 1.0], epsilon=1)


def test_coefficients_are_a_private_copy():
    coef = np.array([1.0, 2.0])
    query = RegressionQuery("linear", coef, 0.0, (-3, 3), 1.0)
    coef[0] = 99.0
    assert query.coef[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        query.coef[0] = 5.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "poisson"}, "kind must be"),
        ({"coef": []}, "coef must be"),
        ({"coef": [[1.0]]}, "coef must be"),
        ({"coef": [np.nan]}, "coef must be"),
        ({"intercept": np.inf}, "intercept must be"),
        ({"intercept": True}, "intercept must be"),
        ({"output_bounds": (1, 0)}, "a < b"),
        ({"output_bounds": 3}, "output_bounds must be"),
        ({"output_bounds": (0, np.nan)}, "finite"),
        ({"kind": "logistic", "output_bounds": (0, 2)}, "logistic query must be"),
        ({"epsilon": 0}, "epsilon must be"),
        ({"epsilon": True}, "epsilon must be"),
        ({"epsilon": np.nan}, "epsilon must be"),
        ({"epsilon": 31}, "at most 30"),
    ],
)
def test_bad_queries_are_refused(changes, message):
    fields = {"kind": "linear", "coef": [0.5], "intercept": 0.0, "output_bounds": (0, 1), "epsilon": 1.0}
    with pytest.raises(ValueError, match=message):
        RegressionQuery(**{**fields, **changes})


@pytest.mark.parametrize("X", [[[1.0, 2.0]], [1.0]])
def test_bad_records_are_refused(X):
    with pytest.raises(ValueError, match="X must"):
        RegressionQuery("linear", [0.5], 0.0, (0, 1), 1.0).probability_of_high(X)


tables = st.integers(1, 5).flatmap(
    lambda width: st.lists(
        st.lists(st.floats(0.01, 1), min_size=width, max_size=width).map(lambda row: np.array(row) / sum(row)),
        min_size=1,
        max_size=6,
    )
)


@given(tables)
@settings(max_examples=50)
def test_finite_query_is_its_integers(table):
    query = FiniteQuery.from_probabilities(table)
    assert np.exp(query.log_probabilities) == pytest.approx(np.array(table), abs=1e-14)
    weights = query.weights.astype(object)
    assert (weights.sum(axis=1) == 2**53).all()
    worst = max(Fraction(int(max(column)), int(min(column))) for column in weights.T)
    assert exact_log(worst) <= Decimal(query.epsilon) <= exact_log(worst) + Decimal("1e-14")
    assert query_from_json(query.to_json()).key == query.key
    # Each output is drawn for exactly as many words as its weight says: the first and the last word of each.
    row = [int(w) for w in weights[0]]
    starts = np.cumsum([0, *row[:-1]]).tolist()
    words = [start << 11 for start in starts] + [((start + w) << 11) - 1 for start, w in zip(starts, row, strict=True)]
    drawn = query.sample(np.zeros(len(words), dtype=int), ScriptedNoise(words))
    assert drawn.tolist() == [*range(len(row)), *range(len(row))]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[0.5, 0.6]], "sum to 1"),
        ([[1.5, -0.5]], ">= 0"),
        ([[np.nan, 1.0]], ">= 0"),
        ([0.5, 0.5], "table"),
        ([[1.0, 0.0], [0.5, 0.5]], "possible for all points or for none"),
    ],
)
def test_bad_tables_are_refused(table, message):
    with pytest.raises(ValueError, match=message):
        FiniteQuery.from_probabilities(table)


def test_finite_query_refuses_bad_points_and_text():
    query = FiniteQuery.from_probabilities([[0.5, 0.5]])
    for points in ([1], [-1], [0.0], 0):
        with pytest.raises(ValueError, match="points must be"):
            query.log_likelihood(0, points)
    with pytest.raises(ValueError, match="JSON of a query"):
        query_from_json("[]")
