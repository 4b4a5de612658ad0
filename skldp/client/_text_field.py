"""Field for a text outside any list, released as a Bloom filter."""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from skldp._checks import check_epsilon, check_integer
from skldp._reading import TextReader, Unread
from skldp.client._fields import Field, check_text
from skldp.laws._bloom_law import BloomLaw
from skldp.laws._integers import MOST_BITS
from skldp.laws._odds import least_count

_MOST_LETTERS, _READER = 1000, TextReader()


@dataclass(frozen=True)
class TextField(Field):
    """Field for a text, such as a word or an address, which is released as a Bloom filter (RAPPOR).

    Parameters
    ----------
    name : str
    law : BloomLaw
        See :meth:`rappor`.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Texts are equal if their first 1,000 characters are equal after normalization to NFC; what follows is not read. An
    absent text, None or a value of another type is the empty text.

    References
    ----------
    Erlingsson, Pihur and Korolova, "RAPPOR", CCS 2014, Sections 2 and 3.

    Examples
    --------
    >>> from skldp.client import Policy, TextField
    >>> policy = Policy("first words", (TextField.rappor("word", 2.0),))
    >>> round(policy.epsilon, 6), policy.n_bytes
    (2.0, 34)
    """

    name: str
    law: BloomLaw

    def __post_init__(self) -> None:
        check_text("The name of a field", self.name)
        if not isinstance(self.law, BloomLaw):
            raise ValueError(f"The law of a text must be 'bloom'; got {self.law!r}.")

    @classmethod
    def rappor(cls, name: str, epsilon: float, *, n_bits: int = 32, n_hashes: int = 2, n_cohorts: int = 64) -> Self:
        """Make the field at the epsilon of a report.

        Cohorts have different hash functions. Filters differ in up to ``2 * n_hashes`` bits, which share the epsilon.
        """
        check_epsilon(epsilon)
        check_integer("n_bits", n_bits, least=2, most=MOST_BITS)
        check_integer("n_hashes", n_hashes, least=1, most=min(64, n_bits))
        check_integer("n_cohorts", n_cohorts, least=1, most=2**16)
        flip_count = least_count(epsilon / min(2 * int(n_hashes), int(n_bits)))
        return cls(name, BloomLaw(int(n_cohorts), int(n_bits), int(n_hashes), flip_count))

    def encode(self, value: Any) -> str:
        """Return the normalized text."""
        return _normalized(_READER.read(value))

    def encode_all(self, columns: Mapping[str, Any], refuse_unknown: bool, **reading: Any) -> Sequence[str]:
        """Return the normalized texts of the rows."""
        cells = _READER.read_all(columns[self.name])
        first_row = reading.get("first_row")
        cells.check(columns[self.name], f"Column {self.name!r}", "texts", Unread.UNREADABLE, first_row=first_row)
        return [_normalized("" if missing else text) for text, missing in zip(*cells, strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """Return the field as a dict of its document."""
        return {"name": self.name, "type": "text"} | self._law_and_epsilons()


def _normalized(text: str | Unread) -> str:
    # A cut and a replacement are no errors: whether a device reports must not depend on the value.
    units = ("" if isinstance(text, Unread) else text)[:_MOST_LETTERS].encode("utf-16-le", "surrogatepass")
    return unicodedata.normalize("NFC", units.decode("utf-16-le", "replace"))
