"""The dishonest server of examples/papers/membership_attack.py reads releases from gradients, and no more than them."""

import numpy as np
import pytest
from membership_attack import MECHANISMS, PlantedUnit

from skldp.study import audit_epsilon

pytestmark = [
    pytest.mark.filterwarnings("ignore::skldp.exceptions.PrivacyGuaranteeWarning"),
    pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning"),
]


class Open:
    """A release without noise."""

    def transform(self, rows):
        return rows


def naive_gradient(unit, records):
    """The mean gradient of the unit's weights and bias by differences, for clients whose records have the label 1."""
    inputs = np.column_stack([records, np.ones(len(records))])
    labels = np.tile([0.0, 1.0], (len(records), 1))

    def loss(theta):
        scores = unit.model.scores(theta, inputs)
        return float(np.mean(np.log(np.exp(scores).sum(axis=1)) - (scores * labels).sum(axis=1)))

    steps = np.eye(len(unit.theta))[: inputs.shape[1]] * 1e-6
    return np.array([(loss(unit.theta + step) - loss(unit.theta - step)) / 2e-6 for step in steps])


def test_a_client_sends_the_gradient_of_its_released_records():
    rng = np.random.default_rng(0)
    target, others = np.array([1.0, -1.0, 1.0]), rng.uniform(-1, 1, (4, 3))
    unit = PlantedUnit(Open(), target, others, threshold=0.1)
    # A unit of full weight, so that differences can be seen.
    unit.theta[4] = 0.7
    row = rng.uniform(-1, 1, (1, 3))
    sent = unit.gradients(row)[0][:4]
    np.testing.assert_allclose(sent, naive_gradient(unit, np.concatenate([row, others])), atol=1e-8)
    assert np.any(sent != 0)


def test_attack_the_server_reads_the_one_record_that_activates_its_unit():
    target = np.array([1.0, -1.0, 1.0, 1.0])
    others = np.array([[-0.5, 0.5, 0.2, -0.9], [0.1, 0.3, -1.0, 0.2]])
    unit = PlantedUnit(Open(), target, others, threshold=0.3)
    member = np.array([[0.9, -0.8, 0.7, -0.1]])
    of_unit = unit.gradients(np.concatenate([member, -member]))[:, :5]
    np.testing.assert_allclose(of_unit[0, :4] / of_unit[0, 4], member[0], rtol=1e-12)
    assert not of_unit[1].any()
    assert unit(np.concatenate([member, -member])).tolist() == [0.5, -2.0]


def test_every_client_releases_its_own_other_records():
    """Attack: one release of the others for all clients of a call, so that trials depend on each other."""

    class Numbered(Open):
        def transform(self, rows):
            return rows + np.arange(len(rows))[:, None]

    others = np.zeros((3, 2))
    unit = PlantedUnit(Numbered(), np.ones(2), others, threshold=-1e6)
    sent = unit.gradients(np.zeros((5, 2)))
    # The mean of a client's four records: its own, released as the client's number, and three others.
    own = [[client, *range(5 + 3 * client, 8 + 3 * client)] for client in range(5)]
    np.testing.assert_allclose(sent[:, 0] / sent[:, 2], np.mean(own, axis=1), rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "epsilon", "above_stated"),
    [
        ("BitRand", 1.0, True),
        ("BitRand", 4.0, True),
        ("OME, alpha 100", 1.0, True),
        ("OME, alpha 100", 4.0, True),
        ("BitRand, exact", 1.0, False),
        ("BitRand, exact", 4.0, False),
        ("PrivUnit", 1.0, False),
        ("PrivUnit", 4.0, False),
    ],
)
def test_attack_published_calibrations_are_refuted_and_exact_ones_are_not(name, epsilon, above_stated):
    target = np.random.default_rng(0).choice([-1.0, 1.0], 64)
    release = MECHANISMS[name](epsilon).set_params(seed=1).fit(target[None])
    unit = PlantedUnit(release, target, np.empty((0, 64)), threshold=-1e6)
    # One call: a seeded release repeats its noise from call to call.
    result = audit_epsilon(unit, target, -target, n_trials=8_000, confidence=0.999, seed=0)
    assert 0.4 * min(epsilon, 5) < result.epsilon_lower < release.privacy_guarantee_.epsilon
    assert (result.epsilon_lower > epsilon) == above_stated
