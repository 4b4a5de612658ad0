"""Detection and escape of invisible characters in texts."""

import unicodedata

# Zero width non-joiner and joiner, which spell Persian, Indic scripts and emoji.
_JOINERS = "\u200c\u200d"


def is_visible(text: str) -> bool:
    """Return whether a text has no control, format or other hidden character, except joiners within a word."""
    return text.isprintable() or escaped(text) == text


def escaped(text: str) -> str:
    r"""Return the text with such characters written as escapes."""
    shown = []
    for before, one in zip(" " + text, text, strict=False):
        category = unicodedata.category(one)
        joins = one in _JOINERS and before > "\x7f" and unicodedata.category(before)[0] in "LMS"
        hidden = (category[0] == "C" and not joins) or category in ("Zl", "Zp")
        shown.append(one.encode("unicode_escape").decode("ascii") if hidden else one)
    return "".join(shown)
