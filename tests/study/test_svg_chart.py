import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skldp.study._report.svg_chart import ChartLine, line_chart, swatch

SVG = "{http://www.w3.org/2000/svg}"


def chart(*lines, **options):
    return ElementTree.fromstring(line_chart(list(lines), title="t", x_label="x", y_label="y", **options))


def points(tree, css=""):
    lines = tree.iter(f"{SVG}polyline")
    return [
        [tuple(map(float, pair.split(","))) for pair in line.get("points").split()]
        for line in lines
        if (line.get("class") or "") == css
    ]


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.floats(1e-3, 1e6), st.floats(-1e4, 1e4)), min_size=1, max_size=8, unique_by=lambda p: p[0])
)
def test_larger_epsilons_lie_to_the_right_and_larger_scores_above(pairs):
    tree = chart(ChartLine("line", tuple(x for x, _ in pairs), tuple(y for _, y in pairs)))
    (drawn,) = points(tree)
    assert len(drawn) == len(pairs)
    expected = sorted(pairs)
    for (x1, y1), (x2, y2), (left, up), (right, down) in zip(expected, expected[1:], drawn, drawn[1:], strict=False):
        assert left <= right
        assert (up >= down) if y1 <= y2 else (up <= down)
        assert x1 < x2
    assert all(0 <= x <= 360 and 0 <= y <= 280 for x, y in drawn)


def test_the_axis_is_logarithmic():
    (drawn,) = points(chart(ChartLine("line", (1, 10, 100), (0.1, 0.5, 0.9))))
    assert drawn[1][0] - drawn[0][0] == pytest.approx(drawn[2][0] - drawn[1][0], abs=0.11)


def test_leaves_out_what_cannot_be_drawn():
    tree = chart(ChartLine("line", (1, math.inf, 3), (0.1, 0.5, math.nan)), levels=[("none", math.nan)])
    assert len(points(tree)[0]) == 1
    assert chart(ChartLine("empty", (math.inf,), (0.5,))) is not None


def test_lines_are_told_apart_and_others_stay_behind():
    line = ChartLine("a", (1, 2), (0.1, 0.2))
    tree = chart(*[line] * 13, behind=[line])
    assert len(points(tree, "behind")) == 1
    looks = [ElementTree.tostring(group[1]) for group in tree.iter(f"{SVG}g")]
    assert len(looks) == 13
    text = line_chart([line] * 13, title="t", x_label="x", y_label="y")
    assert len(set(re.findall(r'class="line (c\d)"', text))) == 6
    assert len({swatch(place) for place in range(12)}) == 12
