"""Every document that an object writes is read again, to an equal object, or the object cannot be made."""

import json

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import skldp.client._policy
from skldp.accounting import FiniteQuery, RegressionQuery
from skldp.accounting._class_query import ClassQuery, SoftmaxQuery
from skldp.accounting._query import ReleaseQuery, query_from_json
from skldp.client import Field, Policy
from skldp.domains._columns import Columns, domain_from_json
from skldp.domains._domain import Anywhere, Ball, Box, Codes, FiniteSet
from skldp.laws._numbers import SampledLaw
from skldp.learning import Report
from skldp.learning._tasks import Task
from skldp.mechanisms import Column, RandomizedResponse
from skldp.mechanisms.numeric._unit_mechanisms import Duchi

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
WHOLE = st.integers(-(2**64), 2**64)
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Zl", "Zp"]), max_size=5)
VALUES = st.one_of(st.none(), st.booleans(), TEXTS, st.integers(-(2**53) - 2, 2**53 + 2))
BOUNDS = st.one_of(st.floats(-1.1e100, 1.1e100), st.integers(-(2**64), 2**64))
LAW = Duchi(1.0).integer_law


def made(build, *given_, **more):
    """The object, of parameters that are admitted."""
    try:
        return build(*given_, **more)
    except (ValueError, TypeError):
        assume(False)


@given(
    TEXTS,
    st.lists(BOUNDS, min_size=2, max_size=2, unique=True),
    st.lists(VALUES, min_size=2, max_size=4, unique_by=repr),
    st.sampled_from([None, "2027-01-31T00:00:00Z", "9999-12-31T23:59:59Z"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([int, np.int64, np.int32]),
)
@settings(deadline=None)
def test_policies(text, ends, values, expires, whole, is_permanent, kind):
    low, high = sorted(ends)
    fields = (
        made(Field, text + "1", made(Column, low, high, unit=text or None, kind="integer" if whole else None), LAW),
        made(
            Field,
            text + "2",
            (made(Column, low, high, name=text + "3"), Column(-0.0, 1, name="4")),
            SampledLaw(2, 1, LAW),
        ),
        made(Field, text + "5", made(Column, values=tuple(values)), RandomizedResponse(1.0, len(values)).integer_law),
    )
    policy = made(Policy, text + "6", fields, expires)
    policy = policy.permanent(kind(64)) if is_permanent else policy
    again = Policy.from_json(policy.to_json())
    assert again == policy
    assert again.to_json() == policy.to_json()


def test_a_policy_that_is_too_long_to_be_read_cannot_be_made(monkeypatch):
    law = RandomizedResponse(1.0, 2).integer_law
    sizes = [len(Policy("x" * n, (Field("a", Column(values=("b", "c")), law),)).to_json()) for n in (1, 2)]
    assert sizes[1] - sizes[0] == 1
    monkeypatch.setattr(skldp.client._policy, "_MOST_CHARACTERS", sizes[0])
    policy = Policy("x", (Field("a", Column(values=("b", "c")), law),))
    assert Policy.from_json(policy.to_json()) == policy
    with pytest.raises(ValueError, match="at most"):
        Policy("xx", (Field("a", Column(values=("b", "c")), law),))


@given(st.integers(1, 2**53), st.lists(st.one_of(WHOLE, st.sampled_from([10**70, 10**80, 10**5000])), min_size=1))
def test_reports_of_learning(n, sums):
    report = made(Report, "0" * 64, n, tuple(sums))
    assert Report.from_json(report.to_json()) == report


@given(
    st.one_of(st.floats(1e-3, 1e3), st.integers(1, 2**10)),
    st.lists(st.one_of(st.floats(-1e30, 1e30), st.integers(-(2**80), 2**80)), min_size=6, max_size=6),
    st.sampled_from(["linear", "products"]),
    st.sampled_from(["vector", "levels"]),
)
@settings(deadline=None)
def test_tasks(epsilon, numbers, form, answer):
    rows = (tuple(numbers[:3]), tuple(numbers[3:]))
    task = made(Task, epsilon, (-1, -1), (1, 1), form, rows, answer, 2)
    again = Task.from_json(task.to_json())
    assert again == task
    assert again.hash == task.hash


NUMBERS = st.lists(st.one_of(FLOATS, WHOLE), min_size=2, max_size=2).map(sorted)


@given(NUMBERS, st.lists(VALUES, min_size=2, max_size=3), st.integers(1, 4), TEXTS)
def test_domains(ends, values, n, text):
    low, high = ends
    builders = [
        lambda: Anywhere(n),
        lambda: Ball(n, abs(high)),
        lambda: Box((low,) * n, (high,) * n),
        lambda: Codes((n + 1, 2)),
        lambda: FiniteSet(np.array([[low, high], [high, low]], dtype=float)),
        lambda: Column(low, high),
        lambda: Column(low, high, kind="integer"),
        lambda: Column(low, high, missing="category"),
        lambda: Column(low, high, kind="integer", missing="category"),
        # The domain of codes does not say which one is missing.
        lambda: Column(values=tuple(one for one in values if one is not None)),
        lambda: Columns.of({text: Column(low, high), "other": Column(values=(*filter(None, values), "x"))}),
    ]
    for build in builders:
        try:
            domain = build()
            document = domain.to_json()
        except (ValueError, TypeError, OverflowError):
            continue
        assert domain_from_json(document) == domain


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=2), st.floats(-1e6, 1e6), st.floats(0.01, 20))
def test_queries(coef, intercept, epsilon):
    builders = [
        lambda: RegressionQuery("linear", coef=coef, intercept=intercept, output_bounds=(0, 1), epsilon=epsilon),
        lambda: RegressionQuery("logistic", coef=coef, intercept=intercept, output_bounds=(0, 1), epsilon=epsilon),
        lambda: ClassQuery(coef=[coef, coef[::-1]], intercept=[intercept, 0.0], epsilon=epsilon),
        lambda: SoftmaxQuery(coef=[coef, coef[::-1]], intercept=[intercept, 0.0], position=1, epsilon=epsilon),
        lambda: FiniteQuery(np.array([[1, 2**63], [2**63, 1]], dtype=np.uint64)),
        lambda: ReleaseQuery("RandomizedResponse", 1, 1),
    ]
    n_made = 0
    for build in builders:
        try:
            query = build()
        except (ValueError, TypeError):
            continue
        n_made += 1
        assert query_from_json(query.to_json()).key == query.key
    assert n_made >= 4


def test_an_integer_beyond_the_largest_double_is_an_error_of_the_document():
    fields = json.loads(RegressionQuery("linear", [1.0], 0.0, (-1, 1), epsilon=1.0).to_json())
    with pytest.raises(ValueError, match="fields of its own types"):
        query_from_json(json.dumps(fields | {"coef": 10**400}))
