"""The multinomial protocol: what it learns, from one release of each person."""

import json

import numpy as np
import pytest
from laws import seeded
from scipy import special

from skldp.learning import ClassificationProtocol, Person, Report, n_people_needed
from skldp.learning._person import simulate
from skldp.learning._tasks import Task
from skldp.learning._vectors import contrasts
from skldp.mechanisms import noise_from

LOGITS = np.array([[0.0, 2.0, 0.0, 1.0], [0.3, -2.0, 1.0, 0.0], [-0.2, 0.0, -3.0, 0.5]])


def people(n, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    scores = np.column_stack([np.ones(n), X]) @ LOGITS[:n_classes].T * 2 + rng.gumbel(size=(n, n_classes))
    return X, scores.argmax(axis=1).astype(float)


def protocol(n, n_classes=3, epsilon=4.0, **settings):
    return ClassificationProtocol(3, n, n_classes, epsilon=epsilon, low=[-1] * 3, high=[1] * 3, **settings)


def accuracy(learnt, X, y):
    return np.mean((X @ learnt.coefficients.T + learnt.intercepts).argmax(axis=1) == y)


def best(n_classes, X, y):
    return np.mean((np.column_stack([np.ones(len(X)), X]) @ LOGITS[:n_classes].T).argmax(axis=1) == y)


def log_loss(learnt, X, y):
    logs = special.log_softmax(X @ learnt.coefficients.T + learnt.intercepts, axis=1)
    return -logs[np.arange(len(y)), y.astype(int)].mean()


KINDS = pytest.mark.parametrize("kind", ["rounds", "once"])


@pytest.mark.few(3)
@KINDS
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    ("n", "epsilon", "lost", "told"),
    [(4_000, 2.0, 0.09, 0.25), (20_000, 2.0, 0.04, 0.4), (20_000, 8.0, 0.02, 0.4)],
)
def test_learns_classes_and_their_probabilities(kind, n_classes, n, epsilon, lost, told):
    X, y = people(n, n_classes)
    learnt = protocol(n, n_classes, epsilon, kind=kind)
    simulate(learnt, X, y, seeded())
    assert accuracy(learnt, X, y) > best(n_classes, X, y) - lost
    # In bits, what the features tell of the class beyond its share.
    shares = np.bincount(y.astype(int)) / n
    assert log_loss(learnt, X, y) < -(shares * np.log(shares)).sum() - told


@pytest.mark.few(1)
@KINDS
def test_bounds_are_in_the_units_of_the_data(kind):
    X, y = people(20_000)
    wide, offset = np.array([10.0, 0.2, 1.0]), np.array([5.0, 0.0, -30.0])
    learnt = ClassificationProtocol(3, 20_000, 3, epsilon=4.0, low=offset - wide, high=offset + wide, kind=kind)
    simulate(learnt, X * wide + offset, y, seeded())
    same = protocol(20_000, kind=kind)
    simulate(same, X, y, seeded())
    assert (
        np.mean(
            ((X * wide + offset) @ learnt.coefficients.T + learnt.intercepts).argmax(axis=1)
            == (X @ same.coefficients.T + same.intercepts).argmax(axis=1)
        )
        > 0.999
    )


@pytest.mark.few(2)
@KINDS
def test_one_feature_is_enough(kind):
    X, _ = people(5_000)
    learnt = ClassificationProtocol(1, 5_000, 2, epsilon=4.0, low=[-1], high=[1], kind=kind)
    y = X[:, 0] > 0.2
    simulate(learnt, X[:, :1], y.astype(float), seeded())
    assert np.mean(((X[:, :1] @ learnt.coefficients.T + learnt.intercepts).argmax(axis=1) == 1) == y) > 0.9


def test_settings_are_checked():
    with pytest.raises(ValueError, match="kind"):
        protocol(1_000, kind="twice")


def test_more_people_in_any_order_are_the_same_to_the_bit():
    X, y = people(14_000)
    first = protocol(10_000, kind="once")
    simulate(first, X[:10_000], y[:10_000], seeded())
    task = first.frozen_task
    reports = [task.release(X[i : i + 500], y[i : i + 500], seeded(i // 500)) for i in range(10_000, 14_000, 500)]
    text = first.to_json()
    orders = [ClassificationProtocol.from_json(text) for _ in range(3)]
    orders[0].add(reports)
    for report in reports[::-1]:
        orders[1].add(report)
    orders[2].add(Report.total(reports[3:]))
    orders[2].add(reports[:3])
    states = [one.to_json() for one in orders]
    assert states[0] == states[1] == states[2] != text
    assert all(one.frozen_task == task for one in orders)
    assert accuracy(orders[0], X, y) > accuracy(first, X, y) - 0.01
    before = first.to_json()
    for wrong in (protocol(10_000).first().release(X, y, seeded()), Report(task.hash, 1, (10**9,) * task.n_outputs)):
        with pytest.raises(ValueError, match=r"another task|people can reach"):
            first.add([reports[0], wrong])
    assert first.to_json() == before
    rounds = protocol(2_000)
    simulate(rounds, X[:2_000], y[:2_000], seeded())
    assert rounds.frozen_task is None
    with pytest.raises(ValueError, match="once"):
        rounds.add(reports)


def test_once_asks_few_questions():
    asked = [name for name, _ in protocol(40_000, kind="once")._steps]
    assert asked.count("gradient") == 2
    assert asked[-1] == "gradient"
    assert len(asked) < 20
    everybody = protocol(40_000, kind="once")
    assert everybody._steps[-1][1] > 0.3 * 40_000


@pytest.mark.few(1)
@KINDS
@pytest.mark.parametrize("n", [60, 700])
def test_everybody_answers_one_task_within_the_guarantee(n, kind):
    X, y = people(n)
    learnt = protocol(n, epsilon=3.0, kind=kind)
    devices = [Person(x, target, epsilon=3.0) for x, target in zip(X, y, strict=True)]
    task, asked, costs = learnt.first(), 0, []
    while task is not None:
        costs.append(task.guarantee().epsilon)
        cohort = devices[asked : asked + learnt.n_wanted]
        asked += len(cohort)
        task = learnt.next([Report.from_json(device.answer(task.to_json())) for device in cohort])
    assert asked == n
    assert not any(device.epsilon_left for device in devices)
    assert max(costs) <= learnt.guarantee().epsilon <= 3.0


@pytest.mark.few(1)
@KINDS
def test_tasks_depend_on_reports_alone_and_states_are_documents(kind, monkeypatch):
    """The attack: a radius or a scale that is read from the rows. With the same reports, other rows change nothing."""
    n = 4_000
    X, y = people(n)
    said, texts, repeated = [], [], []
    original = Task.release

    def record(task, X, y, noise, *, rows=None, n_threads=1):
        texts.append(task.to_json())
        said.append(original(task, X, y, noise, rows=rows, n_threads=n_threads))
        return said[-1]

    def replay(task, X, y, noise, *, rows=None, n_threads=1):
        repeated.append(task.to_json())
        return said[len(repeated) - 1]

    first, second = (protocol(n, kind=kind) for _ in range(2))
    monkeypatch.setattr(Task, "release", record)
    simulate(first, X, y, seeded())
    monkeypatch.setattr(Task, "release", replay)
    simulate(second, np.ones((n, 3)), np.zeros(n), noise_from())
    assert repeated == texts
    broken = protocol(n, kind=kind)
    broken.first()
    for report in said:
        broken = ClassificationProtocol.from_json(broken.to_json())
        broken.next(report)
    assert json.loads(broken.to_json()) == json.loads(first.to_json())


def test_of_too_few_people_the_shares_are_learnt():
    X, y = people(400)
    learnt = protocol(400, epsilon=0.5)
    simulate(learnt, X, y, seeded())
    np.testing.assert_array_equal(learnt.coefficients, 0)
    shares = np.exp(learnt.intercepts) / np.exp(learnt.intercepts).sum()
    assert np.abs(shares - np.bincount(y.astype(int)) / 400).max() < 0.6


@KINDS
def test_nobody_need_answer(kind):
    silent = protocol(20_000, kind=kind)
    task = silent.first()
    while task is not None:
        task = silent.next(None)
    np.testing.assert_array_equal(silent.coefficients, 0)
    assert silent.frozen_task is None
    X, y = people(20_000)
    part, asked, noise = protocol(20_000, kind=kind), 0, seeded()
    task = part.first()
    while task is not None:
        cohort = np.arange(asked, asked + max(1, part.n_wanted // 2))
        asked += part.n_wanted
        task = part.next(task.release(X, y, noise, rows=cohort))
    assert accuracy(part, X, y) > best(3, X, y) - 0.05


@pytest.mark.few(2)
@KINDS
@pytest.mark.parametrize("value", [0.0, 5.0])
@pytest.mark.parametrize("epsilon", [1.0, 1000.0])
def test_after_the_first_look_everything_is_total(kind, value, epsilon):
    """Features that are all the same, or all outside, leave nothing to whiten."""
    for n in (2, 50, 400):
        learnt = ClassificationProtocol(2, n, 3, epsilon=epsilon, low=[-1, -1], high=[1, 1], kind=kind)
        simulate(learnt, np.full((n, 2), value), np.arange(n) % 3.0, seeded())
        assert np.isfinite(learnt.coefficients).all()
        assert np.isfinite(learnt.intercepts).all()


def few_people(log_odds, slope, n=2_000, seed=0):
    """Of two classes, the second one rare, and five features of which one tells it."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 5))
    return X, (rng.random(n) < special.expit(log_odds + slope * X[:, 0])).astype(float)


@pytest.mark.slow
@pytest.mark.parametrize(("log_odds", "slope"), [(-1.5, 0.0), (-1.5, 1.0), (-3.0, 1.0)])
def test_few_people_do_not_lose_a_rare_class(log_odds, slope):
    """Where the noise is nearly all there is, the answer is close to that of the classes' shares alone."""
    X, y = few_people(log_odds, slope)
    scores = []
    for number in range(12):
        learnt = ClassificationProtocol(5, 2_000, 2, epsilon=1.0, low=[-1] * 5, high=[1] * 5)
        simulate(learnt, X, y, seeded(number))
        scores.append(accuracy(learnt, X, y))
    assert np.mean(scores) > max(y.mean(), 1 - y.mean()) - 0.04


def test_people_report_at_the_model_that_holds_if_there_is_something_to_learn():
    learnt = protocol(4_000, epsilon=1.0, kind="rounds")
    while learnt.task.form != "class_gradient" or learnt.task.answer != "vector" or learnt._state["step"] == 0:
        learnt.next(None)
    asked_at, estimate = (np.arange(8).reshape(2, 4) + start for start in (1.0, 2.0))
    learnt._state |= {"asked_at": asked_at.tolist(), "beta": estimate.tolist()}
    logits = np.array(learnt._task_of("gradient").matrix)[-3:, 1:-1]
    np.testing.assert_allclose(logits, contrasts(3) @ asked_at[:, 1:])
    np.testing.assert_allclose(learnt.coefficients, contrasts(3) @ estimate[:, 1:])


def test_the_constant_starts_from_the_shares_of_few_people():
    """The model is theirs, as uncertain as they are, by the delta method."""
    learnt = ClassificationProtocol(5, 2_000, 2, epsilon=1.0, low=[-1] * 5, high=[1] * 5)
    task = learnt.first()
    while learnt._steps[learnt._state["step"]][0] != "shares":
        task = learnt.next(None)
    X, y = np.zeros((learnt.n_wanted, 5)), np.zeros(learnt.n_wanted)
    report = task.release(X, y, seeded())
    learnt.next(report)
    shares = np.array(learnt._state["shares"])
    helmert = np.array([[1], [-1]]) / np.sqrt(2)
    change = helmert.T @ np.diag(1 / shares) @ helmert
    change *= np.hypot(task.standard_error(report.n_people), np.sqrt(1 / (2 * report.n_people)))
    np.testing.assert_allclose(np.array(learnt._state["beta"])[:, 0], helmert.T @ np.log(shares))
    np.testing.assert_allclose(learnt._state["shares_error"], change @ change)


def test_what_clipping_takes_is_added_again():
    """A mean clipped gradient of people as the model expects them says that the model is right."""
    learnt = protocol(4_000, epsilon=1.0, kind="rounds")
    learnt._state["asked_at"] = [[-1.0, 0.5, 0.0, 0.2], [2.0, 0.0, 1.0, 0.0]]
    rows = learnt._rows()
    likelihood, turned, model = learnt._likelihood(rows)
    lost, shown = likelihood.clipped(model, 0.3)
    assert np.abs(lost).max() > 0.01
    learnt._keep_rows()
    learnt._learn(turned @ lost, 0.1, 0.3)
    kept, noise, _ = learnt._state["gradients"][-1]
    np.testing.assert_allclose(kept, turned @ likelihood.at_zero(model), atol=1e-12)
    assert noise == pytest.approx(0.1 / shown)


@pytest.mark.few(2)
@KINDS
@pytest.mark.parametrize("seed", [7, 9, 10])
def test_a_hidden_rare_value_moves_no_prediction_far(kind, seed):
    rng = np.random.default_rng(seed)
    X = (rng.random((11_000, 1)) < 0.04).astype(float)
    y = (rng.random(11_000) < special.expit(2 * X[:, 0] - 1)).astype(float)
    learnt = ClassificationProtocol(1, 8_000, 2, epsilon=4.0, low=[-1], high=[1], kind=kind)
    simulate(learnt, X[:8_000], y[:8_000], seeded(seed))
    shares = np.array([1 - y.mean(), y.mean()])
    assert log_loss(learnt, X[8_000:], y[8_000:]) < 0.02 - np.log(shares[y[8_000:].astype(int)]).mean()


def test_impossible_products_leave_the_model_finite():
    """The attack: a report of one product at its largest, whose square hides the prior of all the others."""
    learnt = protocol(5_000, n_classes=2, epsilon=40.0)
    asked = learnt.first()
    while asked is not None:
        sums = [0] * asked.n_outputs
        sums[-1 if asked.form != "products" else -2] = asked._integers[1]
        asked = learnt.next(Report(asked.hash, 1, tuple(sums)))
    assert np.isfinite(learnt.coefficients).all()
    moments = np.array([[0.0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1e10], [0, 0, 1e10, 0]])
    learnt._state["moments"] = [[np.eye(4).tolist(), moments.tolist(), np.ones((4, 4)).tolist()]]
    assert (learnt._moments(np.eye(4)).variances > 0).all()


def test_the_levels_of_a_stage_are_those_of_several_people():
    """With the levels of one person each, twelve classes of 1,500 people were told worse than the largest one."""
    asked = ClassificationProtocol(4, 1_500, 12, epsilon=4.0, low=[-1] * 4, high=[1] * 4)._steps
    levels = [people for name, people in asked if name == "products_levels"]
    assert levels
    assert min(levels) >= 4


def test_people_needed_are_the_number_that_a_fit_uses():
    for n_classes in (2, 10):
        learnt = ClassificationProtocol(64, 1_000, n_classes, epsilon=8.0, low=[-1] * 64, high=[1] * 64)
        assert learnt.n_needed == n_people_needed(64, 8.0, n_classes)


def test_the_priors_are_alike_in_whitened_terms_and_in_columns():
    learnt, width, rows = protocol(4_000, n_classes=2), 0.2, np.eye(4)
    rows[1:, 1:] = np.random.default_rng(0).standard_normal((3, 3)) * 5
    learnt._state |= {"width": width, "center_error": 0.02}
    known, (whitened, columns) = learnt._prior(np.eye(1), rows)
    assert not known[:, 1:].any()
    assert whitened[0, 0, 0] == columns[0, 0, 0] == pytest.approx(12 * 1.5)
    np.testing.assert_allclose(whitened[0, 1:, 1:], np.diag(12 / (4 + (rows[1:, 1:] ** 2).mean(axis=1))), atol=1e-9)
    # Slopes of the columns are those of the whitened terms times their functionals.
    of_columns = rows[1:, 1:].T @ columns[0, 1:, 1:] @ rows[1:, 1:]
    np.testing.assert_allclose(of_columns, np.eye(3) * 12 / (4 + 1 / (3 * width**2)) / width**2, atol=1e-9)
