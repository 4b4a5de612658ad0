"""Tables in a terminal."""

import pytest

pytest.importorskip("rich")
pytest.importorskip("typer")

from rich.console import Console

from skldp.cli._options import rich_table

HEADINGS = ("mechanism", "stated ε", "exact ε", "δ", "r2", "mean absolute error", "fit s", "score s")
ROWS = [["without privacy", "", "inf", "", "0.717 ± 0.006", "2.051", "", ""]] + [
    [name, "1", "1", "", "-0.020 ± 0.000", "2.123", "0.24", "0.003"]
    for name in ("linear-rounds", "multivariate-laplace")
]


def test_a_table_of_a_regression_fits_into_80_columns():
    console = Console(width=80)
    with console.capture() as shown:
        console.print(rich_table(HEADINGS, ROWS[:2]))
    text = shown.get()
    assert all(part in text for part in ("without privacy", "linear-rounds", "-0.020 ± 0.000", "0.003", "absolute"))
    assert not {"…", "δ"} & set(text)
