"""Releases block by block: from memory maps and through dask; noise is never shared between blocks or tasks."""

import pickle
import re

import numpy as np
import pytest
from joblib import Parallel
from laws import UNSEEDED_THRESHOLD, chi_square_pvalue, code_law
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from skldp import (
    BitRandTransformer,
    CategoricalPrivatizer,
    LabelRR,
    NumericPrivatizer,
    TablePrivatizer,
    release_blocks,
    release_dask,
)
from skldp.estimators._base import in_threads
from skldp.exceptions import OutOfDomainWarning, RepeatedReleaseWarning, SeededNoiseWarning
from skldp.papers import LabelLaplace

CODER = BitRandTransformer(epsilon=20.0, n_bits=4, calibration="exact", n_sampled_features="all")


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr("skldp.estimators._out_of_core._BLOCK_BYTES", 64)


def fitted(estimator, n_features=3):
    return clone(estimator).fit(np.zeros((1, n_features), dtype=np.float32))


def seeded():
    return clone(CODER).set_params(seed=np.random.default_rng(5))


def law_pvalue(released, estimator, value):
    """Of released numbers against the exact law of the mechanism."""
    mechanism = estimator.mechanism_
    code = int(mechanism.encoding.encode([value])[0])
    numbers = mechanism.encoding.decode(np.arange(16, dtype=np.uint8))
    law = code_law(mechanism.laws[0], code)
    # Both zeros are one number.
    merged = {float(x): law[numbers == x].sum() for x in numbers}
    seen = [int((released == x).sum()) for x in merged]
    assert sum(seen) == released.size
    return chi_square_pvalue(np.array(seen), np.array(list(merged.values())))


def test_a_seed_would_give_every_block_the_same_noise_and_is_refused(small_blocks):
    X = np.zeros((50, 3), dtype=np.float32)
    with pytest.raises(ValueError, match="every block would get the same noise"):
        release_blocks(fitted(clone(CODER).set_params(seed=0)), X, X.copy())
    dask_array = pytest.importorskip("dask.array", reason="dask is an extra")
    for seed in (0, np.random.default_rng(0)):
        with pytest.raises(ValueError, match="every block would get the same noise"):
            release_dask(fitted(clone(CODER).set_params(seed=seed)), dask_array.from_array(X))


@pytest.mark.few(1)
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_blocks_of_a_memory_map_follow_the_law_each_with_its_own_noise(tmp_path, small_blocks, n_jobs):
    X = np.lib.format.open_memmap(tmp_path / "in.npy", mode="w+", dtype=np.float32, shape=(2000, 3))
    X[:] = 0.3
    out = np.lib.format.open_memmap(tmp_path / "out.npy", mode="w+", dtype=np.float32, shape=X.shape)
    estimator = fitted(CODER).set_params(n_jobs=n_jobs)
    assert release_blocks(estimator, X, out) is out
    assert law_pvalue(np.asarray(out), estimator, 0.3) > UNSEEDED_THRESHOLD
    blocks = np.asarray(out).reshape(-1, 5 * 3)
    assert (
        len({block.tobytes() for block in blocks}) > 390
    )  # of 400, two of which are equal by chance in 2e-5; a repeated stream would leave one
    np.testing.assert_array_equal(X, np.float32(0.3))


@pytest.fixture
def recorded_tasks(monkeypatch):
    """Which kind of workers were made for the blocks, and how many."""
    made = []

    def processes(n_jobs):
        made.append(("processes", n_jobs))
        return Parallel(n_jobs=n_jobs)

    def threads(function, parts, *, n_jobs):
        made.append(("threads", n_jobs))
        return in_threads(function, parts, n_jobs=n_jobs)

    monkeypatch.setattr("skldp.estimators._out_of_core.Parallel", processes)
    monkeypatch.setattr("skldp.estimators._out_of_core.in_threads", threads)
    monkeypatch.setattr("skldp.estimators._out_of_core._WORTH_PROCESSES", 0)
    monkeypatch.setattr("skldp.mechanisms.bits._mask_sampling.compiled_loops", lambda: None)
    return made


def memory_maps(folder, n_rows=2000, out_mode="w+"):
    X = np.lib.format.open_memmap(folder / "in.npy", mode="w+", dtype=np.float32, shape=(n_rows, 3))
    X[:] = 0.3
    X.flush()
    np.lib.format.open_memmap(folder / "out.npy", mode="w+", dtype=np.float32, shape=X.shape).flush()
    return np.load(folder / "in.npy", mmap_mode="r"), np.load(folder / "out.npy", mmap_mode=out_mode)


@pytest.mark.slow
def test_processes_write_large_memory_maps_each_with_its_own_noise(tmp_path, small_blocks, recorded_tasks):
    X, out = memory_maps(tmp_path, out_mode="r+")
    estimator = fitted(CODER).set_params(n_jobs=2)
    # Part of a map begins in the middle of its file; what is before it stays as it is.
    assert release_blocks(estimator, X[500:], out[500:]).base is not None
    assert recorded_tasks == [("processes", 2)]
    stored = np.load(tmp_path / "out.npy")
    np.testing.assert_array_equal(stored[:500], 0)
    assert law_pvalue(stored[500:], estimator, 0.3) > UNSEEDED_THRESHOLD
    blocks = stored[500:].reshape(-1, 5 * 3)
    assert len({block.tobytes() for block in blocks}) > 290  # of 300


@pytest.mark.slow
def test_processes_count_what_they_moved_in_one_warning(tmp_path, small_blocks, recorded_tasks):
    _, out = memory_maps(tmp_path, n_rows=50, out_mode="r+")
    whole = np.load(tmp_path / "in.npy", mmap_mode="r+")
    whole[::5] = 7.0
    with pytest.warns(OutOfDomainWarning, match="30 of 150 values") as caught:
        release_blocks(fitted(CODER).set_params(n_jobs=2), whole, out)
    assert [warning.category for warning in caught].count(OutOfDomainWarning) == 1


def test_blocks_are_handed_out_in_a_bounded_number_of_tasks(small_blocks, recorded_tasks, monkeypatch):
    monkeypatch.setattr("skldp.estimators._out_of_core._MOST_TASKS", 7)
    X = np.full((200, 3), 0.3, dtype=np.float32)
    out = np.zeros_like(X)
    release_blocks(fitted(CODER).set_params(n_jobs=2), X, out)
    assert recorded_tasks == [("threads", 2)]
    assert np.count_nonzero(out) > out.size / 2


def test_other_types_and_orders_are_written_to_as_well(small_blocks):
    X = np.random.default_rng(0).uniform(-1, 1, (50, 3)).astype(np.float32)
    estimator = fitted(clone(CODER).set_params(transform_noise=False))
    expected = estimator.transform(X)
    for out in (
        np.empty(X.shape),
        np.empty(X.shape, dtype=np.float32, order="F"),
        np.empty((50, 6), np.float32)[:, ::2],
    ):
        np.testing.assert_array_equal(release_blocks(estimator, X, out), expected)
    whole = np.rint(X).astype(int)
    np.testing.assert_array_equal(release_blocks(estimator, whole, np.empty(X.shape)), estimator.transform(whole))


def test_only_threads_share_what_is_in_no_file(tmp_path, small_blocks, recorded_tasks):
    X, private = memory_maps(tmp_path, n_rows=50, out_mode="c")
    for rows, out in (
        (X, private),
        (X, np.empty_like(X)),
        (np.array(X), np.load(tmp_path / "out.npy", mmap_mode="r+")),
    ):
        release_blocks(fitted(CODER).set_params(n_jobs=2), rows, out)
        assert np.count_nonzero(out) > out.size / 2
    assert recorded_tasks == [("threads", 2)] * 3


def test_a_generator_is_advanced_block_by_block(small_blocks):
    X = np.zeros((60, 3), dtype=np.float32)

    def release():
        estimator = fitted(seeded()).set_params(n_jobs=2)
        with pytest.warns(SeededNoiseWarning):
            return release_blocks(estimator, X, np.empty_like(X))

    one = release()
    np.testing.assert_array_equal(one, release())
    assert len({block.tobytes() for block in one.reshape(-1, 15)}) == 12


def test_nothing_is_written_where_a_late_block_is_not_finite(small_blocks):
    X = np.zeros((50, 3), dtype=np.float32)
    X[-1, -1] = np.nan
    out = np.full_like(X, 9.0)
    with pytest.raises(ValueError, match="NaN"):
        release_blocks(fitted(CODER), X, out)
    assert (out == 9.0).all()


def test_what_cannot_be_released_is_refused():
    X = np.zeros((5, 3), dtype=np.float32)
    with pytest.raises(ValueError, match="must have the shape"):
        release_blocks(fitted(CODER), X, np.empty((5, 2)))
    with pytest.raises(ValueError, match="must not overlap"):
        release_blocks(fitted(CODER), X, X)
    with pytest.raises(TypeError, match="transformer of this package"):
        release_blocks(StandardScaler(), X, X.copy())
    fixed = X.copy()
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="must be writeable"):
        release_blocks(fitted(CODER), X, fixed)
    with pytest.raises(TypeError, match="out must be a numpy array"):
        release_blocks(fitted(CODER), X, X.tolist())
    with pytest.raises(TypeError, match=r"X must be a numpy array or a memory map; got list"):
        release_blocks(fitted(CODER), X.tolist(), X)
    pytest.importorskip("dask.array", reason="dask is an extra")
    with pytest.raises(TypeError, match="dask array"):
        release_dask(fitted(CODER), X)


def test_every_block_of_a_dask_array_has_its_own_noise_and_the_right_law():
    da = pytest.importorskip("dask.array", reason="dask is an extra")
    X = da.full((4000, 3), 0.3, dtype=np.float32, chunks=(40, 2))
    estimator = fitted(CODER)
    released = release_dask(estimator, X)
    assert released.shape == X.shape
    assert released.dtype == np.float32
    first, second = released.compute(scheduler="synchronous"), released.compute(scheduler="threads")
    assert law_pvalue(first, estimator, 0.3) > UNSEEDED_THRESHOLD
    assert len({block.tobytes() for block in first.reshape(-1, 120)}) == 100
    # Executed again, a task draws anew: that is a second release, and neither repeats the noise of the first.
    assert not any((a == b).all() for a, b in zip(first.reshape(-1, 120), second.reshape(-1, 120), strict=True))
    assert released.name != release_dask(estimator, X).name


def test_within_one_computation_a_block_is_released_once():
    da = pytest.importorskip("dask.array", reason="dask is an extra")
    released = release_dask(fitted(CODER), da.zeros((400, 3), dtype=np.float32, chunks=(40, 3)))
    one, again, total = da.compute(released, released + 0, released.sum(axis=0), scheduler="synchronous")
    np.testing.assert_array_equal(one, again)
    np.testing.assert_allclose(one.sum(axis=0), total, rtol=1e-5)


def test_a_dask_frame_keeps_its_index_and_gets_the_names():
    dd = pytest.importorskip("dask.dataframe", reason="dask is an extra")
    import pandas as pd

    frame = pd.DataFrame(np.full((300, 2), 0.5), columns=["a", "b"], index=np.arange(1000, 1300))
    table = dd.from_pandas(frame, npartitions=10)
    estimator = NumericPrivatizer(epsilon=2.0).fit(frame[:1])
    # Leaves empty partitions behind.
    chosen = table.map_partitions(lambda part: part[part.index >= 1100], meta=table._meta)
    released = release_dask(estimator, chosen)
    assert list(released.columns) == list(estimator.get_feature_names_out())
    computed = released.compute(scheduler="synchronous")
    np.testing.assert_array_equal(computed.index, np.arange(1100, 1300))
    assert (computed.dtypes == released.dtypes).all()
    assert released._name != release_dask(estimator, chosen)._name


def test_no_key_travels_with_the_graph():
    da = pytest.importorskip("dask.array", reason="dask is an extra")
    released = release_dask(fitted(CODER), da.zeros((80, 3), dtype=np.float32, chunks=(40, 3)))
    copies = [pickle.loads(pickle.dumps(released)) for _ in range(2)]
    one, other = (copy.compute(scheduler="synchronous") for copy in copies)
    assert not np.array_equal(one, other)


@pytest.mark.statistical
def test_two_worker_processes_draw_different_noise_within_their_memory():
    distributed = pytest.importorskip("distributed", reason="dask is an extra")
    da = pytest.importorskip("dask.array", reason="dask is an extra")
    limit = 512 * 2**20  # a worker that has imported numba holds 320 MiB before the first block
    # 768 MB in all, more than a worker may hold.
    X = da.full((250_000, 768), 0.3, dtype=np.float32, chunks=(5_000, 768))
    estimator = fitted(CODER, 768)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, memory_limit=limit, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert X.nbytes > limit
        with pytest.warns(RepeatedReleaseWarning):
            released = release_dask(estimator, X)
        firsts = released[::5_000, :64]
        mean, sample, rows = client.gather(client.compute([released.mean(), released[::100, 0], firsts], retries=0))
        pids = set(client.run(lambda: __import__("os").getpid()).values())
    assert len(pids) == 2
    assert len({row.tobytes() for row in rows}) == 50
    assert law_pvalue(sample, estimator, 0.3) > UNSEEDED_THRESHOLD
    assert np.isfinite(mean)


def label_pvalue(released, estimator, label):
    """Of the released labels of one true label against the flip matrix."""
    counts = [np.count_nonzero(released == other) for other in estimator.classes_]
    assert sum(counts) == released.size
    return chi_square_pvalue(counts, estimator.flip_matrix_[list(estimator.classes_).index(label)])


@pytest.mark.parametrize("cls", [LabelRR, LabelLaplace])
def test_labels_in_a_memory_map_follow_the_law_each_block_with_its_own_noise(cls, tmp_path, small_blocks):
    y = np.lib.format.open_memmap(tmp_path / "in.npy", mode="w+", dtype=np.int8, shape=(1000,))
    y[:] = 2
    out = np.lib.format.open_memmap(tmp_path / "out.npy", mode="w+", dtype=np.int8, shape=y.shape)
    estimator = cls(epsilon=0.1, classes=range(5)).fit(y[:1])
    assert release_blocks(estimator, y, out) is out
    assert label_pvalue(np.asarray(out), estimator, 2) > UNSEEDED_THRESHOLD
    # A repeated stream would leave few different runs of whole blocks.
    assert len({run.tobytes() for run in np.asarray(out).reshape(-1, 20)}) > 45
    np.testing.assert_array_equal(y, np.int8(2))


def test_labels_of_any_type_go_where_every_class_fits(small_blocks):
    y = np.array(["no", "yes", "maybe"] * 20)
    estimator = LabelRR(epsilon=500.0, classes=["maybe", "no", "yes"]).fit(y[:1])
    for out in (np.empty_like(y), np.empty(60, dtype=object), np.empty(60, dtype="U9")[::-1]):
        np.testing.assert_array_equal(release_blocks(estimator, y, out), y)
    counted = LabelRR(epsilon=500.0, classes=[0, 1, 1000]).fit([0])
    small = np.zeros(60, dtype=np.int8)
    for out in (np.empty(60, dtype=np.int16), np.empty(60, dtype=np.float32)):
        np.testing.assert_array_equal(release_blocks(counted, small, out), small)
    for other, values, out in (
        (estimator, y, np.zeros(60, dtype="U3")),
        (estimator, y, np.zeros(60)),
        (counted, small, small.copy()),
        (counted, small, np.zeros(60, dtype="U30")),
    ):
        before = out.copy()
        with pytest.raises(ValueError, match="a dtype that holds released values"):
            release_blocks(other, values, out)
        np.testing.assert_array_equal(out, before)
    with pytest.raises(ValueError, match="must have the shape"):
        release_blocks(estimator, y, np.empty((60, 1), dtype=y.dtype))


def test_nothing_is_written_where_a_late_label_or_category_is_not_declared(small_blocks):
    y = np.zeros(60, dtype=np.int64)
    y[-1] = 7
    out = np.full_like(y, 9)
    with pytest.raises(ValueError, match=r"first at position (\d+)") as refused:
        release_blocks(LabelRR(classes=[0, 1]).fit([0]), y, out)
    assert (out == 9).all()
    # Positions are those of a block: the note says where it begins.
    position = int(re.search(r"position (\d+)", str(refused.value))[1])
    begins = int(re.search(r"begins at row (\d+)", *refused.value.__notes__)[1])
    assert begins + position == 59
    X = np.column_stack([y, y])
    released = np.full((60, 4), 9.0)
    with pytest.raises(ValueError, match="nothing was released"):
        release_blocks(CategoricalPrivatizer(categories=[[0, 1], [0, 1]]).fit([[0, 0]]), X, released)
    assert (released == 9).all()


def test_a_seed_of_labels_is_advanced_or_refused(small_blocks):
    y = np.zeros(60, dtype=np.int64)
    with pytest.raises(ValueError, match="every block would get the same noise"):
        release_blocks(LabelRR(classes=range(9), seed=0).fit([0]), y, y.copy())

    def release():
        estimator = LabelRR(epsilon=0.1, classes=range(9), seed=np.random.default_rng(0)).fit([0])
        with pytest.warns(SeededNoiseWarning):
            return release_blocks(estimator, y, np.empty_like(y))

    one = release()
    np.testing.assert_array_equal(one, release())
    assert len({block.tobytes() for block in one.reshape(-1, 2)}) > 10


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["krr", "sue", "oue", "subset", "hashing"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, bool])
def test_columns_of_categories_are_released_block_by_block(mechanism, dtype, small_blocks):
    X = np.random.default_rng(0).integers(0, 3, (60, 2))
    categories = [[0, 1, 2], [0, 1, 2, 3]]
    out = np.empty((60, 7), dtype=dtype)
    certain = CategoricalPrivatizer(500.0, mechanism=mechanism, categories=categories, transform_noise=False)
    np.testing.assert_array_equal(release_blocks(certain.fit(X[:1]), X, out), certain.transform(X))
    estimator = CategoricalPrivatizer(2.0, mechanism=mechanism, categories=categories).fit(X[:1])
    released = release_blocks(estimator, np.ones((600, 2), dtype=int), np.empty((600, 7), dtype=dtype))
    for column, part in zip(estimator.mechanism_.parts, estimator.mechanism_.places, strict=True):
        ones = [int(np.count_nonzero(bits)) for bits in released[:, part].T]
        for count, p in zip(ones, column.output_law([1])[0], strict=True):
            assert chi_square_pvalue([count, 600 - count], [p, 1 - p]) > UNSEEDED_THRESHOLD
    # A repeated stream would leave few different runs of blocks.
    assert len({run.tobytes() for run in released.reshape(30, -1)}) == 30


def test_dask_releases_labels_and_categories():
    da = pytest.importorskip("dask.array", reason="dask is an extra")
    dd = pytest.importorskip("dask.dataframe", reason="dask is an extra")
    import pandas as pd

    estimator = LabelRR(epsilon=0.1, classes=range(5)).fit([0])
    released = release_dask(estimator, da.full(4000, 2, dtype=np.int8, chunks=40))
    assert (released.shape, released.dtype) == ((4000,), np.int8)
    labels = released.compute(scheduler="synchronous")
    assert labels.dtype == np.int8
    assert label_pvalue(labels, estimator, 2) > UNSEEDED_THRESHOLD
    assert len({run.tobytes() for run in labels.reshape(-1, 40)}) == 100

    frame = pd.DataFrame({"answer": ["no", "yes"] * 150, "size": [1, 2] * 150}, index=np.arange(1000, 1300))
    # Leaves empty partitions behind.
    table = dd.from_pandas(frame, npartitions=10)
    table = table.map_partitions(lambda part: part[part.index >= 1100], meta=table._meta)
    by_name = LabelRR(epsilon=500.0, classes=["no", "yes"]).fit(["no"])
    column = release_dask(by_name, table["answer"])
    computed = column.compute(scheduler="synchronous")
    assert (computed.name, list(computed)) == ("answer", list(frame["answer"][100:]))
    np.testing.assert_array_equal(computed.index, np.arange(1100, 1300))
    privatizer = CategoricalPrivatizer(500.0, categories=[["no", "yes"], [1, 2]]).fit(frame[:1])
    encoded = release_dask(privatizer, table)
    assert list(encoded.columns) == list(privatizer.get_feature_names_out())
    computed = encoded.compute(scheduler="synchronous")
    np.testing.assert_array_equal(computed.to_numpy(), privatizer.transform(frame[100:]))
    assert (computed.dtypes == encoded.dtypes).all()
    numbers = CategoricalPrivatizer(500.0, categories=[[1, 2]]).fit([[1]])
    array = da.from_array(np.array([[1], [2]] * 20, dtype=np.float32), chunks=(8, 1))
    assert release_dask(numbers, array).dtype == release_dask(numbers, array).compute().dtype == np.float64


class TestTables:
    """Blocks of a table hold what its `transform` gives, in the columns that it names."""

    schema = {"a": (-1, 1), "b": {"type": "category", "values": [10, 20, 30]}}

    def table(self, **settings):
        import pandas as pd

        frame = pd.DataFrame({"a": np.linspace(-1, 1, 60), "b": [10, 20, 30] * 20}, index=np.arange(100, 160))
        return frame, TablePrivatizer(200.0, schema=self.schema, transform_noise=False, **settings).fit(frame)

    @pytest.mark.parametrize("container", ["default", "pandas", "polars"])
    @pytest.mark.parametrize("encoding", ["onehot", "columns"])
    def test_of_dask(self, encoding, container):
        dd = pytest.importorskip("dask.dataframe", reason="dask is an extra")
        import pandas as pd

        frame, table = self.table(encoding=encoding)
        expected = pd.DataFrame(
            table.transform(frame[25:]), index=frame.index[25:], columns=table.get_feature_names_out()
        )
        table.set_output(transform=container)
        # Leaves an empty partition behind.
        lazy = dd.from_pandas(frame, npartitions=3).map_partitions(lambda part: part[part.index >= 125], meta=frame[:0])
        released = release_dask(table, lazy)
        computed = released.compute(scheduler="synchronous")
        pd.testing.assert_frame_equal(computed, expected)
        assert released.dtypes.equals(computed.dtypes)
        assert list(released.columns) == list(computed.columns)

    @pytest.mark.parametrize("container", ["default", "pandas", "polars"])
    @pytest.mark.parametrize(("encoding", "width"), [("onehot", 4), ("columns", 2)])
    def test_of_arrays(self, encoding, width, container, small_blocks):
        da = pytest.importorskip("dask.array", reason="dask is an extra")
        frame, _ = self.table()
        X = frame.to_numpy()
        schema = dict(zip(("x0", "x1"), self.schema.values(), strict=True))
        table = TablePrivatizer(200.0, schema=schema, encoding=encoding, transform_noise=False).fit(X)
        expected = table.transform(X)
        table.set_output(transform=container)
        assert expected.shape == (60, width)
        out = np.empty((60, width), dtype=expected.dtype)
        np.testing.assert_array_equal(release_blocks(table, X, out), expected)
        released = release_dask(table, da.from_array(X, chunks=(25, 2)))
        assert (released.shape, released.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_array_equal(released.compute(scheduler="synchronous"), expected)
        with pytest.raises(ValueError, match=rf"out must have the shape \(60, {width}\)"):
            release_blocks(table, X, np.empty((60, 3)))

    def test_what_blocks_cannot_hold_is_refused_before_the_release(self, monkeypatch):
        frame, table = self.table(sparse_output=True)
        monkeypatch.setattr(TablePrivatizer, "_release", lambda *_, **__: pytest.fail("released"))
        with pytest.raises(ValueError, match=r"sparse_output must be False in a release by blocks"):
            release_blocks(table, frame.to_numpy(), np.empty((60, 4)))
        _, columns = self.table(encoding="columns")
        with pytest.raises(ValueError, match=r"that holds released values; got float64"):
            release_blocks(columns, frame.to_numpy(), np.empty((60, 2)))
