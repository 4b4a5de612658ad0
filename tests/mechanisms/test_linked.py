"""One-hot blocks and inequalities: every row is moved, by a rule that knows no exception."""

import json
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from skldp.domains._columns import Columns, domain_from_json
from skldp.domains._constraints import Constrained, OneHot
from skldp.domains._domain import Ball, Box
from skldp.mechanisms import Column

BLOCKS = [OneHot(1), OneHot(3), OneHot(3, fallback=2), OneHot(1, at_most_one=True), OneHot(3, at_most_one=True)]
BLOCKS += [OneHot(2, at_most_one=True, fallback=1), OneHot(4, at_most_one=True, fallback=-1)]


def members(block):
    """All that a block can be, written out."""
    found = [tuple(float(column == chosen) for column in range(block.size)) for chosen in range(block.size)]
    return [*found, (0.0,) * block.size] if block.at_most_one else found


def nearest_member(block, row):
    """The nearest member by exact squared distances, and the fallback where several are as near."""
    from fractions import Fraction

    exact = [Fraction(value) for value in row]
    distances = {
        m: sum((value - Fraction(own)) ** 2 for value, own in zip(exact, m, strict=True)) for m in members(block)
    }
    nearest = [m for m, distance in distances.items() if distance == min(distances.values())]
    if len(nearest) == 1:
        return nearest[0]
    return tuple(float(column == block.fallback) for column in range(block.size))


@pytest.mark.few(3)
@pytest.mark.parametrize("block", BLOCKS, ids=repr)
@given(data=st.data())
@settings(max_examples=40)
def test_a_row_goes_to_the_nearest_member_and_a_tie_to_the_fallback(block, data):
    values = st.one_of(st.sampled_from([0.0, 1.0, 0.5, -0.0, 2.0, -1.0, 1e308, -1e308]), st.floats(-2, 2))
    rows = data.draw(hnp.arrays(np.float64, (4, block.size), elements=values))
    moved = block.clip(rows)
    # Differences of distances are linear: 1 - 2 x_j against 0, without any square of 1e308.
    assert [tuple(row) for row in moved.rows] == [nearest_member(block, row) for row in rows]
    assert moved.n_moved == np.count_nonzero(moved.rows != rows)
    assert block.clip(moved.rows).n_moved == 0


@pytest.mark.parametrize("block", BLOCKS, ids=repr)
def test_members_stay_and_nan_is_refused(block):
    rows = np.array(members(block))
    assert block.clip(rows).rows is rows
    for wrong in (np.nan, np.inf):
        with pytest.raises(ValueError, match="Input X contains"):
            block.clip(np.full((2, block.size), wrong))


@pytest.mark.parametrize(
    "wrong",
    [
        {"size": 0},
        {"size": True},
        {"size": 2.0},
        {"size": 2**20 + 1},
        {"size": 2, "fallback": 2},
        {"size": 2, "fallback": -1},
        {"size": 2, "fallback": True},
        {"size": 2, "at_most_one": 1},
    ],
    ids=str,
)
def test_no_block_is_refused(wrong):
    with pytest.raises(ValueError, match="must be"):
        OneHot(**wrong)


AGES = Columns.of({"age": Column(0, 100, kind="integer"), "years": Column(0, 80), ("a", "b"): OneHot(2)})
WORKING = Constrained(AGES, coef=((-1, 1, 0, 0), (1, 0, 50, 0)), limits=(-14, 120), fallback=(40, 10, 1, 0))


def test_a_row_that_breaks_an_inequality_becomes_the_fallback():
    rows = np.array([[30.0, 10.0, 0, 1], [20.0, 10.0, 0, 1], [90.2, 3.0, 1, 1], [500.0, 1.0, 0.1, 0.2]])
    moved = WORKING.clip(rows).rows
    assert moved.tolist() == [[30, 10, 0, 1], [40, 10, 1, 0], [40, 10, 1, 0], [100, 1, 0, 1]]
    assert WORKING.clip(moved).n_moved == 0
    assert WORKING.clip(rows.astype(np.float32)).rows.tolist() == moved.tolist()


@given(st.integers(0, 2**32), st.integers(1, 40))
def test_whether_somebody_is_moved_depends_on_nobody_else(seed, n_others):
    # A product of matrices adds up in another order when there are other rows.
    rng = np.random.default_rng(seed)
    coef = rng.uniform(-1, 1, (2, 7))
    rows = rng.uniform(-1, 1, (n_others, 7))
    limits = np.array([float(np.cumsum(rows[0] * row)[-1]) for row in coef])
    fallback = -np.sign(coef[0]) * (coef[1] * coef[0] >= 0)
    if not (coef @ fallback < limits - 1e-9).all():
        return
    domain = Constrained(Box.of(-np.ones(7), np.ones(7)), coef, limits, fallback)
    together = domain.clip(rows).rows
    alone = np.concatenate([domain.clip(row[None, :]).rows for row in rows])
    assert together.tobytes() == alone.tobytes()


@pytest.mark.parametrize(
    "change",
    [
        # Inequalities that leave nobody have no fallback that obeys them.
        {"coef": ((1, 0, 0, 0), (-1, 0, 0, 0)), "limits": (-1, -1)},
        {"fallback": (40, 30, 1, 0)},
        {"fallback": (40, 10, 1, 1)},
        {"fallback": (40.5, 10, 1, 0)},
        {"fallback": (40, 10, 1)},
        {"fallback": (40, 10, 1, float("nan"))},
        {"coef": ((1, 0, 0),)},
        {"coef": ()},
        {"coef": "1"},
        {"coef": ((10**400, 0, 0, 0),), "limits": (1,)},
        {"limits": (1,)},
        {"limits": (1, float("inf"))},
        {"limits": (True, 1)},
        {"domain": None},
        {"domain": Column(values=("a", "b"))},
    ],
    ids=str,
)
def test_no_domain_of_inequalities_is_refused(change):
    fields = {"domain": AGES, "coef": WORKING.coef, "limits": WORKING.limits, "fallback": WORKING.fallback}
    with pytest.raises(ValueError, match="must"):
        Constrained(**fields | change)


@pytest.mark.parametrize(
    "domain", [*BLOCKS, WORKING, Columns.of({("a", "b", "c", "d"): WORKING})], ids=lambda d: type(d).__name__
)
def test_a_document_means_its_domain(domain):
    assert domain_from_json(domain.to_json()) == domain
    assert pickle.loads(pickle.dumps(domain)) == domain
    assert json.loads(domain.to_json()) == domain.to_dict()


@pytest.mark.parametrize(
    "text",
    [
        '{"type": "one_hot"}',
        '{"type": "one_hot", "size": 1e9}',
        '{"type": "one_hot", "size": 1000000000000}',
        '{"type": "one_hot", "size": 2, "more": 1}',
        '{"type": "one_hot", "size": 2, "at_most_one": "no"}',
        '{"type": "constrained", "domain": 3, "coef": [[1]], "limits": [1], "fallback": [0]}',
        '{"type": "constrained", "coef": [[1]], "limits": [1], "fallback": [0]}',
        '{"type": "constrained", "domain": {"type": "interval", "low": 0, "high": 1}, "coef": [1], "limits": [1], '
        '"fallback": [0]}',
        '{"type": "constrained", "domain": {"type": "interval", "low": 0, "high": 1}, "coef": [[1e400]], '
        '"limits": [1], "fallback": [0]}',
        '{"type": "constrained", "domain": ' * 50_000,
    ],
    ids=lambda text: text[:70],
)
def test_a_hostile_document_is_refused_with_a_value_error(text):
    with pytest.raises(ValueError, match=r"must|domain|Expecting"):
        domain_from_json(text)


def test_a_fallback_beyond_the_type_of_the_rows_is_refused_as_one():
    """It said that X held infinity, with numpy's warning."""
    far = Constrained(Box((0.0,), (1e100,)), coef=((1.0,),), limits=(1e100,), fallback=(1e60,))
    assert far.clip(np.array([[1e70]])).rows.tolist() == [[1e70]]
    with pytest.raises(ValueError, match="fallback must satisfy every inequality in the type of the rows"):
        far.clip(np.ones((1, 1), dtype=np.float32))


def test_a_ball_may_be_cut_too():
    half = Constrained(Ball(2, 1.0), coef=((1, 0),), limits=(0,), fallback=(-0.5, 0))
    assert half.clip(np.array([[3.0, 4.0], [-3.0, 4.0]])).rows.round(6).tolist() == [[-0.5, 0], [-0.6, 0.8]]
