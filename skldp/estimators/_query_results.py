"""Results and previews of the queries of a BayesianFilter."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skldp._tables import html_table
from skldp.accounting._class_query import ClassQuery
from skldp.accounting.ledger._privacy_ledger import PrivacyLedger
from skldp.estimators._validation import warn
from skldp.exceptions import BudgetExhaustedWarning


@dataclass(frozen=True, repr=False)
class QueryResult:
    """Answers of some people to one query.

    Attributes
    ----------
    accepted : ndarray of bool, shape (n_samples,)
        True where the person answered.
    fresh : ndarray of bool, shape (n_samples,)
        True where the answer was drawn now; other answers were recorded before, and cost nothing.
    outputs : ndarray of float, shape (n_samples,)
        The answer, one of the two `output_bounds`, or the position of a class; NaN where refused.
    estimates : ndarray of float, shape (n_samples,) or (n_samples, n_classes)
        Unbiased estimate of each person's prediction, or of the indicator of each class. NaN where refused.
    ids : list of int or str
        Ids of the people asked; hashes where rows stand for people.
    mean, standard_error : float, or ndarray of shape (n_classes,)
        Over the people who answered; shares for classes. Refusals depend on earlier answers, so that people who
        answered may differ from the others.
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
        """Make the result from a ledger's answers."""
        accepted = answers.outputs >= 0
        # A refusal is output -1, the NaN at the end.
        values = np.array([*query.output_values, np.nan])
        mean, error = query.estimate_mean(answers.outputs[accepted])
        estimates = query.estimate(np.arange(query.n_outputs))
        return cls(
            accepted=accepted,
            fresh=answers.fresh,
            outputs=values[answers.outputs],
            estimates=np.concatenate([estimates, np.full_like(estimates[:1], np.nan)])[answers.outputs],
            ids=people,
            mean=mean,
            standard_error=error,
            _ledger=ledger,
        )

    @cached_property
    def realized_loss(self):
        """Certified upper bound on each person's loss, as recorded at the first access."""
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
    """Expected result of a query to some people.

    Attributes
    ----------
    accepted : ndarray of bool, shape (n_people,)
        True where the person would answer.
    recorded : ndarray of bool, shape (n_people,)
        True where the answer is recorded, and costs nothing.
    costs : ndarray of float, shape (n_people,)
        Upper bound on the increase of each realized loss, in nats; 0 where no answer would be drawn.
    remaining : ndarray of float, shape (n_people,)
        Remaining budget of each person, in nats.
    standard_error : float
        Expected standard error of the mean, if predictions are like those of the public data; infinity without
        answers.
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


def _short(value, digits):
    return f"{value:.{digits}g}" if np.ndim(value) == 0 else f"[{', '.join(f'{one:.{digits}g}' for one in value)}]"


def prior_of(query, X):
    """Return the mean prediction on public rows, or the shares of classes."""
    if isinstance(query, ClassQuery):
        return np.bincount(query.classes(X), minlength=query.n_outputs) / len(X)
    low, high = query.output_bounds
    return float(low + (high - low) * query.unit_response(X).mean())


def warn_of_nobody(query, budget, n_people, largest=None):
    """Warn that all people are refused, with the reason."""
    if query.exact_epsilon > budget:
        reason = f"epsilon={query.epsilon:g} exceeds the total budget of {budget:g}"
    else:
        # The rule looks at what the answers can reveal, not at epsilon alone.
        left = "" if largest is None else f" (at most {largest:.4g} is left)"
        reason = (
            f"for each, one of the answers could exceed the budget{left}; another question or a smaller epsilon may fit"
        )
    warn(f"None of {n_people:,} people can answer: {reason}.", BudgetExhaustedWarning)
