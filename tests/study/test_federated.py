import math
import warnings
from functools import partial

import numpy as np
import pytest
from federated_study import (
    features_perturbed,
    federated_study,
    gradients_anonymised,
    labels_perturbed,
    noiseless,
)
from sklearn.base import BaseEstimator, TransformerMixin

from skldp import NumericPrivatizer
from skldp.accounting import shuffled, shuffled_closed_form
from skldp.exceptions import SeededNoiseWarning
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import noise_from
from skldp.study import _federated_learning as federated
from skldp.study import federated_learning
from skldp.study._federated_parts import ScoreModel


class LaplaceStandIn(TransformerMixin, BaseEstimator):
    """The least that a numeric mechanism is: Laplace noise on every feature."""

    def __init__(self, epsilon=1.0, *, bounds=(-1, 1), transform_noise=True, seed=None):
        self.epsilon = epsilon
        self.bounds = bounds
        self.transform_noise = transform_noise
        self.seed = seed

    def fit_transform(self, X, y=None):
        self.privacy_guarantee_ = PrivacyGuarantee(self.epsilon, stated=self.epsilon)
        low, high = self.bounds
        assert (low <= X).all()
        assert (high >= X).all()
        u = noise_from(self.seed).uniform(X.shape) - 0.5
        scale = X.shape[1] * (high - low) / self.epsilon
        return X - scale * np.sign(u) * np.log1p(-2 * np.abs(u))

    def transform(self, X):
        assert not self.transform_noise, "test rows stay where they are"
        return X


class FlipLabels(BaseEstimator):
    def __init__(self, epsilon=1.0, seed=None):
        self.epsilon = epsilon
        self.seed = seed

    def fit_transform(self, y):
        self.privacy_guarantee_ = PrivacyGuarantee(self.epsilon, unit="label", stated=self.epsilon)
        classes = np.unique(y)
        keep = math.exp(self.epsilon) / (math.exp(self.epsilon) + len(classes) - 1)
        noise = noise_from(self.seed)
        other = classes[(np.searchsorted(classes, y) + 1 + noise.integers(len(classes) - 1, len(y))) % len(classes)]
        return np.where(noise.uniform(len(y)) < keep, y, other)


def naive_fed_sgd(X, y, clients, n_rounds, step, model, bound=math.inf):
    """Algorithm 1, written out: client by client, sample by sample."""
    classes = np.unique(y)
    theta = np.zeros((X.shape[1] + 1, len(classes)))
    for _ in range(n_rounds):
        gradients = []
        for u in np.unique(clients):
            own = np.zeros_like(theta)
            members = np.flatnonzero(clients == u)
            for i in members:
                row = np.append(X[i], 1.0)
                scores = row @ theta
                predicted = np.exp(scores) / np.exp(scores).sum() if model == "softmax" else scores
                own += np.outer(row, predicted - (classes == y[i])) / len(members)
            gradients.append(np.clip(own, -bound, bound))
        theta = theta - step * np.mean(gradients, axis=0)
    return theta


@pytest.mark.parametrize("model", ["softmax"])
@pytest.mark.parametrize("bound", [math.inf, 0.02])
def test_both_ways_of_training_follow_the_algorithm(iris, model, bound):
    X, y, _, _ = iris
    clients = np.sort(np.random.default_rng(0).integers(7, size=len(X)))
    expected = naive_fed_sgd(X, y, clients, 6, 0.5, model, bound)
    full, one_hot = federated._with_intercept(X), (y[:, None] == np.unique(y)).astype(float)
    learner = ScoreModel(model, full.shape[1], one_hot.shape[1])
    theta = learner.start(None)
    options = {"step": 0.5, "bound": bound, "release": lambda gradients: gradients, "of_weights": False}
    update = partial(federated._step_on_releases, **options)
    released = federated._train(learner, theta, full, one_hot, clients, range(6), 0.5, update)
    np.testing.assert_allclose(released.reshape(expected.shape), expected, atol=1e-12)
    if bound == math.inf:
        trained = federated._train(learner, theta, full, one_hot, clients, range(6), 0.5)
        np.testing.assert_allclose(trained.reshape(expected.shape), expected, atol=1e-12)


def test_features_and_labels_are_counted_once_whatever_the_rounds(iris):
    setting = features_perturbed(LaplaceStandIn(bounds=(-2, 2)), label_mechanism=FlipLabels(0.5))
    for n_rounds in (1, 40):
        run = setting.train(*iris, epsilon=2.0, n_clients=10, n_rounds=n_rounds)
        assert run.guarantee.epsilon == 2.5
        assert run.published_epsilon == 2.5
    alone = features_perturbed(LaplaceStandIn(bounds=(-2, 2))).train(*iris, n_clients=10)
    assert str(alone.guarantee) == "epsilon 1 per record (stated 1); target not protected; exact"
    labels = labels_perturbed(FlipLabels()).train(*iris, epsilon=3.0, n_clients=10)
    assert labels.guarantee.epsilon == 3.0
    assert labels.guarantee.unit == "label"


def test_an_anonymiser_is_counted_in_four_ways(digits):
    n_coordinates, n_rounds, n_clients = 65 * 10, 5, 600
    run = gradients_anonymised(LaplaceStandIn()).train(
        *digits,
        epsilon=0.5,
        n_clients=n_clients,
        n_rounds=n_rounds,
        delta=1e-6,
    )
    times = n_coordinates * n_rounds
    assert run.published_epsilon == 0.5
    assert run.guarantee.epsilon == 0.5 * times
    assert run.closed_form_epsilon == pytest.approx(shuffled_closed_form(0.5, n_clients, 1e-6 / times) * times)
    assert run.shuffled.epsilon == shuffled(PrivacyGuarantee(0.5), n_clients, 1e-6, rounds=times).epsilon
    assert run.shuffled.epsilon < run.closed_form_epsilon / 10
    assert run.shuffled.delta == 1e-6
    assert run.shuffled.model == "central"


def test_a_shuffler_mixes_answers_of_the_law_that_is_sampled(digits):
    setting = gradients_anonymised(NumericPrivatizer(mechanism="piecewise", n_sampled_features="all", seed=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = setting.train(*digits, epsilon=2.0, n_clients=600, n_rounds=1)
    assert "from the sampled law" in run.shuffled.basis
    assert run.shuffled.seeded
    alone = shuffled(PrivacyGuarantee(run.guarantee.epsilon / 650), 600, 1e-6, rounds=650)
    assert run.shuffled.epsilon < alone.epsilon


def test_what_is_perturbed_needs_a_mechanism_and_the_other_way_round(iris):
    with pytest.raises(ValueError, match=r"perturbs must be one of .* got 'anonymised bits'"):
        gradients_anonymised(LaplaceStandIn(), message="bit").train(*iris)
    with pytest.raises(ValueError, match="`mechanism` needs `perturbs`"):
        federated_learning(*iris, mechanism=LaplaceStandIn())


@pytest.mark.slow
def test_a_seeded_study_repeats_itself_whatever_the_jobs(iris):
    settings = [noiseless(), features_perturbed(LaplaceStandIn(bounds=(-2, 2)), label_mechanism=FlipLabels())]
    tables = []
    for n_jobs in (None, 2):
        with pytest.warns(SeededNoiseWarning, match="study repeatable"):
            tables.append(
                federated_study(*iris, settings, epsilons=[1.0, 9.0], n_seeds=2, seed=4, n_jobs=n_jobs, n_clients=15)
            )
    first, second = [[(row.accuracy_mean, row.auc_mean) for row in table] for table in tables]
    assert first == second
    assert [row.setting for row in tables[0]] == ["noiseless", "LaplaceStandIn", "LaplaceStandIn"]


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"n_clients": 76}, "n_clients must be an integer from 1 to the number of rows, 75"),
        ({"n_clients": True}, "n_clients must be"),
        ({"n_clients": [1, 2]}, "inconsistent numbers of samples"),
        ({"n_rounds": 0}, "n_rounds must be a whole number"),
        ({"model": "forest"}, "model must be one of"),
        ({"gradient_bound": 0.0}, "gradient_bound must be a finite number > 0"),
        ({"learning_rate": math.nan}, "learning_rate must be a finite number > 0"),
        ({"learning_rate": "fast"}, "learning_rate must be a finite number > 0"),
    ],
)
def test_bad_parameters_are_refused(iris, changes, rule):
    with pytest.raises(ValueError, match=rule):
        federated_learning(*iris, **changes)


def test_an_answer_may_be_a_class_that_no_client_has(iris, fixed_noise):
    class Declared(FlipLabels):
        def fit_transform(self, y):
            return np.append(super().fit_transform(y)[:-1], "none of these")

    X, y, X_test, y_test = iris
    names = np.array(["setosa", "versicolor", "virginica"])
    run = labels_perturbed(Declared()).train(X, names[y], X_test, names[y_test], epsilon=9.0, n_clients=25)
    assert run.accuracy > 0.5
