"""Groups and categories that read alike stay apart: in estimates, tables, frames and pages."""

from dataclasses import replace

import numpy as np
import pytest

from skldp import Collector
from skldp.client import CategoryField, Policy
from skldp.client._fields import NumberField
from skldp.collection._page import _bars
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


def test_groups_that_read_alike_do_not_vanish(collector):
    means = collector.mean("big", by="group")
    assert means.labels == LABELS
    assert len(set(means.values.tolist())) == 6
    shares = collector.histogram("big", by="group", bins=2)
    assert len(set(shares.labels)) == len(shares.labels) == 12


def test_bins_of_large_numbers_are_told_apart(collector):
    labels = collector.histogram("big").labels
    assert labels[0] == "[1000000000000000, 1000000000000008)"
    assert len(set(labels)) == 8


def test_bars_of_labels_that_are_cut_alike_name_the_rows(collector):
    long = replace(
        collector.frequencies("group"), labels=tuple("of a long text, which is cut" + str(i) for i in range(6))
    )
    assert [label for label, *_ in _bars(long)] == [f"row {i}" for i in range(1, 7)]


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


@pytest.mark.parametrize(("value", "same"), [(1, np.int64(1)), (1, 1.0), (True, np.True_), ("1", np.str_("1"))])
def test_a_filter_reads_values_as_a_device_does(collector, value, same):
    one, again = (collector.mean("big", where={"group": chosen}) for chosen in (value, same))
    assert one.values == again.values
    with pytest.raises(ValueError, match="one of the values"):
        collector.mean("big", where={"group": 2})


def test_a_frame_has_a_column_for_each_category(collector):
    pytest.importorskip("pandas")
    assert [name for name in collector.to_frame().columns if name.startswith("bits=")] == [
        f"bits={one}" for one in LABELS
    ]
