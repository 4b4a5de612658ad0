"""Laws from documents, which may be a stranger's."""

from dataclasses import fields
from importlib import import_module
from typing import Any

from skldp.mechanisms._integer_laws import IntegerLaw

__all__ = ["LAWS", "law_from_dict"]

#: The module and the class of each law, by its name in documents. A device imports those alone that it is told.
LAWS = {
    "randomized_response": ("_code_laws", "ResponseLaw"),
    "unary_encoding": ("_code_laws", "UnaryLaw"),
    "two_answers": ("_number_laws", "TwoAnswersLaw"),
    "three_answers": ("_number_laws", "ThreeAnswersLaw"),
    "lattice": ("_number_laws", "LatticeLaw"),
    "mixture": ("_number_laws", "MixtureLaw"),
    "subset": ("_category_laws", "SubsetLaw"),
    "local_hashing": ("_category_laws", "HashingLaw"),
    "hadamard": ("_category_laws", "HadamardLaw"),
    "bins": ("_bin_laws", "BinsLaw"),
    "knots": ("_bin_laws", "KnotsLaw"),
    "sign_and_bits": ("_bin_laws", "BitsLaw"),
    "signs": ("_group_laws", "SignsLaw"),
    "sampled": ("_group_laws", "SampledLaw"),
    "longitudinal_response": ("_longitudinal_laws", "LongitudinalResponseLaw"),
    "longitudinal_bits": ("_longitudinal_laws", "LongitudinalBitsLaw"),
    "longitudinal_hashing": ("_longitudinal_laws", "LongitudinalHashingLaw"),
    "longitudinal_mean": ("_longitudinal_laws", "LongitudinalMeanLaw"),
    "longitudinal_histogram": ("_longitudinal_laws", "LongitudinalHistogramLaw"),
}
# A mixture within a choice is the deepest of all laws, and no text of another nests deeper.
_DEEPEST = 3


def law_from_dict(given: Any) -> IntegerLaw:
    """Read a law from what :meth:`IntegerLaw.to_dict` gives, or from a stranger.

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
    place = LAWS.get(given["law"]) if isinstance(given, dict) and isinstance(given.get("law"), str) else None
    kind = None if place is None else getattr(import_module(f"skldp.mechanisms.{place[0]}"), place[1])
    if kind is None or set(given) != {"law"} | {one.name for one in fields(kind)}:
        raise ValueError(f"A law must be one of {sorted(LAWS)}, with its integers and nothing else. Got another.")
    made: IntegerLaw = kind(**{name: _read(value, deepest) for name, value in given.items() if name != "law"})
    return made


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
