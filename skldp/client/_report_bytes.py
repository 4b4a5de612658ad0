"""Bytes of a report: version, tag of the policy, id, answers and checksum."""

import math
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from skldp.laws._integers import rank_of_subset, subset_of_rank

_VERSION = 1
_TAG = 8
_ID = 16
_CHECK = 4


class PolicyReport(NamedTuple):
    """Content of a report: its unique id of 32 hexadecimal digits, and the released integer of each field asked."""

    report_id: str
    answers: dict[str, int]


def header(policy: bytes) -> bytes:
    """Return the first bytes of a policy's reports, version and tag, from the policy's SHA-256."""
    return bytes([_VERSION]) + policy[:_TAG]


def pack(
    policy: bytes,
    report_id: bytes,
    answers: Sequence[int | None],
    sizes: Sequence[int],
    n_sampled: int | None = None,
) -> bytes:
    """Return a report as bytes; None stands for a field that was not asked, and the lowest digit says which were."""
    number, asked = 0, []
    for place, (answer, size) in enumerate(zip(answers, sizes, strict=True)):
        if answer is not None:
            number = number * size + answer
            asked.append(place)
    if n_sampled is not None:
        number = number * math.comb(len(sizes), n_sampled) + rank_of_subset(len(sizes), asked)
    body = header(policy) + report_id + number.to_bytes(_n_bytes(sizes, n_sampled), "big")
    return body + zlib.crc32(body).to_bytes(_CHECK, "big")


def is_intact(report: bytes) -> bool:
    """Return whether the checksum of a report is that of its other bytes."""
    return zlib.crc32(report[:-_CHECK]).to_bytes(_CHECK, "big") == report[-_CHECK:]


def split(report: bytes) -> tuple[bytes, int]:
    """Return the id of an intact report, and the number that encodes its answers."""
    start = 1 + _TAG + _ID
    return report[1 + _TAG : start], int.from_bytes(report[start:-_CHECK], "big")


def unpack(
    report: bytes, policy: bytes, sizes: Sequence[int], n_sampled: int | None = None
) -> tuple[bytes, list[int | None]]:
    """Return the id and the answers of an untrusted report, None for a field that was not asked."""
    if not isinstance(report, bytes | bytearray | memoryview):
        raise ValueError(f"A report must be bytes; got {type(report).__name__}.")
    given = bytes(report)
    if not given.startswith(header(policy)):
        raise ValueError("A report must have this policy and version 1; got another one.")
    n_bytes = 1 + _TAG + _ID + _n_bytes(sizes, n_sampled) + _CHECK
    if len(given) != n_bytes or not is_intact(given):
        raise ValueError(f"A report of this policy must have {n_bytes} intact bytes; got a broken one.")
    report_id, number = split(given)
    asked = list(range(len(sizes)))
    if n_sampled is not None:
        number, rank = divmod(number, math.comb(len(sizes), n_sampled))
        asked = subset_of_rank(len(sizes), n_sampled, rank)
    answers: list[int | None] = [None] * len(sizes)
    for place in reversed(asked):
        number, answers[place] = divmod(number, sizes[place])
    if number:
        raise ValueError("The answers of a report must be answers of its policy; got others.")
    return report_id, answers


def _n_bytes(sizes: Sequence[int], n_sampled: int | None) -> int:
    """Return the width of the answers, which is the same for all samples of fields."""
    samples = 1 if n_sampled is None else math.comb(len(sizes), n_sampled)
    largest = math.prod(sorted(sizes, reverse=True)[:n_sampled])
    return -(-(samples * largest - 1).bit_length() // 8)
