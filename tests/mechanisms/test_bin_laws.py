"""Numbers that become codes: exact probabilities and means, and epsilon whatever the places are."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from mechanisms.test_integer_laws import law_of_words

from skldp.laws._categories import ResponseLaw
from skldp.laws._integers import law_from_dict
from skldp.laws._numbers import PLACES, BinsLaw, BitsLaw, KnotsLaw
from skldp.mechanisms import bitrand
from skldp.mechanisms.numeric._points import ResponseOnBins

POINTS = [-1.0, -0.9999, -0.5, -1e-9, 0.0, 0.3, 0.5, 1.0]
PRIORS = [None, (0.1, 0.4, 0.3, 0.2)]
RESPONSE = ResponseLaw(3, 2**60)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
@pytest.mark.parametrize("x", POINTS)
def test_bins_have_the_probabilities_of_the_mechanism(epsilon, prior, x):
    mechanism = ResponseOnBins(epsilon, -1.0, 1.0, prior)
    law = mechanism.integer_law
    counts = law_of_words(law, x)
    expected = mechanism.output_law([[x]])[0]
    assert [counts[answer] / 2**64 for answer in range(law.n_answers)] == pytest.approx(expected.tolist(), rel=1e-12)
    assert [law.value(answer) for answer in range(law.n_answers)] == pytest.approx(
        mechanism.answers.tolist(), abs=1e-15
    )
    assert law.epsilon == mechanism.exact_epsilon
    assert law_from_dict(law.to_dict()) == law


@pytest.mark.few(6)
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
@pytest.mark.parametrize("x", POINTS)
def test_knots_have_the_probabilities_of_the_mechanism_and_no_bias(epsilon, prior, x):
    mechanism = ResponseOnBins(epsilon, -1.0, 1.0, prior, unbiased=True)
    law = mechanism.integer_law
    chances = np.zeros(law.n_answers)
    for first, share in _roundings(law, x):
        for answer, count in law_of_words(_After(law, first), x).items():
            chances[answer] += float(share) * count / 2**64
    assert chances.tolist() == pytest.approx(mechanism.output_law([[x]])[0].tolist(), abs=1e-14)
    values = [law.value(answer) for answer in range(law.n_answers)]
    assert values == pytest.approx(mechanism.answers.tolist(), rel=1e-12, abs=1e-12)
    assert float(chances @ values) == pytest.approx(x, abs=1e-12)
    assert law.epsilon == mechanism.exact_epsilon
    assert law_from_dict(law.to_dict()) == law


class _After:
    """A law whose first word is chosen."""

    def __init__(self, law, first):
        self.law, self.first = law, first

    def draw(self, x, words):
        return self.law.draw(x, itertools.chain([self.first], words))


def _roundings(law, x):
    """The first and the last of the words that round up and down, with their share."""
    place = round(x * PLACES)
    low = max((knot for knot in law.knots[:-1] if knot <= place), default=-PLACES)
    high = law.knots[law.knots.index(low) + 1]
    up = math.ceil(Fraction(place - low, high - low) * 2**64)
    ends = [(0, up - 1, up)] if up else []
    ends += [(up, 2**64 - 1, 2**64 - up)] if up < 2**64 else []
    return [(word, Fraction(weight, 2 * 2**64)) for first, last, weight in ends for word in (first, last)]


@pytest.mark.parametrize("epsilon", [0.5, 4.0, 8.0])
@pytest.mark.parametrize("x", POINTS)
def test_bits_have_the_mean_of_the_number_and_the_epsilon_of_the_mechanism(epsilon, x):
    mechanism = bitrand(epsilon, (-np.ones(1), np.ones(1)), calibration="exact", debias=True)
    law = mechanism.integer_law
    n = len(law.flip_counts)
    position = abs(x) * (2 ** (n - 1) - 1) if n > 1 else (1 + x) / 2
    up = int((position - math.floor(position)) * 2**64)
    mean = square = Fraction(0)
    for word, share in ((up - 1, Fraction(up, 2**64)), (up, 1 - Fraction(up, 2**64))):
        if not share:
            continue
        for flips in itertools.product([False, True], repeat=n):
            words = [t - 1 if flip else t for flip, t in zip(flips, law.flip_counts, strict=True)]
            shares = [Fraction(t, 2**64) for t in law.flip_counts]
            chance = share * math.prod(q if flip else 1 - q for flip, q in zip(flips, shares, strict=True))
            value = Fraction(law.value(law.draw(x, iter([word, *words]))))
            mean, square = mean + chance * value, square + chance * value**2
    assert float(mean) == pytest.approx(x, abs=1e-12)
    assert float(square - mean**2) == pytest.approx(float(mechanism.variance([[x]])[0, 0]), rel=1e-9)
    assert law.epsilon == pytest.approx(mechanism.guarantee().epsilon, rel=1e-11)
    assert law.epsilon <= epsilon
    assert law_from_dict(law.to_dict()) == law


def test_the_epsilon_of_bits_is_that_of_the_farthest_codes():
    law = BitsLaw((2**62, 2**61))
    tables = {}
    for x in (-1.0, 1.0, 0.0):
        answers = {}
        for flips in itertools.product([False, True], repeat=2):
            words = [t - 1 if flip else t for flip, t in zip(flips, law.flip_counts, strict=True)]
            weight = math.prod(t if flip else 2**64 - t for flip, t in zip(flips, law.flip_counts, strict=True))
            answers[law.draw(x, iter([0, *words]))] = weight
        tables[x] = answers
    worst = max(Fraction(a[k], b[k]) for a, b in itertools.permutations(tables.values(), 2) for k in a)
    assert math.log(worst) == pytest.approx(law.epsilon, rel=1e-12)


@pytest.mark.parametrize(
    "make",
    [
        lambda: BinsLaw(RESPONSE, (0,), (0, 1)),
        lambda: BinsLaw(RESPONSE, (0, 1), (0, 1)),
        lambda: BinsLaw(RESPONSE, (1, 0), (0, 1, 2)),
        lambda: BinsLaw(RESPONSE, (0, 0), (0, 1, 2)),
        lambda: BinsLaw(RESPONSE, (0, 2**53 + 1), (0, 1, 2)),
        lambda: BinsLaw(RESPONSE, (0, 1), (0, 1, 2**54)),
        lambda: BinsLaw(RESPONSE, (0, True), (0, 1, 2)),
        lambda: BinsLaw(RESPONSE, 5, (0, 1, 2)),
        lambda: BinsLaw(5, (0, 1), (0, 1, 2)),
        lambda: KnotsLaw(RESPONSE, (-PLACES, PLACES)),
        lambda: KnotsLaw(RESPONSE, (-PLACES, 0, PLACES - 1)),  # a number beyond the last knot
        lambda: KnotsLaw(RESPONSE, (-PLACES, PLACES, PLACES)),
        lambda: KnotsLaw(ResponseLaw(2, 2**63), (-PLACES, PLACES)),  # nothing of the number, and a division by 0
        lambda: KnotsLaw(RESPONSE, ()),
        lambda: KnotsLaw(5, (-PLACES, PLACES)),
        lambda: BitsLaw(()),
        lambda: BitsLaw((2**63,)),
        lambda: BitsLaw((0,)),
        lambda: BitsLaw((-5,)),
        lambda: BitsLaw((5,) * 54),
        lambda: BitsLaw(5),
    ],
)
def test_integers_of_no_such_law_are_refused(make):
    with pytest.raises(ValueError, match=r"^A law '\w+' must"):
        make()
