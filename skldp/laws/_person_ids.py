"""Ids of people: the one form in which every entry point takes them.

A person with two ids would have two budgets, and two permanent reports of one value.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any

import numpy as np

Identity = int | str

_STRING_RULE = (
    "A string id must be non-empty and printable, in Unicode's normal form C, without invisible marks or blanks at its "
    "ends (see unicodedata.normalize('NFC', id).strip()), and an integer without a decimal mark or "
    "exponent, as '1' and not '1.0'"
)
# Invisible characters that Python calls printable: joiners, fillers, variation selectors.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U00016fe4\U0001d159"
    "\U000e0100-\U000e01ef]"
)


# An integer of a column that had missing cells, or that R, pandas or a spreadsheet wrote as 1e+05.
_DECIMAL = re.compile(r"[+-]?[0-9]+([.,]0*|([.,][0-9]*)?[eE]\+[0-9]+)")
_INTEGER = re.compile("0|-?[1-9][0-9]{0,18}")


def canonical_ids(ids: Iterable[Any], first_row: int | None = None) -> list[Identity]:
    """Return canonical ids. Errors name the position from 0, or the row from `first_row`, and never the id."""
    if isinstance(ids, str | bytes | Mapping | set | frozenset) or not isinstance(ids, Iterable):
        raise TypeError(f"ids must be a sequence with one id per person; got a {type(ids).__name__}.")
    shape = getattr(ids, "shape", (0,))
    if len(shape) != 1:
        raise ValueError(f"ids must be one-dimensional; got shape {shape}.")
    if isinstance(ids, np.ndarray) and ids.dtype.kind in "iuUO":
        ids = ids.tolist()
    return [
        value
        if (type(value) is int and -(2**63) <= value < 2**63) or (type(value) is str and _is_canonical(value))
        else _canonical_id(value, position, first_row)
        for position, value in enumerate(ids)
    ]


def distinct_ids(ids: Iterable[Any]) -> list[Identity]:
    """Return ids in canonical form; raise ValueError if one occurs twice."""
    people = canonical_ids(ids)
    keys: list[Any] = list(map(person_bytes, people)) if len(set(map(type, people))) > 1 else people
    if len(set(keys)) < len(keys):
        seen: dict[Any, int] = {}
        for position, person in enumerate(keys):
            first = seen.setdefault(person, position)
            if first != position:
                raise ValueError(
                    "A call must contain each id only once; got one id twice, at positions "
                    f"{first} and {position} (counted from 0)."
                )
    return people


def person_bytes(person: Identity) -> bytes:
    """Encode a canonical id as bytes, injectively but for an integer and its text, which are one person."""
    # A text file has no integers: 7 in a Parquet file is "7" in a CSV file.
    is_integer = type(person) is int or (_INTEGER.fullmatch(str(person)) and _in_64_bits(int(person)))
    return (b"i" if is_integer else b"s") + str(person).encode()


def _is_canonical(text: str) -> bool:
    # The space is the only printable blank; most invisible marks are not printable.
    return (
        text.isprintable()
        and text != ""
        and text == text.strip()
        and not (not text.isalnum() and _DECIMAL.fullmatch(text))
        and (text.isascii() or (unicodedata.is_normalized("NFC", text) and not _INVISIBLE.search(text)))
    )


def _canonical_id(value: Any, position: int, first_row: int | None) -> Identity:
    where = f"at position {position} (counted from 0)" if first_row is None else f"in row {first_row + position}"
    if issubclass(type(value), str):
        text = str.__str__(value)
        if not _is_canonical(text):
            raise ValueError(f"{_STRING_RULE}; got one that is not, {where}.")
        return text
    if hasattr(value, "as_py"):
        return _canonical_id(value.as_py(), position, first_row)
    if isinstance(value, Integral) and not isinstance(value, bool | np.bool_):
        number = int(value)
        if not _in_64_bits(number):
            raise ValueError(f"An integer id must fit into 64 bits; got a larger one {where}.")
        return number
    hint = ""
    if isinstance(value, float | np.floating):
        hint = (
            " A data frame converts integers to floats if some are missing, for example after a merge. Find the people "
            "without an id, and cast the column to integers."
        )
    elif isinstance(value, bytes):
        hint = " Decode bytes to strings."
    raise TypeError(f"An id must be an integer or a string; got a {type(value).__name__} {where}.{hint}")


def _in_64_bits(number: int) -> bool:
    return -(2**63) <= number < 2**63
