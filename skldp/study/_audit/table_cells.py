"""Released tables as an attacker reads them: their cells, and how likely these are for each record."""

from typing import Any

import numpy as np
import numpy.typing as npt

from skldp._untold import untold
from skldp.estimators._schema import columns_of
from skldp.estimators._table import TablePrivatizer
from skldp.mechanisms._categorical.randomized_response import RandomizedResponse
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
    "one_hot_cells",
    "record_epsilons",
    "released_cells",
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
    with untold("candidates must hold values that can be told apart", frame):
        columns = [
            [None if nothing else value for value, nothing in zip(values.tolist(), missing.tolist(), strict=True)]
            for values, missing in columns_of(frame)
        ]
        return len(set(zip(*columns, strict=True)))


def declared_cells(release: TablePrivatizer, table: Any) -> _Floats:
    """The columns of the schema as numbers and places of categories, shape (n_samples, n_columns)."""
    names = release.mechanism_.columns.names
    cells = [
        column.as_numbers(values, missing, str(name), unknown=release.handle_unknown)
        for name, column, (values, missing) in zip(names, release.columns_, columns_of(table), strict=True)
    ]
    return np.column_stack(cells).astype(np.float64)


def released_cells(release: TablePrivatizer, outputs: np.ndarray) -> _Floats:
    """The same of a release, in whichever encoding it is."""
    if release.encoding == "columns":
        return declared_cells(release, outputs)
    widths = [len(column.values) if column.values else 1 for column in release.columns_]
    parts = np.split(outputs, np.cumsum(widths)[:-1], axis=1)
    cells = [
        part.argmax(axis=1) if column.values else part[:, 0]
        for part, column in zip(parts, release.columns_, strict=True)
    ]
    return np.column_stack(cells).astype(np.float64)


def one_hot_cells(release: TablePrivatizer, cells: _Floats) -> _Floats:
    """Cells as a decoder learns from them: a column of 0 and 1 for each category."""
    columns = [
        cell[:, None] == np.arange(len(column.values)) if column.values else cell[:, None]
        for cell, column in zip(cells.T, release.columns_, strict=True)
    ]
    return np.concatenate(columns, axis=1).astype(np.float64)


def likelihood_is_known(release: TablePrivatizer) -> bool:
    """Whether cells are what was drawn, by laws that are known here: a frame holds dates as whole days."""
    known = all(isinstance(part, BoundedFeatures | RandomizedResponse) for part in release.mechanism_.parts)
    return known and (release.encoding == "onehot" or not any(column.is_date for column in release.columns_))


def record_epsilons(release: TablePrivatizer, cells: _Floats) -> _Floats:
    """An epsilon of every two records: of the columns in which they differ, which are released independently."""
    within = release.mechanism_.domain.clip(cells).rows
    total = np.zeros((len(cells), len(cells)))
    for column, epsilon in zip(within.T, release.mechanism_.exact_epsilons, strict=True):
        total += epsilon * (column[:, None] != column)
    return total


def likeliest_records(release: TablePrivatizer, known: _Floats, released: _Floats) -> npt.NDArray[np.int64]:
    """For each release the first of the records that make it likeliest.

    Parameters
    ----------
    release : TablePrivatizer
    known, released : ndarray of shape (n_candidates, n_columns) and (n_trials, n_columns)
        Their cells.

    Returns
    -------
    ndarray of shape (n_trials,)
    """
    within = release.mechanism_.domain.clip(known).rows
    of_cells, places = [], []
    for part, own, answers in zip(release.mechanism_.parts, within.T, released.T, strict=True):
        values, place = np.unique(own, return_inverse=True)
        of_cells.append(np.stack([cell_likelihood(part, answers, float(value)) for value in values]))
        places.append(place.reshape(-1))
    best = np.full(len(released), -np.inf)
    guess = np.zeros(len(released), dtype=np.int64)
    for record, cells in enumerate(zip(*places, strict=True)):
        total = sum(column[cell] for column, cell in zip(of_cells, cells, strict=True))
        better = total > best
        best[better], guess[better] = total[better], record
    return guess


def cell_likelihood(mechanism: RowMechanism, released: _Floats, value: float) -> _Floats:
    """The log-probability of released cells of a column, for one value of it.

    Parameters
    ----------
    mechanism : RowMechanism
        Of a column of a :class:`~skldp.mechanisms.MixedRecord`.
    released : ndarray of shape (n,)
    value : float

    Returns
    -------
    ndarray of shape (n,)
        Of numbers, of the answer that the released one is to rounding.
    """
    if isinstance(mechanism, RandomizedResponse):
        return mechanism.log_likelihood(released.astype(np.int64), int(value))
    assert isinstance(mechanism, BoundedFeatures)
    unit, center, radius = mechanism.mechanism, float(mechanism.center[0]), float(mechanism.radius[0])
    answers, place = (released - center) / radius, min(1.0, max(-1.0, (value - center) / radius))
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
