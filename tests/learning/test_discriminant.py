"""The discriminant's protocol: what it learns, from one release of each person, and the rule made of what was told."""

import numpy as np
import pytest
from laws import seeded
from scipy import special
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from skldp.learning._discriminant import DiscriminantProtocol
from skldp.learning._linear_rule import (
    expected_means,
    likeliest_numbers,
    n_directions,
    nearest_mean,
    self_trained,
    unbiased_members,
    whitened_rule,
)
from skldp.learning._person import simulate

# What is compared with a threshold cannot fail by chance.
pytestmark = pytest.mark.usefixtures("fixed_noise")


MEANS = np.zeros((3, 12))
MEANS[[0, 1, 2], [0, 1, 2]] = 0.8


def people(n, shares=(1, 1, 1), seed=0, n_features=12):
    rng = np.random.default_rng(seed)
    y = rng.choice(3, size=n, p=np.array(shares) / sum(shares))
    return rng.normal(MEANS[y, :n_features] - 0.3, 0.4), y.astype(float)


def protocol(n, epsilon=4.0, n_features=12, **named):
    bounds = {"low": [-2] * n_features, "high": [2] * n_features}
    return DiscriminantProtocol(n_features, n, 3, epsilon=epsilon, **bounds | named)


def accuracy(learnt, X, y):
    return np.mean((X @ learnt.coefficients.T + learnt.intercepts).argmax(axis=1) == y)


@pytest.mark.parametrize("with_public", [False, True])
@pytest.mark.parametrize(("n", "epsilon", "lost"), [(1_500, 2.0, 0.25), (12_000, 1.0, 0.1), (12_000, 8.0, 0.05)])
def test_learns(n, epsilon, lost, with_public):
    X, y = people(n)
    learnt = protocol(n, epsilon, public=people(200, seed=1)[0] if with_public else None)
    simulate(learnt, X, y, seeded())
    assert accuracy(learnt, X, y) > LinearDiscriminantAnalysis().fit(X, y).score(X, y) - lost


@pytest.mark.parametrize(
    ("public", "message"),
    [
        (np.zeros((9, 12)), "at least 10"),
        (np.zeros((20, 11)), "12 numbers"),
        (np.zeros((20, 12)), "differ"),
        (np.full((20, 12), np.nan), "finite"),
    ],
)
def test_public_vectors_are_checked(public, message):
    with pytest.raises(ValueError, match=message):
        protocol(100, public=public)


def test_likeliest_numbers_move_towards_each_other():
    rng = np.random.default_rng(0)
    true = np.where(np.arange(400) < 300, -0.9, 0.4)
    told = true + 0.3 * rng.normal(size=400)
    found = likeliest_numbers(told, 0.3)
    # The best that is possible knows both numbers and how often each occurs.
    odds = np.exp(-((told[:, None] - [-0.9, 0.4]) ** 2) / (2 * 0.3**2)) * [300, 100]
    best = odds @ [-0.9, 0.4] / odds.sum(axis=1)
    assert np.mean((found - true) ** 2) < 1.2 * np.mean((best - true) ** 2)
    np.testing.assert_array_equal(likeliest_numbers(np.array([-3.0, 0.2]), 1e-4), [-1.0, 0.2])


def test_the_rules_without_noise_are_fishers():
    shares = np.array([0.5, 0.3, 0.2])
    about = MEANS - shares @ MEANS
    X, _ = people(500)
    X = X + 0.3 - shares @ MEANS
    fisher = X @ about.T / 0.16 - (about**2).sum(axis=1) / 0.32 + np.log(shares)
    # Equal variances within, and of all people where classes differ in all coordinates alike.
    weights, intercepts = nearest_mean(about, np.full(12, 0.16 + (shares @ about**2).sum() / 12), shares)
    np.testing.assert_allclose(X @ weights.T + intercepts, fisher, atol=1e-9)
    values, vectors = np.linalg.eigh((about.T * shares) @ about + 0.16 * np.eye(12))
    turn = vectors / np.sqrt(values)
    weights, intercepts = whitened_rule(about @ turn, np.full((3, 12), 1e-9), shares)
    # Classes lie further apart than the smallest part of the variance that is taken to be within them.
    scores = X @ turn @ weights.T + intercepts
    assert np.abs(np.corrcoef((scores - scores[:, :1]).ravel(), (fisher - fisher[:, :1]).ravel())[0, 1]) > 0.99


def test_noise_alone_moves_no_prediction_far():
    """Means that are nothing but noise, of classes of which some are rare: the answer is about the shares."""
    shares = np.array([0.9, 0.07, 0.02, 0.01])
    noise = np.repeat(1e-3 / shares[:, None] ** 2, 50, axis=1)
    for seed in range(20):
        reported = np.random.default_rng(seed).normal(size=(4, 50)) * np.sqrt(noise)
        means, differ = expected_means(reported, noise, np.ones(50), shares)
        assert differ < 0.9
        weights, intercepts = nearest_mean(means, np.ones(50), shares)
        logits = np.random.default_rng(99).normal(size=(1_000, 50)) @ weights.T
        assert logits.std() < 0.3
        np.testing.assert_allclose(intercepts, np.log(shares), atol=0.1)


@pytest.mark.parametrize("size", [0.01, 0.1, 1.0])
def test_expected_means_are_nearest_to_the_true_ones(size):
    """Their mean square error is near that of the best factor in hindsight, and below that of the reports."""
    rng = np.random.default_rng(0)
    shares, noise, errors = np.full(4, 0.25), np.full((4, 60), 0.1), []
    for _ in range(50):
        true = rng.normal(size=(4, 60)) * size**0.5
        true -= true.mean(axis=0)
        noisy = rng.normal(size=(4, 60)) * (0.1 / 0.75) ** 0.5
        reported = true + noisy - noisy.mean(axis=0)
        found, _ = expected_means(reported, noise, np.ones(60), shares)
        best = (reported * true).sum() / (reported**2).sum()
        errors.append([((one - true) ** 2).sum() for one in (found, best * reported, reported)])
    found, best, raw = np.mean(errors, axis=0)
    assert found < raw
    assert found < 1.1 * best


def test_public_points_correct_what_was_told():
    X, _ = people(600)
    points = (X + 0.3 - MEANS.mean(axis=0)) / 0.4
    true = (MEANS - MEANS.mean(axis=0)) / 0.4
    told = true[:, :4] + 0.7 * np.random.default_rng(1).normal(size=(3, 4))
    weights, intercepts = self_trained(points, told, np.full((3, 4), 0.49), points.var(axis=0), np.full(3, 1 / 3))
    assert weights.shape == (3, 12)
    slopes = weights - weights.mean(axis=0)
    assert np.corrcoef(slopes[:, :4].ravel(), true[:, :4].ravel())[0, 1] > 0.99
    assert np.corrcoef(told.ravel(), true[:, :4].ravel())[0, 1] < 0.99
    assert np.isfinite(intercepts).all()


@pytest.mark.parametrize("seed", range(3))
def test_a_hidden_rare_value_moves_no_prediction_far(seed):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((11_000, 1)) < 0.05, rng.exponential(0.3, (11_000, 1)), 0)
    y = (rng.random(11_000) < 1 / (1 + np.exp(1 - 2 * X[:, 0]))).astype(float)
    learnt = DiscriminantProtocol(1, 8_000, 2, epsilon=4.0, low=[-1], high=[1])
    simulate(learnt, X[:8_000], y[:8_000], seeded(seed))
    scores = X[8_000:] @ np.diff(learnt.coefficients, axis=0).T + np.diff(learnt.intercepts)
    loss = np.logaddexp(0, scores[:, 0] * (1 - 2 * y[8_000:])).mean()
    share = y.mean()
    assert loss < 0.02 - share * np.log(share) - (1 - share) * np.log(1 - share)


@pytest.mark.few(1)
@pytest.mark.parametrize(("kind", "epsilon", "lost"), [("copied", 0.1, 0.25), ("copied", 0.5, 0.1), ("rare", 0.5, 0.5)])
def test_predictions_are_hardly_worse_than_the_shares(kind, epsilon, lost):
    """Just above the threshold: six classes and columns that are copies, or classes that few people have."""
    losses = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        if kind == "copied":
            X = rng.integers(-3, 4, (11_000, 3)) / 3
            X[:, 1] = X[:, 0]
            logits = X @ rng.standard_normal((3, 6)) + 0.3 * rng.standard_normal(6)
        else:
            X = (rng.standard_normal((11_000, 3)) / 3).clip(-1, 1)
            logits = X @ rng.standard_normal((3, 5)) * 2 + [0, -5, -4.5, -6, -7]
        y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
        k = logits.shape[1]
        learnt = DiscriminantProtocol(3, 8_000, k, epsilon=epsilon, low=[-1] * 3, high=[1] * 3)
        simulate(learnt, X[:8_000], y[:8_000].astype(float), seeded(seed))
        scores = special.log_softmax(X[8_000:] @ learnt.coefficients.T + learnt.intercepts, axis=1)
        shares = np.bincount(y, minlength=k) / len(y)
        losses.append((np.log(shares)[y[8_000:]] - scores[np.arange(3_000), y[8_000:]]).mean())
    assert np.mean(losses) < lost


def test_products_that_are_cut_off_stretch_no_logits():
    """Few people, heavy tails: the levels of the norms show what the products miss."""
    losses = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.standard_t(2, (6_000, 3)).clip(-40, 40)
        logits = X.clip(-1, 1) @ rng.standard_normal((3, 3)) / 2
        y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
        learnt = DiscriminantProtocol(3, 3_000, 3, epsilon=4.0, low=[-40] * 3, high=[40] * 3)
        simulate(learnt, X[:3_000], y[:3_000].astype(float), seeded(seed))
        assert "products" in [name for name, _ in learnt._steps]
        scores = special.log_softmax(X[3_000:] @ learnt.coefficients.T + learnt.intercepts, axis=1)
        losses.append(-scores[np.arange(3_000), y[3_000:]].mean())
    assert max(losses) < np.log(3) + 0.04


def alike(n, n_features, seed=0):
    """Columns with few common causes, and classes that follow a logistic law."""
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((5, n_features)) / 5**0.5
    X = rng.standard_normal((n, 5)) @ weights + 0.3 * rng.standard_normal((n, n_features))
    y = rng.random(n) < special.expit(1.5 * X @ rng.standard_normal(n_features) / n_features**0.5)
    return X, y.astype(float)


def explained(learnt, X, y):
    logits = X @ learnt.coefficients.T + learnt.intercepts
    chosen = special.log_softmax(logits, axis=1)[np.arange(len(y)), y.astype(int)]
    return 1 + chosen.mean() / np.log(2)


# In wide bounds few reports at a small epsilon may hide large scores, and the logits stay small.
def test_the_slope_of_the_logits_is_that_of_a_discriminant_in_the_scores():
    X, y = alike(40_000, 30)
    learnt = DiscriminantProtocol(30, 40_000, 2, epsilon=16.0, low=[-6] * 30, high=[6] * 30)
    simulate(learnt, X, y, seeded())
    logits = X @ learnt.coefficients.T + learnt.intercepts
    scores = logits[:, 1] - logits[:, 0]
    apart = scores[y == 1].mean() - scores[y == 0].mean()
    within = (scores[y == 1].var() + scores[y == 0].var()) / 2
    assert apart / within == pytest.approx(1, abs=0.3)


@pytest.mark.parametrize(("share", "depends"), [(0.01, False), (0.01, True), (0.1, True)])
def test_rare_values_that_the_levels_of_scores_miss_do_not_make_the_logits_explode(share, depends):
    n, explained_by_seed = 5_000, []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = (rng.random((n, 2)) < share) * 1.0
        y = (rng.random(n) < 0.5 + depends * 0.4 * np.sign(X[:, 0] - 0.5)).astype(float)
        learnt = DiscriminantProtocol(2, n, 2, epsilon=20.0, low=[-1, -1], high=[1, 1])
        simulate(learnt, X, y, seeded(seed))
        assert learnt._state["slope"] < 1.5
        explained_by_seed.append(explained(learnt, X, y))
    assert min(explained_by_seed) > (0.4 if depends else -0.05)


def test_members_are_unbiased():
    flips = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])
    np.testing.assert_allclose(flips @ unbiased_members(np.arange(3), flips), np.eye(3), atol=1e-12)
    with pytest.raises(ValueError, match="tell every class"):
        unbiased_members(np.arange(2), np.full((2, 2), 0.5))


def test_more_directions_where_there_is_less_noise():
    variances = 1 / np.arange(1, 101)
    found = [n_directions(variances, 5_000, 4, epsilon) for epsilon in (0.5, 1, 2, 5, 10)]
    assert found == sorted(found)
    assert found[0] < found[-1]
    assert n_directions(np.ones(1), 10, 2, 1.0) == 1
