"""Randomized response on bins: the very integers, the best bins against every other choice, and what is unbiased."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from laws import (
    THRESHOLD,
    OneDraw,
    ScriptedNoise,
    assert_is_the_guarantee,
    chi_square_pvalue,
    intervals,
    lengths,
    released,
)
from scipy.optimize import linprog

from skldp.accounting import shuffled
from skldp.mechanisms import RandomizedResponse, noise_from
from skldp.mechanisms.numeric import _points as choice
from skldp.mechanisms.numeric._points import (
    ResponseOnBins,
    best_bins,
    best_knots,
    refined_prior,
)

PRIORS = [None, (0.7, 0.2, 0.1), (0.0, 0.0, 1.0, 0.0), (0.45, 0.05, 0.0, 0.5)]
VALUES = np.linspace(-3, 9, 101)[:, None]
WORD = 2**64


@pytest.fixture
def few_parts(monkeypatch):
    """Let priors stand as they are, so that all choices of bins can be listed."""
    monkeypatch.setattr(choice, "_LEAST_PARTS", 1)
    best_bins.cache_clear()
    best_knots.cache_clear()
    yield
    best_bins.cache_clear()
    best_knots.cache_clear()


def moments_of(prior, low, high):
    """E[1], E[y], E[y^2] of the part of the piecewise uniform law on [-1, 1] from one edge to another."""
    edges = np.linspace(-1, 1, len(prior) + 1)
    total = np.zeros(3)
    for mass, left, right in list(zip(prior, edges[:-1], edges[1:], strict=True))[low:high]:
        total += mass * np.array([(right**n - left**n) / (n * (right - left)) for n in (1, 2, 3)])
    return total


def losses_of_all_bins(prior, epsilon):
    """The expected square error of every choice of bins with their best answers, from the definition."""
    n, whole = len(prior), moments_of(prior, 0, len(prior))
    for k in range(1, n + 1):
        p, q = np.exp(epsilon) / (np.exp(epsilon) + k - 1), 1 / (np.exp(epsilon) + k - 1)
        for inner in combinations(range(1, n), k - 1):
            loss = 0.0
            for low, high in zip((0, *inner), (*inner, n), strict=True):
                own = moments_of(prior, low, high)
                zeroth, first, second = p * own + q * (whole - own)
                loss += second - first**2 / zeroth
            yield loss


def losses_of_all_knots(prior, epsilon):
    """The variance of every unbiased choice of knots, by integration of its law over a fine grid of each part."""
    n = len(prior)
    edges = np.linspace(-1, 1, n + 1)
    nodes, weights = np.polynomial.legendre.leggauss(2)
    y = ((edges[:-1] + edges[1:]) / 2)[:, None] + nodes / n
    mass = (np.asarray(prior)[:, None] * weights / 2).ravel()
    y = y.ravel()
    for k in range(2, n + 2):
        p, q = np.exp(epsilon) / (np.exp(epsilon) + k - 1), 1 / (np.exp(epsilon) + k - 1)
        for inner in combinations(range(1, n), k - 2):
            knots = edges[[0, *inner, n]]
            hats = np.array([np.interp(y, knots, one) for one in np.eye(k)])
            answers = np.linalg.solve(np.full((k, k), q) + (p - q) * np.eye(k), knots)
            yield float(((q + (p - q) * hats) * (answers[:, None] - y) ** 2).sum(axis=0) @ mass)


priors = st.integers(2, 7).flatmap(lambda n: st.lists(st.floats(0, 1), min_size=n, max_size=n)).filter(sum)


@pytest.mark.slow
@pytest.mark.usefixtures("few_parts")
@settings(max_examples=60)
@given(priors, st.floats(0.05, 9.0))
def test_no_other_bins_have_a_smaller_loss(weights, epsilon):
    prior = tuple((np.array(weights) / sum(weights)).tolist())
    assert best_bins(epsilon, prior).expected_loss == pytest.approx(min(losses_of_all_bins(prior, epsilon)), abs=1e-12)


@pytest.mark.slow
@pytest.mark.usefixtures("few_parts")
@settings(max_examples=60)
@given(priors, st.floats(0.05, 9.0))
# From far away the search would stop at another place.
@example([0.1233, 0.8757, 0.0009], 1.0)
@example([0.0025, 0.0, 0.0004, 0.0, 0.7161, 0.0, 0.281], 1.0)
def test_no_other_knots_have_a_smaller_variance(weights, epsilon):
    prior = tuple((np.array(weights) / sum(weights)).tolist())
    least = min(losses_of_all_knots(prior, epsilon))
    assert best_knots(epsilon, prior).expected_loss == pytest.approx(least, rel=1e-6)


def best_of_all_laws(values, mass, epsilon, outputs, *, unbiased=False):
    """The least expected square error of all epsilon-private laws from values to outputs, by linear programming."""
    n, m = len(values), len(outputs)
    loss = np.append((mass[:, None] * (outputs - values[:, None]) ** 2).ravel(), np.zeros(m))
    whole = np.hstack([np.kron(np.eye(n), np.ones(m)), np.zeros((n, m))])
    mean = np.hstack([np.kron(np.eye(n), outputs), np.zeros((n, m))])
    equal = np.vstack([whole, mean]) if unbiased else whole
    sides = np.append(np.ones(n), values) if unbiased else np.ones(n)
    least = np.hstack([-np.eye(n * m), np.tile(np.eye(m), (n, 1))])
    most = np.hstack([np.eye(n * m), -np.exp(epsilon) * np.tile(np.eye(m), (n, 1))])
    solved = linprog(loss, np.vstack([least, most]), np.zeros(2 * n * m), equal, sides, method="highs")
    assert solved.success
    return solved.fun


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0])
def test_no_private_law_at_all_has_a_smaller_expected_loss(epsilon):
    # Of the middles of the parts, where the law of the parts is at most their variance away.
    prior = tuple((np.arange(12) + 1.0) / 78)
    law = ResponseOnBins(epsilon, -1.0, 1.0, prior)
    middles = (np.arange(64) + 0.5) / 32 - 1
    mass = refined_prior(prior)
    middles = (np.arange(mass.size) + 0.5) * 2 / mass.size - 1
    some = slice(None, None, 5)
    values, mass = middles[some], mass[some] / mass[some].sum()
    ours = float((law.output_law(values[:, None]) * (law.answers - values[:, None]) ** 2).sum(axis=1) @ mass)
    theirs = best_of_all_laws(values, mass, epsilon, np.append(np.linspace(-1, 1, 33), law.answers))
    assert theirs <= ours <= theirs * 1.02


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 3.0])
@pytest.mark.parametrize(
    "prior", [None, tuple((np.exp(-np.arange(11) / 2) / np.exp(-np.arange(11) / 2).sum()).tolist())]
)
def test_knots_are_near_the_best_of_all_unbiased_laws(epsilon, prior):
    law = ResponseOnBins(epsilon, -1.0, 1.0, prior, unbiased=True)
    values = np.linspace(-1, 1, 11)
    mass = np.full(11, 1 / 11) if prior is None else np.array(prior)
    ours = float(law.variance(values[:, None]) @ mass)
    span = 1.3 * np.abs(law.answers).max()
    theirs = best_of_all_laws(
        values, mass, epsilon, np.append(np.linspace(-span, span, 61), law.answers), unbiased=True
    )
    assert theirs * (1 - 1e-6) <= ours <= theirs * 1.15


@pytest.mark.slow
@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("epsilon", [0.1, 3.0, 8.0])
def test_the_answers_to_a_number_have_the_integers_of_the_guarantee(epsilon, unbiased):
    law = ResponseOnBins(epsilon, -3.0, 9.0, unbiased=unbiased)
    numbers = law.places if unbiased else np.append(law.low, law.places)

    class TwoDraws(OneDraw):
        """The words of the rounding are all 0, which rounds down at a knot and nowhere else."""

        def fill(self, buffer):
            if buffer.dtype == np.uint64 and unbiased and not self.rounded:
                self.rounded = True
                buffer[...] = WORD - 1
                return buffer
            return super().fill(buffer)

    def answer(number, draw):
        noise = TwoDraws(draw, (16, 48))
        noise.rounded = False
        return float(law.release([[number]], noise).rows[0, 0])

    laws = [lengths(intervals(lambda draw, n=n: answer(n, draw), 0, WORD), WORD) for n in numbers.tolist()[:5]]
    assert {value for one in laws for value in one} == set(law.answers.tolist())
    assert_is_the_guarantee(laws, law.guarantee().epsilon)
    assert [one[value] for one, value in zip(laws, law.answers.tolist(), strict=False)] == [
        law.inner.law.own_count
    ] * len(laws)


def test_a_number_is_rounded_to_a_neighbour_by_exactly_its_share_of_draws():
    law = ResponseOnBins(4.0, 0.0, 16.0, unbiased=True)
    left, right = law.places[2:4].tolist()
    number = left + 0.25 * (right - left)

    def knot(draw):
        # Randomized response keeps the knot where its own draw is the largest.
        return float(law.release([[number]], ScriptedNoise([draw, 2**16 - 1, WORD - 1])).rows[0, 0])

    found = lengths(intervals(knot, 0, WORD), WORD)
    assert found == {law.answers[3]: WORD // 4, law.answers[2]: 3 * (WORD // 4)}


@pytest.mark.slow
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 6.0, 40.0])
def test_knots_are_unbiased_for_every_number_and_bins_are_not(epsilon, prior):
    law = ResponseOnBins(epsilon, -3.0, 9.0, prior, unbiased=True)
    assert np.abs(law.bias(VALUES)).max() <= 1e-12 * np.abs(law.answers).max()
    assert (law.output_law(VALUES) > 0).all()
    biased = ResponseOnBins(1.0, -3.0, 9.0, prior)
    assert biased.bias([[-3.0]])[0] > 1 > -1 > biased.bias([[9.0]])[0]


@pytest.mark.few(4)
@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("number", [-3.0, 2.2, 9.0])
def test_answers_are_drawn_by_the_law(number, dtype, unbiased):
    law = ResponseOnBins(3.0, -3.0, 9.0, (0.25, 0.75), unbiased)
    with pytest.warns(match="seed"):
        noise = noise_from(5)
    given_number = dtype(number)
    drawn = released(law, np.full(40_000, given_number), noise)
    assert drawn.dtype == dtype
    answers = law.answers.astype(dtype)
    counts = [(drawn == answer).sum() for answer in answers]
    assert sum(counts) == drawn.size
    assert chi_square_pvalue(counts, law.output_law([[float(given_number)]])[0]) > THRESHOLD


@pytest.mark.parametrize("prior", [(), (0.5, 0.6), (-0.5, 1.5), (np.nan, 1.0), tuple([1 / 2000] * 2000), ((0.5, 0.5),)])
def test_refuses_what_is_no_prior(prior):
    with pytest.raises(ValueError, match="prior must be at most 1,024 probabilities that sum to 1"):
        ResponseOnBins(1.0, 0.0, 1.0, prior)


@pytest.mark.parametrize(("epsilon", "low", "high"), [(0, 0, 1), (True, 0, 1), (1.0, 1.0, 1.0), (1.0, 0.0, np.inf)])
def test_refuses_parameters_out_of_range(epsilon, low, high):
    with pytest.raises(ValueError, match=r"epsilon|low and high"):
        ResponseOnBins(epsilon, low, high)


def test_a_shuffler_knows_the_law_of_the_answers():
    law = ResponseOnBins(2.0, 0.0, 1.0, unbiased=True)
    inner = RandomizedResponse(2.0, law.answers.size)
    assert shuffled(law, 1_000, 1e-6).epsilon == shuffled(inner, 1_000, 1e-6).epsilon
