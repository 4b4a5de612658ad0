"""A regression asked of people, each of whom answers until their own privacy budget is really used."""

import hashlib
from numbers import Integral

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import r2_score
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from skldp.accounting.extrema.domain import checked_box
from skldp.accounting.from_estimator import query_from_estimator
from skldp.accounting.ledger.decisions import RULES
from skldp.accounting.ledger.identity import canonical_ids
from skldp.accounting.ledger.privacy_ledger import PrivacyLedger
from skldp.estimators.base import warn_out_of_domain
from skldp.estimators.chosen_ledger import ChoosesLedger
from skldp.estimators.notebook import ShowsGuarantee
from skldp.estimators.progress import decisions_bar
from skldp.estimators.query_result import QueryResult
from skldp.estimators.validation import (
    BOUNDS,
    EPSILON,
    NOISE_PARAMETERS,
    StrOptions,
    check_epsilon,
    fit_context,
    validate_finite,
)
from skldp.mechanisms.guarantee import PrivacyGuarantee
from skldp.mechanisms.randomness import noise_from

__all__ = ["BayesianFilter"]


class BayesianFilter(ShowsGuarantee, ChoosesLedger, MetaEstimatorMixin, RegressorMixin, BaseEstimator):
    r"""Ask people a regression, and protect each with a budget for all that they ever answer.

    `fit` trains a linear or logistic model on the analyst's own public data. `predict` and `query` ask the people in
    X: each answers with one of two values, drawn so that the answer alone is `epsilon`-LDP, or is refused when another
    answer could take their realized privacy loss past `total_epsilon`.

    Parameters
    ----------
    estimator : estimator
        The regression: any model with ``coef_`` and ``intercept_``, a binary logistic regression, or a Pipeline that
        scales before it. Models that are fitted already come as a :class:`~sklearn.frozen.FrozenEstimator`.
    epsilon : float, default=1.0
        Natural-log budget of one answer.
    total_epsilon : float, default=None
        Each person's budget for all answers. None takes the ledger's; without a ledger, `epsilon`.
    bounds : tuple (low, high), default=None
        The domain of X, each a number or one number per feature. None takes those of the ledger if it has any, else
        the range of the public X of `fit`. What lies outside is clipped and counted.
    output_bounds : tuple (a, b), default=None
        The two values of an answer. None takes the range of the model over `bounds`, and (0, 1) for a classifier.
        A model that can leave them is truncated to them, with a warning.
    ledger : PrivacyLedger, default=None
        Where answers are recorded. Models that share a ledger share its budgets. None keeps one in memory, which all
        clones of this estimator share.
    rule : {"basic", "simplified", "bayesian"}, default="bayesian"
        How histories are accounted for where `ledger` is None; a ledger brings its own.
    tol : float, default=1e-3
        The certified gap aimed at where `ledger` is None; a ledger brings its own.
    on_refusal : {"prior", "nan", "raise"}, default="prior"
        What `predict` gives for people who are refused: ``prior_``; NaN; or a
        :class:`~skldp.exceptions.BudgetExhaustedError` before anybody is asked.
    seed : None, int, Generator or RandomState, default=None
        None draws from the operating system. Anything else is for tests and studies; an int gives noise that depends
        on it and on the query.
    n_jobs : int, default=None
        Processes or threads, as in joblib, for decisions about people with different histories.
    verbose : bool, default=False
        Show a progress bar while histories that need a search are certified; needs ``pip install "skldp[study]"``.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model.
    query_ : RegressionQuery
        What is asked.
    bounds_ : tuple of two ndarrays of shape (n_features,)
    ledger_ : PrivacyLedger
    prior_ : float
        The mean prediction on the public X, which needs no answer.
    privacy_guarantee_ : PrivacyGuarantee
        What holds for each person over all models that share the ledger.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X of `fit` had names.

    Raises
    ------
    LedgerError
        If the ledger was made for another budget or domain, or cannot be written. Nothing is released then.

    Notes
    -----
    The answer to a prediction y in [a, b] is b with probability

    .. math:: \frac{1}{e^\varepsilon + 1} + \frac{e^\varepsilon - 1}{e^\varepsilon + 1} \frac{y - a}{b - a}.

    Somebody asked the same query a second time is handed their recorded answer, so that `predict` can be repeated,
    cross-validated and scored without cost. ``query(X, repeat=True)`` asks afresh. Without `ids`, a person is their
    row: equal rows are one person, who answers once and whose answer stands in each of these rows. Since that lets a
    refusal show that two rows are equal, real people should have ids.

    The realized loss is about one record. Whoever is asked again must answer from the same values, and all models
    that share a ledger must have the same features in the same order: names are compared where X has them. For values
    that change over time, take a ledger with ``rule="basic"``.

    A fitted filter that has asked people stays with its ledger: fitting it again with another one is refused, since
    answers of one person would then count against two budgets. Clone it for another, unrelated, population.

    References
    ----------
    M. Pan, "Actual Knowledge Gain as Privacy Loss in Local Privacy Accounting", 2025.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skldp.accounting.ledger.privacy_ledger import PrivacyLedger
    >>> from skldp.estimators.bayesian_filter import BayesianFilter
    >>> public_X = np.array([[0.0], [0.5], [1.0]])
    >>> ledger = PrivacyLedger(1.0, bounds=(0, 1))
    >>> survey = BayesianFilter(LinearRegression(), epsilon=0.6, ledger=ledger).fit(public_X, [0.0, 1.0, 2.0])
    >>> people = np.linspace(0, 1, 200)[:, None]
    >>> result = survey.query(people, ids=range(200))
    >>> int(result.accepted.sum()), float(result.realized_loss.max().round(6))
    (200, 0.6)
    """

    _parameter_constraints: dict = {
        "estimator": [object],
        "epsilon": EPSILON,
        "total_epsilon": [None, *EPSILON],
        "bounds": [None, *BOUNDS],
        "output_bounds": [None, *BOUNDS],
        "ledger": [None, PrivacyLedger],
        "rule": [StrOptions(set(RULES))],
        "tol": EPSILON,
        "on_refusal": [StrOptions({"prior", "nan", "raise"})],
        "verbose": ["boolean"],
        **NOISE_PARAMETERS,
    }

    def __init__(
        self,
        estimator,
        *,
        epsilon=1.0,
        total_epsilon=None,
        bounds=None,
        output_bounds=None,
        ledger=None,
        rule="bayesian",
        tol=1e-3,
        on_refusal="prior",
        seed=None,
        n_jobs=None,
        verbose=False,
    ):
        self.estimator = estimator
        self.epsilon = epsilon
        self.total_epsilon = total_epsilon
        self.bounds = bounds
        self.output_bounds = output_bounds
        self.ledger = ledger
        self.rule = rule
        self.tol = tol
        self.on_refusal = on_refusal
        self.seed = seed
        self.n_jobs = n_jobs
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, **fit_params):
        """Train the model on the analyst's own, public data. Nobody is asked.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Not needed for a FrozenEstimator.
        **fit_params : dict
            Passed to the model; with metadata routing, what it requests.

        Returns
        -------
        self : object
        """
        for epsilon in (self.epsilon, self.tol, *([] if self.total_epsilon is None else [self.total_epsilon])):
            check_epsilon(epsilon)
        if y is None and isinstance(self.estimator, FrozenEstimator):
            X = validate_finite(self, X, reset=True)
        else:
            X, y = validate_finite(self, X, y=y, y_numeric=not is_classifier(self.estimator), reset=True)
        ledger = self._find_ledger()
        box = checked_box(self._find_bounds(X, ledger), n_features=X.shape[1])
        model = clone(self.estimator).fit(X, y, **self._routed(fit_params))
        bounds = (box[0], box[1])
        query = query_from_estimator(model, epsilon=self.epsilon, bounds=bounds, output_bounds=self.output_bounds)
        self.estimator_, self.query_, self.ledger_, self.bounds_ = model, query, ledger, bounds
        low, high = query.output_bounds
        self.prior_ = float(low + (high - low) * query.unit_response(np.clip(X, *self.bounds_)).mean())
        self.privacy_guarantee_ = PrivacyGuarantee(
            epsilon=ledger.epsilon,
            stated=ledger.epsilon,
            basis=f"budget of each person in the ledger, whatever they are asked; rule {ledger.rule!r}",
            seeded=self.seed is not None,
        )
        return self

    def query(self, X, ids=None, *, repeat=False):
        """Ask the people in X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            One private row per person.
        ids : array-like of int or str, shape (n_samples,), default=None
            Who they are. None takes a keyed hash of each row.
        repeat : bool, default=False
            Ask for fresh answers, at their full cost, also where there are recorded ones.

        Returns
        -------
        QueryResult

        Raises
        ------
        ValueError
            If an id occurs twice.
        """
        return self._ask(X, ids, repeat=repeat, all_or_none=False)

    def predict(self, X, ids=None):
        """Ask the people in X, and estimate each one's prediction without bias.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            One private row per person.
        ids : array-like of int or str, shape (n_samples,), default=None
            Who they are. None takes a keyed hash of each row.

        Returns
        -------
        y : ndarray of float64, shape (n_samples,)
            Far outside `output_bounds` where `epsilon` is small. People who are refused have `on_refusal`.
        """
        check_is_fitted(self)
        result = self._ask(X, ids, repeat=False, all_or_none=self.on_refusal == "raise")
        return (
            np.where(result.accepted, result.estimates, self.prior_) if self.on_refusal == "prior" else result.estimates
        )

    def score(self, X, y, ids=None, sample_weight=None):
        """Ask the people in X, and give the coefficient of determination of the estimates.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels, where the model is a classifier.
        ids : array-like of int or str, shape (n_samples,), default=None
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        float
            R². It is often negative, since one person's estimate is mostly noise.
        """
        estimates = self.predict(X, ids=ids)
        if is_classifier(self.estimator_):
            y = (np.asarray(y) == self.estimator_.classes_[-1]).astype(np.float64)
        return r2_score(y, estimates, sample_weight=sample_weight)

    def get_metadata_routing(self):
        """Say which metadata this estimator and its model use.

        Returns
        -------
        MetadataRouter
        """
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return (
            MetadataRouter(owner=type(self).__name__)
            .add_self_request(self)
            .add(estimator=self.estimator, method_mapping=mapping)
        )

    def _ask(self, X, ids, *, repeat, all_or_none):
        check_is_fitted(self)
        self._check_same_ledger()
        progress = decisions_bar() if self.verbose else None
        X = validate_finite(self, X, reset=False)
        if ids is None:
            people = self.ledger_.row_ids(X)
            row_of = dict(zip(people, X, strict=True))
            asked, rows = list(row_of), np.stack(list(row_of.values()))
        else:
            people = asked = canonical_ids(ids)
            rows = X
            if len(people) != len(X):
                raise ValueError(f"ids must have one id for each of the {len(X)} rows. Got {len(people)} instead.")
        inside = np.clip(rows, *self.bounds_)
        warn_out_of_domain(np.count_nonzero(inside != rows), rows.size)
        self.ledger_.declare_bounds(self.bounds_)
        if hasattr(self, "feature_names_in_"):
            self.ledger_.declare_features(self.feature_names_in_)
        noise = self._noise()
        answers = self.ledger_.answer(
            self.query_,
            asked,
            lambda positions: self.query_.sample(inside[positions], noise),
            repeat=repeat,
            all_or_none=all_or_none,
            n_jobs=self.n_jobs,
            progress=progress,
        )
        return QueryResult.of(self.query_, self.ledger_, answers, asked, people)

    def _find_bounds(self, X, ledger):
        if self.bounds is not None:
            return self.bounds
        return (X.min(axis=0), X.max(axis=0)) if ledger.bounds is None else ledger.bounds

    def _routed(self, fit_params):
        if not get_config()["enable_metadata_routing"]:
            return fit_params
        return process_routing(self, "fit", **fit_params)["estimator"]["fit"]

    def _noise(self):
        if isinstance(self.seed, Integral) and not isinstance(self.seed, bool):
            # One seed for every query would give all of them the same uniforms, and a study of many queries would
            # see answers that move together.
            seed = hashlib.sha256(f"{self.seed} {self.query_.key}".encode()).digest()
            return noise_from(int.from_bytes(seed, "big"))
        return noise_from(self.seed)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.seed is None
        tags.regressor_tags.poor_score = True
        return tags
