"""How means of released products scatter: against the law of every product of four, written out."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from skldp.learning._moment_estimates import ReleasedProducts
from skldp.learning._tasks import Task
from skldp.mechanisms._noise import Noise
from skldp.mechanisms.vector._privunit_products import PrivUnitProducts

RNG = np.random.default_rng(0)
WHITENING = np.array([[3.0, 0.5], [0.0, 2.0]])
COVARIANCE = np.array([[0.09, 0.03], [0.03, 0.2]])


def task(epsilon, radius=12.0):
    matrix = np.zeros((3, 4))
    matrix[0, 0] = 1.0
    matrix[1:, 1:3] = WHITENING
    return Task(epsilon, (-1,) * 3, (1,) * 3, "products", tuple(map(tuple, matrix.tolist())), "vector", radius)


def law(epsilon, kurtosis, shift=(0.1, -0.2), n_people=50):
    functionals = np.eye(3)
    functionals[1:, 1:] = WHITENING
    functionals[1:, 0] = shift
    return ReleasedProducts(task(epsilon), n_people, functionals, COVARIANCE, kurtosis)


def naive(law, a, b, c, d):
    """From the covariance matrix of a whole release, product by product."""
    kurtosis, k = law.kurtosis, 3
    of_u = law.functionals
    # Of u = K (1, x): moments of four, by all pairings of Isserlis about the means.
    mean = of_u[:, 0]
    spread = of_u[:, 1:] @ law.covariance @ of_u[:, 1:].T

    def expect(indices):
        total = 0.0
        for size in (0, 2, 4):
            for chosen in itertools.combinations(range(len(indices)), size):
                rest = math.prod(mean[indices[i]] for i in range(len(indices)) if i not in chosen)
                s = [indices[i] for i in chosen]
                if size == 0:
                    total += rest
                elif size == 2:
                    total += rest * spread[s[0], s[1]]
                else:
                    pairs = spread[s[0], s[1]] * spread[s[2], s[3]] + spread[s[0], s[2]] * spread[s[1], s[3]]
                    total += (1 + kurtosis) * (pairs + spread[s[0], s[3]] * spread[s[1], s[2]])
        return total

    pairs = [(i, j) for i in range(k) for j in range(i, k)]
    weight = [1.0 if i == j else math.sqrt(2) for i, j in pairs]
    radius = law.task.radius
    mechanism = PrivUnitProducts(k, law.task.epsilon)
    isotropic, second, fourth = mechanism.fourth_moments()
    delta = np.eye(k)

    def of_axis(i, j):
        return mechanism.slope * expect((i, j)) / radius + (1 - mechanism.mean_square) / k * delta[i, j]

    def of_two_pairs(i, j, m, n):
        """The mean of a_i a_j a_m a_n, from its three parts."""
        ways = [((i, j), (m, n)), ((i, m), (j, n)), ((i, n), (j, m))]
        both = [one for way in ways for one in (way, way[::-1])]
        total = isotropic * sum(delta[one] * delta[other] for one, other in ways)
        total += second * sum(delta[one] * expect(other) / radius for one, other in both)
        return total + fourth * expect((i, j, m, n)) / radius**2

    covariance = np.array(
        [
            [v * w * (of_two_pairs(*s, *t) - of_axis(*s) * of_axis(*t)) for w, t in zip(weight, pairs, strict=True)]
            for v, s in zip(weight, pairs, strict=True)
        ]
    )
    covariance /= mechanism.slope**2

    def on_release(left, right):
        inverse = np.linalg.inv(of_u)
        left, right = left @ inverse, right @ inverse
        product = (np.outer(left, right) + np.outer(right, left)) / 2
        product[0, 0] = 0.0
        return radius * np.array([product[i, j] * (1.0 if i == j else math.sqrt(2)) for i, j in pairs])

    return on_release(a, b) @ covariance @ on_release(c, d) / law.n_people


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
@pytest.mark.parametrize("kurtosis", [0.0, 0.4])
def test_is_the_law_written_out(epsilon, kurtosis):
    of_mean = law(epsilon, kurtosis)
    a, b, c, d = RNG.normal(size=(4, 6, 3))
    # The functionals that are used: means, products of two columns, and lines.
    a[0] = c[0] = [1, 0, 0]
    b[0] = d[0] = [0, 1, 0]
    a[1, 0] = b[1, 0] = c[1, 0] = d[1, 0] = 0
    expected = [naive(of_mean, *four) for four in zip(a, b, c, d, strict=True)]
    np.testing.assert_allclose(of_mean.covariances(a, b, c, d), expected, rtol=1e-8, atol=1e-14)


@pytest.mark.slow
def test_releases_scatter_so():
    n, n_means, mean = 60, 1_500, np.array([0.05, -0.1])
    asked, functionals = task(2.0, 40.0), np.eye(3)
    functionals[1:, 1:], functionals[1:, 0] = WHITENING, WHITENING @ mean
    of_mean = ReleasedProducts(asked, n, functionals, COVARIANCE / 16)
    rng, inverse, found = np.random.default_rng(1), np.linalg.inv(functionals), []
    for seed in range(n_means):
        x = rng.multivariate_normal(mean, COVARIANCE / 16, n)
        report = asked.release(x, np.zeros(n), Noise(seed.to_bytes(32, "little"), secure=False))
        i, j = np.triu_indices(3)
        told = np.zeros((3, 3))
        told[i, j] = told[j, i] = asked.mean(report) / np.where(i == j, 1, math.sqrt(2))
        told[0, 0] = 1.0
        moments = inverse @ told @ inverse.T
        found.append([moments[0, 1], moments[1, 1], moments[1, 2]])
    unit = np.eye(3)
    a, b = unit[[0, 1, 1]], unit[[1, 1, 2]]
    expected = np.diag(of_mean.covariances(a[:, None], b[:, None], a[None], b[None]))
    # A variance of 1,500 has a relative error of the root of two over that.
    assert (np.abs(np.var(found, axis=0) / expected - 1) < 5 * math.sqrt(2 / n_means)).all()


# At 1,000, noise is below the precision of doubles, and the bias is all that is left.
@pytest.mark.parametrize("epsilon", [2.0, 1000.0])
def test_what_is_cut_off_counts_as_an_error_in_units_of_the_noise(epsilon):
    plain, vectors, bias = law(epsilon, 0.5), RNG.normal(size=(4, 3)), 0.2
    cut = dataclasses.replace(plain, cut=bias / plain.task.standard_error(plain.n_people))
    found = (cut.covariances(*vectors) - plain.covariances(*vectors)) / bias**2
    a, b, c, d = vectors @ np.linalg.inv(plain.functionals)
    expected = ((a @ c) * (b @ d) + (a @ d) * (b @ c)) / 2 - a[0] * b[0] * c[0] * d[0]
    assert found == pytest.approx(expected, rel=1e-3)
