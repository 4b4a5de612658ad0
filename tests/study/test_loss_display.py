import sys

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from skldp import PrivacyLedger
from skldp.accounting import RegressionQuery, realized_loss
from skldp.study import PrivacyLossDisplay

LINE = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(-1, 1), epsilon=0.5)


def test_draws_the_losses_of_a_ledgers_person():
    ledger = PrivacyLedger(1.5, bounds=(-1, 1))
    for output in (1, 1, 0):
        ledger.answer(LINE, [7], lambda people, output=output: [output], repeat=True)
    display = PrivacyLossDisplay.from_history(ledger.history(7), bounds=ledger.bounds, epsilon=1.5)
    losses = [realized_loss([LINE] * n, [1, 1, 0][:n], bounds=(-1, 1)).upper for n in range(4)]
    assert display.realized_.get_ydata().tolist() == losses
    assert display.added_up_.get_ydata().tolist() == pytest.approx([0.0, 0.5, 1.0, 1.5], abs=1e-12)
    assert all(display.added_up_.get_ydata() >= LINE.exact_epsilon * np.arange(4))
    assert display.realized_.get_xdata().tolist() == [0, 1, 2, 3]
    assert list(display.budget_.get_ydata()) == [1.5, 1.5]
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == [
        "realized loss",
        "epsilons added up",
        "budget (1.5)",
    ]


def test_draws_into_axes_and_without_a_budget():
    _, ax = plt.subplots()
    display = PrivacyLossDisplay.from_history([(LINE, 1)], bounds=(-1, 1), name="ann", ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert display.budget_ is None
    assert display.realized_.get_label() == "ann"


def test_names_the_extra_before_anything_is_certified(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "skldp\[study\]"'):
        PrivacyLossDisplay.from_history([("no query", 1)])
