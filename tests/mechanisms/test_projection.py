import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import THRESHOLD, chi_square_pvalue, ks_pvalue, seeded
from projection_bounds import (
    failures,
    finite_set_width,
    l1_ball_width,
    simplex_width,
    sparse_width,
)
from scipy import sparse, stats

from skldp.mechanisms._noise import noise_from
from skldp.mechanisms.vector import _projection as module
from skldp.mechanisms.vector._multivariate_laplace import MultivariateLaplace
from skldp.mechanisms.vector._projected_release import ProjectedRelease
from skldp.mechanisms.vector._projection import (
    RandomProjection,
    default_width,
    gordon_delta,
    projected_dimension,
    union_delta,
)

KINDS = ["gaussian", "sparse", "orthonormal"]


def test_dimensions_of_the_paper():
    assert [projected_dimension(300, beta, 1e-6) for beta in (0.93, 0.66, 0.468)] == [50, 100, 198]
    assert projected_dimension(20, 0.1, 1e-6) == 20
    assert projected_dimension(10**6, 0.9, 1e-6, width=0.0) == round(math.log(1e6) / 0.81)
    assert projected_dimension(1, 0.5, 0.5) == 1


@pytest.mark.parametrize("bad", [(0, 0.5, 0.5), (5, 0, 0.5), (5, 1, 0.5), (5, 0.5, 0), (5, 0.5, 1), (5, math.nan, 0.5)])
def test_refuses_bad_parameters_of_the_dimension(bad):
    with pytest.raises(ValueError, match="must"):
        projected_dimension(*bad)
    with pytest.raises(ValueError, match="width"):
        projected_dimension(5, 0.5, 0.5, width=-1.0)


def test_gaussian_entries_follow_their_law_and_the_seed():
    matrix = RandomProjection(6_000, 30, seed=5).matrix
    assert matrix.shape == (30, 6_000)
    assert ks_pvalue(matrix * math.sqrt(30), stats.norm.cdf) > THRESHOLD
    np.testing.assert_array_equal(matrix, RandomProjection(6_000, 30, seed=5).matrix)
    assert (matrix != RandomProjection(6_000, 30, seed=6).matrix).mean() > 0.99


def test_sparse_columns_have_unit_norm_and_uniform_places():
    projection = RandomProjection(9_000, 25, kind="sparse")
    matrix = projection.matrix.tocoo()
    counts = np.bincount(matrix.col, minlength=9_000)
    assert (counts == 5).all()
    np.testing.assert_allclose(
        np.asarray(projection.matrix.multiply(projection.matrix).sum(axis=0)).ravel(), 1, rtol=1e-6
    )
    assert chi_square_pvalue(np.bincount(matrix.row, minlength=25), np.full(25, 1 / 25)) > THRESHOLD
    assert stats.binomtest(int((matrix.data > 0).sum()), matrix.nnz, 0.5).pvalue > THRESHOLD


def test_orthonormal_rows():
    matrix = RandomProjection(200, 50, kind="orthonormal").matrix.astype(float)
    np.testing.assert_allclose(matrix @ matrix.T, 4 * np.eye(50), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_matrix_that_is_not_kept_is_the_same_one(kind, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(7, 10_000)) * (rng.random((7, 10_000)) < 0.01)
    kept = RandomProjection(10_000, 6, seed=1, kind=kind)
    dense, thin = kept.apply(X), kept.apply(sparse.csr_array(X))
    np.testing.assert_allclose(dense, X @ np.asarray(kept.matrix.todense() if kind == "sparse" else kept.matrix).T)
    np.testing.assert_allclose(thin, dense)
    if kind != "gaussian":
        return
    bound = kept.spectral_bound()
    monkeypatch.setattr(module, "_KEPT", 0)
    made = RandomProjection(10_000, 6, seed=1)
    assert not made.kept
    np.testing.assert_allclose(made.apply(X), dense)
    np.testing.assert_allclose(made.apply(sparse.csc_matrix(X)), dense)
    assert made.spectral_bound() == pytest.approx(bound, rel=1e-12)
    with pytest.raises(ValueError, match="must have at most"):
        RandomProjection(10_000, 6, kind="orthonormal")


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 120), st.integers(1, 60), st.sampled_from(KINDS), st.integers(0, 2**32 - 1))
def test_attack_no_pair_is_stretched_by_more_than_the_spectral_bound(d, m, kind, seed):
    m = min(m, d)
    projection = RandomProjection(d, m, seed=seed, kind=kind)
    bound = projection.spectral_bound()
    matrix = np.asarray(projection.matrix.todense() if kind == "sparse" else projection.matrix, dtype=float)
    # The worst pair lies along the first right singular vector; random ones are milder.
    worst = np.linalg.svd(matrix)[2][0]
    pairs = np.vstack([np.random.default_rng(seed).normal(size=(50, d)), worst])
    stretch = np.linalg.norm(pairs @ matrix.T, axis=1) / np.linalg.norm(pairs, axis=1)
    assert stretch.max() <= bound
    assert stretch.max() == pytest.approx(bound, rel=1e-6)
    if kind == "orthonormal":
        assert bound == pytest.approx(math.sqrt(d / m), rel=1e-5)


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 30), st.integers(1, 10), st.sampled_from([0.0, 1e3, 1e7]), st.integers(0, 2**32 - 1))
def test_the_vocabulary_bound_is_that_of_the_plain_loop(n, d, offset, seed):
    rng = np.random.default_rng(seed)
    # Far from the origin the matrix product loses every digit of a distance; there are twins as well.
    words = np.vstack([rng.normal(size=(n, d)), np.zeros((2, d))]) + offset
    projection = RandomProjection(d, min(d, 3), seed=seed)
    plain = 0.0
    for i in range(n):
        for j in range(n + 2):
            difference = words[i] - words[j]
            if difference.any():
                plain = max(plain, np.linalg.norm(projection.matrix @ difference) / np.linalg.norm(difference))
    bound = projection.vocabulary_bound(words)
    assert plain <= bound
    assert bound == pytest.approx(plain, rel=1e-6)


def test_a_vocabulary_of_one_word_says_nothing():
    with pytest.raises(ValueError, match="at least two rows"):
        RandomProjection(3, 2).vocabulary_bound(np.ones((4, 3)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, 4), "n_components must be a whole number from 1 to 3"),
        ((0, 1), "n_features"),
        ((3, 0), "n_components"),
        ((3, 2, -1), "seed"),
        ((3, 2, True), "seed"),
        ((3, 2, 0, "dense"), "kind"),
    ],
)
def test_refuses_a_bad_projection(arguments, message):
    with pytest.raises(ValueError, match=message):
        RandomProjection(*arguments)


def test_gordon_delta_bounds_the_true_probability():
    d, m, beta = 12, 40, 0.9
    # All directions: the width of the sphere is below sqrt(d), and the stretch is the largest singular value.
    stretched = [
        np.linalg.norm(np.random.default_rng(s).normal(size=(m, d)) / math.sqrt(m), 2) > 1 + beta for s in range(1_000)
    ]
    bound = gordon_delta(m, beta, math.sqrt(d))
    assert stats.binomtest(sum(stretched), 1_000, bound, alternative="greater").pvalue > THRESHOLD
    assert gordon_delta(4, 0.1, 3.0) == 1.0
    # With the paper's m the failure probability is the root of delta (but for the rounding of m).
    m = (default_width(300) + math.sqrt(math.log(1e6))) ** 2 / 0.5**2
    assert gordon_delta(m, 0.5, default_width(300)) == pytest.approx(1e-3, rel=1e-9)


@pytest.mark.parametrize(("m", "beta"), [(1, 0.5), (2, 0.1), (50, 0.93), (89, 0.7), (198, 0.468), (1_000, 0.05)])
@pytest.mark.parametrize("n_vectors", [2, 3_143, 400_000])
def test_union_delta_lies_just_above_the_chi_square_tail_of_all_pairs(m, beta, n_vectors):
    pairs = Fraction(n_vectors * (n_vectors - 1), 2)
    with localcontext(prec=60):
        t = Decimal(m) * (1 + Decimal(beta)) ** 2 / 2
        terms = [t**j / math.factorial(j) for j in range((m + 1) // 2)]
        tail = float(Fraction((-t).exp() * sum(terms)) * pairs)
    assert min(1.0, tail) <= union_delta(m, beta, n_vectors) <= min(1.0, tail * (1 + 1e-7))
    # Odd m has the next even one's tail, which is above its own.
    assert stats.chi2.sf(m * (1 + beta) ** 2, m) * float(pairs) * (1 - 1e-9) <= tail


def test_union_delta_is_never_rounded_to_nothing_and_refuses_what_is_no_set():
    assert 0 < union_delta(100_000, 0.9, 10) < 1e-300
    for arguments in ((0, 0.5, 10), (10, 0.0, 10), (10, 0.5, 1), (10, 0.5, 2.5)):
        with pytest.raises(ValueError, match="must be"):
            union_delta(*arguments)


def test_the_union_bound_promises_for_a_vocabulary_of_a_size():
    gaussian, words = RandomProjection(80, 20), np.ones((30, 80))
    release = ProjectedRelease(gaussian, 2.0, sensitivity="union", vocabulary_size=3_143)
    assert (release.stretch, release.inner.sensitivity) == (1.9, pytest.approx(1.9, rel=1e-9))
    assert release.guarantee().delta == union_delta(20, 0.9, 3_143)
    assert "3,143 vectors" in release.guarantee().basis
    assert ProjectedRelease(gaussian, 2.0, sensitivity="union", vocabulary_size=9, noise="privunit").delta == 0
    for arguments in ({}, {"vocabulary_size": 1}, {"vocabulary_size": 29, "vocabulary": words}):
        with pytest.raises(ValueError, match="vocabulary_size must be"):
            ProjectedRelease(gaussian, 2.0, sensitivity="union", **arguments)
    with pytest.raises(ValueError, match="holds for a projection of kind 'gaussian'"):
        ProjectedRelease(RandomProjection(80, 20, kind="sparse"), 2.0, sensitivity="union", vocabulary_size=9)


def test_widths():
    points = np.vstack([np.eye(30), -np.eye(30)])
    width, error = finite_set_width(points, n_draws=4_000, seed=1)
    assert abs(width - l1_ball_width(30)) < 5 * error
    width, error = finite_set_width(np.eye(30), n_draws=4_000)
    assert abs(width - simplex_width(30)) < 5 * error
    assert l1_ball_width(10**6, 3.0) == pytest.approx(3 * l1_ball_width(10**6))
    assert l1_ball_width(10**6) <= math.sqrt(2 * math.log(2e6))
    assert simplex_width(1) == pytest.approx(0, abs=1e-9)
    # The paper says that a set of p points has a squared width of at most ln p: 6.9.
    assert simplex_width(1_000) ** 2 == pytest.approx(10.507, abs=1e-3)
    assert sparse_width(1_000, 10) == math.sqrt(10 * math.log(100))
    assert sparse_width(5, 5) == 0


@pytest.mark.few(1)
@pytest.mark.filterwarnings("ignore::skldp.exceptions.PrivacyGuaranteeWarning")
@pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize(
    ("d", "m", "beta", "delta", "epsilon"),
    [
        (200, 100, 0.2, 0.05, 1e6),
        (300, projected_dimension(300, 0.5, 0.05), 0.5, 0.05, 1e5),
        (40, 20, 0.9, 0.1, 5.0),
        (10, 3, 0.5, 0.05, 1e4),
        (10, 1, 0.5, 0.2, 100.0),
        (3, 1, 0.1, 0.5, 1.0),
    ],
)
def test_bounds_fail_no_more_often_than_they_state(d, m, beta, delta, epsilon):
    _, here = failures(d, m, beta, delta, epsilon)
    assert (stats.binom.sf(here - 1, 300, delta) > THRESHOLD).all()


@pytest.mark.filterwarnings("ignore::skldp.exceptions.PrivacyGuaranteeWarning")
@pytest.mark.filterwarnings("ignore::skldp.exceptions.SeededNoiseWarning")
def test_the_propositions_as_printed_fail_where_noise_is_little():
    """Attack: more than the stated 5% of draws, at the figures of the pages."""
    printed = [failures(200, m, 0.2, 0.05, 1e6, n_draws=50)[0] for m in (8, 100)]
    above = stats.binom.sf(np.array(printed) - 1, 50, 0.05) < THRESHOLD
    assert above.tolist() == [[True, True, True], [False, True, False]]


def test_guarantees_of_the_four_sensitivities():
    words = np.random.default_rng(0).normal(size=(30, 80))
    gaussian, orthonormal = RandomProjection(80, 20), RandomProjection(80, 20, kind="orthonormal")
    gordon = ProjectedRelease(gaussian, 2.0, stated_delta=1e-6, radius=1.5)
    assert (gordon.stretch, gordon.guarantee().epsilon, gordon.guarantee().plain_epsilon) == (1.9, 2.0, 6.0)
    assert gordon.guarantee().delta == gordon_delta(20, 0.9, default_width(80))
    figures = dict(gordon.guarantee().figures)
    assert figures["delta as published"] == 1e-6
    assert figures["for every two vectors, without delta"] == 2.0 * gaussian.spectral_bound() / 1.9
    for release, stretch in (
        (ProjectedRelease(gaussian, 2.0, sensitivity="spectral"), gaussian.spectral_bound()),
        (ProjectedRelease(orthonormal, 2.0, sensitivity="orthonormal"), 2.0),
        (
            ProjectedRelease(gaussian, 2.0, sensitivity="vocabulary", vocabulary=words),
            gaussian.vocabulary_bound(words),
        ),
    ):
        assert release.stretch == pytest.approx(stretch, rel=1e-6)
        guarantee = release.guarantee()
        assert (guarantee.epsilon, guarantee.delta, guarantee.unit) == (2.0, 0.0, "distance")
        assert release.inner.sensitivity == pytest.approx(release.stretch, rel=1e-9)
    diameter = max(np.linalg.norm(a - b) for a in words for b in words)
    assert ProjectedRelease(gaussian, 2.0, vocabulary=words).guarantee().diameter >= diameter
    for word in words:
        # Two opposite words are as far apart as the bound says, and rounding must not bring it below.
        declared = ProjectedRelease(gaussian, 2.0, vocabulary=np.stack([word, -word])).guarantee().diameter
        assert Fraction(declared) ** 2 >= sum((2 * Fraction(x)) ** 2 for x in word.tolist())
    assert "multivariate Laplace, rounded to a lattice, of rows projected" in gordon.guarantee().basis
    unit = ProjectedRelease(RandomProjection(80, 20, kind="sparse"), 2.0, noise="privunit").guarantee()
    assert (unit.unit, unit.delta) == ("record", 0.0)
    assert 2.0 * (1 - 1e-9) < unit.epsilon <= 2.0


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"sensitivity": "jl"}, "sensitivity must be one of"),
        ({"noise": "gauss"}, "noise must be"),
        ({"beta": 1.0}, "beta must"),
        ({"epsilon": 0}, "epsilon must"),
        ({"sensitivity": "vocabulary"}, "needs a vocabulary"),
        ({"sensitivity": "orthonormal"}, "kind 'orthonormal'"),
        ({"projection": RandomProjection(9, 4, kind="sparse")}, "kind 'gaussian'"),
        ({"projection": RandomProjection(9, 1), "noise": "privunit"}, "dimension"),
    ],
)
def test_refuses_what_does_not_go_together(kwargs, message):
    with pytest.raises(ValueError, match=message):
        ProjectedRelease(**({"projection": RandomProjection(9, 4), "epsilon": 1.0} | kwargs))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("noise", ["laplace", "privunit"])
def test_a_row_whose_projection_overflows_is_moved_within_the_radius_like_any_other(dtype, kind, noise):
    # A NaN would tell it from all the others, whatever epsilon is.
    release = ProjectedRelease(RandomProjection(300, 4), 5.0, sensitivity="spectral", noise=noise, radius=1.0)
    rows = np.full((2, 300), np.finfo(dtype).max / 2, dtype=dtype)
    rows[0] = 0.01
    projected, moved = release.project(kind(rows))
    assert np.isfinite(projected).all()
    assert moved == 1
    assert np.linalg.norm(projected[1].astype(np.float64)) <= release.stretch * (1 + 1e-6)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix])
def test_sparse_rows_are_moved_and_released_like_dense_ones(kind):
    rows = np.random.default_rng(0).normal(size=(50, 30)) * (np.random.default_rng(1).random((50, 30)) < 0.3)
    rows[3] = 0
    for release in (
        ProjectedRelease(RandomProjection(30, 4), 2.0, radius=1.0),
        ProjectedRelease(RandomProjection(30, 4, kind="sparse"), 2.0, noise="privunit", radius=2.0),
        ProjectedRelease(RandomProjection(30, 4), 2.0, vocabulary=rows[:9], sensitivity="vocabulary"),
    ):
        expected, found = release.release(rows, seeded(2)), release.release(kind(rows), seeded(2))
        assert found.n_moved == expected.n_moved > 0
        np.testing.assert_allclose(found.rows, expected.rows, atol=2e-3)


def test_an_entry_that_a_matrix_holds_twice_is_moved_by_its_sum():
    twice = sparse.csr_matrix((np.array([3.0, 4.0]), np.array([3, 3]), np.array([0, 2])), shape=(1, 5))
    release = ProjectedRelease(RandomProjection(5, 2), 2.0, radius=1.0)
    unit = np.zeros((1, 5))
    unit[0, 3] = 1
    np.testing.assert_allclose(release.project(twice).rows, release.project(unit).rows)
    assert twice.nnz == 2


def test_a_phi_that_is_not_kept_is_made_once_for_a_release(monkeypatch):
    monkeypatch.setattr(module, "_KEPT", 0)
    release, made = ProjectedRelease(RandomProjection(60, 5), 2.0), []
    fresh = RandomProjection._fresh_blocks
    monkeypatch.setattr(RandomProjection, "_fresh_blocks", lambda self: made.append(1) or fresh(self))
    monkeypatch.setattr(ProjectedRelease, "block_cells", 20)
    rows = np.random.default_rng(0).normal(size=(4_000, 60))
    assert release.tasks(4_000) == [slice(0, 4_000)]
    for each in (rows, sparse.csr_matrix(rows)):
        made.clear()
        release.release(each, seeded(1))
        assert len(made) == 1


def test_the_second_moments_of_what_was_released_give_those_of_the_projected_rows():
    rows = np.random.default_rng(0).normal(size=(60_000, 8)) / 3
    for release in (
        ProjectedRelease(RandomProjection(8, 3), 2.0, radius=1.0),
        ProjectedRelease(RandomProjection(8, 3), 8.0, noise="privunit"),
    ):
        clean, released = release.encode(rows).rows, release.release(rows, seeded(3)).rows
        outer, noisy = (part[:, :, None] * part[:, None, :] for part in (clean, released))
        found = release.original_second_moment(noisy.mean(axis=0), released.mean(axis=0))
        gain = release.original_second_moment(np.eye(3), np.zeros(3)) - release.original_second_moment(
            np.zeros((3, 3)), np.zeros(3)
        )
        error = (noisy * gain[0, 0] - outer).std(axis=0) / math.sqrt(len(rows))
        assert (np.abs(found - outer.mean(axis=0)) < 6 * error).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("noise_kind", ["laplace", "privunit"])
def test_what_overflows_although_it_is_within_the_radius_is_never_nan(dtype, noise_kind):
    most = float(np.finfo(dtype).max)
    radius = most / (8 if noise_kind == "laplace" else 16)
    release = ProjectedRelease(RandomProjection(300, 4), 5.0, sensitivity="spectral", noise=noise_kind, radius=radius)
    rows = np.zeros((3, 300), dtype=dtype)
    rows[0], rows[1], rows[2, 0] = most / 200, -most / 200, most / 9
    for kind in (np.asarray, sparse.csr_matrix):
        assert not np.isnan(release.release(kind(rows), seeded(4)).rows).any()
        assert not np.isnan(release.encode(kind(rows)).rows).any()


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_a_projection_beyond_single_precision_is_released_like_any_other(kind):
    # The declared radius is beyond it as well, so that the row is not shortened, and what it is projected to is.
    release = ProjectedRelease(RandomProjection(300, 4), 5.0, sensitivity="spectral", noise="privunit", radius=1e40)
    row = np.sign(release.projection.matrix[:1]) * np.finfo(np.float32).max / 2
    released = release.release(kind(row.astype(np.float32)), seeded(5))
    assert released.n_moved == 0
    assert not np.isnan(released.rows).any()


@pytest.mark.parametrize("kind", ["gaussian", "sparse", "orthonormal"])
def test_rounding_of_single_precision_rows_costs_no_more_than_the_diameter(kind):
    """The attack: rows along the first singular vector, whose projections rounding moves apart."""
    projection = RandomProjection(300, 4, kind=kind)
    release = ProjectedRelease(projection, 1.0, sensitivity="spectral", radius=1.0)
    matrix = projection.matrix
    first = np.linalg.svd(np.asarray(matrix.todense() if sparse.issparse(matrix) else matrix, dtype=float))[2][0]
    rows = (1.001 * first * (1 + 1e-7 * np.random.default_rng(0).standard_normal((300, 300)))).astype(np.float32)
    images, opposite = release.project(rows).rows, release.project(-rows).rows
    assert images.dtype == np.float64
    # Twice d sums with half a unit in the last place each, of columns of norm 1.
    assert release.inner.sensitivity >= release.stretch * (1 + 2.0**-52 * 300**1.5)
    costs = np.linalg.norm(images - opposite, axis=1) / release.inner.sensitivity
    assert 1.9999 < costs.max() <= release.guarantee().plain_epsilon == 2.0
    assert release.release(rows, noise_from()).rows.dtype == np.float32


@pytest.mark.parametrize(
    "mechanism",
    [
        MultivariateLaplace(50, 1.0, radius=1e7),
        ProjectedRelease(RandomProjection(50, 3, kind="orthonormal"), 1.0, sensitivity="orthonormal", radius=1e7),
    ],
    ids=lambda one: type(one).__name__,
)
def test_rows_of_single_precision_are_clipped_and_projected_in_double_precision(mechanism, monkeypatch):
    """The attack: two rows near the radius, which rounding to single precision moved apart."""
    drawn = []
    inner = getattr(mechanism, "inner", mechanism)
    monkeypatch.setattr(type(inner), "_draw", lambda self, rows, noise, out, workspace: drawn.append(rows.copy()))
    rows = np.full((2, 50), 1e7 / 7, dtype=np.float32)
    rows[0, 0], rows[1, 0] = 0, 1
    mechanism.release(rows, noise_from())
    moved = np.concatenate(drawn) / inner.sensitivity
    assert moved.dtype == np.float64
    assert np.linalg.norm(moved[0] - moved[1]) <= 1
