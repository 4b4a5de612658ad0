"""The picture of one person's privacy loss over their answers."""

from typing import Any, Self

import numpy as np

from skldp.accounting import LossHistory, loss_history
from skldp.study._extras import require

__all__ = ["PrivacyLossDisplay"]


class PrivacyLossDisplay:
    """Draw what a person's answers have cost: the realized loss beside the sum of epsilons.

    Use :meth:`from_history`.

    Parameters
    ----------
    losses : LossHistory
        What :func:`~skldp.accounting.loss_history` returns.
    epsilon : float, default=None
        The person's budget, drawn as a line. None draws none.
    name : str, default="realized loss"
        The name in the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    realized_ : matplotlib Line2D
        The certified loss after each answer, which can fall.
    added_up_ : matplotlib Line2D
        What basic composition charges.
    budget_ : matplotlib Line2D or None

    Examples
    --------
    >>> from skldp.accounting import RegressionQuery
    >>> from skldp.study import PrivacyLossDisplay
    >>> query = RegressionQuery("linear", coef=[1.0], intercept=0.0, output_bounds=(-1, 1), epsilon=0.5)
    >>> answers = [(query, 1), (query, 1), (query, 0)]
    >>> display = PrivacyLossDisplay.from_history(answers, bounds=(-1, 1), epsilon=1.0)
    >>> display.realized_.get_ydata().round(2).tolist()
    [0.0, 0.5, 1.0, 0.5]
    """

    def __init__(self, losses: LossHistory, *, epsilon: float | None = None, name: str = "realized loss") -> None:
        self.losses = losses
        self.epsilon = epsilon
        self.name = name

    @classmethod
    def from_history(
        cls,
        history: Any,
        *,
        bounds: Any = None,
        domain: Any = None,
        tol: float = 1e-3,
        epsilon: float | None = None,
        name: str = "realized loss",
        ax: Any = None,
    ) -> Self:
        """Certify the loss after each answer, and draw it.

        Parameters
        ----------
        history : sequence of (query, output), or what a ledger's ``history`` returns
            A filter's ``history`` will do as well.
        bounds : tuple (low, high), default=None
            The domain of the person's values, as in :func:`~skldp.accounting.realized_loss`.
        domain : array-like of shape (n_points, n_features), default=None
            A finite domain instead.
        tol : float, default=1e-3
        epsilon : float, default=None
            The budget.
        name : str, default="realized loss"
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        PrivacyLossDisplay
        """
        # Asked before the losses are certified, which can take long.
        require("matplotlib.pyplot")
        losses = loss_history(history, bounds=bounds, domain=domain, tol=tol)
        return cls(losses, epsilon=epsilon, name=name).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None

        Returns
        -------
        self : object
        """
        plt = require("matplotlib.pyplot")
        self.ax_ = plt.subplots()[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        answers = np.arange(len(self.losses.realized))
        # A loss is what it is until the next answer.
        (self.realized_,) = self.ax_.step(answers, self.losses.realized, where="post", label=self.name)
        (self.added_up_,) = self.ax_.step(
            answers, self.losses.added_up, where="post", color="0.4", ls="--", lw=1.2, label="epsilons added up"
        )
        self.budget_ = None
        if self.epsilon is not None:
            self.budget_ = self.ax_.axhline(
                self.epsilon, color="0.4", ls=":", lw=1.2, label=f"budget ({self.epsilon:g})"
            )
        self.ax_.set_xlabel("Answers")
        self.ax_.set_ylabel("Privacy loss (nats)")
        self.ax_.set_ylim(bottom=0.0)
        self.ax_.legend(loc="best")
        return self
