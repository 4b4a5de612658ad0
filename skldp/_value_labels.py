"""Labels of values: exact and distinct."""

from collections.abc import Iterable
from typing import Any

import numpy as np


def value_labels(values: Iterable[Any]) -> tuple[str, ...]:
    """Return distinct labels of distinct values; texts are quoted if two would be equal."""
    own = [value.item() if isinstance(value, np.generic) else value for value in values]
    for write in (str, repr):
        labels = tuple("missing" if value is None else write(value) for value in own)
        if len(set(labels)) == len(labels):
            break
    return labels


def number_label(number: float) -> str:
    """Return the exact text of a number: an integer in full, another as its shortest repr."""
    number = float(number)
    return str(int(number)) if number.is_integer() and abs(number) <= 2**53 else repr(number)
