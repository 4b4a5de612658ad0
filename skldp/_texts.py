"""Texts in documents and on screens: characters that show nothing or move others."""

import unicodedata

__all__ = ["escaped", "is_visible"]

# Persian, Indic scripts and emoji are spelled with them: zero width non-joiner and joiner.
_JOINERS = "\u200c\u200d"


def is_visible(text: str) -> bool:
    r"""Return whether a text has no characters that show nothing or move others.

    These are Unicode's categories C (control, format, surrogate, private use, unassigned), Zl and Zp. A joiner is
    allowed directly after a letter, mark or symbol beyond ASCII.

    Examples
    --------
    >>> from skldp._texts import is_visible
    >>> is_visible("Größe, 年齢, می\u200cخواهم"), is_visible("in euros\u202e"), is_visible("age\u200c")
    (True, False, False)
    """
    return text.isprintable() or escaped(text) == text


def escaped(text: str) -> str:
    r"""Return the text with such characters written as escapes.

    Examples
    --------
    >>> from skldp._texts import escaped
    >>> print(escaped("in euros\u202e\n"))
    in euros\u202e\n
    """
    shown = []
    for before, one in zip(" " + text, text, strict=False):
        category = unicodedata.category(one)
        joins = one in _JOINERS and before > "\x7f" and unicodedata.category(before)[0] in "LMS"
        hidden = (category[0] == "C" and not joins) or category in ("Zl", "Zp")
        shown.append(one.encode("unicode_escape").decode("ascii") if hidden else one)
    return "".join(shown)
