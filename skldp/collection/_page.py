"""HTML of a collector: a table for notebooks, and a page with pictures."""

from collections.abc import Sequence
from typing import Any

from skldp._tables import in_html
from skldp.client import NumberField, Policy
from skldp.client._fields import AnyField
from skldp.learning._survey_estimates import SurveyEstimate

# More bars than this are no picture.
_MOST_BARS = 40
_BAR, _LABELS, _WIDTH = 18, 150, 620
_SCROLLED = '<div class="scroll" tabindex="0">{}</div>'
# The policy forbids to fetch or run anything, whatever a name of a field holds.
_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
:root {{ --paper: #fff; --ink: #1c1f24; --soft: #5b6472; --rule: #d8dce2; --bar: #9cc3ea; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --paper: #14171c; --ink: #e6e9ee; --soft: #a3adba; --rule: #363d47; --bar: #2d5f8f; }}
}}
body {{ margin: 0 auto; max-width: 60rem; padding: 1rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: break-word; }}
h1 {{ font-size: 1.6rem; line-height: 1.2; }} h2 {{ font-size: 1.2rem; margin: 2rem 0 .5rem; }}
p, caption {{ color: var(--soft); text-align: left; }}
caption {{ padding: .2rem .6rem; white-space: nowrap; }}
.scroll {{ overflow-x: auto; margin: 1rem 0; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }}
th, td {{ padding: .2rem .6rem; text-align: right; border-bottom: 1px solid var(--rule); white-space: nowrap; }}
tr > th:first-child {{ text-align: left; }} tr > td:only-of-type {{ white-space: normal; }}
svg {{ margin-top: 1rem; width: 100%; max-width: 44rem; height: auto; display: block; }}
svg text {{ fill: var(--ink); font: 12px system-ui, sans-serif; }}
svg rect {{ fill: var(--bar); }} svg line {{ stroke: var(--ink); }}
</style></head><body>
"""


def notebook_view(policy: Policy, counts: Any) -> str:
    """Return a table of the policy, its epsilon, and the number of reports."""
    rows = {
        "purpose": policy.purpose,
        "fields": ", ".join(field.name for field in policy.fields),
        "epsilon of a report": f"{policy.epsilon:.6g}",
        **({"epsilon of a lifetime": f"{policy.lifetime_epsilon:.6g}"} if policy.has_waves else {}),
        "policy (SHA-256)": policy.sha256[:16],
        **{f"reports {name}": f"{number:,}" for name, number in counts._asdict().items()},
    }
    lines = [
        f'<tr><th style="text-align:left">{in_html(name)}</th><td>{in_html(text)}</td></tr>'
        for name, text in rows.items()
    ]
    return f"<table><caption>Collector</caption>{''.join(lines)}</table>"


def page_of(
    policy: Policy, counts: Any, estimates: Sequence[tuple[AnyField, Sequence[tuple[SurveyEstimate, bool]]]]
) -> str:
    """Return a page of the estimates of every field, some of which are drawn."""
    title = in_html(policy.purpose)
    parts = [_HEAD.format(title=title), f"<h1>{title}</h1>", _SCROLLED.format(notebook_view(policy, counts))]
    for field, tables in estimates:
        unit = f" in {field.unit}" if isinstance(field, NumberField) and field.unit else ""
        parts.append(f"<section><h2>{in_html(field.name + unit)}</h2>")
        for estimate, drawn in tables:
            if drawn and len(estimate.labels) <= _MOST_BARS:
                parts.append(_bars(estimate))
            parts.append(_SCROLLED.format(estimate._repr_html_()))
            # Without a bound on the effect of 1% forged reports, none is shown.
            moved = estimate.moved_by(0.01)
            if (moved < estimate.most).all():
                parts.append(f"<p>If 1% of the reports were forged, a number moves by at most {moved.max():.4g}.</p>")
        parts.append("</section>")
    parts.append("<p>Each interval holds the true value of the population at its own level.</p>")
    return "\n".join([*parts, "</body></html>\n"])


def _bars(estimate: SurveyEstimate) -> str:
    """Draw a bar for each share, with its interval as a line."""
    room = _WIDTH - _LABELS
    most = float(max(estimate.high.max(), estimate.values.max(), 1e-9))
    height = _BAR * len(estimate.labels)
    lines = [
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="{in_html(estimate.title)}. The figures are in the table below.">'
    ]
    shown = [label if len(label) <= 20 else label[:19] + "…" for label in estimate.labels]
    if len(set(shown)) < len(shown):
        # Two cut labels may be equal; the table below shows them in full.
        shown = [f"row {i + 1}" for i in range(len(shown))]
    rows = zip(shown, estimate.values, estimate.low, estimate.high, strict=True)
    for i, (short, value, low, high) in enumerate(rows):
        top, middle = _BAR * i + 3, _BAR * i + _BAR / 2
        length, start, end = (_LABELS + room * max(0.0, float(x)) / most for x in (value, low, high))
        lines.append(
            f'<text x="{_LABELS - 6}" y="{middle + 4:.1f}" text-anchor="end">{in_html(short)}</text>'
            f'<rect x="{_LABELS}" y="{top}" width="{length - _LABELS:.1f}" height="{_BAR - 6}"/>'
            f'<line x1="{start:.1f}" x2="{end:.1f}" y1="{middle}" y2="{middle}"/>'
        )
    return "".join([*lines, "</svg>"])
