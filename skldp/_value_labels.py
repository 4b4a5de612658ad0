"""Labels of values: without loss, and never one for two values."""

from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = ["number_label", "value_labels"]


def value_labels(values: Iterable[Any], missing: str = "None") -> tuple[str, ...]:
    """Return a label for each of several different values; if two would read alike, texts are quoted.

    Examples
    --------
    >>> from skldp._value_labels import value_labels
    >>> value_labels(["Ulm", 1, None]), value_labels(["1", 1, None])
    (('Ulm', '1', 'None'), ("'1'", '1', 'None'))
    """
    own = [value.item() if isinstance(value, np.generic) else value for value in values]
    for write in (str, repr):
        labels = tuple(missing if value is None else write(value) for value in own)
        if len(set(labels)) == len(labels):
            break
    return labels


def number_label(number: float) -> str:
    """Return a number without loss: an integer in full, another as the shortest text that reads as it.

    Examples
    --------
    >>> from skldp._value_labels import number_label
    >>> number_label(25.0), number_label(0.1), number_label(1e15 + 1)
    ('25', '0.1', '1000000000000001')
    """
    number = float(number)
    return str(int(number)) if number.is_integer() and abs(number) <= 2**53 else repr(number)
