"""A PostgreSQL server of the tests' own, in a temporary folder, on a socket in it; and statements past a ledger."""

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

__all__ = ["OWNER", "TENANTS", "PostgresServer", "edit_as_no_program_should", "find_programs", "run_at"]

# Roles of every such server: whose the ledgers are, and two who ask with them.
OWNER, TENANTS = "keeper", ("clinic_a", "clinic_b")
_OPTIONS = "-c listen_addresses='' -c unix_socket_directories={folder} -c max_connections=50"
_USER = "postgres"


def find_programs():
    """The folder of the server's programs, or None."""
    known = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which("initdb")
    return next((folder for folder in known if (folder / "initdb").exists()), found and Path(found).resolve().parent)


class PostgresServer:
    """A server that is started, killed and started again."""

    def __init__(self, programs):
        self._programs = programs
        # A socket's path must be short.
        self.folder = Path(tempfile.mkdtemp(prefix="skldp-pg-"))
        # The server refuses to run as root.
        self._as = ["runuser", "-u", _USER, "--"] if os.getuid() == 0 else []
        if self._as:
            shutil.chown(self.folder, _USER)
        self._run("initdb", "--auth=trust", "--no-sync", "--username=root", "-D", self.folder / "data")
        self.start()
        self.execute(f"CREATE ROLE {OWNER} LOGIN", *(f"CREATE ROLE {tenant} LOGIN" for tenant in TENANTS))

    def _run(self, program, *arguments):
        ended = subprocess.run(
            [*self._as, self._programs / program, *arguments],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, cwd=self.folder,
        )  # fmt: skip
        assert ended.returncode == 0, f"{program} of PostgreSQL failed: {ended.stderr or ended.stdout}"

    def start(self):
        """Start it, and wait until it is there."""
        with (self.folder / "log").open("a") as log:
            log.write("")
        os.chmod(self.folder / "log", 0o666)
        options = _OPTIONS.format(folder=self.folder)
        # Its output must not keep the pipe of who started it open.
        self._run(
            "pg_ctl", "start", "-w", "-t", "60", "-D", self.folder / "data", "-o", options, "-l", self.folder / "log"
        )

    def processes(self):
        """The server's processes, by their ids, the first one first."""
        first = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        numbers = [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]
        return [first, *(number for number in numbers if _state_and_parent(number)[1] == str(first))]

    def kill(self):
        """Kill all its processes, as a power cut would; what it has written to the disk stays."""
        ids = self.processes()
        for process in ids:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        # Where the first process of a container asks for nobody's end, what has ended stays in the list: neither is it
        # waited for, nor does the next server take it for one that runs.
        while any(_state_and_parent(process)[0] not in "ZX" for process in ids):
            time.sleep(0.01)
        for left in (self.folder / "data" / "postmaster.pid", *self.folder.glob(".s.PGSQL.*.lock")):
            left.unlink(missing_ok=True)

    def stop(self):
        """Stop it and remove all that it has left."""
        self._run("pg_ctl", "stop", "-w", "-m", "immediate", "-D", self.folder / "data")
        shutil.rmtree(self.folder)

    def execute(self, *statements, role="root"):
        """Run statements, each in a transaction; give the rows of the last."""
        import psycopg

        with psycopg.connect(self.url(role), autocommit=True) as connection:
            for statement in statements:
                result = connection.execute(statement)
            return result.fetchall() if result.description else None

    def url(self, role=OWNER, schema=None):
        """Where a role finds its ledger."""
        path = "" if schema is None else f"&options=-csearch_path%3D{schema}"
        return f"postgresql://{role}@/postgres?host={self.folder}{path}"

    def new_schema(self):
        """An empty schema of the owner."""
        schema = f"s{uuid.uuid4().hex[:12]}"
        self.execute(f"CREATE SCHEMA {schema} AUTHORIZATION {OWNER}")
        return schema


def _state_and_parent(process):
    """The letter of a process's state and its parent's id, or that of an ended one."""
    with contextlib.suppress(OSError):
        # Its name, in brackets, may hold anything.
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[:2]
    return ["X", ""]


def run_at(place, *statements):
    """Run statements at a file or a URL, there as the superuser; give the rows of the last."""
    if not isinstance(place, str):
        connection = sqlite3.connect(place, isolation_level=None)
        try:
            return [connection.execute(statement).fetchall() for statement in statements][-1]
        finally:
            connection.close()
    import psycopg

    with psycopg.connect(place.replace(f"{OWNER}@", "root@"), autocommit=True) as connection:
        results = [connection.execute(statement) for statement in statements]
        return results[-1].fetchall() if results[-1].description else None


def edit_as_no_program_should(place, *statements):
    """Change what a ledger keeps, with its triggers gone."""
    if isinstance(place, str):
        run_at(place, "SET session_replication_role = replica", *statements)
        return
    triggers = run_at(place, "SELECT name FROM sqlite_master WHERE type = 'trigger'")
    run_at(place, *(f"DROP TRIGGER {name}" for (name,) in triggers), *statements, "SELECT 1")
    # The lock file is told to believe what it finds.
    os.truncate(f"{place}.lock", 0)
