"""A client written from FORMAT.md alone, with nothing of the package: the standard library and no more."""

import hashlib
import json
import math
import zlib


def canonical(content):
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def check_digest(policy):
    bare = {name: policy[name] for name in policy if name != "sha256"}
    return hashlib.sha256(canonical(bare)).hexdigest() == policy["sha256"]


def integers(law):
    return {name: int(text) for name, text in law.items() if name != "law" and isinstance(text, str)}


def n_answers(law):
    own = integers(law)
    match law["law"]:
        case "randomized_response":
            return own["n_codes"]
        case "unary_encoding":
            return 2 ** own["n_codes"]
        case "two_answers":
            return 2
        case "three_answers":
            return 3
        case "lattice":
            return own["n_cells"]
    return n_answers(law["lattice"]) + n_answers(law["few"])


def epsilon(law):
    own = integers(law)
    match law["law"]:
        case "randomized_response":
            return math.log((2**64 - (own["n_codes"] - 1) * own["other_count"]) / own["other_count"])
        case "unary_encoding":
            p, q = own["own_count"], own["other_count"]
            return math.log(p * (2**64 - q) / ((2**64 - p) * q))
        case "two_answers":
            return math.log((2**63 + own["slope"]) / (2**63 - own["slope"]))
        case "three_answers":
            z, v = own["zero"] - own["zero_lost"], own["wrong"] - own["wrong_lost"]
            of_sign = math.log((2**64 - z - v) / v)
            return max(of_sign, math.log(own["zero"] / z)) if own["zero"] else of_sign
        case "lattice":
            return math.log((own["base"] + own["extra"]) / own["base"])
    return max(epsilon(law["lattice"]), epsilon(law["few"]))


def given_to_the_law(field, value):
    if field["type"] == "category":
        for place, one in enumerate(field["values"]):
            if type(one) is type(value) and one == value:
                return place
        return next(i for i, one in enumerate(field["values"]) if one is field["unknown"] or one == field["unknown"])
    if value is None:
        value = float(field["missing"])
    if field["type"] == "integer":
        value = round(value)
    low, high = float(field["low"]), float(field["high"])
    value = min(max(float(value), low), high)
    x = (value - (low / 2 + high / 2)) / (high / 2 - low / 2)
    return min(max(x, -1.0), 1.0)


def draw(law, x, words):
    own, w = integers(law), next(words)
    match law["law"]:
        case "randomized_response":
            s = w // own["other_count"] + 1
            return (x + s) % own["n_codes"] if s < own["n_codes"] else x
        case "unary_encoding":
            bits = ""
            for place in range(own["n_codes"]):
                w = w if place == 0 else next(words)
                bits += "1" if w < own["own_count" if place == x else "other_count"] else "0"
            return int(bits, 2)
        case "two_answers":
            return 1 if w < 2**63 + round(x * own["slope"]) else 0
        case "three_answers":
            a = own["zero"] - round(abs(x) * own["zero_lost"])
            b = a + own["wrong"] - round(abs(x) * own["wrong_lost"])
            along, against = (2, 0) if x >= 0 else (0, 2)
            return 1 if w < a else against if w < b else along
        case "lattice":
            total = own["n_cells"] * own["base"] + own["n_inner"] * own["extra"]
            while w // 2 >= total:
                w = next(words)
            d = w // 2
            if d < own["n_cells"] * own["base"]:
                return d // own["base"]
            reach = total / (own["n_inner"] * own["extra"]) / 2.0 ** own["step_exponent"]
            p = x * reach + (own["n_cells"] - own["n_inner"]) // 2
            c = math.floor(p)
            part = min(own["extra"], round((p - c) * own["extra"]))
            return c + (d - own["n_cells"] * own["base"] + part) // own["extra"]
    if w < own["lattice_count"]:
        return draw(law["lattice"], x, words)
    return int(law["lattice"]["n_cells"]) + draw(law["few"], x, words)


def report(policy, record, random_bytes):
    words = iter([int.from_bytes(random_bytes[i : i + 8], "big") for i in range(0, len(random_bytes), 8)])
    body = b"\x01" + bytes.fromhex(policy["sha256"])[:8]
    body += next(words).to_bytes(8, "big") + next(words).to_bytes(8, "big")
    number, product = 0, 1
    for field in policy["fields"]:
        n = n_answers(field["law"])
        number = number * n + draw(field["law"], given_to_the_law(field, record.get(field["name"])), words)
        product *= n
    k = 0
    while 256**k < product:
        k += 1
    body += number.to_bytes(k, "big")
    return body + zlib.crc32(body).to_bytes(4, "big")
