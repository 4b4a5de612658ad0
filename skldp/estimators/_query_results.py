"""What a BayesianFilter's question brings, and what it would bring before anybody is asked."""

import math
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from skldp._tables import html_table
from skldp.accounting import ClassQuery, PrivacyLedger
from skldp.exceptions import BudgetExhaustedWarning, TooFewPeopleWarning

__all__ = ["PreviewsQueries", "QueryPreview", "QueryResult", "warn_of_nobody"]


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
        The answer, one of the two `output_bounds`, or the position of a class; NaN where refused.
    estimates : ndarray of float, shape (n_samples,) or (n_samples, n_classes)
        The unbiased estimate of each person's prediction; of classes, of whether each is theirs. NaN where refused.
    ids : list of int or str
        Who was asked; where rows are people, what stands for them in this process.
    mean, standard_error : float, or ndarray of shape (n_classes,)
        Over the people who answered; of classes, their shares. Who is refused depends on earlier answers, so that
        those who are left need not be like all.
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
        accepted = answers.accepted
        mean, error = query.estimate_mean(answers.outputs[accepted])
        estimates = query.estimate(np.arange(query.n_outputs))
        # A refusal is output -1: the NaN at the end.
        return cls(
            accepted=accepted,
            fresh=answers.fresh,
            outputs=np.array([*query.output_values, np.nan])[answers.outputs],
            estimates=np.concatenate([estimates, np.full_like(estimates[:1], np.nan)])[answers.outputs],
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
            f"mean={_short(self.mean, 6)}, standard_error={_short(self.standard_error, 3)})"
        )

    def _repr_html_(self):
        return html_table(
            "Answers to a question",
            [
                ("asked", f"{self.accepted.size:,}"),
                ("answered", f"{np.count_nonzero(self.accepted):,}"),
                ("of them now", f"{np.count_nonzero(self.fresh):,}"),
                ("mean", _short(self.mean, 6)),
                ("standard error", _short(self.standard_error, 3)),
            ],
        )


@dataclass(frozen=True, repr=False)
class QueryPreview:
    """What would happen if some people were asked.

    Attributes
    ----------
    accepted : ndarray of bool, shape (n_people,)
        Who would be handed an answer.
    recorded : ndarray of bool, shape (n_people,)
        Whose answer is recorded, and would be handed out again at no cost.
    costs : ndarray of float, shape (n_people,)
        What the answer would add to each one's realized loss at most, in nats; 0 where none would be drawn.
    remaining : ndarray of float, shape (n_people,)
        What is left of each one's budget now, in nats.
    standard_error : float
        That of the mean, to be expected of those who would answer if their predictions are like those of the public
        data; infinity if nobody would.
    """

    accepted: np.ndarray
    recorded: np.ndarray
    costs: np.ndarray
    remaining: np.ndarray
    standard_error: float

    def __repr__(self):
        return (
            f"QueryPreview({np.count_nonzero(self.accepted):,} of {self.accepted.size:,} would answer, "
            f"{np.count_nonzero(self.recorded):,} of them again, standard_error={self.standard_error:.3g})"
        )

    def _repr_html_(self):
        return html_table(
            "What a question would bring",
            [
                ("would be asked", f"{self.accepted.size:,}"),
                ("would answer", f"{np.count_nonzero(self.accepted):,}"),
                ("of them again", f"{np.count_nonzero(self.recorded):,}"),
                ("standard error", f"{self.standard_error:.3g}"),
            ],
        )


def _short(value, digits):
    return f"{value:.{digits}g}" if np.ndim(value) == 0 else f"[{', '.join(f'{one:.{digits}g}' for one in value)}]"


def prior_of(query, X):
    """The mean prediction on public rows; of classes, their shares."""
    if isinstance(query, ClassQuery):
        return np.bincount(query.classes(X), minlength=query.n_outputs) / len(X)
    low, high = query.output_bounds
    return float(low + (high - low) * query.unit_response(X).mean())


def warn_of_nobody(query, budget, n_people, largest=None):
    """Say why all of these people refuse a query.

    Parameters
    ----------
    query : RegressionQuery
    budget : float
    n_people : int
    largest : float, default=None
        The most that is left of anybody's budget, where that is known.
    """
    if query.exact_epsilon > budget:
        reason = f"epsilon={query.epsilon:g} is above the whole budget of {budget:g}"
    else:
        left = "what is left of everybody's budget" if largest is None else f"what is left, at most {largest:.4g}"
        reason = f"epsilon={query.epsilon:g} does not fit into {left}"
    warnings.warn(f"None of {n_people:,} people can answer: {reason}.", BudgetExhaustedWarning, stacklevel=3)


class PreviewsQueries:
    """The dry run of a question."""

    def preview(self: Any, ids: Any, *, repeat: bool = False) -> QueryPreview:
        """Say who would answer, at what cost and with what error. Nobody is asked, and nothing is recorded.

        Parameters
        ----------
        ids : array-like of int or str, shape (n_people,)
            People who have answered before, this question or another one that shares the ledger. Others are refused:
            all of them would answer, if `epsilon` is within the budget. So who has answered is no secret from whoever
            may ask for previews.
        repeat : bool, default=False
            As in `query`.

        Returns
        -------
        QueryPreview

        Raises
        ------
        ValueError
            If an id occurs twice or is not in one form.
        LedgerError
            If there is no answer of somebody, or the ledger is about another domain.

        Warns
        -----
        BudgetExhaustedWarning
            If nobody would answer; the text says why.
        TooFewPeopleWarning
            If those who would answer are too few for the noise: the middle of the output bounds is as good a guess.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import LinearRegression
        >>> from skldp import BayesianFilter, PrivacyLedger
        >>> public_X = np.array([[0.0], [0.5], [1.0]])
        >>> ledger = PrivacyLedger(1.0, bounds=(0, 1), rule="basic")
        >>> first = BayesianFilter(LinearRegression(), epsilon=0.6, ledger=ledger).fit(public_X, [0.0, 1.0, 2.0])
        >>> result = first.query(np.linspace(0, 1, 200)[:, None], ids=range(200))
        >>> second = BayesianFilter(LinearRegression(), epsilon=0.4, ledger=ledger).fit(public_X, [1.0, 0.0, 0.0])
        >>> second.preview(range(200))
        QueryPreview(200 of 200 would answer, 0 of them again, standard_error=0.179)
        """
        self._check_unchanged()
        self._check_same_ledger()
        self._declare()
        found = self.ledger_.would_answer(self.query_, ids, repeat=repeat, workers=self._workers())
        n_people, n_answers = found.accepted.size, np.count_nonzero(found.accepted)
        remaining = np.maximum(self.ledger_.epsilon - found.losses, 0.0)
        error = self.query_.expected_error(n_answers, self.prior_)
        if n_people and not n_answers:
            warn_of_nobody(self.query_, self.ledger_.epsilon, n_people, remaining.max())
        low, high = self.query_.output_bounds
        if n_answers and error > (high - low) / 2:
            needed = math.ceil(n_answers * (2 * error / (high - low)) ** 2)
            warnings.warn(
                f"{n_answers:,} answers at epsilon={self.query_.epsilon:g} tell the mean with a standard error of "
                f"{error:.3g}, more than half of the output bounds' {high - low:.3g}: it takes {needed:,} people.",
                TooFewPeopleWarning,
                stacklevel=2,
            )
        return QueryPreview(found.accepted, found.recorded, found.costs, remaining, error)
