"""Fields of policies from fitted estimators, and estimators of the same integers from policies."""

import math
from collections import UserList
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, islice
from typing import Any, NamedTuple

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skldp.client import CategoryField, NumberColumn, NumberField, NumbersField, PairField, Policy, VectorField
from skldp.client._fields import AnyField
from skldp.collection import _precision
from skldp.domains._columns import Columns
from skldp.domains._declared_columns import CategoryColumn, DeclaredColumn
from skldp.estimators._bitrand import BitRandTransformer
from skldp.estimators._categorical import CategoricalPrivatizer
from skldp.estimators._labels import LabelLaplace, LabelRR
from skldp.estimators._numeric import NumericPrivatizer
from skldp.estimators._schema import read_schema
from skldp.estimators._table import TablePrivatizer
from skldp.estimators._targets import TargetPrivatizer
from skldp.estimators._vector import PrivUnitTransformer
from skldp.laws._categories import MOST_CODES, UnaryLaw
from skldp.laws._integers import GroupLaw
from skldp.mechanisms._record import MixedRecord, sampled_shares
from skldp.mechanisms.categorical._catalogue import make_categorical_mechanism
from skldp.mechanisms.categorical._unary import OneHotRandomizedResponse

_Fields = tuple[AnyField, ...]
# Policies reach this layer through this module alone.
precision_of, people_needed = _precision.precision_of, _precision.people_needed
# Names of labels, targets and vectors, which are not columns of a table.
_NAMES = {
    "LabelRR": "label",
    "LabelLaplace": "label",
    "TargetPrivatizer": "target",
    "PrivUnitTransformer": "vector",
}


def exported(estimator: Any, units: Mapping[str, str]) -> tuple[_Fields, list[dict[str, Any]], int | None]:
    """Return the fields of a fitted estimator, the parameters of its integers, and the size of a sample of fields."""
    parts = list(_parts(estimator))
    if not parts:
        raise ValueError("A policy must release something; got an estimator that drops all columns.")
    unknown = set(units) - {name for part in parts for name in part.names}
    if unknown:
        raise ValueError(f"units must be of columns of the table; got others: {sorted(unknown)}.")
    fields: list[AnyField] = []
    asked, n_sampled = [], None
    for part in parts:
        if not math.isfinite(part.fitted.privacy_guarantee_.epsilon):
            raise ValueError("A policy publishes its domain, which must be declared; got a learnt one.")
        params = _export_params(part.fitted)
        group = part.label or _NAMES.get(type(part.fitted).__name__, "numbers")
        own = _fields_of(part.fitted, part.names, units, group)
        fields.extend(own)
        if isinstance(part.fitted, _SAMPLERS):
            n_sampled = part.fitted.mechanism_.n_sampled
        if n_sampled is not None and len(parts) > 1:
            raise ValueError(
                "A policy samples all of its fields or none: an estimator with n_sampled_features must be alone; got "
                f"{len(parts)} estimators."
            )
        head = {"estimator": type(part.fitted).__name__, "epsilon": repr(float(part.fitted.epsilon))}
        named = {} if part.label is None else {"name": part.label}
        asked.append(head | {"n_fields": str(len(own))} | params | named)
    return tuple(fields), asked, n_sampled


def paired(estimator: Any, fields: _Fields, joint: Any, n_knots: int) -> tuple[PairField, ...]:
    """Return the fields of pairs of an estimator's columns, each at its whole epsilon."""
    if not isinstance(estimator, _SAMPLERS) or estimator.mechanism_.n_sampled is not None:
        raise ValueError(
            "Pairs need a TablePrivatizer or CategoricalPrivatizer with n_sampled_features='all'; got "
            f"{type(estimator).__name__}."
        )
    columns = {field.name: _column_of(field) for field in fields}
    every = list(combinations(columns, 2))
    named = every if isinstance(joint, str) and joint == "all" else joint
    if not isinstance(named, list | tuple) or not all(isinstance(one, list | tuple) and len(one) == 2 for one in named):
        raise ValueError(f"joint must be 'all' or a list of pairs of columns; got {joint!r:.60}.")
    different = {frozenset(map(str, one)) for one in named}
    if not named or len(different) < len(named) or not different <= set(map(frozenset, every)):
        raise ValueError(f"joint must be different pairs of the columns {list(columns)}; got {joint!r:.200}.")
    made, laws = [], dict[int, Any]()
    for first, second in named:
        both = columns[first], columns[second]
        n_codes = math.prod(n_knots if one.values is None else len(one.values) for one in both)
        if n_codes > MOST_CODES:
            raise ValueError(
                f"A pair must have at most {MOST_CODES} combinations; got {n_codes} of {first} and {second}."
            )
        if n_codes not in laws:
            mechanism = make_categorical_mechanism("best", float(estimator.epsilon), n_codes)
            alone = mechanism.law if isinstance(mechanism, OneHotRandomizedResponse) else mechanism
            laws[n_codes] = alone.integer_law
        made.append(PairField(f"{first} & {second}", both, laws[n_codes], n_knots=n_knots))
    return tuple(made)


def _column_of(field: AnyField) -> CategoryColumn | NumberColumn:
    if isinstance(field, CategoryField):
        return CategoryColumn(field.name, field.values, unknown=field.unknown)
    assert isinstance(field, NumberField)
    kind: dict[str, Any] = {"whole": field.whole, "is_date": field.is_date}
    return NumberColumn(field.name, field.low, field.high, unit=field.unit, missing=field.missing, **kind)


def estimator_of(policy: Policy) -> Any:
    """Build the estimator of a policy, not fitted, and check that it has the same integers."""
    if policy.asked is None:
        raise ValueError("The policy states no parameters of an estimator; it was written by hand.")
    left = iter(policy.fields)
    built = []
    for params in policy.asked:
        fields = tuple(islice(left, int(params["n_fields"])))
        if params["estimator"] not in _ESTIMATORS or not fields:
            raise ValueError(
                f"The policy must name one of {', '.join(_ESTIMATORS)}, and its fields; it was edited or made by "
                "another version."
            )
        try:
            one = _build(params, fields)
            again = _rebuilt_fields(_build(params, fields), fields)
        except (ArithmeticError, KeyError):
            # An epsilon of 1e-300 leaves nothing to divide by, and parameters may be absent.
            one, again = None, ()
        sampled = int(params["n_sampled"]) if _samples_fields(params) else None
        if list(map(_of_estimator, again)) != list(map(_of_estimator, fields)) or sampled != policy.n_sampled:
            raise ValueError(
                "The policy's thresholds do not match its stated parameters; it was edited or made by another version."
            )
        built.append((params.get("name"), one, [name for field in fields for name in field.names]))
    if next(left, None) is not None:
        raise ValueError("The policy's stated parameters must cover all of its fields; it was edited.")
    if len(built) == 1 and built[0][0] is None:
        return built[0][1]
    if any(isinstance(field, VectorField) for field in policy.fields):
        raise ValueError("A vector has no columns to select; got a policy of a ColumnTransformer with a vector.")
    return ColumnTransformer(built)


def _samples_fields(params: Mapping[str, Any]) -> bool:
    """Return whether parameters state a sample of fields, and not one of the numbers of one law."""
    return "n_sampled" in params and params["estimator"] in [kind.__name__ for kind in _SAMPLERS]


def _fields_of(fitted: Any, names: Sequence[str], units: Mapping[str, str], group: str) -> _Fields:
    """Return the fields of a fitted estimator by its column names; `group` names several numbers."""
    mechanism: Any = fitted.mechanism_
    if isinstance(fitted, TablePrivatizer):
        columns = zip(names, fitted.columns_, mechanism.parts, strict=True)
        return tuple(_table_field(name, column, part, units.get(name)) for name, column, part in columns)
    if isinstance(fitted, CategoricalPrivatizer):
        values = zip(names, fitted.categories_, mechanism.parts, strict=True)
        return tuple(_category_field(name, tuple(own.tolist()), part) for name, own, part in values)
    if isinstance(fitted, LabelRR | LabelLaplace):
        return (_category_field(names[0], tuple(fitted.classes_.tolist()), mechanism),)
    law = mechanism.device_law
    if isinstance(fitted, PrivUnitTransformer):
        return (VectorField(group, law, fitted.radius_),)
    low, high = (np.atleast_1d(end).tolist() for end in fitted.bounds_)
    ends = list(zip(names, low, high, strict=True))
    if isinstance(law, GroupLaw):
        numbers = tuple(NumberColumn(name, low, high, unit=units.get(name)) for name, low, high in ends)
        return (NumbersField(group, numbers, law),)
    return tuple(NumberField(name, low, high, law, unit=units.get(name)) for name, low, high in ends)


def _export_params(fitted: Any) -> dict[str, Any]:
    """Return the parameters that the integers of an estimator follow from, beside epsilon and the fields."""
    match fitted:
        case TablePrivatizer():
            # The columns of a sample have equal shares.
            split = {"numbers": [repr(fitted.shares_[name]) for name in fitted.epsilons_]}
            return {"mechanism": fitted.mechanism} | (_sample_of(fitted) or split)
        case NumericPrivatizer():
            return {"mechanism": fitted.mechanism_name_, "n_sampled": str(fitted.n_sampled_features_)}
        case BitRandTransformer():
            if fitted.calibration != "exact" or not fitted.debias:
                raise ValueError(
                    "A policy needs an epsilon that follows from the integers alone: a BitRandTransformer must have "
                    "calibration='exact' and debias=True."
                )
            sampled = fitted.mechanism_.n_sampled
            return {"mechanism": "exact", "n_sampled": str(sampled), "n_bits": str(fitted.n_bits)}
        case TargetPrivatizer():
            prior = getattr(fitted.mechanism_, "prior", None)
            # A learnt prior takes a part of the budget.
            epsilon = getattr(fitted.mechanism_, "epsilon", fitted.epsilon)
            own = {"epsilon": repr(float(epsilon)), "mechanism": fitted.mechanism_name_}
            return own if prior is None else own | {"numbers": [repr(share) for share in prior]}
        case CategoricalPrivatizer():
            return {"mechanism": fitted.mechanism} | _sample_of(fitted)
        case PrivUnitTransformer():
            if fitted.bounds_ is not None:
                raise ValueError(
                    "A policy of a PrivUnitTransformer must have bounds=None, since its device clips norms alone; use "
                    "NumericPrivatizer(mechanism='privunit') for columns within bounds."
                )
    return {"mechanism": type(fitted).__name__}


def _sample_of(fitted: Any) -> dict[str, str]:
    n_sampled = fitted.mechanism_.n_sampled
    return {} if n_sampled is None else {"n_sampled": str(n_sampled)}


def _build(params: Mapping[str, Any], fields: _Fields) -> Any:
    """Build the estimator of stated parameters and fields, not fitted."""
    sample: dict[str, Any] = {"n_sampled_features": int(params["n_sampled"])} if _samples_fields(params) else {}
    epsilon, mechanism = float(params["epsilon"]), params["mechanism"]
    numbers = _numbers(fields)
    bounds: Any = (np.array([one.low for one in numbers]), np.array([one.high for one in numbers]))
    match params["estimator"]:
        case "TablePrivatizer":
            schema = {field.name: _schema_of(field) for field in fields}
            of_categories = _category_mechanisms(fields)
            unknown = {field.unknown for field in fields if isinstance(field, CategoryField)}
            return TablePrivatizer(
                epsilon,
                schema=schema,
                shares="equal" if sample else dict(zip(schema, map(float, params["numbers"]), strict=True)),
                mechanism=mechanism,
                category_mechanism=of_categories if {"krr", *of_categories.values()} != {"krr"} else "krr",
                handle_unknown="missing" if unknown == {None} else "error",
                **sample,
            )
        case "NumericPrivatizer":
            n_sampled = int(params["n_sampled"])
            return NumericPrivatizer(epsilon, mechanism=mechanism, bounds=bounds, n_sampled_features=n_sampled)
        case "BitRandTransformer":
            return BitRandTransformer(
                epsilon,
                n_bits=int(params["n_bits"]),
                bounds=bounds,
                calibration="exact",
                n_sampled_features=int(params["n_sampled"]),
                debias=True,
            )
        case "TargetPrivatizer":
            (column,) = numbers
            prior = [float(share) for share in params["numbers"]] if "numbers" in params else None
            return TargetPrivatizer(epsilon, bounds=(column.low, column.high), mechanism=mechanism, prior=prior)
        case "CategoricalPrivatizer":
            categories = [list(_category(field).values) for field in fields]
            return CategoricalPrivatizer(epsilon, mechanism=mechanism, categories=categories, **sample)
        case "PrivUnitTransformer":
            bound = fields[0].bound if isinstance(fields[0], VectorField) else None
            return PrivUnitTransformer(epsilon, norm="unit" if bound is None else bound)
    (label,) = fields
    return _ESTIMATORS[params["estimator"]](epsilon, classes=list(_category(label).values))


def _rebuilt_fields(built: Any, fields: _Fields) -> _Fields:
    """Return the fields of a built estimator, fitted to public values."""
    names = [name for field in fields for name in field.names]
    if isinstance(built, TablePrivatizer):
        # A fit to named columns would need pandas or polars.
        columns, _ = read_schema(built.schema, names, [None] * len(names))
        of_categories = _category_mechanisms(fields)
        coded = Columns.of({name: column.coded for name, column in zip(names, columns, strict=True)})
        mechanisms = tuple(of_categories.get(name, built.mechanism) for name in names)
        shares, given = built.get_params()["shares"], built.n_sampled_features
        n_sampled = None if given == "all" else int(given)
        weights = [1.0] * len(names) if shares == "equal" else list(shares.values())
        split = sampled_shares(built.epsilon, weights, n_sampled)
        record = MixedRecord(coded, split, mechanisms, n_sampled=n_sampled)
        return tuple(map(_table_field, names, columns, record.parts, [None] * len(names)))
    if isinstance(built, LabelRR | LabelLaplace):
        public: Any = built.classes
    elif isinstance(fields[0], VectorField):
        public = np.zeros((1, fields[0].law.n_values))
    elif isinstance(built, TargetPrivatizer):
        public = [_numbers(fields)[0].low]
    elif isinstance(built, CategoricalPrivatizer):
        public = np.array([[_category(field).values[0] for field in fields]], dtype=object)
    else:
        public = np.array([[one.low for one in _numbers(fields)]])
    return _fields_of(built.fit(public), names, {}, fields[0].name)


# Estimators that can sample columns.
_SAMPLERS = TablePrivatizer, CategoricalPrivatizer

_ESTIMATORS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        *(TablePrivatizer, NumericPrivatizer, BitRandTransformer, TargetPrivatizer, CategoricalPrivatizer),
        *(LabelRR, LabelLaplace, PrivUnitTransformer),
    )
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
    law: Any = mechanism.device_law
    return CategoryField(name, values, law)


def _table_field(name: str, column: DeclaredColumn, mechanism: Any, unit: str | None) -> NumberField | CategoryField:
    if isinstance(column, CategoryColumn):
        return _category_field(name, column.values, mechanism)
    if column.missing == "category":
        raise ValueError(
            "A policy has no law of a number that may be missing as an answer of its own; got 'missing': 'category' "
            f"for {name!r}. Declare 'missing': 'middle' for it, and a category that says whether it is missing."
        )
    law: Any = mechanism.device_law
    return NumberField(name, column.low, column.high, law, unit=unit, whole=column.whole, is_date=column.is_date)


def _schema_of(field: AnyField) -> dict[str, Any]:
    """Return the declaration of a field in a schema."""
    if isinstance(field, NumbersField | PairField | VectorField):
        raise ValueError(f"Each number of a table has its own law; {field.name!r} holds several numbers of one law.")
    if isinstance(field, CategoryField):
        if None in field.values[:-1]:
            raise ValueError(f"The missing category of {field.name!r} must be the last one.")
        return field.domain.to_dict() | ({"missing": "category"} if field.values[-1] is None else {})
    missing = {"missing": "middle"} if field.missing == field.center else {}
    if field.is_date:
        low, high = (str(np.datetime64(int(day), "D")) for day in (field.low, field.high))
        return {"type": "dates", "low": low, "high": high} | missing
    return field.domain.to_dict() | missing


def _of_estimator(field: AnyField) -> AnyField:
    """Return a field without units, stand-ins and steps, which only policies have."""
    if isinstance(field, CategoryField):
        return replace(field, unknown=...)
    if isinstance(field, NumberField):
        return replace(field, unit=None, missing=None, steps=None)
    if isinstance(field, VectorField):
        return field
    assert isinstance(field, NumbersField)
    columns = tuple(replace(column, unit=None, missing=None) for column in field.columns)
    return replace(field, columns=columns, steps=None)


def _numbers(fields: _Fields) -> list[NumberColumn]:
    """Return the columns of numbers."""
    return [
        one
        for field in fields
        if isinstance(field, NumberField | NumbersField)
        for one in (field.columns if isinstance(field, NumbersField) else [field])
    ]


def _category(field: AnyField) -> CategoryField:
    if not isinstance(field, CategoryField):
        raise ValueError(f"The estimator needs categories; field {field.name!r} is a number.")
    return field


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
            chosen = _chosen(of_table, columns)
            if chosen and not (isinstance(transformer, str) and transformer == "drop"):
                yield from _parts(transformer, chosen, own)
    elif type(estimator) not in _ESTIMATORS.values():
        raise ValueError(
            f"A policy is made from one of {', '.join(_ESTIMATORS)}, a ColumnTransformer of these, or a Pipeline that "
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


def _chosen(names: list[str], columns: Any) -> list[str]:
    """Return the names of the columns of a part of a ColumnTransformer."""
    if isinstance(columns, str):
        return [columns]
    if isinstance(columns, slice):
        if isinstance(columns.start, str) or isinstance(columns.stop, str):
            raise ValueError("Columns must be a list of names, places or a mask; got a slice of names.")
        return names[columns]
    # scikit-learn 1.6 gives the remainder as a list that warns when it is read.
    held: Any = columns.data if isinstance(columns, UserList) else columns
    listed: list[Any] = list(held) if np.ndim(held) else [held]
    if all(isinstance(one, str) for one in listed):
        return listed
    return np.array(names, dtype=object)[np.asarray(listed)].tolist()
