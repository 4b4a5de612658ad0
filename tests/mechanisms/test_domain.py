"""Declared domains against naive references: what is moved, how much of it, what is refused, and the JSON form."""

import itertools
import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from skldp.domains._columns import Columns, domain_from_json
from skldp.domains._domain import Anywhere, Ball, Box, Codes, FiniteSet
from skldp.mechanisms import Column

types = st.sampled_from([np.float32, np.float64])
# Numbers of single precision, at all of which bounds and rows may meet, and neighbours of them in double precision.
singles = st.floats(width=32, allow_nan=False, allow_infinity=False)
near_singles = st.builds(lambda x, ulps: x + ulps * 2.0**-60 * max(abs(x), 1e-30), singles, st.integers(-3, 3))

PEOPLE = Columns.of(
    {
        "age": Column(0, 100),
        "children": Column(0, 20, kind="integer"),
        "city": Column(values=("Bonn", "Ulm", "Köln"), ordered=True),
        ("x", "y"): Ball(2, 1.5),
        ("u", "v", "w"): Box((0.1, -1.0, -2.0), (0.7, 1.0, 3.0)),
        ("a", "b"): Codes((2, 300)),
        ("p", "q"): FiniteSet(np.array([[0.0, 1.0], [2.0, -1.0]])),
        "free": Anywhere(1),
    }
)
DOMAINS = [part for _, part in PEOPLE.parts] + [
    PEOPLE,
    Columns.of({("a", "b"): Columns.of({"c": Column(0, 1), "d": Column(0, 1)})}),
]


@st.composite
def boxes(draw, d=None, ends=near_singles):
    d = draw(st.integers(1, 4)) if d is None else d
    pairs = [sorted(draw(st.tuples(ends, ends).filter(lambda pair: pair[0] < pair[1]))) for _ in range(d)]
    return Box(*(tuple(end) for end in zip(*pairs, strict=True)))


def rows_of(draw, d, dtype, numbers=singles):
    rows = draw(st.lists(st.lists(numbers, min_size=d, max_size=d), min_size=0, max_size=5))
    return np.array(rows, dtype=dtype).reshape(-1, d)


def exactly(rows):
    return [[Fraction(value) for value in row] for row in np.asarray(rows, dtype=np.float64).tolist()]


def has_number(box, dtype):
    """Whether each feature's bounds have a number of a type between them."""
    for low, high in zip(box.low, box.high, strict=True):
        with np.errstate(over="ignore"):
            least = np.asarray(low).astype(dtype)
        if float(least) < low:
            least = np.nextafter(least, np.inf, dtype=dtype)
        if not float(least) <= high:
            return False
    return True


@pytest.mark.slow
@given(st.data(), boxes(), types)
@settings(max_examples=300, deadline=None)
def test_a_box_moves_each_value_to_the_nearest_bound_and_never_beyond(data, box, dtype):
    rows = rows_of(data.draw, box.n_features, dtype)
    given_rows = rows.copy()
    if rows.size and not has_number(box, dtype):
        with pytest.raises(ValueError, match="Bounds must include a number"):
            box.clip(rows)
        return
    inside = box.clip(rows)
    assert inside.rows.dtype == dtype
    np.testing.assert_array_equal(rows, given_rows)
    n_moved = 0
    for row, moved in zip(exactly(rows), exactly(inside.rows), strict=True):
        for value, new, low, high in zip(row, moved, box.low, box.high, strict=True):
            assert low <= new <= high
            if low <= value <= high:
                assert new == value
            else:
                n_moved += 1
                bound = low if value < low else high
                # No number of the type lies nearer to the bound within it.
                nearer = np.nextafter(dtype(float(new)), dtype(np.inf if bound == high else -np.inf))
                assert not low <= float(nearer) <= high
    assert inside.n_moved == n_moved
    again = box.clip(inside.rows)
    assert again.n_moved == 0
    np.testing.assert_array_equal(again.rows, inside.rows)


def test_bounds_without_a_number_of_the_type_between_them_are_refused():
    for low, high in ((1 + 2.0**-40, 1 + 2.0**-39), (1e300, 1e301), (-1e301, -1e300), (1e-300, 2e-300)):
        box = Box((-1.0, low), (1.0, high))
        assert box.clip(np.zeros((1, 2))).n_moved == 1
        with pytest.raises(ValueError, match="Bounds must include a number of the type of the rows"):
            box.clip(np.zeros((1, 2), dtype=np.float32))
    wide = Box((-1e300,), (1e300,))
    assert wide.clip(np.array([[np.finfo(np.float32).max]], dtype=np.float32)).n_moved == 0


@pytest.mark.slow
@given(st.data(), st.integers(1, 5), st.floats(1e-30, 1e30), types)
@settings(max_examples=300, deadline=None)
def test_a_ball_shortens_rows_and_never_leaves_them_longer(data, d, radius, dtype):
    size = st.floats(-4, 4, width=32).map(lambda x: x * radius)
    rows = rows_of(data.draw, d, dtype, size)
    given_rows, inside = rows.copy(), Ball(d, radius).clip(rows)
    np.testing.assert_array_equal(rows, given_rows)
    assert inside.rows.dtype == dtype
    n_moved = 0
    for row, moved in zip(exactly(rows), exactly(inside.rows), strict=True):
        square = sum(value**2 for value in row)
        assert sum(value**2 for value in moved) <= Fraction(radius) ** 2
        if square > Fraction(radius * 1.001) ** 2:
            n_moved += 1
            length = math.sqrt(float(square) / radius**2)
            # Subnormal numbers of single precision have few bits.
            least = float(np.finfo(dtype).smallest_subnormal)
            expected = np.array(row, dtype=float) / length
            np.testing.assert_allclose(np.array(moved, dtype=float), expected, rtol=1e-5, atol=least)
        elif square < Fraction(radius * 0.999) ** 2:
            assert moved == row
    borderline = sum(
        0.999 <= math.sqrt(float(sum(value**2 for value in row))) / radius <= 1.001 for row in exactly(rows)
    )
    assert n_moved <= inside.n_moved <= n_moved + borderline
    # Shortened rows count as inside.
    assert Ball(d, radius).clip(inside.rows).n_moved == 0
    of_sparse = Ball(d, radius).clip(sparse.csr_matrix(rows))
    np.testing.assert_allclose(of_sparse.rows.toarray(), inside.rows, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 3, 50, 768])
def test_what_only_rounding_made_longer_does_not_count_as_moved(d, dtype):
    rows = np.random.default_rng(d).normal(size=(500, d)).astype(dtype)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True).astype(dtype)
    inside = Ball(d, 1.0).clip(rows)
    assert inside.n_moved == 0
    assert (inside.rows != rows).any() or d == 1
    assert max(sum(value**2 for value in row) for row in exactly(inside.rows)) <= 1
    # Rows count, not their values.
    assert Ball(d, 0.999).clip(rows).n_moved == len(rows)


@given(st.data(), st.integers(1, 3), types)
@settings(max_examples=200, deadline=None)
def test_a_finite_set_moves_to_the_first_of_the_nearest(data, d, dtype):
    whole = st.integers(-4, 4).map(float)
    vectors = data.draw(st.lists(st.lists(whole, min_size=d, max_size=d), min_size=1, max_size=6))
    rows = rows_of(data.draw, d, dtype, whole)
    inside, expected = FiniteSet(vectors).clip(rows), []
    for row in rows.tolist():
        distances = [sum((a - b) ** 2 for a, b in zip(row, vector, strict=True)) for vector in vectors]
        expected.append(vectors[distances.index(min(distances))])
    np.testing.assert_array_equal(inside.rows, np.array(expected, dtype=dtype).reshape(-1, d))
    assert inside.n_moved == np.count_nonzero(inside.rows != rows)
    assert inside.rows.dtype == dtype


def test_a_finite_set_is_its_own():
    given_vectors = np.eye(2)
    domain = FiniteSet(given_vectors)
    given_vectors[0, 0] = 9
    np.testing.assert_array_equal(domain.vectors, np.eye(2))
    assert not domain.vectors.flags.writeable
    assert hash(FiniteSet([[0.0]])) == hash(FiniteSet([[-0.0]]))
    assert FiniteSet([[0.0]]) == FiniteSet([[-0.0]]) != FiniteSet([[0.0, 0.0]])


@given(st.data(), st.integers(-(2**53), 2**53 - 1), st.integers(1, 2**53), types)
@settings(max_examples=300, deadline=None)
def test_integers_are_rounded_to_the_nearest_of_them(data, low, width, dtype):
    high = min(low + width, 2**53)
    numbers = singles | st.integers(low - 3, high + 3).map(float) | st.floats(-40, 40, width=32)
    rows = np.array(data.draw(st.lists(numbers, max_size=6)), dtype=dtype).reshape(-1, 1)
    try:
        inside = Column(low, high, kind="integer").clip(rows)
    except ValueError:
        assert not has_number(Box((float(low),), (float(high),)), dtype)
        return
    n_moved = 0
    for value, new in zip(rows.ravel().tolist(), inside.rows.ravel().tolist(), strict=True):
        assert new == int(new)
        assert low <= new <= high
        n_moved += value != new
        if low <= value <= high:
            assert abs(Fraction(value) - Fraction(new)) <= Fraction(1, 2)
    assert inside.n_moved == n_moved


@given(st.data(), st.lists(st.integers(1, 300), min_size=1, max_size=4))
@settings(max_examples=200, deadline=None)
def test_codes_are_kept_or_refused(data, sizes):
    kind = data.draw(st.sampled_from([np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint64]))
    span = np.iinfo(kind)
    code = st.integers(-2, 302) | st.integers(int(span.min), int(span.max))
    row = st.lists(
        code.map(lambda c: max(int(span.min), min(c, int(span.max)))), min_size=len(sizes), max_size=len(sizes)
    )
    rows = np.array(data.draw(st.lists(row, max_size=4)), dtype=kind).reshape(-1, len(sizes))
    domain = Codes(tuple(sizes))
    if all(0 <= value < size for row in rows.tolist() for value, size in zip(row, sizes, strict=True)):
        inside = domain.clip(rows)
        np.testing.assert_array_equal(inside.rows, rows)
        assert (inside.rows.dtype, inside.n_moved) == (np.int64, 0)
        if len(sizes) == 1:
            same = Column(values=tuple(range(sizes[0]))).clip(rows)
            np.testing.assert_array_equal(same.rows, rows)
    else:
        with pytest.raises(ValueError, match="codes must be integers from 0 to") as refused:
            domain.clip(rows)
        assert "got ndarray of" in str(refused.value)


@pytest.mark.parametrize(
    "rows", [np.array([[0.0]]), np.array([[True]]), np.array([["0"]]), np.array([[0]], dtype=object)]
)
def test_codes_are_integers(rows):
    for domain in (Codes((2,)), Column(values=("a", "b"))):
        with pytest.raises(ValueError, match="codes must be integers"):
            domain.clip(domain.as_rows(rows))


def test_columns_move_every_part_into_its_own_domain():
    inside_row = [100, 3.0, 2, 0.3, 0.4, 0.5, 0.0, 3.0, 1, 299, 2.0, -1.0, -7e300]
    row = [130, 2.6, 2, 0.3, 0.4, 0.5, 0.0, 9.0, 1, 299, 3.0, -1.0, -7e300]
    rows = np.array([row, inside_row])
    kept = rows.copy()
    inside = PEOPLE.clip(rows)
    np.testing.assert_array_equal(inside.rows, [inside_row] * 2)
    np.testing.assert_array_equal(rows, kept)
    assert inside.n_moved == 4
    assert PEOPLE.n_features == len(PEOPLE.names) == 13
    for place, code in ((2, 3), (2, -1), (2, 0.5), (2, 1e300), (8, 2), (9, 300)):
        wrong = rows.copy()
        wrong[1, place] = code
        with pytest.raises(ValueError, match="codes must be integers"):
            PEOPLE.clip(wrong)


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda domain: type(domain).__name__)
class TestEveryDomain:
    def rows(self, domain):
        if domain.has_codes:
            return np.array([[1, 0], [0, 1], [1, 1]])[:, : domain.n_features]
        rows = np.array([[0.5, -3.0, 2.0], [9.0, 0.0, 0.25], [0.0, 7.0, -1.0]])
        rows = np.tile(rows, 5)[:, : domain.n_features]
        if domain is PEOPLE:
            rows[:, [2, 8, 9]] = 1
        return rows

    def test_any_layout_is_read_and_none_is_written(self, domain):
        rows = self.rows(domain)
        expected = domain.clip(rows)
        assert not (isinstance(domain, Box | Ball) or getattr(domain, "kind", "") == "integer") or expected.n_moved
        frozen = rows.copy()
        frozen.flags.writeable = False
        swapped = np.repeat(np.repeat(rows, 2, axis=0), 2, axis=1)[::2, ::2]
        for same in (frozen, np.asfortranarray(rows), swapped, rows[::-1][::-1]):
            before = same.copy()
            inside = domain.clip(same)
            np.testing.assert_array_equal(inside.rows, expected.rows)
            assert inside.n_moved == expected.n_moved
            np.testing.assert_array_equal(same, before)
        nothing = domain.clip(rows[:0])
        assert (nothing.rows.shape, nothing.n_moved) == (rows[:0].shape, 0)

    def test_what_is_not_finite_is_refused(self, domain):
        rows = self.rows(domain)
        if rows.dtype.kind != "f":
            return
        for dtype, bad in itertools.product((np.float32, np.float64), (np.nan, np.inf, -np.inf)):
            if domain is PEOPLE and dtype == np.float32:
                continue
            for column in range(domain.n_features):
                wrong = rows.astype(dtype)
                wrong[2, column] = bad
                with pytest.raises(ValueError, match="contains NaN" if np.isnan(bad) else "contains infinity"):
                    domain.clip(wrong)

    def test_its_json_form_gives_it_back(self, domain):
        text = domain.to_json()
        again = domain_from_json(text)
        assert again == domain
        assert hash(again) == hash(domain)
        assert type(again) is type(domain)
        assert again.to_json() == text
        rows = self.rows(domain)
        np.testing.assert_array_equal(again.clip(rows).rows, domain.clip(rows).rows)

    def test_a_pickle_is_as_long_after_use(self, domain):
        before = len(pickle.dumps(domain))
        domain.clip(self.rows(domain))
        if isinstance(domain, Box):
            assert len(pickle.dumps(domain)) == before
        assert pickle.loads(pickle.dumps(domain)) == domain


HOSTILE = [
    "",
    "{",
    "null",
    "[]",
    "3",
    '"box"',
    "{}",
    '{"type": "sphere"}',
    '{"type": []}',
    '{"type": {}}',
    '{"type": null}',
    '{"type": "Box", "low": [0], "high": [1]}',
    '{"type": "interval", "low": NaN, "high": 1}',
    '{"type": "interval", "low": 0, "high": Infinity}',
    '{"type": "interval", "low": 0, "high": 1e400}',
    '{"type": "interval", "low": 0, "high": 1' + "0" * 400 + "}",
    '{"type": "interval", "low": 0, "high": 1' + "0" * 5000 + "}",
    '{"type": "interval", "low": false, "high": 1}',
    '{"type": "interval", "low": 0, "high": true}',
    '{"type": "interval", "low": "0", "high": "1"}',
    '{"type": "interval", "low": [0], "high": [1]}',
    '{"type": "interval", "low": 1, "high": 0}',
    '{"type": "interval", "low": 1, "high": 1}',
    '{"type": "interval", "low": 0}',
    '{"type": "interval", "low": 0, "high": 1, "more": 2}',
    '{"type": "interval", "low": 0, "low": -5, "high": 1}',
    '{"type": "interval", "type": "integers", "low": 0, "high": 1}',
    '{"type": "integers", "low": 0.5, "high": 3}',
    '{"type": "integers", "low": 0, "high": 9007199254740993}',
    '{"type": "integers", "low": false, "high": true}',
    '{"type": "box", "low": [0], "high": [1e400]}',
    '{"type": "box", "low": [-1e400], "high": [0]}',
    '{"type": "box", "low": [NaN], "high": [1]}',
    '{"type": "box", "low": [0], "high": [1' + "0" * 400 + "]}",
    '{"type": "box", "low": [false], "high": [true]}',
    '{"type": "box", "low": [0, false], "high": [1, 0.5]}',
    '{"type": "box", "low": ["0"], "high": ["1"]}',
    '{"type": "box", "low": "0", "high": "1"}',
    '{"type": "box", "low": 0, "high": 1}',
    '{"type": "box", "low": [null], "high": [1]}',
    '{"type": "box", "low": [[0]], "high": [[1]]}',
    '{"type": "box", "low": [[0], 1], "high": [[1], 2]}',
    '{"type": "box", "low": [{}], "high": [1]}',
    '{"type": "box", "low": [], "high": []}',
    '{"type": "box", "low": [0], "high": [1, 2]}',
    '{"type": "box", "low": {}, "high": {}}',
    '{"type": "ball", "dimension": true, "radius": 1}',
    '{"type": "ball", "dimension": 2.0, "radius": 1}',
    '{"type": "ball", "dimension": 2, "radius": true}',
    '{"type": "ball", "dimension": 2, "radius": 0}',
    '{"type": "ball", "dimension": 2, "radius": 1e400}',
    '{"type": "ball", "dimension": 0, "radius": 1}',
    '{"type": "anywhere", "dimension": "3"}',
    '{"type": "anywhere", "dimension": [3]}',
    '{"type": "anywhere"}',
    '{"type": "codes", "sizes": [true]}',
    '{"type": "codes", "sizes": [2.0]}',
    '{"type": "codes", "sizes": [0]}',
    '{"type": "codes", "sizes": []}',
    '{"type": "codes", "sizes": 2}',
    '{"type": "codes", "sizes": "2"}',
    '{"type": "codes", "sizes": [[2]]}',
    '{"type": "codes", "sizes": [2, 1' + "0" * 30 + "]}",
    '{"type": "finite_set", "vectors": []}',
    '{"type": "finite_set", "vectors": [[]]}',
    '{"type": "finite_set", "vectors": [1]}',
    '{"type": "finite_set", "vectors": [[1], [1, 2]]}',
    '{"type": "finite_set", "vectors": [[1e400]]}',
    '{"type": "finite_set", "vectors": [["1"]]}',
    '{"type": "finite_set", "vectors": [[true, 0.5]]}',
    '{"type": "finite_set", "vectors": [[[1]]]}',
    '{"type": "finite_set", "vectors": "ab"}',
    '{"type": "categories", "values": []}',
    '{"type": "categories", "values": "ab"}',
    '{"type": "categories", "values": {"a": 1}}',
    '{"type": "categories", "values": ["a", "a"]}',
    '{"type": "categories", "values": [1, true]}',
    '{"type": "categories", "values": [0, -0.0]}',
    '{"type": "categories", "values": [["a"], ["b"]]}',
    '{"type": "categories", "values": [{}, "b"]}',
    '{"type": "categories", "values": [null]}',
    '{"type": "categories", "values": [NaN]}',
    '{"type": "categories", "values": [1e400]}',
    '{"type": "categories", "values": ["a"], "ordered": "yes"}',
    '{"type": "categories", "values": ["a"], "ordered": 1}',
    '{"type": "columns"}',
    '{"type": "columns", "parts": []}',
    '{"type": "columns", "parts": 3}',
    '{"type": "columns", "parts": "ab"}',
    '{"type": "columns", "parts": ["ab"]}',
    '{"type": "columns", "parts": {"columns": ["a"]}}',
    '{"type": "columns", "parts": [[["columns", ["a"]], ["type", "interval"], ["low", 0], ["high", 1]]]}',
    '{"type": "columns", "parts": [{"type": "interval", "low": 0, "high": 1}]}',
    '{"type": "columns", "parts": [{"columns": "a", "type": "interval", "low": 0, "high": 1}]}',
    '{"type": "columns", "parts": [{"columns": [1], "type": "interval", "low": 0, "high": 1}]}',
    '{"type": "columns", "parts": [{"columns": [["a"]], "type": "interval", "low": 0, "high": 1}]}',
    '{"type": "columns", "parts": [{"columns": [], "type": "interval", "low": 0, "high": 1}]}',
    '{"type": "columns", "parts": [{"columns": ["a", "b"], "type": "interval", "low": 0, "high": 1}]}',
    '{"type": "columns", "parts": [{"columns": ["a", "a"], "type": "anywhere", "dimension": 2}]}',
    '{"type": "columns", "parts": [{"columns": ["a"], "type": "interval", "low": 0, "high": 1}], "more": 1}',
    '{"type": "columns", "parts": [{"columns": ["a"], "type": "anywhere", "dimension": 1}, '
    '{"columns": ["a"], "type": "anywhere", "dimension": 1}]}',
    '{"type": "columns", "parts": [' * 100_000,
    '{"type": "columns", "parts": [' + '{"columns": ["a"], "type": "columns", "parts": [' * 900 + "]}" * 901,
    '{"type": "constrained", "domain": ' * 300 + "{}" + "}" * 300,
    '{"type": "categories", "values": ' + "[" * 300 + "]" * 300 + "}",
    "[" * 100_000 + "]" * 100_000,
]


def test_wrong_names_of_a_domain_are_shown_beside_the_right_ones():
    for names in ({"lo": 0, "high": 1}, {"low": 0}, {"low": 0, "high": 1, "step": 1}):
        with pytest.raises(ValueError, match="type 'interval' must have the fields") as refused:
            domain_from_json(json.dumps({"type": "interval", **names}))
        assert str(refused.value).endswith(f"['high', 'low']; got {sorted(names)}.")


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:70])
def test_hostile_json_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        domain_from_json(text)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Box(0, 1),
        lambda: Box((0.0,), (np.True_,)),
        lambda: Box(np.array([False]), np.array([True])),
        lambda: Box.of("0", "1"),
        lambda: Box((0j,), (1j,)),
        lambda: Box(np.array([0, "1"], dtype=object), (2, 2)),
        lambda: FiniteSet(np.eye(2, dtype=bool)),
        lambda: FiniteSet(np.array([["1"]])),
        lambda: Codes((np.bool_(True),)),
        lambda: Column(values=["a", "b"]),
        lambda: Column(values=(None,)),
        lambda: Column(values=(Fraction(1, 3),)),
        lambda: Column(np.True_, 5, kind="integer"),
        lambda: Columns.of({}),
    ],
)
def test_no_bool_or_string_is_a_number(make):
    with pytest.raises(ValueError, match="must"):
        make()
