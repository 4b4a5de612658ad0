"""Time and peak memory of the releases of embeddings, beside scikit-learn's projections without any noise.

Every case runs in a child of one process, on the same data: the least processor seconds of three calls, and how much
memory the child grows by. Set OMP_NUM_THREADS=1, or the seconds of all threads of the matrix product are added up.

    python benchmarks/projection.py                      # a tenth of the rows and columns, seconds
    python benchmarks/projection.py --full               # 200,000 x 768 dense, 100,000 x 1,000,000 sparse
"""

import argparse
import multiprocessing
import resource
import time

import numpy as np
from measure import load
from scipy import sparse
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from skldp.estimators._random_projection import RandomProjectionPrivatizer
from skldp.estimators._vector import MultivariateLaplacePrivatizer, PrivUnitTransformer


def sparse_rows(n_rows, n_columns, per_row, rng):
    """Rows of a bag of words: `per_row` columns each, values 1."""
    columns = rng.integers(n_columns, size=(n_rows, per_row), dtype=np.int32)
    columns.sort(axis=1)
    pointers = np.arange(0, n_rows * per_row + 1, per_row, dtype=np.int32)
    values = np.ones(n_rows * per_row, dtype=np.float32)
    return sparse.csr_matrix((values, columns.ravel(), pointers), shape=(n_rows, n_columns))


def measure(estimator, X):
    """Least processor seconds of three calls of fit_transform, and MiB, in a child process."""

    def child(end):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        seconds = []
        for _ in range(3):
            start = time.process_time()
            estimator.fit_transform(X)
            seconds.append(time.process_time() - start)
        end.send((min(seconds), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024))

    here, there = multiprocessing.get_context("fork").Pipe()
    process = multiprocessing.get_context("fork").Process(target=child, args=(there,))
    process.start()
    result = here.recv()
    process.join()
    return result


def report(title, X, cases):
    size = X.data.nbytes + X.indices.nbytes if sparse.issparse(X) else X.nbytes
    print(f"\n{title}: the data take {size / 2**20:,.0f} MiB")
    print(f"{'':55s}{'seconds':>9s}{'ratio':>8s}{'peak MiB':>10s}")
    floor = None
    for name, estimator in cases:
        seconds, memory = measure(estimator, X)
        floor = floor or seconds
        print(f"{name:55s}{seconds:9.2f}{seconds / floor:8.2f}{memory:10,.0f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="the sizes of real use")
    parser.add_argument("--rows", type=int, help="dense rows")
    parser.add_argument("--columns", type=int, default=768, help="dense columns")
    parser.add_argument("--sparse-rows", type=int)
    parser.add_argument("--sparse-columns", type=int)
    parser.add_argument("--per-row", type=int, default=100, help="non-zeros of a sparse row")
    options = parser.parse_args()
    n_rows = options.rows or (200_000 if options.full else 20_000)
    n_sparse = options.sparse_rows or (100_000 if options.full else 10_000)
    n_columns = options.sparse_columns or (1_000_000 if options.full else 100_000)
    rng = np.random.default_rng(0)

    X = rng.standard_normal((n_rows, options.columns), dtype=np.float32)
    ours = RandomProjectionPrivatizer(5.0)
    m = ours.fit(X[:2]).n_components_
    cases = [
        ("scikit-learn GaussianRandomProjection, no noise", GaussianRandomProjection(m, random_state=0)),
        ("RandomProjectionPrivatizer, gordon", ours),
        ("RandomProjectionPrivatizer, spectral", RandomProjectionPrivatizer(5.0, sensitivity="spectral")),
        ("RandomProjectionPrivatizer, privunit", RandomProjectionPrivatizer(5.0, noise="privunit")),
        ("MultivariateLaplacePrivatizer, all columns", MultivariateLaplacePrivatizer(5.0)),
        ("PrivUnitTransformer, all columns", PrivUnitTransformer(5.0)),
    ]
    report(f"{n_rows:,} x {options.columns:,} dense float32, m = {m}", X, cases)
    del X

    X = sparse_rows(n_sparse, n_columns, options.per_row, rng)
    m = ours.fit(X[:2]).n_components_
    thin = {"sensitivity": "spectral", "projection": "sparse"}
    cases = [
        ("scikit-learn SparseRandomProjection, no noise", SparseRandomProjection(m, dense_output=True, random_state=0)),
        ("scikit-learn GaussianRandomProjection, no noise", GaussianRandomProjection(m, random_state=0)),
        ("RandomProjectionPrivatizer, gordon, Gaussian Phi", ours),
        ("RandomProjectionPrivatizer, spectral, sparse Phi", RandomProjectionPrivatizer(5.0, **thin)),
        (
            "RandomProjectionPrivatizer, privunit, sparse Phi",
            RandomProjectionPrivatizer(5.0, noise="privunit", projection="sparse"),
        ),
    ]
    report(f"{n_sparse:,} x {n_columns:,} sparse float32, {options.per_row} a row, m = {m}", X, cases)
    print(load())


if __name__ == "__main__":
    main()
