"""BayesianFilter: ask people a regression, each until their own privacy budget is used."""

import hashlib
import math
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from skldp._arrays import as_numbers
from skldp._checks import check_epsilon
from skldp.accounting._class_query import SoftmaxQuery
from skldp.accounting._decide import RULES
from skldp.accounting.ledger._ledger_answers import Answering, Call
from skldp.accounting.ledger._privacy_ledger import PrivacyLedger
from skldp.accounting.ledger._state import declared_settings
from skldp.accounting.losses._region import region_of
from skldp.domains._columns import check_same_columns
from skldp.domains._domain import Box, Domain
from skldp.estimators._base import LEDGER, warn_moved_rows
from skldp.estimators._from_estimator import imputed_values, query_from_estimator
from skldp.estimators._guarantee_mixin import GuaranteeMixin
from skldp.estimators._ledgers import LedgerMixin, joblib_workers, split_ids
from skldp.estimators._query_results import QueryPreview, QueryResult, prior_of, warn_of_nobody
from skldp.estimators._routing import RoutingMixin
from skldp.estimators._validation import (
    BOUNDS,
    BOUNDS_BY_COLUMN,
    EPSILON,
    NOISE_PARAMETERS,
    NumberRange,
    Seed,
    StrOptions,
    check_bounds_by_column,
    check_finite,
    fit_context,
    validate_finite,
    warn,
)
from skldp.exceptions import TooFewPeopleWarning
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import noise_from


class BayesianFilter(RoutingMixin, GuaranteeMixin, LedgerMixin, MetaEstimatorMixin, RegressorMixin, BaseEstimator):
    r"""Ask people a regression under one privacy budget per person for all their answers.

    `fit` trains a linear or logistic model on the analyst's own public data. `predict` and `query` ask the people in
    X: each answers with one of two values, drawn so that the answer alone is `epsilon`-LDP, or is refused when another
    answer could take their realized privacy loss past `total_epsilon`.

    Parameters
    ----------
    estimator : estimator
        A linear, Poisson, gamma, Tweedie or binary logistic regression, a LinearSVC (its decision is asked), a linear
        classifier of more classes (the predicted class is asked), or a search around one. A Pipeline may start with
        StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler or SimpleImputer. A TransformedTargetRegressor may
        scale the target or take its logarithm (``func=np.log, inverse_func=np.exp``). Wrap a fitted model in a
        :class:`~sklearn.frozen.FrozenEstimator`.
    epsilon : float, default=1.0
        Budget (natural log) of one answer.
    total_epsilon : float, default=None
        Each person's budget for all answers. None takes the ledger's; without a ledger, `epsilon`.
    bounds : tuple (low, high), dict or Domain, default=None
        Domain of X: two numbers, two lists of one number per feature, a dict of pairs by column name, or a
        :class:`~skldp.Domain` of intervals, whole numbers and one-hot blocks, with or without linear inequalities, such
        as :func:`~skldp.domain_from_transformer` returns. None takes that of the ledger if it has one, else the range
        of the public X of `fit`. People's values outside are clipped without a warning; `fit` warns of public ones
        outside declared bounds.
    output_bounds : tuple (a, b), default=None
        The two values of an answer. None takes the range of the model over `bounds`, and (0, 1) for a classifier.
        A model that can leave them is truncated to them, with a warning.
    of_class : label, default=None
        Of a softmax model with more than two classes, such as a LogisticRegression: the class whose predicted
        probability is asked, between 0 and 1. None asks which class is predicted.
    ledger : PrivacyLedger, default=None
        Record of the answers. Models that share a ledger share its budgets, which are kept by id. None
        keeps a ledger in memory, shared by all clones of this estimator, for simulations.
    ids : int or str, default=None
        Ids within X: the name of a column of a DataFrame or of an index level of a pandas DataFrame, or a column's
        position, from 0. The column is removed before the model sees X. A named index passes train_test_split,
        cross-validation, searches, and steps with pandas output. None expects ids as an argument of `query`, `predict`
        and `score`.
    rule : {"basic", "simplified", "bayesian"}, default="bayesian"
        Rule of accounting if `ledger` is None; a ledger has its own.
    tol : float, default=1e-3
        Certified gap to aim at if `ledger` is None; a ledger has its own.
    seed : None, int, Generator or RandomState, default=None
        None draws secure noise in every call. Any other value repeats noise, for tests, and voids the guarantee.
        An int gives noise that depends on it and on the query.
    n_jobs : int, default=None
        Processes or threads, as in joblib, for decisions about people with different histories.
    verbose : bool, default=False
        Show progress on standard error, from two seconds on.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model.
    query_ : RegressionQuery, or a query about classes
        The query.
    bounds_ : tuple of two ndarrays of shape (n_features,), or Domain
        Lower and upper bounds.
    ledger_ : PrivacyLedger
        Record of the answers.
    prior_ : float, or ndarray of shape (n_classes,)
        Mean prediction on the public X.
    privacy_guarantee_ : PrivacyGuarantee
        Guarantee for each person over all models that share the ledger.
    n_features_in_ : int
        Not counting a column of ids.
    feature_names_in_ : ndarray of str
        Defined if X of `fit` had column names; without that of the ids.

    Raises
    ------
    LedgerError
        If the ledger was made for another budget or domain, or cannot be written. Nothing is released then.

    Notes
    -----
    The answer to a prediction y in [a, b] is b with probability

    .. math:: \frac{1}{e^\varepsilon + 1} + \frac{e^\varepsilon - 1}{e^\varepsilon + 1} \frac{y - a}{b - a}.

    A person who is asked the same query again returns the recorded answer, so that `predict` can be repeated,
    cross-validated and scored without cost. ``query(X, repeat=True)`` draws anew.

    **Ids.** With a `ledger`, every person needs an id: by ``query(X, ids=...)``, and the same of `predict` and `score`
    (``set_predict_request(ids=True)``, ``set_score_request(ids=True)``), or by the parameter `ids`. Ids must come from
    where the people are, and all be integers or all strings. Without a ledger and ids every row is a person of its
    own, recognised by a keyed hash until the process ends: a row that was scaled, rounded or converted has a new
    budget. That simulates people and protects none.

    **The analyst's view** depends on queries and recorded outputs alone, apart from the duration of a call: refusals
    precede any look at a value, and no warning depends on values. Only a table with NaN or infinity is refused as a
    whole.

    **Missing values.** Behind a :class:`~sklearn.frozen.FrozenEstimator` around a fitted SimpleImputer, or around a
    pipeline that begins with one, people with NaN are asked: their record is what the imputer makes of them, clipped
    to the domain. The imputed values are declared to the ledger, so that no other model imputes the same people
    differently.

    The realized loss is about one record: a person must answer from the same values each time, and all models that
    share a ledger must have the same features in the same order. A scaler that is fitted again belongs into
    `estimator`, not before this step. For values that change over time, use a ledger with ``rule="basic"``.

    A fitted filter that has asked people cannot be fitted with another ledger, where their budgets would begin anew.
    Clone it for another population.

    References
    ----------
    M. Pan, "Actual Knowledge Gain as Privacy Loss in Local Privacy Accounting", 2025.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skldp import BayesianFilter, PrivacyLedger
    >>> public_X = np.array([[0.0], [0.5], [1.0]])
    >>> ledger = PrivacyLedger(1.0, bounds=(0, 1))
    >>> survey = BayesianFilter(LinearRegression(), epsilon=0.6, ledger=ledger).fit(public_X, [0.0, 1.0, 2.0])
    >>> people = np.linspace(0, 1, 200)[:, None]
    >>> result = survey.query(people, ids=range(200))
    >>> int(result.accepted.sum()), float(result.realized_loss.max().round(6))
    (200, 0.6)
    """

    # `_check_same_ledger` checks the ledger.
    _may_change = frozenset({"ledger", "n_jobs", "verbose"})

    _parameter_constraints: dict = {
        "estimator": [object],
        "epsilon": EPSILON,
        "total_epsilon": [None, *EPSILON],
        "bounds": [None, *BOUNDS_BY_COLUMN, Domain],
        "output_bounds": [None, *BOUNDS],
        "of_class": "no_validation",
        "ledger": LEDGER,
        "ids": [None, str, NumberRange(Integral, 0, None, closed="left")],
        "rule": [StrOptions(set(RULES) - {"approximate"})],
        "tol": EPSILON,
        "verbose": ["boolean"],
        **NOISE_PARAMETERS,
    }

    def __init__(
        self,
        estimator: BaseEstimator,
        *,
        epsilon: float = 1.0,
        total_epsilon: float | None = None,
        bounds: Any = None,
        output_bounds: tuple[float, float] | None = None,
        of_class: Any = None,
        ledger: PrivacyLedger | None = None,
        ids: int | str | None = None,
        rule: str = "bayesian",
        tol: float = 1e-3,
        seed: Seed = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.epsilon = epsilon
        self.total_epsilon = total_epsilon
        self.bounds = bounds
        self.output_bounds = output_bounds
        self.of_class = of_class
        self.ledger = ledger
        self.ids = ids
        self.rule = rule
        self.tol = tol
        self.seed = seed
        self.n_jobs = n_jobs
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> Self:
        """Train the model on the analyst's own, public data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            A column of ids is optional, and ignored.
        y : array-like of shape (n_samples,)
            Optional for a FrozenEstimator.
        **fit_params : dict
            Passed to the model; with metadata routing, what it requests.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        for epsilon in (self.epsilon, self.tol, *([] if self.total_epsilon is None else [self.total_epsilon])):
            check_epsilon(epsilon)
        given, _ = split_ids(X, self.ids)
        if y is None and isinstance(self.estimator, FrozenEstimator):
            X = validate_finite(self, given, reset=True)
        else:
            X, y = validate_finite(self, given, y=y, y_numeric=not is_classifier(self.estimator), reset=True)
        ledger = self._find_ledger()
        region = region_of(self._find_bounds(X, ledger), n_features=X.shape[1])
        check_same_columns(region.domain, getattr(self, "feature_names_in_", None))
        # A model that was fitted on a frame takes frames without a warning.
        rows = given if hasattr(self, "feature_names_in_") else X
        model = clone(self.estimator).fit(rows, y, **self._routed(fit_params))
        bounds = (region.box[0], region.box[1]) if region.is_box else region.domain
        query = query_from_estimator(
            model, epsilon=self.epsilon, bounds=bounds, output_bounds=self.output_bounds, of_class=self.of_class
        )
        self.estimator_, self.query_, self.ledger_, self.bounds_, self._region = model, query, ledger, bounds, region
        self._missing = imputed_values(model)
        names = getattr(self, "feature_names_in_", None)
        self._declaration = declared_settings(bounds=bounds, features=names, missing=self._missing)
        self._queries = [*getattr(self, "_queries", []), query]
        moved = region.move(X)
        if self.bounds is not None or self.ledger is not None:
            warn_moved_rows(self, np.count_nonzero(moved != X), X, Box(*map(tuple, region.box)))
        self.prior_ = prior_of(query, moved)
        who = "person in the ledger, by id" if self.ledger is not None else "id, or row as given, in a simulation"
        self.privacy_guarantee_ = PrivacyGuarantee(
            epsilon=ledger.epsilon,
            delta=ledger.delta or 0.0,
            stated=ledger.epsilon,
            basis=f"budget of each {who}, whatever they are asked; rule {ledger.rule!r}",
            seeded=self.seed is not None,
        )
        return self

    def query(
        self, X: Any, ids: Any = None, *, repeat: bool = False, idempotency_key: str | None = None
    ) -> QueryResult:
        """Ask the people in X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            One private row per person.
        ids : array-like of int or str, shape (n_samples,), default=None
            Distinct ids, all integers or all strings. None reads them from X by the parameter `ids`; without that and
            without a ledger, each row is a person.
        repeat : bool, default=False
            Draw new answers, at their full cost, also where some are recorded.
        idempotency_key : str, default=None
            Unguessable name of this call, such as ``uuid.uuid4().hex``, for people with ids. A lost call can be
            repeated with it: recorded answers are returned at no second cost, also with ``repeat=True``.

        Returns
        -------
        QueryResult
            Answers, with estimates and errors.

        Raises
        ------
        ValueError
            If ids are missing with a ledger, occur twice or are of mixed types; if X has NaN or infinity; if the key is
            guessable or comes without ids. Nothing is asked then.
        LedgerError
            If the ledger has other bounds or features or cannot be written, or the key belongs to another call. Nothing
            is released then.

        Warns
        -----
        RowIdentityWarning
            If rows stand for people.
        BudgetExhaustedWarning
            If all are refused, with the reason.
        """
        result = self._ask(X, ids, repeat=repeat, key=idempotency_key)
        if result.ids and not result.accepted.any():
            warn_of_nobody(self.query_, self.ledger_.epsilon, len(result.ids))
        return result

    def predict(self, X: Any, ids: Any = None) -> np.ndarray:
        """Ask the people in X, and return an unbiased estimate of each prediction.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            One private row per person.
        ids : array-like of int or str, shape (n_samples,), default=None
            Distinct ids, all integers or all strings. None reads them from X by the parameter `ids`; without that and
            without a ledger, each row is a person.

        Returns
        -------
        y : ndarray of float64, shape (n_samples,) or (n_samples, n_classes)
            Far outside `output_bounds` for small `epsilon`; ``prior_`` for people who are refused. For more than two
            classes, the estimated indicator of each.
        """
        result = self._ask(X, ids, repeat=False)
        accepted = result.accepted if result.estimates.ndim == 1 else result.accepted[:, None]
        return np.where(accepted, result.estimates, self.prior_)

    def score(self, X: Any, y: Any, sample_weight: Any = None, ids: Any = None) -> float:
        """Ask the people in X, and return the coefficient of determination of the estimates.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            One private row per person.
        y : array-like of shape (n_samples,)
            Labels, where the model is a classifier.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the people.
        ids : array-like of int or str, shape (n_samples,), default=None
            As in `query`.

        Returns
        -------
        float
            R², often negative, since one person's estimate is mostly noise.
        """
        check_is_fitted(self)
        # Refuse y before any answer is drawn.
        check_consistent_length(X, y, sample_weight)
        y = column_or_1d(y, warn=True)
        y = self._positive(y) if is_classifier(self.estimator_) else as_numbers(y, "y")
        check_finite(y, "y")
        if sample_weight is not None:
            sample_weight = as_numbers(column_or_1d(sample_weight, warn=True), "sample_weight")
            check_finite(sample_weight, "sample_weight")
            if not sample_weight.any():
                raise ValueError("`sample_weight` must have a weight other than 0; got zeros only.")
        return r2_score(y, self.predict(X, ids=ids), sample_weight=sample_weight)

    def preview(self, ids: Any, *, repeat: bool = False) -> QueryPreview:
        """Return the expected decisions, costs and error of a query. Nothing is asked or recorded.

        Parameters
        ----------
        ids : array-like of int or str, shape (n_people,)
            People with answers in the ledger, to this query or another; others are refused. So previews reveal who has
            answered.
        repeat : bool, default=False
            As in `query`.

        Raises
        ------
        ValueError
            If an id occurs twice, or ids are of mixed types.
        LedgerError
            If an id has no answer, or the ledger has another domain.

        Warns
        -----
        BudgetExhaustedWarning
            If all would be refused, with the reason.
        TooFewPeopleWarning
            If the expected error exceeds half of the output bounds' width.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import LinearRegression
        >>> from skldp import BayesianFilter, PrivacyLedger
        >>> public_X = np.array([[0.0], [0.5], [1.0]])
        >>> ledger = PrivacyLedger(1.0, bounds=(0, 1), rule="basic")
        >>> first = BayesianFilter(LinearRegression(), epsilon=0.6, ledger=ledger).fit(public_X, [0.0, 1.0, 2.0])
        >>> result = first.query(np.linspace(0, 1, 200)[:, None], ids=range(200))
        >>> second = BayesianFilter(LinearRegression(), epsilon=0.4, ledger=ledger).fit(public_X, [1.0, 0.0, 0.0])
        >>> second.preview(range(200))
        QueryPreview(200 of 200 would answer, 0 of them again, standard_error=0.179)
        """
        self._check_unchanged()
        self._check_same_ledger()
        self.ledger_._state.declare(self._declaration)
        found = self.ledger_.would_answer(
            self.query_, ids, repeat=repeat, workers=joblib_workers(self.n_jobs, show=self.verbose)
        )
        n_people, n_answers = found.accepted.size, int(np.count_nonzero(found.accepted))
        remaining = np.maximum(self.ledger_.epsilon - found.losses, 0.0)
        error = self.query_.expected_error(n_answers, self.prior_)
        if n_people and not n_answers:
            warn_of_nobody(self.query_, self.ledger_.epsilon, n_people, remaining.max())
        low, high = self.query_.output_bounds
        if n_answers and error > (high - low) / 2:
            needed = math.ceil(n_answers * (2 * error / (high - low)) ** 2)
            warn(
                f"{n_answers:,} answers at epsilon={self.query_.epsilon:g} tell the mean with a standard error of "
                f"{error:.3g}, more than half of the output bounds' {high - low:.3g}: it takes {needed:,} people.",
                TooFewPeopleWarning,
            )
        return QueryPreview(found.accepted, found.recorded, found.costs, remaining, error)

    def _ask(self, X, ids, *, repeat, key=None):
        # Refusals come before the first look at a value. After validation, only the answers depend on values.
        self._check_unchanged()
        self._check_same_ledger()
        workers = joblib_workers(self.n_jobs, show=self.verbose)
        if key is not None and ids is None and self.ids is None:
            # A key that is taken would reveal that the rows are those of the first call.
            raise ValueError("An idempotency key goes with people who have ids: without, a row is a person.")
        X, people = self._people(X, ids)
        # With the same uniforms for every query, answers to many queries would be correlated.
        seed = self.seed
        if isinstance(seed, Integral):
            seed = int.from_bytes(hashlib.sha256(f"{seed} {self.query_.key}".encode()).digest(), "big")
        noise = noise_from(seed)
        # numpy's warnings reveal values; numpy.seterr(all="raise") turns them into errors.
        with np.errstate(all="ignore"):
            X = validate_finite(self, X, reset=False, ensure_all_finite=False)
            if people is not None and len(people) != len(X):
                raise ValueError(f"ids must have one id for each of the {len(X)} rows; got {len(people)}.")
            if people is not None and self.ledger is None:
                self._own_ledgers().keep_names(self.ledger_)
            # Before NaN is refused: the ledger's refusal must not depend on values.
            settings = self.ledger_._state.prepared(self._declaration, key)
            X = X if self._missing is None else np.where(np.isnan(X), self._missing, X)
            check_finite(X, estimator=self)
            people = self._own_ledgers().row_identities(X) if people is None else people
            call = Call(self.query_, people, repeat, key=key, settings=settings)

            def draw(positions):
                return self.query_.sample(self._region.move(X[positions]), noise)

            answers = Answering(self.ledger_._state, call, draw, workers).run()
        return QueryResult.of(self.query_, self.ledger_, answers, people)

    def _positive(self, y):
        """Return labels on the scale of the query: 0 or 1, -1 or 1 for decisions, indicators of classes."""
        if self.query_.kind == "classes":
            return (y[:, None] == self.estimator_.classes_).astype(np.float64)
        if isinstance(self.query_, SoftmaxQuery):
            return (y == self.estimator_.classes_[self.query_.position]).astype(np.float64)
        positive = (y == self.estimator_.classes_[-1]).astype(np.float64)
        return positive if self.query_.kind == "logistic" else 2 * positive - 1

    def _find_bounds(self, X, ledger):
        if self.bounds is not None:
            return check_bounds_by_column(self.bounds, self) if isinstance(self.bounds, dict) else self.bounds
        return (X.min(axis=0), X.max(axis=0)) if ledger.bounds is None else ledger.bounds

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.seed is None
        tags.regressor_tags.poor_score = True
        return tags
