"""Policies from fitted estimators, and estimators of the same integers from policies."""

import math
from collections import UserList
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skldp.client import Policy as DevicePolicy
from skldp.client._fields import AnyField, CategoryField, NumberField
from skldp.collection._kinds import KINDS

__all__ = ["Policy"]

# What labels and targets are called, which have no column of a table.
_NAMES = {"LabelRR": "label", "LabelLaplace": "label", "TargetPrivatizer": "target"}


class Policy(DevicePolicy):
    """A policy that knows estimators: made from a fitted one, and made into one of the same integers.

    It is :class:`skldp.client.Policy`, whose parameters and methods it has, on the computer of whoever collects: a
    device needs no scikit-learn.

    See Also
    --------
    skldp.client.Policy : The same document on a person's own device.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldp import Policy, TablePrivatizer
    >>> schema = {"age": (0, 100), "city": ["Bonn", "Ulm"]}
    >>> table = TablePrivatizer(epsilon=2.0, schema=schema).fit(pd.DataFrame({"age": [0], "city": ["Ulm"]}))
    >>> policy = Policy.from_estimator(table, purpose="where people of which age live", units={"age": "years"})
    >>> len(policy.release({"age": 37, "city": "Bonn"})), round(policy.epsilon, 6)
    (33, 2.0)
    >>> policy.to_estimator().epsilon
    2.0
    """

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        purpose: str,
        units: dict[str, str] | None = None,
        expires: str | None = None,
    ) -> Self:
        """Make a policy of what a fitted estimator samples.

        Parameters
        ----------
        estimator : estimator
            Fitted, with declared categories and bounds: a TablePrivatizer, a NumericPrivatizer of any mechanism but
            ``"laplace"`` and ``"gaussian"``, a BitRandTransformer of ``calibration="exact", debias=True``, a
            CategoricalPrivatizer, a TargetPrivatizer (the field ``"target"``), a LabelRR or a LabelLaplace
            (``"label"``); a ColumnTransformer of such; or a Pipeline whose first step is one, what follows being the
            collector's. A device clips numbers and dates to their bounds. A missing number is the middle of its
            bounds. A missing or unknown category is the missing category if one is declared
            (``"missing": "category"`` in the schema of a TablePrivatizer), else the first declared value.
        purpose : str
            What the collection is for, to be shown to the person.
        units : dict by column, default=None
            Of numbers, to be shown.
        expires : str, default=None
            A time of UTC, as in :class:`skldp.client.Policy`.

        Returns
        -------
        Policy
            Whose releases come from secure randomness, whatever the `seed` of the estimator.

        Raises
        ------
        ValueError
            If the estimator is of another kind, learnt a domain from rows, or a column has no law of integers.

        Notes
        -----
        No policy has what draws real numbers, PrivUnit, Gaussian and Laplace vectors and random projections: two
        clients would not meet bit for bit, and the epsilon of a device could not be computed from what it is told.
        Where some of several numbers are released, chosen for each person, or all together, they are one field, a
        `NumbersField`.

        A stand-in moves an estimate towards it, by the share of people who have no value; a missing category costs a
        little precision and shows that share. Other stand-ins are set with ``dataclasses.replace`` of a field.
        """
        parts = list(_parts(estimator))
        if not parts:
            raise ValueError("A policy needs something to release. Got an estimator that drops all columns.")
        named = set(units or {})
        strange = named - {name for part in parts for name in part.names}
        if strange:
            raise ValueError(f"units must be of columns of the table. Got some of {sorted(strange)} instead.")
        fields: list[AnyField] = []
        asked = []
        for part in parts:
            own, about = _described(part, dict(units or {}))
            fields.extend(own)
            asked.append(about)
        return cls(purpose, tuple(fields), expires, asked)

    def to_estimator(self) -> Any:
        """Make the estimator, not fitted, that samples with the integers of this policy.

        Returns
        -------
        estimator
            Of the kind that the policy was made from; a ColumnTransformer takes its columns by the names of the fields.

        Raises
        ------
        ValueError
            If the policy was not made from an estimator, or what was asked of that gives other integers here.
        """
        if self.asked is None:
            raise ValueError("The policy must say what its integers were made from. Got one written by hand.")
        left = iter(self.fields)
        made = []
        for asked in self.asked:
            fields = tuple(islice(left, int(asked["n_fields"])))
            if asked["estimator"] not in KINDS or not fields:
                raise ValueError("What was asked must be of estimators and fields that there are. Got another.")
            kind = KINDS[asked["estimator"]]
            try:
                one = kind.make(asked, fields)
                again = kind.remade(kind.make(asked, fields), asked, fields)
            except (ArithmeticError, KeyError):
                # An epsilon of 1e-300 leaves nothing to divide by, and shares may be absent.
                one, again = None, ()
            if list(map(_of_estimator, again)) != list(map(_of_estimator, fields)):
                raise ValueError("What was asked must give the integers of the policy. Got other integers instead.")
            made.append((asked.get("name"), one, [name for field in fields for name in field.names]))
        if next(left, None) is not None:
            raise ValueError("What was asked must give every field of the policy. Got fewer fields instead.")
        if len(made) == 1 and made[0][0] is None:
            return made[0][1]
        return ColumnTransformer(made)


def _of_estimator(field: AnyField) -> AnyField:
    """Return a field without units, stand-ins and steps, which are a policy's own."""
    if isinstance(field, CategoryField):
        return replace(field, unknown=...)
    if isinstance(field, NumberField):
        return replace(field, unit=None, missing=None, steps=None)
    columns = tuple(replace(column, unit=None, missing=None) for column in field.columns)
    return replace(field, columns=columns, steps=None)


class _Part(NamedTuple):
    """One fitted estimator, with the names of its columns, and its own name where it is one of several."""

    fitted: Any
    names: list[str]
    label: str | None


def _parts(estimator: Any, names: list[str] | None = None, label: str | None = None) -> Iterator[_Part]:
    if isinstance(estimator, Pipeline):
        steps = (step for _, step in estimator.steps if step is not None and not isinstance(step, str))
        yield from _parts(next(steps, None), names, label)
    elif isinstance(estimator, ColumnTransformer):
        if label is not None:
            raise ValueError("A ColumnTransformer must hold no other one. Got one within another.")
        check_is_fitted(estimator)
        of_table = names or _input_names(estimator)
        for own, transformer, columns in estimator.transformers_:
            chosen = _chosen(of_table, columns)
            if chosen and not (isinstance(transformer, str) and transformer == "drop"):
                yield from _parts(transformer, chosen, own)
    elif type(estimator).__name__ not in KINDS or not isinstance(estimator, KINDS[type(estimator).__name__].estimator):
        raise ValueError(
            f"A policy is made from one of {', '.join(KINDS)}, a ColumnTransformer of these, or a Pipeline that begins "
            f"with one. Got {type(estimator).__name__} instead."
        )
    else:
        check_is_fitted(estimator)
        own_name = _NAMES.get(type(estimator).__name__)
        yield _Part(estimator, names or ([own_name] if own_name else _input_names(estimator)), label)


def _described(part: _Part, units: Mapping[str, str]) -> tuple[tuple[AnyField, ...], dict[str, Any]]:
    """The fields of an estimator, and what its integers follow from."""
    if not math.isfinite(part.fitted.privacy_guarantee_.epsilon):
        raise ValueError("A policy publishes its domain, which must be declared. Got a learnt one instead.")
    name = type(part.fitted).__name__
    kind = KINDS[name]
    asked = kind.asked(part.fitted)
    fields = kind.fields(part.fitted, part.names, units, part.label or "numbers")
    own = {"estimator": name, "epsilon": repr(float(part.fitted.epsilon)), "n_fields": str(len(fields))} | asked
    return fields, own if part.label is None else own | {"name": part.label}


def _input_names(estimator: Any) -> list[str]:
    given = getattr(estimator, "feature_names_in_", None)
    if given is None and hasattr(estimator, "epsilons_"):
        given = list(estimator.epsilons_)
    return [f"x{j}" for j in range(estimator.n_features_in_)] if given is None else [str(name) for name in given]


def _chosen(names: list[str], columns: Any) -> list[str]:
    """The names of the columns that a ColumnTransformer gives to one of its parts."""
    if isinstance(columns, str):
        return [columns]
    if isinstance(columns, slice):
        if isinstance(columns.start, str) or isinstance(columns.stop, str):
            raise ValueError("Columns must be a list of names, places or a mask. Got a slice of names instead.")
        return names[columns]
    # What is left over comes, with scikit-learn 1.6, in a list that warns when it is looked into.
    held: Any = columns.data if isinstance(columns, UserList) else columns
    listed: list[Any] = list(held) if np.ndim(held) else [held]
    if all(isinstance(one, str) for one in listed):
        return listed
    return np.array(names, dtype=object)[np.asarray(listed)].tolist()
