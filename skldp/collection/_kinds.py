"""What each kind of estimator is on a person's own device: its fields, and the estimator of the same integers."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from skldp.client import CategoryField, NumberColumn, NumberField, NumbersField
from skldp.client._fields import AnyField
from skldp.estimators._bitrand import BitRandTransformer
from skldp.estimators._categorical import CategoricalPrivatizer
from skldp.estimators._labels import LabelLaplace, LabelRR
from skldp.estimators._numeric import NumericPrivatizer
from skldp.estimators._schema import DeclaredColumn
from skldp.estimators._table import TablePrivatizer
from skldp.estimators._targets import TargetPrivatizer
from skldp.mechanisms._code_laws import UnaryLaw
from skldp.mechanisms._columns import Categories, Columns, Integers, Interval
from skldp.mechanisms._integer_laws import CodeLaw, GroupLaw, UnitLaw
from skldp.mechanisms._law_of import integer_law, law_within_bounds
from skldp.mechanisms._record import MixedRecord, share_out

__all__ = ["KINDS", "Kind"]


class Kind(ABC):
    """A kind of estimator. Each method is about one of them alone."""

    estimator: ClassVar[type]

    @abstractmethod
    def fields(self, fitted: Any, names: Sequence[str], units: Mapping[str, str], group: str) -> tuple[AnyField, ...]:
        """The fields of a fitted estimator, whose columns have these names; `group` is that of several together."""

    @abstractmethod
    def asked(self, fitted: Any) -> dict[str, Any]:
        """What its integers follow from, beside the fields."""

    @abstractmethod
    def make(self, asked: Mapping[str, Any], fields: Sequence[AnyField]) -> Any:
        """The estimator, not fitted, that does with values what the fields do, and samples what was asked."""

    def remade(self, made: Any, asked: Mapping[str, Any], fields: Sequence[AnyField]) -> tuple[AnyField, ...]:
        """Return the fields of what was made, without units, fitted to a public row."""
        fitted = made.fit(_public_rows(fields))
        return self.fields(fitted, [name for field in fields for name in field.names], {}, fields[0].name)


class _Numbers(Kind):
    """Numbers within bounds, by one mechanism for all: of several together one field, else one for each."""

    def fields(self, fitted: Any, names: Sequence[str], units: Mapping[str, str], group: str) -> tuple[AnyField, ...]:
        """One for each number, or one for all."""
        ends = zip(names, *(end.tolist() for end in fitted.bounds_), strict=True)
        columns = tuple(NumberColumn(name, low, high, units.get(name)) for name, low, high in ends)
        law = law_within_bounds(fitted.mechanism_)
        if isinstance(law, GroupLaw):
            return (NumbersField(group, columns, law),)
        assert isinstance(law, UnitLaw)
        return tuple(NumberField(one.name, one.low, one.high, law, one.unit) for one in columns)


class _Numeric(_Numbers):
    estimator = NumericPrivatizer

    def asked(self, fitted: Any) -> dict[str, Any]:
        """Which mechanism it came to, and for how many of the numbers."""
        return {"mechanism": fitted.mechanism_name_, "n_sampled": str(fitted.n_sampled_features_)}

    def make(self, asked: Mapping[str, Any], fields: Sequence[AnyField]) -> Any:
        """Of the bounds of the fields."""
        return NumericPrivatizer(
            float(asked["epsilon"]),
            mechanism=asked["mechanism"],
            bounds=_bounds(fields),
            n_sampled_features=_whole(asked, "n_sampled"),
        )


class _BitRand(_Numbers):
    estimator = BitRandTransformer

    def asked(self, fitted: Any) -> dict[str, Any]:
        """For how many of the numbers, and of how many bits."""
        if fitted.calibration != "exact" or not fitted.debias:
            raise ValueError(
                "A policy needs an epsilon that follows from the integers alone, whatever codes the bounds reach. Got "
                "another BitRandTransformer than one of calibration='exact' and debias=True."
            )
        sampled = fitted.mechanism_.n_sampled
        return {"mechanism": "exact", "n_sampled": str(sampled), "n_bits": str(fitted.n_bits)}

    def make(self, asked: Mapping[str, Any], fields: Sequence[AnyField]) -> Any:
        """Of the bounds of the fields."""
        return BitRandTransformer(
            float(asked["epsilon"]),
            n_bits=_whole(asked, "n_bits"),
            bounds=_bounds(fields),
            calibration="exact",
            n_sampled_features=_whole(asked, "n_sampled"),
            debias=True,
        )


class _Target(Kind):
    estimator = TargetPrivatizer

    def fields(self, fitted: Any, names: Sequence[str], units: Mapping[str, str], group: str) -> tuple[AnyField, ...]:
        """The one number."""
        law = law_within_bounds(fitted.mechanism_)
        assert isinstance(law, UnitLaw)
        low, high = fitted.bounds_
        return (NumberField(names[0], low, high, law, units.get(names[0])),)

    def asked(self, fitted: Any) -> dict[str, Any]:
        """Which mechanism it came to, and its prior: of what is left of epsilon, where people told that."""
        prior = getattr(fitted.mechanism_, "prior", None)
        epsilon = getattr(fitted.mechanism_, "epsilon", fitted.epsilon)
        own = {"epsilon": repr(float(epsilon)), "mechanism": fitted.mechanism_name_}
        return own if prior is None else own | {"numbers": [repr(share) for share in prior]}

    def make(self, asked: Mapping[str, Any], fields: Sequence[AnyField]) -> Any:
        """Of the bounds of the field."""
        (column,) = _columns(fields)
        prior = [float(share) for share in asked["numbers"]] if "numbers" in asked else None
        bounds = (column.low, column.high)
        return TargetPrivatizer(float(asked["epsilon"]), bounds=bounds, mechanism=asked["mechanism"], prior=prior)

    def remade(self, made: Any, asked: Mapping[str, Any], fields: Sequence[AnyField]) -> tuple[AnyField, ...]:
        """Fitted to one end of its bounds."""
        (column,) = _columns(fields)
        return self.fields(made.fit([column.low]), [column.name], {}, "")


class _Categories(Kind):
    estimator = CategoricalPrivatizer

    def fields(self, fitted: Any, names: Sequence[str], units: Mapping[str, str], group: str) -> tuple[AnyField, ...]:
        """One for each column."""
        columns = zip(names, fitted.categories_, fitted.mechanism_.columns, strict=True)
        return tuple(CategoryField(name, tuple(values.tolist()), _of_codes(own)) for name, values, own in columns)

    def asked(self, fitted: Any) -> dict[str, Any]:
        """The mechanism, by its name."""
        return {"mechanism": fitted.mechanism}

    def make(self, asked: Mapping[str, Any], fields: Sequence[AnyField]) -> Any:
        """Of the values of the fields."""
        categories = [list(_category(field).values) for field in fields]
        return CategoricalPrivatizer(float(asked["epsilon"]), mechanism=asked["mechanism"], categories=categories)


class _Label(Kind):
    def fields(self, fitted: Any, names: Sequence[str], units: Mapping[str, str], group: str) -> tuple[AnyField, ...]:
        """The one label."""
        return (CategoryField(names[0], tuple(fitted.classes_.tolist()), _of_codes(fitted.mechanism_)),)

    def asked(self, fitted: Any) -> dict[str, Any]:
        """Nothing beside the name of the estimator."""
        return {"mechanism": self.estimator.__name__}

    def make(self, asked: Mapping[str, Any], fields: Sequence[AnyField]) -> Any:
        """Of the values of the field."""
        (field,) = fields
        return self.estimator(float(asked["epsilon"]), classes=list(_category(field).values))

    def remade(self, made: Any, asked: Mapping[str, Any], fields: Sequence[AnyField]) -> tuple[AnyField, ...]:
        """Fitted to all its classes."""
        return self.fields(made.fit(made.classes), [fields[0].name], {}, "")


class _LabelRR(_Label):
    estimator = LabelRR


class _LabelLaplace(_Label):
    estimator = LabelLaplace


class _Table(Kind):
    estimator = TablePrivatizer

    def fields(self, fitted: Any, names: Sequence[str], units: Mapping[str, str], group: str) -> tuple[AnyField, ...]:
        """Return a field for each column."""
        columns = zip(names, fitted.columns_, fitted.mechanism_.parts, strict=True)
        return tuple(_field(name, column, part, units.get(name)) for name, column, part in columns)

    def asked(self, fitted: Any) -> dict[str, Any]:
        """The mechanism of numbers, and the weights of the columns."""
        return {
            "mechanism": fitted.mechanism,
            "numbers": [repr(fitted.shares_[name]) for name in fitted.epsilons_],
        }

    def make(self, asked: Mapping[str, Any], fields: Sequence[AnyField]) -> Any:
        """Of a schema that says what the fields say."""
        columns = {field.name: _column(field) for field in fields}
        of_categories = _category_mechanisms(fields)
        unknown = {field.unknown for field in fields if isinstance(field, CategoryField)}
        return TablePrivatizer(
            float(asked["epsilon"]),
            schema={name: _declared(column) for name, column in columns.items()},
            shares=dict(zip(columns, map(float, asked["numbers"]), strict=True)),
            mechanism=asked["mechanism"],
            category_mechanism=of_categories if {"krr", *of_categories.values()} != {"krr"} else "krr",
            handle_unknown="missing" if unknown == {None} else "error",
        )

    def remade(self, made: Any, asked: Mapping[str, Any], fields: Sequence[AnyField]) -> tuple[AnyField, ...]:
        """From its mechanism, since a table of named columns is a frame of a library that may not be there."""
        columns = {field.name: _column(field) for field in fields}
        coded = Columns.of({name: column.coded for name, column in columns.items()})
        of_categories = _category_mechanisms(fields)
        mechanisms = tuple(of_categories.get(name, made.mechanism) for name in columns)
        record = MixedRecord(coded, share_out(made.epsilon, list(made.shares.values())), mechanisms)
        pairs = zip(columns.items(), record.parts, strict=True)
        return tuple(_field(name, column, part, None) for (name, column), part in pairs)


#: By the name of the estimator.
KINDS: dict[str, Kind] = {
    kind.estimator.__name__: kind
    for kind in (_Table(), _Numeric(), _BitRand(), _Target(), _Categories(), _LabelRR(), _LabelLaplace())
}


def _category_mechanisms(fields: Sequence[AnyField]) -> dict[str, str]:
    """Which mechanism the law of each category is of."""
    return {field.name: _name_of(field.law) for field in fields if isinstance(field, CategoryField)}


def _name_of(law: CodeLaw) -> str:
    if isinstance(law, UnaryLaw):
        # The true one's bit is a fair coin.
        return "oue" if law.own_count == 2**63 else "sue"
    named = {"randomized_response": "krr", "subset": "subset", "local_hashing": "hashing", "hadamard": "hadamard"}
    return named[law.name]


def _of_codes(mechanism: Any) -> CodeLaw:
    law = integer_law(mechanism)
    assert isinstance(law, CodeLaw)
    return law


def _field(name: str, column: DeclaredColumn, mechanism: Any, unit: str | None) -> NumberField | CategoryField:
    if column.values is not None:
        return CategoryField(name, column.values, _of_codes(mechanism))
    if column.missing == "category":
        raise ValueError(
            "A policy has no law of a number that may be missing as an answer of its own: declare 'missing': 'middle' "
            f"for it, and whether it is missing as a category beside it. Got 'missing': 'category' for {name!r}."
        )
    law_of_number = law_within_bounds(mechanism)
    assert isinstance(law_of_number, UnitLaw)
    assert not isinstance(column.domain, Categories)
    low, high = float(column.domain.low), float(column.domain.high)
    whole = isinstance(column.domain, Integers)
    return NumberField(name, low, high, law_of_number, unit, whole, is_date=column.is_date)


def _column(field: AnyField) -> DeclaredColumn:
    """Return the column of a table with the domain of a field; missing numbers are in the middle, as it has them."""
    if isinstance(field, NumbersField):
        raise ValueError(f"In a table, each number is released on its own. Got several together in {field.name!r}.")
    if isinstance(field, CategoryField):
        if None in field.values[:-1]:
            raise ValueError(f"In a table, the missing category is the last one. Got another order in {field.name!r}.")
        missing = field.values[-1] is None
        return DeclaredColumn(
            Categories(field.values[:-1] if missing else field.values), "category" if missing else None
        )
    domain = Integers(int(field.low), int(field.high)) if field.whole else Interval(field.low, field.high)
    return DeclaredColumn(domain, "middle" if field.missing == _middle(field.low, field.high) else None, field.is_date)


def _declared(column: DeclaredColumn) -> dict[str, Any]:
    """A column as a schema says it."""
    domain = column.domain
    if column.is_date:
        assert isinstance(domain, Integers)
        low, high = (str(np.datetime64(day, "D")) for day in (domain.low, domain.high))
        said: dict[str, Any] = {"type": "dates", "low": low, "high": high}
    else:
        said = domain.to_dict()
    return said | ({"missing": column.missing} if column.missing else {})


def _columns(fields: Sequence[AnyField]) -> list[NumberColumn]:
    """The numbers of some fields."""
    found: list[NumberColumn] = []
    for field in fields:
        if isinstance(field, NumbersField):
            found.extend(field.columns)
        elif isinstance(field, NumberField):
            found.append(field.column)
    return found


def _bounds(fields: Sequence[AnyField]) -> Any:
    columns = _columns(fields)
    return np.array([one.low for one in columns]), np.array([one.high for one in columns])


def _public_rows(fields: Sequence[AnyField]) -> Any:
    if all(isinstance(field, CategoryField) for field in fields):
        row = np.empty((1, len(fields)), dtype=object)
        row[0, :] = [_category(field).values[0] for field in fields]
        return row
    return np.array([[one.low for one in _columns(fields)]])


def _category(field: AnyField) -> CategoryField:
    if not isinstance(field, CategoryField):
        raise ValueError("This estimator needs a category. Got a number instead.")
    return field


def _whole(asked: Mapping[str, Any], name: str) -> int:
    if name not in asked:
        raise ValueError(f"What was asked must say {name!r}. Got nothing instead.")
    return int(asked[name])


def _middle(low: float, high: float) -> float:
    return low / 2 + high / 2
