"""Bytes of a report: version, tag of the policy, id, answers and checksum."""

import math
import zlib
from collections.abc import Sequence
from typing import NamedTuple

_VERSION = 1
_TAG = 8
_ID = 16
_CHECK = 4


class PolicyReport(NamedTuple):
    """Content of a report.

    Parameters
    ----------
    report_id : str
        Unique id of 32 hexadecimal digits.
    answers : dict of str to int
        Released integer of each field.
    """

    report_id: str
    answers: dict[str, int]


def header(policy: bytes) -> bytes:
    """Return the first bytes of a policy's reports, version and tag, from the policy's SHA-256."""
    return bytes([_VERSION]) + policy[:_TAG]


def pack(policy: bytes, report_id: bytes, answers: Sequence[int], sizes: Sequence[int]) -> bytes:
    """Return a report as bytes."""
    number = 0
    for answer, size in zip(answers, sizes, strict=True):
        number = number * size + answer
    body = header(policy) + report_id + number.to_bytes(_n_bytes(sizes), "big")
    return body + zlib.crc32(body).to_bytes(_CHECK, "big")


def unpack(report: bytes, policy: bytes, sizes: Sequence[int]) -> tuple[bytes, list[int]]:
    """Return the id and the answers of an untrusted report."""
    if not isinstance(report, bytes | bytearray | memoryview):
        raise ValueError(f"A report must be bytes; got {type(report).__name__}.")
    given = bytes(report)
    if not given.startswith(header(policy)):
        raise ValueError("A report must have this policy and version 1; got another one.")
    n_bytes = 1 + _TAG + _ID + _n_bytes(sizes) + _CHECK
    if len(given) != n_bytes or zlib.crc32(given[:-_CHECK]).to_bytes(_CHECK, "big") != given[-_CHECK:]:
        raise ValueError(f"A report of this policy must have {n_bytes} intact bytes; got a broken one.")
    number = int.from_bytes(given[1 + _TAG + _ID : -_CHECK], "big")
    answers = []
    for size in reversed(sizes):
        number, answer = divmod(number, size)
        answers.append(answer)
    if number:
        raise ValueError("The answers of a report must be answers of its policy; got others.")
    return given[1 + _TAG : 1 + _TAG + _ID], answers[::-1]


def _n_bytes(sizes: Sequence[int]) -> int:
    return -(-(math.prod(sizes) - 1).bit_length() // 8)
