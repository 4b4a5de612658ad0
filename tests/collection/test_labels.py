"""Groups and categories that read alike stay apart: in estimates, tables, frames and pages."""

import numpy as np
import pytest

from skldp import Collector
from skldp.client import CategoryField, Policy
from skldp.client._fields import NumberField
from skldp.mechanisms import RandomizedResponse
from skldp.mechanisms.categorical._one_hot import UnaryEncoding
from skldp.mechanisms.numeric._unit_mechanisms import SquareWave

ALIKE = (1, "1", None, "missing", True, "True")
LABELS = ("1", "'1'", "missing", "'missing'", "True", "'True'")


@pytest.fixture(scope="module")
def collector():
    """Of 600 people, whose number is by their group."""
    fields = (
        CategoryField("group", ALIKE, RandomizedResponse(4.0, 6).integer_law, unknown=None),
        CategoryField("bits", ALIKE, UnaryEncoding(4.0, 6).integer_law, unknown=None),
        NumberField("big", 1e15, 1e15 + 64, SquareWave(4.0).integer_law, missing=1e15),
    )
    policy = Policy("a test", fields)
    held = Collector(policy)
    rng = np.random.default_rng(0)
    for i in range(600):
        record = {"group": ALIKE[i % 6], "bits": ALIKE[i % 6], "big": 1e15 + 8 * (i % 6)}
        report = policy.vector(record, rng.bytes(8 * 60))
        held.add(report)
    return held


def test_categories_that_read_alike_have_labels_of_their_own(collector):
    assert collector.frequencies("group").labels == LABELS
    assert collector.frequencies("bits").labels == LABELS
    pytest.importorskip("jinja2")
    assert all(f'<th style="text-align:left">{text}<' in collector.page() for text in ("1", "&#x27;1&#x27;", "missing"))


def test_a_frame_refuses_two_columns_of_one_name():
    """The later one replaced the earlier one."""
    fields = (
        CategoryField("a", ("b=c", "d"), UnaryEncoding(4.0, 2).integer_law),
        CategoryField("a=b", ("c", "d"), UnaryEncoding(4.0, 2).integer_law),
    )
    held = Collector(Policy("a test", fields))
    held.add(held.policy.release({}))
    with pytest.raises(ValueError, match="columns of one name"):
        held.to_frame()
