import sys

import matplotlib
import pytest

matplotlib.use("Agg")


from skldp.study import PrivacyUtilityDisplay
from skldp.study._results import CurvePoint, PrivacyUtilityCurve


def point(stated, exact, score):
    return CurvePoint(stated, stated, exact, 0.0, score, 0.02, 0.1, 0.1, 5)


def curve_of(*points):
    return PrivacyUtilityCurve(points, ("epsilon",), "accuracy", 0.2, 0.0, 0.9, 0.01)


CURVE = curve_of(point(2.0, 80.0, 0.8), point(1.0, 40.0, 0.6))


def test_draws_in_order_of_the_exact_epsilon():
    display = PrivacyUtilityDisplay.from_frame(CURVE, name="toy", color="red")
    assert display.line_.get_xdata().tolist() == [40.0, 80.0]
    assert display.line_.get_ydata().tolist() == [0.6, 0.8]
    assert display.line_.get_color() == "red"
    assert display.ax_.get_xscale() == "log"
    assert display.ax_.get_ylabel() == "accuracy"
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == [
        "toy", "without privacy (0.9)", "constant prediction (0.2)",
    ]  # fmt: skip
    assert display.figure_ is display.ax_.figure


def test_a_frame_and_a_file_are_drawn_as_the_curve_is(tmp_path):
    pd = pytest.importorskip("pandas")
    CURVE.to_csv(tmp_path / "curve.csv")
    for frame in (CURVE.to_frame(), pd.read_csv(tmp_path / "curve.csv")):
        display = PrivacyUtilityDisplay.from_frame(frame)
        assert display.line_.get_xdata().tolist() == [40.0, 80.0]
        assert display.ax_.get_ylabel() == "accuracy"
        assert len(display.baselines_) == 2
    several = pd.concat([frame.assign(mechanism=name) for name in ("a", "b")])
    assert PrivacyUtilityDisplay.from_frame(several[several["mechanism"] == "b"]).line_ is not None
    with pytest.raises(ValueError, match="curve of one mechanism"):
        PrivacyUtilityDisplay.from_frame(several)


def test_names_the_extra_where_matplotlib_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"skldp\[study\]"):
        PrivacyUtilityDisplay.from_frame(CURVE)
