"""Scores of answers: their mean under the exact law is what they are said to score, between the ends that are said."""

import numpy as np
import pytest
from laws import hadamard, hashing, log_likelihood

from skldp.collection._answer_scores import (
    CellScores,
    CodeScores,
    StepScores,
    grouped_sums,
    numbers,
    squares,
)
from skldp.laws._categories import ResponseLaw
from skldp.laws._few_answers import TwoAnswersLaw
from skldp.laws._integers import UnitLaw
from skldp.laws._lattice import MixtureLaw
from skldp.laws._numbers import BitsLaw, KnotsLaw, SampledLaw
from skldp.mechanisms import Piecewise, RandomizedResponse
from skldp.mechanisms.categorical._one_hot import SubsetSelection, UnaryEncoding
from skldp.mechanisms.numeric._distribution import Ramps
from skldp.mechanisms.numeric._unit_mechanisms import (
    Duchi,
    DuchiVector,
    Hybrid,
    HybridThreeOutputs,
    SquareWave,
    ThreeOutputs,
)

POINTS = (-1.0, -0.6, 0.0, 0.25, 1.0)
LATTICES = [Piecewise(1.0, "pm", 6), Piecewise(0.5, "opt", 6), SquareWave(2.0, 6)]
MIXTURES = [Hybrid(1.0, 6), Hybrid(3.0, 6), HybridThreeOutputs(2.0, 6)]
FEW = [Duchi(1.0), ThreeOutputs(1.0), ThreeOutputs(5.0)]


def lattice_chances(law, x):
    weights = law.support(x)[1]
    return np.array([weight / sum(weights) for weight in weights])


def few_chances(law, x):
    """By counting the words, of which there are too many, in their order: where each answer begins."""
    if isinstance(law, TwoAnswersLaw):
        plus = (2**63 + x * law.slope) / 2**64
        return np.array([1 - plus, plus])
    zero = (law.zero - abs(x) * law.zero_lost) / 2**64
    wrong = (law.wrong - abs(x) * law.wrong_lost) / 2**64
    right = 1 - zero - wrong
    return np.array([right, zero, wrong] if x < 0 else [wrong, zero, right])


def chances(mechanism, x):
    """The exact law of the answers to a number."""
    law = mechanism.integer_law
    if isinstance(law, MixtureLaw):
        share = law.lattice_count / 2**64
        parts = share * lattice_chances(law.lattice, x), (1 - share) * few_chances(law.few, x)
        return np.concatenate(parts)
    return lattice_chances(law, x) if mechanism in LATTICES else few_chances(law, x)


def all_answers(law):
    return np.arange(law.n_answers, dtype=np.uint32)


@pytest.mark.parametrize("mechanism", LATTICES + MIXTURES + FEW, ids=repr)
def test_numbers_are_without_bias(mechanism):
    law = mechanism.integer_law
    assert isinstance(law, UnitLaw)
    scores = numbers(law, all_answers(law))
    assert (scores.low, scores.high) == (scores.values.min(), scores.values.max())
    for x in POINTS:
        # Chances are of the lattice's fractions of a cell, to 2^-50 or so.
        assert chances(mechanism, x) @ scores.values == pytest.approx(x, abs=1e-12 * scores.high)


@pytest.mark.parametrize("mechanism", LATTICES + MIXTURES, ids=repr)
def test_squares_are_without_bias_but_for_a_quarter_of_a_step(mechanism):
    law = mechanism.integer_law
    lattice = law.lattice if isinstance(law, MixtureLaw) else law
    scores = squares(law, all_answers(law))
    assert (scores.low, scores.high) == pytest.approx((scores.values.min(), scores.values.max()))
    for x in POINTS:
        wrong = chances(mechanism, x) @ scores.values - x**2
        assert -(4.0**lattice.step_exponent) / 3 < wrong <= 1e-12 * scores.high


CODES = [
    RandomizedResponse(1.0, 2),
    RandomizedResponse(0.5, 5),
    UnaryEncoding(1.0, 5),
    UnaryEncoding(2.0, 9),
    SubsetSelection(1.0, 2),
    SubsetSelection(0.5, 9),
    hashing(1.0, 5),
    hashing(0.7, 11),
    hadamard(1.0, 2),
    hadamard(0.5, 6),
    hadamard(2.5, 13),
]


def code_chances(law, code, mechanism):
    """The exact law of the answers to a code."""
    answers = np.arange(law.n_answers)
    return np.exp(log_likelihood(mechanism, answers, np.full(len(answers), code)))


@pytest.mark.parametrize("mechanism", CODES, ids=repr)
def test_scores_of_codes_are_without_bias(mechanism):
    law = mechanism.integer_law
    parts, n = CodeScores(law), law.n_codes
    answers = np.arange(law.n_answers, dtype=np.uint8 if law.n_answers <= 256 else np.uint16)
    table = np.array([parts.scores(answers, code) for code in range(n)])
    np.testing.assert_allclose(table.min(axis=1), parts.low)
    np.testing.assert_allclose(table.max(axis=1), parts.high)
    # Intervals of two-valued scores are those of a binomial number.
    is_end = np.isclose(table, parts.low[:, None]) | np.isclose(table, parts.high[:, None])
    assert bool(is_end.all()) == parts.two_valued
    for code in range(n):
        np.testing.assert_allclose(table @ code_chances(law, code, mechanism), np.arange(n) == code, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [9, 40, 64, 65, 70, 300])
def test_bits_are_read_in_their_order(n):
    """In integers, and where these do not suffice in bytes."""
    rng = np.random.default_rng(n)
    table = rng.integers(0, 2, (7, n))
    numbers_of = [int("".join(map(str, row)), 2) for row in table]
    size = -(-n // 8)
    if n <= 64:
        size = next(one for one in (1, 2, 4, 8) if one >= size)
        answers = np.array(numbers_of, dtype=f"u{size}")
    else:
        data = b"".join(number.to_bytes(size, "big") for number in numbers_of)
        answers = np.frombuffer(data, np.uint8).reshape(-1, size)
    parts = CodeScores(UnaryEncoding(1.0, n).integer_law)
    weights = rng.normal(size=7)
    for code in range(n):
        np.testing.assert_array_equal(parts.scores(answers, code) > 0, table[:, code] == 1)
    scores = np.array([parts.scores(answers, code) for code in range(n)])
    sums, of_squares = parts.sums(answers, weights)
    np.testing.assert_allclose(sums, scores @ weights)
    np.testing.assert_allclose(of_squares, scores**2 @ weights)


def test_sums_are_those_of_scores():
    rng = np.random.default_rng(0)
    weights = rng.normal(size=50)
    law = Hybrid(2.0, 6).integer_law
    cases = [(CodeScores(one.integer_law), one.integer_law.n_answers) for one in CODES]
    cases.append((CellScores(*law.responses(np.linspace(-1, 1, 5))), law.n_answers))
    ramps = Ramps(law.lattice, np.array([-0.5, 0.2, 0.7]), np.full(3, 0.1), law.lattice_count / 2**64)
    cases += [(StepScores(ramps), law.n_answers)]
    for parts, n_answers in cases:
        answers = rng.integers(0, n_answers, 50).astype(np.uint8 if n_answers <= 256 else np.uint16)
        scores = np.array([parts.scores(answers, part) for part in range(parts.n_parts)])
        sums, of_squares = parts.sums(answers, weights)
        np.testing.assert_allclose(sums, scores @ weights)
        np.testing.assert_allclose(of_squares, scores**2 @ weights)
        some = parts.of(answers, [0, 1])
        np.testing.assert_allclose(some.values, scores[0] + scores[1])
        assert some.low <= some.values.min() <= some.values.max() <= some.high


@pytest.mark.parametrize(
    "law",
    [
        DuchiVector(1.0, 3).integer_law,
        SampledLaw(3, 2, ThreeOutputs(1.0).integer_law),
        SampledLaw(3, 1, Piecewise(1.0, "pm", 3).integer_law),
        SampledLaw(4, 3, DuchiVector(1.0, 3).integer_law),
    ],
    ids=repr,
)
def test_numbers_that_are_answered_for_together_are_what_their_law_says(law):
    answers = np.arange(law.n_answers, dtype=np.uint16)
    values, weights = np.array([law.values(int(answer)) for answer in answers]), np.arange(1.0, law.n_answers + 1)
    *sums, largest = grouped_sums(law, answers, weights)
    wanted = weights @ values, weights**2 @ values**2, weights**2 @ values
    np.testing.assert_allclose(sums, wanted, atol=1e-6 * np.abs(wanted).max())
    assert (-largest, largest) == pytest.approx((values.min(), values.max()))


def test_numbers_of_knots_are_what_their_answers_stand_for():
    law = KnotsLaw(ResponseLaw(3, 2**61), (-(2**53), 2**50, 2**53))
    scores = numbers(law, all_answers(law))
    assert scores.values.tolist() == [law.value(answer) for answer in range(law.n_answers)]
    assert (scores.low, scores.high) == (scores.values.min(), scores.values.max())


def test_numbers_of_bits_lie_between_the_ends_that_are_said():
    law = BitsLaw((2**61, 2**62, 2**62))
    scores = numbers(law, all_answers(law))
    assert (scores.low, scores.high) == (scores.values.min(), scores.values.max())
