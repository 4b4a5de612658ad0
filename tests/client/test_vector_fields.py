"""Vectors on a device: what is refused before anything is charged, how vectors are clipped, and documents."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from client.json_schema import fits
from client.test_sampled_fields import _signed

import skldp.client
from skldp.client import Field, Policy, VectorField
from skldp.laws._closest_law import ClosestLaw
from skldp.mechanisms import Column
from skldp.mechanisms.numeric._unit_mechanisms import Duchi

SCHEMA = json.loads((Path(skldp.client.__file__).parent / "policy.schema.json").read_text(encoding="utf-8"))
LAW = ClosestLaw(n_values=4, square_radius=1, n_directions=16, n_close=5, miss_count=2**62)
FIELD = VectorField("update", LAW, 2.0)
DIRECTION = VectorField("way", replace(LAW, square_radius=0))
POLICY = Policy("train a model", (FIELD, DIRECTION))


@pytest.mark.parametrize(
    "update",
    [
        [0.25, 0.5],
        np.full((2, 2), 0.25),
        0.25,
        [[0.25], [0.25, 0.5]],
        ["0.25"] * 4,
        [True] * 4,
        [0.25, None, 0.5, 1.0],
        {"a": 0.25},
        np.array([0.25 + 1j] * 4),
    ],
    ids=str,
)
def test_what_is_no_vector_is_zeros_and_refused_in_a_check_without_its_values(update):
    with pytest.raises(ValueError, match="'update' must be vectors of 4 numbers; got") as caught:
        POLICY.check_record({"update": update, "way": np.zeros(4)})
    assert "25" not in str(caught.value)
    words = np.random.default_rng(0).bytes(800)
    assert POLICY.vector({"update": update}, words) == POLICY.vector({}, words)
    with pytest.raises(ValueError, match="'update' must be vectors of 4 numbers; got"):
        POLICY.release_table({"update": [update] * 2, "way": np.zeros((2, 4))})


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 1e400])
@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.longdouble])
def test_whether_a_device_reports_does_not_depend_on_its_numbers(number, dtype):
    """Attack: a server whose task makes the training of some people diverge, and sees whose report is missing."""
    words = np.random.default_rng(0).bytes(800)
    wild = {"update": np.array([0.25, number, 0.0, 1.0], dtype), "way": [number] * 4}
    assert POLICY.vector(wild, words) == POLICY.vector({}, words)
    table = {"update": [wild["update"]] * 2, "way": np.zeros((2, 4))}
    assert len(POLICY.release_table(table)) == 2


@pytest.mark.parametrize(
    ("vector", "given"),
    [
        ([0.0, -0.5, 0.0, 0.0], [0.0, -0.25, 0.0, 0.0]),
        ([1.0, 1.0, 1.0, 1.0], [0.5, 0.5, 0.5, 0.5]),
        ([3.0, 0.0, -4.0, 0.0], [0.6, 0.0, -0.8, 0.0]),
        ([1e308, -1e308, 1e308, 1e308], [0.5, -0.5, 0.5, 0.5]),
        ([5e-324, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]),
    ],
    ids=str,
)
def test_vectors_are_clipped_to_the_bound(vector, given):
    assert FIELD.encode({FIELD.name: vector}).tolist() == pytest.approx(given)
    (row,) = FIELD.encode_all({"update": np.array([vector])}, True)
    assert row.tolist() == FIELD.encode({FIELD.name: vector}).tolist()
    assert np.linalg.norm(DIRECTION.encode({DIRECTION.name: vector})) == pytest.approx(1)


def test_a_document_with_vectors_is_of_version_4_and_others_are_as_before():
    document = json.loads(POLICY.to_json())
    assert document["version"] == 4
    assert fits(document, SCHEMA, SCHEMA)
    assert Policy.from_json(POLICY.to_json()) == POLICY
    age = Field("age", Column(0, 100), Duchi(1.0).integer_law)
    assert [
        json.loads(Policy("x", (age, age_2), n_sampled=n).to_json())["version"]
        for n, age_2 in ((None, replace(age, name="b")), (1, replace(age, name="b")), (1, FIELD))
    ] == [2, 3, 4]
    for version in (2, 3):
        with pytest.raises(ValueError, match="the first that knows its fields and laws, 4; got"):
            Policy.from_json(_signed(document | {"version": version}))


@pytest.mark.parametrize("bound", ["0.0", "-1.0", "inf", "nan", "1e+200", None, "2.00", 2])
def test_a_forged_bound_is_refused(bound):
    document = json.loads(POLICY.to_json())
    document["fields"][0]["bound"] = bound
    with pytest.raises(ValueError, match=r"bound must be|square radius 0|canonical form"):
        Policy.from_json(_signed(document))


def test_parameters_without_a_law_are_refused(tmp_path):
    with pytest.raises(ValueError, match="n_values must be a whole number from 2 to 65,536"):
        VectorField.privunit("update", 65_537, 1.0, bound=1.0)
    for bound in (0, -1.0, float("inf"), "x", True):
        with pytest.raises(ValueError, match="bound must be a finite number > 0"):
            VectorField.privunit("update", 4, 1.0, bound=bound)
    with pytest.raises(ValueError, match="must be 'closest' of square radius 1"):
        VectorField("update", Duchi(1.0).integer_law, 1.0)
    with pytest.raises(ValueError, match="must be 'closest' of square radius 0"):
        VectorField("update", LAW)
    with pytest.raises(ValueError, match="bound must be"):
        VectorField("update", LAW, 0.0)
    with pytest.raises(ValueError, match="must have the memo rule 'fresh'"):
        Policy("a test", (FIELD,), memo="permanent")
