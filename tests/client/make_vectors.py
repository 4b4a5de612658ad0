"""Write skldp/client/vectors.json: ``python tests/client/make_vectors.py``."""

import hashlib
import json
from pathlib import Path

import skldp
from skldp.client import CategoryField, NumberField, Policy
from skldp.mechanisms import (
    Duchi,
    Hybrid,
    HybridThreeOutputs,
    Piecewise,
    RandomizedResponse,
    ThreeOutputs,
    UnaryEncoding,
    integer_law,
)

VECTORS = Path(skldp.__file__).parent / "client" / "vectors.json"
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
    ),
)
RECORDS = [
    {"two": 0.25, "three": 0.3, "cells": 99.5, "mixed": 3.3, "mixed three": 8.75, "city": "Köln", "bits": "a"},
    {"two": -7.0, "three": None, "cells": -5, "mixed": 1.0, "mixed three": 9.0, "city": "Paris", "bits": "c"},
    {"two": 1e300, "three": 0.15, "cells": 100.5, "mixed": 5.0, "mixed three": 5.0, "city": True, "bits": "b"},
]


def random_bytes(place, number):
    """Bytes that look random and are the same everywhere: 24 words."""
    seeds = (f"skldp vector {place} {number} {block}".encode() for block in range(6))
    return b"".join(hashlib.sha256(seed).digest() for seed in seeds)


def vectors():
    made = []
    for place, record in enumerate(RECORDS):
        for number in range(20):
            chosen = random_bytes(place, number)
            report = POLICY.vector(record, chosen).hex()
            made.append({"record": record, "random_bytes": chosen.hex(), "report": report})
    return {"policy": json.loads(POLICY.to_json()), "vectors": made}


if __name__ == "__main__":
    VECTORS.write_text(json.dumps(vectors(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
