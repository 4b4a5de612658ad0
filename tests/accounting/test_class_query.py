"""Which class a model sees a person in: its law, and what answers to it cost."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from accounting.reference import regression_queries
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import OneDraw, assert_is_the_guarantee, intervals, lengths

from skldp import PrivacyLedger
from skldp.accounting import BayesianPrivacyFilter, RegressionQuery, realized_loss
from skldp.accounting._class_query import ClassQuery, loss_of_classes
from skldp.accounting._query import ReleaseQuery
from skldp.exceptions import LedgerError
from skldp.mechanisms import RandomizedResponse, noise_from

# Class 0 to the left, 1 in the middle, 2 to the right.
THREE = ClassQuery(coef=[[-1.0], [0.0], [1.0]], intercept=[0.0, 0.5, 0.0], epsilon=0.7)
LINE = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(-1, 1), epsilon=0.5)
LEFT, MIDDLE, RIGHT = [-1.0], [0.0], [1.0]


@st.composite
def class_queries(draw, n_features):
    n_classes = draw(st.integers(2, 4))
    number = st.floats(-1, 1, allow_subnormal=False)
    coef = [draw(st.lists(number, min_size=n_features, max_size=n_features)) for _ in range(n_classes)]
    return ClassQuery(coef, draw(st.lists(number, min_size=n_classes, max_size=n_classes)), draw(st.floats(0.05, 2)))


@pytest.mark.parametrize("epsilon", [1e-3, 0.7, 5.0, 30.0])
def test_the_answer_is_drawn_from_the_integers_of_its_law(epsilon):
    query = ClassQuery(THREE.coef, THREE.intercept, epsilon)
    laws = []
    for number, x in enumerate((LEFT, MIDDLE, RIGHT)):
        found = intervals(lambda draw, x=x: int(query.sample([x], OneDraw(draw, (16, 48)))[0]), 0, 2**64)
        law = lengths(found, 2**64)
        assert law[number] == query.mechanism.law.own_count
        assert {law.get(other, 0) for other in range(3) if other != number} == {query.mechanism.law.other_count}
        laws.append(law)
    assert_is_the_guarantee(laws, query.exact_epsilon, slack=1e-9)
    assert query.exact_epsilon <= epsilon


def test_the_law_is_k_ary_randomized_response_of_the_arg_max():
    assert THREE.classes([LEFT, MIDDLE, RIGHT]).tolist() == [0, 1, 2]
    # The first of several.
    assert ClassQuery([[1.0], [1.0]], [0.0, 0.0], 1.0).classes([[0.3]]).tolist() == [0]
    kept = math.exp(0.7) / (math.exp(0.7) + 2)
    chances = np.exp([THREE.log_likelihood(output, [LEFT, MIDDLE, RIGHT]) for output in range(3)])
    np.testing.assert_allclose(chances, np.where(np.eye(3) == 1, kept, (1 - kept) / 2), rtol=1e-12)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_no_loss_lies_above_what_is_certified(data):
    """Class questions beside regressions, at points that reach all classes: never more than the bound."""
    queries = data.draw(st.lists(st.one_of(class_queries(2), regression_queries(2)), min_size=1, max_size=4))
    pairs = [(query, data.draw(st.integers(0, query.n_outputs - 1))) for query in queries for _ in range(2)]
    asked, outputs = [query for query, _ in pairs], [output for _, output in pairs]
    points = np.array(list(itertools.product(np.linspace(-1, 1, 21), repeat=2)))
    total = sum(query.log_likelihood(output, points) for query, output in pairs)
    found = realized_loss(asked, outputs, bounds=(-1, 1), tol=1e-2)
    assert np.ptp(total) <= found.upper + 1e-9
    assert found.upper <= sum(query.exact_epsilon for query in asked) + 1e-9
    assert found.lower <= found.upper
    grouped = realized_loss(asked, outputs, bounds=(-1, 1), tol=1e-2, group_size=3)
    assert np.ptp(total) <= grouped.upper + 1e-9


def test_filters_and_ledgers_take_class_questions(tmp_path):
    person = BayesianPrivacyFilter(1.5, bounds=(-1, 1))
    for query, output in ((THREE, 0), (LINE, 0)):
        assert person.admits(query)
        person.record(query, output)
    assert not person.admits(LINE)
    with PrivacyLedger(1.5, bounds=(-1, 1), path=tmp_path / "a.ledger") as ledger:
        noise = noise_from()
        rows = np.linspace(-1, 1, 40)[:, None]
        first = ledger.answer(THREE, range(40), lambda people: THREE.sample(rows[people], noise))
        assert first.accepted.all()
        assert set(first.outputs.tolist()) <= {0, 1, 2}
        assert ledger.answer(LINE, range(40), lambda people: (first.outputs[people] > 0).astype(int)).accepted.all()
        losses, added, middle = ledger.realized_loss(range(40)), THREE.exact_epsilon + 0.5, first.outputs == 1
        assert losses[~middle] == pytest.approx(added, abs=1e-9)
        # The middle is half as far from one end as the other end is.
        assert (losses[middle] < added - 0.1).all()
        # The same answer again would make it 1.7.
        one = int(np.flatnonzero(~middle)[0])
        assert not ledger.answer(LINE, [one], lambda people: first.outputs[[one]] > 0, repeat=True).accepted[0]
        assert ledger.verify().ok
        assert "classes" in [row["kind"] for row in ledger.report()["queries"]]
        with pytest.raises(LedgerError, match="one domain"):
            ledger.answer(ClassQuery(np.eye(2), [0, 0], 0.1), [1], lambda people: [0])
    with PrivacyLedger.open(tmp_path / "a.ledger") as again:
        assert (again.answer(THREE, range(40), lambda people: [0] * len(people)).outputs == first.outputs).all()


def test_releases_count_in_full():
    release = ReleaseQuery.of(RandomizedResponse(0.5, 3))
    # Its charge is in whole parts of 2^-60.
    loss = realized_loss([THREE, release], [0, 0]).upper
    assert loss == pytest.approx(THREE.exact_epsilon + release.epsilon, rel=1e-12)


def test_estimates_are_unbiased():
    """Over the exact law: of mean 1 for the own class, and of as large an error as is stated."""
    kept, other = THREE.mechanism.support_probabilities()
    for own in range(3):
        law = np.full(3, other)
        law[own] = kept
        np.testing.assert_allclose(law @ THREE.estimate([0, 1, 2]), np.eye(3)[own], atol=1e-12)
    shares, errors = THREE.estimate_mean([0] * 45 + [1] * 30 + [2] * 25)
    assert shares.sum() == pytest.approx(1)
    assert shares == pytest.approx((np.array([0.45, 0.3, 0.25]) - other) / (kept - other))
    assert errors.max() == pytest.approx(THREE.expected_error(100, shares), rel=0.01)
    assert THREE.expected_error(100) >= THREE.expected_error(100, [0.2, 0.3, 0.5])
    assert THREE.expected_error(0) == math.inf
    assert np.isnan(THREE.estimate_mean([])[0]).all()
    assert np.isinf(THREE.estimate_mean([1])[1]).all()


@pytest.mark.parametrize(
    "changes",
    [
        {"coef": [1.0, 2.0]},
        {"coef": [[1.0, 2.0]]},
        {"coef": np.zeros((2, 0))},
        {"coef": [[np.nan], [1.0]]},
        {"coef": [[1e101], [1.0]]},
        {"intercept": [0.0]},
        {"intercept": [0.0, np.inf]},
        {"epsilon": 0.0},
        {"epsilon": 31.0},
        {"epsilon": True},
        {"epsilon": 1e-30},
    ],
)
def test_what_is_no_class_question_is_refused(changes):
    with pytest.raises(ValueError, match=r"[Gg]ot"):
        ClassQuery(**{"coef": [[1.0], [2.0]], "intercept": [0.0, 0.0], "epsilon": 1.0, **changes})


def test_answers_that_pull_apart_cost_less_than_their_sum():
    """A class to the left and a number to the right: the loss is largest across the border of the class."""
    points = np.array([[-1.0], [-0.5], [math.nextafter(-0.5, 0)], [0.5], [1.0]])
    truth = float(np.ptp(THREE.log_likelihood(0, points) + LINE.log_likelihood(1, points)))
    found = realized_loss([THREE, LINE], [0, 1], bounds=(-1, 1))
    assert found.lower - 1e-9 <= truth <= found.upper < truth + 0.05


def test_infinity_and_nan_are_the_largest_numbers():
    query = ClassQuery([[0.0, 1.0], [1.0, 0.0], [-1.0, 0.0]], [0.0, 0.0, 0.0], 1.0)
    assert query.classes([[np.inf, 0.0], [-np.inf, 0.0], [np.nan, 0.0]]).tolist() == [1, 2, 2]


def test_charges_are_rounded_up():
    assert Fraction(loss_of_classes([(THREE, 0)] * 3)) > 3 * Fraction(THREE.exact_epsilon)
