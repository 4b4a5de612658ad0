"""Bins, distributions, filters and scores of the fields of a policy."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp._checks import is_integer, is_number
from skldp._reading import CodeReader, Unread
from skldp._value_labels import value_labels
from skldp.client._fields import AnyField, Field
from skldp.collection._answer_scores import (
    CellScores,
    CodeScores,
    PartScores,
    Scores,
    StepScores,
)
from skldp.collection._survey_estimates import Sums, SurveyEstimate, within
from skldp.domains._column import Column
from skldp.laws._integers import Answers
from skldp.mechanisms.numeric._distribution import (
    DistributionEstimate,
    Ramps,
    likeliest_shares,
    quantile_knots,
    ramp_width,
)

_Floats = npt.NDArray[np.float64]
_MOST_INTEGER_BINS = 64
_DEFAULT_BINS = 8
_MOST_BINS = 256


class Bins:
    """Bins of a number's bounds, between n_bins + 1 edges."""

    scores: PartScores

    def __init__(self, field: Field, edges: _Floats, n: int) -> None:
        last, column = len(edges) - 2, field.column
        self.edges = edges
        pairs = pairwise(map(column.label, edges))
        self.labels = tuple(f"[{low}, {high}{')]'[i == last]}" for i, (low, high) in enumerate(pairs))
        if _has_integer_bins(column) and column.high - column.low + 1 == last + 1:
            self.labels = tuple(map(column.label, edges[:-1]))
        if (exact := _exact_scores(field)) is not None:
            places, scores = exact
            of_places = np.clip(np.searchsorted(edges, places, side="right") - 1, 0, last)
            combine = (of_places == np.arange(last + 1)[:, None]).astype(np.float64)
            self.scores = scores.combined(combine)
            return
        lattice, share = field.law.lattice_part("Distributions")
        tops = np.ceil(edges[1:-1]) if column.whole else edges[1:-1]
        width = (column.high - column.low) * ramp_width(lattice, share * n)
        # A ramp takes at most half of its bin.
        widths = np.minimum(width, np.diff(edges)[:-1] / 2)
        if column.whole:
            widths = np.maximum(np.rint(widths), 1.0)
        self.scores = StepScores(ramps_of(field, tops, widths))


def _exact_scores(field: Field) -> tuple[_Floats, CellScores] | None:
    """Return the possible values of a number, with scores of their shares."""
    column = field.column
    if not _has_integer_bins(column):
        return None
    places = np.arange(column.low, column.high + 1)
    return places, CellScores(*field.law.responses(column.unit_places(places)))


def ramps_of(field: Field, tops: _Floats, widths: _Floats) -> Ramps:
    """Return the ramps below places of a number."""
    lattice, share = field.law.lattice_part("Distributions")
    return Ramps(lattice, field.column.unit_places(tops), widths / field.column.radius, share)


def distribution_of(field: Field, answers: Answers) -> tuple[DistributionEstimate, Sums, _Floats, _Floats]:
    """Estimate the likeliest distribution of a number, and the unbiased shares up to all but the last knot."""
    n, column = len(answers), field.column
    if (exact := _exact_scores(field)) is not None:
        places, scores = exact
        shares = likeliest_shares(scores.counts(answers), scores.response)
        upto = Sums.of_parts(scores.combined(np.tri(scores.n_parts)[:-1]), answers)
        return DistributionEstimate.around(places, shares, n), upto, places, places
    lattice, share = field.law.lattice_part("Distributions")
    places = column.number(quantile_knots(lattice, share * n))
    if column.whole:
        places = np.clip(np.rint(places), np.ceil(column.low), np.floor(column.high))
    # Narrow bounds far from 0 may have fewer doubles than knots.
    places = np.unique(places)
    # There is no integer between neighbours.
    is_exact = column.whole and bool((np.diff(places) == 1).all())
    response, cells = field.law.responses(column.unit_places(places), spread=not is_exact)
    given = np.bincount(cells(answers), minlength=response.shape[1]).astype(np.float64)
    found = DistributionEstimate.around(places, likeliest_shares(given, response), n)
    ramps = ramps_of(field, places[1:], np.diff(places))
    levels, counts = ramps.levels, ramps.counts(answers.astype(np.int64))
    a, aa = ((levels**power * counts).sum(axis=0).astype(np.float64) for power in (1, 2))
    upto = Sums(a, aa, a, n, n, levels[2], levels[0], 1.0, 1.0)
    if is_exact:
        return found, upto, places, places
    return found, upto, np.append(places[:1], places[:-1]), np.append(places[1:], places[-1:])


def bins_of(field: Field, bins: int | Sequence[float] | None, n_reports: int) -> Bins:
    """Return the bins of a number."""
    column = field.column
    if bins is None and _has_integer_bins(column):
        return Bins(field, np.arange(column.low, column.high + 2), n_reports)
    n = _DEFAULT_BINS if bins is None else bins
    if isinstance(n, int | np.integer) and is_integer(n):
        if not 1 <= n <= _MOST_BINS:
            raise ValueError(f"bins must be from 1 to {_MOST_BINS}; got {bins!r}.")
        return Bins(field, np.linspace(column.low, column.high, int(n) + 1), n_reports)
    if not isinstance(n, Sequence | np.ndarray) or not all(map(is_number, n)):
        raise ValueError(f"bins must be a number of bins, or their edges; got {bins!r}.")
    inner = [float(edge) for edge in n]
    if inner != sorted(set(inner)) or not all(column.low <= edge <= column.high for edge in inner):
        ends = f"[{column.label(column.low)}, {column.label(column.high)}]"
        raise ValueError(f"Edges must ascend within {ends}; got {bins!r}.")
    all_edges = np.unique([column.low, *inner, column.high])
    if len(all_edges) > _MOST_BINS:
        raise ValueError(f"bins must be at most {_MOST_BINS}; got {len(all_edges) - 1}.")
    return Bins(field, all_edges, n_reports)


def estimates_of(field: AnyField) -> str:
    """Return the names of the estimates that the law of a field identifies."""
    if field.kind == "category":
        return "frequencies"
    if field.kind == "pair":
        return "table"
    names = ["mean"]
    if isinstance(field, Field) and field.kind == "number":
        with suppress(ValueError):
            field.law.lattice_part("Variances")
            names.append("variance")
        with suppress(ValueError):
            bins_of(field, None, 2)
            names += ["histogram", "quantiles"]
    return ", ".join(names)


def mean_of(column: Column, raw: SurveyEstimate, consistent: str | None) -> SurveyEstimate:
    """Return means of a column in its own form; their description names the bounds if noise exceeds them."""
    made = within(raw, column.low, column.high, consistent)
    made = noted(replace(made, dates=column.is_date), column)
    if not ((raw.values < column.low) | (raw.values > column.high)).any():
        return made
    texts, kind = column.as_texts(), "projected" if consistent else "raw"
    return replace(made, what=f"{made.what} ({kind}: noise exceeds {texts[0]} to {texts[1]})")


def noted(made: SurveyEstimate, *columns: Column) -> SurveyEstimate:
    """Return an estimate that states the replacements of missing values."""
    return replace(made, missing=", ".join(column.replacement for column in columns if column.replacement))


def filter_text(where: Mapping[str, Any] | None, columns: Mapping[str, Any] | None = None) -> str:
    """Return the description of a filter, whose days are dates; raise TypeError unless it is a dict or None."""
    if not isinstance(where, Mapping | None):
        raise TypeError(f"where must be a dict such as {{'city': 'Ulm'}}; got {type(where).__name__}.")
    shown, known = dict(where or {}), columns or {}
    for name in shown.keys() & {name for name, column in known.items() if column.is_date}:
        shown[name] = tuple(map(known[name].label, shown[name]))
    return f" where {' and '.join(f'{name}={value!r}' for name, value in shown.items())}" if shown else ""


def category_codes(column: Column, wanted: Any) -> list[int]:
    """Return the different codes of a category, or of a list of categories."""
    values: Any = column.values
    codes, reader = set(), CodeReader(values)
    for value in wanted if isinstance(wanted, list) else [wanted]:
        found = reader.read(value)
        if isinstance(found, Unread) and not (found is Unread.MISSING and None in values):
            raise ValueError(f"A category must be one of the values of {column.name!r}; got {value!r}.")
        codes.add(values.index(None) if isinstance(found, Unread) else int(found))
    if not codes:
        raise ValueError(f"A filter of {column.name!r} must have a value; got an empty list.")
    return sorted(codes)


def parts_of(field: Field, n_reports: int) -> tuple[tuple[str, ...], PartScores]:
    """Return the labels and scores of categories or default bins."""
    if field.kind == "category":
        return value_labels(field.column.values), CodeScores(field.law)
    bins = bins_of(field, None, n_reports)
    return bins.labels, bins.scores


def weights_of(
    fields: Mapping[str, Field],
    answers: Mapping[str, npt.NDArray[np.unsignedinteger[Any]]],
    where: Mapping[str, Any],
    n: int,
) -> Scores:
    """Return the scores of a filter: the product over its fields."""
    weights = Scores(np.ones(n), 1.0, 1.0)
    for name, wanted in where.items():
        field, column = fields[name], fields[name].column
        if field.kind == "category":
            one = CodeScores(field.law).of(answers[name], category_codes(column, wanted))
        else:
            if not isinstance(wanted, tuple) or len(wanted) != 2 or not all(map(is_number, wanted)):
                raise ValueError(f"A filter of {name!r} must be (low, high), for dates as days; got {wanted!r}.")
            low, high = (float(end) for end in wanted)
            if not (low < high and column.low < high and low <= column.high):
                raise ValueError(f"A filter of {name!r} must have low < high within its bounds; got {wanted!r}.")
            ends = [end for end in (low, high) if column.low < end < column.high]
            bins = bins_of(field, None if _has_integer_bins(column) else ends, n)
            inside = [i for i, edge in enumerate(bins.edges[:-1]) if low <= edge < high]
            one = bins.scores.of(answers[name], inside)
        weights = weights.times(one)
    return weights


def _has_integer_bins(column: Column) -> bool:
    """Return whether a number has a bin for each integer."""
    ends = column.low.is_integer() and column.high.is_integer()
    return bool(column.whole and ends and column.high - column.low < _MOST_INTEGER_BINS)
