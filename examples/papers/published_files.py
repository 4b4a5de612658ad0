"""The data of the papers' tables, from files in their original layout.

A file of another layout is refused with what was expected. Table I of the realized-loss paper is trained from its
public tables as far as they are there, and softmax regression of FEMNIST by writers, without noise and with BitRand:

    python examples/papers/published_files.py --health FOLDER     # heart, stroke, diabetes and sleep, by file name
    python examples/papers/published_files.py --femnist FOLDER    # LEAF's data, with the folders train and test
    python examples/papers/published_files.py --celeba FOLDER     # the attributes, the partition, and features.npz

CelebA's features are the reader's own, of the paper's ResNet-18 or another network: arrays ``images``, their file
names, and ``vectors``, released within the declared bounds plus or minus ``--bound``.

``examples/papers/sentences.py`` reads SentEval's folder "downstream" where SKLDP_SENTEVAL names it.
"""

import argparse
import csv
import json
import warnings
from pathlib import Path

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression

from skldp import BitRandTransformer
from skldp.exceptions import PrivacyGuaranteeWarning
from skldp.study import federated_learning

__all__ = ["HEALTH", "SENTEVAL", "celeba", "celeba_attributes", "health_table", "leaf", "senteval"]

_TREC = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
# The two classes, or the parts of which the last is the test set, in the folder of the task.
SENTEVAL = {
    "MR": ("rt-polarity.neg", "rt-polarity.pos"),
    "CR": ("custrev.neg", "custrev.pos"),
    "MPQA": ("mpqa.neg", "mpqa.pos"),
    "SST-5": ("sentiment-train", "sentiment-dev", "sentiment-test"),
    "TREC-6": ("train_5500.label", "TREC_10.label"),
}
_FOLDERS = {"SST-5": "SST/fine", "TREC-6": "TREC"}


def senteval(folder, task):
    """Return the texts, the classes, and which texts are the test set (None without one) of a task of SentEval.

    Its texts are in Latin-1, those of SST in UTF-8; a line is a text, after its class in SST ("3 a film") and TREC
    ("NUM:date When is it").
    """
    texts, classes, parts = [], [], []
    for place, name in enumerate(SENTEVAL[task]):
        path = Path(folder) / _FOLDERS.get(task, task) / name
        content = path.read_text(encoding="utf-8" if task == "SST-5" else "latin-1")
        # As SentEval reads them: other characters end a line too in the files of two classes.
        lines = content.rstrip("\n").split("\n") if task in _FOLDERS else content.splitlines()
        for number, line in enumerate(lines, start=1):
            label, text = place, line.strip()
            if task in _FOLDERS:
                head, _, text = text.partition(" ")
                known = [str(c) for c in range(5)] if task == "SST-5" else [*_TREC]
                head = head.partition(":")[0] if task == "TREC-6" else head
                if head not in known or not text:
                    raise ValueError(
                        f"{name} must have a class of {known} and a text in each line; line {number} has not."
                    )
                label = known.index(head)
            texts.append(text)
            classes.append(label)
            parts.append(place)
    is_test = np.array(parts) == len(SENTEVAL[task]) - 1
    return texts, np.array(classes), is_test if task in _FOLDERS else None


def leaf(folder):
    """Return the rows, the classes and the users of LEAF's files ``*.json`` of one folder, in order of name."""
    rows, classes, users = [], [], []
    for path in sorted(Path(folder).glob("*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(data, dict) or not {"users", "num_samples", "user_data"} <= data.keys():
            raise ValueError(f"{path.name} must be LEAF's: an object of users, num_samples and user_data.")
        if not len(data["users"]) == len(data["num_samples"]) or not data["user_data"].keys() >= set(data["users"]):
            raise ValueError(f"{path.name} must have num_samples and user_data for each of its users.")
        for user, size in zip(data["users"], data["num_samples"], strict=True):
            own = data["user_data"][user]
            if not len(own["x"]) == len(own["y"]) == size:
                raise ValueError(f"{path.name} must have as many x and y for each user as num_samples says.")
            rows += own["x"]
            classes += own["y"]
            users += [user] * size
    if not rows:
        raise ValueError("The folder must hold LEAF's files *.json; got none with data.")
    if len({*map(len, rows)}) != 1:
        raise ValueError("All x of LEAF's files must have as many numbers.")
    return np.array(rows), np.array(classes), np.array(users)


def celeba_attributes(path):
    """Return the names of the images, those of the 40 attributes, and a table of 0 and 1, of list_attr_celeba.txt."""
    count, names, *lines = [*Path(path).read_text(encoding="utf-8").splitlines(), "", ""]
    lines = lines[:-2]
    attributes, table = names.split(), [line.split() for line in lines]
    same = count.strip() == str(len(table)) and len(attributes) == 40
    if not same or not all(len(row) == 41 and {*row[1:]} <= {"1", "-1"} for row in table):
        raise ValueError(
            "list_attr_celeba.txt must have the number of images, 40 names of attributes, and for each image its name "
            "and 40 times 1 or -1."
        )
    return (
        [row[0] for row in table],
        attributes,
        np.array([[value == "1" for value in row[1:]] for row in table]).astype(int),
    )


def celeba(folder):
    """Return the vectors and the attributes of the training images (partition 0), and those of the test images (2)."""
    folder = Path(folder)
    names, _, attributes = celeba_attributes(folder / "list_attr_celeba.txt")
    lines = [line.split() for line in (folder / "list_eval_partition.txt").read_text(encoding="utf-8").splitlines()]
    if not all(len(line) == 2 and line[1] in ("0", "1", "2") for line in lines):
        raise ValueError("list_eval_partition.txt must have the name of an image and 0, 1 or 2 in each line.")
    part_of, row_of = dict(lines), {name: row for row, name in enumerate(names)}
    with np.load(folder / "features.npz", allow_pickle=False) as data:
        images, vectors = data["images"].tolist(), data["vectors"]
    if not part_of.keys() & row_of.keys() >= set(images) or len(images) != len(vectors):
        raise ValueError("features.npz must have a vector for each of `images`, all of them named in both lists.")
    own = attributes[[row_of[name] for name in images]]
    parts = np.array([part_of[name] for name in images])
    return vectors[parts == "0"], own[parts == "0"], vectors[parts == "2"], own[parts == "2"]


# File, target of Table I, and its coefficients of age, sex, blood pressure and BMI, and the intercept.
HEALTH = {
    "heart": ("processed.cleveland.data", (-0.059, -1.456, -0.0134, 0.0, 6.177)),
    "stroke": ("healthcare-dataset-stroke-data.csv", (0.0761, 0.0952, 0.0, 0.0163, -7.989)),
    "diabetes": ("pima-indians-diabetes.csv", (0.0491, 0.0, -0.0091, 0.1039, -5.07)),
    "sleep": ("Sleep_health_and_lifestyle_dataset.csv", (0.0855, 0.4617, -0.07, 0.0, 12.323)),
}


def health_table(folder, name):
    """Return age, sex (1 for male), blood pressure and BMI of the people of a table, and the target.

    A quantity that the table does not have is 0, as Table I has it. People without a value are left out.
    """
    path = Path(folder) / HEALTH[name][0]
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = [row for row in csv.reader(file) if row]
    n_columns = {"heart": 14, "stroke": 12, "diabetes": 9, "sleep": 13}[name]
    heads = {"stroke": ["id", "gender", "age"], "sleep": ["Person ID", "Gender", "Age"]}
    head = rows.pop(0) if name in heads and rows else []
    if not rows or {len(row) for row in rows} != {n_columns} or head[:3] != heads.get(name, []):
        raise ValueError(
            f"{path.name} must have {n_columns} columns{', and its line of names' if name in heads else ''}."
        )
    people = []
    for row in rows:
        if name == "heart":
            # Table I's signs are those of a healthy heart: the diagnosis is 0.
            people.append((row[0], row[1], row[3], "0", row[13] == "0"))
        elif name == "diabetes":
            people.append((row[7], "0", row[2], row[5], row[8]))
        elif name == "stroke" and row[9] != "N/A" and row[1] in ("Male", "Female"):
            people.append((row[2], row[1] == "Male", "0", row[9], row[11]))
        elif name == "sleep":
            people.append((row[2], row[1] == "Male", row[9].partition("/")[0], "0", row[4]))
    try:
        table = np.array(people, dtype=float).reshape(-1, 5)
    except ValueError:
        raise ValueError(f"{path.name} must have numbers for age, blood pressure, BMI and the target.") from None
    return table[:, :4], table[:, 4]


def _train_table_1(folder):
    print("age, sex, blood pressure, BMI; intercept: trained (Table I)")
    for name, (file, printed) in HEALTH.items():
        if not (Path(folder) / file).is_file():
            print(f"{name:<9} not run: no file {file}")
            continue
        X, y = health_table(folder, name)
        used = np.array(printed[:4]) != 0
        model = (LinearRegression() if name == "sleep" else LogisticRegression()).fit(X[:, used], y)
        trained = np.zeros(5)
        trained[:4][used], trained[4] = np.ravel(model.coef_), np.ravel(model.intercept_)[0]
        cells = [f"{own:.4f} ({other:g})" for own, other in zip(trained, printed, strict=True)]
        print(f"{name:<9} {'  '.join(cells)}   {len(X)} people")


def _run_femnist(folder):
    X, y, users = leaf(Path(folder) / "train")
    X_test, y_test, _ = leaf(Path(folder) / "test")
    _run_federated((X, y, X_test, y_test), users, (0, 1))


def _run_celeba(folder, bound):
    X, y, X_test, y_test = celeba(folder)
    data = np.clip(X, -bound, bound), y, np.clip(X_test, -bound, bound), y_test
    # Twenty images a client, as in Table 1.
    _run_federated(data, max(1, len(X) // 20), (-bound, bound))


def _run_federated(data, clients, bounds):
    for name, mechanism in (
        ("noiseless", None),
        ("BitRand as published", BitRandTransformer(bounds=bounds, transform_noise=False)),
        ("BitRand, exact", BitRandTransformer(bounds=bounds, transform_noise=False, calibration="exact")),
    ):
        given = {} if mechanism is None else {"perturbs": "features", "mechanism": mechanism}
        run = federated_learning(*data, n_clients=clients, n_rounds=100, **given)
        print(f"{name:<21} accuracy {run.accuracy:.3f}, AUC {run.auc:.3f}, exact epsilon {run.guarantee.epsilon:.4g}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--health", type=Path)
    parser.add_argument("--femnist", type=Path)
    parser.add_argument("--celeba", type=Path)
    parser.add_argument("--bound", type=float, default=1.0)
    options = parser.parse_args()
    warnings.simplefilter("ignore", PrivacyGuaranteeWarning)
    if options.health:
        _train_table_1(options.health)
    if options.femnist:
        _run_femnist(options.femnist)
    if options.celeba:
        _run_celeba(options.celeba, options.bound)
