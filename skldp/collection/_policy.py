"""Policies from fitted estimators, and estimators of the same integers from policies."""

import math
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skldp.client import CategoryField, NumberField
from skldp.client import Policy as DevicePolicy
from skldp.estimators._labels import LabelLaplace, LabelRR
from skldp.estimators._schema import DeclaredColumn
from skldp.estimators._table import TablePrivatizer
from skldp.mechanisms._columns import Categories, Columns, Integers, Interval
from skldp.mechanisms._integer_laws import CodeLaw, IntegerLaw, UnitLaw
from skldp.mechanisms._law_of import integer_law
from skldp.mechanisms._numeric.bounded_features import BoundedFeatures
from skldp.mechanisms._record import MixedRecord, share_out

__all__ = ["Policy"]


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
        estimator: TablePrivatizer | LabelRR | LabelLaplace,
        *,
        purpose: str,
        units: dict[str, str] | None = None,
        expires: str | None = None,
    ) -> Self:
        """Make a policy of what a fitted estimator samples.

        Parameters
        ----------
        estimator : TablePrivatizer, LabelRR or LabelLaplace
            Fitted, with declared categories. Numbers and dates outside their bounds are clipped, and what is missing
            or unknown treated as by the estimator; a label is the field ``"label"``.
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
        """
        check_is_fitted(estimator)
        if not math.isfinite(estimator.privacy_guarantee_.epsilon):
            raise ValueError("A policy publishes its categories, which must be declared. Got learnt ones instead.")
        if isinstance(estimator, TablePrivatizer):
            fields: tuple[NumberField | CategoryField, ...] = _fields_of_table(estimator, dict(units or {}))
            shares = dict.fromkeys(estimator.epsilons_, 1.0) if estimator.shares == "equal" else estimator.shares
            mechanism, weights = estimator.mechanism, [shares[name] for name in estimator.epsilons_]
        elif isinstance(estimator, LabelRR | LabelLaplace):
            values = tuple(estimator.classes_.tolist())
            law = integer_law(estimator.mechanism_)
            assert isinstance(law, CodeLaw)
            fields = (CategoryField("label", values, law),)
            mechanism, weights = type(estimator).__name__, [1.0]
        else:
            raise ValueError(
                "A policy is made from a TablePrivatizer, a LabelRR or a LabelLaplace. "
                f"Got {type(estimator).__name__} instead."
            )
        asked = {
            "epsilon": repr(float(estimator.epsilon)),
            "mechanism": mechanism,
            "weights": [repr(float(weight)) for weight in weights],
        }
        return cls(purpose, fields, expires, asked)

    def to_estimator(self) -> TablePrivatizer | LabelRR | LabelLaplace:
        """Make the estimator, not fitted, that samples with the integers of this policy.

        Returns
        -------
        TablePrivatizer, LabelRR or LabelLaplace

        Raises
        ------
        ValueError
            If the policy was not made from an estimator, or what was asked of that gives other integers here.
        """
        if self.asked is None:
            raise ValueError("The policy must say what its integers were made from. Got one written by hand.")
        epsilon, mechanism = float(self.asked["epsilon"]), str(self.asked["mechanism"])
        made: TablePrivatizer | LabelRR | LabelLaplace
        if mechanism in _OF_LABELS:
            values = np.array(_category(self.fields[0]).values)
            made = _OF_LABELS[mechanism](epsilon, classes=values)
            laws = [integer_law(made._make_mechanism(values))]
        else:
            weights = [float(weight) for weight in self.asked["weights"]]
            columns = {field.name: _column(field) for field in self.fields}
            made = TablePrivatizer(
                epsilon,
                schema={name: column.domain.to_dict() | _missing(column) for name, column in columns.items()},
                shares=dict(zip(columns, weights, strict=True)),
                mechanism=mechanism,
                handle_unknown="missing" if any(_takes_unknown(field) for field in self.fields) else "error",
            )
            coded = Columns.of({name: column.coded for name, column in columns.items()})
            laws = _laws(MixedRecord(coded, share_out(epsilon, weights), mechanism))
        if laws != [field.law for field in self.fields]:
            raise ValueError("What was asked must give the integers of the policy. Got other integers instead.")
        return made


_OF_LABELS: dict[str, type[LabelRR] | type[LabelLaplace]] = {"LabelRR": LabelRR, "LabelLaplace": LabelLaplace}


def _laws(record: MixedRecord) -> list[IntegerLaw]:
    return [integer_law(part.mechanism if isinstance(part, BoundedFeatures) else part) for part in record.parts]


def _fields_of_table(table: TablePrivatizer, units: dict[str, str]) -> tuple[NumberField | CategoryField, ...]:
    """The fields of a fitted table, each with the law of its column."""
    strange = set(units) - set(map(str, table.epsilons_))
    if strange:
        raise ValueError(f"units must be of columns of the table. Got some of {sorted(strange)} instead.")
    unknown = None if table.handle_unknown == "missing" else ...
    return tuple(
        _field(str(name), column, law, units.get(str(name)), unknown)
        for name, column, law in zip(table.epsilons_, table.columns_, _laws(table.mechanism_), strict=True)
    )


def _field(
    name: str, column: DeclaredColumn, law: IntegerLaw, unit: str | None, unknown: Any
) -> NumberField | CategoryField:
    if column.is_date:
        raise ValueError(f"A policy has numbers and categories. Got dates in the column {name!r} instead.")
    if column.values is not None:
        assert isinstance(law, CodeLaw)
        return CategoryField(name, column.values, law, unknown)
    assert isinstance(law, UnitLaw)
    assert not isinstance(column.domain, Categories)
    low, high = float(column.domain.low), float(column.domain.high)
    missing = _middle(low, high) if column.missing else None
    return NumberField(name, low, high, law, unit, isinstance(column.domain, Integers), "clip", missing)


def _column(field: NumberField | CategoryField) -> DeclaredColumn:
    """The column of a table that does with values what a field does."""
    if isinstance(field, CategoryField):
        if None in field.values[:-1] or (field.unknown is not ... and field.unknown is not None):
            raise ValueError(f"In a table, unknown values are missing ones. Field {field.name!r} has another rule.")
        missing = field.values[-1] is None
        return DeclaredColumn(
            Categories(field.values[:-1] if missing else field.values), "category" if missing else None
        )
    if field.outside != "clip" or field.missing not in (None, _middle(field.low, field.high)):
        raise ValueError(
            f"In a table, numbers outside are clipped and missing ones in the middle. Field {field.name!r} has "
            "another rule."
        )
    domain = Integers(int(field.low), int(field.high)) if field.whole else Interval(field.low, field.high)
    return DeclaredColumn(domain, None if field.missing is None else "middle")


def _category(field: NumberField | CategoryField) -> CategoryField:
    if not isinstance(field, CategoryField):
        raise ValueError("A policy of labels must have a category. Got a number instead.")
    return field


def _takes_unknown(field: NumberField | CategoryField) -> bool:
    return isinstance(field, CategoryField) and field.unknown is not ...


def _missing(column: DeclaredColumn) -> dict[str, Any]:
    return {"missing": column.missing} if column.missing else {}


def _middle(low: float, high: float) -> float:
    return low / 2 + high / 2
