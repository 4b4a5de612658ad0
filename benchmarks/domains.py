"""Nine one-hot columns as a box and as what people can be: the range of an answer, its noise, and how many they answer.

    python benchmarks/domains.py
    python benchmarks/domains.py --blocks 3,3,3 --runs 10 --people 10 --epsilon 0.1 --budget 1.0

A question is a linear model with coefficients drawn uniformly from [-1, 1]. It is asked with the range that it has over
the box; with that over the domain at the same epsilon; and with that over the domain at the epsilon that gives the
box's noise. The noise is the largest standard deviation that one answer's estimate can have. All sides run in one
process, with the same seeds, and losses are certified over the same domain as the range; `least` and `most` are those
of all runs and people. The last line is how long a loss over the domain takes without the table of all records.
"""

import argparse
import statistics
import time
import warnings
from itertools import pairwise

import numpy as np
from measure import load

from skldp.accounting import RegressionQuery, realized_loss
from skldp.accounting._decide import Rule, decide
from skldp.accounting._extrema.region import region_of
from skldp.exceptions import SeededNoiseWarning
from skldp.mechanisms import Columns, OneHot, noise_from

SAME_EPSILON, SAME_NOISE = "domain", "domain, noise of the box"


def declared(sizes):
    """The box and the domain of one-hot blocks of these sizes."""
    ends = np.cumsum([0, *sizes])
    names = [tuple(f"x{column}" for column in range(first, last)) for first, last in pairwise(ends)]
    domain = Columns.of({own: OneHot(len(own)) for own in names})
    box = ([0.0] * sum(sizes), [1.0] * sum(sizes))
    return {"box": box, SAME_EPSILON: domain, SAME_NOISE: domain}


def largest_noise(query):
    """The largest standard deviation of one estimate."""
    return np.ptp(query.output_bounds) / (2 * np.tanh(query.epsilon / 2))


def question(name, sides, coef, epsilon):
    """A linear question with the range that it has within the bounds."""
    low, high = region_of(sides[name], n_features=len(coef)).range_of(coef)
    if name == SAME_NOISE:
        noise = largest_noise(question("box", sides, coef, epsilon))
        epsilon = 2 * np.arctanh((high - low) / (2 * noise))
    return RegressionQuery("linear", coef, 0.0, (low - 1e-9, high + 1e-9), epsilon)


def survey(bounds, queries, people, budget, seed):
    """How many questions each person answers, and all histories."""
    rule, noise = Rule("bayesian", budget, bounds), noise_from(seed)
    table = rule.table_for(queries[0])
    histories = [([], []) for _ in people]
    for number, query in enumerate(queries):
        admitted = decide(rule, queries, histories, query, table=table)
        for (numbers, outputs), output, may in zip(histories, query.sample(people, noise), admitted, strict=True):
            if may:
                numbers.append(number)
                outputs.append(int(output))
    return histories


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", default="9", help="How many values each category has, such as 3,3,3.")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--people", type=int, default=10)
    parser.add_argument("--questions", type=int, default=600)
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--budget", type=float, default=1.0)
    options = parser.parse_args()
    # Repeatable noise is what a study asks for.
    warnings.simplefilter("ignore", SeededNoiseWarning)
    sizes = [int(size) for size in options.blocks.split(",")]
    sides = declared(sizes)
    widths, noises, answered, seconds = ({name: [] for name in sides} for _ in range(4))
    searched = []
    for seed in range(options.runs):
        rng = np.random.default_rng(seed)
        coefficients = rng.uniform(-1, 1, (options.questions, sum(sizes)))
        people = np.hstack([np.eye(size)[rng.integers(0, size, options.people)] for size in sizes])
        for name, bounds in sides.items():
            queries = [question(name, sides, coef, options.epsilon) for coef in coefficients]
            widths[name] += [np.ptp(query.output_bounds) for query in queries]
            noises[name] += [largest_noise(query) for query in queries]
            begun = time.perf_counter()
            histories = survey(bounds, queries, people, options.budget, seed)
            seconds[name].append(time.perf_counter() - begun)
            answered[name] += [len(numbers) for numbers, _ in histories]
        numbers, outputs = histories[0]
        begun = time.perf_counter()
        realized_loss([queries[number] for number in numbers], outputs, bounds=bounds)
        searched.append(time.perf_counter() - begun)
    print(load())
    print(
        f"{options.runs} runs, {options.people} people, {options.questions} questions, epsilon {options.epsilon:g}, "
        f"budget {options.budget:g}: adding up allows {int(options.budget / options.epsilon + 1e-9)}"
    )
    print(f"{'':26}{'range':>7}{'noise':>8}{'answered':>10}{'least':>7}{'most':>6}{'seconds':>9}")
    for name in sides:
        width, noise, counts = statistics.mean(widths[name]), statistics.mean(noises[name]), answered[name]
        print(
            f"{name:26}{width:7.3f}{noise:8.2f}{statistics.median(counts):10.1f}{min(counts):7d}{max(counts):6d}"
            f"{statistics.mean(seconds[name]):9.2f}"
        )
    ratio = statistics.mean(widths["box"]) / statistics.mean(widths[SAME_EPSILON])
    print(f"range of the box over that of the domain: {ratio:.2f}")
    print(f"a loss over the domain without the table: {1e3 * statistics.median(searched):.1f} ms")


if __name__ == "__main__":
    main()
