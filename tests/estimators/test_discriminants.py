"""PrivateDiscriminant and NoiseAwareDiscriminant: scikit-learn's rules, declared domains, guarantees, and warnings."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skldp import (
    BitRandTransformer,
    CategoricalPrivatizer,
    LabelRR,
    MultivariateLaplacePrivatizer,
    NoiseAwareDiscriminant,
    NumericPrivatizer,
    PrivateDiscriminant,
    PrivUnitTransformer,
    privacy_guarantee,
)
from skldp.exceptions import (
    ChangedAfterFitError,
    LearntDomainWarning,
    OutOfDomainWarning,
    TooFewPeopleWarning,
)
from skldp.papers import LabelLaplace

N, D = 12_000, 16
CLASSES = np.array(["no", "perhaps", "yes"])

pytestmark = [
    pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning"),
    pytest.mark.usefixtures("fixed_noise"),
]


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(3, size=n)
    return np.clip(rng.normal(0.6 * np.eye(3, D)[codes], 0.2), -1, 1.2), CLASSES[codes]


X, Y = people(N)


@pytest.mark.parametrize("named", [{}, {"public": people(200, seed=1)[0]}, {"radius": 2.5}])
def test_learns_nearly_what_vectors_and_classes_tell(named):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PrivateDiscriminant(2.0, bounds=(-1, 1.2), classes=CLASSES, **named).fit(X, Y)
    assert model.score(X, Y) > 0.9
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), probabilities)
    assert (model.coef_.shape, model.intercept_.shape) == ((3, D), (3,))
    guarantee = model.privacy_guarantee_
    assert 2 * (1 - 1e-6) <= guarantee.epsilon <= 2 == guarantee.stated
    assert (guarantee.delta, guarantee.unit) == (0.0, "record")
    assert ("`public` is assumed" in guarantee.basis) is ("public" in named)
    assert len(pickle.dumps(model)) < 200_000


def test_more_people_by_partial_fit():
    model = PrivateDiscriminant(1.0, bounds=(-1, 1.2), classes=CLASSES, seed=0)
    model.partial_fit(X[:4_000], Y[:4_000])
    before = model.coef_
    model.partial_fit(X[4_000:], Y[4_000:])
    assert not np.array_equal(model.coef_, before)
    assert model.score(X, Y) > 0.8
    with pytest.raises(ValueError, match="declared"):
        model.partial_fit(X[:2], ["no", "other"])
    model.set_params(epsilon=2.0)
    with pytest.raises(ChangedAfterFitError):
        model.partial_fit(X, Y)
    with pytest.raises(ChangedAfterFitError):
        _ = model.privacy_guarantee_


def test_of_too_few_people_the_shares_of_classes_are_told():
    model = PrivateDiscriminant(1.0, bounds=(-1, 1.2), classes=CLASSES, seed=0)
    with pytest.warns(TooFewPeopleWarning, match="shares"):
        model.fit(X[:50], Y[:50])
    assert np.ptp(model.predict_proba(X), axis=0).max() < 1e-12


def test_rows_outside_are_moved_and_counted():
    rows = X.copy()
    rows[:5] *= 1e3
    with pytest.warns(OutOfDomainWarning, match=r"^5 of 12,000 rows .* larger radius"):
        in_ball = PrivateDiscriminant(2.0, radius=2.5, classes=CLASSES, seed=0).fit(rows, Y)
    shortened = rows.copy()
    shortened[:5] *= 2.5 / np.linalg.norm(shortened[:5], axis=1, keepdims=True)
    same = PrivateDiscriminant(2.0, radius=2.5, classes=CLASSES, seed=0).fit(shortened, Y)
    np.testing.assert_allclose(in_ball.coef_, same.coef_, rtol=1e-6)
    moved = np.count_nonzero(np.abs(rows) > 1)
    with pytest.warns(OutOfDomainWarning, match=f"{moved:,} of {rows.size:,} values"):
        PrivateDiscriminant(2.0, classes=CLASSES).fit(rows, Y)


@pytest.mark.parametrize(
    "wrong",
    [{"epsilon": True}, {"bounds": (1, -1)}, {"radius": 0.0}, {"radius": True}, {"public": [[1.0]] * 20}, {"seed": -1}],
)
def test_parameters_are_checked(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        PrivateDiscriminant(**{"classes": CLASSES} | wrong).fit(X, Y)


MECHANISMS = {
    "directions": PrivUnitTransformer(4.0, transform_noise=False),
    "vectors": PrivUnitTransformer(4.0, norm=2.5, transform_noise=False),
    "distances": MultivariateLaplacePrivatizer(4.0, radius=2.5, transform_noise=False),
    "numbers": NumericPrivatizer(12.0, bounds=(-1, 1.2), n_sampled_features=4, transform_noise=False),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_learns_from_releases_of_mechanisms_whose_moments_are_known(name):
    rows, labels = clone(MECHANISMS[name]), LabelRR(2.0, classes=CLASSES)
    released, answers = rows.fit_transform(X), labels.fit_transform(Y)
    clean = rows.transform(X)
    model = NoiseAwareDiscriminant(rows, label_mechanism=labels).fit(released, answers)
    assert model.score(clean, Y) > 0.85
    of_mechanism = NoiseAwareDiscriminant(rows.mechanism_, label_mechanism=clone(labels)).fit(released, answers)
    np.testing.assert_array_equal(of_mechanism.coef_, model.coef_)
    np.testing.assert_array_equal(clone(of_mechanism).fit(released, answers).coef_, model.coef_)
    of_shape = NoiseAwareDiscriminant(clone(rows), label_mechanism=labels).fit(released, answers)
    np.testing.assert_array_equal(of_shape.coef_, model.coef_)


def test_labels_that_were_randomized_are_debiased():
    """The attack on the estimate: with flips that are not undone, class means lie nearer to each other."""
    rows, labels = PrivUnitTransformer(100.0, norm=2.5), LabelLaplace(3.0, classes=CLASSES)
    released, answers = rows.fit_transform(X), labels.fit_transform(Y)
    undone = NoiseAwareDiscriminant(rows, label_mechanism=labels).fit(released, answers)
    plain = NoiseAwareDiscriminant(rows).fit(released, answers)
    true = NoiseAwareDiscriminant(rows).fit(released, Y)
    size = np.linalg.norm(true.coef_)
    assert np.linalg.norm(undone.coef_ - true.coef_) < 0.3 * size < np.linalg.norm(plain.coef_ - true.coef_)


def test_what_is_computed_from_releases_costs_nothing_more():
    rows, labels = PrivUnitTransformer(3.0), LabelRR(1.0, classes=CLASSES)
    released, answers = rows.fit_transform(X), labels.fit_transform(Y)
    alone = NoiseAwareDiscriminant(rows).fit(released, Y)
    assert alone.privacy_guarantee_.epsilon == rows.privacy_guarantee_.epsilon
    assert "computed from releases" in alone.privacy_guarantee_.basis
    assert "labels are as they were given" in alone.privacy_guarantee_.basis
    both = NoiseAwareDiscriminant(rows, label_mechanism=labels).fit(released, answers)
    assert 3.999 < both.privacy_guarantee_.epsilon <= 4.0
    assert privacy_guarantee(both).epsilon == both.privacy_guarantee_.epsilon
    # Within a pipeline the release is counted once, where it happens.
    pipeline = make_pipeline(PrivUnitTransformer(3.0), NoiseAwareDiscriminant(PrivUnitTransformer(3.0))).fit(X, Y)
    assert 2.999 < privacy_guarantee(pipeline).epsilon <= 3.0
    assert "target not protected" in privacy_guarantee(pipeline).headline()
    pipeline[-1].set_params(label_mechanism=labels)
    pipeline.fit(X, answers)
    assert 3.999 < privacy_guarantee(pipeline).epsilon <= 4.0


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (NoiseAwareDiscriminant(PrivUnitTransformer(3.0).fit(X[:, :5])), "one number for each of 16 columns"),
        (NoiseAwareDiscriminant(BitRandTransformer(3.0, calibration="exact").fit(X[:5] / 2)), "at least 2"),
        (NoiseAwareDiscriminant(CategoricalPrivatizer(categories=[[-1.0, 0.0, 1.0]] * D)), "RowMechanism"),
        (NoiseAwareDiscriminant(NumericPrivatizer(3.0, n_sampled_features=1)), "at least 2"),
        (NoiseAwareDiscriminant(PrivUnitTransformer(3.0), label_mechanism=LabelRR(1.0)), "fitted"),
        (NoiseAwareDiscriminant(PrivUnitTransformer(3.0), public=[[1.0, 2.0]]), "16 columns"),
        (NoiseAwareDiscriminant(make_pipeline(PrivUnitTransformer(3.0))), "RowMechanism"),
        (NoiseAwareDiscriminant("privunit"), "mechanism"),
    ],
)
def test_what_does_not_fit_is_refused(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(np.clip(X, -1, 1), Y)


def test_public_vectors_say_in_which_directions_means_differ():
    public, with_public, without = people(300, seed=1)[0], [], []
    for seed in range(5):
        rows = PrivUnitTransformer(0.5, norm=2.5, transform_noise=False, seed=seed)
        released = rows.fit_transform(X[:3_000])
        without.append(NoiseAwareDiscriminant(rows).fit(released, Y[:3_000]).score(X, Y))
        model = NoiseAwareDiscriminant(rows, public=public).fit(released, Y[:3_000])
        with_public.append(model.score(X, Y))
    assert np.mean(with_public) > np.mean(without)
    assert "`public` is assumed" in model.privacy_guarantee_.basis


def test_classes_that_are_learnt_are_covered_by_no_epsilon():
    with pytest.warns(LearntDomainWarning):
        model = PrivateDiscriminant(3.0, bounds=(-1, 1.2)).fit(X, Y)
    assert model.privacy_guarantee_.epsilon == np.inf
