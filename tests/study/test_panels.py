from dataclasses import replace

import matplotlib
import pytest
from comparisons import NAMES, NASTY, small_comparison

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from skldp.study._report import plot_comparisons


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def test_many_mechanisms_have_several_panels_with_the_others_in_grey():
    figure = plot_comparisons(small_comparison())
    assert len(figure.axes) == 2
    assert {ax.get_xlabel() for ax in figure.axes} == {"Exact epsilon (worst-case loss of one record)"}
    for ax in figure.axes:
        # Every mechanism, and the two baselines.
        assert len(ax.lines) == len(NAMES) + 2
    shown = [text.get_text() for ax in figure.axes for text in ax.get_legend().get_texts()]
    assert sorted(name for name in shown if name in NAMES) == sorted(NAMES)


def test_every_data_set_has_its_panels():
    comparison = small_comparison()
    few = replace(comparison, curves={name: comparison.curves[name] for name in ("bitrand", "duchi")})
    figure = plot_comparisons(few, replace(few, data=replace(few.data, name="other")))
    assert [ax.get_title() for ax in figure.axes] == [f"{NASTY}: cost of privacy", "other: cost of privacy"]


@pytest.mark.slow
def test_the_name_of_a_file_is_no_formula(tmp_path):
    comparison = small_comparison()
    dollars = replace(comparison, data=replace(comparison.data, name="$\\frac{$.csv"))
    figure = plot_comparisons(dollars)
    figure.savefig(tmp_path / "study.svg")
    assert "$\\frac{$.csv: cost of privacy" in figure.axes[0].get_title()
