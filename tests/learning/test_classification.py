"""The multinomial protocol: what it learns, from one release of each person."""

import numpy as np
import pytest
from laws import seeded
from scipy import special

from skldp.learning import ClassificationProtocol
from skldp.learning._person import simulate
from skldp.learning._vectors import contrasts

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


@pytest.mark.few(1)
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


def test_people_report_at_the_model_that_holds_if_there_is_something_to_learn():
    learnt = protocol(4_000, epsilon=1.0, kind="rounds")
    while learnt.task.form != "class_gradient" or learnt.task.answer != "vector" or learnt._state["step"] == 0:
        learnt.next(None)
    asked_at, estimate = (np.arange(8).reshape(2, 4) + start for start in (1.0, 2.0))
    learnt._state |= {"asked_at": asked_at.tolist(), "beta": estimate.tolist()}
    logits = np.array(learnt._task_of("gradient").matrix)[-3:, 1:-1]
    np.testing.assert_allclose(logits, contrasts(3) @ asked_at[:, 1:])
    np.testing.assert_allclose(learnt.coefficients, contrasts(3) @ estimate[:, 1:])


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
