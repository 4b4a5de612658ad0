"""Reports that are decoded together have the answers that each has alone."""

import math
import zlib

import numpy as np
import pytest

from skldp import Collector
from skldp.client import Field, Policy, VectorField
from skldp.client._report_bytes import header
from skldp.collection._report_tables import report_columns
from skldp.mechanisms import Column, Piecewise, RandomizedResponse
from skldp.mechanisms.categorical._one_hot import SubsetSelection, UnaryEncoding

LAWS = [RandomizedResponse(1.0, 256), SubsetSelection(1.0, 12), UnaryEncoding(1.0, 70), RandomizedResponse(1.0, 2)]
FIELDS = (
    *(
        Field(f"word {i}", Column(values=tuple(range(one.integer_law.n_codes))), one.integer_law)
        for i, one in enumerate(LAWS)
    ),
    *(Field(f"number {i}", Column(0, 10), Piecewise(2.0).integer_law) for i in range(4)),
    VectorField.privunit("vector", 3, 4.0, bound=1.0),
)


def as_integer(answer):
    return int.from_bytes(answer.tobytes(), "big") if answer.ndim else int(answer)


@pytest.mark.parametrize("n_sampled", [None, 1, 3, 8])
def test_columns_have_the_answers_of_each_report(n_sampled):
    policy = Policy("a test", FIELDS, n_sampled=n_sampled)
    reports = [policy.release({"word 0": i, "number 1": i / 20}) for i in range(200)]
    found = report_columns(policy, reports)
    assert found.ids.tobytes().hex() == "".join(policy.read(one).report_id for one in reports)
    for field, answers in zip(policy.fields, found.answers, strict=True):
        expected = [policy.read(one).answers.get(field.name, field.n_answers) for one in reports]
        assert list(map(as_integer, answers)) == expected
    assert len(report_columns(policy, []).ids) == 0


def test_a_report_of_an_impossible_answer_is_left_out():
    policy = Policy("a test", FIELDS[:2])
    sizes = [one.n_answers for one in policy.fields]
    largest = math.prod(sizes) - 1
    reports, is_valid = [], []
    rng = np.random.default_rng(0)
    n_bytes = policy.n_bytes - 29
    for number in [0b111, largest, largest + 1 + 0b111, *rng.integers(0, largest, 300).tolist()]:
        body = header(bytes.fromhex(policy.sha256)) + rng.bytes(16) + int(number).to_bytes(n_bytes, "big")
        reports.append(body + zlib.crc32(body).to_bytes(4, "big"))
        is_valid.append(Collector(policy).add(reports[-1]))
    assert set(is_valid) == {True, False}
    ids = b"".join(report[9:25] for report, valid in zip(reports, is_valid, strict=True) if valid)
    assert report_columns(policy, reports).ids.tobytes() == ids
