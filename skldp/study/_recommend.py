"""Which mechanism or model: an answer by task, from the laws of the mechanisms and what is declared, without data."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from skldp._checks import check_whole
from skldp.estimators._bayesian_filter import BayesianFilter
from skldp.estimators._categorical import CategoricalPrivatizer
from skldp.estimators._numeric import NumericPrivatizer
from skldp.estimators._private_discriminant import PrivateDiscriminant
from skldp.estimators._private_linear import PrivateLinearRegression
from skldp.estimators._private_logistic import PrivateLogisticRegression
from skldp.estimators._schema import DeclaredColumn
from skldp.estimators._table import TablePrivatizer
from skldp.estimators._validation import check_epsilon
from skldp.estimators._vector import PrivUnitTransformer
from skldp.learning._classification import ClassificationProtocol
from skldp.learning._discriminant import DiscriminantProtocol
from skldp.learning._protocol import Protocol
from skldp.learning._regression import RegressionProtocol
from skldp.mechanisms._categorical.catalogue import CATEGORICAL_MECHANISMS, make_categorical_mechanism
from skldp.mechanisms._categorical.randomized_response import RandomizedResponse
from skldp.mechanisms._columns import Integers, Interval, OrMissing
from skldp.mechanisms._number_or_missing import NumberOrMissing
from skldp.mechanisms._numeric.bounded_features import worst_sampled_variance
from skldp.mechanisms._numeric.catalogue import best_mechanism
from skldp.mechanisms._odds import split_epsilon
from skldp.mechanisms._vector.privunit import PrivUnitBall
from skldp.study._declared_table import DeclaredTable

__all__ = ["Recommendation", "RecommendedOption", "recommend"]

# Of a number that is uniform between -1 and 1.
_VARIANCE = 1 / 3
# From this sufficiency on, what noise takes from a fit is small, a thirtieth of the variance: a model whose questions
# are exact is worth the people whom its scale and its products cost.
_AMPLE = 30.0
# More people than there will be; a number that no double holds could not be calculated with.
_MOST = 10**12


@dataclass(frozen=True)
class RecommendedOption:
    """One way to do a task.

    Attributes
    ----------
    name : str
    figure : float
    n_needed : int or None
        How many people it takes before anything is learnt, for a model that is made for it.
    estimator : estimator
        Ready to be fitted to a table with the declared columns.
    """

    name: str
    figure: float
    n_needed: int | None
    estimator: Any


@dataclass(frozen=True)
class Recommendation:
    """What :func:`~skldp.recommend` answers; it prints as a short table.

    Attributes
    ----------
    task : str
    epsilon : float
    n_people : int
    measure : str
        What the figures of the options are: ``"sufficiency"`` of each model's own question, of which more is better, or
        ``"noise over signal"`` and ``"standard error"``, of which less is.
    options : tuple of RecommendedOption
        The recommended one first.
    reason : str
    """

    task: str
    epsilon: float
    n_people: int
    measure: str
    options: tuple[RecommendedOption, ...]
    reason: str

    @property
    def estimator(self) -> Any:
        """The recommended estimator, as a clone of its own."""
        return clone(self.options[0].estimator)

    def __str__(self) -> str:
        with_people = any(option.n_needed for option in self.options)
        rows = [("", self.measure, "people needed" if with_people else "")]
        rows += [
            (option.name, f"{option.figure:.3g}", f"{option.n_needed:,}" if option.n_needed else "")
            for option in self.options
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [f"{self.task}, epsilon {self.epsilon:g}, {self.n_people:,} people"]
        lines += [
            f"{name:<{widths[0]}}  {figure:>{widths[1]}}  {need:>{widths[2]}}".rstrip() for name, figure, need in rows
        ]
        return "\n".join([*lines, self.reason])


def recommend(
    schema: Any,
    task: str,
    epsilon: float,
    n_people: int,
    *,
    target: Any = None,
    n_questions: int = 10,
) -> Recommendation:
    r"""Say which mechanism or model does a task best at an epsilon, from public knowledge alone.

    Parameters
    ----------
    schema : dict by column, Columns, JSON text, or array-like of shape (n_samples, n_features)
        What the columns may hold, as of :class:`~skldp.TablePrivatizer`. Of a table only the number or the names of the
        columns are looked at; each then holds numbers between -1 and 1, as :class:`~skldp.BoundsScaler` gives them.
    task : {"regression", "classification", "releases", "means", "frequencies", "questions"}
        ``"regression"``, ``"classification"``: train a linear model, the target as private as the features.
        ``"releases"``: release rows on which any model can be trained. ``"means"``, ``"frequencies"``: publish those of
        the columns of numbers, or of categories. ``"questions"``: ask people for a model's predictions about them.
    epsilon : float
        Budget (natural log) of one record, the target included.
    n_people : int
        Who will be asked, each once. At most 10^12, as questions are.
    target : str, (low, high) or list of classes, default=None
        Of a regression or a classification: the name of a column in `schema`, or what it may hold.
    n_questions : int, default=10
        That everybody's budget is to suffice for, whatever is answered.

    Returns
    -------
    Recommendation
        With the ready `estimator`, in a pipeline behind encoders that learn nothing where there are categories.

    Raises
    ------
    ValueError
        If a task has nothing to work on, or a parameter is not as above.

    See Also
    --------
    privacy_utility_curve : What it costs on data that may be looked at.
    TablePrivatizer : The one that takes every kind of column.

    Notes
    -----
    Nothing is tuned on any table. Of :math:`d` encoded features (one for each category, one alone for two or where they
    are ordered):

    - models: the sufficiency :math:`J = n / (v D^2)` of :func:`skldp.learning.sufficiency`, divided by one less than
      the classes, about one over the part of the variance that privacy takes from a fit. At least 8 is needed, and
      some people for each number. For classes, logistic regression is taken from 30 on; below it the discriminant,
      whose one question has :math:`(K - 1) d` numbers instead of products, and needs a sufficiency of 0.5 of its own.
    - releases: the variance of the noise in a feature over that of the signal, 1/3 of a number: of a whole vector of
      norm at most :math:`\sqrt d` by PrivUnit the mean over the bounds; of values :math:`V / (1/3)` by their
      worst-case variance; of a category of k by randomized response :math:`1 / (p - q)^2 - 1`.
    - means and frequencies: the worst-case standard error :math:`\sqrt{V / n}`, in units of half the width of the
      bounds, or as a frequency.
    - questions: that of a mean answer, in units of half the width of the outputs, at the epsilon of one question.

    Examples
    --------
    >>> from skldp import recommend
    >>> people = {"age": (0, 100), "city": ["Bonn", "Köln", "Ulm"], "sick": [False, True]}
    >>> advice = recommend(people, "classification", epsilon=2.0, n_people=50_000, target="sick")
    >>> print(advice)
    classification, epsilon 2, 50,000 people
                               sufficiency  people needed
    PrivateLogisticRegression     1.42e+03            282
    PrivateDiscriminant           9.11e+03              3
    People are ample: what logistic regression asks is exact, and its noise small.
    >>> advice.estimator[-1].epsilon
    2.0
    """
    answers: dict[str, Callable[[_Asked], Recommendation]] = {
        "regression": _regression,
        "classification": _classification,
        "releases": _releases,
        "means": _means,
        "frequencies": _frequencies,
        "questions": _questions,
    }
    if task not in answers:
        raise ValueError(f"task must be one of {', '.join(answers)}. Got {task!r} instead.")
    check_epsilon(epsilon)
    check_whole("n_people", n_people, least=1, most=_MOST)
    check_whole("n_questions", n_questions, least=1, most=_MOST)
    modelled = task in ("regression", "classification")
    if modelled != (target is not None):
        raise ValueError(f"target is for regression and classification, which need one. Got {target!r} for {task}.")
    table = DeclaredTable.of(schema, target, of_classes=task == "classification")
    return answers[task](_Asked(table, task, float(epsilon), n_people, n_questions))


@dataclass(frozen=True)
class _Asked:
    """What is declared, and what is asked for."""

    table: DeclaredTable
    task: str
    epsilon: float
    n: int
    n_questions: int

    def answer(self, measure: str, options: Sequence[RecommendedOption], reason: str) -> Recommendation:
        return Recommendation(self.task, self.epsilon, self.n, measure, tuple(options), reason)

    def model(self, name: str, estimator: Any, protocol: Protocol) -> RecommendedOption:
        """A model on the encoded table, with the people that its protocol takes."""
        if self.table.not_encoded:
            raise ValueError(
                "Models take numbers, and categories that are never missing; dates must be numbers first, of days. "
                f"Got {', '.join(self.table.not_encoded[:4])} of another kind."
            )
        whole = make_pipeline(self.table.encoder(), estimator)
        return RecommendedOption(name, protocol.sufficiency, protocol.n_needed, whole)

    def too_few(self, options: Sequence[RecommendedOption]) -> str:
        needed = min(option.n_needed or 0 for option in options)
        return f"Too few people: nothing is learnt with fewer than {needed:,}, or with so many features."


def _regression(asked: _Asked) -> Recommendation:
    domain = asked.table.target.domain if asked.table.target else None
    if not isinstance(domain, Interval | Integers):
        raise ValueError("The target of a regression must hold numbers. Got categories instead.")
    bounds, d = (float(domain.low), float(domain.high)), asked.table.n_features
    low, high = [-1.0] * (d + 1), [1.0] * (d + 1)
    in_rounds = RegressionProtocol(d, asked.n, epsilon=asked.epsilon, low=low, high=high)
    once = RegressionProtocol(d, asked.n, epsilon=asked.epsilon, low=low, high=high, kind="once")
    name, of_once = "PrivateLinearRegression", PrivateLinearRegression(asked.epsilon, target_bounds=bounds)
    options = [
        asked.model(name, clone(of_once), in_rounds),
        asked.model(f"{name}, once", of_once.set_params(protocol="once"), once),
    ]
    part = (
        f"Privacy takes about {min(1, 1 / in_rounds.sufficiency):.2g} of the variance that a fit without it explains."
    )
    return asked.answer("sufficiency", options, part if in_rounds.is_enough else asked.too_few(options))


def _classification(asked: _Asked) -> Recommendation:
    classes = asked.table.target.values if asked.table.target else None
    if classes is None or len(classes) < 2:
        raise ValueError("The target of a classification must be a list of at least two declared classes. Got others.")
    d, listed = asked.table.n_features, list(classes)
    box: dict[str, Any] = {"epsilon": asked.epsilon, "low": [-1.0] * d, "high": [1.0] * d}
    of_rows = ClassificationProtocol(d, asked.n, len(listed), **box)
    of_tensor = DiscriminantProtocol(d, asked.n, len(listed), **box)
    logistic = asked.model(
        "PrivateLogisticRegression", PrivateLogisticRegression(asked.epsilon, classes=listed), of_rows
    )
    discriminant = asked.model("PrivateDiscriminant", PrivateDiscriminant(asked.epsilon, classes=listed), of_tensor)
    if of_rows.is_enough and of_rows.sufficiency >= _AMPLE:
        reason = "People are ample: what logistic regression asks is exact, and its noise small."
        return asked.answer("sufficiency", [logistic, discriminant], reason)
    options = [discriminant, logistic]
    if not of_tensor.is_enough:
        return asked.answer("sufficiency", options, asked.too_few(options))
    ample = math.ceil(asked.n * _AMPLE / of_rows.sufficiency)
    return asked.answer("sufficiency", options, f"With {ample:,} people it would be logistic regression.")


def _releases(asked: _Asked) -> Recommendation:
    table, epsilon = asked.table, asked.epsilon
    share = split_epsilon(epsilon, len(table.columns))
    alone = [
        _noise_of_number(share, c) if c.values is None else _noise_of_response(share, c.values)
        for c in table.columns.values()
    ]
    whole_table = TablePrivatizer(epsilon, schema=table.schema)
    options = [RecommendedOption("TablePrivatizer", sum(alone) / len(alone), None, whole_table)]
    if not table.not_encoded:
        d = table.n_features
        _, mechanism, n_sampled = best_mechanism(epsilon, d)
        one_by_one = worst_sampled_variance(mechanism, d, n_sampled) / _VARIANCE
        numeric = make_pipeline(table.encoder(), NumericPrivatizer(epsilon, mechanism="best"))
        options.append(RecommendedOption("NumericPrivatizer, best", one_by_one, None, numeric))
        if d > 1:
            # A vector, not its direction: a model may predict one column from the others, on the scale of its bounds.
            vectors = PrivUnitTransformer(epsilon, norm=math.sqrt(d))
            bounded = table.needs_no_encoder
            whole = vectors.set_params(bounds=table.bounds) if bounded else make_pipeline(table.encoder(), vectors)
            along, across = PrivUnitBall(d, epsilon, math.sqrt(d)).second_moments()
            figure = along - across - 1 + across * d / _VARIANCE
            options.append(RecommendedOption("PrivUnitTransformer", figure, None, whole))
    options.sort(key=lambda option: option.figure)
    reason = "A model that asks people for what it needs (task='regression', 'classification') learns more of as many."
    return asked.answer("noise over signal", options, reason)


def _noise_of_number(epsilon: float, column: DeclaredColumn) -> float:
    """Noise over signal of a number that is uniform within its bounds; where it may be missing, of both."""
    if isinstance(column.coded, OrMissing):
        return NumberOrMissing.of(column.coded, epsilon).worst_variance / _VARIANCE
    return best_mechanism(epsilon, 1)[1].worst_variance / _VARIANCE


def _noise_of_response(epsilon: float, values: tuple[Any, ...]) -> float:
    """Noise over signal of a category that is uniform: its square correlation with the answer is (p - q)^2."""
    if len(values) == 1:
        return 0.0
    response = RandomizedResponse(epsilon, len(values))
    return 1 / (response.keep_probability - response.other_probability) ** 2 - 1


def _means(asked: _Asked) -> Recommendation:
    table, epsilon = asked.table, asked.epsilon
    numbers = DeclaredTable(table.numbers, None)
    if not numbers.columns:
        raise ValueError("Means are of numbers. Got a schema of categories alone.")
    d = len(numbers.columns)
    share = split_epsilon(epsilon, len(table.columns))
    options = []
    if table.needs_no_encoder:
        _, mechanism, n_sampled = best_mechanism(epsilon, d)
        variance = worst_sampled_variance(mechanism, d, n_sampled)
        numeric = NumericPrivatizer(epsilon, bounds=table.bounds, mechanism="best")
        options.append(RecommendedOption("NumericPrivatizer, best", math.sqrt(variance / asked.n), None, numeric))
    alone = math.sqrt(best_mechanism(share, 1)[1].worst_variance / asked.n)
    options.append(RecommendedOption("TablePrivatizer", alone, None, TablePrivatizer(epsilon, schema=table.schema)))
    options.sort(key=lambda option: option.figure)
    return asked.answer("standard error", options, "At most, in units of half the width of a column's bounds.")


def _frequencies(asked: _Asked) -> Recommendation:
    table = asked.table
    several = {name: column for name, column in table.categories.items() if len(column.values or ()) > 1}
    if not several:
        raise ValueError("Frequencies are of categories, at least two. Got a schema without them.")
    share = split_epsilon(asked.epsilon, len(several))
    if table.numbers or table.not_encoded:
        share = split_epsilon(asked.epsilon, len(table.columns))
        error = max(_error(asked.n, "best", share, len(c.values or ())) for c in several.values())
        whole = TablePrivatizer(asked.epsilon, schema=table.schema, category_mechanism="best")
        option = RecommendedOption("TablePrivatizer", error, None, whole)
        return asked.answer("standard error", [option], "Of a frequency, where the other columns are released as well.")
    categories = [list(column.values or ()) for column in table.columns.values()]
    options = []
    for name in ("best", *CATEGORICAL_MECHANISMS):
        error = max(_error(asked.n, name, share, len(column.values or ())) for column in several.values())
        privatizer = CategoricalPrivatizer(asked.epsilon, mechanism=name, categories=categories)  # type: ignore[arg-type]
        options.append(RecommendedOption(f"CategoricalPrivatizer, {name}", error, None, privatizer))
    first, *others = options
    return asked.answer(
        "standard error",
        [first, *sorted(others, key=lambda option: option.figure)],
        "Of a frequency; best is the shortest report within 1.05 times the least variance.",
    )


def _error(n: int, mechanism: str, epsilon: float, n_classes: int) -> float:
    return math.sqrt(make_categorical_mechanism(mechanism, epsilon, n_classes).worst_case_variance / n)


def _questions(asked: _Asked) -> Recommendation:
    table = asked.table
    if not table.needs_no_encoder:
        raise ValueError("Questions are asked here about tables of numbers that are never missing. Got another schema.")
    # A hair below the budget's share, since sums of epsilons are rounded up.
    each = asked.epsilon / asked.n_questions * (1 - 1e-9)
    filtered = BayesianFilter(
        LinearRegression(), epsilon=each, total_epsilon=asked.epsilon, bounds=table.bounds, output_bounds=(-1, 1)
    )
    # An answer is one of the two ends of the outputs.
    error = 1 / (math.tanh(each / 2) * math.sqrt(asked.n))
    option = RecommendedOption(f"BayesianFilter, epsilon {each:g} each", error, None, filtered)
    reason = (
        f"Of a mean answer, in units of half the width of output_bounds. {asked.n_questions} questions are sure; the "
        "filter goes on for whom it lost less (skldp.study.plan_questions says how far)."
    )
    return asked.answer("standard error", [option], reason)
