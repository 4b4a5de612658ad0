"""Sets, hashes and Hadamard's reports: every answer's probability, by all words that matter, is the mechanism's."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from laws import hadamard, hashing, log_likelihood

from skldp.laws._categories import ResponseLaw, SubsetLaw, UnaryLaw
from skldp.laws._hashing import HadamardLaw, HashingLaw
from skldp.laws._integers import law_from_dict, uniform_below, uniform_subset
from skldp.mechanisms import RandomizedResponse
from skldp.mechanisms.categorical._one_hot import SubsetSelection, UnaryEncoding

MECHANISMS = [
    *(SubsetSelection(epsilon, n) for epsilon in (0.5, 1.0, 3.0) for n in (2, 3, 6)),
    *(hashing(epsilon, n) for epsilon in (0.5, 1.0, 2.0) for n in (2, 5, 11)),
    *(hadamard(epsilon, n) for epsilon in (0.5, 1.0, 3.0) for n in (2, 3, 7, 11)),
]


def draws(draw, ranges):
    """How often each answer comes, over words below each bound; a word below a bound is the number that it gives."""
    return Counter(draw(iter(words)) for words in itertools.product(*map(range, ranges)))


def probabilities(law, code):
    """The exact probability of each answer, by the threshold of the first word and every choice after it."""
    match law:
        case SubsetLaw(n_codes=k, set_size=w, miss_count=miss):
            kinds = [(0, miss, range(k - w, k)), (miss, 2**64 - miss, range(k - w + 1, k))]
        case HadamardLaw(miss_count=miss):
            own = law.block_size // 2
            kinds = [(0, miss, [law.n_answers - own]), (miss, 2**64 - miss, [own])]
    found = Counter()
    for first, weight, ranges in kinds:
        for word in (first, first + weight - 1):
            counts = draws(lambda words, word=word: law.draw(code, itertools.chain([word], words)), ranges)
            for answer, count in counts.items():
                found[answer] += Fraction(weight * count, 2 * 2**64 * math.prod(ranges))
    return found


def of_hashing(law, code):
    found, other = Counter(), law.other_count
    buckets = ResponseLaw(law.n_buckets, other)
    for chosen in range(law.n_hashes):
        for bucket in range(law.n_buckets):
            # The first word of each other bucket, and the last one of all, keep or change the hash.
            word = bucket * other if bucket < law.n_buckets - 1 else 2**64 - 1
            answer = law.draw(code, iter([chosen, word]))
            kept = bucket == law.n_buckets - 1
            weight = 2**64 - (law.n_buckets - 1) * other if kept else other
            found[answer] += Fraction(weight, 2**64 * law.n_hashes)
    assert buckets.epsilon == law.epsilon
    return found


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_probabilities_are_those_of_the_mechanism(mechanism):
    law = mechanism.integer_law
    answers = [answer for answer in range(law.n_answers) if law.is_answer(answer)]
    for code in range(mechanism.n_classes):
        found = of_hashing(law, code) if isinstance(law, HashingLaw) else probabilities(law, code)
        assert sum(found.values()) == 1
        assert set(found) == set(answers)
        expected = np.exp(log_likelihood(mechanism, np.array(answers), np.array([code] * len(answers))))
        np.testing.assert_allclose([float(found[answer]) for answer in answers], expected, rtol=1e-12)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_epsilon_is_the_worst_ratio_and_a_law_is_its_integers(mechanism):
    law = mechanism.integer_law
    of = of_hashing if isinstance(law, HashingLaw) else probabilities
    tables = [of(law, code) for code in range(mechanism.n_classes)]
    worst = max(a[answer] / b[answer] for a, b in itertools.permutations(tables, 2) for answer in a)
    assert math.log(worst) == pytest.approx(law.epsilon, rel=1e-12)
    assert law.epsilon == pytest.approx(mechanism.exact_epsilon, rel=1e-12)
    assert law.epsilon <= mechanism.epsilon
    assert law_from_dict(law.to_dict()) == law


def test_a_number_below_another_favours_none():
    assert draws(lambda words: uniform_below(3, words), [3]) == {0: 1, 1: 1, 2: 1}
    # 2^64 is 1 more than a multiple of 3: the last word is drawn anew.
    assert uniform_below(3, iter([2**64 - 2])) == 2
    assert uniform_below(3, iter([2**64 - 1, 1])) == 1
    assert uniform_below(2**64, iter([2**64 - 1])) == 2**64 - 1
    assert uniform_below(1, iter([2**64 - 1])) == 0


@pytest.mark.parametrize(("n", "size"), [(4, 0), (4, 1), (5, 3), (4, 4)])
def test_every_set_is_as_likely(n, size):
    counts = draws(lambda words: tuple(uniform_subset(n, size, words)), range(n - size + 1, n + 1))
    assert set(counts) == set(itertools.combinations(range(n), size))
    assert len(set(counts.values())) == 1


@pytest.mark.parametrize("answer", [0, 0b111, 0b001, 0b1010, -1])
def test_a_set_of_another_size_is_no_answer(answer):
    law = SubsetLaw(3, 2, 2**62)
    assert law.is_answer(0b101)
    assert not law.is_answer(answer)


@pytest.mark.parametrize(
    "make",
    [
        lambda: SubsetLaw(1, 1, 5),
        lambda: SubsetLaw(4, 0, 5),
        lambda: SubsetLaw(4, 4, 5),
        lambda: SubsetLaw(4, 2, 0),  # a set without the true code never comes: epsilon would be infinite
        lambda: SubsetLaw(4, 2, 2**64),
        lambda: SubsetLaw(4, 1, 2**64 - 5),  # sets without the true code are favoured: another epsilon
        lambda: SubsetLaw(4097, 2, 5).check_size(),
        lambda: SubsetLaw(4, (2,), 5),
        lambda: HashingLaw(1, 3, 5),
        lambda: HashingLaw(9, 4, 5),  # linear functions modulo 4 do not share out pairs evenly
        lambda: HashingLaw(9, 1, 5),
        lambda: HashingLaw(9, -3, 5),
        lambda: HashingLaw(9, 4099, 5),
        lambda: HashingLaw(2**20 + 1, 3, 5),
        lambda: HashingLaw(9, 3, 0),
        lambda: HashingLaw(9, 3, 2**63),
        lambda: HadamardLaw(1, 1, 2, 5),
        lambda: HadamardLaw(4, 1, 4, 5),  # three rows for four codes
        lambda: HadamardLaw(3, 1, 3, 5),
        lambda: HadamardLaw(3, 3, 4, 5),
        lambda: HadamardLaw(3, -1, -4, 5),
        lambda: HadamardLaw(3, 1, 2**40, 5),
        lambda: HadamardLaw(3, 0, 4, 5),
        lambda: HadamardLaw(3, 2, 4, 5),
        lambda: HadamardLaw(3, 1, 4, 0),
        lambda: HadamardLaw(3, 1, 4, 2**63 + 1),
    ],
)
def test_integers_of_no_such_law_are_refused(make):
    with pytest.raises(ValueError, match=r"^A law '\w+' must"):
        make()


@pytest.mark.parametrize(
    "mechanism",
    [SubsetSelection(1.0, 4097), UnaryEncoding(1.0, 4097), RandomizedResponse(1.0, 2**20 + 1)],
    ids=repr,
)
def test_a_device_refuses_more_codes_than_it_can_hold(mechanism):
    with pytest.raises(ValueError, match="must have at most"):
        _ = mechanism.integer_law
    with pytest.raises(ValueError, match="must have at most"):
        law_from_dict(mechanism.law.to_dict())
    assert mechanism.guarantee().epsilon <= 1.0


def test_a_document_of_very_many_bits_is_refused_before_they_are_counted():
    with pytest.raises(ValueError, match="must have at most"):
        law_from_dict(UnaryLaw(3, 2**63, 5).to_dict() | {"n_codes": str(2**60)})
