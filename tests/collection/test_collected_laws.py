"""Estimates from sets, hashes, Hadamard's reports, bits and numbers told together: scores whose mean is exact."""

import numpy as np
import pytest
from laws import hadamard, hashing, log_likelihood

from skldp import Collector
from skldp.client import Field, Policy
from skldp.collection._answer_scores import CodeScores
from skldp.mechanisms import Column, bitrand
from skldp.mechanisms.categorical._one_hot import SubsetSelection
from skldp.mechanisms.numeric._bounded_features import BoundedFeatures
from skldp.mechanisms.numeric._points import ResponseOnBins
from skldp.mechanisms.numeric._unit_mechanisms import DuchiVector, Hybrid

N_CODES = 11
MECHANISMS = [
    kind(epsilon, N_CODES, *more)
    for kind, *more in ((SubsetSelection,), (hashing,), (hadamard,))
    for epsilon in (0.5, 2.0)
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_the_mean_score_of_a_code_is_1_for_its_own_and_0_for_all_others(mechanism):
    law = mechanism.integer_law
    answers = np.array([one for one in range(law.n_answers) if law.is_answer(one)], dtype=np.uint16)
    chances = np.array(
        [np.exp(log_likelihood(mechanism, answers, np.full(len(answers), code))) for code in range(N_CODES)]
    )
    scores = CodeScores(law)
    each = np.array([scores.scores(answers, code) for code in range(N_CODES)])
    np.testing.assert_allclose(chances @ each.T, np.eye(N_CODES), atol=1e-9)
    assert (each >= scores.low[:, None] - 1e-12).all()
    assert (each <= scores.high[:, None] + 1e-12).all()
    weights = np.random.default_rng(0).normal(size=len(answers))
    sums, squares = scores.sums(answers, weights)
    np.testing.assert_allclose(sums, each @ weights, atol=1e-8)
    np.testing.assert_allclose(squares, each**2 @ weights, atol=1e-7)


@pytest.fixture(scope="module")
def collector():
    columns = tuple(Column(0, 10, name=name) for name in "abc")
    some = BoundedFeatures(Hybrid(2.0), (0.0,) * 3, (1.0,) * 3, n_sampled=2, stated=4.0).integer_law
    bits = bitrand(6.0, ([0.0], [1.0]), calibration="exact", debias=True).integer_law
    bins = ResponseOnBins(3.0, 0.0, 1.0).integer_law
    values = tuple(f"v{i}" for i in range(N_CODES))
    policy = Policy(
        "many laws",
        (
            Field("some", columns, some),
            Field("signs", (Column(0, 1, name="d"), Column(0, 1, name="e")), DuchiVector(2.0, 2).integer_law),
            Field("binary", Column(0.0, 1.0), bits),
            Field("bins", Column(0.0, 1.0), bins),
            Field("hash", Column(values=values), hashing(2.0, N_CODES).integer_law),
            Field("set", Column(values=values), SubsetSelection(2.0, N_CODES).integer_law),
            Field("row", Column(values=values), hadamard(2.0, N_CODES).integer_law),
        ),
    )
    words = np.random.default_rng(7)
    record = {"a": 1.0, "b": 5.0, "c": 9.0, "d": 0.2, "e": 0.8, "binary": 0.7, "bins": 0.5}
    made = Collector(policy)
    for i in range(3000):
        values_of = dict.fromkeys(("hash", "set", "row"), f"v{i % 2}")
        made.add(policy.vector(record | values_of, words.bytes(8 * 80)))
    assert made.counts.accepted == 3000
    return made


def test_sets_of_nobody_are_an_empty_table():
    law = SubsetSelection(1.0, 8).law
    frame = Collector(Policy("x", (Field("set", Column(values=tuple(range(8))), law),))).to_frame()
    assert frame.shape == (0, 8)


def test_means_of_numbers_that_are_told_together(collector):
    frame = collector.to_frame()
    for name, truth in (("a", 1.0), ("b", 5.0), ("c", 9.0), ("d", 0.2), ("e", 0.8), ("binary", 0.7)):
        estimate = collector.mean(name)
        assert estimate.values[0] == pytest.approx(frame[name].mean(), rel=1e-9)
        # The seed is fixed: five standard errors.
        assert abs(estimate.values[0] - truth) < 5 * estimate.standard_errors[0]
    with pytest.raises(ValueError, match="need answers without bias"):
        collector.mean("bins")
    with pytest.raises(ValueError, match="must be one of"):
        collector.mean("some")
    with pytest.raises(ValueError, match="must be one of"):
        collector.mean("binary", by="signs")
    grouped = collector.mean("a", by="set")
    assert len(grouped.labels) == N_CODES


def test_frequencies_of_every_law(collector):
    for name in ("hash", "set", "row"):
        estimate = collector.frequencies(name, consistent=None)
        truth = np.array([0.5, 0.5] + [0.0] * (N_CODES - 2))
        assert (np.abs(estimate.values - truth) < 5 * estimate.standard_errors).all()
        likeliest = collector.frequencies(name, consistent="likelihood").values
        assert likeliest.sum() == pytest.approx(1)
        # The likeliest shares are nearer, as all of them are at least 0.
        assert np.abs(likeliest - truth).sum() < np.abs(estimate.values - truth).sum()
