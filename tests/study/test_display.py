import sys
from dataclasses import replace

import matplotlib
import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

matplotlib.use("Agg")


from skldp import NumericPrivatizer, PrivacyGuarantee
from skldp.exceptions import SeededNoiseWarning
from skldp.study import PrivacyUtilityDisplay, privacy_utility_curve
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


def test_curves_in_one_axes_have_names_and_share_equal_baselines():
    steps = tuple((("release", PrivacyGuarantee(one.exact_epsilon)),) for one in CURVE)
    first = PrivacyUtilityDisplay.from_frame(replace(CURVE, guarantees=steps))
    second = PrivacyUtilityDisplay.from_frame(CURVE, name="other", ax=first.ax_)
    third = PrivacyUtilityDisplay.from_frame(replace(CURVE, clean_mean=0.7), name="third", ax=first.ax_)
    assert first.line_.get_label() == "release"
    assert [len(one.baselines_) for one in (first, second, third)] == [2, 0, 1]
    texts = [text.get_text() for text in first.ax_.get_legend().get_texts()]
    assert texts == [
        "release", "without privacy (0.9)", "constant prediction (0.2)", "other", "third", "without privacy (0.7)",
    ]  # fmt: skip


def test_an_estimator_is_drawn_as_its_curve():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (60, 2)), np.arange(60) % 2
    model, options = make_pipeline(NumericPrivatizer(), GaussianNB()), {"epsilons": [1, 4], "cv": 2, "seed": 0}
    with pytest.warns(SeededNoiseWarning):
        curve = privacy_utility_curve(model, X, y, **options)
    with pytest.warns(SeededNoiseWarning):
        display = PrivacyUtilityDisplay.from_estimator(model, X, y, **options, baselines=False, line_kw={"lw": 3})
    assert display.line_.get_ydata().tolist() == [point.score_mean for point in curve]
    assert display.line_.get_label() == "NumericPrivatizer"
    assert (display.line_.get_linewidth(), display.baselines_) == (3, [])
