"""Reports that are the same again for the same record: what is drawn is a function of secret, law, field and value."""

import hashlib
import math
import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from skldp.client._fields import AnyField, CategoryField, NumbersField
from skldp.client._schema import canonical_text
from skldp.mechanisms._release_key import ReleaseKey

__all__ = ["Kept", "KeptField", "kept_report"]

# Raised when a draw comes to read its words in another way.
_VERSION = b"1"


class Kept(NamedTuple):
    """A report that can be made again.

    Parameters
    ----------
    report_id : bytes
        Sixteen, the same again for the same record under the same policy; of a wave, for the same person and wave.
    answers : list of int
        Of the fields in their order.
    charges : dict of str to float
        The epsilon of each field's permanent answer by a tag, which is the same again for the same value under the
        same law.
    """

    report_id: bytes
    answers: list[int]
    charges: dict[str, float]


class KeptField(NamedTuple):
    """A field with what its answers are bound to, beside the value.

    Parameters
    ----------
    field : NumberField, NumbersField or CategoryField
    meaning, law : bytes
        Digests of what a code or a place in [-1, 1] stands for, and of the law.
    epsilon : float
        Of the permanent answer to one value.
    """

    field: AnyField
    meaning: bytes
    law: bytes
    epsilon: float

    @classmethod
    def of(cls, field: AnyField) -> "KeptField":
        """Make it; what is shown, and what moves other values to a place, is left out."""
        own = field.to_dict()
        meaning = _meaning(own)
        if isinstance(field, NumbersField):
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
) -> Kept:
    """Answer for encoded values with the noise that is theirs.

    Parameters
    ----------
    fields : sequence of KeptField
    encoded : sequence
        What the fields make of the values.
    key : ReleaseKey
    policy : bytes
        The SHA-256 of the policy, on which the report's id depends, and the second step of laws of two steps.
    person : bytes
        Whose record it is.
    wave : str, default=""
        The name of the one in which laws of two steps report their permanent answers.

    Examples
    --------
    >>> import os
    >>> from skldp.client import CategoryField
    >>> from skldp.client._memo import KeptField, kept_report
    >>> from skldp.mechanisms import RandomizedResponse, ReleaseKey, integer_law
    >>> city = KeptField.of(CategoryField("city", ("Bonn", "Ulm"), integer_law(RandomizedResponse(1.0, 2))))
    >>> key = ReleaseKey(os.urandom(32))
    >>> one, again = (kept_report([city], [1], key, policy=bytes(32), person=b"") for _ in range(2))
    >>> one == again
    True
    """
    answers, values, charges = [], [], {}
    for one, given in zip(fields, encoded, strict=True):
        own = _Own(one, key, person)
        if one.field.two_steps is None:
            answer, tag, packed = own.answer(given)
            values.append(packed)
        else:
            answer, tag = own.report(given, policy, wave)
        answers.append(answer)
        charges[tag] = one.epsilon
    # A new report id would reveal a change of value, which two-step laws hide.
    about = [_wave(wave)] if wave else values
    return Kept(key.subkey("skldp report", _VERSION, policy, person, *about)[:16], answers, charges)


class _Own(NamedTuple):
    """One person's noise for one field."""

    kept: KeptField
    key: ReleaseKey
    person: bytes

    def answer(self, given: Any) -> tuple[int, str, bytes]:
        """The permanent answer, the tag of its charge, and what the id of the report is made of."""
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
        # Waves of two policies are distinct waves: with one noise, a change between them would be seen at once.
        again = (*of_person, _whole(permanent), policy, _wave(wave))
        return law.report(permanent, choice, _words(self.key.subkey("skldp wave", *again))), self._tag(about)

    def _about(self, packed: bytes) -> tuple[bytes, ...]:
        meaning, law, person = self.kept.meaning, self.kept.law, self.person
        return (_VERSION, meaning, law, person, packed)

    def _tag(self, about: Sequence[bytes]) -> str:
        return self.key.subkey("skldp tag", *about).hex()

    def _stepped(self, given: Any) -> Any:
        """Numbers at their field's steps, by thresholds of the person's own, so that the mean is that of all."""
        field = self.kept.field
        if isinstance(field, CategoryField) or field.steps is None:
            return given
        about = (_VERSION, self.kept.meaning, self.person)
        if not isinstance(field, NumbersField):
            return _at_step(given, field.steps, self.key.subkey("skldp step", *about))
        return tuple(
            place
            if column.whole
            else _at_step(place, field.steps, self.key.subkey("skldp step", *about, column.name.encode()))
            for column, place in zip(field.columns, given, strict=True)
        )


def _meaning(own: dict[str, Any]) -> dict[str, Any]:
    return {name: own[name] for name in ("name", "type", "low", "high", "steps", "values") if name in own}


def _digest(content: Any) -> bytes:
    return hashlib.sha256(canonical_text(content).encode()).digest()


def _packed(field: AnyField, value: Any) -> bytes:
    """What the law is given, as bytes; minus zero is zero."""
    if isinstance(field, CategoryField):
        return struct.pack(">q", value)
    places = value if isinstance(field, NumbersField) else (value,)
    return struct.pack(f">{len(places)}d", *(place + 0.0 for place in places))


def _wave(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


def _whole(number: int) -> bytes:
    return number.to_bytes(number.bit_length() // 8 + 1, "big")


def _at_step(place: float, steps: int, shift: bytes) -> float:
    # An odd multiple of 2^-53 inside (0, 1): either end stays.
    above = ((int.from_bytes(shift[:8], "big") >> 12) + 0.5) * 2.0**-52
    step = min(math.floor((place + 1) / 2 * steps + above), steps)
    return 2 * (step / steps) - 1


def _words(key: bytes) -> Iterator[int]:
    """Random words of a key, as many as are asked for."""
    block = 0
    while True:
        yield from struct.unpack(">8Q", hashlib.blake2b(block.to_bytes(8, "big"), key=key).digest())
        block += 1
