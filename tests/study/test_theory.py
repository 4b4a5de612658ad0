"""The tables against the formulas as the paper prints them, written out without the mechanisms."""

import itertools
import math

import numpy as np
import pytest
from bit_laws import baseline_laws, exact_epsilon, expected_error
from theory_errors import expected_errors, mean_errors
from theory_figures import (
    bit_flips,
    corrected_ratios,
    label_flips,
)

from skldp.domains._domain import Box
from skldp.mechanisms.bits._bit_flip import BitFlip
from skldp.mechanisms.bits._fixed_point import FixedPoint

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


def test_the_exact_law_has_the_least_error_at_its_exact_level():
    rival = baseline_laws(1.0, 100, 10)["f-RR"]
    level = exact_epsilon(rival, 100)
    exact = baseline_laws(level, 100, 10)["f-RR exact"]
    assert exact_epsilon(exact, 100) <= level * (1 + 1e-9)
    assert expected_error(exact, 5) < expected_error(rival, 5)


@pytest.mark.parametrize(
    "name", ["f-RR", "f-RR without bit-awareness", "f-RR exact", "LATENT corrected", "OME corrected"]
)
@pytest.mark.parametrize("n_bits", [4, 5])
def test_exact_epsilon_is_what_a_release_over_all_codes_guarantees(name, n_bits):
    laws = baseline_laws(1.5, 7, n_bits)[name]
    encoding = FixedPoint(n_bits, n_bits // 2)
    ends = np.full(7, math.ldexp(1.0, n_bits // 2))
    release = BitFlip(Box.of(-ends, ends), encoding, laws, n_sampled=7)
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
