"""A study as one HTML file: nothing is fetched, and it reads on a phone and a desktop, in light and dark."""

import math
import platform
from html import escape
from importlib import import_module
from importlib.resources import files

from skldp.study._report.panels import panel_names
from skldp.study._report.svg_chart import ChartLine, line_chart, swatch

__all__ = ["html_report"]

_AXES = {
    "exact": ("exact_epsilon", "Exact epsilon of one record"),
    "stated": ("stated_epsilon", "Stated epsilon"),
}


def html_report(comparison, *, command=None):
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

    Examples
    --------
    >>> from skldp.study._comparison import ComparisonSettings, compare_mechanisms
    >>> from skldp.study._datasets import load_study_data
    >>> from skldp.study._report.html_report import html_report
    >>> found = compare_mechanisms(load_study_data("wine"), ["duchi"], ComparisonSettings(epsilons=(9.0,), folds=2))
    >>> html_report(found, command="skldp study wine").startswith("<!doctype html>")
    True
    """
    title = f"{comparison.data.name}: what privacy costs"
    body = [
        f"<header><h1>{escape(title)}</h1>",
        *(f"<p>{escape(line)}</p>" for line in comparison.caption()),
        "</header><main>",
        _ranking(comparison),
        _pictures(comparison, "exact"),
        _pictures(comparison, "stated"),
        _all_points(comparison),
        _guarantees(comparison),
        _how_it_was_made(command),
        "</main>",
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        # Nothing may be fetched or run, whatever a name of a column holds.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{_style()}</style></head><body>{''.join(body)}</body></html>\n"
    )


def _style():
    return files("skldp.study._report").joinpath("html_report.css").read_text(encoding="utf-8")


def _ranking(comparison):
    first = comparison.first
    budgets, found, best = comparison.table()
    rows = [
        ["without privacy", *[_number(first.clean_mean)] * len(budgets)],
        ["majority", *[_number(first.majority_mean)] * len(budgets)],
    ]
    rows += [
        [escape(name), *(_place(point, winner) for point, winner in zip(points, best, strict=True))]
        for name, points in found
    ]
    weaker = comparison.weaker_than_stated()
    note = (
        f"<p>Weaker than stated, and so further to the right than asked for: {escape(', '.join(weaker))}.</p>"
        if weaker
        else "<p>Every mechanism here keeps what it states.</p>"
    )
    return (
        f"<section><h2>The ranking at an exact epsilon</h2><p>Best mean {escape(first.scoring)} of each mechanism "
        "among its points whose exact epsilon is at most that of the column; the best one of a column is bold; a dash "
        "where a mechanism has no such point. Differences below the spreads in the table of all points are noise.</p>"
        + _table(
            f"Mean {first.scoring} within an exact epsilon",
            ["mechanism", *(f"ε ≤ {budget:g}" for budget in budgets)],
            rows,
        )
        + note
        + "</section>"
    )


def _place(point, winner):
    if point is None:
        return "–"
    text = _number(point.score_mean)
    return f"<b>{text}</b>" if point is winner else text


def _pictures(comparison, axis):
    curves, first = comparison.curves, comparison.first
    column, label = _AXES[axis]
    lines = {
        name: ChartLine(
            name, tuple(getattr(point, column) for point in curve), tuple(point.score_mean for point in curve)
        )
        for name, curve in curves.items()
    }
    levels = [("without privacy", first.clean_mean), ("majority", first.majority_mean)]
    figures = []
    for title, names in panel_names(curves).items():
        about = f"{first.scoring} over the {axis} epsilon{': ' if title else ''}{title} ({', '.join(names)})"
        chart = line_chart(
            [lines[name] for name in names],
            title=f"{about}. The figures are in the table of all points.",
            x_label=label,
            y_label=first.scoring,
            levels=levels,
            behind=[line for name, line in lines.items() if name not in names],
        )
        legend = "".join(f"<li>{swatch(place)}{escape(name)}</li>" for place, name in enumerate(names))
        caption = f"<strong>{escape(title.capitalize())}</strong>" if title else ""
        figures.append(f"<figure>{chart}<figcaption>{caption}<ul>{legend}</ul></figcaption></figure>")
    heading = "The exact epsilon: what is guaranteed" if axis == "exact" else "The stated epsilon: what was asked for"
    grey = "<p>Grey lines are the mechanisms of the other panels.</p>" if len(figures) > 1 else ""
    return f'<section><h2>{heading}</h2>{grey}<div class="panels">{"".join(figures)}</div></section>'


def _all_points(comparison):
    rows = [
        [
            escape(name),
            f"{point.epsilon:g}",
            f"{point.stated_epsilon:g}",
            _epsilon(point.exact_epsilon),
            f"{point.delta:.3g}",
            f"{_number(point.score_mean)} ± {_number(point.score_std)}",
            f"{point.fit_time:.2f}",
        ]
        for name, curve in comparison.curves.items()
        for point in curve
    ]
    headings = ["mechanism", "asked ε", "stated ε", "exact ε", "δ", f"{comparison.first.scoring} ± sd", "fit, s"]
    return f"<section><h2>All points</h2>{_table('Every mechanism at every epsilon', headings, rows)}</section>"


def _guarantees(comparison):
    parts = []
    for name, curve in comparison.curves.items():
        rows = [
            [f"{point.epsilon:g}", escape(step), escape(str(guarantee))]
            for point, steps in zip(curve, curve.guarantees, strict=True)
            for step, guarantee in steps
        ]
        table = _table(f"Guarantees of {name}", ["asked ε", "step", "guarantee"], rows, wrap=True)
        parts.append(f"<details><summary>{escape(name)}</summary>{table}</details>")
    return (
        "<section><h2>The guarantee of every step</h2><p>Steps add up by basic composition; steps that are not here "
        f"release nothing of their own.</p>{''.join(parts)}</section>"
    )


def _how_it_was_made(command):
    versions = [f"{name} {import_module(name).__version__}" for name in ("skldp", "sklearn", "numpy", "scipy")]
    versions.append(f"Python {platform.python_version()}")
    shown = "" if command is None else f'<pre tabindex="0"><code>{escape(command)}</code></pre>'
    return f"<section><h2>How this was made</h2>{shown}<p>{escape(', '.join(versions))}</p></section>"


def _table(caption, headings, rows, *, wrap=False):
    """A table whose cells are HTML already; its caption and headings are not. It scrolls in itself where it is wide."""
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>' for first, *rest in rows
    )
    return (
        f'<div class="scroll{" wrap" if wrap else ""}" role="region" tabindex="0" aria-label="{escape(caption)}">'
        f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _number(value):
    return "–" if math.isnan(value) else f"{value:.3f}"


def _epsilon(value):
    return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"
