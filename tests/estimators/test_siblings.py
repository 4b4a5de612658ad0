"""What public estimators share: the rule of their names, and the text of the parameters that mean the same.

scikit-learn has no public tool that puts one text into several docstrings: its own classes repeat it, and a test
compares them. So does this one; a docstring may refer to that of another class instead.
"""

import inspect
import re

import numpy as np
import pytest
from doors import ESTIMATORS
from sklearn.base import TransformerMixin, clone

import skldp
import skldp.mechanisms

MECHANISMS = {name.lower() for name in skldp.mechanisms.__all__}
# How the text of a parameter begins, of whichever estimator it is; what follows is the estimator's own.
SHARED = {
    "epsilon": ("float, default=1.0", "Budget (natural log)"),
    "bounds": (
        "(low, high), default=(-1, 1)",
        "Declared domain, each end a number or one number per feature; also a dict of pairs by column name, or a list "
        "of one pair per feature. Values outside are clipped.",
    ),
    "classes": (
        "array-like of shape (n_classes,), default=None",
        "Declared classes, from public knowledge. None learns them from y, with a warning and an infinite guarantee.",
    ),
    "label_mechanism": (
        "LabelRR or LabelLaplace, default=None",
        "Cloned and applied to y in `fit`. None is ``LabelRR()``.",
    ),
    "radius": ("float, default=None", "Declared bound on the norms of rows; longer rows are scaled down to it."),
    "transform_noise": ("bool, default=True", "If False, `transform`"),
    "seed": (
        "None, int, Generator or RandomState, default=None",
        "None draws secure noise in every call. Any other value repeats noise, for tests, and voids the guarantee.",
    ),
    "n_jobs": ("int, default=None", "Number of threads, as in joblib."),
    "ledger": (
        "PrivacyLedger, default=None",
        "Charges each person's budget the exact epsilon before a release, which then requires `ids`.",
    ),
}
# A ledger's bounds, work that joblib spreads over processes too, and what released labels before, are something else.
OF_ITS_OWN = {
    ("BayesianFilter", "bounds"),
    ("BayesianFilter", "n_jobs"),
    ("LabelMatrixRR", "classes"),
    ("PrivUnitTransformer", "bounds"),
    ("TargetPrivatizer", "bounds"),
    ("BayesianFilter", "ledger"),
    ("NoiseAwareDiscriminant", "label_mechanism"),
}


def documented(cls):
    """The section Parameters of a class: types and texts by name, in order; those of the class that it refers to."""
    section = re.search(r"^Parameters\n-+\n(.*?)\n(?=^\w[\w ]*\n---|\Z)", inspect.getdoc(cls), re.S | re.M).group(1)
    found = {}
    for entry in re.split(r"\n(?=\S)", section):
        head, *text = entry.split("\n")
        names, _, kind = head.partition(" : ")
        text = " ".join(" ".join(text).split())
        for each in names.split(", "):
            found[each] = (kind, text)
            if sibling := re.match(r"As for :class:`(?:~skldp\.)?(\w+)`", text):
                found[each] = documented(ESTIMATORS[sibling[1]])[each]
    return found


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_parameter_is_documented_in_the_order_of_the_signature_and_has_a_constraint(name):
    parameters = list(inspect.signature(ESTIMATORS[name]).parameters)
    assert list(documented(ESTIMATORS[name])) == parameters
    assert set(ESTIMATORS[name]._parameter_constraints) == set(parameters)


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        (name, parameter)
        for name, cls in ESTIMATORS.items()
        for parameter in inspect.signature(cls).parameters
        if parameter in SHARED and (name, parameter) not in OF_ITS_OWN
    ],
)
def test_siblings_describe_a_parameter_in_the_same_words(name, parameter):
    kind, text = documented(ESTIMATORS[name])[parameter]
    assert kind == SHARED[parameter][0]
    assert text.startswith(SHARED[parameter][1])


@pytest.mark.parametrize("name", [name for name, cls in ESTIMATORS.items() if issubclass(cls, TransformerMixin)])
def test_a_transformer_is_named_after_its_mechanism_and_other_releases_are_privatizers(name):
    cls = ESTIMATORS[name]
    if name.startswith("Label"):
        # Of y, with the name that a paper gives the mechanism.
        assert list(inspect.signature(cls.fit).parameters) == ["self", "y"]
    elif not hasattr(cls, "privacy_guarantee_"):
        # It releases nothing, and has scikit-learn's suffix for what it does.
        assert name in ("BoundsScaler", "ColumnEncoder")
    elif name.endswith("Transformer"):
        assert name.removesuffix("Transformer").lower() in MECHANISMS
    else:
        assert name.endswith("Privatizer")


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "model",
    [
        skldp.PrivateLinearRegression(8.0, seed=0),
        skldp.PrivateLogisticRegression(8.0, classes=[0, 1], seed=0),
        skldp.PrivateDiscriminant(8.0, classes=[0, 1], seed=0),
        skldp.PrivateMoments(8.0, seed=0),
    ],
)
@pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")
def test_a_learner_takes_bounds_by_column_in_any_order(model):
    pandas = pytest.importorskip("pandas")
    low, high = np.array([-1, -10, -0.1]), np.array([1, 10, 0.2])
    rows = np.random.default_rng(0).uniform(low, high, (2_000, 3))
    frame, y = pandas.DataFrame(rows, columns=list("abc")), (rows[:, 0] > 0).astype(int)
    by_name = {"c": (-0.1, 0.2), "a": (-1, 1), "b": (-10, 10)}
    learnt = clone(model).set_params(bounds=by_name).fit(frame, y)
    assert learnt.protocol_.to_json() == clone(model).set_params(bounds=(low, high)).fit(frame, y).protocol_.to_json()
    with pytest.raises(ValueError, match=r"miss \['a', 'b'\]"):
        clone(model).set_params(bounds={"c": (-0.1, 0.2)}).fit(frame, y)
