"""The four experiments of "Private release of text embedding vectors" at every sensitivity, and bags of K-grams.

Words are released one by one, as the paper's Table 1 does it (SentEval with private word vectors): a sentence is the
mean of its released words. Beside it, its mean word is released once. Training and test sentences are released alike. A
row says what is proved: the stretch of a distance, delta, and the epsilon of the same release between any two vectors.

Then bags of K-grams: one and two words in turn, hashed to a million columns, at most `--nonzeros` of them in a row. No
Gaussian width is declared by hand: the stretch of such rows is proved by the projection's construction ("polynomial"),
by a union bound over its draw ("gaussian"), or for all rows by its largest singular value ("spectral").

It reads word vectors from glove_words.npz in the folder of SKLDP_DATA, and reviews from the files that SKLDP_REVIEWS
names (with a colon between them; lines of a number, a score and a text, tabs between: the labelled snippets of Hutto
and Gilbert 2014, of the movie reviews of Pang and Lee 2005 and the customer reviews of Hu and Liu 2004). Where
SKLDP_SENTEVAL names SentEval's folder "downstream", the texts are its MR, CR, MPQA, SST-5 and TREC-6 instead, whole and
with their own test sets. Where such a variable is "none", the vectors are random and the sentences those of
scikit-learn's descriptions of data.

    python examples/papers/sentences.py --repeats 10
"""

import argparse
import os
import re
import warnings
from pathlib import Path

import numpy as np
from data_files import existing
from published_files import SENTEVAL, senteval
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_linnerud, load_wine
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import train_test_split
from sklearn.svm import LinearSVC

from skldp import MultivariateLaplacePrivatizer, RandomProjectionPrivatizer
from skldp.exceptions import OutOfDomainWarning, PrivacyGuaranteeWarning, SeededNoiseWarning

WORD = re.compile(r"[a-z']+")


def load_words():
    folder = os.environ.get("SKLDP_DATA", "../shared/data")
    if folder != "none":
        with np.load(existing(Path(folder) / "glove_words.npz"), allow_pickle=False) as data:
            return data["words"].tolist(), data["vectors"].astype(np.float32), data["sentiment"]
    words = sorted({word for text in descriptions()[0] for word in WORD.findall(text.lower())})
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(len(words), 300)).astype(np.float32) / 3
    return words, vectors, rng.integers(-1, 2, len(words))


def descriptions():
    loaders = (load_breast_cancer, load_diabetes, load_iris, load_linnerud, load_wine)
    texts = [line for load in loaders for line in load().DESCR.split("\n") if len(line.split()) > 3]
    return texts, np.array([len(text) % 2 for text in texts])


def load_reviews():
    """Name, texts, the class of each (1 is positive), and which are the test set, or None."""
    if "SKLDP_SENTEVAL" in os.environ:
        for task in SENTEVAL:
            yield task, *senteval(os.environ["SKLDP_SENTEVAL"], task)
        return
    named = os.environ.get("SKLDP_REVIEWS", "")
    paths = [] if named == "none" else [existing(path) for path in named.split(":")]
    if not paths:
        yield "descriptions", *descriptions(), None
    for path in paths:
        rows = [line.split("\t") for line in Path(path).read_text(encoding="utf-8", errors="replace").splitlines()]
        rows = [row for row in rows if len(row) == 3 and float(row[1]) != 0]
        positive = np.array([float(row[1]) > 0 for row in rows])
        yield Path(path).stem.split("_")[0], [row[2] for row in rows], positive, None


def cases(epsilon, beta, vocabulary):
    """Every release of a vector: its name, and the estimator of a seed."""

    def projected(sensitivity, **parameters):
        return lambda seed: RandomProjectionPrivatizer(
            epsilon, beta=beta, sensitivity=sensitivity, seed=seed, projection_seed=seed, **parameters
        )

    return {
        "M1": lambda seed: MultivariateLaplacePrivatizer(epsilon, seed=seed),
        "M2 gordon": projected("gordon"),
        "M2 union": projected("union", vocabulary_size=400_000),
        "M2 vocabulary": projected("vocabulary", vocabulary=vocabulary),
        "M2 spectral": projected("spectral"),
        "M2 orthonormal": projected("orthonormal"),
    }


def proved(estimator):
    """The stretch that is proved, its delta, and the epsilon of the same release between any two vectors."""
    guarantee, stretch = estimator.privacy_guarantee_, getattr(estimator, "sensitivity_", 1.0)
    most = estimator.mechanism_.projection.spectral_bound() if hasattr(estimator, "sensitivity_") else 1.0
    return f"{stretch:8.3f}{guarantee.delta:10.1e}{guarantee.epsilon * most / stretch:8.2f}"


def classified(rows, y, seed, is_test=None):
    if is_test is None:
        train, test, y_train, y_test = train_test_split(rows, y, test_size=0.2, random_state=seed, stratify=y)
    else:
        train, test, y_train, y_test = rows[~is_test], rows[is_test], y[~is_test], y[is_test]
    squares = train.multiply(train) if sparse.issparse(train) else np.square(train)
    model = RidgeClassifier(alpha=float(squares.sum(axis=1).mean())).fit(train, y_train)
    return model.score(train, y_train), model.score(test, y_test)


def balanced(y, rng):
    """As many of either class."""
    size = min((y == 0).sum(), (y == 1).sum())
    return np.sort(np.concatenate([rng.permutation(np.flatnonzero(y == c))[:size] for c in (0, 1)]))


def spread(values):
    return f"{np.mean(values):7.3f} +-{np.std(values):6.3f}"


# Experiments 1 to 3: pairs of words, and their sentiment.


def words_experiments(vectors, sentiment, repeats):
    rng = np.random.default_rng(0)
    pairs = vectors[rng.choice(len(vectors), 200, replace=False)]
    truth = pairwise(pairs)
    marked = np.flatnonzero(sentiment >= 0)
    marked = marked[balanced(sentiment[marked], rng)]
    print("\nExperiments 1 and 2: mean absolute errors of 100 x 100 pairs at epsilon 2, M1's over each one's; beta 0.7")
    print(f"{'':17s}{'stretch':>8s}{'delta':>10s}{'any two':>8s}{'distances':>17s}{'inner products':>17s}")
    base = None
    for name, make in cases(2.0, 0.7, vectors).items():
        found = []
        for seed in range(repeats):
            released = make(seed).fit(pairs)
            found.append(
                [np.abs(a - b).mean() for a, b in zip(pairwise(released.transform(pairs)), truth, strict=True)]
            )
        found = np.array(found)
        base = found if base is None else base
        ratio = base.mean(axis=0) / found
        print(f"{name:17s}{proved(released)}  {spread(ratio[:, 0])}  {spread(ratio[:, 1])}", flush=True)
    print(f"\nExperiment 3: sentiment of {len(marked)} words, linear SVM; beta 0.93")
    print(f"{'':17s}{'stretch':>8s}{'delta':>10s}{'any two':>8s}{'epsilon 5':>17s}{'10':>17s}{'20':>17s}")
    for name in cases(1.0, 0.93, vectors):
        line = []
        for epsilon in (5, 10, 20):
            scores = []
            for seed in range(repeats):
                release = cases(epsilon, 0.93, vectors)[name](seed).fit(vectors)
                rows = release.transform(vectors[marked])
                scores.append(svm(rows, sentiment[marked], seed))
            line.append(spread(scores))
        print(f"{name:17s}{proved(release)}  {'  '.join(line)}   (epsilon 20)", flush=True)


def pairwise(rows):
    left, right = rows[:100].astype(float), rows[100:].astype(float)
    return np.linalg.norm(left[:, None] - right, axis=2), left @ right.T


def svm(rows, y, seed):
    train, test, y_train, y_test = train_test_split(rows, y, test_size=0.2, random_state=seed, stratify=y)
    scale = np.abs(train).std()
    return LinearSVC(C=0.01, max_iter=500, random_state=0).fit(train / scale, y_train).score(test / scale, y_test)


# Experiment 4: sentences, by their words or by their mean word.


def sentences_experiment(words, vectors, repeats, epsilon=10.0, beta=0.9):
    place = {word: i for i, word in enumerate(words)}
    for name, texts, y, is_test in load_reviews():
        found = [[place[word] for word in WORD.findall(text.lower()) if word in place] for text in texts]
        kept = np.array([i for i, one in enumerate(found) if one])
        if "SKLDP_SENTEVAL" not in os.environ:
            kept = kept[balanced(y[kept], np.random.default_rng(0))]
        found, labels, own_test = [found[i] for i in kept], y[kept], None if is_test is None else is_test[kept]
        sizes = np.array([len(one) for one in found])
        starts = np.cumsum(sizes) - sizes
        tokens = vectors[np.concatenate(found)]
        means = (np.add.reduceat(tokens, starts) / sizes[:, None]).astype(np.float32)
        print(
            f"\nExperiment 4: {name}, {len(found)} sentences, classes of {np.bincount(labels)}, {sizes.mean():.1f} "
            f"known words each; epsilon {epsilon:g} per unit, beta {beta}"
        )
        scores = np.array([classified(means, labels, seed, own_test) for seed in range(repeats)])
        print(f"{'no noise':17s}{'':26s}train{spread(scores[:, 0])}  test{spread(scores[:, 1])}")
        for case, make in cases(epsilon, beta, vectors).items():
            one_by_one, once = [], []
            for seed in range(repeats):
                release = make(seed).fit(vectors)
                noisy = np.add.reduceat(release.transform(tokens), starts) / sizes[:, None]
                one_by_one.append(classified(noisy, labels, seed, own_test))
                if case not in ("M2 vocabulary", "M2 union"):
                    # A mean word is no word of the vocabulary.
                    once.append(classified(release.transform(means), labels, seed, own_test))
            by_word = np.array(one_by_one)
            line = f"train{spread(by_word[:, 0])}  test{spread(by_word[:, 1])}"
            if once:
                line += f"  once{spread(np.array(once)[:, 1])}"
            print(f"{case:17s}{proved(release)}  {line}", flush=True)


# Bags of K-grams.


def bags(texts, nonzeros, n_columns):
    """Counts of one and two words in turn, hashed; of a longer text its first words."""
    short = [" ".join(WORD.findall(text.lower())[: (nonzeros + 1) // 2]) for text in texts]
    vectorizer = HashingVectorizer(
        n_features=n_columns, ngram_range=(1, 2), token_pattern=r"[a-z']+", norm=None, binary=True, alternate_sign=False
    )
    return vectorizer.transform(short).astype(np.float32)


def kgrams_experiment(repeats, nonzeros, n_columns):
    def projected(epsilon, sensitivity, projection, **parameters):
        if sensitivity == "sparse":
            parameters["max_nonzeros"] = nonzeros
        return lambda seed: RandomProjectionPrivatizer(
            epsilon, sensitivity=sensitivity, projection=projection, seed=seed, projection_seed=seed, **parameters
        )

    for name, texts, y, _ in load_reviews():
        if len(np.unique(y)) > 2:
            continue
        chosen = balanced(y, np.random.default_rng(0))
        X, labels = bags([texts[i] for i in chosen], nonzeros, n_columns), y[chosen]
        scores = np.array([classified(X, labels, seed)[1] for seed in range(repeats)])
        print(
            f"\nBags of K-grams: {name}, {X.shape[0]} x {X.shape[1]:,}, at most {np.diff(X.indptr).max()} non-zero "
            f"values; no noise{spread(scores)}"
        )
        print(f"{'':34s}{'stretch':>8s}{'delta':>10s}{'any two':>8s}   test accuracy at epsilon 10 and 100 per unit")
        for title, sensitivity, projection, parameters in (
            ("polynomial, sparse rows", "sparse", "polynomial", {"n_components": 121}),
            ("Gaussian, sparse rows", "sparse", "gaussian", {"n_components": 121}),
            ("polynomial, all rows", "spectral", "polynomial", {"n_components": 121}),
        ):
            line = []
            for epsilon in (10.0, 100.0):
                scores = []
                for seed in range(repeats):
                    release = projected(epsilon, sensitivity, projection, **parameters)(seed).fit(X)
                    scores.append(classified(release.transform(X), labels, seed)[1])
                line.append(spread(scores))
            print(f"{title:34s}{proved(release)}   {'  '.join(line)}   (epsilon 100)", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--only", choices=["words", "sentences", "kgrams"])
    parser.add_argument("--nonzeros", type=int, default=15)
    parser.add_argument("--columns", type=int, default=1_000_000)
    options = parser.parse_args()
    warnings.simplefilter("ignore", SeededNoiseWarning)
    warnings.simplefilter("ignore", PrivacyGuaranteeWarning)
    warnings.simplefilter("ignore", OutOfDomainWarning)
    words, vectors, sentiment = load_words()
    print(
        f"{len(words)} words, vectors of {vectors.shape[1]} dimensions, {options.repeats} runs, spread of a run beside"
    )
    if options.only in (None, "words"):
        words_experiments(vectors, sentiment, options.repeats)
    if options.only in (None, "sentences"):
        sentences_experiment(words, vectors, options.repeats)
    if options.only in (None, "kgrams"):
        kgrams_experiment(options.repeats, options.nonzeros, options.columns)


if __name__ == "__main__":
    main()
