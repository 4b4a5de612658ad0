"""Faults that were planted in mechanisms: an audit must see each of them, and nothing in the sound original."""

import math

import numpy as np
import pytest

from skldp.study import audit_epsilon

EPSILON = 1.0
CONFIDENCE = 1 - 1e-6


def rng():
    return np.random.default_rng(5)


def laplace(scale, noise):
    return lambda rows: np.clip(rows, -1, 1) + noise.laplace(scale=scale, size=rows.shape)


def duchi(rows, low, high, noise, clip=True):
    """Two values, each a bound's worth outside: the mean is the clipped row."""
    grown = (math.exp(EPSILON) + 1) / (math.exp(EPSILON) - 1)
    middle, half = (low + high) / 2, (high - low) / 2
    unit = (rows - middle) / np.where(half > 0, half, 1.0)
    unit = np.clip(unit, -1, 1) if clip else unit
    plus = noise.random(rows.shape) < 0.5 + unit / (2 * grown)
    return middle + half * grown * np.where(plus, 1.0, -1.0)


def sound_laplace():
    return laplace(2 / EPSILON, rng())


def sound_duchi():
    noise = rng()
    return lambda rows: duchi(rows, -1.0, 1.0, noise)


def half_the_noise():
    return laplace(1 / EPSILON, rng())


def one_noise_for_every_row():
    noise = rng()
    return lambda rows: np.clip(rows, -1, 1) + noise.laplace(scale=2 / EPSILON, size=rows.shape[1])


def the_same_noise_in_every_call():
    return lambda rows: laplace(2 / EPSILON, rng())(rows)


def the_same_noise_in_two_workers():
    """What a copied generator gives: both halves of a call are released with one stream."""

    def release(rows):
        halves = np.array_split(rows, 2)
        return np.concatenate([laplace(2 / EPSILON, rng())(half) for half in halves])

    return release


def no_clipping():
    noise = rng()
    return lambda rows: duchi(rows, -1.0, 1.0, noise, clip=False)


def bounds_of_the_data():
    noise = rng()
    return lambda rows: duchi(rows, rows.min(axis=0), rows.max(axis=0), noise)


HOW = {
    "plain": {},
    "beside a public row": {"companion": [0.0]},
    "call by call": {"rows_per_call": 1, "n_trials": 1000},
    "call by call, beside a public row": {"companion": [-1.0], "rows_per_call": 1, "n_trials": 1000},
    "outside the domain": {"x": [40.0], "x_prime": [-1.0]},
}


def audit(release, how):
    return audit_epsilon(
        release,
        **{"x": [1.0], "x_prime": [0.5 if "call" in how else -1.0], "seed": 0, "confidence": CONFIDENCE} | HOW[how],
    )


@pytest.mark.parametrize(
    ("fault", "how"),
    [
        (half_the_noise, "plain"),
        (one_noise_for_every_row, "plain"),
        (the_same_noise_in_every_call, "beside a public row"),
        (the_same_noise_in_two_workers, "beside a public row"),
        (no_clipping, "outside the domain"),
        (bounds_of_the_data, "call by call"),
        (bounds_of_the_data, "call by call, beside a public row"),
    ],
)
def test_a_planted_fault_is_caught(fault, how):
    result = audit(fault(), how)
    assert result.epsilon_lower > EPSILON, result


@pytest.mark.parametrize("sound", [sound_laplace, sound_duchi])
@pytest.mark.parametrize("how", HOW)
def test_the_sound_original_is_not_accused(sound, how):
    assert audit(sound(), how).epsilon_lower <= EPSILON
