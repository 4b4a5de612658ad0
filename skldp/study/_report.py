"""What is shown of a comparison, wherever it is shown: its tables as text, its picture, and both as one HTML file."""

import math
import platform
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from io import StringIO
from typing import Any

from skldp.study._catalogue import FAMILIES, family_of
from skldp.study._comparison import MechanismComparison
from skldp.study._display import PrivacyUtilityDisplay, draw_epsilon_axis
from skldp.study._extras import require
from skldp.study._results import CurvePoint, PrivacyUtilityCurve

__all__ = [
    "TextTable",
    "also_rankings",
    "guarantee_tables",
    "html_report",
    "panel_names",
    "plot_comparison",
    "plot_panel",
    "points",
    "ranking",
]

# Up to here, all lines can be told apart in one panel.
_ONE_PANEL = 6
_MARKERS = "osD^vP*X"


@dataclass(frozen=True)
class TextTable:
    """A table of text, for a terminal and for a page.

    Attributes
    ----------
    title : str
    headings : tuple of str
    rows : list of list of str
        The first column names the row.
    bold : frozenset of (int, int)
        Row and column of the cells that stand out.
    ends : frozenset of int
        Rows that end a part of the table.
    note : str
        What must be known to read it.
    """

    title: str
    headings: tuple[str, ...]
    rows: list[list[str]]
    bold: frozenset[tuple[int, int]] = frozenset()
    ends: frozenset[int] = frozenset()
    note: str = ""


def ranking(comparison: MechanismComparison, *, within: float = math.inf) -> TextTable:
    """Put the best mean score of each mechanism within each exact epsilon side by side."""
    first, budgets = comparison.first, [budget for budget in comparison.stated_budgets() if budget <= within]
    places = [dict(comparison.ranking(budget)) for budget in budgets]
    scores = {
        name: [place[name].score_mean if name in place else math.nan for place in places] for name in comparison.curves
    }

    def from_the_last(name: str) -> list[float]:
        return [-math.inf if math.isnan(score) else score for score in reversed(scores[name])]

    names = sorted(scores, key=from_the_last, reverse=True)
    if math.isfinite(within):
        names = [name for name in names if not all(map(math.isnan, scores[name]))]
    best = [next(iter(place), None) for place in places]
    rows = [
        ["without privacy", *[_score(first.clean_mean)] * len(budgets)],
        [_learns_nothing(comparison), *[_score(first.majority_mean)] * len(budgets)],
        *([name, *map(_score, scores[name])] for name in names),
    ]
    return TextTable(
        f"Mean {first.scoring} within an exact epsilon" + (f" of at most {within:g}" if math.isfinite(within) else ""),
        ("mechanism", *(f"ε ≤ {budget:g}" for budget in budgets)),
        rows,
        frozenset((2 + names.index(name), 1 + column) for column, name in enumerate(best) if name is not None),
        frozenset({1}),
        f"Best mean {first.scoring} of each mechanism among its points whose exact epsilon is at most that of the "
        "column (bold: the best of all; –: no such point). Differences below the spreads of the points are noise.",
    )


def also_rankings(comparison: MechanismComparison) -> list[TextTable]:
    """Give the further scores of the points that :func:`ranking` shows, in the same order, one table a score."""
    first, main = comparison.first, ranking(comparison)
    places = [dict(comparison.ranking(budget)) for budget in comparison.stated_budgets()]
    tables = []
    for i, score in enumerate(first.also):
        sign = _sign(score)
        baselines = (sign * first.clean_also[i], sign * first.majority_also[i])
        rows = [
            *([row[0], *[_score(value)] * len(places)] for row, value in zip(main.rows, baselines, strict=False)),
            *(
                [name, *(_score(sign * place[name].also[i] if name in place else math.nan) for place in places)]
                for name, *_ in main.rows[2:]
            ),
        ]
        title = f"{_named(score).capitalize()} of the same points"
        tables.append(TextTable(title, main.headings, rows, ends=main.ends))
    return tables


def points(comparison: MechanismComparison, names: Iterable[str] | None = None, *, title: str = "") -> TextTable:
    """Give every point of some mechanisms, the stated epsilon beside the exact one."""
    first = comparison.first
    signs = [_sign(score) for score in first.also]

    def also(means: Iterable[float]) -> list[str]:
        return [_score(sign * mean) for sign, mean in zip(signs, means, strict=True)]

    of_clean, of_majority = also(first.clean_also), also(first.majority_also)
    rows = [
        ["without privacy", "", "", "inf", "", _spread(first.clean_mean, first.clean_std), *of_clean, "", ""],
        [
            *(_learns_nothing(comparison), "", "", "0", ""),
            _spread(first.majority_mean, first.majority_std),
            *(*of_majority, "", ""),
        ],
    ]
    ends = {1}
    for name in comparison.curves if names is None else names:
        rows += [[name, *_point(point, also(point.also))] for point in comparison.curves[name]]
        ends.add(len(rows) - 1)
    scores = (first.scoring, *map(_named, first.also))
    headings = ("mechanism", "asked ε", "stated ε", "exact ε", "δ", *scores, "fit s", "score s")
    return TextTable(title, headings, rows, ends=frozenset(ends), note=_what_counts(comparison))


def _what_counts(comparison: MechanismComparison) -> str:
    """What each of the three epsilons is of, and for whom."""
    data, settings = comparison.data, comparison.settings
    whole = "of one person's whole record with its target"
    if data.task == "regression" or settings.labels == "none":
        counted = whole if data.task == "regression" else "of the features of one person's record"
        return f"All epsilons are {counted}: asked for, stated by the mechanism, and exact."
    fixed = settings.label_epsilon
    label = "as much again for its label" if fixed is None else f"{fixed:g} for its label"
    models = [name for name in comparison.curves if family_of(name) == FAMILIES[0]]
    of_models = f" (of {', '.join(models)}: for the whole record at once)" if models else ""
    return (
        f"Asked is for the features of one person's record, and {label}{of_models}. Stated and exact are the sum, "
        f"{whole}."
    )


def guarantee_tables(comparison: MechanismComparison) -> list[TextTable]:
    """Give the guarantee of every private step at every epsilon, one table a mechanism."""
    return [
        TextTable(
            name,
            ("asked ε", "step", "guarantee"),
            [
                [f"{point.epsilon:g}", step, str(guarantee)]
                for point, steps in zip(curve, curve.guarantees, strict=True)
                for step, guarantee in steps
            ],
        )
        for name, curve in comparison.curves.items()
    ]


def _point(point: CurvePoint, also: list[str]) -> list[str]:
    exact = point.exact_epsilon
    return [
        f"{point.epsilon:g}",
        f"{point.stated_epsilon:g}",
        f"{exact:,.4g}" if exact < 1000 else f"{exact:,.0f}",
        f"{point.delta:.3g}" if point.delta else "",
        _spread(point.score_mean, point.score_std),
        *also,
        f"{point.fit_time:.2f}",
        f"{point.score_time:.3f}",
    ]


def _sign(scoring: str) -> int:
    """What turns a score of scikit-learn's, of which more is better, into what it is called after."""
    return -1 if scoring.startswith("neg_") else 1


def _named(scoring: str) -> str:
    """The name of such a score."""
    return scoring.removeprefix("neg_").replace("_", " ")


def _learns_nothing(comparison: MechanismComparison) -> str:
    return "the mean" if comparison.data.task == "regression" else "majority"


def _score(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"


def _spread(mean: float, std: float) -> str:
    return f"{_score(mean)} ± {_score(std)}"


def panel_names(curves: dict[str, Any]) -> dict[str, list[str]]:
    """Which curves stand out in which panel.

    Examples
    --------
    >>> from skldp.study._report import panel_names
    >>> panel_names(dict.fromkeys(["bitrand", "duchi"]))
    {'': ['bitrand', 'duchi']}
    """
    if len(curves) <= _ONE_PANEL:
        return {"": list(curves)}
    panels = {family: [name for name in curves if family_of(name) == family] for family in (*FAMILIES, "")}
    return {title or "features not private": names for title, names in panels.items() if names}


def plot_comparison(comparison: MechanismComparison) -> Any:
    """Draw all curves on both axes.

    With many mechanisms there is one panel for each family, with the others in grey behind it.

    Parameters
    ----------
    comparison : MechanismComparison

    Returns
    -------
    matplotlib Figure
        The first row is on the exact epsilon axis, the second on the stated one. Of its own: no window is opened, and
        pyplot keeps no reference.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    """
    panels = panel_names(comparison.curves)
    alone = len(panels) == 1
    # The axes one above the other, or beside each other where there is one panel.
    shape, size = ((1, 2), (11, 4.6)) if alone else ((2, len(panels)), (4.6 * len(panels), 9))
    figure = require("matplotlib.figure").Figure(figsize=size, layout="constrained")
    grid = figure.subplots(*shape, sharey=True, squeeze=False).reshape(2, -1)
    for row, axis in zip(grid, ("exact", "stated"), strict=True):
        for ax, (title, names) in zip(row, panels.items(), strict=True):
            plot_panel(ax, comparison.curves, names, axis)
            ax.set_title(title, fontsize=11)
    for ax in [ax for ax in figure.axes if not ax.get_subplotspec().is_first_col()]:
        ax.set_ylabel("")
    for ax, below in zip(*grid, strict=True):
        # The lines are the same in both rows, and inside there is seldom room.
        ax.get_legend().remove()
        place = {"loc": "best"} if alone else {"loc": "upper center", "bbox_to_anchor": (0.5, -0.17), "ncols": 2}
        below.legend(**place, fontsize=8.5)
    # The name of a file is no formula, whatever dollar signs it has.
    figure.suptitle(f"{comparison.data.name}: what privacy costs", parse_math=False)
    return figure


def plot_panel(ax: Any, curves: dict[str, PrivacyUtilityCurve], names: list[str], epsilon_axis: str) -> None:
    """Draw some curves into one panel, the others in grey behind them."""
    behind: dict[str, Any] = {"color": "0.75", "lw": 0.8, "marker": "", "label": "_behind", "zorder": 1}
    for name, curve in curves.items():
        if name not in names:
            PrivacyUtilityDisplay.from_frame(
                curve, epsilon_axis=epsilon_axis, ax=ax, baselines=False, **behind
            ).band_.remove()
    for place, name in enumerate(names):
        display = PrivacyUtilityDisplay.from_frame(
            curves[name],
            epsilon_axis=epsilon_axis,
            name=name,
            ax=ax,
            baselines=name == names[-1],
            marker=_MARKERS[place % len(_MARKERS)],
            ms=5,
        )
        # A band is one standard deviation over the folds: a few can be told apart, ten cannot.
        if len(names) > 3:
            display.band_.remove()
    draw_epsilon_axis(ax)


_AXES = {
    "exact": "The exact epsilon: what is guaranteed",
    "stated": "The stated epsilon: what was asked for",
}
# Text stays text, which can be found and read aloud.
_SVG = {"svg.fonttype": "none", "font.family": "sans-serif"}
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def html_report(comparison: MechanismComparison, *, command: str | None = None) -> str:
    """Write a study as a page.

    Parameters
    ----------
    comparison : MechanismComparison
    command : str, default=None
        What made it.

    Returns
    -------
    str
        A whole HTML document. Every text in it is escaped.

    Raises
    ------
    ImportError
        If Jinja2 or matplotlib is missing.

    Examples
    --------
    >>> from skldp.study import ComparisonSettings, compare_mechanisms, html_report, load_study_data
    >>> found = compare_mechanisms(load_study_data("wine"), ["duchi"], ComparisonSettings(epsilons=(9.0,), folds=2))
    >>> html_report(found, command="skldp study wine").startswith("<!doctype html>")
    True
    """
    jinja2 = require("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("skldp.study", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    versions = [f"{name} {import_module(name).__version__}" for name in ("skldp", "sklearn", "numpy", "scipy")]
    return environment.get_template("_report.html.jinja").render(
        title=f"{comparison.data.name}: what privacy costs",
        caption=comparison.caption(),
        ranking=ranking(comparison),
        also=also_rankings(comparison),
        weaker=comparison.weaker_than_stated(),
        pictures={heading: _pictures(comparison, axis) for axis, heading in _AXES.items()},
        points=points(comparison, title="Every mechanism at every epsilon"),
        guarantees=guarantee_tables(comparison),
        command=command,
        versions=[*versions, f"Python {platform.python_version()}"],
    )


def _pictures(comparison: MechanismComparison, axis: str) -> list[dict[str, str]]:
    """One picture for each panel, so that they stand below each other where the page is narrow."""
    matplotlib, markup = require("matplotlib"), require("markupsafe").Markup
    pictures = []
    for title, names in panel_names(comparison.curves).items():
        file = StringIO()
        # The names of parts are hashes: the same in every run of a study, and others in each picture of the page.
        with matplotlib.rc_context(_SVG | {"svg.hashsalt": f"{axis} {title}"}):
            figure = require("matplotlib.figure").Figure(figsize=(4.6, 4.4), layout="constrained")
            ax = figure.add_subplot()
            plot_panel(ax, comparison.curves, names, axis)
            ax.get_legend().remove()
            figure.legend(loc="outside lower center", ncols=2, fontsize=8.5)
            figure.savefig(file, format="svg", transparent=True, metadata=_NO_METADATA)
        about = f"{comparison.first.scoring} over the {axis} epsilon{': ' if title else ''}{title} ({', '.join(names)})"
        # Without the prolog of a file, and without names that every picture has and nothing refers to. matplotlib has
        # escaped every text in it.
        svg = re.sub(r' id="[\w.]+_\d+"', "", file.getvalue()[file.getvalue().index("<svg") :])
        pictures.append({"title": title, "about": about, "svg": markup(svg)})
    return pictures
