"""Words of a declared alphabet, and tasks about their beginnings: how one person's device answers for a prefix."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from os import PathLike
from typing import Any, Self

from skldp._checks import check_whole, is_whole
from skldp._reading import number_of
from skldp._texts import is_visible
from skldp.client._fields import CategoryField
from skldp.client._ledger import DeviceLedger
from skldp.client._policy import Policy
from skldp.client._schema import canonical_text, read_json

__all__ = ["PREFIX", "PrefixDomain", "PrefixTask"]

# What the one field of a task's policy is called.
PREFIX = "prefix"
_MOST_SYMBOLS, _LONGEST = 1024, 256
_NAMES = {"skldp", "version", "symbols", "word_length", "fixed", "length", "policy"}


@dataclass(frozen=True)
class PrefixDomain:
    """Words over an alphabet, or codes of so many bits.

    Parameters
    ----------
    symbols : str
        The alphabet: 2 to 1,024 signs, all different.
    length : int
        Of the longest word, from 1 to 256.
    fixed : bool, default=False
        Whether all words are as long. Fixed words over ``"01"`` are codes: whole numbers stand for them too.

    Raises
    ------
    ValueError
        If a parameter is not as above.

    Notes
    -----
    A prefix of length l is the first l signs of a word, or a whole word of fewer.

    Examples
    --------
    >>> from skldp.client import PrefixDomain
    >>> words = PrefixDomain("abc", 4)
    >>> words.prefix("cab", 2), words.prefix("c", 2), words.prefix("xyz", 2)
    ('ca', 'c', None)
    >>> list(words.extensions("ca", 2, 3)), list(words.extensions("c", 2, 3))
    (['ca', 'caa', 'cab', 'cac'], ['c'])
    >>> PrefixDomain.of_bits(32).prefix(2**31 + 1, 4)
    '1000'
    """

    symbols: str
    length: int
    fixed: bool = False

    def __post_init__(self) -> None:
        n = len(self.symbols) if isinstance(self.symbols, str) else 0
        if not 2 <= n <= _MOST_SYMBOLS or len(set(self.symbols)) < n:
            raise ValueError(f"symbols must be 2 to {_MOST_SYMBOLS} different signs. Got another alphabet instead.")
        if not all(map(is_visible, self.symbols)):
            raise ValueError("symbols must not be control, format or other invisible characters. Got one of them.")
        check_whole("length", self.length, least=1, most=_LONGEST)
        object.__setattr__(self, "length", int(self.length))
        if not isinstance(self.fixed, bool):
            raise ValueError(f"fixed must be True or False. Got {self.fixed!r} instead.")

    @classmethod
    def of_bits(cls, n_bits: int) -> Self:
        """Codes of so many bits: whole numbers from 0 to below 2 to their power."""
        return cls("01", n_bits, fixed=True)

    @property
    def is_codes(self) -> bool:
        """Whether words are the binary digits of whole numbers."""
        return self.fixed and self.symbols == "01"

    def prefix(self, value: Any, length: int) -> str | None:
        """The prefix of a value, or None where it is no word of the domain.

        Parameters
        ----------
        value : str or int
        length : int
        """
        try:
            number = number_of(value) if self.is_codes else None
            if number is not None:
                is_code = number == int(number) and 0 <= number < 1 << self.length
                return f"{int(number):0{self.length}b}"[:length] if is_code else None
            return value[:length] if isinstance(value, str) and self.is_prefix(value, self.length) else None
        except Exception:
            # The methods of a value may raise anything; an error would reveal the value.
            return None

    def value(self, word: str) -> str | int:
        """The word as people have it: of codes a whole number."""
        return int(word, 2) if self.is_codes else word

    def is_prefix(self, text: str, length: int) -> bool:
        """Whether a text is the prefix of some word."""
        fits = len(text) == length if self.fixed else len(text) <= length
        return fits and self._alphabet.issuperset(text)

    def n_extensions(self, prefix: str, length: int, longer: int) -> int:
        """How many prefixes of a larger length a prefix becomes."""
        if not self.fixed and len(prefix) < length:
            return 1
        n, steps = len(self.symbols), longer - length
        return n**steps if self.fixed else sum(n**i for i in range(steps + 1))

    def extensions(self, prefix: str, length: int, longer: int) -> Iterator[str]:
        """The prefixes of a larger length that a prefix becomes: all of a word that ended before is itself.

        Parameters
        ----------
        prefix : str
            Of the length `length`.
        length, longer : int
        """
        ended = not self.fixed and len(prefix) < length
        least = longer - length if self.fixed else 0
        for n_more in range(least, (0 if ended else longer - length) + 1):
            for more in product(self.symbols, repeat=n_more):
                yield prefix + "".join(more)

    @cached_property
    def _alphabet(self) -> frozenset[str]:
        return frozenset(self.symbols)


@dataclass(frozen=True)
class PrefixTask:
    """What one group of people is asked: which of some candidates their word begins with, or none of them.

    Parameters
    ----------
    domain : PrefixDomain
    length : int
        Of the prefixes.
    policy : Policy
        Of one category, ``"prefix"``: the candidates in ascending order, and None for all other words.

    Raises
    ------
    ValueError
        If a parameter is not as above.

    See Also
    --------
    skldp.HeavyHitters : Who makes such tasks, and learns from the reports.

    Notes
    -----
    A task may be a stranger's. Whatever its candidates are, a report costs the exact epsilon of its policy, which is
    computed from the integers that are sampled; a device that answers two tasks is charged for both.

    Examples
    --------
    >>> from skldp import HeavyHitters
    >>> from skldp.client import PrefixDomain, PrefixTask
    >>> hitters = HeavyHitters(PrefixDomain.of_bits(32), 2.0, "which page is opened first")
    >>> task = PrefixTask.from_json(hitters.task.to_json())
    >>> report = task.release(123456789)
    >>> task.length, round(task.policy.epsilon, 6), len(report)
    (12, 2.0, 32)
    """

    domain: PrefixDomain
    length: int
    policy: Policy

    def __post_init__(self) -> None:
        check_whole("length", self.length, least=1, most=self.domain.length)
        object.__setattr__(self, "length", int(self.length))
        fields = self.policy.fields
        field = fields[0]
        if not isinstance(field, CategoryField) or len(fields) > 1 or field.name != PREFIX or field.unknown is not None:
            raise ValueError("A task about prefixes must be of one category 'prefix'. Got another policy instead.")
        if self.policy.memo != "fresh":
            raise ValueError(f"A task about prefixes is answered once, and afresh. Got {self.policy.memo!r} instead.")
        # None is among the values, where it stands for unknown ones.
        candidates = self.candidates
        are_all = len(candidates) == len(field.values) - 1
        if not are_all or not all(self.domain.is_prefix(one, self.length) for one in candidates):
            raise ValueError("Candidates must be prefixes of the domain, and None after them. Got others instead.")
        if any(not one < two for one, two in pairwise(candidates)):
            raise ValueError("Candidates must ascend. Got others instead.")

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a task from a file, which may be a stranger's; see :meth:`from_json`."""
        with open(path, encoding="utf-8") as file:
            return cls.from_json(file.read())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a task from a text, which may be a stranger's. No code is run.

        Raises
        ------
        ValueError
            If it is no task of this version, or its policy is refused.
        """
        given = read_json(text)
        if not isinstance(given, dict) or set(given) != _NAMES or given["skldp"] != "prefix task":
            raise ValueError(
                f"A task about prefixes must have the names {sorted(_NAMES)}. Got another document instead."
            )
        if not is_whole(given["version"]) or given["version"] != 1:
            raise ValueError("A task about prefixes must be of version 1. Got another one instead.")
        domain = PrefixDomain(given["symbols"], given["word_length"], given["fixed"])
        return cls(domain, given["length"], Policy.from_json(canonical_text(given["policy"])))

    def to_json(self) -> str:
        """The document, in its only form."""
        own = {"symbols": self.domain.symbols, "word_length": self.domain.length, "fixed": self.domain.fixed}
        policy = json.loads(self.policy.to_json())
        return canonical_text({"skldp": "prefix task", "version": 1, "length": self.length, "policy": policy} | own)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the document to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.to_json())

    @property
    def candidates(self) -> tuple[str, ...]:
        """The prefixes that are asked about."""
        return tuple(one for one in self._field.values[:-1] if isinstance(one, str))

    def release(self, value: Any, *, ledger: DeviceLedger | None = None) -> bytes:
        """Release one person's word as one report with fresh noise.

        Parameters
        ----------
        value : str or int
            What is no word of the domain is answered for as a word that no candidate begins, without telling.
        ledger : DeviceLedger, default=None
            Charged before anything is handed out.

        Returns
        -------
        bytes
            Of the same size for every word.

        Raises
        ------
        ValueError
            If the policy has expired.
        BudgetExhaustedError
            If the ledger does not admit it.
        """
        return self.policy.release({PREFIX: self.domain.prefix(value, self.length)}, ledger=ledger)

    @property
    def _field(self) -> CategoryField:
        field = self.policy.fields[0]
        assert isinstance(field, CategoryField)
        return field
