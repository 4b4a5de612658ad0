"""Laws from documents, which may be a stranger's."""

from dataclasses import fields
from typing import Any

from skldp.mechanisms._bin_laws import BinsLaw, BitsLaw, KnotsLaw
from skldp.mechanisms._category_laws import HadamardLaw, HashingLaw, SubsetLaw
from skldp.mechanisms._group_laws import SampledLaw, SignsLaw
from skldp.mechanisms._integer_laws import (
    IntegerLaw,
    LatticeLaw,
    MixtureLaw,
    ResponseLaw,
    ThreeAnswersLaw,
    TwoAnswersLaw,
    UnaryLaw,
)

__all__ = ["law_from_dict"]

_OF_CODES: tuple[type[IntegerLaw], ...] = (ResponseLaw, UnaryLaw, SubsetLaw, HashingLaw, HadamardLaw)
_OF_NUMBERS: tuple[type[IntegerLaw], ...] = (
    TwoAnswersLaw,
    ThreeAnswersLaw,
    LatticeLaw,
    MixtureLaw,
    BinsLaw,
    KnotsLaw,
    BitsLaw,
)
_OF_GROUPS: tuple[type[IntegerLaw], ...] = (SignsLaw, SampledLaw)
_LAWS = {law.name: law for law in _OF_CODES + _OF_NUMBERS + _OF_GROUPS}
# A mixture within a choice is the deepest of all laws, and no text of another nests deeper.
_DEEPEST = 3


def law_from_dict(given: Any) -> IntegerLaw:
    """Read a law from what :meth:`IntegerLaw.to_dict` gives, or from a stranger.

    Raises
    ------
    ValueError
        If it is no such law.

    Examples
    --------
    >>> from skldp.mechanisms._law_documents import law_from_dict
    >>> law_from_dict({"law": "two_answers", "slope": "4611686018427387904"}).epsilon
    1.0986122886681098
    """
    return _law(given, _DEEPEST)


def _law(given: Any, deepest: int) -> IntegerLaw:
    if not deepest:
        raise ValueError("A law must hold no mixture within a mixture. Got one.")
    kind = _LAWS.get(given["law"]) if isinstance(given, dict) and isinstance(given.get("law"), str) else None
    if kind is None or set(given) != {"law"} | {one.name for one in fields(kind)}:
        raise ValueError(f"A law must be one of {sorted(_LAWS)}, with its integers and nothing else. Got another.")
    return kind(**{name: _read(value, deepest) for name, value in given.items() if name != "law"})


def _read(value: Any, deepest: int) -> Any:
    """An integer from its only decimal text, several of them, or a law within a law."""
    if isinstance(value, dict):
        return _law(value, deepest - 1)
    if isinstance(value, list):
        return tuple(map(_integer, value))
    return _integer(value)


def _integer(value: Any) -> int:
    if not isinstance(value, str) or len(value) > 20 or not value.removeprefix("-").isdecimal():
        raise ValueError("The integers of a law must be decimal texts of at most 20 signs. Got something else.")
    number = int(value)
    if str(number) != value:
        raise ValueError("The integers of a law must be in their only decimal text. Got another one.")
    return number
