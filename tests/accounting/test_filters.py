import math

import numpy as np
import pytest
from accounting.reference import grid_loss, regression_queries, running_example
from hypothesis import given, settings
from hypothesis import strategies as st

from skldp.accounting._filters import (
    ApproximateBayesianPrivacyFilter,
    BasicPrivacyFilter,
    BayesianPrivacyFilter,
    SimplifiedBayesianPrivacyFilter,
)
from skldp.accounting._regression_query import RegressionQuery
from skldp.mechanisms._finite_query import FiniteQuery

LOW, HIGH = np.array([-1.0, -1.0]), np.array([1.0, 1.0])


def worst_true_loss(history):
    # The sampled integers give a little less than the formula.
    queries, outputs = [query for query, _ in history], [output for _, output in history]
    return grid_loss(queries, outputs, LOW, HIGH, 41) - 1e-12


@pytest.mark.parametrize("name", ["bounds", "domain"])
@pytest.mark.parametrize("made", [list, np.array])
def test_a_domain_that_is_edited_later_is_the_one_that_was_given(name, made):
    domain = [made([-1.0]), made([1.0])]
    person = BayesianPrivacyFilter(5.0, **{name: domain})
    for end in domain:
        end[0] = 0.0
    person.record(RegressionQuery("linear", [1.0], 0.0, (-1, 1), 0.5), 1)
    assert person.realized_loss == pytest.approx(0.5)


@pytest.mark.parametrize("max_examples", [12, pytest.param(2000, marks=pytest.mark.statistical)])
@pytest.mark.parametrize("kind", [SimplifiedBayesianPrivacyFilter, BayesianPrivacyFilter])
def test_no_adversary_gets_an_answer_beyond_the_budget(kind, max_examples):
    """Whatever is asked next, and whatever is answered: what was admitted stays within the budget."""

    @settings(max_examples=max_examples, deadline=None)
    @given(st.data(), st.floats(0.3, 1.5))
    def play(data, budget):
        person = kind(budget, bounds=(-1, 1), tol=1e-2)
        favourite = data.draw(regression_queries(2, epsilons=(0.1, 0.8)))
        for _ in range(7):
            # An adversary that finds a costly direction asks for it again.
            fresh = data.draw(st.booleans())
            query = data.draw(regression_queries(2, epsilons=(0.1, 0.8))) if fresh else favourite
            if not person.admits(query):
                continue
            # Admitted means: within the budget whatever the answer is.
            for output in (0, 1):
                assert worst_true_loss([*person.history, (query, output)]) <= budget
            person.record(query, data.draw(st.integers(0, 1)))
        assert person.realized_loss >= worst_true_loss(person.history)
        assert person.realized_loss <= budget + 1e-2
        assert person.remaining == max(0.0, budget - person.realized_loss)

    play()


def test_example_3():
    # A hair above 2 ln(3/2), which the paper's own table reaches exactly.
    person = BayesianPrivacyFilter(2 * math.log(1.5) + 1e-9)
    losses = []
    for power, output in enumerate((1, 0, 1, 1), start=1):
        assert person.admits(running_example(power))
        person.record(running_example(power), output)
        losses.append(round(math.exp(person.realized_loss), 2))
    assert losses == [1.50, 1.15, 1.50, 2.25]
    assert not any(person.admits(running_example(power)) for power in range(5, 12))
    assert person.remaining == pytest.approx(0.0, abs=1e-8)


def test_the_bayesian_filter_outlasts_the_simplified_one_which_outlasts_the_basic_one():
    rng = np.random.default_rng(1)
    stream = []
    for _ in range(200):
        theta = rng.uniform(-1, 1, 4)
        theta /= np.abs(theta).sum()
        stream.append((RegressionQuery("linear", theta[1:], theta[0], (-1, 1), 0.1), int(rng.integers(2))))
    counts = []
    for person in (
        BasicPrivacyFilter(0.6),
        SimplifiedBayesianPrivacyFilter(0.6, bounds=(-1, 1)),
        BayesianPrivacyFilter(0.6, bounds=(-1, 1)),
    ):
        for query, output in stream:
            if not person.admits(query):
                break
            person.record(query, output)
        counts.append(len(person.history))
    assert counts[0] == 6
    assert counts[0] < counts[1] <= counts[2]


def test_what_cannot_be_proved_is_refused(monkeypatch):
    """With the search cut short the bounds are far apart, and a budget between them is not enough."""
    for limit in ("_MAX_BOX_NODES", "_MAX_DUAL_NODES"):
        monkeypatch.setattr(f"skldp.accounting.losses._box_search.{limit}", 1)
    rng = np.random.default_rng(4)
    pairs = [(RegressionQuery("logistic", rng.uniform(-9, 9, 2), 0.0, (0, 1), 0.5), i % 2) for i in range(6)]
    after = BayesianPrivacyFilter(9.0, bounds=(-1, 1))
    for pair in pairs:
        after.record(*pair)
    bounds = after.loss_bounds
    assert bounds.gap > 0.05
    person = BayesianPrivacyFilter((bounds.lower + bounds.upper) / 2, bounds=(-1, 1))
    for pair in pairs[:5]:
        person.record(*pair)
    # Only the output that was given is in question here.
    queries, outputs = zip(*pairs, strict=True)
    assert person._loss(queries, outputs, person.epsilon).upper > person.epsilon
    assert not person.admits(pairs[5][0])


def test_decisions_depend_on_the_answers_alone():
    rng = np.random.default_rng(0)
    queries = [RegressionQuery("logistic", rng.uniform(-5, 5, 2), 0.0, (0, 1), 0.3) for _ in range(5)]
    pairs = [(query, int(rng.integers(2))) for query in queries[:4]]
    plain, curious, backwards = (BayesianPrivacyFilter(0.9, bounds=(-1, 1)) for _ in range(3))
    for pair in pairs:
        curious.admits(pair[0])
        assert curious.realized_loss >= 0
        curious.record(*pair)
        plain.record(*pair)
    for pair in reversed(pairs):
        backwards.record(*pair)
    assert len({person.admits(queries[4]) for person in (plain, curious, backwards)}) == 1
    assert plain.realized_loss == backwards.realized_loss == curious.realized_loss


def test_the_approximate_filter_is_epsilon_delta_private():
    """The exact law of a whole interaction over two points, against (epsilon, delta)."""
    epsilon, delta, each, length = 0.5, 0.05, 0.1, 14
    p = 1 / (1 + math.exp(-each))
    query = FiniteQuery.from_probabilities([[p, 1 - p], [1 - p, p]])

    # State: number of zeros and ones so far; the query never changes, so that this decides.
    def admitted(zeros, ones):
        person = ApproximateBayesianPrivacyFilter(epsilon, delta)
        for output in [0] * zeros + [1] * ones:
            person.record(query, output)
        return person.admits(query)

    alive = {(0, 0): (1.0, 1.0)}
    ended = []
    for _ in range(length):
        following = {}
        for (zeros, ones), (first, second) in alive.items():
            if not admitted(zeros, ones):
                ended.append((first, second))
                continue
            for output in (0, 1):
                state = (zeros + (output == 0), ones + (output == 1))
                old = following.get(state, (0.0, 0.0))
                chance = (p, 1 - p) if output == 0 else (1 - p, p)
                following[state] = (old[0] + first * chance[0], old[1] + second * chance[1])
        alive = following
    ended += list(alive.values())
    assert sum(first for first, _ in ended) == pytest.approx(1.0)
    excess = sum(max(0.0, first - math.exp(epsilon) * second) for first, second in ended)
    assert excess <= delta


@pytest.mark.parametrize("bad", [0, -1, True, np.nan, np.inf, "1", None])
def test_bad_parameters_are_refused(bad):
    with pytest.raises(ValueError, match="epsilon must be"):
        BasicPrivacyFilter(bad)
    with pytest.raises(ValueError, match="tol must be"):
        BayesianPrivacyFilter(1.0, bounds=(-1, 1), tol=bad)
    with pytest.raises(ValueError, match="delta must be"):
        ApproximateBayesianPrivacyFilter(1.0, bad, bounds=(-1, 1))


def test_bad_questions_and_answers_are_refused():
    query = RegressionQuery("linear", [1.0], 0.0, (-1, 1), 0.1)
    person = BayesianPrivacyFilter(1.0, bounds=(-1, 1))
    for output in (2, -1, True, None, 0.5):
        with pytest.raises(ValueError, match="output must be"):
            person.record(query, output)
    for question in (None, "query", 3):
        with pytest.raises(ValueError, match="must be a RegressionQuery"):
            person.admits(question)
    with pytest.raises(ValueError, match="below 1/e"):
        ApproximateBayesianPrivacyFilter(1.0, 0.5)
    assert person.history == ()
