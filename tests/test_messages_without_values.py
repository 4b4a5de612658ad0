"""No error, warning, text, log or pickle of ours contains a value of X or y: marked values go through every call.

Released values are not looked at, for the law says what they may be; nor are parameters, which are public. Every call
is made with every input, whether it fits or not, and what it told is searched for the marks.
"""

import copy
import inspect
import pickle
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from doors import ESTIMATORS
from marked_values import MARKED_LABELS, MARKED_ROWS, NUMBER, TEXT, WHOLE, found_in, stored_in, told_by
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import skldp
from skldp import PrivacyLedger, mechanisms
from skldp.accounting import FiniteQuery, RegressionQuery
from skldp.domains._columns import Columns
from skldp.domains._constraints import Constrained, OneHot
from skldp.domains._domain import Anywhere, Ball, Box, Codes, FiniteSet
from skldp.domains._sparse_rows import SparseRows
from skldp.learning import Person, RegressionProtocol
from skldp.learning._person import simulate
from skldp.learning._tasks import Task
from skldp.mechanisms import Column
from skldp.mechanisms._noise import noise_from
from skldp.mechanisms._record import CategoricalRecord, MixedRecord
from skldp.mechanisms.categorical._label_laws import (
    LabelLaplaceMechanism,
    LabelLaplaceVectorMechanism,
    RandomizedResponseWithPrior,
)
from skldp.mechanisms.categorical._one_hot import (
    OneHotHadamard,
    OneHotLocalHashing,
    OneHotRandomizedResponse,
    SubsetSelection,
    UnaryEncoding,
)
from skldp.mechanisms.numeric._bounded_features import (
    NUMERIC_MECHANISMS,
    BoundedFeatures,
    NumberOrMissing,
    make_mechanism,
)
from skldp.mechanisms.numeric._points import ResponseOnBins
from skldp.mechanisms.numeric._unit_mechanisms import Duchi
from skldp.mechanisms.vector._multivariate_laplace import MultivariateLaplace
from skldp.mechanisms.vector._privunit import PrivUnitBall, ScaledRows
from skldp.mechanisms.vector._privunit_products import PrivUnitProducts
from skldp.mechanisms.vector._projected_release import ProjectedRelease
from skldp.mechanisms.vector._projection import RandomProjection

ROWS = np.random.default_rng(0).uniform(-0.9, 0.9, (4, 3))
WORDS = np.array([["a", "b", "c"], ["b", "a", "c"], ["c", "c", "a"], ["a", "b", "b"]], dtype=object)
LABELS = {"words": np.array(["no", "yes", "no", "yes"]), "numbers": np.array([0, 1, 0, 1])}
CLASSES = {"words": ["no", "yes"], "numbers": [0, 1], "reals": [0.0, 0.5, 1.0]}

TRANSFORMERS = {
    "bitrand": skldp.BitRandTransformer(),
    "bitrand, exact": skldp.BitRandTransformer(calibration="exact", debias=True, bounds=([0, 0, 0], 1)),
    "latent": skldp.papers.LatentTransformer(),
    "ome": skldp.papers.OMETransformer(),
    "numeric": skldp.NumericPrivatizer(),
    "all numbers": skldp.NumericPrivatizer(mechanism="duchi_vector"),
    "laplace": skldp.NumericPrivatizer(mechanism="laplace", bounds=(0, 1)),
    "directions": skldp.PrivUnitTransformer(),
    "a ball": skldp.PrivUnitTransformer(norm=1.0),
    "directions of a table": skldp.PrivUnitTransformer(bounds=[(-1, 1), (0, 1), (0, 9)]),
    "metric": skldp.MultivariateLaplacePrivatizer(radius=1.0),
    "words": skldp.MultivariateLaplacePrivatizer(vocabulary=ROWS),
    "projection": skldp.RandomProjectionPrivatizer(n_components=2),
    "projected directions": skldp.RandomProjectionPrivatizer(n_components=2, noise="privunit"),
    "nearest words": skldp.RandomProjectionPrivatizer(
        n_components=2, sensitivity="vocabulary", vocabulary=np.eye(3), projection="sparse"
    ),
}
# Those that are listed with parameters of their own, or need others around them.
LISTED = (
    skldp.CategoricalPrivatizer,
    skldp.LabelRR,
    skldp.papers.LabelLaplace,
    skldp.papers.LabelLaplaceVector,
    skldp.papers.LabelMatrixRR,
    skldp.LabelSampler,
    skldp.LabelPrivateClassifier,
    skldp.LabelPrivateRegressor,
    skldp.TargetPrivatizer,
    skldp.NoiseAwareDiscriminant,
    skldp.NoiseAwareLinearRegression,
    skldp.BayesianFilter,
    skldp.NoiseAwareDiscriminant,
    skldp.NoiseAwareLinearRegression,
)
# All others are found here, those to come as well: each takes X, or X and y, and its parameters have defaults.
FOUND = {name: found() for name, found in ESTIMATORS.items() if found not in LISTED}
TRANSFORMERS |= {name: found for name, found in FOUND.items() if hasattr(found, "transform")}
MODELS = {name: found for name, found in FOUND.items() if name not in TRANSFORMERS} | {
    "errors in variables": skldp.NoiseAwareLinearRegression(skldp.NumericPrivatizer(8.0, mechanism="piecewise")),
    "more people": skldp.PrivateLinearRegression(200.0, protocol="once"),
    "declared classes": skldp.PrivateLogisticRegression(200.0, classes=[0, 1]),
    "released labels": skldp.NoiseAwareDiscriminant(
        mechanisms.PrivUnit(3, 4.0), label_mechanism=skldp.LabelRR(9.0, classes=[0, 1])
    ),
    "released rows": skldp.NoiseAwareLinearRegression(mechanisms.PrivUnit(3, 4.0)),
}
MODELS |= {
    "vectors and classes": skldp.PrivateDiscriminant(200.0, classes=[0, 1], radius=2.0),
    "releases and labels": skldp.NoiseAwareDiscriminant(
        skldp.PrivUnitTransformer(), label_mechanism=skldp.LabelRR(classes=[0, 1])
    ),
}
WITHOUT_NOISE = {
    f"{name}, without noise": copy.deepcopy(estimator).set_params(transform_noise=False)
    for name, estimator in TRANSFORMERS.items()
    if "transform_noise" in estimator.get_params()
}
CATEGORICAL = {
    "krr": skldp.CategoricalPrivatizer(categories=[["a", "b", "c"]] * 3),
    "oue": skldp.CategoricalPrivatizer(mechanism="oue", categories=[["a", "b", "c"]] * 3),
    "some": skldp.CategoricalPrivatizer(categories=[["a", "b", "c"]] * 3, n_sampled_features=1),
    "numbers": skldp.CategoricalPrivatizer(categories=[[0.5, 1.0]] * 3),
    "learnt": skldp.CategoricalPrivatizer(),
}
LABEL_MECHANISMS = {
    f"{cls.__name__}, {kind}": cls(classes=classes)
    for cls in (skldp.LabelRR, skldp.papers.LabelLaplace, skldp.papers.LabelLaplaceVector)
    for kind, classes in {**CLASSES, "learnt": None}.items()
} | {
    "sampler": skldp.LabelSampler(skldp.LabelRR(classes=["no", "yes"])),
    "sampler, learnt": skldp.LabelSampler(),
    "prior": skldp.LabelRR(classes=[0, 1], prior=[0.5, 0.5]),
}
CLASSIFIERS = {
    "linear": skldp.LabelPrivateClassifier(
        LogisticRegression(), label_mechanism=skldp.LabelRR(9.0, classes=[0, 1]), correction="forward"
    ),
    "one-hot": skldp.LabelPrivateClassifier(
        make_pipeline(OneHotEncoder(categories=[["a", "b", "c"]] * 3), LogisticRegression()),
        label_mechanism=skldp.LabelRR(9.0, classes=["no", "yes"]),
    ),
}


def made(call):
    """What a call on harmless data gives, whatever it warns of."""
    told, result = told_by(call)
    assert result is not None, told
    return result


def fits(estimator, X, y):
    """Fit what may keep X, for it is public or not protected there."""
    estimator.fit(X, y)


def kept_by(estimator):
    """The traces of marked values in what an estimator keeps."""
    return {*stored_in(pickle.dumps(estimator)), *found_in(repr(vars(estimator)))}


@contextmanager
def listening(*, ours_alone=False):
    """A function that makes a call and notes whether it told a marked value, or gave an estimator that keeps one.

    Many calls share a test, which fails at its end with all that was told: there are tens of thousands.
    """
    heard = []

    def hear(what, function, *arguments, learns=False, **named):
        # Scores are metrics of scikit-learn.
        text, result = told_by(
            lambda: function(*arguments, **named), ours_alone=ours_alone or function.__name__ == "score"
        )
        if found_in(text):
            heard.append(f"{what}: {text}")
        if isinstance(result, BaseEstimator):
            # The columns of a release are named by its categories, learnt ones too: that is released already.
            names_columns = learns and hasattr(result, "get_feature_names_out")
            if found_in(repr(result) + ("" if names_columns else result._repr_html_())):
                heard.append(f"{what}: shown by the estimator")
            # Classes that were learnt are kept, as documented.
            if not learns:
                kept = kept_by(result)
                # Among the many digits of released numbers chance writes a trace, but hardly ever the same one again.
                for _ in range(2 if kept else 0):
                    kept &= kept_by(told_by(lambda: function(*arguments, **named))[1])
                if kept:
                    heard.append(f"{what}: kept by the estimator")

    yield hear
    assert not heard, "\n\n".join(heard)


@pytest.mark.few(24)
@pytest.mark.parametrize(
    "name", [*TRANSFORMERS, *(pytest.param(name, marks=pytest.mark.slow) for name in WITHOUT_NOISE)]
)
def test_transformers_tell_no_value(name):
    estimator = (TRANSFORMERS | WITHOUT_NOISE)[name]
    fitted = made(lambda: copy.deepcopy(estimator).fit(ROWS))
    n_outputs = made(lambda: fitted.transform(ROWS)).shape[1]
    with listening() as hear:
        for kind, make in MARKED_ROWS.items():
            hear(f"fit, {kind}", copy.deepcopy(estimator).fit, make())
            hear(f"fit_transform, {kind}", copy.deepcopy(estimator).fit_transform, make())
            hear(f"transform, {kind}", fitted.transform, make())
            out = np.empty((4, n_outputs))
            hear(f"release_blocks, {kind}", skldp.release_blocks, fitted, make(), out)
            if hasattr(fitted, "inverse_transform"):
                hear(f"inverse_transform, {kind}", fitted.inverse_transform, make())
        hear("at the end", lambda: fitted)


@pytest.mark.parametrize("name", CATEGORICAL)
def test_categories_are_not_told(name):
    estimator, learns = CATEGORICAL[name], name == "learnt"
    fitted = made(lambda: copy.deepcopy(estimator).fit(np.full((4, 3), 0.5) if name == "numbers" else WORDS))
    with listening() as hear:
        for kind, make in MARKED_ROWS.items():
            hear(f"fit, {kind}", copy.deepcopy(estimator).fit, make(), learns=learns)
            hear(f"fit_transform, {kind}", copy.deepcopy(estimator).fit_transform, make())
            hear(f"transform, {kind}", fitted.transform, make())
            hear(f"estimate_frequencies, {kind}", fitted.estimate_frequencies, make())
        hear("at the end", lambda: fitted)


@pytest.mark.few(9)
@pytest.mark.parametrize("name", LABEL_MECHANISMS)
def test_labels_are_not_told(name):
    estimator = LABEL_MECHANISMS[name]
    y = LABELS["numbers" if any(word in name for word in ("numbers", "reals", "prior")) else "words"]
    learns, first = "learnt" in name, [ROWS] if "sampler" in name else []
    fitted = made(lambda: copy.deepcopy(estimator).fit(*first, y))
    with listening(ours_alone="sampler" in name) as hear:
        for kind, make in MARKED_LABELS.items():
            hear(f"fit, {kind}", copy.deepcopy(estimator).fit, *first, make(), learns=learns)
            if hasattr(fitted, "fit_resample"):
                hear(f"fit_resample, {kind}", copy.deepcopy(estimator).fit_resample, ROWS, make())
                hear(f"rows of another kind, {kind}", copy.deepcopy(estimator).fit_resample, make(), y)
            for method in ("fit_transform", "transform", "estimate_frequencies"):
                if hasattr(fitted, method):
                    hear(f"{method}, {kind}", getattr(copy.deepcopy(fitted), method), make())
        hear("at the end", lambda: fitted)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_tell_no_row_and_no_label(name):
    X, y = (ROWS, LABELS["numbers"]) if name == "linear" else (WORDS, LABELS["words"])
    classifier = CLASSIFIERS[name]
    fitted = made(lambda: copy.deepcopy(classifier).fit(np.tile(X, (20, 1)), np.tile(y, 20)))
    # Errors of the classifier inside pass: X is not protected there.
    with listening(ours_alone=True) as hear:
        for kind, make in MARKED_ROWS.items():
            # What the classifier inside keeps of X is its own affair: X is not protected there.
            hear(f"fit, {kind}", fits, copy.deepcopy(classifier), make(), y)
            for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
                if hasattr(fitted, method):
                    hear(f"{method}, {kind}", getattr(fitted, method), make())
            hear(f"score, {kind}", fitted.score, make(), y)
        for kind, make in MARKED_LABELS.items():
            hear(f"fit, {kind}", copy.deepcopy(classifier).fit, X, make())
            hear(f"score, {kind}", fitted.score, X, make())
        hear("at the end", lambda: fitted)


TABLES = {
    "numbers": (skldp.TablePrivatizer(schema=(0, 1)), ROWS),
    "categories": (skldp.TablePrivatizer(schema={name: ["a", "b", "c"] for name in ("x0", "x1", "x2")}), WORDS),
    "missing": (
        skldp.TablePrivatizer(
            schema={
                name: {"type": "category", "values": ["a", "b", "c"], "missing": "category"}
                for name in ("x0", "x1", "x2")
            },
            handle_unknown="missing",
            encoding="columns",
        ),
        WORDS,
    ),
    "missing numbers": (
        skldp.TablePrivatizer(
            schema={
                name: {"type": "number", "low": 0, "high": 1, "missing": "category"} for name in ("x0", "x1", "x2")
            },
            encoding="estimates",
        ),
        ROWS,
    ),
    "sets": (
        skldp.TablePrivatizer(schema={name: ["a", "b", "c"] for name in ("x0", "x1", "x2")}, category_mechanism="oue"),
        WORDS,
    ),
    "dates": (skldp.TablePrivatizer(schema=("2020-01-01", "2021-01-01")), np.full((4, 3), "2020-05-05", dtype=object)),
}


@pytest.mark.few(8)
@pytest.mark.parametrize("frame", [None, ["x0", "x1", "x2"], ["age", "result", "dose"]])
@pytest.mark.parametrize("name", TABLES)
def test_tables_tell_no_value(name, frame):
    table, rows = TABLES[name]
    schema = table.schema
    if frame is not None and isinstance(schema, dict):
        schema = dict(zip(frame, schema.values(), strict=True))
    table = copy.deepcopy(table).set_params(schema=schema)
    rows = rows if frame is None else pd.DataFrame(rows, columns=frame)
    fitted = made(lambda: copy.deepcopy(table).fit(rows))
    with listening() as hear:
        for kind, make in MARKED_ROWS.items():
            hear(f"fit, {kind}", copy.deepcopy(table).fit, make())
            hear(f"fit_transform, {kind}", copy.deepcopy(table).fit_transform, make())
            hear(f"transform, {kind}", fitted.transform, make())
        learning = copy.deepcopy(table).set_params(schema=dict.fromkeys(("age", "result", "dose"), "dtype"))
        for kind, make in MARKED_ROWS.items():
            hear(f"learnt, {kind}", learning.fit, make(), learns=True)
        hear("at the end", lambda: fitted)


TARGETS = {
    "bins": skldp.TargetPrivatizer(bounds=(0, 1), mechanism="bins"),
    "knots": skldp.TargetPrivatizer(4.0, bounds=(0, 1), mechanism="unbiased_bins", prior=[0.5, 0.5]),
    "numbers": skldp.TargetPrivatizer(bounds=(0, 1), mechanism="laplace"),
    "learnt": skldp.TargetPrivatizer(),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_mechanisms_of_targets_tell_no_value(name):
    mechanism, learns = TARGETS[name], name == "learnt"
    y = np.tile(LABELS["numbers"], 20).astype(float)
    fitted = made(lambda: copy.deepcopy(mechanism).fit(y))
    regressor = skldp.LabelPrivateRegressor(LinearRegression(), target_mechanism=mechanism)
    model = made(lambda: copy.deepcopy(regressor).fit(np.tile(ROWS, (20, 1)), y))
    # Errors of the regressor inside pass: X is not protected there.
    with listening(ours_alone=True) as hear:
        for kind, make in EITHER.items():
            hear(f"fit, {kind}", copy.deepcopy(mechanism).fit, make(), learns=learns)
            hear(f"fit_transform, {kind}", copy.deepcopy(mechanism).fit_transform, make())
            for method in ("transform", "inverse_transform"):
                hear(f"{method}, {kind}", getattr(fitted, method), make())
            hear(f"fit of a model, {kind}", copy.deepcopy(regressor).fit, ROWS, make(), learns=True)
            hear(f"score, {kind}", model.score, ROWS, make())
            hear(f"predict, {kind}", model.predict, make())
        hear("at the end", lambda: fitted)


@pytest.mark.few(4)
@pytest.mark.parametrize("name", MODELS)
def test_models_tell_no_row_and_no_target(name):
    model, y = MODELS[name], LABELS["numbers"]
    # Targets that nothing protects are those of a line through releases.
    learns = getattr(model, "classes", ()) is None or isinstance(model, skldp.NoiseAwareLinearRegression)
    fitted = made(lambda: copy.deepcopy(model).fit(np.tile(ROWS, (20, 1)), np.tile(y, 20)))
    methods = ("predict", "predict_proba", "predict_log_proba", "decision_function")
    with listening() as hear:
        for kind, make in MARKED_ROWS.items():
            hear(f"fit, {kind}", copy.deepcopy(model).fit, make(), y, learns=learns)
            for method in methods:
                if hasattr(fitted, method):
                    hear(f"{method}, {kind}", getattr(fitted, method), make())
            if hasattr(fitted, "score"):
                hear(f"score, {kind}", fitted.score, make(), y)
            if hasattr(fitted, "partial_fit"):
                hear(f"partial_fit, {kind}", copy.deepcopy(fitted).partial_fit, make(), y)
        for kind, make in MARKED_LABELS.items():
            hear(f"fit, {kind}", copy.deepcopy(model).fit, ROWS, make(), learns=learns)
            if hasattr(fitted, "score"):
                hear(f"score, {kind}", fitted.score, ROWS, make())
            if hasattr(fitted, "partial_fit"):
                hear(f"partial_fit, {kind}", copy.deepcopy(fitted).partial_fit, ROWS, make())
        hear("at the end", lambda: fitted)


def test_what_people_release_for_models_tells_no_value():
    bounds = {"low": (-1.0,) * 4, "high": (1.0,) * 4}
    task = Task(1.0, **bounds, form="linear", matrix=((0.0, 1.0, 0.0, 0.0, 1.0),) * 2, answer="vector", radius=1.0)
    protocol = RegressionProtocol(3, 4, epsilon=9.0, **bounds)
    with listening() as hear:
        for kind, make in EITHER.items():
            hear(f"a person's row, {kind}", Person, make(), 0.5, epsilon=1.0)
            hear(f"a person's target, {kind}", Person, [0.1, 0.2, 0.3], make(), epsilon=1.0)
            hear(f"release of rows, {kind}", task.release, make(), LABELS["numbers"], noise_from())
            hear(f"release of targets, {kind}", task.release, ROWS, make(), noise_from())
            hear(f"simulated rows, {kind}", simulate, copy.deepcopy(protocol), make(), LABELS["numbers"], noise_from())
            hear(f"simulated targets, {kind}", simulate, copy.deepcopy(protocol), ROWS, make(), noise_from())
        for value in (TEXT, NUMBER, WHOLE, -NUMBER, complex(NUMBER)):
            hear("a person's one number", Person, [value], 0.5, epsilon=1.0)
            hear("a person's target", Person, [0.1, 0.2, 0.3], value, epsilon=1.0)
            made_of = told_by(lambda value=value: Person([0.1, value, 0.3], value, epsilon=1.0))[1]
            if made_of is not None:
                hear("a person as text", repr, made_of)
                hear("an answer", made_of.answer, task.to_json())
                hear("a second answer", made_of.answer, task.to_json())
                hear("a copy", copy.copy, made_of)


MECHANISMS = {
    "bitrand": mechanisms.bitrand(1.0, (np.zeros(3), np.ones(3))),
    "bitrand, exact": mechanisms.bitrand(9.0, (np.zeros(3), np.ones(3)), calibration="exact", debias=True),
    "bounded": BoundedFeatures(Duchi(1.0), (0.0,) * 3, (1.0,) * 3, n_sampled=1, stated=1.0),
    **{name: make_mechanism(name, 4.0, 3, 1e-6 * (name == "gaussian")) for name in NUMERIC_MECHANISMS},
    **{
        f"{name} of rows": BoundedFeatures(
            make_mechanism(name, 4.0, 3, 1e-6 * (name == "gaussian")),
            (-1.0,) * 3,
            (1.0,) * 3,
            n_sampled=3,
            stated=4.0,
        )
        for name in NUMERIC_MECHANISMS
    },
    "direction": mechanisms.PrivUnit(3, 4.0),
    "ball": PrivUnitBall(3, 4.0, 1.0),
    "products": PrivUnitProducts(3, 4.0),
    "scaled": ScaledRows(mechanisms.PrivUnit(3, 4.0), (0.0,) * 3, (1.0,) * 3),
    "metric": MultivariateLaplace(3, 1.0, radius=1.0),
    "projected": ProjectedRelease(RandomProjection(3, 2, 0), 1.0),
    "projected, sparse": ProjectedRelease(
        RandomProjection(3, 2, 0, "sparse"), 1.0, sensitivity="sparse", max_nonzeros=1
    ),
    "fixed point": mechanisms.FixedPoint(10, 0),
    "responses": mechanisms.RandomizedResponse(1.0, 3),
    "prior": RandomizedResponseWithPrior(1.0, (0.25, 0.25, 0.5)),
    "bins": ResponseOnBins(1.0, 0.0, 1.0),
    "unbiased bins": ResponseOnBins(4.0, 0.0, 1.0, unbiased=True),
    "label laplace": LabelLaplaceMechanism(1.0, 3),
    "label vector": LabelLaplaceVectorMechanism(1.0, 3),
    "unary": UnaryEncoding(1.0, 3),
    "one-hot": OneHotRandomizedResponse(1.0, 3),
    "subset": SubsetSelection(1.0, 3),
    "one-hot hashing": OneHotLocalHashing(1.0, 3),
    "one-hot hadamard": OneHotHadamard(1.0, 3),
    "number or missing": NumberOrMissing.of(Column(0, 1, missing="category"), 1.0),
    "mixed": MixedRecord(
        Columns.of({"a": Column(0, 1), "b": Column(values=(0, 1)), "c": Column(0, 1)}),
        (1.0,) * 3,
    ),
    "record": CategoricalRecord(1.0, (3, 3, 3), "oue"),
}
READERS = ("encode", "decode", "project", "bias", "variance", "log_likelihood", "log_density")
DOMAINS = [
    Box((0.0,) * 3, (1.0,) * 3),
    Ball(3, 1.0),
    SparseRows(3, 1, 1.0),
    Anywhere(3),
    Codes((2, 2, 2)),
    FiniteSet(np.eye(3)),
    Column(0, 1),
    Column(0, 1, kind="integer"),
    Column(0, 1, missing="category"),
    Column(values=("a", "b")),
    Columns.of({name: Column(0, 1) for name in "abc"}),
    OneHot(3),
    Constrained(Box((0.0,) * 3, (1.0,) * 3), ((1.0,) * 3,), (2.0,), (0.0,) * 3),
]
EITHER = MARKED_ROWS | {f"labels: {kind}": make for kind, make in MARKED_LABELS.items()}


def subclasses(base):
    return {base} | {one for child in base.__subclasses__() for one in subclasses(child)}


def test_every_mechanism_is_tried():
    own = {one for one in subclasses(mechanisms.RowMechanism) if one.__module__.startswith("skldp.mechanisms.")}
    concrete = {one.__name__ for one in own if not inspect.isabstract(one) and not one.__name__.startswith("_")}
    assert concrete <= {type(one).__name__ for one in MECHANISMS.values()}


@pytest.mark.few(12)
@pytest.mark.parametrize("name", MECHANISMS)
def test_keyed_releases_tell_no_value_and_no_id(name):
    mechanism = MECHANISMS[name]
    key = mechanisms.FieldKey(mechanisms.ReleaseKey(bytes(range(32))), "a field")
    if isinstance(mechanism, mechanisms.FixedPoint):
        pytest.skip("it releases nothing")
    with listening() as hear:
        for kind, make in EITHER.items():
            hear(f"rows, {kind}", key.release, mechanism, make(), range(len(ROWS)))
            hear(f"ids, {kind}", key.release, mechanism, ROWS[:, : mechanism.domain.n_features], make())
            hear(f"a key of values, {kind}", mechanisms.ReleaseKey, make())


@pytest.mark.few(6)
@pytest.mark.parametrize("domain", DOMAINS, ids=lambda domain: type(domain).__name__)
def test_domains_tell_no_value(domain):
    with listening() as hear:
        for kind, make in EITHER.items():
            hear(f"as_rows, {kind}", domain.as_rows, make())
            hear(f"inside, {kind}", lambda rows: domain.clip(domain.as_rows(rows)), make())


@pytest.mark.few(20)
@pytest.mark.parametrize("name", MECHANISMS)
def test_mechanisms_tell_no_value(name):
    mechanism = MECHANISMS[name]
    with listening() as hear:
        for kind, make in EITHER.items():
            if hasattr(mechanism, "release"):
                hear(f"release, {kind}", mechanism.release, make(), noise_from())
    # What is read was released.
    with listening(ours_alone=True) as hear:
        for kind, make in EITHER.items():
            for method in READERS:
                if hasattr(mechanism, method):
                    values = [make() for _ in range(1 + (method == "log_likelihood"))]
                    hear(f"{method}, {kind}", getattr(mechanism, method), *values)


@pytest.mark.parametrize("name", ["table", "line"])
def test_queries_tell_no_value(name):
    query = {
        "table": FiniteQuery.from_probabilities([[0.5, 0.5], [0.25, 0.75]]),
        "line": RegressionQuery("linear", [0.5, 0.5, 0.5], 0.0, (-2, 2), 1.0),
    }[name]
    ledger = PrivacyLedger(9.0, bounds=(-1, 1))
    with listening() as hear:
        for kind, make in EITHER.items():
            hear(f"sample, {kind}", query.sample, make(), noise_from())
            hear(f"likelihood, {kind}", query.log_likelihood, 1, make())
            values = make()
            hear(
                f"answer, {kind}", ledger.answer, query, [1, 2, 3, 4], lambda _, v=values: query.sample(v, noise_from())
            )
            hear(f"output, {kind}", ledger.answer, query, [1, 2, 3, 4], lambda _, v=values: v)
            for method in ("probability_of_high", "unit_response", "estimate"):
                if hasattr(query, method):
                    hear(f"{method}, {kind}", getattr(query, method), make())


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_survey_tells_no_value():
    ledger = PrivacyLedger(1.0, bounds=(-1, 1))
    survey = skldp.BayesianFilter(LinearRegression(), bounds=(-1, 1), ledger=ledger)
    survey.fit(ROWS, [0.0, 1.0, 2.0, 0.5])
    with listening() as hear:
        for kind, make in MARKED_ROWS.items():
            hear(f"query, {kind}", survey.query, make(), ids=range(4))
            hear(f"predict, {kind}", survey.predict, make(), ids=range(4))
            hear(f"score, {kind}", survey.score, make(), np.zeros(4), ids=range(4))
            hear(f"fit, {kind}", fits, copy.deepcopy(survey), make(), np.zeros(4))
        for kind, make in MARKED_LABELS.items():
            hear(f"score, {kind}", survey.score, ROWS, make(), ids=range(4))
            hear(f"fit, {kind}", fits, copy.deepcopy(survey), ROWS, make())
        assert not found_in(repr(vars(survey)))
