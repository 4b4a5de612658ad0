"""What a person can be asked: every kind of query, each a locally private release whose law is known exactly.

All give the log-likelihood of an output, or what it can cost at most, which is all that the accounting of many releases
needs.
"""

import json
from typing import Any

import numpy as np

from skldp.accounting._class_query import ClassQuery
from skldp.accounting._finite_query import FiniteQuery
from skldp.accounting._regression_query import KINDS, RegressionQuery
from skldp.accounting._release_query import ReleaseQuery
from skldp.accounting._softmax_query import SoftmaxQuery

__all__ = [
    "ClassQuery",
    "FiniteQuery",
    "Query",
    "RegressionQuery",
    "ReleaseQuery",
    "SoftmaxQuery",
    "checked_query",
    "query_from_json",
]


def query_from_json(text: str) -> "Query":
    """Read back what ``to_json`` of a query wrote.

    Parameters
    ----------
    text : str

    Returns
    -------
    RegressionQuery, ClassQuery, SoftmaxQuery, FiniteQuery or ReleaseQuery
        With the same `key`.

    Raises
    ------
    ValueError
        If the text is no query.

    Examples
    --------
    >>> from skldp.accounting import RegressionQuery, query_from_json
    >>> query = RegressionQuery("linear", coef=[0.1, 0.2], intercept=0.3, output_bounds=(0, 1), epsilon=0.5)
    >>> query_from_json(query.to_json()).key == query.key
    True
    """
    fields = json.loads(text)
    kind = fields.get("kind") if isinstance(fields, dict) else None
    try:
        if kind == "finite":
            return FiniteQuery(np.array(fields["weights"], dtype=np.uint64))
        if kind == "classes":
            return ClassQuery(**{name: value for name, value in fields.items() if name != "kind"})
        if kind == "softmax":
            return SoftmaxQuery(**{name: value for name, value in fields.items() if name != "kind"})
        if kind in KINDS:
            return RegressionQuery(**fields)
        if kind == "release":
            return ReleaseQuery.from_fields(fields)
    except (KeyError, TypeError, OverflowError):
        pass
    raise ValueError(f"The text must be the JSON of a query. Got {text[:80]!r} instead.")


def checked_query(query: Any) -> "Query":
    """Refuse what is no query."""
    if not isinstance(query, Query):
        raise ValueError(
            f"A query must be a RegressionQuery, a ClassQuery, a SoftmaxQuery or a FiniteQuery. Got {query!r} instead."
        )
    return query


#: A question that a person can be asked: a regression, a class, the probability of one, a table of probabilities, or a
#: release of their record.
Query = RegressionQuery | ClassQuery | SoftmaxQuery | FiniteQuery | ReleaseQuery
