"""Reports under the memo rule 'permanent', collected: what is asked for again counts once, and means have no bias."""

import numpy as np

from skldp import Collector
from skldp.client import Field, Policy
from skldp.mechanisms import Column, Piecewise, ReleaseKey

SECRET = ReleaseKey(bytes(range(100, 132))[::-1])


def test_people_who_are_asked_again_are_counted_once_and_without_bias():
    """Coarse steps, between which all values lie: a rounding to the nearest would be off by many standard errors."""
    hours = Field("hours", Column(0.0, 24.0), Piecewise(4.0).integer_law, steps=3)
    policy = Policy("time use", (hours,), memo="permanent")
    truth = np.random.default_rng(0).uniform(8.1, 11.9, 3000)
    collector = Collector(policy)
    for _ in range(2):
        for person, value in enumerate(truth):
            collector.add(policy.release({"hours": value}, secret=SECRET, person=person))
    assert collector.counts.accepted == 3000
    assert collector.counts.doubled == 3000
    estimate = collector.mean("hours")
    error = float(np.ravel(estimate.standard_errors)[0])
    assert abs(float(np.ravel(estimate.values)[0]) - truth.mean()) < 5 * error
    # Of all of them, the nearest step is 8.
    assert truth.mean() - 8 > 10 * error
