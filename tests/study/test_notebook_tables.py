"""Results of studies are tables in a notebook, with every figure of their columns."""

import numpy as np
from theory_figures import bit_flips
from theory_table import TheoryTable

from skldp.study import audit_epsilon


def test_a_table_of_results_is_shown():
    table = bit_flips([1.0], n_features=3, n_bits=4)
    shown = table._repr_html_()
    assert shown.startswith(f"<table><caption>{TheoryTable.__name__}</caption>")
    for name in table.to_dict():
        assert f">{name}<" in shown
    for value in table.to_dict()["q"][:4]:
        assert f">{value:.4g}<" in shown


def test_an_audit_is_shown_with_its_verdict():
    result = audit_epsilon(lambda rows: rows[:, 0], [1.0], [0.0], n_trials=1_000, seed=0)
    assert "claimed" not in result._repr_html_()
    assert "1: REFUTED" in result.against(1.0)._repr_html_()
    assert "not refuted" in result.against(np.inf)._repr_html_()
    assert "epsilon at least" in result._repr_html_()
