"""Policies of fitted estimators."""

import math
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skldp._checks import check_integer
from skldp.client._fields import AnyField, Field, declared_columns
from skldp.client._policy import Policy
from skldp.client._vector_field import VectorField
from skldp.domains._column import Column
from skldp.estimators._bitrand import BitRandTransformer
from skldp.estimators._categorical import CategoricalPrivatizer
from skldp.estimators._labels import LabelLaplace, LabelRR
from skldp.estimators._numeric import NumericPrivatizer
from skldp.estimators._table import TablePrivatizer
from skldp.estimators._targets import TargetPrivatizer
from skldp.estimators._transformer_domain import listed_columns
from skldp.estimators._vector import PrivUnitTransformer
from skldp.laws._integers import MOST_CODES, GroupLaw
from skldp.mechanisms._record import CategoricalRecord
from skldp.mechanisms.categorical._one_hot import make_categorical_mechanism

_Fields = tuple[AnyField, ...]
# Names of labels, targets and vectors, which are not columns of a table.
_NAMES = {
    "LabelRR": "label",
    "LabelLaplace": "label",
    "TargetPrivatizer": "target",
    "PrivUnitTransformer": "vector",
}


def policy_from_estimator(
    estimator: Any,
    *,
    purpose: str,
    units: dict[str, str] | None = None,
    expires: str | None = None,
    joint: Literal["all"] | Sequence[tuple[str, str]] | None = None,
    n_knots: int = 2,
) -> Policy:
    """Make the policy of a fitted estimator, by which devices release what it does.

    Parameters
    ----------
    estimator : estimator
        Fitted estimator with declared categories and bounds: a TablePrivatizer, a NumericPrivatizer (without
        ``"laplace"`` and ``"gaussian"``), a BitRandTransformer with ``calibration="exact", debias=True``, a
        CategoricalPrivatizer, a TargetPrivatizer (field ``"target"``), a LabelRR or a LabelLaplace (``"label"``), a
        PrivUnitTransformer without bounds (``"vector"``, of all its columns in order); a ColumnTransformer of
        these; or a Pipeline whose first step is one of these.
    purpose : str
        Purpose of the collection, shown to the person.
    units : dict by column, default=None
        Units of numbers, for display.
    expires : str, default=None
        UTC time such as ``"2027-01-31T00:00:00Z"`` after which nothing is released.
    joint : "all" or list of pairs of columns, default=None
        Pairs for tables, and for means and shares within another column. A column in no pair is a question of its
        own, by the mechanism of the estimator. Each person is asked one pair or column, chosen at random, at the
        whole epsilon. Of a TablePrivatizer or CategoricalPrivatizer alone; mechanisms of pairs are chosen anew.
    n_knots : int, default=2
        Number of points that numbers of pairs are rounded to at random.

    Returns
    -------
    Policy
        Policy of the estimator. Its releases use secure randomness and ignore the estimator's `seed`.

    Raises
    ------
    ValueError
        If the estimator has another type or learned its domain from rows, or a column has no integer law.

    Notes
    -----
    Mechanisms that draw real numbers (Gaussian and Laplace vectors, random projections) have no policy, since a
    device could not compute the epsilon. A device samples PrivUnit among random directions of a seed, at the exact
    epsilon of integers and at most 1.01 times the variance, up to an epsilon of about 11. Numbers with one law
    become one field. Most mechanisms of numbers give means alone; ``"square_wave"`` also gives variances,
    histograms and quantiles.

    A device replaces a missing number by the middle of the bounds, and a missing or unknown category by the missing
    category, if declared, or the first value. Use ``dataclasses.replace`` on a field and its column for others.

    Examples
    --------
    >>> from skldp import CategoricalPrivatizer, policy_from_estimator
    >>> city = CategoricalPrivatizer(categories=[["Bonn", "Ulm"]]).fit([["Bonn"]])
    >>> round(policy_from_estimator(city, purpose="where people live").epsilon, 6)
    1.0
    """
    fields, n_sampled = exported(estimator, dict(units or {}))
    if joint is not None:
        fields = paired(estimator, fields, joint, n_knots)
        n_sampled = None if len(fields) == 1 else 1
    return Policy(purpose, fields, expires, n_sampled=n_sampled)


def exported(estimator: Any, units: Mapping[str, str]) -> tuple[_Fields, int | None]:
    """Return the fields of a fitted estimator, and the size of a sample of fields."""
    parts = list(_parts(estimator))
    if not parts:
        raise ValueError("A policy must release something; got an estimator that drops all columns.")
    unknown = set(units) - {name for part in parts for name in part.names}
    if unknown:
        raise ValueError(f"units must be of columns of the table; got others: {sorted(unknown)}.")
    fields: list[AnyField] = []
    n_sampled = None
    for part in parts:
        if not math.isfinite(part.fitted.privacy_guarantee_.epsilon):
            raise ValueError("A policy publishes its domain, which must be declared; got a learnt one.")
        _check_exact(part.fitted)
        group = part.label or _NAMES.get(type(part.fitted).__name__, "numbers")
        fields.extend(_fields_of(part.fitted, part.names, units, group))
        if isinstance(part.fitted, _SAMPLERS):
            n_sampled = part.fitted.mechanism_.n_sampled
        if n_sampled is not None and len(parts) > 1:
            raise ValueError(
                "A policy samples all of its fields or none: an estimator with n_sampled_features must be alone; got "
                f"{len(parts)} estimators."
            )
    return tuple(fields), n_sampled


def paired(estimator: Any, fields: _Fields, joint: Any, n_knots: int) -> _Fields:
    """Return the fields of pairs of an estimator's columns and of its other columns, each at its whole epsilon."""
    if not isinstance(estimator, _SAMPLERS) or estimator.mechanism_.n_sampled is not None:
        raise ValueError(
            "Pairs need a TablePrivatizer or CategoricalPrivatizer with n_sampled_features='all'; got "
            f"{type(estimator).__name__}."
        )
    check_integer("n_knots", n_knots, least=2, most=256)
    columns = declared_columns(fields)
    every = list(combinations(columns, 2))
    named = every if isinstance(joint, str) and joint == "all" else joint
    if not isinstance(named, list | tuple) or not all(isinstance(one, list | tuple) and len(one) == 2 for one in named):
        raise ValueError(f"joint must be 'all' or a list of pairs of columns; got {joint!r:.60}.")
    different = {frozenset(map(str, one)) for one in named}
    if not named or len(different) < len(named) or not different <= set(map(frozenset, every)):
        raise ValueError(f"joint must be different pairs of the columns {list(columns)}; got {joint!r:.200}.")
    made, laws = list[AnyField](), dict[int, Any]()
    for first, second in named:
        both = columns[first], columns[second]
        n_codes = math.prod(n_knots if one.values is None else len(one.values) for one in both)
        if n_codes > MOST_CODES:
            raise ValueError(
                f"A pair must have at most {MOST_CODES} combinations; got {n_codes} of {first} and {second}."
            )
        if n_codes not in laws:
            mechanism = make_categorical_mechanism("best", float(estimator.epsilon), n_codes)
            laws[n_codes] = mechanism.integer_law
        made.append(Field(f"{first} & {second}", both, laws[n_codes], n_knots=n_knots))
    record, whole = estimator.mechanism_, copy(estimator)
    each = {"epsilons": (float(estimator.epsilon),) * len(columns)}
    whole.mechanism_ = replace(record, **({"n_sampled": 1} if isinstance(record, CategoricalRecord) else each))
    units = {name: column.unit for name, column in columns.items() if column.unit}
    others = _fields_of(whole, list(columns), units, "")
    return (*made, *(field for field in others if not any(field.name in pair for pair in named)))


def _fields_of(fitted: Any, names: Sequence[str], units: Mapping[str, str], group: str) -> _Fields:
    """Return the fields of a fitted estimator by its column names; `group` names several numbers."""
    mechanism: Any = fitted.mechanism_
    if isinstance(fitted, TablePrivatizer):
        columns = zip(names, fitted.columns_, mechanism.parts, strict=True)
        return tuple(_field(name, column, part, units.get(name)) for name, column, part in columns)
    if isinstance(fitted, CategoricalPrivatizer):
        values = zip(names, fitted.categories_, mechanism.parts, strict=True)
        return tuple(_field(name, Column(values=tuple(own.tolist())), part) for name, own, part in values)
    if isinstance(fitted, LabelRR | LabelLaplace):
        return (_field(names[0], Column(values=tuple(fitted.classes_.tolist())), mechanism),)
    law = mechanism.device_law
    if isinstance(fitted, PrivUnitTransformer):
        return (VectorField(group, law, fitted.radius_),)
    low, high = (np.atleast_1d(end).tolist() for end in fitted.bounds_)
    ends = list(zip(names, low, high, strict=True))
    if isinstance(law, GroupLaw):
        numbers = tuple(Column(low, high, unit=units.get(name), name=name) for name, low, high in ends)
        return (Field(group, numbers, law),)
    return tuple(Field(name, Column(low, high, unit=units.get(name)), law) for name, low, high in ends)


# Estimators that can sample columns, and others.
_SAMPLERS = TablePrivatizer, CategoricalPrivatizer
_ESTIMATORS = (
    *_SAMPLERS,
    *(NumericPrivatizer, BitRandTransformer, TargetPrivatizer, LabelRR, LabelLaplace, PrivUnitTransformer),
)


def _check_exact(fitted: Any) -> None:
    """Raise ValueError unless a device of integers can release what an estimator does."""
    if isinstance(fitted, BitRandTransformer) and (fitted.calibration != "exact" or not fitted.debias):
        raise ValueError(
            "A policy needs an epsilon that follows from the integers alone: a BitRandTransformer must have "
            "calibration='exact' and debias=True."
        )
    if isinstance(fitted, PrivUnitTransformer) and fitted.bounds_ is not None:
        raise ValueError(
            "A policy of a PrivUnitTransformer must have bounds=None, since its device clips norms alone; use "
            "NumericPrivatizer(mechanism='privunit') for columns within bounds."
        )


def _field(name: str, column: Column, mechanism: Any, unit: str | None = None) -> Field:
    if column.may_be_nan:
        raise ValueError(
            "A policy has no law of a number that may be missing as an answer of its own; got 'missing': 'category' "
            f"for {name!r}. Declare 'missing': 'middle' for it, and a category that says whether it is missing."
        )
    if column.values is not None and len(column.values) < 2:
        raise ValueError(f"A column of a policy must have at least 2 values; got 1 for {name!r}. Leave it out.")
    # Devices use neither an order nor the treatment of missing numbers.
    options = {"ordered": False} if column.has_codes else {"unit": unit, "missing": "middle"}
    return Field(name, replace(column, **options), mechanism.device_law)


class _Part(NamedTuple):
    """Fitted estimator, the names of its columns, and its name in a ColumnTransformer."""

    fitted: Any
    names: list[str]
    label: str | None


def _parts(estimator: Any, names: list[str] | None = None, label: str | None = None) -> Iterator[_Part]:
    if isinstance(estimator, Pipeline):
        steps = (step for _, step in estimator.steps if step is not None and not isinstance(step, str))
        yield from _parts(next(steps, None), names, label)
    elif isinstance(estimator, ColumnTransformer):
        if label is not None:
            raise ValueError("A ColumnTransformer must not contain another one.")
        check_is_fitted(estimator)
        of_table = names or _input_names(estimator)
        for own, transformer, columns in estimator.transformers_:
            listed = listed_columns(own, columns, estimator)
            chosen = [of_table[one] if isinstance(one, int) else one for one in listed]
            if chosen and not (isinstance(transformer, str) and transformer == "drop"):
                yield from _parts(transformer, chosen, own)
    elif type(estimator) not in _ESTIMATORS:
        named = ", ".join(kind.__name__ for kind in _ESTIMATORS)
        raise ValueError(
            f"A policy is made from one of {named}, a ColumnTransformer of these, or a Pipeline that "
            f"begins with one; got {type(estimator).__name__}."
        )
    else:
        check_is_fitted(estimator)
        own_name = _NAMES.get(type(estimator).__name__)
        yield _Part(estimator, names or ([own_name] if own_name else _input_names(estimator)), label)


def _input_names(estimator: Any) -> list[str]:
    given = getattr(estimator, "feature_names_in_", None)
    if given is None and hasattr(estimator, "epsilons_"):
        given = list(estimator.epsilons_)
    return [f"x{j}" for j in range(estimator.n_features_in_)] if given is None else [str(name) for name in given]
