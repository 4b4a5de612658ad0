"""Released values in a frame, for training."""

from typing import Any

import numpy as np

from skldp.client import NumberField, NumbersField, Policy
from skldp.collection._columns import ReportColumns
from skldp.collection._survey_fields import group_numbers
from skldp.learning._answer_scores import bits, each
from skldp.mechanisms._category_laws import HadamardLaw, HashingLaw
from skldp.mechanisms._integer_laws import ResponseLaw

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
    """
    try:
        from pandas import DataFrame
    except ImportError:
        raise ImportError('This needs pandas: pip install "skldp[study]".') from None
    data: dict[str, Any] = {}
    for field, answers in zip(policy.fields, columns.answers, strict=True):
        if isinstance(field, NumbersField):
            places = group_numbers(field, answers)
            data |= {one.name: one.number(places[:, j]) for j, one in enumerate(field.columns)}
        elif isinstance(field.law, HashingLaw | HadamardLaw):
            data |= {field.name: answers}
        elif isinstance(field, NumberField):
            data[field.name] = each(field.value, answers)
        elif isinstance(field.law, ResponseLaw):
            values = np.empty(len(field.values), dtype=object)
            values[:] = field.values
            data[field.name] = values[answers]
        else:
            held = bits(answers, field.law.n_codes).astype(bool)
            data |= {f"{field.name}={value}": held[:, code] for code, value in enumerate(field.values)}
    return DataFrame(data)
