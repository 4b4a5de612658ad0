"""The protocol: what it learns, from one release of each person, through public documents alone."""

import json
from fractions import Fraction

import numpy as np
import pytest
from laws import seeded

from skldp.learning import Person, RegressionProtocol, Report, n_people_needed, sufficiency
from skldp.learning._constants import DETECTED, LEAST_VARIANCE
from skldp.learning._person import simulate
from skldp.learning._posterior import Moments, combine_moments
from skldp.learning._tasks import Task
from skldp.mechanisms import noise_from
from skldp.mechanisms.vector._privunit import PrivUnitBall
from skldp.mechanisms.vector._privunit_products import PrivUnitProducts

SLOPES = np.array([0.5, -0.3, 0.2])


def people(n, noise=0.05, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    # Features that are nearly one another's copy, as those of real tables.
    X[:, 1] = 0.9 * X[:, 0] + 0.1 * X[:, 1]
    return X, np.clip(X @ SLOPES + 0.15 + noise * rng.standard_normal(n), -1, 1)


def protocol(n, kind="rounds", epsilon=4.0, **settings):
    return RegressionProtocol(3, n, epsilon=epsilon, low=[-1] * 4, high=[1] * 4, kind=kind, **settings)


def score(learnt, X, y):
    return 1 - ((y - X @ learnt.coefficients - learnt.intercept) ** 2).mean() / y.var()


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", ["rounds", "once"])
@pytest.mark.parametrize("n", [2_000, 20_000])
def test_learns(kind, n):
    X, y = people(n)
    learnt = protocol(n, kind)
    simulate(learnt, X, y, seeded())
    clean = 1 - 0.05**2 / y.var()
    # What privacy takes, of the variance: some parts of one over the sufficiency. Gradients go on to the direction that
    # features which are nearly alike leave.
    assert clean - score(learnt, X, y) < (20 if kind == "rounds" else 50) / sufficiency(
        learnt.n_people, learnt.n_features, learnt.epsilon
    )


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["rounds", "once"])
def test_bounds_and_the_intercept_are_in_the_units_of_the_data(kind):
    X, y = people(20_000)
    wide, offset = np.array([10.0, 0.2, 1.0]), np.array([5.0, 0.0, -30.0])
    learnt = RegressionProtocol(
        3, 20_000, epsilon=4.0, low=np.append(offset - wide, 40), high=np.append(offset + wide, 60), kind=kind
    )
    simulate(learnt, X * wide + offset, 50 + 10 * y, seeded())
    same = protocol(20_000, kind)
    simulate(same, X, y, seeded())
    np.testing.assert_allclose(learnt.coefficients, 10 * same.coefficients / wide, rtol=1e-4)
    assert learnt.intercept == pytest.approx(50 + 10 * same.intercept - learnt.coefficients @ offset, rel=1e-4)


def cohorts(learnt, monkeypatch, X, y):
    """Who was asked what."""
    asked, original = [], Task.release

    def release(task, X, y, noise, *, rows=None, n_threads=1):
        asked.append((task, rows))
        return original(task, X, y, noise, rows=rows, n_threads=n_threads)

    monkeypatch.setattr(Task, "release", release)
    simulate(learnt, X, y, seeded())
    return asked


@pytest.mark.few(1)
@pytest.mark.parametrize("n", [37, 5_000, 20_011])
@pytest.mark.parametrize("kind", ["rounds", "once"])
def test_everybody_is_asked_once(kind, n, monkeypatch):
    X, y = people(n)
    asked = cohorts(protocol(n, kind), monkeypatch, X, y)
    assert sorted(np.concatenate([rows for _, rows in asked])) == list(range(n))
    # In an order that has nothing to do with theirs.
    assert not np.array_equal(np.concatenate([rows for _, rows in asked]), np.arange(n))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rounds", "once"])
def test_a_person_who_is_in_two_cohorts_is_caught(kind):
    """The attack: a planner that asks somebody twice, whose epsilon would be twice the one that is promised."""
    X, y = people(4_000)
    learnt = protocol(4_000, kind)
    devices = [Person(x, target, epsilon=4.0) for x, target in zip(X, y, strict=True)]
    task, asked = learnt.first(), 0
    while task is not None:
        cohort = devices[asked : asked + learnt.n_wanted]
        asked += len(cohort)
        task = learnt.next([Report.from_json(device.answer(task.to_json())) for device in cohort])
    assert all(device.epsilon_left == 0 for device in devices)
    assert score(learnt, X, y) > 0.9
    greedy = protocol(4_000, kind).first()
    for device in devices[:5]:
        with pytest.raises(Exception, match="left"):
            device.answer(greedy.to_json())


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["rounds", "once"])
def test_the_guarantee_is_that_of_the_tasks_that_were_asked(kind, monkeypatch):
    X, y = people(5_000)
    for epsilon in (0.8, 3.0):
        learnt = protocol(5_000, kind, epsilon)
        with monkeypatch.context() as patch:
            asked = cohorts(learnt, patch, X, y)
        largest = max(task.guarantee().epsilon for task, _ in asked)
        guarantee = learnt.guarantee()
        assert largest <= guarantee.epsilon <= epsilon == guarantee.stated
        assert guarantee.epsilon <= largest * (1 + 1e-6)
        assert guarantee.unit == "record"
        assert guarantee.delta == 0


@pytest.mark.parametrize("kind", ["rounds", "once"])
def test_tasks_depend_on_reports_alone(kind, monkeypatch):
    """The attack: a radius or a scale that is read from the rows. With the same reports, other rows change nothing."""
    n = 6_000
    said, texts = [], []
    original = Task.release

    def record(task, X, y, noise, *, rows=None, n_threads=1):
        texts.append(task.to_json())
        said.append(original(task, X, y, noise, rows=rows, n_threads=n_threads))
        return said[-1]

    monkeypatch.setattr(Task, "release", record)
    X, y = people(n)
    simulate(protocol(n, kind), X, y, seeded())
    repeated = []

    def replay(task, X, y, noise, *, rows=None, n_threads=1):
        repeated.append(task.to_json())
        return said[len(repeated) - 1]

    monkeypatch.setattr(Task, "release", replay)
    simulate(protocol(n, kind), np.ones((n, 3)), -np.ones(n), noise_from())
    assert repeated == texts


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["rounds", "once"])
def test_goes_on_from_its_document_to_the_bit(kind):
    X, y = people(6_000)
    straight, broken = protocol(6_000, kind), protocol(6_000, kind)
    noise = seeded()
    task, asked = straight.first(), 0
    assert broken.first() == task
    while task is not None:
        cohort = slice(asked, asked + straight.n_wanted)
        asked = cohort.stop
        report = task.release(X[cohort], y[cohort], noise)
        task = straight.next(report)
        broken = RegressionProtocol.from_json(broken.to_json())
        assert broken.next(Report.from_json(report.to_json())) == task
    assert json.loads(broken.to_json()) == json.loads(straight.to_json())
    np.testing.assert_array_equal(broken.coefficients, straight.coefficients)
    other = json.loads(broken.to_json())
    other["plan"][0][1] += 1
    with pytest.raises(ValueError, match="of another protocol"):
        RegressionProtocol.from_json(json.dumps(other))


def test_more_people_in_any_order_are_the_same_to_the_bit():
    X, y = people(26_000)
    first = protocol(20_000, "once")
    simulate(first, X[:20_000], y[:20_000], seeded())
    task, before = first.frozen_task, score(first, X, y)
    reports = [
        task.release(X[i : i + 1_000], y[i : i + 1_000], seeded(i // 1_000)) for i in range(20_000, 26_000, 1_000)
    ]
    text = first.to_json()
    orders = [RegressionProtocol.from_json(text) for _ in range(3)]
    orders[0].add(reports)
    for report in reports[::-1]:
        orders[1].add(report)
    orders[2].add(Report.total(reports[3:]))
    orders[2].add(reports[:3])
    states = [json.loads(one.to_json()) for one in orders]
    assert states[0] == states[1] == states[2]
    assert all(one.frozen_task == task for one in orders)
    assert score(orders[0], X, y) > before - 0.01
    with pytest.raises(ValueError, match="another task"):
        first.add(protocol(20_000).first().release(X, y, seeded()))


@pytest.mark.parametrize("kind", ["rounds", "once"])
def test_cohorts_may_answer_in_part_or_not_at_all(kind):
    X, y = people(20_000)
    learnt, rng = protocol(20_000, kind), np.random.default_rng(1)
    task, asked, step, noise = learnt.first(), 0, 0, seeded()
    while task is not None:
        cohort = np.flatnonzero(rng.random(learnt.n_wanted) < 0.6) + asked
        asked, step = asked + learnt.n_wanted, step + 1
        name = learnt._steps[learnt._state["step"]][0]
        # Of every kind of step but the products some are not answered by anybody.
        nobody = name != "products" and step % 4 == 0
        task = learnt.next(None if nobody else task.release(X, y, noise, rows=cohort))
    assert score(learnt, X, y) > 0.8
    silent = protocol(20_000, kind)
    task = silent.first()
    while task is not None:
        task = silent.next([])
    np.testing.assert_array_equal(silent.coefficients, 0)
    assert silent.intercept == 0


def test_reports_of_another_task_change_nothing():
    X, y = people(5_000)
    learnt = protocol(5_000)
    first = learnt.first()
    second = learnt.next(first.release(X[:50], y[:50], seeded()))
    state = learnt.to_json()
    with pytest.raises(ValueError, match="once"):
        learnt.first()
    with pytest.raises(ValueError, match="another task"):
        learnt.next([second.release(X, y, seeded()), first.release(X, y, seeded())])
    assert learnt.to_json() == state


def test_too_few_people_are_told_how_many_it_takes():
    """Sums of squares of pure noise: n_people_needed is where the gradient of a full fit exceeds them by 4 errors."""
    d, epsilon = 9, 1.0
    n = n_people_needed(d, epsilon)
    variance = float(Fraction(n, 100)) / sufficiency(n, d, epsilon)
    noise = np.sqrt((variance + 1 / (d + 1)) / n) * np.random.default_rng(0).normal(size=(20_000, d + 1))
    assert (noise**2).sum(axis=1).std() == pytest.approx(1 / (d + 1) / DETECTED, rel=0.05)
    X, y = people(200)
    learnt = protocol(200, epsilon=0.5)
    assert learnt.n_needed == n_people_needed(3, 0.5)
    simulate(learnt, X, y, seeded())
    np.testing.assert_array_equal(learnt.coefficients, 0)
    assert abs(learnt.intercept - y.mean()) < 1


def test_people_are_too_few_for_sampling_alone():
    few, enough = (RegressionProtocol(3, n, epsilon=1e3, low=[-1] * 4, high=[1] * 4) for n in (11, 12))
    assert sufficiency(few.n_people, few.n_features, few.epsilon) > 1_000
    assert not few.is_enough
    assert enough.is_enough


@pytest.mark.parametrize("kind", ["rounds", "once"])
def test_a_bound_that_is_never_reached_and_constant_features_are_learnt_around(kind):
    n = 20_000
    X, y = people(n)
    X = np.column_stack([X, np.full(n, 0.25), np.zeros(n)]) * 0.01
    learnt = RegressionProtocol(5, n, epsilon=8.0, low=[-1] * 6, high=[1] * 6, kind=kind)
    simulate(learnt, X, 0.02 * y, seeded())
    assert np.isfinite(learnt.coefficients).all()


@pytest.mark.few(1)
@pytest.mark.parametrize("value", [0.0, 1.0, -1.0])
@pytest.mark.parametrize("kind", ["rounds", "once"])
def test_records_that_are_all_alike_do_no_harm(kind, value):
    n = 3_000
    learnt = protocol(n, kind)
    simulate(learnt, np.full((n, 3), value), np.full(n, value), seeded())
    assert abs(learnt.coefficients.sum() * value + learnt.intercept - value) < 0.5


def naive_moments(rows, reports):
    """The weighted mean of all estimates of every product, from the definition."""
    k = len(rows)
    result = np.empty((k, k))
    for i in range(k):
        for j in range(k):
            top = bottom = 0.0
            for report in reports:
                change = rows @ np.linalg.inv(report.rows)
                pairs = [(change[i, a] * change[j, b], a, b) for a in range(k) for b in range(k)]
                estimate = sum(weight * report.values[a, b] for weight, a, b in pairs)
                variance = sum(weight**2 * report.variances[a, b] for weight, a, b in pairs)
                top, bottom = top + estimate / variance, bottom + 1 / variance
            result[i, j] = top / bottom
    return result


def test_earlier_moments_are_weighted_by_inverse_variance():
    rng = np.random.default_rng(0)
    reports = [Moments(*rng.normal(size=(2, 3, 3)), rng.uniform(1, 2, (3, 3)) * error) for error in (0.01, 0.3)]
    rows = rng.normal(size=(3, 3))
    np.testing.assert_allclose(combine_moments(rows, reports).values, naive_moments(rows, reports), rtol=1e-9)


def test_expected_moments_follow_every_change_of_the_state():
    learnt = RegressionProtocol(3, 4_000, epsilon=4.0, low=[-1] * 4, high=[1] * 4)
    rows = learnt._rows()
    found = [learnt._expected_moments(rows)[0]]
    one = [rows.tolist(), (np.eye(4) + 0.1).tolist(), np.full((4, 4), 0.1).tolist()]
    changes = ("width", [0.2, 0.3, 0.4]), ("center_error", 0.01), ("moments", [one]), ("moments", [one] * 2)
    for name, value in changes:
        learnt._state = learnt._state | {name: value}
        found.append(learnt._expected_moments(rows)[0])
        fresh = RegressionProtocol.from_json(learnt.to_json())
        np.testing.assert_array_equal(found[-1], fresh._expected_moments(rows)[0])
    found += [learnt._expected_moments(rows, 1)[0], learnt._expected_moments(2 * rows, 1)[0]]
    assert len({one.tobytes() for one in found}) == 6
    np.testing.assert_array_equal(found[3], found[5])


@pytest.mark.parametrize(("n", "d", "epsilon"), [(3_000, 10, 1.0), (44_000, 9, 1.0), (44_000, 9, 8.0), (400, 3, 8.0)])
def test_whitening_has_as_many_stages_as_noise_and_levels_permit(n, d, epsilon):
    plan = RegressionProtocol(d, n, epsilon=epsilon, low=[-1] * (d + 1), high=[1] * (d + 1))._steps
    stages = [people for name, people in plan if name == "products"]
    # Each has a sufficiency of about 1 for each term, if the levels are some of its people.
    enough = sufficiency(n, d, epsilon) / n / (d + 1)
    assert len(stages) <= 20
    assert all(people * enough > 0.55 for people in stages)
    share = 0.3 / (1 + 2 / (n * enough))
    # Four people of each stage report levels.
    assert bool(stages) == (share * n * enough > 0.5 and share * n * 0.03 > 4)


def test_noise_of_products_is_what_meets_a_vector():
    protocol = RegressionProtocol(4, 50_000, epsilon=2.0, low=[-1] * 5, high=[1] * 5)
    people, law = protocol._people_of("products"), PrivUnitProducts(6, 2.0)
    # The mean over all people of a name: a number of each of six directions.
    assert protocol._noise_of(6, "products", "products") ** 2 == pytest.approx(6 * law.mean_variance / people)


def test_sufficiency_is_what_it_says():
    across = PrivUnitBall(4, 2.0, 1.0).second_moments()[1]
    assert sufficiency(1_000, 3, 2.0) == pytest.approx(float(Fraction(1_000, 16)) / across)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"kind": "twice"}, "kind"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": True}, "epsilon"),
        ({"low": [-1] * 3}, "low"),
        ({"high": [-1] * 4}, "low"),
    ],
)
def test_settings_are_checked(wrong, match):
    with pytest.raises(ValueError, match=match):
        RegressionProtocol(3, 100, **({"epsilon": 1.0, "low": [-1] * 4, "high": [1] * 4} | wrong))
    for n_features, n_people in ((0, 10), (3, 0), (True, 10), (3, 1.5)):
        with pytest.raises(ValueError, match=r"whole number"):
            RegressionProtocol(n_features, n_people, epsilon=1.0, low=[-1] * 4, high=[1] * 4)
    with pytest.raises(ValueError, match="left for everybody"):
        simulate(protocol(4), *people(5), seeded())


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["once", "rounds"])
def test_a_target_that_features_tell_nothing_of_is_predicted_by_its_mean(kind):
    X, _ = people(20_000)
    y = np.clip(0.5 + 0.2 * np.random.default_rng(1).standard_normal(20_000), -1, 1)
    scores = []
    for seed in range(8):
        learnt = protocol(20_000, kind, epsilon=1.0)
        simulate(learnt, X, y, seeded(seed))
        scores.append(score(learnt, X, y))
    assert np.mean(scores) > -0.03


def test_people_report_at_the_model_that_holds_if_there_is_something_to_learn():
    X, y = people(4_000)
    learnt, asked = protocol(4_000, epsilon=1.0), 0
    learnt.first()
    while learnt.task.form != "gradient" or not np.any(learnt._state["beta"]):
        stop = asked + learnt.n_wanted
        learnt.next(learnt.task.release(X[asked:stop], y[asked:stop], seeded()))
        asked = stop
    reported_at = -np.array(learnt.task.matrix)[-1, 1:-1]
    estimate, nothing = np.array(learnt._state["beta"])[1:], learnt._state["of_priors"][0][0][1:]
    assert not np.any(nothing)
    # Nothing to learn is a model too, without slopes: it has a part in the estimate only.
    ratios = reported_at / estimate
    np.testing.assert_allclose(ratios, ratios[0])
    assert ratios[0] > 1 + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rounds", "once"])
def test_half_of_the_people_cost_no_more_than_half_of_the_people(kind):
    """Whoever does not answer is lost, and nothing else."""
    X, y = people(40_000)
    losses = []
    for share, n in ((1.0, 20_000), (0.5, 40_000)):
        for seed in range(3):
            learnt, rng, noise = protocol(n, kind, epsilon=2.0), np.random.default_rng(seed), seeded(seed)
            task, asked = learnt.first(), 0
            while task is not None:
                cohort = np.flatnonzero(rng.random(learnt.n_wanted) < share) + asked
                asked += learnt.n_wanted
                task = learnt.next(task.release(X, y, noise, rows=cohort))
            losses.append(1 - 0.05**2 / y.var() - score(learnt, X, y))
    assert np.mean(losses[3:]) < 2 * np.mean(losses[:3]) + 0.01


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["rounds", "once"])
def test_collectors_of_one_cohort_add_up_to_the_same_bit(kind):
    """Several machines take parts of every cohort: in any order, one or many, the same state."""
    X, y = people(3_000)
    together, apart, backward = protocol(3_000, kind), protocol(3_000, kind), protocol(3_000, kind)
    task, asked = together.first(), 0
    while task is not None:
        people_asked = np.array_split(np.arange(asked, asked + together.n_wanted), 5)
        asked += together.n_wanted
        reports = [task.release(X, y, seeded(i), rows=rows) for i, rows in enumerate(people_asked) if len(rows)]
        texts = [report.to_json() for report in reports]
        halves = [Report.total(part) for part in (reports[:2], reports[2:]) if part]
        task = together.next(reports)
        assert apart.next(halves[::-1]) == task == backward.next([Report.from_json(text) for text in texts[::-1]])
    assert together.to_json() == apart.to_json() == backward.to_json()


def test_the_mean_alone_is_told_within_wide_bounds():
    """With too few people for slopes, a target far from the middle of bounds that are far wider than it."""
    rng = np.random.default_rng(0)
    y = 0.6 + 0.02 * rng.standard_normal(2_000)
    misses = []
    for seed in range(20):
        learnt = RegressionProtocol(30, 2_000, epsilon=1.0, low=[-1] * 31, high=[1] * 31)
        simulate(learnt, np.zeros((2_000, 30)), y, seeded(seed))
        np.testing.assert_array_equal(learnt.coefficients, 0)
        misses.append(learnt.intercept - 0.6)
    # About that of one number within the declared bounds from everybody.
    assert np.sqrt(np.mean(np.square(misses))) < 1.2 * Task(
        1.0, (-1, -1), (1, 1), "linear", ((0, 0, 1),), "number", 1.0
    ).standard_error(2_000)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rounds", "once"])
def test_a_large_epsilon_is_no_worse(kind):
    """Of many products noise is far more than of a gradient's numbers."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (5_000, 6))
    y = X @ [0.3, -0.2, 0.1, 0.1, -0.1, 0.1] + 0.05 * rng.standard_normal(5_000)
    scores = []
    for epsilon in (8.0, 20.0, 60.0, 200.0):
        learnt = RegressionProtocol(6, 5_000, epsilon=epsilon, low=[-1] * 7, high=[1] * 7, kind=kind)
        simulate(learnt, X, y, seeded())
        scores.append(score(learnt, X, y))
    assert min(scores[1:]) > scores[0] - 0.001


def test_a_radius_about_an_uncertain_centre_holds_its_error():
    """Narrower ones reach a distant mean in more steps than there are."""
    learnt = protocol(3_000, epsilon=1.0)
    learnt._state |= {
        "target_error": 0.09,
        "levels": {"target": {"top": 2.0, "shares": [0.0] * 19 + [1.0], "people": 10**6}},
    }
    assert learnt._task_of("target").radius == pytest.approx(0.3)


def test_sampling_counts_among_the_errors_of_the_targets_mean():
    asked = RegressionProtocol(5, 20_000, epsilon=20.0, low=[-1] * 6, high=[1] * 6)._steps
    assert dict(asked)["residual"] > 1_500


def test_radii_of_gradients_grow_with_people():
    few, many = (protocol(n, epsilon=8.0) for n in (2_000, 10**12))
    assert few._task_of("gradient").radius < many._task_of("gradient").radius / 2


def test_no_record_exceeds_the_top_level():
    learnt = protocol(1_000)
    corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * 4)).reshape(4, -1).T
    for name in dict(learnt._steps):
        if name.endswith("_levels"):
            task = learnt._task_of(name)
            assert np.linalg.norm(task._vectors(corners), axis=1).max() <= 1 + 1e-9
            assert np.log2(task.radius).is_integer()


def test_correlations_are_expected_so_small_that_all_directions_vary_alike():
    learnt = RegressionProtocol(9, 5_000, epsilon=2.0, low=[-1] * 10, high=[1] * 10)
    _, variances, _ = learnt._expected_moments(learnt._rows())
    np.testing.assert_allclose(np.diag(variances)[1:], LEAST_VARIANCE)
    off_diagonal = variances[1:, 1:][~np.eye(9, dtype=bool)]
    np.testing.assert_allclose(off_diagonal, LEAST_VARIANCE / 10)
    # The largest eigenvalue of a symmetric matrix of such entries is about twice the root of their sum in a row.
    rng = np.random.default_rng(0)
    normal = rng.normal(0, np.sqrt(LEAST_VARIANCE / 10), (200, 9, 9))
    edges = np.linalg.eigvalsh(np.tril(normal, -1) + np.swapaxes(np.tril(normal, -1), 1, 2))[:, -1]
    assert edges.mean() < 1
