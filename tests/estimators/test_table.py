"""TablePrivatizer: any table with a declared schema, one epsilon for a record, and the same table back."""

import json
import re
from datetime import date
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from laws import THRESHOLD, OneDraw, assert_is_the_guarantee, chi_square_pvalue, intervals, lengths
from scipy import sparse
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from skldp import TablePrivatizer, privacy_guarantee
from skldp.domains._columns import Columns
from skldp.domains._domain import Ball
from skldp.mechanisms import Column, RandomizedResponse
from skldp.mechanisms._record import MixedRecord

seeds_expected = pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")
SCHEMA = {
    "age": (0, 100),
    "city": {"type": "category", "values": ["Ulm", "Bonn", "Kiel"], "missing": "category"},
    "size": Column(values=("S", "M", "L"), ordered=True),
    "rooms": Column(1, 9, kind="integer"),
    "since": ("2020-01-01", "2024-12-31"),
    "mass": {"type": "number", "low": 2000, "high": 7000, "missing": "middle"},
}
COLUMNS = {
    "age": [31.0, 64.0, 8.0, 99.0],
    "city": ["Ulm", None, "Kiel", "Bonn"],
    "size": ["L", "S", "M", "M"],
    "rooms": [1, 9, 4, 5],
    "since": [date(2020, 1, 1), date(2022, 7, 2), date(2024, 12, 31), date(2021, 3, 1)],
    "mass": [2500.0, 3000.0, None, 6999.0],
}
FRAMES = {
    "pandas": lambda: pd.DataFrame(COLUMNS).astype({"mass": float}),
    "pandas, its own types": lambda: pd.DataFrame(COLUMNS).assign(
        city=lambda frame: frame["city"].astype("category"),
        since=lambda frame: pd.to_datetime(frame["since"]),
        mass=lambda frame: frame["mass"].astype("Float64"),
        rooms=lambda frame: frame["rooms"].astype("Int64"),
    ),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "polars, an Enum": lambda: pl.DataFrame(COLUMNS).with_columns(pl.col("size").cast(pl.Enum(["S", "M", "L"]))),
}
NAMES = [
    "age",
    "city_Ulm",
    "city_Bonn",
    "city_Kiel",
    "city_missing",
    "size_S",
    "size_M",
    "size_L",
    "rooms",
    "since",
    "mass",
]


def plain(encoding="onehot", **parameters):
    return TablePrivatizer(6.0, schema=SCHEMA, encoding=encoding, transform_noise=False, **parameters)


@pytest.mark.parametrize("kind", FRAMES)
def test_every_kind_of_frame_is_read_alike(kind):
    table = plain().fit(FRAMES[kind]())
    encoded = table.transform(FRAMES[kind]())
    assert table.get_feature_names_out().tolist() == NAMES
    days = (pd.to_datetime(pd.Series(COLUMNS["since"])) - pd.Timestamp(0)).dt.days
    np.testing.assert_array_equal(encoded[:, 0], COLUMNS["age"])
    np.testing.assert_array_equal(encoded[:, 1:5], np.eye(4)[[0, 3, 2, 1]])
    np.testing.assert_array_equal(encoded[:, 5:8], np.eye(3)[[2, 0, 1, 1]])
    np.testing.assert_array_equal(encoded[:, 8], COLUMNS["rooms"])
    np.testing.assert_array_equal(encoded[:, 9], days)
    # What is missing stands for the declared middle, whatever the others are.
    np.testing.assert_array_equal(encoded[:, 10], [2500, 3000, 4500, 6999])


@pytest.mark.parametrize("kind", FRAMES)
def test_columns_come_back_in_a_frame_of_the_same_kind(kind):
    frame = FRAMES[kind]()
    back = plain("columns").fit(frame).transform(frame)
    assert type(back) is type(frame)
    assert list(back.columns) == list(COLUMNS)
    for name, values in COLUMNS.items():
        expected = [4500.0 if value is None and name == "mass" else value for value in values]
        got = [None if value is None or value != value else value for value in back[name].to_list()]
        assert [value.date() if hasattr(value, "date") else value for value in got] == expected
    if kind == "pandas":
        assert back["size"].cat.ordered
        assert list(back["size"].cat.categories) == ["S", "M", "L"]
        assert back.index is frame.index
    if kind.startswith("polars"):
        assert back["since"].dtype == pl.Date
        assert back["size"].dtype == pl.Enum(["S", "M", "L"])


def test_a_sparse_table_is_the_dense_one_and_small():
    frame = FRAMES["pandas"]()
    dense, thin = plain().fit(frame), plain(sparse_output=True).fit(frame)
    released = thin.transform(frame)
    assert sparse.isspmatrix_csr(released)
    np.testing.assert_array_equal(released.toarray(), dense.transform(frame))
    assert released.nnz <= frame.size
    many = pd.DataFrame({"word": [f"w{j % 5000}" for j in range(20_000)]})
    words = TablePrivatizer(8.0, schema={"word": [f"w{j}" for j in range(5000)]}, sparse_output=True)
    assert words.fit_transform(many).data.nbytes == 160_000


@pytest.mark.parametrize("kind", FRAMES)
def test_noise_is_in_every_column_and_the_epsilons_add_up(kind):
    frame = FRAMES[kind]()
    table = TablePrivatizer(6.0, schema=SCHEMA, shares={**dict.fromkeys(SCHEMA, 1), "age": 3}).fit(frame)
    guarantee = table.privacy_guarantee_
    assert guarantee.unit == "record"
    assert guarantee.epsilon <= guarantee.stated <= 6.0
    assert guarantee.epsilon == pytest.approx(6.0)
    assert guarantee.epsilon >= sum(map(Fraction, table.epsilons_.values()))
    assert table.epsilons_["age"] == pytest.approx(2.25)
    assert "age 2.25, city 0.75" in guarantee.basis
    assert guarantee.per_feature == table.epsilons_["age"]
    pipeline = make_pipeline(clone(table).set_params(encoding="onehot"), GaussianNB())
    pipeline.fit(frame, [0, 1, 0, 1])
    assert privacy_guarantee(pipeline).epsilon <= 6.0


@seeds_expected
def test_every_column_is_released_by_its_own_law():
    n = 40_000
    frame = pd.DataFrame({"age": np.full(n, 20.0), "city": ["Ulm"] * n})
    schema = {"age": (0, 100), "city": {**SCHEMA["city"]}}
    table = TablePrivatizer(2.0, schema=schema, mechanism="duchi", seed=4)
    released = table.fit_transform(frame)
    keep = RandomizedResponse(1.0, 4)
    counts = released[:, 1:].sum(axis=0)
    assert chi_square_pvalue(counts, [keep.p] + [keep.q] * 3) > THRESHOLD
    high = released[:, 0] > 50
    span = 50 / np.tanh(0.5)
    np.testing.assert_allclose(np.unique(released[:, 0]), [50 - span, 50 + span])
    chance = 0.5 + (20 - 50) / (2 * span)
    assert chi_square_pvalue([high.sum(), (~high).sum()], [chance, 1 - chance]) > THRESHOLD
    # One column's answer tells nothing of another's noise.
    together = (high & (released[:, 1] == 1)).sum()
    expected = high.mean() * (released[:, 1] == 1).mean() * n
    assert abs(together - expected) < 6 * np.sqrt(expected)


class DrawsOfColumns(OneDraw):
    """One draw of 64 bits for each column in turn: 16 bits first, the other 48 where those do not decide."""

    def __init__(self, *draws):
        super().__init__(0, (16, 48))
        self.draws = list(draws)

    def fill(self, buffer):
        if buffer.size and buffer.itemsize == 2:
            self.pieces = OneDraw(self.draws.pop(0), (16, 48)).pieces
        return super().fill(buffer)


@pytest.mark.few(1)
@pytest.mark.parametrize("epsilons", [(1.0, 2.0), (0.1, 6.0)])
def test_the_law_of_a_whole_record_has_the_integers_of_the_sum(epsilons):
    columns = Columns.of({"answer": Column(values=("no", "yes")), "size": Column(values=("S", "M", "L"))})
    record = MixedRecord(columns, epsilons)
    last = 2**64 - 1

    def released(row, *draws):
        return tuple(record.release([row], DrawsOfColumns(*draws)).rows[0].tolist())

    joint = []
    for row in [[a, b] for a in (0.0, 1.0) for b in (0.0, 1.0, 2.0)]:
        # Each column answers to its own draw, whatever the other one is.
        laws = []
        for other in (0, last):
            firsts = intervals(lambda draw, row=row, other=other: released(row, draw, other)[0], 0, last + 1)
            seconds = intervals(lambda draw, row=row, other=other: released(row, other, draw)[1], 0, last + 1)
            laws.append([lengths(found, last + 1) for found in (firsts, seconds)])
        assert laws[0] == laws[1]
        first, second = laws[0]
        joint.append({(a, b): first[a] * second[b] for a in first for b in second})
    assert_is_the_guarantee(joint, record.guarantee().epsilon)


@pytest.mark.parametrize(
    ("column", "values", "match"),
    [
        ("age", [None, 1.0, 2.0, 3.0], "Column 'age' must not have missing values.*1 of 4 rows"),
        ("size", ["S", None, "M", "M"], "Column 'size' must not have missing values"),
        ("city", ["Rome", "Ulm", "Ulm", "Ulm"], "Column 'city' must hold only the declared 3 values.*1 of 4"),
        ("age", ["young", "1", "2", "3"], "Column 'age' must hold finite numbers"),
        ("since", ["soon", "1", "2", "3"], "Column 'since' must hold dates"),
        ("age", [np.inf, 1.0, 2.0, 3.0], "Column 'age' must hold finite numbers.*1 of 4"),
        ("age", [True, 1.0, 2.0, 3.0], "Column 'age' must hold finite numbers.*position 0, of type bool"),
        ("city", ["Ulm", "Ulm", "Ulm", 1], "Column 'city' must hold only .*position 3, of type int"),
    ],
)
def test_what_the_schema_does_not_say_is_refused_without_a_value(column, values, match):
    frame = FRAMES["pandas"]().assign(**{column: values})
    with pytest.raises(ValueError, match=match) as refused:
        plain().fit_transform(frame)
    assert not any(word in str(refused.value) for word in ("Rome", "young", "soon"))


@pytest.mark.parametrize(
    "values",
    [[20240229, 20240301], [2024, 2025], [0.5, 1.5], [True, False], [date(2024, 2, 29), 7], pd.to_timedelta([1, 2])],
    ids=str,
)
@pytest.mark.parametrize("dtype", [None, object])
def test_numbers_are_no_dates_and_dates_no_numbers(values, dtype):
    schema = {"since": {"type": "date", "low": "2020-01-01", "high": "2024-12-31", "missing": "middle"}}
    with pytest.raises(ValueError, match=r"[Dd]ates") as refused:
        TablePrivatizer(schema=schema).fit(pd.DataFrame({"since": values}, dtype=dtype))
    assert "2024022" not in str(refused.value)
    missing = pd.DataFrame({"since": [np.nan, np.nan]})
    assert TablePrivatizer(schema=schema, transform_noise=False).fit(missing).transform(missing)[0, 0] == 19175
    for moment in ("datetime64[s]", "timedelta64[s]"):
        with pytest.raises(ValueError, match="Column 'age' must hold finite numbers"):
            TablePrivatizer(schema={"age": (0, 100)}).fit(pd.DataFrame({"age": np.arange(2).astype(moment)}))


def test_a_schema_from_a_file_means_what_it_says():
    frame = pd.DataFrame({"age": [31.0, np.nan], "city": ["Ulm", "Bonn"], "since": ["2021-03-01", "2022-01-01"]})
    written = {
        "age": {"type": "number", "low": 0, "high": 100, "missing": "middle"},
        "city": ["Bonn", "Ulm"],
        "since": {"type": "date", "low": "2020-01-01", "high": "2024-12-31"},
    }
    table = TablePrivatizer(schema=json.dumps(written), transform_noise=False).fit(frame)
    np.testing.assert_array_equal(table.transform(frame)[:, :3], [[31, 0, 1], [50, 1, 0]])
    # In JSON a pair is a list, which would be two categories.
    as_bounds = '{"type": "number", "low": 0, "high": 100}, and two categories, for which write'
    for schema, bounds in ((json.dumps({"age": [0, 100]}), as_bounds), ({"age": [0, 100]}, "(0, 100), or in JSON {")):
        with pytest.raises(ValueError, match=re.escape(f"may mean bounds, for which write {bounds}")):
            TablePrivatizer(schema=schema).fit(frame[["age"]])
    for schema, match in (
        ("schema.json", "must be JSON such as .*, not a path"),
        ('{"age": ["a"], "age": ["b"]}', "once"),
        ('["age"]', "It is no object"),
    ):
        with pytest.raises(ValueError, match=match):
            TablePrivatizer(schema=schema).fit(frame[["age"]])


def test_unknown_categories_become_missing_ones_where_that_is_declared():
    schema = {name: SCHEMA[name] for name in ("age", "city")}
    frame = FRAMES["pandas"]()[["age", "city"]].assign(city=["Rome", "Ulm", None, "3"])
    table = TablePrivatizer(schema=schema, handle_unknown="missing", transform_noise=False).fit(frame)
    assert table.get_feature_names_out().tolist()[-1] == "city_missing"
    assert table.transform(frame)[:, -1].tolist() == [1, 0, 1, 1]
    with pytest.raises(ValueError, match="the first at position 3, of type int"):
        table.transform(frame.assign(city=["Rome", "Ulm", None, 3]))
    with pytest.raises(ValueError, match="handle_unknown='missing' needs"):
        plain(handle_unknown="missing").fit(FRAMES["pandas"]())


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"schema": {"age": (0, 1)}}, r"schema must name every column once. It misses \['city'"),
        ({"schema": {**SCHEMA, "name": (0, 1)}}, r"The table lacks the declared \['name'\]"),
        (
            {"schema": {**SCHEMA, "age": (1, 0)}},
            "schema of the column 'age' is invalid: Bounds must .*low < high; got .* It must",
        ),
        ({"schema": {**SCHEMA, "age": 3}}, "schema of the column 'age' is invalid: it is 3. It must be"),
        ({"schema": {**SCHEMA, "age": Ball(1, 1.0)}}, "it is Ball"),
        ({"schema": {**SCHEMA, "size": ["S", "S"]}}, "different values"),
        ({"schema": {**SCHEMA, "age": {"type": "number", "low": 0}}}, "schema of the column 'age'"),
        (
            {"schema": {**SCHEMA, "age": {**SCHEMA["mass"], "missing": "mean"}}},
            "missing must be 'refuse', 'category', 'middle' or a number",
        ),
        ({"schema": {**SCHEMA, "city": {**SCHEMA["city"], "missing": "middle"}}}, "missing must be 'category'"),
        ({"shares": {"age": 1}}, "shares must name every column once"),
        ({"shares": {**dict.fromkeys(SCHEMA, 1), "age": 0}}, "Every weight must be"),
        ({"epsilon": True}, "epsilon"),
        ({"mechanism": "gaussian"}, "mechanism"),
    ],
)
def test_refuses_what_is_no_declaration(parameters, match):
    with pytest.raises(ValueError, match=match):
        TablePrivatizer(**{"schema": SCHEMA} | parameters).fit(FRAMES["pandas"]())


@pytest.mark.parametrize("container", ["default", "pandas", "polars"])
@pytest.mark.parametrize("given", ["pandas", "polars", "array"])
@pytest.mark.parametrize("names", [("age", "city", "on"), ("age", "on"), ("age", "city"), ("age",)], ids=str)
def test_columns_have_their_types_in_every_container(given, container, names):
    schema = {"age": (0, 100), "city": ["Bonn", "Ulm"], "on": ("2021-01-01", "2022-01-01")}
    cells = {"age": [40.0] * 9, "city": ["Bonn"] * 9, "on": [date(2021, 5, 6)] * 9}
    frame = pd.DataFrame({name: cells[name] for name in names})
    kinds = {"pandas": frame, "polars": pl.DataFrame({name: cells[name] for name in names}), "array": frame.to_numpy()}
    own = schema if given != "array" else {f"x{j}": schema[name] for j, name in enumerate(names)}
    own = {name: domain for name, domain in own.items() if name in names or given == "array"}
    table = TablePrivatizer(200.0, schema=own, encoding="columns").set_output(transform=container)
    released = table.fit_transform(kinds[given])
    made = given if container == "default" else container
    assert list(getattr(released, "columns", own)) == list(own)
    for j, name in enumerate(names):
        if made == "array":
            assert isinstance(released[0, j], {"age": float, "city": str, "on": (date, np.datetime64)}[name])
        elif made == "pandas":
            kind = {"age": "float64", "city": "category", "on": "datetime64"}[name]
            assert str(released.dtypes.iloc[j]).startswith(kind)
        else:
            assert released.dtypes[j] == {"age": pl.Float64, "city": pl.Enum(["Bonn", "Ulm"]), "on": pl.Date}[name]
    if "city" in names:
        cells = released.iloc if made == "pandas" else released
        assert set(cells[:, names.index("city")]) == {"Bonn"}


def test_integers_and_booleans_with_gaps_are_their_categories_after_any_round_trip(tmp_path):
    truth = pd.DataFrame(
        {"kids": pd.array([2, None, 0, 1], dtype="Int64"), "owns": pd.array([True, None, False, True], dtype="boolean")}
    )
    schema = {
        name: {"type": "category", "values": values, "missing": "category"}
        for name, values in (("kids", [0, 1, 2]), ("owns", [False, True]))
    }
    truth.to_csv(tmp_path / "t.csv", index=False)
    truth.to_parquet(tmp_path / "t.parquet")
    frames = [
        truth,
        pd.read_csv(tmp_path / "t.csv"),
        pd.read_csv(tmp_path / "t.csv", dtype_backend="pyarrow"),
        pd.read_parquet(tmp_path / "t.parquet"),
        pl.read_csv(tmp_path / "t.csv"),
        pl.read_parquet(tmp_path / "t.parquet"),
        pd.DataFrame(pl.read_csv(tmp_path / "t.csv").to_dicts()),
        pd.DataFrame({"kids": np.float32([2, np.nan, 0, 1]), "owns": np.array([np.True_, None, np.False_, np.True_])}),
        truth.astype("category"),
    ]
    for frame in frames:
        for handle_unknown in ("error", "missing"):
            table = TablePrivatizer(schema=schema, transform_noise=False, handle_unknown=handle_unknown).fit(frame)
            names, bits = table.get_feature_names_out(), table.transform(frame) == 1
            assert [names[row].tolist() for row in bits] == [
                ["kids_2", "owns_True"],
                ["kids_missing", "owns_missing"],
                ["kids_0", "owns_False"],
                ["kids_1", "owns_True"],
            ]
