"""Transformers under a ledger: each release is charged to its person first, and where anybody is refused is none."""

import pickle
import sys
import warnings
from contextlib import closing, nullcontext

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skldp import (
    BayesianFilter,
    BitRandTransformer,
    CategoricalPrivatizer,
    LabelRR,
    NumericPrivatizer,
    PrivacyLedger,
    PrivUnitTransformer,
    TablePrivatizer,
)
from skldp.exceptions import (
    BudgetExhaustedError,
    ChangedAfterFitError,
    LearntDomainWarning,
    OutOfDomainWarning,
)
from skldp.mechanisms import RandomizedResponse

NUMBERS = np.random.default_rng(0).uniform(-1, 1, (6, 3))
CODES = np.array([[0, 1], [1, 0], [1, 2], [0, 0], [1, 1], [0, 2]])
IDS = list("abcdef")
CASES = [
    (NumericPrivatizer(0.5), NUMBERS),
    (NumericPrivatizer(0.5, mechanism="laplace"), NUMBERS),
    (BitRandTransformer(0.5, calibration="exact"), NUMBERS),
    (PrivUnitTransformer(0.5), NUMBERS),
    (CategoricalPrivatizer(0.5, categories=[[0, 1], [0, 1, 2]]), CODES),
    (CategoricalPrivatizer(0.5, categories=[[0, 1], [0, 1, 2]], n_sampled_features=1), CODES),
    (PrivUnitTransformer(0.5, bounds=(-1, 1)), NUMBERS),
    (TablePrivatizer(0.5, schema=(-1, 1)), NUMBERS),
    (LabelRR(0.5, classes=[0, 1, 2]), CODES[:, 1]),
]


@pytest.fixture
def ledger():
    with closing(PrivacyLedger(1.2)) as made:
        yield made


def under(estimator, ledger):
    return clone(estimator).set_params(ledger=ledger)


@pytest.mark.parametrize(("estimator", "X"), CASES)
def test_two_releases_at_their_exact_epsilon_and_no_third(estimator, X, ledger):
    charged = under(estimator, ledger)
    first = charged.fit_transform(X, ids=IDS)
    second = charged.transform(X, ids=IDS)
    plain = clone(estimator).fit(X)
    assert first.shape == second.shape == plain.transform(X).shape
    assert first.dtype == plain.transform(X).dtype
    epsilon = plain.privacy_guarantee_.epsilon
    np.testing.assert_allclose(ledger.realized_loss(IDS), 2 * epsilon, rtol=0, atol=1e-15)
    with pytest.raises(BudgetExhaustedError, match="6 of 6 people"):
        charged.transform(X, ids=IDS)
    # One who has budget left is not released either, beside somebody who has none.
    with pytest.raises(BudgetExhaustedError, match="1 of 2 people"):
        charged.transform(X[:2], ids=["a", "new"])
    assert charged.transform(X[:1], ids=["new"]).shape[0] == 1
    assert ledger.verify().ok


@pytest.mark.parametrize(("estimator", "X"), CASES)
def test_a_warning_that_is_an_error_comes_before_the_charge(estimator, X, ledger):
    """People paid for a release that `-W error` kept from its caller."""
    charged = under(estimator, ledger).fit(X)
    warned = (hasattr(charged, "bounds_") and charged.bounds_ is not None) or isinstance(charged, TablePrivatizer)
    with warnings.catch_warnings():
        warnings.simplefilter("error", OutOfDomainWarning)
        with pytest.raises(OutOfDomainWarning) if warned else nullcontext():
            charged.transform(3 * X if X is NUMBERS else X, ids=IDS)
    assert ledger.report()["people"] == (0 if warned else len(IDS))


@pytest.mark.parametrize(("estimator", "X"), CASES)
def test_without_ids_or_with_a_seed_nothing_is_released(estimator, X, ledger):
    charged = under(estimator, ledger)
    for call in (lambda: charged.fit_transform(X), lambda: charged.fit(X).transform(X)):
        with pytest.raises(ValueError, match=r"must be given together.*got no ids"):
            call()
    with pytest.raises(ValueError, match=r"must be given together.*got no ledger"):
        clone(estimator).fit_transform(X, ids=IDS)
    for fit in ("fit", "fit_transform"):
        with pytest.raises(ValueError, match=r"seed must be None with a ledger; got 3"):
            getattr(clone(charged).set_params(seed=3), fit)(X)
    with pytest.raises(ValueError, match="contain each id only once"):
        charged.transform(X, ids=["a"] * 6)
    with pytest.raises(ValueError, match="one id for each of the 6 rows"):
        charged.transform(X, ids=IDS[:5])
    assert ledger.verify().n_releases == 0


def test_copies_spend_the_same_budget_and_another_ledger_is_a_new_fit(ledger):
    charged = under(NumericPrivatizer(0.5), ledger).fit(NUMBERS)
    for copy in (charged, clone(charged).fit(NUMBERS), pickle.loads(pickle.dumps(charged))):
        assert copy.ledger is ledger
    with closing(PrivacyLedger(1.2)) as other, pytest.raises(ChangedAfterFitError, match="ledger changed"):
        charged.set_params(ledger=other).transform(NUMBERS, ids=IDS)


def test_a_gaussian_needs_a_delta(ledger):
    gaussian = NumericPrivatizer(0.3, mechanism="gaussian", delta=1e-6)
    with pytest.raises(ValueError, match="needs a ledger with a delta"):
        under(gaussian, ledger).fit_transform(NUMBERS, ids=IDS)
    with closing(PrivacyLedger(1.2, rule="approximate", delta=1e-5)) as other:
        assert under(gaussian, other).fit_transform(NUMBERS, ids=IDS).shape == NUMBERS.shape
        assert other.verify().ok


def test_ids_are_routed_through_pipelines_and_kept_beside_frames(ledger):
    frame = pd.DataFrame(NUMBERS, columns=["x", "y", "z"])
    with config_context(enable_metadata_routing=True):
        step = NumericPrivatizer(0.5, ledger=ledger).set_transform_request(ids=True).set_output(transform="pandas")
        released = make_pipeline(FunctionTransformer(), step).fit_transform(frame, ids=IDS)
        assert list(released.columns) == ["x", "y", "z"]
        parts = ColumnTransformer([("two", clone(step), ["x", "y"])])
        assert parts.fit_transform(frame, ids=IDS).shape == (6, 2)
    np.testing.assert_allclose(ledger.realized_loss(IDS), 1.0, rtol=0, atol=1e-6)


def test_answers_and_releases_of_one_record_share_the_budget():
    with closing(PrivacyLedger(1.2, bounds=(-1, 1))) as ledger:
        NumericPrivatizer(0.5, ledger=ledger).fit_transform(NUMBERS, ids=IDS)
        model = FrozenEstimator(LinearRegression().fit(NUMBERS, NUMBERS.sum(axis=1)))
        survey = BayesianFilter(model, epsilon=0.4, ledger=ledger).fit(NUMBERS)
        assert survey.query(NUMBERS, IDS).accepted.all()
        assert (np.abs(ledger.realized_loss(IDS) - 0.9) < 1e-6).all()
        with pytest.raises(BudgetExhaustedError):
            LabelRR(0.5, classes=[0, 1, 2], ledger=ledger).fit_transform(CODES[:, 1], ids=IDS)
        assert ledger.verify().ok


def drawn_labels(monkeypatch, *codes):
    """Let randomized response release these codes, one after another."""
    left = iter(codes)
    monkeypatch.setattr(RandomizedResponse, "_draw", lambda self, rows, noise, out, workspace: out.fill(next(left)))


def test_labels_of_a_part_are_counted_by_what_was_released(monkeypatch, ledger):
    """Opposed ones cost nothing together: a budget of 1.2 has room for six at 0.5, and for two of the same."""
    drawn_labels(monkeypatch, 0, 1, 0, 1, 1, 1, 0, 0)
    job = LabelRR(0.5, classes=["no", "yes"], ledger=ledger, part="employed")
    for _ in range(6):
        assert set(job.fit_transform(["yes"], ids=["ann"])) <= {"no", "yes"}
    assert ledger.realized_loss(["ann"])[0] == pytest.approx(1.0, abs=1e-9)
    with pytest.raises(BudgetExhaustedError):
        job.fit_transform(["yes"], ids=["ann"])
    assert ledger.verify().ok
    # Without a part it counts in full.
    plain = LabelRR(0.5, classes=["no", "yes"], ledger=ledger)
    for _ in range(2):
        plain.fit_transform(["yes"], ids=["bob"])
    assert ledger.realized_loss(["bob"])[0] == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("options", [{}, {"prior": [0.5, 0.5]}])
def test_a_part_needs_a_ledger_and_all_classes(ledger, options):
    options = options | ({"ledger": ledger} if options else {})
    with pytest.raises(ValueError, match="part needs a ledger and no prior"):
        LabelRR(0.5, classes=[0, 1], part="job", **options).fit([0, 1])


class Table(pd.DataFrame):
    """A frame whose constructor pandas must not call."""

    def __init__(self, data):
        super().__init__(data)


class Kept(pd.DataFrame):
    """A frame that stays of its class."""

    @property
    def _constructor(self):
        return Kept


class Unmade(pd.DataFrame):
    """A frame that cannot be made again."""

    @property
    def _constructor(self):
        def refuse(*args, **kwargs):
            raise TypeError("no more frames")

        return refuse


@pytest.mark.parametrize(("made", "kind"), [(Table, pd.DataFrame), (Kept, Kept), (pd.DataFrame, pd.DataFrame)])
@pytest.mark.parametrize("schema", [(0, 100), {"age": (0, 100)}], ids=["bounds", "by column"])
def test_a_frame_is_made_again_as_pandas_would(made, kind, schema, ledger):
    X = made(pd.DataFrame({"age": [40.0] * 6}, index=list("uvwxyz")))
    released = TablePrivatizer(0.5, schema=schema, encoding="columns", ledger=ledger).fit_transform(X, ids=IDS)
    assert type(released) is kind
    assert list(released.index) == list("uvwxyz")


@pytest.mark.parametrize("method", ["transform", "fit_transform"])
@pytest.mark.parametrize("schema", [(0, 100), {"age": (0, 100)}], ids=["bounds", "by column"])
def test_a_frame_that_cannot_be_made_is_refused_before_the_charge(schema, method, ledger):
    plain = pd.DataFrame({"age": [40.0] * 6})
    table = TablePrivatizer(0.5, schema=schema, encoding="columns", ledger=ledger).fit(plain)
    with pytest.raises(TypeError, match="no more frames"):
        getattr(table, method)(Unmade(plain), ids=IDS)
    np.testing.assert_array_equal(ledger.remaining(IDS), 1.2)


def test_a_container_that_is_not_installed_is_told_before_the_charge(ledger, monkeypatch):
    charged = NumericPrivatizer(0.5, ledger=ledger).set_output(transform="polars").fit(NUMBERS)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match="polars"):
        charged.transform(NUMBERS, ids=IDS)
    np.testing.assert_array_equal(ledger.remaining(IDS), 1.2)


def test_what_was_learnt_from_private_rows_has_no_price(ledger):
    """The mechanism's own epsilon is finite; which classes occur is what no epsilon covers."""
    with pytest.warns(LearntDomainWarning), pytest.raises(ValueError, match="release with a finite epsilon"):
        LabelRR(0.5, ledger=ledger).fit_transform([0, 1, 2], ids=[1, 2, 3])
    with pytest.warns(LearntDomainWarning), pytest.raises(ValueError, match="release with a finite epsilon"):
        CategoricalPrivatizer(0.5, ledger=ledger).fit_transform(CODES, ids=IDS)
    assert ledger.verify().n_releases == 0


def test_labels_of_other_classes_are_another_part(monkeypatch, ledger):
    """The attack: code 1 is "b" of one list and "c" of the next, and what looks opposed says the same."""
    drawn_labels(monkeypatch, 0, 1)
    for classes in (["b", "c"], ["a", "b"]):
        LabelRR(0.5, classes=classes, ledger=ledger, part="letter").fit_transform(["b"], ids=["ann"])
    assert ledger.realized_loss(["ann"])[0] == pytest.approx(1.0, abs=1e-9)
