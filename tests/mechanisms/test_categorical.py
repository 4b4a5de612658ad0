"""Randomized response: the law, its rounding to the private side, and the sampler against the formula."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import seeded
from scipy import integrate

from skldp.laws._categories import ResponseLaw, bernoulli
from skldp.laws._odds import least_count, log_ratio
from skldp.mechanisms import RandomizedResponse
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._rows import Workspace
from skldp.mechanisms.categorical._label_laws import (
    LabelLaplaceMechanism,
    RandomizedResponseWithPrior,
    label_laplace_keep_count,
)

EPSILONS = [0.01, 0.1, 0.5, 0.62, 1, 2, 4, 8, 20]
epsilons = st.floats(1e-3, 20)
WORD = 2**64


def release(law, codes, noise):
    """The answers to codes."""
    return law.release(np.asarray(codes)[:, None], noise).rows[:, 0]


class Scripted(Noise):
    """Noise whose 64-bit draws are given: 16-bit words are their leading bits, the rest follows where it is asked."""

    def __init__(self, draws):
        super().__init__(bytes(32), secure=False)
        self.draws, self.asked = draws, None

    def at(self, places, size):
        assert size == len(self.draws)
        self.asked = places.tolist()
        return self

    def fill(self, buffer):
        if buffer.dtype == np.uint16:
            words = [draw >> 48 for draw in self.draws]
        elif self.asked is None:
            words = self.draws
        else:
            words = [(self.draws[place] << 16) % WORD for place in self.asked]
        buffer.reshape(-1)[:] = np.array(words, dtype=object).astype(buffer.dtype)
        return buffer


def edge_draws(counts, rng):
    """Draws next to every edge between two outcomes, and some anywhere."""
    edges = np.cumsum(counts).tolist()
    near = [edge + step for edge in edges[:64] for step in (-1, 0, 1)]
    anywhere = [int(word) for word in rng.integers(0, 2**64, 300, dtype=np.uint64)]
    return [draw for draw in [0, 2**64 - 1, *near, *anywhere] if 0 <= draw < 2**64]


@given(epsilons, st.integers(2, 5000))
def test_exact_epsilon_is_within_1e_9_below_the_stated_one(epsilon, n_classes):
    law = RandomizedResponse(epsilon, n_classes)
    assert law.law.own_count + law.law.other_count * (n_classes - 1) == 2**64
    with localcontext(prec=60):
        truth = (Decimal(law.law.own_count) / Decimal(law.law.other_count)).ln()
    assert truth <= Decimal(law.exact_epsilon)
    assert math.nextafter(law.exact_epsilon, 0) <= truth
    assert -1e-9 <= law.exact_epsilon - epsilon <= 0


@given(epsilons, st.integers(1, 5000))
def test_the_probability_of_another_class_is_rounded_up_and_no_further(epsilon, n_others):
    with localcontext(prec=60):
        aim = Decimal(epsilon) * (1 if (epsilon * 2**20).is_integer() else 1 - Decimal(2) ** -50)
        share = Decimal(2**64) / (aim.exp() + n_others)
    assert 0 <= least_count(epsilon, n_others) - share <= 1


def answers_by_the_formula(codes, draws, n_classes, count):
    """Each draw below (C - 1) t adds 1 to C - 1."""
    shifts = [draw // count + 1 if draw // count < n_classes - 1 else 0 for draw in draws]
    return [(code + shift) % n_classes for code, shift in zip(codes.tolist(), shifts, strict=True)]


@given(epsilons, st.integers(2, 300), st.integers(0, 2**32))
def test_sampler_maps_each_64_bit_draw_as_the_formula_says(epsilon, n_classes, seed):
    rng = np.random.default_rng(seed)
    count = RandomizedResponse(epsilon, n_classes).law.other_count
    draws = edge_draws([count] * (n_classes - 1), rng)
    codes = rng.integers(0, n_classes, len(draws))
    answers, noise = np.empty((len(draws), 1), dtype=np.int64), Scripted(draws)
    ResponseLaw(n_classes, count).draw_many(codes[:, None], noise, answers, Workspace())
    assert answers[:, 0].tolist() == answers_by_the_formula(codes, draws, n_classes, count)
    split = {s * count >> 48 for s in range(1, n_classes) if s * count % 2**48}
    assert noise.asked == [place for place, draw in enumerate(draws) if draw >> 48 in split]


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**32))
def test_bernoulli_compares_all_64_bits(count, seed):
    draws = edge_draws([count], np.random.default_rng(seed))
    noise, drawn = Scripted(draws), np.empty((len(draws), 1), dtype=bool)
    bernoulli(noise, count, drawn, Workspace())
    assert drawn[:, 0].tolist() == [draw < count for draw in draws]
    assert noise.asked == [place for place, draw in enumerate(draws) if draw >> 48 == count >> 48]


LAWS = [
    RandomizedResponse(1.0, 2),
    RandomizedResponse(0.5, 7),
    RandomizedResponse(0.1, 50),
    LabelLaplaceMechanism(3.0, 5),
    RandomizedResponseWithPrior(1.0, (0.05, 0.3, 0.35, 0.3)),
]


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_worst_ratio_of_the_flip_matrix_is_the_exact_epsilon(law):
    matrix = law.flip_matrix
    np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-12)
    reached = matrix[:, matrix.any(axis=0)]
    assert (reached > 0).all()
    worst = np.log(reached.max(axis=0) / reached.min(axis=0)).max()
    assert worst == pytest.approx(law.exact_epsilon, rel=1e-12)
    assert law.guarantee().epsilon <= law.epsilon
    assert law.guarantee().unit == "label"
    codes = np.arange(law.n_classes)[:, None]
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(law.log_likelihood(codes.T, codes), np.log(matrix), rtol=1e-12)


def test_frequencies_are_unknown_where_a_class_is_never_released():
    with pytest.raises(ValueError, match="Every class must be a possible answer"):
        LAWS[4].support_probabilities()


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("n_classes", [2, 3, 10, 100])
def test_label_laplace_keeps_with_the_integral_of_its_definition(epsilon, n_classes):
    a = epsilon / 2

    def density(u):
        cdf = math.exp(u) / 2 if u < 0 else 1 - math.exp(-u) / 2
        return math.exp(-abs(u - a)) / 2 * cdf ** (n_classes - 1)

    integral = sum(integrate.quad(density, *ends, epsabs=1e-13)[0] for ends in [(-50, 0), (0, a), (a, a + 60)])
    assert label_laplace_keep_count(epsilon, n_classes) / 2**64 == pytest.approx(integral, abs=1e-12)
    law = LabelLaplaceMechanism(epsilon, n_classes)
    assert 0.4 * epsilon < law.exact_epsilon < 0.6 * epsilon
    assert (law.guarantee().stated, law.guarantee().epsilon) == (epsilon, law.exact_epsilon)


@given(epsilons)
def test_label_laplace_of_two_classes_has_a_closed_form_and_is_rounded_down(epsilon):
    with localcontext(prec=60):
        a = Decimal(epsilon) / 2
        truth = (1 - (-a).exp() * (2 + a) / 4) * 2**64
    assert 0 <= truth - label_laplace_keep_count(epsilon, 2) <= 1


@given(epsilons, st.lists(st.integers(0, 20), min_size=1, max_size=8).filter(any))
def test_prior_answers_with_the_set_that_is_right_most_often(epsilon, weights):
    prior = np.array(weights) / sum(weights)
    support = RandomizedResponseWithPrior(epsilon, tuple(prior)).support

    def right(k):
        return sum(sorted(prior, reverse=True)[:k]) * math.exp(epsilon) / (math.exp(epsilon) + k - 1)

    assert right(support.size) == pytest.approx(max(map(right, range(1, prior.size + 1))), rel=1e-12)
    assert prior[support].min() >= np.delete(prior, support).max(initial=0)


@pytest.mark.parametrize("epsilon", [50.0, 700.0, 1e300])
def test_a_huge_epsilon_saturates_below_itself(epsilon):
    for law in (RandomizedResponse(epsilon, 10), LabelLaplaceMechanism(epsilon * 3, 10)):
        assert law.law.other_count == 1
        assert 44 < law.exact_epsilon < 45


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, True, "1", None])
def test_refuses_a_bad_epsilon(epsilon):
    for make in (
        lambda: RandomizedResponse(epsilon, 1),
        lambda: LabelLaplaceMechanism(epsilon, 3),
        lambda: RandomizedResponseWithPrior(epsilon, (0.5, 0.5)),
    ):
        with pytest.raises(ValueError, match="epsilon must be a finite number > 0"):
            make()


@pytest.mark.parametrize("n_classes", [2, 3, 1000])
def test_too_small_an_epsilon_is_refused_with_the_least_usable_one(n_classes):
    with pytest.raises(ValueError, match=r"at least about") as refusal:
        RandomizedResponse(1e-25, n_classes)
    least = float(str(refusal.value).split("about ")[1].split("; got")[0])
    assert 0 < RandomizedResponse(1.01 * least, n_classes).exact_epsilon <= 1.01 * least


@pytest.mark.parametrize("codes", [[-1], [3], [2**64 - 1], [-(2**63)], [0.5], ["a"], [True]])
def test_refuses_codes_out_of_range(codes):
    law = RandomizedResponse(1.0, 3)
    for call in (lambda: release(law, codes, seeded()), lambda: law.log_likelihood(codes, codes)):
        with pytest.raises(ValueError, match=r"codes must be integers( from 0 to 2)?; got"):
            call()


@pytest.mark.parametrize("prior", [(), (0.5, 0.6), (-0.5, 1.5), (math.nan, 1.0), ((0.5, 0.5),)])
def test_refuses_a_bad_prior(prior):
    with pytest.raises(ValueError, match="prior must be probabilities that sum to 1"):
        RandomizedResponseWithPrior(1.0, prior)


def test_log_ratio_is_rounded_up():
    # Of two steps that hide nearly all, squared: most digits cancel, and the double below is nearer than the 80th one.
    hidden = (2**127 + 4) ** 2, (2**127 - 4) ** 2
    with localcontext(prec=160):
        for numerator, denominator in [(3, 2), (2**64 - 1, 1), (2**63 + 1, 2**63 - 1), hidden]:
            truth = (Decimal(numerator) / Decimal(denominator)).ln()
            value = log_ratio(numerator, denominator)
            assert Decimal(math.nextafter(value, 0)) < truth <= Decimal(value)
