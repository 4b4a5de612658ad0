"""Write skldp/client/vectors.json: ``python tests/client/make_vectors.py``."""

import hashlib
import json
from pathlib import Path

import skldp
from skldp.client import CategoryField, NumberColumn, NumberField, NumbersField, Policy
from skldp.mechanisms import (
    BoundedFeatures,
    Duchi,
    DuchiVector,
    HadamardResponse,
    Hybrid,
    HybridThreeOutputs,
    LocalHashing,
    LongitudinalCategories,
    LongitudinalHistogram,
    LongitudinalMean,
    Piecewise,
    RandomizedResponse,
    ResponseOnBins,
    SubsetSelection,
    ThreeOutputs,
    UnaryEncoding,
    bitrand,
    integer_law,
    law_within_bounds,
)

VECTORS = Path(skldp.__file__).parent / "client" / "vectors.json"
UNIT = ([0.0], [1.0])


def columns(letter, n):
    return tuple(NumberColumn(f"{letter}{j}", -1.0 - j, 1.0 + j) for j in range(n))


def features(mechanism, n, n_sampled):
    return BoundedFeatures(mechanism, (0.0,) * n, (1.0,) * n, n_sampled=n_sampled, stated=2.0)


POLICY = Policy(
    "test vectors: every law, and nobody's data",
    (
        NumberField("two", -1.0, 1.0, integer_law(Duchi(1.0))),
        NumberField("three", 0.0, 0.3, integer_law(ThreeOutputs(2.0)), unit="kg", missing=0.1),
        NumberField("cells", -5.0, 250.0, integer_law(Piecewise(1.0)), whole=True),
        NumberField("mixed", 1.0, 9.0, integer_law(Hybrid(2.0))),
        NumberField("mixed three", 1.0, 9.0, integer_law(HybridThreeOutputs(3.0))),
        CategoryField("city", ("Köln", "Ulm", 7, True, None), integer_law(RandomizedResponse(1.0, 5)), unknown=None),
        CategoryField("bits", ("a", "b", "c"), integer_law(UnaryEncoding(1.0, 3, "oue"))),
        CategoryField("set", tuple("abcdefg"), integer_law(SubsetSelection(1.0, 7))),
        CategoryField("hash", tuple(range(20)), integer_law(LocalHashing(1.0, 20))),
        CategoryField("row", tuple(range(20)), integer_law(HadamardResponse(2.0, 20))),
        NumberField("since", 18262.0, 20088.0, integer_law(Duchi(3.0)), whole=True, missing=19000.0, is_date=True),
        NumberField("bins", 0.0, 100.0, law_within_bounds(ResponseOnBins(3.0, 0.0, 100.0))),
        NumberField("knots", 0.0, 100.0, law_within_bounds(ResponseOnBins(3.0, 0.0, 100.0, unbiased=True))),
        NumberField("binary", 0.0, 1.0, law_within_bounds(bitrand(9.0, UNIT, calibration="exact", debias=True))),
        NumbersField("chosen", columns("p", 4), law_within_bounds(features(Hybrid(2.0), 4, 2))),
        NumbersField("signs", columns("q", 3), integer_law(DuchiVector(2.0, 3))),
        NumbersField("chosen signs", columns("r", 5), law_within_bounds(features(DuchiVector(2.0, 4), 5, 4))),
    ),
)
#: Laws of two steps have a policy of their own, since all its fields are of its memo rule.
WAVES = Policy(
    "test vectors: every law of two steps, and nobody's data",
    (
        CategoryField("response", tuple("abcd"), integer_law(LongitudinalCategories(2.0, 1.0, 4, "krr"))),
        CategoryField("bits", tuple("abc"), integer_law(LongitudinalCategories(2.0, 1.0, 3, "sue"))),
        CategoryField("hash", tuple(range(20)), integer_law(LongitudinalCategories(2.0, 1.0, 20))),
        NumberField("end", -1.0, 3.0, law_within_bounds(LongitudinalMean(2.0, 1.0, -1.0, 3.0))),
        NumberField("buckets", 0.0, 9.0, law_within_bounds(LongitudinalHistogram(2.0, 1.0, 0.0, 9.0, 6, 3))),
        NumbersField("signs", columns("s", 2), integer_law(DuchiVector(2.0, 2)), steps=8),
    ),
    memo="permanent",
)
WAVE_RECORDS = [
    {"response": "a", "bits": "b", "hash": 0, "end": 2.2, "buckets": 9.0, "s0": 0.5, "s1": -1.5},
    {"response": "d", "bits": "c", "hash": 19, "end": -0.5, "buckets": 4.5, "s0": -1.0, "s1": 2.0},
]
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
    """Bytes that look random and are the same everywhere: 120 words."""
    seeds = (f"skldp vector {place} {number} {block}".encode() for block in range(30))
    return b"".join(hashlib.sha256(seed).digest() for seed in seeds)


def reports(policy, records, first=0):
    made = []
    for place, record in enumerate(records, first):
        for number in range(20):
            chosen = random_bytes(place, number)
            report = policy.vector(record, chosen).hex()
            made.append({"record": record, "random_bytes": chosen.hex(), "report": report})
    return {"policy": json.loads(policy.to_json()), "vectors": made}


def vectors(policy=POLICY, waves=WAVES):
    return reports(policy, RECORDS) | {"two_steps": reports(waves, WAVE_RECORDS, len(RECORDS))}


if __name__ == "__main__":
    VECTORS.write_text(json.dumps(vectors(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
