"""Estimates of a field from the reports that answer it, for all of them or by groups and filters of other fields."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from skldp.client._fields import AnyField, Field
from skldp.collection._answer_scores import PartScores, Scores, grouped_sums, numbers
from skldp.collection._report_files import ReportStore
from skldp.collection._report_tables import asked_of
from skldp.collection._survey_estimates import Sums, SurveyEstimate, joined, made_consistent, projected, quotients
from skldp.collection._survey_fields import filter_text, mean_of, noted, parts_of, weights_of


class GroupedEstimates(ReportStore):
    """Store of reports with estimates of shares and means, which :class:`Collector` makes public."""

    # Share of all reports that answer the fields of an estimate.
    _answered = 1.0

    def _is_paired(self, name: str) -> bool:
        return any(one.kind == "pair" and name in one.names for one in self.policy.fields)

    @property
    def _answers(self) -> dict[str, npt.NDArray[np.unsignedinteger[Any]]]:
        names = [field.name for field in self.policy.fields]
        return dict(zip(names, self._columns.answers, strict=True))

    def _check_number_of_reports(self) -> None:
        if self.n_reports < 2:
            raise ValueError(f"Estimates need at least 2 reports; got {self.n_reports}.")

    def _among(self, *names: str, by: str | None = None, where: Mapping[str, Any] | None = None) -> Self:
        """Return a collector of the reports, at least two, that answer all of these fields: itself if all are asked."""
        filter_text(where)  # Raises unless it is a dict.
        m, s = len(self.policy.fields), self.policy.n_sampled
        if s is None:
            self._check_number_of_reports()
            return self
        wanted = {*names, *([] if by is None else [by]), *(where or {})}
        for name in filter(self._is_paired, wanted):
            # Raises: pairs have estimates of their own.
            self._field(name)
        places = [place for place, field in enumerate(self.policy.fields) if wanted & {field.name, *field.names}]
        if len(places) > s:
            raise ValueError(
                f"An estimate of {len(places)} fields together needs people who were asked all of them; this policy "
                f"asks {s} of {m}. Make one with a larger n_sampled."
            )
        rows = np.flatnonzero(asked_of(self.policy, self._columns)[:, places].all(axis=1))
        chosen = type(self)(self.policy)
        chosen._parts = [self._columns.take(rows)]
        chosen._check_number_of_reports()
        chosen._answered = len(rows) / self.n_reports
        return chosen

    def _field(self, name: str) -> Field:
        fields = {field.name: field for field in self.policy.fields}
        found = fields.get(name)
        if self._is_paired(name) or (found is not None and found.kind == "pair"):
            raise ValueError(f"Use `table`, `mean` or `frequencies` with the columns of pairs; got {name!r}.")
        if not isinstance(found, Field) or found.kind == "numbers":
            if name in self.policy.names:
                raise ValueError(f"Use `mean`: {name!r} has one of several numbers of one law.")
            raise ValueError(f"A field must be one of {sorted(self.policy.names)}; got {name!r}.")
        return found

    def _number(self, name: str) -> Field:
        field = self._field(name)
        if field.kind != "number":
            raise ValueError(f"This estimate needs a number; use `frequencies` for category {name!r}.")
        return field

    def _group_means(self, field: Field, level: float, consistent: Literal["project"] | None) -> list[SurveyEstimate]:
        """Estimate the mean of each number of a group, from one pass over the reports."""
        of, names = self._among(field.name), field.names
        raw = of._raw_means(field, level, "", names, Scores(np.ones(of.n_reports), 1.0, 1.0))
        center, radius = np.array([(column.center, column.radius) for column in field.columns]).T
        means = replace(raw.scaled(radius, center), answered=of._answered)
        found = [means.only([i], [name], f"mean of {name}") for i, name in enumerate(names)]
        return [mean_of(column, one, consistent) for column, one in zip(field.columns, found, strict=True)]

    def _raw_means(
        self, field: AnyField, level: float, what: str, labels: Sequence[str], weights: Scores
    ) -> SurveyEstimate:
        """Estimate the means of the numbers of a field in units of its law."""
        w, answers = weights.values, self._answers[field.name]
        if field.kind == "number":
            return quotients(Sums.of(numbers(field.law, answers), weights), self.n_reports, level, what, labels)
        a, aa, ab, largest = grouped_sums(field.law, answers, w)
        ends = np.full(len(a), largest)
        sums = Sums(
            a, aa, ab, float(w.sum()), float(w @ w), -ends, ends, weights.low, weights.high, field.law.two_valued
        )
        return quotients(sums, self.n_reports, level, what, labels)

    def _shares(
        self,
        field: Field,
        scores: PartScores,
        labels: Sequence[str],
        likeliest: Callable[[], npt.NDArray[np.float64]],
        consistent: Literal["project", "likelihood"] | None,
        by: str | None,
        where: Mapping[str, Any] | None,
        level: float,
    ) -> SurveyEstimate:
        """Estimate the shares of parts of a field."""
        if consistent not in (None, "project", "likelihood"):
            raise ValueError(f"consistent must be None, 'project' or 'likelihood'; got {consistent!r}.")
        is_likeliest, answers = consistent == "likelihood", self._answers[field.name]
        what = f"{'likeliest ' * is_likeliest}shares of {field.name}"

        def one(weights: Scores) -> SurveyEstimate:
            raw = quotients(Sums.of_parts(scores, answers, weights), self.n_reports, level, what, labels)
            if is_likeliest:
                return made_consistent(raw, likeliest(), np.full(len(labels), np.inf))
            return projected(raw, consistent)

        return noted(self._grouped(one, field.name, by, where, several=True, ungrouped=is_likeliest), field.column)

    def _grouped(
        self,
        estimate: Callable[[Scores], SurveyEstimate],
        used: str,
        by: str | None,
        where: Mapping[str, Any] | None,
        *,
        several: bool = False,
        ungrouped: bool = False,
    ) -> SurveyEstimate:
        """Estimate for all filtered reports, or for each group."""
        asked = dict(where or {})
        others = [*([] if by is None else [by]), *asked]
        fields, names = {name: self._field(name) for name in others}, [used, *others]
        if len(set(names)) < len(names):
            # Scores multiply only if their noise is independent.
            raise ValueError(f"Field, group and filter must be different fields; got {names!r}.")
        if ungrouped and others:
            raise ValueError("consistent='likelihood' takes neither `by` nor `where`; got one.")
        answers = self._answers
        weights = weights_of(fields, answers, asked, self.n_reports)
        filtered = filter_text(where, {name: one.column for name, one in fields.items()})
        if by is None:
            single = estimate(weights)
            return replace(single, what=single.what + filtered, answered=self._answered)
        labels, parts = parts_of(fields[by], self.n_reports)
        found = [estimate(weights.times(parts.of(answers[by], [i]))) for i in range(len(labels))]
        what = found[0].what
        together = joined(labels, found, f"{what} by {by}{filtered}", several=several)
        return replace(together, answered=self._answered)
