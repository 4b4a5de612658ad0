"""Means of vectors from their reports: against a naive sum, in groups, and intervals of simulated surveys."""

import numpy as np
import pytest
from scipy.special import betaincinv

from skldp import Collector, NumericPrivatizer, PrivUnitTransformer
from skldp.client import CategoryField, NumbersField, Policy, VectorField
from skldp.collection._survey_estimates import Sums, quotients
from skldp.mechanisms import RandomizedResponse

N_SURVEYS = 2000
CITY = CategoryField("city", ("Bonn", "Ulm"), RandomizedResponse(4.0, 2).integer_law)
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


def test_the_planned_precision_is_that_of_vectors_at_the_bound():
    rng = np.random.default_rng(0)
    policy = Policy("a test", (VectorField.privunit("update", 3, 2.0, bound=2.0),))
    (planned,) = policy.precision(3000).estimates
    found = collected(policy, [{"update": rng.normal(size=3) * 100} for _ in range(3000)]).mean("update")
    assert np.sqrt((found.standard_errors**2).mean()) == pytest.approx(planned.standard_error, rel=0.05)
    n = policy.n_people_for("update", 0.1)
    assert policy.precision(n).estimates[0].half_width <= 0.1 < policy.precision(n - 1).estimates[0].half_width


@pytest.mark.parametrize("estimator", [PrivUnitTransformer(3.0), PrivUnitTransformer(3.0, norm=2.0)], ids=str)
def test_a_transformer_of_vectors_becomes_a_policy(estimator):
    fitted = estimator.fit(np.zeros((3, 4)))
    policy = Policy.from_estimator(fitted, purpose="a test")
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
    policy = Policy.from_estimator(fitted, purpose="a test")
    assert isinstance(policy.fields[0], NumbersField)
    assert policy.epsilon == 6.0
    assert Policy.from_json(policy.to_json()) == policy
    found = collected(policy, [dict(zip(policy.names, [2.0, 9.0, 5.0, 0.0, 7.5], strict=True))] * 1200)
    for name, truth in zip(policy.names, [2.0, 9.0, 5.0, 0.0, 7.5], strict=True):
        estimate = found.mean(name)
        assert abs(estimate.values[0] - truth) < 5 * estimate.standard_errors[0]


def cosines(law, n, rng):
    """Cosines of the answered directions with a vector, by the law of order statistics."""
    k, m, a = law.n_close, law.n_directions, (law.dimension - 1) / 2
    close = rng.random(n) >= law.miss_count / 2**64
    # Given the next one in order, the close ones are independent beyond it; so are the others before the last of these.
    below, above = rng.beta(k + 1, m - k, n), rng.beta(k, m - k + 1, n)
    u = rng.random(n)
    return 1 - 2 * betaincinv(a, a, np.where(close, u * below, above + (1 - above) * u))


def simulated(law, vectors, rng):
    """Estimates of vectors in units of the bound, without drawing directions that are not answered."""
    lifted = np.column_stack([vectors, np.sqrt(np.maximum(1 - (vectors**2).sum(axis=1), 0))])
    t = cosines(law, len(vectors), rng)[:, None]
    across = rng.normal(size=lifted.shape)
    across -= (across * lifted).sum(axis=1, keepdims=True) * lifted
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    return law.largest * (t * lifted + np.sqrt(1 - t**2) * across)[:, :-1]


def test_the_simulation_has_the_moments_of_the_law():
    law = POLICY.fields[0].law
    vectors = np.tile([0.5, 0.0, -0.5, 0.1, 0.0], (200_000, 1))
    found = simulated(law, vectors, np.random.default_rng(0))
    error = found.std(axis=0) / np.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - vectors[0]) < 5 * error).all()
    squares = (law.across + vectors[0] ** 2).tolist()
    assert (found**2).mean(axis=0).tolist() == pytest.approx(squares, rel=0.02)


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize(("n", "least", "most"), [(200, 0.90, 1.0), (10_000, 0.93, 0.97)])
def test_intervals_hold_the_truth_as_often_as_they_say(n, least, most, epsilon):
    """Of skewed vectors of 8 numbers, one of them rare, in 2,000 surveys."""
    rng, law = np.random.default_rng(5), VectorField.privunit("update", 8, epsilon, bound=1.0).law
    people = rng.exponential(0.2, (100_000, 8)) * [1, -1, 0.5, 1, 0, 1, 1, 1]
    people[:, 7] *= 5 * (rng.random(len(people)) < 0.02)
    people /= np.maximum(np.linalg.norm(people, axis=1, keepdims=True), 1)
    truth, held, ones = people.mean(axis=0), np.zeros(8), float(n)
    for _ in range(N_SURVEYS):
        values = simulated(law, people[rng.integers(len(people), size=n)], rng)
        a, aa, ends = values.sum(axis=0), (values**2).sum(axis=0), np.full(8, law.largest)
        found = quotients(Sums(a, aa, a, ones, ones, -ends, ends, 1.0, 1.0), n, 0.95, "", [""] * 8)
        held += (found.low <= truth) & (truth <= found.high)
    print(f"{n} people, epsilon {epsilon}: {held / N_SURVEYS}")
    assert (held / N_SURVEYS >= least).all()
    assert (held / N_SURVEYS <= most).all()
