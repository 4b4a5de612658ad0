"""Duchi's release of one feature is the question what that feature is, counted with all answers about the record."""

import math
from fractions import Fraction

import numpy as np
import pytest
from accounting.ledgers import linear
from accounting.released import rr
from laws import log_likelihood

from skldp import PrivacyLedger
from skldp.accounting import RegressionQuery, realized_loss
from skldp.accounting.ledger._ledger_releases import FeatureQuestion
from skldp.domains._columns import Columns
from skldp.domains._constraints import Constrained, OneHot
from skldp.mechanisms import Column, Laplace, noise_from
from skldp.mechanisms.categorical._one_hot import UnaryEncoding
from skldp.mechanisms.numeric._bounded_features import BoundedFeatures
from skldp.mechanisms.numeric._unit_mechanisms import Duchi

seeded = pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")


def duchi(epsilon=0.5, low=-1.0, high=1.0):
    return BoundedFeatures(Duchi(epsilon), (low,), (high,), n_sampled=1, stated=epsilon)


def opened(budget=1.0, features=("x",), bounds=(-1, 1), **options):
    ledger = PrivacyLedger(budget, bounds=bounds, **options)
    ledger.declare(features=features)
    return ledger


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 0.5, 2.0, 8.0, 24.0])
def test_the_question_is_the_mechanism(epsilon):
    """The same two answers, and at every value the same chances but for rounding, which certificates allow for."""
    law, question = Duchi(epsilon), FeatureQuestion.of(duchi(epsilon), "x", ("x",), (-1, 1))
    for x in (-1.0, -0.9, -0.1, 0.0, 1e-9, 0.3, 0.7, 1.0):
        answers, weights = law.output_law(x)
        chance = Fraction(int(question.query.thresholds([[x]])[0]), 2**64)
        assert abs(chance - Fraction(weights[1], 2**64)) <= Fraction(1, 2**47)
        np.testing.assert_allclose(question.query.estimate([0, 1]), answers, rtol=1e-12)
    # The mechanism's own epsilon is at most what is charged, and that at most what is stated.
    assert question.query.exact_epsilon == pytest.approx(law.exact_epsilon, rel=1e-12)
    assert question.query.exact_epsilon <= law.exact_epsilon <= epsilon


@seeded
def test_what_is_released_is_what_is_recorded():
    ledger, rows = opened(features=("a", "b", "c")), np.linspace(-1, 1, 200)[:, None]
    found = ledger.release(duchi(0.5, -1, 3), rows, range(200), part="b")
    magnitude = 2 * Duchi(0.5).integer_law.magnitude
    assert found.accepted.all()
    assert set(found.rows.ravel().round(9)) <= {round(1 - magnitude, 9), round(1 + magnitude, 9)}
    recorded = [ledger.history(person)[0] for person in range(200)]
    assert [entry["output"] for entry in recorded] == (found.rows.ravel() > 1).tolist()
    assert recorded[0]["query"].coef.tolist() == [0.0, 1.0, 0.0]
    assert ledger.verify().ok


@seeded
@pytest.mark.parametrize(
    ("low", "high", "values", "as_if"),
    [(-5, 5, [5.0, -9.0], [1.0, -1.0]), (-0.5, 0.5, [0.9, -0.6], [0.5, -0.5]), (-1, 1, [3.0, 1e300], [1.0, 1.0])],
)
def test_what_lies_outside_of_either_domain_is_moved_into_both(low, high, values, as_if):
    """The attack: a value that no record has answers more surely than the certificates of losses allow for."""
    question = FeatureQuestion.of(duchi(0.5, low, high), "x", ("x",), (-1, 1))
    given, meant = (question.release(np.repeat(some, 2000), noise_from(3)) for some in (values, as_if))
    assert given[1].tolist() == meant[1].tolist()
    worst = realized_loss([question.query], [1], bounds=(-1, 1)).upper
    ends = question.query.log_likelihood(1, [[-1.0], [1.0]])
    assert abs(ends[1] - ends[0]) <= worst + 1e-12
    assert worst <= question.query.exact_epsilon + 1e-9


@pytest.mark.parametrize("rule", ["simplified", "bayesian"])
def test_opposed_answers_cost_little_and_equal_ones_their_sum(monkeypatch, rule):
    answers = iter([1, 0, 1, 0, 1, 1])
    monkeypatch.setattr(RegressionQuery, "sample", lambda self, X, noise: np.full(len(X), next(answers), np.int8))
    with opened(1.1, rule=rule) as ledger:
        for _ in range(4):
            assert ledger.release(duchi(0.5), [[0.2]], ["ann"], part="x").accepted.all()
        # The sum of epsilons is 2. What is left of opposed answers is 2 ln cosh of half of each epsilon.
        assert ledger.realized_loss(["ann"])[0] == pytest.approx(4 * math.log(math.cosh(0.25)), abs=2e-3)
        assert ledger.release(duchi(0.5), [[0.2]], ["ann"], part="x").accepted.all()
        assert ledger.verify().ok


def test_without_a_part_it_counts_in_full_and_with_basic_composition_as_well():
    for options, part in (({}, None), ({"rule": "basic"}, "x")):
        with opened(**options) as ledger:
            asked = [ledger.release(duchi(0.4), [[0.2]], ["ann"], part=part).accepted.all() for _ in range(3)]
            assert asked == [True, True, False]
            assert ledger.realized_loss(["ann"])[0] == pytest.approx(2 * duchi(0.4).guarantee().epsilon, abs=1e-9)


@seeded
@pytest.mark.slow
def test_a_mixed_history_is_enumerated():
    """A record is one of 5 x values and 3 codes: every log-likelihood of what was told, at every record."""
    x, noise, codes = np.linspace(-1, 1, 5), noise_from(11), range(3)
    laws = [duchi(0.6), duchi(0.3, -0.5, 0.5), duchi(0.6)]
    asked = [
        *(FeatureQuestion.of(law, "x", ("x",), (-1, 1)).query for law in laws),
        linear(-1.0, 0.5), RegressionQuery("logistic", [2.0], 0.3, (0, 1), 0.6),
    ]  # fmt: skip
    labels = [rr(0.5), UnaryEncoding(0.7, 3, "oue"), UnaryEncoding(0.4, 3, "sue")]
    exact, certified, full = [], [], []
    for _ in range(12):
        draws = iter(noise.words(64))
        with opened(50.0) as ledger, pytest.MonkeyPatch.context() as patched:
            # Outputs of the questions are drawn from seeded words; of the others by their own secure noise.
            patched.setattr(
                RegressionQuery, "sample",
                lambda self, X, noise, draws=draws: (next(draws) < self.thresholds(X)).astype(np.int8),
            )  # fmt: skip
            for law in laws:
                ledger.release(law, [[0.25]], ["ann"], part="x")
            for query in asked[3:]:
                ledger.answer(query, ["ann"], lambda people, q=query: q.sample([[0.25]], None))
            for law in labels:
                ledger.release(law, [[1]], ["ann"], part="job")
            loss, history = float(ledger.realized_loss(["ann"])[0]), ledger.history("ann")
            assert ledger.verify().ok
        of_x, of_code = np.zeros(5), np.zeros(3)
        for entry in history[:5]:
            of_x += entry["query"].log_likelihood(entry["output"], x[:, None])
        for law, entry in zip(labels, history[5:], strict=True):
            output = entry["output"]
            told = [[output]] if law is labels[0] else [[output >> code & 1 for code in codes]]
            of_code += [float(np.ravel(log_likelihood(law, told, [code]))[0]) for code in codes]
        exact.append(max(np.add.outer(of_x, of_code).ravel()) - min(np.add.outer(of_x, of_code).ravel()))
        certified.append(loss)
        full.append(sum(entry["query"].epsilon for entry in history))
    assert (np.array(exact) <= np.array(certified) + 1e-12).all()
    assert (np.array(certified) <= np.array(full) + 1e-9).all()
    # The interval has more values than five, and the search stops within its tolerance.
    assert np.max(np.array(certified) - exact) < 0.15


@pytest.mark.parametrize(
    ("domain", "part", "match"),
    [
        (Columns.of({("r", "g"): OneHot(2), "x": Column(-1, 1)}), "r", "must not be in a one-hot block"),
        (
            Constrained(Columns.of({"a": Column(0, 1), "x": Column(0, 1)}), [[1.0, 1.0]], [1.0], [0.0, 0.0]),
            "x",
            "must not be in a one-hot",
        ),
        ((-1, 1), "y", "must be one of the declared features"),
        (None, "x", "must be one of the declared features"),
    ],
    ids=["one-hot", "inequality", "another name", "no domain"],
)
def test_what_is_no_free_feature_is_refused(domain, part, match):
    names = [name for own, _ in domain.parts for name in own] if isinstance(domain, Columns) else ["a", "x"]
    with PrivacyLedger(1.0, bounds=domain) as ledger:
        ledger.declare(features=names)
        with pytest.raises(ValueError, match=match):
            ledger.release(duchi(), [[0.5]], ["ann"], part=part)
        assert ledger.verify().n_releases == 0


def test_other_mechanisms_and_several_numbers_have_no_such_part():
    several = BoundedFeatures(Duchi(0.5), (0.0, 0.0), (1.0, 1.0), n_sampled=2, stated=1.0)
    with opened() as ledger:
        for mechanism in (BoundedFeatures(Laplace(0.5), (0.0,), (1.0,), n_sampled=1, stated=0.5), several):
            with pytest.raises(ValueError, match="`part` must be"):
                ledger.release(mechanism, np.zeros((1, mechanism.domain.n_features)), ["ann"], part="x")
        with pytest.raises(ValueError, match="one row"):
            ledger.release(duchi(), [[0.1], [0.2]], groups=["ann"] * 2, part="x")
        with pytest.raises(ValueError, match="NaN"):
            ledger.release(duchi(), [[math.nan]], ["ann"], part="x")
        assert ledger.verify().n_releases == 0
