import math
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from scipy.stats import binom

from skldp.accounting import shuffled
from skldp.mechanisms import RandomizedResponse
from skldp.mechanisms.numeric._unit_mechanisms import Duchi
from skldp.shuffle import _shuffle_bounds
from skldp.shuffle._blanket_laws import pair_laws
from skldp.shuffle._shuffle_bounds import TwoAnswers


def law_of_sum(chances):
    """Law of a sum of independent bits, exactly."""
    law = [Fraction(1)]
    for chance in chances:
        law = [(1 - chance) * a + chance * b for a, b in zip([*law, 0], [0, *law], strict=True)]
    return law


def worst_delta(low, high, n, odds):
    """Delta over all data sets whose chances are any of five between the ends, by the law of the number itself."""
    between = [low + (high - low) * Fraction(part, 4) for part in range(5)]
    worst = Fraction(0)
    for rest in combinations_with_replacement(between, n - 1):
        for own, other in product(between, repeat=2):
            one, two = law_of_sum([own, *rest]), law_of_sum([other, *rest])
            worst = max(worst, sum(max(Fraction(0), a - odds * b) for a, b in zip(one, two, strict=True)))
    return worst


@pytest.mark.few(2)
@pytest.mark.parametrize("ends", [(Fraction(1, 4), Fraction(3, 4)), (Fraction(1, 20), Fraction(3, 5))])
@pytest.mark.parametrize("rounds", [False, True])
def test_delta_covers_every_data_set_and_is_attained(ends, rounds):
    delta = 0.01
    epsilon, curve = TwoAnswers(*ends, 4).cover(delta, rounds=rounds)
    exact = [float(worst_delta(*ends, 4, Fraction(math.exp(at)))) for at in (epsilon, epsilon * 0.997)]
    assert exact[0] <= delta < exact[1]
    if rounds:
        for odds in (Fraction(1), Fraction(9, 8), Fraction(3, 2)):
            least = float(worst_delta(*ends, 4, odds))
            assert least <= curve(float(odds - 1)) <= least * 1.01 + delta


def counted(n, low, n_high):
    """Laws of the number of second answers with one person more of either extreme, by scipy."""
    others = np.convolve(
        binom.pmf(np.arange(n_high + 1), n_high, 1 - low), binom.pmf(np.arange(n - n_high), n - 1 - n_high, low)
    )
    return np.convolve(others, [low, 1 - low]), np.convolve(others, [1 - low, low])


MECHANISMS = [(Duchi, 2.0, 8_000, 1e-6), (Duchi, 4.0, 20_000, 1e-8), (Duchi, 6.0, 3_000, 1e-6), (Duchi, 0.3, 500, 1e-5)]


@pytest.mark.few(2)
@pytest.mark.parametrize(("kind", "epsilon", "n", "delta"), MECHANISMS)
def test_the_figure_is_at_most_two_hundredths_above_the_exact_one(kind, epsilon, n, delta):
    """The data sets are all that have two extreme laws, at a hundred numbers of people."""
    mechanism = kind(epsilon)
    low = float(pair_laws(mechanism).chances[0])
    found = shuffled(mechanism, n, delta).epsilon
    pairs = [counted(n, low, n_high) for n_high in np.linspace(0, n - 1, 101).astype(int).tolist()]
    both = [*pairs, *((two, one) for one, two in pairs)]
    exact = [max(np.maximum(a - math.exp(at) * b, 0.0).sum() for a, b in both) for at in (found, found / 1.02)]
    assert exact[0] <= delta < exact[1]
    assert shuffled(RandomizedResponse(epsilon, 2), n, delta).epsilon == pytest.approx(found, rel=1e-6)


def test_transforms_and_direct_sums_agree(monkeypatch):
    direct = shuffled(Duchi(2.0), 3_000, 1e-6).epsilon
    monkeypatch.setattr(_shuffle_bounds, "_DIRECT", 1)
    transformed = shuffled(Duchi(2.0), 3_000, 1e-6).epsilon
    assert direct == pytest.approx(transformed, rel=1e-6)
    # The error of the transform is counted.
    assert transformed > direct


@pytest.mark.slow
def test_the_accountant_of_google_agrees_on_our_masses():
    """At the data set that is worst here, the loss distribution of dp_accounting gives the same epsilon."""
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    for epsilon, n, delta in ((2.0, 8_000, 1e-6), (4.0, 5_000, 1e-8)):
        mechanism = Duchi(epsilon)
        low, high = pair_laws(mechanism).chances
        terms = TwoAnswers(low, high, n)._terms(n - 1, n - 1, 1e-20)
        ours = math.log1p(max(one.odds_excess(delta) for one in terms))
        one, two = counted(n, float(low), n - 1)
        seen = np.flatnonzero((one > 0) & (two > 0))
        laws = [dict(zip(seen.tolist(), np.log(law[seen]).tolist(), strict=True)) for law in (one, two)]
        for pessimistic in (True, False):
            found = [
                pld.from_two_probability_mass_functions(
                    *order, pessimistic_estimate=pessimistic, value_discretization_interval=1e-6
                ).get_epsilon_for_delta(delta)
                for order in (laws, laws[::-1])
            ]
            assert max(found) == pytest.approx(ours, abs=1e-6)
