import decimal
import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from laws import duchi_vector_law

from skldp import PrivacyGuarantee
from skldp.accounting import FiniteQuery, shuffled, shuffled_closed_form
from skldp.mechanisms import Gaussian, Laplace, Piecewise, PrivUnit, RandomizedResponse, bitrand, latent, ome
from skldp.mechanisms._record import CategoricalRecord
from skldp.mechanisms.bits._bit_flip import BitFlip
from skldp.mechanisms.categorical._label_laws import LabelLaplaceMechanism, RandomizedResponseWithPrior
from skldp.mechanisms.categorical._one_hot import OneHotRandomizedResponse, SubsetSelection, UnaryEncoding
from skldp.mechanisms.numeric._bounded_features import BoundedFeatures
from skldp.mechanisms.numeric._unit_mechanisms import Duchi, DuchiVector, Hybrid, HybridThreeOutputs, ThreeOutputs
from skldp.mechanisms.vector._multivariate_laplace import MultivariateLaplace
from skldp.mechanisms.vector._privunit import PrivUnitBall
from skldp.shuffle import _shuffled
from skldp.shuffle._blanket_laws import pair_laws
from skldp.shuffle._shuffled import _loss_law

ONE = (-np.ones(1), np.ones(1))
BOX = (-np.ones(3), np.ones(3))
MECHANISMS = {
    "k-RR": RandomizedResponse(2.0, 5),
    "label-Laplace": LabelLaplaceMechanism(2.0, 4),
    "prior": RandomizedResponseWithPrior(2.0, (0.1, 0.5, 0.4)),
    "one-hot": OneHotRandomizedResponse(2.0, 4),
    "OUE": UnaryEncoding(2.0, 4, "oue"),
    "SUE": UnaryEncoding(2.0, 4, "sue"),
    "record": CategoricalRecord(2.0, (3, 2, 1)),
    "Duchi": Duchi(2.0),
    "Duchi of 4": DuchiVector(2.0, 4),
    "Duchi of 5": DuchiVector(2.0, 5),
    "Piecewise": Piecewise(2.0),
    "PM-SUB": Piecewise(0.5, "sub"),
    "PM-OPT": Piecewise(5.0, "opt"),
    "HM": Hybrid(2.0),
    "HM of few": Hybrid(0.5),
    "Three-Outputs": ThreeOutputs(2.0),
    "HM-TP": HybridThreeOutputs(2.0),
    "features": BoundedFeatures(Piecewise(1.0), low=(0.0,) * 3, high=(1.0,) * 3, n_sampled=2, stated=2.0),
    "bits": bitrand(2.0, BOX, calibration="exact"),
    "LATENT": latent(2.0, BOX, calibration="exact"),
    "OME": ome(2.0, BOX, calibration="exact"),
    "OME of odd bits": ome(2.0, BOX, n_bits=5, calibration="exact"),
    "Laplace": Laplace(2.0),
    "Laplace of little": Laplace(0.01),
    "Laplace of two": BoundedFeatures(Laplace(1.0), low=(0.0,) * 2, high=(1.0,) * 2, n_sampled=2, stated=2.0),
    "unbiased bits": bitrand(6.0, BOX, calibration="exact", debias=True),
    "PrivUnit": PrivUnit(20, 2.0),
    "PrivUnit in the plane": PrivUnit(2, 2.0),
    "PrivUnit of a ball": PrivUnitBall(20, 2.0, 3.0),
    "table": FiniteQuery.from_probabilities([[0.6, 0.4], [0.5, 0.5], [0.2, 0.8]]),
}


def exact_epsilon(mechanism):
    return mechanism.epsilon if isinstance(mechanism, FiniteQuery) else mechanism.guarantee().epsilon


@pytest.mark.parametrize("name", MECHANISMS)
def test_laws_are_laws_of_the_exact_epsilon(name):
    mechanism = MECHANISMS[name]
    laws = pair_laws(mechanism).laws
    assert laws
    for law in laws:
        assert float(law.weights.sum()) <= 1 + 1e-12
        for part in (law.own, law.other):
            assert part.min() >= 1 - 1e-12
            assert float(part @ law.weights) == pytest.approx(1.0, abs=1e-9)
    worst = max(float(np.log(law.own / law.other).max()) for law in laws)
    # Bits are taken as if every code could be reached, and either way as far apart as the worse one.
    assert worst >= exact_epsilon(mechanism) - 1e-8
    if name not in ("bits", "LATENT", "OME", "OME of odd bits"):
        assert worst <= exact_epsilon(mechanism) + 1e-8


@pytest.mark.few(10)
@pytest.mark.parametrize("name", MECHANISMS)
def test_the_own_law_is_never_worse_than_epsilon_alone(name):
    mechanism = MECHANISMS[name]
    own = shuffled(mechanism, 3_000, 1e-6)
    alone = shuffled(PrivacyGuarantee(exact_epsilon(mechanism)), 3_000, 1e-6)
    assert own.model == "central"
    assert own.epsilon <= alone.epsilon * (1 + 1e-3)
    assert own.epsilon > alone.epsilon / (4 if name not in ("LATENT", "OME", "OME of odd bits") else 40)


def enumerated(mechanism, inputs):
    """The exact law of every answer to each input, as fractions."""
    if isinstance(mechanism, BitFlip):
        chances = [
            (one, zero) for law in mechanism.laws[:1] for one, zero in zip(law.from_one, law.from_zero, strict=True)
        ]
        return [
            {
                bits: math.prod(
                    one_of(Fraction(int(pair[1 - own]), 2**64), bit)
                    for own, bit, pair in zip(x, bits, chances, strict=True)
                )
                for bits in product((0, 1), repeat=len(chances))
            }
            for x in inputs
        ]
    if isinstance(mechanism, Laplace):
        end = 2**mechanism.lattice_exponent
        part = math.exp(-1 / mechanism.scale)
        laws = []
        for x in inputs:
            law = {z: Fraction(math.tanh(0.5 / mechanism.scale) * part ** abs(z - x)) for z in range(1 - end, end)}
            # Beyond the ends all ratios are the same.
            law.update({end * side: Fraction(part ** (end - side * x) / (1 + part)) for side in (-1, 1)})
            laws.append(law)
        return laws
    if isinstance(mechanism, UnaryEncoding):
        p, q = Fraction(mechanism.law.own_count, 2**64), Fraction(mechanism.law.other_count, 2**64)
        return [
            {
                bits: math.prod((p if j == x else q) if bit else 1 - (p if j == x else q) for j, bit in enumerate(bits))
                for bits in product((0, 1), repeat=mechanism.n_classes)
            }
            for x in inputs
        ]
    laws = []
    for x in inputs:
        several = isinstance(mechanism, DuchiVector)
        outputs, weights = duchi_vector_law(mechanism, x) if several else mechanism.output_law(x)
        total = sum(weights)
        laws.append({tuple(np.atleast_1d(y)): Fraction(w) / total for y, w in zip(outputs, weights, strict=True)})
    return laws


SMALL = {
    "OUE": (UnaryEncoding(1.5, 3, "oue"), [0, 1, 2]),
    "SUE": (UnaryEncoding(1.5, 3, "sue"), [0, 1, 2]),
    "Duchi": (Duchi(1.0), [-1.0, -0.3, 0.4, 1.0]),
    "Duchi of 2": (DuchiVector(1.0, 2), [(-1.0, -1.0), (1.0, 1.0), (0.3, -1.0)]),
    "Duchi of 3": (DuchiVector(1.0, 3), [(-1.0, -1.0, 1.0), (1.0, 1.0, 1.0), (0.3, -1.0, 0.0)]),
    "Piecewise": (Piecewise(1.0, lattice_bits=3), [-1.0, -0.2, 0.5, 1.0]),
    "PM-OPT": (Piecewise(2.0, "opt", lattice_bits=3), [-1.0, 0.1, 1.0]),
    "HM": (Hybrid(1.5, lattice_bits=3), [-1.0, 0.2, 1.0]),
    "Three-Outputs": (ThreeOutputs(1.5), [-1.0, -0.4, 0.0, 0.7, 1.0]),
    "HM-TP": (HybridThreeOutputs(1.5, lattice_bits=3), [-1.0, 0.0, 0.6, 1.0]),
    "LATENT": (latent(3.0, ONE, n_bits=3), list(product((0, 1), repeat=3))),
    "LATENT, ones likely": (latent(3.0, ONE, n_bits=3, alpha=0.1), list(product((0, 1), repeat=3))),
    "OME": (ome(3.0, ONE, n_bits=3, alpha=1.2), list(product((0, 1), repeat=3))),
    "Laplace": (Laplace(1.5, lattice_bits=2), [-4, -3, -1, 0, 2, 4]),
    "Laplace of much": (Laplace(4.0, lattice_bits=2), [-8, -6, -1, 2, 7, 8]),
}


@pytest.mark.few(5)
@pytest.mark.parametrize("name", SMALL)
def test_two_people_are_covered_by_enumeration(name):
    """The exact hockey-stick divergence of two shuffled answers, from the integers that are sampled."""
    mechanism, inputs = SMALL[name]
    laws = enumerated(mechanism, inputs)
    for delta in (0.02, 0.1):
        odds = Fraction(math.exp(shuffled(mechanism, 2, delta).epsilon)) * (1 + Fraction(1, 2**50))
        for rest in laws:
            pairs = [Counter() if law is None else mixed(law, rest) for law in laws]
            for one, two in product(pairs, repeat=2):
                assert sum(max(Fraction(0), one[key] - odds * two[key]) for key in one) <= Fraction(delta)


def one_of(chance, bit):
    return chance if bit else 1 - chance


def mixed(first, second):
    """The law of the unordered pair of two independent answers."""
    law = Counter()
    for (x, p), (y, q) in product(first.items(), second.items()):
        law[min(x, y), max(x, y)] += p * q
    return law


def drawn_counts(chances, n):
    """The law of the sum of the answers of `n` people drawn from those with these chances of a 1, by enumeration."""
    groups = list(combinations(range(len(chances)), n))
    total = np.zeros(n + 1)
    for group in groups:
        law = np.ones(1)
        for person in group:
            law = np.convolve(law, [1 - chances[person], chances[person]])
        total += law / len(groups)
    return total


@pytest.mark.parametrize(("n", "out_of"), [(1, 2), (2, 4), (3, 5), (4, 6), (3, 12), (4, 4)])
@pytest.mark.parametrize(
    ("rounds", "epsilon", "delta"), [(1, 1.0, 0.05), (1, 3.0, 0.01), (2, 1.0, 0.05), (2, 2.0, 1e-3)]
)
def test_people_drawn_in_each_round_are_covered_by_enumeration(n, out_of, rounds, epsilon, delta):
    """All inputs of the others, binary randomized response, both orders; shuffled bits tell their sum and no more."""
    bound = shuffled(RandomizedResponse(epsilon, 2), n, delta, rounds=rounds, out_of=out_of)
    keep = 1 / (1 + math.exp(-epsilon))
    for ones in range(out_of):
        others = [keep] * ones + [1 - keep] * (out_of - 1 - ones)
        pair = [drawn_counts([own, *others], n) for own in (keep, 1 - keep)]
        if rounds == 2:
            pair = [np.outer(law, law) for law in pair]
        for first, second in (pair, pair[::-1]):
            exact = np.maximum(first - math.exp(bound.epsilon) * second, 0).sum()
            assert exact <= delta


def test_people_are_drawn_from_at_least_as_many():
    with pytest.raises(ValueError, match="out_of must be"):
        shuffled(PrivacyGuarantee(2.0), 5, 1e-6, out_of=4)


def test_the_closed_form_rounds_up_and_is_never_smaller():
    failure = 1e-6
    for n, local in product((20_000, 123_457, 10**7), np.linspace(0.001, 5, 12).tolist()):
        found = shuffled_closed_form(local, n, failure)
        with decimal.localcontext() as context:
            context.prec = 40
            odds, delta = decimal.Decimal(local).exp(), decimal.Decimal(failure)
            spread = 4 * (2 * (4 / delta).ln() / ((odds + 1) * n)).sqrt() + decimal.Decimal(4) / n
            exact = (1 + (odds - 1) * spread).ln()
            assert exact <= decimal.Decimal(found) <= exact * (1 + decimal.Decimal("1e-12"))
        assert shuffled(PrivacyGuarantee(local), n, failure).epsilon < found
    with pytest.raises(ValueError, match="no epsilon"):
        shuffled_closed_form(1.0, 10, 1e-6)


def binary_counts(epsilon, n, rounds):
    """Exact joint laws of the counts of ones of n shuffled binary responses, per round, from either input."""
    lie = 1 / (1 + math.exp(epsilon))
    others = np.array([math.comb(n - 1, k) * lie**k * (1 - lie) ** (n - 1 - k) for k in range(n)])
    laws = [np.convolve(others, [1 - own, own]) for own in (1 - lie, lie)]
    joint = [np.ones(1), np.ones(1)]
    for _ in range(rounds):
        joint = [np.outer(all_, law).ravel() for all_, law in zip(joint, laws, strict=True)]
    return joint


@pytest.mark.parametrize(("n", "rounds", "delta"), [(40, 2, 1e-3), (40, 3, 1e-5), (200, 2, 1e-6)])
def test_rounds_cover_the_exact_loss_of_counts(n, rounds, delta):
    mechanism = RandomizedResponse(1.0, 2)
    found = shuffled(mechanism, n, delta, rounds=rounds)
    one, two = binary_counts(1.0, n, rounds)
    assert float(np.maximum(one - math.exp(found.epsilon) * two, 0.0).sum()) <= delta
    # Others may hold the other value: what is proved is not far from what these data lose.
    assert float(np.maximum(one - math.exp(found.epsilon * 0.6) * two, 0.0).sum()) > delta
    apart = shuffled(mechanism, n, delta / rounds)
    assert apart.epsilon < found.epsilon < apart.epsilon * rounds
    assert f"in each of {rounds} rounds" in found.basis


def clone_pair(epsilon, n):
    """The two laws of the worst mechanism's clones: binomial in number, half of them on either side."""
    p = math.exp(epsilon)
    laws = []
    for own in (p / (p + 1), 1 / (p + 1)):
        law = np.zeros((n, n + 1))
        for clones in range(n):
            chance = math.comb(n - 1, clones) * (2 / (p + 1)) ** clones * ((p - 1) / (p + 1)) ** (n - 1 - clones)
            side = np.array([math.comb(clones, k) / 2**clones for k in range(clones + 1)])
            law[clones, : clones + 2] = chance * np.convolve(side, [1 - own, own])
        laws.append(law.ravel())
    return laws


@pytest.mark.parametrize("places", [4096, 100])
@pytest.mark.parametrize("rounds", [2, 3])
def test_rounds_of_clones_are_added_up_exactly_from_above(rounds, places, monkeypatch):
    monkeypatch.setattr(_shuffled, "_PLACES", places)
    delta = 1e-3
    found = shuffled(PrivacyGuarantee(1.0), 12, delta, rounds=rounds).epsilon
    one, two = ratio_law(*clone_pair(1.0, 12))
    all_one, all_two = one, two
    for _ in range(rounds - 1):
        all_one, all_two = ratio_law(np.outer(all_one, one).ravel(), np.outer(all_two, two).ravel())

    def exact(epsilon):
        return float(np.maximum(all_one - math.exp(epsilon) * all_two, 0.0).sum())

    assert exact(found) <= delta < exact(found * 0.995)


def ratio_law(one, two):
    """Both laws, with answers of (nearly) equal ratio taken together."""
    possible = one > 0
    one, two = one[possible], two[possible]
    _, which = np.unique(np.round(np.log(one / two), 9), return_inverse=True)
    return np.bincount(which, one), np.bincount(which, two)


def test_losses_on_a_grid_have_at_least_the_given_delta():
    step = 0.05
    curve = np.array([0.1, 0.085, 0.08, 0.06, 0.05, 0.045])
    law = _loss_law(curve, step)
    losses = np.arange(law.first, law.first + law.masses.size) * step
    assert float(law.masses.sum()) == pytest.approx(1 - curve[-1])
    # Symmetric: the second law's masses are the first one's, turned round.
    np.testing.assert_allclose(law.masses * np.exp(-losses), law.masses[::-1], rtol=1e-9)
    delta = [float(law.masses @ np.maximum(-np.expm1(k * step - losses), 0.0)) + curve[-1] for k in range(6)]
    # The third point lies above the line between its neighbours, where no delta of a pair of laws can be.
    assert delta[2] < curve[2]
    convex = [i for i in range(6) if i != 2]
    assert all(delta[i] >= curve[i] for i in convex)
    np.testing.assert_allclose(np.array(delta)[convex], curve[convex], rtol=1e-9)


def test_only_epsilon_is_known_of_features_of_several_laws_that_are_sampled():
    assert pair_laws(ome(2.0, BOX, n_bits=5)).laws
    assert pair_laws(ome(2.0, BOX, n_bits=5, n_sampled_features=2)).laws == ()
    assert pair_laws(ome(2.0, BOX, n_bits=4, n_sampled_features=2)).laws


OTHERS = [SubsetSelection(1.0, 9), Laplace(31.0), latent(1.0, (-np.ones(30), np.ones(30)))]


@pytest.mark.parametrize("mechanism", OTHERS, ids=["subset", "Laplace of all", "LATENT of many bits"])
def test_other_mechanisms_are_bounded_by_epsilon_alone(mechanism):
    found = shuffled(mechanism, 500, 1e-5)
    assert found.epsilon == shuffled(mechanism.guarantee(), 500, 1e-5).epsilon
    assert "epsilon alone" in found.basis


def test_nothing_else_is_shuffled():
    for mechanism in (Gaussian(1.0, 1e-6), MultivariateLaplace(3, 1.0), PrivacyGuarantee(1.0, model="central")):
        with pytest.raises(ValueError, match="local, pure and per record"):
            shuffled(mechanism, 1_000, 1e-6)
    with pytest.raises(ValueError, match="got str"):
        shuffled("k-RR", 1_000, 1e-6)
    for arguments in ({"rounds": 0}, {"rounds": 1.5}):
        with pytest.raises(ValueError, match="whole number"):
            shuffled(Duchi(1.0), 1_000, 1e-6, **arguments)
    with pytest.raises(ValueError, match="delta"):
        shuffled(Duchi(1.0), 1_000, 0.0)


def test_where_rounds_cannot_be_composed_they_are_added_one_by_one():
    # Of so many people and rounds, the bounds of one round have too many roundings in them.
    one = shuffled(PrivacyGuarantee(0.3), 2**40, 0.5 / 10**5).epsilon
    assert shuffled(PrivacyGuarantee(0.3), 2**40, 0.5, rounds=10**5).epsilon == pytest.approx(10**5 * one, rel=1e-9)
    # Nothing is left of it, or no shuffler helps.
    assert shuffled(PrivacyGuarantee(1e-3), 10**6, 0.5, rounds=3).epsilon == 0.0
    assert shuffled(PrivacyGuarantee(40.0), 10**6, 1e-6, rounds=3).epsilon == pytest.approx(120.0)


def test_a_column_without_a_law_leaves_the_whole_record_without_one():
    assert pair_laws(CategoricalRecord(2.0, (3, 4), "krr")).laws
    assert pair_laws(CategoricalRecord(2.0, (3, 4), "subset")).laws == ()
    mixed = CategoricalRecord(2.0, (3, 4), "krr")
    vars(mixed)["parts"] = (mixed.parts[0], SubsetSelection(1.0, 4))
    assert pair_laws(mixed).laws == ()
