"""Policies that ask each person some of their fields: attacks by devices, collectors and replays, and exact laws."""

import itertools
import json
import math
import zlib
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from client.json_schema import fits
from laws import THRESHOLD, chi_square_pvalue

import skldp.client
from skldp._documents import canonical_text, digest
from skldp.client import DeviceLedger, Field, Policy
from skldp.client._report_bytes import pack, unpack
from skldp.mechanisms import Column, RandomizedResponse, ReleaseKey

SECRET = ReleaseKey(bytes(range(100, 132))[::-1])


def category(name, k, epsilon=1.0):
    return Field(name, Column(values=tuple(range(k))), RandomizedResponse(epsilon, k).integer_law)


FIELDS = category("a", 2), category("b", 3, 0.5), category("c", 4, 2.0)
POLICY = Policy("some of three questions", FIELDS, n_sampled=1)
PAIRS = replace(POLICY, n_sampled=2)


def exact_law(policy, record):
    """The law of a report's answers: a uniform sample of fields, and randomized response in each of them."""
    law = Counter()
    for asked in itertools.combinations(policy.fields, policy.n_sampled):
        for answers in itertools.product(*(range(field.n_answers) for field in asked)):
            chance = Fraction(1, math.comb(len(policy.fields), policy.n_sampled))
            for field, answer in zip(asked, answers, strict=True):
                other = Fraction(field.law.other_count, 2**64)
                is_own = answer == record[field.name]
                chance *= 1 - (field.n_answers - 1) * other if is_own else other
            law[tuple((field.name, answer) for field, answer in zip(asked, answers, strict=True))] += chance
    return law


@pytest.mark.parametrize("policy", [POLICY, PAIRS])
def test_the_epsilon_is_the_largest_ratio_of_the_exact_law(policy):
    names = [field.name for field in policy.fields]
    records = [
        dict(zip(names, row, strict=True)) for row in itertools.product(*(f.column.values for f in policy.fields))
    ]
    laws = [exact_law(policy, record) for record in records]
    worst = max(one[report] / two[report] for one, two in itertools.permutations(laws, 2) for report in one)
    assert math.log(worst) == pytest.approx(policy.epsilon, abs=1e-12)
    assert math.log(worst) <= policy.epsilon
    assert policy.epsilon == pytest.approx({1: 2.0, 2: 3.0}[policy.n_sampled])


@pytest.mark.few(1)
@pytest.mark.parametrize("policy", [POLICY, PAIRS])
def test_reports_follow_the_exact_law(policy):
    record, words = {"a": 1, "b": 0, "c": 3}, np.random.default_rng(0)
    reports = [policy.read(policy.vector(record, words.bytes(8 * 30))) for _ in range(20_000)]
    law, found = exact_law(policy, record), Counter(tuple(report.answers.items()) for report in reports)
    assert set(found) <= set(law)
    assert chi_square_pvalue([found[one] for one in law], [float(chance) for chance in law.values()]) > THRESHOLD


def test_the_sample_is_drawn_before_any_value_is_looked_at():
    """Attack: a device that asks itself the field that tells most."""
    words = np.random.default_rng(1)
    for _ in range(200):
        given = words.bytes(8 * 30)
        asked = {
            tuple(PAIRS.read(PAIRS.vector({"a": a, "b": b, "c": c}, given)).answers)
            for a, b, c in ((0, 0, 0), (1, 2, 3), (None, "?", 1))
        }
        assert len(asked) == 1


@pytest.mark.parametrize("n_sampled", [1, 2])
def test_every_report_is_one_number_and_all_others_are_refused(n_sampled):
    sizes, tag, head = (2, 3, 5), bytes(32), bytes(16)
    numbers = Counter()
    for asked in itertools.combinations(range(3), n_sampled):
        for own in itertools.product(*(range(sizes[place]) for place in asked)):
            answers = [None] * 3
            for place, answer in zip(asked, own, strict=True):
                answers[place] = answer
            report = pack(tag, head, answers, sizes, n_sampled)
            assert unpack(report, tag, sizes, n_sampled) == (head, answers)
            numbers[report[25:-4]] += 1
    assert set(numbers.values()) == {1}
    (width,) = {len(number) for number in numbers}
    # A collector must not count what no device sends.
    for number in range(256**width):
        body = report[:25] + number.to_bytes(width, "big")
        forged = body + zlib.crc32(body).to_bytes(4, "big")
        if forged[25:-4] not in numbers:
            with pytest.raises(ValueError, match="must be answers of its policy"):
                unpack(forged, tag, sizes, n_sampled)


def test_reports_have_one_size_for_every_sample_and_value():
    wide = Policy("wide", (*FIELDS, category("d", 5000, 3.0)), n_sampled=2)
    sizes = {len(wide.release({"a": 1, "b": b, "c": 0, "d": d})) for b in range(3) for d in range(100)}
    assert sizes == {wide.n_bytes}
    assert wide.n_bytes == 29 + 3


def test_the_document_says_the_design_and_cannot_lie_about_it():
    """Attack: a collector that claims the epsilon of one field and asks all, or fewer and claims more of them."""
    document = json.loads(POLICY.to_json())
    assert (document["version"], document["n_sampled"]) == (3, "1")
    assert Policy.from_json(POLICY.to_json()) == POLICY
    schema = json.loads((Path(skldp.client.__file__).parent / "policy.schema.json").read_text(encoding="utf-8"))
    assert fits(document, schema, schema)
    with pytest.raises(ValueError, match="epsilons of a policy must be those of its integers"):
        Policy.from_json(_signed(document | {"n_sampled": "2"}))
    with pytest.raises(ValueError, match="the first that knows its fields and laws, 2; got 3"):
        Policy.from_json(_signed({name: one for name, one in document.items() if name != "n_sampled"}))
    for n_sampled in ("01", "1.0", 1):
        with pytest.raises(ValueError, match=r"n_sampled|canonical form|invalid literal"):
            Policy.from_json(_signed(document | {"n_sampled": n_sampled}))


def _signed(document):
    bare = {name: one for name, one in document.items() if name != "sha256"}
    return canonical_text(bare | {"sha256": digest(bare)})


@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize("kind", ["text", "other", None, ["category"]], ids=repr)
def test_a_field_of_another_type_is_refused(version, kind):
    law = {"law": "bloom", "n_cohorts": "64", "n_bits": "32", "n_hashes": "2", "flip_count": "6964045163131060224"}
    field = {"name": "word", "type": kind, "law": law, "epsilon": "2.0"}
    document = json.loads(POLICY.to_json()) | {"fields": [field], "version": version}
    with pytest.raises(ValueError, match=r"The type of a field must be one of 'number', .*'category'.*; got"):
        Policy.from_json(_signed(document))


PERMANENT = replace(POLICY, memo="permanent")


def asked_by(policy, person):
    (name,) = policy.read(policy.release({}, secret=SECRET, person=person)).answers
    return name


def test_asking_again_asks_the_same_field():
    """Attack: replays that collect one field after the other until all are known."""
    for person in range(50):
        first = asked_by(PERMANENT, person)
        seen = set()
        for a, b, c in itertools.product(range(2), range(3), range(4)):
            answers = PERMANENT.read(PERMANENT.release({"a": a, "b": b, "c": c}, secret=SECRET, person=person)).answers
            seen |= set(answers)
        assert seen == {first}
    counts = Counter(asked_by(PERMANENT, person) for person in range(3000))
    assert chi_square_pvalue([counts[field.name] for field in FIELDS], [1 / 3] * 3) > THRESHOLD
    again = replace(PERMANENT, purpose="next month")
    assert [asked_by(again, person) for person in range(50)] == [asked_by(PERMANENT, person) for person in range(50)]


def test_a_change_in_a_field_that_is_not_asked_shows_nowhere(tmp_path):
    """Attack: a report id, or a charge, that changes with a value that is not reported."""
    for person in range(30):
        own = asked_by(PERMANENT, person)
        ledger = DeviceLedger(tmp_path / f"{person}.db", lifetime_epsilon=10.0)
        others = [field.name for field in FIELDS if field.name != own]
        reports = {
            PERMANENT.release({others[0]: x, others[1]: y}, secret=SECRET, person=person, ledger=ledger)
            for x, y in itertools.product(range(2), range(2))
        }
        assert len(reports) == 1
        (law,) = (field.epsilon for field in FIELDS if field.name == own)
        assert ledger.spent == pytest.approx(law)


def test_a_table_has_the_reports_of_devices():
    rows = {"a": [0, 1, 1], "b": [2, 1, 0], "c": [3, 0, 1]}
    people = ["x", "y", "z"]
    released = PERMANENT.release_table(rows, secret=SECRET, people=people)
    for place, person in enumerate(people):
        record = {name: column[place] for name, column in rows.items()}
        assert PERMANENT.release(record, secret=SECRET, person=person) == released[place]
    fresh = [POLICY.read(report) for report in POLICY.release_table(rows)]
    assert all(len(report.answers) == 1 for report in fresh)
