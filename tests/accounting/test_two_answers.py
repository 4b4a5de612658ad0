import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from skldp.accounting import shuffled
from skldp.mechanisms import Duchi, Laplace, Piecewise, RandomizedResponse
from skldp.shuffle._blanket_laws import pair_laws
from skldp.shuffle._two_answers import Group, TwoAnswers


def law_of_sum(chances):
    """Law of a sum of independent bits, exactly."""
    law = [Fraction(1)]
    for chance in chances:
        law = [(1 - chance) * a + chance * b for a, b in zip([*law, 0], [0, *law], strict=True)]
    return law


def worst_delta(groups, odds):
    """Delta over all data sets whose chances are any of five between the ends, by the law of the number itself."""
    between = [[g.low + (g.high - g.low) * Fraction(part, 4) for part in range(5)] for g in groups]
    places = [j for j, g in enumerate(groups) for _ in range(g.n)]
    worst = Fraction(0)
    for rest in {tuple(sorted(chosen)) for chosen in product(*(between[j] for j in places[1:]))}:
        for own, other in product(between[0], repeat=2):
            one, two = law_of_sum([own, *rest]), law_of_sum([other, *rest])
            worst = max(worst, sum(max(Fraction(0), a - odds * b) for a, b in zip(one, two, strict=True)))
    return worst


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "groups",
    [
        (Group(Fraction(1, 4), Fraction(3, 4), 4),),
        (Group(Fraction(1, 20), Fraction(3, 5), 4),),
        (Group(Fraction(1, 4), Fraction(3, 4), 2), Group(Fraction(1, 9), Fraction(8, 9), 2)),
        (Group(Fraction(1, 9), Fraction(4, 9), 1), Group(Fraction(1, 3), Fraction(8, 9), 2)),
    ],
)
@pytest.mark.parametrize("rounds", [False, True])
def test_delta_covers_every_data_set_and_is_attained(groups, rounds):
    delta = 0.01
    epsilon, curve = TwoAnswers(groups).cover(delta, rounds=rounds)
    exact = [float(worst_delta(groups, Fraction(math.exp(at)))) for at in (epsilon, epsilon * 0.997)]
    assert exact[0] <= delta < exact[1]
    if rounds:
        for odds in (Fraction(1), Fraction(9, 8), Fraction(3, 2)):
            least = float(worst_delta(groups, odds))
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


@pytest.mark.slow
def test_the_accountant_of_google_agrees_on_our_masses():
    """At the data set that is worst here, the loss distribution of dp_accounting gives the same epsilon."""
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    for epsilon, n, delta in ((2.0, 8_000, 1e-6), (4.0, 5_000, 1e-8)):
        mechanism = Duchi(epsilon)
        group = Group(*pair_laws(mechanism).chances, n)
        terms = TwoAnswers((group,))._terms(((n - 1, n - 1),), [n - 1], 1e-20)
        ours = math.log1p(max(one.odds_excess(delta) for one in terms))
        one, two = counted(n, float(group.low), n - 1)
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


@pytest.mark.slow
def test_other_groups_hide_a_person():
    one, two, n = RandomizedResponse(2.0, 2), RandomizedResponse(1.0, 2), 1_000
    alone, same, other = (shuffled(one, n, 1e-6, others=more).epsilon for more in ([], [(one, n)], [(two, n)]))
    assert same == pytest.approx(shuffled(one, 2 * n, 1e-6).epsilon, rel=1e-2)
    # The answers of people with a smaller epsilon are noisier.
    assert other < same < alone
    both = shuffled(one, n, 1e-6, others=[(two, n)])
    assert "1,000 people, 1,000 others, bounded" in both.basis
    drawn = shuffled(one, 5, 1e-3, others=[(two, 3)], colluding=1, out_of=9)
    assert "5 people, drawn from 9, 3 others, 1 of them colluding, bounded" in drawn.basis
    # Nobody was drawn: all of a group answer.
    assert "drawn" not in shuffled(one, 5, 1e-3, others=[(two, 3)], out_of=5).basis
    assert shuffled(two, n, 1e-6, others=[(one, n)]).epsilon < both.epsilon


@pytest.mark.slow
def test_colluding_people_may_be_of_any_group():
    one, two, n = RandomizedResponse(4.0, 2), RandomizedResponse(0.5, 2), 1_000
    proved = shuffled(one, n, 1e-6, colluding=500, others=[(two, n)]).epsilon
    for own, other in ((n, n - 500), (n - 500, n)):
        assert proved >= shuffled(one, own, 1e-6, others=[(two, other)]).epsilon
    nobody = shuffled(one, n, 1e-6, colluding=500, others=[(two, 400)]).epsilon
    assert nobody == pytest.approx(shuffled(one, 500, 1e-6).epsilon, rel=1e-2)


@pytest.mark.parametrize("mechanism", [RandomizedResponse(1.0, 3), Piecewise(1.0), Laplace(1.0)])
def test_groups_need_two_answers(mechanism):
    with pytest.raises(ValueError, match="every mechanism must have two answers"):
        shuffled(Duchi(1.0), 10, 1e-6, others=[(mechanism, 10)])
    with pytest.raises(ValueError, match="n must be"):
        shuffled(Duchi(1.0), 10, 1e-6, others=[(Duchi(1.0), 0)])
    for others in ([mechanism], (Duchi(1.0), 10), [(Duchi(1.0),)], 5):
        with pytest.raises(ValueError, match="others must be pairs"):
            shuffled(Duchi(1.0), 10, 1e-6, others=others)
