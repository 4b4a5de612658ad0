"""Measure linear discriminants learnt from joint releases of vector and class, one release per person.

Usage: python benchmarks/discriminant.py [--data ag_news_minilm.npz] [--seeds 10] [--public 0 200 1000] [--digits]

The embeddings are not part of the project: 8,000 news of four topics, of which some are taken as public and not asked,
and 2,000 others to test on. With --digits the table is scikit-learn's instead, 1,500 images of 64 pixels to learn from
and the other 297 to test on. Epsilon is that of the whole record with its class; means of fresh seeds, which choose
the public vectors and the images too, the worst in brackets. The last lines are upper bounds
without public vectors: all 8,000 people release the tensor, for the nearest class mean; and the same with a known
centre.
"""

import argparse
import warnings

import numpy as np
import results
from data_files import existing
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from skldp import PrivateDiscriminant
from skldp.exceptions import OutOfDomainWarning, SeededNoiseWarning
from skldp.mechanisms.vector._privunit import PrivUnitBall


def show(title, scores):
    print(f"{title}     {np.mean(scores):.4f} [{min(scores):.4f}]", flush=True)


def show_news(path, public_sizes, n_seeds):
    with np.load(existing(path)) as data:
        X, y, test, y_test = (data[key] for key in ("X_train", "y_train", "X_test", "y_test"))
    X, test = normalize(X.astype(float)), normalize(test.astype(float))
    clean = LogisticRegression(C=10, max_iter=500).fit(X, y).score(test, y_test)
    rows = []
    print(f"news, {len(X):,} people less the public ones, {n_seeds} seeds; clean {clean:.3f}")
    for n_public in public_sizes:
        rows.append([f"{n_public:,} public vectors" if n_public else "no public vectors"])
        for epsilon in (1.0, 2.0, 5.0, 10.0):
            scores = []
            for seed in range(n_seeds):
                public, asked = np.split(np.random.default_rng(seed).permutation(len(X)), [n_public])
                model = PrivateDiscriminant(
                    epsilon, radius=1.0, classes=range(4), public=X[public] if n_public else None, seed=1_000 + seed
                )
                scores.append(model.fit(X[asked], y[asked]).score(test, y_test))
            rows[-1].append(results.cell(scores))
            show(f"{n_public:6,} public  epsilon {epsilon:4}", scores)
        if not n_public:
            show_limit(X, y, test, y_test, n_seeds)
    return [["without privacy", *[f"{clean:.3f}"] * 4], *rows]


def show_limit(X, y, test, y_test, n_seeds):
    corners = (np.eye(4) - 1 / 4)[y]
    center = X.mean(axis=0)
    for name, origin in (("limit", np.zeros_like(center)), ("centred", center)):
        told, norm = corners.T @ (X - origin) / len(X), np.linalg.norm(X - origin, axis=1).mean()
        show_limit_of(name, told, norm, len(X), test - origin, y_test, n_seeds)


def show_limit_of(name, told, norm, n, test, y_test, n_seeds):
    # All have about the norm of a corner times that of a vector, which is the radius.
    radius = np.sqrt(3 / 4) * norm
    for epsilon in (1.0, 2.0, 5.0, 10.0):
        across = PrivUnitBall(told[1:].size, epsilon, 1.0).second_moments()[1]
        scores = []
        for seed in range(n_seeds):
            noise = np.random.default_rng(seed).standard_normal(told.shape) * radius * np.sqrt(across / n)
            # Across the classes, in which nothing is told of their sum.
            seen = told + noise - noise.mean(axis=0)
            scores.append(np.mean((test @ seen.T).argmax(axis=1) == y_test))
        show(f"{name:>13}  epsilon {epsilon:4}", scores)


def show_digits(n_seeds):
    X, y = load_digits(return_X_y=True)
    splits = [train_test_split(X, y, train_size=1_500, random_state=seed) for seed in range(n_seeds)]
    clean = [LogisticRegression(C=0.01, max_iter=2_000).fit(a, b).score(c, d) for a, c, b, d in splits]
    print(f"digits, 1,500 people, {n_seeds} seeds; clean {np.mean(clean):.3f}")
    for epsilon in (2.0, 4.0, 10.0, 20.0):
        scores = [
            PrivateDiscriminant(epsilon, bounds=(0, 16), classes=range(10), seed=1_000 + seed)
            .fit(train, labels)
            .score(test, y_test)
            for seed, (train, test, labels, y_test) in enumerate(splits)
        ]
        show(f"epsilon {epsilon:4}", scores)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="../shared/data/ag_news_minilm.npz")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--public", type=int, nargs="+", default=[0, 200, 1_000])
    results.add_option(parser)
    parser.add_argument("--digits", action="store_true")
    chosen = parser.parse_args()
    for category in (OutOfDomainWarning, SeededNoiseWarning):
        warnings.simplefilter("ignore", category)
    if chosen.digits:
        show_digits(chosen.seeds)
    else:
        rows = show_news(chosen.data, chosen.public, chosen.seeds)
        if chosen.save:
            results.save(chosen.save, ["accuracy at exact epsilon", "1", "2", "5", "10"], rows)
