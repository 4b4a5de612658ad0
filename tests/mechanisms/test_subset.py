"""Subset selection: the whole law read out of the code, set by set, against the papers' formulas."""

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import (
    THRESHOLD,
    PicksThenDraw,
    assert_is_the_guarantee,
    chi_square_pvalue,
    intervals,
    lengths,
    log_likelihood,
    seeded,
)

from skldp.mechanisms._record import CategoricalRecord
from skldp.mechanisms.categorical._one_hot import SubsetSelection

WORD = 2**64
# Sets of one and of two categories, of a few and of nearly half of them.
SMALL = [(1e-3, 2), (1.0, 3), (1e-3, 4), (0.5, 5), (60.0, 5), (1.0, 6)]


def sampled_law(law, code):
    """How many of all draws of the code release each set, and of how many."""
    k, w = law.n_classes, law.set_size
    # A whole number below n is a word modulo n, which the test of integers covers: each is equally likely.
    choices = list(itertools.product(*map(range, range(k - w, k)), range(w)))
    total = {}
    for picks in choices:

        def answer(draw, picks=picks):
            noise = PicksThenDraw(picks, draw)
            members = tuple(np.flatnonzero(law.release([[code]], noise).rows[0]).tolist())
            assert not noise.script
            return members

        for members, count in lengths(intervals(answer, 0, WORD), WORD).items():
            total[members] = total.get(members, 0) + count
    return total, WORD * len(choices)


def ideal(epsilon, k, w):
    """The papers' probability that a set holds the true category, to 60 digits."""
    with localcontext() as context:
        context.prec = 60
        odds = Decimal(epsilon).exp() * w
        return odds / (odds + k - w)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "k"), SMALL)
def test_the_sets_that_are_drawn_are_those_of_the_guarantee(epsilon, k):
    law = SubsetSelection(epsilon, k)
    w = law.set_size
    laws = []
    for code in range(k):
        drawn, total = sampled_law(law, code)
        assert set(drawn) == set(itertools.combinations(range(k), w))
        # Whether it holds the true category or not, every set is equally likely.
        for members, count in drawn.items():
            held = code in members
            n_alike = math.comb(k - 1, w - 1) if held else math.comb(k - 1, w)
            assert count * n_alike * WORD == (law.law.own_count if held else law.law.miss_count) * total
        laws.append(drawn)
    assert_is_the_guarantee(laws, law.guarantee().epsilon)
    assert law.guarantee().epsilon <= epsilon


@settings(max_examples=20)
@given(st.floats(1e-3, 40), st.integers(2, 2000))
def test_integers_are_the_papers_probabilities_rounded_to_the_private_side(epsilon, k):
    law = SubsetSelection(epsilon, k)
    w = law.set_size
    assert w == max(1, round(k / (math.exp(epsilon) + 1)))
    with localcontext() as context:
        context.prec = 60
        # Integers are made for an epsilon up to 2^-50 of it smaller, and p(1 - p) is at most a quarter.
        assert 0 <= ideal(epsilon, k, w) * WORD - law.law.own_count < 1 + Decimal(epsilon) * 2**12
    assert law.law.own_count + law.law.miss_count == WORD
    assert law.exact_epsilon <= epsilon
    assert law.guarantee().epsilon == law.exact_epsilon
    if epsilon < 20:
        assert law.exact_epsilon >= epsilon - 1e-9
    # Everyone's set has as many categories.
    assert law.p + (k - 1) * law.q == pytest.approx(w, rel=1e-12)


@pytest.mark.parametrize(("epsilon", "k"), [(0.2, 5), (1.0, 7)])
def test_sets_follow_their_law(epsilon, k):
    law = SubsetSelection(epsilon, k)
    assert law.set_size == 2
    sets = list(itertools.combinations(range(k), 2))
    patterns = np.array([[j in members for j in range(k)] for members in sets])
    bits = law.release(np.full((100_000, 1), 3), seeded()).rows
    assert (bits.sum(axis=1) == 2).all()
    counts = (bits.astype(int) @ patterns.T.astype(int) == 2).sum(axis=0)
    exact = np.exp(log_likelihood(law, patterns, np.full(len(sets), 3)))
    assert exact.sum() == pytest.approx(1, rel=1e-12)
    assert chi_square_pvalue(counts, exact) > THRESHOLD
    marginals = exact @ patterns
    np.testing.assert_allclose(marginals, law.output_law([3])[0], rtol=1e-12)
    other = np.exp(log_likelihood(SubsetSelection(epsilon + 0.1, k), patterns, np.full(len(sets), 3)))
    assert chi_square_pvalue(counts, other) < THRESHOLD


def test_the_second_moment_of_the_one_hot_encoding_is_undone_for_larger_sets():
    record = CategoricalRecord(0.5, (5, 6), "subset")
    assert [column.set_size for column in record.parts] == [2, 3]
    cells = np.array(list(itertools.product(range(5), range(6))))
    weights = np.random.default_rng(0).dirichlet(np.ones(len(cells)))
    products, mean = np.zeros((11, 11)), np.zeros(11)
    for cell, weight in zip(cells, weights, strict=True):
        parts = [moments(column, code) for column, code in zip(record.parts, cell, strict=True)]
        means = np.concatenate([part[0] for part in parts])
        own = np.outer(means, means)
        for place, (_, inner) in zip(record.places, parts, strict=True):
            own[place, place] = inner
        products += weight * own
        mean += weight * means
    encoded = record.encode(cells).rows.astype(float)
    expected = np.einsum("n,ni,nj->ij", weights, encoded, encoded)
    np.testing.assert_allclose(record.original_second_moment(products, mean), expected, atol=1e-12)


def moments(law, code):
    """The mean of one row's bits and of their products, from the law of the sets."""
    sets = list(itertools.combinations(range(law.n_classes), law.set_size))
    patterns = np.array([[j in members for j in range(law.n_classes)] for members in sets], dtype=float)
    chances = np.exp(log_likelihood(law, patterns, np.full(len(sets), code)))
    return chances @ patterns, np.einsum("s,si,sj->ij", chances, patterns, patterns)


@pytest.mark.parametrize("k", [2, 3, 10, 1000])
def test_refuses_an_epsilon_that_integers_cannot_tell(k):
    with pytest.raises(ValueError, match=r"large enough for probabilities .* at least about \d\.\d+e-(19|20)"):
        SubsetSelection(1e-20, k)
