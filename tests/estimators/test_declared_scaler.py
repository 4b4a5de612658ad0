import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from skldp import BoundsScaler, MultivariateLaplacePrivatizer, NumericPrivatizer, privacy_guarantee
from skldp.exceptions import OutOfDomainWarning

LOW, HIGH = np.array([30.0, 1.0, -5.0]), np.array([230.0, 2.5, 5.0])


def rows(n=50, dtype=np.float64):
    return (LOW + (HIGH - LOW) * np.random.default_rng(0).uniform(size=(n, 3))).astype(dtype)


def test_is_a_minmax_scaler_whose_bounds_are_declared():
    reference = MinMaxScaler((-1, 1)).fit([LOW, HIGH])
    scaler = BoundsScaler(bounds=(LOW, HIGH)).fit(rows())
    np.testing.assert_allclose(scaler.transform(rows()), reference.transform(rows()), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(scaler.transform(np.array([LOW, HIGH])), [[-1] * 3, [1] * 3])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_clips_counts_and_keeps_the_type(dtype):
    X = rows(dtype=dtype)
    X[0, 0], X[1, 1] = 1000, -3
    with pytest.warns(OutOfDomainWarning, match="2 of 150 values"):
        scaled = BoundsScaler(bounds=(LOW, HIGH)).fit_transform(X)
    assert scaled.dtype == dtype
    assert (np.abs(scaled) <= 1).all()
    assert scaled[1, 1] == -1


FINITE = st.floats(-1e3, 1e3, width=64)


@given(arrays(np.float64, (2, 2), elements=FINITE), st.floats(0.01, 100))
@settings(max_examples=100, deadline=None)
@pytest.mark.filterwarnings("ignore::skldp.exceptions.OutOfDomainWarning")
def test_stretches_distances_no_further_than_it_says(pair, width):
    scaler = BoundsScaler(bounds=([-width, -2 * width], width)).fit(pair)
    before, after = (np.linalg.norm(np.subtract(*ends)) for ends in (pair, scaler.transform(pair)))
    # The additive part is rounding, of numbers no larger than 1.
    assert after <= scaler.max_stretch_ * before + 1e-14


def test_may_stand_before_a_private_step():
    scaler = BoundsScaler(bounds=(LOW, HIGH))
    total = privacy_guarantee(make_pipeline(scaler, NumericPrivatizer(1.0, mechanism="duchi")).fit(rows()))
    assert total == NumericPrivatizer(1.0, mechanism="duchi").fit(rows() * 0).privacy_guarantee_
    metric = privacy_guarantee(make_pipeline(scaler, MultivariateLaplacePrivatizer(3.0, radius=2.0)).fit(rows()))
    assert metric.unit == "distance"
    assert metric.epsilon == pytest.approx(3.0 * 2 / 1.5)
    assert metric.epsilon >= 3.0 * 2 / 1.5
    assert metric.plain_epsilon == pytest.approx(12.0)


@pytest.mark.parametrize(
    ("bounds", "low", "high"),
    [
        # A tuple of two is (low, high), whatever stands in it.
        (((0, 100), (1_000, 200_000)), [0, 100], [1_000, 200_000]),
        ([0, 1], [0, 0], [1, 1]),
        # Lists of two that only one reading makes bounds of.
        ([(0, 100), (0, 200_000)], [0, 0], [100, 200_000]),
        ([(0, 100), (-5, 5)], [0, -5], [100, 5]),
        (np.array([(0, 0), (1, 2)]), [0, 0], [1, 2]),
        # Both readings say the same.
        ([(0, 1), (1, 2)], [0, 1], [1, 2]),
        (np.array([[0, 100], [-5, 5]]), [0, -5], [100, 5]),
    ],
    ids=str,
)
def test_bounds_of_two_features_are_read_in_the_one_way_that_they_can_be(bounds, low, high):
    scaler = BoundsScaler(bounds=bounds).fit(np.zeros((1, 2)))
    np.testing.assert_array_equal(scaler.bounds_, [low, high])


@pytest.mark.parametrize("listed", [list, np.array])
def test_a_list_that_can_be_read_in_two_ways_is_refused_with_both(listed):
    bounds = listed([(0, 100), (1_000, 200_000)])
    with pytest.raises(ValueError, match=r"`bounds` must not be a list that can be read(.|\n)*1000, 200000"):
        BoundsScaler(bounds=bounds).fit(np.zeros((1, 2)))
    # Both ways out of it that the text names.
    by_feature = BoundsScaler(bounds=tuple(zip(*bounds, strict=True))).fit(np.zeros((1, 2)))
    np.testing.assert_array_equal(by_feature.bounds_, [[0, 1_000], [100, 200_000]])
    BoundsScaler(bounds=tuple(bounds)).fit(np.zeros((1, 2)))


def test_pairs_of_which_one_is_no_interval_are_refused():
    with pytest.raises(ValueError, match="low < high; low -5 exceeds high -6 for feature 1"):
        BoundsScaler(bounds=[(0, 1), (-5, -6)]).fit(np.zeros((1, 2)))
    # As (low, high) it would be 0 to 90 and 1 to 18.
    with pytest.raises(ValueError, match=r"low 90 exceeds high 18 for feature 1\. A list is one pair per column"):
        BoundsScaler(bounds=[(0, 1), (90, 18)]).fit(np.zeros((1, 2)))
    with pytest.raises(ValueError, match="low 5 exceeds high 2 for feature 1"):
        BoundsScaler(bounds=[(0, 1), (5, 2), (0, 1)]).fit(np.zeros((1, 3)))


def test_bounds_by_column_of_a_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [50.0], "income": [2_000.0]})
    bounds = {"income": (1_000, 200_000), "age": (0, 100)}
    np.testing.assert_array_equal(BoundsScaler(bounds).fit(frame).bounds_, [[0, 1_000], [100, 200_000]])
    np.testing.assert_array_equal(NumericPrivatizer(bounds=bounds).fit(frame).bounds_, [[0, 1_000], [100, 200_000]])
    with pytest.raises(ValueError, match=r"`bounds` must name every column once; they miss \['age'\]"):
        NumericPrivatizer(bounds={"income": (0, 1)}).fit(frame)
    with pytest.raises(ValueError, match="`bounds` by column name need a DataFrame"):
        BoundsScaler(bounds).fit(frame.to_numpy())
