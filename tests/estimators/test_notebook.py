"""A notebook shows the guarantee of what is fitted, and nothing else is changed."""

import html
import inspect
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils import estimator_html_repr

import skldp
from skldp import BayesianFilter, CategoricalPrivatizer, LabelPrivateClassifier, LabelRR, LabelSampler
from skldp.mechanisms import PrivUnit, estimate_frequencies

pytestmark = [
    pytest.mark.filterwarnings("ignore::skldp.exceptions.PrivacyGuaranteeWarning"),
    pytest.mark.filterwarnings("ignore::skldp.exceptions.TooFewPeopleWarning"),
]

# So many people that their released labels are never all of one class.
X = np.linspace(-1, 1, 192).reshape(64, 3)
Y = np.array([0, 1] * 32)


FITTED = {
    "BayesianFilter": lambda: BayesianFilter(LinearRegression(), bounds=(-1, 1), output_bounds=(0, 1)).fit(X, Y),
    "BitRandTransformer": lambda: skldp.BitRandTransformer().fit(X),
    "CategoricalPrivatizer": lambda: CategoricalPrivatizer(categories=[["a", "b"]]).fit([["a"], ["b"]]),
    "LabelLaplace": lambda: skldp.papers.LabelLaplace(classes=[0, 1]).fit(Y),
    "LabelLaplaceVector": lambda: skldp.papers.LabelLaplaceVector(classes=[0, 1]).fit(Y),
    "LabelMatrixRR": lambda: skldp.papers.LabelMatrixRR(classes=[0, 1]).fit(np.column_stack([Y, Y])),
    "LabelPrivateClassifier": lambda: LabelPrivateClassifier(LogisticRegression(), label_mechanism=label_rr()).fit(
        X, Y
    ),
    "LabelPrivateRegressor": lambda: skldp.LabelPrivateRegressor(
        LinearRegression(), target_mechanism=skldp.TargetPrivatizer(bounds=(0, 1))
    ).fit(X, Y),
    "LabelRR": lambda: label_rr().fit(Y),
    "LabelSampler": lambda: sampled(LabelSampler(label_rr())),
    "LatentTransformer": lambda: skldp.papers.LatentTransformer().fit(X),
    "MultivariateLaplacePrivatizer": lambda: skldp.MultivariateLaplacePrivatizer().fit(X),
    "NoiseAwareDiscriminant": lambda: skldp.NoiseAwareDiscriminant(PrivUnit(3, 4.0)).fit(X, Y),
    "NoiseAwareLinearRegression": lambda: skldp.NoiseAwareLinearRegression(PrivUnit(3, 4.0)).fit(X, Y),
    "NumericPrivatizer": lambda: skldp.NumericPrivatizer().fit(X),
    "OMETransformer": lambda: skldp.papers.OMETransformer().fit(X),
    "PrivUnitTransformer": lambda: skldp.PrivUnitTransformer().fit(X),
    "PrivateDiscriminant": lambda: skldp.PrivateDiscriminant(classes=[0, 1]).fit(X, Y),
    "PrivateLinearRegression": lambda: skldp.PrivateLinearRegression().fit(X, Y),
    "PrivateLogisticRegression": lambda: skldp.PrivateLogisticRegression(classes=[0, 1]).fit(X, Y),
    "PrivateMoments": lambda: skldp.PrivateMoments().fit(X),
    "RandomProjectionPrivatizer": lambda: skldp.RandomProjectionPrivatizer(n_components=2).fit(X),
    "TablePrivatizer": lambda: skldp.TablePrivatizer().fit(X),
    "TargetPrivatizer": lambda: skldp.TargetPrivatizer(bounds=(0, 1)).fit(Y),
}


def label_rr():
    return LabelRR(classes=[0, 1])


def sampled(sampler):
    sampler.fit_resample(X, Y)
    return sampler


def test_every_public_estimator_is_among_these():
    public = {
        name
        for door in (skldp, skldp.papers)
        for name, thing in inspect.getmembers(door, inspect.isclass)
        if hasattr(thing, "privacy_guarantee_") or hasattr(thing, "query")
    }
    assert set(FITTED) == public


@pytest.mark.few(8)
@pytest.mark.parametrize("name", FITTED)
def test_shows_the_guarantee_after_fit(name):
    estimator = FITTED[name]()
    assert type(estimator).__name__ == name
    drawn, alone = estimator._repr_html_(), estimator_html_repr(estimator)
    shown = estimator.privacy_guarantee_._repr_html_()
    assert shown in drawn
    assert "Privacy guarantee" not in alone
    # The ids of scikit-learn's own picture differ between two drawings, so only its length is compared.
    assert len(drawn) == pytest.approx(len(alone) + len(shown), abs=200)
    assert estimator._repr_mimebundle_()["text/html"].count("Privacy guarantee") == 1
    # scikit-learn's own picture has a stray tag in some versions.
    assert unbalanced(drawn) == unbalanced(alone)


@pytest.mark.few(8)
@pytest.mark.parametrize("name", FITTED)
def test_its_box_in_a_pipeline_shows_the_figures(name):
    estimator = FITTED[name]()
    within = Pipeline([("step", estimator)])
    caption = html.escape(estimator.privacy_guarantee_.headline())
    assert estimator_html_repr(within).count(caption) == 1
    assert caption not in estimator_html_repr(clone(within))
    assert unbalanced(estimator_html_repr(within)) == unbalanced(estimator_html_repr(clone(within)))


def test_a_box_tells_of_a_change_and_of_a_seed():
    release = skldp.NumericPrivatizer().fit(X)
    assert "no privacy guarantee: changed after fit" in estimator_html_repr(
        Pipeline([("step", release.set_params(epsilon=3))])
    )
    seeded = skldp.NumericPrivatizer(seed=0)
    with pytest.warns(skldp.exceptions.SeededNoiseWarning):
        seeded.fit_transform(X)
    assert "void for anyone who knows the seed" in estimator_html_repr(Pipeline([("step", seeded)]))


def test_results_are_shown_as_tables():
    ledger = skldp.PrivacyLedger(2.0, bounds=(-1, 1), rule="basic")
    for text in ("Privacy ledger", "basic", ":memory:"):
        assert text in ledger._repr_html_()
    survey = BayesianFilter(LinearRegression(), epsilon=1.0, output_bounds=(0, 1), ledger=ledger).fit(X, Y)
    result = survey.query(X[:8], ids=range(8))
    assert '<th style="text-align:left">answered</th><td style="text-align:left">8</td>' in result._repr_html_()
    estimate = estimate_frequencies([60, 40], 100, 0.75, 0.25, categories=np.array(["<yes>", "no"]))
    assert "&lt;yes&gt;" in estimate._repr_html_()
    assert "0.7<" in estimate._repr_html_()
    assert estimate.to_frame().loc["no", "frequency"] == estimate.frequencies[1]
    assert list(estimate_frequencies([60, 40], 100, 0.75, 0.25).to_frame().index) == [0, 1]


def unbalanced(text):
    """Tags that were opened and not closed, or closed and not opened."""
    open_tags, wrong = [], []

    class Balance(HTMLParser):
        def handle_starttag(self, tag, attrs):
            if tag not in ("input", "br", "img", "meta", "link"):
                open_tags.append(tag)

        def handle_endtag(self, tag):
            if open_tags and open_tags[-1] == tag:
                open_tags.pop()
            else:
                wrong.append(tag)

    Balance().feed(text)
    return open_tags + wrong
