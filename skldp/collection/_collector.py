"""Collector of the reports of a policy, and estimates with confidence intervals."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from skldp._checks import check_fraction
from skldp._value_labels import value_labels
from skldp.collection._answer_scores import CodeScores, Scores, numbers, squares
from skldp.collection._grouped_estimates import GroupedEstimates
from skldp.collection._joint_tables import JointTables
from skldp.collection._likeliest import likeliest_codes
from skldp.collection._page import notebook_view, page_of
from skldp.collection._report_tables import asked_of, frame_of
from skldp.collection._survey_estimates import SurveyEstimate, quantile_estimate, quotients, variance, within
from skldp.collection._survey_fields import bins_of, distribution_of, mean_of, noted

_Consistent = Literal["project", "likelihood"] | None


def _check_form(consistent: Any) -> None:
    if consistent not in (None, "project"):
        raise ValueError(f"consistent must be None or 'project'; got {consistent!r}.")


class Collector(GroupedEstimates):
    r"""Store of the reports of a policy that estimates statistics of the population.

    Parameters
    ----------
    policy : Policy
        Policy of the reports.

    See Also
    --------
    skldp.client.Policy : The document that reports answer.

    Notes
    -----
    A report counts once, by its id. The first of several reports with one id counts; in a merge, that of the earlier
    collector. Equal answers of two people are two reports.

    Estimates are of the population that people were sampled from. Standard errors include noise and sampling. If the
    policy samples fields, an estimate uses the reports that answer all of its fields, a random sample of the people. A
    group or a filter then needs people who were asked two fields or more. A mean averages unbiased numbers of the
    answers. Frequencies invert the response matrix of the field. A group or a filter gives each report a score
    :math:`s` with mean 1 inside and 0 outside; a mean within it is :math:`\sum s_i y_i / \sum s_i`. Grouping by a
    private field costs precision. Intervals of estimates that follow from a count of answers are exact
    (Clopper-Pearson). Others use Student's law (Fieller's for quotients), and are infinite if the group may be empty.

    A histogram makes no assumption about the distribution. Values close below a bin edge are split between the two
    bins. The affected zone narrows as the number of reports grows. The bias is below a fifth of a standard error unless
    many numbers lie in such a zone; put an edge at such a heap. A missing number
    counts as its stand-in, a number outside the bounds as the nearer bound.

    References
    ----------
    Warner, "Randomized response: a survey technique for eliminating evasive answer bias", Journal of the American
    Statistical Association 1965; Wang, Lopuhaä-Zwakenberg, Li, Skoric and Li, "Locally differentially private frequency
    estimation with consistency", NDSS 2020, for the projection (Norm-Sub).

    Examples
    --------
    >>> from skldp import Collector
    >>> from skldp.client import Field, Policy
    >>> from skldp.mechanisms import Column, RandomizedResponse
    >>> from skldp.mechanisms.numeric._unit_mechanisms import SquareWave
    >>> age = Field("age", Column(0, 100), SquareWave(1.0).integer_law)
    >>> city = Field("city", Column(values=("Bonn", "Ulm")), RandomizedResponse(1.0, 2).integer_law)
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

    _tables: JointTables | None = None

    def mean(
        self,
        field: str,
        *,
        consistent: Literal["project"] | None = "project",
        by: str | None = None,
        where: Mapping[str, Any] | None = None,
        level: float = 0.95,
    ) -> SurveyEstimate:
        """Estimate the mean of a number, or of each number of a vector.

        Parameters
        ----------
        field : str
            Number or vector. Intervals of a vector hold for each of its numbers alone.
        consistent : {"project", None}, default="project"
            ``"project"`` is within the bounds of the number, in each group. None is unbiased: noise may exceed the
            bounds. Means of vectors are unbiased.
        by : str, default=None
            Field to group by: its categories, or its default bins.
        where : dict by name, default=None
            Filter by other fields: a value or a list of values of a category, bounds ``(low, high)`` of a number.
        level : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        SurveyEstimate
            Means, with one row for each group.

        Raises
        ------
        ValueError
            If there are fewer than two reports, or a parameter is out of range.
        """
        if self._is_paired(field):
            return self._joint.estimate(field, mean=True, consistent=consistent, by=by, where=where, level=level)
        _check_form(consistent)
        of = self._among(field, by=by, where=where)
        groups = (one for one in self.policy.fields if one.kind in ("numbers", "vector"))
        whole: Any = next((one for one in groups if field in one.names), None) or of._number(field)
        what, place = f"mean of {field}", whole.names.index(field)
        is_vector = whole.kind == "vector"
        labels = [f"{field}[{i}]" for i in range(whole.law.n_values)] if is_vector else whole.names

        def one(weights: Scores) -> SurveyEstimate:
            raw = of._raw_means(whole, level, what, labels, weights)
            if is_vector:
                return raw.scaled(whole.bound or 1.0)
            return raw.only([place], [field], what).scaled(whole.columns[place].radius, whole.columns[place].center)

        made = of._grouped(one, whole.name, by, where, several=is_vector)
        return made if is_vector else mean_of(whole.columns[place], made, consistent)

    def variance(
        self,
        field: str,
        *,
        consistent: Literal["project"] | None = "project",
        by: str | None = None,
        where: Mapping[str, Any] | None = None,
        level: float = 0.95,
    ) -> SurveyEstimate:
        """Return the estimated variance of a number, in the square of its unit.

        Errors are those of :meth:`mean`. The law of `field` must be one of a lattice, such as
        ``"piecewise"``, or mix one in. A variance is within 0 and the square of half the distance of the bounds.

        Parameters
        ----------
        field, consistent, by, where, level : str, str, str, dict and float
            As of :meth:`mean`.
        """
        _check_form(consistent)
        of = self._among(field, by=by, where=where)
        number, answers = of._number(field), of._answers
        scores = numbers(number.law, answers[field]), squares(number.law, answers[field])

        def one(weights: Scores) -> SurveyEstimate:
            return variance(*scores, weights, level, f"variance of {field}").scaled(number.column.radius**2)

        made = within(of._grouped(one, field, by, where), 0.0, number.column.radius**2, consistent)
        return noted(made, number.column)

    def frequencies(
        self,
        field: str,
        *,
        consistent: _Consistent = "project",
        by: str | None = None,
        where: Mapping[str, Any] | None = None,
        level: float = 0.95,
    ) -> SurveyEstimate:
        """Estimate the shares of categories.

        Parameters
        ----------
        field : str
            Name of a category, or of a column of a pair.
        consistent : {"project", "likelihood", None}, default="project"
            ``"project"`` takes the nearest distribution (Norm-Sub) of each group, which is biased and far more precise
            with many rare categories. None is unbiased: shares may be below 0, and need not sum to 1, as is needed for
            means over several collections. ``"likelihood"`` takes the
            distribution of largest likelihood, without `by` and `where`. It is more precise with more categories than
            reports can tell apart, and less with local hashing where frequent categories are neighbours in a long list.
        by, where, level : str, dict and float
            As of :meth:`mean`.

        Returns
        -------
        SurveyEstimate
            Standard errors are those of the unbiased shares. Intervals of consistent shares are the unbiased ones
            within [0, 1], widened to hold the share.

        Raises
        ------
        ValueError
            As of :meth:`mean`.
        """
        if self._is_paired(field):
            return self._joint.estimate(field, mean=False, consistent=consistent, by=by, where=where, level=level)
        category = self._field(field)
        if category.kind != "category":
            raise ValueError(f"`frequencies` needs a category; use `histogram` for number {field!r}.")
        of = self._among(field, by=by, where=where)
        likeliest = partial(likeliest_codes, category.law, of._answers[field])
        scores, labels = CodeScores(category.law), value_labels(category.column.values)
        return of._shares(category, scores, labels, likeliest, consistent, by, where, level)

    def table(
        self, field: str, other: str, *, consistent: Literal["project"] | None = "project", level: float = 0.95
    ) -> SurveyEstimate:
        """Estimate the shares of the combinations of two columns of a pair.

        Parameters
        ----------
        field, other : str
            Columns of one of the policy's pairs. A number is rounded at random to a point, by default to a bound.
        consistent : {"project", None}, default="project"
            ``"project"`` makes all tables of the policy distributions that nearly agree on the shares of each column,
            which is biased and more precise. None is unbiased.
        level : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        SurveyEstimate
            Labelled ``"value: value"``, in the order of `field`. Standard errors and intervals as of
            :meth:`frequencies`.

        Raises
        ------
        ValueError
            If the policy has no such pair, or there are fewer than two reports of it.
        """
        _check_form(consistent)
        return self._joint.table(field, other, consistent=consistent is not None, level=level)

    def histogram(
        self,
        field: str,
        *,
        bins: int | Sequence[float] | None = None,
        consistent: _Consistent = "project",
        by: str | None = None,
        where: Mapping[str, Any] | None = None,
        level: float = 0.95,
    ) -> SurveyEstimate:
        """Estimate the shares of a number's bins, by deconvolution.

        Parameters
        ----------
        field : str
            Its law must be one of a lattice, best ``"square_wave"``, or mix one in.
        bins : int or sequence of float, default=None
            Number of equal bins, or their edges. None is 8, or a bin for each of up to 64 integers.
        consistent, by, where, level : str, str, dict and float
            As of :meth:`frequencies`.

        Returns
        -------
        SurveyEstimate
            Shares of the bins, with errors as of :meth:`frequencies`.

        Raises
        ------
        ValueError
            As of :meth:`mean`, or if the law does not identify so many bins.
        """
        of, number = self._among(field, by=by, where=where), self._number(field)
        own = bins_of(number, bins, of.n_reports)

        def likeliest() -> npt.NDArray[np.float64]:
            found, *_ = distribution_of(number, of._answers[field])
            # The distribution spreads the share of an integer around it.
            inner = np.ceil(own.edges[1:-1]) - 0.5 if number.column.whole else own.edges[1:-1]
            return np.diff(found.cumulative(inner), prepend=0.0, append=1.0)

        return of._shares(number, own.scores, own.labels, likeliest, consistent, by, where, level)

    def quantiles(
        self, field: str, levels: Sequence[float] = (0.25, 0.5, 0.75), *, level: float = 0.95
    ) -> SurveyEstimate:
        """Estimate quantiles of a number, from the distribution of largest likelihood.

        Parameters
        ----------
        field : str
            As of :meth:`histogram`.
        levels : sequence of float, default=(0.25, 0.5, 0.75)
            Levels of the quantiles, inside (0, 1).
        level : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        SurveyEstimate
            The bias vanishes as reports grow. An interval holds every number that the unbiased cumulative shares do not
            refute, for any distribution; it is conservative. Standard errors are derived from its length. A law of
            buckets locates a quantile to a bucket, all of which is in the interval.

        Raises
        ------
        ValueError
            As of :meth:`histogram`.
        """
        if not np.ndim(levels) == 1 or not len(levels):
            raise ValueError(f"levels must be a list of numbers, at least one; got {levels!r}.")
        for one in levels:
            check_fraction("levels", one)
        of = self._among(field)
        number, answers = of._number(field), of._answers[field]
        found, sums, *ends = distribution_of(number, answers)
        upto = quotients(sums, found.n, level, "", [""] * len(sums.a))
        estimate = quantile_estimate(found, upto, levels, (ends[0], ends[1]), f"likeliest quantiles of {field}")
        estimate = noted(replace(estimate, answered=of._answered, dates=number.column.is_date), number.column)
        if not number.column.whole:
            return estimate
        return replace(estimate, **{name: np.rint(getattr(estimate, name)) for name in ("values", "low", "high")})

    def to_frame(self) -> Any:
        """Return the released values as a pandas DataFrame, one row a report, in the order of their ids.

        A number is the unbiased one of its answer. A category is the answered one (None is missing), a column for each
        bit, such as ``"city=Bonn"``, or the integer of a hash or a Hadamard code. Fields that were not asked are NaN.

        Raises
        ------
        ImportError
            If pandas is missing.
        ValueError
            If two columns have one name.
        """
        return frame_of(self.policy, self._columns)

    def page(self) -> str:
        """Return an HTML page with tables and charts of all fields, which loads and runs nothing.

        Raises
        ------
        ImportError
            If jinja2 is missing.
        ValueError
            If there are fewer than two reports.
        """
        self._check_number_of_reports()
        return page_of(
            self.policy, self.counts, [(field, self._usual_estimates(field)) for field in self.policy.fields]
        )

    def __repr__(self) -> str:
        return f"Collector({self.policy.purpose!r}, {self.counts})"

    def _repr_html_(self) -> str:
        return notebook_view(self.policy, self.counts)

    def _usual_estimates(
        self, field: Any, level: float = 0.95, consistent: Literal["project"] | None = "project"
    ) -> list[tuple[SurveyEstimate, bool]]:
        """Return the default estimates of a field, each with whether it is drawn; none for fewer than two answers."""
        how = {"consistent": consistent, "level": level}
        place = self.policy.fields.index(field)
        if self.policy.n_sampled is not None and asked_of(self.policy, self._columns)[:, place].sum() < 2:
            return []
        if field.kind == "numbers":
            return [(one, False) for one in self._group_means(field, level, consistent)]
        only: dict[str, Any] = {"category": self.frequencies, "vector": self.mean, "pair": self.table}
        if field.kind in only:
            return [(only[field.kind](*field.names, **how), field.kind == "category")]
        found = []
        for name in "mean", "histogram", "quantiles", "variance":
            own = {"level": level} if name == "quantiles" else how
            # A law may not identify an estimate.
            with suppress(ValueError):
                found.append((getattr(self, name)(field.name, **own), name == "histogram"))
        return found

    @property
    def _joint(self) -> JointTables:
        columns = self._columns
        if self._tables is None or self._tables.reports is not columns:
            self._tables = JointTables(self.policy, columns)
        return self._tables
