"""Progress that scikit-learn's own callbacks are told, where its version has them (1.9 and later).

Its interface is experimental: all that is known of it here stands in this file.
"""

from collections.abc import Iterable, Sequence
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """An older scikit-learn has no callbacks: its estimators have no ``set_callbacks``, and neither has this."""

    def with_callbacks(method: Any) -> Any:
        """Leave the method as it is."""
        return method


__all__ = ["TellsCallbacks"]


class TellsCallbacks(CallbackSupportMixin):
    """Mix-in of an estimator whose callbacks are told of its fit, and of each history that is certified.

    They are told how many there are and how many are done: never a row, a decision or an answer.
    """

    def _tell_of_fit(self) -> None:
        """Tell of a fit that is done, as one step. A search or a pipeline waits for it in each of its own."""
        if hasattr(self, "_init_callback_context"):
            self._init_callback_context().call_on_fit_task_begin(estimator=self).call_on_fit_task_end(estimator=self)

    def _has_callbacks(self) -> bool:
        return bool(getattr(self, "_skl_callbacks", ()))

    @with_callbacks
    def _tell_of_decisions(self, decisions: Iterable[Any], total: int) -> Sequence[Any]:
        """List decisions as they come in, and tell of each."""
        whole = self._init_callback_context("certify", max_subtasks=total).call_on_fit_task_begin(estimator=self)
        found = []
        for decision in decisions:
            found.append(decision)
            history = whole.subcontext("history").call_on_fit_task_begin(estimator=self)
            # A callback may ask for a stop, which a fit can obey and a decision cannot.
            history.call_on_fit_task_end(estimator=self)
        whole.call_on_fit_task_end(estimator=self)
        return found
