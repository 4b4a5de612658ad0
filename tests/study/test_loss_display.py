import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")


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
