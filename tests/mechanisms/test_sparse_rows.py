"""Rows of few non-zero values: their domain, and how far a projection stretches their differences."""

import itertools
import math

import numpy as np
import pytest
from scipy import sparse

from skldp import RandomProjectionPrivatizer
from skldp.domains._columns import domain_from_json
from skldp.domains._sparse_rows import SparseRows
from skldp.mechanisms.vector._projected_release import ProjectedRelease
from skldp.mechanisms.vector._projection import (
    RandomProjection,
    coherent_stretch,
    degree_of,
    next_prime,
    polynomial_rows,
    square_of_prime,
    support_stretch,
)


def test_the_smallest_values_of_a_full_row_become_nothing():
    domain = SparseRows(5, 2)
    rows = np.array([[1.0, -3.0, 2.0, 0.0, 2.0], [0.0, 0.0, 5.0, 0.0, 0.0], [1.0, 1.0, -1.0, 1.0, 0.0]])
    inside, n_moved = domain.clip(rows)
    np.testing.assert_array_equal(inside, [[0, -3, 2, 0, 0], [0, 0, 5, 0, 0], [1, 1, 0, 0, 0]])
    assert n_moved == 4
    for layout in (sparse.csr_matrix, sparse.csr_array):
        stored, n_stored = domain.clip(layout(rows))
        np.testing.assert_array_equal(stored.toarray(), inside)
        assert n_stored == 4
        assert stored.nnz == 5
    # What lies within is handed on as it is, and what is given is never written to.
    assert domain.clip(inside).rows is inside
    assert rows[0, 4] == 2.0


def test_zeros_that_are_stored_are_no_values():
    rows = sparse.csr_matrix((np.array([0.0, 0.0, 7.0, 1.0]), np.array([0, 1, 3, 4]), np.array([0, 4])), shape=(1, 5))
    inside, n_moved = SparseRows(5, 2).clip(rows)
    np.testing.assert_array_equal(inside.toarray(), [[0, 0, 0, 7, 1]])
    assert n_moved == 0


def test_a_radius_holds_for_what_is_left():
    inside, n_moved = SparseRows(3, 1, radius=2.0).clip(np.array([[3.0, 4.0, 0.0], [0.0, 1.0, 0.0]]))
    np.testing.assert_allclose(inside, [[0, 2, 0], [0, 1, 0]], rtol=1e-12)
    assert n_moved == 2


@pytest.mark.parametrize("radius", [None, 3.0])
def test_the_domain_has_a_document(radius):
    domain = SparseRows(7, 3, radius)
    assert domain_from_json(domain.to_json()) == domain
    with pytest.raises(ValueError, match="contains NaN"):
        domain.clip(np.full((1, 7), np.nan))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((4, 5), "max_nonzeros must .* to 4"), ((4, 0), "whole"), ((4, 2, -1.0), "radius")],
)
def test_refuses_what_is_no_set_of_sparse_rows(arguments, message):
    with pytest.raises(ValueError, match=message):
        SparseRows(*arguments)


@pytest.mark.parametrize(("prime", "n_columns"), [(3, 27), (5, 125), (5, 126), (7, 343), (2, 4)])
def test_two_polynomials_meet_as_often_as_their_degree_and_no_more(prime, n_columns):
    rows = polynomial_rows(0, n_columns, prime**2)
    assert (np.arange(prime)[:, None] == rows // prime).all()
    shared = (rows[:, :, None] == rows[:, None, :]).sum(axis=0)
    np.fill_diagonal(shared, 0)
    degree = degree_of(n_columns, prime)
    assert shared.max() == min(degree, prime - 1)
    # A block of columns is that part of all.
    np.testing.assert_array_equal(polynomial_rows(2, n_columns - 2, prime**2), rows[:, 2:])


def test_a_polynomial_projection_is_one_of_the_sparse_kind():
    projection = RandomProjection(2_000, 121, kind="polynomial")
    matrix = projection.matrix
    assert matrix.nnz == 2_000 * 11
    np.testing.assert_allclose(np.asarray(matrix.multiply(matrix).sum(axis=0)).ravel(), 1, rtol=1e-6)
    assert abs((matrix.data > 0).mean() - 0.5) < 0.02
    bags = sparse.random(30, 2_000, density=0.01, format="csr", random_state=0)
    np.testing.assert_allclose(projection.apply(bags), (bags @ matrix.T).toarray(), atol=1e-6)
    np.testing.assert_allclose(projection.apply(bags.toarray()), (bags @ matrix.T).toarray(), atol=1e-6)
    np.testing.assert_allclose(projection.gram, (matrix @ matrix.T).toarray(), atol=1e-4)


def largest_stretch(matrix, k):
    """Over all sets of k columns."""
    gram = (matrix.T @ matrix).astype(np.float64)
    return math.sqrt(
        max(np.linalg.eigvalsh(gram[np.ix_(c, c)])[-1] for c in itertools.combinations(range(len(gram)), k))
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sparse", "polynomial"])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_no_sparse_vector_is_stretched_by_more_than_the_bound(kind, k):
    for seed in range(3):
        projection = RandomProjection(27, 9, seed=seed, kind=kind)
        dense = np.asarray(projection.matrix.todense())
        found = largest_stretch(dense, k)
        assert found <= projection.sparse_bound(k)
        if k == 1:
            assert projection.sparse_bound(k) == pytest.approx(1.0, rel=1e-6)
    if kind == "polynomial":
        # Of degree 2 in 3 bands: 1 and k - 1 times two thirds.
        assert projection.sparse_bound(k) == pytest.approx(math.sqrt(1 + (k - 1) * 2 / 3), rel=1e-6)
    else:
        assert projection.sparse_bound(k) == pytest.approx(math.sqrt(k), rel=1e-6)


def test_attack_columns_that_share_most_stay_within_the_bound():
    """Columns chosen one after the other to be stretched most, and the vector that stretches most."""
    projection = RandomProjection(5_000, 121, seed=3, kind="polynomial")
    matrix = projection.matrix.tocsc()
    for k in (4, 20):
        chosen = [0]
        while len(chosen) < k:
            overlap = np.asarray(abs(matrix).T @ abs(matrix[:, chosen]).sum(axis=1)).ravel()
            overlap[chosen] = -1
            chosen.append(int(overlap.argmax()))
        part = abs(matrix[:, chosen]).toarray().astype(np.float64)
        assert 1 < np.linalg.norm(part, 2) <= projection.sparse_bound(k)


@pytest.mark.parametrize(("d", "m", "k", "delta"), [(12, 20, 2, 0.2), (9, 4, 3, 0.5), (5, 6, 5, 0.3)])
def test_a_gaussian_matrix_fails_less_often_than_delta(d, m, k, delta):
    bound = support_stretch(m, d, k, delta)
    failures = [largest_stretch(RandomProjection(d, m, seed=s).matrix, k) > bound for s in range(60) if m <= d]
    rng = np.random.default_rng(0)
    failures += [largest_stretch(rng.normal(size=(m, d)) / math.sqrt(m), k) > bound for _ in range(60)]
    assert np.mean(failures) <= delta
    third = 1 + (bound - 1) / 3
    assert np.mean([largest_stretch(rng.normal(size=(m, d)) / math.sqrt(m), k) > third for _ in range(20)]) > 0


def test_the_union_bound_counts_every_support():
    m, d, k, delta = 50, 200, 6, 1e-6
    bound = support_stretch(m, d, k, delta)
    t = (bound - 1) * math.sqrt(m) - math.sqrt(k)
    assert math.comb(d, k) * math.exp(-t * t / 2) <= delta < 100 * math.comb(d, k) * math.exp(-t * t / 2)
    assert support_stretch(m, d, d, delta) == pytest.approx(
        1 + (math.sqrt(d) + math.sqrt(-2 * math.log(delta))) / math.sqrt(m)
    )
    for bad in (0.0, 1.0):
        with pytest.raises(ValueError, match="delta"):
            support_stretch(m, d, k, bad)
    assert coherent_stretch(1, 7, 3, 1 / math.sqrt(7)) == pytest.approx(1.0)


def test_the_guarantee_is_about_the_difference_of_two_rows():
    release = ProjectedRelease(
        RandomProjection(5_000, 121, kind="polynomial"), 5.0, sensitivity="sparse", max_nonzeros=10, radius=2.0
    )
    assert release.stretch == release.projection.sparse_bound(20)
    assert release.inner.sensitivity == pytest.approx(release.stretch, rel=1e-9)
    guarantee = release.guarantee()
    assert (guarantee.unit, guarantee.delta, guarantee.diameter) == ("distance", 0.0, 4.0)
    assert "at most 10 non-zero values" in guarantee.basis
    drawn = ProjectedRelease(
        RandomProjection(5_000, 121), 5.0, sensitivity="sparse", max_nonzeros=10, stated_delta=1e-6
    )
    assert drawn.guarantee().delta == drawn.delta == 1e-6
    assert drawn.stretch == support_stretch(121, 5_000, 20, 1e-6)
    assert "chance of delta" in drawn.guarantee().basis
    assert release.domain == SparseRows(5_000, 10, 2.0)


def test_a_fuller_row_is_released_as_its_largest_values(fixed_noise):
    X = np.zeros((2, 300))
    X[:, :4] = [4.0, 3.0, 2.0, 1.0]
    X[1, 3:] = 0.5
    privatizer = RandomProjectionPrivatizer(
        1e6, projection="polynomial", sensitivity="sparse", max_nonzeros=4, transform_noise=False
    )
    clean = RandomProjectionPrivatizer(
        1e6, projection="polynomial", sensitivity="sparse", max_nonzeros=300, transform_noise=False
    )
    with pytest.warns(UserWarning, match="outside"):
        released = privatizer.fit(X).transform(X)
    first = np.zeros((2, 300))
    first[:, :3], first[0, 3], first[1, 3] = X[:, :3], 1.0, 0.5
    np.testing.assert_allclose(released, clean.fit(first).transform(first), atol=1e-9)


def test_auto_takes_the_next_square_of_a_prime():
    X = sparse.csr_matrix((3, 1_000_000))
    privatizer = RandomProjectionPrivatizer(1.0, projection="polynomial", sensitivity="sparse", max_nonzeros=10)
    assert privatizer.fit(X).n_components_ == 121
    assert [next_prime(n) for n in (0, 2, 4, 9, 24)] == [2, 2, 5, 11, 29]
    # Or the largest for which there are enough columns.
    assert [square_of_prime(64, most) for most in (64, 48, 24, 5, 200)] == [49, 25, 9, 4, 121]
    assert privatizer.fit(np.zeros((3, 70))).n_components_ == 49


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RandomProjection(500, 120, kind="polynomial"), "squared prime.*got 120"),
        (lambda: RandomProjection(500, 16, kind="polynomial"), "as 25; got 16"),
        (lambda: RandomProjection(20, 4, kind="orthonormal").sparse_bound(3), "no bound for sparse"),
        (lambda: released("sparse", None), "need each other"),
        (lambda: released("spectral", 3), "need each other"),
        (lambda: released("sparse", 30), "from 1 to 20"),
        (lambda: released("sparse", 3, vocabulary=np.eye(20)), "different domains"),
        (lambda: released("sparse", 3, kind="orthonormal"), "another projection"),
        (lambda: released("sparse", 3), "stated_delta"),
    ],
)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def released(sensitivity, max_nonzeros, kind="gaussian", **parameters):
    return ProjectedRelease(
        RandomProjection(20, 4, kind=kind), 1.0, sensitivity=sensitivity, max_nonzeros=max_nonzeros, **parameters
    )
