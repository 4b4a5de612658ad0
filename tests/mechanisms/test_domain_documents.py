"""Documents of domains come from elsewhere: what is none is refused with a ValueError, and what is one means itself."""

import numpy as np
import pytest

from skldp.domains._columns import Columns, domain_from_json
from skldp.domains._domain import Anywhere, Ball, Box, Codes, FiniteSet
from skldp.mechanisms import Column

HUGE = str(10**400)
# Deep enough to exceed the interpreter's limit, however it reads documents.
DEEP = '{"type": "columns", "parts": [' * 50_000

HOSTILE = [
    "null",
    '{"type": []}',
    '{"type": {}}',
    '{"type": "ball", "dimension": 2.0, "radius": 1}',
    '{"type": "ball", "dimension": 2, "radius": "1"}',
    '{"type": "box", "low": [], "high": []}',
    '{"type": "box", "low": ["1"], "high": ["2"]}',
    '{"type": "box", "low": [true], "high": [2]}',
    '{"type": "box", "low": [1e400], "high": [2]}',
    f'{{"type": "box", "low": [{HUGE}], "high": [2]}}',
    f'{{"type": "finite_set", "vectors": [[{HUGE}]]}}',
    '{"type": "finite_set", "vectors": [["1"]]}',
    '{"type": "finite_set", "vectors": [[1], [1, 2]]}',
    '{"type": "codes", "sizes": "ab"}',
    '{"type": "codes", "sizes": [true]}',
    '{"type": "categories", "values": "abc"}',
    '{"type": "categories", "values": {"a": 1}}',
    '{"type": "categories", "values": ["a"], "ordered": "no"}',
    '{"type": "columns", "parts": {}}',
    '{"type": "columns", "parts": [], "more": 1}',
    '{"type": "columns", "parts": [{"type": "interval", "low": 0, "high": 1, "columns": "a"}]}',
    '{"type": "columns", "parts": [{"type": "interval", "low": 0, "high": 1, "columns": [1]}]}',
    "[" * 100_000,
    DEEP,
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:60])
def test_refuses_what_is_no_domain_with_a_value_error(text):
    with pytest.raises(ValueError, match=r"domain|must|array"):
        domain_from_json(text)


@pytest.mark.parametrize(
    "domain",
    [
        Anywhere(3),
        Ball(3, 2.5),
        Box((0.0, -1.0), (1.0, 5.0)),
        Column(values=("a", 1, 2.5, False), ordered=True),
        Codes((3, 1)),
        FiniteSet(np.eye(2)),
        Column(0, 9, kind="integer"),
        Column(0, 0.5),
        Columns.of(
            {"age": Column(0, 99, kind="integer"), ("x", "y"): Ball(2, 1.0), "city": Column(values=("Bonn", "Ulm"))}
        ),
    ],
    ids=lambda domain: type(domain).__name__,
)
def test_a_document_means_its_domain(domain):
    assert domain_from_json(domain.to_json()) == domain
