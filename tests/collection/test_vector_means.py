"""Means of vectors from their reports: against a naive sum, in groups, and as planned."""

import numpy as np
import pytest

from skldp import Collector, NumericPrivatizer, PrivUnitTransformer, policy_from_estimator
from skldp.client import Field, Policy, VectorField
from skldp.mechanisms import Column, RandomizedResponse

CITY = Field("city", Column(values=("Bonn", "Ulm")), RandomizedResponse(4.0, 2).integer_law)
POLICY = Policy("a test", (VectorField.privunit("update", 5, 6.0, bound=2.0), CITY))


def collected(policy, records, seed=0):
    rng, collector = np.random.default_rng(seed), Collector(policy)
    for record in records:
        assert collector.add(policy.vector(record, rng.bytes(800)))
    return collector


@pytest.fixture(scope="module")
def collector():
    rows = np.tile([0.9, -0.3, 0.0, 1.1, -0.2], (1500, 1))
    return collected(
        POLICY,
        [{"update": row * (1 - 2 * (i % 3 == 0)), "city": "Ulm" if i % 3 else "Bonn"} for i, row in enumerate(rows)],
    )


def test_the_mean_is_that_of_the_numbers_of_the_answers(collector):
    field = POLICY.fields[0]
    answers = [int.from_bytes(row.tobytes(), "big") for row in collector._answers["update"]]
    values = 2.0 * np.array([field.law.values(answer) for answer in answers])
    found = collector.mean("update")
    assert found.labels == tuple(f"update[{i}]" for i in range(5))
    np.testing.assert_allclose(found.values, values.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.standard_errors, values.std(axis=0, ddof=1) / np.sqrt(1500), rtol=1e-12)
    frame = collector.to_frame()
    np.testing.assert_allclose(frame[[f"update[{i}]" for i in range(5)]].to_numpy(), values)
    assert found.what in collector.page()


def test_the_means_of_groups_are_those_of_their_people(collector):
    truth = np.array([0.9, -0.3, 0.0, 1.1, -0.2])
    found = collector.mean("update", by="city")
    for part, sign in (("Bonn", -1), ("Ulm", 1)):
        rows = [i for i, label in enumerate(found.labels) if label.startswith(part)]
        assert (np.abs(found.values[rows] - sign * truth) < 5 * found.standard_errors[rows]).all()
    of_one = collector.mean("update", where={"city": "Ulm"})
    np.testing.assert_allclose(of_one.values, found.values[[i for i, x in enumerate(found.labels) if "Ulm" in x]])
    with pytest.raises(ValueError, match="has one of several numbers of one law"):
        collector.histogram("update")


@pytest.mark.parametrize("estimator", [PrivUnitTransformer(3.0), PrivUnitTransformer(3.0, norm=2.0)], ids=str)
def test_a_transformer_of_vectors_becomes_a_policy(estimator):
    fitted = estimator.fit(np.zeros((3, 4)))
    policy = policy_from_estimator(fitted, purpose="a test")
    assert (policy.names, policy.epsilon, policy.fields[0].bound) == (["vector"], 3.0, fitted.radius_)
    assert policy.fields[0].law == fitted.mechanism_.device_law
    assert Policy.from_json(policy.to_json()) == policy
    (one,) = policy.release_table({"vector": [[1.0, 0.0, 0.0, 0.0]]})
    assert policy.read(one).answers["vector"] < policy.fields[0].law.n_answers


@pytest.mark.few(1)
@pytest.mark.parametrize("n_sampled", ["all", 3])
def test_the_best_for_numbers_becomes_a_policy_where_it_is_privunit(n_sampled):
    mechanism = "best" if n_sampled == "all" else "privunit"
    fitted = NumericPrivatizer(6.0, mechanism=mechanism, bounds=(0, 10), n_sampled_features=n_sampled).fit([[1.0] * 5])
    assert fitted.mechanism_name_ == "privunit"
    policy = policy_from_estimator(fitted, purpose="a test")
    assert policy.fields[0].kind == "numbers"
    assert policy.epsilon == 6.0
    assert Policy.from_json(policy.to_json()) == policy
    found = collected(policy, [dict(zip(policy.names, [2.0, 9.0, 5.0, 0.0, 7.5], strict=True))] * 1200)
    for name, truth in zip(policy.names, [2.0, 9.0, 5.0, 0.0, 7.5], strict=True):
        estimate = found.mean(name)
        assert abs(estimate.values[0] - truth) < 5 * estimate.standard_errors[0]
