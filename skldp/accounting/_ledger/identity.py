"""Who is who in a ledger: people have names, and only simulations in memory go by rows."""

import hmac
import re
import unicodedata
from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Identity", "canonical_ids", "distinct_ids", "row_identities"]

Identity = int | str

_STRING_RULE = (
    "A string id must be at least one printable character in Unicode's normal form C, without blanks at its ends and "
    "invisible marks, so that one person is never two: clean the ids with unicodedata.normalize('NFC', id).strip()"
)
# What Python calls printable and nobody sees: joiners, fillers, vowels that are not written, selectors of variants.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U00016fe4\U0001d159"
    "\U000e0100-\U000e01ef]"
)


def canonical_ids(ids: Iterable[Any]) -> list[Identity]:
    """Bring ids to one form, and refuse those that could make two people of one.

    Parameters
    ----------
    ids : iterable of int or str
        Integers of any kind (``numpy.int64(1)`` is ``1``) or strings (``"1"`` is somebody else than ``1``), in an
        order: a list, an array, a column of a data frame, its index.

    Returns
    -------
    list of int or str

    Raises
    ------
    TypeError
        If an id is a float, a bool, bytes, missing or of another type, or `ids` has no order or is a single string.
    ValueError
        If an integer does not fit into 64 bits; if a string is empty, begins or ends with a blank, holds a character
        that cannot be printed or seen, or is not in Unicode's normal form C; if `ids` is not one-dimensional.

    Notes
    -----
    Ids are names of people: errors tell the position of one, from 0, and never the id.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.accounting._ledger.identity import canonical_ids
    >>> canonical_ids(np.array([3, 1])), canonical_ids(["3", 1])
    ([3, 1], ['3', 1])
    """
    if isinstance(ids, str | bytes | Mapping | set | frozenset) or not isinstance(ids, Iterable):
        raise TypeError(f"ids must be one id per person, in order. Got a {type(ids).__name__} instead.")
    shape = getattr(ids, "shape", (0,))
    if len(shape) != 1:
        raise ValueError(f"ids must be one-dimensional. Got shape {shape} instead.")
    if isinstance(ids, np.ndarray) and ids.dtype.kind in "iuUO":
        ids = ids.tolist()
    return [
        value
        if (type(value) is int and -(2**63) <= value < 2**63) or (type(value) is str and _is_canonical(value))
        else _canonical_id(value, position)
        for position, value in enumerate(ids)
    ]


def distinct_ids(ids: Iterable[Any]) -> list[Identity]:
    """Bring ids to one form where each is asked something.

    Parameters
    ----------
    ids : iterable of int or str

    Returns
    -------
    list of int or str

    Raises
    ------
    TypeError, ValueError
        As in :func:`canonical_ids`; ValueError also if an id occurs twice.

    Examples
    --------
    >>> from skldp.accounting._ledger.identity import distinct_ids
    >>> distinct_ids(["ann", 7])
    ['ann', 7]
    """
    people = canonical_ids(ids)
    if len(set(people)) < len(people):
        seen: dict[Identity, int] = {}
        for position, person in enumerate(people):
            first = seen.setdefault(person, position)
            if first != position:
                raise ValueError(
                    "A person can be asked only once in a call. Got one id twice, at the positions "
                    f"{first} and {position} (counted from 0)."
                )
    return people


def row_identities(X: npt.ArrayLike, key: bytes) -> list[Identity]:
    """Take every row for a person, in a simulation that ends with the process.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The records as given, before any clipping.
    key : bytes
        A secret that is in memory alone. With it, guesses of a record could be tried.

    Returns
    -------
    list of str
        HMAC-SHA256 of the row's float64 numbers, with -0.0 taken as 0.0, and how many rows before it are equal: equal
        rows of one table are different people, and the first of them is the first in another table.

    Examples
    --------
    >>> from skldp.accounting._ledger.identity import row_identities
    >>> a, b, c = row_identities([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0]], key=b"secret")
    >>> a[:64] == b[:64], a == b, a[:64] == c[:64]
    (True, False, False)
    """
    # Adding 0.0 turns -0.0 into 0.0.
    rows = np.ascontiguousarray(np.asarray(X, dtype=np.float64) + 0.0)
    before: dict[str, int] = {}
    people: list[Identity] = []
    for row in rows:
        digest = hmac.digest(key, row.tobytes(), "sha256").hex()
        before[digest] = before.get(digest, -1) + 1
        people.append(f"{digest} {before[digest]}")
    return people


def _is_canonical(text: str) -> bool:
    # Of all that looks like a blank, only spaces are printable; most invisible marks are not.
    return (
        text.isprintable()
        and text != ""
        and text == text.strip()
        and (text.isascii() or (unicodedata.is_normalized("NFC", text) and not _INVISIBLE.search(text)))
    )


def _canonical_id(value: Any, position: int) -> Identity:
    if isinstance(value, str):
        text = str(value)
        if not _is_canonical(text):
            raise ValueError(f"{_STRING_RULE}. Got one that is not, at position {position} (counted from 0).")
        return text
    if isinstance(value, Integral) and not isinstance(value, bool | np.bool_):
        number = int(value)
        if not -(2**63) <= number < 2**63:
            raise ValueError(f"An integer id must fit into 64 bits. Got a larger one at position {position}.")
        return number
    hint = ""
    if isinstance(value, float | np.floating):
        hint = (
            " Data frames turn integers into floats where some are missing, after a merge for one: find the people "
            "without an id, and cast the column to integers."
        )
    elif isinstance(value, bytes):
        hint = " Decode bytes to strings."
    raise TypeError(
        f"An id must be an integer or a string. Got a {type(value).__name__} at position {position} (counted from 0)."
        f"{hint}"
    )
