"""Recommendation of a mechanism or model for a task, from declared columns alone, without data."""

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import entr, rel_entr, softmax
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline, make_pipeline

from skldp._arrays import Floats
from skldp._checks import check_choice, check_epsilon, check_fraction, check_integer
from skldp._progress import Progress
from skldp._tables import text_table
from skldp.domains._column import Column
from skldp.estimators._categorical import CategoricalPrivatizer
from skldp.estimators._column_encoder import ColumnEncoder, encoded
from skldp.estimators._declared_table import DeclaredTable
from skldp.estimators._numeric import NumericPrivatizer
from skldp.estimators._private_model import model_of
from skldp.estimators._table import TablePrivatizer
from skldp.estimators._vector import PrivUnitTransformer
from skldp.laws._odds import split_epsilon
from skldp.mechanisms._record import number_of_sampled_columns
from skldp.mechanisms.categorical._one_hot import CATEGORICAL_MECHANISMS, make_categorical_mechanism
from skldp.mechanisms.categorical._randomized_response import RandomizedResponse
from skldp.mechanisms.numeric._bounded_features import NumberOrMissing, best_mechanism, worst_sampled_variance
from skldp.mechanisms.vector._privunit import PrivUnitBall

# Variance of a number that is uniform between -1 and 1.
_VARIANCE = 1 / 3
# Places of the made-up tables on which models are tried, between even and skewed ones.
_SKEWS = (0.0, 0.25, 0.5, 0.75, 1.0)
# Sizes up to which models are tried, for the time that it takes, and rows on which their losses are counted.
_MOST_TRIED, _MOST_FEATURES, _LEAST_ROWS = 100_000, 64, 2_000
# Smaller losses are shown as the first. Losses up to nine-fold apart are shown as their middle, within a factor of 3.
_LEAST_LOSS, _MOST_APART = 0.01, 9
# Integers up to this bound are exact as doubles.
_MOST = 10**12
# Deviation of an even number, in halves of the width of its bounds, and the factor by which a skewed one is narrower.
_DEVIATION, _NARROWER = 1 / 6, 4
_MODELLED = ("regression", "classification")
_OF_VALUES = "Root mean square over the values of a column: that of a rare value is smaller, of a frequent one larger."


@dataclass(frozen=True)
class RecommendedOption:
    """One method for a task; :func:`recommend` describes it."""

    name: str
    figure: float
    range: tuple[float, float] | None
    estimator: Any


@dataclass(frozen=True)
class Recommendation:
    """Answer of :func:`recommend`, which describes it; it prints as a short table."""

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
        tried = any(option.range for option in self.options)
        rows = [("", self.measure, "range" if tried else "")]
        for option in self.options:
            figure = "not known" if math.isnan(option.figure) else f"{option.figure:.{2 if tried else 3}g}"
            rows.append((option.name, figure, "{:.2g} to {:.2g}".format(*option.range) if option.range else ""))
        counted = f"{self.n_features:,} {'features' if self.task in _MODELLED else 'declared columns'}"
        title = f"{self.task}, epsilon {self.epsilon:g}, {self.n_people:,} people, {counted}"
        return f"{text_table(title, rows)}\n{self.reason}"


def recommend(
    schema: Any,
    task: str,
    epsilon: float,
    n_people: int,
    *,
    target: Any = None,
    explained: float = 0.3,
    shares: Sequence[float] | None = None,
    verbose: bool = False,
) -> Recommendation:
    r"""Recommend the mechanism or model for a task at an epsilon, from public knowledge only.

    Parameters
    ----------
    schema : dict by column or JSON text
        Domains of the columns, as for :class:`~skldp.TablePrivatizer`.
    task : {"regression", "classification", "releases", "means", "frequencies"}
        ``"regression"``, ``"classification"``: train a linear model, the target as private as the features.
        ``"releases"``: release rows for the training of any model. ``"means"``, ``"frequencies"``: publish those of
        the numeric or the categorical columns.
    epsilon : float
        Budget (natural log) of one record, the target included.
    n_people : int
        Number of people, each asked once. At most 10^12.
    target : str, (low, high) or list of classes, default=None
        Target of a regression or a classification: the name of a column in `schema`, or its domain.
    explained : float, default=0.3
        Fraction of the target's variance, or of the log loss of the shares of the classes, that a linear model without
        privacy is expected to explain.
    shares : sequence of float, default=None
        Expected shares of the classes, in the order of their declaration. None takes equal ones.
    verbose : bool, default=False
        Show progress on standard error, from two seconds on.

    Returns
    -------
    advice : Recommendation
        With `options`, the recommended one first, `reason`, `measure`, `task`, `epsilon`, `n_people`, `n_features` (of
        the encoded table; of declared columns without a model), and `estimator`, the recommended one, ready for a table
        with the declared columns (behind encoders that learn nothing). An option has `name`, `estimator`, `figure`, its
        value of the measure, of which less is better: ``"predicted loss"`` of a model, ``"noise over signal"`` or
        ``"standard error"``; and for models `range`, the least and the largest loss in the simulations. A loss that is
        not known is NaN.

    Raises
    ------
    ValueError
        If a task has no column to work on, or a parameter is not as above.

    See Also
    --------
    privacy_utility_curve : Measured cost on data.
    skldp.private_model : Makes the models.
    skldp.TablePrivatizer : Release of columns of every kind.

    Notes
    -----
    For :math:`d` encoded features (one for each category; one for two or ordered categories):

    - models: the fraction that privacy removes of the variance or log loss that a linear model explains, at least .01
      and at most 1. Each option is fitted to five made-up tables with the declared columns, up to 100,000 people, 64
      features and 64 classes. This takes seconds, for the largest tables minutes. Numbers have a deviation of a sixth
      of half the width of their bounds. Those with 0 <= 10 low <= high are lognormal, others and dates normal. From the
      first to the last table, the logarithms' deviation grows from 0.1 to 1.1, correlations of the normal numbers fall
      from 0.9 to 0.1, the target becomes four times narrower and each feature up to four times, and categories become
      unequal. The figure is the geometric mean of both ends of the range if these differ by a factor of at most nine,
      otherwise NaN. Real columns may be outside.
    - releases: the variance of the noise in a feature over that of the signal, 1/3 of a number: for PrivUnit of a
      vector of norm at most :math:`\sqrt d` the mean over the bounds; for single values :math:`V / (1/3)` by their
      worst-case variance; for a category of k by randomized response :math:`1 / (p - q)^2 - 1`.
    - means and frequencies: the worst-case standard error :math:`\sqrt{V / n}`, of a number in units of half the width
      of the bounds, or mean over the values of a column. Each person is asked as many columns as have the least error.

    Examples
    --------
    >>> from skldp.study import recommend
    >>> people = {"age": (0, 100), "city": ["Bonn", "Köln", "Ulm"], "sick": [False, True]}
    >>> advice = recommend(people, "classification", epsilon=2.0, n_people=2_000, target="sick")
    >>> advice.options[0].range[1] <= 1, advice.estimator[-1].epsilon
    (True, 2.0)
    """
    answers: dict[str, Callable[[_Request], Recommendation]] = {
        "regression": _regression,
        "classification": _classification,
        "releases": _releases,
        "means": _means,
        "frequencies": _frequencies,
    }
    check_choice("task", task, answers)
    check_epsilon(epsilon)
    check_integer("n_people", n_people, least=1, most=_MOST)
    modelled = task in _MODELLED
    check_fraction("explained", explained)
    if modelled != (target is not None):
        rule = "name the column to predict" if modelled else "be None unless the task is a regression or classification"
        raise ValueError(f"target must {rule}; got {target!r} for {task}.")
    if shares is not None and task != "classification":
        raise ValueError(f"shares must be None unless the task is a classification; got {shares!r} for {task}.")
    table = DeclaredTable.of(schema, target, of_classes=task == "classification")
    return answers[task](_Request(table, task, float(epsilon), n_people, float(explained), shares, verbose))


@dataclass(frozen=True)
class _Request:
    """Declared table, and parameters of the task."""

    table: DeclaredTable
    task: str
    epsilon: float
    n: int
    explained: float
    shares: Sequence[float] | None
    verbose: bool

    def answer(self, measure: str, options: Sequence[RecommendedOption], reason: str) -> Recommendation:
        """Return the recommendation of the first option."""
        n_features = self.table.n_features if self.task in _MODELLED else len(self.table.columns)
        wide = [str(name) for name, column in self.table.numbers.items() if column.is_wide]
        if wide and self.task != "frequencies":
            reason += f" Bounds of {', '.join(wide[:4])} span a factor of 100 or more: if values are skewed, declare "
            reason += 'them as {"type": "number", "low": ..., "high": ..., "scale": "log"}.'
        return Recommendation(self.task, self.epsilon, self.n, n_features, measure, tuple(options), reason)

    def of_models(self, models: Mapping[str, Pipeline], learnt: str, shares: Any = None) -> Recommendation:
        """Return the recommendation of the model with the least simulated loss."""
        n, columns = min(self.n, _MOST_TRIED), list(self.table.columns.values())
        losses = np.full((len(_SKEWS), len(models)), math.nan)
        is_tried = max(self.table.n_features, 0 if shares is None else len(shares)) <= _MOST_FEATURES
        for seed, skew in enumerate(Progress("tables", len(_SKEWS), show=self.verbose).track(_SKEWS * is_tried)):
            table = made_up(columns, self.table.target, max(n, _LEAST_ROWS), self.explained, shares, skew, seed)
            losses[seed] = [max(_LEAST_LOSS, loss(model[-1], n, *table, seed)) for model in models.values()]
        options, names = [], list(models)
        for i in np.argsort(losses.mean(axis=0), kind="stable"):
            low, high = float(losses[:, i].min()), float(losses[:, i].max())
            figure = math.sqrt(low * high) if high <= _MOST_APART * low else math.nan
            options.append(RecommendedOption(names[i], figure, (low, high), models[names[i]]))
        reason = (
            f"Simulated with {n:,} people in {len(_SKEWS)} made-up tables, from even to skewed, in which a model "
            f"without privacy explains {self.explained:g} of {learnt}. Losses that differ more than {_MOST_APART}-fold "
            "are not known: see privacy_utility_curve, on rows like those of the people."
        )
        if not is_tried:
            reason = (
                f"Losses are not known for more than {_MOST_FEATURES} features or classes, and the models not in order."
            )
        elif losses.min() == 1:
            reason = "Too few people to learn anything from so many features."
        return self.answer("predicted loss", options, reason)


def _regression(request: _Request) -> Recommendation:
    rounds, once = (model_of(request.table, request.epsilon, "linear", protocol=one) for one in ("rounds", "once"))
    return request.of_models({"PrivateLinearRegression": rounds, "PrivateLinearRegression, once": once}, "the variance")


def _classification(request: _Request) -> Recommendation:
    models = [model_of(request.table, request.epsilon, name) for name in ("logistic", "discriminant")]
    k = len(models[0][-1].classes)
    shares = np.asarray([1 / k] * k if request.shares is None else request.shares, dtype=float)
    if shares.shape != (k,) or not (shares > 0).all() or abs(shares.sum() - 1) > 1e-3:
        raise ValueError(f"shares must be {k} positive numbers with sum 1, one a class; got {request.shares!r}.")
    of_shares = "equal shares" if request.shares is None else "the given shares"
    learnt = f"the log loss of {of_shares} of the classes"
    return request.of_models({type(model[-1]).__name__: model for model in models}, learnt, shares)


def _releases(request: _Request) -> Recommendation:
    table, epsilon = request.table, request.epsilon
    share = split_epsilon(epsilon, len(table.columns))
    variances = [_noise_over_signal(share, column) for column in table.columns.values()]
    privatizer = TablePrivatizer(epsilon, schema=table.schema)
    options = [RecommendedOption("TablePrivatizer", sum(variances) / len(variances), None, privatizer)]
    d = table.n_features
    _, mechanism, n_sampled = best_mechanism(epsilon, d)
    one_by_one = worst_sampled_variance(mechanism, d, n_sampled) / _VARIANCE
    numeric = make_pipeline(ColumnEncoder(table.columns), NumericPrivatizer(epsilon, mechanism="best"))
    options.append(RecommendedOption("NumericPrivatizer, best", one_by_one, None, numeric))
    if d > 1:
        # A direction would lose the scale of the columns, which models need.
        release = make_pipeline(ColumnEncoder(table.columns), PrivUnitTransformer(epsilon, norm=math.sqrt(d)))
        along, across = PrivUnitBall(d, epsilon, math.sqrt(d)).second_moments()
        figure = along - across - 1 + across * d / _VARIANCE
        options.append(RecommendedOption("PrivUnitTransformer", figure, None, release))
    options.sort(key=lambda option: option.figure)
    reason = "Models that release for themselves (task='regression', 'classification') learn more from the same people."
    return request.answer("noise over signal", options, reason)


def _noise_over_signal(epsilon: float, column: Column) -> float:
    """Return noise over signal of a uniform number or category."""
    if column.values is None:
        law: Any = NumberOrMissing.of(column, epsilon) if column.may_be_nan else best_mechanism(epsilon, 1)[1]
        return float(law.worst_variance / _VARIANCE)
    if len(column.values) == 1:
        return 0.0
    response = RandomizedResponse(epsilon, len(column.values))
    # The squared correlation of a category with its answer is (p - q)^2.
    return 1 / (response.p - response.q) ** 2 - 1


def _means(request: _Request) -> Recommendation:
    table, epsilon = request.table, request.epsilon
    if not (d := len(table.numbers)):
        raise ValueError("Means need numeric columns; the schema has only categories.")
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
    table, epsilon = request.table, request.epsilon
    several = {name: column for name, column in table.categories.items() if len(column.values) > 1}
    if not several:
        raise ValueError("Frequencies need a column with at least two categories; the schema has none.")
    if table.numbers or any(column.missing == "category" for column in table.categories.values()):
        m, s = _sample(list(table.columns.values()), epsilon, "best")
        settings = {"category_mechanism": "best", "n_sampled_features": "auto", "encoding": "estimates"}
        release = TablePrivatizer(epsilon, schema=table.schema).set_params(**settings)
        error = _error(request, "best", several, m, s)
        option = RecommendedOption(_named("TablePrivatizer", m, s), error, None, release)
        reason = f"{_OF_VALUES} A frequency is the mean of a released column; other columns are released as well."
        return request.answer("standard error", [option], reason)
    categories = [list(column.values) for column in table.columns.values()]
    options = []
    for name in ("best", *CATEGORICAL_MECHANISMS):
        m, s = _sample(list(several.values()), epsilon, name)
        error = _error(request, name, several, m, s)
        privatizer = CategoricalPrivatizer(epsilon, categories=categories, n_sampled_features="auto")
        privatizer.set_params(mechanism=name)
        options.append(RecommendedOption(_named(f"CategoricalPrivatizer, {name}", m, s), error, None, privatizer))
    first, *others = options
    ordered = [first, *sorted(others, key=lambda option: option.figure)]
    reason = f"{_OF_VALUES} `best` is the shortest report within 1.05 times the least variance."
    return request.answer("standard error", ordered, reason)


def _sample(columns: Sequence[Column], epsilon: float, mechanism: str) -> tuple[int, int]:
    """Return the number of columns that are not constant, and how many of them each person is asked."""
    names = tuple("best" if column.values is None else mechanism for column in columns)
    n_sampled = number_of_sampled_columns("auto", columns, epsilon, names)
    m = sum(column.values is None or len(column.values) > 1 for column in columns)
    return m, n_sampled or m


def _named(name: str, m: int, s: int) -> str:
    return name if s == m else f"{name}, {s} of {m} columns"


def _error(request: "_Request", mechanism: str, columns: Mapping[Any, Column], m: int, s: int) -> float:
    """Return the largest worst-case standard error of a frequency in the columns, s of m being asked."""
    share, variances = split_epsilon(request.epsilon, s), []
    for column in columns.values():
        k = len(column.values)
        of_people = (k - 1) / k**2
        law = make_categorical_mechanism(mechanism, share, k)
        variances.append(m / s * (law.worst_case_variance + of_people) - of_people)
    return math.sqrt(max(variances) / request.n)


def made_up(
    columns: Iterable[Column], target: Any, n: int, explained: float, shares: Any, skew: float, seed: int
) -> tuple[Floats, np.ndarray, Floats]:
    """Draw features and targets between -1 and 1, and a clean linear model's predictions; 0 <= `skew` <= 1."""
    rng = np.random.default_rng(seed)
    common, alike, blocks = rng.standard_normal(n), 0.9 - 0.8 * skew, []
    for column in columns:
        if not column.has_codes:
            normal = math.sqrt(alike) * common + math.sqrt(1 - alike) * rng.standard_normal(n)
            numbers = column.center + column.radius * _places(column, normal, skew, skew * rng.uniform(-0.6, 1))
        else:
            k = len(column.values)
            numbers = rng.choice(k, n, p=(1 - skew) / k + skew * rng.dirichlet([2.0] * k)).astype(np.float64)
        features, low, high = encoded(column, numbers)
        blocks.append((2 * features - low - high) / (high - low))
    X = np.hstack(blocks)
    weights = rng.normal(1 - skew, 1.0, (X.shape[1], 1 if shares is None else len(shares)))
    signal = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9) @ weights
    signal = (signal - signal.mean(axis=0)) / np.maximum(signal.std(axis=0), 1e-9)
    if shares is None:
        if _is_positive(target):
            # A linear model explains less of a lognormal number than of its logarithm.
            explained = min(1.0, explained * math.expm1((0.1 + skew) ** 2) / (0.1 + skew) ** 2)
        normal = math.sqrt(explained) * signal[:, 0] + math.sqrt(1 - explained) * rng.standard_normal(n)
        y = _places(target, normal, skew, skew)
        return X, y, LinearRegression().fit(X, y).predict(X)
    strength = 0.0
    for step in 2.0 ** np.arange(6, -8, -1):
        p = softmax((strength + step) * signal + np.log(shares), axis=1)
        if 1 - entr(p).sum(axis=1).mean() / entr(p.mean(axis=0)).sum() < explained:
            strength += step
    p = softmax(strength * signal + np.log(shares), axis=1)
    return X, (rng.random((n, 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1), p


def loss(model: Any, n: int, X: Floats, y: np.ndarray, expected: Floats, seed: int) -> float:
    """Return the fraction, at most 1, of what is to be learnt that a private fit to the first n rows does not learn."""
    is_number = expected.ndim == 1
    own: dict[str, Any] = {"target_bounds": (-1, 1)} if is_number else {"classes": range(expected.shape[1])}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = clone(model).set_params(seed=seed, **own).fit(X[:n], y[:n])
    if is_number:
        lost, learnt = (fitted.predict(X) - expected) ** 2, expected.var()
    else:
        lost, learnt = (rel_entr(expected, q).sum(axis=1) for q in (fitted.predict_proba(X), expected.mean(axis=0)))
    return min(1.0, float(lost.mean() / learnt.mean())) if learnt.mean() > 0 else 1.0


def _is_positive(column: Column) -> bool:
    is_linear = not column.has_codes and column.scale == "linear" and not column.is_date
    return is_linear and 0 <= 10 * column.low <= column.high


def _places(column: Column, normal: Floats, skew: float, narrower: float) -> Floats:
    """Return values between -1 and 1, normal, or lognormal from -1 on for a positive column."""
    width, variance = _DEVIATION / _NARROWER**narrower, (0.1 + skew) ** 2
    if _is_positive(column):
        deviation = math.exp(variance / 2) * math.sqrt(math.expm1(variance))
        return np.clip(width / deviation * np.exp(math.sqrt(variance) * normal) - 1, -1, 1)
    return np.clip(width * normal, -1, 1)
