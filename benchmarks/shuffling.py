"""Compare central guarantees of a trusted shuffler: published, for any mechanism, for a mechanism's law, lower bound.

Run ``python benchmarks/shuffling.py``. Published are a formula and two sums over clones: the first of Feldman et al.
(FOCS 2021), in whose program 100,000 people at epsilon 4 and delta 1e-6 are the example, the second of SODA 2023. The
lower bound is what people lose who all hold one value but for the first: importance sampling of the counts, less four
standard errors; for two answers it is exact. The variation-ratio column takes beta from the table of
Wang et al., "Privacy amplification via shuffling: unified, simplified, and tightened", VLDB 2024, and sums by our code;
that theorem fails for some mechanisms (see tests/mechanisms/test_shuffling.py), so that the column is no guarantee.
"""

import math
import time

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

from skldp import PrivacyGuarantee
from skldp.accounting import shuffled, shuffled_closed_form
from skldp.mechanisms import Piecewise, PrivUnit, RandomizedResponse
from skldp.mechanisms.categorical._one_hot import UnaryEncoding
from skldp.mechanisms.numeric._unit_mechanisms import Duchi, Hybrid
from skldp.shuffle._blanket_laws import pair_laws
from skldp.shuffle._shuffle_bounds import BlanketLaw, shuffled_epsilon

DRAWS = 100_000


def milliseconds(function):
    times = []
    for _ in range(5):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return 1e3 * min(times)


def third_value(mechanism):
    """The laws of two values and of a third one, which all others hold; of a pair's law, the second value's."""
    if isinstance(mechanism, RandomizedResponse) and mechanism.n_classes > 3:
        ratio = mechanism.p / mechanism.q
        weights = mechanism.q * np.array([1, 1, 1, mechanism.n_classes - 3])
        return np.array([[ratio, 1, 1, 1], [1, ratio, 1, 1], [1, 1, ratio, 1]]) * weights
    if isinstance(mechanism, UnaryEncoding):
        bits = (np.arange(8)[:, None] >> np.arange(3)) & 1
        chances = [np.where(np.eye(3)[x] == 1, mechanism.p, mechanism.q) for x in range(3)]
        return np.array([np.where(bits, chance, 1 - chance).prod(axis=1) for chance in chances])
    law = pair_laws(mechanism).laws[0]
    return np.array([law.own, law.other, law.other]) * law.weights


def lower_bound(mechanism, n, delta):
    """An epsilon at which this data set's delta is larger than the given one, by importance sampling."""
    own, other, data = third_value(mechanism)

    def sampled_delta(epsilon):
        values = (own - math.exp(epsilon) * other) / data
        tilt = brentq(lambda t: data @ (values * np.exp(t * values - (t * values).max())), 0.0, 50.0)
        tilted = data * np.exp(tilt * values)
        sums = np.random.default_rng(1).multinomial(n, tilted / tilted.sum(), size=DRAWS) @ values
        terms = np.maximum(sums, 0.0) * np.exp(n * math.log(tilted.sum()) - tilt * sums) / n
        return terms.mean() - 4 * terms.std() / math.sqrt(DRAWS)

    low, high = 0.0, mechanism.guarantee().epsilon * 0.99
    for _ in range(16):
        middle = (low + high) / 2
        low, high = (middle, high) if sampled_delta(middle) > delta else (low, middle)
    return low


def exact_of_two(mechanism, n, delta):
    """The exact epsilon of two answers where all others have the same extreme law; the worst of all laws tried."""
    law = pair_laws(mechanism).laws[0]
    low = float(law.weights.min())
    others = binom.pmf(np.arange(n), n - 1, low)
    pair = [np.convolve(others, [1 - one, one]) for one in (low, 1 - low)]

    def above(epsilon):
        return max(np.maximum(a - math.exp(epsilon) * b, 0.0).sum() for a, b in (pair, pair[::-1])) - delta

    return brentq(above, 0.0, mechanism.guarantee().epsilon)


def variation_ratio(epsilon, beta, n, delta):
    """As if the first person's other answers hid among all other answers."""
    p = math.exp(epsilon)
    alpha = beta / (p - 1)
    hidden = (1 - (p + 1) * alpha) / (1 - 2 * alpha)
    law = BlanketLaw(np.array([p, 1.0, hidden]), np.array([1.0, p, hidden]), np.array([alpha, alpha, 1 - 2 * alpha]))
    return shuffled_epsilon(law, n, delta, epsilon)


def of_clones(epsilon, share, n, delta):
    """The epsilon of the first person among as many clones as others are, each by this share, half of either answer."""
    n_clones = np.arange(n)
    chance = binom.pmf(n_clones, n - 1, share)
    n_clones, chance = n_clones[chance > 0], chance[chance > 0]
    right = 1 / (1 + math.exp(-epsilon))

    def above(loss):
        """What one law has more than e^loss times the other, averaged over the number of clones in doubles."""
        odds = math.exp(loss)
        least = np.floor((n_clones + 1) * (odds * right - 1 + right) / ((2 * right - 1) * (1 + odds))) + 1
        own, other = binom.sf(least - 2, n_clones, 0.5), binom.sf(least - 1, n_clones, 0.5)
        excess = right * own + (1 - right) * other - odds * ((1 - right) * own + right * other)
        return float(chance @ np.maximum(excess, 0.0)) - delta

    return brentq(above, 0.0, epsilon) if above(epsilon) < 0 < above(0.0) else math.nan


def mechanisms(epsilon):
    odds = math.exp(epsilon)
    binary = (odds - 1) / (odds + 1)
    return [
        ("Duchi, or k-RR of 2", Duchi(epsilon), binary),
        ("k-RR of 10", RandomizedResponse(epsilon, 10), (odds - 1) / (odds + 9)),
        ("k-RR of 100", RandomizedResponse(epsilon, 100), (odds - 1) / (odds + 99)),
        ("SUE (RAPPOR), 20", UnaryEncoding(epsilon, 20, "sue"), math.tanh(epsilon / 4)),
        ("OUE, 20", UnaryEncoding(epsilon, 20, "oue"), None),
        ("Piecewise", Piecewise(epsilon), 1 - math.exp(-epsilon / 2)),
        ("Hybrid", Hybrid(epsilon), None),
        ("PrivUnit of 100", PrivUnit(100, epsilon), None),
    ]


def table(epsilon, n, delta):
    try:
        published = f"{shuffled_closed_form(epsilon, n, delta):.4g}"
    except ValueError:
        published = "silent"
    anyone = PrivacyGuarantee(epsilon)
    print(f"\nepsilon {epsilon:g} each, {n:,} people, delta {delta:g}: closed form {published}", end=", ")
    clones = (of_clones(epsilon, share, n, delta) for share in (math.exp(-epsilon), 2 / (math.exp(epsilon) + 1)))
    print("clones {:.4f}, stronger clones {:.4f}, any law".format(*clones), end=" ")
    took = milliseconds(lambda: shuffled(anyone, n, delta))
    print(f"{shuffled(anyone, n, delta).epsilon:.4f} ({took:.0f} ms)")
    print(f"{'':<20} {'own law':>8} {'lower bound':>12} {'over it':>8} {'variation-ratio':>16} {'ms':>5}")
    for name, mechanism, beta in mechanisms(epsilon):
        own = shuffled(mechanism, n, delta).epsilon
        ratio = "" if beta is None else f"{variation_ratio(epsilon, beta, n, delta):.4f}"
        took = milliseconds(lambda mechanism=mechanism: shuffled(mechanism, n, delta))
        least = exact_of_two(mechanism, n, delta) if "Duchi" in name else lower_bound(mechanism, n, delta)
        print(f"{name:<20} {own:>8.4f} {least:>12.4f} {own / least:>8.4f} {ratio:>16} {took:>5.0f}")


def rounds(epsilon, n, delta):
    print(f"\nepsilon {epsilon:g} each in every round, {n:,} people, delta {delta:g} of all rounds, Piecewise")
    print(f"{'rounds':>7} {'own law':>9} {'any law':>9} {'any law, sum':>13} {'closed form, sum':>17} {'ms':>5}")
    law, anyone = Piecewise(epsilon), PrivacyGuarantee(epsilon)
    for times in (1, 10, 100, 1_000):
        own, alone = (shuffled(one, n, delta, rounds=times).epsilon for one in (law, anyone))
        added = shuffled(anyone, n, delta / times).epsilon * times
        closed = shuffled_closed_form(epsilon, n, delta / times) * times
        took = milliseconds(lambda times=times: shuffled(law, n, delta, rounds=times))
        print(f"{times:>7,} {own:>9.4f} {alone:>9.4f} {added:>13.4f} {closed:>17.4f} {took:>5.0f}")


def main():
    for epsilon, n, delta in [
        (2.0, 8_000, 1e-6),
        (2.0, 100_000, 1e-6),
        (4.0, 100_000, 1e-6),
        (6.0, 8_000, 1e-6),
        (1.0, 1_000, 1e-6),
        (4.0, 1_000_000, 1e-8),
    ]:
        table(epsilon, n, delta)
    rounds(2.0, 8_000, 1e-6)


if __name__ == "__main__":
    main()
