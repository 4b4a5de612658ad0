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
from skldp.study._results import CurvePoint, PrivacyUtilityCurve

# Largest number of curves that are highlighted in one panel.
_MOST_CURVES = 6
_MARKERS = "osD^vP*X"


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
    """Return the best mean score of each mechanism within each exact epsilon, the best mechanism first.

    Mechanisms whose exact epsilon exceeds the stated one come below, with their exact epsilons.
    """
    first, budgets = comparison.first, comparison.stated_budgets()
    places = [dict(comparison.ranking(budget)) for budget in budgets]
    weaker = comparison.weaker_than_stated()
    scores = {
        name: [place[name].score_mean if name in place else -math.inf for place in places]
        for name in comparison.curves
        if name not in weaker
    }
    # The column of the headline decides, then larger epsilons.
    judged = sum(budget <= HEADLINE_EPSILON * (1 + 1e-6) for budget in budgets) - 1
    names = sorted(scores, key=lambda name: scores[name][judged:] + scores[name][judged - 1 :: -1], reverse=True)
    rows = [[name, *map(_score, scores[name])] for name in names]
    ends = {len(rows) - 1}
    for name in weaker:
        stated = {round(point.stated_epsilon, 6): point for point in comparison.curves[name]}
        found = [stated.get(round(budget, 6)) for budget in budgets]
        rows.append([f"{name} as published", *(_score(point.score_mean) if point else "–" for point in found)])
        rows.append(["  at an exact ε of", *(_exact(point.exact_epsilon) if point else "" for point in found)])
        ends.add(len(rows) - 1)
    rows += [
        ["without privacy", *[_score(first.clean_mean)] * len(budgets)],
        [_baseline(comparison), *[_score(first.majority_mean)] * len(budgets)],
    ]
    best = [max(scores, key=lambda name: scores[name][column], default=None) for column in range(len(budgets))]
    return TextTable(
        f"{first.scoring} at an exact ε of at most",
        ("", *(f"{budget:g}" for budget in budgets)),
        rows,
        frozenset(
            (names.index(name), 1 + column)
            for column, name in enumerate(best)
            if name is not None and math.isfinite(scores[name][column])
        ),
        frozenset(ends),
        f"Means over {first[0].n_fits} fits of each mechanism's best point (bold: best of all; –: no such point). "
        f"Their standard deviations are up to {max(p.score_std for c in comparison.curves.values() for p in c):.2g}.",
    )


def points(comparison: MechanismComparison, names: Iterable[str] | None = None, *, title: str = "") -> TextTable:
    """Return every point of some mechanisms, with the stated and the exact epsilon."""
    first = comparison.first
    rows = [
        ["without privacy", "", "", "inf", "", _spread(first.clean_mean, first.clean_std), "", ""],
        [_baseline(comparison), "", "", "0", "", _spread(first.majority_mean, first.majority_std), "", ""],
    ]
    ends = {1}
    for name in comparison.curves if names is None else names:
        rows += [[name, *_point(point)] for point in comparison.curves[name]]
        ends.add(len(rows) - 1)
    headings = ("mechanism", "asked ε", "stated ε", "exact ε", "δ", first.scoring, "fit s", "score s")
    return TextTable(title, headings, rows, ends=frozenset(ends), note=_unit_of_epsilons(comparison))


def _unit_of_epsilons(comparison: MechanismComparison) -> str:
    """Describe the unit of the three epsilons."""
    settings = comparison.settings
    if comparison.data.task == "regression":
        return "All epsilons are of one complete record with its target."
    if settings.labels == "none":
        return "All epsilons are of the features of one record."
    return (
        "Asked is for the features of one record (models: of the complete record); its label has the same epsilon. "
        "Stated and exact are sums, of the complete record with its target."
    )


def guarantee_tables(comparison: MechanismComparison) -> list[TextTable]:
    """Return the guarantee of every private step at every epsilon, one table a mechanism."""
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


def _point(point: CurvePoint) -> list[str]:
    return [
        f"{point.epsilon:g}",
        f"{point.stated_epsilon:g}",
        _exact(point.exact_epsilon),
        f"{point.delta:.3g}" if point.delta else "",
        _spread(point.score_mean, point.score_std),
        f"{point.fit_time:.2f}",
        f"{point.score_time:.3f}",
    ]


def _exact(epsilon: float) -> str:
    return f"{epsilon:,.4g}" if epsilon < 1000 else f"{epsilon:,.0f}"


def _baseline(comparison: MechanismComparison) -> str:
    return "the mean" if comparison.data.task == "regression" else "majority"


def _score(value: float) -> str:
    # Adding 0 removes the sign of a negative zero.
    return f"{round(value, 3) + 0.0:.3f}" if math.isfinite(value) else "–"


def _spread(mean: float, std: float) -> str:
    return f"{_score(mean)} ± {_score(std)}"


def panel_names(curves: dict[str, Any]) -> list[list[str]]:
    """Return the names of the curves that each panel highlights, at most six."""
    n_panels = math.ceil(len(curves) / _MOST_CURVES)
    return [names.tolist() for names in np.array_split(list(curves), n_panels)]


def plot_comparisons(*comparisons: MechanismComparison) -> Any:
    """Draw the curves of all data sets over the exact epsilon, in a new figure without a window.

    With many mechanisms a data set has several panels, each with the curves of the others in grey.
    """
    panels = [(one, names) for one in comparisons for names in panel_names(one.curves)]
    figure = require("matplotlib.figure").Figure(figsize=(5.5 * len(panels), 5.5), layout="constrained")
    for ax, (comparison, names) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        plot_panel(ax, comparison.curves, names)
        # Dollar signs in the name of a file must not be parsed as a formula.
        ax.set_title(f"{comparison.data.name}: cost of privacy", parse_math=False)
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, fontsize=8.5)
    return figure


def plot_panel(ax: Any, curves: dict[str, PrivacyUtilityCurve], names: list[str]) -> None:
    """Draw some curves into a panel, and the others in grey."""
    background: dict[str, Any] = {"color": "0.75", "lw": 0.8, "marker": "", "label": "_background", "zorder": 1}
    for name, curve in curves.items():
        if name not in names:
            PrivacyUtilityDisplay.from_frame(curve, ax=ax, baselines=False, **background).band_.remove()
    for place, name in enumerate(names):
        display = PrivacyUtilityDisplay.from_frame(
            curves[name],
            name=name,
            ax=ax,
            baselines=name == names[-1],
            marker=_MARKERS[place % len(_MARKERS)],
            ms=5,
        )
        # More than a few bands of one standard deviation are not legible.
        if len(names) > 3:
            display.band_.remove()
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
            "caption": comparison.caption(),
            "ranking": ranking(comparison),
            "weaker": comparison.weaker_than_stated(),
            "panels": _pictures(comparison),
            "points": points(comparison, title="Every mechanism at every epsilon"),
            "guarantees": guarantee_tables(comparison),
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
            plot_panel(ax, comparison.curves, names)
            ax.get_legend().remove()
            figure.legend(loc="outside lower center", ncols=2, fontsize=8.5)
            figure.savefig(file, format="svg", transparent=True, metadata=_NO_METADATA)
        about = f"{comparison.first.scoring} over the exact epsilon ({', '.join(names)})"
        # Remove the prolog, and ids that all figures share and nothing refers to. matplotlib escapes every text.
        svg = re.sub(r' id="[\w.]+_\d+"', "", file.getvalue()[file.getvalue().index("<svg") :])
        pictures.append({"about": about, "svg": markup(svg)})
    return pictures
