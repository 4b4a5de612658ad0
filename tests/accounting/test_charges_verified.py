"""Verification finds releases that were charged too little: it takes no decision's word."""

from dataclasses import dataclass

import numpy as np
import pytest
from accounting.ledgers import linear
from accounting.released import gaussian, rr

from skldp import PrivacyLedger
from skldp.accounting import _decide as decisions
from skldp.accounting._query import ReleaseQuery
from skldp.accounting.ledger import _ledger_answers as ledger_answers
from skldp.mechanisms import RandomizedResponse


def always(*arguments, **options):
    return True


@pytest.mark.parametrize(
    ("module", "name", "fault"),
    [
        (decisions, "_epsilons_admit", always),
        (decisions, "_losses_admit", always),
        (decisions, "charge_of", lambda query: 0),
        (ledger_answers, "surely_admits", lambda rule, spent, query: np.ones(len(spent), dtype=bool)),
    ],
)
@pytest.mark.parametrize("rule", ["simplified", "bayesian"])
def test_verification_finds_releases_beyond_the_budget(monkeypatch, module, name, fault, rule):
    with PrivacyLedger(1.0, bounds=(-1, 1), rule=rule) as ledger:
        ledger.answer(linear(1, 0.3), ["ann"], lambda people: [1])
        monkeypatch.setattr(module, name, fault)
        for _ in range(2):
            assert ledger.release(rr(0.45), [[0]], ["ann"]).accepted.all()
        assert ledger.verify().problems == ("Release 3 took 1 people ('ann') over their budget of 1.0.",)


def test_verification_finds_gaussians_beyond_the_budget(monkeypatch, fixed_noise):
    monkeypatch.setattr(decisions, "zcdp_budget", lambda epsilon, delta: 2**80)
    with PrivacyLedger(0.5, rule="approximate", delta=1e-6) as ledger:
        for _ in range(3):
            assert ledger.release(gaussian(0.3, 1e-6), [[0.2, 0.9]], ["ann"]).accepted.all()
        problems = ledger.verify().problems
    assert "Release 2 took 1 people ('ann') over their budget of 0.5." in problems
    assert not any("Release 1" in problem for problem in problems)


@dataclass(frozen=True)
class Understated(RandomizedResponse):
    """What a mechanism says of itself is what is charged; here it says the truth of a tenth of its epsilon."""

    def guarantee(self, unit="label"):
        return RandomizedResponse(self.epsilon / 10, self.n_classes).guarantee(unit)


def test_the_price_is_the_guarantees_not_the_parameters():
    assert ReleaseQuery.of(Understated(1.0, 3)).charge == ReleaseQuery.of(rr(0.1)).charge
