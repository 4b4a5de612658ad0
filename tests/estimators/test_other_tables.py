"""Tables that no example shows, given to the estimators that learn under local privacy."""

import numpy as np
import pytest

from skldp import (
    PrivateLinearRegression,
)
from skldp.exceptions import OutOfDomainWarning, TooFewPeopleWarning

# What is compared with a threshold cannot fail by chance.
pytestmark = pytest.mark.usefixtures("fixed_noise")


X = np.random.default_rng(0).uniform(-1, 1, (2_000, 2))


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("rows", "target", "words"),
    [
        (X, X[:, 0], None),
        (3 * X, X[:, 0], "Declare wider bounds if"),
        (X, 3 * X[:, 0], r"\(1,\d{3} in the target\)\. Declare wider target_bounds if"),
        (3 * X, 3 * X[:, 0], r" of 6,000 values .* in the target\)\. Declare wider bounds and target_bounds if"),
    ],
)
def test_what_lies_outside_is_told_with_the_parameter_that_it_takes(recwarn, rows, target, words):
    model = PrivateLinearRegression(epsilon=4.0)
    if words is None:
        model.fit(rows, target)
        assert not recwarn
    else:
        with pytest.warns(OutOfDomainWarning, match=words):
            model.fit(rows, target)


@pytest.mark.parametrize("n_people", [1, 2, 10])
@pytest.mark.parametrize("protocol", ["rounds", "once"])
def test_a_handful_of_people_is_told_how_many_it_takes(n_people, protocol):
    model = PrivateLinearRegression(epsilon=1.0, protocol=protocol)
    with pytest.warns(TooFewPeopleWarning, match="at least .* people are needed"):
        model.fit(X[:n_people], X[:n_people, 0])
    np.testing.assert_array_equal(model.coef_, 0)
    assert np.abs(model.predict(X)).max() <= 1
