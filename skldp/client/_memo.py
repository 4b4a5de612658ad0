"""Permanent answers, whose random words are a function of secret, person, law, field and value."""

import hashlib
import math
import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from skldp._documents import canonical_text
from skldp.client._fields import AnyField, CategoryField, SeveralColumns
from skldp.domains._declared_columns import CategoryColumn
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
    epsilon: float

    @classmethod
    def of(cls, field: AnyField) -> "KeptField":
        """Return a field with its digests, which exclude units and replacements of missing values."""
        own = field.to_dict()
        meaning = _meaning(own)
        if isinstance(field, SeveralColumns):
            meaning["columns"] = [_meaning(column) for column in own["columns"]]
        return cls(field, _digest(meaning), _digest(own["law"]), field.lifetime_epsilon)


def kept_report(
    fields: Sequence[KeptField],
    encoded: Sequence[Any],
    key: ReleaseKey,
    *,
    policy: bytes,
    person: bytes,
    wave: str = "",
    n_sampled: int | None = None,
) -> Kept:
    """Return the report of encoded values, with permanent answers; the sample of fields is permanent as well."""
    answers: list[int | None] = [None] * len(fields)
    values: list[bytes] = []
    charges = {}
    # Fields that are not asked leave no trace, not even in the report's id.
    for place in _sampled(fields, key, person, n_sampled):
        one, given = fields[place], encoded[place]
        own = _Answer(one, key, person)
        if one.field.two_steps is None:
            answer, tag, packed = own.answer(given)
            values.append(packed)
        else:
            answer, tag = own.report(given, policy, wave)
        answers[place] = answer
        charges[tag] = one.epsilon
    # A new report id would reveal a change of value, which two-step laws hide.
    about = [_wave(wave)] if wave else values
    return Kept(key.subkey("skldp report", _VERSION, policy, person, *about)[:16], answers, charges)


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
        about = self._about(packed)
        return self.kept.field.draw(value, _words(self.key.subkey("skldp answer", *about))), self._tag(about), packed

    def report(self, given: Any, policy: bytes, wave: str) -> tuple[int, str]:
        """Return the answer of a wave of a policy, and the tag of the charge for the permanent answer."""
        law = self.kept.field.two_steps
        assert law is not None
        of_person = (_VERSION, self.kept.meaning, self.kept.law, self.person)
        choice = law.choose(_words(self.key.subkey("skldp choice", *of_person)))
        seen = law.see(given, choice)
        about = self._about(_whole(seen))
        permanent = law.keep(seen, choice, _words(self.key.subkey("skldp answer", *about)))
        # With equal noise in the waves of two policies, a change between them would be visible.
        again = (*of_person, _whole(permanent), policy, _wave(wave))
        return law.report(permanent, choice, _words(self.key.subkey("skldp wave", *again))), self._tag(about)

    def _about(self, packed: bytes) -> tuple[bytes, ...]:
        meaning, law, person = self.kept.meaning, self.kept.law, self.person
        return (_VERSION, meaning, law, person, packed)

    def _tag(self, about: Sequence[bytes]) -> str:
        return self.key.subkey("skldp tag", *about).hex()

    def _stepped(self, given: Any) -> Any:
        """Round numbers to steps with thresholds of the person, so that the mean over people is unbiased."""
        field = self.kept.field
        if isinstance(field, CategoryField) or field.steps is None:
            return given
        about = (_VERSION, self.kept.meaning, self.person)
        if not isinstance(field, SeveralColumns):
            return _at_step(given, field.steps, self.key.subkey("skldp step", *about))
        return tuple(
            place
            if isinstance(column, CategoryColumn) or column.whole
            else _at_step(place, field.steps, self.key.subkey("skldp step", *about, column.name.encode()))
            for column, place in zip(field.columns, given, strict=True)
        )


def _meaning(own: dict[str, Any]) -> dict[str, Any]:
    return {name: own[name] for name in ("name", "type", "low", "high", "steps", "values", "n_knots") if name in own}


def _digest(content: Any) -> bytes:
    return hashlib.sha256(canonical_text(content).encode()).digest()


def _packed(field: AnyField, value: Any) -> bytes:
    """Return the input of the law as bytes; -0.0 becomes 0.0."""
    if isinstance(field, CategoryField):
        return struct.pack(">q", value)
    places = value if isinstance(field, SeveralColumns) else (value,)
    return struct.pack(f">{len(places)}d", *(place + 0.0 for place in places))


def _wave(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


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


def wave_digest(policy: str, person: bytes, wave: str) -> str:
    """Return the digest of a person's wave, independent of the secret."""
    parts = (policy.encode(), person, _wave(wave))
    return hashlib.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in parts)).hexdigest()
