"""Federated learning of images, of attributes and of texts: networks, PrivUnit, hashed labels, weights, and t-tests.

Every line is the mean of `--repeats` trainings with the spread of one beside it, at the epsilon that a setting counts
for itself and at the exact one of the whole training. Images are scikit-learn's digits, attributes three facts about a
digit (odd; five or more; with a loop), texts the sentence embeddings of AG News where SKLDP_DATA names the folder of
ag_news_minilm.npz. A network has two hidden layers. PrivUnit releases where gradients point; beside it stand gradients
within the norm of the box that the others clip to.

    python examples/papers/federated_runs.py --repeats 10
"""

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
from data_files import existing
from federated_study import (
    features_perturbed,
    federated_study,
    gradients_anonymised,
    gradients_perturbed,
    labels_perturbed,
    noiseless,
    random_guess,
    weights_anonymised,
)
from hashed_labels import HashedLabels
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skldp import BitRandTransformer, LabelRR, NumericPrivatizer, PrivUnitTransformer
from skldp.exceptions import SeededNoiseWarning
from skldp.papers import LabelLaplace, LabelLaplaceVector, LabelMatrixRR

GRADIENT_PAIRS = [
    ("PrivUnit on gradients", "PM on gradients"),
    ("PrivUnit on gradients", "HM on gradients"),
    ("PrivUnit, norm of the box", "HM on gradients"),
]
LABEL_PAIRS = [
    ("label-RR", "Label-Laplace, vector"),
    ("Label-Laplace, vector", "Label-Laplace, arg max"),
    ("label-RR", "label OLH"),
    ("label-RR", "label RAPPOR"),
]


def digits(attributes=False):
    X, y = load_digits(return_X_y=True)
    if attributes:
        y = np.column_stack([y % 2 == 1, y >= 5, np.isin(y, (0, 6, 8, 9))]).astype(int)
    X, X_test, y, y_test = train_test_split(X / 8 - 1, y, test_size=0.25, random_state=0)
    return X, y, X_test, y_test


def texts():
    with np.load(existing(Path(os.environ.get("SKLDP_DATA", "../shared/data")) / "ag_news_minilm.npz")) as data:
        X, X_test = (np.clip(data[key].astype(np.float64), -0.25, 0.25) for key in ("X_train", "X_test"))
        return X, data["y_train"], X_test, data["y_test"]


def features(bound):
    here = {"bounds": (-bound, bound), "transform_noise": False}
    return [
        features_perturbed(BitRandTransformer(**here), name="BitRand as published"),
        features_perturbed(BitRandTransformer(calibration="exact", **here), name="BitRand, exact"),
        features_perturbed(NumericPrivatizer(mechanism="piecewise", **here), name="PM on features"),
    ]


def gradients(bound, n_parameters):
    norm = bound * n_parameters**0.5
    return [
        gradients_perturbed(NumericPrivatizer(mechanism="piecewise"), name="PM on gradients"),
        gradients_perturbed(NumericPrivatizer(mechanism="hybrid"), name="HM on gradients"),
        gradients_perturbed(PrivUnitTransformer(), name="PrivUnit on gradients"),
        gradients_perturbed(PrivUnitTransformer(norm=norm), name="PrivUnit, norm of the box"),
        gradients_anonymised(NumericPrivatizer(mechanism="hybrid"), message="gradient", name="HM, mixed by gradient"),
        gradients_anonymised(PrivUnitTransformer(), message="gradient", name="PrivUnit, mixed by gradient"),
        weights_anonymised(NumericPrivatizer(mechanism="ldp_fl"), name="LDP-FL on weights"),
        gradients_anonymised(NumericPrivatizer(mechanism="ldp_fl"), name="LDP-FL on gradients"),
    ]


def of_labels(classes):
    return [
        labels_perturbed(LabelRR(classes=classes), name="label-RR"),
        labels_perturbed(LabelLaplaceVector(classes=classes), name="Label-Laplace, vector"),
        labels_perturbed(LabelLaplace(classes=classes), name="Label-Laplace, arg max"),
        labels_perturbed(HashedLabels(classes=classes, mechanism="olh"), name="label OLH"),
        labels_perturbed(HashedLabels(classes=classes, mechanism="rappor"), name="label RAPPOR"),
    ]


def study(title, data, settings, options, tests=(), metric="accuracy", epsilons=None, **learning):
    chosen = [one for one in settings if not options.settings or one.name in options.settings]
    if not chosen:
        return
    epsilons, repeats = tuple(epsilons or options.epsilons), options.repeats
    table = federated_study(*data, chosen, epsilons=epsilons, n_seeds=repeats, seed=0, **learning)
    print(f"\n{title}\n{table}", flush=True)
    names = {one.name for one in chosen}
    for first, second in (pair for pair in tests if names.issuperset(pair)):
        found = table.t_test(first, second, metric=metric)
        print(
            f"t-test of {metric}: {first} less {second}: {found.mean:+.3f} +- {found.standard_error:.3f}, "
            f"p = {found.p_value:.1e} ({found.n_pairs} pairs)",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--only", choices=["images", "network", "attributes", "gradients", "texts", "labels", "rounds"])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 2.5, 5.0, 10.0])
    parser.add_argument("--settings", nargs="+", help="names of lines; all where there is none")
    options = parser.parse_args()
    warnings.simplefilter("ignore", SeededNoiseWarning)
    ends = [noiseless(), random_guess()]
    network = {"model": "network", "hidden": (64, 64), "learning_rate": 0.1}
    many = {"n_clients": 1347}
    if options.only in (None, "images"):
        data = digits()
        pairs = [("BitRand as published", "PM on features"), ("BitRand, exact", "PM on features")]
        study("Images, features, softmax", data, ends + features(1.0), options, pairs, n_rounds=100, **many)
        settings = ends + of_labels(range(10))
        study(
            "Images, labels, softmax",
            data,
            settings,
            options,
            LABEL_PAIRS,
            epsilons=(1.0, 2.5, 5.0),
            n_rounds=100,
            **many,
        )
    if options.only in (None, "images", "gradients"):
        few, settings = {"n_rounds": 5, "gradient_bound": 0.1, **many}, ends + gradients(0.1, 650)
        study("Images, gradients, softmax", digits(), settings, options, GRADIENT_PAIRS, **few)
    if options.only in (None, "rounds"):
        names = ("PrivUnit on gradients", "HM on gradients", "HM, mixed by gradient")
        settings = [one for one in gradients(0.1, 650) if one.name in names]
        for n_sampled, n_steps in ((1347, 1), (270, 1), (270, 3)):
            learning = {"n_rounds": 5, "n_sampled_clients": n_sampled, "local_steps": n_steps, **many}
            study(
                f"Images, {n_sampled} clients a round, {n_steps} local steps", digits(), settings, options, **learning
            )
    if options.only in (None, "network"):
        pairs = [("BitRand as published", "PM on features"), ("BitRand, exact", "PM on features")]
        learning = {"n_rounds": 300, **many, **network}
        study("Images, features, network", digits(), ends + features(1.0), options, pairs, **learning)
    if options.only in (None, "attributes"):
        data = digits(attributes=True)
        settings = [*ends, *features(1.0), labels_perturbed(LabelMatrixRR(classes=[0, 1]), name="attributes by RR")]
        pairs = [("BitRand as published", "PM on features")]
        study("Attributes, logistic", data, settings, options, pairs, "auc", n_rounds=100, **many)
        study("Attributes, network", data, settings, options, pairs, "auc", n_rounds=300, **many, **network)
    if options.only in (None, "texts", "gradients"):
        few, settings = {"n_rounds": 5, "gradient_bound": 0.02, "n_clients": 2000}, ends + gradients(0.02, 385 * 4)
        study("Texts, gradients, softmax", texts(), settings, options, GRADIENT_PAIRS, **few)
    if options.only in (None, "texts", "labels"):
        settings, few = ends + of_labels(range(4)), {"n_rounds": 40, "n_clients": 2000}
        study("Texts, labels, softmax", texts(), settings, options, LABEL_PAIRS, **few)


if __name__ == "__main__":
    main()
