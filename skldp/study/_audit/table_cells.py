"""Released tables as an attacker reads them: their cells, and how likely these are for each record."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp._reading import is_missing
from skldp.estimators._schema import columns_of
from skldp.estimators._table import TablePrivatizer
from skldp.estimators._table_encoding import as_one_hot, widths
from skldp.mechanisms._categorical.randomized_response import RandomizedResponse
from skldp.mechanisms._categorical.unary import OneHotMechanism
from skldp.mechanisms._number_or_missing import NumberOrMissing
from skldp.mechanisms._numeric.additive import Laplace
from skldp.mechanisms._numeric.bounded_features import BoundedFeatures
from skldp.mechanisms._numeric.duchi import Duchi
from skldp.mechanisms._numeric.piecewise import Piecewise
from skldp.mechanisms._numeric.three_outputs import ThreeOutputs
from skldp.mechanisms._odds import TWO_64
from skldp.mechanisms._rows import RowMechanism

__all__ = [
    "as_rows",
    "cell_likelihood",
    "declared_cells",
    "distinct_rows",
    "likeliest_records",
    "likelihood_is_known",
    "plain_numbers",
    "record_epsilons",
    "released_record",
    "rows_at",
]

_Floats = npt.NDArray[np.float64]

# The few answers of a law are further apart than this, relatively, and bounds move a released number by far less.
_NEAR = 2.0**-24
# The same of a lattice, in its steps.
_OFF_LATTICE = 2.0**-8


def rows_at(known: Any, places: npt.NDArray[np.int64]) -> Any:
    """Rows of an array, or of a frame of pandas or polars, in a frame of that kind."""
    return known.iloc[places] if hasattr(known, "iloc") else known[places]


def as_rows(released: Any) -> Any:
    """A release as something that numpy makes an array of, whatever types its columns have."""
    return np.array(released.rows(), dtype=object) if hasattr(released, "get_columns") else released


def distinct_rows(frame: Any) -> int:
    """How many different rows a frame has."""
    columns = [[None if is_missing(value) else value for value in values.tolist()] for values in columns_of(frame)]
    return len(set(zip(*columns, strict=True)))


def declared_cells(release: TablePrivatizer, table: Any) -> _Floats:
    """The columns of the schema as numbers and places of categories, shape (n_samples, n_columns)."""
    names = release.mechanism_.columns.names
    cells = [
        column.as_numbers(values, str(name), unknown=release.handle_unknown)
        for name, column, values in zip(names, release.columns_, columns_of(table), strict=True)
    ]
    return np.column_stack(cells).astype(np.float64)


def released_record(release: TablePrivatizer, outputs: np.ndarray) -> _Floats:
    """What the mechanism answered, from ``encoding="onehot"`` or ``"columns"``: shape (n_trials, n_outputs)."""
    if release.encoding == "columns":
        return declared_cells(release, outputs)
    sizes = widths(release.columns_)
    answers = [
        _answer(part, outputs[:, end - size : end])
        for part, end, size in zip(release.mechanism_.parts, np.cumsum(sizes), sizes, strict=True)
    ]
    return np.concatenate(answers, axis=1, dtype=np.float64)


def _answer(part: RowMechanism, encoded: np.ndarray) -> np.ndarray:
    """The answer that was written out as these columns."""
    if isinstance(part, RandomizedResponse):
        return encoded.argmax(axis=1)[:, None]
    return np.where(encoded[:, 1:] == 1, np.nan, encoded[:, :1]) if isinstance(part, NumberOrMissing) else encoded


def plain_numbers(release: TablePrivatizer, outputs: np.ndarray) -> np.ndarray:
    """A release as a decoder learns from it: categories as columns of 0 and 1."""
    if release.encoding != "columns":
        return outputs
    return as_one_hot(declared_cells(release, outputs), release.mechanism_, release.columns_)


def likelihood_is_known(release: TablePrivatizer) -> bool:
    """Whether an encoding shows what was answered: estimates are sums, and a frame holds dates as whole days."""
    of_days = any(column.is_date for column in release.columns_)
    return release.encoding == "onehot" or (release.encoding == "columns" and not of_days)


def record_epsilons(release: TablePrivatizer, cells: _Floats) -> _Floats:
    """An epsilon of every two records: of the columns in which they differ, which are released independently."""
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
    """Of each column the different values within its domain, and which of them each record has."""
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
        # Whether the category is in the answer is all that tells it from another, and epsilon is how much that tells.
        return released[:, int(value)] * mechanism.exact_epsilon
    if isinstance(mechanism, NumberOrMissing):
        is_missing, missing = math.isnan(value), np.isnan(released[:, 0])
        told = mechanism.told_probability if is_missing else mechanism.hidden_probability
        there = np.where(missing, mechanism.values.middle, released[:, 0])[:, None]
        number = cell_likelihood(mechanism.number, there, mechanism.values.middle if is_missing else value)
        return np.where(missing, math.log(told), math.log1p(-told) + number)
    assert isinstance(mechanism, BoundedFeatures)
    unit, center, radius = mechanism.mechanism, float(mechanism.center[0]), float(mechanism.radius[0])
    answers, place = (released[:, 0] - center) / radius, min(1.0, max(-1.0, (value - center) / radius))
    if isinstance(unit, Laplace):
        return unit.log_likelihood(np.rint(answers / unit.step) * unit.step, place)
    with np.errstate(divide="ignore"):
        return np.log(_chances(unit, answers, place))


def _chances(mechanism: Any, released: _Floats, value: float) -> _Floats:
    """The probability of answers of a law of one number in [-1, 1] that has a largest one."""
    if isinstance(mechanism, Piecewise):
        return _of_lattice(mechanism, released, value)
    if isinstance(mechanism, Duchi | ThreeOutputs):
        answers, weights = mechanism.output_law(value)
        same = np.abs(released[:, None] - answers) <= _NEAR * np.maximum(1.0, np.abs(answers))
        return np.asarray(same @ np.array([weight / TWO_64 for weight in weights]))
    share = mechanism.threshold / TWO_64
    few = _chances(mechanism.few_valued, released, value)
    return few * (1 - share) + _of_lattice(mechanism.piecewise, released, value) * share


def _of_lattice(mechanism: Piecewise, released: _Floats, value: float) -> _Floats:
    """The integer weight of each cell, of their sum: all have one, and what lies in the inner interval has more."""
    n_cells, n_inner, base, extra = mechanism.lattice
    steps = released / mechanism.step
    cell = np.rint(steps)
    on_lattice = (np.abs(steps - cell) <= _OFF_LATTICE) & (np.abs(cell) <= n_cells // 2)
    after = cell + (n_cells // 2 + 1) - (value * mechanism.reach + (n_cells - n_inner) // 2)
    inside = np.clip(after, 0, n_inner) - np.clip(after - 1, 0, n_inner)
    return np.where(on_lattice, (base + extra * inside) / (n_cells * base + n_inner * extra), 0.0)
