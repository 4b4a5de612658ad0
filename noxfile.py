"""The environments of continuous integration: ``nox --list`` names them, ``.ci/run`` runs them in a copy.

Sessions tagged ``one_core`` keep one core busy; ``.ci/run`` runs them beside those tagged ``all_cores``. Sessions
without a tag run by their name alone.
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
nox.options.tags = ["one_core", "all_cores"]

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
FOUND = [version for version in PYTHONS if shutil.which(f"python{version}")] or PYTHONS[:1]
# The oldest versions of dependencies have no wheels above Python 3.12.
OLDEST, NEWEST = "3.12" if "3.12" in FOUND else "3.11", FOUND[-1]
CHROMIUM = ("chromium", "chromium-driver")
README = Path("README.md").read_text(encoding="utf-8")
MAIN_JOB, TESTS = re.findall(r"^python -m pip install .+ && .+", README, re.MULTILINE)


def shell(session, line):
    session.run("bash", "-euo", "pipefail", "-c", line, external=True)


def pytest(session, *arguments, **environment):
    session.run("python", "-m", "pytest", "-q", *arguments, env=environment)


def install_wheels(session, what):
    """Install without building anything but skldp, and say so where a Python has no wheels yet."""
    try:
        session.install("--only-binary", ":all:", "--no-binary", "skldp", "-e", what)
    except CommandFailed:
        session.skip("a dependency has no wheel for this Python, so that it was NOT tested")


def has_programs(session, found, *packages):
    """Return whether programs are found; if not, root installs Debian's packages of them first."""
    if not found() and os.getuid() == 0 and shutil.which("apt-get"):
        quiet = {"DEBIAN_FRONTEND": "noninteractive"}
        session.run("apt-get", "update", "-qq", external=True)
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends"]
        session.run(*install, *packages, external=True, env=quiet)
    return found()


@nox.session(tags=["one_core"])
def readme(session):
    """Run the README's first command."""
    shell(session, MAIN_JOB)
    shell(session, "test -s study.csv && test -s study.png")


@nox.session(tags=["all_cores"])
def tests(session):
    """Run the README's second command, then the slow tests and every sixth of the faults that tests must find."""
    shell(session, TESTS)
    pytest(session, "-n", "logical", "-m", "slow")
    session.run("python", "tests/mutations/test_mutations.py", "6")


@nox.session(python=NEWEST, tags=["one_core"])
def lint(session):
    """Check style, types and layers, on the newest Python of the machine: numpy's types use its syntax."""
    session.install("-e", ".[study,lint]")
    for command in ("ruff check .", "ruff format --check .", "mypy", "lint-imports"):
        session.run(*command.split())


@nox.session(tags=["all_cores"])
def compiled(session):
    """Test what runs compiled, which the other environments leave out."""
    install_wheels(session, ".[test,fast]")
    pytest(session, "-n", "logical", "tests/mechanisms/test_kernels.py", "tests/estimators/test_out_of_core.py")


@nox.session(tags=["all_cores"])
def postgres(session):
    """Test the ledger on a PostgreSQL server, which is installed where it can be; without one this fails."""
    debian = Path("/usr/lib/postgresql")
    if not has_programs(session, lambda: shutil.which("initdb") or any(debian.glob("*/bin/initdb")), "postgresql"):
        session.error("Nothing was tested: install a PostgreSQL server first (Debian's package is postgresql).")
    session.install("-e", ".[test,postgres]")
    ledger = sorted(map(str, Path("tests/accounting").glob("test_ledger*.py")))
    # Each worker starts a server of its own.
    pytest(
        session,
        *("-n", "logical", "-m", "not statistical", *ledger, "tests/accounting/test_releases_made_again.py"),
        SKLDP_POSTGRES="required",
    )
    session.run("python", "tests/mutations/test_mutations.py", "1", "psycopg", env={"SKLDP_POSTGRES": "required"})


@nox.session(tags=["one_core"])
def flower(session):
    """Test rounds over a real server of Flower's and two nodes; without Flower this fails."""
    session.install("-e", ".[test,flower]")
    nodes = sorted(map(str, Path("tests/collection").glob("test_flower*.py")))
    pytest(session, "-m", "not statistical", *nodes, SKLDP_FLOWER="required")


@nox.session(tags=["one_core"])
def docs(session):
    """Build the pages, which run every example, with warnings as errors, and look at them in a browser."""
    session.install("-e", ".[docs]")
    session.run("python", "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "docs", "docs/_build")
    if not has_programs(session, lambda: all(map(shutil.which, ("chromium", "chromedriver"))), *CHROMIUM):
        session.warn("NO PAGE WAS LOOKED AT IN A BROWSER: install chromium and its driver.")
        return
    session.install("-e", ".[test,browser]")
    found = {"SKLDP_BROWSER": "required"}
    if shutil.which("npm"):
        tools = session.create_tmp()
        session.run("npm", "install", "--silent", "--prefix", tools, "axe-core@4", external=True)
        found["SKLDP_AXE"] = f"{tools}/node_modules/axe-core/axe.min.js"
    pytest(session, "-m", "not statistical", "tests/test_pages.py", **found)


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
    pytest(session, "-n", "logical", *ignored)


@nox.session(python=PYTHONS, tags=["all_cores"])
def others(session):
    """Run the quick tests on every other Python of the machine; scikit-learn's own checks run in `tests`."""
    if session.python in (OLDEST, "{}.{}".format(*sys.version_info)):
        session.skip("oldest or tests runs on this one")
    install_wheels(session, ".[test]")
    pytest(session, "-n", "logical", "--ignore", "tests/estimators/test_scikit_learn.py")


@nox.session
def nightly(session):
    """Test against what scikit-learn, numpy and scipy will release next; PIP_EXTRA_INDEX_URL says where that is."""
    session.install("-e", ".[test]")
    session.install("--pre", "--upgrade", "--only-binary", ":all:", "numpy", "scipy", "scikit-learn")
    pytest(session, "-n", "logical")


@nox.session
def mutants(session):
    """Change every operator of a file or folder, and list the changes that tests miss: `-- FOLDER "TESTS"`."""
    folder, tests = session.posargs or ("skldp/laws", "tests/mechanisms")
    session.install("-e", ".[test]", "cosmic-ray")
    work = Path(session.create_tmp()).resolve()
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
        session.run("cosmic-ray", "exec", "mutants.toml", "mutants.sqlite", env={"PYTHONPATH": str(work)})
        session.run("cr-report", "--surviving-only", "--show-diff", "mutants.sqlite")


@nox.session
def benchmarks(session):
    """Time the releases; arguments go to pytest, such as --benchmark-compare."""
    session.install("-e", ".[bench]")
    session.run("python", "-m", "pytest", "benchmarks/bench_releases.py", *session.posargs)
