"""The pieces of the independent check, each against brute force or exact arithmetic."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from accounting.strategies import aimed_problems
from hypothesis import given, settings
from hypothesis import strategies as st

from skldp.accounting._regression_query import RegressionQuery
from skldp.accounting.losses import _certificate as certificate
from skldp.accounting.losses._certificate import (
    Proof,
    Tree,
    certified_loss,
    curved_peaks,
    peaks_at_vertices,
    vertex_maximum,
)
from skldp.accounting.losses._region import UNIT
from skldp.accounting.losses._sampled_law import CHANCE_ERROR, answer_law

INTERVALS = [
    *[(-2.0, -1.0), (-1.0, 0.0), (-1.0, 0.4), (-0.3, 1.4), (0.0, 1.0), (0.0, 0.3), (0.2, 0.7), (0.5, 1.0), (0.5, 3.0)],
    *[(1.0, 2.0), (1.5, 4.0), (0.6, 0.6), (-9.0, 9.0), (-60.0, 50.0), (-1e-9, 1e-9), (-4.0, -0.4), (-0.5, 6.0)],
]
SHARES = [-1e3, -1.0, -0.3, -1e-9, 0.0, 1e-300, 1e-9, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999, 1.0, 1.001, 1.4, 3.0, 1e3]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("epsilon", [1e-6, 0.05, 1.0, 5.0, 12.0])
@pytest.mark.parametrize("kind", ["truncated", "logistic"])
def test_every_one_dimensional_maximum_is_the_true_one(kind, epsilon, sign):
    """At each slope: no point of the interval lies above, and some point lies nearly as high."""
    law = answer_law([RegressionQuery(kind, [1.0], 0.0, (0, 1), epsilon)], [1], np.array([[-100.0], [100.0]]))
    q, t = law.smallest[0] + sign * CHANCE_ERROR, law.reach[0]
    # Slopes about those that g has: at a ramp's start and end, at a logistic function's bend, and along chords.
    steepest = [t / q, t / (q + t), t] if kind == "truncated" else [np.tanh(epsilon / 4)]
    slopes = np.array(sorted({sign * share * one for share in SHARES for one in steepest}))[:, None]
    peaks = certificate._ramp_peaks if kind == "truncated" else certificate._logistic_peaks
    for low, high in INTERVALS:
        w = np.linspace(low, high, 20_001)
        w = np.clip(np.concatenate([w, [0.0, 1.0, -epsilon / 2], 1 / np.abs(slopes[:, 0] + 1e-300) - q / t]), low, high)
        response = np.clip(w, 0, 1) if kind == "truncated" else 1 / (1 + np.exp(-w))
        height = sign * np.log(q + t * response)
        truth = np.array([(height - slope * w).max() for slope in slopes[:, 0]])
        with np.errstate(all="ignore"):
            found = peaks(law, sign, slopes, np.array([[low]]), np.array([[high]]))[:, 0]
        size = 2 + epsilon + np.abs(slopes[:, 0]) * max(abs(low), abs(high))
        assert (found >= truth - 64 * UNIT * size).all()
        # The grid misses the top by less than a step's rise; the tangent's own error is a rounding of the slope.
        step = (high - low) / 20_000
        assert (found <= truth + step**2 * np.maximum(1.0, slopes[:, 0] ** 2) + 1e-12 * size).all()


@pytest.mark.few(8)
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 5.0])
@pytest.mark.parametrize("output", [0, 1])
@pytest.mark.parametrize("growth", ["least", 0.01, "straight", 3.0, 29.9])
def test_every_maximum_of_a_curved_ramp_is_the_true_one(growth, output, epsilon, sign):
    """Convex, concave, and as good as straight between the kinks, where rounding must not decide which."""
    k = {"least": 1e-6, "straight": float(np.log1p(np.expm1(epsilon)))}.get(growth, growth)
    query = RegressionQuery("exponential", [k], 0.0, (1.0, float(np.exp(k))), epsilon)
    law = answer_law([query], [output], np.array([[-100.0], [100.0]]))
    k = float(law.growth[0])
    assert k == (query.growth if output else -query.growth)
    q, t = law.smallest[0] + sign * CHANCE_ERROR, law.reach[0]
    ends = np.array([0.0, 0.3, 1.0])
    steep = t * k * np.exp(k * ends) / (q * np.expm1(k) + t * np.expm1(k * ends))
    slopes = np.array(sorted({sign * share * float(one) for share in SHARES for one in [*steep, t]}))[:, None]
    for low, high in INTERVALS:
        w = np.clip(np.concatenate([np.linspace(low, high, 20_001), np.linspace(0, 1, 2001)]), low, high)
        response = np.expm1(k * np.clip(w, 0, 1)) / np.expm1(k)
        height = sign * np.log(q + t * response)
        truth = np.array([(height - slope * w).max() for slope in slopes[:, 0]])
        with np.errstate(all="ignore"):
            found = curved_peaks(law, sign, slopes, np.array([[low]]), np.array([[high]]))[:, 0]
        size = 2 + epsilon + np.abs(slopes[:, 0]) * max(abs(low), abs(high))
        assert (found >= truth - 64 * UNIT * size).all()
        # A step of the grid below the top, where g bends by at most its steepness times itself or k.
        step = min((high - low) / 20_000, 1 / 2000)
        bend = max(abs(steep)) * (max(abs(steep)) + abs(k))
        assert (found <= truth + step**2 * np.maximum(bend, slopes[:, 0] ** 2) + 1e-11 * size).all()


def exactly(query, output, law, x, shift):
    """q + t S(w + shift) to fifty digits, from the doubles that the law stores."""
    with localcontext() as context:
        context.prec = 60
        w = sum((Fraction(a) * Fraction(v) for a, v in zip(law.coef[0], x, strict=True)), Fraction(law.offset[0]))
        w = Decimal((w + shift).numerator) / Decimal((w + shift).denominator)
        q = 1 / (1 + Decimal(query.epsilon).exp())
        if query.kind == "logistic":
            response = 1 / (1 + (-max(min(w, Decimal(10**4)), Decimal(-(10**4)))).exp())
        else:
            response = min(Decimal(1), max(Decimal(0), w))
        if query.kind == "exponential":
            growth = Decimal(float(law.growth[0]))
            response = ((growth * response).exp() - 1) / (growth.exp() - 1)
        return q + (1 - 2 * q) * response


@pytest.mark.slow
@given(aimed_problems((1, 3), max_size=2), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_what_is_sampled_lies_within_the_stated_errors(problem, seed):
    queries, _, box = problem
    rng = np.random.default_rng(seed)
    points = np.concatenate([box, rng.uniform(size=(3, box.shape[1])) * (box[1] - box[0]) + box[0]])
    for query in {query.key: query for query in queries}.values():
        for output in (0, 1):
            law = answer_law([query], [output], box)
            if not len(law):
                continue
            error = Fraction(law.error[0])
            for x, chance in zip(points, query.thresholds(points), strict=True):
                sampled = Decimal(int(chance) if output else 2**64 - int(chance)) / 2**64
                assert sampled <= exactly(query, output, law, x, error) + Decimal(CHANCE_ERROR)
                assert sampled >= exactly(query, output, law, x, -error) - Decimal(CHANCE_ERROR)


def test_sampled_probabilities_are_off_by_more_than_nothing():
    """The errors that are stated exist: neither may be left out."""
    rng = np.random.default_rng(0)
    query = RegressionQuery("linear", [0.1, 0.7, -0.3], 0.1, (-1.1, 1.3), 3.0)
    far, near = np.array([[-1e3] * 3, [1e3] * 3]), np.array([[-1.0] * 3, [1.0] * 3])
    for box, without_argument in ((near, False), (far, True)):
        law = answer_law([query], [1], box)
        off = []
        for x in rng.uniform(-1, 1, (40, 3)):
            sampled = Decimal(int(query.thresholds(x[None, :])[0])) / 2**64
            off.append(abs(sampled - exactly(query, 1, law, x, Fraction(0))))
        assert max(off) > Decimal(2.0**-60)
        assert max(off) < Decimal(CHANCE_ERROR if without_argument else CHANCE_ERROR + law.error[0])


def test_only_a_sum_that_peaks_at_a_vertex_is_looked_at_there():
    box = np.array([[-1.0, -1.0], [1.0, 1.0]])
    within = RegressionQuery("linear", [0.5, 0.5], 0.0, (-1, 1), 1.0)
    bent = RegressionQuery("truncated", [0.5, 0.5], 0.0, (-0.5, 0.5), 1.0)
    capped = RegressionQuery("truncated", [0.5, 0.5], 0.0, (-1, 0.5), 1.0)
    curved = RegressionQuery("exponential", [0.5, 0.5], 0.0, (np.exp(-1), np.exp(1)), 1.0)
    early, late = (RegressionQuery("logistic", [1.0, 1.0], c, (0, 1), 1.0) for c in (-3.0, 3.0))
    for queries, outputs, sign, expected in (
        ([within], [1], -1, True),
        ([within], [1], 1, False),
        ([bent], [1], -1, False),
        ([capped], [1], -1, True),
        ([capped], [0], -1, False),
        ([late], [1], -1, True),
        ([late], [1], 1, False),
        ([early], [1], 1, True),
        ([early], [1], -1, False),
        ([curved], [0], -1, False),
        ([curved], [1], 1, False),
        ([within, late], [0, 1], -1, True),
        ([within, bent], [0, 1], -1, False),
    ):
        law = answer_law(queries, outputs, box)
        assert peaks_at_vertices(law, sign) is expected
        assert np.isfinite(vertex_maximum(law, sign)[0]) == expected


def test_a_bound_has_every_rounding_in_it():
    """Slopes of any size leave it above the truth by less than the stated roundings, and never below."""
    rng = np.random.default_rng(0)
    box = np.array([[-1.0] * 4, [1.0] * 4])
    queries = [RegressionQuery("linear", rng.uniform(-0.2, 0.2, 4), 0.0, (-1, 1), 0.5) for _ in range(300)]
    law = answer_law(queries, rng.integers(0, 2, 300).tolist(), box)
    x = rng.uniform(-1, 1, 4)
    ends = law.ranges(box[:1], box[1:])
    for size in [1e-3, 1.0, *[1e6] * 10, *[1e12] * 10]:
        slopes = size * rng.normal(size=(1, 300))
        bound = certificate.leaf_bounds(law, 1, law.count, slopes, box[:1], box[1:], *ends)[0]
        # The leaf's formula at one point and one argument per answer, in exact arithmetic: the bound must be above.
        total = Fraction(0)
        for a, o, s, low, high in zip(law.coef, law.offset, slopes[0], *(end[0] for end in ends), strict=True):
            end = Fraction(low if s > 0 else high)
            total += Fraction(s) * (
                sum((Fraction(c) * Fraction(v) for c, v in zip(a, x, strict=True)), Fraction(o)) - end
            )
        values = np.log(law.smallest + CHANCE_ERROR + law.reach * np.where(slopes[0] > 0, ends[0][0], ends[1][0]))
        tilt = [sum((Fraction(s) * Fraction(a[j]) for s, a in zip(slopes[0], law.coef, strict=True))) for j in range(4)]
        rest = sum((abs(one) for one in tilt), Fraction(0)) - sum(
            (one * Fraction(v) for one, v in zip(tilt, x, strict=True)), Fraction(0)
        )
        assert Fraction(bound) >= total + rest + Fraction(float(values.sum())) - Fraction(1, 10**9)


@pytest.mark.parametrize("seed", range(5))
def test_the_leaves_of_any_tree_cover_the_box(seed):
    """Every point lies in a leaf: within its box, and with every argument within its range."""
    rng = np.random.default_rng(seed)
    box = np.array([[-1.0, 0.2, 0.5], [1.0, 0.9, 0.5]])
    queries = [RegressionQuery("linear", rng.uniform(-1, 1, 3), 0.1, (-3, 3), 1.0) for _ in range(4)]
    law = answer_law(queries, [0, 1, 0, 1], box)
    points = np.concatenate([rng.uniform(size=(300, 3)) * (box[1] - box[0]) + box[0], box])
    arguments = points @ law.coef.T + law.offset
    for _ in range(20):
        tree = Tree(3)
        for _cut in range(int(rng.integers(1, 15))):
            leaf = rng.choice(np.flatnonzero(tree.axis[: tree.size] < 0))
            axis = int(rng.integers(0, 7))
            # Also right through a point, and right through its argument.
            place = rng.choice(arguments[:, axis - 3] if axis >= 3 else points[:, axis])
            tree.split(leaf, axis, place + rng.choice([0.0, 0.1]))
        covered, n_leaves = np.zeros(len(points), dtype=bool), 0
        for leaves, low, high, least, most in certificate._leaves(law, tree):
            n_leaves += len(leaves)
            for one in range(len(leaves)):
                within = ((low[one] <= points) & (points <= high[one])).all(axis=1)
                covered |= within & ((least[one] <= arguments) & (arguments <= most[one])).all(axis=1)
        assert covered.all()
        assert n_leaves == (tree.size + 1) // 2


def test_faces_prove_nothing_where_the_sum_peaks_inside():
    query = RegressionQuery("linear", [1.0], 0.0, (-1, 1), 1.0)
    tree = Tree(1, to_the_ends=True)
    tree.split(0, 0, 0.0)
    faces = Proof(tree, lambda leaves, low, high: np.zeros(low.shape))
    # One answer each way: likeliest in the middle, least likely at both ends.
    box = np.array([[-1.0], [1.0]])
    truth = float(np.log(0.25 / (query.probability_of_high([[1.0]]) * query.probability_of_high([[-1.0]])))[0])
    bound = certified_loss([query, query], [1, 0], box, [faces], [faces])
    assert bound >= truth
    # The least value does lie at the ends: there faces and vertices prove more than the answers' own ranges.
    assert bound == pytest.approx(certified_loss([query, query], [1, 0], box, [], [Proof(None, faces.propose)]))
    assert bound < certified_loss([query, query], [1, 0], box, [], [])
