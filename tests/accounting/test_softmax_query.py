"""The probability of one class, by the paper's two-valued answer: its law, and what answers to it cost."""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from accounting.reference import regression_queries
from hypothesis import given, settings
from hypothesis import strategies as st

from skldp import PrivacyLedger
from skldp.accounting import RegressionQuery, realized_loss
from skldp.accounting._class_query import ClassQuery, SoftmaxQuery
from skldp.accounting._query import query_from_json
from skldp.exceptions import LedgerError
from skldp.mechanisms import noise_from

THREE = SoftmaxQuery(coef=[[-2.0], [0.0], [2.0]], intercept=[0.0, 0.5, 0.0], position=2, epsilon=0.7)
LINE = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(-1, 1), epsilon=0.5)
CLASSES = ClassQuery(coef=[[-1.0], [1.0]], intercept=[0.0, 0.0], epsilon=0.4)


@st.composite
def softmax_queries(draw, n_features):
    n_classes, number = draw(st.integers(2, 4)), st.floats(-3, 3, allow_subnormal=False)
    coef = [draw(st.lists(number, min_size=n_features, max_size=n_features)) for _ in range(n_classes)]
    intercept = draw(st.lists(number, min_size=n_classes, max_size=n_classes))
    return SoftmaxQuery(coef, intercept, draw(st.integers(0, n_classes - 1)), draw(st.floats(0.05, 2)))


def in_decimals(query, x):
    """The probability, with the sums of a fraction and 60 digits."""
    with localcontext(prec=60):
        scores = []
        for row, own in zip(query.coef.tolist(), query.intercept.tolist(), strict=True):
            exact = sum((Fraction(a) * Fraction(b) for a, b in zip(row, x, strict=True)), Fraction(own))
            scores.append((Decimal(exact.numerator) / Decimal(exact.denominator)).exp())
        return scores[query.position] / sum(scores)


@settings(max_examples=40)
@given(softmax_queries(3), st.lists(st.floats(-2, 2), min_size=3, max_size=3))
def test_the_law_is_the_papers_of_the_softmax(query, x):
    p = float(in_decimals(query, x))
    assert query.unit_response([x])[0] == pytest.approx(p, rel=1e-12)
    least = 1 / (math.exp(query.epsilon) + 1)
    chance = least + (1 - 2 * least) * p
    assert int(query.share.thresholds(query.unit_response([x])[:, None])[0]) == pytest.approx(chance * 2**64, rel=1e-12)
    for output, expected in ((1, chance), (0, 1 - chance)):
        assert query.log_likelihood(output, [x])[0] == pytest.approx(math.log(expected), rel=1e-10, abs=1e-12)


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_no_loss_lies_above_what_is_certified(data):
    """Beside regressions, at many points: never more than the bound, nor the bound more than the epsilons."""
    kinds = st.one_of(softmax_queries(2), regression_queries(2))
    queries = data.draw(st.lists(kinds, min_size=1, max_size=4))
    pairs = [(query, data.draw(st.integers(0, 1))) for query in queries for _ in range(2)]
    asked, outputs = [query for query, _ in pairs], [output for _, output in pairs]
    points = np.array(list(itertools.product(np.linspace(-1, 1, 21), repeat=2)))
    total = sum(query.log_likelihood(output, points) for query, output in pairs)
    found = realized_loss(asked, outputs, bounds=(-1, 1), tol=1e-2)
    assert np.ptp(total) <= found.upper + 1e-9
    assert found.upper <= sum(query.exact_epsilon for query in asked) + 2e-2
    assert found.lower <= found.upper


def test_one_question_is_exact_over_all_probabilities_and_two_add_up():
    """Of one question, by the closed form of a concave function of p; each other question is a group of its own."""
    t = math.tanh(0.35)
    for ones, zeros in ((1, 0), (1, 1), (2, 1), (3, 3), (0, 2)):
        grid = np.linspace(-1, 1, 20001)
        values = ones * np.log1p(t * grid) + zeros * np.log1p(-t * grid)
        loss = realized_loss([THREE] * (ones + zeros), [1] * ones + [0] * zeros).upper
        assert np.ptp(values) - 1e-9 <= loss <= np.ptp(values) + 2e-3
    # With coefficients so large that each end of the interval is one class for certain.
    sharp, other = (SoftmaxQuery(50 * THREE.coef, THREE.intercept, *rest) for rest in ((2, 0.7), (0, 0.3)))
    both = realized_loss([sharp, other, LINE, CLASSES], [1, 0, 1, 1], bounds=(-1, 1)).upper
    assert both == pytest.approx(0.7 + 0.3 + 0.5 + 0.4, abs=1e-6)
    # In whatever order.
    assert both == realized_loss([CLASSES, LINE, other, sharp], [1, 1, 0, 1], bounds=(-1, 1)).upper


def test_what_rounding_can_move_is_counted():
    """At a large epsilon one computation's last digits weigh most: two records, each of two answers."""
    query = SoftmaxQuery(THREE.coef, THREE.intercept, 2, 25.0)
    bare = realized_loss([query.share] * 2, [1, 0], bounds=(0, 1)).upper
    assert realized_loss([query] * 2, [1, 0]).upper >= bare + 4 * math.expm1(25.0) * 44 * 2.0**-53


@pytest.mark.slow
def test_filters_and_ledgers_take_such_questions(tmp_path):
    path, rows = tmp_path / "a.ledger", np.linspace(-1, 1, 40)[:, None]
    answers = iter([1, 0, 1, 0])

    def alternating(people):
        return np.full(len(people), next(answers))

    dear = SoftmaxQuery(50 * THREE.coef, THREE.intercept, 1, 1.4)
    with PrivacyLedger(1.5, bounds=(-1, 1), path=path) as ledger:
        for _ in range(4):
            assert ledger.answer(THREE, range(40), alternating, repeat=True).accepted.all()
        assert ledger.realized_loss([3])[0] < 0.3
        assert ledger.answer(LINE, range(40), lambda people: np.ones(len(people), dtype=int)).accepted.all()
        assert not ledger.answer(dear, [3], lambda people: [1]).accepted.any()
        with pytest.raises(LedgerError, match="one domain"):
            ledger.answer(SoftmaxQuery(np.eye(2), [0, 0], 0, 0.1), [1], lambda people: [0])
        assert "softmax" in [row["kind"] for row in ledger.report()["queries"]]
        assert ledger.verify().ok
    with PrivacyLedger.open(path) as again:
        assert again.answer(THREE, range(40), lambda people: []).outputs.tolist() == [0] * 40
        assert again.would_answer(THREE, [1], repeat=True).costs[0] <= 0.7 + 1e-2
    assert set(THREE.sample(rows, noise_from()).tolist()) <= {0, 1}


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"position": 3}, "position must be"),
        ({"position": -1}, "position must be"),
        ({"position": True}, "position must be"),
        ({"coef": [[1.0]]}, "coef must have shape"),
        ({"intercept": [0.0]}, "intercept must have shape"),
        ({"coef": [[math.nan], [0.0], [0.0]]}, "must add up to at most"),
        ({"epsilon": 0.0}, "epsilon must be"),
    ],
)
def test_what_is_no_such_question_is_refused(change, match):
    fields = {"coef": THREE.coef, "intercept": THREE.intercept, "position": 0, "epsilon": 0.5}
    with pytest.raises(ValueError, match=match):
        SoftmaxQuery(**fields | change)


def test_every_row_of_numbers_has_an_answer():
    huge = SoftmaxQuery([[1e99], [-1e99]], [1e100, 0.0], 0, 1.0)
    with np.errstate(all="raise"):
        for row in (math.nan, math.inf, -math.inf, 1e300, 0.0, -1e-320):
            assert 0.0 <= huge.unit_response([[row]])[0] <= 1.0


def test_json_gives_the_same_question_back():
    again = query_from_json(THREE.to_json())
    assert (again.key, again.to_json(), type(again)) == (THREE.key, THREE.to_json(), SoftmaxQuery)
    assert SoftmaxQuery(THREE.coef, THREE.intercept, 1, 0.7).key != THREE.key
