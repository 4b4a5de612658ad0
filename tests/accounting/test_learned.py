"""Section 3 of the paper: what an adversary can have learnt, whatever they believed before."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from accounting.reference import naive_probability, regression_queries, running_example
from beliefs import Belief, Household, learning_limit, rents
from hypothesis import given, settings
from hypothesis import strategies as st

from skldp.accounting import BayesianPrivacyFilter, FiniteQuery, RegressionQuery, realized_loss
from skldp.accounting._filters import BasicPrivacyFilter, SimplifiedBayesianPrivacyFilter

LINE = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(-1, 1), epsilon=0.5)


def randomized_response(p):
    return FiniteQuery.from_probabilities([[p, 1 - p], [1 - p, p]])


@st.composite
def histories(draw, n_features=2, most=6):
    queries = draw(st.lists(regression_queries(n_features), min_size=1, max_size=most))
    return [(query, draw(st.integers(0, 1))) for query in queries]


@st.composite
def tables(draw):
    """Finite queries over the same points, with outputs."""
    n_points = draw(st.integers(2, 5))
    history = []
    for _ in range(draw(st.integers(1, 4))):
        n_outputs = draw(st.integers(2, 3))
        weights = np.array(
            [draw(st.lists(st.integers(1, 50), min_size=n_outputs, max_size=n_outputs)) for _ in range(n_points)]
        )
        query = FiniteQuery.from_probabilities(weights / weights.sum(axis=1, keepdims=True))
        history.append((query, draw(st.integers(0, n_outputs - 1))))
    return history


@st.composite
def beliefs_about(draw, n_points, points=None):
    weights = np.array(draw(st.lists(st.integers(0, 100), min_size=n_points, max_size=n_points)), dtype=float)
    weights[draw(st.integers(0, n_points - 1))] += 1
    return Belief(weights / weights.sum(), points)


def truths(n_points):
    return st.lists(st.floats(0, 1), min_size=n_points, max_size=n_points).map(np.array)


def exact_after(prior, history):
    """Eq. 2 in whole numbers: the integers that finite queries are drawn from."""
    weights = [Fraction(float(chance)) for chance in prior.probabilities]
    for query, output in history:
        weights = [w * int(query.weights[point, output]) for point, w in enumerate(weights)]
    return [w / sum(weights) for w in weights]


@settings(max_examples=40, deadline=None)
@given(st.data(), tables())
def test_beliefs_are_those_of_the_formulas_in_fractions(data, history):
    n_points = history[0][0].n_points
    prior = data.draw(beliefs_about(n_points))
    truth = data.draw(truths(n_points))
    expected = exact_after(prior, history)
    after = prior.after(history)
    np.testing.assert_allclose(after.probabilities, [float(chance) for chance in expected], rtol=1e-11)
    believed = sum(chance * Fraction(float(t)) for chance, t in zip(expected, truth, strict=True))
    assert after.confidence(truth) == pytest.approx(float(believed), rel=1e-11, abs=1e-300)
    if 1e-6 < believed < 1 - 1e-6:
        assert after.odds(truth) == pytest.approx(float(believed / (1 - believed)), rel=1e-9)
    gains = np.array([truth, truth[::-1]])
    best = max(sum(c * Fraction(float(g)) for c, g in zip(expected, row, strict=True)) for row in gains)
    assert after.vulnerability(gains) == pytest.approx(float(best), rel=1e-11, abs=1e-300)
    assert after.vulnerability() == pytest.approx(float(max(expected)), rel=1e-11)


def test_regressions_change_a_belief_by_their_law():
    points = np.array([[-1.0, 0.5], [0.0, 0.0], [1.0, -0.3]])
    query = RegressionQuery("logistic", [2.0, 1.0], 0.3, (0, 1), 0.7)
    other = RegressionQuery("truncated", [1.0, -1.0], 0.0, (-0.5, 0.7), 1.2)
    prior = Belief([0.2, 0.3, 0.5], points)
    weights = [
        chance * naive_probability(query, 1, x) ** 2 * naive_probability(other, 0, x)
        for chance, x in zip(prior.probabilities, points, strict=True)
    ]
    after = prior.after([(query, 1), (other, 0), (query, 1)])
    np.testing.assert_allclose(after.probabilities, np.array(weights) / sum(weights), rtol=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.data(), histories())
def test_no_belief_changes_by_more_than_the_limit(data, history):
    """Lemma 3.1 and Theorem 3.3, for beliefs about points of the box, statements and gains."""
    n_points = data.draw(st.integers(1, 5))
    places = [[data.draw(st.sampled_from([-1.0, -0.4, 0.0, 0.7, 1.0])) for _ in range(2)] for _ in range(n_points)]
    prior = data.draw(beliefs_about(n_points, np.array(places)))
    low, high = learning_limit(history, bounds=(-1, 1), tol=1e-2)
    truth = data.draw(truths(n_points))
    if prior.confidence(truth) > 0:
        assert low * (1 - 1e-12) <= prior.knowledge_gain(history, truth) <= high * (1 + 1e-12)
        assert prior.g_leakage(history, [truth, truth[::-1]]) <= high * (1 + 1e-12)
    assert prior.g_leakage(history) <= high * (1 + 1e-12)


def sharpest_belief(history, *, bounds=None, domain=None, chance=1e-6, tol=1e-3):
    """Return a belief and a statement that these answers change the most: Lemma 3.2.

    Shapes: `statement` (n_points,).

    M. Pan, "Actual Knowledge Gain as Privacy Loss in Local Privacy Accounting", 2025, Lemma 3.2 and Appendix A.3.
    """
    pairs = list(history)
    found = realized_loss([q for q, _ in pairs], [o for _, o in pairs], bounds=bounds, domain=domain, tol=tol)
    if found.x_high is not None and found.x_low is not None:
        return Belief(np.array([chance, 1 - chance]), np.stack([found.x_high, found.x_low])), np.array([1.0, 0.0])
    sizes = [query.n_points for query, _ in pairs if isinstance(query, FiniteQuery)]
    total = Belief(np.full(sizes[0], 1 / sizes[0])).log_likelihood(pairs)
    probabilities, statement = np.zeros(sizes[0]), np.zeros(sizes[0])
    probabilities[total.argmin()] = 1 - chance
    probabilities[total.argmax()] += chance
    statement[total.argmax()] = 1.0
    return Belief(probabilities), statement


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(histories())
def test_a_belief_changes_by_the_limit(history):
    """Lemma 3.2: the limit cannot be lowered, for any output of any queries."""
    found = realized_loss([q for q, _ in history], [o for _, o in history], bounds=(-1, 1))
    belief, statement = sharpest_belief(history, bounds=(-1, 1), chance=1e-9)
    gain = belief.knowledge_gain(history, statement)
    reached = math.exp(found.lower) / (1 + 1e-9 * math.expm1(found.lower))
    assert reached * (1 - 1e-9) <= gain <= math.exp(found.upper) * (1 + 1e-12)


@settings(max_examples=30, deadline=None)
@given(tables())
def test_a_learning_limit_is_an_epsilon(history):
    """Theorems 3.1 and 3.2: the largest gain of any statement over all outputs is e^epsilon, no more and no less."""
    query = history[0][0]
    largest = max(
        belief.knowledge_gain([(query, output)], truth) if belief.confidence(truth) < 1 else 1.0
        for output in range(query.n_outputs)
        for belief, truth in [sharpest_belief([(query, output)], chance=1e-9)]
    )
    assert math.log(largest) == pytest.approx(query.epsilon, abs=1e-6)
    assert math.log(largest) <= query.epsilon + 1e-9


def test_the_papers_examples():
    # Example 1: as many ones as zeros teach nothing; Example 2: a loss of 1.5 where 3.375 was allowed.
    coin = randomized_response(0.75)
    low, high = learning_limit([(coin, output) for output in (0, 1, 1, 0)])
    assert low == pytest.approx(1)
    assert high == pytest.approx(1)
    low, high = learning_limit([(running_example(power), output) for power, output in ((1, 1), (2, 0), (3, 1))])
    assert (low, high) == (pytest.approx(1 / 1.5), pytest.approx(1.5))


def losses_of_all_outputs(queries):
    outputs = itertools.product(*(range(query.n_outputs) for query in queries))
    return [realized_loss(queries, each).upper for each in outputs]


def test_definition_3_3():
    """Randomized response fully utilizes its budget; twice the same does not, nor do the questions of Example 2."""
    np.testing.assert_allclose(losses_of_all_outputs([randomized_response(0.75)]), math.log(3))
    twice = losses_of_all_outputs([randomized_response(0.75)] * 2)
    assert min(twice) < 1e-9
    assert max(twice) == pytest.approx(2 * math.log(3))
    running = losses_of_all_outputs([running_example(power) for power in (1, 2, 3)])
    assert max(running) == pytest.approx(3 * math.log(1.5))
    assert min(running) < 0.5 * max(running)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.data(), st.floats(0.2, 3.0))
def test_bayesian_composition_is_at_least_as_good_as_basic(data, budget):
    """Section 7: after the same answers, whoever adds up epsilons admits nothing that the others refuse."""
    filters = [
        BasicPrivacyFilter(budget),
        SimplifiedBayesianPrivacyFilter(budget, bounds=(-1, 1), tol=1e-2),
        BayesianPrivacyFilter(budget, bounds=(-1, 1), tol=1e-2),
    ]
    for _ in range(5):
        query = data.draw(regression_queries(2))
        basic, simplified, bayesian = (one.admits(query) for one in filters)
        assert basic <= simplified <= bayesian
        output = data.draw(st.integers(0, 1))
        for one in filters:
            one.record(query, output)
        # Not through the sums, which would settle it: the certified losses themselves.
        # Either is rounded up in its own way.
        assert filters[2].realized_loss <= filters[0].realized_loss + 1e-12


def test_at_least_as_good_for_the_losses_alone():
    """The answers that cost most: the certified loss is no more than the epsilons add up to."""
    losses = [realized_loss([LINE] * n, [1] * n, bounds=(-1, 1)).upper for n in range(13)]
    assert all(loss <= 0.5 * n + 1e-12 for n, loss in enumerate(losses))
    np.testing.assert_allclose(losses, 0.5 * np.arange(13), atol=1e-3)
    assert realized_loss([LINE] * 6, [1, 0] * 3, bounds=(-1, 1)).upper < 0.2


def test_separate_budgets_tell_a_shared_feature_at_their_sum():
    """The attack, and what one budget for a household makes of it: a statement about the rent that four people pay."""
    separate, together = rents()
    assert separate > 50
    assert together <= np.exp(1.0)
    home, rent = Household(4, 2, shared=(0,)), RegressionQuery("linear", [1.0, 0.0], 0.0, (0, 1), 1.0)
    person, alone = BayesianPrivacyFilter(1.0, bounds=(0, 1)), BayesianPrivacyFilter(1.0, bounds=(0, 1))
    for member in range(4):
        assert person.admits(home.query(member, rent)) is (member == 0)
        person.record(home.query(member, rent), 1)
    assert alone.admits(rent)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_a_members_answers_keep_their_law(data):
    """The law of the common record's answers is the member's own, and nobody else's values are in it."""
    shared = data.draw(st.lists(st.integers(0, 2), unique=True).map(sorted).map(tuple))
    home = Household(3, 3, shared=shared)
    query = data.draw(regression_queries(3))
    values = np.array(data.draw(st.lists(st.floats(-1, 1), min_size=18, max_size=18))).reshape(2, 3, 3)
    values[:, :, list(shared)] = values[:, :1, list(shared)]
    records = home.records(values)
    assert records.shape == (2, home.n_record)
    for member in range(3):
        ours = home.query(member, query).probability_of_high(records)
        np.testing.assert_allclose(ours, query.probability_of_high(values[:, member]), rtol=1e-12)


def test_a_point_that_nobody_believes_in_does_not_count():
    prior = Belief([0.0, 0.5, 0.5], points=np.array([[1.0], [-1.0], [-1.0]]))
    assert prior.after([(LINE, 1)] * 3000).probabilities == pytest.approx([0.0, 0.5, 0.5])
