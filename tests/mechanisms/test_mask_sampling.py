"""The joint sampler draws exactly the product law: every branch is enumerated with small words."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from laws import THRESHOLD, chi_square_pvalue

from skldp.mechanisms._noise import Noise, RowNoise
from skldp.mechanisms._rows import Workspace
from skldp.mechanisms.bits._fixed_point import complement_codes
from skldp.mechanisms.bits._flip_laws import bitrand_law, ome_laws
from skldp.mechanisms.bits._mask_sampling import BitRandomizer, MaskSampler


class ScriptedNoise(Noise):
    """Noise whose 64-bit words are given, each in the top bits as the sampler reads them."""

    def __init__(self, words):
        super().__init__(bytes(32), secure=False)
        self.script = list(words)

    def fill(self, buffer):
        buffer[:] = self.words(buffer.size) >> np.uint64(64 - 8 * buffer.itemsize)
        return buffer

    def words(self, size):
        taken, self.script = self.script[:size], self.script[size:]
        if len(taken) < size:
            raise EOFError
        return np.array(taken, dtype=np.uint64)


def product_law(thresholds, bits):
    law = [Fraction(1)]
    for threshold in thresholds:
        chance = Fraction(int(threshold), 2**bits)
        law = [weight * side for weight in law for side in (1 - chance, chance)]
    return law


def enumerate_law(sampler):
    """Follow every way the random bits can fall, and add up their exact probabilities."""
    law = [Fraction(0)] * 2 ** len(sampler.thresholds)
    sizes = [sampler.index_bits, sampler.word_bits - sampler.index_bits]
    deepest = 0
    stack = [()]
    while stack:
        script = stack.pop()
        noise = ScriptedNoise(script)
        try:
            mask = int(sampler.draw(noise, 1, Workspace())[0])
        except EOFError:
            size = sizes[len(script)] if len(script) < 2 else sampler.word_bits
            stack += [(*script, value << (64 - size)) for value in range(2**size)]
            continue
        assert not noise.script
        spent = sum((sizes + [sampler.word_bits] * 9)[: len(script)])
        law[mask] += Fraction(1, 2**spent)
        deepest = max(deepest, len(script))
    return law, deepest


@pytest.mark.few(7)
@pytest.mark.usefixtures("each_path")
@pytest.mark.parametrize(
    ("thresholds", "bits", "index_bits", "word_bits"),
    [
        ((5, 11), 4, 2, 4),
        ((3, 8, 13), 4, 3, 5),
        ((1, 1, 15), 4, 2, 4),
        ((7, 16, 31, 1), 5, 3, 6),
        ((1, 3, 2), 2, 3, 8),
        ((2, 2, 2), 2, 2, 4),
        ((9,), 4, 2, 4),
    ],
)
def test_the_law_is_exactly_the_product_law(thresholds, bits, index_bits, word_bits):
    sampler = MaskSampler(thresholds, threshold_bits=bits, index_bits=index_bits, word_bits=word_bits)
    law, _ = enumerate_law(sampler)
    assert law == product_law(thresholds, bits)


@pytest.mark.parametrize("thresholds", [(3, 8, 13), (1, 1, 15), (9,), (2, 14, 5, 11)])
def test_masks_for_complements_have_the_same_law(thresholds):
    plain = MaskSampler(thresholds, threshold_bits=4, index_bits=2, word_bits=4)
    sampler = MaskSampler(thresholds, threshold_bits=4, index_bits=2, word_bits=4, complement=True)
    n_bits = len(thresholds)
    rng = np.random.default_rng(0)
    for _ in range(300):
        words = rng.integers(0, 2**64, 9, dtype=np.uint64)
        masks = [one.draw(ScriptedNoise(words), 1, Workspace()) for one in (plain, sampler)]
        np.testing.assert_array_equal(complement_codes(masks[0].copy(), n_bits), masks[1])


@pytest.mark.slow
def test_random_small_laws_are_exact():
    rng = np.random.default_rng(1)
    for _ in range(25):
        n, bits = int(rng.integers(1, 5)), int(rng.integers(2, 5))
        index_bits = int(rng.integers(1, 4))
        thresholds = tuple(int(t) for t in rng.integers(1, 2**bits, n))
        sampler = MaskSampler(thresholds, bits, index_bits, int(rng.integers(index_bits + 1, 7)))
        assert enumerate_law(sampler)[0] == product_law(thresholds, bits)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0, 700.0])
def test_each_mask_has_to_itself_as_many_16_bit_words_as_fit_into_its_probability(epsilon):
    thresholds = tuple(int(t) for t in bitrand_law(epsilon, 20, 8).from_zero)
    sampler = MaskSampler(thresholds)
    law = product_law(thresholds, 64)
    own = np.bincount(sampler.table[: sampler.n_decided], minlength=256)
    assert own.tolist() == [int(chance * 2**16) for chance in law]
    assert 2**16 - sampler.n_decided < 256
    ends = np.cumsum([chance * 2**16 - int(chance * 2**16) for chance in law])
    assert [Fraction(end, 2 ** (64 * 8)) for end in sampler.boundaries] == ends[:-1].tolist()


def randomized(law, codes, seed):
    noise = Noise(bytes([seed]) * 32, secure=False)
    return BitRandomizer(law).randomize(codes.copy(), noise, Workspace())


@pytest.mark.parametrize("law", [bitrand_law(2.0, 3, 5), ome_laws(0.2, 5, 2.0)[0]], ids=["symmetric", "asymmetric"])
@pytest.mark.parametrize("code", [0b00000, 0b11111, 0b10110])
def test_randomized_codes_follow_the_law_jointly(law, code):
    out = randomized(law, np.full(200_000, code, np.uint16), seed=code + 1)
    expected = [
        np.prod(
            [
                law.ones[code >> (4 - i) & 1, i] if bit else 1 - law.ones[code >> (4 - i) & 1, i]
                for i, bit in enumerate(bits)
            ]
        )
        for bits in product((0, 1), repeat=5)
    ]
    assert chi_square_pvalue(np.bincount(out, minlength=32), expected) > THRESHOLD


@pytest.mark.usefixtures("each_path")
def test_a_mask_and_its_ties_are_drawn_for_their_row():
    # With words of 4 bits, most draws are tied.
    sampler = MaskSampler((5, 11, 3, 7), threshold_bits=4, index_bits=2, word_bits=4)
    nonces = np.random.default_rng(0).integers(0, 2**64, (300, 2), dtype=np.uint64)
    whole = sampler.draw(RowNoise(bytes(32), nonces), 900, Workspace()).reshape(300, 3)
    some = np.random.default_rng(1).permutation(300)[:77]
    part = sampler.draw(RowNoise(bytes(32), nonces[some]), 231, Workspace()).reshape(77, 3)
    np.testing.assert_array_equal(part, whole[some])
