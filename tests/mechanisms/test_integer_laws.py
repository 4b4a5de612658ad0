"""Laws by their integers: the same probabilities as the mechanisms', and no law of which epsilon could be wrong."""

import itertools
import math
from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest

from skldp.laws._categories import ResponseLaw, UnaryLaw
from skldp.laws._few_answers import ThreeAnswersLaw, TwoAnswersLaw
from skldp.laws._integers import LAWS, IntegerLaw, law_from_dict, secure_words, words_of
from skldp.laws._lattice import LatticeLaw, MixtureLaw
from skldp.mechanisms import Laplace, Piecewise, RandomizedResponse
from skldp.mechanisms.categorical._one_hot import OneHotRandomizedResponse, UnaryEncoding
from skldp.mechanisms.numeric._unit_mechanisms import Duchi, Hybrid, HybridThreeOutputs, ThreeOutputs

EPSILONS = [1e-3, 0.5, 1.0, 2.0, 4.0, 10.0]
POINTS = [-1.0, -0.75, -1e-9, -0.0, 0.0, 0.1, 1 / 3, 0.9999, 1.0]
UNIT = [Duchi, ThreeOutputs, Hybrid, HybridThreeOutputs]
NUMBERS = [kind(epsilon) for kind in UNIT for epsilon in EPSILONS]
NUMBERS += [Piecewise(epsilon, variant) for epsilon in EPSILONS for variant in ("pm", "sub", "opt")]
CODES = [RandomizedResponse(epsilon, n) for epsilon in EPSILONS for n in (2, 3, 40)]


def runs(answer_of, low, high):
    """How many words from low to high give each answer, of a function that changes it at few of them."""
    counts = {}
    while low < high:
        answer, end = answer_of(low), high
        start = low
        if answer_of(high - 1) != answer:
            # The first change of an answer that never comes back.
            first, last = low, high - 1
            while last - first > 1:
                middle = (first + last) // 2
                first, last = (middle, last) if answer_of(middle) == answer else (first, middle)
            end = last
        counts[answer] = counts.get(answer, 0) + end - start
        low = end
    return counts


def law_of_words(law, x):
    """How many of 2^64 words give each answer: exact, from the draws themselves."""
    return runs(lambda word: law.draw(x, iter([word])), 0, 2**64)


@pytest.mark.parametrize(
    "mechanism", [kind(epsilon) for kind in (Duchi, ThreeOutputs) for epsilon in EPSILONS], ids=str
)
@pytest.mark.parametrize("x", POINTS)
def test_few_answers_have_the_probabilities_of_the_mechanism(mechanism, x):
    law = mechanism.integer_law
    numbers, weights = mechanism.output_law(x)
    found = {law.value(answer): count for answer, count in law_of_words(law, x).items()}
    assert found == {number: weight for number, weight in zip(numbers.tolist(), weights, strict=True) if weight}


@pytest.mark.few(40)
@pytest.mark.parametrize("variant", ["pm", "sub", "opt"])
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("x", POINTS)
def test_a_lattice_has_the_weights_of_the_mechanism(epsilon, variant, x):
    mechanism = Piecewise(epsilon, variant, lattice_bits=5)
    law = mechanism.integer_law
    anywhere = law.n_cells * law.base
    counts = np.zeros(law.n_cells, dtype=object)
    # Two words differ in their lowest bit, which is not read.
    for low, high in ((0, anywhere), (anywhere, law.total)):
        for cell, count in runs(lambda drawn: law.draw(x, iter([2 * drawn])), low, high).items():
            counts[cell] += count
    numbers, weights = mechanism.output_law(x)
    assert counts.tolist() == weights
    assert [law.value(cell) for cell in range(law.n_cells)] == numbers.tolist()


def test_a_word_beyond_the_lattice_is_drawn_anew():
    law = Piecewise(1.0).integer_law
    words = iter([2**64 - 1, 2 * law.total, 2 * law.total - 2])
    assert law.draw(0.0, words) == law.draw(0.0, iter([2 * law.total - 2]))
    assert list(words) == []


@pytest.mark.parametrize("mechanism", CODES, ids=str)
def test_codes_have_the_probabilities_of_the_mechanism(mechanism):
    law = mechanism.integer_law
    for code in {0, 1, mechanism.n_classes - 1}:
        counts = law_of_words(law, code)
        assert counts.pop(code) == mechanism.law.own_count
        assert counts == dict.fromkeys(set(range(mechanism.n_classes)) - {code}, mechanism.law.other_count)


@pytest.mark.parametrize("variant", ["sue", "oue"])
def test_bits_are_set_by_their_own_words(variant):
    mechanism = UnaryEncoding(1.0, 3, variant)
    law = mechanism.integer_law
    own, other = mechanism.law.own_count, mechanism.law.other_count
    assert law.draw(1, iter([other - 1, own - 1, other - 1])) == 0b111
    assert law.draw(1, iter([other, own, other])) == 0
    assert law.draw(0, iter([own - 1, other, other - 1])) == 0b101
    assert law.epsilon == mechanism.exact_epsilon


def test_one_hot_responses_are_codes():
    assert OneHotRandomizedResponse(1.0, 4).integer_law == RandomizedResponse(1.0, 4).integer_law


@pytest.mark.parametrize("mechanism", [*NUMBERS, *CODES], ids=str)
def test_epsilon_is_that_of_the_mechanism_and_a_law_is_its_integers(mechanism):
    law = mechanism.integer_law
    # Mechanisms compute in doubles, a few units in the last place above.
    assert law.epsilon <= mechanism.exact_epsilon * (1 + 1e-15)
    assert law.epsilon == pytest.approx(mechanism.exact_epsilon, rel=1e-12)
    assert law.epsilon <= mechanism.epsilon
    assert law_from_dict(law.to_dict()) == law


def test_the_chance_of_a_lattice_does_not_depend_on_the_number():
    law = Hybrid(2.0).integer_law
    for x in POINTS:
        assert law.draw(x, iter([law.lattice_count - 1, 0])) == 0
        assert law.draw(x, iter([law.lattice_count, 2**64 - 1])) == law.lattice.n_answers


def test_a_mixture_is_as_bad_as_its_worse_part():
    lattices, few = ([kind(epsilon).integer_law for epsilon in (1.0, 3.0)] for kind in (Piecewise, Duchi))
    assert MixtureLaw(1, lattices[1], few[0]).epsilon == lattices[1].epsilon
    assert MixtureLaw(1, lattices[0], few[1]).epsilon == few[1].epsilon


@pytest.mark.parametrize("mechanism", [Laplace(1.0), RandomizedResponse(1.0, 1)], ids=str)
def test_what_has_no_such_law_is_refused(mechanism):
    with pytest.raises(ValueError, match="has no integer law"):
        _ = mechanism.integer_law


THREE = ThreeOutputs(2.0).integer_law
LATTICE = Piecewise(2.0).integer_law


@pytest.mark.parametrize(
    "make",
    [
        lambda: ResponseLaw(1, 1),
        lambda: ResponseLaw(2, 0),
        lambda: ResponseLaw(2, 2**63 + 1),  # the other code more often than the true one: another law's epsilon
        lambda: ResponseLaw(4, 2**63),
        lambda: ResponseLaw(2**20 + 1, 1).check_size(),
        lambda: ResponseLaw(2, True),
        lambda: ResponseLaw(2, 0.5),
        lambda: UnaryLaw(2, 2**64, 1),  # a bit that is certain
        lambda: UnaryLaw(2, 2**63, 0),
        lambda: UnaryLaw(2, 5, 5),
        lambda: UnaryLaw(4097, 2**63, 5).check_size(),
        lambda: TwoAnswersLaw(0),
        lambda: TwoAnswersLaw(-5),
        lambda: TwoAnswersLaw(2**63),  # certain at the ends
        lambda: TwoAnswersLaw(2**53 + 1),  # no double: the product would be another one
        lambda: ThreeAnswersLaw(THREE.zero, THREE.zero, THREE.wrong, THREE.wrong_lost),  # no zero at the ends
        lambda: ThreeAnswersLaw(THREE.zero, THREE.zero_lost, THREE.wrong, THREE.wrong),
        lambda: ThreeAnswersLaw(THREE.zero, THREE.zero_lost, THREE.wrong - 1, THREE.wrong_lost),
        lambda: ThreeAnswersLaw(THREE.zero, -1, THREE.wrong, THREE.wrong_lost),
        lambda: ThreeAnswersLaw(0, 0, 2**63, 0),  # nothing of the number, and a division by 0
        lambda: ThreeAnswersLaw(2**63, 0, 2**62, 2**53 + 1),
        lambda: LatticeLaw(5, 1, 1, 1, 3),  # a word in 2^60 would be below the total: no end
        lambda: LatticeLaw(LATTICE.n_cells + 1, LATTICE.n_inner, LATTICE.base, LATTICE.extra, LATTICE.step_exponent),
        lambda: LatticeLaw(LATTICE.n_cells, LATTICE.n_inner, LATTICE.base, LATTICE.extra, LATTICE.step_exponent - 1),
        lambda: LatticeLaw(LATTICE.n_cells, LATTICE.n_inner, 0, LATTICE.extra, LATTICE.step_exponent),
        lambda: LatticeLaw(LATTICE.n_cells, LATTICE.n_cells + 2, LATTICE.base, LATTICE.extra, LATTICE.step_exponent),
        lambda: MixtureLaw(0, LATTICE, THREE),
        lambda: MixtureLaw(2**64, LATTICE, THREE),
        lambda: MixtureLaw(1, LATTICE, LATTICE),
        lambda: TwoAnswersLaw(2**65),
    ],
)
def test_integers_of_no_such_law_are_refused(make):
    with pytest.raises(ValueError, match=r"^A law '\w+' must"):
        make()


def worst_ratio(law, points):
    tables = [law_of_words(law, x) for x in points]
    return max(
        math.inf if not b.get(answer) else math.log(Fraction(a[answer], b[answer]))
        for a, b in itertools.permutations(tables, 2)
        for answer in a
    )


@pytest.mark.parametrize(
    "law",
    [
        ThreeAnswersLaw(2**63, 2**62, 2**62, 0),
        ThreeAnswersLaw(2**63, 0, 2**62, 2**61),
        ThreeAnswersLaw(0, 0, 2**63, 2**62),
        ThreeAnswersLaw(2**63, 2**62 + 2**61, 2**62, 2**61),
        ThreeAnswersLaw(2**63, 2**63 - 2**40, 2**62, 0),  # zero tells the most
        TwoAnswersLaw(2**62),
    ],
    ids=str,
)
def test_the_epsilon_of_chosen_integers_is_the_worst_ratio(law):
    """Nothing is assumed of integers that no mechanism would choose."""
    points = [-1.0, -0.5, 0.0, 0.25, 1.0]
    assert worst_ratio(law, points) == pytest.approx(law.epsilon, rel=1e-12)


@pytest.mark.parametrize(
    "given",
    [
        None,
        [],
        {},
        {"law": "no such law"},
        {"law": ["two_answers"], "slope": "4"},
        {"law": "two_answers"},
        {"law": "two_answers", "slope": "4", "more": "1"},
        {"law": "two_answers", "slope": 4},
        {"law": "two_answers", "slope": "04"},
        {"law": "two_answers", "slope": "+4"},
        {"law": "two_answers", "slope": "٤"},  # a digit of another script
        {"law": "two_answers", "slope": "1" * 5000},
        {"law": "two_answers", "slope": {"law": "two_answers", "slope": "4"}},
        {"law": "mixture", "lattice_count": "1", "lattice": "4", "few": "4"},
        {"law": "mixture", "lattice_count": "1", "lattice": {"law": "mixture"}, "few": "4"},
    ],
)
def test_what_is_no_law_is_refused(given):
    with pytest.raises(ValueError, match=r"A law|The integers of a law"):
        law_from_dict(given)


def test_words_are_read_in_their_order_and_none_is_made_up():
    words = words_of(bytes(7) + b"\x01" + bytes(6) + b"\x01\x00" + b"rest")
    assert [next(words), next(words)] == [1, 256]
    with pytest.raises(ValueError, match="got 20 bytes"):
        next(words)


def test_secure_words_come_from_the_operating_system(monkeypatch):
    asked = []
    monkeypatch.setattr("os.urandom", lambda size: asked.append(size) or bytes(range(size)))
    words = secure_words()
    assert [next(words) for _ in range(17)][-1] == int.from_bytes(bytes(range(8)), "big")
    assert asked == [128, 128]


def test_documents_name_every_law_by_its_own_name():
    found = {getattr(import_module(f"skldp.laws.{module}"), name) for module, name in LAWS.values()}
    kinds = [IntegerLaw]
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        # Bases have no name of their own.
        assert (kind in found) == hasattr(kind, "name")
    assert {kind.name for kind in found} == set(LAWS)
    assert {kind.name: (kind.__module__.rpartition(".")[2], kind.__name__) for kind in found} == LAWS
