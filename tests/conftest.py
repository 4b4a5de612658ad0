"""Tests that are the same in every run: fixed examples, and fixed noise where a test judges what unseeded code draws.

``pytest`` is the same on every run. ``pytest -m statistical`` draws fresh hypothesis examples for the long tests, and
``pytest --hypothesis-profile fresh`` for all. What either finds is kept as an ``@example`` or a test of its own.
"""

import collections
import hashlib
import importlib.util
import itertools
import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings
from postgres_server import PostgresServer, find_programs

from skldp.laws import _integers as _integer_laws
from skldp.mechanisms import _noise

# Figures of the papers are scripts that run from a checkout.
sys.path.append(str(Path(__file__).parents[1] / "examples" / "papers"))

settings.register_profile("fixed", derandomize=True, deadline=None, database=None, max_examples=50)
settings.register_profile("fresh", derandomize=False, deadline=None, database=None, print_blob=True)
settings.load_profile("fixed")


def pytest_configure(config):
    chosen = config.getoption("--hypothesis-profile", None)
    long = config.option.markexpr.strip() == "statistical"
    settings.load_profile(chosen or ("fresh" if long else "fixed"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark as slow the cases of a test beyond the `n` that its marker `few` keeps, which are spread evenly."""
    kept = collections.defaultdict(list)
    for item in items:
        few = item.get_closest_marker("few")
        if few is not None and item.get_closest_marker("statistical") is None:
            case = item.callspec.params[few.kwargs["by"]] if few.kwargs else item
            kept[item.parent, item.originalname, few.args].append((id(case), item))
    for (_, _, (n,)), cases in kept.items():
        every = list(dict.fromkeys(case for case, _ in cases))
        quick = {every[i * len(every) // n] for i in range(n)}
        for case, item in cases:
            if case not in quick:
                item.add_marker("slow")


class FixedKeys:
    """The module `os` as the noise sees it, with keys that come from a counter."""

    def __init__(self):
        self._numbers = itertools.count()

    def __getattr__(self, name):
        return getattr(os, name)

    def urandom(self, n):
        return hashlib.shake_256(b"fixed key %d" % next(self._numbers)).digest(n)


@pytest.fixture
def fixed_noise(monkeypatch):
    """Key every stream of this process from a counter: a test that compares with a threshold cannot fail by chance."""
    keys = FixedKeys()
    # Of estimators and ledgers, and of a device.
    monkeypatch.setattr(_noise, "os", keys)
    monkeypatch.setattr(_integer_laws, "os", keys)


@pytest.fixture(scope="session")
def postgres_server():
    """A PostgreSQL server of this run's own; without one, a test is skipped, or fails where it must not be."""
    programs = find_programs()
    missing = [name for name in ("sqlalchemy", "psycopg") if importlib.util.find_spec(name) is None]
    if programs is None:
        missing.append("a PostgreSQL server (Debian's package postgresql)")
    if missing:
        # continuous integration must not be green for want of a server
        (pytest.fail if os.environ.get("SKLDP_POSTGRES") == "required" else pytest.skip)(
            f"without {', '.join(missing)}"
        )
    server = PostgresServer(programs)
    yield server
    server.stop()


@pytest.fixture
def postgres_schema(postgres_server):
    """An empty schema of the server, for one ledger."""
    schema = postgres_server.new_schema()
    yield schema
    postgres_server.execute(f"DROP SCHEMA {schema} CASCADE")


@pytest.fixture
def postgres_url(postgres_server, postgres_schema):
    """Where a ledger can be made, as its owner."""
    return postgres_server.url(schema=postgres_schema)


@pytest.fixture(params=["file", pytest.param("postgres", marks=pytest.mark.slow)])
def place(request, tmp_path):
    """Where a ledger can be made: a file, and a PostgreSQL server."""
    return tmp_path / "a.ledger" if request.param == "file" else request.getfixturevalue("postgres_url")
