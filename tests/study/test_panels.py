from dataclasses import replace

import matplotlib
import pytest
from comparisons import NAMES, small_comparison

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from skldp.study._report import plot_comparison


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def test_many_mechanisms_have_several_panels_with_the_others_in_grey():
    figure = plot_comparison(small_comparison())
    assert ["stated" in ax.get_xlabel().lower() for ax in figure.axes] == [False] * 2 + [True] * 2
    for ax in figure.axes:
        # Every mechanism, and the two baselines.
        assert len(ax.lines) == len(NAMES) + 2
    # The legends of the lower row speak for both.
    shown = [[text.get_text() for text in ax.get_legend().get_texts()] for ax in figure.axes[2:]]
    assert all(ax.get_legend() is None for ax in figure.axes[:2])
    assert sorted(name for names in shown for name in names if name in NAMES) == sorted(NAMES)


def test_few_mechanisms_share_one_panel_on_each_axis():
    comparison = small_comparison()
    few = replace(comparison, curves={name: comparison.curves[name] for name in ("bitrand", "duchi")})
    figure = plot_comparison(few)
    assert len(figure.axes) == 2
    assert figure.axes[1].get_legend() is not None


@pytest.mark.slow
def test_the_name_of_a_file_is_no_formula(tmp_path):
    comparison = small_comparison()
    dollars = replace(comparison, data=replace(comparison.data, name="$\\frac{$.csv"))
    figure = plot_comparison(dollars)
    figure.savefig(tmp_path / "study.svg")
    assert "$\\frac{$.csv: cost of privacy" in figure.get_suptitle()
