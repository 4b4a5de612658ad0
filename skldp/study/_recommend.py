"""Recommendation of a mechanism or model for a task, from declared columns and mechanisms alone, without data."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from skldp._checks import check_choice, check_epsilon, check_integer
from skldp.domains._columns import Columns, OrMissing
from skldp.domains._declared_columns import CategoryColumn, DeclaredColumn, NumberColumn
from skldp.estimators._bayesian_filter import BayesianFilter
from skldp.estimators._categorical import CategoricalPrivatizer
from skldp.estimators._numeric import NumericPrivatizer
from skldp.estimators._private_discriminant import PrivateDiscriminant
from skldp.estimators._private_linear import PrivateLinearRegression
from skldp.estimators._private_logistic import PrivateLogisticRegression
from skldp.estimators._table import TablePrivatizer
from skldp.estimators._vector import PrivUnitTransformer
from skldp.laws._odds import split_epsilon
from skldp.learning._classification import ClassificationProtocol
from skldp.learning._discriminant import DiscriminantProtocol
from skldp.learning._protocol import Protocol
from skldp.learning._regression import RegressionProtocol
from skldp.mechanisms._record import NumberOrMissing, number_of_sampled_columns
from skldp.mechanisms.categorical._catalogue import CATEGORICAL_MECHANISMS, make_categorical_mechanism
from skldp.mechanisms.categorical._randomized_response import RandomizedResponse
from skldp.mechanisms.numeric._bounded_features import best_mechanism, worst_sampled_variance
from skldp.mechanisms.vector._privunit import PrivUnitBall
from skldp.study._declared_table import DeclaredTable

# Variance of a number that is uniform between -1 and 1.
_VARIANCE = 1 / 3
# Sufficiency of the people for half of what a fit without privacy learns: medians over random tables (python
# benchmarks/recommendations.py).
_FOR_HALF = {"rounds": 18, "once": 30, "logistic": 9, "discriminant": 300}
# Factor of these people, both ways, that covers .57 (discriminant) to .8 of the same tables.
_SPREAD = 5
# Public rows whose benefit is described.
_PUBLIC_ROWS = 200
# Integers up to this bound are exact as doubles.
_MOST = 10**12
# Tasks whose answer is a model.
_MODELLED = ("regression", "classification")
_OF_VALUES = "Root mean square over the values of a column: that of a rare value is smaller, of a frequent one larger."


@dataclass(frozen=True)
class RecommendedOption:
    """One method for a task; :func:`~skldp.recommend` describes it."""

    name: str
    figure: float
    n_needed: int | None
    estimator: Any


@dataclass(frozen=True)
class Recommendation:
    """Answer of :func:`~skldp.recommend`, which describes it; it prints as a short table."""

    task: str
    epsilon: float
    n_people: int
    n_features: int
    measure: str
    options: tuple[RecommendedOption, ...]
    reason: str

    @property
    def estimator(self) -> Any:
        """Recommended estimator."""
        return self.options[0].estimator

    def __str__(self) -> str:
        with_people = any(option.n_needed for option in self.options)
        rows = [("", self.measure, "people for half" if with_people else "")]
        rows += [
            (option.name, f"{option.figure:.3g}", f"{option.n_needed:,}" if option.n_needed else "")
            for option in self.options
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        counted = f"{self.n_features:,} {'features' if self.task in _MODELLED else 'declared columns'}"
        lines = [f"{self.task}, epsilon {self.epsilon:g}, {self.n_people:,} people, {counted}"]
        lines += [
            f"{name:<{widths[0]}}  {figure:>{widths[1]}}  {need:>{widths[2]}}".rstrip() for name, figure, need in rows
        ]
        return "\n".join([*lines, self.reason])


def recommend(
    schema: Any, task: str, epsilon: float, n_people: int, *, target: Any = None, n_questions: int = 10
) -> Recommendation:
    r"""Recommend the mechanism or model for a task at an epsilon, from public knowledge only.

    Parameters
    ----------
    schema : dict by column, Columns, JSON text, or array-like of shape (n_samples, n_features)
        Domains of the columns, as for :class:`~skldp.TablePrivatizer`. Of a table only the number or the names of the
        columns are used; each then holds numbers between -1 and 1, as :class:`~skldp.BoundsScaler` returns them.
    task : {"regression", "classification", "releases", "means", "frequencies", "questions"}
        ``"regression"``, ``"classification"``: train a linear model, the target as private as the features.
        ``"releases"``: release rows for the training of any model. ``"means"``, ``"frequencies"``: publish those of
        the numeric or the categorical columns. ``"questions"``: ask people for a model's predictions about them.
    epsilon : float
        Budget (natural log) of one record, the target included.
    n_people : int
        Number of people, each asked once. At most 10^12, as `n_questions`.
    target : str, (low, high) or list of classes, default=None
        Target of a regression or a classification: the name of a column in `schema`, or its domain.
    n_questions : int, default=10
        Number of questions for which a person's budget must suffice.

    Returns
    -------
    advice : Recommendation
        With `options`, the recommended one first, `reason`, `measure`, `task`, `epsilon`, `n_people`, `n_features` (of
        the encoded table; of declared columns without a model), and `estimator`, the recommended one, ready for a table
        with the declared columns (behind encoders that learn nothing). An option has `name`, `estimator`, `n_needed`
        (for models: number of people for half of what a fit without privacy learns) and `figure`, its value of the
        measure, of which less is better: ``"predicted loss"`` of a model, ``"noise over signal"`` or ``"standard
        error"``.

    Raises
    ------
    ValueError
        If a task has no column to work on, or a parameter is not as above.

    See Also
    --------
    privacy_utility_curve : Measured cost on data.
    TablePrivatizer : Release of columns of every kind.

    Notes
    -----
    For :math:`d` encoded features (one for each category; one for two or ordered categories):

    - models: the fraction that privacy removes of the R2 of a fit without privacy, or of its accuracy above that of
      the most frequent class: :math:`h / (h + n)` with h = `n_needed`, or 1 if there are too few people to begin (see
      :func:`skldp.learning.n_people_needed`). From h people a protocol has a ``sufficiency`` of 18 for a regression (30
      with ``protocol="once"``), 9 for a logistic regression and 300 for a discriminant, the medians over random tables
      of ``benchmarks/recommendations.py``.
    - releases: the variance of the noise in a feature over that of the signal, 1/3 of a number: for PrivUnit of a
      vector of norm at most :math:`\sqrt d` the mean over the bounds; for single values :math:`V / (1/3)` by their
      worst-case variance; for a category of k by randomized response :math:`1 / (p - q)^2 - 1`.
    - means and frequencies: the worst-case standard error :math:`\sqrt{V / n}`, of a number in units of half the width
      of the bounds, or mean over the values of a column. Each person is asked as many columns as have the least error.
    - questions: that of a mean answer, in units of half the width of the outputs, at the epsilon of one question.

    Examples
    --------
    >>> from skldp import recommend
    >>> people = {"age": (0, 100), "city": ["Bonn", "Köln", "Ulm"], "sick": [False, True]}
    >>> advice = recommend(people, "classification", epsilon=2.0, n_people=50_000, target="sick")
    >>> print(advice)
    classification, epsilon 2, 50,000 people, 4 features
                               predicted loss  people for half
    PrivateLogisticRegression         0.00632              318
    PrivateDiscriminant                0.0319            1,646
    In about three of five random tables, privacy took 0.0013 to 0.031 of the accuracy that ...
    >>> advice.estimator[-1].epsilon
    2.0
    """
    answers: dict[str, Callable[[_Request], Recommendation]] = {
        "regression": _regression,
        "classification": _classification,
        "releases": _releases,
        "means": _means,
        "frequencies": _frequencies,
        "questions": _questions,
    }
    check_choice("task", task, answers)
    check_epsilon(epsilon)
    check_integer("n_people", n_people, least=1, most=_MOST)
    check_integer("n_questions", n_questions, least=1, most=_MOST)
    modelled = task in _MODELLED
    if modelled != (target is not None):
        rule = "name the column to predict" if modelled else "be None unless the task is a regression or classification"
        raise ValueError(f"target must {rule}; got {target!r} for {task}.")
    table = DeclaredTable.of(schema, target, of_classes=task == "classification")
    advice = answers[task](_Request(table, task, float(epsilon), n_people, n_questions))
    if isinstance(schema, str | Mapping | Columns):
        return advice
    return replace(advice, reason=f"{advice.reason} All columns are taken to lie between -1 and 1.")


@dataclass(frozen=True)
class _Request:
    """Declared table, and parameters of the task."""

    table: DeclaredTable
    task: str
    epsilon: float
    n: int
    n_questions: int

    def answer(self, measure: str, options: Sequence[RecommendedOption], reason: str) -> Recommendation:
        """Return the recommendation of the first option."""
        n_features = self.table.n_features if self.task in _MODELLED else len(self.table.columns)
        wide = [str(name) for name, column in self.table.numbers.items() if column.is_wide]
        if wide and self.task not in ("frequencies", "questions"):
            reason += f" Bounds of {', '.join(wide[:4])} span a factor of 100 or more: if values are skewed, declare "
            reason += 'them as {"type": "number", "low": ..., "high": ..., "scale": "log"}.'
        return Recommendation(self.task, self.epsilon, self.n, n_features, measure, tuple(options), reason)

    def of_models(
        self, models: Sequence[tuple[str, Any, Protocol, str]], learnt: str, more: str = ""
    ) -> Recommendation:
        """Return the recommendation of the model with the least predicted loss of what is `learnt`.

        A model is its name, the estimator on the encoded table, its protocol and its key of ``_FOR_HALF``.
        """
        options = []
        for name, estimator, protocol, key in models:
            half = math.ceil(_FOR_HALF[key] * self.n / protocol.sufficiency)
            figure = half / (half + self.n) if protocol.is_enough else 1.0
            options.append(RecommendedOption(name, figure, half, make_pipeline(self.table.encoder(), estimator)))
        options.sort(key=lambda option: option.figure)
        if options[0].figure == 1:
            least = min(protocol.n_needed for _, _, protocol, _ in models)
            reason = f"Too few people for so many features: a model needs at least {least:,}."
        else:
            half = options[0].n_needed or 1
            low, high = (times * half / (times * half + self.n) for times in (1 / _SPREAD, _SPREAD))
            reason = f"In about three of five random tables, privacy took {low:.2g} to {high:.2g} of {learnt}.{more}"
        return self.answer("predicted loss", options, reason)


def _regression(request: _Request) -> Recommendation:
    target = request.table.target
    if not isinstance(target, NumberColumn) or target.scale != "linear":
        raise ValueError("The target of a regression must be numbers on a linear scale; got categories or a log scale.")
    bounds, d = (float(target.domain.low), float(target.domain.high)), request.table.n_features
    box: dict[str, Any] = {"epsilon": request.epsilon, "low": [-1.0] * (d + 1), "high": [1.0] * (d + 1)}
    in_rounds = RegressionProtocol(d, request.n, **box)
    once = RegressionProtocol(d, request.n, kind="once", **box)
    name, of_once = "PrivateLinearRegression", PrivateLinearRegression(request.epsilon, target_bounds=bounds)
    models = [
        (name, clone(of_once), in_rounds, "rounds"),
        (f"{name}, once", of_once.set_params(protocol="once"), once, "once"),
    ]
    return request.of_models(models, "the variance that a fit without it explains")


def _classification(request: _Request) -> Recommendation:
    classes = request.table.target.values if request.table.target else None
    if classes is None or len(classes) < 2 or None in classes:
        raise ValueError(
            "The target of a classification must be a list of at least two declared classes, without missing ones."
        )
    d, listed = request.table.n_features, list(classes)
    box: dict[str, Any] = {"epsilon": request.epsilon, "low": [-1.0] * d, "high": [1.0] * d}
    of_rows = ClassificationProtocol(d, request.n, len(listed), **box)
    of_tensor = DiscriminantProtocol(d, request.n, len(listed), **box)
    models = [
        (model.__name__, model(request.epsilon, classes=listed), protocol, key)
        for model, protocol, key in (
            (PrivateLogisticRegression, of_rows, "logistic"),
            (PrivateDiscriminant, of_tensor, "discriminant"),
        )
    ]
    learnt = "the accuracy that a fit without it gains over the most frequent class"
    return request.of_models(models, learnt, _with_public_rows(of_tensor, len(listed), box))


def _with_public_rows(private: DiscriminantProtocol, n_classes: int, box: Mapping[str, Any]) -> str:
    """Return a sentence on what public rows add, if their variances fall as one over their rank."""
    d, n_rows = private.n_features, _PUBLIC_ROWS
    axes = np.eye(d)[np.arange(n_rows) % d] / np.sqrt(1.0 + np.arange(n_rows) % d)[:, None]
    rows = axes * np.where(np.arange(n_rows) // d % 2, -1.0, 1.0)[:, None]
    public = DiscriminantProtocol(d, private.n_people, n_classes, public=rows, **box)
    share = private.sufficiency / public.sufficiency
    if share >= 1:
        return ""
    return (
        f" With {n_rows} public rows like those of the people, PrivateDiscriminant(public=rows) knows their covariance "
        f"and has as little noise from {share:.0%} of the people."
    )


def _releases(request: _Request) -> Recommendation:
    table, epsilon = request.table, request.epsilon
    share = split_epsilon(epsilon, len(table.columns))
    variances = [
        _noise_of_number(share, c) if c.values is None else _noise_of_response(share, c.values)
        for c in table.columns.values()
    ]
    privatizer = TablePrivatizer(epsilon, schema=table.schema)
    options = [RecommendedOption("TablePrivatizer", sum(variances) / len(variances), None, privatizer)]
    d = table.n_features
    _, mechanism, n_sampled = best_mechanism(epsilon, d)
    one_by_one = worst_sampled_variance(mechanism, d, n_sampled) / _VARIANCE
    numeric = make_pipeline(table.encoder(), NumericPrivatizer(epsilon, mechanism="best"))
    options.append(RecommendedOption("NumericPrivatizer, best", one_by_one, None, numeric))
    if d > 1:
        # A direction would lose the scale of the columns, which models need.
        vectors = PrivUnitTransformer(epsilon, norm=math.sqrt(d))
        bounded = table.needs_no_encoder
        release = vectors.set_params(bounds=table.bounds) if bounded else make_pipeline(table.encoder(), vectors)
        along, across = PrivUnitBall(d, epsilon, math.sqrt(d)).second_moments()
        figure = along - across - 1 + across * d / _VARIANCE
        options.append(RecommendedOption("PrivUnitTransformer", figure, None, release))
    options.sort(key=lambda option: option.figure)
    reason = "Models that release for themselves (task='regression', 'classification') learn more from the same people."
    return request.answer("noise over signal", options, reason)


def _noise_of_number(epsilon: float, column: DeclaredColumn) -> float:
    """Return noise over signal of a number that is uniform within its bounds, and may be missing."""
    if isinstance(column.coded, OrMissing):
        return NumberOrMissing.of(column.coded, epsilon).worst_variance / _VARIANCE
    return best_mechanism(epsilon, 1)[1].worst_variance / _VARIANCE


def _noise_of_response(epsilon: float, values: tuple[Any, ...]) -> float:
    """Return noise over signal of a uniform category: its squared correlation with the answer is (p - q)^2."""
    if len(values) == 1:
        return 0.0
    response = RandomizedResponse(epsilon, len(values))
    return 1 / (response.keep_probability - response.other_probability) ** 2 - 1


def _means(request: _Request) -> Recommendation:
    table, epsilon = request.table, request.epsilon
    numbers = DeclaredTable(table.numbers, None)
    if not numbers.columns:
        raise ValueError("Means need numeric columns; the schema has only categories.")
    d = len(numbers.columns)
    options = []
    if table.needs_no_encoder:
        _, mechanism, n_sampled = best_mechanism(epsilon, d)
        variance = worst_sampled_variance(mechanism, d, n_sampled)
        numeric = NumericPrivatizer(epsilon, bounds=table.bounds, mechanism="best")
        options.append(RecommendedOption("NumericPrivatizer, best", math.sqrt(variance / request.n), None, numeric))
    m, s = _sample(list(table.columns.values()), epsilon, "best")
    error = math.sqrt(worst_sampled_variance(best_mechanism(split_epsilon(epsilon, s), 1)[1], m, s) / request.n)
    release = TablePrivatizer(epsilon, schema=table.schema, n_sampled_features="auto", encoding="estimates")
    options.append(RecommendedOption(_named("TablePrivatizer", m, s), error, None, release))
    options.sort(key=lambda option: option.figure)
    reason = (
        "Upper bound of numbers, in units of half the width of a column's bounds; shares are of task='frequencies'. "
        "Answers of few values give means alone; "
        "TablePrivatizer(mechanism='square_wave') gives variances and histograms as well."
    )
    return request.answer("standard error", options, reason)


def _frequencies(request: _Request) -> Recommendation:
    table = request.table
    several = {name: column for name, column in table.categories.items() if len(column.values) > 1}
    if not several:
        raise ValueError("Frequencies need a column with at least two categories; the schema has none.")
    if table.numbers or any(column.missing == "category" for column in table.categories.values()):
        m, s = _sample(list(table.columns.values()), request.epsilon, "best")
        release = TablePrivatizer(
            request.epsilon,
            schema=table.schema,
            category_mechanism="best",
            n_sampled_features="auto",
            encoding="estimates",
        )
        error = _error(request, "best", several, m, s)
        option = RecommendedOption(_named("TablePrivatizer", m, s), error, None, release)
        reason = f"{_OF_VALUES} A frequency is the mean of a released column; other columns are released as well."
        return request.answer("standard error", [option], reason)
    categories = [list(column.values or ()) for column in table.columns.values()]
    options = []
    for name in ("best", *CATEGORICAL_MECHANISMS):
        m, s = _sample(list(several.values()), request.epsilon, name)
        error = _error(request, name, several, m, s)
        privatizer = CategoricalPrivatizer(
            request.epsilon,
            mechanism=name,  # type: ignore[arg-type]
            categories=categories,
            n_sampled_features="auto",
        )
        options.append(RecommendedOption(_named(f"CategoricalPrivatizer, {name}", m, s), error, None, privatizer))
    first, *others = options
    ordered = [first, *sorted(others, key=lambda option: option.figure)]
    reason = f"{_OF_VALUES} `best` is the shortest report within 1.05 times the least variance."
    return request.answer("standard error", ordered, reason)


def _sample(columns: Sequence[DeclaredColumn], epsilon: float, mechanism: str) -> tuple[int, int]:
    """Return the number of columns that are not constant, and how many of them each person is asked."""
    names = tuple("best" if column.values is None else mechanism for column in columns)
    n_sampled = number_of_sampled_columns("auto", [column.coded for column in columns], epsilon, names)
    m = sum(column.values is None or len(column.values) > 1 for column in columns)
    return m, n_sampled or m


def _named(name: str, m: int, s: int) -> str:
    return name if s == m else f"{name}, {s} of {m} columns"


def _error(request: "_Request", mechanism: str, columns: Mapping[Any, CategoryColumn], m: int, s: int) -> float:
    """Return the largest worst-case standard error of a frequency in the columns, s of m being asked."""
    share, variances = split_epsilon(request.epsilon, s), []
    for column in columns.values():
        k = len(column.values)
        of_people = (k - 1) / k**2
        law = make_categorical_mechanism(mechanism, share, k)
        variances.append(m / s * (law.worst_case_variance + of_people) - of_people)
    return math.sqrt(max(variances) / request.n)


def _questions(request: _Request) -> Recommendation:
    table = request.table
    if not table.needs_no_encoder:
        raise ValueError("Questions need numeric columns without missing values; the schema has others.")
    # Slightly below the share of the budget: sums of epsilons are rounded up.
    each = request.epsilon / request.n_questions * (1 - 1e-9)
    filtered = BayesianFilter(
        LinearRegression(), epsilon=each, total_epsilon=request.epsilon, bounds=table.bounds, output_bounds=(-1, 1)
    )
    # An answer is one of the two ends of the outputs.
    error = 1 / (math.tanh(each / 2) * math.sqrt(request.n))
    option = RecommendedOption(f"BayesianFilter, epsilon {each:g} each", error, None, filtered)
    reason = (
        f"Of a mean answer, in units of half the width of output_bounds. {request.n_questions} answers are "
        "guaranteed; people with a smaller loss answer more (see skldp.study.plan_questions)."
    )
    return request.answer("standard error", [option], reason)
