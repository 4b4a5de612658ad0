"""Permanent answers, whose random words are a function of secret, person, law, field and value."""

import hashlib
import math
import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from skldp._documents import canonical_text
from skldp.client._fields import AnyField
from skldp.laws._integers import uniform_subset
from skldp.laws._release_key import ReleaseKey

# Increment this version if a draw reads its words differently.
_VERSION = b"1"


class Kept(NamedTuple):
    """Report with permanent answers, and its charges by tag."""

    report_id: bytes
    answers: list[int | None]
    charges: dict[str, float]


class KeptField(NamedTuple):
    """Field with the digests that determine its answers, besides the value."""

    field: AnyField
    meaning: bytes
    law: bytes

    @classmethod
    def of(cls, field: AnyField) -> "KeptField":
        """Return a field with its digests, which exclude units and replacements of missing values."""
        own = field.to_dict()
        meaning = _meaning(own)
        if "columns" in own:
            meaning["columns"] = [_meaning(column) for column in own["columns"]]
        return cls(field, _digest(meaning), _digest(own["law"]))


def kept_report(
    fields: Sequence[KeptField],
    encoded: Sequence[Any],
    key: ReleaseKey,
    *,
    policy: bytes,
    person: bytes,
    n_sampled: int | None = None,
) -> Kept:
    """Return the report of encoded values, with permanent answers; the sample of fields is permanent as well."""
    answers: list[int | None] = [None] * len(fields)
    values: list[bytes] = []
    charges = {}
    # Fields that are not asked leave no trace, not even in the report's id.
    for place in _sampled(fields, key, person, n_sampled):
        one, given = fields[place], encoded[place]
        answers[place], tag, packed = _Answer(one, key, person).answer(given)
        values.append(packed)
        charges[tag] = one.field.epsilon
    return Kept(key.subkey("skldp report", _VERSION, policy, person, *values)[:16], answers, charges)


def _sampled(fields: Sequence[KeptField], key: ReleaseKey, person: bytes, n_sampled: int | None) -> Sequence[int]:
    """Return the places of the fields that a person is asked, whatever the values are."""
    if n_sampled is None:
        return range(len(fields))
    digests = [digest for one in fields for digest in (one.meaning, one.law)]
    words = _words(key.subkey("skldp sample", _VERSION, person, _whole(n_sampled), *digests))
    return uniform_subset(len(fields), n_sampled, words)


class _Answer(NamedTuple):
    """Answer of one person for one field."""

    kept: KeptField
    key: ReleaseKey
    person: bytes

    def answer(self, given: Any) -> tuple[int, str, bytes]:
        """Return the permanent answer, the tag of its charge, and the packed value."""
        value = self._stepped(given)
        packed = _packed(self.kept.field, value)
        about = (_VERSION, self.kept.meaning, self.kept.law, self.person, packed)
        tag = self.key.subkey("skldp tag", *about).hex()
        return self.kept.field.draw(value, _words(self.key.subkey("skldp answer", *about))), tag, packed

    def _stepped(self, given: Any) -> Any:
        """Round numbers to steps with thresholds of the person, so that the mean over people is unbiased."""
        field = self.kept.field
        if field.steps is None:
            return given
        about = (_VERSION, self.kept.meaning, self.person)
        if field.kind == "number":
            return _at_step(given, field.steps, self.key.subkey("skldp step", *about))
        return tuple(
            place
            if column.has_codes or column.whole
            else _at_step(place, field.steps, self.key.subkey("skldp step", *about, column.name.encode()))
            for column, place in zip(field.columns, given, strict=True)
        )


def _meaning(own: dict[str, Any]) -> dict[str, Any]:
    return {name: own[name] for name in ("name", "type", "low", "high", "steps", "values", "n_knots") if name in own}


def _digest(content: Any) -> bytes:
    return hashlib.sha256(canonical_text(content).encode()).digest()


def _packed(field: AnyField, value: Any) -> bytes:
    """Return the input of the law as bytes; -0.0 becomes 0.0."""
    if field.kind == "category":
        return struct.pack(">q", value)
    places = value if isinstance(value, tuple) else (value,)
    return struct.pack(f">{len(places)}d", *(place + 0.0 for place in places))


def _whole(number: int) -> bytes:
    return number.to_bytes(number.bit_length() // 8 + 1, "big")


def _at_step(place: float, steps: int, shift: bytes) -> float:
    # An odd multiple of 2^-53 in (0, 1) leaves both ends unchanged.
    above = ((int.from_bytes(shift[:8], "big") >> 12) + 0.5) * 2.0**-52
    step = min(math.floor((place + 1) / 2 * steps + above), steps)
    return 2 * (step / steps) - 1


def _words(key: bytes) -> Iterator[int]:
    """Yield random words of a key."""
    block = 0
    while True:
        yield from struct.unpack(">8Q", hashlib.blake2b(block.to_bytes(8, "big"), key=key).digest())
        block += 1
