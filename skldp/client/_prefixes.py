"""Domains of words over an alphabet, and tasks about prefixes of a word."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import Any, Self

from skldp._checks import check_integer
from skldp._documents import canonical_text, read_document
from skldp._reading import number_of, plain
from skldp._texts import is_visible
from skldp.client._fields import CategoryField
from skldp.client._ledger import DeviceLedger
from skldp.client._policy import Policy

# Name of the field of a task's policy.
PREFIX = "prefix"
_MOST_SYMBOLS, _LONGEST = 1024, 256
_NAMES = {"symbols", "word_length", "fixed", "length", "policy"}


@dataclass(frozen=True)
class PrefixDomain:
    """Domain of words over an alphabet, or of binary codes.

    Parameters
    ----------
    symbols : str
        Alphabet of 2 to 1,024 different characters.
    length : int
        Length of the longest word, from 1 to 256.
    fixed : bool, default=False
        Whether all words have this length. Fixed words over ``"01"`` are codes, which can also be given as integers.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    The prefix of length l of a shorter word is the word itself.

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
            raise ValueError(f"symbols must be a str of 2 to {_MOST_SYMBOLS} different characters; got another value.")
        if not all(map(is_visible, self.symbols)):
            raise ValueError("symbols must not contain control, format or other invisible characters; got one.")
        check_integer("length", self.length, least=1, most=_LONGEST)
        object.__setattr__(self, "length", int(self.length))
        if not isinstance(self.fixed, bool):
            raise ValueError(f"fixed must be True or False; got {self.fixed!r}.")

    @classmethod
    def of_bits(cls, n_bits: int) -> Self:
        """Make the domain of the integers from 0 to below ``2 ** n_bits``."""
        return cls("01", n_bits, fixed=True)

    @property
    def is_codes(self) -> bool:
        """True if words are the binary digits of integers."""
        return self.fixed and self.symbols == "01"

    def prefix(self, value: Any, length: int) -> str | None:
        """Return the prefix of a word or an integer, or None if it is not in the domain."""
        try:
            number = number_of(value) if self.is_codes else None
            if number is not None:
                is_code = number == int(number) and 0 <= number < 1 << self.length
                return f"{int(number):0{self.length}b}"[:length] if is_code else None
            text = plain(value)
            return text[:length] if type(text) is str and self.is_prefix(text, self.length) else None
        except Exception:
            # The methods of a value may raise anything; an error would reveal the value.
            return None

    def value(self, word: str) -> str | int:
        """Return the value of a word: an integer for codes."""
        return int(word, 2) if self.is_codes else word

    def is_prefix(self, text: str, length: int) -> bool:
        """Return whether a text is the prefix of some word."""
        fits = len(text) == length if self.fixed else len(text) <= length
        return fits and self._alphabet.issuperset(text)

    def n_extensions(self, prefix: str, length: int, longer: int) -> int:
        """Return the number of extensions of a prefix to a larger length."""
        if not self.fixed and len(prefix) < length:
            return 1
        n, steps = len(self.symbols), longer - length
        return n**steps if self.fixed else sum(n**i for i in range(steps + 1))

    def extensions(self, prefix: str, length: int, longer: int) -> Iterator[str]:
        """Yield the extensions of a prefix to a larger length; a complete word is its only extension."""
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
    """Task for one group of people, with candidate prefixes of their words.

    Parameters
    ----------
    domain : PrefixDomain
    length : int
        Length of the prefixes.
    policy : Policy
        Policy with one category, ``"prefix"``, whose values are the candidates in ascending order, and None for all
        other words.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    See Also
    --------
    skldp.HeavyHitters : Estimator that makes these tasks and uses their reports.

    Notes
    -----
    A task is not trusted. A report costs the exact epsilon of its policy, computed from the sampled integers, for any
    candidates. A device that answers two tasks is charged for both.

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
        check_integer("length", self.length, least=1, most=self.domain.length)
        object.__setattr__(self, "length", int(self.length))
        fields = self.policy.fields
        field = fields[0]
        if not isinstance(field, CategoryField) or len(fields) > 1 or field.name != PREFIX or field.unknown is not None:
            raise ValueError("The policy of a prefix task must have one category 'prefix'; got another policy.")
        if self.policy.memo != "fresh":
            raise ValueError(f"The policy of a prefix task must have the memo rule 'fresh'; got {self.policy.memo!r}.")
        # None among the values means unknown ones.
        candidates = self.candidates
        are_all = len(candidates) == len(field.values) - 1
        if not are_all or not all(self.domain.is_prefix(one, self.length) for one in candidates):
            raise ValueError("Candidates must be prefixes of the domain, followed by None; got others.")
        if any(not one < two for one, two in pairwise(candidates)):
            raise ValueError("Candidates must be in ascending order; got another order.")

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a task from untrusted JSON; raise ValueError if the task or its policy is invalid."""
        given = read_document(text, "prefix task", 1, _NAMES, integers=True)
        domain = PrefixDomain(given["symbols"], given["word_length"], given["fixed"])
        return cls(domain, given["length"], Policy.from_json(canonical_text(given["policy"])))

    def to_json(self) -> str:
        """Return the document in canonical form."""
        own = {"symbols": self.domain.symbols, "word_length": self.domain.length, "fixed": self.domain.fixed}
        policy = json.loads(self.policy.to_json())
        return canonical_text({"skldp": "prefix task", "version": 1, "length": self.length, "policy": policy} | own)

    @property
    def candidates(self) -> tuple[str, ...]:
        """Candidate prefixes."""
        (field,) = self.policy.fields
        assert isinstance(field, CategoryField)
        return tuple(one for one in field.values[:-1] if isinstance(one, str))

    def release(self, value: Any, *, ledger: DeviceLedger | None = None) -> bytes:
        """Release a word as a report with fresh noise; a word outside the domain matches no candidate.

        The ledger is charged before the report is returned. Errors are those of :meth:`~skldp.Policy.release`.
        """
        return self.policy.release({PREFIX: self.domain.prefix(value, self.length)}, ledger=ledger)

    def send(self, value: Any, deliver: Callable[[bytes], Any], *, ledger: DeviceLedger) -> bytes:
        """Release a word and deliver the report, or deliver a report again, as :meth:`~skldp.Policy.send`."""
        return self.policy.send({PREFIX: self.domain.prefix(value, self.length)}, deliver, ledger=ledger)
