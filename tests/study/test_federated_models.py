"""Attributes and networks, baselines behind a hash, weights that are released, and t-tests of a study."""

import itertools

import numpy as np
import pytest
from federated_study import (
    FederatedTable,
    features_perturbed,
    federated_study,
    gradients_perturbed,
    noiseless,
    random_guess,
)
from hashed_labels import HashedLabels
from scipy.optimize import check_grad
from scipy.stats import ttest_rel
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

from skldp import NumericPrivatizer, PrivUnitTransformer
from skldp.study import federated_learning
from skldp.study._federated_parts import ScoreModel


@pytest.fixture(scope="module")
def attributes(digits):
    X, y, X_test, y_test = digits

    def of(label):
        return np.column_stack([label % 2 == 1, label >= 5, np.isin(label, (0, 6, 8, 9))]).astype(int)

    return X, of(y), X_test, of(y_test)


def loss(model, theta, rows, targets, weights):
    scores = model.scores(theta, rows)
    if model.loss == "softmax":
        each = np.log(np.exp(scores).sum(axis=1)) - (scores * targets).sum(axis=1)
    elif model.loss == "sigmoid":
        each = (np.log1p(np.exp(scores)) - scores * targets).sum(axis=1)
    else:
        each = ((scores - targets) ** 2).sum(axis=1) / 2
    return weights @ each


@pytest.mark.parametrize("kind", ["softmax", "sigmoid"])
@pytest.mark.parametrize("hidden", [(), (7,), (5, 4)])
def test_gradients_are_those_of_the_loss(kind, hidden):
    rng = np.random.default_rng(0)
    model = ScoreModel(kind, 6, 3, hidden)
    rows, weights = rng.normal(size=(20, 6)), rng.uniform(size=20)
    targets = np.eye(3)[rng.integers(3, size=20)]
    theta = rng.normal(size=model.n_parameters) / 2
    error = check_grad(
        lambda t: loss(model, t, rows, targets, weights), lambda t: model.gradient(t, rows, targets, weights), theta
    )
    assert error < 1e-5
    # Of several clients at once, client by client.
    stacked = model.gradient(theta, rows.reshape(4, 5, 6), targets.reshape(4, 5, 3), weights.reshape(4, 5))
    assert stacked.shape == (4, model.n_parameters)
    np.testing.assert_allclose(stacked.sum(axis=0), model.gradient(theta, rows, targets, weights), atol=1e-12)


def test_a_network_has_the_scores_of_scikit_learns():
    X, y = load_digits(return_X_y=True)
    X = X[:300] / 8 - 1
    theirs = MLPClassifier((8, 6), max_iter=5, random_state=0)
    for _ in range(5):
        theirs.partial_fit(X, y[:300], classes=range(10))
    ours = ScoreModel("softmax", 65, 10, (8, 6))
    theta = np.concatenate([np.vstack([w, b]).ravel() for w, b in zip(theirs.coefs_, theirs.intercepts_, strict=True)])
    rows = np.column_stack([X, np.ones(len(X))])
    np.testing.assert_allclose(ours.predictions(ours.scores(theta, rows)), theirs.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("model", ["softmax", "network"])
def test_attributes_are_learnt_each_by_itself(attributes, model, fixed_noise):
    rate = 0.1 if model == "network" else "auto"
    run = federated_learning(*attributes, n_clients=100, n_rounds=200, model=model, hidden=(32,), learning_rate=rate)
    assert run.accuracy > 0.8
    assert run.auc > 0.85


def test_privunit_releases_gradients_of_a_declared_norm(digits, fixed_noise):
    setting = gradients_perturbed(PrivUnitTransformer(norm=1.0), name="PrivUnit")
    run = setting.train(*digits, epsilon=3.0, n_clients=600, n_rounds=3, gradient_bound=1.0)
    assert run.guarantee.epsilon == pytest.approx(3.0)
    rich = setting.train(*digits, epsilon=3e4, n_clients=600, n_rounds=3, gradient_bound=1.0)
    assert rich.accuracy > run.accuracy


def test_steps_on_weights_are_those_on_gradients_where_nothing_is_clipped():
    from skldp.study._federated_learning import _step_on_releases

    gradients = np.array([[0.1, -0.2], [0.3, 0.0]])
    theta = np.array([0.5, -0.5])
    options = {"step": 0.5, "bound": 10.0, "release": lambda rows: rows}
    sent = [_step_on_releases(theta, gradients, **options, of_weights=weights) for weights in (True, False)]
    np.testing.assert_allclose(sent[0], sent[1])
    np.testing.assert_allclose(sent[0], theta - 0.5 * gradients.mean(axis=0))
    # A fixed range around 0 holds for the weights themselves.
    clipped = _step_on_releases(theta, gradients, **options | {"bound": 0.2}, of_weights=True)
    np.testing.assert_allclose(clipped, [0.2, -0.2])


@pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")
def test_a_t_test_is_that_of_the_pairs(digits):
    settings = [
        noiseless(),
        features_perturbed(NumericPrivatizer(transform_noise=False), name="features"),
        random_guess(),
    ]
    table = federated_study(*digits, settings, epsilons=(1.0, 8.0), n_seeds=3, seed=0, n_clients=50, n_rounds=3)
    found = [[run.accuracy for run in runs] for runs in table.runs]
    _, at_one, at_eight, chance = found
    result = table.t_test("features", "random guess")
    expected = ttest_rel(at_one + at_eight, chance + chance)
    assert (result.n_pairs, result.p_value) == (6, pytest.approx(expected.pvalue))
    assert result.mean == pytest.approx(np.mean(at_one + at_eight) - np.mean(chance))
    assert result.mean / result.standard_error == pytest.approx(expected.statistic)
    both = table.t_test("noiseless", "random guess", metric="auc")
    assert both.n_pairs == 3
    assert both.mean > 0
    same = table.t_test("noiseless", "noiseless")
    assert (same.mean, same.p_value) == (0.0, 1.0)
    with pytest.raises(ValueError, match=r"must be one of.*got 'others'"):
        table.t_test("noiseless", "others")
    with pytest.raises(ValueError, match="metric"):
        table.t_test("noiseless", "features", metric="loss")
    with pytest.raises(ValueError, match="at least two pairs"):
        FederatedTable(table.rows[:1], (table.runs[0][:1],)).t_test("noiseless", "noiseless")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "network"}, "must be a number for a network"),
        ({"model": "network", "learning_rate": 0.1, "hidden": (0,)}, "Every number in hidden"),
        ({"model": "mlp"}, "model must be one of"),
    ],
)
def test_refuses_bad_networks(digits, changes, message):
    with pytest.raises(ValueError, match=message):
        federated_learning(*digits, **changes)


CLASSES = ["a", "b", "c"]


def test_a_released_filter_estimates_the_class_without_bias():
    labels = HashedLabels(1.5, classes=CLASSES, n_bits=6)
    labels.fit_transform(CLASSES)
    flip = labels._flip / 2**64
    outputs = np.array(list(itertools.product((False, True), repeat=6)))
    for code, own in enumerate(labels.filters_):
        differs = (outputs ^ own).sum(axis=1)
        chances = flip**differs * (1 - flip) ** (6 - differs)
        np.testing.assert_allclose(chances @ labels._decoded(outputs), np.eye(3)[code], atol=1e-12)
    ratios = [
        np.log(flip / (1 - flip)) * ((outputs ^ one).sum(axis=1) - (outputs ^ two).sum(axis=1))
        for one, two in itertools.permutations(labels.filters_, 2)
    ]
    assert labels.privacy_guarantee_.epsilon == pytest.approx(np.max(ratios))
    assert labels.privacy_guarantee_.unit == "label"


def test_rappor_spends_at_most_what_the_paper_states():
    """2 h ln((1 - p / 2) / (p / 2)), which filters without a common bit attain."""
    far = HashedLabels(2.0, classes=range(4), n_bits=512)
    far.fit_transform([0])
    assert far.privacy_guarantee_.epsilon == pytest.approx(2.0, rel=1e-9)
    near = HashedLabels(2.0, classes=range(2), n_bits=4)
    near._bloom = lambda n_classes: np.array([[True, True, False, False], [True, False, True, False]])
    near.fit_transform([0])
    assert near.privacy_guarantee_.epsilon == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"classes": None}, "must be declared"),
        ({"mechanism": "cms"}, "'rappor' or 'olh'"),
        ({"epsilon": 0.0}, "finite number > 0"),
        ({"n_bits": 0}, "n_bits"),
        ({"n_hashes": 40}, "n_hashes"),
        ({"n_bits": 2}, "linearly independent"),
    ],
)
def test_refuses_bad_hashed_labels_before_it_looks_at_one(parameters, message):
    with pytest.raises(ValueError, match=message):
        HashedLabels(**{"classes": CLASSES, **parameters}).fit_transform(None)
