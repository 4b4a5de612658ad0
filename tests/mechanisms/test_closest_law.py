"""The law of a vector on random directions: its chances by enumeration, its mean over seeds, its directions."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from skldp.laws._closest_law import ClosestLaw, _gaussian_rows, _quantiles
from skldp.laws._integers import law_from_dict
from skldp.mechanisms import PrivUnit
from skldp.mechanisms.numeric._bounded_features import PrivUnitBox
from skldp.mechanisms.vector._privunit import PrivUnitBall

TWO_64 = 2**64
SMALL = {
    "ball": ClosestLaw(n_values=2, square_radius=1, n_directions=12, n_close=5, miss_count=2**62),
    "box": ClosestLaw(n_values=2, square_radius=2, n_directions=12, n_close=1, miss_count=2**60 + 1),
    "directions": ClosestLaw(n_values=3, square_radius=0, n_directions=9, n_close=4, miss_count=2**62 + 3),
}
INPUTS = {
    "ball": [(0.0, 0.0), (1.0, 0.0), (-0.6, 0.8), (0.3, -0.1), (-1.0, 0.0)],
    "box": [(0.0, 0.0), (1.0, 1.0), (-1.0, 1.0), (0.2, -0.9)],
    "directions": [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, -0.6, 0.8), (1 / 3, 2 / 3, -2 / 3)],
}


def chances(law, seed, x):
    """The exact chance of each direction of a seed, by every way to draw it."""
    found = dict.fromkeys(range(law.n_directions), Fraction(0))
    n, k = law.n_directions, law.n_close
    for word, n_ranks, count in ((law.miss_count, k, TWO_64 - law.miss_count), (0, n - k, law.miss_count)):
        # A multiple of the number of ranks is drawn again, so that ranks are equally likely.
        assert (
            law.draw(x, iter([seed, word, TWO_64 - TWO_64 % n_ranks, 0])) == law.draw(x, iter([seed, word, 0]))
            if (TWO_64 % n_ranks)
            else True
        )
        for rank in range(n_ranks):
            answer = law.draw(x, iter([seed, word, rank]))
            assert answer // n == seed
            found[answer % n] += Fraction(count, TWO_64 * n_ranks)
    # The last word of the others, and the first one of the close.
    far = law.draw(x, iter([seed, law.miss_count - 1, 0]))
    near = law.draw(x, iter([seed, law.miss_count, 0]))
    assert found[far % n] < found[near % n]
    return found


@pytest.mark.parametrize("name", SMALL)
def test_the_ratio_of_the_chances_of_an_answer_is_epsilon_and_no_more(name):
    law, largest = SMALL[name], Fraction(0)
    for seed in (0, 1, 2**63, TWO_64 - 1):
        tables = [chances(law, seed, x) for x in INPUTS[name]]
        assert all(sum(table.values()) == 1 for table in tables)
        for one, two in itertools.permutations(tables, 2):
            largest = max(largest, *(one[i] / two[i] for i in one))
    own = Fraction((TWO_64 - law.miss_count) * (law.n_directions - law.n_close), law.miss_count * law.n_close)
    assert largest == own
    assert math.log(own) <= law.epsilon <= math.log(own) + 1e-14


@pytest.mark.parametrize("name", SMALL)
def test_closer_directions_are_those_of_exact_cosines(name):
    """Without a sum in doubles: the order of the squares of rational cosines, each with its sign."""
    law = SMALL[name]
    for seed, x in itertools.product((3, 2**40), INPUTS[name]):
        y = [round(one * (2**24 / math.sqrt(law.square_radius or 1))) for one in x]
        if law.square_radius:
            y.append(math.isqrt(max(2**48 - sum(one * one for one in y), 0)))
        rows = _gaussian_rows([(seed, i) for i in range(law.n_directions)], law.dimension)
        exact = []
        for row in rows:
            g = list(map(int, row))
            dot = sum(one * two for one, two in zip(g, y, strict=True))
            exact.append(Fraction(dot * abs(dot), sum(one * one for one in g)))
        order = sorted(range(len(exact)), key=lambda i: (-exact[i], i))
        assert np.argsort(-law.closeness(seed, x), kind="stable").tolist() == order


@pytest.mark.few(1)
@pytest.mark.parametrize("name", SMALL)
def test_estimates_are_without_bias_over_seeds(name):
    """The mean given a seed, which is exact, has no noise but that of the directions."""
    law = SMALL[name]
    n, k, miss = law.n_directions, law.n_close, law.miss_count / TWO_64
    weights = np.append(np.full(k, (1 - miss) / k), np.full(n - k, miss / (n - k)))
    for x in INPUTS[name]:
        means = []
        for seed in range(500):
            order = np.argsort(-law.closeness(seed, x), kind="stable")
            rows = law.rows([seed * n + int(i) for i in order])
            means.append(weights @ rows)
        error = np.std(means, axis=0) / math.sqrt(len(means))
        assert (np.abs(np.mean(means, axis=0) - x) < 5 * error).all()


def test_numbers_of_directions_are_gaussian():
    """The chance of each number is a count of 2^31 integers: moments by all of them, 4 * 10^-7 from those wanted."""
    table = _quantiles().reshape(-1, 1024) / 2.0**16
    sums = np.zeros(3)
    for b in range(32):
        t = np.arange(1 << b - 1 if b else 0, 1 << b, dtype=np.int64) if b <= 11 else None
        if t is None:
            cells, count = np.arange(1024), 2.0 ** (b - 11)
        else:
            cells, count = ((2 * t + 1) * 2.0 ** (10 - b)).astype(int) - 1024, 1.0
        z = table[b, cells]
        sums += [count * (z**power).sum() for power in (0, 2, 4)]
    assert sums[0] == 2**31
    assert sums[1] / sums[0] == pytest.approx(1, abs=4e-7)
    assert sums[2] / sums[0] == pytest.approx(3, abs=4e-6)


def test_directions_are_those_of_their_words():
    """By the distribution of a number, which signs and cells of the tail make up."""
    numbers = _gaussian_rows([(7, i) for i in range(500)], 40).ravel() / 2.0**16
    order = np.sort(norm.cdf(numbers))
    distance = np.abs(order - (np.arange(order.size) + 0.5) / order.size).max()
    # Kolmogorov: beyond 2.7 / sqrt(n) with a probability below a millionth.
    assert distance < 2.7 / math.sqrt(order.size)


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 2.0, 4.0, 8.0])
@pytest.mark.parametrize("d", [2, 3, 128])
def test_a_device_has_the_variance_of_privunit_but_for_a_hundredth(d, epsilon):
    ball, box, directions = PrivUnitBall(d, epsilon, 3.0), PrivUnitBox(epsilon, d), PrivUnit(d, epsilon)
    for law, scale in (
        (ball.device_law, ball.sphere.scale),
        (box.device_law, ball.sphere.scale * math.sqrt(d)),
        (directions.device_law, directions.scale),
    ):
        assert 1 < (law.largest / scale) ** 2 <= 1.01
        assert epsilon * (1 - 1e-9) - 1e-15 < law.epsilon <= epsilon
        assert law_from_dict(law.to_dict()) == law


def test_more_directions_have_less_variance_down_to_that_of_privunit():
    sphere, before = PrivUnit(30, 3.0), math.inf
    for n in (2**8, 2**10, 2**12, 2**16):
        k = round(sphere.cap_probability * n)
        miss = math.ceil(TWO_64 * (n - k) / (k * math.exp(3) + n - k))
        law = ClosestLaw(30, 0, n, k, miss)
        assert sphere.scale < law.largest < before
        before = law.largest
    assert before == pytest.approx(sphere.scale, rel=2e-5)
    assert law.across == pytest.approx(sphere.second_moments()[1], rel=1e-3)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"n_values": 1}, "be of 2 to 65536 numbers"),
        ({"n_values": 2**16 + 1}, "be of 2 to 65536 numbers"),
        ({"square_radius": 3}, "be of 2 to 65536 numbers"),
        ({"n_directions": 2**16 + 1}, "have 2 to 65536 directions"),
        ({"n_values": 2**16, "n_directions": 2**13}, "directions, of 268435456 numbers at most"),
        ({"n_close": 0}, "have 2 to 65536 directions"),
        ({"n_close": 12}, "have 2 to 65536 directions"),
        ({"miss_count": 0}, "have 2 to 65536 directions"),
        ({"miss_count": TWO_64}, "have 2 to 65536 directions"),
        ({"miss_count": 2**63 + 2**61}, "answer a close direction more often"),
    ],
)
def test_integers_without_an_epsilon_are_refused(changes, rule):
    given = SMALL["ball"].to_dict() | {name: str(one) for name, one in changes.items()}
    with pytest.raises(ValueError, match=rule):
        law_from_dict(given)
