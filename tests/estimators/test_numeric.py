"""NumericPrivatizer: scikit-learn's law, unbiased in the original units, and what it refuses."""

import numpy as np
import pytest
from estimator_checks import expected_failures
from sklearn.utils.estimator_checks import parametrize_with_checks

from skldp.estimators.numeric import NumericPrivatizer
from skldp.mechanisms.numeric import NUMERIC_MECHANISMS

ESTIMATORS = [NumericPrivatizer(), NumericPrivatizer(random_state=0)]
ESTIMATORS += [NumericPrivatizer(mechanism=name, random_state=0) for name in ("duchi_vector", "laplace", "best")]
ESTIMATORS += [NumericPrivatizer(mechanism="gaussian", delta=1e-5, random_state=0)]


@pytest.mark.filterwarnings("ignore::skldp.exceptions.OutOfDomainWarning", "ignore::skldp.exceptions.SeededNoiseWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures, xfail_strict=True)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
