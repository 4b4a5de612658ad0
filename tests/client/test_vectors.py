"""The published vectors are met bit for bit, by the package and by a client written from the document alone."""

import json
from pathlib import Path

import pytest
from client import second_client
from client.make_vectors import CLOSEST as MADE_CLOSEST
from client.make_vectors import EDGES as MADE_EDGES
from client.make_vectors import PAIRS as MADE_PAIRS
from client.make_vectors import POLICY as MADE
from client.make_vectors import SAMPLED as MADE_SAMPLED
from client.make_vectors import VECTORS, vectors
from client.second_client import check_digest, epsilon, report

from skldp.client import Policy

PUBLISHED = json.loads(VECTORS.read_text(encoding="utf-8"))
POLICY = Policy.from_json(json.dumps(PUBLISHED["policy"]))
PARTS = [
    PUBLISHED,
    PUBLISHED["edges"],
    PUBLISHED["sampled"],
    PUBLISHED["pairs"],
    PUBLISHED["closest"],
]
EDGES = Policy.from_json(json.dumps(PUBLISHED["edges"]["policy"]))
PAIRS = Policy.from_json(json.dumps(PUBLISHED["pairs"]["policy"]))
CLOSEST = Policy.from_json(json.dumps(PUBLISHED["closest"]["policy"]))
SAMPLED = Policy.from_json(json.dumps(PUBLISHED["sampled"]["policy"]))


def test_what_is_published_is_what_the_package_gives():
    assert vectors(POLICY, EDGES, SAMPLED, PAIRS, CLOSEST) == PUBLISHED
    assert CLOSEST == MADE_CLOSEST
    assert PAIRS == MADE_PAIRS
    assert EDGES == MADE_EDGES
    assert SAMPLED == MADE_SAMPLED


def test_the_integers_are_those_that_the_package_makes():
    # A calibration by iteration ends in other last bits where scipy is another.
    made, published = ([one for one in policy.fields if one.name != "binary"] for policy in (MADE, POLICY))
    assert made == published
    assert MADE.epsilon == pytest.approx(POLICY.epsilon, rel=1e-12)


@pytest.mark.parametrize("published", PARTS, ids=["every law", "edges", "sampled", "pairs", "closest"])
def test_a_second_client_gives_the_same_reports(published):
    for one in published["vectors"]:
        assert report(published["policy"], one["record"], bytes.fromhex(one["random_bytes"])).hex() == one["report"]


@pytest.mark.few(16)
@pytest.mark.parametrize(
    ("rule", "misreading"),
    [
        ("if type(value) in (int, float) else", "if type(value) in (bool, int, float) else"),
        ("if type(value) in (int, float) else", "if type(value) is int else"),
        ('places[kind_and_value(field["unknown"])]', "len(places) - 1"),
        ('kind_and_value(field["unknown"])', "kind_and_value(field['values'][0])"),
        ("type(value) not in (int, float)", "type(value) not in (int, float, bool)"),
        ("(?:[T ]|$)", "$"),
        ("(?:[T ]|$)", "T?$"),
        ("(?:[T ]|$)", "(?:T|$)"),
        ("(?:[T ]|$)", ""),
        ("re.match(", "re.search("),
        ("([0-9]{2})-([0-9]{2})(", "([0-9]{1,2})-([0-9]{1,2})("),
        ("value = round(value)", "value = math.floor(value + 0.5)"),
        ("value = round(value)", "value = math.trunc(value)"),
        ("(low / 2 + high / 2)", "(low + high) / 2"),
        ("(low / 2 + high / 2)", "(low + (high - low) / 2)"),
        ("x = (value - (low / 2 + high / 2)) / (high / 2 - low / 2)", "x = 2 * (value - low) / (high - low) - 1"),
        ("while w >= 2**64 // n * n:", "while False:"),
        ("while w >= 2**64 // n * n:", "while w > 2**64 // n * n:"),
        ("int(edge) <= x", "int(edge) < x"),
        ("round(x * 2.0**53)", "math.floor(x * 2.0**53)"),
        ("round(x * 2.0**53)", "math.floor(x * 2.0**53 + 0.5)"),
        ('round(x * own["slope"])', 'math.floor(x * own["slope"] + 0.5)'),
        ("if j else (1 + x) / 2", "if j else abs(x)"),
        ("if j else str(magnitude)", "if j else '1'"),
        ('"1" if x >= 0 else "0"', '"1" if math.copysign(1, x) > 0 else "0"'),
        ("(2, 0) if x >= 0", "(2, 0) if math.copysign(1, x) > 0"),
        ('w < 2**63 + round(x * own["slope"])', 'w <= 2**63 + round(x * own["slope"])'),
        ("magnitude) * 2.0**64):", "magnitude) * 2.0**64) + 1:"),
        ("(next(words) < int(t))", "(next(words) <= int(t))"),
        ('w >= own["miss_count"]\n', 'w > own["miss_count"]\n'),
        ('if w >= own["miss_count"] else', 'if w > own["miss_count"] else'),
        ('s = w // own["other_count"] + 1', 's = w // own["other_count"]'),
        ("math.prod(sorted(sizes)[-s:])", "math.prod(sorted(sizes)[:s])"),
        ("number = number * math.comb(m, s) + sum(", "number = number + math.prod(sizes[i] for i in asked) * sum("),
        ("asked = subset(m, s, words)", "asked = subset(m, s, words)[::-1]"),
        ("(1 + own) / 2 * (g - 1)", "(1 + own) / 2 * g"),
        ("code = code * g + b +", "code = g * b + code +"),
        ("b = min(math.floor(p), g - 2)", "b = min(round(p), g - 2)"),
        ("norm * top < float", "norm < float"),
        ("if top == 0 or not all(", "if not all("),
        ("hashlib.shake_128(seed.to_bytes(8", "hashlib.shake_128(seed.to_bytes(9"),
        ("2.0 ** (b - 43)", "2.0 ** (b - 44)"),
        ("-z if u % 2 else z", "z"),
        ("unit.append(math.isqrt(", "unit.append(-math.isqrt("),
        ("2**24 / math.sqrt(r if r else 1)", "2**24"),
        (" / math.sqrt(sum(one * one for one in g))", ""),
        ("seed * n + sorted(far", "seed + 2**64 * sorted(far"),
        ("rank = below(k, words) if w >=", "rank = below(k, words) if w <"),
    ],
)
def test_a_misreading_meets_another_report(rule, misreading):
    source = Path(second_client.__file__).read_text(encoding="utf-8")
    assert rule in source
    misread = {}
    exec(source.replace(rule, misreading), misread)
    assert any(_differs(misread["report"], part, one) for part in PARTS for one in part["vectors"])


def _differs(report, part, one):
    try:
        return report(part["policy"], one["record"], bytes.fromhex(one["random_bytes"])).hex() != one["report"]
    except (ArithmeticError, LookupError, RuntimeError, StopIteration, ValueError):
        return True


def test_vectors_reach_both_parts_of_every_law():
    answers = [POLICY.read(bytes.fromhex(one["report"])).answers for one in PUBLISHED["vectors"]]
    seen = {name: {each[name] for each in answers} for name in answers[0]}
    assert seen["two"] == {0, 1}
    assert seen["three"] == {0, 1, 2}
    assert len(seen["cells"]) > 50
    for name in ("mixed", "mixed three"):
        (law,) = (field.law for field in POLICY.fields if field.name == name)
        assert {answer >= law.lattice.n_answers for answer in seen[name]} == {False, True}
    assert len(seen["city"]) == 5
    assert len(seen["bits"]) > 4
    assert len(seen["set"]) > 10
    assert {POLICY.fields[8].law.n_hashes > 20, len(seen["hash"]) > 20, len(seen["row"]) > 15} == {True}
    assert seen["since"] == {0, 1}
    assert min(map(len, (seen["bins"], seen["knots"], seen["signs"]))) >= 3
    assert len(seen["binary"]) >= 4
    (chosen,) = (field for field in POLICY.fields if field.name == "chosen")
    told = [frozenset(i for i, value in enumerate(chosen.law.values(answer)) if value) for answer in seen["chosen"]]
    assert len(set(told)) == 6
    assert len(seen["chosen signs"]) > 20


@pytest.mark.parametrize(
    "policy",
    [PUBLISHED["policy"], *(PUBLISHED[part]["policy"] for part in ("edges", "closest"))],
    ids=["every law", "edges", "closest"],
)
def test_a_second_client_computes_the_epsilon_that_is_claimed(policy):
    assert check_digest(policy)
    for field in policy["fields"]:
        assert epsilon(field["law"]) == pytest.approx(float(field["epsilon"]), rel=1e-12)
    assert sum(float(field["epsilon"]) for field in policy["fields"]) == pytest.approx(float(policy["epsilon"]))
