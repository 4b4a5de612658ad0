r"""What an adversary concludes from answers: beliefs, the learning limit, and linked people.

Sections 2 and 3 of Pan (2025). A belief is a distribution :math:`Q(x)` on the records that a person may have.
Bayes' rule updates it after answers y. The realized loss L bounds the change of the confidence in any statement f
(Lemma 3.1), and some belief comes arbitrarily close to the bound (Lemma 3.2):

.. math:: e^{-L(y)} \le \frac{Q(f \mid y)}{Q(f)} \le e^{L(y)}

    python examples/papers/beliefs.py     # four people who pay one rent, asked separately and as one
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from skldp.accounting import FiniteQuery, RegressionQuery, realized_loss

__all__ = ["Belief", "Household", "learning_limit", "rents"]


def learning_limit(history, **options):
    """Bound the factor by which answers change the confidence in any statement (Definition 3.1, Theorem 3.1).

    `options` are those of ``realized_loss``. Both ends are rounded outward.
    """
    loss = realized_loss([query for query, _ in history], [output for _, output in history], **options).upper
    return math.exp(-loss) * (1 - 2.0**-50), math.exp(loss) * (1 + 2.0**-50)


@dataclass(frozen=True, eq=False)
class Belief:
    """Distribution on records; without `points`, on the points of finite queries (Sections 2.1 to 2.3)."""

    probabilities: np.ndarray
    points: np.ndarray | None = None

    def log_likelihood(self, history):
        """Return the log-probability of the answers at each point."""
        total = np.zeros(len(self.probabilities))
        for query, output in history:
            at = np.arange(len(total)) if isinstance(query, FiniteQuery) else self.points
            total += query.log_likelihood(output, at)
        return total

    def after(self, history):
        """Return the belief after some answers (Eq. 2)."""
        likelihood = self.log_likelihood(history)
        # Dividing by the largest value keeps long histories from underflowing.
        most = likelihood[np.asarray(self.probabilities) > 0].max()
        weights = self.probabilities * np.exp(np.minimum(likelihood - most, 0.0))
        return replace(self, probabilities=weights / math.fsum(weights))

    def confidence(self, truth):
        """Return the probability of a statement, given its truth value or probability at each point (Eq. 3)."""
        return min(1.0, math.fsum(self.probabilities * np.asarray(truth, dtype=float)))

    def odds(self, truth):
        """Return Q(f) / (1 - Q(f))."""
        against = self.confidence(1 - np.asarray(truth, dtype=float))
        return self.confidence(truth) / against if against > 0 else math.inf

    def vulnerability(self, gain=None):
        """Return the expected gain of the best guess; without `gain`, a guess of the point gains 1 if it is right."""
        return float(np.max(self.probabilities if gain is None else np.asarray(gain) @ self.probabilities))

    def knowledge_gain(self, history, truth):
        """Return the factor by which answers change the confidence in a statement."""
        return self.after(history).confidence(truth) / self.confidence(truth)

    def g_leakage(self, history, gain=None):
        """Return the factor by which answers change the gain of the best guess (Theorem 3.3)."""
        return self.after(history).vulnerability(gain) / self.vulnerability(gain)


@dataclass(frozen=True)
class Household:
    """People whose records share some features, asked as one person (Section 3.2).

    The common record holds the shared features once, then the other features of each member.
    """

    n_members: int
    n_features: int
    shared: tuple = ()

    @property
    def own(self):
        """Positions of the features that are not shared."""
        return [place for place in range(self.n_features) if place not in self.shared]

    @property
    def n_record(self):
        """Number of features of the common record."""
        return len(self.shared) + self.n_members * len(self.own)

    def places(self, member):
        """Return the position of each feature of a member in the common record."""
        places = np.empty(self.n_features, dtype=int)
        places[list(self.shared)] = np.arange(len(self.shared))
        places[self.own] = len(self.shared) + member * len(self.own) + np.arange(len(self.own))
        return places

    def query(self, member, query):
        """Return the query about the common record with the law of a regression query about a member."""
        coef = np.zeros(self.n_record)
        coef[self.places(member)] = query.coef
        return replace(query, coef=coef)

    def records(self, X):
        """Return common records, given members' records of shape (n_households, n_members, n_features)."""
        common = np.empty((len(X), self.n_record))
        for member in reversed(range(self.n_members)):
            common[:, self.places(member)] = np.asarray(X)[:, member]
        return common


def rents():
    """Return how much stronger the belief in a rent that four people share gets: asked separately, and as one."""
    rent = RegressionQuery("linear", coef=[1.0, 0.0], intercept=0.0, output_bounds=(0, 1), epsilon=1.0)
    home = Household(4, 2, shared=(0,))
    separate = Belief([0.001, 0.999], np.array([[1.0, 0.0], [0.0, 0.0]]))
    together = Belief([0.001, 0.999], np.eye(2, home.n_record) * np.array([[1.0], [0.0]]))
    alone = separate.knowledge_gain([(rent, 1)] * 4, [1.0, 0.0])
    return alone, together.knowledge_gain([(home.query(0, rent), 1)], [1.0, 0.0])


def main():
    """Print what the module says."""
    alone, together = rents()
    print("the belief in a high rent that four people pay, after answers at epsilon 1 under a budget of 1:")
    print(f"  asked separately {alone:.3g} times as strong, as one household {together:.3g} times")


if __name__ == "__main__":
    main()
