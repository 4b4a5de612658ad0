"""Section 6.1 of the realized-loss paper by what its groups of ten answers can mean.

Appendix C writes groups for the largest likelihood (Equation 26); the least one may be grouped as well, or instead.
Every extremum that Algorithm 6 returns is off by up to its delta of 0.01, which is the slack.

    python examples/papers/question_groups.py                # 50 runs, as in the paper
    python examples/papers/question_groups.py --runs 4
"""

import argparse
import itertools
import warnings

import numpy as np
from scipy.optimize import minimize

from skldp.accounting import RegressionQuery
from skldp.exceptions import SeededNoiseWarning
from skldp.mechanisms import noise_from

__all__ = ["READINGS", "accepted", "loss"]

_N_FEATURES, _GROUP, _EPSILON = 9, 10, 0.1
_CORNERS = np.array(list(itertools.product([-1.0, 1.0], repeat=_N_FEATURES)))

# Which extrema are taken in groups, and the slack of each.
READINGS = {
    "all together": ((), 0.0),
    "largest in groups": (("largest",), 0.0),
    "least in groups": (("least",), 0.0),
    "both in groups": (("largest", "least"), 0.0),
    "largest in groups, slack": (("largest",), 0.01),
    "least in groups, slack": (("least",), 0.01),
    "both in groups, slack": (("largest", "least"), 0.01),
}


def loss(slopes, chances, in_groups=(), slack=0.0):
    """Return the bound on the realized loss of answers with probabilities ``chances + slopes @ x``, x in [-1, 1]^9.

    Shapes: slopes (n, 9), chances (n,).
    """
    every = [slice(first, first + _GROUP) for first in range(0, len(slopes), _GROUP)]
    parts = {name: every if name in in_groups else [slice(None)] for name in ("largest", "least")}
    largest = sum(_largest(slopes[part], chances[part]) for part in parts["largest"])
    # A sum of logarithms of linear functions is concave: it is least at a corner.
    logs = np.log(chances + _CORNERS @ slopes.T)
    least = sum(logs[:, part].sum(axis=1).min() for part in parts["least"])
    return largest - least + slack * (len(parts["largest"]) + len(parts["least"]))


def accepted(seed, in_groups=(), slack=0.0, budget=1.0):
    """Return how many questions a person accepts: the loss of either answer must be within the budget."""
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        noise = noise_from(seed)
    slopes, chances = np.empty((0, _N_FEATURES)), np.empty(0)
    while True:
        theta = rng.uniform(-1, 1, _N_FEATURES + 1)
        theta /= np.abs(theta).sum()
        # P(y = b) from Equation 5, for [a, b] = [-1, 1].
        half = np.tanh(_EPSILON / 2) / 2 * theta
        both = [(np.vstack([slopes, s * half[1:]]), np.append(chances, 0.5 + s * half[0])) for s in (-1, 1)]
        if max(loss(*one, in_groups, slack) for one in both) > budget:
            return len(slopes)
        query = RegressionQuery("linear", theta[1:], theta[0], output_bounds=(-1, 1), epsilon=_EPSILON)
        slopes, chances = both[int(query.sample(np.zeros((1, _N_FEATURES)), noise)[0])]


def _largest(slopes, chances):
    def negative(x):
        p = chances + slopes @ x
        return -np.log(p).sum(), -(slopes / p[:, None]).sum(axis=0)

    box = [(-1, 1)] * _N_FEATURES
    found = minimize(negative, np.zeros(_N_FEATURES), jac=True, bounds=box, options={"ftol": 1e-13, "gtol": 1e-9})
    return -found.fun


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50)
    options = parser.parse_args()
    for name, reading in READINGS.items():
        low, median, high = np.percentile([accepted(run, *reading) for run in range(options.runs)], [10, 50, 90])
        print(f"{name}: median {median:g} accepted, 10th to 90th percentile {low:g} to {high:g}")
