"""Secret key of repeatable noise, for repeated releases of unchanged records."""

import hashlib
import os
import stat
from collections.abc import Callable
from functools import partial
from os import PathLike, fspath
from typing import Any

_N_BYTES = 32
# 32 random bytes have about thirty different values, and fewer than 16 with a chance below 2^-50 (a union bound over
# binom(256, 15) sets).
_LEAST_DIFFERENT = 16


class ReleaseKey:
    r"""Secret of 32 random bytes, from which the same record always gets the same noise.

    Parameters
    ----------
    secret : bytes, or callable that returns them
        Secret of 32 random bytes. A callable, such as a function that queries a key store, is called once per process
        and pickled in place of the secret. A key of bytes cannot be pickled.

    Attributes
    ----------
    fingerprint : str
        Identifier of 32 hexadecimal digits that does not reveal the secret.

    Raises
    ------
    ValueError
        If the secret is not exactly 32 bytes or does not look random (zeros, few different bytes, a text). The message
        contains no byte of the secret.

    See Also
    --------
    FieldKey : Secret of one field, derived from this one.

    Notes
    -----
    Anyone with the secret and a release can test guesses of the record at any epsilon. Keep the secret with the
    releaser, separate from reports and records. After a loss or replacement of the secret, the next release of every
    record has its full cost again.

    A pickle holds the source of the secret and its fingerprint, never the secret. Another process reads the file or
    queries the store itself, and raises ValueError if the fingerprint differs.

    Examples
    --------
    >>> import os, tempfile
    >>> from skldp.mechanisms import ReleaseKey
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "release.key")
    ...     made = ReleaseKey.create(path)
    ...     ReleaseKey.from_file(path).fingerprint == made.fingerprint
    True
    """

    def __init__(self, secret: bytes | Callable[[], bytes]) -> None:
        self._source = secret if callable(secret) else None
        self._secret = _checked(secret() if callable(secret) else secret)
        self.fingerprint = self.subkey("fingerprint").hex()[:32]

    @classmethod
    def create(cls, path: str | PathLike[str]) -> "ReleaseKey":
        """Draw a secret and write it to a new file that only its owner may read.

        Parameters
        ----------
        path : str or path-like
            Path of a new file. An existing file is never overwritten.

        Returns
        -------
        ReleaseKey

        Raises
        ------
        FileExistsError
            If the file exists.
        """
        secret = os.urandom(_N_BYTES)
        place = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        with os.fdopen(place, "wb") as file:
            file.write(secret)
            file.flush()
            # The secret must be on disk before its first release, in case of a crash.
            os.fsync(file.fileno())
        return cls.from_file(path)

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> "ReleaseKey":
        """Return the secret in a file of 32 bytes.

        Parameters
        ----------
        path : str or path-like
            File, readable by its owner only.

        Raises
        ------
        ValueError
            If the file is not regular, is readable by others (on POSIX), or does not contain a secret.
        """
        return cls(partial(_read_secret, os.path.abspath(fspath(path))))

    @property
    def travels(self) -> bool:
        """True if another process can load the secret, so that the key may be pickled."""
        return self._source is not None

    def subkey(self, purpose: str, *parts: bytes) -> bytes:
        """Return 32 bytes for a purpose, which reveal neither the secret nor the bytes for other purposes.

        Parameters
        ----------
        purpose : str
            Name of at most 16 letters.
        *parts : bytes
            Further inputs of the subkey, joined injectively.
        """
        person = purpose.encode().ljust(hashlib.blake2b.PERSON_SIZE, b"\0")
        return hashlib.blake2b(joined_bytes(*parts), key=self._secret, person=person, digest_size=32).digest()

    def __repr__(self) -> str:
        return f"ReleaseKey(fingerprint={self.fingerprint!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReleaseKey) and self._secret == other._secret

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> Any:
        if self._source is None:
            raise TypeError("A ReleaseKey of bytes must not be pickled; make it from a file or a function.")
        return _found_again, (self._source, self.fingerprint)


def _read_secret(path: str) -> bytes:
    """Read the secret from a file; keys of other processes call this too."""
    with open(path, "rb", opener=_without_waiting) as file:
        # Check the open file: the path may have been replaced meanwhile.
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise ValueError("The file of a release key must be a regular file; got another kind of file.")
        if os.name == "posix" and state.st_mode & 0o077:
            mode = f"{stat.S_IMODE(state.st_mode):o}"
            raise ValueError(f"The file of a release key must be readable by its owner alone (mode 600); got {mode}.")
        return file.read(_N_BYTES + 1)


def joined_bytes(*parts: bytes) -> bytes:
    """Join byte strings injectively: each is preceded by its length."""
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def _without_waiting(path: str, flags: int) -> int:
    # Opening a pipe would block.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _found_again(source: Callable[[], bytes], fingerprint: str) -> ReleaseKey:
    key = ReleaseKey(source)
    if key.fingerprint != fingerprint:
        raise ValueError(f"The release secret must have the fingerprint {fingerprint}; got {key.fingerprint}.")
    return key


def _checked(secret: Any) -> bytes:
    if not isinstance(secret, bytes | bytearray) or len(secret) != _N_BYTES:
        size = f" of length {len(secret)}" if isinstance(secret, bytes | bytearray) else ""
        raise ValueError(f"A release secret must be {_N_BYTES} bytes; got {type(secret).__name__}{size}.")
    own = bytes(secret)
    if len(set(own)) < _LEAST_DIFFERENT or (own.isascii() and own.decode("ascii").isprintable()):
        raise ValueError("A release secret must be random bytes, as ReleaseKey.create draws; got a pattern or a text.")
    return own
