"""HTML of a collector: a table for notebooks, and a page with charts."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from skldp._tables import html_table, require
from skldp._texts import escaped
from skldp.client._fields import AnyField
from skldp.client._policy import Policy
from skldp.collection._survey_estimates import SurveyEstimate

# A chart of more bars is not legible.
_MOST_BARS = 40


def render_template(package: str, name: str, **context: Any) -> str:
    """Render a jinja template of a package as HTML; every text but markup is escaped."""
    jinja2 = require("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(package, "."),
        autoescape=True,
        finalize=lambda value: escaped(value) if type(value) is str else value,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return str(environment.get_template(name).render(context))


def notebook_view(policy: Policy, counts: Any) -> str:
    """Return a table of the policy, its epsilon, and the number of reports."""
    rows = [
        ("purpose", policy.purpose),
        ("fields", ", ".join(field.name for field in policy.fields)),
        *([("fields asked of a person", f"{policy.n_sampled}")] if policy.n_sampled is not None else []),
        ("epsilon of a report", f"{policy.epsilon:.6g}"),
        ("policy (SHA-256)", policy.sha256[:16]),
        *((f"reports {name}", f"{number:,}") for name, number in counts._asdict().items()),
    ]
    return html_table("Collector", rows)


def page_of(
    policy: Policy, counts: Any, estimates: Sequence[tuple[AnyField, Sequence[tuple[SurveyEstimate, bool]]]]
) -> str:
    """Return a page with the estimates of every field; flagged estimates get a chart."""
    markup = require("markupsafe").Markup
    sections = []
    for field, tables in estimates:
        unit = f" in {field.column.unit}" if field.kind == "number" and field.column.unit else ""
        items = []
        for estimate, drawn in tables:
            moved = estimate.moved_by(0.01)
            item = {
                "title": estimate.title,
                "bars": _bars(estimate) if drawn and len(estimate.labels) <= _MOST_BARS else [],
                "table": markup(estimate._repr_html_()),
                # Omit the effect of forged reports where it is not bounded.
                "moved": moved.max() if (moved < estimate.most).all() else None,
            }
            items.append(item)
        sections.append({"heading": field.name + unit, "estimates": items})
    summary = markup(notebook_view(policy, counts))
    return render_template(
        "skldp.collection", "_page.html.jinja", title=policy.purpose, summary=summary, sections=sections
    )


def _bars(estimate: SurveyEstimate) -> list[tuple[str, float, float, float]]:
    """Return the label, length and interval of each bar, as shares of the longest one."""
    labels = [label if len(label) <= 20 else label[:19] + "…" for label in estimate.labels]
    if len(set(labels)) < len(labels):
        # Shortened labels may coincide; the table below the chart has them in full.
        labels = [f"row {i + 1}" for i in range(len(labels))]
    longest = max(estimate.high.max(), estimate.values.max(), 1e-9)
    ends = (np.maximum(x, 0.0) / longest for x in (estimate.values, estimate.low, estimate.high))
    return list(zip(labels, *(x.tolist() for x in ends), strict=True))
