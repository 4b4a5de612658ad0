import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import THRESHOLD, chi_square_pvalue
from scipy import sparse

from skldp.mechanisms._noise import public_stream
from skldp.mechanisms.vector import _projection as sparse_columns
from skldp.mechanisms.vector._projection import (
    code_gram,
    draw_codes,
    entry_size,
    project_sparse,
    sparse_matrix,
)

WAYS = [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array]


def naive(codes, m):
    """The matrix written out entry by entry."""
    phi = np.zeros((m, len(codes)))
    for column, entries in enumerate(codes):
        for code in entries.tolist():
            phi[code // 2, column] = (-1) ** (code % 2) * entry_size(len(entries))
    return phi


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 200), st.integers(1, 60), st.integers(0, 2**32 - 1))
def test_every_form_is_the_plain_matrix(m, n_columns, seed):
    codes = draw_codes(public_stream(seed), n_columns, m)
    phi = naive(codes, m)
    np.testing.assert_array_equal(sparse_matrix(codes, m).toarray(), phi)
    np.testing.assert_allclose(code_gram(codes, m), phi @ phi.T, rtol=1e-12, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 90), st.sampled_from(WAYS), st.sampled_from([np.float32, np.float64]), st.integers(0, 2**32 - 1))
def test_sparse_rows_are_projected_as_dense_ones(m, way, dtype, seed):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(11, 40)) * (rng.random((11, 40)) < rng.random())).astype(dtype)
    X[rng.integers(11)] = 0
    codes = draw_codes(public_stream(seed), 40, m)
    projected = project_sparse(way(X), codes, m)
    assert projected.dtype == dtype
    np.testing.assert_allclose(projected, X @ naive(codes, m).T, atol=1e-5 if dtype == np.float32 else 1e-12)


def test_blocks_of_rows_make_no_difference(monkeypatch):
    X = sparse.random(50, 300, density=0.1, random_state=0, format="csr")
    codes = draw_codes(public_stream(1), 300, 30)
    whole = project_sparse(X, codes, 30)
    monkeypatch.setattr(sparse_columns, "_ENTRIES", 64)
    np.testing.assert_array_equal(project_sparse(X, codes, 30), whole)


def test_entries_that_a_matrix_holds_twice_add_up():
    X = sparse.csr_matrix((np.array([1.0, 2.0]), np.array([3, 3]), np.array([0, 2])), shape=(1, 5))
    codes = draw_codes(public_stream(2), 5, 9)
    np.testing.assert_allclose(project_sparse(X, codes, 9), 3 * naive(codes, 9)[:, [3]].T)


@pytest.mark.parametrize(("m", "kind"), [(128, np.uint8), (129, np.uint16), (32_768, np.uint16), (32_769, np.uint32)])
def test_codes_fit_their_type_and_fill_their_bands(m, kind):
    codes = draw_codes(public_stream(4), 400, m)
    assert codes.dtype == kind
    edges = np.linspace(0, m, codes.shape[1] + 1).astype(int)
    assert ((codes >> 1) >= edges[:-1]).all()
    assert ((codes >> 1) < edges[1:]).all()
    assert chi_square_pvalue(np.bincount(codes.ravel() & 1, minlength=2), [0.5, 0.5]) > THRESHOLD
