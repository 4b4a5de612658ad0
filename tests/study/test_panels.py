from dataclasses import replace

import matplotlib
from comparisons import NAMES, small_comparison

matplotlib.use("Agg")


from skldp.study._report import plot_comparisons


def test_a_mechanism_has_one_colour_in_all_panels():
    comparison = small_comparison()
    pairs = [("bitrand", "duchi"), ("privunit", "duchi")]
    several = [replace(comparison, curves={name: comparison.curves[name] for name in names}) for names in pairs]
    axes = plot_comparisons(*several).axes
    colours = [{line.get_label(): line.get_color() for line in ax.lines if line.get_label() in NAMES} for ax in axes]
    assert [set(drawn) for drawn in colours] == [set(names) for names in pairs]
    assert colours[0]["duchi"] == colours[1]["duchi"]
    assert len({colour for drawn in colours for colour in drawn.values()}) == 3


def test_scores_far_below_a_constant_are_marked_and_do_not_set_the_scale():
    comparison = small_comparison()
    duchi = comparison.curves["duchi"]
    lost = replace(duchi, points=(replace(duchi[0], score_mean=-250_000.0), *duchi[1:]))
    (ax,) = plot_comparisons(
        replace(comparison, curves={"duchi": lost, "privunit": comparison.curves["privunit"]})
    ).axes
    assert -0.5 < ax.get_ylim()[0] < duchi.majority_mean < duchi.clean_mean < ax.get_ylim()[1] < 1.5
    (marks,) = [line for line in ax.lines if line.get_label() == "below the panel"]
    assert (marks.get_xdata().tolist(), marks.get_ydata().tolist()) == ([duchi[0].exact_epsilon], [ax.get_ylim()[0]])
    assert marks.get_color() == next(line.get_color() for line in ax.lines if line.get_label() == "duchi")
