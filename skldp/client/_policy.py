"""Policies: what a person's own device is told to release, checked before anything is believed."""

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import cached_property
from os import PathLike
from typing import Any, Literal, NamedTuple, Self, TypeGuard

from skldp._reading import as_array
from skldp.client._fields import AnyField, NumberField, NumbersField, field_from_dict
from skldp.client._ledger import DeviceLedger
from skldp.client._memo import KeptField, kept_report
from skldp.client._reports import pack, unpack
from skldp.client._schema import canonical_text, digest, policy_error, read_json
from skldp.mechanisms._integer_laws import secure_words, words_of
from skldp.mechanisms._odds import round_up
from skldp.mechanisms._release_key import ReleaseKey, person_bytes

__all__ = ["Policy", "Report"]

# Of all fields together: what a device has room and time for.
_MOST_BITS = 2**17
_VERSION = 2
_TIME = "%Y-%m-%dT%H:%M:%SZ"


class Report(NamedTuple):
    """What a report says.

    Parameters
    ----------
    report_id : str
        32 hexadecimal signs; random, and of one report alone.
    answers : dict of str to int
        The released integer of each field.
    """

    report_id: str
    answers: dict[str, int]


@dataclass(frozen=True)
class Policy:
    """What is released of one person's record, by which laws, and at which exact epsilon.

    Parameters
    ----------
    purpose : str
        What the collection is for, to be shown to the person.
    fields : tuple of NumberField, NumbersField or CategoryField
    expires : str, default=None
        A time of UTC such as ``"2027-01-31T00:00:00Z"``, after which nothing is released; None is never.
    asked : list of dict, default=None
        What the integers were made from, where estimators made them: their parameters. It is no part of the law.
    memo : {"fresh", "permanent"}, default="fresh"
        Whether every report is drawn anew, or is a function of a secret of the person's own, the laws and the values,
        so that the same record gives the same report again. Numbers that are not whole need `steps` then. Laws of two
        steps, such as that of a LongitudinalCategories, need ``"permanent"``.

    Raises
    ------
    ValueError
        If a parameter is not as above.

    See Also
    --------
    DeviceLedger : What a person has released, and their own limit.

    Notes
    -----
    A policy is a JSON document of one form, to the byte, for one content, and its ``"sha256"`` is that of this text.
    Whoever loads one believes nothing of it: it is checked by the JSON Schema that is shipped with the package, the
    epsilons are computed anew from the integers that are sampled, and every text is compared. Loading runs no code.

    Under the memo rule ``"permanent"``, `epsilon` is that of all reports together as long as no value changes: however
    often they are asked for, by whatever policies of the same laws, fields and steps, they are equal, and there is
    nothing to average. Of a field that has had k different values there are k independent answers, so that a person's
    lifetime epsilon is the sum, over the fields, of k times the field's epsilon, which some answers reach; a ledger
    charges just that. What no epsilon counts is that two reports are equal or not: who gets both learns whether
    the record changed, and equal reports link a person over time. See :class:`~skldp.mechanisms.FieldKey`.

    A law of two steps hides that: each value has a permanent answer, and every wave reports a new randomization of
    it. A wave is one of this policy and has one report; another policy with the same laws asks distinct waves. Then
    `epsilon` is that of one report, by both steps, and `lifetime_epsilon` that of all reports together as long as no
    value changes. A ledger charges it at the first report, and again for each value that is seen as another one. No
    charge counts what many waves reveal in the end: at which of them another value is seen. What a person chose once,
    a hash function or some buckets, is in all their reports, and may link them.

    Several numbers that are answered for together are one value: where one of them changes, all are answered for anew.

    Examples
    --------
    >>> from skldp.client import CategoryField, Policy
    >>> from skldp.mechanisms import RandomizedResponse, integer_law
    >>> city = CategoryField("city", ("Bonn", "Ulm", None), integer_law(RandomizedResponse(1.0, 3)))
    >>> policy = Policy("where people live", (city,))
    >>> round(policy.epsilon, 6), policy.n_bytes
    (1.0, 30)
    >>> report = Policy.from_json(policy.to_json()).release({"city": "Bonn"})
    >>> policy.read(report).answers["city"] in {0, 1, 2}
    True
    """

    purpose: str
    fields: tuple[AnyField, ...]
    expires: str | None = None
    asked: Sequence[Mapping[str, Any]] | None = field(default=None, hash=False)
    memo: Literal["fresh", "permanent"] = "fresh"

    def __post_init__(self) -> None:
        if not self.fields or not all(isinstance(field, AnyField) for field in self.fields):
            raise ValueError(f"fields must be a tuple of fields, at least one. Got {self.fields!r} instead.")
        for names in ([one.name for one in self.fields], self.names):
            if len(set(names)) < len(names):
                raise ValueError(f"Fields must have different names. Got {names!r} instead.")
        if not math.isfinite(self.epsilon):
            raise ValueError("The fields must have a finite epsilon together. Got an infinite one instead.")
        if self.memo == "fresh" and any(_has_steps(one) for one in self.fields):
            raise ValueError("steps are for the memo rule 'permanent'. Got a field with some under 'fresh'.")
        if self.memo == "fresh" and self.has_waves:
            raise ValueError("Laws of two steps are for the memo rule 'permanent'. Got one under 'fresh'.")
        if self.memo == "permanent" and any(_trembles(one) for one in self.fields):
            raise ValueError("Under the memo rule 'permanent', numbers that are not whole must have steps. Got none.")
        if sum(one.n_answers.bit_length() for one in self.fields) > _MOST_BITS:
            raise ValueError(f"A report must have at most {_MOST_BITS} bits of answers. Got a policy of more instead.")
        # Whoever made it may change what they passed.
        object.__setattr__(self, "asked", deepcopy(self.asked))
        # Refuses what is no time.
        _ = self._expiry
        if error := policy_error(self._document):
            raise ValueError(f"A policy must keep to its schema: {error}. Got another one instead.")

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a policy from a file, which may be a stranger's; see :meth:`from_json`."""
        with open(path, encoding="utf-8") as file:
            return cls.from_json(file.read())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a policy from a text, which may be a stranger's.

        Parameters
        ----------
        text : str
            Spaces and the order of names are free.

        Raises
        ------
        ValueError
            If it is no policy of this version, its integers do not give the epsilon that it claims, or it is not the
            document of its SHA-256.
        """
        given = read_json(text)
        if isinstance(given, dict) and given.get("version") in range(_VERSION):
            raise ValueError(f"A policy must be of version {_VERSION}. Got an older version instead.")
        if error := policy_error(given):
            raise ValueError(f"A policy must keep to its schema: {error}. Got another document instead.")
        if digest(given) != given["sha256"]:
            raise ValueError("A policy must be the document of its own sha256. Got another one instead.")
        fields = tuple(map(field_from_dict, given["fields"]))
        own = cls(given["purpose"], fields, given["expires"], given.get("asked"), given["memo"])
        claims = [_claimed(one) for one in (*given["fields"], given)]
        if claims != [_claimed(one) for one in (*own._document["fields"], own._document)]:
            raise ValueError(
                f"A policy must claim the epsilon that its integers give, {own.epsilon!r} in all. "
                f"Got claims of {given['epsilon']} in all, or another one for a field or a lifetime."
            )
        if own.sha256 != given["sha256"]:
            raise ValueError("The numbers of a policy must be in their only text. Got another one instead.")
        return own

    def to_json(self) -> str:
        """The document, in its only form."""
        return canonical_text(self._document)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the document to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.to_json())

    @cached_property
    def epsilon(self) -> float:
        """The exact epsilon of one report: the sum of its fields', rounded up."""
        return round_up(sum((Fraction(field.epsilon) for field in self.fields), Fraction(0)))

    @cached_property
    def lifetime_epsilon(self) -> float:
        """The exact epsilon of all reports together under the memo rule ``"permanent"``, while no value changes."""
        return round_up(sum((Fraction(field.lifetime_epsilon) for field in self.fields), Fraction(0)))

    @cached_property
    def has_waves(self) -> bool:
        """Whether a law has two steps, so that permanent answers are reported in waves."""
        return any(one.two_steps is not None for one in self.fields)

    @property
    def names(self) -> list[str]:
        """What a record calls its values."""
        return [name for field in self.fields for name in field.names]

    @property
    def sha256(self) -> str:
        """The SHA-256 of the document, in hexadecimal."""
        return str(self._document["sha256"])

    @property
    def n_bytes(self) -> int:
        """The size of each report."""
        return len(self._pack(bytes(16), [0] * len(self.fields)))

    def permanent(self, steps: int = 1024) -> Self:
        """The same policy under the memo rule ``"permanent"``.

        Parameters
        ----------
        steps : int, default=1024
            Of each number that is not whole.

        Returns
        -------
        Policy
        """
        fields = tuple(replace(one, steps=steps) if _trembles(one) else one for one in self.fields)
        return replace(self, fields=fields, memo="permanent")

    def release(
        self,
        record: Mapping[str, Any],
        *,
        ledger: DeviceLedger | None = None,
        secret: ReleaseKey | None = None,
        person: int | str | None = None,
        wave: str | None = None,
    ) -> bytes:
        """Release one record as one report, with fresh noise or with that of the secret.

        Parameters
        ----------
        record : dict
            A value for each field by its name; a field that is not there is missing.
        ledger : DeviceLedger, default=None
            Charged before the report is returned; under the memo rule ``"permanent"``, once for each value of each
            field. A value that the limit does not admit sends no report, which reveals a change. Laws of two steps need
            a ledger, which keeps the report of each wave. None, for others, keeps no account.
        secret : ReleaseKey, default=None
            Needed under the memo rule ``"permanent"``, and only then.
        person : int or str, default=None
            Whose record it is, where one secret serves several people; None is the one whose device it is.
        wave : str, default=None
            The name of the time at which laws of two steps report: needed for these, and for them only. The ledger
            keeps the first report of a wave of this policy; the same wave again returns it, whatever the record is.

        Returns
        -------
        bytes
            Of the same size for every record.

        Raises
        ------
        ValueError
            If the policy has expired, or the memo rule, the secret, the wave and the ledger do not fit together.
        TypeError
            If the record is no mapping. Nothing is charged in any of these cases.
        BudgetExhaustedError
            If the ledger does not admit it, or did not admit the wave when it was first asked.
        """
        self._check_not_expired()
        if (secret is None) is not (self.memo == "fresh") or not isinstance(secret, ReleaseKey | None):
            raise ValueError(
                f"A secret is a ReleaseKey for the memo rule 'permanent', which needs one. Got {type(secret).__name__} "
                f"for the rule {self.memo!r}."
            )
        if (wave is None) is self.has_waves or not (wave is None or (isinstance(wave, str) and wave)):
            raise ValueError(
                f"wave must be a text that is not empty for laws of two steps, and None for others. Got {wave!r}."
            )
        if self.has_waves and ledger is None:
            raise ValueError("Laws of two steps need a ledger, which keeps the report of each wave. Got none.")
        whose = b"" if person is None else person_bytes(person)
        encoded = self._encode(record)
        if secret is None:
            if ledger is not None:
                ledger.charge(self.sha256, self.epsilon)
            return self._draw(encoded, secure_words())
        own = bytes.fromhex(self.sha256)
        kept = kept_report(self._kept, encoded, secret, policy=own, person=whose, wave=wave or "")
        report = self._pack(kept.report_id, kept.answers)
        if ledger is not None and wave is not None:
            return ledger.keep_wave(self.sha256, _wave_digest(self.sha256, whose, wave), kept.charges, report)
        if ledger is not None:
            ledger.charge_once(self.sha256, kept.charges)
        return report

    def release_all(self, records: Iterable[Mapping[str, Any]]) -> list[bytes]:
        """Release the records of several people with fresh noise, as a report each, or nothing at all.

        Parameters
        ----------
        records : iterable of dict
            As of :meth:`release`.

        Returns
        -------
        list of bytes

        Raises
        ------
        ValueError
            As of :meth:`release`, before anything is drawn.
        """
        self._check_not_expired()
        if self.memo != "fresh":
            raise ValueError(f"Several records at once are released with fresh noise. Got the rule {self.memo!r}.")
        encoded = [self._encode(record) for record in records]
        words = secure_words()
        return [self._draw(one, words) for one in encoded]

    def release_table(
        self,
        columns: Mapping[str, Any],
        *,
        secret: ReleaseKey | None = None,
        people: Sequence[int | str] | None = None,
        handle_unknown: Literal["error", "policy"] = "error",
        text: bool = False,
        first_row: int | None = None,
    ) -> list[bytes]:
        """Release the rows of a table, as a report each, or nothing at all.

        Parameters
        ----------
        columns : dict of str to array or sequence
            Of equal lengths, one for each name of the policy; columns of pandas, polars and Arrow too.
        secret : ReleaseKey, default=None
            Needed under the memo rule ``"permanent"``, and only then.
        people : sequence of int or str, default=None
            Ids of the people whose rows they are, with a secret.
        handle_unknown : {"error", "policy"}, default="error"
            Whether a category that is not declared, or is missing and has no category, is an error, or counts as the
            policy says. A value of a type that no category has is an error in any case.
        text : bool, default=False
            Whether cells are those of a text file, where the integer 1 is written ``"1"`` or ``"1.0"``.
        first_row : int, default=None
            Number of the first row in an error. None counts positions from 0.

        Returns
        -------
        list of bytes

        Raises
        ------
        ValueError
            Before anything is drawn, if the policy has expired, the memo rule and the secret do not fit together, or a
            cell cannot be read or is no declared value, with its row and column; no value is shown. A device counts
            such a value as missing or unknown; the holder of a table can correct it.
        """
        if handle_unknown not in ("error", "policy"):
            raise ValueError(f"handle_unknown must be 'error' or 'policy'. Got {handle_unknown!r} instead.")
        self._check_not_expired()
        if len({self.memo == "fresh", secret is None, people is None}) > 1 or self.has_waves:
            raise ValueError(
                "A secret and ids are for the memo rule 'permanent' and laws of one step. Got another combination."
            )
        own = {name: as_array(columns[name]) for name in self.names}
        each = [field.encode_all(own, text, first_row, handle_unknown == "policy") for field in self.fields]
        rows = list(zip(*each, strict=True))
        if secret is None or people is None:
            words = secure_words()
            return [self._draw(row, words) for row in rows]
        sha256, held = bytes.fromhex(self.sha256), zip(rows, map(person_bytes, people), strict=True)
        kept = (kept_report(self._kept, row, secret, policy=sha256, person=whose, wave="") for row, whose in held)
        return [self._pack(one.report_id, one.answers) for one in kept]

    def vector(self, record: Mapping[str, Any], random_bytes: bytes) -> bytes:
        """The report that chosen random bytes give: a test vector for other clients, which protects nothing.

        Parameters
        ----------
        record : dict
        random_bytes : bytes
            Of which each eight are a word: two of the report's id, then those of each field in their order.

        Returns
        -------
        bytes

        Raises
        ------
        ValueError
            If the record is refused, or the bytes are too few.
        """
        return self._draw(self._encode(record), words_of(random_bytes))

    def read(self, report: bytes) -> Report:
        """Read a report of this policy.

        Raises
        ------
        ValueError
            If it is broken, or of another policy or version.
        """
        report_id, answers = unpack(report, bytes.fromhex(self.sha256), [field.n_answers for field in self.fields])
        if not all(field.is_answer(answer) for field, answer in zip(self.fields, answers, strict=True)):
            raise ValueError("The answers of a report must be those of its policy. Got others instead.")
        return Report(report_id.hex(), {f.name: answer for f, answer in zip(self.fields, answers, strict=True)})

    @cached_property
    def _document(self) -> dict[str, Any]:
        content: dict[str, Any] = {
            "skldp": "policy",
            "version": _VERSION,
            "purpose": self.purpose,
            "fields": [field.to_dict() for field in self.fields],
            "epsilon": repr(self.epsilon),
            **({"lifetime_epsilon": repr(self.lifetime_epsilon)} if self.has_waves else {}),
            "delta": "0",
            "memo": self.memo,
            "expires": self.expires,
        }
        if self.asked is not None:
            content["asked"] = [dict(part) for part in self.asked]
        return content | {"sha256": digest(content)}

    @cached_property
    def _kept(self) -> list[KeptField]:
        return [KeptField.of(one) for one in self.fields]

    @cached_property
    def _expiry(self) -> datetime | None:
        if self.expires is None:
            return None
        try:
            return datetime.strptime(self.expires, _TIME).replace(tzinfo=UTC)
        except (TypeError, ValueError):
            raise ValueError(f"expires must be a time such as 2027-01-31T00:00:00Z. Got {self.expires!r}.") from None

    def _check_not_expired(self) -> None:
        if self._expiry is not None and datetime.now(UTC) >= self._expiry:
            raise ValueError(f"A policy must not have expired. Got one that did at {self.expires}.")

    def _encode(self, record: Mapping[str, Any]) -> list[Any]:
        if not isinstance(record, Mapping):
            raise TypeError(f"A record must be a mapping. Got {type(record).__name__} instead.")
        values = {name: _value(record, name) for name in self.names}
        return [f.encode(values if isinstance(f, NumbersField) else values[f.name]) for f in self.fields]

    def _draw(self, encoded: Sequence[Any], words: Iterator[int]) -> bytes:
        report_id = b"".join(next(words).to_bytes(8, "big") for _ in range(2))
        return self._pack(report_id, [f.draw(one, words) for f, one in zip(self.fields, encoded, strict=True)])

    def _pack(self, report_id: bytes, answers: list[int]) -> bytes:
        return pack(bytes.fromhex(self.sha256), report_id, answers, [field.n_answers for field in self.fields])


def _wave_digest(policy: str, person: bytes, wave: str) -> str:
    """Return the digest by which a ledger keeps the report of a person's wave: it does not depend on the secret."""
    parts = (policy.encode(), person, wave.encode("utf-8", "surrogatepass"))
    return hashlib.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in parts)).hexdigest()


def _value(record: Mapping[str, Any], name: str) -> Any:
    """Return a value of a record, None where it is absent or cannot be looked up."""
    try:
        return record.get(name)
    except Exception:
        # A mapping that reads its values when it is asked may raise anything; an error would reveal the value.
        return None


def _claimed(given: Mapping[str, Any]) -> tuple[str, str | None]:
    return given["epsilon"], given.get("lifetime_epsilon")


def _has_steps(one: AnyField) -> bool:
    return isinstance(one, NumberField | NumbersField) and one.steps is not None


def _trembles(one: AnyField) -> TypeGuard[NumberField | NumbersField]:
    return isinstance(one, NumberField | NumbersField) and one.trembles
