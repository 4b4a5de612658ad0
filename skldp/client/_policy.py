"""Policies: what a person's own device is told to release, checked before anything is believed."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from functools import cached_property
from os import PathLike
from typing import Any, NamedTuple, Self

from skldp.client._fields import AnyField, NumbersField, field_from_dict
from skldp.client._ledger import DeviceLedger
from skldp.client._reports import pack, unpack
from skldp.client._schema import canonical_text, digest, policy_schema, read_json, schema_error
from skldp.mechanisms._integer_laws import secure_words, words_of
from skldp.mechanisms._odds import round_up

__all__ = ["Policy", "Report"]

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

    def __post_init__(self) -> None:
        if not self.fields or not all(isinstance(field, AnyField) for field in self.fields):
            raise ValueError(f"fields must be a tuple of fields, at least one. Got {self.fields!r} instead.")
        for names in ([one.name for one in self.fields], self.names):
            if len(set(names)) < len(names):
                raise ValueError(f"Fields must have different names. Got {names!r} instead.")
        if not math.isfinite(self.epsilon):
            raise ValueError("The fields must have a finite epsilon together. Got an infinite one instead.")
        # Whoever made it may change what they passed.
        object.__setattr__(self, "asked", deepcopy(self.asked))
        # Refuses what is no time.
        _ = self._expiry
        if error := schema_error(self._document, policy_schema(), policy_schema()):
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
        if error := schema_error(given, policy_schema(), policy_schema()):
            raise ValueError(f"A policy must keep to its schema: {error}. Got another document instead.")
        if digest(given) != given["sha256"]:
            raise ValueError("A policy must be the document of its own sha256. Got another one instead.")
        fields = tuple(map(field_from_dict, given["fields"]))
        own = cls(given["purpose"], fields, given["expires"], given.get("asked"))
        claims = [one["epsilon"] for one in (*given["fields"], given)]
        if claims != [repr(one.epsilon) for one in (*fields, own)]:
            raise ValueError(
                f"A policy must claim the epsilon that its integers give, {own.epsilon!r} in all. "
                f"Got claims of {claims[-1]} in all, or another one for a field."
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

    def release(self, record: Mapping[str, Any], *, ledger: DeviceLedger | None = None) -> bytes:
        """Release one record with fresh noise, as one report.

        Parameters
        ----------
        record : dict
            A value for each field by its name; a field that is not there is missing.
        ledger : DeviceLedger, default=None
            Charged before anything is drawn. None charges nobody: for whoever keeps the account elsewhere.

        Returns
        -------
        bytes
            Of the same size for every record.

        Raises
        ------
        ValueError
            If the policy has expired, the record has other fields, or the policy refuses a value of it; no value is
            shown, and nothing charged.
        BudgetExhaustedError
            If the ledger does not admit it.
        """
        self._check_not_expired()
        encoded = self._encode(record)
        if ledger is not None:
            ledger.charge(self.sha256, self.epsilon)
        return self._draw(encoded, secure_words())

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
        encoded = [self._encode(record) for record in records]
        words = secure_words()
        return [self._draw(one, words) for one in encoded]

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
            "version": 1,
            "purpose": self.purpose,
            "fields": [field.to_dict() for field in self.fields],
            "epsilon": repr(self.epsilon),
            "delta": "0",
            "memo": "fresh",
            "expires": self.expires,
        }
        if self.asked is not None:
            content["asked"] = [dict(part) for part in self.asked]
        return content | {"sha256": digest(content)}

    @cached_property
    def _all_names(self) -> frozenset[str]:
        return frozenset(self.names)

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
        strange = len(set(record) - self._all_names)
        if strange:
            raise ValueError(f"A record must have no other fields than its policy. Got {strange} others.")
        return [f.encode(record) if isinstance(f, NumbersField) else f.encode(record.get(f.name)) for f in self.fields]

    def _draw(self, encoded: list[Any], words: Iterator[int]) -> bytes:
        report_id = b"".join(next(words).to_bytes(8, "big") for _ in range(2))
        return self._pack(report_id, [f.draw(one, words) for f, one in zip(self.fields, encoded, strict=True)])

    def _pack(self, report_id: bytes, answers: list[int]) -> bytes:
        return pack(bytes.fromhex(self.sha256), report_id, answers, [field.n_answers for field in self.fields])
