"""Results of studies are tables in a notebook, with every figure of their columns."""

from theory_figures import bit_flips
from theory_table import TheoryTable


def test_a_table_of_results_is_shown():
    table = bit_flips([1.0], n_features=3, n_bits=4)
    shown = table._repr_html_()
    assert shown.startswith(f"<table><caption>{TheoryTable.__name__}</caption>")
    for name in table.to_dict():
        assert f">{name}<" in shown
    for value in table.to_dict()["q"][:4]:
        assert f">{value:.4g}<" in shown
