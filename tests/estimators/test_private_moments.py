"""PrivateMoments: scikit-learn's rules, what follows from the moments, the guarantee, and warnings."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.covariance import EmpiricalCovariance
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from skldp import PrivateMoments
from skldp.exceptions import ChangedAfterFitError, OutOfDomainWarning, SeededNoiseWarning, TooFewPeopleWarning

RNG = np.random.default_rng(0)
N = 40_000
X = RNG.uniform(-1, 1, (N, 4))
X[:, 1] = 0.6 * X[:, 0] + 0.4 * X[:, 1]
X[:, 3] = 0.4 * X[:, 0] - 0.3 * X[:, 2] + 0.05 * X[:, 3] + 0.1

pytestmark = pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")


@pytest.mark.filterwarnings("ignore::skldp.exceptions.OutOfDomainWarning")
@pytest.mark.filterwarnings("ignore::skldp.exceptions.TooFewPeopleWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    # At the second epsilon their few rows are enough for every step.
    [PrivateMoments(), PrivateMoments(seed=0), PrivateMoments(100.0, seed=0)]
)
def test_scikit_learn_checks(estimator, check, fixed_noise):
    check(estimator)
