"""Compare the variance of released numbers with the best one known: worst case over [-1, 1], exact from the laws.

Run ``python benchmarks/number_laws.py``. One number: every mechanism's worst variance over that of a linear program
with twice the points and answers of ours, without rounding to integers ("best known"), and the mean variance under a
uniform prior over that of the law for it. Several numbers: the largest variance of a feature over that of PrivUnit of
the box, which no unbiased law of a vector of the ball beats in its sum (Asi, Feldman and Talwar, ICML 2022), and that
of ``mechanism="best"``. Below an epsilon of about 2 a sampled feature beats the ball: the ratio is below 1. "before" is
the choice without the law on points and PrivUnit.
"""

import time

import numpy as np

from skldp.mechanisms.numeric._bounded_features import (
    JOINT_MECHANISMS,
    NUMERIC_MECHANISMS,
    PrivUnitBox,
    best_mechanism,
    make_mechanism,
    mean_sampled_variance,
    number_of_sampled_features,
    worst_sampled_variance,
)
from skldp.mechanisms.numeric._points import _SIZES, Points, _program

ALONE = [name for name in NUMERIC_MECHANISMS if name not in (*JOINT_MECHANISMS, "ldp_fl")]


def best_known(epsilon):
    """Return the least worst variance over some widths of the grid of answers, with twice our points and answers."""
    _, n_points, n_places, factor = next(size for size in _SIZES if epsilon <= size[0])
    least = np.inf
    for width in (factor, factor + 0.25):
        values = np.linspace(-1, 1, 2 * n_places - 1) * width / np.tanh(epsilon / 2)
        table, _ = _program(epsilon, 2 * n_points, values, (), 0.0)
        points, x = np.linspace(-1, 1, 2 * n_points)[:n_points], np.linspace(-1, 0, 4001)
        least = min(least, (np.interp(np.minimum(x, points[-1]), points, table @ values**2) - x**2).max())
    return least


def one_number(epsilons):
    print("One number: worst variance over the best known one, and seconds of our linear program")
    print(f"{'epsilon':>8}{'best known':>12}{'points':>8}{'before':>8}{'seconds':>9}  which         others")
    for epsilon in epsilons:
        begun = time.process_time()
        ours = Points(epsilon).worst_variance
        took, least = time.process_time() - begun, best_known(epsilon)
        name, before, _ = best_mechanism(epsilon, 1)
        others = " ".join(f"{one} {make_mechanism(one, epsilon).worst_variance / least:.3g}" for one in ALONE)
        ratios = f"{ours / least:8.3f}{before.worst_variance / least:8.3f}"
        print(f"{epsilon:8g}{least:12.4g}{ratios}{took:9.2f}  {name:14}{others}")


def under_a_prior(epsilons):
    print("\nOne number, mean variance for evenly spread numbers over that of the law on points made for them")
    print(f"{'epsilon':>8}{'variance':>12}{'worst case':>12}{'best other':>12}")
    for epsilon in epsilons:
        own = mean_sampled_variance(Points(epsilon, (1.0,)), 1, 1, (1.0,))
        worst = mean_sampled_variance(Points(epsilon), 1, 1, (1.0,))
        other = min(mean_sampled_variance(make_mechanism(name, epsilon), 1, 1, (1.0,)) for name in ALONE[:-1])
        print(f"{epsilon:8g}{own:12.4g}{worst / own:12.3f}{other / own:12.3f}")


def several_numbers():
    print("\nSeveral numbers: worst variance of a feature over PrivUnit's")
    print(f"{'features':>9}{'epsilon':>8}{'PrivUnit':>11}{'best':>8}{'before':>8}  which")
    for d in (2, 5, 10, 30):
        for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0):
            privunit = PrivUnitBox(epsilon, d).worst_variance
            name, mechanism, k = best_mechanism(epsilon, d, with_points=True)
            before = min(
                worst_sampled_variance(make_mechanism(one, epsilon, n), d, n)
                for one in NUMERIC_MECHANISMS
                if one not in ("gaussian", "privunit", "points")
                for n in [number_of_sampled_features("auto", one, epsilon, d)]
            )
            best = worst_sampled_variance(mechanism, d, k)
            print(
                f"{d:9}{epsilon:8g}{privunit:11.4g}{best / privunit:8.3f}{before / privunit:8.3f}  {name}, {k} released"
            )


if __name__ == "__main__":
    one_number((0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0))
    under_a_prior((0.5, 1.0, 2.0, 4.0))
    several_numbers()
