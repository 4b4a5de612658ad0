"""What is not counted jointly is added: reports of sets and hashes in full, softmax answers and parts to the rest."""

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from accounting.released import UNITS, weight
from laws import Reports

from skldp import PrivacyLedger
from skldp.accounting import RegressionQuery, realized_loss
from skldp.accounting._class_query import ClassQuery, SoftmaxQuery
from skldp.accounting._query import ReleaseQuery
from skldp.accounting.losses._region import region_of
from skldp.domains._columns import Columns
from skldp.domains._constraints import OneHot
from skldp.mechanisms import Column, RandomizedResponse
from skldp.mechanisms.categorical._one_hot import OneHotHadamard, OneHotLocalHashing, SubsetSelection, UnaryEncoding

TWO_64 = 2**64


def subset_law(law, code):
    """Each released set of categories with its probability, but for a factor of all of them alike."""
    k, w = law.n_classes, law.set_size
    with_own, without = math.comb(k - 1, w - 1), math.comb(k - 1, w)
    for chosen in itertools.combinations(range(k), w):
        # Over the common denominator of both kinds of sets.
        miss = law.law.miss_count
        yield chosen, (TWO_64 - miss) * without if code in chosen else miss * with_own


def bits_law(law, code):
    """Bits that a report supports, with the integer weights of all reports that support them."""
    reports, found = Reports(law.epsilon, law.law), {}
    own = sum(reports.supports(report, code) for report in range(law.law.n_answers))
    held, missed = law.law.ratio
    for report in range(law.law.n_answers):
        bits = tuple(reports.supports(report, other) for other in range(law.n_classes))
        found[bits] = found.get(bits, 0) + (held if bits[code] else missed)
    assert 0 < own < law.law.n_answers
    yield from found.items()


LAWS = {
    "subset": (SubsetSelection(1.0, 5), subset_law),
    "hashing": (OneHotLocalHashing(1.0, 5), bits_law),
    "hadamard": (OneHotHadamard(1.0, 5), bits_law),
}


@pytest.mark.parametrize("name", LAWS)
def test_reports_of_sets_and_hashes_are_charged_their_exact_epsilon(name):
    law, probabilities = LAWS[name]
    of_codes = [dict(probabilities(law, code)) for code in range(law.n_classes)]
    assert all(sum(one.values()) == sum(of_codes[0].values()) for one in of_codes)
    with localcontext(prec=60):
        worst = max(
            (Decimal(one[report]) / Decimal(other[report])).ln()
            for one, other in itertools.permutations(of_codes, 2)
            for report in one
        )
        charge = Decimal(ReleaseQuery.of(law).charge)
        assert worst * UNITS <= charge
        # No more than the figure's own rounding.
        assert charge <= worst * UNITS * (1 + Decimal(2) ** -50) + 1
    assert float(worst) == pytest.approx(law.guarantee().epsilon, abs=1e-12)


@pytest.mark.parametrize("rule", ["simplified", "bayesian"])
@pytest.mark.parametrize("name", LAWS)
def test_reports_of_sets_and_hashes_count_in_full_however_opposed_they_are(name, rule):
    law, _ = LAWS[name]
    epsilon = ReleaseQuery.of(law).epsilon
    # Ten releases would oppose one another: a part of a record is counted by what was told, these are not.
    with PrivacyLedger(10.5 * epsilon, rule=rule) as ledger:
        accepted = [bool(ledger.release(law, [[code % 5]], ["ann"]).accepted[0]) for code in range(12)]
        assert accepted == [True] * 10 + [False] * 2
        charged = ledger.realized_loss(["ann"])[0]
        assert 10 * epsilon <= charged <= 10 * epsilon * (1 + 1e-12)
        assert ledger.verify().ok
        with pytest.raises(ValueError, match="`part` must be"):
            ledger.release(law, [[0]], ["bob"], part="job")


@pytest.mark.slow
def test_softmax_answers_classes_and_bits_of_a_part_are_added_to_no_less_than_the_truth():
    """All speak of the same block: by the joint law of a record they could cost less than their sum, but never more.

    Of a product of likelihoods, the largest value is at most the product of their largest, and the least at least that
    of their least. So what is added up bounds the joint loss, whatever the groups have in common.
    """
    jobs = ("a", "b", "c")
    domain = Columns.of({"x": Column(-1.0, 1.0), jobs: OneHot(3)})
    records = np.array([[x, *own] for x in np.linspace(-1, 1, 21) for own in np.eye(3)])
    region, rng, room = region_of(domain), np.random.default_rng(0), []
    assert np.array_equal(region.move(records), records)
    for _ in range(6):
        coef = rng.uniform(-2, 2, (3, 4))
        regressions = []
        for kind in ("linear", "logistic", "linear"):
            own = rng.uniform(-1, 1, 4)
            low, high = region.range_of(own)
            regressions.append(RegressionQuery(kind, own, 0.0, (0, 1) if kind == "logistic" else (low, high), 0.5))
        softmax = [SoftmaxQuery(coef, np.zeros(3), of_class, 0.5) for of_class in (0, 0, 2)]
        asked = [*regressions, *softmax, ClassQuery(coef, np.zeros(3), 0.5)]
        outputs = [int(rng.integers(query.n_outputs)) for query in asked]
        laws = [RandomizedResponse(0.5, 3), UnaryEncoding(0.5, 3, "oue"), UnaryEncoding(0.5, 3, "sue")]
        released = [ReleaseQuery.of(law, part="job") for law in laws]
        told = [int(rng.integers(query.n_outputs)) for query in released]
        total = sum(query.log_likelihood(output, records) for query, output in zip(asked, outputs, strict=True))
        of_job = [
            sum(math.log(weight(law, output, code)) for law, output in zip(laws, told, strict=True))
            for code in range(3)
        ]
        total = total + records[:, 1:] @ of_job
        found = realized_loss([*asked, *released], [*outputs, *told], bounds=domain)
        full = sum(query.exact_epsilon for query in [*asked, *released])
        assert np.ptp(total) <= found.upper <= full + 1e-9
        room.append(found.upper - np.ptp(total))
    # The sum is not the joint loss.
    assert max(room) > 0.1


def test_groups_of_answers_that_agree_cost_their_sum():
    x, coef = np.array([[-1.0], [1.0]]), np.array([[40.0], [-40.0]])
    asked = [
        RegressionQuery("linear", [1.0], 0.0, (-1, 1), 0.5),
        SoftmaxQuery(coef, np.zeros(2), 0, 0.4),
        ClassQuery(coef, np.zeros(2), 0.3),
    ]
    law, outputs = RandomizedResponse(0.2, 2), [1, 1, 0]
    of_x = sum(query.log_likelihood(output, x) for query, output in zip(asked, outputs, strict=True))
    # Whoever has x = 1 has code 0 as well.
    truth = np.ptp(of_x) + math.log(law.law.own_count / law.law.other_count)
    found = realized_loss([*asked, ReleaseQuery.of(law, part="job")], [*outputs, 0], bounds=(-1, 1))
    assert truth > 1.4 - 1e-9
    assert truth - 1e-12 <= found.upper <= 1.4 + 1e-9
