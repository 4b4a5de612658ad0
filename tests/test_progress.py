"""Progress of long calls."""

import os

import numpy as np
import pytest

from skldp import _progress
from skldp._progress import Progress
from skldp.accounting import RegressionQuery
from skldp.study import audit_epsilon, federated_learning, plan_questions, recommend

X, Y = np.linspace(-1, 1, 40).reshape(20, 2), np.arange(20) % 2
QUERY = RegressionQuery("linear", [1.0, 0.0], 0.0, (-1, 1), epsilon=1.0)


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


def test_a_closed_terminal_does_not_end_the_call(clock, monkeypatch):
    with open(os.devnull, "w") as closed:
        monkeypatch.setattr("sys.stderr", closed)
    with Progress("rows") as progress:
        clock[0] += 10.0
        progress.advance()


STUDIES = {
    "tables": lambda v: recommend({"x": (-1, 1)}, "regression", 1.0, 100, target=(0, 1), verbose=v),
    "rounds": lambda v: federated_learning(X, Y, X, Y, n_clients=4, n_rounds=3, verbose=v),
    "calls": lambda v: audit_epsilon(lambda rows: rows, 0.0, 1.0, n_trials=40, rows_per_call=20, verbose=v),
    "epsilons": lambda v: plan_questions([QUERY], X, total_epsilon=1.0, bounds=(-1, 1), n_steps=2, verbose=v),
}


@pytest.mark.parametrize("what", STUDIES)
def test_studies_show_progress_if_asked(what, monkeypatch, capsys):
    monkeypatch.setattr(_progress, "_SILENT_SECONDS", 0)
    STUDIES[what](False)
    assert capsys.readouterr().err == ""
    STUDIES[what](True)
    assert capsys.readouterr().err.startswith(f"\r{what}: 1 of ")
