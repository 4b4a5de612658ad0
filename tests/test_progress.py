"""Progress of long calls."""

import pytest

from skldp import _progress
from skldp._progress import Progress


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    return now


def test_a_long_call_shows_one_line_from_two_seconds_on(clock, capsys):
    shown = []
    for item in Progress("fits\x1b of a\nfile", 4).track(range(4)):
        shown.append((item, capsys.readouterr().err))
        clock[0] += 1.5
    assert shown[0] == (0, "")
    assert shown[1] == (1, "")
    assert shown[2] == (2, "\rfits\\x1b of a\\nfile: 2 of 4, 3 s, about 3 s left")
    assert capsys.readouterr().err.endswith("\rfits\\x1b of a\\nfile: 4 of 4, 6 s\n")


def test_nothing_is_shown_of_a_short_call_or_unasked(clock, capsys):
    for show in (False, True):
        with Progress("rows", show=show) as progress:
            progress.advance(10)
            clock[0] += 10 * (not show)
            progress.advance()
    assert capsys.readouterr().err == ""
