"""The numeric mechanisms draw the very integers of which their guarantee is made: read out of the code by words."""

import copy
import decimal
import itertools
from fractions import Fraction

import numpy as np
import pytest
from laws import Coin, OneDraw, ScriptedNoise, assert_is_the_guarantee, intervals, lengths, released

from skldp.laws import _few_answers
from skldp.laws._odds import log_ratio
from skldp.mechanisms._noise import Noise, RowNoise
from skldp.mechanisms.numeric import _additive as discrete_noise
from skldp.mechanisms.numeric._additive import Gaussian, Laplace, discrete_gaussian, discrete_laplace
from skldp.mechanisms.numeric._bounded_features import BoundedFeatures
from skldp.mechanisms.numeric._unit_mechanisms import (
    Duchi,
    DuchiVector,
    Hybrid,
    HybridThreeOutputs,
    Piecewise,
    ThreeOutputs,
)

WORD = 2**64
INPUTS = [-1.0, -0.3, 0.0, 2.0**-60, 0.5, 1.0]


def stated(outputs, weights):
    return {x: weight for x, weight in zip(np.asarray(outputs).tolist(), weights, strict=True) if weight}


def same_in_blocks(mechanism, monkeypatch, x, noise_of, dtype=np.float64):
    """Whether a release of many values, in blocks of four, is that of each alone."""
    alone = released(mechanism, np.array([x], dtype=dtype), noise_of())
    monkeypatch.setattr(type(mechanism), "block_cells", 4)
    many = released(copy.copy(mechanism), np.full((3, 3), x, dtype=dtype), noise_of())
    assert (many == alone).all()
    monkeypatch.undo()


# Up to about 10 the first 16 bits decide most draws; at 12 and 30 all 64 are drawn.
@pytest.mark.few(4)
@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 5.0, 9.0, 12.0, 30.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_duchi_draws_the_integers_of_its_guarantee(epsilon, dtype, monkeypatch):
    mechanism = Duchi(epsilon)
    whole = mechanism.integer_law.slope * 2.0**-48 > 2.0**15 - 2
    pieces = (64,) if whole else (16, 48)
    laws = []
    for x in map(dtype, INPUTS):
        # Draws are compared as signed words: the order of the numbers is theirs with the highest bit turned.
        found = intervals(
            lambda k, x=x: float(released(mechanism, np.array([x]), OneDraw(k ^ 2**63, pieces))[0]), 0, WORD
        )
        laws.append(lengths(found, WORD))
        outputs, weights = mechanism.output_law(float(x))
        assert laws[-1] == stated(outputs.astype(dtype), weights)
        edge = found[1][0]
        for k in (edge - 1, edge, edge + 1):
            same_in_blocks(mechanism, monkeypatch, x, lambda k=k: OneDraw(k ^ 2**63, pieces), dtype)
    assert_is_the_guarantee([laws[0], laws[-1]], mechanism.guarantee().epsilon, slack=1e-8)
    assert_is_the_guarantee(laws, mechanism.guarantee().epsilon, slack=1e-8)


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1.0, 4.0, 30.0])
def test_three_outputs_draw_the_integers_of_their_guarantee(epsilon, monkeypatch):
    mechanism = ThreeOutputs(epsilon)
    laws = []
    for x in INPUTS:
        found = intervals(lambda draw, x=x: repr(float(released(mechanism, [x], OneDraw(draw))[0])), 0, WORD)
        # By their text, which shows a zero's sign: there is one zero for all inputs.
        law = lengths(found, WORD)
        assert "-0.0" not in law
        assert {float(output): weight for output, weight in law.items()} == stated(*mechanism.output_law(x))
        laws.append(law)
        for edge, _ in found[1:]:
            for draw in (edge - 1, edge, edge + 1):
                same_in_blocks(mechanism, monkeypatch, x, lambda draw=draw: OneDraw(draw))
    assert_is_the_guarantee(laws, mechanism.guarantee().epsilon, slack=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["pm", "sub", "opt"])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
def test_a_piecewise_law_is_drawn_from_the_integers_of_its_guarantee(variant, epsilon, monkeypatch):
    mechanism = Piecewise(epsilon, variant, lattice_bits=4)
    law = mechanism.integer_law
    n_cells, n_inner, base, extra = law.n_cells, law.n_inner, law.base, law.extra
    total = n_cells * base + n_inner * extra
    laws = []
    for x in INPUTS:

        def answer(word, x=x):
            return float(released(mechanism, [x], ScriptedNoise([word << 1]))[0])

        # The first draws mean the whole range, the others the inner interval.
        whole, inner = intervals(answer, 0, n_cells * base), intervals(answer, n_cells * base, total)
        law = lengths(whole, n_cells * base)
        for output, weight in lengths(inner, total).items():
            law[output] = law.get(output, 0) + weight
        assert law == stated(*mechanism.output_law(x))
        laws.append(law)
        with pytest.raises(EOFError):
            answer(total)
        assert released(mechanism, [x], ScriptedNoise([(total << 1) | 1, 0]))[0] == whole[0][1]
        for edge, _ in whole[1:] + inner[1:]:
            for word in (edge - 1, edge):
                same_in_blocks(mechanism, monkeypatch, x, lambda word=word: ScriptedNoise([word << 1] * 9))
    assert_is_the_guarantee(laws, mechanism.guarantee().epsilon, slack=1e-6)


@pytest.mark.parametrize("kind", [Hybrid, HybridThreeOutputs])
def test_a_mixture_chooses_by_the_coin_of_its_law_whatever_the_value(kind):
    mechanism = kind(2.0, lattice_bits=5)
    mixture = mechanism.integer_law
    for x in INPUTS:

        def is_few_valued(word, x=x):
            return bool(abs(released(mechanism, [x], Coin(word))[0]) in (0.0, mechanism.integer_law.few.magnitude))

        law = lengths(intervals(is_few_valued, 0, WORD), WORD)
        assert law == {False: mixture.lattice_count, True: WORD - mixture.lattice_count}
    exact = max(log_ratio(*law.ratio, in_doubles=True) for law in (mixture.few, mixture.lattice))
    assert mechanism.guarantee().epsilon == exact


def vector_script(rounding, coin, bits, d):
    packed = np.packbits(np.array(bits, dtype=np.uint8)).tolist()
    return ScriptedNoise([*rounding, coin, *packed])


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("epsilon", [0.5, 6.0])
def test_duchis_vectors_are_drawn_from_the_integers_of_their_guarantee(epsilon, d):
    mechanism = DuchiVector(epsilon, d)
    x = np.where(np.arange(d) % 2, -1.0, 1.0)[None]
    halves = {}
    for agrees in (True, False):
        counts = dict.fromkeys(itertools.product((-1, 1), repeat=d), 0)
        for bits in itertools.product((0, 1), repeat=d):
            try:
                drawn = released(mechanism, x, vector_script([0] * d, 0 if agrees else WORD - 1, bits, d))[0]
            except EOFError:
                # Drawn anew, so that it counts for nothing.
                continue
            counts[tuple(np.sign(drawn).astype(int).tolist())] += 1
        members = [s for s in counts if (np.dot(s, x[0]) > 0) == agrees]
        # One half of the sign vectors, all of its members equally often, and none of the other's.
        assert len({counts[s] for s in members}) == 1
        assert sum(counts[s] for s in members) == sum(counts.values()) > 0
        halves[agrees] = len(members)

    def is_in_the_agreeing_half(word):
        # Bits that both halves can use: nothing disagrees, or as much as can.
        for bits in ((0,) * d, (1,) * d):
            try:
                return bool(np.dot(released(mechanism, x, vector_script([0] * d, word, bits, d))[0], x[0]) > 0)
            except EOFError:
                continue
        raise AssertionError("one of the two serves")

    law = lengths(intervals(is_in_the_agreeing_half, 0, WORD), WORD)
    # The weight of one sign vector where it agrees and where it does not.
    inside, outside = {"s": law[True] * halves[False]}, {"s": law[False] * halves[True]}
    assert_is_the_guarantee([inside, outside], mechanism.guarantee().epsilon, slack=1e-6)


@pytest.mark.parametrize("x", [-1.0, -0.3, 2.0**-70, 0.75, 1.0])
def test_duchis_vectors_round_each_value_to_a_sign_without_bias(x):
    mechanism = DuchiVector(1.0, 1)
    found = intervals(lambda word: bool(released(mechanism, [[x]], ScriptedNoise([word, 0, 0]))[0, 0] > 0), 0, WORD)
    ups = lengths(found, WORD).get(True, 0)
    assert abs(ups - (1 + Fraction(x)) * 2**63) <= 2
    assert x not in (-1.0, 1.0) or ups == (x + 1) * 2**63


@pytest.mark.parametrize("x", [-1.0, -0.3, 2.0**-30, 0.7, 1.0])
def test_laplace_rounds_to_its_lattice_with_the_probability_that_it_says(x):
    mechanism = Laplace(1.0, lattice_bits=4)
    # The second word gives the noise 0.
    found = intervals(lambda word: float(released(mechanism, [x], ScriptedNoise([word, WORD - 2]))[0]), 0, WORD)
    position = Fraction(x) * 2**mechanism.lattice_exponent
    below = position.numerator // position.denominator
    up = int((position - below) * WORD)
    expected = {(below + 1) * mechanism.step: up, below * mechanism.step: WORD - up}
    assert lengths(found, WORD) == {output: weight for output, weight in expected.items() if weight}
    assert mechanism.guarantee().epsilon >= Fraction(2 ** (mechanism.lattice_exponent + 1), mechanism.scale)
    if up:
        # Two numbers have a word each, whichever way the other one is rounded.
        drawn = released(mechanism, [x, x], ScriptedNoise([up - 1, up, WORD - 2, WORD - 2]))
        assert drawn.tolist() == [(below + 1) * mechanism.step, below * mechanism.step]


def leading(k, scale):
    """The 63 bits with which exp(-k / scale) begins."""
    with decimal.localcontext() as context:
        context.prec = 60
        return int((-decimal.Decimal(k) / scale).exp() * 2**63)


@pytest.mark.parametrize("scale", [1, 3, 1000, 2**24 + 1, 2**40])
@pytest.mark.parametrize("k", [1, 2, 7, 40])
@pytest.mark.parametrize("in_decimals", [False, True])
def test_discrete_laplace_changes_at_the_powers_of_its_law(scale, k, in_decimals, monkeypatch):
    if in_decimals:
        monkeypatch.setattr(discrete_noise, "_LOG_ERROR", 1e9)
    # Below exp(-k / s) the magnitude is at least k; the one word that holds the edge is settled by what follows it.
    edge = leading(k, scale)
    for sign in (0, 1):
        for first, magnitude in ((edge - 1, k), (edge + 1, k - 1)):
            if sign and not magnitude:
                continue
            drawn = discrete_laplace(scale, 1, ScriptedNoise([2 * first + sign, 2**63, 2**63, 2**63]))[0]
            assert drawn == (-magnitude if sign else magnitude)
        ends = [discrete_laplace(scale, 1, ScriptedNoise([2 * edge, end, end, end, end]))[0] for end in (0, WORD - 1)]
        assert ends == [k, k - 1]


def test_minus_zero_is_drawn_anew():
    # Odd words are negative: the pair (minus, 0) would make 0 twice as likely.
    assert discrete_laplace(5, 1, ScriptedNoise([WORD - 1, 2 * leading(3, 5) - 2]))[0] == 3
    with pytest.raises(EOFError):
        discrete_laplace(5, 1, ScriptedNoise([WORD - 1]))


@pytest.mark.parametrize("sigma", [1, 5, 2**24])
@pytest.mark.parametrize("z", [0, 1, -1, 3, -7])
@pytest.mark.parametrize("in_decimals", [False, True])
def test_discrete_gaussian_keeps_a_proposal_with_the_probability_of_its_law(sigma, z, in_decimals, monkeypatch):
    if in_decimals:
        monkeypatch.setattr(discrete_noise, "_LOG_ERROR", 1e9)
    proposed = np.array([z * sigma])
    cost = Fraction((abs(z * sigma) - sigma) ** 2, 2 * sigma**2)
    edge = leading(cost.numerator, cost.denominator)

    def kept(first, rest=2**63):
        return bool(discrete_noise._accepted(proposed, sigma, ScriptedNoise([2 * first, *[rest] * 6]))[0])

    if cost:
        assert [kept(edge - 1), kept(edge + 1)] == [True, False]
        assert [kept(edge, end) for end in (0, WORD - 1)] == [True, False]
    else:
        assert kept(0)
        assert kept(2**63 - 1)


def test_discrete_gaussian_keeps_no_refused_proposal():
    sigma = 4
    # Odd words are negative.
    three, one, minus_one = 2 * leading(12, sigma) - 2, 2 * leading(4, sigma) - 2, 2 * leading(4, sigma) - 1
    # With U = .9 a cost of 0 is kept and one of 2 is not.
    answer = 2 * int(0.9 * 2**63)
    # Of proposals of 3 sigma and sigma the first is refused, and proposed anew alone.
    script = ScriptedNoise([three, one, answer, answer, minus_one, answer])
    assert discrete_gaussian(sigma, 2, script).tolist() == [-4, 4]
    assert not script.script


def test_gaussian_noise_is_drawn_with_the_sigma_of_its_guarantee(monkeypatch):
    mechanism, seen = Gaussian(1.0, 1e-3, lattice_bits=8), []
    real = discrete_gaussian
    monkeypatch.setattr(
        "skldp.mechanisms.numeric._additive.discrete_gaussian",
        lambda sigma, size, noise: seen.append(sigma) or real(sigma, size, noise),
    )
    released(mechanism, np.zeros(5), Noise(bytes(32), secure=False))
    assert seen == [mechanism.sigma]
    # The delta of that very sigma, summed over the integers: sensitivity Delta steps.
    steps = 2 ** (mechanism.lattice_exponent + 1)
    z = np.arange(-40 * mechanism.sigma, 40 * mechanism.sigma + 1)
    law = np.exp(-((z / mechanism.sigma) ** 2) / 2)
    law /= law.sum()
    shifted = np.concatenate([np.zeros(steps), law[:-steps]])
    delta = np.maximum(law - np.e * shifted, 0).sum()
    assert delta <= mechanism.guarantee().delta <= 1e-3


@pytest.mark.parametrize(("n", "k"), [(3, 1), (4, 2), (5, 3), (3, 3)])
def test_every_choice_of_features_is_equally_likely(n, k):
    counts = {}
    for words in itertools.product(*(range(newest + 1) for newest in range(n - k, n))):
        chosen = frozenset(ScriptedNoise(words).subsets(1, n, k)[0].tolist())
        assert len(chosen) == k
        counts[chosen] = counts.get(chosen, 0) + 1
    assert len(counts) == len(list(itertools.combinations(range(n), k)))
    assert len(set(counts.values())) == 1


def test_only_the_chosen_features_are_released_and_each_with_its_own_noise():
    release = BoundedFeatures(Duchi(1.0), (0.0, -4.0, 100.0), (1.0, 4.0, 101.0), n_sampled=1, stated=1.0)
    rows = np.array([[1.0, 4.0, 101.0], [0.0, -4.0, 100.0]])
    size = Duchi(1.0).integer_law.magnitude
    for feature in range(3):
        for first, sign in ((-(2**15), 1), (2**15 - 1, -1)):
            # A word of 64 bits chooses the feature of each row, one of 16 draws its sign.
            script = ScriptedNoise([feature, feature, first % 2**16, first % 2**16, *[0] * 2])
            expected = np.tile(release.center, (2, 1))
            expected[:, feature] += 3 * release.radius[feature] * size * sign
            np.testing.assert_allclose(release.release(rows, script).rows, expected, rtol=1e-12)


@pytest.mark.parametrize(
    "mechanism",
    [Duchi(1.0), Piecewise(0.3, "opt", 3), Hybrid(2.0), Laplace(1.0), Gaussian(1.0, 1e-3, 2), DuchiVector(0.3, 2)],
    ids=repr,
)
def test_second_draws_that_are_rare_belong_to_their_rows_too(mechanism, monkeypatch):
    monkeypatch.setattr(_few_answers, "_FIRST_ERROR", 5000)
    monkeypatch.setattr(discrete_noise, "_LEAST_FAST", 2.0**61)
    monkeypatch.setattr(discrete_noise, "_LOG_ERROR", 1e-8)
    draw = np.random.default_rng(3)
    nonces = draw.integers(0, 2**64, (60, 2), dtype=np.uint64)
    rows = draw.uniform(-1, 1, (60, mechanism.n_outputs))
    whole = mechanism.release(rows, RowNoise(bytes(32), nonces)).rows
    for some in (draw.permutation(60)[:37], np.arange(5), [41]):
        part = mechanism.release(rows[some], RowNoise(bytes(32), nonces[some])).rows
        np.testing.assert_array_equal(part, whole[some])


def test_discrete_gaussian_takes_the_first_of_several_proposals_that_is_kept():
    sigma = 4
    three, two, minus_two = 2 * leading(12, sigma) - 2, 2 * leading(8, sigma) - 2, 2 * leading(8, sigma) - 1
    # A cost of 2 is refused with U = .9, and one of 1/2 is kept with U = .1.
    refuse, keep = 2 * int(0.9 * 2**63), 2 * int(0.1 * 2**63)
    alone = [three, refuse] * 3
    together = [three, two, minus_two, two, three, three, three, three]
    script = ScriptedNoise([*alone, *together, refuse, refuse, keep, keep, *[refuse] * 4])
    assert discrete_gaussian(sigma, 1, script).tolist() == [-8]
    assert not script.script
    # Where none of several is kept, as many are proposed anew.
    script = ScriptedNoise([*alone, *[three] * 8, *[refuse] * 8, *together, refuse, keep, *[refuse] * 6])
    assert discrete_gaussian(sigma, 1, script).tolist() == [8]
    assert not script.script
