"""pandas is for frames alone: results are made, read, drawn and written without it."""

import csv
import sys

import pytest
from comparisons import small_comparison
from federated_study import FederatedDisplay, federated_study, noiseless
from sklearn.datasets import load_iris
from theory_figures import label_flips
from theory_table import TheoryDisplay

from skldp.study import PrivacyUtilityDisplay

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


def results():
    X, y = load_iris(return_X_y=True)
    yield next(iter(small_comparison().curves.values())), PrivacyUtilityDisplay
    yield federated_study(X[::2], y[::2], X[1::2], y[1::2], [noiseless()], n_seeds=1, n_clients=5), FederatedDisplay
    yield label_flips([1.0]), TheoryDisplay


@pytest.mark.parametrize("place", range(3), ids=["curve", "federated", "theory"])
def test_a_result_is_columns_a_picture_and_a_file(place, monkeypatch, tmp_path):
    table, display = list(results())[place]
    # Only now: scikit-learn asks the modules that are there whether rows are theirs.
    monkeypatch.setitem(sys.modules, "pandas", None)
    columns = table.to_dict()
    assert {len(column) for column in columns.values()} == {len(table)}
    assert display.from_frame(table).figure_ is not None
    matplotlib.pyplot.close("all")
    table.to_csv(tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(newline="", encoding="utf-8") as file:
        written = list(csv.DictReader(file))
    assert [list(row.values()) for row in written] == [
        [str(cell) for cell in row] for row in zip(*(column.tolist() for column in columns.values()), strict=True)
    ]
    with pytest.raises(ImportError, match=r"pandas: pip install \"skldp\[study\]\""):
        table.to_frame()
