"""What a device waits for: the start of the client beside numpy and cryptography, one record, a stranger's policy.

``python benchmarks/device.py`` prints the table; `repeats` as an argument, 15 by default. Starts are those of new
processes, taken in turn, so that all meet the same machine.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from skldp.client import CategoryField, DeviceLedger, NumberField, Policy
from skldp.mechanisms import Duchi, Hybrid, LocalHashing, RandomizedResponse, integer_law
from skldp.mechanisms._group_laws import SampledLaw
from skldp.mechanisms._integer_laws import secure_words
from skldp.mechanisms._number_laws import TwoAnswersLaw

BASE = "numpy and cryptography"
STARTS = {
    BASE: "import numpy, numpy.typing; from cryptography.hazmat.primitives.ciphers import Cipher",
    "skldp.client": "import skldp.client",
    "skldp": "import skldp",
    "scikit-learn": "import sklearn.base",
}
POLICY = Policy(
    "a survey",
    (
        NumberField("age", 0.0, 120.0, integer_law(Hybrid(1.0))),
        NumberField("hours", 0.0, 80.0, integer_law(Hybrid(1.0))),
        CategoryField("city", ("Bonn", "Ulm", None), integer_law(RandomizedResponse(1.0, 3))),
    ),
)
ONE_NUMBER = Policy("an age", (NumberField("age", 0.0, 120.0, integer_law(Duchi(1.0))),))
RELEASE = "skldp.client, and one number released"
RECORD = {"age": 37, "hours": 12.5, "city": "Bonn"}


def starts(repeats: int, *, compiled: bool) -> dict[str, list[float]]:
    """Milliseconds of processor of a process that imports, less those of one that does not."""
    with tempfile.TemporaryDirectory() as folder:
        # An installed package has its byte code beside it; a process that may write none compiles every module anew.
        own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment = own | ({"PYTHONPYCACHEPREFIX": folder} if compiled else {"PYTHONDONTWRITEBYTECODE": "1"})
        policy = Path(folder) / "policy.json"
        ONE_NUMBER.save(policy)
        codes = STARTS | {
            RELEASE: f"from skldp.client import Policy; Policy.load({str(policy)!r}).release({{'age': 3}})"
        }
        taken: dict[str, list[float]] = {name: [] for name in codes}
        # The first start of each writes what the others read.
        for repeat in range(repeats + 1):
            empty = _process("pass", environment)
            for name, code in codes.items():
                milliseconds = 1e3 * (_process(code, environment) - empty)
                if repeat:
                    taken[name].append(milliseconds)
    return taken


def _process(code: str, environment: dict[str, str]) -> float:
    """Seconds of the processor, which other processes of the machine do not lengthen as they do those of a clock."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def per_record(repeats: int, ledger: DeviceLedger | None = None, records: int = 2000) -> list[float]:
    """Milliseconds for one record of three fields."""
    taken = []
    for _ in range(repeats):
        begun = time.perf_counter()
        for _ in range(records):
            POLICY.release(RECORD, ledger=ledger)
        taken.append(1e3 * (time.perf_counter() - begun) / records)
    return taken


def largest() -> dict[str, float]:
    """Seconds of processor for the largest that a stranger's policy may ask of a device."""
    law = SampledLaw(40_000, 16_000, TwoAnswersLaw(2**62))
    places = [0.5] * law.n_values
    taken = {"a draw of 16,000 of 40,000 numbers": _seconds(lambda: law.draw(places, secure_words()))}
    answer = law.draw(places, secure_words())
    taken["reading it"] = _seconds(lambda: law.values(answer))
    values = tuple(map(str, range(2**20)))
    text = Policy("many", (CategoryField("one", values, integer_law(LocalHashing(1.0, 2**20))),)).to_json()
    taken["loading a list of 2^20 categories"] = _seconds(lambda: Policy.from_json(text))
    return taken


def _seconds(call: Callable[[], object]) -> float:
    begun = time.process_time()
    call()
    return time.process_time() - begun


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    for compiled in (True, False):
        taken = starts(repeats, compiled=compiled)
        base = statistics.median(taken[BASE])
        print("with byte code, as pip installs it:" if compiled else "where no byte code is kept:")
        for name, some in taken.items():
            middle = statistics.median(some)
            print(
                f"  start of {name}: {middle:.0f} ms (worst {max(some):.0f}), {middle - base:+.0f} ms beside the first"
            )
    own = per_record(repeats)
    print(f"one record of {len(POLICY.fields)} fields: {statistics.median(own):.4f} ms (worst {max(own):.4f})")
    with tempfile.TemporaryDirectory() as folder:
        kept = per_record(repeats, DeviceLedger(Path(folder) / "mine.sqlite", lifetime_epsilon=1e6), records=100)
    print(f"with a ledger in a file: {statistics.median(kept):.4f} ms (worst {max(kept):.4f})")
    print(f"a report of this policy: {POLICY.n_bytes} bytes")
    for name, seconds in largest().items():
        print(f"{name}: {seconds:.2f} s")


if __name__ == "__main__":
    main()
