import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from skldp.estimators.bayesian_filter import BayesianFilter


@pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")
@pytest.mark.filterwarnings("ignore::skldp.exceptions.OutOfDomainWarning")
@parametrize_with_checks(
    [BayesianFilter(LinearRegression(), random_state=0), BayesianFilter(LinearRegression())],
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
