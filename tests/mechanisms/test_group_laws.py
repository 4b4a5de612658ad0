"""Several numbers at once, and some of them: every answer's probability and mean by exact enumeration."""

import itertools
import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from laws import duchi_vector_law

from skldp.laws._integers import law_from_dict
from skldp.laws._numbers import BitsLaw, SampledLaw, SignsLaw
from skldp.mechanisms import Laplace, bitrand
from skldp.mechanisms.numeric._bounded_features import BoundedFeatures
from skldp.mechanisms.numeric._unit_mechanisms import Duchi, DuchiVector, Hybrid, ThreeOutputs

PLACES = (0.25, -1.0, 0.5, 1.0)


def of_signs(law, places):
    """The exact probability of each answer: over the numbers' own signs, both kinds, and each row drawn at last."""
    found = Counter()
    d = law.n_values
    for own in itertools.product([0, 1], repeat=d):
        plus = [Fraction(1, 2) + Fraction(x) / 2 for x in places]
        chance = math.prod(p if sign else 1 - p for sign, p in zip(own, plus, strict=True))
        if not chance:
            continue
        # The last word below the threshold of a plus, or the first one from it on.
        first = [int(p * 2**64) - 2 if sign else int(p * 2**64) for sign, p in zip(own, plus, strict=True)]
        for agree in (True, False):
            weight = Fraction(law.agreeing_count if agree else 2**64 - law.agreeing_count, 2**64)
            word = law.agreeing_count - agree
            rows = [row for row in range(2**d) if (2 * _alike(own, row, d) > d) == agree]
            for row in range(2**d):
                # A row of the other kind is passed over, and the next one taken.
                last = row if row in rows else rows[0]
                words = iter([*first, word, *([row << 64 - d, last << 64 - d])])
                answer = law.draw(places, words)
                assert answer == last
            for row in rows:
                found[row] += chance * weight / len(rows)
    return found


def _alike(own, row, d):
    return sum(sign == (row >> d - 1 - j & 1) for j, sign in enumerate(own))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_signs_have_the_probabilities_of_the_mechanism(d, epsilon):
    mechanism = DuchiVector(epsilon, d)
    law = mechanism.integer_law
    found = of_signs(law, PLACES[:d])
    numbers, chances = duchi_vector_law(mechanism, PLACES[:d])
    # Its places are in another order.
    expected = {tuple(map(float, row)): chance for row, chance in zip(numbers, chances, strict=True)}
    assert {tuple(law.values(answer)): chance for answer, chance in found.items()} == expected
    assert law.epsilon == pytest.approx(mechanism.exact_epsilon, rel=1e-12)
    assert law.epsilon <= epsilon
    means = sum(float(chance) * np.array(law.values(answer)) for answer, chance in found.items())
    assert means == pytest.approx(PLACES[:d], abs=1e-12)
    assert law_from_dict(law.to_dict()) == law


def test_more_than_64_signs_take_more_words():
    law = DuchiVector(1.0, 70).integer_law
    words = iter([2**64 - 1] * 70 + [0] + [2**64 - 1, 2**64 - 1])
    assert law.draw([1.0] * 70, words) == 2**70 - 1
    assert next(words, None) is None
    assert len(law.values(5)) == 70


SAMPLED = [
    BoundedFeatures(Duchi(1.0), (0.0,) * 4, (1.0,) * 4, n_sampled=2, stated=2.0),
    BoundedFeatures(ThreeOutputs(1.0), (0.0,) * 4, (1.0,) * 4, n_sampled=1, stated=1.0),
    BoundedFeatures(DuchiVector(1.0, 3), (0.0,) * 4, (1.0,) * 4, n_sampled=3, stated=1.0),
    bitrand(2.0, (np.zeros(4), np.ones(4)), calibration="exact", debias=True, n_sampled_features=1),
]


@pytest.mark.parametrize("mechanism", SAMPLED, ids=lambda mechanism: str(getattr(mechanism, "mechanism", "bits")))
def test_each_choice_has_its_numbers_and_all_others_stand_in_the_middle(mechanism):
    law = mechanism.integer_law
    k, seen = mechanism.n_sampled, set()
    for chosen in itertools.combinations(range(4), k):
        # Floyd's choice: a number that is there already stands for the last one.
        choices = [
            words
            for words in itertools.product(*(range(last + 1) for last in range(4 - k, 4)))
            if tuple(_floyd(words, 4 - k)) == chosen
        ]
        assert len(choices) == math.factorial(k)
        for words in choices:
            draws = itertools.chain(words, stream())
            answer = law.draw(PLACES, draws)
            assert 0 <= answer < law.n_answers
            values = law.values(answer)
            assert {j for j in range(4) if values[j]} <= set(chosen)
            if isinstance(law.of_sampled, SignsLaw):
                expected = law.of_sampled.values(law.of_sampled.draw([PLACES[j] for j in chosen], stream()))
            else:
                after = stream()
                expected = [law.of_sampled.value(law.of_sampled.draw(PLACES[j], after)) for j in chosen]
            assert [values[j] for j in chosen] == [value * 4 / k for value in expected]
            seen.add(answer // law._of_chosen)
    assert seen == set(range(math.comb(4, k)))
    assert law.epsilon == pytest.approx(mechanism.guarantee().epsilon, rel=1e-11)
    assert law.epsilon <= mechanism.guarantee().epsilon
    assert law_from_dict(law.to_dict()) == law


def stream():
    words = random.Random(5)
    return iter(lambda: words.getrandbits(64), None)


def _floyd(words, first):
    chosen = set()
    for last, word in enumerate(words, first):
        chosen.add(last if word in chosen else word)
    return sorted(chosen)


def test_the_epsilon_of_a_choice_counts_every_number_that_is_told():
    alone = Duchi(1.0).integer_law
    assert SampledLaw(5, 3, alone).epsilon >= 3 * Fraction(alone.epsilon)
    together = DuchiVector(1.0, 3).integer_law
    assert SampledLaw(5, 3, together).epsilon == together.epsilon


def test_all_features_released_alone_are_each_of_one_number():
    mechanism = BoundedFeatures(Hybrid(1.0), (0.0,) * 3, (1.0,) * 3, n_sampled=3, stated=3.0)
    assert mechanism.integer_law == Hybrid(1.0).integer_law
    with pytest.raises(ValueError, match="unbounded noise"):
        _ = BoundedFeatures(Laplace(1.0), (0.0,), (1.0,), n_sampled=1, stated=1.0).integer_law


@pytest.mark.parametrize(
    "make",
    [
        lambda: SignsLaw(0, 2**63),
        lambda: SignsLaw(2**16 + 1, 2**63),
        lambda: SignsLaw(3, 0),
        lambda: SignsLaw(3, 2**64),
        lambda: SignsLaw(3, 2**63),  # both kinds alike: nothing is told, and the magnitude infinite
        lambda: SignsLaw(4, 2**62),
        lambda: SampledLaw(3, 3, BitsLaw((5,))),
        lambda: SampledLaw(3, 0, BitsLaw((5,))),
        lambda: SampledLaw(2**16 + 1, 1, BitsLaw((5,))),
        lambda: SampledLaw(3, 2, SignsLaw(3, 2**63 + 2**60)),
        lambda: SampledLaw(3, 2, 5),
        lambda: SampledLaw(3, 2, SampledLaw(2, 1, BitsLaw((5,)))),
        lambda: SampledLaw(40_000, 20_000, BitsLaw((5,) * 53)),
    ],
)
def test_integers_of_no_such_law_are_refused(make):
    with pytest.raises(ValueError, match=r"^A law '\w+' must"):
        make()
