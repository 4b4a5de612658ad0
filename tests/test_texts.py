"""Characters that show nothing: documents refuse them, and programs print them as escapes."""

import json
import unicodedata

import pytest

from skldp._documents import canonical_text, digest
from skldp._tables import html_table, in_html
from skldp._texts import escaped, is_visible
from skldp.client import Field, Policy
from skldp.laws._numbers import SignsLaw
from skldp.mechanisms import Column, RandomizedResponse
from skldp.mechanisms.numeric._unit_mechanisms import Duchi

# One of each category that shows nothing or moves others, and those that forged a page.
HIDDEN = [
    "\n",
    "\x1b[2K",
    "\x9b2K",
    "\u202e",
    "\u2066",
    "\u200b",
    "\ufeff",
    "\ue000",
    "\u0378",
    "\u2028",
    "\u2029",
    "\xad",
    "\ud800",
]
ORDINARY = [
    "Wie groß sind Sie (in cm)?",
    "می\u200cخواهم",
    "क्\u200dष, ശ്രീ, ന്\u200d",
    "年齢\u3000と性別",
    "quel âge\u202f?",
    "שלום, עולם",
    "👩\u200d🚀 👩🏽\u200d⚕️",
    "e\u0301t\u0301e",
]
YES = RandomizedResponse(1.0, 2).integer_law


@pytest.mark.parametrize("text", ORDINARY)
def test_texts_of_every_language_pass(text):
    assert is_visible(text)
    assert escaped(text) == text
    policy = Policy(text, (Field(text, Column(values=(text, "no")), YES),))
    assert Policy.from_json(policy.to_json()) == policy


@pytest.mark.parametrize("step", [61, pytest.param(1, marks=pytest.mark.slow)])
def test_of_all_of_unicode_what_shows_nothing_is_refused(step):
    for code in range(0, 0x110000, step):
        one = chr(code)
        category = unicodedata.category(one)
        assert is_visible(f"a{one}b") is not (category[0] == "C" or category in ("Zl", "Zp")), hex(code)


def build(place, text):
    """A policy whose text in one place is as asked."""
    texts = dict.fromkeys(("purpose", "number", "unit", "group", "column", "column unit", "category", "value"), "ok")
    texts |= {place: text}
    fields = (
        Field(texts["number"] + "1", Column(0, 1, unit=texts["unit"]), Duchi(1.0).integer_law),
        Field(
            texts["group"] + "2",
            (Column(0, 1, unit=texts["column unit"], name=texts["column"] + "3"), Column(0, 1, name="4")),
            SignsLaw(2, 2**63 + 2**61),
        ),
        Field(texts["category"] + "5", Column(values=(texts["value"], "no")), YES),
    )
    return Policy(texts["purpose"], fields)


@pytest.mark.few(30)
@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("place", ["purpose", "number", "unit", "group", "column", "column unit", "category", "value"])
def test_no_text_of_a_policy_hides_a_character(place, hidden):
    given = json.loads(build(place, "here").to_json())
    with pytest.raises(ValueError):  # noqa: PT011 -- half a character has an error of its own
        build(place, f"here{hidden}")

    def forge(content):
        if isinstance(content, dict):
            return {name: forge(one) for name, one in content.items()}
        if isinstance(content, list):
            return [forge(one) for one in content]
        return content.replace("here", f"here{hidden}") if isinstance(content, str) else content

    forged = forge(given)
    assert forged != given
    if hidden == "\ud800":
        return
    forged["sha256"] = digest(forged)
    with pytest.raises(ValueError, match="no control, format or other invisible characters"):
        Policy.from_json(canonical_text(forged))


@pytest.mark.parametrize("hidden", HIDDEN)
def test_what_is_printed_is_escaped_all_the_same(hidden):
    shown = hidden.encode("unicode_escape").decode()
    assert escaped(hidden) == shown.replace("\\x1b[2K", "\\x1b[2K")
    assert in_html(f"<{hidden}") == f"&lt;{shown}"
    assert hidden not in html_table(f"a{hidden}", [(f"b{hidden}", f"c{hidden}")], [f"d{hidden}", "e"])


@pytest.mark.parametrize("text", ["\u200cx", "a\u200d", "x \u200c", "年\u200c\u200c", "1\u200d2", "年、\u200d"])
def test_joiners_stand_after_what_they_join(text):
    assert not is_visible(text)
