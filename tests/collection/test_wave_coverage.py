"""Intervals of laws of two steps hold the truth as often as they say."""

import numpy as np
import pytest
from laws import THRESHOLD, binomial_pvalue

from skldp import Collector
from skldp.client import CategoryField, NumberField, Policy
from skldp.mechanisms import longitudinal_categories, longitudinal_histogram, longitudinal_mean

METHODS = ("hashing", "sue", "krr")
POLICY = Policy(
    "simulated surveys",
    (
        NumberField("hours", 0.0, 1.0, longitudinal_mean(4.0, 3.0)),
        NumberField("age", 0.0, 1.0, longitudinal_histogram(4.0, 3.0, 4, 2)),
        *(CategoryField(one, tuple("abc"), longitudinal_categories(4.0, 3.0, 3, one)) for one in METHODS),
    ),
    memo="permanent",
)
SURVEYS, PEOPLE = 100, 150
# More words than the laws of the policy read.
_RANDOM_BYTES = 8 * 64
TRUTHS = (1 / 2, 1 / 4, 1 / 3, 1 / 3, 1 / 3)


def survey(number):
    """Collect one report each of people who are spread evenly; the noise of a survey is the same in every run."""
    rng = np.random.default_rng(number)
    collector = Collector(POLICY)
    for _ in range(PEOPLE):
        record = {"hours": rng.random(), "age": rng.random()} | {one: "abc"[rng.integers(3)] for one in METHODS}
        collector.add(POLICY.vector(record, rng.bytes(_RANDOM_BYTES)))
    found = [collector.mean("hours"), collector.histogram("age"), *map(collector.frequencies, METHODS)]
    return [(one.low <= truth) & (truth <= one.high) for one, truth in zip(found, TRUTHS, strict=True)]


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say():
    held = [np.array(each) for each in zip(*(survey(number) for number in range(SURVEYS)), strict=True)]
    for of_field in held:
        for cell in of_field.T:
            assert binomial_pvalue(cell.sum(), SURVEYS, 0.95) > THRESHOLD
