"""Shares of candidate texts: least squares written out, consistency, coverage, collisions, forged reports."""

from functools import cache

import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.stats import binom

from skldp import Collector
from skldp.client import CategoryField, Policy
from skldp.client._text_field import TextField
from skldp.collection import _text_shares
from skldp.collection._text_shares import text_shares
from skldp.mechanisms import RandomizedResponse, ReleaseKey

FIELD = TextField.rappor("word", 4.0)
FEW = TextField.rappor("word", 2.0, n_bits=6, n_hashes=2, n_cohorts=3)
# Frequent, middling and rare candidates, and a tail of 100 texts that are not listed.
SHARES = np.array([0.4, 0.2, 0.1, 0.05, 0.02])
TAIL = np.full(100, (1 - SHARES.sum()) / 100)


@cache
def filters(law, texts):
    """The Bloom filter of each text in each cohort."""
    return np.array(
        [[law.filter_of(text, cohort) for text in texts] for cohort in range(law.n_cohorts)], dtype=np.uint64
    )


def simulated(field, texts, shares, n, rng):
    """Reports of people, with the chances of the law's integers."""
    law = field.law
    k = np.arange(law.n_bits, dtype=np.uint64)
    cohorts = rng.integers(law.n_cohorts, size=n)
    seen = filters(law, tuple(texts))[cohorts, rng.choice(len(texts), n, p=shares)]
    own, other = 1 - law.flip_count / 2**64, law.flip_count / 2**64
    told = rng.random((n, law.n_bits)) < np.where(seen[:, None] >> k & np.uint64(1), own, other)
    return cohorts.astype(np.uint64) << np.uint64(law.n_bits) | (told << k).sum(axis=1, dtype=np.uint64)


@cache
def repeated(n, n_repeats, first):
    """Errors, standard errors and coverage of surveys of different texts, of which the first ones are not listed."""
    errors, stated, held = [], [], []
    for seed in range(n_repeats):
        texts = [f"{seed} {i}" for i in range(len(SHARES) + len(TAIL))]
        answers = simulated(FIELD, texts, np.concatenate([SHARES, TAIL]), n, np.random.default_rng([seed, n]))
        truth = np.append(SHARES[first:], 0.0)
        truth = np.append(truth, 1 - truth.sum())
        found = text_shares(FIELD, answers, [*texts[first : len(SHARES)], f"{seed} nobody"], 0.95)
        errors.append(found.values - truth)
        stated.append(found.standard_errors)
        held.append((found.low <= truth) & (truth <= found.high))
    return np.array(errors), np.array(stated), np.array(held)


def test_shares_and_errors_are_those_of_least_squares_written_out():
    law, candidates = FEW.law, ["a", "b", "c", "absent", "missing"]
    answers = simulated(FEW, ["a", "b", "c", "d"], [0.5, 0.3, 0.1, 0.1], 3_000, np.random.default_rng(0))
    c, k, n = law.n_cohorts, law.n_bits, len(answers)
    design = np.zeros((c * k, 6))
    design[:, 5] = 1 - (5 / 6) ** 2
    for cohort in range(c):
        for j, text in enumerate(candidates):
            design[cohort * k : (cohort + 1) * k, j] = list(map(int, f"{law.filter_of(text, cohort):06b}"))
    own, other = 1 - law.flip_count / 2**64, law.flip_count / 2**64
    rows = np.zeros((n, c * k))
    for row, answer in zip(rows, answers.tolist(), strict=True):
        cohort = answer >> k
        told = np.array(list(map(int, f"{answer & 63:06b}")))
        row[cohort * k : (cohort + 1) * k] = c * (told - other) / (own - other)
    found = text_shares(FEW, answers, candidates, 0.95)
    mean = rows.mean(axis=0)
    np.testing.assert_allclose(found.values, nnls(design, mean)[0], atol=1e-9)
    assert found.labels == (*candidates, "(other texts)")
    inverse = np.linalg.inv(design.T @ design)
    scores = rows @ design @ inverse
    assert scores.mean(axis=0).min() < -0.01
    assert found.values.min() == 0
    covariance = np.cov(rows.T) / n
    residual = mean - design @ scores.mean(axis=0)
    unexplained = residual @ residual - np.trace(covariance) + np.trace(design @ inverse @ design.T @ covariance)
    misfit = max(unexplained, 0) / (c * k - 6) * np.diag(inverse)
    assert unexplained > 0
    np.testing.assert_allclose(found.standard_errors**2, scores.var(axis=0, ddof=1) / n + misfit, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "n_repeats"), [(2_000, 60), (20_000, 60), (200_000, 15)])
def test_shares_are_unbiased_within_their_errors_for_any_number_of_people(n, n_repeats):
    errors, stated, _ = repeated(n, n_repeats, 0)
    # Rare and absent texts are biased upwards, by less than their standard error.
    frequent = errors[:, :3]
    assert (np.abs(frequent.mean(axis=0)) < 4.5 * frequent.std(axis=0, ddof=1) / np.sqrt(n_repeats)).all()
    assert (np.abs(errors.mean(axis=0)) < stated.mean(axis=0)).all()
    assert stated[:, :3].mean() < 1.1 * np.sqrt(2_000 / n) * repeated(2_000, 60, 0)[1][:, :3].mean()


@pytest.mark.slow
@pytest.mark.parametrize(
    "first", [0, 1], ids=["all frequent texts are listed", "two fifths of the people are not listed"]
)
def test_intervals_hold_the_shares_of_10_000_people(first):
    _, _, held = repeated(10_000, 100, first)
    assert (held.sum(axis=0) >= binom.ppf(1e-6, 100, 0.95)).all()


@pytest.mark.slow
def test_a_list_that_misses_a_frequent_text_says_so_and_has_larger_errors():
    for n in 20_000, 200_000:
        (errors, stated, _), (_, complete, _) = repeated(n, 8, 1), repeated(n, 8, 0)
        # The last share is that of all texts that are not listed.
        assert (np.abs(errors[:, -1]) < 4.5 * stated[:, -1]).all()
        assert (stated[:, 0] > complete[:, 1]).mean() > 0.9
    assert repeated(200_000, 8, 1)[1][:, 0].mean() > 3 * repeated(200_000, 8, 0)[1][:, 1].mean()


def test_candidates_that_collide_in_a_cohort_are_told_apart_by_others():
    law = FEW.law
    texts = [f"{i}" for i in range(200)]
    one, other = next(
        (a, b)
        for a in texts
        for b in texts
        if a < b and sum(law.filter_of(a, j) == law.filter_of(b, j) for j in range(3)) == 2
    )
    answers = simulated(FEW, [one, other], [0.7, 0.3], 50_000, np.random.default_rng(1))
    found = text_shares(FEW, answers, [one, other], 0.95)
    assert (np.abs(found.values - [0.7, 0.3, 0.0]) < 4.5 * found.standard_errors).all()
    single = TextField.rappor("word", 2.0, n_bits=6, n_hashes=2, n_cohorts=1)
    same = next(a for a in texts[1:] if single.law.filter_of(a, 0) == single.law.filter_of("0", 0))
    with pytest.raises(ValueError, match="candidates must differ in their bits"):
        text_shares(
            single, simulated(single, texts[:9], np.full(9, 1 / 9), 100, np.random.default_rng(2)), ["0", same], 0.9
        )


@pytest.mark.parametrize("share", [0.01, 0.1])
def test_forged_reports_move_shares_by_no_more_than_is_said(share):
    """Attack: reports of one cohort with all, no or a candidate's bits."""
    law, rng = FEW.law, np.random.default_rng(3)
    answers = simulated(FEW, ["a", "b", "c"], [0.5, 0.3, 0.2], 5_000, rng)
    honest, n_forged = text_shares(FEW, answers, ["a", "b"], 0.95), int(share * 5_000)
    moves = []
    for cohort in range(3):
        for bits in 0, 63, law.filter_of("a", cohort), law.filter_of("b", cohort):
            forged = np.full(n_forged, (cohort << 6) + bits, dtype=np.uint64)
            moves.append(text_shares(FEW, np.append(answers[n_forged:], forged), ["a", "b"], 0.95).values)
    moved = np.abs(np.array(moves) - honest.values).max(axis=0)
    assert (moved <= honest.moved_by(share)).all()
    assert moved.max() > 0.01


def test_estimates_are_equal_for_any_batches_and_order(monkeypatch):
    answers = simulated(FIELD, ["a", "b"], [0.5, 0.5], 1_000, np.random.default_rng(4))
    whole = text_shares(FIELD, answers, ["a"], 0.95)
    monkeypatch.setattr(_text_shares, "_BITS", 32 * 7)
    parts = text_shares(FIELD, answers[::-1], ["a"], 0.95)
    assert (parts.values.tolist(), parts.standard_errors.tolist()) == (
        whole.values.tolist(),
        whole.standard_errors.tolist(),
    )


@pytest.mark.parametrize(("n_bits", "n_cohorts"), [(8, 1), (70, 3), (33, 65)])
def test_filters_of_any_width_are_read(n_bits, n_cohorts):
    field = TextField.rappor("word", 150.0, n_bits=n_bits, n_cohorts=n_cohorts)
    policy = Policy("words", (field,))
    words, collector = np.random.default_rng(5), Collector(policy)
    for i in range(400):
        collector.add(policy.vector({"word": "ab"[i % 4 == 0]}, words.bytes(8 * (4 + 2 * n_bits))))
    found = collector.frequencies("word", candidates=["a", "b"])
    np.testing.assert_allclose(found.values[:2], [0.75, 0.25], atol=0.2)


@pytest.mark.slow
def test_a_collector_estimates_texts_beside_other_fields():
    city = CategoryField("city", ("Bonn", "Ulm"), RandomizedResponse(2.0, 2).integer_law)
    policy = Policy("words", (FEW, city), memo="permanent", n_sampled=1)
    collector, key = Collector(policy), ReleaseKey(bytes(range(128, 160)))
    for person in range(40):
        collector.add(policy.release({"word": "a"}, secret=key, person=person))
    found = collector.frequencies("word", candidates=["a"])
    assert 0 < found.answered < 1
    assert found.n == round(40 * found.answered)
    for wrong in (None, [], "a", ["a", "a"], ["e\u0301", "\u00e9"], ["a", 1]):
        with pytest.raises(ValueError, match="candidates must be"):
            collector.frequencies("word", candidates=wrong)
    with pytest.raises(ValueError, match="at most 2"):
        collector.frequencies("word", candidates=list(map(str, range(10**6))))
    with pytest.raises(ValueError, match="candidates must be None"):
        collector.frequencies("city", candidates=["Ulm"])
    for options in {"by": "city"}, {"where": {"city": "Ulm"}}, {"consistent": None}:
        with pytest.raises(ValueError, match="Texts take neither"):
            collector.frequencies("word", candidates=["a"], **options)
    for estimate in collector.mean, collector.histogram, collector.quantiles:
        with pytest.raises(ValueError, match="with candidates for texts"):
            estimate("word")
    with pytest.raises(ValueError, match="at least 2 reports"):
        Collector(policy).frequencies("word", candidates=["a"])
    assert "word" in collector.page()
    assert collector.to_frame()["word"].notna().sum() == found.n


def test_a_long_list_of_absent_texts_takes_from_the_others_but_not_from_their_interval():
    """Attack: 60 candidates that no one has, for a share of others that is 0 although a fifth is not listed."""
    values, held = [], []
    for seed in range(20):
        texts = [f"{seed} {i}" for i in range(3)]
        answers = simulated(FIELD, texts, [0.5, 0.3, 0.2], 3_000, np.random.default_rng([seed, 5]))
        found = text_shares(FIELD, answers, [*texts[:2], *(f"{seed} absent {i}" for i in range(60))], 0.95)
        values.append(found.values[[0, 1, -1]])
        held.append(found.low[-1] <= 0.2 <= found.high[-1])
    assert sum(held) >= binom.ppf(1e-6, 20, 0.95)
    frequent = np.array(values)[:, :2] - [0.5, 0.3]
    assert (np.abs(frequent.mean(axis=0)) < 0.02).all()
    assert np.mean(values, axis=0)[-1] < 0.1
