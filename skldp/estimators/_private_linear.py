"""Linear regression whose training data never leave the people they are about."""

from numbers import Real
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skldp._arrays import as_numbers
from skldp.estimators._coefficient_errors import CoefficientErrorsMixin
from skldp.estimators._guarantee_mixin import GuaranteeMixin, attach_guarantee
from skldp.estimators._learning import ask_more, takes_more, warn_moved, warn_no_errors, warn_too_few
from skldp.estimators._validation import (
    BOUNDS,
    BOUNDS_BY_COLUMN,
    EPSILON,
    NOISE_PARAMETERS,
    Interval,
    StrOptions,
    check_bounds,
    check_bounds_by_column,
    check_epsilon,
    fit_context,
    input_names,
    validate_finite,
)
from skldp.learning._inference import InferenceProtocol
from skldp.learning._regression import RegressionProtocol
from skldp.learning._simulation import simulate
from skldp.mechanisms._domain import Box
from skldp.mechanisms._noise import noise_from

__all__ = ["PrivateLinearRegression"]


def _takes_more(self: Any) -> bool:
    if self.inference:
        raise AttributeError("Where the errors were asked for, no task stays open for more people.")
    return takes_more(self)


class PrivateLinearRegression(CoefficientErrorsMixin, GuaranteeMixin, RegressorMixin, BaseEstimator):
    r"""Linear regression under local differential privacy of every record with its target.

    Each row of X with its y is a person, who releases one vector once, at the whole epsilon. What is released is made
    for the model, not a copy of the record, so that far more is learnt than from released rows at the same epsilon.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget (natural log) of the whole record: all features and the target.
    bounds : (low, high), default=(-1, 1)
        The declared domain, each end a number or one number per feature. What lies outside is moved to the nearest end.
        Or a dict that names every column of a frame, like ``{"age": (0, 100), "weight": (30, 200)}``, or a list of one
        such pair per feature.
    target_bounds : (low, high), default=(-1, 1)
        Declared bounds of the target, two numbers. Predictions are moved into them too.
    protocol : {"rounds", "once"}, default="rounds"
        ``"rounds"`` asks small cohorts one after the other for gradients at the model so far: the most accurate.
        ``"once"`` asks some cohorts for the scale, and then everybody else one and the same question, products of
        their numbers; :meth:`partial_fit` takes more people at any time.
    alpha : "auto" or float, default="auto"
        Ridge: what is added to the eigenvalues of the covariance that is told of the features, once they are made
        uncorrelated and of variance 1 as far as the noise allows. Its unit is the size that the noise alone gives the
        largest of these eigenvalues, so that 0 is least squares on what was told, and 1 shrinks by half what is as
        small as the noise. ``"auto"`` is 0.5, of the size of the noise alone. It has nothing to do with the ``alpha``
        of :class:`sklearn.linear_model.Ridge`, which grows with the number of rows, nor with that of
        :class:`PrivateLogisticRegression`, which is about the coefficients; and where too few people tell products
        (``protocol="rounds"`` below a :func:`~skldp.learning.sufficiency` of 50, or of 7 (d + 1)) it is not used.
        Besides, slopes shrink at the end by the part of their size that is known to be noise.
    fit_intercept : bool, default=True
        Without one, the line goes through zero.
    inference : bool, default=False
        Asks most of the people for the errors of the coefficients: for :meth:`confidence_intervals` and
        :meth:`summary`. Fewer are left to learn `coef_`, which predicts a little worse.
    seed : None, int, Generator or RandomState, default=None
        None draws secure noise anew in every call. Anything else is for tests and studies, and voids the guarantee
        against whoever knows it.
    n_jobs : int, default=None
        Threads, as joblib counts them.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    unridged_coef_ : ndarray of shape (n_features,)
        With `inference`, where enough people were asked: the coefficients that the intervals are around. They have no
        ridge and more noise; predictions are made with `coef_`.
    unridged_intercept_ : float
        Likewise.
    coef_covariance_ : ndarray of shape (n_terms, n_terms)
        Likewise: of the errors of the unridged intercept, where there is one, and coefficients.
    protocol_ : RegressionProtocol
        Its public state at the end, with the open task of ``protocol="once"``.
    privacy_guarantee_ : PrivacyGuarantee
        Of one person's release, record and target together.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Where X has them.

    Raises
    ------
    ValueError
        If X or y holds NaN or infinity, or a parameter is not as above.

    Warns
    -----
    TooFewPeopleWarning
        If there are too few people for anything to be learnt: then the mean is predicted. Or too few for errors.
    OutOfDomainWarning
        With the number of values that were moved into the bounds.

    See Also
    --------
    NumericPrivatizer : Releases rows, for those who must have rows.

    Notes
    -----
    `fit` simulates a :class:`~skldp.learning.RegressionProtocol` on the rows it is given: it puts them in a random
    order, cuts them into cohorts, and passes tasks and reports as the documents that devices would be sent and send.
    What is lost against a fit without privacy is, as a part of the target's variance, about one over
    :func:`~skldp.learning.sufficiency`, :math:`n / (v (d + 1)^2)` with v about :math:`6 / \varepsilon^2` for small
    epsilon; nothing is learnt where it is below 8, or 16 in ``"once"``. There is no `sample_weight`: a weight would
    tell about a person.

    References
    ----------
    Duchi, Jordan and Wainwright, "Minimax optimal procedures for locally private estimation", 2018. Bhowmick, Duchi,
    Freudiger, Kapoor and Rogers, "Protection against reconstruction and its applications in private federated
    learning", 2018. Zheng, Mou and Wang, "Collect at once, use effectively: making non-interactive locally private
    learning possible", ICML 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import PrivateLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 3))
    >>> y = X @ [0.5, -0.3, 0.1] + 0.05 * rng.standard_normal(20_000)
    >>> model = PrivateLinearRegression(epsilon=2.0).fit(X, y)
    >>> model.score(X, y) > 0.9, round(model.privacy_guarantee_.epsilon, 6)
    (True, 2.0)
    """

    _parameter_constraints: dict = {
        "epsilon": EPSILON,
        "bounds": BOUNDS_BY_COLUMN,
        "target_bounds": BOUNDS,
        "protocol": [StrOptions({"rounds", "once"})],
        "alpha": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "inference": ["boolean"],
        **NOISE_PARAMETERS,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bounds: Any = (-1, 1),
        target_bounds: Any = (-1, 1),
        protocol: Literal["rounds", "once"] = "rounds",
        alpha: float | Literal["auto"] = "auto",
        fit_intercept: bool = True,
        inference: bool = False,
        seed: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.protocol = protocol
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.inference = inference
        self.seed = seed
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Ask everybody once, and learn.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The private records.
        y : array-like of shape (n_samples,)
            Their private targets.

        Returns
        -------
        self : object
        """
        self._forget_guarantee()
        check_epsilon(self.epsilon)
        rows, target = self._records(X, y, reset=True)
        box = self._domain()
        protocol = (InferenceProtocol if self.inference else RegressionProtocol)(
            rows.shape[1],
            len(rows),
            epsilon=float(self.epsilon),
            low=box.low,
            high=box.high,
            kind=self.protocol,
            fit_intercept=self.fit_intercept,
            **({} if self.alpha == "auto" else {"ridge": self.alpha}),
        )
        warn_too_few(protocol, "the mean is")
        simulate(protocol, rows, target, noise_from(self.seed), n_threads=effective_n_jobs(self.n_jobs))
        warn_moved(rows, target, box, input_names(self))
        self.protocol_, self._n_calls = protocol, 0
        warn_no_errors(protocol)
        self._learnt()
        attach_guarantee(self, protocol.guarantee())
        return self

    @available_if(_takes_more)
    def partial_fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Ask more people, who were not asked before, the question that stays open.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self : object
        """
        if "_guarantee_at_fit" not in vars(self):
            return self.fit(X, y)
        self._check_unchanged()
        rows, target = self._records(X, y, reset=False)
        ask_more(self, rows, target)
        warn_moved(rows, target, self._domain(), input_names(self))
        self._learnt()
        return self

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Predict targets, within their declared bounds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        rows = validate_finite(self, X, reset=False, dtype=np.float64)
        low, high = check_bounds(self.target_bounds, 1, "target_bounds")
        return np.clip(rows @ self.coef_ + self.intercept_, low[0], high[0])

    def _records(self, X: Any, y: Any, *, reset: bool) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        rows, target = validate_finite(self, X, y=y, reset=reset, dtype=np.float64, y_numeric=True)
        return rows, as_numbers(target, "y")

    def _domain(self) -> Box:
        low, high = check_bounds_by_column(self.bounds, self)
        target_low, target_high = check_bounds(self.target_bounds, 1, "target_bounds")
        return Box.of(np.append(low, target_low), np.append(high, target_high))

    def _learnt(self) -> None:
        self.coef_, self.intercept_ = self.protocol_.coefficients, self.protocol_.intercept
        for name in ("unridged_coef_", "unridged_intercept_", "coef_covariance_"):
            self.__dict__.pop(name, None)
        if isinstance(self.protocol_, InferenceProtocol) and not self.protocol_.refusal:
            estimate = self.protocol_.estimate()
            self.unridged_coef_ = estimate.values[-self.n_features_in_ :]
            self.unridged_intercept_ = float(estimate.values[0]) if self.fit_intercept else 0.0
            self.coef_covariance_ = estimate.covariance

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.seed is None
        # The tables of scikit-learn's checks are of far too few people.
        tags.regressor_tags.poor_score = True
        return tags
