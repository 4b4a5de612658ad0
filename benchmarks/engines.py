"""Run one survey in several engines, with a task in each that fails after its releases and is retried.

Usage: python benchmarks/engines.py [--people 20000] [--only polars duckdb dask spark ray]

Polars and DuckDB have no tasks that are retried: there the same query is asked twice. In Spark a task fails, in Ray and
dask its process is killed. What had left the task by then was seen, so that it counts: a collector is given the
finished table, and then what was sent before. With a release secret these are reports that it has, else second
releases. Estimates are those of one process, with the same secret to the digit, and are shown beside the truth.
Engines that are not installed are left out: pip install "skldp[dask,arrow]" polars duckdb pyspark "ray[data]".
"""

import argparse
import os
import signal
import sys
import tempfile
import time
import uuid
import warnings
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from skldp import Collector, release_batches
from skldp.client import Field, Policy
from skldp.mechanisms import Column, RandomizedResponse, ReleaseKey
from skldp.mechanisms.numeric._unit_mechanisms import SquareWave

CITIES = ("Bonn", "Kiel", "Ulm")
PARTS = 4
POLICY = Policy(
    "where people of which age live",
    (
        Field("age", Column(0, 100), SquareWave(1.0).integer_law),
        Field("city", Column(values=CITIES), RandomizedResponse(1.0, 3).integer_law),
    ),
)


class Watched:
    """A release of which every batch is seen when it leaves its task, and which fails once, after that."""

    def __init__(self, release, folder, fail):
        self.release, self.folder, self.fail = release, folder, fail

    def __call__(self, batches):
        """Hand on what is released, as an engine asks for it."""
        for batch in self.release(batches):
            parquet.write_table(pa.Table.from_batches([batch]), self.folder / f"sent-{uuid.uuid4().hex}.parquet")
            if self.fail and not (self.folder / "failed").exists():
                (self.folder / "failed").touch()
                self.fail()
            yield batch


def fail():
    """What a full disk does to a task."""
    raise OSError("A task that fails once.")


def die():
    """What the kernel does where memory is short."""
    os.kill(os.getpid(), signal.SIGKILL)


def in_polars(people, release, folder):
    """Asked twice."""
    import polars as pl

    frame = pl.from_arrow(people)
    for _ in range(2):
        batches = Watched(release, folder, None)(frame.to_arrow().to_batches())
        parquet.write_table(pa.Table.from_batches(batches, schema=release.schema), folder / "reports.parquet")


def in_duckdb(people, release, folder):
    """Asked twice; the Parquet file is DuckDB's own, whose schema has no metadata."""
    import duckdb

    with duckdb.connect() as connection:
        connection.register("people", people)
        for _ in range(2):
            reader = connection.sql("SELECT age, city, person FROM people").to_arrow_reader(65_536)
            batches = Watched(release, folder, None)(reader)
            connection.register("reports", pa.Table.from_batches(batches, schema=release.schema))
            connection.sql("SELECT * FROM reports").write_parquet(str(folder / "reports.parquet"))


def in_spark(people, release, folder):
    """A task fails, and is tried again in another attempt (spark.task.maxFailures is 4 on a cluster)."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.log.level": "OFF",
        "spark.ui.showConsoleProgress": "false",
    }
    spark = SparkSession.builder.master("local[1,4]").config(map=settings).getOrCreate()
    parquet.write_table(people, folder / "people.parquet")
    table = spark.read.parquet(str(folder / "people.parquet")).repartition(PARTS)
    reports = table.mapInArrow(Watched(release, folder, fail), "skldp_report binary")
    reports.write.parquet(str(folder / "reports.parquet"))


def in_ray(people, release, folder):
    """A worker is killed; Ray executes its task again, as often as it must."""
    import ray

    if not ray.is_initialized():
        ray.init(num_cpus=1, object_store_memory=200 * 2**20, include_dashboard=False, log_to_driver=False)
    watched = Watched(release, folder, die)

    def released(part):
        return pa.Table.from_batches(watched(part.to_batches()), schema=release.schema)

    table = ray.data.from_arrow(people).repartition(PARTS)
    table.map_batches(released, batch_format="pyarrow").write_parquet(str(folder / "reports.parquet"))


ENGINES = {"polars": in_polars, "duckdb": in_duckdb, "spark": in_spark, "ray": in_ray}
PACKAGES = {"spark": "pyspark"}


def survey(engine, people, truth, secret, folder):
    """Release in an engine, collect what it wrote, and then what was seen before."""
    policy = POLICY if secret is None else POLICY.permanent()
    settings = {} if secret is None else {"secret": secret, "ids": "person"}
    release = release_batches(policy, **settings)
    start = time.perf_counter()
    ENGINES[engine](people, release, folder)
    seconds = time.perf_counter() - start
    collector = Collector(policy)
    written = folder / "reports.parquet"
    for path in sorted(written.glob("*.parquet")) if written.is_dir() else [written]:
        collector.add_file(path)
    mean, shares = collector.mean("age"), collector.frequencies("city")
    if secret is not None:
        alone = Collector(policy)
        for batch in release(people.to_batches()):
            alone.add_batch(batch)
        assert alone.mean("age").values.tolist() == mean.values.tolist(), "another release than that of one process"
        assert alone.frequencies("city").values.tolist() == shares.values.tolist()
    n = collector.n_reports
    assert n == people.num_rows, f"{n} reports of {people.num_rows} people"
    for path in folder.glob("sent-*.parquet"):
        collector.add_file(path)
    estimates = np.concatenate([mean.values, shares.values])
    low, high = np.concatenate([mean.low, shares.low]), np.concatenate([mean.high, shares.high])
    held = int(((low <= truth) & (truth <= high)).sum())
    print(
        f"{engine} {version(PACKAGES.get(engine, engine))}, {'a secret' if secret else 'fresh noise'}: {n:,} reports "
        f"in {seconds:.1f} s; second releases {collector.n_reports - n:,}; mean age {estimates[0]:.2f} "
        f"[{low[0]:.2f}, {high[0]:.2f}], truly {truth[0]:.2f}; {held} of {len(truth)} intervals hold the truth"
    )


def in_dask(rows, key, folder):
    """A one-hot table whose worker is killed after it sent a block: of how many rows two releases were seen."""
    import dask.dataframe as dd
    import distributed
    import pandas as pd

    from skldp import TablePrivatizer, release_dask
    from skldp.mechanisms import FieldKey

    frame = pd.DataFrame(rows).set_index("person")
    table = TablePrivatizer(2.0, schema={"age": (0, 100), "city": list(CITIES)}).fit(frame[:1])

    def send(part):
        part.to_pickle(folder / f"sent-{uuid.uuid4().hex}.pkl")
        if len(part) and not (folder / "failed").exists():
            (folder / "failed").touch()
            die()
        return part

    start = time.perf_counter()
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, memory_limit=0, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
        warnings.catch_warnings(record=True) as warned,
    ):
        warnings.simplefilter("always")
        lazy = dd.from_pandas(frame, npartitions=PARTS)
        own = {} if key is None else {"release_key": FieldKey(key, "survey"), "ids": lazy.index.to_series()}
        released = release_dask(table, lazy, **own)
        told = [str(one.message) for one in warned if "skldp" in type(one.message).__module__]
        finished = released.map_partitions(send, meta=released._meta).compute()
    assert finished.index.equals(frame.index)
    different = 0
    for path in folder.glob("sent-*.pkl"):
        sent = pd.read_pickle(path)
        different += int((sent != finished.loc[sent.index]).any(axis=1).sum())
    print(
        f"dask {version('dask')}, {'a secret' if key else 'fresh noise'}: {len(finished):,} rows in "
        f"{time.perf_counter() - start:.1f} s; second releases {different:,}"
    )
    for text in told:
        print(f"  it was told: {text}")


def main():
    """Run what is installed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--people", type=int, default=20_000)
    parser.add_argument("--only", nargs="+", choices=[*ENGINES, "dask"], default=[*ENGINES, "dask"])
    asked = parser.parse_args()
    rng = np.random.default_rng(0)
    city = rng.choice(3, asked.people, p=[0.5, 0.3, 0.2])
    age = rng.normal(45, 15, asked.people).clip(0, 100)
    truth = np.array([age.mean(), *np.bincount(city, minlength=3) / asked.people])
    rows = {"person": np.arange(asked.people), "age": age, "city": np.array(CITIES)[city]}
    with tempfile.TemporaryDirectory() as made:
        secret = ReleaseKey.create(Path(made) / "release.key")
        for engine in asked.only:
            if not find_spec(PACKAGES.get(engine, engine)):
                print(f"{engine}: not installed")
                continue
            for key in (secret, None):
                folder = Path(made) / f"{engine}-{key is not None}"
                folder.mkdir()
                if engine == "dask":
                    in_dask(rows, key, folder)
                else:
                    survey(engine, pa.table(rows), truth, key, folder)


if __name__ == "__main__":
    main()
