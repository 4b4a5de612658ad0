"""Answers are drawn from the very integers of their law, and the law never leaves what it costs."""

import decimal
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from laws import OneDraw, assert_is_the_guarantee, intervals, lengths, logarithm
from scipy.special import expit

from skldp.accounting import FiniteQuery
from skldp.accounting._regression_query import RegressionQuery
from skldp.accounting.losses._certificate import (
    Tree,
    certified_maximum,
    leaf_bounds,
    peaks_at_vertices,
    vertex_bounds,
    vertex_maximum,
)
from skldp.accounting.losses._sampled_law import CHANCE_ERROR, answer_law

WORD = 2**64
CUBE = np.array([[-1.0], [1.0]])


def sampled_law(query, person):
    found = intervals(lambda draw: int(query.sample(person, OneDraw(draw))[0]), 0, WORD)
    return lengths(found, WORD)


@pytest.mark.parametrize(
    "table", [[[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]], [[0.5, 0.5], [0.5, 0.5]], [[1e-9, 1 - 1e-9], [0.5, 0.5]]]
)
def test_a_finite_query_draws_the_weights_of_its_law(table):
    query = FiniteQuery.from_probabilities(table)
    laws = [sampled_law(query, np.array([point])) for point in range(query.n_points)]
    for law, weights in zip(laws, query.weights.tolist(), strict=True):
        assert [law.get(output, 0) for output in range(query.n_outputs)] == [weight << 11 for weight in weights]
    assert_is_the_guarantee(laws, query.exact_epsilon, slack=1e-9)


@pytest.mark.few(5)
@pytest.mark.parametrize("kind", ["linear", "logistic", "exponential"])
@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 2.0, 20.0, 30.0])
def test_a_regression_query_draws_the_law_that_it_states(kind, epsilon):
    query = RegressionQuery(kind, [3.0], -1.0, (0.2, 4.0) if kind == "exponential" else (0, 1), epsilon)
    laws = []
    # One draw of 2^64 is so much of the rarest answer.
    slack = 1e-9 + 2.0**-64 * np.exp(epsilon)
    for x in (-500.0, 0.1, 0.4, 500.0):
        law = sampled_law(query, np.array([[x]]))
        laws.append(law)
        stated = float(query.probability_of_high(np.array([[x]]))[0])
        assert law[1] / WORD == pytest.approx(stated, rel=1e-12)
        # What is sampled is within the rounding of what is charged: the log-likelihood of either answer.
        for answer in (0, 1):
            charged = float(query.log_likelihood(answer, np.array([[x]]))[0])
            assert float(logarithm(Fraction(law[answer], WORD))) == pytest.approx(charged, rel=1e-9, abs=slack)
    assert_is_the_guarantee(laws, query.exact_epsilon, slack=1e-9)


@pytest.mark.parametrize("epsilon", [20.0, 29.0, 30.0])
def test_probabilities_next_to_1_are_drawn_on_the_right_side(epsilon):
    # From 37 on, 1 - e^-epsilon would be 1 in double precision, and 1 times 2^64 is no 64-bit number.
    query = RegressionQuery("linear", [1.0], 0.0, (0, 1), epsilon)
    low, high = (sampled_law(query, np.array([[x]])) for x in (0.0, 1.0))
    assert high[1] > WORD // 2 > low[1]
    assert max(high[1], low[0]) <= WORD - 1


@pytest.mark.few(6)
@pytest.mark.parametrize("kind", ["linear", "truncated", "logistic", "exponential"])
@pytest.mark.parametrize("epsilon", [0.05, 2.0, 12.0, 30.0])
def test_every_draw_is_within_the_law_that_certificates_are_about(kind, epsilon):
    rng = np.random.default_rng(0)
    for _ in range(60):
        coef, intercept = rng.normal(size=3) * 10.0 ** rng.uniform(-3, 3), float(rng.normal())
        ends = (0.0, 1.0) if kind == "logistic" else (float(rng.normal()), 9.0 + 10.0 ** rng.uniform(-3, 3))
        if kind == "exponential":
            # The span of what can be told apart, as far as logarithms of bounds can be apart.
            ends = (ends[0], ends[0] + min(ends[1] - ends[0], 29.9))
        bounds = tuple(np.exp(ends).tolist()) if kind == "exponential" else ends
        query = RegressionQuery(kind, coef, intercept, bounds, epsilon)
        x = rng.normal(size=3)
        if kind != "logistic":
            # Where the prediction touches an end, the ramp is as steep against its height as anywhere.
            x = coef * (rng.choice(ends) - intercept) / (coef @ coef)
        chance = Fraction(int(query.thresholds(x[None])[0]), WORD)
        with decimal.localcontext() as context:
            context.prec = 60
            share = 1 / (decimal.Decimal(epsilon).exp() + 1)
            for output in (0, 1):
                law = answer_law([query], [output], np.stack([x, x + np.array([1.0, 0, 0])]))
                # Exactly where the answer lies, and where the law says that rounding may bring it.
                w = sum(Fraction(a) * Fraction(b) for a, b in zip(law.coef[0].tolist(), x.tolist(), strict=True))
                w += Fraction(float(law.offset[0]))
                least, most = (float(end[0, 0]) for end in law.ranges(x[None], x[None]))
                room = Fraction(float(law.error[0])) / 4
                assert Fraction(least) <= w - room <= w + room <= Fraction(most)
                given = chance if output else 1 - chance
                probability = decimal.Decimal(given.numerator) / given.denominator
                low, high = (share + (1 - 2 * share) * response(kind, end, law.growth[0]) for end in (least, most))
                assert low - decimal.Decimal(CHANCE_ERROR) <= probability <= high + decimal.Decimal(CHANCE_ERROR)


def response(kind, w, growth):
    w = decimal.Decimal(w)
    if kind == "logistic":
        return 1 / (1 + (-w).exp())
    w, growth = min(max(w, decimal.Decimal(0)), decimal.Decimal(1)), decimal.Decimal(float(growth))
    return w if growth == 0 else ((growth * w).exp() - 1) / (growth.exp() - 1)


@pytest.mark.few(4)
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("kind", ["linear", "logistic"])
@pytest.mark.parametrize("epsilon", [0.1, 2.0, 8.0])
def test_what_a_slope_leaves_of_an_answer_is_nowhere_larger_than_the_check_says(kind, sign, epsilon):
    rng = np.random.default_rng(0)
    query = RegressionQuery(kind, [1.0], 0.0, (0, 1), epsilon)
    steepest = np.expm1(epsilon) if kind == "linear" else 1.0
    box = np.array([[-30.0], [30.0]])
    law = answer_law([query], [1], box)
    smallest, reach = float(law.smallest[0]), float(law.reach[0])
    for _ in range(300):
        low, high = np.sort(rng.choice([rng.normal(0.5, 1, 2), rng.normal(0, 10, 2)]))
        s = rng.choice([rng.uniform(-1, 1), rng.uniform(0, steepest), rng.normal() * 100])
        bound = leaf_bounds(
            law, sign, law.count, np.array([[s]]), box[:1], box[1:], np.array([[low]]), np.array([[high]])
        )
        w = np.concatenate([np.linspace(low, high, 2001), np.clip([0.0, 1.0], low, high)])
        answer = expit(w) if kind == "logistic" else np.clip(w, 0, 1)
        value = sign * np.log(smallest + sign * CHANCE_ERROR + reach * answer) - s * w
        # Over the whole box the slope itself adds as much as it can.
        assert value.max() + 30 * abs(s) <= bound[0] * (1 + 1e-15) + 1e-15
        assert bound[0] <= value.max() + 30 * abs(s) + 1e-2 * (1 + abs(s) * (high - low))


def test_a_sum_is_looked_for_at_vertices_only_where_it_peaks_there():
    box = CUBE
    ramp = RegressionQuery("linear", [1.0], 0.0, (-1, 1), 1.0)
    # Its kink lies within the box, by however little; a logistic answer bends there.
    for other in (
        RegressionQuery("truncated", [1.0], 0.0, (-1 + 2e-4, 1), 1.0),
        RegressionQuery("truncated", [1.0], 0.0, (0, 1), 1.0),
        RegressionQuery("logistic", [3.0], 0.0, (0, 1), 1.0),
    ):
        for queries in ([other], [ramp, other]):
            law = answer_law(queries, [1] * len(queries), box)
            assert not peaks_at_vertices(law, -1)
            assert vertex_maximum(law, -1)[0] == np.inf
            tree = Tree(1, to_the_ends=True)
            assert certified_maximum(law, -1, tree, lambda leaves, low, high: 0 * low) == np.inf
    law = answer_law([ramp], [1], box)
    assert peaks_at_vertices(law, -1)
    # Of a thousand answers the roundings are counted, too.
    many = vertex_maximum(replace(law, count=np.array([1e3])), -1)[0]
    assert many > 1e3 * float(vertex_bounds(law, -1, box).max())


def test_pieces_that_an_answer_cuts_overlap_by_what_rounding_does_to_it():
    law, tree, seen = answer_law([RegressionQuery("truncated", [3.0], 0.1, (0, 1), 2.0)], [1], CUBE), Tree(1), []
    tree.split(0, 1, 0.25)
    certified_maximum(law, 1, tree, lambda leaves, low, high: seen.append((low, high)) or 0 * low)
    low, high = (np.concatenate(ends) for ends in zip(*seen, strict=True))
    assert low.max() <= 0.25 - law.error[0] < 0.25 + law.error[0] <= high.min()
