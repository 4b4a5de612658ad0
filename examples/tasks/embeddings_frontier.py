"""
Train a classifier on released embeddings
=========================================

Each person releases one sentence embedding under plain local differential privacy. A classifier is trained on the
released vectors and tested on clean ones. The first table compares mechanisms at the same exact epsilon of a vector.
The second releases the labels as well, within the same budget.

PrivUnit's noise is known: its covariance is public. ``NoiseAwareDiscriminant`` is linear discriminant analysis
with that noise taken out of the covariance, and with ridge and intercept set by the size of the noise alone, so that
nothing is tuned on clean data. It can also use unlabelled public vectors, which show in which directions embeddings
differ; the class means are then shrunk to these (200 people release nothing in that case).
``PrivateDiscriminant`` asks for one report that combines the vector and its label.

Here the data are scikit-learn's digits. With the environment variable SKLDP_DATA, the script reads embeddings of AG
News from that folder. :doc:`../../costs/embeddings` has their tables.
"""

# %%
import argparse
import os
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, normalize

from skldp import (
    BitRandTransformer,
    LabelRR,
    MultivariateLaplacePrivatizer,
    NoiseAwareDiscriminant,
    NumericPrivatizer,
    PrivateDiscriminant,
    PrivUnitTransformer,
    RandomProjectionPrivatizer,
)
from skldp.exceptions import OutOfDomainWarning, PrivacyGuaranteeWarning, SeededNoiseWarning


def load():
    beside = Path(sys.argv[0]).resolve().parents[3] / "shared" / "data"
    path = Path(os.environ.get("SKLDP_DATA", beside)) / "ag_news_minilm.npz"
    if path.exists():
        with np.load(path) as data:
            train, test, y_train, y_test = (data[key] for key in ("X_train", "X_test", "y_train", "y_test"))
    else:
        X, y = load_digits(return_X_y=True)
        train, test, y_train, y_test = train_test_split(X - 8.0, y, test_size=0.25, random_state=0)
    return normalize(train.astype(np.float32)), y_train, normalize(test.astype(np.float32)), y_test


# %%
# Two classifiers learn from the releases. One ignores the noise, the other corrects for it.


def logistic(_):
    # On scaled noise of this size a small C is nearly the rule of the nearest class mean.
    return make_pipeline(StandardScaler(), LogisticRegression(C=1e-3, max_iter=500))


def discriminant(privatizer, public=None):
    return NoiseAwareDiscriminant(privatizer, public=public)


# %%
# The mechanisms at a budget for the vector. Unit vectors are at most 2 apart, so metric mechanisms get half the
# budget per unit of distance. BitRand as published needs its own line, since its exact epsilon is in the thousands.


def cases(epsilon, d, m, seed):
    seeds = {"seed": seed, "transform_noise": False}
    projected = {"n_components": min(m, d), "projection_seed": seed, **seeds}
    yield "PrivUnit, logistic regression", PrivUnitTransformer(epsilon, **seeds), logistic
    yield "PrivUnit, noise-aware", PrivUnitTransformer(epsilon, **seeds), discriminant
    yield (
        f"PrivUnit on {min(m, d)} random directions, noise-aware",
        RandomProjectionPrivatizer(epsilon, noise="privunit", sensitivity="orthonormal", **projected),
        discriminant,
    )
    yield "M1, multivariate Laplace", MultivariateLaplacePrivatizer(epsilon / 2, radius=1.0, **seeds), logistic
    for sensitivity in ("spectral", "gordon"):
        release = RandomProjectionPrivatizer(
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
    """Plain epsilon of a complete vector, without delta."""
    without_delta = dict(guarantee.figures).get("for every two vectors, without delta")
    if guarantee.unit == "distance" and without_delta is not None:
        return without_delta * guarantee.diameter
    return guarantee.plain_epsilon


def evaluate(privatizer, make, X, y, test, y_test):
    released = privatizer.fit_transform(X)
    model = make(privatizer).fit(released, y)
    return model.score(privatizer.transform(test), y_test)


# %%
# A reference: the nearest mean with true class means, plus the noise that PrivUnit leaves on a mean. It is not a bound:
# if the covariance shows through the noise, more is possible.


def noisy_means(mechanism, X, y, test, y_test, seed):
    classes, sizes = np.unique(y, return_counts=True)
    means = np.stack([X[y == label].mean(axis=0) for label in classes])
    spread = np.sqrt(mechanism.second_moments()[1] / sizes)[:, None]
    noisy = means + spread * np.random.default_rng(seed).standard_normal(means.shape)
    scores = test @ noisy.T - (means**2).sum(axis=1) / 2
    return np.mean(classes[scores.argmax(axis=1)] == y_test)


# %%
# Labels as well. One method splits the budget: k-ary randomized response for the label, and the membership weights undo
# it. The other releases both as ONE vector with all of the budget: the tensor product of the embedding with a corner of
# the regular simplex that represents the label. Its mean contains the contrasts of the class means, so the label costs
# only the larger dimension, and less with public vectors, which show the few directions that matter.


def jointly(epsilon, X, y, test, y_test, seed, public=None):
    classes = np.unique(y)
    return (
        PrivateDiscriminant(epsilon, radius=1.0, classes=classes, public=public, seed=seed)
        .fit(X, y)
        .score(test, y_test)
    )


def with_labels(epsilon, share, X, y, test, y_test, seed):
    label_rr = LabelRR(share * epsilon, classes=np.unique(y), seed=seed)
    privatizer = PrivUnitTransformer((1 - share) * epsilon, seed=seed, transform_noise=False)
    released = privatizer.fit_transform(X)
    labels = label_rr.fit_transform(y)
    return NoiseAwareDiscriminant(privatizer, label_mechanism=label_rr).fit(released, labels).score(test, y_test)


# At these epsilons their guarantee has a delta or is in the thousands, and the reference is no mechanism.
NOT_DRAWN = ("gordon", "as published", "true class means")


def picture(found, clean):
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        print('No picture: pip install "skldp[study]"')
        return
    figure, axis = plt.subplots(figsize=(9, 5), layout="constrained")
    for name, points in found.items():
        if not any(part in name for part in NOT_DRAWN):
            axis.plot(*zip(*points, strict=True), marker="o", label=name)
    axis.axhline(clean, color="k", linestyle="--", label="without noise")
    axis.set(xscale="log", xlabel="exact epsilon of a complete vector", ylabel="accuracy on clean vectors")
    axis.set_xticks([1, 2, 5, 10], ["1", "2", "5", "10"])
    axis.minorticks_off()
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
        scores = []
        for seed in range(options.repeats):
            public, hidden = np.split(np.random.default_rng(seed).permutation(len(X)), [options.public])
            scores.append(jointly(epsilon, X[hidden], y[hidden], test, y_test, seed, X[public]))
        line.append(f"with {options.public} public vectors: {np.mean(scores):.3f}")
        for share in (0.2, 0.35, 0.5):
            scores = [with_labels(epsilon, share, X, y, test, y_test, seed) for seed in range(options.repeats)]
            line.append(f"{share:.0%}: {np.mean(scores):.3f}")
        print(f"{epsilon:6g} {'   '.join(line)}")
    picture(found, clean)


if __name__ == "__main__":
    main()
