"""Masks of bits are drawn from the very integers of their guarantee, to the last of some hundred bits of a draw."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from laws import Coin, OneDraw, ScriptedNoise, assert_is_the_guarantee, intervals, lengths

from skldp.domains._domain import Box
from skldp.mechanisms._rows import Workspace
from skldp.mechanisms.bits._bit_flip import bitrand, latent, ome
from skldp.mechanisms.bits._fixed_point import complement_codes
from skldp.mechanisms.bits._flip_laws import BitLaw
from skldp.mechanisms.bits._mask_sampling import BitRandomizer
from skldp.mechanisms.bits._unbiased import unbiased_bitrand

BOUNDS = (np.array([-1.0]), np.array([1.0]))


def pieces_of(sampler):
    return (16, 48, *[64] * len(sampler.thresholds))


def draw_of(sampler, draw):
    pieces = pieces_of(sampler)
    return sampler.draw(OneDraw(draw, pieces, sum(pieces)), 1, Workspace())


def sampled_masks(sampler):
    """How many of all draws give each mask, and where one follows the other: those decided by 16 bits come first."""
    n_bits = sum(pieces_of(sampler))
    shared = sampler.n_decided << (n_bits - 16)
    law, edges = {}, []
    for low, high in ((0, shared), (shared, 1 << n_bits)):
        found = intervals(lambda draw: int(draw_of(sampler, draw)[0]), low, high)
        edges += [start for start, _ in found]
        for mask, weight in lengths(found, high).items():
            law[mask] = law.get(mask, 0) + weight
    return law, edges


def product_law(thresholds):
    law = [Fraction(1)]
    for threshold in thresholds:
        law = [weight * side for weight in law for side in (1 - Fraction(threshold, 2**64), Fraction(threshold, 2**64))]
    return law


MECHANISMS = {
    "bitrand": lambda: bitrand(2.0, BOUNDS, n_bits=3),
    "bitrand exact": lambda: bitrand(2.0, BOUNDS, n_bits=3, calibration="exact"),
    "latent": lambda: latent(2.0, BOUNDS, n_bits=3),
    "latent exact": lambda: latent(2.0, BOUNDS, n_bits=2, calibration="exact"),
    "ome": lambda: ome(2.0, BOUNDS, n_bits=2),
    "ome exact": lambda: ome(3.0, BOUNDS, n_bits=2, calibration="exact"),
}


@pytest.mark.slow
@pytest.mark.usefixtures("each_path")
@pytest.mark.parametrize("name", MECHANISMS)
def test_released_codes_have_the_integers_of_the_guarantee(name):
    mechanism = MECHANISMS[name]()
    n_bits, law = mechanism.encoding.n_bits, mechanism.laws[0]
    samplers = [runs[0] for runs in mechanism._randomizers[0].samplers]
    masks = [sampled_masks(sampler)[0] for sampler in samplers]
    for sampler, drawn, thresholds in zip(samplers, masks, [law.from_one, law.from_zero][-len(masks) :], strict=True):
        expected = product_law([int(t) for t in thresholds])
        whole = 1 << sum(pieces_of(sampler))
        assert [Fraction(drawn.get(mask, 0), whole) for mask in range(2**n_bits)] == expected
    laws = []
    full = 2**n_bits - 1
    reachable = {int(code) for code in mechanism.encoding.encode(np.linspace(-1, 1, 4001))}
    for code in sorted(reachable):
        out = {}
        if len(masks) == 1:
            out = {code ^ mask: weight for mask, weight in masks[0].items()}
        else:
            for one, weight in masks[0].items():
                for zero, other in masks[1].items():
                    answer = code & one | ~code & full & zero
                    out[answer] = out.get(answer, 0) + weight * other
        laws.append(out)
    assert_is_the_guarantee(laws, mechanism.guarantee().epsilon, slack=1e-8)


@pytest.mark.slow
@pytest.mark.usefixtures("each_path")
@pytest.mark.parametrize("name", MECHANISMS)
def test_numbers_are_released_by_the_mask_on_either_side_of_every_edge(name):
    mechanism = MECHANISMS[name]()
    samplers = [runs[0] for runs in mechanism._randomizers[0].samplers]
    pieces = pieces_of(samplers[0])
    edges = [edge for sampler in samplers for edge in sampled_masks(sampler)[1]]
    full = 2**mechanism.encoding.n_bits - 1
    # Many numbers at once where 64 bits decide, one at a time where it takes more.
    step = 1 << (sum(pieces) - 64)
    together = {max(0, edge + k * step) for edge in edges for k in (-1, 1)}
    alone = {max(0, edge + k) for edge in edges for k in (-1, 0, 1)}
    for dtype in (np.float32, np.float64):
        values = np.tile(np.array([-1.0, -0.3, 0.0, 0.26, 0.9], dtype=dtype), 3)
        for draws, given in ((together, [values]), (alone, values[:5, None])):
            for draw, some in itertools.product(draws, given):
                first, *second = (int(draw_of(sampler, draw)[0]) for sampler in samplers)
                codes = mechanism.encoding.encode(some).astype(np.int64)
                answers = codes & first | ~codes & full & second[0] if second else codes ^ first
                expected = mechanism.encoding.decode(answers.astype(np.uint64), dtype)
                drawn = mechanism.release(some[:, None], OneDraw(draw, pieces, sum(pieces))).rows[:, 0]
                np.testing.assert_array_equal(drawn, expected)


@pytest.mark.usefixtures("each_path")
def test_masks_for_complements_are_the_same_masks():
    mechanism = MECHANISMS["bitrand exact"]()
    sampler, plain = mechanism._complement_sampler, mechanism._randomizers[0].samplers[0][0]
    for edge in sampled_masks(plain)[1]:
        for draw in (max(0, edge - 1), edge, edge + 1):
            mask = draw_of(plain, draw)
            expected = complement_codes(mask.copy(), mechanism.encoding.n_bits)
            np.testing.assert_array_equal(draw_of(sampler, draw), expected)


def test_long_codes_are_drawn_in_chunks_that_follow_each_other():
    thresholds = tuple(2**63 + k * 2**59 for k in range(13))
    flips = np.array(thresholds, dtype=np.uint64)
    randomizer = BitRandomizer(BitLaw(~flips + np.uint64(1), flips))
    (chunks_of,) = randomizer.samplers
    assert sum((chunk.thresholds for chunk in chunks_of), ()) == thresholds
    words = [0, 2**16 - 1]
    chunks = [
        int(chunk.draw(ScriptedNoise([word, *[2**63] * 9]), 1, Workspace())[0])
        for chunk, word in zip(chunks_of, words, strict=True)
    ]
    # The second word may be one that decides nothing: 48 bits and further ones follow where they are asked for.
    script = []
    for chunk, word in zip(chunks_of, words, strict=True):
        script += [word] if word < chunk.n_decided else [word, 2**63]
    drawn = randomizer.randomize(np.zeros(1, dtype=np.uint16), ScriptedNoise(script), Workspace())
    assert int(drawn[0]) == int(chunks[0]) << len(chunks_of[1].thresholds) | int(chunks[1])


@pytest.mark.parametrize("x", [-1.0, -0.37, 2.0**-40, 0.5, 1.0])
@pytest.mark.parametrize("n_bits", [1, 3])
def test_unbiased_bits_round_to_their_grid_with_the_probability_of_what_is_left(x, n_bits):
    release = unbiased_bitrand(4.0, Box.of(*BOUNDS), n_bits, 1)
    found = intervals(lambda word: float(release.release([[x]], Coin(word)).rows[0, 0]), 0, 2**64)
    j = release.n_magnitude_bits
    position = abs(Fraction(x)) * (2**j - 1) if j else (1 + Fraction(x)) / 2
    up = int((position - position.__floor__()) * 2**64)
    assert sorted(lengths(found, 2**64).values()) == sorted(w for w in (up, 2**64 - up) if w)


def test_unbiased_bits_flip_with_the_integers_of_their_guarantee():
    release = unbiased_bitrand(2.0, Box.of(*BOUNDS), 3, 1)
    (sampler,) = (chunk for runs in release._randomizer.samplers for chunk in runs)
    drawn, _ = sampled_masks(sampler)
    laws = [{code ^ mask: weight for mask, weight in drawn.items()} for code in range(2**release.law.n_bits)]
    assert_is_the_guarantee(laws, release.guarantee().epsilon, slack=1e-8)
