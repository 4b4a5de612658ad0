"""A mechanism is named once; where its name is written out as well, a test misses it."""

import json
from importlib.resources import files

import pytest

from skldp import CategoricalPrivatizer, NumericPrivatizer
from skldp.laws._integers import LAWS
from skldp.mechanisms.categorical._one_hot import CATEGORICAL_MECHANISMS
from skldp.mechanisms.numeric._bounded_features import NUMERIC_MECHANISMS

CLIENT = files("skldp.client")


@pytest.mark.parametrize(
    ("estimator", "names"), [(NumericPrivatizer, NUMERIC_MECHANISMS), (CategoricalPrivatizer, CATEGORICAL_MECHANISMS)]
)
def test_the_docstring_of_the_estimator_explains_every_mechanism(estimator, names):
    assert [name for name in names if f'``"{name}"``' not in estimator.__doc__] == []


def test_every_law_is_in_the_format_and_its_schema():
    schema = json.loads((CLIENT / "policy.schema.json").read_text(encoding="utf-8"))
    properties = [one.get("properties", {}) for one in schema["$defs"].values()]
    laws = {one["law"].get("const") for one in properties if "law" in one}
    text = (CLIENT / "FORMAT.md").read_text(encoding="utf-8")
    assert [name for name in LAWS if name not in laws] == []
    assert [name for name in LAWS if f"`{name}`" not in text and f'"{name}"' not in text] == []
