"""Transformers under a ledger: each release is charged to its person first, and where anybody is refused is none."""

import pickle
from contextlib import closing

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skldp import (
    BayesianFilter,
    BitRandTransformer,
    CategoricalPrivatizer,
    LabelPrivateClassifier,
    LabelRR,
    NumericPrivatizer,
    PrivacyLedger,
    PrivUnitTransformer,
    TablePrivatizer,
    release_blocks,
)
from skldp.exceptions import BudgetExhaustedError, ChangedAfterFitError, LearntDomainWarning, PrivacyGuaranteeWarning

NUMBERS = np.random.default_rng(0).uniform(-1, 1, (6, 3))
CODES = np.array([[0, 1], [1, 0], [1, 2], [0, 0], [1, 1], [0, 2]])
IDS = list("abcdef")
CASES = [
    (NumericPrivatizer(0.5), NUMBERS),
    (NumericPrivatizer(0.5, mechanism="laplace"), NUMBERS),
    (BitRandTransformer(0.5, calibration="exact"), NUMBERS),
    (PrivUnitTransformer(0.5), NUMBERS),
    (CategoricalPrivatizer(0.5, categories=[[0, 1], [0, 1, 2]]), CODES),
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
def test_without_ids_or_with_a_seed_nothing_is_released(estimator, X, ledger):
    charged = under(estimator, ledger)
    for call in (lambda: charged.fit_transform(X), lambda: charged.fit(X).transform(X)):
        with pytest.raises(ValueError, match=r"both are needed, or neither\. Got no ids"):
            call()
    with pytest.raises(ValueError, match=r"both are needed, or neither\. Got no ledger"):
        clone(estimator).fit_transform(X, ids=IDS)
    for fit in ("fit", "fit_transform"):
        with pytest.raises(ValueError, match=r"seed must be None. Got 3 instead"):
            getattr(clone(charged).set_params(seed=3), fit)(X)
    with pytest.raises(ValueError, match="asked only once"):
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


def test_what_was_learnt_from_private_rows_has_no_price(ledger):
    """The mechanism's own epsilon is finite; which classes occur is what no epsilon covers."""
    with pytest.warns(LearntDomainWarning), pytest.raises(ValueError, match="charges a finite epsilon"):
        LabelRR(0.5, ledger=ledger).fit_transform([0, 1, 2], ids=[1, 2, 3])
    with pytest.warns(LearntDomainWarning), pytest.raises(ValueError, match="charges a finite epsilon"):
        CategoricalPrivatizer(0.5, ledger=ledger).fit_transform(CODES, ids=IDS)
    assert ledger.verify().n_releases == 0


def test_a_published_calibration_is_charged_at_what_it_really_costs(ledger):
    """BitRand's stated epsilon is not its exact one: with 1 stated, no budget of 1.2 allows it."""
    with pytest.warns(PrivacyGuaranteeWarning):
        charged = BitRandTransformer(1.0, ledger=ledger).fit(NUMBERS)
    assert charged.privacy_guarantee_.epsilon > 1.2
    with pytest.raises(BudgetExhaustedError):
        charged.transform(NUMBERS, ids=IDS)


def test_a_gaussian_needs_a_delta(ledger):
    gaussian = NumericPrivatizer(0.3, mechanism="gaussian", delta=1e-6)
    with pytest.raises(ValueError, match="needs a budget with a delta"):
        under(gaussian, ledger).fit_transform(NUMBERS, ids=IDS)
    with closing(PrivacyLedger(1.2, rule="approximate", delta=1e-5)) as other:
        assert under(gaussian, other).fit_transform(NUMBERS, ids=IDS).shape == NUMBERS.shape
        assert other.verify().ok


def test_what_adds_no_noise_releases_nothing_and_charges_nothing(ledger):
    charged = NumericPrivatizer(0.5, transform_noise=False, ledger=ledger)
    charged.fit_transform(NUMBERS, ids=IDS)
    np.testing.assert_array_equal(charged.transform(NUMBERS, ids=IDS), NUMBERS)
    np.testing.assert_array_equal(charged.transform(NUMBERS), NUMBERS)
    assert ledger.verify().n_releases == 1


def test_ids_are_routed_through_pipelines_and_kept_beside_frames(ledger):
    frame = pd.DataFrame(NUMBERS, columns=["x", "y", "z"])
    with config_context(enable_metadata_routing=True):
        step = NumericPrivatizer(0.5, ledger=ledger).set_transform_request(ids=True).set_output(transform="pandas")
        released = make_pipeline(FunctionTransformer(), step).fit_transform(frame, ids=IDS)
        assert list(released.columns) == ["x", "y", "z"]
        parts = ColumnTransformer([("two", clone(step), ["x", "y"])])
        assert parts.fit_transform(frame, ids=IDS).shape == (6, 2)
    np.testing.assert_allclose(ledger.realized_loss(IDS), 1.0, rtol=0, atol=1e-6)


def test_blocks_and_inner_labels_have_no_ids(ledger):
    charged = NumericPrivatizer(0.5, ledger=ledger).fit(NUMBERS)
    with pytest.raises(ValueError, match="Got no ids"):
        release_blocks(charged, NUMBERS, np.empty_like(NUMBERS))
    labels = LabelPrivateClassifier(GaussianNB(), label_mechanism=LabelRR(1.0, classes=[0, 1], ledger=ledger))
    with pytest.raises(ValueError, match="Got no ids"):
        labels.fit(NUMBERS, [0, 1] * 3)
    assert ledger.verify().n_releases == 0


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
