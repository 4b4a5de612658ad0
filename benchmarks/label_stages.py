"""What a second and a third cohort with priors from the first one's releases are worth, on real data.

Usage: python benchmarks/label_stages.py [--data ../shared/data/ag_news_minilm.npz] [--runs 10] [--epsilons 1 2 3]

With ``--data digits`` it is scikit-learn's digits. Each run divides the people anew and draws new noise; one and
several stages are run on the same division.
"""

import argparse
import warnings

import numpy as np
from data_files import existing
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skldp import LabelPrivateClassifier, LabelRR
from skldp.exceptions import SeededNoiseWarning

STAGES = (1, 2, 3)


def people(path, run):
    if path != "digits":
        file = np.load(existing(path))
        X = np.concatenate([file["X_train"], file["X_test"]]).astype(np.float32)
        y, n_test = np.concatenate([file["y_train"], file["y_test"]]), len(file["y_test"])
    else:
        X, y = load_digits(return_X_y=True)
        X, n_test = X / 16, 0.3
    return train_test_split(X, y, test_size=n_test, random_state=run, stratify=y)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="../shared/data/ag_news_minilm.npz")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 2.0, 3.0])
    parser.add_argument("--inverse-penalty", type=float, default=0.1)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", SeededNoiseWarning)
    print(f"{'epsilon':>7}  {'stages':>6}  {'mean':>6}  {'worst':>6}  {'gain over one stage':>22}")
    for epsilon in arguments.epsilons:
        scores = np.empty((len(STAGES), arguments.runs))
        for run in range(arguments.runs):
            X_train, X_test, y_train, y_test = people(arguments.data, run)
            for place, stages in enumerate(STAGES):
                classifier = LabelPrivateClassifier(
                    LogisticRegression(C=arguments.inverse_penalty, max_iter=500),
                    label_mechanism=LabelRR(epsilon, classes=np.unique(y_train), seed=run),
                    stages=stages,
                ).fit(X_train, y_train)
                scores[place, run] = classifier.score(X_test, y_test)
        gains = scores - scores[0]
        for stages, score, gain in zip(STAGES, scores, gains, strict=True):
            error = gain.std(ddof=1) / np.sqrt(arguments.runs) if arguments.runs > 1 else np.nan
            print(
                f"{epsilon:>7.3g}  {stages:>6}  {score.mean():>6.4f}  {score.min():>6.4f}  "
                f"{gain.mean():>+12.4f} +- {error:.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
