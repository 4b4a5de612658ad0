"""Report of a comparison: text tables, figures, and an HTML page of both."""

import math
import platform
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from io import StringIO
from typing import Any

import numpy as np

from skldp._tables import require
from skldp.collection._page import render_template
from skldp.study._comparison import HEADLINE_EPSILON, MechanismComparison
from skldp.study._displays import PrivacyUtilityDisplay, draw_epsilon_axis
from skldp.study._results import CurvePoint, PrivacyUtilityCurve, score_label

# Largest number of curves that are highlighted in one panel.
_MOST_CURVES = 6
_MARKERS = "osD^vP*X"
# Scores further below a constant prediction than this part of what can be learnt are cut off.
_MARGIN = 0.15


@dataclass(frozen=True)
class TextTable:
    """Table of text for a terminal and for a page."""

    title: str
    headings: tuple[str, ...]
    rows: list[list[str]]
    bold: frozenset[tuple[int, int]] = frozenset()
    ends: frozenset[int] = frozenset()
    note: str = ""


def ranking(comparison: MechanismComparison) -> TextTable:
    """Return the scores at each stated epsilon, the best mechanism first, and those weaker than stated last."""
    first, budgets, weaker = comparison.first, comparison.stated_budgets(), comparison.weaker_than_stated()
    at = {name: {round(p.stated_epsilon, 6): p for p in curve} for name, curve in comparison.curves.items()}
    found = {name: [by_epsilon.get(round(budget, 6)) for budget in budgets] for name, by_epsilon in at.items()}
    means = {
        name: [-math.inf if point is None else point.score_mean for point in points]
        for name, points in found.items()
        if name not in weaker
    }
    # The column of the headline decides, then larger epsilons.
    judged = sum(budget <= HEADLINE_EPSILON * (1 + 1e-6) for budget in budgets) - 1
    names = sorted(means, key=lambda name: means[name][judged:] + means[name][judged - 1 :: -1], reverse=True)
    rows = [[name, *map(_measured, found[name])] for name in names]
    ends = {len(rows) - 1}
    for name in weaker:
        rows.append([f"{name}, published", *map(_measured, found[name])])
        rows.append(["  at an exact ε of", *(_exact(point) if point else "" for point in found[name])])
        ends.add(len(rows) - 1)
    rows += [
        ["without privacy", *[_spread(first.clean_mean, first.clean_std)] * len(budgets)],
        [_baseline(comparison), *[_spread(first.majority_mean, first.majority_std)] * len(budgets)],
    ]
    best = [max(means, key=lambda name: means[name][column], default=None) for column in range(len(budgets))]
    return TextTable(
        f"{score_label(first.scoring)} (mean±standard deviation) at an ε of",
        ("", *(f"{budget:g}" for budget in budgets)),
        rows,
        frozenset(
            (names.index(name), 1 + column)
            for column, name in enumerate(best)
            if name is not None and math.isfinite(means[name][column])
        ),
        frozenset(ends),
        f"Over {first[0].n_fits} fits of each mechanism (bold: best of a column; –: no such point).",
    )


def points(comparison: MechanismComparison) -> TextTable:
    """Return every point, with the stated and the exact epsilon and the guarantee of each step."""
    first = comparison.first
    rows = [
        ["without privacy", "", "inf", "", _spread(first.clean_mean, first.clean_std), "", "", ""],
        [_baseline(comparison), "", "0", "", _spread(first.majority_mean, first.majority_std), "", "", ""],
    ]
    for name, curve in comparison.curves.items():
        for point, steps in zip(curve, curve.guarantees, strict=True):
            delta, epsilons = f"{point.delta:.3g}" if point.delta else "", (f"{point.stated_epsilon:g}", _exact(point))
            seconds = f"{point.fit_time:.2f}", f"{point.score_time:.3f}"
            of_steps = "; ".join(f"{step}: {guarantee}" for step, guarantee in steps)
            rows.append([name, *epsilons, delta, _measured(point), *seconds, of_steps])
    score = score_label(first.scoring)
    headings = ("mechanism", "stated ε", "exact ε", "δ", score, "fit s", "score s", "guarantee of each step")
    of_rows = comparison.data.task == "classification" and comparison.settings.labels == "none"
    of_what = "the features of one record" if of_rows else "one complete record with its target"
    note = f"Epsilons are of {of_what}. Those of steps add up; steps that are not listed release nothing."
    return TextTable("Every mechanism at every epsilon", headings, rows, note=note)


def _exact(point: CurvePoint) -> str:
    return f"{point.exact_epsilon:,.{'4g' if point.exact_epsilon < 1000 else '0f'}}"


def _baseline(comparison: MechanismComparison) -> str:
    return "the mean" if comparison.data.task == "regression" else "majority"


def _score(value: float) -> str:
    if not math.isfinite(value):
        return "–"
    # Adding 0 removes the sign of a negative zero.
    return (
        f"{round(value, 3) + 0.0:.3f}" if abs(value) < 10 else f"{value:,.3g}" if abs(value) < 1e5 else f"{value:.0e}"
    )


def _spread(mean: float, std: float) -> str:
    # Four columns fit 80 characters.
    return f"{_score(mean)}±{_score(std).lstrip('0')}" if math.isfinite(mean) else "–"


def _measured(point: CurvePoint | None) -> str:
    return "–" if point is None else _spread(point.score_mean, point.score_std)


def panel_names(curves: dict[str, Any]) -> list[list[str]]:
    """Return the names of the curves that each panel highlights, at most six."""
    n_panels = math.ceil(len(curves) / _MOST_CURVES)
    return [names.tolist() for names in np.array_split(list(curves), n_panels)]


def plot_comparisons(*comparisons: MechanismComparison) -> Any:
    """Draw the curves of all data sets over the exact epsilon, in panels of a new figure without a window."""
    panels = [(one, names) for one in comparisons for names in panel_names(one.curves)]
    styles = _styles(name for one in comparisons for name in one.curves)
    figure = require("matplotlib.figure").Figure(figsize=(5.5 * len(panels), 5.5), layout="constrained")
    for ax, (comparison, names) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        plot_panel(ax, comparison.curves, names, styles)
        # Dollar signs in the name of a file must not be parsed as a formula.
        ax.set_title(f"{comparison.data.name}: cost of privacy", parse_math=False)
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, fontsize=8.5)
    return figure


def _styles(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the colour and the marker of each mechanism, the same in every panel."""
    different = dict.fromkeys(names)
    return {name: {"color": f"C{i % 10}", "marker": _MARKERS[i % len(_MARKERS)]} for i, name in enumerate(different)}


def plot_panel(
    ax: Any, curves: dict[str, PrivacyUtilityCurve], names: list[str], styles: dict[str, dict[str, Any]]
) -> None:
    """Draw some curves into a panel, and the others in grey; arrows at the bottom are points below the panel."""
    background: dict[str, Any] = {"color": "0.75", "lw": 0.8, "marker": "", "label": "_background", "zorder": 1}
    first, below = next(iter(curves.values())), "below the panel"
    margin = _MARGIN * (first.clean_mean - first.majority_mean)
    bottom, scores = first.majority_mean - margin, [point.score_mean for curve in curves.values() for point in curve]
    for name, curve in curves.items():
        if name not in names:
            PrivacyUtilityDisplay.from_frame(curve, ax=ax, baselines=False, **background).band_.remove()
    for name in names:
        curve, baselines = curves[name], name == names[-1]
        display = PrivacyUtilityDisplay.from_frame(curve, name=name, ax=ax, baselines=baselines, ms=5, **styles[name])
        # More than a few bands of one standard deviation are not legible.
        if len(names) > 3:
            display.band_.remove()
        if cut := [point.exact_epsilon for point in curve if point.score_mean < bottom]:
            arrow = {"color": styles[name]["color"], "marker": 11, "ls": "", "clip_on": False, "label": below}
            ax.plot(cut, [bottom] * len(cut), **arrow)
            below = "_below"
    if min(scores) < bottom:
        ax.set_ylim(bottom, max(first.clean_mean, *scores) + margin)
    draw_epsilon_axis(ax)


# Keep text as text, for search and screen readers.
_SVG = {"svg.fonttype": "none", "font.family": "sans-serif"}
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def html_report(*comparisons: MechanismComparison, command: str | None = None) -> str:
    """Return studies as one HTML document that shows their `command`; every text is escaped."""
    versions = [f"{name} {import_module(name).__version__}" for name in ("skldp", "sklearn", "numpy", "scipy")]
    studies = [
        {
            "name": comparison.data.name,
            "headline": comparison.headline(),
            "caption": comparison.caption(),
            "ranking": ranking(comparison),
            "weaker": comparison.weaker_than_stated(),
            "panels": _pictures(comparison),
            "points": points(comparison),
        }
        for comparison in comparisons
    ]
    return render_template(
        "skldp.study",
        "_report.html.jinja",
        title=f"{', '.join(comparison.data.name for comparison in comparisons)}: cost of privacy",
        studies=studies,
        command=command,
        versions=[*versions, f"Python {platform.python_version()}"],
    )


def _pictures(comparison: MechanismComparison) -> list[dict[str, str]]:
    """Return a figure for each panel; narrow pages stack them."""
    matplotlib, markup = require("matplotlib"), require("markupsafe").Markup
    pictures = []
    for names in panel_names(comparison.curves):
        file = StringIO()
        # The salt makes the ids of SVG parts equal in every run and distinct between the figures of a page.
        with matplotlib.rc_context(_SVG | {"svg.hashsalt": f"{comparison.data.name} {names}"}):
            figure = require("matplotlib.figure").Figure(figsize=(4.6, 4.4), layout="constrained")
            ax = figure.add_subplot()
            plot_panel(ax, comparison.curves, names, _styles(comparison.curves))
            ax.get_legend().remove()
            figure.legend(loc="outside lower center", ncols=2, fontsize=8.5)
            figure.savefig(file, format="svg", transparent=True, metadata=_NO_METADATA)
        about = f"{score_label(comparison.first.scoring)} over the exact epsilon ({', '.join(names)})"
        # Remove the prolog, and ids that all figures share and nothing refers to. matplotlib escapes every text.
        svg = re.sub(r' id="[\w.]+_\d+"', "", file.getvalue()[file.getvalue().index("<svg") :])
        pictures.append({"about": about, "svg": markup(svg)})
    return pictures
