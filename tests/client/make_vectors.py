"""Write tests/client/vectors.json: ``python tests/client/make_vectors.py``."""

import hashlib
import json
import struct
from pathlib import Path

from skldp.client import Field, Policy, VectorField
from skldp.laws._categories import ResponseLaw, SubsetLaw
from skldp.laws._closest_law import ClosestLaw
from skldp.laws._few_answers import ThreeAnswersLaw, TwoAnswersLaw
from skldp.laws._hashing import HadamardLaw, HashingLaw
from skldp.laws._numbers import BinsLaw, BitsLaw, KnotsLaw, SampledLaw
from skldp.mechanisms import Column, Piecewise, RandomizedResponse, bitrand
from skldp.mechanisms.categorical._one_hot import OneHotHadamard, OneHotLocalHashing, SubsetSelection, UnaryEncoding
from skldp.mechanisms.numeric._bounded_features import BoundedFeatures
from skldp.mechanisms.numeric._points import ResponseOnBins
from skldp.mechanisms.numeric._unit_mechanisms import Duchi, DuchiVector, Hybrid, HybridThreeOutputs, ThreeOutputs

VECTORS = Path(__file__).parent / "vectors.json"
UNIT = ([0.0], [1.0])


def columns(letter, n):
    return tuple(Column(-1.0 - j, 1.0 + j, name=f"{letter}{j}") for j in range(n))


def features(mechanism, n, n_sampled):
    return BoundedFeatures(mechanism, (0.0,) * n, (1.0,) * n, n_sampled=n_sampled, stated=2.0)


POLICY = Policy(
    "test vectors: every law, and nobody's data",
    (
        Field("two", Column(-1.0, 1.0), Duchi(1.0).integer_law),
        Field("three", Column(0.0, 0.3, unit="kg", missing=0.1), ThreeOutputs(2.0).integer_law),
        Field("cells", Column(-5.0, 250.0, kind="integer"), Piecewise(1.0).integer_law),
        Field("mixed", Column(1.0, 9.0), Hybrid(2.0).integer_law),
        Field("mixed three", Column(1.0, 9.0), HybridThreeOutputs(3.0).integer_law),
        Field(
            "city", Column(values=("Köln", "Ulm", 7, True, None), unknown=None), RandomizedResponse(1.0, 5).integer_law
        ),
        Field("bits", Column(values=("a", "b", "c")), UnaryEncoding(1.0, 3, "oue").integer_law),
        Field("set", Column(values=tuple("abcdefg")), SubsetSelection(1.0, 7).integer_law),
        Field("hash", Column(values=tuple(range(20))), OneHotLocalHashing(1.0, 20).integer_law),
        Field("row", Column(values=tuple(range(20))), OneHotHadamard(2.0, 20).integer_law),
        Field("since", Column(18262.0, 20088.0, missing=19000.0, kind="date"), Duchi(3.0).integer_law),
        Field("bins", Column(0.0, 100.0), ResponseOnBins(3.0, 0.0, 100.0).integer_law),
        Field("knots", Column(0.0, 100.0), ResponseOnBins(3.0, 0.0, 100.0, unbiased=True).integer_law),
        Field("binary", Column(0.0, 1.0), bitrand(9.0, UNIT, calibration="exact", debias=True).integer_law),
        Field("chosen", columns("p", 4), features(Hybrid(2.0), 4, 2).integer_law),
        Field("signs", columns("q", 3), DuchiVector(2.0, 3).integer_law),
        Field("chosen signs", columns("r", 5), features(DuchiVector(2.0, 4), 5, 4).integer_law),
    ),
)
#: Of which a device asks two fields; the last one makes the largest answers.
SAMPLED = Policy(
    "test vectors: a sample of fields, and nobody's data",
    (
        Field("two", Column(-1.0, 1.0), Duchi(1.0).integer_law),
        Field("city", Column(values=("Köln", "Ulm", None)), RandomizedResponse(1.5, 3).integer_law),
        Field("chosen", columns("p", 4), features(Hybrid(2.0), 4, 2).integer_law),
        Field("set", Column(values=tuple("abcdefg")), SubsetSelection(1.0, 7).integer_law),
    ),
    n_sampled=2,
)
SAMPLED_RECORDS = [
    {"two": 0.25, "city": "Ulm", "p0": 0.5, "p1": -1.5, "p2": 0.0, "p3": 4.0, "set": "b"},
    {"two": None, "city": None, "p0": -0.5, "set": "g"},
]
PAIR_COLUMNS = {
    "age": Column(0.0, 100.0, kind="integer", name="age"),
    "city": Column(values=("Köln", "Ulm", None), name="city"),
    "pay": Column(-1.0, 3.0, name="pay"),
}
#: Of which a device asks one pair.
PAIRS = Policy(
    "test vectors: pairs of columns, and nobody's data",
    tuple(
        Field(f"{a} & {b}", (PAIR_COLUMNS[a], PAIR_COLUMNS[b]), kind(1.0, n).integer_law, n_knots=4)
        for a, b, kind, n in (
            ("age", "city", RandomizedResponse, 12),
            ("pay", "age", SubsetSelection, 16),
            ("city", "pay", OneHotLocalHashing, 12),
        )
    ),
    n_sampled=1,
)
#: Of integers that are written here; the directions of a seed are few.
OF_TWO = ClosestLaw(n_values=2, square_radius=2, n_directions=16, n_close=6, miss_count=2**62)
CLOSEST = Policy(
    "test vectors: vectors, and nobody's data",
    (
        VectorField("update", ClosestLaw(5, 1, n_directions=32, n_close=9, miss_count=2**62), 2.5),
        VectorField("direction", ClosestLaw(3, 0, n_directions=16, n_close=1, miss_count=2**61)),
        Field("box", columns("t", 2), OF_TWO),
        Field("chosen", columns("u", 3), SampledLaw(n_values=3, n_sampled=2, of_sampled=OF_TWO)),
    ),
)
CLOSEST_RECORDS = [
    {"update": [0.5, -1.5, 0.0, 0.25, 1.0], "direction": [3, -4, 12], "t0": 0.5, "t1": -2.0, "u0": 1.0, "u2": 3.0},
    {"update": [1e300, -1e300, 5e299, 0.0, 1.0], "direction": [0, 0, 0], "t0": -1.0, "t1": 0.0, "u1": 0.3},
    {"direction": [1e-320, 0.0, -1e-320]},
]
PAIR_RECORDS = [{"age": 55, "city": "Ulm", "pay": 1.7}, {"age": 100, "pay": -1.0}]


def bins(*edges):
    answers = tuple(range(len(edges) + 1))
    return BinsLaw(ResponseLaw(n_codes=len(answers), other_count=2**58), edges, answers)


def codes(law, n, **counts):
    return law(n_codes=n, **counts)


#: Of integers that are written here, for readings that the laws above do not tell apart.
NINTHS = bins(*(place * 2**51 for place in range(-3, 5)))
EDGES = Policy(
    'test vectors: "edges", and nobody\'s data \\ / é 😀',
    (
        Field(
            "row", Column(values=tuple(range(20))), codes(HadamardLaw, 20, n_blocks=1, block_size=64, miss_count=2**58)
        ),
        Field("half-even product", Column(-1.0, 1.0), TwoAnswersLaw(slope=3)),
        Field("half-even value", Column(-4.0, 4.0, missing=3.0, kind="integer"), NINTHS),
        Field("date", Column(-4.0, 4.0, missing=2.0, kind="date"), NINTHS),
        # Here 2 (x - low) / (high - low) - 1 and other formulas of equal value give other doubles.
        Field("center", Column(-0.7, 2.1, missing=0.0), bins(-8363827879402351, -8363827879402350)),
        # Of doubles so small, (low + high) / 2 is another one than low/2 + high/2.
        Field("tiny center", Column(1.5e-323, 3.5e-323, missing=1.5e-323), bins(0, 1)),
        Field("three", Column(-1.0, 1.0), ThreeAnswersLaw(zero=2**63, zero_lost=2**62, wrong=2**62, wrong_lost=2**61)),
        Field("one bit", Column(-1.0, 1.0), BitsLaw((2**62,))),
        Field("sign and bits", Column(-1.0, 1.0), BitsLaw((2**62, 2**62, 2**62))),
        Field("knots", Column(-1.0, 1.0), KnotsLaw(ResponseLaw(n_codes=4, other_count=2**58), (-(2**53), 0, 2, 2**53))),
        Field(
            "kinds",
            Column(values=(0, 1, True, False, "1", None), unknown="1"),
            codes(ResponseLaw, 6, other_count=2**58),
        ),
        Field("no null", Column(values=(1, 2, True, "é😀"), unknown=2), codes(ResponseLaw, 4, other_count=2**58)),
        Field("subset", Column(values=tuple(range(7))), codes(SubsetLaw, 7, set_size=3, miss_count=2**62)),
        Field("hash", Column(values=tuple(range(20))), codes(HashingLaw, 20, n_buckets=3, other_count=2**62)),
        Field(
            "sampled",
            (
                Column(-1.0, 1.0, name="a"),
                Column(-4.0, 4.0, kind="integer", name="b"),
                Column(-4.0, 4.0, kind="date", name="c"),
            ),
            SampledLaw(n_values=3, n_sampled=2, of_sampled=TwoAnswersLaw(slope=2**62)),
        ),
    ),
)
BELOW = 2.0**-54
EDGE_RECORDS = [
    {"half-even value": 0.5, "date": "1970-01-02T23:59:59", "center": -0.6, "tiny center": 3e-323, "b": 2.5},
    {"half-even value": 1.5, "date": "1969-12-30T00:00:00+05:00", "center": 0.7, "tiny center": 2.5e-323, "b": 3.5},
    {"half-even value": 2.5, "date": "1970-01-04 12:00", "center": 2.1, "c": "1970-01-02"},
    {"half-even value": -0.5, "date": "1970-01-02x", "center": 1e300, "c": "1960-01-02"},
    {"half-even value": -1.5, "date": "1970-02-30", "center": None, "b": -2.5},
    {"half-even value": True, "date": 1, "center": "2.1", "b": "1"},
    {"half-even value": -0.25, "date": "1970-1-2", "a": False},
    {"half-even value": "1", "date": " 1970-01-02", "a": 0.5, "b": [1], "c": {}},
    {"half-even value": " +2.5\t", "center": "1e999", "a": "-.5", "b": "1,5", "c": "3"},
    {"half-even value": "1" * 400, "center": "0x1", "a": "1_0", "b": "\u0661", "c": 3},
]
PLACES = [0.5, -0.5, BELOW, 3 * BELOW, -BELOW, 0.25, -0.0, 1 / 6, "0.25", "-1e-1"]
KINDS = [1, True, 1.0, "1", None, False, 0.5, "True", "1.0", "TRue"]
EDGE_RECORDS = [
    one
    | dict.fromkeys(("half-even product", "three", "one bit", "sign and bits", "knots"), place)
    | {"kinds": kind, "no null": kind, "subset": row, "hash": row * 2, "row": 19 - row}
    for row, (one, place, kind) in enumerate(zip(EDGE_RECORDS, PLACES, KINDS, strict=True))
]
EDGE_WORDS = (0, 2**58 - 1, 2**58, 2**62 - 1, 2**62, 2**63 - 2, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 17, 2**64 - 1)
NUMBERS = {f"{letter}{j}": 0.3 - j for letter, n in (("p", 4), ("q", 3), ("r", 5)) for j in range(n)}
MORE = [
    {"set": "a", "hash": 0, "row": 0, "since": "2021-03-01", "bins": 20.0, "knots": 20.0, "binary": 0.3},
    {"set": "d", "hash": 7, "row": 13, "since": None, "bins": 50.0, "knots": 50.0, "binary": 0.5},
    {"set": "g", "hash": 19, "row": 19, "since": "1999-12-31", "bins": 1e9, "knots": 99.0, "binary": 1.0},
]
RECORDS = [
    {"two": 0.25, "three": 0.3, "cells": 99.5, "mixed": 3.3, "mixed three": 8.75, "city": "Köln", "bits": "a"},
    {"two": -7.0, "three": None, "cells": -5, "mixed": 1.0, "mixed three": 9.0, "city": "Paris", "bits": "c"},
    {"two": 1e300, "three": 0.15, "cells": 100.5, "mixed": 5.0, "mixed three": 5.0, "city": True, "bits": "b"},
]
RECORDS = [one | more | NUMBERS for one, more in zip(RECORDS, MORE, strict=True)]


def random_bytes(place, number):
    """Return 120 words that look random and are the same everywhere."""
    seeds = (f"skldp vector {place} {number} {block}".encode() for block in range(30))
    return b"".join(hashlib.sha256(seed).digest() for seed in seeds)


def edge_bytes(place, number):
    """Return 60 words, every second one at a threshold of laws; rejection sampling rejects 2^64 - 1."""
    words = list(struct.unpack(">60Q", random_bytes(place, number)[:480]))
    words[::2] = (EDGE_WORDS[(place + number) % len(EDGE_WORDS)] for place in range(30))
    return struct.pack(">60Q", *words)


def reports(policy, records, first=0, bytes_of=random_bytes, each=20):
    made = []
    for place, record in enumerate(records, first):
        for number in range(each):
            chosen = bytes_of(place, number)
            report = policy.vector(record, chosen).hex()
            made.append({"record": record, "random_bytes": chosen.hex(), "report": report})
    return {"policy": json.loads(policy.to_json()), "vectors": made}


def vectors(policy=POLICY, edges=EDGES, sampled=SAMPLED, pairs=PAIRS, closest=CLOSEST):
    # Random bytes of older parts stay as they were.
    first = len(RECORDS) + 2
    after = first + len(EDGE_RECORDS)
    last = after + len(SAMPLED_RECORDS) + len(PAIR_RECORDS)
    return reports(policy, RECORDS) | {
        "edges": reports(edges, EDGE_RECORDS, first, edge_bytes, len(EDGE_WORDS)),
        "sampled": reports(sampled, SAMPLED_RECORDS, after),
        "pairs": reports(pairs, PAIR_RECORDS, after + len(SAMPLED_RECORDS)),
        "closest": reports(closest, CLOSEST_RECORDS, last, each=8),
    }


if __name__ == "__main__":
    VECTORS.write_text(json.dumps(vectors(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
