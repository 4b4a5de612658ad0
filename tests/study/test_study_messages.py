"""Messages of studies contain no value: curves, scorers, audits and federated learning."""

import numpy as np
import pytest
from federated_study import federated_study, labels_perturbed
from marked_values import MARKED_LABELS, MARKED_ROWS, NUMBER, TEXT, WHOLE, found_in, told_by
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, make_scorer
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import skldp
from skldp.study import federated_learning

ROWS = np.random.default_rng(0).uniform(-1, 1, (24, 3))
CLASSES = np.array([0, 1] * 12)
PRIVATE = make_pipeline(skldp.NumericPrivatizer(9.0, mechanism="duchi"), GaussianNB())
CURVE = {"param_name": "numericprivatizer__epsilon", "epsilons": [2.0], "cv": 2}


def four_as_many(values):
    """Four rows or labels, again and again where they can be."""
    if hasattr(values, "columns"):
        pandas = pytest.importorskip("pandas")
        return pandas.concat([values] * 6, ignore_index=True) if isinstance(values, pandas.DataFrame) else values
    if isinstance(values, list):
        return values * 6
    return np.concatenate([values] * 6) if isinstance(values, np.ndarray) and values.ndim and len(values) else values


class Speaks(ClassifierMixin, BaseEstimator):
    """A model that raises, or warns of, all that it is given."""

    def fit(self, X, y):
        raise ValueError(f"cannot fit {np.asarray(X)} to {np.asarray(y)}")


CALLS = {
    "curve": lambda X, y: skldp.study.privacy_utility_curve(PRIVATE, X, y, **CURVE),
    "curve in two processes": lambda X, y: skldp.study.privacy_utility_curve(PRIVATE, X, y, n_jobs=2, **CURVE),
    "curve with a score": lambda X, y: skldp.study.privacy_utility_curve(PRIVATE, X, y, scoring="f1", **CURVE),
    "curve of a model that speaks": lambda X, y: skldp.study.privacy_utility_curve(
        make_pipeline(skldp.NumericPrivatizer(), Speaks()), X, y, **CURVE
    ),
    "curve of labels": lambda X, y: skldp.study.privacy_utility_curve(
        skldp.LabelPrivateClassifier(GaussianNB(), label_mechanism=skldp.LabelRR(classes=[0, 1])),
        *(X, y),
        **CURVE | {"param_name": "label_mechanism__epsilon"},
    ),
    "federated": lambda X, y: federated_learning(X, y, ROWS, CLASSES, n_clients=4, n_rounds=1),
    "federated test data": lambda X, y: federated_learning(ROWS, CLASSES, X, y, n_clients=4, n_rounds=1),
    "federated features": lambda X, y: federated_learning(
        *(X, y, ROWS, CLASSES),
        perturbs="features",
        mechanism=skldp.NumericPrivatizer(mechanism="duchi", transform_noise=False),
        n_clients=4,
        n_rounds=1,
    ),
    "federated labels": lambda X, y: federated_study(
        *(X, y, ROWS, CLASSES, [labels_perturbed(skldp.LabelRR(classes=[0, 1]))]),
        epsilons=[1.0],
        n_seeds=1,
        n_clients=4,
        n_rounds=1,
    ),
    "clients": lambda X, y: federated_learning(ROWS, CLASSES, ROWS, CLASSES, n_clients=y, n_rounds=1),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_studies_tell_no_value(name):
    few = name == "curve in two processes"
    rows = {"an array of objects", "a list with a string", "an array with NaN"} if few else set(MARKED_ROWS)
    # How many clients there are is a parameter, and no value of theirs.
    parameters = {"a number"} if name == "clients" else set()
    labels = {"objects", "an unknown number"} if few else set(MARKED_LABELS) - parameters
    heard = []
    # Errors of scikit-learn's cross-validation and metrics pass.
    for kind in sorted(rows):
        call = lambda k=kind: CALLS[name](four_as_many(MARKED_ROWS[k]()), CLASSES)  # noqa: E731
        heard.append((kind, told_by(call, ours_alone=True)[0]))
    for kind in sorted(labels):
        call = lambda k=kind: CALLS[name](ROWS, four_as_many(MARKED_LABELS[k]()))  # noqa: E731
        heard.append((kind, told_by(call, ours_alone=True)[0]))
    heard = [(kind, text) for kind, text in heard if found_in(text)]
    assert not heard, heard


def test_a_scorer_that_names_labels_is_not_repeated():
    y = np.array(["no", TEXT] * 12)
    for scoring in ("f1", make_scorer(f1_score, pos_label=WHOLE), lambda *a: float(TEXT)):
        text, _ = told_by(
            lambda s=scoring: skldp.study.privacy_utility_curve(PRIVATE, ROWS, y, scoring=s, **CURVE), ours_alone=True
        )
        assert "scoring must fit the estimator and the target" in text
        assert not found_in(text)


def test_an_unknown_category_of_a_pipeline_is_not_named():
    X = np.array([["a", "b"]] * 23 + [[TEXT, "b"]], dtype=object)
    classifier = skldp.LabelPrivateClassifier(
        make_pipeline(OneHotEncoder(), LogisticRegression()), label_mechanism=skldp.LabelRR(classes=[0, 1])
    )
    curve = {"param_name": "label_mechanism__epsilon", "epsilons": [2.0], "cv": 2}
    text, _ = told_by(lambda: skldp.study.privacy_utility_curve(classifier, X, CLASSES, **curve), ours_alone=True)
    assert "raised ValueError" in text
    assert not found_in(text)


@pytest.mark.parametrize(
    "inputs", [(TEXT, TEXT), (NUMBER, NUMBER), ([TEXT, 1.0], [0.5, 0.5]), (TEXT, 3), ([NUMBER], [1, 2])]
)
def test_audits_tell_neither_input(inputs):
    fitted = skldp.NumericPrivatizer().fit(np.zeros((2, 2)))
    label_rr = skldp.LabelRR(classes=[0, 1]).fit([0, 1])
    for release in (fitted, label_rr, lambda rows: rows):
        for companion in (None, TEXT, [NUMBER] * 5):
            text, result = told_by(
                lambda r=release, c=companion: skldp.study.audit_epsilon(r, *inputs, n_trials=40, companion=c)
            )
            assert not found_in(text + str(result))
