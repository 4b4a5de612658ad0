"""With a release key, a run that is begun again, and a task that is executed again, release nothing a second time."""

import os
import pickle
import signal
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from joblib import Parallel

from skldp import (
    BitRandTransformer,
    CategoricalPrivatizer,
    LabelRR,
    MultivariateLaplacePrivatizer,
    NumericPrivatizer,
    PrivacyLedger,
    PrivUnitTransformer,
    RandomProjectionPrivatizer,
    TablePrivatizer,
    TargetPrivatizer,
    release_blocks,
    release_dask,
)
from skldp.estimators._out_of_core import _empty
from skldp.exceptions import OutOfDomainWarning, RepeatedReleaseWarning
from skldp.mechanisms import FieldKey, ReleaseKey
from skldp.mechanisms.numeric._bounded_features import NUMERIC_MECHANISMS
from skldp.papers import LabelLaplace

N = 300
SECRET = bytes(range(100, 132))[::-1]
KEY = FieldKey(ReleaseKey(SECRET), "rows")
RNG = np.random.default_rng(0)
NUMBERS = RNG.uniform(-1, 1, (N, 4))
CODES = RNG.integers(0, 3, (N, 2))
IDS = np.arange(1000, 1000 + N)

# Each with rows; several of its tasks, blocks and draws are in play.
ESTIMATORS = {
    "bits": (BitRandTransformer(3.0, calibration="exact"), NUMBERS.astype(np.float32)),
    "all bits": (BitRandTransformer(20.0, calibration="exact", n_sampled_features="all"), NUMBERS),
    "numbers": (NumericPrivatizer(2.0, mechanism="piecewise"), NUMBERS),
    "one number": (NumericPrivatizer(2.0, n_sampled_features=1), NUMBERS),
    "directions": (PrivUnitTransformer(3.0), NUMBERS),
    "distances": (MultivariateLaplacePrivatizer(3.0), NUMBERS),
    "projections": (RandomProjectionPrivatizer(3.0, n_components=2, sensitivity="spectral"), NUMBERS),
    "categories": (CategoricalPrivatizer(1.0, mechanism="oue", categories=[[0, 1, 2]] * 2), CODES),
    "some": (CategoricalPrivatizer(1.0, mechanism="oue", categories=[[0, 1, 2]] * 2, n_sampled_features=1), CODES),
    "labels": (LabelRR(1.0, classes=[0, 1, 2]), CODES[:, 0]),
    "other labels": (LabelLaplace(1.0, classes=["0", "1", "2"]), CODES[:, 0].astype(str)),
    "targets": (TargetPrivatizer(1.0, bounds=(-1, 1)), NUMBERS[:, 0]),
}


@pytest.fixture(params=list(ESTIMATORS))
def given(request):
    estimator, X = ESTIMATORS[request.param]
    return estimator.fit(X), X


def released(estimator, X, ids=IDS, key=KEY):
    empty = _empty(estimator, X[:0])
    out = np.empty((len(X), *empty.shape[1:]), dtype=empty.dtype)
    return release_blocks(estimator, X, out, release_key=key, ids=ids)


def lazily_released(estimator, X, ids, key):
    return release_dask(estimator, X, release_key=key, ids=ids)


@pytest.mark.few(4)
def test_blocks_threads_and_company_change_nothing(given, monkeypatch):
    estimator, X = given
    whole = released(estimator, X)
    monkeypatch.setattr("skldp.estimators._out_of_core._BLOCK_BYTES", 256)
    if hasattr(estimator, "n_jobs"):
        estimator.set_params(n_jobs=2)
    np.testing.assert_array_equal(released(estimator, X), whole)
    some = RNG.permutation(N)[:57]
    np.testing.assert_array_equal(released(estimator, X[some], IDS[some]), whole[some])


@pytest.mark.parametrize("mechanism", [*NUMERIC_MECHANISMS, "best"])
def test_a_retry_from_another_file_format_is_no_second_release_of_numbers(mechanism):
    """Epsilon was spent twice where a table came as float64 from CSV and as float32 from Parquet."""
    settings = {"delta": 1e-6} if mechanism == "gaussian" else {}
    estimator = NumericPrivatizer(2.0, mechanism=mechanism, bounds=(-2, 3), **settings)
    rows = np.round(NUMBERS * 2)
    double = released(estimator.fit(rows), rows)
    for kind in (np.float32, np.float16, np.int8, np.int64, ">f4"):
        again = released(estimator.fit(rows.astype(kind)), rows.astype(kind))
        assert again.dtype == (np.float32 if kind is np.float32 else np.float64)
        np.testing.assert_array_equal(again, double.astype(again.dtype))
    np.testing.assert_array_equal(released(estimator, np.where(rows == 0, -0.0, rows)), double)


def test_a_retry_from_another_file_format_is_no_second_release(given):
    estimator, X = given
    if X.dtype.kind == "U":
        X, kinds = X.astype(object), ["U1", "U7", object]
    else:
        X = np.round(X * 8) / 8 if X.dtype.kind == "f" else X
        kinds = [np.float64, np.float32] if X.dtype.kind == "f" else [np.int64, np.uint8, np.float64, np.float32]
    first, *others = (released(estimator.fit(X.astype(kind)), X.astype(kind)) for kind in kinds)
    for other in others:
        np.testing.assert_array_equal(other, first.astype(other.dtype))


def test_a_changed_record_changes_no_other(given):
    estimator, X = given
    whole, other = released(estimator, X), X.copy()
    other[7] = X[8]
    np.testing.assert_array_equal(np.delete(released(estimator, other), 7, axis=0), np.delete(whole, 7, axis=0))
    # 8 and 7 now are people of one value.
    strangers = released(estimator, other, IDS + N)
    assert (strangers != whole).any()


def test_processes_read_the_secret_themselves(tmp_path, monkeypatch):
    key = FieldKey(ReleaseKey.create(tmp_path / "release.key"), "rows")
    X = np.lib.format.open_memmap(tmp_path / "in.npy", mode="w+", dtype=np.float64, shape=NUMBERS.shape)
    X[:] = NUMBERS
    X.flush()
    out = np.lib.format.open_memmap(tmp_path / "out.npy", mode="w+", dtype=np.float64, shape=NUMBERS.shape)
    made = []

    def processes(n_jobs):
        made.append(n_jobs)
        return Parallel(n_jobs=n_jobs)

    monkeypatch.setattr("skldp.estimators._out_of_core.Parallel", processes)
    monkeypatch.setattr("skldp.estimators._out_of_core._WORTH_PROCESSES", 0)
    monkeypatch.setattr("skldp.estimators._out_of_core._BLOCK_BYTES", 2000)
    estimator = NumericPrivatizer(2.0, n_jobs=2).fit(X)
    release_blocks(estimator, X, out, release_key=key, ids=IDS)
    assert made == [2]
    np.testing.assert_array_equal(out, released(estimator, NUMBERS, key=key))
    # A secret in memory goes to no process.
    release_blocks(estimator, X, out, release_key=KEY, ids=IDS)
    assert made == [2]
    np.testing.assert_array_equal(out, released(estimator, NUMBERS))


def test_what_lies_outside_is_counted_once():
    X = NUMBERS.copy()
    X[::10] = 7.0
    with pytest.warns(OutOfDomainWarning, match="120 of 1,200 values") as caught:
        released(NumericPrivatizer(2.0).fit(X), X)
    assert len(caught) == 1


class TestRefusals:
    ESTIMATOR = NumericPrivatizer(2.0).fit(NUMBERS)

    @pytest.mark.parametrize("release", [released, lazily_released])
    def test_of_a_key_without_people_and_of_people_without_a_key(self, release):
        with pytest.raises(ValueError, match=r"must be given together; got no ids"):
            release(self.ESTIMATOR, NUMBERS, ids=None, key=KEY)
        with pytest.raises(ValueError, match=r"must be given together; got no release_key"):
            release(self.ESTIMATOR, NUMBERS, ids=IDS, key=None)
        with pytest.raises(TypeError, match=r"release_key must be a FieldKey; got ReleaseKey"):
            release(self.ESTIMATOR, NUMBERS, ids=IDS, key=KEY.key)

    def test_of_other_noise_and_other_accounts(self):
        for estimator in (
            NumericPrivatizer(2.0, seed=np.random.default_rng(0)),
            NumericPrivatizer(2.0, transform_noise=False),
        ):
            with pytest.raises(ValueError, match="release_key needs seed=None and transform_noise=True"):
                released(estimator.fit(NUMBERS), NUMBERS)
        charged = NumericPrivatizer(2.0, ledger=PrivacyLedger(epsilon=9.0))
        with pytest.raises(ValueError, match="ledger must be None with a release_key"):
            released(charged.fit(NUMBERS), NUMBERS)

    @pytest.mark.parametrize(
        ("ids", "error", "rule"),
        [
            (IDS[1:], ValueError, "ids must have one entry for each of 300 rows"),
            (IDS[:, None], ValueError, "ids must have one entry for each of 300 rows"),
            (IDS.astype(float), TypeError, "An id must be an integer or a string"),
            ([*IDS[1:].tolist(), True], TypeError, "got a bool at position"),
            ([*IDS[1:].tolist(), "ann "], ValueError, "A string id must be"),
        ],
    )
    def test_of_ids_before_anything_is_released(self, ids, error, rule, monkeypatch):
        monkeypatch.setattr("skldp.estimators._out_of_core._BLOCK_BYTES", 256)
        out = np.full(NUMBERS.shape, 9.0)
        with pytest.raises(error, match=rule) as refusal:
            release_blocks(self.ESTIMATOR, NUMBERS, out, release_key=KEY, ids=ids)
        assert (out == 9.0).all()
        assert "1007" not in str(refusal.value)
        assert "ann" not in str(refusal.value)

    def test_an_integer_and_its_text_are_one_person(self):
        mixed = released(
            self.ESTIMATOR, np.repeat(NUMBERS[:100], 2, axis=0), [one for i in range(100) for one in (i, str(i))]
        )
        np.testing.assert_array_equal(mixed[::2], mixed[1::2])


class TestDask:
    da = None

    @pytest.fixture(autouse=True)
    def _dask(self, tmp_path):
        self.da = pytest.importorskip("dask.array", reason="dask is an extra")
        self.key = FieldKey(ReleaseKey.create(tmp_path / "release.key"), "rows")

    def test_every_computation_is_the_same_release(self):
        estimator = NumericPrivatizer(2.0).fit(NUMBERS)
        whole = released(estimator, NUMBERS, key=self.key)
        X = self.da.from_array(NUMBERS, chunks=(70, 2))
        for ids in (self.da.from_array(IDS, chunks=(30,)), self.da.from_array(IDS, chunks=(70,))):
            one = release_dask(estimator, X, release_key=self.key, ids=ids)
            assert one.chunks == ((70, 70, 70, 70, 20), (4,))
            np.testing.assert_array_equal(one.compute(scheduler="synchronous"), whole)
            np.testing.assert_array_equal(one.compute(scheduler="threads"), whole)

    def test_a_partition_in_another_precision_is_the_same_release(self):
        rows = np.round(NUMBERS * 8) / 8
        estimator = NumericPrivatizer(2.0).fit(rows)
        ids = self.da.from_array(IDS, chunks=70)
        one, other = (
            release_dask(
                estimator, self.da.from_array(rows.astype(kind), chunks=(70, 4)), release_key=self.key, ids=ids
            )
            for kind in (np.float64, np.float32)
        )
        single = other.compute(scheduler="synchronous")
        np.testing.assert_array_equal(single, one.compute(scheduler="synchronous").astype(np.float32))

    def test_of_unknown_sizes_and_labels(self):
        labels = LabelRR(1.0, classes=[0, 1, 2]).fit(CODES[:, 0])
        y, ids = (self.da.from_array(a, chunks=50) for a in (CODES[:, 0], IDS))
        whole = released(labels, CODES[:, 0], key=self.key)
        lazy = release_dask(labels, y, release_key=self.key, ids=ids)
        np.testing.assert_array_equal(lazy.compute(scheduler="synchronous"), whole)
        chosen = ids % 3 == 0
        some = release_dask(labels, y[chosen], release_key=self.key, ids=ids[chosen])
        np.testing.assert_array_equal(some.compute(scheduler="synchronous"), whole[IDS % 3 == 0])
        with pytest.raises(ValueError, match="ids must have one entry for each of 300 rows"):
            release_dask(labels, y, release_key=self.key, ids=ids[1:])
        for wrong in (IDS, ids[:, None]):
            with pytest.raises(TypeError, match="a dask array of one dimension"):
                release_dask(labels, y, release_key=self.key, ids=wrong)

    def test_of_frames(self):
        dd = pytest.importorskip("dask.dataframe", reason="dask is an extra")
        frame = pd.DataFrame({"a": NUMBERS[:, 0], "b": CODES[:, 0]}, index=IDS)
        table = TablePrivatizer(2.0, schema={"a": (-1, 1), "b": [0, 1, 2]}, encoding="columns").fit(frame)
        lazy = dd.from_pandas(frame, npartitions=4)
        ids = lazy.index.to_series()
        one = release_dask(table, lazy, release_key=self.key, ids=ids)
        first, again = (one.compute(scheduler=scheduler) for scheduler in ("synchronous", "threads"))
        pd.testing.assert_frame_equal(first, again)
        lazy, ids = (whole.repartition(npartitions=3) for whole in (lazy, ids))
        other = release_dask(table, lazy, release_key=self.key, ids=ids)
        pd.testing.assert_frame_equal(first, other.compute(scheduler="synchronous"))
        assert list(first.columns) == list(table.get_feature_names_out())
        fresh = release_dask(table, lazy).compute(scheduler="synchronous")
        assert fresh.dtypes.equals(first.dtypes)
        assert not fresh.equals(first)

    @pytest.mark.parametrize("known", [True, False])
    def test_ids_of_other_people_are_no_ids_of_a_frame(self, known):
        """Dask matches partitions by position: people had the release keys of others."""
        dd = pytest.importorskip("dask.dataframe", reason="dask is an extra")
        frame = pd.DataFrame({"a": NUMBERS[:, 0], "b": NUMBERS[:, 1]}, index=IDS)
        estimator = NumericPrivatizer(2.0).fit(frame)
        lazy, own = dd.from_pandas(frame, npartitions=3), pd.Series(IDS, index=IDS)
        lazy = lazy if known else lazy.clear_divisions()
        right = release_dask(estimator, lazy, release_key=self.key, ids=dd.from_pandas(own, npartitions=3))
        same = release_dask(estimator, lazy, release_key=self.key, ids=lazy.index)
        pd.testing.assert_frame_equal(*(one.compute(scheduler="synchronous") for one in (right, same)))
        turned = dd.from_pandas(own.iloc[::-1], npartitions=3, sort=False)
        shifted = dd.from_pandas(own.set_axis(IDS + 1), npartitions=3).clear_divisions()
        for ids in (turned, shifted):
            wrong = release_dask(estimator, lazy, release_key=self.key, ids=ids)
            with pytest.raises(ValueError, match="ids must have the index of X"):
                wrong.compute(scheduler="synchronous")
        for ids in (own, IDS, list(IDS), dd.from_pandas(own, npartitions=4)):
            with pytest.raises(ValueError, match=rf"ids must be of dask, .* got {type(ids).__name__}\."):
                release_dask(estimator, lazy, release_key=self.key, ids=ids)

    def test_a_cluster_without_a_key_is_warned_of(self, monkeypatch):
        distributed = pytest.importorskip("distributed", reason="dask is an extra")
        X, ids = self.da.from_array(NUMBERS, chunks=(70, 4)), self.da.from_array(IDS, chunks=70)
        estimator = NumericPrivatizer(2.0).fit(NUMBERS)
        # Warnings are errors here: without a client, and where nothing is released twice, there is none.
        release_dask(estimator, X)
        monkeypatch.setattr(distributed, "default_client", lambda: "of a cluster")
        with pytest.warns(RepeatedReleaseWarning, match="releases these rows a second time") as caught:
            release_dask(estimator, X)
        assert len(caught) == 1
        release_dask(estimator, X, release_key=self.key, ids=ids)
        release_dask(NumericPrivatizer(2.0, transform_noise=False).fit(NUMBERS), X)

    def test_the_graph_holds_no_secret(self, tmp_path):
        secret = (tmp_path / "release.key").read_bytes()
        X, ids = self.da.from_array(NUMBERS, chunks=(70, 4)), self.da.from_array(IDS, chunks=70)
        one = release_dask(NumericPrivatizer(2.0).fit(NUMBERS), X, release_key=self.key, ids=ids)
        sent = pickle.dumps(one)
        assert str(tmp_path).encode() in sent
        assert not any(secret[start : start + 8] in sent for start in range(24))
        with pytest.raises(ValueError, match="must read its secret on every worker"):
            release_dask(NumericPrivatizer(2.0).fit(NUMBERS), X, release_key=KEY, ids=ids)

    @pytest.mark.slow
    @pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "fresh"])
    def test_a_worker_that_is_killed(self, tmp_path, keyed):
        """What it had sent is what the finished table holds; without a key, the table holds another release."""
        distributed = pytest.importorskip("distributed", reason="dask is an extra")
        sent = tmp_path / "sent"
        sent.mkdir()

        def send(block, block_info=None):
            place = block_info[0]["chunk-location"][0]
            np.save(sent / f"{place}-{os.getpid()}", block)
            if place == 7 and not (tmp_path / "killed").exists():
                (tmp_path / "killed").touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return block

        estimator = NumericPrivatizer(2.0).fit(NUMBERS)
        X, ids = self.da.from_array(NUMBERS, chunks=(30, 4)), self.da.from_array(IDS, chunks=30)
        own = {"release_key": self.key, "ids": ids} if keyed else {}
        with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, memory_limit=0, dashboard_address=None
            ) as cluster,
            distributed.Client(cluster),
        ):
            with nullcontext() if keyed else pytest.warns(RepeatedReleaseWarning):
                table = release_dask(estimator, X, **own).map_blocks(send, dtype=NUMBERS.dtype, meta=NUMBERS[:0])
            finished = table.compute()
        assert (tmp_path / "killed").exists()
        copies = [(int(path.name.split("-")[0]), np.load(path)) for path in sent.iterdir()]
        assert {place for place, _ in copies} == set(range(10))
        again = [(place, block) for place, block in copies if sum(other == place for other, _ in copies) > 1]
        assert again
        same = [np.array_equal(block, finished[30 * place : 30 * place + 30]) for place, block in copies]
        if keyed:
            assert all(same)
            np.testing.assert_array_equal(finished, released(estimator, NUMBERS, key=self.key))
        else:
            assert not all(same)
