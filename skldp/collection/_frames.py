"""Released values in a frame, for training."""

from typing import Any

import numpy as np

from skldp._tables import as_frame
from skldp._value_labels import value_labels
from skldp.client import NumberField, NumbersField, Policy
from skldp.collection._columns import ReportColumns
from skldp.learning._answer_scores import bits, each, whole_answers
from skldp.mechanisms._category_laws import SubsetLaw
from skldp.mechanisms._code_laws import ResponseLaw, UnaryLaw
from skldp.mechanisms._longitudinal_laws import LongitudinalBitsLaw, LongitudinalResponseLaw

__all__ = ["frame_of"]


def frame_of(policy: Policy, columns: ReportColumns) -> Any:
    """The released values of reports as a pandas DataFrame.

    Parameters
    ----------
    policy : Policy
    columns : ReportColumns

    Raises
    ------
    ImportError
        If pandas is missing.
    ValueError
        If a field has the name of another one's column of bits.
    """
    data: list[tuple[str, Any]] = []
    for field, answers in zip(policy.fields, columns.answers, strict=True):
        if isinstance(field, NumberField):
            data.append((field.name, each(field.value, answers)))
        elif isinstance(field, NumbersField):
            different, place = whole_answers(answers)
            values = np.array([field.law.values(one) for one in different]).reshape(-1, len(field.columns))
            data += [(one.name, one.number(values[place, i])) for i, one in enumerate(field.columns)]
        elif isinstance(field.law, ResponseLaw | LongitudinalResponseLaw):
            categories = np.empty(len(field.values), dtype=object)
            categories[:] = field.values
            data.append((field.name, categories[answers]))
        elif isinstance(field.law, UnaryLaw | SubsetLaw | LongitudinalBitsLaw):
            held = bits(answers, field.law.n_codes).astype(bool)
            data += zip([f"{field.name}={label}" for label in value_labels(field.values)], held.T, strict=True)
        else:
            data.append((field.name, answers))
    if len(made := dict(data)) < len(data):
        raise ValueError("Columns of a frame must have different names. Got one that two fields have.")
    return as_frame(made)
