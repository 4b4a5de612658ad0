import matplotlib
import pytest

matplotlib.use("Agg")

from theory_figures import bit_flips, corrected_ratios, label_flips
from theory_table import TheoryDisplay


def test_draws_a_panel_for_each_epsilon_and_a_line_for_each_mechanism():
    display = TheoryDisplay.from_frame(bit_flips([0.1, 1.0]), y="q_top_k")
    assert [ax.get_title() for ax in display.axes_] == ["epsilon 0.1", "epsilon 1"]
    assert len(display.lines_) == 10
    assert display.axes_[0].get_ylabel() == "q top k"


def test_draws_over_the_exact_epsilon_on_a_log_scale():
    display = TheoryDisplay.from_frame(label_flips([1.0, 2.0]), x="exact_epsilon")
    assert len(display.axes_) == 1
    assert display.axes_[0].get_xscale() == "log"
    assert [text.get_text() for text in display.figure_.legends[0].get_texts()] == ["epsilon 1", "epsilon 2"]


def test_log_axes_come_with_the_table():
    ax = TheoryDisplay.from_frame(corrected_ratios()).axes_[0]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")


def test_refuses_an_unknown_column():
    with pytest.raises(ValueError, match="Got 'p' instead"):
        TheoryDisplay.from_frame(bit_flips([1.0]), y="p")


def test_a_frame_is_drawn_where_its_columns_are_named():
    pytest.importorskip("pandas")
    frame = label_flips([1.0, 2.0], n_classes=[2, 10]).to_frame()
    display = TheoryDisplay.from_frame(frame, x="n_classes", y="q", lines=("epsilon",))
    assert [line.get_xdata().tolist() for line in display.lines_] == [[2, 10]] * 2
    with pytest.raises(ValueError, match="needs x and y"):
        TheoryDisplay.from_frame(frame)
