"""A client written from FORMAT.md alone, with nothing of the package: the standard library and no more."""

import datetime
import hashlib
import json
import math
import re
import statistics
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
    if law["law"] == "mixture":
        return n_answers(law["lattice"]) + n_answers(law["few"])
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
        case "subset":
            return 2 ** own["n_codes"]
        case "local_hashing":
            return own["n_buckets"] * (own["n_buckets"] ** digits(law) - 1)
        case "hadamard":
            return own["block_size"]
        case "bins" | "knots" | "points" | "sign_and_bits":
            lists = {"bins": "answers", "knots": "knots", "points": "places"}
            of = {name: len(law.get(places, "")) for name, places in lists.items()}
            return of[law["law"]] if law["law"] in of else 2 ** len(law["flip_counts"])
        case "signs":
            return 2 ** own["n_values"]
        case "sampled":
            return math.comb(own["n_values"], own["n_sampled"]) * of_chosen(law)
    return 2**64 * own["n_directions"] if law["law"] == "closest" else 2


def digits(law):
    m = 0
    while int(law["n_buckets"]) ** m < int(law["n_codes"]):
        m += 1
    return m


def of_chosen(law):
    one = law["of_sampled"]
    return n_answers(one) if one["law"] in ("signs", "closest") else n_answers(one) ** int(law["n_sampled"])


def agreeing(d):
    return sum(math.comb(d, a) for a in range(d + 1) if 2 * a > d)


def epsilon(law):
    own = integers(law)
    if parts := [law[name] for name in ("response", "lattice", "few") if name in law]:
        return max(map(epsilon, parts))
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
        case "subset":
            k, w, miss = own["n_codes"], own["set_size"], own["miss_count"]
            return math.log((2**64 - miss) * (k - w) / (miss * w))
        case "local_hashing":
            return math.log((2**64 - (own["n_buckets"] - 1) * own["other_count"]) / own["other_count"])
        case "hadamard":
            return math.log((2**64 - own["miss_count"]) / own["miss_count"])
        case "sign_and_bits":
            return sum(math.log((2**64 - int(t)) / int(t)) for t in law["flip_counts"])
    return epsilon_of_several(law)


def epsilon_of_several(law):
    own = integers(law)
    match law["law"]:
        case "signs":
            c, t = agreeing(own["n_values"]), own["agreeing_count"]
            return math.log(t * (2 ** own["n_values"] - c) / ((2**64 - t) * c))
        case "closest":
            n, k, miss = own["n_directions"], own["n_close"], own["miss_count"]
            return math.log((2**64 - miss) * (n - k) / (miss * k))
        case "sampled":
            one = law["of_sampled"]
            return epsilon(one) * (1 if one["law"] in ("signs", "closest") else own["n_sampled"])
    m, flip = min(2 * own["n_hashes"], own["n_bits"]), own["flip_count"]
    return m * math.log((2**64 - flip) / flip)


def kind_and_value(value):
    """A text, a number and a boolean are never equal; lists and objects equal nothing."""
    kind = "number" if type(value) in (int, float) else type(value).__name__
    return kind, None if isinstance(value, list | dict) else value


def day(value):
    """The days since 1970 of a text that begins with a date, else None."""
    found = re.match("([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[T ]|$)", value) if isinstance(value, str) else None
    try:
        return found and (datetime.date(*map(int, found.groups())) - datetime.date(1970, 1, 1)).days
    except ValueError:
        return None


def number(value):
    """The number that a decimal text is, and any other value itself."""
    digits = value.strip(" \t\r\n") if isinstance(value, str) else ""
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", digits) or math.isinf(float(digits)):
        return value
    return int(digits) if re.fullmatch("[+-]?[0-9]+", digits) else float(digits)


def given_to_the_law(field, record):
    if field["type"] in ("numbers", "pair"):
        return [given_to_the_law(column, record) for column in field["columns"]]
    value = record.get(field["name"])
    if field["type"] == "vector":
        n = int(field["law"]["n_values"])
        is_vector = isinstance(value, list) and len(value) == n and all(type(one) in (int, float) for one in value)
        return clipped(field, list(map(float, value)) if is_vector else [0.0] * n)
    if field["type"] == "category":
        places = {kind_and_value(one): place for place, one in enumerate(field["values"])}
        written = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
        also = (value, written.get(value), number(value)) if isinstance(value, str) else (value,)
        if not any(type(one) is bool for one in field["values"]):
            also = tuple(int(one) if type(one) is bool else one for one in also)
        keys = [kind_and_value(one) for one in also if one is not None or value is None]
        return next((places[key] for key in keys if key in places), places[kind_and_value(field["unknown"])])
    value = day(value) if field["type"] == "date" else number(value)
    if type(value) not in (int, float) or not math.isfinite(value):
        value = float(field["missing"])
    if field["type"] != "number":
        value = round(value)
    low, high = float(field["low"]), float(field["high"])
    value = min(max(float(value), low), high)
    x = (value - (low / 2 + high / 2)) / (high / 2 - low / 2)
    return min(max(x, -1.0), 1.0)


def clipped(field, vector):
    top = max(map(abs, vector))
    if top == 0 or not all(map(math.isfinite, vector)):
        return [0.0] * len(vector)
    scaled = [one / top for one in vector]
    norm = math.sqrt(math.fsum(one * one for one in scaled))
    if field["bound"] is not None and norm * top < float(field["bound"]):
        return [one / float(field["bound"]) for one in vector]
    return [one / norm for one in scaled]


def direction(seed, number, d):
    """The whole numbers of a direction."""
    digest = hashlib.shake_128(seed.to_bytes(8, "big") + number.to_bytes(8, "big")).digest(4 * d)
    made = []
    for place in range(0, 4 * d, 4):
        u = int.from_bytes(digest[place : place + 4], "big")
        t = u // 2
        b = t.bit_length()
        q = (math.floor((2 * t + 1) * 2.0 ** (10 - b)) + 0.5) * 2.0 ** (b - 43)
        z = round(-(2.0**16) * statistics.NormalDist().inv_cdf(q))
        made.append(-z if u % 2 else z)
    return made


def draw_closest(law, x, words):
    own = integers(law)
    r, n, k = own["square_radius"], own["n_directions"], own["n_close"]
    seed, w = next(words), next(words)
    rank = below(k, words) if w >= own["miss_count"] else k + below(n - k, words)
    unit = [round(one * (2**24 / math.sqrt(r if r else 1))) for one in x]
    if r:
        unit.append(math.isqrt(max(2**48 - sum(one * one for one in unit), 0)))
    far = {}
    for i in range(n):
        g = direction(seed, i, len(unit))
        far[i] = -sum(one * two for one, two in zip(g, unit, strict=True)) / math.sqrt(sum(one * one for one in g))
    return seed * n + sorted(far, key=far.get)[rank]


def below(n, words):
    w = next(words)
    while w >= 2**64 // n * n:
        w = next(words)
    return w % n


def subset(n, size, words):
    chosen = []
    for last in range(n - size, n):
        number = below(last + 1, words)
        chosen.append(last if number in chosen else number)
    return sorted(chosen)


def column(number, row, odd):
    """By counting through the columns."""
    fitting = (y for y in range(2**20) if bin(y & row).count("1") % 2 == odd)
    return next(y for place, y in enumerate(fitting) if place == number)


def draw_of_several(law, x, words):
    own = integers(law)
    if law["law"] == "sampled":
        chosen = subset(own["n_values"], own["n_sampled"], words)
        answer = sum(math.comb(place, i + 1) for i, place in enumerate(chosen))
        one = law["of_sampled"]
        if one["law"] in ("signs", "closest"):
            return answer * n_answers(one) + draw(one, [x[place] for place in chosen], words)
        for place in chosen:
            answer = answer * n_answers(one) + draw(one, x[place], words)
        return answer
    d = own["n_values"]
    signs = "".join("1" if next(words) // 2 < round(one * 2.0**62) + 2**62 else "0" for one in x)
    kind = next(words) < own["agreeing_count"]
    while True:
        row = "".join(f"{next(words):064b}" for _ in range(math.ceil(d / 64)))[:d]
        if (2 * sum(a == b for a, b in zip(row, signs, strict=True)) > d) == kind:
            return int(row, 2)


def draw_of_codes(law, x, words):
    own = integers(law)
    if law["law"] == "local_hashing":
        g, m = own["n_buckets"], digits(law)
        a = below(g**m - 1, words)
        bucket = sum((a + 1) // g**i % g * (x // g**i % g) for i in range(m)) % g
        response = {"law": "randomized_response", "n_codes": str(g), "other_count": law["other_count"]}
        return a * g + draw(response, bucket, words)
    w = next(words)
    match law["law"]:
        case "subset":
            with_own = w >= own["miss_count"]
            others = subset(own["n_codes"] - 1, own["set_size"] - with_own, words)
            members = {other if other < x else other + 1 for other in others} | ({x} if with_own else set())
            return int("".join("1" if place in members else "0" for place in range(own["n_codes"])), 2)
        case "hadamard":
            j = below(own["block_size"] // 2, words)
            return column(j, x + 1, 0 if w >= own["miss_count"] else 1)


def draw_of_places(law, x, words):
    w = next(words)
    match law["law"]:
        case "knots":
            knots, v = [int(knot) for knot in law["knots"]], round(x * 2.0**53)
            i = max(i for i in range(len(knots) - 1) if i == 0 or knots[i] <= v)
            up = w * (knots[i + 1] - knots[i]) < (v - knots[i]) * 2**64
            return draw(law["response"], i + 1 if up else i, words)
        case "points":
            k, m, counts = int(law["n_points"]), len(law["places"]), [int(count) for count in law["counts"]]
            u = (round(x * 2.0**53) + 2**53) * (k - 1)
            i = u // 2**54 + (w < u % 2**54 * 2**10)
            row = counts[i * m : (i + 1) * m] if i < k // 2 else counts[(k - 1 - i) * m : (k - i) * m][::-1]
            second = next(words)
            return sum(sum(row[: j + 1]) <= second for j in range(m))
        case "sign_and_bits":
            j = len(law["flip_counts"]) - 1
            position = abs(x) * (2**j - 1) if j else (1 + x) / 2
            magnitude = math.floor(position)
            if w < math.floor((position - magnitude) * 2.0**64):
                magnitude += 1
            bits = ("1" if x >= 0 else "0") + f"{magnitude:0{j}b}" if j else str(magnitude)
            return int(
                "".join(str(int(b) ^ (next(words) < int(t))) for b, t in zip(bits, law["flip_counts"], strict=True)), 2
            )


def draw(law, x, words):
    drawn_by = {
        "signs": draw_of_several,
        "closest": draw_closest,
        "sampled": draw_of_several,
        "subset": draw_of_codes,
        "local_hashing": draw_of_codes,
        "hadamard": draw_of_codes,
        "knots": draw_of_places,
        "points": draw_of_places,
        "sign_and_bits": draw_of_places,
        "bins": draw_of_bins,
    }
    return drawn_by.get(law["law"], draw_of_thresholds)(law, x, words)


def draw_of_bins(law, x, words):
    return draw(law["response"], sum(int(edge) <= x * 2.0**53 for edge in law["edges"]), words)


def draw_of_thresholds(law, x, words):
    own = integers(law)
    w = next(words)
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
    sizes = [n_answers(field["law"]) for field in policy["fields"]]
    number, asked, product = 0, range(len(sizes)), math.prod(sizes)
    if "n_sampled" in policy:
        m, s = len(sizes), int(policy["n_sampled"])
        asked = subset(m, s, words)
        product = math.comb(m, s) * math.prod(sorted(sizes)[-s:])
    for place in asked:
        field = policy["fields"][place]
        given = given_to_the_law(field, record)
        if field["type"] == "pair":
            given = combination(field, given, words)
        number = number * sizes[place] + draw(field["law"], given, words)
    if "n_sampled" in policy:
        number = number * math.comb(m, s) + sum(math.comb(place, i + 1) for i, place in enumerate(asked))
    k = 0
    while 256**k < product:
        k += 1
    body += number.to_bytes(k, "big")
    return body + zlib.crc32(body).to_bytes(4, "big")


def combination(field, given, words):
    """The code of a pair, whose numbers are rounded to points at random."""
    code, g = 0, int(field["n_knots"])
    for column, own in zip(field["columns"], given, strict=True):
        if column["type"] == "category":
            code = code * len(column["values"]) + own
            continue
        p = (1 + own) / 2 * (g - 1)
        b = min(math.floor(p), g - 2)
        code = code * g + b + (next(words) < math.floor((p - b) * 2.0**64))
    return code
