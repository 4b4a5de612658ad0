"""Audit of records of tables: the likelihood of cells, and the bound by the columns in which two records differ."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp.estimators._schema import columns_of
from skldp.estimators._table import TablePrivatizer
from skldp.estimators._table_encoding import widths
from skldp.laws._lattice import LatticeLaw, MixtureLaw
from skldp.laws._odds import TWO_64
from skldp.mechanisms._rows import RowMechanism
from skldp.mechanisms.categorical._one_hot import OneHotMechanism
from skldp.mechanisms.categorical._randomized_response import RandomizedResponse
from skldp.mechanisms.numeric._additive import Laplace
from skldp.mechanisms.numeric._bounded_features import BoundedFeatures, NumberOrMissing
from skldp.study import audit_inversion
from skldp.study._inversion import InversionResult, pairwise_share

__all__ = ["audit_table", "cell_likelihood", "declared_cells", "record_epsilons"]

_Floats = npt.NDArray[np.float64]

# Largest number of records whose pairs are compared one by one.
_MOST_RECORDS = 2_000

# Relative tolerance for the answers of a law, below their distances and above the rounding of released numbers.
_NEAR = 2.0**-24
# Tolerance for answers on a lattice, in steps.
_OFF_LATTICE = 2.0**-8


def audit_table(release: TablePrivatizer, people: Any, **options: Any) -> InversionResult:
    """Audit records of a table by :func:`skldp.study.audit_inversion`, and by the likelihood of their cells.

    The likelihood of a record is the product over its cells; ``encoding="estimates"`` has none, nor has ``"columns"``
    with dates. The bound is that of all pairs of records, each with the epsilons of the columns in which they differ.
    """
    cells = declared_cells(release, people)
    attacks = {}
    if likelihood_is_known(release):
        attacks["likelihood"] = lambda outputs: likeliest_records(release, cells, released_record(release, outputs))
    result = audit_inversion(release, people, attacks=attacks, **options)
    if not math.isfinite(result.epsilon) or len(cells) > _MOST_RECORDS:
        return result
    epsilons = record_epsilons(release, cells)
    return replace(result, epsilon=min(result.epsilon, float(epsilons.max())), bound=pairwise_share(epsilons))


def declared_cells(release: TablePrivatizer, table: Any) -> _Floats:
    """Return the columns of the schema as numbers and codes of categories, of shape (n_samples, n_columns)."""
    refuse = release.handle_unknown == "error"
    cells = [
        column.as_numbers(values, refuse_unknown=refuse)
        for column, values in zip(release.columns_, columns_of(table), strict=True)
    ]
    return np.column_stack(cells).astype(np.float64)


def released_record(release: TablePrivatizer, outputs: np.ndarray) -> _Floats:
    """Return the answers that ``encoding="onehot"`` or ``"columns"`` shows, of shape (n_trials, n_outputs)."""
    if release.encoding == "columns":
        return declared_cells(release, outputs)
    sizes = widths(release.columns_)
    answers = [
        _answer(part, outputs[:, end - size : end])
        for part, end, size in zip(release.mechanism_.parts, np.cumsum(sizes), sizes, strict=True)
    ]
    return np.concatenate(answers, axis=1, dtype=np.float64)


def _answer(part: RowMechanism, encoded: np.ndarray) -> np.ndarray:
    """Return the answer that these columns encode."""
    if isinstance(part, RandomizedResponse):
        return encoded.argmax(axis=1)[:, None]
    return np.where(encoded[:, 1:] == 1, np.nan, encoded[:, :1]) if isinstance(part, NumberOrMissing) else encoded


def likelihood_is_known(release: TablePrivatizer) -> bool:
    """Return whether an encoding shows the answers: estimates are sums, and a frame holds dates as integers of days."""
    of_days = any(column.is_date for column in release.columns_)
    return release.encoding == "onehot" or (release.encoding == "columns" and not of_days)


def record_epsilons(release: TablePrivatizer, cells: _Floats) -> _Floats:
    """Return the epsilon of every two records: the sum over the columns in which they differ."""
    total = np.zeros((len(cells), len(cells)))
    for (_, place), epsilon in zip(_values(release, cells), release.mechanism_.exact_epsilons, strict=True):
        total += epsilon * (place[:, None] != place)
    # Each addition rounds by at most 2^-53 of the sum.
    return total * (1 + len(release.columns_) * 2.0**-52)


def likeliest_records(release: TablePrivatizer, cells: _Floats, released: _Floats) -> npt.NDArray[np.int64]:
    """For each release the first of the records that make it likeliest.

    Shapes: cells (n_candidates, n_columns), released (n_trials, n_outputs); returns (n_trials,).
    """
    record = release.mechanism_
    columns = _values(release, cells)
    of_cells = [
        np.stack([cell_likelihood(part, released[:, own], value) for value in values.tolist()])
        for part, own, (values, _) in zip(record.parts, record.places, columns, strict=True)
    ]
    best = np.full(len(released), -np.inf)
    guess = np.zeros(len(released), dtype=np.int64)
    for candidate, places in enumerate(zip(*(place.tolist() for _, place in columns), strict=True)):
        total = sum(column[place] for column, place in zip(of_cells, places, strict=True))
        better = total > best
        best[better], guess[better] = total[better], candidate
    return guess


def _values(release: TablePrivatizer, cells: _Floats) -> list[tuple[_Floats, npt.NDArray[np.int64]]]:
    """Return for each column its distinct values within the domain, and the index of the value of each record."""
    within = release.mechanism_.domain.clip(cells).rows
    found = (np.unique(column, return_inverse=True) for column in within.T)
    return [(values, place.reshape(-1)) for values, place in found]


def cell_likelihood(mechanism: RowMechanism, released: _Floats, value: float) -> _Floats:
    """The log-probability of what was answered about a column, for one value of it; of sets, but for a constant.

    Shapes: released (n, mechanism.n_outputs); returns (n,).
    """
    if isinstance(mechanism, RandomizedResponse):
        return mechanism.log_likelihood(released[:, 0].astype(np.int64), int(value))
    if isinstance(mechanism, OneHotMechanism):
        # The likelihood ratio of two categories depends only on whether the answer contains them.
        return released[:, int(value)] * mechanism.exact_epsilon
    if isinstance(mechanism, NumberOrMissing):
        is_missing, missing = math.isnan(value), np.isnan(released[:, 0])
        told = mechanism.p_given_missing if is_missing else mechanism.p_given_present
        there = np.where(missing, mechanism.values.center, released[:, 0])[:, None]
        number = cell_likelihood(mechanism.number, there, mechanism.values.center if is_missing else value)
        return np.where(missing, math.log(told), math.log1p(-told) + number)
    assert isinstance(mechanism, BoundedFeatures)
    unit, center, radius = mechanism.mechanism, float(mechanism.center[0]), float(mechanism.radius[0])
    answers, place = (released[:, 0] - center) / radius, min(1.0, max(-1.0, (value - center) / radius))
    if isinstance(unit, Laplace):
        return unit.log_likelihood(np.rint(answers / unit.step) * unit.step, place)
    with np.errstate(divide="ignore"):
        return np.log(_chances(unit.integer_law, answers, place))


def _chances(law: Any, released: _Floats, value: float) -> _Floats:
    """Return the probability of answers of a law of one number in [-1, 1]."""
    if isinstance(law, LatticeLaw):
        return _of_lattice(law, released, value)
    if isinstance(law, MixtureLaw):
        few = _chances(law.few, released, value)
        return few * (1 - law.share) + _of_lattice(law.lattice, released, value) * law.share
    answers, weights = law.support(value)
    same = np.abs(released[:, None] - answers) <= _NEAR * np.maximum(1.0, np.abs(answers))
    return np.asarray(same @ np.array([weight / TWO_64 for weight in weights]))


def _of_lattice(law: LatticeLaw, released: _Floats, value: float) -> _Floats:
    """Return the probability of each cell: all cells have one weight, those of the inner interval more."""
    steps = released / law.step
    cell = np.rint(steps)
    on_lattice = (np.abs(steps - cell) <= _OFF_LATTICE) & (np.abs(cell) <= law.n_cells // 2)
    after = cell + (law.n_cells // 2 + 1) - (value * law.reach + (law.n_cells - law.n_inner) // 2)
    inside = np.clip(after, 0, law.n_inner) - np.clip(after - 1, 0, law.n_inner)
    return np.where(on_lattice, (law.base + law.extra * inside) / law.total, 0.0)
