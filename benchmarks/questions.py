"""Measure the number of log-link questions within a budget, planned epsilons, and losses of linked records.

``python benchmarks/questions.py [runs]`` prints three tables; everything is drawn from fixed seeds.
"""

import sys
import warnings

import numpy as np

from skldp.accounting import BayesianPrivacyFilter, Belief, Household, RegressionQuery
from skldp.accounting._filters import BasicPrivacyFilter
from skldp.exceptions import SeededNoiseWarning
from skldp.mechanisms import noise_from
from skldp.study import plan_questions

N_FEATURES, EPSILON, BUDGET = 4, 0.1, 1.0


def question(rng, kind, epsilon=EPSILON):
    """One question over [-1, 1]^d whose linear form reaches from -1 to 1."""
    coef = rng.uniform(-1, 1, N_FEATURES)
    coef /= np.abs(coef).sum()
    bounds = (-1.0, 1.0) if kind == "linear" else (float(np.exp(-1)), float(np.exp(1)))
    return RegressionQuery(kind, coef, 0.0, bounds, epsilon)


def answered(kind, run, rule, most=200):
    """How many questions in a row somebody answers before one is refused."""
    rng, noise = np.random.default_rng(run), noise_from(run)
    person = rule(BUDGET) if rule is BasicPrivacyFilter else rule(BUDGET, bounds=(-1, 1), tol=1e-2)
    row = rng.uniform(-1, 1, (1, N_FEATURES))
    for count in range(most):
        query = question(rng, kind)
        if not person.admits(query):
            return count
        person.record(query, int(query.sample(row, noise)[0]))
    return most


def rents():
    """Four people who pay one rent, each asked for it at epsilon 1 under a budget of 1: separately, and as one."""
    rent = RegressionQuery("linear", coef=[1.0, 0.0], intercept=0.0, output_bounds=(0, 1), epsilon=1.0)
    home = Household(4, 2, shared=[0])
    prior = Belief([0.001, 0.999], points=[[1.0, 0.0], [0.0, 0.0]])
    separate = prior.knowledge_gain([(rent, 1)] * 4, [1.0, 0.0])
    points = np.zeros((2, home.n_record))
    points[0, 0] = 1.0
    together = Belief([0.001, 0.999], points).knowledge_gain([(home.query(0, rent), 1)], [1.0, 0.0])
    return separate, together


def main(n_runs=10):
    """Print what the module says."""
    print(f"questions of epsilon {EPSILON} answered at a budget of {BUDGET}, {N_FEATURES} features, {n_runs} people:")
    for kind in ("linear", "exponential"):
        basic = answered(kind, 0, BasicPrivacyFilter)
        counts = [answered(kind, run, BayesianPrivacyFilter) for run in range(n_runs)]
        print(f"  {kind:12} basic {basic}, Bayesian median {np.median(counts):g} (from {min(counts)} to {max(counts)})")
    rng = np.random.default_rng(0)
    people = rng.uniform(-1, 1, (50, N_FEATURES))
    print(f"largest epsilon of each question at which 9 of 10 people answer all, at a budget of {BUDGET}:")
    for n_questions in (5, 10, 20):
        queries = [question(rng, "linear") for _ in range(n_questions)]
        plan = plan_questions(queries, people, total_epsilon=BUDGET, bounds=(-1, 1))
        print(f"  {n_questions:2} questions: {plan.epsilon:.3f}, by adding up {plan.added_up:.3f}")
    separate, together = rents()
    print("confidence that the rent is high grows, after the answers that say so,")
    print(f"  by a factor of {separate:.1f} with four budgets of 1, of {together:.2f} with one (limit {np.exp(1):.2f})")


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        main(*(int(argument) for argument in sys.argv[1:]))
