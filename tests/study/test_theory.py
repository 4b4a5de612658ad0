"""The tables against the formulas as the paper prints them, written out without the mechanisms."""

import itertools
import math

import numpy as np
import pytest
import question_groups
from bit_laws import baseline_laws, error_probabilities, exact_epsilon, expected_error, top_k_means
from theory_errors import expected_errors, mean_errors
from theory_figures import (
    bit_errors,
    bit_flips,
    bit_flips_over_bits,
    bit_flips_over_features,
    corrected_ratios,
    label_flips,
)
from theory_table import TheoryTable

from skldp.accounting import RegressionQuery, realized_loss
from skldp.domains._domain import Box
from skldp.mechanisms.bits._bit_flip import BitFlip
from skldp.mechanisms.bits._calibration import exact_bitrand_law
from skldp.mechanisms.bits._fixed_point import FixedPoint
from skldp.mechanisms.bits._flip_laws import latent_laws, ome_laws
from skldp.mechanisms.numeric._unit_mechanisms import Duchi

EPSILONS = [0.1, 1.0, 2.0]


def published_q(epsilon, r, n_bits):
    spread = sum(math.exp(2 * epsilon * i / n_bits) for i in range(n_bits))
    alpha = math.sqrt((epsilon + r * n_bits) / (2 * r * spread))
    a = np.array([alpha * math.exp(i * epsilon / n_bits) for i in range(n_bits)])
    return a / (1 + a)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_bit_flips_are_equation_2_and_the_exact_level_its_log_ratios(epsilon):
    table = bit_flips(EPSILONS, n_features=50).where(mechanism="f-RR", epsilon=epsilon)
    q = published_q(epsilon, 50, 10)
    np.testing.assert_allclose(table.columns["q"], q, rtol=1e-12)
    np.testing.assert_allclose(table.columns["q_top_k"], [q[: k + 1].mean() for k in range(10)], rtol=1e-12)
    np.testing.assert_allclose(table.columns["exact_epsilon"], 50 * np.abs(np.log((1 - q) / q)).sum(), rtol=1e-9)


def test_bit_errors_weigh_bits_as_lemma_1():
    table = bit_errors([1.0], n_features=50).where(mechanism="f-RR")
    weights = np.array([64, *(2.0 ** (5 - i) for i in range(1, 10))])
    np.testing.assert_allclose(table.columns["error"], published_q(1.0, 50, 10) * weights, rtol=1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_figure_11_has_the_least_error_of_f_rr_in_sign_and_integer_bits_and_in_all_top_k_means(epsilon):
    table = bit_errors(EPSILONS, n_features=1000).where(epsilon=epsilon)
    own = table.where(mechanism="f-RR").columns
    rivals = set(table.columns["mechanism"].tolist()) - {"f-RR"}
    assert len(rivals) == 4
    for rival in rivals:
        other = table.where(mechanism=rival).columns
        # The sign and the integer bits 1 to 4; from bit 5 on, Figure 11 calls them comparable.
        assert (own["error"][:5] < other["error"][:5]).all()
        assert (own["error_top_k"] < other["error_top_k"]).all()


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_theorem_4_is_the_sum_of_flip_probability_times_sensitivity(epsilon):
    laws = baseline_laws(epsilon, 768, 10)["f-RR"]
    weights = np.array([64, *(2.0 ** (5 - i) for i in range(1, 10))])
    assert expected_error(laws, 5) == pytest.approx(published_q(epsilon, 768, 10) @ weights)


def test_theorem_4_overstates_the_error_most_at_a_small_value():
    """By enumerating every mask and every code: 2.11 times for values spread evenly, 2.98 times for the worst one."""
    laws = baseline_laws(0.1, 1000, 10)["f-RR"]
    codes = np.arange(1024, dtype=np.uint64)
    bits = (codes[:, None] >> np.arange(9, -1, -1, dtype=np.uint64)) & np.uint64(1)
    q = published_q(0.1, 1000, 10)
    masks = np.where(bits == 1, q, 1 - q).prod(axis=1)
    values = FixedPoint(10, 5).decode(codes)
    errors = np.array([masks @ np.abs(values[codes ^ code] - values[code]) for code in codes])
    assert round(expected_error(laws, 5) / errors.mean(), 2) == 2.11
    assert round(expected_error(laws, 5) / errors.min(), 2) == 2.98
    assert values[errors.argmin()] == -0.4375


def test_theorem_4_prefers_few_features_where_the_others_are_zeros_and_all_where_they_are_coins():
    encoding, r = FixedPoint(10, 5), 768
    ends = np.full(r, 32.0)
    reach = encoding.reachable(-ends, ends)
    released = {k: expected_error((exact_bitrand_law(1.0, encoding, reach, k),), 5) for k in (1, r)}
    coin, zero = encoding.sensitivities.sum() / 2, np.abs(encoding.decode(np.arange(1024, dtype=np.uint64))).mean()
    coins, zeros = ({k: (k * e + (r - k) * rest) / r for k, e in released.items()} for rest in (coin, zero))
    assert coins[r] < coins[1] < 1.0001 * coins[r]
    assert round(zeros[1], 1) == 16.0
    assert round(zeros[r], 1) == 47.9


def test_theorem_1_fails_between_its_two_ends():
    """l = 2, m = 1: a sign bit of sensitivity 4 that moves a magnitude of 1 by 2."""
    encoding = FixedPoint(2, 1)
    values = np.abs(encoding.decode(np.array([0b01, 0b11], dtype=np.uint64)))
    exponent = encoding.sensitivities[0] / values.sum()
    ratio = 0.25 / 0.75
    assert exponent == 2
    assert not ratio <= ratio**exponent


@pytest.mark.parametrize(("n_classes", "beta"), itertools.product([2, 3, 10], [-5.0, -1.0, 0.5]))
def test_theorem_3_needs_a_lower_limit_of_beta(n_classes, beta):
    """The loss of Equation 3 is |beta + ln(C - 1)|: 5 for two classes at beta = -5, whatever epsilon of -5 or more."""
    law = np.full((n_classes, n_classes), 1 / ((1 + math.exp(beta)) * (n_classes - 1)))
    np.fill_diagonal(law, math.exp(beta) / (1 + math.exp(beta)))
    np.testing.assert_allclose(law.sum(axis=1), 1)
    exact = np.log(law.max(axis=0) / law.min(axis=0)).max()
    assert exact == pytest.approx(abs(beta + math.log(n_classes - 1)))
    if (n_classes, beta) == (2, -5.0):
        assert exact == pytest.approx(5.0)


def test_no_event_of_probability_delta_need_hold_all_of_the_loss():
    """Definition 4.7 of the realized loss, and Definition 1 of the embeddings' second form, are only sufficient.

    A coin of epsilon 1.1 is (1, 0.071)-private, but any event outside of which the loss is within 1 is certain.
    """
    coin = np.array([math.exp(1.1), 1.0]) / (1 + math.exp(1.1))
    other = coin[::-1]
    delta = np.maximum(coin - math.e * other, 0).sum()
    assert delta == pytest.approx(0.0714, abs=1e-4)
    events = [list(event) for n in range(3) for event in itertools.combinations(range(2), n)]
    enough = [event for event in events if (np.abs(np.log(coin / other))[np.setdiff1d([0, 1], event)] <= 1).all()]
    assert enough == [[0, 1]]


def test_ratios_of_latent_and_ome_grow_with_the_share_of_a_bit():
    """From 7/8 and 1/2 for a small share towards 1."""
    for laws, limit in ((lambda s: latent_laws(s, 10, 7.0), 0.875), (lambda s: ome_laws(s, 10, 1.0), 0.5)):
        ratios = [exact_epsilon(laws(share), 2) / (20 * share) for share in (1e-4, 0.1, 1.0, 10.0)]
        assert ratios[0] == pytest.approx(limit, rel=1e-4)
        assert (np.diff(ratios) > 0).all()
        assert ratios[-1] < 1


def test_the_exact_law_has_the_least_error_at_its_exact_level():
    rival = baseline_laws(1.0, 100, 10)["f-RR"]
    level = exact_epsilon(rival, 100)
    exact = baseline_laws(level, 100, 10)["f-RR exact"]
    assert exact_epsilon(exact, 100) <= level * (1 + 1e-9)
    assert expected_error(exact, 5) < expected_error(rival, 5)


def test_errors_weigh_zeros_and_ones_alike():
    latent = error_probabilities(latent_laws(1 / 40, 4, 7.0))
    np.testing.assert_allclose(latent, (7 / 8 + 1 / (1 + 7 * math.exp(1 / 40))) / 2, rtol=1e-12)
    ome = error_probabilities(ome_laws(1 / 40, 4, 1.0)[:1])
    np.testing.assert_allclose(ome, (1 / 2 + 1 / (1 + math.exp(1 / 40))) / 2, rtol=1e-12)


def test_top_k_means_are_running_means():
    values = np.array([4.0, 1.0, 3.0])
    assert top_k_means(values).tolist() == [values[: k + 1].mean() for k in range(3)]


@pytest.mark.parametrize(
    "name", ["f-RR", "f-RR without bit-awareness", "f-RR exact", "LATENT corrected", "OME corrected"]
)
@pytest.mark.parametrize("n_bits", [4, 5])
def test_exact_epsilon_is_what_a_release_over_all_codes_guarantees(name, n_bits):
    laws = baseline_laws(1.5, 7, n_bits)[name]
    encoding = FixedPoint(n_bits, n_bits // 2)
    ends = np.full(7, math.ldexp(1.0, n_bits // 2))
    release = BitFlip(encoding, laws, Box.of(-ends, ends), n_sampled=7)
    assert exact_epsilon(laws, 7) == pytest.approx(release.guarantee().epsilon, rel=1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_corrected_rivals_have_the_corrected_level_that_was_asked_for(epsilon):
    r, n_bits = 20, 10
    latent, ome = (baseline_laws(epsilon, r, n_bits)[name] for name in ("LATENT corrected", "OME corrected"))
    total = r * n_bits
    # s from the odds of P(0 -> 1) = 1 / (1 + alpha e^s), then Theorems 5 and 6.
    zero = float(latent[0].ones[0, 0])
    s = math.log((1 - zero) / zero / 7)
    assert 8 * (1 + 7 * math.exp(s)) / (7 * (1 + math.exp(s))) * s * total == pytest.approx(epsilon, rel=1e-6)
    zero = float(ome[0].ones[0, 0])
    s = math.log((1 - zero) / zero)
    # With alpha = 1, Q1 = Q2 = 1/2, whatever s is.
    assert 2 * s * total == pytest.approx(epsilon, rel=1e-6)


def test_probabilities_do_not_depend_on_r_but_the_exact_epsilon_does():
    table = bit_flips_over_features([1.0], n_features=[100, 10_000], bits=[0, 9])
    q = table.columns["q"].reshape(2, 2)
    np.testing.assert_allclose(q[0], q[1], rtol=1e-3)
    exact = table.columns["exact_epsilon"]
    assert exact[2] / exact[0] == pytest.approx(100, rel=1e-3)


def test_longer_codes_cost_in_proportion():
    table = bit_flips_over_bits([1.0], n_bits=[100, 1000]).where(place="sign")
    assert table.columns["exact_epsilon"][1] / table.columns["exact_epsilon"][0] == pytest.approx(10, rel=0.01)
    np.testing.assert_allclose(
        bit_flips_over_bits([2.0], n_features=30, n_bits=[9]).columns["q"],
        published_q(2.0, 30, 9)[[0, 4, 8]],
        rtol=1e-12,
    )


def test_label_flips_are_equation_3():
    table = label_flips([0.1, 3.0], n_classes=[2, 7])
    columns = table.columns
    expected = (columns["n_classes"] - 1) / (np.exp(columns["epsilon"]) + columns["n_classes"] - 1)
    np.testing.assert_allclose(columns["q"], expected, rtol=1e-9)
    assert (columns["exact_epsilon"] <= columns["epsilon"]).all()


def test_corrected_ratios_are_theorems_5_and_6_and_not_what_figure_9_says():
    features = [10, 100, 1000, 10_000]
    over_r = corrected_ratios(n_features=features)
    over_l = corrected_ratios(n_features=[1000], n_bits=[5, 10, 20, 100, 1000])
    latent = np.concatenate([table.where(mechanism="LATENT").columns["ratio"] for table in (over_r, over_l)])
    # The paper says [4.57, 4.75].
    assert round(latent.min(), 3) == 4.571
    assert round(latent.max(), 3) == 4.573
    ome = over_r.where(mechanism="OME").columns
    s = 0.1 / (10 * 10)
    zero = 1 / (1 + 100 * math.exp(s))
    even, odd = 100 / 101, 1 / (1 + 100.0**3)
    first, second = (p * (1 - zero) + zero * (1 - p) for p in (even, odd))
    printed = (100 / first - 100 / second) * math.log(100) + 0.1 / (2 * first) + 0.1 / (2 * second)
    assert ome["ratio"][0] == pytest.approx(printed / 0.1)
    np.testing.assert_allclose(ome["ratio"], [-4.6e5, -4.6e6, -4.6e7, -4.6e8], rtol=2e-3)
    assert (ome["magnitude"] == -ome["ratio"]).all()
    assert over_r.where(mechanism="LATENT").columns["exact_ratio"] == pytest.approx(0.875, rel=1e-3)


def test_expected_errors_of_the_finite_mechanisms_agree_with_closed_forms():
    table = expected_errors([800.0, 2000.0], n_features=1000)
    error = {
        key: table.where(mechanism=key).columns["error"] for key in ("Duchi", "PM", "f-RR", "Laplace", "Constant 0")
    }
    reach = 32 - 1 / 16
    for i, share in enumerate((0.8, 2.0)):
        size = (math.exp(share) + 1) / (math.exp(share) - 1)
        # Mean over x of P(+)(size - x) + P(-)(size + x) = size - x^2 / size.
        x = (np.arange(16) + 0.5) / 8 - 1
        assert error["Duchi"][i] == pytest.approx(reach * np.mean(size - x**2 / size), rel=1e-6)
        assert error["Laplace"][i] == pytest.approx(reach * 2 / share, rel=1e-3)
        assert error["PM"][i] == pytest.approx(reach * np.mean([_piecewise_error(share, v) for v in x]), rel=2e-3)
    assert error["Constant 0"].tolist() == [reach / 2] * 2


def _piecewise_error(epsilon, x):
    """E|M(x) - x| of the Piecewise mechanism by integrating its density."""
    e, t = math.exp(epsilon), math.exp(epsilon / 2)
    f = (e + t) / (t * (e - 1))
    grid = np.linspace(-f * (t + 1), f * (t + 1), 40_001)
    middle = (grid[1:] + grid[:-1]) / 2
    inner = (middle >= f * (x * t - 1)) & (middle <= f * (x * t + 1))
    weights = np.where(inner, e, 1.0)
    return float(np.abs(middle - x) @ weights / weights.sum())


def test_mean_errors_agree_with_a_naive_sum():
    table = mean_errors([4.0], n_samples=100, n_features=3, n_bits=4, n_integer_bits=1, centers=[0.5])
    q = published_q(4.0, 3, 4)
    reach, weights = 1.75, np.array([1, 0.5, 0.25])
    means, squares = [], []
    x = reach * (0.5 + np.linspace(-0.5, 0.5, 257)[:-1] + 0.5 / 256)
    for value in x:
        bits = [1, *(int(abs(value) // w % 2) for w in weights)]
        ones = [1 - p if bit else p for p, bit in zip(q, bits, strict=True)]
        magnitude = float(weights @ ones[1:])
        means.append((2 * ones[0] - 1) * magnitude)
        squares.append(magnitude**2 + sum(w**2 * p * (1 - p) for w, p in zip(weights, ones[1:], strict=True)))
    bias = np.array(means) - x
    variance = np.array(squares) - np.array(means) ** 2
    rmse = math.sqrt(bias.mean() ** 2 + (bias.var() + variance.mean()) / 100)
    assert table.where(mechanism="f-RR").columns["rmse"] == pytest.approx(rmse)
    duchi = np.mean(3 * (Duchi(4.0).variance(x / reach) + (x / reach) ** 2) - (x / reach) ** 2) * reach**2
    hybrid = table.where(mechanism="HM").columns["rmse"]
    assert 0.2 < hybrid / math.sqrt(duchi / 100) < 1.5
    assert table.where(mechanism="Constant 0").columns["exact_epsilon"] == 0


def test_figure_3_and_10_reward_telling_nothing():
    """What the figures compare is met better by a release that is always 0, at epsilon 1."""
    errors = expected_errors([1.0])
    means = mean_errors([1.0], centers=[0.0])
    for table, y in ((errors, "error"), (means, "rmse")):
        assert table.where(mechanism="Constant 0").columns[y] < table.where(mechanism="f-RR").columns[y]


@pytest.mark.parametrize(("center", "below"), [(0.0, [0.1, 0.5, 1.0, 2.0]), (0.5, [])])
def test_figure_10_ranks_f_rr_first_but_for_a_constant_at_the_center(center, below):
    table = mean_errors(centers=[center])
    assert set(table.columns["epsilon"]) == {0.1, 0.5, 1.0, 2.0, 5.0, 10.0}
    for epsilon in np.unique(table.columns["epsilon"]):
        part = table.where(epsilon=epsilon).columns
        rmse = dict(zip(part["mechanism"].tolist(), part["rmse"].tolist(), strict=True))
        constant = rmse.pop("Constant 0")
        assert min(rmse, key=rmse.get) == "f-RR"
        assert (constant < rmse["f-RR"]) == (epsilon in below)


def test_groups_of_questions_are_looser_in_either_extremum_and_agree_with_the_certified_losses():
    rng = np.random.default_rng(0)
    theta = rng.uniform(-1, 1, (12, 10))
    theta /= np.abs(theta).sum(axis=1, keepdims=True)
    answers = rng.integers(0, 2, 12)
    signs = np.where(answers == 1, 1, -1) * np.tanh(0.05) / 2
    answered = signs[:, None] * theta[:, 1:], 0.5 + signs * theta[:, 0]
    queries = [RegressionQuery("linear", row[1:], row[0], output_bounds=(-1, 1), epsilon=0.1) for row in theta]
    together, largest, least, both = (
        question_groups.loss(*answered, *question_groups.READINGS[name])
        for name in ("all together", "largest in groups", "least in groups", "both in groups")
    )
    joint = realized_loss(queries, answers, bounds=(-1, 1))
    assert joint.lower - 1e-6 <= together <= joint.upper + 1e-6
    grouped = realized_loss(queries, answers, bounds=(-1, 1), group_size=10).upper
    assert both == pytest.approx(grouped, abs=2e-3)
    assert both <= grouped + 1e-6
    assert together < min(largest, least)
    assert largest + least == pytest.approx(together + both)
    slack = question_groups.loss(*answered, *question_groups.READINGS["both in groups, slack"])
    assert slack == pytest.approx(both + 4 * 0.01)


def test_table_selects_rows_and_becomes_a_frame():
    table = TheoryTable.of_rows("t", "a, b", [(1, 2), (3, 4)], x="a", y="b")
    assert table.where(a=3).columns["b"].tolist() == [4]
    pytest.importorskip("pandas")
    assert table.to_frame().shape == (2, 2)
