"""Records of tables: what attackers recover of them, beside what the columns in which they differ leave."""

from itertools import product

import numpy as np
import pytest
from inversion_tables import audit_table, cell_likelihood, declared_cells, record_epsilons
from laws import log_likelihood

from skldp import TablePrivatizer
from skldp.mechanisms import Column, Piecewise
from skldp.mechanisms.categorical._one_hot import make_categorical_mechanism
from skldp.mechanisms.numeric._bounded_features import BoundedFeatures, NumberOrMissing
from skldp.mechanisms.numeric._unit_mechanisms import Duchi, Hybrid, HybridThreeOutputs, SquareWave, ThreeOutputs
from skldp.study._inversion import inversion_bound, pairwise_share

pd = pytest.importorskip("pandas")

SCHEMA = {
    "age": (0, 100),
    "city": {"type": "category", "values": ["Bonn", "Ulm"], "missing": "category"},
    "since": ("2020-01-01", "2024-12-31"),
}
PEOPLE = pd.DataFrame(
    product([10.0, 50.0, 90.0], ["Ulm", None, "Bonn"], ["2020-03-01", "2023-11-15"]), columns=list(SCHEMA)
)


def within(unit, low=10.0, high=30.0):
    return BoundedFeatures(unit, (low,), (high,), n_sampled=1, stated=unit.epsilon)


@pytest.mark.parametrize("epsilon", [0.7, 3.0])
@pytest.mark.parametrize(
    "make",
    [
        Duchi,
        ThreeOutputs,
        lambda e: Piecewise(e, lattice_bits=6),
        lambda e: SquareWave(e, lattice_bits=6),
        lambda e: Hybrid(e, lattice_bits=6),
        lambda e: HybridThreeOutputs(e, lattice_bits=6),
    ],
    ids=["duchi", "three", "piecewise", "square wave", "hybrid", "hybrid tp"],
)
def test_the_likelihood_of_a_number_is_that_of_the_integers(make, epsilon):
    unit = make(epsilon)
    for place in (-1.0, -0.3, 0.0, 0.77, 1.0):
        answers, weights = unit.output_law(place)
        # Of a mixture, an answer of one law may be one of the other as well.
        answers, which = np.unique(answers, return_inverse=True)
        exact = np.bincount(which, np.array([float(weight) for weight in weights])) / float(sum(weights))
        found = cell_likelihood(within(unit), 20.0 + 10.0 * answers[:, None], 20.0 + 10.0 * place)
        np.testing.assert_allclose(np.exp(found), exact, rtol=1e-5, atol=1e-12)
    # Between two answers nothing is ever released, nor beyond the last.
    off = 20.0 + 10.0 * np.array([answers[0] * 1.5, answers[:2].mean() if len(answers) < 4 else answers[-1] * 1.5])
    assert (cell_likelihood(within(unit), off[:, None], 20.0) == -np.inf).all()


@pytest.mark.parametrize("name", ["sue", "oue", "subset"])
def test_sets_tell_categories_apart_as_their_likelihood_does(name):
    law = make_categorical_mechanism(name, 1.3, 4)
    bits = np.array([row for row in product([0.0, 1.0], repeat=4) if name != "subset" or sum(row) == law.set_size])
    exact = np.stack([log_likelihood(law, bits, np.array([code])) for code in range(4)])
    found = np.stack([cell_likelihood(law, bits, float(code)) for code in range(4)])
    np.testing.assert_allclose(found - found[0], exact - exact[0], atol=1e-9)


def test_the_likelihood_of_a_number_that_may_be_missing_is_a_law():
    law = NumberOrMissing(Column(10, 30, missing="category"), Duchi(0.8), 2**63, 2**62, stated=2.0)
    size = law.unit.integer_law.magnitude
    released = np.array([[np.nan], [20 - 10 * size], [20 + 10 * size]])
    for value, told, mean in [(np.nan, 0.5, 0.0), (26.0, 0.25, 0.6), (10.0, 0.25, -1.0)]:
        chances = np.exp(cell_likelihood(law, released, value))
        assert chances[0] == pytest.approx(told)
        assert chances.sum() == pytest.approx(1.0)
        assert (chances[2] - chances[1]) * size == pytest.approx((1 - told) * mean)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_no_attacker_on_records_gets_above_the_bound_of_pairs(epsilon):
    """Every output of two columns is enumerated: whoever names the likeliest record does best."""
    frame = pd.DataFrame(product("ab", "xyz"), columns=["one", "two"])
    table = TablePrivatizer(epsilon, schema={"one": ["a", "b"], "two": ["x", "y", "z"]}).fit(frame)
    law = np.kron(*(part.flip_matrix for part in table.mechanism_.parts))
    best = law.max(axis=0).sum() / len(frame)
    bound = pairwise_share(record_epsilons(table, declared_cells(table, frame)))
    assert best <= bound <= best * (1 + 1e-6)
    # By the whole epsilon alone, every two records would be as far apart as those that differ in both columns.
    assert bound < inversion_bound(table.privacy_guarantee_.epsilon, len(frame))


@pytest.mark.parametrize("epsilon", [3.0, 12.0])
@pytest.mark.parametrize("mechanism", ["best", "laplace", "duchi", "three_outputs", "piecewise", "square_wave"])
def test_records_are_recovered_within_the_bound(mechanism, epsilon, fixed_noise):
    table = TablePrivatizer(epsilon, schema=SCHEMA, mechanism=mechanism).fit(PEOPLE)
    result = audit_table(table, PEOPLE, n_trials=2_000, confidence=0.999999, seed=0)
    decoder, likelihood = result.attacks
    assert (likelihood.name, decoder.name) == ("likelihood", "decoder")
    assert not result.refutes_claim
    assert result.chance < likelihood.low
    assert decoder.low <= likelihood.high
    assert result.bound < inversion_bound(result.guarantee.epsilon, len(PEOPLE))
    assert result.epsilon == pytest.approx(epsilon)


@pytest.mark.parametrize("mechanism", ["sue", "oue", "subset", "hashing", "hadamard", "best"])
def test_sets_of_categories_and_missing_numbers_are_recovered_within_the_bound(mechanism, fixed_noise):
    schema = {"age": {"type": "number", "low": 0, "high": 100, "missing": "category"}, "city": list("abcde")}
    people = pd.DataFrame(product([10.0, np.nan, 90.0], "abcde"), columns=list(schema))
    table = TablePrivatizer(6.0, schema=schema, category_mechanism={"city": mechanism}).fit(people)
    result = audit_table(table, people, n_trials=2_000, confidence=0.999999, seed=0)
    decoder, likelihood = result.attacks
    assert (likelihood.name, decoder.name) == ("likelihood", "decoder")
    assert not result.refutes_claim
    assert result.chance < likelihood.low
    assert decoder.low <= likelihood.high
    assert result.bound < inversion_bound(result.guarantee.epsilon, len(people))
    # Of estimates, a decoder alone knows what to make.
    estimates = TablePrivatizer(6.0, schema=schema, encoding="estimates").fit(people)
    assert [attack.name for attack in audit_table(estimates, people, n_trials=50).attacks] == ["decoder"]


@pytest.mark.parametrize("how", ["dense", "sparse", "columns", "array", "polars"])
def test_every_form_of_a_table_is_read(how, fixed_noise):
    people = PEOPLE[["age", "city"]].drop_duplicates(ignore_index=True)
    schema = {name: SCHEMA[name] for name in people}
    options = {"sparse": {"sparse_output": True}, "columns": {"encoding": "columns"}}.get(how, {})
    if how == "array":
        people, schema = people.to_numpy(), dict(zip(["x0", "x1"], schema.values(), strict=True))
    if how == "polars":
        people, options = pytest.importorskip("polars").from_pandas(people), {"encoding": "columns"}
    table = TablePrivatizer(24.0, schema=schema, **options).fit(people)
    result = audit_table(table, people, n_trials=500, seed=0)
    assert [attack.name for attack in result.attacks] == ["decoder", "likelihood"]
    assert all(attack.recovered > 0.9 for attack in result.attacks)


def test_values_of_candidates_are_not_told():
    table = TablePrivatizer(2.0, schema=SCHEMA).fit(PEOPLE)
    with pytest.raises(ValueError, match="city") as caught:
        audit_table(table, PEOPLE.replace("Bonn", "Atlantis"), n_trials=10)
    assert "Atlantis" not in str(caught.value)
