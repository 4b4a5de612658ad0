"""k of d features within bounds: the enumerated law, unbiased in the original units."""

import itertools
import math

import numpy as np
import pytest
from laws import seeded

from skldp.mechanisms._noise import Noise
from skldp.mechanisms.numeric._additive import Gaussian, Laplace
from skldp.mechanisms.numeric._bounded_features import BoundedFeatures, make_mechanism
from skldp.mechanisms.numeric._unit_mechanisms import Duchi, DuchiVector, Hybrid, ThreeOutputs

LOW, HIGH = (0.0, -3.0, 10.0), (1.0, 5.0, 10.5)


def release(mechanism, n_sampled, stated=1.0):
    return BoundedFeatures(mechanism, LOW, HIGH, n_sampled=n_sampled, stated=stated)


def row_law(bounded, row):
    """All released rows with their probabilities, from the subsets and the law of one feature, by definition."""
    d, k = bounded.n_outputs, bounded.n_sampled
    unit = (np.asarray(row) - bounded.center) / bounded.radius
    law = {}
    for subset in itertools.combinations(range(d), k):
        ones = [bounded.mechanism.output_law(float(unit[j])) for j in subset]
        for picks in itertools.product(*(range(len(outputs)) for outputs, _ in ones)):
            answer, chance = [0.0] * d, 1 / math.comb(d, k)
            for j, (outputs, weights), pick in zip(subset, ones, picks, strict=True):
                answer[j] = float(outputs[pick])
                chance *= weights[pick] / sum(weights)
            law[tuple(answer)] = law.get(tuple(answer), 0.0) + chance
    return law


@pytest.mark.parametrize("make", [Duchi, ThreeOutputs])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_guarantee_of_the_enumerated_rows(make, k):
    bounded = release(make(3.0 / k), k, stated=3.0)
    corners = [*itertools.product(*zip(LOW, HIGH, strict=True)), tuple(bounded.center), (0.2, 1.0, 10.4)]
    laws = [row_law(bounded, row) for row in corners]
    assert len({frozenset(law) for law in laws}) == 1, "every input reaches the same rows"
    found = max(math.log(max(law[row] for law in laws) / min(law[row] for law in laws)) for row in laws[0])
    assert found == pytest.approx(bounded.guarantee().epsilon, rel=1e-9)
    assert 3 * (1 - 1e-6) <= bounded.guarantee().epsilon <= 3
    # One feature alone changes: no more than its own share.
    changed = [row_law(bounded, (value, 1.0, 10.2)) for value in (0.0, 0.5, 1.0)]
    alone = max(math.log(max(law[row] for law in changed) / min(law[row] for law in changed)) for row in changed[0])
    assert alone == pytest.approx(bounded.guarantee().per_feature, rel=1e-9)


@pytest.mark.parametrize(
    ("mechanism", "k"),
    [(Duchi(1.0), 2), (Hybrid(2.0), 1), (Laplace(1.0), 3), (DuchiVector(2.0, 2), 2), (Gaussian(1.0, 1e-3, 3), 3)],
    ids=repr,
)
def test_mean_and_variance_in_the_original_units(mechanism, k):
    bounded = release(mechanism, k)
    row = np.array([[0.9, -2.5, 10.1]])
    drawn = bounded.release(np.repeat(row, 60_000, axis=0), seeded(1)).rows
    variance = bounded.variance(row)[0]
    assert (np.abs(drawn.mean(axis=0) - row[0]) < 5.5 * np.sqrt(variance / 60_000)).all()
    assert drawn.var(axis=0) == pytest.approx(variance, rel=0.1)
    assert (variance <= bounded.worst_variance * (1 + 1e-12)).all()
    assert np.abs(bounded.bias(row)).max() < 1e-13


def test_guarantee_of_joint_mechanisms():
    joint = release(DuchiVector(2.0, 2), 2, stated=2.0).guarantee()
    assert (joint.stated, joint.per_feature) == (2.0, None)
    assert 2 * (1 - 1e-6) <= joint.epsilon <= 2
    gaussian = release(Gaussian(1.0, 1e-5, 3), 3).guarantee()
    assert 0.999e-5 < gaussian.delta <= 1e-5


@pytest.mark.parametrize("n_sampled", [0, 4])
def test_impossible_numbers_of_features_are_refused(n_sampled):
    with pytest.raises(ValueError, match="n_sampled must be a whole number from 1 to 3"):
        release(Duchi(1.0), n_sampled)


def test_a_joint_mechanism_needs_its_number_of_features():
    with pytest.raises(ValueError, match="a multiple of"):
        release(DuchiVector(1.0, 2), 3)


def test_values_beyond_the_bounds_are_moved_and_nan_is_refused():
    bounded = release(make_mechanism("duchi", 20.0), 3)
    far = bounded.release(np.array([[7.0, -99.0, 10.5]]), seeded(0)).rows
    assert far == pytest.approx(np.array([[1.0, -3.0, 10.5]]), abs=1e-6)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        bounded.release(np.array([[0.5, np.nan, 10.2]]), seeded(0))


@pytest.mark.parametrize(("low", "high"), [(0.1, 0.7), (-3.0, 9.0), (1000.0, 1000.001), (-1e35, 1e35)])
def test_single_precision_answers_what_double_precision_does(low, high):
    """Two answers a feature, the same for every input, and as often as for the exact numbers."""
    bounded = BoundedFeatures(Duchi(1.0), (low,) * 3, (high,) * 3, n_sampled=3, stated=3.0)
    rows = np.tile(np.linspace(low, high, 20_001)[:, None], 3).clip(low, high).astype(np.float32)
    single, double = (bounded.release(X, Noise(bytes(32), secure=False)).rows for X in (rows, rows.astype(np.float64)))
    assert single.dtype == np.float32
    width = 2 * bounded.radius[0]
    assert all(len(np.unique(column)) == 2 for column in single.T)
    # One noise, two precisions: both answer alike but where rounding moves a threshold past the noise.
    assert np.mean(np.abs(single - double) > 0.1 * width) < 1e-3
