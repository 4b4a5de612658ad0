"""A line chart as inline SVG: real text, and colours that a style sheet sets, so that light and dark both work."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

__all__ = ["ChartLine", "line_chart", "swatch"]

# Lines are told apart by the colour, and where those repeat, by the dashes; the marker changes with every line.
_N_COLOURS = 6
_DASHES = ("", "7 3", "2 3")
_WIDTH, _HEIGHT = 360, 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 42, 350, 10, 236


def line_chart(lines, *, title, x_label, y_label, levels=(), behind=()):
    """Draw lines over a logarithmic axis.

    Parameters
    ----------
    lines : list of ChartLine
        Those that stand out, in the order of a legend.
    title : str
        Says what the chart shows, for those who do not see it.
    x_label, y_label : str
    levels : list of (str, float), default=()
        Horizontal lines with their names.
    behind : list of ChartLine, default=()
        Drawn thin and grey.

    Returns
    -------
    str
        An ``<svg>`` with the classes ``line``, ``behind``, ``level``, ``grid`` and ``c0`` to ``c5``.

    Examples
    --------
    >>> from skldp.study._report.svg_chart import ChartLine, line_chart
    >>> drawn = line_chart([ChartLine("a & b", (1, 10), (0.2, 0.8))], title="<t>", x_label="x", y_label="y")
    >>> "a &amp; b" in drawn, "&lt;t&gt;" in drawn, "<t>" in drawn
    (True, True, False)
    """
    drawable = [line.finite() for line in (*lines, *behind)]
    xs = [x for line in drawable for x in line.x]
    ys = [y for line in drawable for y in line.y] + [value for _, value in levels if math.isfinite(value)]
    across, up = _log_scale(xs), _linear_scale(ys)
    parts = [
        f'<svg class="chart" role="img" viewBox="0 0 {_WIDTH} {_HEIGHT}" xmlns="http://www.w3.org/2000/svg">',
        f"<title>{escape(title)}</title>",
    ]
    for value in up.ticks:
        y = up(value)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    for value in across.ticks:
        x = across(value)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_BOTTOM}"/>')
        parts.append(f'<text x="{x:.1f}" y="{_BOTTOM + 16}" text-anchor="middle">{value:g}</text>')
    middle = (_TOP + _BOTTOM) / 2
    parts.append(f'<text x="{(_LEFT + _RIGHT) / 2}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(x_label)}</text>')
    parts.append(
        f'<text x="11" y="{middle}" text-anchor="middle" transform="rotate(-90 11 {middle})">{escape(y_label)}</text>'
    )
    for name, value in levels:
        if math.isfinite(value):
            y = up(value)
            parts.append(f'<line class="level" x1="{_LEFT}" x2="{_RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(
                f'<text class="small" x="{_RIGHT - 3}" y="{y - 4:.1f}" text-anchor="end">{escape(name)}</text>'
            )
    for line in drawable[len(lines) :]:
        parts.append(f'<polyline class="behind" points="{_points(line, across, up)}"/>')
    for place, line in enumerate(drawable[: len(lines)]):
        parts.append(_drawn(line, place, across, up))
    return "".join([*parts, "</svg>"])


def swatch(place):
    """Draw the piece of a line that stands in a legend before its name.

    Parameters
    ----------
    place : int
        Of the line among `lines`.

    Returns
    -------
    str
    """
    return (
        f'<svg class="swatch" viewBox="0 0 30 12" aria-hidden="true"><g class="line c{place % _N_COLOURS}">'
        f'<line x1="1" x2="29" y1="6" y2="6"{_dashes(place)}/>{_marker(place, 15, 6)}</g></svg>'
    )


def _drawn(line, place, across, up):
    marks = "".join(_marker(place, across(x), up(y)) for x, y in zip(line.x, line.y, strict=True))
    return (
        f'<g class="line c{place % _N_COLOURS}"><title>{escape(line.name)}</title>'
        f'<polyline points="{_points(line, across, up)}"{_dashes(place)}/>{marks}</g>'
    )


def _dashes(place):
    dashes = _DASHES[place // _N_COLOURS % len(_DASHES)]
    return f' stroke-dasharray="{dashes}"' if dashes else ""


def _points(line, across, up):
    return " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in zip(line.x, line.y, strict=True))


def _marker(place, x, y):
    r = 3.4
    shape = place % 4
    if shape == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}"/>'
    if shape == 1:
        return f'<rect x="{x - 3:.1f}" y="{y - 3:.1f}" width="6" height="6"/>'
    down = -1 if shape == 3 else 1
    corners = ((x - r, y + r * down), (x + r, y + r * down), (x, y - r * down))
    return f'<polygon points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in corners)}"/>'


def _log_scale(values):
    low, high = (min(values), max(values)) if values else (1.0, 10.0)
    if high <= low * 1.01:
        low, high = low / 2, high * 2
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    # Within two decades, the steps 1, 2, 5 are labelled too.
    steps = (1, 2, 5) if high / low <= 200 else (1,)
    ticks = [step * 10.0**power for power in range(first, last + 1) for step in steps]
    stride = 1 + (last - first) // 7 if steps == (1,) else 1
    shown = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001][::stride]
    return _Scale(math.log(low), math.log(high), _LEFT + 8, _RIGHT - 8, tuple(shown), math.log)


def _linear_scale(values):
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    # A share from 0 to 1 is shown whole.
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        room = abs(high) / 2 or 0.5
        low, high = low - room, high + room
    step = 10.0 ** math.floor(math.log10(high - low))
    step *= next(factor for factor in (0.2, 0.5, 1.0, 2.0) if (high - low) / (step * factor) <= 6)
    low, high = math.floor(low / step) * step, max(math.ceil(high / step), math.floor(low / step) + 1) * step
    ticks = tuple(round(low + index * step, 12) for index in range(round((high - low) / step) + 1))
    return _Scale(low, high, _BOTTOM, _TOP + 4, ticks, float)


@dataclass(frozen=True)
class ChartLine:
    """One line of a chart.

    Attributes
    ----------
    name : str
    x : sequence of float
        Above 0.
    y : sequence of float
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]

    def finite(self):
        """Leave out what cannot be drawn, and order the rest by x."""
        kept = [(x, y) for x, y in zip(self.x, self.y, strict=True) if 0 < x < math.inf and math.isfinite(y)]
        kept.sort(key=lambda point: point[0])
        return ChartLine(self.name, tuple(x for x, _ in kept), tuple(y for _, y in kept))


@dataclass(frozen=True)
class _Scale:
    low: float
    high: float
    start: float
    end: float
    ticks: tuple
    transform: Callable[[float], float]

    def __call__(self, value):
        share = (self.transform(value) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)
