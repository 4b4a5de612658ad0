"""Policies: documents that state the released fields of a record, their laws and their epsilon."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import cached_property
from os import PathLike
from typing import Any, Literal, Self, cast

from skldp._checks import check_integer
from skldp._documents import canonical_text, digest, parsing, read_document, texts_of
from skldp._reading import CodeReader, named_columns
from skldp._texts import escaped, is_visible
from skldp.client._field_documents import field_from_dict
from skldp.client._fields import AnyField, check_field_names, check_text, declared_columns
from skldp.client._ledger import DeviceLedger
from skldp.client._memo import KeptField, kept_report
from skldp.client._report_bytes import PolicyReport, pack, unpack
from skldp.laws._integers import secure_words, uniform_subset, words_of
from skldp.laws._odds import round_up
from skldp.laws._person_ids import canonical_ids, person_bytes
from skldp.laws._release_key import ReleaseKey

# Limits of what a device must store and process.
_MOST_FIELDS, _MOST_BITS, _MOST_CHARACTERS = 1000, 2**17, 2**24
# A policy has the first version that knows its fields and laws: an older client must refuse others.
_VERSION, _SAMPLING_VERSION, _LAST_VERSION = 2, 3, 4
_NAMES = {"purpose", "fields", "epsilon", "delta", "memo", "expires", "sha256"}
_EXPIRES = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")


@dataclass(frozen=True)
class Policy:
    """Policy of releases from a device, with the fields of a record, their laws and the exact epsilon.

    Parameters
    ----------
    purpose : str
        Purpose of the collection, shown to the person.
    fields : tuple of Field or VectorField
        Fields of a record that are released.
    expires : str, default=None
        UTC time such as ``"2027-01-31T00:00:00Z"`` after which nothing is released.
    memo : {"fresh", "permanent"}, default="fresh"
        Rule for repeated reports. ``"fresh"`` draws every report independently. ``"permanent"`` makes the report a
        function of the person's secret, the law and the value, so the same record gives the same report. Numbers other
        than integers then need `steps`.
    n_sampled : int, default=None
        Number of fields that each person is asked, from 1 to one less than all; None asks all. The device chooses them
        uniformly and independently of the values, and a report says which they are. Under ``"permanent"``, the choice
        is a function of the secret, the person and the fields.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    See Also
    --------
    DeviceLedger : Account of a person's releases, with a limit.

    Notes
    -----
    The document has a canonical form and contains the SHA-256 of its text. A loaded document is not trusted: every
    name, type and text is checked, and every epsilon is computed from the sampled integers. Loading runs no code.

    Under the memo rule ``"permanent"``, `epsilon` covers all reports together while no value changes. Repeated reports
    are equal, for any policies with the same laws, fields and steps. A field that has had k values costs k times its
    epsilon, and a ledger charges exactly this. No epsilon covers the equality of two reports: an observer of both
    learns whether the record changed, and equal reports link a person over time. See
    :class:`~skldp.mechanisms.FieldKey`.

    Numbers with one law count as one value: if one of them changes, all have new answers.

    With `n_sampled` = s, a report has s answers, and its epsilon is the sum of the s largest ones. Two fields of one
    person are known together only for s of at least 2.

    Examples
    --------
    >>> from skldp.client import Field, Policy
    >>> from skldp.mechanisms import Column, RandomizedResponse
    >>> city = Field("city", Column(values=("Bonn", "Ulm", None)), RandomizedResponse(1.0, 3).integer_law)
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
    memo: Literal["fresh", "permanent"] = "fresh"
    n_sampled: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if (
            not isinstance(self.fields, tuple | list)
            or not self.fields
            or not all(isinstance(field, AnyField) for field in self.fields)
        ):
            raise ValueError(f"fields must be a tuple of fields, at least one; got {self.fields!r}.")
        check_field_names(self.fields)
        m = len(self.fields)
        if self.n_sampled is not None:
            check_integer(f"n_sampled, of {m} fields,", self.n_sampled, least=1, most=m - 1)
        if not math.isfinite(self.epsilon):
            raise ValueError("The total epsilon of the fields must be finite; got infinity.")
        if self.memo == "fresh" and any(one.steps is not None for one in self.fields):
            raise ValueError("`steps` must be None under the memo rule 'fresh'; got a field with steps.")
        if self.memo == "permanent" and any(one.needs_steps for one in self.fields):
            raise ValueError(
                "Under the memo rule 'permanent', numbers other than integers must have `steps`; got None."
            )
        if self.memo == "permanent" and not all(one.has_fixed_answers for one in self.fields):
            raise ValueError("A policy with vectors must have the memo rule 'fresh'; got 'permanent'.")
        if sum(one.n_answers.bit_length() for one in self.fields) > _MOST_BITS:
            raise ValueError(f"A report must have at most {_MOST_BITS} bits of answers; got a policy with more.")
        check_text("purpose", self.purpose, 1000)
        if m > _MOST_FIELDS or self.memo not in ("fresh", "permanent"):
            raise ValueError(
                f"A policy must have at most {_MOST_FIELDS} fields and the memo rule 'fresh' or 'permanent'; "
                f"got {m} fields and {self.memo!r:.40}."
            )
        # Raises if `expires` is not a time.
        _ = self._expiry
        hidden = next((text for text in texts_of(self._document) if not is_visible(text)), None)
        if hidden is not None:
            raise ValueError(
                "Texts of a policy must have no control, format or other invisible characters; "
                f"got '{escaped(hidden[:60])}'."
            )
        if len(self.to_json()) > _MOST_CHARACTERS:
            raise ValueError(f"A policy must be a document of at most {_MOST_CHARACTERS} characters; got a longer one.")

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a policy from a file; see :meth:`from_json`.

        Parameters
        ----------
        path : str or path-like
            File of the policy.
        """
        # Editors of Windows write a mark before UTF-8.
        with open(path, encoding="utf-8-sig") as file:
            return cls.from_json(file.read())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a policy from untrusted JSON.

        Parameters
        ----------
        text : str or bytes
            Document of a policy.

        Raises
        ------
        ValueError
            If the text is not a policy of this version, its integers do not give its stated epsilons, or its SHA-256
            differs.
        """
        if isinstance(text, str) and len(text) > _MOST_CHARACTERS:
            raise ValueError(f"A policy must be a document of at most {_MOST_CHARACTERS} characters; got a longer one.")
        versions = tuple(range(_VERSION, _LAST_VERSION + 1))
        given = read_document(text, "policy", versions, _NAMES, {"n_sampled"}, integers=True)
        if digest(given) != given["sha256"]:
            raise ValueError("The sha256 of a policy must be that of its document; got another one.")
        with parsing("A policy"):
            fields = tuple(map(field_from_dict, given["fields"][: _MOST_FIELDS + 1]))
            n_sampled = int(given["n_sampled"]) if "n_sampled" in given else None
            own = cls(given["purpose"], fields, given["expires"], given["memo"], n_sampled=n_sampled)
            claims = [one["epsilon"] for one in (*given["fields"], given)]
        if own._document["version"] != given["version"]:
            raise ValueError(
                "The version of a policy must be the first that knows its fields and laws, "
                f"{own._document['version']}; got {given['version']!r}."
            )
        if claims != [one["epsilon"] for one in (*own._document["fields"], own._document)]:
            raise ValueError(
                f"The stated epsilons of a policy must be those of its integers, {own.epsilon!r} in total; got others."
            )
        if own.sha256 != given["sha256"]:
            raise ValueError("A policy must be in the canonical form of to_json; got another form.")
        return own

    def to_json(self) -> str:
        """Return the document in canonical form."""
        return canonical_text(self._document)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the document to a file.

        Parameters
        ----------
        path : str or path-like
            File of the policy.
        """
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.to_json())

    @cached_property
    def epsilon(self) -> float:
        """Exact epsilon of a report: the sum over its fields, or over the largest that are asked, rounded up."""
        asked = sorted((field.epsilon for field in self.fields), reverse=True)[: self.n_sampled]
        return round_up(sum(map(Fraction, asked), Fraction(0)))

    @cached_property
    def names(self) -> list[str]:
        """Names of the values of a record."""
        return list(dict.fromkeys(name for field in self.fields for name in field.names))

    @property
    def sha256(self) -> str:
        """SHA-256 of the document, in hexadecimal."""
        return str(self._document["sha256"])

    @property
    def n_bytes(self) -> int:
        """Size of a report in bytes."""
        asked = len(self.fields) if self.n_sampled is None else self.n_sampled
        return len(self._pack(bytes(16), [0] * asked + [None] * (len(self.fields) - asked)))

    def permanent(self, steps: int = 1024) -> Self:
        """Return the same policy under the memo rule ``"permanent"``, with `steps` for each number that needs them.

        Parameters
        ----------
        steps : int, default=1024
            Number of equal steps between the bounds of a number.
        """
        fields = (replace(one, steps=steps) if one.needs_steps else one for one in cast("Any", self.fields))
        return replace(self, fields=tuple(fields), memo="permanent")

    def release(
        self,
        record: Mapping[str, Any],
        *,
        ledger: DeviceLedger | None = None,
        secret: ReleaseKey | None = None,
        person: int | str | None = None,
    ) -> bytes:
        """Release a record as a report.

        Parameters
        ----------
        record : dict
            Values by field name. Every record has a report: decimal texts are numbers, and an absent or unreadable
            value is missing. Test the form of a program's records by :meth:`check_record`.
        ledger : DeviceLedger, default=None
            Account to charge before the report is returned. Under the memo rule ``"permanent"``, each value of each
            field is charged once. A new value beyond the limit sends no report, which reveals the change.
        secret : ReleaseKey, default=None
            Secret for the memo rule ``"permanent"``, which requires it; None otherwise.
        person : int or str, default=None
            Id of the person, if one secret serves several people; None means the owner of the device.

        Returns
        -------
        bytes
            Report of the same size for every record.

        Raises
        ------
        ValueError
            If the policy has expired, or the secret does not fit the memo rule.
        TypeError
            If the record is not a mapping. Nothing is charged after a ValueError or a TypeError.
        BudgetExhaustedError
            If the limit of the ledger does not admit the report.
        """
        self._check_not_expired()
        if (secret is None) is not (self.memo == "fresh") or not isinstance(secret, ReleaseKey | None):
            raise ValueError(
                "secret must be a ReleaseKey for the memo rule 'permanent' and None for 'fresh'; got "
                f"{type(secret).__name__} for the rule {self.memo!r}."
            )
        whose = b"" if person is None else person_bytes(*canonical_ids([person]))
        encoded = self._encode(record)
        if secret is None:
            if ledger is not None:
                ledger.charge(self.sha256, self.epsilon)
            return self._draw(encoded, secure_words())
        own = bytes.fromhex(self.sha256)
        kept = kept_report(self._kept, encoded, secret, policy=own, person=whose, n_sampled=self.n_sampled)
        if ledger is not None:
            ledger._charge_once(self.sha256, kept.charges)
        return self._pack(kept.report_id, kept.answers)

    def send(
        self,
        record: Mapping[str, Any],
        deliver: Callable[[bytes], Any],
        *,
        ledger: DeviceLedger,
        secret: ReleaseKey | None = None,
    ) -> bytes:
        """Release a record and deliver the report; after a lost connection, deliver the same report again.

        A new report of the same record would be charged again, and counted as one of another person. The report is on
        the disk before it is delivered. After a crash, it is delivered again: a collector counts its id once.

        Parameters
        ----------
        record : mapping of str to value
            Record, which is not read if an earlier report was not delivered.
        deliver : callable
            Takes the report, and returns once the collector has it. Any exception means that it may not: call
            :meth:`send` again, which delivers the stored report at no cost, whatever the record is by then.
        ledger : DeviceLedger
            Account that is charged, and that stores the report until `deliver` has returned.
        secret : ReleaseKey, default=None
            As of :meth:`release`.

        Returns
        -------
        bytes
            The delivered report.

        Raises
        ------
        ValueError, TypeError, BudgetExhaustedError
            As of :meth:`release`, and anything that `deliver` raises.

        Examples
        --------
        >>> import os, tempfile
        >>> from skldp.client import DeviceLedger, Field, Policy
        >>> from skldp.mechanisms import Column
        >>> from skldp.mechanisms.numeric._unit_mechanisms import Duchi
        >>> policy, sent = Policy("age", (Field("age", Column(0, 100), Duchi(1.0).integer_law),)), []
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     account = DeviceLedger(os.path.join(folder, "account"), lifetime_epsilon=2.0)
        ...     report = policy.send({"age": 37}, sent.append, ledger=account)
        >>> sent == [report]
        True
        """
        self._check_not_expired()
        report = ledger._unsent(self.sha256)
        if report is None:
            report = ledger._store(self.sha256, self.release(record, ledger=ledger, secret=secret))
        deliver(report)
        ledger._delivered(self.sha256, report)
        return report

    def check_record(self, record: Mapping[str, Any]) -> None:
        """Raise ValueError if a field of a made-up record is absent, unreadable or undeclared.

        Use it to test a program. :meth:`release` does not raise: an error would reveal who has a value.

        Parameters
        ----------
        record : mapping of str to value
            A made-up record.
        """
        own = named_columns({name: [value] for name, value in record.items()}, self.names)
        for one in self.fields:
            one.encode_all(own, True, text=True)

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
        """Release the rows of a table as one report each; an error releases nothing.

        Parameters
        ----------
        columns : dict of str to array or sequence
            Columns of equal length by name, including those of pandas, polars and Arrow.
        secret : ReleaseKey, default=None
            Secret for the memo rule ``"permanent"``, which requires it; None otherwise.
        people : sequence of int or str, default=None
            Ids of the rows' people, required with a secret.
        handle_unknown : {"error", "policy"}, default="error"
            Treatment of an undeclared category, or a missing one without a missing category: an error, or the policy's
            replacement. A value of a type that no category has is always an error.
        text : bool, default=False
            Whether cells come from a text file, where the integer 1 is written ``"1"`` or ``"1.0"``.
        first_row : int, default=None
            Number of the first row in errors. None counts positions from 0.

        Returns
        -------
        list of bytes
            One report for each row.

        Raises
        ------
        ValueError
            If the policy has expired, the secret does not fit the memo rule, a column is missing or of another type or
            length, or a cell is unreadable or undeclared: the error names its row and column, but not its value.
        """
        if handle_unknown not in ("error", "policy"):
            raise ValueError(f"handle_unknown must be 'error' or 'policy'; got {handle_unknown!r}.")
        self._check_not_expired()
        check_secret(self, secret, people)
        if text:
            for column in declared_columns(self.fields).values():
                if column.values is not None:
                    CodeReader(column.values, text=True).check_texts()
        whose = None if people is None else list(map(person_bytes, canonical_ids(people, first_row)))
        own = named_columns(columns, self.names, whose)
        reading = {"text": text, "first_row": first_row}
        each = [field.encode_all(own, handle_unknown == "error", **reading) for field in self.fields]
        rows = list(zip(*each, strict=True))
        if secret is None or whose is None:
            words = secure_words()
            return [self._draw(row, words) for row in rows]
        sha256 = bytes.fromhex(self.sha256)
        kept = (
            kept_report(self._kept, row, secret, policy=sha256, person=person, n_sampled=self.n_sampled)
            for row, person in zip(rows, whose, strict=True)
        )
        return [self._pack(one.report_id, one.answers) for one in kept]

    def vector(self, record: Mapping[str, Any], random_bytes: bytes) -> bytes:
        """Return the report drawn from given random bytes, a test vector for other clients without privacy.

        Each word has 8 bytes. The first two are the report's id, followed by those of the sample of fields, if some are
        sampled, and of each asked field in order. Raises ValueError if there are too few.

        Parameters
        ----------
        record : mapping of str to value
            Record.
        random_bytes : bytes
            Words to draw from.
        """
        return self._draw(self._encode(record), words_of(random_bytes))

    def read(self, report: bytes) -> PolicyReport:
        """Return a parsed report; raise ValueError if it is broken or has another policy or version.

        Parameters
        ----------
        report : bytes
            Report of a device.
        """
        sizes = [field.n_answers for field in self.fields]
        report_id, answers = unpack(report, bytes.fromhex(self.sha256), sizes, self.n_sampled)
        asked = [(field, one) for field, one in zip(self.fields, answers, strict=True) if one is not None]
        if not all(field.is_answer(answer) for field, answer in asked):
            raise ValueError("The answers of a report must be answers of its policy; got others.")
        return PolicyReport(report_id.hex(), {field.name: answer for field, answer in asked})

    @cached_property
    def _document(self) -> dict[str, Any]:
        content = {
            "skldp": "policy",
            "version": max(
                _VERSION if self.n_sampled is None else _SAMPLING_VERSION, *(field.version for field in self.fields)
            ),
            "purpose": self.purpose,
            "fields": [field.to_dict() for field in self.fields],
            "epsilon": repr(self.epsilon),
            "delta": "0",
            "memo": self.memo,
            "expires": self.expires,
            **({} if self.n_sampled is None else {"n_sampled": str(self.n_sampled)}),
        }
        return content | {"sha256": digest(content)}

    @cached_property
    def _kept(self) -> list[KeptField]:
        return [KeptField.of(one) for one in self.fields]

    @cached_property
    def _expiry(self) -> datetime | None:
        if self.expires is None:
            return None
        try:
            if not _EXPIRES.fullmatch(self.expires):
                raise ValueError
            return datetime.strptime(self.expires, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        except (TypeError, ValueError):
            raise ValueError(
                f"expires must be a time such as 2027-01-31T00:00:00Z; got {self.expires!r:.30}."
            ) from None

    def _check_not_expired(self) -> None:
        if self._expiry is not None and datetime.now(UTC) >= self._expiry:
            raise ValueError(f"A policy must not have expired; got one that expired at {self.expires}.")

    def _encode(self, record: Mapping[str, Any]) -> list[Any]:
        if not isinstance(record, Mapping):
            raise TypeError(f"A record must be a mapping; got {type(record).__name__}.")
        values = {name: _value(record, name) for name in self.names}
        return [field.encode(values) for field in self.fields]

    def _draw(self, encoded: Sequence[Any], words: Iterator[int]) -> bytes:
        report_id = b"".join(next(words).to_bytes(8, "big") for _ in range(2))
        m, s = len(self.fields), self.n_sampled
        # The sample is drawn before any value is looked at.
        asked = range(m) if s is None else uniform_subset(m, s, words)
        answers: list[int | None] = [None] * m
        for place in asked:
            answers[place] = self.fields[place].draw(encoded[place], words)
        return self._pack(report_id, answers)

    def _pack(self, report_id: bytes, answers: Sequence[int | None]) -> bytes:
        sizes = [field.n_answers for field in self.fields]
        return pack(bytes.fromhex(self.sha256), report_id, answers, sizes, self.n_sampled)


def check_policy(policy: Any) -> None:
    """Raise TypeError unless a parameter is a policy."""
    if not isinstance(policy, Policy):
        raise TypeError(f"policy must be a Policy, as of Policy.load; got {type(policy).__name__}.")


def check_secret(policy: Policy, secret: ReleaseKey | None, ids: Any) -> None:
    """Raise ValueError if the secret and the ids do not fit the policy's memo rule."""
    kept = policy.memo == "permanent"
    if {kept} != {isinstance(secret, ReleaseKey), secret is not None, ids is not None}:
        raise ValueError(
            "The memo rule 'permanent' needs a secret and ids of people; other rules take neither; "
            f"got {'no secret' if secret is None else type(secret).__name__} and "
            f"{'no ids' if ids is None else 'ids'} for the rule {policy.memo!r}."
        )


def _value(record: Mapping[str, Any], name: str) -> Any:
    """Return a value of a record, or None if it is absent or its lookup fails."""
    try:
        return record.get(name)
    except Exception:
        # A lazy mapping may raise anything; an error would reveal the value.
        return None
