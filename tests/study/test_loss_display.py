import matplotlib

matplotlib.use("Agg")


from skldp import PrivacyLedger
from skldp.accounting import RegressionQuery
from skldp.accounting._learned import loss_history
from skldp.study import PrivacyLossDisplay

LINE = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(-1, 1), epsilon=0.5)


def test_draws_the_losses_of_a_ledgers_person():
    ledger = PrivacyLedger(1.5, bounds=(-1, 1))
    for output in (1, 1, 0):
        ledger.answer(LINE, [7], lambda people, output=output: [output], repeat=True)
    display = PrivacyLossDisplay.from_history(ledger.history(7), bounds=ledger.bounds, epsilon=1.5)
    losses = loss_history([(LINE, 1), (LINE, 1), (LINE, 0)], bounds=(-1, 1))
    assert display.realized_.get_ydata().tolist() == losses.realized.tolist()
    assert display.added_up_.get_ydata().tolist() == losses.added_up.tolist()
    assert display.realized_.get_xdata().tolist() == [0, 1, 2, 3]
    assert list(display.budget_.get_ydata()) == [1.5, 1.5]
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == [
        "realized loss",
        "epsilons added up",
        "budget (1.5)",
    ]
