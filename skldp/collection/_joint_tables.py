r"""Tables of two columns, from people who each answered for one pair, and estimates of a column from all its pairs.

Everything is a mean of scores, or a quotient of two: the score of a combination is unbiased for its indicator, and a
number is the mean of the points that it is rounded to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skldp._value_labels import value_labels
from skldp.client._fields import Field
from skldp.client._policy import Policy
from skldp.collection._answer_scores import CodeScores, PartScores, Scores
from skldp.collection._report_tables import ReportColumns, asked_of
from skldp.collection._survey_estimates import Sums, SurveyEstimate, joined, made_consistent, projected, quotients
from skldp.collection._survey_fields import category_codes, filter_text, mean_of, noted
from skldp.domains._column import Column
from skldp.laws._categories import ResponseLaw
from skldp.laws._integers import Answers
from skldp.mechanisms.categorical._frequency import project_onto_simplex

_Floats = npt.NDArray[np.float64]
# Rounds of consistency and projection; each moves the tables less.
_ROUNDS = 50


class JointTables:
    """Reports of pairs as consistent tables (Zhang, Wang, Li, He and Chen, CALM, CCS 2018)."""

    def __init__(self, policy: Policy, columns: ReportColumns) -> None:
        self.reports, self._n_all = columns, len(columns.ids)
        asked = asked_of(policy, columns).T
        self._pairs = [
            _Pair(field, answers[own], np.flatnonzero(own))
            for field, answers, own in zip(policy.fields, columns.answers, asked, strict=True)
            if isinstance(field, Field) and field.kind == "pair"
        ]
        self.columns = {column.name: column for pair in self._pairs for column in pair.field.columns}

    def table(self, name: str, other: str, *, consistent: bool, level: float) -> SurveyEstimate:
        """Estimate the shares of the combinations of two columns."""
        (pair,) = self._holding(name, other)
        k = pair.field.law.n_codes
        cells = np.arange(k).reshape(pair.field.sizes)
        order = (cells if pair.field.names[0] == name else cells.T).reshape(-1)
        first, second = (_labels(self.columns[one], pair.field.n_knots) for one in (name, other))
        both = tuple(product(first, second))
        n, sums = pair.n, Sums.of_parts(pair.parts, pair.answers)
        raw = quotients(sums, n, level, f"joint shares of {name} and {other}", [""] * k)
        raw = replace(raw.only(order.tolist(), [f"{one}: {two}" for one, two in both], raw.what), pairs=both)
        if consistent:
            own = self._consistent[pair.field.name].reshape(-1)[order]
            raw = replace(made_consistent(raw, own, np.full(k, np.inf)), what=f"consistent {raw.what}")
        return noted(replace(raw, answered=n / self._n_all), self.columns[name], self.columns[other])

    def estimate(
        self,
        name: str,
        *,
        mean: bool,
        consistent: Any,
        by: str | None,
        where: Mapping[str, Any] | None,
        level: float,
    ) -> SurveyEstimate:
        """Estimate the mean or the shares of a column, of all people or within parts of another column."""
        column, filtered = self.columns[name], filter_text(where)
        if consistent not in (None, "project"):
            raise ValueError(f"consistent must be None or 'project' for a column of pairs; got {consistent!r}.")
        if column.has_codes is mean:
            raise ValueError(f"Use `{'frequencies' if mean else 'mean'}` or `table` for {name!r}.")
        others = [*([] if by is None else [by]), *(where or {})]
        if len(others) > 1 or name in others:
            raise ValueError(f"Pairs tell of one column within another one; got {[name, *others]!r}.")
        pairs = self._holding(name, *others)
        n = len(_people(pairs)[0])
        labels = value_labels(column.values) if column.has_codes else (name,)
        what = f"{'mean' if mean else 'shares'} of {name}"
        parts = self._parts(others[0], where, by) if others else [("", None)]

        def one(inside: _Floats | None) -> SurveyEstimate:
            found = [
                quotients(_sums(pairs, name, place, inside), n, level, what, (label,))
                for place, label in enumerate(labels)
            ]
            together = joined(labels, found, what, several=False)
            if not column.has_codes:
                return together.scaled(column.radius, column.center)
            return projected(together, consistent)

        estimates = [one(inside) for _, inside in parts]
        made = estimates[0]
        if by is not None:
            groups = [label for label, _ in parts]
            made = joined(groups, estimates, f"{made.what} by {by}", several=not mean)
        elif where:
            made = replace(made, what=f"{made.what}{filtered}")
        made = replace(made, answered=n / self._n_all)
        return noted(made, column) if column.has_codes else mean_of(column, made, consistent)

    @cached_property
    def _consistent(self) -> dict[str, _Floats]:
        """Consistent table of each pair with reports."""
        known = [pair for pair in self._pairs if pair.n >= 2]
        return dict(zip((pair.field.name for pair in known), _consistent(known), strict=True))

    def _holding(self, *names: str) -> "list[_Pair]":
        """Return the pairs that hold all of these columns, at least one, with at least two reports."""
        if not self._pairs:
            raise ValueError("The policy has no pairs of columns; make one with policy_from_estimator(..., joint=...).")
        unknown = sorted(set(names) - set(self.columns))
        found = [pair for pair in self._pairs if set(names) <= set(pair.field.names)]
        if unknown or not found or len(set(names)) < len(names):
            listed = ", ".join(pair.field.name for pair in self._pairs)
            raise ValueError(f"Columns must be in one of the policy's pairs, {listed}; got {list(names)!r}.")
        if (n := len(_people(found)[0])) < 2:
            raise ValueError(f"Estimates need at least 2 reports; got {n}.")
        return found

    def _parts(self, name: str, where: Mapping[str, Any] | None, by: str | None) -> list[tuple[str, _Floats | None]]:
        """Return the labels and indicators of the parts of a category."""
        column = self.columns[name]
        if not column.has_codes:
            raise ValueError(f"A group or filter of pairs must be a category; got the number {name!r}.")
        rows = np.eye(len(column.values))
        if by is not None:
            return list(zip(value_labels(column.values), rows, strict=True))
        return [("", rows[category_codes(column, (where or {})[name])].sum(axis=0))]


class _Pair(NamedTuple):
    """Field of a pair, the answers of the people who were asked it, and their rows."""

    field: Field
    answers: Answers
    rows: npt.NDArray[np.intp]

    @property
    def n(self) -> int:
        return len(self.answers)

    @property
    def parts(self) -> PartScores:
        return CodeScores(self.field.law)

    def scores(self, cells: _Floats) -> Scores:
        """Return the scores of a sum of combinations, shape of `cells` (n_first, n_second)."""
        weights, parts = cells.reshape(-1), self.parts
        if isinstance(self.field.law, ResponseLaw):
            p, q = self.field.law.support
            of_codes = (weights - q * weights.sum()) / (p - q)
            return Scores(of_codes[self.answers], float(of_codes.min()), float(of_codes.max()))
        values = np.zeros(self.n)
        for code in np.flatnonzero(weights):
            values += weights[code] * parts.scores(self.answers, int(code))
        ends = weights * np.stack([parts.low, parts.high])
        return Scores(values, float(ends.min(axis=0).sum()), float(ends.max(axis=0).sum()))

    def along(self, name: str, values: _Floats, inside: _Floats | None) -> _Floats:
        """Return combinations weighted by values of a column, and by the indicator of a part of the other one."""
        first = self.field.names[0] == name
        own = np.ones(self.field.sizes[first]) if inside is None else inside
        return np.outer(values, own) if first else np.outer(own, values)


def _sums(pairs: Sequence[_Pair], name: str, place: int, inside: _Floats | None) -> Sums:
    """Return sums of the scores of a column; the answers of a person for several pairs have one score, their sum."""
    a, b, places = [], [], _people(pairs)[1]
    for pair in pairs:
        size = pair.field.sizes[pair.field.names.index(name)]
        column = pair.field.columns[pair.field.names.index(name)]
        values = np.eye(size)[place] if column.has_codes else np.linspace(-1, 1, size)
        a.append(pair.scores(pair.along(name, values, inside)))
        ones = Scores(np.ones(pair.n), 1.0, 1.0)
        b.append(ones if inside is None else pair.scores(pair.along(name, np.ones(size), inside)))
    x, w = (np.bincount(places, np.concatenate([one.values for one in each])) for each in (a, b))
    most = int(np.bincount(places).max())
    ends = ([times * end for times in (1, most) for one in each for end in (one.low, one.high)] for each in (a, b))
    (a_low, a_high), (b_low, b_high) = ((min(each), max(each)) for each in ends)
    of_a, of_aa, of_ab, low, high = (np.array([float(one)]) for one in (x.sum(), x @ x, x @ w, a_low, a_high))
    return Sums(of_a, of_aa, of_ab, float(w.sum()), float(w @ w), low, high, b_low, b_high, of_products=True)


def _people(pairs: Sequence[_Pair]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the rows of the people who answered for some of the pairs, and the place of each answer among them."""
    return np.unique(np.concatenate([pair.rows for pair in pairs]), return_inverse=True)


def _consistent(pairs: Sequence[_Pair]) -> list[_Floats]:
    """Return distributions that agree on each column's shares: the mean of its tables by inverse variance."""
    tables, variances = [], []
    for pair in pairs:
        k = pair.field.law.n_codes
        sums, squares = pair.parts.sums(pair.answers, np.ones(pair.n))
        tables.append((sums / pair.n).reshape(pair.field.sizes))
        # Answers that are all equal have a variance of 0.
        variances.append(max(float(np.mean(squares / pair.n - (sums / pair.n) ** 2)), 1 / pair.n) / pair.n)
        tables[-1] += (1 - tables[-1].sum()) / k
    names = sorted({name for pair in pairs for name in pair.field.names})
    for _ in range(_ROUNDS):
        for name in names:
            held = [(i, pair.field.names.index(name)) for i, pair in enumerate(pairs) if name in pair.field.names]
            margins = [tables[i].sum(axis=1 - axis) for i, axis in held]
            weights = np.array([1 / (variances[i] * tables[i].shape[1 - axis]) for i, axis in held])
            mean = weights @ np.array(margins) / weights.sum()
            for (i, axis), margin in zip(held, margins, strict=True):
                moved = (mean - margin) / tables[i].shape[1 - axis]
                tables[i] = tables[i] + np.expand_dims(moved, 1 - axis)
        tables = [project_onto_simplex(one.reshape(1, -1)).reshape(one.shape) for one in tables]
    return tables


def _labels(column: Column, n_knots: int) -> tuple[str, ...]:
    if not column.has_codes:
        return tuple(f"rounded to {column.label(column.number(place))}" for place in np.linspace(-1, 1, n_knots))
    return value_labels(column.values)
