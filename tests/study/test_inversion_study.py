import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

from inversion_study import InversionDisplay, inversion_study

from skldp.study._inversion import inversion_bound

RECORDS = np.random.default_rng(0).uniform(-1, 1, size=(8, 3))


@pytest.fixture
def table(fixed_noise):
    return inversion_study(["bitrand", "privunit"], RECORDS, [8.0, 2.0], bounds=(-1, 1), n_trials=1_000, seed=0)


def test_every_attack_has_a_row_at_its_exact_epsilon(table):
    columns = table.to_dict()
    assert len(table.rows) == 2 * (2 + 3)
    assert set(columns["n_candidates"]) == {8}
    exact, stated = columns["exact_epsilon"], columns["stated_epsilon"]
    published = columns["mechanism"] == "bitrand"
    # The published calibration spends more than it states, and its bound is that of what it spends.
    assert (exact[published] > stated[published]).all()
    assert (exact[~published] <= stated[~published]).all()
    for row in table.rows:
        assert row.bound == inversion_bound(row.exact_epsilon, 8)
        assert row.low <= row.recovered <= row.high
        assert row.recovered < row.bound
    assert len(str(table).splitlines()) == 1 + len(table.rows)


def test_the_picture_shows_the_best_attack_below_the_bound(table, tmp_path):
    display = InversionDisplay.from_frame(table)
    assert [line.get_label() for line in display.lines_] != []
    for line, name in zip(display.lines_, ["bitrand", "privunit"], strict=True):
        rows = [row for row in table.rows if row.mechanism == name]
        by_epsilon = {row.exact_epsilon: max(r.recovered for r in rows if r.exact_epsilon == row.exact_epsilon)
                      for row in rows}  # fmt: skip
        assert dict(zip(line.get_xdata(), line.get_ydata(), strict=True)) == by_epsilon
        assert list(line.get_xdata()) == sorted(by_epsilon)
    x, y = display.bound_.get_data()
    assert y[-1] == inversion_bound(float(x[-1]), 8)
    assert set(display.chance_.get_ydata()) == {1 / 8}
    pd = pytest.importorskip("pandas")
    table.to_csv(tmp_path / "table.csv")
    again = InversionDisplay.from_frame(pd.read_csv(tmp_path / "table.csv"), ax=display.ax_)
    assert again.ax_ is display.ax_
