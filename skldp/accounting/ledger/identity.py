"""Who is who in a ledger: canonical ids, and keyed hashes of rows where there are no ids."""

import hmac
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Identity", "canonical_ids", "first_repeated", "row_identities"]

Identity = int | str | bytes


def canonical_ids(ids: Iterable[Any]) -> list[Identity]:
    """Bring ids to one form, so that one person is never two.

    Parameters
    ----------
    ids : iterable of int, str or bytes
        Integers of any kind (``numpy.int64(1)`` is ``1``), strings (``"1"`` is somebody else than ``1``), or the
        bytes that :func:`row_identities` makes. An array or a pandas Series will do.

    Returns
    -------
    list of int, str or bytes

    Raises
    ------
    TypeError
        If an id is a bool, a float, None or of another type, or `ids` is a single string.
    ValueError
        If an integer does not fit into 64 bits or a string is not valid Unicode.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.accounting.ledger.identity import canonical_ids
    >>> canonical_ids(np.array([3, 1])), canonical_ids(["3", 1])
    ([3, 1], ['3', 1])
    """
    if isinstance(ids, str | bytes):
        raise TypeError(f"ids must be one id per person, not a single one. Got {ids!r} instead.")
    if isinstance(ids, np.ndarray):
        if ids.ndim != 1:
            raise ValueError(f"ids must be one-dimensional. Got shape {ids.shape} instead.")
        ids = ids.tolist() if ids.dtype.kind in "iuUSO" else list(ids)
    return [_canonical_id(value) for value in ids]


def first_repeated(identities: Sequence[Identity]) -> Identity | None:
    """Find the first id that occurs a second time, or None."""
    seen: set[Identity] = set()
    for identity in identities:
        if identity in seen:
            return identity
        seen.add(identity)
    return None


def row_identities(X: npt.ArrayLike, key: bytes) -> list[Identity]:
    """Give every row its keyed hash: the same record is the same person, and the record cannot be read back.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The records as given, before any clipping.
    key : bytes
        The secret of one ledger. Without it the hash of a guessed record cannot be computed.

    Returns
    -------
    list of bytes
        HMAC-SHA256 of the row's float64 numbers, with -0.0 taken as 0.0.

    Raises
    ------
    ValueError
        If a number is NaN, which equals nothing, not even itself.

    Examples
    --------
    >>> from skldp.accounting.ledger.identity import row_identities
    >>> a, b, c = row_identities([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0]], key=b"secret")
    >>> a == b, a == c
    (True, False)
    """
    # Adding 0.0 turns -0.0 into 0.0; little-endian bytes make the hash the same on every machine.
    rows = np.ascontiguousarray(np.asarray(X, dtype=np.float64) + 0.0, dtype="<f8")
    if rows.ndim != 2:
        raise ValueError(f"X must have shape (n_samples, n_features). Got shape {rows.shape} instead.")
    if np.isnan(rows).any():
        raise ValueError("A row with NaN is nobody in particular: X must hold numbers. Got NaN instead.")
    return [hmac.digest(key, row.tobytes(), "sha256") for row in rows]


def _canonical_id(value: Any) -> Identity:
    if isinstance(value, str):
        text = str(value)
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError(f"A string id must be valid Unicode. Got {value!r} instead.") from None
        return text
    if isinstance(value, bytes):
        return bytes(value)
    if isinstance(value, Integral) and not isinstance(value, bool | np.bool_):
        number = int(value)
        if not -(2**63) <= number < 2**63:
            raise ValueError(f"An integer id must fit into 64 bits. Got {value!r} instead.")
        return number
    raise TypeError(f"An id must be an integer or a string. Got {value!r} instead.")
