"""How many people a model needs: the curve, the answer, and the picture."""

import itertools
import math

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from skldp import PrivateLinearRegression
from skldp.exceptions import SeededNoiseWarning
from skldp.study import PrivateLearningCurveDisplay, private_learning_curve
from skldp.study._learning_curve import PrivateLearningCurve
from skldp.study._results import CurvePoint, PrivacyUtilityCurve

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (4_000, 2))
Y = X @ [0.5, 0.3] + 0.1 * RNG.uniform(-1, 1, 4_000)
MODEL = PrivateLinearRegression()


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def curve_at(scores, clean):
    points = tuple(CurvePoint(e, e, e, 0.0, s, 0.1, 0.0, 0.0, 1) for e, s in zip((1.0, 4.0), scores, strict=True))
    return PrivacyUtilityCurve(points, ("epsilon",), "r2", 0.0, 0.0, clean, 0.0)


def made_up(clean=0.9):
    scores = ((0.0, 0.5), (0.4, 0.5), (0.3, 0.8))
    return PrivateLearningCurve((100, 400, 1_600), tuple(curve_at(pair, clean) for pair in scores))


def test_more_people_score_better_and_their_number_is_told():
    with pytest.warns(SeededNoiseWarning) as caught:
        curve = private_learning_curve(MODEL, X, Y, n_people=[2_000, 20, 300], epsilons=[0.5, 6.0], seed=0)
    assert len(caught) == 1
    assert curve.n_people == (20, 300, 2_000)
    table = curve.to_dict()
    assert table["n_people"].tolist() == [20, 20, 300, 300, 2_000, 2_000]
    high = table["score_mean"][table["epsilon"] == 6.0]
    assert (np.diff(high) > 0).all()
    needed = curve.people_needed(float(high[1]))
    assert needed[6.0] == 300
    assert needed[0.5] > 2_000
    assert curve.people_needed(1.5) == {0.5: math.inf, 6.0: math.inf}
    assert "eps 6" in str(curve)


def test_training_rows_grow_and_test_rows_stay():
    seen = []

    class Spy(PrivateLinearRegression):
        def fit(self, X, y):
            seen.append(set(X[:, 0].tolist()))
            return super().fit(X, y)

    curve = private_learning_curve(Spy(), X, Y, epsilons=[8.0], clean_estimator=None)
    assert curve.n_people == (188, 375, 750, 1_500, 3_000)
    assert [len(rows) for rows in seen] == list(curve.n_people)
    assert all(few < many for few, many in itertools.pairwise(seen))
    assert curve.people_needed(-9.0) == {8.0: 188}


def test_a_seeded_study_repeats_itself_with_other_noise_for_every_size():
    tables = []
    for _ in range(2):
        with pytest.warns(SeededNoiseWarning):
            found = private_learning_curve(MODEL, X, Y, n_people=[500, 501], epsilons=[4.0], seed=1)
        tables.append(found.to_dict()["score_mean"])
    np.testing.assert_array_equal(*tables)
    assert tables[0][0] != tables[0][1]
    with pytest.warns(SeededNoiseWarning, match="step of the estimator"):
        private_learning_curve(PrivateLinearRegression(seed=1), X, Y, n_people=[500], epsilons=[4.0])


def test_people_needed_between_beyond_and_below():
    curve = made_up()
    # Half of the way in logs, though scores fall once; the gap at 1,600 is .5 and .1, and falls as 1 / n.
    assert curve.people_needed(0.2) == {1.0: 200, 4.0: 100}
    assert curve.people_needed(0.4) == {1.0: 400, 4.0: 100}
    assert curve.people_needed(0.65) == {1.0: 3_200, 4.0: 800}
    assert curve.people_needed(0.85) == {1.0: 16_000, 4.0: 3_200}
    assert curve.people_needed(0.9) == {1.0: math.inf, 4.0: math.inf}
    unknown = made_up(clean=math.nan).people_needed(0.85)
    assert all(map(math.isnan, unknown.values()))
    with pytest.raises(ValueError, match="score must be a finite number"):
        curve.people_needed(math.nan)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_people": [3_001]}, "from 2 to 3000"),
        ({"n_people": [1]}, "from 2"),
        ({"n_people": []}, "n_people"),
        ({"n_people": [50.0]}, "integers"),
        ({"n_people": [50], "epsilons": [0]}, "epsilon"),
        ({"n_people": [50], "cv": []}, "at least one split"),
    ],
)
def test_parameters_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        private_learning_curve(MODEL, X, Y, **options)


def test_the_picture_has_a_line_for_each_epsilon(tmp_path):
    curve = made_up()
    display = PrivateLearningCurveDisplay.from_frame(curve, name="toy", color="red")
    assert [line.get_ydata().tolist() for line in display.lines_] == [[0.0, 0.4, 0.3], [0.5, 0.5, 0.8]]
    assert display.lines_[0].get_xdata().tolist() == [100, 400, 1_600]
    assert (len(display.bands_), display.ax_.get_xscale(), display.ax_.get_ylabel()) == (2, "log", "r2")
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == [
        "toy, epsilon 1", "toy, epsilon 4", "without privacy", "constant prediction",
    ]  # fmt: skip
    again = PrivateLearningCurveDisplay.from_frame(made_up(math.nan), ax=display.ax_, baselines=False)
    assert again.ax_ is display.ax_
    assert again.baselines_ == []
    pd = pytest.importorskip("pandas")
    curve.to_csv(tmp_path / "curve.csv")
    shuffled = pd.read_csv(tmp_path / "curve.csv").sample(frac=1, random_state=0).reset_index(drop=True)
    from_file = PrivateLearningCurveDisplay.from_frame(shuffled)
    assert [line.get_ydata().tolist() for line in from_file.lines_] == [[0.0, 0.4, 0.3], [0.5, 0.5, 0.8]]
