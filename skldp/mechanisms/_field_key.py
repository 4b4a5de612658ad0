r"""Repeatable releases of rows: noise as a function of secret, law, person and value.

A value is first clipped to the declared domain and rounded to a grid. Keyed on the raw value, a change in the ninth
digit would draw new noise, which could be averaged away.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skldp._arrays import Words
from skldp._checks import check_integer, is_integer
from skldp.domains._domain import Domain
from skldp.laws._person_ids import canonical_ids, person_bytes
from skldp.laws._release_key import ReleaseKey, joined_bytes
from skldp.mechanisms._noise import RowNoise
from skldp.mechanisms._rows import Release, RowMechanism

# Increased when a mechanism changes how it reads its words: the same words must not be read in two ways.
_VERSION = b"1"
# Parameters that do not affect the law.
_NO_LAW = {"stated", "figures"}


class KeyedRows(NamedTuple):
    """Rows within the domain and on the grid, their noise, and the number of moved values, which is private."""

    rows: np.ndarray
    noise: RowNoise
    n_moved: int


@dataclass(frozen=True)
class FieldKey:
    r"""Release secret of one field: the same person, law and value have the same release.

    Parameters
    ----------
    key : ReleaseKey
        Secret of all fields.
    field : str
        Name of the released field, such as ``"salary"``. Fields have independent noise; under one name, equal values of
        two fields would have equal releases. For new noise in another year, use another name, such as
        ``"salary 2027"``; that costs as much again.
    steps : int, default=1024
        Number of equal steps that divide the bounds of a number, from 1 to 2^30. Numbers of a vector without bounds are
        rounded to as many steps between plus and minus the power of two above the largest of them. If epsilon is per
        unit of distance, nothing is rounded, and jitter draws new noise.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    A number at the position p, counted in steps, becomes the step :math:`\lfloor p + u \rfloor`, where u, uniform on
    (0, 1), is a function of secret, field and person alone. Over the secret the mean is that of the number,
    so that means, and all that is linear, have no bias from the grid. One person's number comes to the same step again
    until it moves across their next threshold; jitter of less than a step gives two values at most.

    The noise of a row is AES at a nonce that is the keyed BLAKE2b of person
    and value, under a key derived from law and field. The law is identified by its sampled integers if there are some,
    else by the mechanism's parameters.

    **Protection.** Repeated releases of one value, by retries, by other block sizes or in the next survey, are one
    release, at its exact epsilon.

    **Limits.** Equal releases about a person can be linked, and different ones show that the value changed, at any
    epsilon. k different values have k releases and cost exactly k times epsilon, since their noise is independent. A
    record of several columns is one value. Another law, field or secret is a new release; another type of the same
    value is not.

    References
    ----------
    Erlingsson, Pihur and Korolova, "RAPPOR: randomized aggregatable privacy-preserving ordinal response", CCS 2014,
    Section 3, for permanent responses; Ding, Kulkarni and Yekhanin, "Collecting telemetry data privately", NeurIPS
    2017, Section 4, for rounding at a point of one's own.

    Examples
    --------
    >>> import os
    >>> from skldp.mechanisms import FieldKey, ReleaseKey
    >>> from skldp.mechanisms.numeric._unit_mechanisms import Duchi
    >>> key = FieldKey(ReleaseKey(os.urandom(32)), "mood", steps=100)
    >>> first = key.release(Duchi(1.0), [[0.3], [-0.9]], ids=["ann", "bob"])
    >>> again = key.release(Duchi(1.0), [[-0.9], [0.3 + 1e-12]], ids=["bob", "ann"])
    >>> bool((first.rows == again.rows[::-1]).all())
    True
    """

    key: ReleaseKey
    field: str
    steps: int = 1024

    def __post_init__(self) -> None:
        if not isinstance(self.key, ReleaseKey):
            raise ValueError(f"key must be a ReleaseKey; got {type(self.key).__name__}.")
        if not isinstance(self.field, str) or not self.field:
            raise ValueError(f"field must be a text that is not empty; got {self.field!r}.")
        check_integer("steps", self.steps, least=1, most=2**30)

    def release(
        self, mechanism: RowMechanism, rows: npt.ArrayLike, ids: Sequence[int | str], out: np.ndarray | None = None
    ) -> Release:
        """Release rows; a row that was released before has the same release again.

        Parameters
        ----------
        mechanism : RowMechanism
            Mechanism of the field.
        rows : array-like of shape (n, n_features)
            Never written to.
        ids : sequence of int or str, shape (n,)
            Id of each row's person. ``7`` and ``"7"`` are one person.
        out : ndarray of shape (n, n_outputs), default=None
            Array to write to.

        Returns
        -------
        Release
            Released rows, and the number of values moved into the domain.

        Raises
        ------
        ValueError
            As :meth:`~skldp.mechanisms.RowMechanism.release`, or if there are not as many ids as rows.
        TypeError
            If an id is of another type.
        """
        given = mechanism._as_rows(rows)
        bound = self.bind(mechanism, given, ids)
        if out is None:
            out = np.empty((len(given), mechanism.n_outputs), mechanism.output_dtype(given.dtype))
        released = mechanism.release(bound.rows, bound.noise, out)
        return Release(released.rows, bound.n_moved)

    def bind(self, mechanism: RowMechanism, rows: npt.ArrayLike, ids: Sequence[int | str]) -> KeyedRows:
        """Clip and round rows for the mechanism, and derive their noise; parameters and errors are those of `release`.

        Numbers become float64: the same value in another type has the same noise, and is drawn in the same precision.

        Returns
        -------
        KeyedRows
        """
        given = mechanism._as_rows(rows)
        if not isinstance(given, np.ndarray) or given.ndim != 2 or given.shape[1] != mechanism.domain.n_features:
            raise ValueError(f"rows must be an array of the shape (n, {mechanism.domain.n_features}); got another.")
        if len(ids) != len(given):
            raise ValueError(f"ids must be one for each of {len(given)} rows; got {len(ids)}.")
        people = _people(ids)
        # Norms round differently in another memory layout or type, and the noise depends on every bit of the value.
        precise = np.float64 if given.dtype.kind == "f" else given.dtype
        inside = mechanism.domain.clip(np.ascontiguousarray(given, dtype=precise))
        coarse = inside.rows
        # With an epsilon per distance, a grid would increase the distance of values near a threshold.
        if coarse.dtype.kind == "f" and mechanism.guarantee().unit != "distance":
            shifts = self._personal(f"grid of {self.steps}", ids).uniform(coarse.shape)
            with np.errstate(all="ignore"):
                coarse = mechanism.domain.on_grid(coarse, shifts, self.steps)
        # -0.0 is the value 0.0.
        exact = np.ascontiguousarray(coarse) + coarse.dtype.type(0)
        law = joined_bytes(_VERSION, *map(_as_bytes, (law_text(mechanism), self.field)))
        nonces = _nonces(self.key.subkey("skldp nonce", law), people, [row.tobytes() for row in exact])
        return KeyedRows(exact, RowNoise(self.key.subkey("skldp noise", law), nonces), inside.n_moved)

    def _personal(self, purpose: str, ids: Sequence[int | str]) -> RowNoise:
        """Return noise of rows that depends on the person and this field, not on the value."""
        what = joined_bytes(_VERSION, *map(_as_bytes, (purpose, self.field)))
        nonces = _nonces(self.key.subkey("skldp person", what), _people(ids), [b""] * len(ids))
        return RowNoise(self.key.subkey("skldp personal", what), nonces)


def law_text(mechanism: RowMechanism) -> str:
    """Describe the law of a mechanism as a text: equal for equal laws, at any requested epsilon."""
    return json.dumps(_described(mechanism), sort_keys=True)


def _described(value: Any) -> Any:
    if isinstance(value, RowMechanism) and not value.has_bounds:
        try:
            # The class as well as the integers: two mechanisms may read the same words in two ways.
            return [type(value).__name__, value.integer_law.to_dict()]
        except ValueError:
            pass
    if isinstance(value, Domain) and value.type == "column":
        return _described_domain(**value.to_dict())
    if is_dataclass(value):
        own = {one.name: _described(getattr(value, one.name)) for one in fields(value) if one.name not in _NO_LAW}
        return [type(value).__name__, own]
    if isinstance(value, np.ndarray):
        return [value.dtype.str, list(value.shape), hashlib.sha256(value.tobytes()).hexdigest()]
    if isinstance(value, tuple | list):
        return [_described(one) for one in value]
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if is_integer(value) or isinstance(value, float | np.floating):
        # An epsilon of 1 is one of 1.0.
        return int(value) if value == value // 1 else ["number", float(value).hex()]
    raise TypeError(f"The parameters of a mechanism must be numbers, texts and arrays; got {type(value).__name__}.")


def _described_domain(type: str, **parameters: Any) -> Any:
    inner = {key: _described_domain(**own) if key == "number" else _described(own) for key, own in parameters.items()}
    return [type.title().replace("_", ""), inner]


def _as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _people(ids: Sequence[int | str]) -> list[bytes]:
    """Encode ids with their lengths, so that what follows cannot be mistaken for a part of them."""
    return [joined_bytes(person_bytes(one)) for one in canonical_ids(ids)]


def _nonces(key: bytes, people: list[bytes], values: list[bytes]) -> Words:
    """Return 128 bits for each row, from its person and value."""
    start = hashlib.blake2b(key=key, digest_size=16, person=b"skldp row")
    digests = []
    for person, value in zip(people, values, strict=True):
        one = start.copy()
        one.update(person + value)
        digests.append(one.digest())
    return np.frombuffer(b"".join(digests), dtype=np.uint64).reshape(-1, 2).copy()
