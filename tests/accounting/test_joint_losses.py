"""Answers about classes beside others about the same record: their joint loss, by every record that attains it."""

import itertools
import math

import numpy as np
import pytest
from accounting.reference import regression_queries
from accounting.released import rr
from hypothesis import given, settings
from hypothesis import strategies as st

from skldp import LabelRR, PrivacyLedger
from skldp.accounting import BayesianPrivacyFilter, RegressionQuery, realized_loss
from skldp.accounting._class_query import ClassQuery, SoftmaxQuery
from skldp.accounting.losses import _realized_loss as losses
from skldp.accounting.losses._joint import JointRegion
from skldp.accounting.losses._region import region_of
from skldp.domains._columns import Columns
from skldp.domains._constraints import Constrained, OneHot
from skldp.mechanisms import Column, RandomizedResponse
from skldp.mechanisms.categorical._one_hot import UnaryEncoding
from skldp.mechanisms.numeric._bounded_features import BoundedFeatures
from skldp.mechanisms.numeric._unit_mechanisms import Duchi

JOBS = ("a", "b", "c")
PEOPLE = Columns.of({"x": Column(-1.0, 1.0), JOBS: OneHot(3)})
RECORDS = np.array([[x, *own] for x in np.linspace(-1, 1, 41) for own in np.eye(3)])
# Who is in which category, as k-ary randomized response releases it.
JOB = ClassQuery(np.eye(4)[1:], np.zeros(3), 0.5)


def added_up(*arguments, **options):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(losses, "_jointly", lambda added, *rest: added)
        return realized_loss(*arguments, **options)


def grid_truth(asked, outputs, records):
    return float(
        np.ptp(sum(query.log_likelihood(output, records) for query, output in zip(asked, outputs, strict=True)))
    )


def linear(coef, epsilon=0.5, domain=PEOPLE):
    low, high = region_of(domain).range_of(np.asarray(coef, dtype=float))
    return RegressionQuery("linear", coef, 0.0, (low, high), epsilon)


@st.composite
def models(draw, n_features, most=3.0):
    """A softmax model's queries: of ordinary, repeated, zero and huge scores."""
    n_classes = draw(st.integers(2, 4))
    number = st.one_of(st.floats(-most, most, allow_subnormal=False), st.sampled_from([0.0, 1.0, -1.0, 40.0]))
    coef = [draw(st.lists(number, min_size=n_features, max_size=n_features)) for _ in range(n_classes)]
    intercept = draw(st.lists(number, min_size=n_classes, max_size=n_classes))
    positions = draw(st.lists(st.integers(0, n_classes - 1), min_size=1, max_size=2))
    epsilon = draw(st.one_of(st.floats(0.05, 4), st.sampled_from([0.01, 20.0])))
    return [SoftmaxQuery(coef, intercept, one, epsilon) for one in positions] + [ClassQuery(coef, intercept, epsilon)]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_every_record_is_in_the_extended_region(data):
    """The attack: a record that an inequality cuts off costs more than is certified. Corners, borders, and ties."""
    kind = data.draw(st.sampled_from(["one-hot", "at most one", "two blocks", "integers", "inequality"]))
    domain = {
        "one-hot": PEOPLE,
        "at most one": Columns.of({"x": Column(-1.0, 1.0), JOBS: OneHot(3, at_most_one=True)}),
        "two blocks": Columns.of({("m", "f"): OneHot(2), ("u", "v"): OneHot(2, at_most_one=True)}),
        "integers": Columns.of(
            {
                "a": Column(-2, 3, kind="integer"),
                "b": Column(0.0, 5.0),
                "c": Column(0, 1, kind="integer"),
                "d": Column(2, 3),
            }
        ),
        "inequality": Constrained(PEOPLE, ((1.0, 1.0, 0.0, 0.0),), (1.0,), (0.0, 1.0, 0.0, 0.0)),
    }[kind]
    region = region_of(domain)
    asked = [*data.draw(models(4)), *data.draw(models(4, most=300.0)), JOB]
    extended = JointRegion.of([(query, 0) for query in asked], region)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    rows = np.concatenate([rng.uniform(-3, 6, (300, 4)), rng.choice([-1.0, 0.0, 1.0, 5.0], (300, 4))])
    moved = extended.move(rows)
    assert (moved[:, :4] == region.move(rows)).all()
    assert (moved >= extended.box[0]).all()
    assert (moved <= extended.box[1]).all()
    assert (moved @ extended.coef.T <= extended.limits).all()
    softmax = [query for query in asked if isinstance(query, SoftmaxQuery)]
    assert extended.slack >= 2 * sum(query.rounding for query in softmax) > 0
    # The queries about extended records have the laws of the answers, but for constants.
    for (query, output), original in zip(extended.answers, asked, strict=True):
        before = original.log_likelihood(0, moved[:, :4])
        after = query.log_likelihood(output, moved)
        assert np.ptp(after - before) <= extended.slack + 1e-12


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(st.data())
def test_truth_certificate_and_sum_are_in_order(data):
    """Over boxes with any model and any answers, with ends, corners and a grid as the records."""
    asked = [*data.draw(models(2)), *data.draw(st.lists(regression_queries(2), min_size=0, max_size=2))]
    outputs = [data.draw(st.integers(0, query.n_outputs - 1)) for query in asked]
    points = np.array(list(itertools.product(np.linspace(-1, 1, 25), repeat=2)))
    found, added = (how(asked, outputs, bounds=(-1, 1), tol=1e-2) for how in (realized_loss, added_up))
    assert grid_truth(asked, outputs, points) <= found.upper + 1e-9
    assert found.lower <= found.upper <= added.upper
    if found.x_high is not None:
        ends = np.stack([found.x_high, found.x_low])
        assert found.lower <= grid_truth(asked, outputs, np.concatenate([ends, points])) + 1e-9


@pytest.mark.slow
def test_the_mixed_history_lies_between_the_truth_and_the_sum():
    """Regressions, classes, probabilities, and k-ary releases of a category, of the same records."""
    rng, room, gain = np.random.default_rng(0), [], []
    for _ in range(4):
        coef = rng.uniform(-2, 2, (3, 4))
        softmax = [SoftmaxQuery(coef, np.zeros(3), of_class, 0.5) for of_class in (0, 0, 2)]
        asked = [linear(rng.uniform(-1, 1, 4)), *softmax, ClassQuery(coef, np.zeros(3), 0.5), JOB, JOB]
        outputs = [int(rng.integers(query.n_outputs)) for query in asked]
        truth = grid_truth(asked, outputs, RECORDS)
        found, added = (how(asked, outputs, bounds=PEOPLE) for how in (realized_loss, added_up))
        exact = realized_loss(asked, outputs, domain=RECORDS)
        assert exact.lower <= truth + 1e-9
        assert truth <= exact.upper <= truth + 1e-9
        assert truth <= found.upper <= added.upper
        room.append(found.upper - truth)
        gain.append(added.upper - found.upper)
    assert np.median(room) < 0.2
    assert np.median(gain) > 0.5


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0, 20.0, 25.0, 30.0])
def test_attack_the_certificate_covers_the_integers_of_a_large_epsilon(epsilon):
    """The linear query of a class has fewer integers than k-ary response: 1.2e-6 too little at an epsilon of 30."""
    one, other = (ClassQuery(sign * np.eye(3), np.zeros(3), epsilon) for sign in (1, -1))
    asked, outputs = [one, other, RegressionQuery("linear", [1.0, 0.0, 0.0], 0.0, (-1, 1), 0.5)], [0, 1, 1]
    truth = grid_truth(asked, outputs, np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 1.0]]))
    found = realized_loss(asked, outputs, bounds=(-1, 1))
    assert found.lower <= truth + 1e-12
    # Logarithms of the grid are off by a few ulps.
    assert truth <= found.upper + 2.0**-48 * (1 + epsilon)
    assert found.upper <= added_up(asked, outputs, bounds=(-1, 1)).upper


def log_of_integers(query, output, records):
    """Log-likelihood by the integers that are sampled, but for a constant."""
    if isinstance(query, ClassQuery):
        law = query.mechanism
        return np.log(
            np.where(query.classes(records) == output, law.law.own_count / 2**63, law.law.other_count / 2**63)
        )
    linear = isinstance(query, RegressionQuery)
    thresholds = query.thresholds(records) if linear else query.share.thresholds(query.unit_response(records)[:, None])
    return np.array([math.log((int(one) if output else 2**64 - int(one)) / 2**63) for one in thresholds])


@pytest.mark.few(7)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0, 30.0])
@pytest.mark.parametrize("seed", range(5))
def test_attack_no_records_differ_by_more_in_the_sampled_integers(seed, epsilon):
    rng = np.random.default_rng(seed)
    coef, slopes = rng.normal(size=(3, 2)) * (1, 30)[seed % 2], rng.normal(size=2)
    reach = float(np.abs(slopes).sum())
    asked = [
        ClassQuery(coef, np.zeros(3), epsilon),
        SoftmaxQuery(coef, np.zeros(3), 1, epsilon),
        RegressionQuery("linear", slopes, 0.0, (-reach, reach), epsilon),
        RegressionQuery("logistic", 20 * slopes, 0.0, (0, 1), 1.0),
    ][: 2 + seed % 3]
    outputs = [int(rng.integers(query.n_outputs)) for query in asked]
    found = realized_loss(asked, outputs, bounds=(-1, 1))
    corners = np.array(list(itertools.product([-1.0, 1.0], repeat=2)))
    records = np.concatenate([rng.uniform(-1, 1, (300, 2)), corners, [found.x_high, found.x_low]])
    truth = np.ptp(sum(log_of_integers(query, one, records) for query, one in zip(asked, outputs, strict=True)))
    assert found.lower - 1e-9 <= truth <= found.upper + 2.0**-48 * (1 + found.upper)


def test_all_answers_about_one_model_are_those_of_a_point_of_the_simplex():
    """Every probability is called large: by itself each can be, together they cannot."""
    coef = 30 * np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    asked = [SoftmaxQuery(coef, np.zeros(3), of_class, 0.6) for of_class in range(3)]
    t, best, worst = math.tanh(0.3), [], []
    for p in itertools.product(np.linspace(0, 1, 61), repeat=2):
        if sum(p) <= 1 + 1e-12:
            total = sum(math.log1p(t * (2 * one - 1)) for one in (*p, 1 - sum(p)))
            best, worst = [*best, total], [*worst, total]
    found = realized_loss(asked, [1, 1, 1], bounds=(-1, 1)).upper
    assert max(best) - min(worst) <= found <= max(best) - min(worst) + 5e-3
    assert found < 0.2 < added_up(asked, [1, 1, 1], bounds=(-1, 1)).upper - 1.5


def test_a_filter_admits_what_opposed_answers_leave():
    """The epsilons and the sum of losses exceed the budget, the joint loss does not."""
    coef = np.array([[3.0, 0, 0, 0], [0.0, 0, 0, 0], [-3.0, 0, 0, 0]])
    asked = [SoftmaxQuery(coef, np.zeros(3), of_class, 0.5) for of_class in (0, 2)]
    for rule, taken in ((realized_loss, True), (added_up, False)):
        with pytest.MonkeyPatch.context() as patched:
            if rule is added_up:
                patched.setattr(losses, "_jointly", lambda added, *rest: added)
            person = BayesianPrivacyFilter(0.9, bounds=PEOPLE)
            for query in asked:
                person.record(query, 1)
            assert person.admits(ClassQuery(coef, np.zeros(3), 0.2)) is taken


@pytest.mark.parametrize("seed", range(5))
def test_attack_no_choice_of_questions_by_earlier_answers_goes_beyond_the_budget(seed):
    """The collector asks the most revealing admitted question, also again, and the answers are the worst ones."""
    rng, budget = np.random.default_rng(seed), (0.3, 1.0, 2.0)[seed % 3]
    pool = [linear(rng.uniform(-1, 1, 4), 0.4), linear(rng.uniform(-1, 1, 4), 0.1), JOB]
    for scale in (1, 100):
        coef = scale * rng.normal(size=(3, 4))
        pool += [ClassQuery(coef, rng.normal(size=3), 0.5), SoftmaxQuery(coef, np.zeros(3), 1, 0.1)]
    person, asked, outputs = BayesianPrivacyFilter(budget, bounds=PEOPLE), [], []
    for _ in range(8):
        admitted = [query for query in pool if person.admits(query)]
        worst = [
            (grid_truth([*asked, query], [*outputs, output], RECORDS), place, output)
            for place, query in enumerate(admitted)
            for output in range(query.n_outputs)
        ]
        if not worst:
            break
        _, place, output = max(worst)
        person.record(admitted[place], output)
        asked, outputs = [*asked, admitted[place]], [*outputs, output]
        assert grid_truth(asked, outputs, RECORDS) <= budget + 1e-12
    assert grid_truth(asked, outputs, RECORDS) > budget / 2


@pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")
def test_a_category_that_is_declared_is_counted_with_questions_about_the_record(tmp_path, fixed_noise):
    """The release is drawn by the mechanism's own law, and verified by code that decided nothing."""
    path, codes = tmp_path / "a.ledger", np.arange(60) % 3
    with PrivacyLedger(3.0, bounds=PEOPLE, path=path) as ledger:
        ledger.declare(features=["x", *JOBS])
        found = ledger.release(rr(0.5), codes[:, None], range(60), part=JOBS)
        assert (found.rows.dtype, found.rows.shape, found.accepted.all()) == (codes.dtype, (60, 1), True)
        entry = ledger.history(7)[0]
        assert (entry["query"].key, entry["output"]) == (JOB.key, found.rows[7, 0])
        label_rr = LabelRR(0.5, classes=list(JOBS), ledger=ledger, part=JOBS)
        labels = label_rr.fit_transform(np.array(JOBS)[codes], ids=range(60))
        assert [entry["output"] for entry in ledger.history(7)] == [found.rows[7, 0], JOBS.index(labels[7])]
        opposed = linear([0.0, 1.0, 0.0, -1.0])
        assert ledger.answer(opposed, range(60), lambda people: np.ones(len(people), dtype=int)).accepted.all()
        loss = ledger.realized_loss(range(60))
        for person in range(60):
            own = ledger.history(person)
            asked, outputs = [one["query"] for one in own], [one["output"] for one in own]
            truth = grid_truth(asked, outputs, RECORDS)
            assert truth - 1e-12 <= loss[person] <= truth + 5e-3
        assert ledger.verify().ok
    with PrivacyLedger.open(path) as again:
        np.testing.assert_allclose(again.realized_loss(range(60)), loss, atol=1e-9)


def test_the_release_of_a_declared_category_is_the_law_of_the_mechanism():
    with PrivacyLedger(25.0, bounds=PEOPLE) as ledger:
        ledger.declare(features=["x", *JOBS])
        # Another code than one's own has a chance of e^-20.
        found = ledger.release(rr(20.0), [[0], [1], [2], [1]], range(4), part=JOBS)
        assert found.rows.ravel().tolist() == [0, 1, 2, 1]
    law = RandomizedResponse(1.3, 3)
    query = ClassQuery(np.eye(4)[1:], np.zeros(3), 1.3)
    assert query.mechanism.code_counts == law.code_counts
    for code in range(3):
        own = np.concatenate([[0.3], np.eye(3)[code]])[None]
        chances = [math.exp(query.log_likelihood(output, own)[0]) * 2**64 for output in range(3)]
        expected = [law.law.own_count if output == code else law.law.other_count for output in range(3)]
        np.testing.assert_allclose(chances, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("mechanism", "part", "match"),
    [
        (rr(0.5), ("a", "b"), "part must be the features of a one-hot block"),
        (rr(0.5), ("b", "a", "c"), "part must be the features of a one-hot block"),
        (rr(0.5, 2), JOBS, "must be a class for each of the 3 features"),
        (UnaryEncoding(0.5, 3, "sue"), JOBS, "part must be the features of a one-hot block"),
        (rr(0.5), ("a", "b", "z"), "declared features"),
        (rr(0.5), ("a", "a", "c"), "part must be the features of a one-hot block"),
        (BoundedFeatures(Duchi(0.5), (0.0,), (1.0,), n_sampled=1, stated=0.5), JOBS, "one-hot block"),
    ],
    ids=["some", "another order", "other classes", "bits", "another name", "twice", "number"],
)
def test_what_is_no_declared_category_is_refused(mechanism, part, match):
    with PrivacyLedger(1.0, bounds=PEOPLE) as ledger:
        ledger.declare(features=["x", *JOBS])
        with pytest.raises(ValueError, match=match):
            ledger.release(mechanism, [[0]], ["ann"], part=part)
        assert ledger.verify().n_releases == 0
