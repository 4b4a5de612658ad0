"""Policies are believed in nothing: each attack here is a document or a record, and fails."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from client.json_schema import fits

import skldp.client
from skldp._documents import canonical_text, digest
from skldp.client import DeviceLedger, Field, Policy
from skldp.client._report_bytes import pack
from skldp.exceptions import BudgetExhaustedError
from skldp.laws._categories import UnaryLaw
from skldp.mechanisms import Column, RandomizedResponse
from skldp.mechanisms.categorical._one_hot import SubsetSelection, UnaryEncoding
from skldp.mechanisms.numeric._unit_mechanisms import Duchi, DuchiVector, Hybrid, HybridThreeOutputs, ThreeOutputs

SECRET = 41.5


def field(name="age", mechanism=None, **more):
    return Field(name, Column(0.0, 100.0, **more), (mechanism or Duchi(1.0)).integer_law)


def city(mechanism=None, **more):
    return Field(
        "city", Column(values=("Bonn", "Ulm", None), **more), (mechanism or RandomizedResponse(1.0, 3)).integer_law
    )


def two_cities(**more):
    return Field("city", Column(values=("Bonn", "Ulm"), **more), RandomizedResponse(1.0, 2).integer_law)


POLICY = Policy(
    "a survey of ages",
    (
        field(unit="years", missing=50.0),
        city(unknown=None),
        field("weight", Hybrid(2.0), kind="integer"),
        field("height", HybridThreeOutputs(3.0)),
        field("pulse", ThreeOutputs(1.5)),
        Field("flags", Column(values=(True, False, 1, 0, "1", None)), UnaryEncoding(1.0, 6, "sue").integer_law),
    ),
    expires="9999-12-31T23:59:59Z",
)
RECORD = {"age": SECRET, "city": "Ulm", "weight": 70, "height": 99.0, "pulse": 60, "flags": True}


def forged(**changes):
    """The document with parts changed, and a digest that fits again."""
    document = json.loads(POLICY.to_json())
    for path, value in changes.items():
        *way, last = path.split("__")
        place = document
        for step in way:
            place = place[int(step) if step.isdecimal() else step]
        if value is ...:
            del place[last]
        else:
            place[last] = value
    return canonical_text(document | {"sha256": digest(document)})


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"epsilon": "1.0"}, "stated epsilons of a policy must be those of its integers"),
        ({"fields__0__epsilon": "0.5"}, "stated epsilons of a policy must be those of its integers"),
        ({"fields__0__law__slope": "9223372036854774784"}, "stated epsilons of a policy must be those of its integers"),
        ({"fields__1__law__other_count": "1"}, "stated epsilons of a policy must be those of its integers"),
        ({"fields__0__law__slope": "9223372036854775808"}, "must have a slope below"),
        ({"fields__1__law__other_count": "0"}, "keep the true one"),
        ({"fields__1__law__n_codes": "2"}, "must be of 3 codes"),
        ({"fields__1__values": ["Bonn", "Bonn", None]}, "must be different values"),
        ({"fields__1__values": ["Bonn", None]}, "must be of 2 codes"),
        ({"fields__1__unknown": "Paris"}, "unknown must be one of the values"),
        ({"fields__0__low": "1e+999"}, "Bounds must be finite numbers"),
        ({"fields__0__low": "100.0"}, "Bounds must be finite numbers"),
        ({"fields__0__low": "nan"}, "Bounds must be finite numbers"),
        ({"fields__0__low": "0"}, "in the canonical form"),
        ({"fields__0__missing": "101.0"}, "missing must be"),
        ({"fields__1__name": "age"}, "Fields must have different names"),
        ({"fields__0__outside": "clip"}, "in the canonical form"),
        ({"fields__0__missing": ...}, "fields of its own types"),
        ({"fields__1__unknown": ...}, "fields of its own types"),
        ({"fields__0__law__law": "os.system"}, "A law must be one of"),
        ({"fields__0__type": "pickle"}, "type of a field must be"),
        ({"memo": "permanent"}, "numbers other than integers must have"),
        ({"memo": "twice"}, "memo rule 'fresh' or 'permanent'"),
        ({"fields__0__steps": "7"}, "`steps` must be None under the memo rule 'fresh'"),
        ({"fields__0__steps": "0"}, "steps must be a whole number from 1"),
        ({"fields__0__steps": "1073741825"}, "steps must be a whole number from 1"),
        ({"fields__0__steps": 7}, "`steps` must be None under the memo rule"),
        ({"delta": "1e-06"}, "in the canonical form"),
        ({"version": 1}, "must be a document of version 2"),
        ({"version": 4}, "the first that knows its fields and laws, 2; got 4"),
        ({"version": 5}, "must be a document of version 2 or 3 or 4"),
        ({"version": 3}, "must be the first that knows its fields and laws"),
        ({"n_sampled": "1"}, "must be the first that knows its fields and laws"),
        ({"version": 3, "n_sampled": "6"}, "n_sampled, of 6 fields, must be a whole number from 1 to 5"),
        ({"version": 3, "n_sampled": "1"}, "stated epsilons of a policy must be those of its integers"),
        ({"version": "2"}, "must be a document of version 2"),
        ({"expires": "2027-13-01T00:00:00Z"}, "expires must be a time"),
        ({"expires": "tomorrow"}, "expires must be a time"),
        ({"purpose": ""}, "purpose must be a text of 1 to 1000"),
        ({"fields": []}, "at least one"),
        ({"surprise": "x"}, "and no others"),
        ({"memo": ...}, r"an object without \['memo'\]"),
    ],
)
def test_a_forged_policy_is_refused_though_its_digest_fits(changes, rule):
    text = forged(**changes)
    with pytest.raises(ValueError, match=rule):
        Policy.from_json(text)


@pytest.mark.parametrize(
    "changes",
    [
        {"purpose": "x" * 1001},
        {"purpose": 3},
        {"fields__0__name": "x" * 201},
        {"fields__0__name": None},
        {"fields__0__unit": ""},
        {"fields__0__epsilon": ...},
        {"fields__0__law": ...},
        {"fields__0__type": ...},
        {"fields__0__name": ...},
        {"fields__1__values": []},
        {"fields__0__low": 0},
        {"fields__0__low": " 0.0"},
        {"fields__1__values": ["Bonn", "x" * 1001, None]},
        {"fields__1__values": ["Bonn", 2**53 + 1, None]},
        {"fields__1__values": "abc"},
        {"fields__1__values": None},
        {"fields__1__unknown": []},
        {"fields__1__law": []},
        {"fields__1__law__n_codes": 3},
        {"fields__1__law__n_codes": "+3"},
        {"fields__1__law": {"law": "two_answers", "slope": "3"}},
        {"fields": ["city"]},
        {"fields": {"0": 1}},
        {"fields": "x"},
        {"fields": None},
        {"epsilon": 1},
        {"expires": 3},
        {"expires": "2027-1-31T00:00:00Z"},
        {"memo": []},
        {"asked": []},
        {"asked": [{"estimator": "e", "epsilon": "1", "mechanism": "m", "n_fields": "1"}]},
    ],
    ids=str,
)
def test_what_the_published_schema_refuses_is_refused(changes):
    text = forged(**changes)
    assert not fits(json.loads(text), SCHEMA, SCHEMA)
    with pytest.raises(ValueError, match="must"):
        Policy.from_json(text)


def test_a_changed_policy_is_refused():
    text = POLICY.to_json()
    with pytest.raises(ValueError, match="sha256 of a policy must be that of its document"):
        Policy.from_json(text.replace("a survey of ages", "a survey of wages"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "[" * 100_000,
        '{"a": 1, "a": 2}',
        '{"a": NaN}',
        '{"a": 1.5}',
        '{"a": ' + "1" * 5000 + "}",
        "\ud800",
        '{"skldp": "\\ud800"}',
        POLICY.to_json().replace("a survey of ages", "\\ud800"),
        POLICY.to_json().replace('"delta":"0"', '"delta":"1","delta":"0"'),
        b"{}",
        None,
        "x" * (2**24 + 1),
    ],
    ids=range(16),
)
def test_what_is_no_document_is_refused(text):
    with pytest.raises(ValueError, match=r"policy must be"):
        Policy.from_json(text)


def test_a_policy_that_cannot_be_is_refused_before_it_is_written():
    with pytest.raises(ValueError, match="Fields must have different names"):
        Policy("twice", (field(), field()))
    with pytest.raises(ValueError, match="at least one"):
        Policy("nothing", ())
    with pytest.raises(ValueError, match="purpose must be"):
        Policy("", (field(),))
    with pytest.raises(ValueError, match="expires must be a time"):
        Policy("late", (field(),), expires=3)


def test_reports_are_read_by_their_policy_alone():
    reports = [POLICY.release(RECORD) for _ in range(50)]
    assert {len(report) for report in reports} == {POLICY.n_bytes}
    read = [POLICY.read(report) for report in reports]
    assert len({one.report_id for one in read}) == 50
    for one in read:
        assert all(0 <= one.answers[part.name] < part.n_answers for part in POLICY.fields)
    other = Policy("another purpose", POLICY.fields)
    with pytest.raises(ValueError, match="must have this policy"):
        other.read(reports[0])


def test_every_broken_report_is_refused():
    report = POLICY.release(RECORD)
    for place in range(len(report)):
        for bit in range(8):
            broken = bytearray(report)
            broken[place] ^= 1 << bit
            with pytest.raises(ValueError, match="A report"):
                POLICY.read(bytes(broken))
    for broken in (report[:-1], report + b"\0", b"", "text", None):
        with pytest.raises(ValueError, match="A report"):
            POLICY.read(broken)


def test_answers_that_no_client_gives_are_refused():

    policy = Policy("few", (city(),))
    with pytest.raises(ValueError, match="The answers of a report"):
        policy.read(pack(bytes.fromhex(policy.sha256), bytes(16), [3], [3]))


@pytest.mark.parametrize(
    ("one", "value", "encoded"),
    [
        (field(), 0, -1.0),
        (field(), 100, 1.0),
        (field(), 1e308, 1.0),
        (field(), -5, -1.0),
        (field(), np.float32(50), 0.0),
        (field(missing=75), None, 0.5),
        (field(missing=75), float("nan"), 0.5),
        (field(kind="integer"), 24.5, -0.52),
        (city(), "Ulm", 1),
        (city(), None, 2),
        (city(), float("nan"), 2),
        (city(unknown="Bonn"), "Paris", 0),
        (city(unknown="Bonn"), None, 2),
        (city(unknown="Bonn"), float("nan"), 2),
        (city(unknown="Bonn"), [1], 0),
        (city(unknown=None), 17, 2),
        (POLICY.fields[5], True, 0),
        (POLICY.fields[5], 1, 2),
        (POLICY.fields[5], np.int32(0), 3),
        (POLICY.fields[5], "1", 4),
        (POLICY.fields[5], "Paris", 5),
        (field(), None, 0.0),
        (field(missing=75), "41,5", 0.5),
        (field(missing=75), "41.5", -0.17),
        (field(missing=75), True, 0.5),
        (field(missing=75), float("inf"), 0.5),
        (field(missing=75), 10**400, 0.5),
        (field(missing=75, kind="integer"), [3], 0.5),
        (two_cities(), None, 0),
        (two_cities(), "Paris", 0),
        (two_cities(unknown="Ulm"), None, 1),
    ],
)
def test_values_are_moved_as_the_policy_says(one, value, encoded):
    assert one.encode({one.name: value}) == encoded


def test_a_policy_of_more_bits_than_a_device_has_room_for_is_refused():
    """Each field alone is a law; a report of all of them would take a phone seconds."""
    law = UnaryLaw(4096, 2**62, 2**61)
    several = tuple(Field(f"bits {i}", Column(values=tuple(range(4096))), law) for i in range(33))
    with pytest.raises(ValueError, match="at most 131072 bits of answers"):
        Policy("bits", several)


def test_an_expired_policy_releases_nothing(tmp_path):
    ledger = DeviceLedger(tmp_path / "mine", lifetime_epsilon=100.0)
    late = Policy("late", (field(),), expires="2020-01-01T00:00:00Z")
    with pytest.raises(ValueError, match="must not have expired"):
        late.release({"age": 3}, ledger=ledger)
    assert ledger.spent == 0


def test_the_persons_own_limit_stops_a_greedy_policy(tmp_path, monkeypatch):
    ledger = DeviceLedger(tmp_path / "mine", lifetime_epsilon=2.0)
    policy = Policy("ages", (field(),))
    policy.release({"age": SECRET}, ledger=ledger)
    policy.release({"age": SECRET}, ledger=DeviceLedger(tmp_path / "mine", lifetime_epsilon=2.0))
    monkeypatch.setattr("os.urandom", lambda size: pytest.fail("drawn before it was charged"))
    with pytest.raises(
        BudgetExhaustedError, match=r"costs epsilon \S+, but only \S+ of the lifetime limit of 2 is left\."
    ) as refusal:
        policy.release({"age": SECRET}, ledger=ledger)
    assert str(SECRET) not in str(refusal.value)
    assert ledger.reports() == {policy.sha256: 2}
    assert 2 * policy.epsilon <= ledger.spent <= 2.0


def test_charges_are_rounded_up_and_exact(tmp_path):
    ledger = DeviceLedger(tmp_path / "mine", lifetime_epsilon=1.0)
    for _ in range(10):
        ledger.charge("a", 0.1 - 1e-12)
    assert ledger.spent >= 10 * (0.1 - 1e-12)
    with pytest.raises(BudgetExhaustedError):
        ledger.charge("b", 1e-9)
    for epsilon in (0, -1.0, float("nan"), float("inf"), True):
        with pytest.raises(ValueError, match="epsilon must be a finite number > 0"):
            ledger.charge("a", epsilon)


def test_charges_at_the_same_time_never_exceed_the_limit(tmp_path):
    def admitted(_):
        try:
            DeviceLedger(tmp_path / "mine", lifetime_epsilon=1.0).charge("a", 0.125)
        except BudgetExhaustedError:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(admitted, range(24))) == 8
    assert DeviceLedger(tmp_path / "mine", lifetime_epsilon=1.0).spent == 1.0


SCHEMA = json.loads((Path(skldp.client.__file__).parent / "policy.schema.json").read_text(encoding="utf-8"))


def test_a_device_needs_numpy_and_cryptography_alone():
    code = f"""
import sys
from skldp.client import DeviceLedger, Policy
policy = Policy.load({str(Path(__file__).parent / "policy.json")!r})
policy.release({{"age": 37, "city": "Bonn"}})
print(sorted({{"sklearn", "scipy", "joblib", "pandas"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_numbers_of_a_group_keep_to_their_own_names_and_rules():
    columns = (Column(0, 1, name="a"), Column(0, 1, name="b"))
    law = DuchiVector(2.0, 2).integer_law
    policy = Policy("two numbers", (Field("both", columns, law),))
    assert Policy.from_json(policy.to_json()) == policy
    assert policy.read(policy.release({"a": 0.5, "b": 0.5})).answers.keys() == {"both"}
    both = policy.fields[0]
    assert both.encode({"both": 1}) == (0.0, 0.0)
    assert both.encode({"a": 1}) == (1.0, 0.0)
    assert both.encode({"a": 1, "b": 2}) == (1.0, 1.0)
    for fields, rule in (
        ((Field("both", columns, law), Field("a", Column(0, 1), Duchi(1.0).integer_law)), "different names"),
        (
            (
                Field("x", columns, law),
                Field("x", (Column(0, 1, name="c"), Column(0, 1, name="d")), law),
            ),
            "different names",
        ),
    ):
        with pytest.raises(ValueError, match=rule):
            Policy("two numbers", fields)
    with pytest.raises(ValueError, match="law must be of 1 numbers"):
        Field("both", columns[:1], law)
    with pytest.raises(ValueError, match="columns must be a Column"):
        Field("both", ("a", "b"), law)
    with pytest.raises(ValueError, match="other than integers must have"):
        Policy("two numbers", policy.fields, memo="permanent")
    with pytest.raises(ValueError, match="without a unit"):
        Column(0, 1, kind="date", unit="days", name="since")
    with pytest.raises(ValueError, match="in the years 1 to 9999"):
        Column(0, 1e99, kind="date", name="since")
    assert Column(0, 9, missing=2, name="x").encode(np.float32("nan")) == Column(0, 9, name="x").encode(2)


def test_bounds_have_squares_that_doubles_hold():
    largest = Field("x", Column(-1e100, 1e100), Duchi(1.0).integer_law)
    assert [largest.encode({"x": x}) for x in (-1.79e308, 0.0, 1.79e308)] == [-1.0, 0.0, 1.0]
    for low, high in ((-1.1e100, 0), (0, 1e200), (-1.7e308, 1.7e308), (0, 10**400)):
        with pytest.raises(ValueError, match="Bounds must be"):
            Field("x", Column(low, high), Duchi(1.0).integer_law)


def test_a_report_of_what_is_no_set_is_refused():
    values = tuple(range(7))
    law = SubsetSelection(1.0, 7).integer_law
    policy = Policy("sets", (Field("set", Column(values=values), law),))
    for answer in (0, 0b1111111, 0b1):
        with pytest.raises(ValueError, match="must be answers of its policy"):
            policy.read(pack(bytes.fromhex(policy.sha256), bytes(16), [answer], [law.n_answers]))
    assert policy.read(pack(bytes.fromhex(policy.sha256), bytes(16), [0b11], [law.n_answers])).answers == {"set": 3}


def test_fields_that_are_no_tuple_are_refused_with_the_rule():
    age = Field("age", Column(0, 100), Duchi(1.0).integer_law)
    for fields in (age, 5, None, ()):
        with pytest.raises(ValueError, match="fields must be a tuple of fields, at least one; got"):
            Policy("ages", fields)


def test_a_long_type_of_an_untrusted_column_is_not_repeated():
    columns = (Column(0, 1, name="a"), Column(values=("x", "y"), name="b"))
    document = json.loads(Policy("pairs", (Field("pair", columns, RandomizedResponse(1.0, 4).integer_law),)).to_json())
    document["fields"][0]["columns"][0]["type"] = "9" * 5000
    del document["sha256"]
    document["sha256"] = digest(document)
    with pytest.raises(ValueError, match="type") as caught:
        Policy.from_json(json.dumps(document))
    assert len(str(caught.value)) < 500
