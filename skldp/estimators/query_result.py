"""What people answered to one query."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skldp.accounting.estimates import mean_of_answers
from skldp.accounting.ledger import PrivacyLedger

__all__ = ["QueryResult"]


@dataclass(frozen=True, repr=False)
class QueryResult:
    """The answers of some people to one query.

    Attributes
    ----------
    accepted : ndarray of bool, shape (n_samples,)
        Who answered.
    fresh : ndarray of bool, shape (n_samples,)
        Whose answer was drawn now; the others who answered are handed their recorded one again, at no cost.
    outputs : ndarray of float, shape (n_samples,)
        The answer, one of the two `output_bounds`; NaN where refused.
    estimates : ndarray of float, shape (n_samples,)
        The unbiased estimate of each person's prediction; NaN where refused.
    ids : list of int or str
        Who was asked; where rows are people, what stands for them in this process.
    mean, standard_error : float
        Over the people who answered. Who is refused depends on earlier answers, so that those who
        are left need not be like all.
    """

    accepted: np.ndarray
    fresh: np.ndarray
    outputs: np.ndarray
    estimates: np.ndarray
    ids: list
    mean: float
    standard_error: float
    _ledger: PrivacyLedger

    @classmethod
    def of(cls, query, ledger, answers, people):
        """Turn what a ledger handed out for these people into values and estimates."""
        mean, error = mean_of_answers(query, answers.outputs[answers.accepted])
        # A refusal is output -1: the NaN at the end.
        return cls(
            accepted=answers.accepted,
            fresh=answers.fresh,
            outputs=np.array([*query.output_values, np.nan])[answers.outputs],
            estimates=np.array([*query.estimate([0, 1]), np.nan])[answers.outputs],
            ids=people,
            mean=mean,
            standard_error=error,
            _ledger=ledger,
        )

    @cached_property
    def realized_loss(self):
        """Certified upper bound on each person's loss, by what is recorded when this is first looked at."""
        return self._ledger.realized_loss(self.ids)

    def __repr__(self):
        return (
            f"QueryResult({np.count_nonzero(self.accepted):,} of {self.accepted.size:,} answered, "
            f"mean={self.mean:.6g}, standard_error={self.standard_error:.3g})"
        )
