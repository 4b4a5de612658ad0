"""Released rows that a ledger keeps for whoever asks again, sealed under the idempotency key of their call.

A ledger records that a row was released, not the row: its file would be a second copy of everything that was ever
released. A call with a key keeps its rows, encrypted, so that they are handed out again to whoever has the key, and to
nobody else who reads the file, a backup of it or the database. The key itself is nowhere in a ledger.
"""

import base64
import dataclasses
import hashlib
import hmac
import json
import secrets
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from skldp.accounting._ledger.identity import Identity
from skldp.exceptions import LedgerError

__all__ = ["KeptRows", "parameters_of"]

_NONCE_BYTES = 12


@dataclasses.dataclass(frozen=True)
class KeptRows:
    """The rows of one call, on their way into the ledger or out of it.

    Parameters
    ----------
    key : str
        The call's idempotency key.
    people : list of int or str
    places : ndarray of int, shape (n_people, n_rows_of_each)
        Which of the rows are each person's.
    rows : ndarray
        The released rows, which are read and written in place.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.accounting._ledger.kept_rows import KeptRows
    >>> rows = np.array([[0.5], [1.5]])
    >>> kept = KeptRows("a key that nobody can guess", ["ann", "bob"], np.array([[0], [1]]), rows)
    >>> (sealed,) = kept.seal([1])
    >>> rows[1] = 0.0
    >>> kept.restore([1], [sealed])
    >>> rows.ravel().tolist()
    [0.5, 1.5]
    """

    key: str
    people: list[Identity]
    places: npt.NDArray[np.intp]
    rows: npt.NDArray[Any]

    @cached_property
    def _cipher(self) -> AESGCM:
        return AESGCM(hmac.digest(self.key.encode(), b"released rows", "sha256"))

    def seal(self, positions: Sequence[int] | npt.NDArray[np.intp]) -> list[str]:
        """Encrypt each of these people's rows."""
        return [self._sealed(int(position)) for position in positions]

    def restore(self, positions: Sequence[int] | npt.NDArray[np.intp], sealed: Sequence[str]) -> None:
        """Put these people's rows back in their places.

        Raises
        ------
        LedgerError
            If they are not what was sealed, for these people and with this key.
        """
        for position, text in zip(positions, sealed, strict=True):
            own = self.places[position]
            try:
                data = base64.b85decode(text)
                content = self._cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], self._name(int(position)))
            except (InvalidTag, TypeError, ValueError):
                raise LedgerError("The ledger is damaged: a row that was kept is not what was released.") from None
            self.rows[own] = np.frombuffer(content, dtype=self.rows.dtype).reshape(self.rows[own].shape)

    def _sealed(self, position: int) -> str:
        # Random nonces: a key is that of one call, which is committed once.
        nonce = secrets.token_bytes(_NONCE_BYTES)
        content = np.ascontiguousarray(self.rows[self.places[position]]).tobytes()
        return base64.b85encode(nonce + self._cipher.encrypt(nonce, content, self._name(position))).decode()

    def _name(self, position: int) -> bytes:
        return json.dumps(self.people[position]).encode("ascii")


def parameters_of(value: Any) -> Any:
    """What a mechanism was made with, as plain data: what a printed one does not always tell.

    Examples
    --------
    >>> from skldp.accounting._ledger.kept_rows import parameters_of
    >>> from skldp.mechanisms import RandomizedResponse
    >>> parameters_of(RandomizedResponse(0.5, 3))
    ['RandomizedResponse', [['epsilon', '0.5'], ['n_classes', '3']]]
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        made_with = [field.name for field in dataclasses.fields(value) if field.init]
        return [type(value).__name__, [[name, parameters_of(getattr(value, name))] for name in made_with]]
    if isinstance(value, tuple | list):
        return [parameters_of(one) for one in value]
    if isinstance(value, np.ndarray):
        return [value.dtype.str, list(value.shape), hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()]
    return repr(value.item() if isinstance(value, np.generic) else value)
