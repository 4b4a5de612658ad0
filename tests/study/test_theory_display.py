import matplotlib

matplotlib.use("Agg")

from theory_figures import bit_flips, label_flips
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
