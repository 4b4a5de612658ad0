"""The fields of a policy as a survey asks for them: scores of their answers, and the names of their parts."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp._checks import is_number, is_whole
from skldp._reading import CodeReader, Unread
from skldp._value_labels import number_label, value_labels
from skldp.client import CategoryField, NumberField
from skldp.client._columns import NumberColumn
from skldp.learning._answer_scores import CellScores, PartScores, Scores, code_scores, number_parts
from skldp.learning._bucket_scores import BucketScores
from skldp.mechanisms._longitudinal_laws import LongitudinalHistogramLaw

__all__ = ["Bins", "bins_of", "category_code", "parts_of", "weights_of"]

_Floats = npt.NDArray[np.float64]
# Bins in which numbers are supposed to be spread evenly, of which shown ones are sums: the larger epsilon is, the less
# noise there is to hide that they are not.
_FINE, _FINE_PER_EPSILON = 24, 16
_MOST_WHOLE = 64
_SHOWN = 8
_MOST_BINS = 256


class Bins:
    """Bins of a number's bounds, each of some finer ones.

    Parameters
    ----------
    field : NumberField
    edges : ndarray of shape (n_bins + 1,)
        Ascending, from the lower bound to the upper one. A whole number is in the bin that begins at it.

    Attributes
    ----------
    labels : tuple of str
    whole : bool
        Whether each finer bin is one whole number, so that nothing is supposed.
    fine : CellScores or BucketScores
        Of the finer bins.
    fine_edges : ndarray of shape (n_fine + 1,)
    combine : ndarray of shape (n_bins, n_fine)
        Which of the finer bins are of which bin.
    """

    def __init__(self, field: NumberField, edges: _Floats) -> None:
        last = len(edges) - 2
        self.edges = edges
        pairs = pairwise(map(number_label, edges))
        self.labels = tuple(f"[{low}, {high}{')]'[i == last]}" for i, (low, high) in enumerate(pairs))
        self.whole = _is_short(field)
        self.fine: CellScores | BucketScores
        if isinstance(field.law, LongitudinalHistogramLaw):
            self.fine_edges, self.fine = bucket_edges(field, field.law), BucketScores(field.law)
            of_fine = np.searchsorted(edges, self.fine_edges[:-1], side="right") - 1
            self.combine = (of_fine == np.arange(last + 1)[:, None]).astype(np.float64)
            return
        if self.whole:
            whole = np.arange(field.low, field.high + 1)
            self.fine_edges, low, high = np.append(whole, field.high + 1), whole, whole
            of_fine = np.minimum(np.searchsorted(edges, whole, side="right") - 1, last)
            if field.high - field.low + 1 == len(edges) - 1:
                self.labels = tuple(map(number_label, whole))
        else:
            n_fine = min(_MOST_BINS, _FINE + round(_FINE_PER_EPSILON * field.epsilon))
            n_each = -(-n_fine // (last + 1))
            steps = [np.linspace(a, b, n_each, endpoint=False) for a, b in pairwise(edges)]
            self.fine_edges = np.append(np.concatenate(steps), edges[-1])
            low, high = self.fine_edges[:-1], self.fine_edges[1:]
            if field.whole:
                # The whole numbers from one edge to below the next, with half of one around each.
                self.fine_edges = np.unique(np.append(np.ceil(self.fine_edges[:-1]), np.floor(edges[-1]) + 1))
                low, high = self.fine_edges[:-1] - 0.5, self.fine_edges[1:] - 0.5
            of_fine = np.clip(np.searchsorted(edges, self.fine_edges[:-1], side="right") - 1, 0, last)
        center, radius = center_and_radius(field)
        ends = (np.clip((end - center) / radius, -1.0, 1.0) for end in (low, high))
        self.fine = number_parts(field.law, *ends)
        self.combine = (of_fine == np.arange(last + 1)[:, None]).astype(np.float64)

    @property
    def scores(self) -> CellScores | BucketScores:
        """Of the bins."""
        return self.fine.combined(self.combine)

    def up_to(self, places: _Floats) -> CellScores | BucketScores:
        """Of whether a number is below each place among the finer bins; inside one, in proportion."""
        widths = np.diff(self.fine_edges)
        return self.fine.combined(np.clip((places[:, None] - self.fine_edges[:-1]) / widths, 0.0, 1.0))


def center_and_radius(field: NumberField | NumberColumn) -> tuple[float, float]:
    """The middle of a number's bounds, and half their distance."""
    return field.low / 2 + field.high / 2, field.high / 2 - field.low / 2


def bucket_edges(field: NumberField, law: LongitudinalHistogramLaw) -> _Floats:
    """The edges of a law's buckets, between the bounds of its number."""
    return np.linspace(field.low, field.high, law.n_buckets + 1)


def bins_of(field: NumberField, bins: int | Sequence[float] | None) -> Bins:
    """Bins of a number.

    Parameters
    ----------
    field : NumberField
    bins : int, sequence of float or None
        How many equal ones, or their ascending edges, to which the bounds are added where they miss. None is one for
        each of up to 64 whole numbers, else 8.

    Raises
    ------
    ValueError
        If there are too many, edges do not ascend within the bounds, or the law does not tell so many apart.
    """
    if isinstance(field.law, LongitudinalHistogramLaw):
        return _bins_of_buckets(field, bucket_edges(field, field.law), bins)
    if bins is None and _is_short(field):
        return Bins(field, np.arange(field.low, field.high + 2))
    n = _SHOWN if bins is None else bins
    if isinstance(n, int | np.integer) and is_whole(n):
        if not 1 <= n <= _MOST_BINS:
            raise ValueError(f"bins must be from 1 to {_MOST_BINS}. Got {bins!r} instead.")
        return Bins(field, np.linspace(field.low, field.high, int(n) + 1))
    if not isinstance(n, Sequence | np.ndarray) or not all(map(is_number, n)):
        raise ValueError(f"bins must be a number of bins, or their edges. Got {bins!r} instead.")
    inner = [float(edge) for edge in n]
    if inner != sorted(set(inner)) or not all(field.low <= edge <= field.high for edge in inner):
        raise ValueError(
            f"Edges must ascend within [{number_label(field.low)}, {number_label(field.high)}]. Got {bins!r} instead."
        )
    all_edges = np.unique([field.low, *inner, field.high])
    if len(all_edges) > _MOST_BINS:
        raise ValueError(f"bins must be at most {_MOST_BINS}. Got {len(all_edges) - 1} instead.")
    return Bins(field, all_edges)


def _bins_of_buckets(field: NumberField, edges: _Floats, bins: int | Sequence[float] | None) -> Bins:
    n = len(edges) - 1 if bins is None else bins
    if is_whole(n) and isinstance(n, int | np.integer) and n >= 1 and (len(edges) - 1) % n == 0:
        return Bins(field, edges[:: (len(edges) - 1) // int(n)])
    if isinstance(n, Sequence | np.ndarray) and np.isin(n, edges).all() and (np.diff(n) > 0).all():
        return Bins(field, np.unique([field.low, *n, field.high]))
    raise ValueError(f"bins must be of whole buckets, of which {field.name!r} has {len(edges) - 1}. Got {bins!r}.")


def category_code(field: CategoryField, value: Any) -> int:
    """The place of a value in the list of a field.

    Raises
    ------
    ValueError
        If it is not in there.
    """
    found = CodeReader(field.values).read(value)
    if found is Unread.MISSING and None in field.values:
        return field.values.index(None)
    if isinstance(found, Unread):
        raise ValueError(f"A category must be one of the values of {field.name!r}. Got {value!r} instead.")
    return int(found)


def parts_of(field: CategoryField | NumberField) -> tuple[tuple[str, ...], PartScores]:
    """The names and scores of categories, or of the usual bins."""
    if isinstance(field, CategoryField):
        return value_labels(field.values), code_scores(field.law)
    bins = bins_of(field, None)
    return bins.labels, bins.scores


def weights_of(
    fields: Mapping[str, CategoryField | NumberField],
    answers: Mapping[str, npt.NDArray[np.unsignedinteger[Any]]],
    where: Mapping[str, Any],
    n: int,
) -> Scores:
    """The scores of whether records are as asked: the product of those of each field.

    Parameters
    ----------
    fields, answers : dict by name
    where : dict by name
        Of a category a value or a list of values, of a number the ends (low, high) between which it is.
    n : int
        How many reports there are.

    Raises
    ------
    ValueError
        If something else is asked.
    """
    weights = Scores(np.ones(n), 1.0, 1.0)
    for name, wanted in where.items():
        field = fields[name]
        if isinstance(field, CategoryField):
            values = wanted if isinstance(wanted, list) else [wanted]
            codes = sorted({category_code(field, value) for value in values})
            if not codes:
                raise ValueError(f"A filter of {name!r} must have a value. Got an empty list instead.")
            one = code_scores(field.law).of(answers[name], codes)
        else:
            if not isinstance(wanted, tuple) or len(wanted) != 2 or not all(map(is_number, wanted)):
                raise ValueError(f"A filter of the number {name!r} must be (low, high). Got {wanted!r} instead.")
            low, high = (float(end) for end in wanted)
            if not (low < high and field.low < high and low <= field.high):
                raise ValueError(
                    f"A filter of {name!r} must have low < high within its bounds. Got {wanted!r} instead."
                )
            ends = [end for end in (low, high) if field.low < end < field.high]
            bins = bins_of(field, None if _is_short(field) else ends)
            inside = [i for i, edge in enumerate(bins.edges[:-1]) if low <= edge < high]
            combine = bins.combine[inside].sum(axis=0, keepdims=True)
            one = bins.fine.combined(combine).of(answers[name], [0])
        weights = weights.times(one)
    return weights


def _is_short(field: NumberField) -> bool:
    """Whether it has so few whole numbers that each is a bin, which buckets need not follow."""
    ends = field.low.is_integer() and field.high.is_integer() and not isinstance(field.law, LongitudinalHistogramLaw)
    return field.whole and ends and field.high - field.low < _MOST_WHOLE
