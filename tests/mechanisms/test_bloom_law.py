"""The law of a Bloom filter by its integers: the chance of every answer through the draw itself, and its epsilon."""

import hashlib
import itertools
import math
import struct
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest

from skldp.client._text_field import TextField
from skldp.laws._bloom_law import BloomLaw
from skldp.laws._integers import LAWS, law_from_dict, secure_words

T = 2**64
# Of these many texts, two have filters that differ in as many bits as any can.
TEXTS = [f"text {i}" for i in range(60)]
LAWS_OF_TEXTS = [BloomLaw(3, 4, 1, T // 5), BloomLaw(2, 5, 2, T // 3), BloomLaw(2, 3, 2, T // 7), BloomLaw(1, 3, 3, 1)]


def chances(law, text):
    """The chance of each answer, of a draw whose words are below the count or not."""
    found = Counter()
    for cohort in range(law.n_cohorts):
        for flips in itertools.product((True, False), repeat=law.n_bits):
            weight = math.prod(Fraction(law.flip_count if flip else T - law.flip_count, T) for flip in flips)
            words = iter([cohort, *(law.flip_count - flip for flip in flips)])
            found[law.draw(text, words)] += weight / law.n_cohorts
    return found


@pytest.mark.parametrize("law", LAWS_OF_TEXTS, ids=str)
def test_epsilon_is_that_of_the_chances_of_all_answers(law):
    given = [chances(law, text) for text in TEXTS]
    assert {sum(one.values()) for one in given} == {1}
    assert set(given[0]) <= set(range(law.n_answers))
    losses = (max(one[answer] / other[answer] for answer in one) for one in given for other in given)
    assert law.epsilon == pytest.approx(math.log(max(losses)), rel=1e-12)


@pytest.mark.parametrize("law", LAWS_OF_TEXTS, ids=str)
def test_a_filter_has_the_places_of_the_digests(law):
    for cohort, text in itertools.product(range(law.n_cohorts), TEXTS):
        heads = [cohort.to_bytes(4, "big") + i.to_bytes(4, "big") for i in range(law.n_hashes)]
        digests = [hashlib.sha256(head + text.encode()).digest() for head in heads]
        places = {struct.unpack(">Q", digest[:8])[0] % law.n_bits for digest in digests}
        assert law.filter_of(text, cohort) == sum(2 ** (law.n_bits - 1 - place) for place in places)


@pytest.mark.parametrize(("epsilon", "n_hashes"), [(1.0, 2), (7.999, 2), (1e-3, 1), (4.0, 16)])
def test_the_count_is_the_smallest_within_epsilon(epsilon, n_hashes):
    law = TextField.rappor("word", epsilon, n_bits=64, n_hashes=n_hashes).law
    assert law.epsilon <= epsilon < replace(law, flip_count=law.flip_count - max(law.flip_count // 2**40, 1)).epsilon
    assert law_from_dict(law.to_dict()) == law
    assert law.is_answer(law.draw("word", secure_words()))


@pytest.mark.parametrize("flip_count", [0, T // 2])
def test_a_bit_that_tells_all_or_nothing_is_refused(flip_count):
    with pytest.raises(ValueError, match="must flip a bit sometimes"):
        BloomLaw(1, 4, 2, flip_count)


def test_laws_of_two_steps_are_refused():
    assert not any("longitudinal" in name for name in LAWS)
    with pytest.raises(ValueError, match="A law must be one of"):
        law_from_dict({"law": "longitudinal_mean", "first_count": "1", "second_count": "1"})
