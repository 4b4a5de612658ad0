"""The collector: reports of a policy in, of which each person's counts once, and estimates with intervals out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from skldp._checks import check_fraction
from skldp._value_labels import number_label, value_labels
from skldp.client import CategoryField, NumberField, NumbersField
from skldp.collection._frames import frame_of
from skldp.collection._page import notebook_view, page_of
from skldp.collection._report_store import ReportStore
from skldp.collection._survey_fields import bins_of, center_and_radius, distribution_of, parts_of, weights_of
from skldp.learning._answer_scores import (
    PartScores,
    Scores,
    code_scores,
    grouped_number,
    grouped_sums,
    likeliest_codes,
    numbers,
    squares,
)
from skldp.learning._survey_estimates import (
    Sums,
    SurveyEstimate,
    correlation,
    joined,
    made_consistent,
    quantile_estimate,
    quotients,
    variance,
)
from skldp.mechanisms._categorical.frequency import project_onto_simplex

__all__ = ["Collector"]

_Consistent = Literal["project", "likelihood"] | None


class Collector(ReportStore):
    r"""Reports of one policy, and what can be estimated from them.

    Parameters
    ----------
    policy : Policy

    See Also
    --------
    skldp.client.Policy : What people release.

    Notes
    -----
    A report counts once, by its id. Of several with one id the first counts, whatever they answer; in a merge, that of
    the earlier collector. Equal answers of two people are two reports.

    All estimates are of those whom people were drawn from at random; noise and who was asked are both in the standard
    errors. A mean is that of the unbiased numbers that answers stand for. Frequencies invert the response matrix of the
    field. With scores :math:`s` whose mean given the record is 1 in a group and 0 outside, whatever the group's own
    noise, a mean within it is :math:`\sum s_i y_i / \sum s_i`, and a filter is a product of such scores: grouping by a
    private field is possible, and costs precision. Intervals of the shares of categories are exact (Clopper and
    Pearson's), and so are all others that follow from a count of answers. Those of other means, and of quotients
    (Fieller's), are by Student's law, which is approximate, and infinite where the reports do not show that anybody is
    left.

    A number of a bin is counted without supposing how numbers are spread: one just below an inner edge counts for both
    bins, in proportion to its place in a ramp, whose width vanishes as reports grow. The bias is below a fifth of a
    standard error, unless many numbers are heaped within a ramp, just below an edge: then intervals of both bins do not
    hold either. An edge at such a heap avoids this. A policy's replacements are counted as values: a
    missing number as its stand-in, a number outside the bounds as the nearer bound.

    References
    ----------
    Warner, "Randomized response: a survey technique for eliminating evasive answer bias", Journal of the American
    Statistical Association 1965; Wang, Lopuhaä-Zwakenberg, Li, Skoric and Li, "Locally differentially private frequency
    estimation with consistency", NDSS 2020, for the projection (Norm-Sub).

    Examples
    --------
    >>> from skldp import Collector
    >>> from skldp.client import CategoryField, NumberField, Policy
    >>> from skldp.mechanisms import RandomizedResponse, SquareWave, integer_law
    >>> age = NumberField("age", 0, 100, integer_law(SquareWave(1.0)))
    >>> city = CategoryField("city", ("Bonn", "Ulm"), integer_law(RandomizedResponse(1.0, 2)))
    >>> policy = Policy("where people of which age live", (age, city))
    >>> collector = Collector(policy)
    >>> for age in range(100):
    ...     _ = collector.add(policy.release({"age": age, "city": "Bonn"}))
    >>> _ = collector.add(b"no report")
    >>> collector.counts
    ReportCounts(accepted=100, foreign=1, broken=0, doubled=0)
    >>> collector.mean("age", by="city").labels
    ('Bonn', 'Ulm')
    """

    def mean(
        self, field: str, *, by: str | None = None, where: Mapping[str, Any] | None = None, level: float = 0.95
    ) -> SurveyEstimate:
        """Estimate the mean of a number.

        Parameters
        ----------
        field : str
        by : str, default=None
            Another field, for the mean of each of its categories, or its usual bins.
        where : dict by name, default=None
            For those alone whose records are so in further fields: of a category a value or a list of values, of a
            number the ends ``(low, high)`` between which it is.
        level : float, default=0.95
            How often an interval holds the truth.

        Returns
        -------
        SurveyEstimate

        Raises
        ------
        ValueError
            If there are fewer than two reports, or a parameter is not as above.
        """
        own, scores, center, radius = self._number_scores(field)

        def one(weights: Scores) -> SurveyEstimate:
            raw = quotients(Sums.of(scores, weights), self.n_reports, level, f"mean of {field}", (field,))
            return raw.scaled(radius, center)

        return self._grouped(one, (own,), by, where, level)

    def variance(
        self, field: str, *, by: str | None = None, where: Mapping[str, Any] | None = None, level: float = 0.95
    ) -> SurveyEstimate:
        """Estimate the variance of a number, in the square of its unit.

        Parameters
        ----------
        field : str
            Whose law is one of a lattice, such as ``"piecewise"``, or mixes one in.
        by, where, level
            As of :meth:`mean`.

        Returns
        -------
        SurveyEstimate
            Without bias, and so perhaps below 0.

        Raises
        ------
        ValueError
            If the law does not identify it, there are fewer than two reports, or a parameter is not as above.
        """
        number, answers = self._number(field), self._answers[field]
        scores = numbers(number.law, answers), squares(number.law, answers)
        _, radius = center_and_radius(number)

        def one(weights: Scores) -> SurveyEstimate:
            return variance(*scores, weights, level, f"variance of {field}").scaled(radius**2)

        return self._grouped(one, (field,), by, where, level)

    def correlation(
        self,
        field: str,
        other: str,
        *,
        by: str | None = None,
        where: Mapping[str, Any] | None = None,
        level: float = 0.95,
    ) -> SurveyEstimate:
        """Estimate the correlation of two numbers, freed of what noise takes from it.

        Parameters
        ----------
        field, other : str
            Both of laws of a lattice, such as ``"piecewise"``, or that mix one in.
        by, where, level
            As of :meth:`mean`.

        Returns
        -------
        SurveyEstimate
            Perhaps outside [-1, 1], where the interval ends; all of that where the reports do not tell.

        Raises
        ------
        ValueError
            If a law does not identify it, there are fewer than two reports, or a parameter is not as above.
        """
        scores = []
        for name in (field, other):
            law, answers = self._number(name).law, self._answers[name]
            scores.append((numbers(law, answers), squares(law, answers)))
        first, second = scores

        def one(weights: Scores) -> SurveyEstimate:
            return correlation(first, second, weights, level, f"correlation of {field} and {other}")

        return self._grouped(one, (field, other), by, where, level)

    def frequencies(
        self,
        field: str,
        *,
        consistent: _Consistent = None,
        by: str | None = None,
        where: Mapping[str, Any] | None = None,
        level: float = 0.95,
    ) -> SurveyEstimate:
        """Estimate the shares of categories.

        Parameters
        ----------
        field : str
        consistent : {"project", "likelihood"}, default=None
            None is without bias, with shares below 0 and another sum than 1. ``"project"`` takes the nearest shares
            that are none below 0 and sum to 1 (Norm-Sub): with many rare categories far nearer to the truth, and
            biased. ``"likelihood"`` takes those under which the reports are likeliest, which is nearer still, slower,
            and of all reports alone.
        by, where, level
            As of :meth:`mean`.

        Returns
        -------
        SurveyEstimate
            Standard errors are those of the raw shares; intervals of consistent ones are the raw ones within [0, 1],
            widened where the share lies outside.

        Raises
        ------
        ValueError
            If there are fewer than two reports, or a parameter is not as above.
        """
        category = self._field(field)
        if not isinstance(category, CategoryField):
            raise ValueError(f"Frequencies are of categories; of a number, see histogram. Got {field!r} instead.")
        scores, answers = code_scores(category.law), self._answers[field]

        def likeliest() -> npt.NDArray[np.float64]:
            return likeliest_codes(category.law, answers)

        labels = value_labels(category.values)
        one = self._shares(scores, answers, f"shares of {field}", labels, level, consistent, likeliest)
        return self._grouped(one, (field,), by, where, level, several=True, whole=consistent == "likelihood")

    def histogram(
        self,
        field: str,
        *,
        bins: int | Sequence[float] | None = None,
        consistent: _Consistent = None,
        by: str | None = None,
        where: Mapping[str, Any] | None = None,
        level: float = 0.95,
    ) -> SurveyEstimate:
        """Estimate the shares of a number's bins, by deconvolution.

        Parameters
        ----------
        field : str
            Whose law is one of a lattice, best ``"square_wave"``, or mixes one in.
        bins : int or sequence of float, default=None
            How many equal ones, or their edges. None is 8, or one for each of up to 64 whole numbers.
        consistent, by, where, level
            As of :meth:`frequencies`.

        Returns
        -------
        SurveyEstimate

        Raises
        ------
        ValueError
            If the law does not tell so many bins apart, there are fewer than two reports, or a parameter is not as
            above.
        """
        number, answers = self._number(field), self._answers[field]
        own = bins_of(number, bins, self.n_reports)

        def likeliest() -> npt.NDArray[np.float64]:
            found, *_ = distribution_of(number, answers)
            # The share of a whole number is spread around it.
            inner = np.ceil(own.edges[1:-1]) - 0.5 if number.whole else own.edges[1:-1]
            return np.diff(found.cumulative(inner), prepend=0.0, append=1.0)

        one = self._shares(own.scores, answers, f"shares of {field}", own.labels, level, consistent, likeliest)
        return self._grouped(one, (field,), by, where, level, several=True, whole=consistent == "likelihood")

    def cumulative(
        self,
        field: str,
        *,
        bins: int | Sequence[float] | None = None,
        by: str | None = None,
        where: Mapping[str, Any] | None = None,
        level: float = 0.95,
    ) -> SurveyEstimate:
        """Estimate the share of a number below each edge of bins, by deconvolution.

        Parameters
        ----------
        field, bins, by, where, level
            As of :meth:`histogram`.

        Returns
        -------
        SurveyEstimate
            Perhaps outside [0, 1], and not ascending. A number at an edge is not below it.

        Raises
        ------
        ValueError
            As of :meth:`histogram`.
        """
        own = bins_of(self._number(field), bins, self.n_reports)
        labels = tuple(f"< {number_label(edge)}" for edge in own.edges[1:-1])
        one = self._shares(
            own.cumulative, self._answers[field], f"cumulative shares of {field}", labels, level, None, None
        )
        return self._grouped(one, (field,), by, where, level, several=True)

    def quantiles(
        self, field: str, levels: Sequence[float] = (0.25, 0.5, 0.75), *, level: float = 0.95
    ) -> SurveyEstimate:
        """Estimate quantiles of a number, from the likeliest distribution.

        Parameters
        ----------
        field : str
            As of :meth:`histogram`.
        levels : sequence of float, default=(0.25, 0.5, 0.75)
            The shares of numbers below them, inside (0, 1).
        level : float, default=0.95

        Returns
        -------
        SurveyEstimate
            Of the likeliest distribution, so that its bias is not 0, and vanishes as reports grow: the number of knots
            follows from theirs and epsilon. An interval holds every number that the raw shares up to knots do not
            refute, however numbers are heaped, and the truth more often than it says. Standard errors are its length
            over that of a normal one. A law of buckets gives no more than a bucket, which is all in the interval.

        Raises
        ------
        ValueError
            As of :meth:`histogram`.
        """
        for one in levels:
            check_fraction("levels", one)
        check_fraction("level", level)
        self._check_number_of_reports()
        number, answers = self._number(field), self._answers[field]
        found, errors, *ends = distribution_of(number, answers)
        estimate = quantile_estimate(
            found, errors, levels, (ends[0], ends[1]), level, f"likeliest quantiles of {field}"
        )
        if not number.whole:
            return estimate
        return replace(estimate, **{name: np.rint(getattr(estimate, name)) for name in ("values", "low", "high")})

    def to_frame(self) -> Any:
        """The released values, for training: one row a report, in the order of their ids.

        Returns
        -------
        pandas.DataFrame
            Of a number the unbiased one that its answer stands for, of a category that is answered for by another one
            that one, of rows of bits a column for each bit, such as ``"city=Bonn"``, and of hashes and Hadamard's
            reports their number.

        Raises
        ------
        ImportError
            If pandas is missing.
        ValueError
            If a field has the name of another one's column of bits.
        """
        return frame_of(self.policy, self._columns)

    def page(self) -> str:
        """A self-contained HTML page of all fields, with pictures.

        Returns
        -------
        str
            A whole document, which loads nothing and runs nothing.

        Raises
        ------
        ValueError
            If there are fewer than two reports.
        """
        return page_of(self)

    def __repr__(self) -> str:
        return f"Collector({self.policy.purpose!r}, {self.counts})"

    def _repr_html_(self) -> str:
        return notebook_view(self)

    @property
    def _answers(self) -> dict[str, npt.NDArray[np.unsignedinteger[Any]]]:
        names = [field.name for field in self.policy.fields]
        return dict(zip(names, self._columns.answers, strict=True))

    def _check_number_of_reports(self) -> None:
        if self.n_reports < 2:
            raise ValueError(f"Estimates need at least 2 reports. Got {self.n_reports} instead.")

    def _field(self, name: str) -> CategoryField | NumberField:
        fields = {field.name: field for field in self.policy.fields}
        found = fields.get(name)
        if found is None or isinstance(found, NumbersField):
            if name in self.policy.names:
                raise ValueError(f"Of numbers that are answered for together, means alone are known. Got {name!r}.")
            raise ValueError(f"A field must be one of {sorted(self.policy.names)}. Got {name!r} instead.")
        return found

    def _number(self, name: str) -> NumberField:
        field = self._field(name)
        if not isinstance(field, NumberField):
            raise ValueError(f"This is estimated of numbers; of a category, see frequencies. Got {name!r} instead.")
        return field

    def _number_scores(self, name: str) -> tuple[str, Scores, float, float]:
        """The field that a number is of, its scores in [-1, 1], and the middle and half the length of its bounds."""
        for field in self.policy.fields:
            if isinstance(field, NumbersField) and name in field.names:
                place = field.names.index(name)
                scores = grouped_number(field.law, self._answers[field.name], place)
                return field.name, scores, *center_and_radius(field.columns[place])
        number = self._number(name)
        return name, numbers(number.law, self._answers[name]), *center_and_radius(number)

    def _group_means(self, field: NumbersField) -> list[SurveyEstimate]:
        """Estimate the mean of each number of a group, from one pass over the reports."""
        n, names, ones = self.n_reports, field.names, np.ones(len(field.columns))
        a, aa, largest = grouped_sums(field.law, self._answers[field.name])
        raw = quotients(Sums(a, aa, a, n, n, -largest * ones, largest * ones, 1.0, 1.0), n, 0.95, "", names)
        center, radius = np.array([center_and_radius(column) for column in field.columns]).T
        means = raw.scaled(radius, center)
        return [means.only([i], [name], f"mean of {name}") for i, name in enumerate(names)]

    def _sums(self, scores: PartScores, answers: npt.NDArray[np.unsignedinteger[Any]], weights: Scores) -> Sums:
        w = weights.values
        a, _ = scores.sums(answers, w)
        ab, aa = scores.sums(answers, w**2)
        return Sums(
            a,
            aa,
            ab,
            float(w.sum()),
            float(w @ w),
            scores.low,
            scores.high,
            weights.low,
            weights.high,
            scores.two_valued,
        )

    def _shares(
        self,
        scores: PartScores,
        answers: npt.NDArray[np.unsignedinteger[Any]],
        what: str,
        labels: Sequence[str],
        level: float,
        consistent: _Consistent,
        likeliest: Callable[[], npt.NDArray[np.float64]] | None,
    ) -> Callable[[Scores], SurveyEstimate]:
        """What estimates the shares of parts, given weights."""
        if consistent not in (None, "project", "likelihood"):
            raise ValueError(f"consistent must be None, 'project' or 'likelihood'. Got {consistent!r} instead.")

        kind = {None: "", "project": "projected ", "likelihood": "likeliest "}[consistent]

        def one(weights: Scores) -> SurveyEstimate:
            raw = quotients(self._sums(scores, answers, weights), self.n_reports, level, kind + what, labels)
            if consistent is None or not np.isfinite(raw.values).all():
                return raw
            if consistent == "project":
                # The nearest shares move no further than the raw ones do, all together.
                moved = np.full(len(labels), np.sqrt((raw.moved**2).sum()))
                return made_consistent(raw, project_onto_simplex(raw.values[None])[0], moved)
            assert likeliest is not None
            return made_consistent(raw, likeliest(), np.full(len(labels), np.inf))

        return one

    def _grouped(
        self,
        estimate: Callable[[Scores], SurveyEstimate],
        used: Sequence[str],
        by: str | None,
        where: Mapping[str, Any] | None,
        level: float,
        *,
        several: bool = False,
        whole: bool = False,
    ) -> SurveyEstimate:
        """Estimate for all, or for each group, of those that a filter leaves."""
        check_fraction("level", level)
        asked = dict(where or {})
        others = [*([] if by is None else [by]), *asked]
        fields, names = {name: self._field(name) for name in others}, [*used, *others]
        if len(set(names)) < len(names):
            # The noise of one answer is not independent of itself.
            raise ValueError(f"Fields, group and filter must all be different fields. Got {names!r} instead.")
        if whole and len(names) > len(used):
            raise ValueError("consistent='likelihood' is of all reports. Got a group or a filter as well.")
        self._check_number_of_reports()
        answers = self._answers
        weights = weights_of(fields, answers, asked, self.n_reports)
        filtered = f" where {' and '.join(asked)}" if asked else ""
        if by is None:
            single = estimate(weights)
            return replace(single, what=single.what + filtered)
        labels, parts = parts_of(fields[by], self.n_reports)
        found = [estimate(weights.times(parts.of(answers[by], [i]))) for i in range(len(labels))]
        what = found[0].what
        return joined(labels, found, f"{what} by {by}{filtered}", several=several)


def _ones(n: int) -> Scores:
    return Scores(np.ones(n), 1.0, 1.0)
