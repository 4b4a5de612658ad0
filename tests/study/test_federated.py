import csv
import math
import warnings
from functools import partial

import numpy as np
import pytest
from federated_study import (
    FederatedDisplay,
    features_perturbed,
    federated_study,
    gradients_anonymised,
    gradients_perturbed,
    labels_perturbed,
    noiseless,
)
from matplotlib.figure import Figure
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression

from skldp import NumericPrivatizer
from skldp.accounting import shuffled, shuffled_closed_form
from skldp.exceptions import SeededNoiseWarning
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import noise_from
from skldp.study import _federated_learning as federated
from skldp.study import federated_learning
from skldp.study._federated_parts import GradientRelease, ScoreModel


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


@pytest.mark.parametrize("model", ["softmax", "linear"])
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
    released = federated._train(learner, theta, full, one_hot, clients, 6, 0.5, update)
    np.testing.assert_allclose(released.reshape(expected.shape), expected, atol=1e-12)
    if bound == math.inf:
        trained = federated._train(learner, theta, full, one_hot, clients, 6, 0.5)
        np.testing.assert_allclose(trained.reshape(expected.shape), expected, atol=1e-12)


def test_noiseless_learning_comes_near_to_central_learning(digits, fixed_noise):
    X, y, X_test, y_test = digits
    central = LogisticRegression(max_iter=2000).fit(X, y).score(X_test, y_test)
    run = federated_learning(*digits, n_clients=100, n_rounds=300)
    assert run.accuracy > central - 0.05
    assert run.auc > 0.97
    assert run.guarantee.epsilon == math.inf
    assert run.shuffled is None


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "setting",
    [
        features_perturbed(LaplaceStandIn()),
        gradients_perturbed(LaplaceStandIn()),
        gradients_anonymised(LaplaceStandIn()),
        gradients_anonymised(LaplaceStandIn(), message="gradient"),
    ],
    ids=lambda setting: setting.perturbs,
)
def test_much_epsilon_is_like_no_noise_and_little_is_chance(digits, setting, fixed_noise):
    clean = federated_learning(*digits, gradient_bound=1.0)
    rich = setting.train(*digits, epsilon=1e9, gradient_bound=1.0)
    poor = setting.train(*digits, epsilon=1e-4, gradient_bound=1.0)
    assert abs(rich.accuracy - clean.accuracy) < 0.02
    assert poor.accuracy < 0.4 < clean.accuracy


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


def test_gradients_share_the_budget_between_the_rounds(iris):
    run = gradients_perturbed(LaplaceStandIn()).train(*iris, epsilon=2.0, n_clients=10, n_rounds=8)
    assert run.guarantee.epsilon == 2.0
    assert run.published_epsilon == 2.0
    assert run.shuffled is None


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


def test_an_anonymiser_of_whole_gradients_adds_up_over_rounds(digits):
    setting = gradients_anonymised(LaplaceStandIn(), message="gradient")
    run = setting.train(*digits, epsilon=0.5, n_clients=600, n_rounds=5, delta=1e-6)
    assert run.published_epsilon == 0.5
    assert run.guarantee.epsilon == 2.5
    assert run.shuffled.epsilon < 5 * shuffled(PrivacyGuarantee(0.5), 600, 2e-7).epsilon < run.closed_form_epsilon


def test_a_shuffler_mixes_answers_of_the_law_that_is_sampled(digits):
    setting = gradients_anonymised(NumericPrivatizer(mechanism="piecewise", n_sampled_features="all", seed=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = setting.train(*digits, epsilon=2.0, n_clients=600, n_rounds=1)
    assert "from the sampled law" in run.shuffled.basis
    assert run.shuffled.seeded
    alone = shuffled(PrivacyGuarantee(run.guarantee.epsilon / 650), 600, 1e-6, rounds=650)
    assert run.shuffled.epsilon < alone.epsilon


def test_clipping_that_shifts_all_classes_alike_does_not_cost_area(digits, fixed_noise):
    """Clipped gradients of one class no longer cancel those of the others, which moves whole rows of scores."""
    setting = gradients_anonymised(LaplaceStandIn())
    run = setting.train(*digits, epsilon=1e9, n_clients=1200, n_rounds=5, gradient_bound=0.1)
    assert run.accuracy > 0.8
    assert run.auc > 0.95


def test_what_is_perturbed_needs_a_mechanism_and_the_other_way_round(iris):
    with pytest.raises(ValueError, match=r"perturbs must be one of .* got 'anonymised bits'"):
        gradients_anonymised(LaplaceStandIn(), message="bit").train(*iris)
    with pytest.raises(ValueError, match="`mechanism` needs `perturbs`"):
        federated_learning(*iris, mechanism=LaplaceStandIn())


@pytest.mark.few(1)
@pytest.mark.parametrize("epsilon_axis", ["published", "exact", "shuffled"])
def test_the_picture_shows_what_has_that_epsilon(iris, epsilon_axis):
    settings = [noiseless(), gradients_perturbed(LaplaceStandIn()), gradients_anonymised(LaplaceStandIn(), name="anon")]
    table = federated_study(*iris, settings, epsilons=[0.1, 0.2], n_seeds=1, n_clients=75, n_rounds=1)
    ax = Figure().add_subplot()
    FederatedDisplay.from_frame(table, epsilon_axis=epsilon_axis, metric="auc", ax=ax)
    named = [text.get_text() for text in ax.get_legend().get_texts()]
    expected = ["noiseless", "anon"] if epsilon_axis == "shuffled" else ["noiseless", "LaplaceStandIn", "anon"]
    assert named == expected


@pytest.mark.parametrize(("name", "value"), [("metric", "loss"), ("epsilon_axis", "stated")])
def test_a_picture_of_something_else_is_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} must be one of"):
        FederatedDisplay.from_frame({}, **{name: value})


def test_where_the_published_theorem_is_silent_the_local_epsilon_holds_still(iris):
    run = gradients_anonymised(LaplaceStandIn()).train(*iris, epsilon=9.0, n_clients=10, n_rounds=2)
    assert math.isnan(run.closed_form_epsilon)
    assert run.shuffled.epsilon == pytest.approx(run.guarantee.epsilon)


def test_every_round_has_its_own_noise_even_where_it_is_seeded():
    mechanism = LaplaceStandIn(seed=3)
    release = GradientRelease(mechanism, "gradients", 1.0, 2)
    with pytest.warns(SeededNoiseWarning):
        first, second = release(np.zeros((2, 3))), release(np.zeros((2, 3)))
    assert not np.isclose(first, second).any()


def test_neighbouring_seeds_share_the_noise_of_no_round():
    """The attack on a table of figures: ten seeds in a row whose rounds are nearly all the same noise."""
    rounds = []
    for seed in (3, 4, 5):
        mechanism = LaplaceStandIn(seed=seed)
        release = GradientRelease(mechanism, "gradients", 1.0, 2)
        with pytest.warns(SeededNoiseWarning):
            rounds += [release(np.zeros((2, 3))) for _ in range(4)]
    values = np.concatenate(rounds).ravel()
    assert len(np.unique(values)) == len(values)


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


@pytest.mark.slow
def test_a_seed_of_a_mechanism_is_warned_of_in_the_callers_process(iris):
    settings = [features_perturbed(LaplaceStandIn(bounds=(-2, 2), seed=1))]
    with pytest.warns(SeededNoiseWarning, match="mechanism has a seed"):
        federated_study(*iris, settings, epsilons=[1.0], n_seeds=2, n_jobs=2, n_clients=15)


def test_the_table_is_written_and_read(iris, tmp_path):
    done = []
    table = federated_study(
        *iris,
        [noiseless(), gradients_perturbed(LaplaceStandIn())],
        epsilons=[2.0],
        n_seeds=2,
        n_clients=5,
        n_rounds=2,
        progress=lambda *counts: done.append(counts),
    )
    assert done == [(1, 4), (2, 4), (3, 4), (4, 4)]
    table.to_csv(tmp_path / "table.csv")
    with (tmp_path / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["exact_epsilon"] for row in rows] == ["inf", "2.0"]
    assert table.to_frame().shape == (2, 16)
    assert str(table).count("\n") == 2


def test_a_mechanism_names_its_setting():
    class Named(LaplaceStandIn):
        def __init__(self, epsilon=1.0, mechanism="hybrid"):
            self.epsilon = epsilon
            self.mechanism = mechanism

    assert gradients_perturbed(Named()).name == "Named(hybrid)"
    assert gradients_perturbed(Named(), name="HM").name == "HM"


@pytest.mark.parametrize("name", ["mechanism", "label_mechanism"])
@pytest.mark.parametrize("mechanism", [LogisticRegression(), "duchi"])
def test_an_estimator_without_epsilon_is_refused(iris, name, mechanism):
    with pytest.raises(ValueError, match=f"^{name} must be an estimator with a parameter epsilon"):
        federated_learning(*iris, **{"perturbs": "gradients", "mechanism": LaplaceStandIn(), name: mechanism})
    with pytest.raises(ValueError, match="mechanism must be an estimator with a parameter epsilon"):
        federated_learning(*iris, perturbs="features")


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


def test_bad_data_are_refused(iris):
    X, y, X_test, y_test = iris
    with pytest.raises(ValueError, match="at least two classes"):
        federated_learning(X, np.zeros(len(X)), X_test, y_test)
    with pytest.raises(ValueError, match="X_test must have the 4 features"):
        federated_learning(X, y, X_test[:, :2], y_test)
    with pytest.raises(ValueError, match="NaN"):
        federated_learning(np.where(X > 1, np.nan, X), y, X_test * np.nan, y_test)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"settings": []}, "at least one FederatedSetting"),
        ({"settings": [noiseless(), noiseless()]}, "each with its own name"),
    ],
)
def test_a_bad_study_is_refused(iris, changes, rule):
    with pytest.raises(ValueError, match=rule):
        federated_study(*iris, **({"settings": [noiseless()]} | changes))


def test_an_answer_may_be_a_class_that_no_client_has(iris, fixed_noise):
    class Declared(FlipLabels):
        def fit_transform(self, y):
            return np.append(super().fit_transform(y)[:-1], "none of these")

    X, y, X_test, y_test = iris
    names = np.array(["setosa", "versicolor", "virginica"])
    run = labels_perturbed(Declared()).train(X, names[y], X_test, names[y_test], epsilon=9.0, n_clients=25)
    assert run.accuracy > 0.5


def test_clients_may_be_named_and_uneven(iris, fixed_noise):
    X = iris[0]
    clients = np.array(["a"] * 3 + ["b"] * (len(X) - 3))
    assert federated_learning(*iris, n_clients=clients).accuracy > 0.4
