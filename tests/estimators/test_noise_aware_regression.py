"""NoiseAwareLinearRegression: what it undoes, its errors, when it cannot work, and scikit-learn's rules."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from skldp import NoiseAwareLinearRegression, NumericPrivatizer, PrivUnitTransformer, privacy_guarantee
from skldp.exceptions import TooFewPeopleWarning

pytestmark = pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")


@pytest.mark.filterwarnings("ignore::skldp.exceptions.TooFewPeopleWarning")
@pytest.mark.filterwarnings("ignore::skldp.exceptions.OutOfDomainWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([NoiseAwareLinearRegression(NumericPrivatizer(8.0, mechanism="piecewise"))])
def test_scikit_learn_checks(estimator, check, fixed_noise):
    check(estimator)
