"""Division of one epsilon over the columns of a record: by weights, or over a sample of columns."""

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import compress
from typing import Literal

from skldp._checks import check_choice, check_epsilon, check_integer, check_positive
from skldp.domains._column import Column
from skldp.domains._domain import Codes, Domain
from skldp.laws._odds import round_down, split_epsilon
from skldp.mechanisms.categorical._one_hot import CATEGORICAL_MECHANISMS, make_categorical_mechanism
from skldp.mechanisms.numeric._bounded_features import (
    NUMERIC_MECHANISMS,
    NumberOrMissing,
    best_mechanism,
    make_mechanism,
)
from skldp.mechanisms.numeric._unit_mechanisms import UnitMechanism


def n_categories(domain: Domain) -> int | None:
    """Return the number of categories of a column; None for numbers."""
    if isinstance(domain, Codes) and domain.n_features == 1:
        return domain.sizes[0]
    if not isinstance(domain, Column):
        raise ValueError(f"Each part of a record must be a Column, or Codes of one; got {type(domain).__name__}.")
    return None if domain.values is None else len(domain.values)


def share_out(epsilon: float, weights: Sequence[float]) -> tuple[float, ...]:
    """Split an epsilon in proportion to weights, each share rounded down."""
    check_epsilon(epsilon)
    for weight in weights:
        check_positive("Every weight", weight)
    total = sum(map(Fraction, map(float, weights)), Fraction(0))
    exact = [Fraction(float(epsilon)) * Fraction(float(weight)) / total for weight in weights]
    return tuple(map(round_down, exact))


def sampled_shares(
    epsilon: float, domains: Sequence[Domain], weights: Sequence[float], n_sampled: int | None
) -> tuple[float, ...]:
    """Split an epsilon over the columns by weights, or equally over the `n_sampled` of a row."""
    if n_sampled is not None:
        return (split_epsilon(epsilon, n_sampled),) * len(domains)
    # A column with one possible value spends nothing, whatever its epsilon.
    several = [n_categories(domain) != 1 for domain in domains]
    if not any(several):
        return share_out(epsilon, weights)
    shares = iter(share_out(epsilon, list(compress(weights, several))))
    return tuple(next(shares) if one else float(epsilon) for one in several)


def _variance(size: int | None, may_be_missing: bool, mechanism: str, epsilon: float) -> float:
    """Return the worst-case variance of one person's estimate of a number or frequency."""
    if size is not None:
        return make_categorical_mechanism(mechanism, epsilon, size).worst_case_variance
    if may_be_missing:
        return NumberOrMissing.of(Column(-1, 1, missing="category"), epsilon, mechanism).worst_variance
    return number_mechanism(epsilon, mechanism).worst_variance


def number_mechanism(epsilon: float, mechanism: str) -> UnitMechanism:
    return best_mechanism(epsilon, 1)[1] if mechanism == "best" else make_mechanism(mechanism, epsilon)


def mechanism_names(mechanism: str | tuple[str, ...], domains: Sequence[Domain]) -> tuple[str, ...]:
    """Return the name of each column's mechanism."""
    if isinstance(mechanism, str):
        return tuple(mechanism if n_categories(domain) is None else "krr" for domain in domains)
    if len(mechanism) != len(domains):
        raise ValueError(f"mechanism must be one for each of {len(domains)} columns; got {mechanism!r}.")
    for name, domain in zip(mechanism, domains, strict=True):
        known = NUMERIC_MECHANISMS if n_categories(domain) is None else CATEGORICAL_MECHANISMS
        check_choice("The mechanism of a column", name, (*known, "best"))
    return mechanism


# Variance between people of a number in half-widths, uniform within its bounds.
_OF_PEOPLE = 1 / 3


def automatic_n_asked(domains: Sequence[Domain], epsilon: float, mechanism: str | tuple[str, ...] = "best") -> int:
    """Return s of m columns with the least (m / s) sum_j (V_j(epsilon / s) + W_j), V of noise, W between people."""
    check_epsilon(epsilon)
    named = zip(domains, mechanism_names(mechanism, domains), strict=True)
    kinds = [(n_categories(one), one.may_be_nan, name) for one, name in named]
    columns = Counter(kind for kind in kinds if kind[0] != 1)
    m = max(1, columns.total())

    def error(n_asked: int) -> float:
        share = split_epsilon(epsilon, n_asked)
        each = (n * (_variance(*kind, share) + _between(kind[0])) for kind, n in columns.items())
        return m / n_asked * sum(each)

    # Below an epsilon of 1/2 a column, the noise is far above W, and more columns are never better.
    return min(range(1, min(m, math.ceil(2 * epsilon)) + 1), key=error)


def number_of_sampled_columns(
    given: int | Literal["auto", "all"], domains: Sequence[Domain], epsilon: float, mechanism: str | tuple[str, ...]
) -> int | None:
    """Resolve ``"auto"``, ``"all"`` or a number into the `n_sampled` of a record, None for all columns."""
    m = sum(n_categories(domain) != 1 for domain in domains)
    if given == "all":
        return None
    if given == "auto":
        found = automatic_n_asked(domains, epsilon, mechanism)
    else:
        check_integer("n_sampled_features, if not 'auto' or 'all',", given, least=1, most=max(m, 1))
        found = int(given)
    return found if found < m else None


def _between(size: int | None) -> float:
    """Return the variance between people of a uniform column: of a number, or of a category's indicator."""
    return _OF_PEOPLE if size is None else (size - 1) / size**2
