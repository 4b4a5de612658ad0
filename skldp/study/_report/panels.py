"""The picture of a study over many mechanisms: one panel for each family and epsilon axis."""

from skldp.study._catalogue import FAMILIES, family_of
from skldp.study._curve_result import draw_epsilon_axis
from skldp.study._display import PrivacyUtilityDisplay
from skldp.study._extras import require_pyplot

__all__ = ["panel_names", "plot_comparison"]

# Up to here, all lines can be told apart in one panel.
_ONE_PANEL = 6
_MARKERS = "osD^vP*X"


def panel_names(curves):
    """Which curves stand out in which panel.

    Parameters
    ----------
    curves : dict of str to PrivacyUtilityCurve

    Returns
    -------
    dict of str to list of str
        The title of a panel, and the names of its curves.

    Examples
    --------
    >>> from skldp.study._report.panels import panel_names
    >>> panel_names(dict.fromkeys(["bitrand", "duchi"]))
    {'': ['bitrand', 'duchi']}
    """
    if len(curves) <= _ONE_PANEL:
        return {"": list(curves)}
    panels = {family: [name for name in curves if family_of(name) == family] for family in (*FAMILIES, "")}
    return {title or "features not private": names for title, names in panels.items() if names}


def plot_comparison(comparison):
    """Draw all curves on both axes with matplotlib.

    With many mechanisms there is one panel for each family, with the others in grey behind it.

    Parameters
    ----------
    comparison : MechanismComparison

    Returns
    -------
    matplotlib Figure
        The first row is on the stated epsilon axis, the second on the exact one.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    """
    plt = require_pyplot()
    curves = comparison.curves
    panels = panel_names(curves)
    alone = len(panels) == 1
    # The axes one above the other, or beside each other where there is one panel.
    shape, size = ((1, 2), (11, 4.6)) if alone else ((2, len(panels)), (4.6 * len(panels), 9))
    figure, grid = plt.subplots(*shape, figsize=size, sharey=True, layout="constrained", squeeze=False)
    grid = grid.reshape(2, -1)
    for row, axis in zip(grid, ("stated", "exact"), strict=True):
        for ax, (title, names) in zip(row, panels.items(), strict=True):
            _panel(ax, curves, names, axis, title)
            draw_epsilon_axis(ax)
    for ax in [ax for ax in figure.axes if not ax.get_subplotspec().is_first_col()]:
        ax.set_ylabel("")
    for ax, below in zip(*grid, strict=True):
        # The lines are the same in both rows, and inside there is seldom room.
        ax.get_legend().remove()
        place = {"loc": "best"} if alone else {"loc": "upper center", "bbox_to_anchor": (0.5, -0.17), "ncols": 2}
        below.legend(**place, fontsize=8.5)
    figure.suptitle(f"{comparison.data.name}: what privacy costs")
    return figure


def _panel(ax, curves, names, axis, title):
    behind = {"color": "0.75", "lw": 0.8, "marker": "", "label": "_behind", "zorder": 1}
    for name, curve in curves.items():
        if name not in names:
            PrivacyUtilityDisplay.from_curve(curve, epsilon_axis=axis, ax=ax, baselines=False, **behind).band_.remove()
    for place, name in enumerate(names):
        PrivacyUtilityDisplay.from_curve(
            curves[name],
            epsilon_axis=axis,
            name=name,
            ax=ax,
            baselines=name == names[-1],
            marker=_MARKERS[place % len(_MARKERS)],
            ms=5,
        )
    # A band is one standard deviation over the folds: a few can be told apart, ten cannot.
    if len(names) > 3:
        for band in list(ax.collections):
            band.remove()
    ax.set_title(title, fontsize=11)
