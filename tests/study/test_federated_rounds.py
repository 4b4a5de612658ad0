"""Rounds of federated learning: local steps, and some of the clients."""

import math
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin

from skldp.accounting import shuffled
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import noise_from
from skldp.study import _federated_learning as federated
from skldp.study import federated_learning
from skldp.study._federated_parts import ScoreModel

pytestmark = pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")


class Counting(TransformerMixin, BaseEstimator):
    """A mechanism that adds nothing, and notes each call and its epsilon."""

    # Shared by the clones.
    calls: list = []

    def __init__(self, epsilon=1.0, *, bounds=(-1, 1)):
        self.epsilon = epsilon
        self.bounds = bounds

    def fit_transform(self, X, y=None):
        self.privacy_guarantee_ = PrivacyGuarantee(self.epsilon, stated=self.epsilon)
        low, high = self.bounds
        assert (low <= X).all()
        assert (high >= X).all()
        self.calls.append((self.epsilon, np.array(X)))
        return X


@pytest.fixture
def calls():
    Counting.calls.clear()
    return Counting.calls


def naive_rounds(X, one_hot, clients, theta, *, steps, asked, n_steps, bounds=None):
    """Softmax regression, client by client: the sum of the gradients along a client's own steps, clipped."""
    for step, own in zip(steps, asked, strict=True):
        sent = []
        for u in own:
            local, total = theta.copy(), np.zeros_like(theta)
            members = np.flatnonzero(clients == u)
            for _ in range(n_steps):
                gradient = np.zeros_like(theta)
                for i in members:
                    scores = X[i] @ local
                    gradient += np.outer(X[i], np.exp(scores) / np.exp(scores).sum() - one_hot[i]) / len(members)
                total += gradient
                local -= step * gradient
            sent.append(total if bounds is None else np.clip(total, -bounds, bounds))
        theta = theta - step * np.mean(sent, axis=0)
    return theta


@pytest.mark.parametrize("n_steps", [1, 3])
@pytest.mark.parametrize("bound", [None, 0.02])
def test_training_follows_the_rounds_written_out(iris, n_steps, bound):
    X, y, _, _ = iris
    X, one_hot = federated._with_intercept(X), (y[:, None] == np.unique(y)).astype(float)
    clients = np.sort(np.random.default_rng(0).integers(7, size=len(X)))
    steps, asked = [0.5] * 4, np.array([[0, 3], [6, 2], [1, 5], [3, 4]])
    learner = ScoreModel("softmax", 5, 3)
    theta = np.random.default_rng(1).normal(size=15)
    update = None
    if bound is not None:
        options = {"bound": bound, "release": lambda sent: sent, "of_weights": False}
        update = partial(federated._step_on_releases, **options)
    found = federated._train(learner, theta, X, one_hot, clients, range(4), 0.5, update, asked=asked, n_steps=n_steps)
    expected = naive_rounds(
        X, one_hot, clients, theta.reshape(5, 3), steps=steps, asked=asked, n_steps=n_steps, bounds=bound
    )
    np.testing.assert_allclose(found.reshape(5, 3), expected, atol=1e-12)


@pytest.mark.few(2)
@pytest.mark.parametrize("perturbs", ["nothing", "gradients", "anonymised gradients", "anonymised weights"])
def test_one_step_with_everybody_is_the_plain_run_to_the_bit(iris, perturbs):
    given = {} if perturbs == "nothing" else {"perturbs": perturbs, "mechanism": Counting()}
    settings = {"n_clients": 15, "n_rounds": 4, "seed": 5, **given}
    plain = federated_learning(*iris, learning_rate=0.3, **settings)
    same = federated_learning(*iris, learning_rate=0.3, n_sampled_clients=15, local_steps=1, **settings)
    for name in ("accuracy", "auc", "guarantee", "published_epsilon", "shuffled"):
        assert getattr(plain, name) == getattr(same, name)


@pytest.mark.parametrize(("n_clients", "n_sampled", "n_rounds"), [(10, 3, 7), (10, 10, 3), (7, 4, 5), (5, 1, 12)])
def test_attack_clients_that_are_asked_in_turn_never_release_more_than_is_counted(
    iris, calls, n_clients, n_sampled, n_rounds
):
    """The attack is a client that is drawn by chance in every round, at the share of one that is drawn seldom."""
    asked = federated._asked(n_clients, n_sampled, n_rounds, "gradients", noise_from(0))
    rounds = [range(n_clients)] * n_rounds if asked is None else asked.tolist()
    assert all(len(set(own)) == n_sampled for own in rounds)
    most = int(np.bincount(np.concatenate(rounds), minlength=n_clients).max())
    assert most == math.ceil(n_rounds * n_sampled / n_clients)
    run = federated_learning(
        *iris, perturbs="gradients", mechanism=Counting(), epsilon=2.0, n_clients=n_clients, n_rounds=n_rounds,
        n_sampled_clients=n_sampled, seed=0,
    )  # fmt: skip
    assert [len(X) for _, X in calls] == [n_sampled] * n_rounds
    assert sum(sorted((epsilon for epsilon, _ in calls), reverse=True)[:most]) <= 2.0
    assert run.guarantee.epsilon == pytest.approx(2.0, rel=1e-12)
    assert run.guarantee.basis.startswith(f"{most} rounds")


def test_clients_of_an_anonymiser_are_drawn_anew_in_each_round():
    asked = federated._asked(8, 3, 4_000, "anonymised gradients", noise_from(0))
    assert all(len(set(own)) == 3 for own in asked.tolist())
    pairs = np.zeros((8, 8))
    for now, later in pairwise(asked):
        pairs[np.ix_(now, later)] += 1
    # Taking part now tells nothing of the next round: each pair has 9 of 64 chances; five deviations.
    expected = 3_999 * 9 / 64
    assert abs(pairs - expected).max() < 5 * math.sqrt(expected)


def test_the_draw_is_counted_for_whole_gradients_and_not_for_numbers_one_by_one(iris):
    settings = {"n_clients": 75, "n_rounds": 3, "n_sampled_clients": 25, "seed": 0, "mechanism": Counting()}
    whole = federated_learning(*iris, perturbs="anonymised gradients", **settings)
    once = PrivacyGuarantee(1.0)
    assert whole.guarantee.epsilon == 3.0
    assert whole.shuffled.epsilon == shuffled(once, 25, 1e-6, rounds=3, out_of=75).epsilon
    assert whole.shuffled.epsilon < shuffled(once, 25, 1e-6, rounds=3).epsilon
    numbers = federated_learning(*iris, perturbs="anonymised coordinates", **settings)
    assert numbers.shuffled.epsilon == shuffled(once, 25, 1e-6, rounds=3 * 15).epsilon


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"n_sampled_clients": 0}, "n_sampled_clients must be a whole number"),
        ({"n_sampled_clients": 11}, "n_sampled_clients must be a whole number"),
        ({"n_sampled_clients": True}, "n_sampled_clients must be a whole number"),
        ({"local_steps": 0}, "local_steps must be a whole number"),
        ({"learning_rate": [0.1, 0.2]}, "learning_rate must be a finite number > 0"),
        ({"gradient_bound": [0.1, 0.2]}, "gradient_bound must be a finite number > 0"),
    ],
)
def test_numbers_out_of_range_are_refused_before_anything_is_released(iris, calls, changes, rule):
    with pytest.raises(ValueError, match=rule):
        federated_learning(
            *iris, perturbs="gradients", mechanism=Counting(), n_clients=10, n_rounds=3, seed=0, **changes
        )
    assert not calls
