"""Fields of policies from fitted estimators, and estimators of the same integers from policies."""

import math
from abc import ABC, abstractmethod
from collections import UserList
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skldp.client import CategoryField, NumberColumn, NumberField, NumbersField, Policy
from skldp.client._fields import AnyField
from skldp.domains._columns import Columns
from skldp.domains._declared_columns import CategoryColumn, DeclaredColumn
from skldp.estimators._bitrand import BitRandTransformer
from skldp.estimators._categorical import CategoricalPrivatizer
from skldp.estimators._labels import LabelLaplace, LabelRR
from skldp.estimators._numeric import NumericPrivatizer
from skldp.estimators._schema import read_schema
from skldp.estimators._table import TablePrivatizer
from skldp.estimators._targets import TargetPrivatizer
from skldp.laws._categories import UnaryLaw
from skldp.laws._integers import GroupLaw
from skldp.mechanisms._record import MixedRecord, share_out

_Fields = tuple[AnyField, ...]
# Labels and targets are no columns of a table.
_NAMES = {"LabelRR": "label", "LabelLaplace": "label", "TargetPrivatizer": "target"}


def exported(estimator: Any, units: Mapping[str, str]) -> tuple[_Fields, list[dict[str, Any]]]:
    """Return the fields of a fitted estimator, and the parameters that its integers follow from."""
    parts = list(_parts(estimator))
    if not parts:
        raise ValueError("A policy needs something to release. Got an estimator that drops all columns.")
    strange = set(units) - {name for part in parts for name in part.names}
    if strange:
        raise ValueError(f"units must be of columns of the table. Got some of {sorted(strange)} instead.")
    fields: list[AnyField] = []
    asked = []
    for part in parts:
        if not math.isfinite(part.fitted.privacy_guarantee_.epsilon):
            raise ValueError("A policy publishes its domain, which must be declared. Got a learnt one instead.")
        name = type(part.fitted).__name__
        params = _KINDS[name].export_params(part.fitted)
        own = _KINDS[name].fields(part.fitted, part.names, units, part.label or "numbers")
        fields.extend(own)
        head = {"estimator": name, "epsilon": repr(float(part.fitted.epsilon)), "n_fields": str(len(own))}
        asked.append(head | params | ({} if part.label is None else {"name": part.label}))
    return tuple(fields), asked


def estimator_of(policy: Policy) -> Any:
    """Build the estimator of a policy, not fitted, and check that it has the same integers."""
    if policy.asked is None:
        raise ValueError("The policy must say what its integers were made from. Got one written by hand.")
    left = iter(policy.fields)
    built = []
    for params in policy.asked:
        fields = tuple(islice(left, int(params["n_fields"])))
        if params["estimator"] not in _KINDS or not fields:
            raise ValueError("What was asked must be of estimators and fields that there are. Got another.")
        kind = _KINDS[params["estimator"]]
        try:
            one = kind.build(params, fields)
            again = kind.rebuild(kind.build(params, fields), fields)
        except (ArithmeticError, KeyError):
            # An epsilon of 1e-300 leaves nothing to divide by, and parameters may be absent.
            one, again = None, ()
        if list(map(_of_estimator, again)) != list(map(_of_estimator, fields)):
            raise ValueError("What was asked must give the integers of the policy. Got other integers instead.")
        built.append((params.get("name"), one, [name for field in fields for name in field.names]))
    if next(left, None) is not None:
        raise ValueError("What was asked must give every field of the policy. Got fewer fields instead.")
    return built[0][1] if len(built) == 1 and built[0][0] is None else ColumnTransformer(built)


class _Kind(ABC):
    """Base class of kinds of estimators."""

    estimator: ClassVar[type]

    @abstractmethod
    def fields(self, fitted: Any, names: Sequence[str], units: Mapping[str, str], group: str) -> _Fields:
        """Return the fields of a fitted estimator by the names of its columns; `group` names several together."""

    @abstractmethod
    def export_params(self, fitted: Any) -> dict[str, Any]:
        """Return the parameters that the integers follow from, beside epsilon and the fields."""

    @abstractmethod
    def build(self, params: Mapping[str, Any], fields: _Fields) -> Any:
        """Build the estimator, not fitted."""

    def fit(self, built: Any, fields: _Fields) -> Any:
        """Fit a built estimator to a public row."""
        return built.fit(np.array([[one.low for one in _numbers(fields)]]))

    def rebuild(self, built: Any, fields: _Fields) -> _Fields:
        """Return the fields of a built estimator."""
        names = [name for field in fields for name in field.names]
        return self.fields(self.fit(built, fields), names, {}, fields[0].name)


class _Numbers(_Kind):
    def fields(self, fitted: Any, names: Sequence[str], units: Mapping[str, str], group: str) -> _Fields:
        """Return a field for each number, or one field if they have one law together."""
        law: Any = fitted.mechanism_.integer_law
        ends = list(zip(names, *(end.tolist() for end in fitted.bounds_), strict=True))
        if isinstance(law, GroupLaw):
            columns = tuple(NumberColumn(name, low, high, unit=units.get(name)) for name, low, high in ends)
            return (NumbersField(group, columns, law),)
        return tuple(NumberField(name, low, high, law, unit=units.get(name)) for name, low, high in ends)


class _Numeric(_Numbers):
    estimator = NumericPrivatizer

    def export_params(self, fitted: Any) -> dict[str, Any]:
        """Return the chosen mechanism, and how many numbers it samples."""
        return {"mechanism": fitted.mechanism_name_, "n_sampled": str(fitted.n_sampled_features_)}

    def build(self, params: Mapping[str, Any], fields: _Fields) -> Any:
        """Build it with the bounds of the fields."""
        return NumericPrivatizer(
            float(params["epsilon"]),
            mechanism=params["mechanism"],
            bounds=_bounds(fields),
            n_sampled_features=int(params["n_sampled"]),
        )


class _BitRand(_Numbers):
    estimator = BitRandTransformer

    def export_params(self, fitted: Any) -> dict[str, Any]:
        """Return how many numbers it samples, and the number of bits."""
        if fitted.calibration != "exact" or not fitted.debias:
            raise ValueError(
                "A policy needs an epsilon that follows from the integers alone, whatever codes the bounds reach. Got "
                "another BitRandTransformer than one of calibration='exact' and debias=True."
            )
        sampled = fitted.mechanism_.n_sampled
        return {"mechanism": "exact", "n_sampled": str(sampled), "n_bits": str(fitted.n_bits)}

    def build(self, params: Mapping[str, Any], fields: _Fields) -> Any:
        """Build it with the bounds of the fields."""
        return BitRandTransformer(
            float(params["epsilon"]),
            n_bits=int(params["n_bits"]),
            bounds=_bounds(fields),
            calibration="exact",
            n_sampled_features=int(params["n_sampled"]),
            debias=True,
        )


class _Target(_Kind):
    estimator = TargetPrivatizer

    def fields(self, fitted: Any, names: Sequence[str], units: Mapping[str, str], group: str) -> _Fields:
        """Return the field of the number."""
        law: Any = fitted.mechanism_.integer_law
        low, high = fitted.bounds_
        return (NumberField(names[0], low, high, law, unit=units.get(names[0])),)

    def export_params(self, fitted: Any) -> dict[str, Any]:
        """Return the chosen mechanism, its prior, and the epsilon that a learnt prior leaves."""
        prior = getattr(fitted.mechanism_, "prior", None)
        epsilon = getattr(fitted.mechanism_, "epsilon", fitted.epsilon)
        own = {"epsilon": repr(float(epsilon)), "mechanism": fitted.mechanism_name_}
        return own if prior is None else own | {"numbers": [repr(share) for share in prior]}

    def build(self, params: Mapping[str, Any], fields: _Fields) -> Any:
        """Build it with the bounds of the field."""
        (column,) = _numbers(fields)
        prior = [float(share) for share in params["numbers"]] if "numbers" in params else None
        bounds = (column.low, column.high)
        return TargetPrivatizer(float(params["epsilon"]), bounds=bounds, mechanism=params["mechanism"], prior=prior)

    def fit(self, built: Any, fields: _Fields) -> Any:
        """Fit it to an end of its bounds."""
        return built.fit([_numbers(fields)[0].low])


class _Categories(_Kind):
    estimator = CategoricalPrivatizer

    def fields(self, fitted: Any, names: Sequence[str], units: Mapping[str, str], group: str) -> _Fields:
        """Return a field for each column."""
        columns = zip(names, fitted.categories_, fitted.mechanism_.parts, strict=True)
        return tuple(_category_field(name, tuple(values.tolist()), own) for name, values, own in columns)

    def export_params(self, fitted: Any) -> dict[str, Any]:
        """Return the mechanism."""
        return {"mechanism": fitted.mechanism}

    def build(self, params: Mapping[str, Any], fields: _Fields) -> Any:
        """Build it with the values of the fields."""
        categories = [list(_category(field).values) for field in fields]
        return CategoricalPrivatizer(float(params["epsilon"]), mechanism=params["mechanism"], categories=categories)

    def fit(self, built: Any, fields: _Fields) -> Any:
        """Fit it to the first values."""
        row = np.empty((1, len(fields)), dtype=object)
        row[0, :] = [_category(field).values[0] for field in fields]
        return built.fit(row)


class _Label(_Kind):
    def fields(self, fitted: Any, names: Sequence[str], units: Mapping[str, str], group: str) -> _Fields:
        """Return the field of the label."""
        return (_category_field(names[0], tuple(fitted.classes_.tolist()), fitted.mechanism_),)

    def export_params(self, fitted: Any) -> dict[str, Any]:
        """Return the name of the estimator."""
        return {"mechanism": self.estimator.__name__}

    def build(self, params: Mapping[str, Any], fields: _Fields) -> Any:
        """Build it with the values of the field."""
        (field,) = fields
        return self.estimator(float(params["epsilon"]), classes=list(_category(field).values))

    def fit(self, built: Any, fields: _Fields) -> Any:
        """Fit it to all its classes."""
        return built.fit(built.classes)


class _LabelRR(_Label):
    estimator = LabelRR


class _LabelLaplace(_Label):
    estimator = LabelLaplace


class _Table(_Kind):
    estimator = TablePrivatizer

    def fields(self, fitted: Any, names: Sequence[str], units: Mapping[str, str], group: str) -> _Fields:
        """Return a field for each column."""
        columns = zip(names, fitted.columns_, fitted.mechanism_.parts, strict=True)
        return tuple(_table_field(name, column, part, units.get(name)) for name, column, part in columns)

    def export_params(self, fitted: Any) -> dict[str, Any]:
        """Return the mechanism of numbers, and the weights of the columns."""
        return {"mechanism": fitted.mechanism, "numbers": [repr(fitted.shares_[name]) for name in fitted.epsilons_]}

    def build(self, params: Mapping[str, Any], fields: _Fields) -> Any:
        """Build it with the schema of the fields."""
        schema = {field.name: _schema_of(field) for field in fields}
        of_categories = _category_mechanisms(fields)
        unknown = {field.unknown for field in fields if isinstance(field, CategoryField)}
        return TablePrivatizer(
            float(params["epsilon"]),
            schema=schema,
            shares=dict(zip(schema, map(float, params["numbers"]), strict=True)),
            mechanism=params["mechanism"],
            category_mechanism=of_categories if {"krr", *of_categories.values()} != {"krr"} else "krr",
            handle_unknown="missing" if unknown == {None} else "error",
        )

    def rebuild(self, built: Any, fields: _Fields) -> _Fields:
        """Return the fields of its mechanism: a table of named columns needs pandas or polars."""
        names = list(built.schema)
        columns, _ = read_schema(built.schema, names, [None] * len(names))
        of_categories = _category_mechanisms(fields)
        coded = Columns.of({name: column.coded for name, column in zip(names, columns, strict=True)})
        mechanisms = tuple(of_categories.get(name, built.mechanism) for name in names)
        record = MixedRecord(coded, share_out(built.epsilon, list(built.shares.values())), mechanisms)
        return tuple(map(_table_field, names, columns, record.parts, [None] * len(names)))


_KINDS: dict[str, _Kind] = {
    kind.estimator.__name__: kind
    for kind in (_Table(), _Numeric(), _BitRand(), _Target(), _Categories(), _LabelRR(), _LabelLaplace())
}


def _category_mechanisms(fields: _Fields) -> dict[str, str]:
    """Return the mechanism's name of each category's law."""
    return {field.name: _name_of(field.law) for field in fields if isinstance(field, CategoryField)}


def _name_of(law: Any) -> str:
    if isinstance(law, UnaryLaw):
        # In OUE the own bit is a fair coin.
        return "oue" if law.own_count == 2**63 else "sue"
    named = {"randomized_response": "krr", "subset": "subset", "local_hashing": "hashing", "hadamard": "hadamard"}
    return named[law.name]


def _category_field(name: str, values: tuple[Any, ...], mechanism: Any) -> CategoryField:
    law: Any = mechanism.integer_law
    return CategoryField(name, values, law)


def _table_field(name: str, column: DeclaredColumn, mechanism: Any, unit: str | None) -> NumberField | CategoryField:
    if isinstance(column, CategoryColumn):
        return _category_field(name, column.values, mechanism)
    if column.missing == "category":
        raise ValueError(
            "A policy has no law of a number that may be missing as an answer of its own: declare 'missing': 'middle' "
            f"for it, and whether it is missing as a category beside it. Got 'missing': 'category' for {name!r}."
        )
    law: Any = mechanism.integer_law
    return NumberField(name, column.low, column.high, law, unit=unit, whole=column.whole, is_date=column.is_date)


def _schema_of(field: AnyField) -> dict[str, Any]:
    """Return the declaration of a field in a schema."""
    if isinstance(field, NumbersField):
        raise ValueError(f"In a table, each number is released on its own. Got several together in {field.name!r}.")
    if isinstance(field, CategoryField):
        if None in field.values[:-1]:
            raise ValueError(f"In a table, the missing category is the last one. Got another order in {field.name!r}.")
        return field.domain.to_dict() | ({"missing": "category"} if field.values[-1] is None else {})
    missing = {"missing": "middle"} if field.missing == field.center else {}
    if field.is_date:
        low, high = (str(np.datetime64(int(day), "D")) for day in (field.low, field.high))
        return {"type": "dates", "low": low, "high": high} | missing
    return field.domain.to_dict() | missing


def _of_estimator(field: AnyField) -> AnyField:
    """Return a field without units, stand-ins and steps, which are a policy's own."""
    if isinstance(field, CategoryField):
        return replace(field, unknown=...)
    if isinstance(field, NumberField):
        return replace(field, unit=None, missing=None, steps=None)
    columns = tuple(replace(column, unit=None, missing=None) for column in field.columns)
    return replace(field, columns=columns, steps=None)


def _numbers(fields: _Fields) -> list[NumberColumn]:
    """Return the columns of numbers."""
    return [
        one
        for field in fields
        if not isinstance(field, CategoryField)
        for one in (field.columns if isinstance(field, NumbersField) else [field])
    ]


def _bounds(fields: _Fields) -> Any:
    columns = _numbers(fields)
    return np.array([one.low for one in columns]), np.array([one.high for one in columns])


def _category(field: AnyField) -> CategoryField:
    if not isinstance(field, CategoryField):
        raise ValueError("This estimator needs a category. Got a number instead.")
    return field


class _Part(NamedTuple):
    """A fitted estimator, the names of its columns, and its own name in a ColumnTransformer."""

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
    elif type(estimator) not in [kind.estimator for kind in _KINDS.values()]:
        raise ValueError(
            f"A policy is made from one of {', '.join(_KINDS)}, a ColumnTransformer of these, or a Pipeline that "
            f"begins with one. Got {type(estimator).__name__} instead."
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


def _chosen(names: list[str], columns: Any) -> list[str]:
    """Return the names of the columns of a part of a ColumnTransformer."""
    if isinstance(columns, str):
        return [columns]
    if isinstance(columns, slice):
        if isinstance(columns.start, str) or isinstance(columns.stop, str):
            raise ValueError("Columns must be a list of names, places or a mask. Got a slice of names instead.")
        return names[columns]
    # scikit-learn 1.6 gives the remainder as a list that warns when it is read.
    held: Any = columns.data if isinstance(columns, UserList) else columns
    listed: list[Any] = list(held) if np.ndim(held) else [held]
    if all(isinstance(one, str) for one in listed):
        return listed
    return np.array(names, dtype=object)[np.asarray(listed)].tolist()
