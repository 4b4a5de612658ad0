"""Gaussian releases and answers under a budget with a delta: by their zero-concentrated privacy, never beyond it."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from accounting.ledgers import linear
from accounting.released import UNITS, gaussian, rr
from scipy.special import logsumexp

from skldp import PrivacyLedger
from skldp.accounting import ledger_report
from skldp.accounting._query import ReleaseQuery
from skldp.accounting._units import loss_of_zcdp, units_above, zcdp_budget
from skldp.exceptions import LedgerError
from skldp.mechanisms import Gaussian
from skldp.mechanisms.numeric._additive import gaussian_delta
from skldp.mechanisms.numeric._bounded_features import BoundedFeatures


def test_the_room_for_concentrated_privacy_is_that_of_advanced_composition():
    for epsilon, delta in itertools.product((0.01, 1.0, 8.0), (0.3, 1e-6, 1e-30)):
        room = zcdp_budget(epsilon, delta)
        rho = Fraction(room, UNITS)
        # With each rho an epsilon's square over 2.
        spent = math.sqrt(2 * math.log(1 / delta) * 2 * rho) + rho
        assert spent == pytest.approx(epsilon, rel=1e-9)
        assert loss_of_zcdp(room, delta) <= epsilon < loss_of_zcdp(room + 2, delta) + 1e-15


@pytest.mark.parametrize("order", [2, 5])
def test_the_concentrated_privacy_of_the_gaussian_is_that_of_its_integers(order):
    """Renyi divergences of two sampled laws at the ends of a coarse lattice, term by term."""
    mechanism = Gaussian(1.0, 0.2, lattice_bits=2)
    apart, sigma = 2 << mechanism.lattice_exponent, mechanism.sigma
    z = np.arange(-60 * sigma, 60 * sigma + 1, dtype=np.float64)
    mass = -0.5 * (z / sigma) ** 2
    mass -= logsumexp(mass)
    divergence = logsumexp(order * mass[apart:] - (order - 1) * mass[:-apart]) / (order - 1)
    assert order * float(mechanism.zcdp) * 0.99 < divergence <= order * float(mechanism.zcdp) * (1 + 1e-9)


def test_gaussians_are_released_while_their_sum_fits_and_never_beyond(tmp_path, fixed_noise):
    path, epsilon, delta, mechanism = tmp_path / "a.ledger", 1.0, 1e-5, gaussian(0.3, 1e-6)
    ledger = PrivacyLedger(epsilon, path=path, rule="approximate", delta=delta)
    n = zcdp_budget(epsilon, delta) // ReleaseQuery.of(mechanism).zcdp
    assert n >= 3
    released = [ledger.release(mechanism, [[0.2, 0.9]], ["ann"]).accepted.all() for _ in range(n + 2)]
    assert released == [True] * n + [False] * 2
    # n of them together are one Gaussian with a smaller deviation, whose exact delta is known.
    inner = mechanism.mechanism
    sensitivity = math.ldexp(2 * math.sqrt(2), inner.lattice_exponent)
    assert gaussian_delta(inner.sigma / math.sqrt(n), epsilon, sensitivity) <= delta
    loss = ledger.realized_loss(["ann"])
    assert epsilon - 0.3 < loss[0] <= epsilon
    ledger.close()
    # What is promised is in the file.
    report = ledger_report(path, verify=True)
    assert (report["delta"], report["rule"], report["verification"]["ok"]) == (delta, "approximate", True)
    for other in ({"rule": "approximate", "delta": 1e-6}, {"rule": "bayesian"}):
        with pytest.raises(LedgerError, match="must not change"):
            PrivacyLedger(epsilon, path=path, **other)


def test_every_gaussian_of_a_row_and_every_row_of_a_person_counts(fixed_noise):
    each = Gaussian(0.2, 1e-7)
    apart = BoundedFeatures(each, (0.0,) * 3, (1.0,) * 3, n_sampled=3, stated=0.6)
    assert ReleaseQuery.of(apart).zcdp == math.ceil(3 * each.zcdp * UNITS)
    with PrivacyLedger(1.0, rule="approximate", delta=1e-5) as ledger:
        rows = zcdp_budget(1.0, 1e-5) // ReleaseQuery.of(apart).zcdp
        assert rows >= 2
        assert not ledger.release(apart, [[0.5] * 3] * (rows + 1), groups=["ann"] * (rows + 1)).accepted.any()
        assert ledger.release(apart, [[0.5] * 3] * rows, groups=["ann"] * rows).accepted.all()
        assert ledger.verify().ok


def test_a_delta_and_its_rule_go_together():
    for parameters in ({"delta": 1e-6}, {"rule": "approximate"}, {"rule": "basic", "delta": 1e-6}):
        with pytest.raises(ValueError, match="delta must be set"):
            PrivacyLedger(1.0, **parameters)
    with pytest.raises(ValueError, match="below 1/e"):
        PrivacyLedger(1.0, rule="approximate", delta=0.5)


def test_answers_gaussians_and_labels_share_a_budget_with_a_delta(fixed_noise):
    query = linear(1, 0.05)
    with PrivacyLedger(1.0, bounds=(-1, 1), rule="approximate", delta=1e-5) as ledger:
        ledger.release(gaussian(0.3, 1e-6), [[0.2, 0.9]], ["ann"])
        ledger.release(rr(0.1), [[0]], ["ann"])
        outputs = itertools.cycle((0, 1))
        for _ in range(60):
            ledger.answer(query, ["ann", "bob"], lambda people: [next(outputs)] * len(people), repeat=True)
        n_ann, n_bob = (len(ledger.history(person)) for person in ("ann", "bob"))
        # Who has no Gaussian is asked on by the realized loss of answers that cancel.
        assert n_bob == 60
        rho = ReleaseQuery.of(gaussian(0.3, 1e-6)).zcdp + ReleaseQuery.of(rr(0.1)).zcdp
        each = -(-(units_above(query.exact_epsilon) ** 2) // (2 * UNITS))
        assert n_ann == 2 + (zcdp_budget(1.0, 1e-5) - rho) // each
        assert ledger.verify().ok
        assert (ledger.realized_loss(["ann", "bob"]) <= 1.0).all()


@pytest.mark.parametrize("rule", ["basic", "approximate"])
def test_what_is_told_of_concentrated_privacy_is_its_sum_rounded_up(tmp_path, rule, fixed_noise):
    """Against fractions of the mechanisms' own integers, and what (epsilon, delta) makes of them."""
    path, delta, query, label = tmp_path / "a.ledger", 1e-5, linear(1, 0.05), rr(0.1)
    exact = Fraction(label.guarantee().epsilon) ** 2 / 2 + 3 * Fraction(query.exact_epsilon) ** 2 / 2
    settings = {"rule": "basic"} if rule == "basic" else {"rule": rule, "delta": delta}
    with PrivacyLedger(1.0, bounds=(-1, 1), path=path, **settings) as ledger:
        if rule == "approximate":
            ledger.release(gaussian(0.3, 1e-6), [[0.2, 0.9]], ["ann"])
            exact += Fraction(gaussian(0.3, 1e-6).zcdp)
        ledger.release(label, [[0]], ["ann"])
        for _ in range(3):
            ledger.answer(query, ["ann"], lambda people: [1], repeat=True)
        told = ledger.report()["zcdp_quantiles"]["1"]
        assert exact <= Fraction(told) <= exact * (1 + Fraction(1, 10**12))
        if rule == "approximate":
            spent = told + 2 * math.sqrt(told * math.log(1 / delta))
            assert ledger.realized_loss(["ann"])[0] == pytest.approx(spent, rel=1e-12)
        ledger.erase("ann")
        assert Fraction(ledger.report()["zcdp_quantiles"]["1"]) >= exact
    report = ledger_report(path)
    assert report["zcdp_quantiles"]["1"] == pytest.approx(told, rel=1e-12)
