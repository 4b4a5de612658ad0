"""A study as one HTML file: nothing is fetched, and it reads on a phone and a desktop, in light and dark."""

import platform
import re
from importlib import import_module
from io import StringIO

from skldp.study._comparison import MechanismComparison
from skldp.study._extras import require
from skldp.study._report.views import guarantee_tables, panel_names, plot_panel, points, ranking

__all__ = ["html_report"]

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
        loader=jinja2.PackageLoader("skldp.study._report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    versions = [f"{name} {import_module(name).__version__}" for name in ("skldp", "sklearn", "numpy", "scipy")]
    return environment.get_template("report.html.jinja").render(
        title=f"{comparison.data.name}: what privacy costs",
        caption=comparison.caption(),
        ranking=ranking(comparison),
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
