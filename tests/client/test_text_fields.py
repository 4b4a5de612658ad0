"""Texts on a device: what is missing, how texts are normalized, and documents."""

import json
from pathlib import Path

import pandas as pd
import pytest
from client.json_schema import fits
from client.test_sampled_fields import _signed

import skldp.client
from skldp.client import DeviceLedger, Policy
from skldp.client._text_field import TextField
from skldp.laws._bloom_law import BloomLaw
from skldp.laws._categories import UnaryLaw
from skldp.mechanisms import ReleaseKey

SCHEMA = json.loads((Path(skldp.client.__file__).parent / "policy.schema.json").read_text(encoding="utf-8"))
FIELD = TextField.rappor("word", 2.0, n_bits=8)
POLICY = Policy("words", (FIELD,), memo="permanent")
KEY = ReleaseKey(bytes(range(128, 160)))


class Secretive:
    def __repr__(self):
        return "secret"


@pytest.mark.parametrize("value", [b"secret", 5, 2.5, True, ["secret"], Secretive()], ids=repr)
def test_what_is_no_text_is_missing_and_refused_in_a_check_without_its_value(value):
    with pytest.raises(
        ValueError,
        match=r"'word' must hold texts; nothing was released\. Got 1 of 1 .* at position 0, of type",
    ) as caught:
        POLICY.check_record({"word": value})
    assert "secret" not in str(caught.value)
    assert FIELD.encode(value) == FIELD.encode(None)
    POLICY.check_record({"word": "yes"})


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("Cafe\u0301", "Caf\u00e9"),
        ("a" * 1000, "a" * 1000 + "b"),
        ("\ud800x", "\ufffdx"),
        ("\ud83d\ude00", "\U0001f600"),
        ("", None),
    ],
    ids=ascii,
)
def test_every_text_has_a_report_and_equal_texts_equal_filters(text, same, tmp_path):
    """Attack: a text that has no UTF-8, or is too long, and shows by an error."""
    assert FIELD.encode(text) == FIELD.encode(same)
    ledger = DeviceLedger(tmp_path / "ledger", lifetime_epsilon=100.0)
    first, second = (POLICY.release({"word": one}, ledger=ledger, secret=KEY) for one in (text, same))
    assert len(first) == POLICY.n_bytes
    # The second report is the same, and free.
    assert first == second
    assert ledger.spent == POLICY.epsilon == 2.0
    assert POLICY.vector({}, bytes(800)) == POLICY.vector({"word": ""}, bytes(800))


def test_texts_that_differ_beyond_their_compatibility_are_different():
    assert FIELD.encode("\ufb01") != FIELD.encode("fi")
    assert FIELD.encode("a") != FIELD.encode("A") != FIELD.encode("A ")


def test_a_document_with_texts_is_of_version_5():
    document = json.loads(POLICY.to_json())
    assert document["version"] == 5
    assert fits(document, SCHEMA, SCHEMA)
    assert Policy.from_json(POLICY.to_json()) == POLICY
    with pytest.raises(ValueError, match="the first that knows its fields and laws, 5; got 4"):
        Policy.from_json(_signed(document | {"version": 4}))


@pytest.mark.parametrize(
    ("name", "forged"),
    [
        ("n_hashes", "1"),
        ("n_hashes", "0"),
        ("n_hashes", "9"),
        ("n_bits", "3"),
        ("n_cohorts", "0"),
        ("n_cohorts", "65537"),
        ("flip_count", "0"),
        ("flip_count", str(2**63)),
    ],
)
def test_a_forged_law_is_refused(name, forged):
    document = json.loads(POLICY.to_json())
    document["fields"][0]["law"][name] = forged
    with pytest.raises(ValueError, match=r"must have 1 to|must flip a bit|stated epsilons"):
        Policy.from_json(_signed(document))


def test_parameters_without_a_law_are_refused():
    with pytest.raises(ValueError, match="must be 'bloom'"):
        TextField("word", UnaryLaw(3, 2**62, 2**61))
    with pytest.raises(ValueError, match="epsilon must be"):
        TextField.rappor("word", 0.0)
    for name, wrong in ("n_bits", 1), ("n_bits", 4097), ("n_hashes", 0), ("n_hashes", 33), ("n_cohorts", 2**16 + 1):
        with pytest.raises(ValueError, match=f"{name} must be"):
            TextField.rappor("word", 2.0, **{name: wrong})
    with pytest.raises(ValueError, match="must have 1 to"):
        BloomLaw(1, 2, 3, 2**62)


def test_a_table_has_the_reports_of_devices():
    words = ["a", None, "Cafe\u0301"]
    reports = POLICY.release_table({"word": words}, secret=KEY, people=range(3))
    assert reports == [POLICY.release({"word": one}, secret=KEY, person=i) for i, one in enumerate(words)]
    missing = [
        pd.Series(["a", None]),
        pd.Series(["a", float("nan")], dtype=object),
        pd.Series(["a", pd.NA], dtype="string"),
    ]
    for column in missing:
        assert POLICY.release_table({"word": column}, secret=KEY, people=range(2)) == reports[:2]
    with pytest.raises(ValueError, match="in row 8, of type int"):
        POLICY.release_table({"word": ["a", 3]}, secret=KEY, people=range(2), first_row=7)
    fresh = Policy("words", (FIELD,))
    assert len({fresh.release({"word": "a"}) for _ in range(20)}) > 1
