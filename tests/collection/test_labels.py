"""Groups and categories that read alike stay apart: in estimates, tables, frames and pages."""

import numpy as np
import pytest

from skldp import Collector
from skldp.client import Field, Policy
from skldp.mechanisms import Column, RandomizedResponse
from skldp.mechanisms.categorical._one_hot import UnaryEncoding
from skldp.mechanisms.numeric._unit_mechanisms import SquareWave

ALIKE = (1, "1", None, "missing", True, "True")
LABELS = ("1", "'1'", "missing", "'missing'", "True", "'True'")


@pytest.fixture(scope="module")
def collector():
    """Of 600 people, whose number is by their group."""
    fields = (
        Field("group", Column(values=ALIKE, unknown=None), RandomizedResponse(4.0, 6).integer_law),
        Field("bits", Column(values=ALIKE, unknown=None), UnaryEncoding(4.0, 6).integer_law),
        Field("big", Column(1e15, 1e15 + 64, missing=1e15), SquareWave(4.0).integer_law),
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
        Field("a", Column(values=("b=c", "d")), UnaryEncoding(4.0, 2).integer_law),
        Field("a=b", Column(values=("c", "d")), UnaryEncoding(4.0, 2).integer_law),
    )
    held = Collector(Policy("a test", fields))
    held.add(held.policy.release({}))
    with pytest.raises(ValueError, match="columns of one name"):
        held.to_frame()
