"""Reports that are the same again for the same record: what is drawn is a function of secret, law, field and value."""

import hashlib
import math
import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from skldp.client._fields import CategoryField, NumberField
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
        Sixteen, the same again for the same record under the same policy.
    answers : list of int
        Of the fields in their order.
    charges : dict of str to float
        The epsilon of each field's answer by a tag, which is the same again for the same value under the same law.
    """

    report_id: bytes
    answers: list[int]
    charges: dict[str, float]


class KeptField(NamedTuple):
    """A field with what its answers are bound to, beside the value.

    Parameters
    ----------
    field : NumberField or CategoryField
    meaning, law : bytes
        Digests of what a code or a place in [-1, 1] stands for, and of the law.
    epsilon : float
    """

    field: NumberField | CategoryField
    meaning: bytes
    law: bytes
    epsilon: float

    @classmethod
    def of(cls, field: NumberField | CategoryField) -> "KeptField":
        """Make it; what is shown, and what moves other values to a place, is left out."""
        own = field.to_dict()
        names = ("name", "type", "low", "high", "steps", "values")
        meaning = {name: own[name] for name in names if name in own}
        return cls(field, _digest(meaning), _digest(own["law"]), field.epsilon)


def kept_report(
    fields: Sequence[KeptField], encoded: Sequence[Any], key: ReleaseKey, *, policy: bytes, person: bytes
) -> Kept:
    """Answer for encoded values with the noise that is theirs.

    Parameters
    ----------
    fields : sequence of KeptField
    encoded : sequence
        What the fields make of the values.
    key : ReleaseKey
    policy : bytes
        The SHA-256 of the policy, of which the report's id is, and no answer.
    person : bytes
        Whose record it is.

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
    for (field, meaning, law, epsilon), given in zip(fields, encoded, strict=True):
        value = _stepped(field, given, key.subkey("skldp step", _VERSION, meaning, person))
        packed = struct.pack(">d", value + 0.0) if isinstance(field, NumberField) else struct.pack(">q", value)
        about = (_VERSION, meaning, law, person, packed)
        answers.append(field.draw(value, _words(key.subkey("skldp answer", *about))))
        charges[key.subkey("skldp tag", *about).hex()] = epsilon
        values.append(packed)
    return Kept(key.subkey("skldp report", _VERSION, policy, person, *values)[:16], answers, charges)


def _digest(content: Any) -> bytes:
    return hashlib.sha256(canonical_text(content).encode()).digest()


def _stepped(field: NumberField | CategoryField, given: Any, shift: bytes) -> Any:
    """A number at one of the field's steps, by a threshold of the person's own, so that the mean is that of all."""
    if not isinstance(field, NumberField) or field.steps is None:
        return given
    # An odd multiple of 2^-53 inside (0, 1): either end stays.
    above = ((int.from_bytes(shift[:8], "big") >> 12) + 0.5) * 2.0**-52
    step = min(math.floor((given + 1) / 2 * field.steps + above), field.steps)
    return 2 * (step / field.steps) - 1


def _words(key: bytes) -> Iterator[int]:
    """Random words of a key, as many as are asked for."""
    block = 0
    while True:
        yield from struct.unpack(">8Q", hashlib.blake2b(block.to_bytes(8, "big"), key=key).digest())
        block += 1
