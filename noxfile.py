"""The environments of continuous integration, each fresh: ``nox --list`` names them, ``.ci/run`` runs all in a copy.

A session's tag says whether it keeps one core busy or all: ``.ci/run`` runs those of one core beside the others.
"""

import hashlib
import json
import os
import re
import shutil
import sys
import zipfile
from pathlib import Path

import nox
from nox.command import CommandFailed

nox.needs_version = ">=2024.4"
nox.options.default_venv_backend = "venv"
nox.options.sessions = [
    "readme",
    "tests",
    "lint",
    "compiled",
    "postgres",
    "flower",
    "docs",
    "package",
    "oldest",
    "others",
]

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
ACCOUNTING = Path("tests/accounting")
LEDGER = [*sorted(map(str, ACCOUNTING.glob("test_ledger*.py"))), str(ACCOUNTING / "test_releases_made_again.py")]
COMPILED = ["tests/mechanisms/test_kernels.py", "tests/estimators/test_out_of_core.py"]
# The oldest versions have no wheels above Python 3.12; there they are tested, the newest on every other Python.
OLDEST = next((version for version in ("3.12", "3.11") if shutil.which(f"python{version}")), "3.11")
NEWEST = next((version for version in reversed(PYTHONS) if shutil.which(f"python{version}")), "3.11")
README = Path("README.md").read_text(encoding="utf-8")
MAIN_JOB, TESTS = re.findall(r"^python -m pip install .+ && .+", README, re.MULTILINE)


def shell(session, line):
    session.run("bash", "-euo", "pipefail", "-c", line, external=True)


@nox.session(tags=["one_core"])
def readme(session):
    """Run the README's first command."""
    shell(session, MAIN_JOB)
    shell(session, "test -s study.csv && test -s study.png")


@nox.session(tags=["all_cores"])
def tests(session):
    """Run the README's second command, then the slow tests and every sixth of the faults that tests must find."""
    shell(session, TESTS)
    session.run("python", "-m", "pytest", "-q", "-n", "logical", "-m", "slow")
    session.run("python", "tests/mutations/test_mutations.py", "6")


@nox.session(python=NEWEST, tags=["one_core"])
def lint(session):
    """Check style, types and floors, on the newest Python of the machine: numpy's types use its syntax."""
    session.install("-e", ".[study,lint]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("lint-imports")


@nox.session(tags=["all_cores"])
def compiled(session):
    """Test what runs compiled, which the other environments leave out."""
    install_wheels(session, ".[test,fast]")
    session.run("python", "-m", "pytest", "-q", "-n", "logical", *session.posargs, *COMPILED)


@nox.session(tags=["all_cores"])
def postgres(session):
    """Test the ledger on a PostgreSQL server, which is installed where it can be; without one this fails."""
    if not list(Path("/usr/lib/postgresql").glob("*/bin/initdb")) and not shutil.which("initdb"):
        if os.getuid() != 0 or not shutil.which("apt-get"):
            session.error("Nothing was tested: install a PostgreSQL server first (Debian's package is postgresql).")
        install_debian(session, "postgresql")
    session.install("-e", ".[test,postgres]")
    required = {"SKLDP_POSTGRES": "required"}
    # Each worker starts a server of its own.
    session.run("python", "-m", "pytest", "-q", "-n", "logical", "-m", "not statistical", *LEDGER, env=required)
    session.run("python", "tests/mutations/test_mutations.py", "1", "psycopg", env=required)


@nox.session(tags=["one_core"])
def flower(session):
    """Test rounds over a real server of Flower's and two nodes; without Flower this fails."""
    session.install("-e", ".[test,flower]")
    nodes = sorted(map(str, Path("tests/collection").glob("test_flower*.py")))
    session.run("python", "-m", "pytest", "-q", "-m", "not statistical", *nodes, env={"SKLDP_FLOWER": "required"})


@nox.session(tags=["one_core"])
def docs(session):
    """Build the pages, which run every example, with warnings as errors."""
    session.install("-e", ".[docs]")
    session.run("python", "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "docs", "docs/_build")
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        if os.getuid() != 0 or not shutil.which("apt-get"):
            session.warn("NO PAGE WAS LOOKED AT IN A BROWSER: install chromium and its driver.")
            return
        install_debian(session, "chromium", "chromium-driver")
    session.install("-e", ".[test,browser]")
    required = {"SKLDP_BROWSER": "required"}
    session.run("python", "-m", "pytest", "-q", "-m", "not statistical", "tests/test_pages.py", env=required)


@nox.session(tags=["one_core"])
def package(session):
    """Build what is published, install it as from an index, and run the README; `-- study` runs its command too."""
    session.install("build", "twine")
    shutil.rmtree("dist", ignore_errors=True)
    session.run("python", "-m", "build")
    shell(session, "python -m twine check --strict dist/*")
    archive_vectors(next(Path("dist").glob("*.whl")).name.split("-")[1])
    # Without an index and without dependencies, nothing but the wheel just built can be installed.
    session.install("--no-index", "--no-deps", "--find-links", "dist", "skldp")
    session.install("--find-links", "dist", "skldp[study]")
    example, printed = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL).groups()
    with session.chdir(session.create_tmp()):
        said = session.run("python", "-c", example, silent=True)
        if said.splitlines()[1:] != printed.splitlines()[1:]:
            session.error(f"The README's example states another guarantee: {said}")
        if "study" in session.posargs:
            session.run("skldp", "study", silent=True)
            shell(session, "test -s study.csv && test -s study.png")


def archive_vectors(version):
    """Write the test vectors with their format into one archive of reproducible bytes, and the checksums of all."""
    client = Path("skldp/client")
    # Stored, because the output of deflate differs between versions of zlib.
    with zipfile.ZipFile(f"dist/skldp-{version}-vectors.zip", "w") as archive:
        for path in client / "FORMAT.md", client / "policy.schema.json", Path("tests/client/vectors.json"):
            archive.writestr(zipfile.ZipInfo(path.name), path.read_bytes())
    files = sorted(path for path in Path("dist").iterdir() if path.suffix in (".whl", ".gz", ".zip"))
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    Path("dist/SHA256SUMS").write_text("".join(sums), encoding="utf-8")


@nox.session(python=OLDEST, tags=["all_cores"])
def oldest(session):
    """Test against the oldest supported versions."""
    session.install("--constraint", ".ci/oldest.txt", "-e", ".[test,fast]")
    # The oldest scikit-learn hands parametrize a generator, of which new releases of pytest warn; the oldest joblib
    # reads numbers and starts processes in ways that Python 3.12 warns of.
    old_ways = [f"ignore:{text}:DeprecationWarning" for text in ("ast.Num", "Attribute n", "This process")]
    ignored = [word for way in ("ignore::pytest.PytestRemovedIn10Warning", *old_ways) for word in ("-W", way)]
    session.run("python", "-m", "pytest", "-q", "-n", "logical", *ignored)


@nox.session(python=PYTHONS, tags=["all_cores"])
def others(session):
    """Run the quick tests on every other Python of the machine; scikit-learn's own checks run in `tests`."""
    if session.python == "{}.{}".format(*sys.version_info):
        session.skip("tests runs on this one")
    if session.python == OLDEST:
        session.skip("oldest runs on this one")
    install_wheels(session, ".[test]")
    session.run("python", "-m", "pytest", "-q", "-n", "logical", "--ignore", "tests/estimators/test_scikit_learn.py")


@nox.session
def nightly(session):
    """Test against what scikit-learn, numpy and scipy will release next; PIP_EXTRA_INDEX_URL says where that is."""
    session.install("-e", ".[test]")
    session.install("--pre", "--upgrade", "--only-binary", ":all:", "numpy", "scipy", "scikit-learn")
    session.run("python", "-m", "pytest", "-q", "-n", "logical")


@nox.session
def mutants(session):
    """Change every operator of a file or folder, and list the changes that tests miss: `-- FOLDER "TESTS"`."""
    folder, tests = session.posargs or ("skldp/laws", "tests/mechanisms")
    session.install("-e", ".[test]", "cosmic-ray")
    work = Path(session.create_tmp())
    # In a copy: a run that is stopped leaves a mutant behind.
    for name in ("skldp", "tests", "examples", "benchmarks"):
        shutil.copytree(name, work / name, dirs_exist_ok=True)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(name, work)
    settings = {"module-path": folder, "timeout": 300.0, "test-command": f"python -m pytest -x -q {tests}"}
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    (work / "mutants.toml").write_text("\n".join(["[cosmic-ray]", *lines, 'distributor.name = "local"', ""]))
    with session.chdir(work):
        session.run("cosmic-ray", "init", "--force", "mutants.toml", "mutants.sqlite")
        session.run("cosmic-ray", "exec", "mutants.toml", "mutants.sqlite", env={"PYTHONPATH": str(work.resolve())})
        session.run("cr-report", "--surviving-only", "--show-diff", "mutants.sqlite")


@nox.session
def benchmarks(session):
    """Time the releases; arguments go to pytest, such as --benchmark-compare."""
    session.install("-e", ".[bench]")
    session.run("python", "-m", "pytest", "benchmarks/bench_releases.py", *session.posargs)


def install_debian(session, *packages):
    """Install packages of Debian's, as root."""
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    session.run("apt-get", "update", "-qq", external=True)
    session.run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages, external=True, env=quiet)


def install_wheels(session, what):
    """Install without building anything but skldp, and say so where a Python has no wheels yet."""
    try:
        session.install("--only-binary", ":all:", "--no-binary", "skldp", "-e", what)
    except CommandFailed:
        session.skip("a dependency has no wheel for this Python, so that it was NOT tested")
