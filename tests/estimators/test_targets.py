"""Numbers to predict: TargetPrivatizer, the regressor that is trained on what it releases, and scikit-learn's own."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from laws import THRESHOLD
from scipy.stats import chi2_contingency
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr, get_tags

from skldp import LabelPrivateClassifier, LabelPrivateRegressor, TargetPrivatizer
from skldp.exceptions import LearntDomainWarning
from skldp.mechanisms._shares import share_out
from skldp.mechanisms.categorical._one_hot import UnaryEncoding
from skldp.mechanisms.numeric._response_on_bins import PriorQuestion

seeds_expected = pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")
RNG = np.random.default_rng(0)
N = 20_000
X = RNG.uniform(-1, 1, (N, 3))
Y = 50 + 20 * X @ [1.0, -0.5, 0.25] + RNG.standard_normal(N)
MECHANISMS = [
    "bins",
    "unbiased_bins",
    "duchi",
    "three_outputs",
    "piecewise",
    "piecewise_opt",
    "hybrid",
    "laplace",
    "best",
]


def private(epsilon=4.0, mechanism="unbiased_bins", *, estimator=None, **parameters):
    return LabelPrivateRegressor(
        estimator or LinearRegression(),
        target_mechanism=TargetPrivatizer(epsilon, bounds=(0, 100), mechanism=mechanism, **parameters),
    )


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_releases_targets_in_their_shape_and_type(mechanism, dtype):
    y = Y[:100].astype(dtype)
    privatizer = TargetPrivatizer(2.0, bounds=(0, 100), mechanism=mechanism)
    released = privatizer.fit_transform(y)
    assert released.shape == (100,)
    assert released.dtype == (dtype if dtype == np.float32 else np.float64)
    assert privatizer.transform(y[:, None]).shape == (100, 1)
    assert privatizer.transform(pd.Series(y)).shape == (100,)
    np.testing.assert_array_equal(privatizer.inverse_transform(released), released)
    guarantee = privatizer.privacy_guarantee_
    assert (guarantee.unit, guarantee.stated) == ("label", 2.0)
    assert guarantee.epsilon <= 2.0
    assert guarantee.epsilon == pytest.approx(2.0, rel=1e-6)


@pytest.mark.parametrize("mechanism", [name for name in MECHANISMS if name != "bins"])
@seeds_expected
def test_all_but_the_published_bins_are_unbiased(mechanism):
    y = np.full(40_000, 17.0)
    released = TargetPrivatizer(4.0, bounds=(0, 100), mechanism=mechanism, seed=3).fit_transform(y)
    assert abs(released.mean() - 17) < 5 * released.std() / 200


def test_bins_have_the_smallest_expected_loss_of_all():
    y = np.linspace(0, 100, 1001)[:, None]
    losses = {}
    for name in MECHANISMS:
        law = TargetPrivatizer(2.0, bounds=(0, 100), mechanism=name).fit(y).mechanism_
        bias = law.bias(y).ravel()
        losses[name] = float((law.variance(y).ravel() + bias**2).mean())
    assert min(losses, key=losses.get) == "bins"


@seeds_expected
def test_a_prior_from_a_share_of_the_budget_is_counted():
    y = 100 * np.random.default_rng(1).beta(2, 8, 50_000)
    privatizer = TargetPrivatizer(4.0, bounds=(0, 100), mechanism="bins", prior=0.25, seed=0).fit(y)
    guarantee = privatizer.privacy_guarantee_
    asked = UnaryEncoding(1.0, 16).exact_epsilon
    answered = privatizer.mechanism_.exact_epsilon
    assert privatizer.mechanism_.epsilon == 3.0
    assert Fraction(guarantee.epsilon) >= Fraction(asked) + Fraction(answered)
    assert guarantee.epsilon <= guarantee.stated == 4.0
    assert guarantee.basis.startswith("sum of (")
    assert "bins of that prior" in guarantee.basis
    shares = np.histogram(y, 16, (0, 100))[0] / y.size
    np.testing.assert_allclose(privatizer.prior_, shares, atol=0.03)
    # Worth it: the same people, the same budget, the uniform prior.
    plain = TargetPrivatizer(4.0, bounds=(0, 100), mechanism="bins").fit(y)
    losses = [
        float((law.variance(y[:, None]) + law.bias(y[:, None]) ** 2).mean())
        for law in (privatizer.mechanism_, plain.mechanism_)
    ]
    assert losses[0] < losses[1]


@seeds_expected
def test_the_answers_for_the_prior_and_the_targets_have_noise_of_their_own(monkeypatch):
    # A seed gives the same noise at every call: with one stream for both, a bit would tell which draw kept the bin.
    seen = []
    estimate = PriorQuestion.estimate
    monkeypatch.setattr(PriorQuestion, "estimate", lambda self, bits: seen.append(bits) or estimate(self, bits))
    y = np.full(4_000, 5.0)
    privatizer = TargetPrivatizer(2.0, bounds=(0, 100), mechanism="bins", prior=0.5, seed=7)
    released = privatizer.fit_transform(y)
    for bits in (seen[0].ravel()[:4_000], seen[0][:, 1]):
        table = [[((released == answer) & (bits == bit)).sum() for bit in (0, 1)] for answer in set(released.tolist())]
        assert chi2_contingency(table).pvalue > THRESHOLD


@pytest.mark.few(3)
@pytest.mark.parametrize("mechanism", ["bins", "unbiased_bins"])
@pytest.mark.parametrize("epsilon", [1e-5, 20.0, 40.0])
@seeds_expected
def test_what_a_learnt_prior_chooses_costs_no_more_than_is_promised(epsilon, mechanism):
    # Another number of answers has other integers, whose exact epsilon is another one.
    for y in (np.full(3_000, 3.0), np.repeat([1.0, 99.0], 1_500)):
        privatizer = TargetPrivatizer(epsilon, bounds=(0, 100), mechanism=mechanism, prior=0.3, seed=0).fit(y)
        asked = PriorQuestion(share_out(epsilon, (1 - 0.3, 0.3))[1], 0.0, 100.0).guarantee()
        spent = Fraction(asked.epsilon) + Fraction(privatizer.mechanism_.exact_epsilon)
        assert spent <= Fraction(privatizer.privacy_guarantee_.epsilon) <= Fraction(epsilon)


@pytest.mark.parametrize("mechanism", [StandardScaler(), make_pipeline(TargetPrivatizer(bounds=(0, 100)))])
def test_what_is_no_private_mechanism_is_refused_before_it_sees_a_target(mechanism):
    with pytest.raises(
        ValueError, match=r"`target_mechanism` must be a private mechanism, such as TargetPrivatizer\("
    ) as refused:
        LabelPrivateRegressor(Ridge(), target_mechanism=mechanism).fit(X[:3], [51.25, 52.5, 53.75])
    assert "51" not in str(refused.value)
    classifier = LabelPrivateClassifier(LogisticRegression(), label_mechanism=object())
    assert get_tags(classifier).non_deterministic
    assert "object" in estimator_html_repr(classifier)
    with pytest.raises(ValueError, match=r"`label_mechanism` must be .*, such as LabelRR\(\.\.\.\)"):
        LabelPrivateClassifier(LogisticRegression(), label_mechanism=mechanism).fit(X[:3], [0, 1, 1])


@seeds_expected
def test_a_prior_from_what_other_people_released():
    y = 100 * np.random.default_rng(1).beta(2, 8, 20_000)
    others = TargetPrivatizer(6.0, bounds=(0, 100), mechanism="bins", seed=0)
    prior = others.estimate_prior(others.fit_transform(y))
    privatizer = TargetPrivatizer(2.0, bounds=(0, 100), prior=prior).fit(y)
    assert privatizer.privacy_guarantee_.epsilon <= 2.0
    np.testing.assert_allclose(privatizer.prior_, prior)
    with pytest.raises(ValueError, match="needs mechanism='bins'"):
        TargetPrivatizer(bounds=(0, 1), mechanism="best").fit([0.5]).estimate_prior([0.5])


@pytest.mark.parametrize(
    ("y", "match"),
    [
        (None, "requires y"),
        ([], "at least one number"),
        ([0.5, np.nan], "Input y contains NaN"),
        ([[0.5, 0.5]], "1d array"),
        (["a"], "y must be real numbers"),
        ([1j], "Complex data"),
    ],
)
def test_refuses_what_is_no_column_of_numbers(y, match):
    with pytest.raises(ValueError, match=match):
        TargetPrivatizer(bounds=(0, 1)).fit_transform(y)


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"epsilon": True}, "epsilon"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"bounds": (1, 0)}, "bounds"),
        ({"mechanism": "gaussian"}, "mechanism"),
        ({"prior": 1.0}, "prior"),
        ({"prior": [0.5, 0.6]}, "prior must be"),
        ({"prior": [0.5, 0.5], "mechanism": "hybrid"}, "prior must be None for"),
        ({"prior": 0.5, "mechanism": "best"}, "prior must be None for"),
    ],
    ids=str,
)
def test_refuses_parameters_out_of_range(parameters, match):
    with pytest.raises(ValueError, match=match):
        TargetPrivatizer(**{"bounds": (0, 1)} | parameters).fit([0.5])


# The model.


@pytest.mark.parametrize("mechanism", ["unbiased_bins", "piecewise_opt", "best"])
@seeds_expected
def test_a_line_is_learnt_without_bias_from_unbiased_targets(mechanism):
    model = private(4.0, mechanism, seed=0).fit(X, Y)
    plain = LinearRegression().fit(X, Y)
    np.testing.assert_allclose(model.estimator_.coef_, plain.coef_, atol=1.5)
    assert model.score(X, Y) > 0.97
    assert model.privacy_guarantee_ == model.target_mechanism_.privacy_guarantee_


# scikit-learn's own.


def test_models_of_the_other_kind_are_refused_before_a_target_is_looked_at():
    diabetes, y = load_diabetes(return_X_y=True)
    with pytest.raises(ValueError, match=r"LabelPrivateRegressor trains regressors.*got Ridge"):
        LabelPrivateClassifier(Ridge()).fit(diabetes, y)
    with pytest.raises(ValueError, match="LabelPrivateRegressor"):
        LabelPrivateClassifier(make_pipeline(StandardScaler(), Ridge())).fit(diabetes, ["not looked at"])
    with pytest.raises(ValueError, match="LabelPrivateClassifier trains classifiers"):
        LabelPrivateRegressor(LogisticRegression()).fit(diabetes, y)


def test_bounds_that_were_learnt_void_the_guarantee():
    with pytest.warns(LearntDomainWarning, match="learnt the bounds of y"):
        privatizer = TargetPrivatizer().fit(Y)
    assert privatizer.bounds_ == (Y.min(), Y.max())
    assert privatizer.privacy_guarantee_.epsilon == np.inf
    with pytest.warns(LearntDomainWarning):
        assert np.isfinite(TargetPrivatizer().fit_transform([7.0, 7.0])).all()
    with pytest.raises(ValueError, match=r"y must be at most 1e\+60 in magnitude; got ndarray"):
        TargetPrivatizer().fit([1e300])
