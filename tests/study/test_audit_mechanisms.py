"""Every public mechanism is attacked: no bound above its exact epsilon, nor far below it where outcomes are few."""

import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest

from skldp.estimators._bitrand import BitRandTransformer, LatentTransformer, OMETransformer
from skldp.estimators._categorical import CategoricalPrivatizer
from skldp.estimators._label_vectors import LabelLaplaceVector
from skldp.estimators._labels import LabelLaplace, LabelRR
from skldp.estimators._numeric import NumericPrivatizer
from skldp.estimators._vector import MultivariateLaplacePrivatizer, PrivUnitTransformer
from skldp.exceptions import PrivacyGuaranteeWarning
from skldp.mechanisms.numeric._bounded_features import _ALONE
from skldp.study import audit_estimator

CONFIDENCE = 1 - 1e-6
ONE = np.zeros((1, 1))
TWO = np.zeros((1, 2))
FOUR = np.zeros((1, 4))
AXIS = np.eye(8)[:1]
COLOURS = [["red", "green", "blue"]]
PAIRS_OF_WORDS = [["red", "green", "blue"], ["big", "small"]]


class Case(NamedTuple):
    """An estimator, what to fit it on, and the share of its exact epsilon that 20,000 outputs must prove."""

    estimator: Any
    fit_on: Any
    share: float


# One line an estimator.
CASES = [
    Case(LabelRR(1.0, classes=[0, 1]), [0, 1], 0.5),
    Case(LabelRR(1.0, classes=range(10)), [0, 1], 0.5),
    Case(LabelRR(2.0, classes=range(4), prior=[0.4, 0.3, 0.2, 0.1]), [0, 1], 0.5),
    Case(LabelLaplace(2.0, classes=[0, 1]), [0, 1], 0.5),
    Case(LabelLaplace(2.0, classes=range(5)), [0, 1], 0.5),
    Case(LabelLaplaceVector(2.0, classes=range(3)), [0, 1], 0.3),
    Case(CategoricalPrivatizer(1.0, mechanism="krr", categories=COLOURS), [["red"]], 0.5),
    Case(CategoricalPrivatizer(2.0, mechanism="krr", categories=PAIRS_OF_WORDS), [["red", "big"]], 0.5),
    Case(CategoricalPrivatizer(1.0, categories=PAIRS_OF_WORDS, n_sampled_features=1), [["red", "big"]], 0.3),
    Case(CategoricalPrivatizer(1.0, mechanism="sue", categories=COLOURS), [["red"]], 0.5),
    Case(CategoricalPrivatizer(1.0, mechanism="oue", categories=COLOURS), [["red"]], 0.5),
    Case(CategoricalPrivatizer(0.5, mechanism="subset", categories=[list("abcd")]), [["a"]], 0.5),
    Case(BitRandTransformer(1.0, n_bits=2), ONE, 0.4),
    Case(BitRandTransformer(1.0, n_bits=10), TWO, 0.2),
    Case(BitRandTransformer(1.0, calibration="exact"), ONE, 0.5),
    Case(BitRandTransformer(4.0, calibration="exact"), FOUR, 0.2),
    Case(BitRandTransformer(4.0, calibration="exact", n_sampled_features=1), TWO, 0.2),
    Case(BitRandTransformer(1.0, calibration="exact", debias=True), ONE, 0.5),
    Case(LatentTransformer(2.0, n_bits=2), ONE, 0.2),
    Case(LatentTransformer(2.0, n_bits=2, calibration="exact"), ONE, 0.2),
    Case(OMETransformer(2.0, n_bits=2), ONE, 0.5),
    Case(OMETransformer(2.0, n_bits=2, alpha=7.0), ONE, 0.3),
    Case(OMETransformer(2.0, n_bits=2, calibration="exact"), ONE, 0.5),
    *(Case(NumericPrivatizer(1.0, mechanism=name), ONE, 0.5) for name in _ALONE),
    Case(NumericPrivatizer(1.0, mechanism="gaussian", delta=1e-3), ONE, 0.1),
    Case(NumericPrivatizer(1.0, mechanism="duchi_vector"), FOUR, 0.5),
    Case(NumericPrivatizer(5.0, mechanism="hybrid"), FOUR, 0.3),
    Case(NumericPrivatizer(5.0, mechanism="laplace", n_sampled_features="all"), FOUR, 0.3),
    Case(MultivariateLaplacePrivatizer(1.0), AXIS, 0.3),
    Case(PrivUnitTransformer(2.0), AXIS, 0.5),
]


@pytest.mark.few(4)
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.estimator))
def test_the_exact_epsilon_stands(case, fixed_noise):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyGuaranteeWarning)
        fitted = case.estimator.fit(case.fit_on)
    delta = fitted.privacy_guarantee_.delta
    result = audit_estimator(fitted, confidence=CONFIDENCE, delta=delta, n_trials=20_000)
    assert result.epsilon_lower <= result.claimed, result
    assert result.epsilon_lower > case.share * result.claimed, result
