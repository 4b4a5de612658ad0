"""NaN is refused with the name of its column, and masked cells are refused like NaN, by everything that takes rows."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

from skldp import (
    BayesianFilter,
    BitRandTransformer,
    BoundsScaler,
    CategoricalPrivatizer,
    ColumnEncoder,
    NumericPrivatizer,
    PrivacyLedger,
    PrivateDiscriminant,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivUnitTransformer,
    RandomProjectionPrivatizer,
    TablePrivatizer,
    release_blocks,
)
from skldp.client import VectorField
from skldp.mechanisms.numeric._unit_mechanisms import Duchi

N = 20
X = np.random.default_rng(0).uniform(-1, 1, (N, 2))
Y, CLASSES = X[:, 0], (X[:, 0] > 0).astype(int)
TRANSFORMERS = [
    NumericPrivatizer(1.0, bounds=(-1, 1)),
    BitRandTransformer(1.0, bounds=(-1, 1)),
    PrivUnitTransformer(1.0, bounds=(-1, 1)),
    RandomProjectionPrivatizer(1.0, n_components=2),
    TablePrivatizer(1.0),
    TablePrivatizer(1.0, encoding="columns"),
    BoundsScaler(),
    ColumnEncoder(),
]
MODELS = [
    (PrivateLinearRegression(1.0), Y),
    (PrivateLogisticRegression(1.0, classes=[0, 1]), CLASSES),
    (PrivateDiscriminant(1.0, classes=[0, 1]), CLASSES),
]
pytestmark = pytest.mark.filterwarnings("ignore::skldp.exceptions.PrivacyGuaranteeWarning")


def masked(array):
    """Return the array with a masked last cell."""
    own = np.ma.array(array.copy())
    own[(-1,) * array.ndim] = np.ma.masked
    return own


def with_nan(value=np.nan):
    frame = pd.DataFrame(X.copy(), columns=["age", "wage"])
    frame.loc[7, "wage"] = value
    return frame


def name(one):
    return type(one).__name__ if hasattr(one, "get_params") else getattr(one, "__name__", None)


@pytest.mark.parametrize("table", [pd.DataFrame, pl.from_pandas, np.asarray, lambda frame: frame.astype(np.float32)])
@pytest.mark.parametrize("value", [np.nan, -np.inf])
@pytest.mark.parametrize("estimator", TRANSFORMERS, ids=name)
def test_nan_is_refused_with_its_column(estimator, value, table):
    given = table(with_nan(value))
    column = r"'wage'" if hasattr(given, "columns") else "1"
    for refused in (clone(estimator).fit_transform, clone(estimator).fit(table(with_nan(0.5))).transform):
        with pytest.raises(ValueError, match=f"contains NaN or infinity in column {column}. Replace") as error:
            refused(given)
        assert error.value.__cause__ is None or type(error.value.__cause__).__module__ == "builtins"


def test_nan_in_a_model_or_a_question_is_refused_with_its_column_before_a_charge():
    with PrivacyLedger(3.0) as ledger:
        charged = NumericPrivatizer(1.0, ledger=ledger).fit(with_nan(0.5))
        with pytest.raises(ValueError, match="in column 'wage'"):
            charged.transform(with_nan(), ids=list(range(N)))
        np.testing.assert_array_equal(ledger.remaining(list(range(N))), 3.0)
    for model, y in MODELS:
        with pytest.raises(ValueError, match="in column 'wage'"):
            clone(model).fit(with_nan(), y)
    asked = BayesianFilter(Ridge(), epsilon=0.5, total_epsilon=1.0, bounds=(-1, 1)).fit(with_nan(0.5), Y)
    with pytest.raises(ValueError, match="in column 'wage'"):
        asked.query(with_nan(), ids=list(range(N)))


@pytest.mark.parametrize("given", [lambda X: X, list, lambda X: X.astype(object), lambda X: (9 * X).astype(int)])
@pytest.mark.parametrize("estimator", TRANSFORMERS, ids=name)
def test_masked_cells_are_refused(estimator, given):
    fitted = clone(estimator).fit(X)
    for refused in (clone(estimator).fit_transform, fitted.transform):
        with pytest.raises(ValueError, match="X must not have masked cells"):
            refused(given(masked(X)))
    unhidden = np.ma.array(X)
    assert clone(estimator).fit_transform(unhidden).shape[0] == N


def test_masked_cells_of_every_type_and_every_way_in_are_refused():
    for cells, schema in (
        (np.array([["a"], ["b"]]), ["a", "b"]),
        (np.array([["2020-02-02"], ["2020-02-03"]], dtype="M8[D]"), ("2020-01-01", "2021-01-01")),
        (np.array([[0], [1]]), {"type": "integer", "low": 0, "high": 1}),
    ):
        for estimator in (ColumnEncoder({0: schema}), TablePrivatizer(1.0, schema={"x0": schema})):
            with pytest.raises(ValueError, match="X must not have masked cells"):
                estimator.fit_transform(masked(cells))
    with pytest.raises(ValueError, match="masked cells"):
        CategoricalPrivatizer(1.0, categories=[[0, 1]]).fit_transform(masked(CLASSES[:, None]))
    with pytest.raises(ValueError, match="masked cells"):
        release_blocks(NumericPrivatizer(1.0).fit(X), masked(X), np.empty_like(X))
    with PrivacyLedger(3.0) as ledger:
        with pytest.raises(ValueError, match="masked cells"):
            ledger.release(Duchi(1.0), masked(X[:, :1]), list(range(N)))
        np.testing.assert_array_equal(ledger.remaining(list(range(N))), 3.0)
    asked = BayesianFilter(Ridge(), epsilon=0.5, total_epsilon=1.0, bounds=(-1, 1)).fit(X, Y)
    with pytest.raises(ValueError, match="masked cells"):
        asked.query(masked(X), ids=list(range(N)))


@pytest.mark.parametrize("given", [lambda rows: rows, list], ids=["array", "list"])
def test_a_masked_vector_is_unreadable_on_a_device(given):
    field = VectorField.privunit("v", 3, 1.0)
    rows = np.ma.array([[0.1, 0.2, 0.3], [0.1, -999.0, 0.2]], mask=[[0, 0, 0], [0, 1, 0]])
    with pytest.raises(ValueError, match="must be vectors of 3 numbers"):
        field.encode_all({"v": given(rows)}, True)
    assert not field.encode({"v": rows[1]}).any()
    assert field.encode({"v": rows[0]}).any()


def test_a_table_of_arrow_is_read_or_refused_by_its_type():
    pa = pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": [0, 1, 1], "b": ["x", "y", "x"]})
    # The chance of another category is below 1e-20.
    estimator = CategoricalPrivatizer(100.0, categories=[[1, 0], ["y", "x"]])
    released = estimator.fit_transform(pa.Table.from_pandas(frame))
    np.testing.assert_array_equal(released, estimator.fit_transform(frame))
    np.testing.assert_array_equal(released, [[1, 0, 1, 0], [0, 1, 0, 1], [0, 1, 1, 0]])
    with pytest.raises(ValueError, match=r"X must be a DataFrame of pandas or polars, or an array; got Table"):
        TablePrivatizer(1.0, schema={"a": [0, 1], "b": ["x", "y"]}).fit(pa.Table.from_pandas(frame))


def dated(kind):
    """Frames of a column of numbers and one of dates, times or durations."""
    pa = pytest.importorskip("pyarrow")
    day, step, numbers = datetime.date(2020, 2, 2), datetime.timedelta(days=2), [0.25, 0.75]
    yield pl.DataFrame({"a": numbers, "b": [kind(day), kind(day + step)]})
    yield pl.DataFrame({"a": numbers, "b": [None, kind(day)]})
    yield pd.DataFrame({"a": numbers, "b": [kind(day), kind(day + step)]})
    table = pa.table({"a": numbers, "b": [kind(day), kind(day + step)]})
    yield table
    yield table.to_pandas(types_mapper=pd.ArrowDtype)


@pytest.mark.parametrize(
    "kind",
    [
        lambda day: day,
        lambda day: datetime.datetime(day.year, day.month, day.day, 12),
        lambda day: day - datetime.date(2020, 1, 1),
        lambda day: datetime.time(day.day),
    ],
    ids=["dates", "datetimes", "durations", "times"],
)
@pytest.mark.parametrize("estimator", TRANSFORMERS, ids=name)
def test_dates_beside_numbers_are_no_numbers_in_any_library(estimator, kind):
    """Polars and Arrow made them counts of days, which were clipped to the bounds: every person had the same value."""
    fitted = clone(estimator).fit(pd.DataFrame({"a": [0.25, 0.5], "b": [0.5, 0.75]}))
    for frame in dated(kind):
        for call in (clone(estimator).fit, fitted.transform):
            with pytest.raises((ValueError, TypeError), match=r"X must be real numbers|X contains NaN"):
                call(frame)


def test_times_of_numpy_in_any_row_are_no_numbers():
    for cell in (np.datetime64("2020-02-02"), np.timedelta64(1, "D")):
        rows = np.array([[0.25, 0.5], [0.5, cell]], dtype=object)
        for estimator in TRANSFORMERS:
            with pytest.raises(ValueError, match="X must be real numbers"):
                clone(estimator).fit(rows)
        for model, y in MODELS:
            with pytest.raises(ValueError, match="X must be real numbers"):
                clone(model).fit(rows, y[:2])
