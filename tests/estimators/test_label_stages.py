"""Labels released in stages: everybody once, by the law that their prior gives, and nothing of a label elsewhere."""

import numpy as np
import pandas as pd
import pytest
from laws import THRESHOLD, binomial_pvalue
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skldp import LabelPrivateClassifier, LabelRR, NumericPrivatizer, PrivacyLedger, privacy_guarantee
from skldp.estimators._label_private_classifier import _cohorts, _of_people, _rows_of
from skldp.exceptions import ChangedAfterFitError
from skldp.mechanisms import noise_from
from skldp.mechanisms.categorical._label_laws import RandomizedResponseWithPrior, RowPriorResponse, as_priors
from skldp.papers import LabelLaplace

pytestmark = pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")

# Four kinds of people; nearly all of a kind have one of two classes.
CELLS = np.tile(np.arange(4), 2_000)
SHARES = np.array([[0.9, 0.1, 0.0, 0.0], [0.4, 0.6, 0.0, 0.0], [0.0, 0.0, 0.8, 0.2], [0.0, 0.0, 0.45, 0.55]])
X = CELLS[:, None].astype(float)
Y = (np.random.default_rng(0).uniform(size=CELLS.size)[:, None] > SHARES[CELLS].cumsum(axis=1)[:, :3]).sum(axis=1)


class Recording(ClassifierMixin, BaseEstimator):
    """Knows the kinds, and writes down what it was fitted on."""

    seen = ()

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.arange(4)
        type(self).seen = (*type(self).seen, (np.asarray(X), np.asarray(y), sample_weight))
        return self

    def predict_proba(self, X):
        return np.full((len(X), 4), 0.25)

    def predict(self, X):
        return np.zeros(len(X), int)


def private(estimator=None, *, epsilon=1.0, stages=2, seed=None, **parameters):
    mechanism = LabelRR(epsilon, classes=range(4), seed=seed)
    inner = DecisionTreeClassifier() if estimator is None else estimator
    return LabelPrivateClassifier(inner, label_mechanism=mechanism, stages=stages, **parameters)


@pytest.mark.parametrize("n", [2, 7, 100])
@pytest.mark.parametrize("stages", [1, 2])
def test_everybody_is_in_one_cohort(n, stages):
    parts = _cohorts(n, stages, noise_from())
    assert sorted(np.concatenate(parts).tolist()) == list(range(n))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_a_released_label_is_never_drawn_anew(fixed_noise):
    """The attack: two releases of one person. What a later model is fitted on agrees with the earlier one's."""
    Recording.seen = ()
    rows = np.arange(300.0)[:, None]
    private(Recording(), epsilon=0.1, stages=3).fit(rows, np.zeros(300, int), sample_weight=np.arange(300) + 0.5)
    labels = {}
    for fitted_on, released, weight in Recording.seen:
        np.testing.assert_array_equal(weight, fitted_on[:, 0] + 0.5)
        for person, label in zip(fitted_on[:, 0], released, strict=True):
            assert labels.setdefault(person, label) == label
    assert [len(released) for _, released, _ in Recording.seen] == [100, 200, 300]
    assert sorted(labels) == list(range(300))


def test_people_are_divided_whatever_their_labels(fixed_noise):
    """Sorted rows would put one class into each cohort."""
    Recording.seen = ()
    private(Recording()).fit(np.arange(4_000.0)[:, None], np.repeat(np.arange(4), 1_000))
    first = Recording.seen[0][0][:, 0] // 1_000
    assert all(binomial_pvalue(count, 1_000, 0.5) > THRESHOLD for count in np.bincount(first.astype(int)))


@pytest.mark.parametrize("stages", [2, 3])
def test_what_is_learnt_is_the_law_of_all_stages_together(stages):
    fitted = private(epsilon=2.0, stages=stages, seed=3).fit(X, Y)
    kinds = np.arange(4.0)[:, None]
    # The law of each kind's labels from the formula, with the priors that the fitted models gave.
    priors = [np.full((4, 4), 0.25), *(model.predict_proba(kinds) for model in fitted.stages_[:-1])]
    sizes = [len(part) for part in np.array_split(X, stages)]
    laws = [[RandomizedResponseWithPrior(2.0, tuple(row)).flip_matrix for row in as_priors(p)] for p in priors]
    law = sum(n * np.array(one) for n, one in zip(sizes, laws, strict=True)) / len(X)
    true = np.array([np.bincount(Y[cell == CELLS], minlength=4) for cell in range(4)]) / 2_000
    expected, learnt = np.einsum("ni,nij->nj", true, law), fitted.predict_proba(kinds)
    for cell in range(4):
        for j in range(4):
            # Less spread than a binomial one: the labels are given.
            assert binomial_pvalue(round(2_000 * learnt[cell, j]), 2_000, expected[cell, j]) > THRESHOLD


@pytest.mark.parametrize("epsilon", [1e-17, 1e-9, 40.0])
def test_any_epsilon_and_any_model_go_through(epsilon, fixed_noise):
    class Wild(Recording):
        def predict_proba(self, X):
            return np.resize([np.nan, np.inf, 1e308, 0.0, -1.0], (len(X), 4))

    fitted = private(Wild(), epsilon=epsilon, stages=3).fit(X, Y)
    assert len(fitted.stages_) == 3


@pytest.mark.parametrize("stages", [2, 4])
def test_a_cohort_whose_answers_are_all_one_class_teaches_nothing(stages):
    """Many classifiers refuse a single class, which would be an error after people have answered."""
    fitted = private(LogisticRegression(), epsilon=500.0, stages=stages, seed=0).fit(
        [[0.0], [1.0], [2.0], [3.0]], [0, 0, 0, 1]
    )
    assert fitted.stages_[0] is None
    assert fitted.stages_[-1] is fitted.estimator_
    assert fitted.predict_proba([[0.0], [3.0]]).argmax(axis=1).tolist()[0] == 0


def test_what_has_one_entry_a_person_is_cut():
    cut = _of_people({"w": np.arange(3), "groups": ("a", "b", "c"), "other": [1, 2], "flag": True, "x": None}, 3,
                    np.array([0, 2]))  # fmt: skip
    assert cut["w"].tolist() == [0, 2]
    assert cut["groups"] == ["a", "c"]
    assert (cut["other"], cut["flag"], cut["x"]) == ([1, 2], True, None)
    assert _rows_of(pd.Series([5, 6, 7], index=[2, 1, 0]), np.array([0])).tolist() == [5]


@pytest.mark.parametrize(
    ("classifier", "rule"),
    [
        (private(LinearSVC()), "stages needs an estimator with predict_proba"),
        (private(stages=9_000), "at most the number of people; got 9000 with n_samples = 8000"),
        (private(stages=0), "stages"),
        (private(correction="forward"), "correction='forward' needs stages=1"),
        (private().set_params(label_mechanism=LabelLaplace(classes=range(4))), "stages needs a LabelRR"),
        (private().set_params(label_mechanism__prior=[0.25] * 4), "stages needs a LabelRR"),
        (private().set_params(label_mechanism__ledger=PrivacyLedger(1.0)), "stages needs a LabelRR"),
    ],
)
def test_what_stages_cannot_do_is_refused_before_a_label_is_read(classifier, rule):
    labels = np.array(["not a class"] * len(X))
    with pytest.raises(ValueError, match=rule):
        classifier.fit(X, labels)


def test_stages_pay_where_the_first_cohort_tells_most_classes_apart():
    """Two of forty classes are possible for each kind of people, who have told little at epsilon 1."""
    rng = np.random.default_rng(1)
    kinds = rng.integers(20, size=4_000)
    rows, labels = np.eye(20)[kinds], 2 * kinds + (rng.uniform(size=4_000) < 0.3)

    def score(stages, seed):
        mechanism = LabelRR(1.0, classes=range(40), seed=seed)
        classifier = LabelPrivateClassifier(LogisticRegression(), label_mechanism=mechanism, stages=stages)
        return classifier.fit(rows, labels).score(rows, labels)

    assert all(score(2, seed) > score(1, seed) + 0.03 for seed in range(4))


def test_every_stage_releases_the_features_of_those_before_again(fixed_noise):
    X, y = np.random.default_rng(0).uniform(-1, 1, (60, 2)), np.arange(60) % 2
    labels = LabelRR(2.0, classes=[0, 1])
    inner = make_pipeline(NumericPrivatizer(3.0, mechanism="laplace"), KNeighborsClassifier(1))
    model = LabelPrivateClassifier(inner, label_mechanism=labels, stages=3).fit(X, y)
    # The attack: two models hold other releases of the rows of the first cohort.
    first, last = model.stages_[0][-1]._fit_X, model.stages_[-1][-1]._fit_X
    assert len(first) == 20
    assert len(last) == 60
    assert not set(map(tuple, first)) & set(map(tuple, last))
    guarantee = privacy_guarantee(model)
    assert guarantee.epsilon == np.inf
    assert "release once, before it" in guarantee.basis
    before = privacy_guarantee(make_pipeline(inner[0], clone(model).set_params(estimator=inner[1])).fit(X, y))
    assert 4.99 < before.epsilon <= 5
    assert privacy_guarantee(clone(model).set_params(stages=1).fit(X, y)).epsilon <= 5


def test_stages_are_fixed_at_fit():
    fitted = private().fit(X, Y)
    with pytest.raises(ValueError, match="correction='forward' needs stages=1"):
        clone(fitted).fit(X, Y).set_params(correction="forward").predict_proba(X[:2])
    fitted.set_params(stages=1)
    with pytest.raises(ChangedAfterFitError, match="stages"):
        _ = fitted.privacy_guarantee_


def test_the_guarantee_is_exact_of_one_label():
    guarantee = private(epsilon=1.3).fit(X, Y).privacy_guarantee_
    assert guarantee.epsilon == max(law.exact_epsilon for law in RowPriorResponse(1.3, 4).laws) <= 1.3
    assert (guarantee.unit, guarantee.stated, guarantee.seeded) == ("label", 1.3, False)
    assert private(seed=0).fit(X, Y).privacy_guarantee_.seeded
    assert privacy_guarantee(private().fit(X, Y)).unit == "label"


@pytest.mark.filterwarnings("ignore::skldp.exceptions.LearntDomainWarning")
def test_learnt_classes_are_covered_by_no_epsilon():
    fitted = LabelPrivateClassifier(GaussianNB(), stages=2).fit(X, Y)
    assert fitted.privacy_guarantee_.epsilon == np.inf
