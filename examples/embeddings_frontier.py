"""
What can be learnt from released embeddings at an honest epsilon
================================================================

Everyone releases one sentence embedding under plain local differential privacy; a classifier is trained on the released
vectors and tested on clean ones. The table compares mechanisms at the same EXACT epsilon of a whole vector. The second
table releases the labels as well, out of the same budget.

PrivUnit's noise is known: its covariance is public. ``NoiseAwareDiscriminant`` is linear discriminant analysis
with that noise taken out of the covariance, and with ridge and intercept set by the size of the noise alone, so that
nothing is tuned on clean data. It can also use unlabelled vectors that are nobody's secret: these say in which
directions embeddings differ at all, and the class means are shrunk to them (200 people release nothing in that case).

On AG News (8,000 released sentences of 384 dimensions, four topics, 3 seeds) PrivUnit with the noise-aware classifier
reaches 0.63, 0.77, 0.84 and 0.85 at epsilon 1, 2, 5 and 10, and with 200 public vectors 0.76, 0.81, 0.84 and 0.85. The
best value-by-value mechanism reaches 0.45, 0.57, 0.73 and 0.76, and Laplace noise at the same exact epsilon stays below
0.47. The nearest class mean reaches 0.86 on clean vectors, and with true means and noise of the size that PrivUnit
leaves on them 0.65, 0.78, 0.84 and 0.85: without public vectors there is little left to gain here. With the label
released too, one joint vector reaches 0.50, 0.66, 0.80 and 0.84; splitting the budget is better only at epsilon 10.

It reads sentence embeddings of AG News from the folder in the environment variable SKLDP_DATA, or from
../shared/data beside the repository, and scikit-learn's digits where neither is there.
"""

# %%
import argparse
import os
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.covariance import ledoit_wolf
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, normalize

from skldp import (
    BitRandTransformer,
    LabelRR,
    MultivariateLaplaceTransformer,
    NumericPrivatizer,
    PrivUnitTransformer,
    RandomProjectionTransformer,
)
from skldp.exceptions import OutOfDomainWarning, PrivacyGuaranteeWarning, SeededNoiseWarning


def load():
    beside = Path(sys.argv[0]).resolve().parents[1].parent / "shared" / "data"
    path = Path(os.environ.get("SKLDP_DATA", beside)) / "ag_news_minilm.npz"
    if path.exists():
        with np.load(path) as data:
            train, test, y_train, y_test = (data[key] for key in ("X_train", "X_test", "y_train", "y_test"))
    else:
        X, y = load_digits(return_X_y=True)
        train, test, y_train, y_test = train_test_split(X - 8.0, y, test_size=0.25, random_state=0)
    return normalize(train.astype(np.float32)), y_train, normalize(test.astype(np.float32)), y_test


# %%
# The classifier. The second moment of releases is an affine image of that of the clean directions,
# E[z z'] = (along - across) E[v v'] + across I, so it can be undone; what is left of the noise has eigenvalues of about
# 2 across sqrt(d / n) (Marchenko and Pastur), and that is the ridge. The intercept of discriminant analysis is a square
# of class means, so the noise's own square is taken off, and the rest shrunk by its known variance (James and Stein).


class NoiseAwareDiscriminant(ClassifierMixin, BaseEstimator):
    """Linear discriminant analysis of PrivUnit releases.

    Parameters
    ----------
    mechanism : PrivUnit
        Whose `second_moments` are known.
    flip : float, default=0.0
        Probability with which a label is replaced by each of the other ones (k-ary randomized response).
    public : ndarray of shape (n_public, n_features), default=None
        Unlabelled vectors of the same kind that are nobody's secret. Class means are then expected to differ in the
        directions in which these do.
    """

    def __init__(self, mechanism, flip=0.0, public=None):
        self.mechanism = mechanism
        self.flip = flip
        self.public = public

    def fit(self, Z, y):
        Z = np.asarray(Z, dtype=np.float64)
        self.classes_ = np.unique(y)
        n, d = Z.shape
        keep = 1 - self.flip * (len(self.classes_) - 1)
        # Unbiased membership weights: they may be negative where labels are randomized.
        weights = ((np.asarray(y)[:, None] == self.classes_) - self.flip) / (keep - self.flip)
        sizes = weights.sum(axis=0)
        means = weights.T @ Z / sizes[:, None]
        along, across = self.mechanism.second_moments()
        noise = across * (weights**2).sum(axis=0) / sizes**2
        second = (Z.T @ Z / n - across * np.eye(d)) / (along - across)
        between = (means.T * (sizes / n)) @ means - np.eye(d) * (sizes @ noise / n)
        values, vectors = np.linalg.eigh(second - between)
        ridge = 2 * across / (along - across) * np.sqrt(d / n)
        precision = (vectors / (np.maximum(values, 0) + ridge)) @ vectors.T
        if self.public is not None:
            contrasts = self._expected_contrasts(means - means.mean(axis=0), noise.mean())
            self.coef_ = contrasts @ precision
            # Halfway between the classes, seen from the middle of the public vectors.
            middle = self.public.mean(axis=0) + contrasts / 2
            self.intercept_ = -np.einsum("ij,ij->i", self.coef_, middle)
            return self
        self.coef_ = (means - means.mean(axis=0)) @ precision
        squares = np.einsum("ij,jk,ik->i", means, precision, means) - np.trace(precision) * noise
        intercept = -(squares - squares.mean()) / 2
        size = np.sum(precision**2)
        slope = np.einsum("ij,jk,ik->i", means, precision @ precision, means) - size * noise
        variance = np.mean(size * noise**2 / 2 + np.maximum(slope, 0) * noise)
        self.intercept_ = intercept * max(0.0, 1 - variance * (len(sizes) - 1) / np.sum(intercept**2))
        return self

    def _expected_contrasts(self, contrasts, noise):
        """Given that the true ones have a multiple of the public covariance, the likeliest multiple."""
        values, axes = np.linalg.eigh(ledoit_wolf(self.public.astype(np.float64))[0])
        turned = contrasts @ axes
        squares = (turned**2).sum(axis=0) / (len(turned) - 1)
        signal = np.geomspace(1e-3, 10, 60)[:, None] * values
        likelihood = -(np.log(signal + noise) + squares / (signal + noise)).sum(axis=1)
        signal = signal[likelihood.argmax()]
        return (turned * signal / (signal + noise)) @ axes.T

    def decision_function(self, X):
        return np.asarray(X, dtype=np.float64) @ self.coef_.T + self.intercept_

    def predict(self, X):
        return self.classes_[self.decision_function(X).argmax(axis=1)]


def logistic(_):
    # On scaled noise of this size a small C is nearly the rule of the nearest class mean.
    return make_pipeline(StandardScaler(), LogisticRegression(C=1e-3, max_iter=500))


def discriminant(privatizer, public=None):
    mechanism = privatizer.mechanism_
    return NoiseAwareDiscriminant(getattr(mechanism, "inner", mechanism), public=public)


# %%
# The mechanisms at a budget for the whole vector. Unit vectors are at most 2 apart, so metric mechanisms get half the
# budget per unit of distance. BitRand as published needs its own line, since its exact epsilon is in the thousands.


def cases(epsilon, d, m, seed):
    seeds = {"seed": seed, "transform_noise": False}
    projected = {"n_components": min(m, d), "projection_seed": seed, **seeds}
    yield "PrivUnit, logistic regression", PrivUnitTransformer(epsilon, **seeds), logistic
    yield "PrivUnit, noise-aware", PrivUnitTransformer(epsilon, **seeds), discriminant
    yield (
        f"PrivUnit on {min(m, d)} random directions, noise-aware",
        RandomProjectionTransformer(epsilon, noise="privunit", sensitivity="orthonormal", **projected),
        discriminant,
    )
    yield "M1, multivariate Laplace", MultivariateLaplaceTransformer(epsilon / 2, radius=1.0, **seeds), logistic
    for sensitivity in ("spectral", "gordon"):
        release = RandomProjectionTransformer(
            epsilon / 2, radius=1.0, sensitivity=sensitivity, projection_seed=seed, **seeds
        )
        yield f"M2, projected Laplace, {sensitivity}", release, logistic
    # Two standard deviations of a coordinate of a unit vector: wider bounds cost more than what they clip.
    bounds = (-2 / d**0.5, 2 / d**0.5)
    best = NumericPrivatizer(epsilon, mechanism="best", bounds=bounds, **seeds)
    yield "best numeric mechanism, value by value", best, logistic
    exact = BitRandTransformer(epsilon, calibration="exact", debias=True, bounds=bounds, **seeds)
    yield "BitRand, calibration exact", exact, logistic
    yield "BitRand as published", BitRandTransformer(epsilon, bounds=bounds, **seeds), logistic


def exact_epsilon(guarantee):
    """Plain epsilon of a whole vector, without delta."""
    without_delta = dict(guarantee.figures).get("for every two vectors, without delta")
    if guarantee.unit == "distance" and without_delta is not None:
        return without_delta * guarantee.diameter
    return guarantee.plain_epsilon


def evaluate(privatizer, make, X, y, test, y_test):
    released = privatizer.fit_transform(X)
    model = make(privatizer).fit(released, y)
    return model.score(privatizer.transform(test), y_test)


# %%
# A reference: whoever knew the class means but for the noise that PrivUnit, the best release of a mean, leaves on them
# would do this well with the nearest mean. Not a bound: where the covariance shows through the noise, more is possible.


def noisy_means(mechanism, X, y, test, y_test, seed):
    classes, sizes = np.unique(y, return_counts=True)
    means = np.stack([X[y == label].mean(axis=0) for label in classes])
    spread = np.sqrt(mechanism.second_moments()[1] / sizes)[:, None]
    noisy = means + spread * np.random.default_rng(seed).standard_normal(means.shape)
    scores = test @ noisy.T - (means**2).sum(axis=1) / 2
    return np.mean(classes[scores.argmax(axis=1)] == y_test)


# %%
# Labels as well. One way splits the budget: k-ary randomized response for the label, and the membership weights undo
# it. The other releases both as ONE vector with the whole budget: the tensor product of the embedding with a corner of
# the regular simplex that stands for the label, again a unit vector. Its mean holds the contrasts of the class means,
# so the label costs no more than the larger dimension.


def simplex_corners(k):
    """Unit vectors in k - 1 dimensions, every two at the same angle, one in each row."""
    centred = np.eye(k) - 1 / k
    basis = np.linalg.svd(centred)[2][: k - 1]
    return normalize(centred @ basis.T)


def jointly(epsilon, X, y, test, y_test, seed):
    classes, index = np.unique(y, return_inverse=True)
    corners = simplex_corners(len(classes))
    n, d = X.shape
    joint = np.einsum("ij,ik->ijk", corners[index], X).reshape(n, -1).astype(np.float32)
    privatizer = PrivUnitTransformer(epsilon, seed=seed)
    Z = privatizer.fit_transform(joint).astype(np.float64).reshape(n, -1, d)
    along, across = privatizer.mechanism_.second_moments()
    # For classes of equal size; contrasts is the mean of each class less that of all.
    contrasts = (len(classes) - 1) * corners @ Z.mean(axis=0)
    second = (np.einsum("nij,nik->jk", Z, Z, optimize=True) / n - across * Z.shape[1] * np.eye(d)) / (along - across)
    values, vectors = np.linalg.eigh(second)
    ridge = 2 * across / (along - across) * np.sqrt(d * Z.shape[1] / n)
    weights = contrasts @ (vectors / (np.maximum(values, 0) + ridge)) @ vectors.T
    return np.mean(classes[(test @ weights.T).argmax(axis=1)] == y_test)


def randomize(y, epsilon, seed):
    """Labels by k-ary randomized response, and the probability of each wrong one."""
    classes = np.unique(y)
    flip = 1 / (np.exp(epsilon) + len(classes) - 1)
    return LabelRR(epsilon, classes=classes, seed=seed).fit(y).transform(y), flip


def with_labels(epsilon, share, X, y, test, y_test, seed):
    labels, flip = randomize(y, share * epsilon, seed)
    privatizer = PrivUnitTransformer((1 - share) * epsilon, seed=seed, transform_noise=False)
    released = privatizer.fit_transform(X)
    model = NoiseAwareDiscriminant(privatizer.mechanism_, flip=flip).fit(released, labels)
    return model.score(test, y_test)


def picture(found, clean):
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        print('No picture: pip install "skldp[study]"')
        return
    figure, axis = plt.subplots(figsize=(9, 5), layout="constrained")
    for name, points in found.items():
        axis.plot(*zip(*points, strict=True), marker="o", label=name)
    axis.axhline(clean, color="k", linestyle="--", label="without noise")
    axis.set(xscale="log", xlabel="exact epsilon of a whole vector", ylabel="accuracy on clean vectors")
    figure.legend(loc="outside right upper", fontsize="small")
    if "SKLDP_FIGURES" in os.environ:
        figure.savefig(Path(os.environ["SKLDP_FIGURES"]) / "embeddings_frontier.png", dpi=100)
    plt.show()


def main():
    parser = argparse.ArgumentParser(description="See the text at the top of this file.")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1, 2, 5, 10])
    parser.add_argument("--repeats", type=int, default=1, help="seeds of every case")
    parser.add_argument("--components", type=int, default=128, help="random directions of the projected PrivUnit")
    parser.add_argument("--public", type=int, default=200, help="unlabelled vectors that are taken as public")
    options = parser.parse_args()
    # Seeds make the study repeatable; a release that matters has none.
    warnings.simplefilter("ignore", SeededNoiseWarning)
    warnings.simplefilter("ignore", PrivacyGuaranteeWarning)
    # Coordinates beyond two standard deviations are clipped on purpose.
    warnings.simplefilter("ignore", OutOfDomainWarning)
    X, y, test, y_test = load()
    clean = LogisticRegression(C=10, max_iter=500).fit(X, y).score(test, y_test)
    print(f"{X.shape[0]} x {X.shape[1]} released, {len(test)} clean test vectors; without noise {clean:.3f}")
    print(f"{'asked':>6s} {'mechanism':48s}{'exact epsilon':>14s}{'accuracy':>10s}{'spread':>8s}")
    found = {}
    for epsilon in options.epsilons:
        results = {}
        for seed in range(options.repeats):
            for name, privatizer, make in cases(epsilon, X.shape[1], options.components, seed):
                score = evaluate(privatizer, make, X, y, test, y_test)
                results.setdefault(name, []).append((exact_epsilon(privatizer.privacy_guarantee_), score))
            # Some texts are published without their labels, and not released.
            public, hidden = np.split(np.random.default_rng(seed).permutation(len(X)), [options.public])
            privatizer = PrivUnitTransformer(epsilon, seed=seed, transform_noise=False)
            make = partial(discriminant, public=X[public])
            score = evaluate(privatizer, make, X[hidden], y[hidden], test, y_test)
            name = f"PrivUnit, noise-aware, {len(public)} public vectors"
            results.setdefault(name, []).append((exact_epsilon(privatizer.privacy_guarantee_), score))
            score = noisy_means(privatizer.mechanism_, X, y, test, y_test, seed)
            results.setdefault("(true class means with noise of that size)", []).append((epsilon, score))
        for name, rows in results.items():
            exact, scores = np.mean([row[0] for row in rows]), [row[1] for row in rows]
            found.setdefault(name, []).append((exact, np.mean(scores)))
            print(f"{epsilon:6g} {name:48s}{exact:14,.3f}{np.mean(scores):10.3f}{np.std(scores):8.3f}", flush=True)
    print("\nlabels released too, total epsilon as one vector, or split (share of the label: accuracy)")
    for epsilon in options.epsilons:
        scores = [jointly(epsilon, X, y, test, y_test, seed) for seed in range(options.repeats)]
        line = [f"as one vector: {np.mean(scores):.3f}"]
        for share in (0.2, 0.35, 0.5):
            scores = [with_labels(epsilon, share, X, y, test, y_test, seed) for seed in range(options.repeats)]
            line.append(f"{share:.0%}: {np.mean(scores):.3f}")
        print(f"{epsilon:6g} {'   '.join(line)}")
    picture(found, clean)


if __name__ == "__main__":
    main()
