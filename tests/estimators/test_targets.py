"""Numbers to predict: TargetPrivatizer, the regressor that is trained on what it releases, and scikit-learn's own."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import estimator_html_repr, get_tags

from skldp import LabelPrivateClassifier, LabelPrivateRegressor, TargetPrivatizer
from skldp.exceptions import LearntDomainWarning

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
        ({"prior": [0.5, 0.6]}, "prior must be"),
        ({"prior": [0.5, 0.5], "mechanism": "hybrid"}, "prior must be None for"),
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


@seeds_expected
def test_the_published_bins_draw_a_line_towards_the_middle():
    model = private(1.0, "bins", seed=0).fit(X, Y)
    assert 0 < model.estimator_.coef_[0] < 0.5 * LinearRegression().fit(X, Y).coef_[0]


@pytest.mark.usefixtures("fixed_noise")
def test_two_fits_see_different_targets():
    tree = private(0.1, estimator=DecisionTreeRegressor())
    rows = np.arange(500.0)[:, None]
    assert (tree.fit(rows, Y[:500]).predict(rows) != clone(tree).fit(rows, Y[:500]).predict(rows)).any()
