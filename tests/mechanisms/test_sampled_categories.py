"""The categorical mechanisms draw the very integers of which their guarantee is made: read out of the code by words."""

from fractions import Fraction

import numpy as np
import pytest
from laws import OneDraw, ScriptedNoise, assert_is_the_guarantee, intervals, lengths

from skldp.laws._categories import ResponseLaw, bernoulli
from skldp.mechanisms import RandomizedResponse
from skldp.mechanisms._noise import RowNoise
from skldp.mechanisms._record import CategoricalRecord
from skldp.mechanisms._rows import Workspace
from skldp.mechanisms.categorical._label_laws import LabelLaplaceMechanism, RandomizedResponseWithPrior
from skldp.mechanisms.categorical._one_hot import OneHotRandomizedResponse, UnaryEncoding

WORD = 2**64
# 16 bits decide most draws, 48 more the others.
PIECES = (16, 48)
EDGES = [0, 1, 2**48 - 1, 2**48, 2**48 + 1, 2**63 - 1, 2**63, 2**63 + 1, WORD - 2**48, WORD - 1]


def sampled_law(law, code, pieces=PIECES):
    """Of the answers to one code, how many of 2^64 draws give each."""

    def answer(draw):
        (released,) = law.release([[code]], OneDraw(draw, pieces)).rows.tolist()
        return released[0] if len(released) == 1 else released.index(True)

    return lengths(intervals(answer, 0, WORD), WORD)


def coins(noise, count, shape):
    drawn = np.empty(shape, dtype=bool)
    bernoulli(noise, count, drawn, Workspace())
    return drawn


@pytest.mark.parametrize("count", EDGES)
def test_a_coin_is_true_for_exactly_its_count_of_draws(count):
    found = intervals(lambda draw: bool(coins(OneDraw(draw, PIECES), count, (1, 1))[0, 0]), 0, WORD)
    assert lengths(found, WORD).get(True, 0) == count


@pytest.mark.parametrize("count", [1, 2**48, 2**63 + 12345])
def test_a_coin_is_the_same_at_every_place_and_in_every_memory_order(count):
    strided = np.empty((3, 6), dtype=np.int8)[:, ::2]
    for draw in (count - 1, count, count + 1):
        assert (coins(OneDraw(draw, PIECES), count, (3, 3)) == (draw < count)).all()
        bernoulli(OneDraw(draw, PIECES), count, strided, Workspace())
        assert (strided == (draw < count)).all()


@pytest.mark.parametrize("high", [1, 2, 3, 10, 3 * 2**61, 2**63])
def test_integers_share_the_words_equally_and_draw_the_rest_anew(high):
    last = WORD - 1 - WORD % high
    for word in (0, 1, high - 1, high, last - 1, last):
        assert ScriptedNoise([word]).integers(high, 1)[0] == word % high
    assert (last + 1) % high == 0
    if last + 1 < WORD:
        for word in (last + 1, WORD - 1):
            stream = ScriptedNoise([word, 5])
            assert stream.integers(high, 1)[0] == 5 % high
            assert not stream.script


def test_integers_that_are_drawn_anew_take_noise_of_their_own_rows():
    nonces = np.random.default_rng(0).integers(0, 2**64, (200, 2), dtype=np.uint64)
    # One word in four is drawn anew.
    whole = RowNoise(bytes(32), nonces).integers(3 * 2**61, (200, 2))
    np.testing.assert_array_equal(RowNoise(bytes(32), nonces[50:]).integers(3 * 2**61, (150, 2)), whole[50:])


@pytest.mark.few(8)
@pytest.mark.parametrize("n_classes", [2, 3, pytest.param(10, marks=pytest.mark.slow)])
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 8.0, 60.0])
@pytest.mark.parametrize("kind", [RandomizedResponse, LabelLaplaceMechanism, OneHotRandomizedResponse])
def test_randomized_response_draws_the_integers_of_its_guarantee(kind, epsilon, n_classes):
    law = kind(epsilon, n_classes)
    laws = [sampled_law(law, code) for code in range(n_classes)]
    assert_is_the_guarantee(laws, law.guarantee().epsilon)
    keep = law.law.own_count
    assert [one[code] for code, one in enumerate(laws)] == [keep] * n_classes


def test_randomized_response_of_many_classes_needs_no_table(monkeypatch):
    monkeypatch.setattr(ResponseLaw, "_MOST_TABLED", 1)
    law = RandomizedResponse(1.0, 5)
    laws = [sampled_law(law, code, pieces=(64,)) for code in range(5)]
    assert_is_the_guarantee(laws, law.guarantee().epsilon)
    assert laws == [
        {answer: law.law.own_count if answer == code else law.law.other_count for answer in range(5)}
        for code in range(5)
    ]


def test_randomized_response_is_the_same_in_every_block(monkeypatch):
    monkeypatch.setattr(RandomizedResponse, "block_cells", 4)
    law = RandomizedResponse(1.0, 3)
    codes = np.arange(9)[:, None] % 3
    for edge in (law.law.other_count, 2 * law.law.other_count):
        for draw in (edge - 1, edge, edge + 1):
            one = law.release([[0]], OneDraw(draw, PIECES)).rows[0, 0]
            many = law.release(codes, OneDraw(draw, PIECES)).rows
            np.testing.assert_array_equal(many, (codes + one) % 3)


@pytest.mark.parametrize("epsilon", [0.1, 2.0])
def test_a_prior_is_answered_with_the_integers_of_its_guarantee(epsilon):
    law = RandomizedResponseWithPrior(epsilon, (0.32, 0.0, 0.31, 0.37))
    support = law.support.tolist()
    laws = [sampled_law(law, code) for code in support]
    # A class outside is answered by a whole number below k, which the test of integers covers: each is equally likely.
    drawn = [law.release([[1]], ScriptedNoise([0, word])).rows[0, 0] for word in range(2 * len(support))]
    assert drawn == support * 2
    outside = dict.fromkeys(support, Fraction(WORD, len(support)))
    assert_is_the_guarantee([*laws, outside] if len(support) > 1 else laws, law.guarantee().epsilon)


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 8.0, 40.0])
@pytest.mark.parametrize("variant", ["sue", "oue"])
def test_unary_bits_are_the_integers_of_their_guarantee(variant, epsilon):
    law = UnaryEncoding(epsilon, 3, variant)

    def ones(column):
        found = intervals(lambda draw: bool(law.release([[1]], OneDraw(draw, PIECES)).rows[0, column]), 0, WORD)
        return lengths(found, WORD)[True]

    own, others = ones(1), {ones(0), ones(2)}
    assert len(others) == 1
    other = others.pop()
    # Two bits differ between two categories: their joint law under the one and under the other.
    one = {(a, b): (own if a else WORD - own) * (other if b else WORD - other) for a in (0, 1) for b in (0, 1)}
    assert_is_the_guarantee([one, {(a, b): one[b, a] for a, b in one}], law.guarantee().epsilon)
    assert (own / WORD, other / WORD) == (law.p, law.q)
    if variant == "oue":
        assert own == 2**63


def test_a_record_draws_each_column_by_its_own_law():
    record = CategoricalRecord(2.0, (3, 2), "oue")
    count = record.parts[0].law.other_count
    for draw in (count - 1, count, 2**63 - 1, 2**63):
        whole = record.release([[1, 0]], OneDraw(draw, PIECES)).rows[0]
        parts = [
            column.release([[code]], OneDraw(draw, PIECES)).rows[0]
            for column, code in zip(record.parts, (1, 0), strict=True)
        ]
        np.testing.assert_array_equal(whole, np.concatenate(parts))


@pytest.mark.parametrize("count", [1, 2, 2**48 - 1, 2**48, 2**48 + 1, 2**62 - 1])
def test_each_class_has_its_count_wherever_its_edges_lie_among_the_first_16_bits(count):
    law = ResponseLaw(4, count)

    def answer(draw):
        out = np.empty((1, 1), dtype=np.int64)
        law.draw_many(np.array([[2]]), OneDraw(draw, PIECES), out, Workspace())
        return int(out[0, 0])

    assert lengths(intervals(answer, 0, WORD), WORD) == {3: count, 0: count, 1: count, 2: WORD - 3 * count}
