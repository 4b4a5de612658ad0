"""PrivateLinearRegression: linear regression from reports."""

from typing import Any, Literal, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skldp._arrays import Floats, as_numbers
from skldp._checks import check_fraction
from skldp.domains._domain import Box
from skldp.estimators._learning import SCORE_SHARE, ProtocolEstimator
from skldp.estimators._regression_summary import RegressionSummary
from skldp.estimators._validation import (
    BOUNDS,
    StrOptions,
    check_bounds,
    check_bounds_by_column,
    input_names,
    validate_finite,
    warn,
)
from skldp.exceptions import TooFewPeopleWarning
from skldp.learning._inference import InferenceProtocol
from skldp.learning._regression import RegressionProtocol
from skldp.learning._uncertainty import Estimate


def _asked_for_errors(self: Any) -> bool:
    if not self.inference:
        raise AttributeError("Errors of the coefficients need inference=True in fit.")
    return True


class PrivateLinearRegression(RegressorMixin, ProtocolEstimator):
    r"""Linear regression under local differential privacy of every record with its target.

    Each row of X with its y is a person, who releases one vector once, at the full epsilon. The release is made for the
    model, which learns far more from it than from released rows at the same epsilon.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget (natural log) of one record: all features and the target.
    bounds : (low, high), default=(-1, 1)
        Declared domain, each end a number or one number per feature; also a dict of pairs by column name, or a list of
        one pair per feature. Values outside are clipped.
    target_bounds : (low, high), default=(-1, 1)
        Declared bounds of the target, two numbers. Predictions are clipped to them too.
    protocol : {"rounds", "once"}, default="rounds"
        ``"rounds"`` collects gradients at the current model from small cohorts in turn.
        ``"once"`` estimates the scale from some cohorts, and collects products of columns from all others by one task,
        which :meth:`partial_fit` continues with more people at any time.
    inference : bool, default=False
        If True, people report for :meth:`confidence_intervals` and :meth:`summary`. `protocol` counts only if they are
        too few for these.
    score_share : float, default=0.05
        Fraction of the people of `fit` who do not train the model and report a loss for `score_estimate_`.
    n_people : int, default=None
        Number of people to plan for in :meth:`partial_fit`, about as many as will come. None plans for those of the
        first call, or for ten times the number needed if that is more.
    seed : None, int, Generator or RandomState, default=None
        None draws secure noise in every call. Any other value repeats noise, for tests, and voids the guarantee.
    n_jobs : int, default=None
        Number of threads, as in joblib.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_features,), float
        Coefficients and intercept.
    undetected_share_ : float
        Largest share of people with outlying values that `fit` may miss. Such values are clipped.
    score_estimate_ : ScoreEstimate or None
        Share of the squared error that the model explains, by people who did not train it, with `value`,
        `error`, `interval` (95%) and `n_people`. None with too few people, or after :meth:`partial_fit`.
    protocol_ : RegressionProtocol
        Final state of the protocol, computed from reports alone, with the open task of ``protocol="once"``.
    privacy_guarantee_ : PrivacyGuarantee
        For one release of record and target together.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features, and their names if X of `fit` has names.

    Raises
    ------
    ValueError
        If X or y holds NaN or infinity, or a parameter is out of range.

    Warns
    -----
    TooFewPeopleWarning
        If there are too few people, and the mean is predicted; too few for errors of the coefficients, or to see skewed
        values (`undetected_share_` is 1); or if `target_bounds` are ten times too wide.
    OutOfDomainWarning
        Reports the number of values that were moved into the bounds.

    See Also
    --------
    NumericPrivatizer : Releases rows instead of a model.

    Notes
    -----
    `fit` simulates a :class:`~skldp.learning.RegressionProtocol`, in which cohorts of rows exchange tasks and reports
    with a server. With fewer people than :func:`~skldp.learning.n_people_needed` the mean is predicted. A
    `sample_weight` would reveal information about a person.

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

    _without_features = "the mean is"
    _parameter_constraints: dict = {
        **ProtocolEstimator._parameter_constraints,
        **SCORE_SHARE,
        "target_bounds": BOUNDS,
        "protocol": [StrOptions({"rounds", "once"})],
        "inference": ["boolean"],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bounds: Any = (-1, 1),
        target_bounds: Any = (-1, 1),
        protocol: Literal["rounds", "once"] = "rounds",
        inference: bool = False,
        score_share: float = 0.05,
        n_people: int | None = None,
        seed: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.protocol = protocol
        self.inference = inference
        self.score_share = score_share
        self.n_people = n_people
        self.seed = seed
        self.n_jobs = n_jobs

    def predict(self, X: npt.ArrayLike) -> Floats:
        """Return the predicted targets, within their declared bounds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        """
        check_is_fitted(self)
        rows = validate_finite(self, X, reset=False, dtype=np.float64)
        return np.clip(rows @ self.coef_ + self.intercept_, self._box.low[-1], self._box.high[-1])

    @available_if(_asked_for_errors)
    def confidence_intervals(self, level: float = 0.95) -> Floats:
        """Return confidence intervals of the coefficients without a ridge.

        They count noise, sampling, and the bound of the bias of clipping, and assume that people whom noise may hide,
        up to `undetected_share_` of all, are at most twice as far away as the radius. Rare large targets are farther.

        Parameters
        ----------
        level : float, default=0.95
            Level of the intervals, between 0 and 1.

        Returns
        -------
        ndarray of shape (n_terms, 2)
            Lower and upper ends: of the intercept and of the coefficients.

        Raises
        ------
        ValueError
            If there were too few people for errors, noise hides a direction of the features, or too much was clipped.
        """
        return self._estimate().intervals(level)

    @available_if(_asked_for_errors)
    def summary(self, level: float = 0.95) -> RegressionSummary:
        """Return the coefficients without a ridge, their errors, and the share of these due to privacy.

        Parameters
        ----------
        level : float, default=0.95
            Probability inside (0, 1) that an interval covers its coefficient.

        Returns
        -------
        RegressionSummary
            A table that prints as text, shows in notebooks, and has ``to_frame``. It is refused like
            :meth:`confidence_intervals`.
        """
        check_fraction("level", level)
        estimate, protocol = self._estimate(), self.protocol_
        score = "" if self.score_estimate_ is None else f"; R2 {self.score_estimate_}"
        title = (
            f"Least squares of {protocol.n_people:,} people, each under epsilon {protocol.epsilon:.4g}; "
            f"t intervals ({estimate.degrees} degrees of freedom), valid if none of up to "
            f"{protocol.undetected_share:.1%} of people, whom noise may hide, exceeds twice the clipping radius{score}"
        )
        names = ["intercept", *input_names(self)]
        return RegressionSummary(names, estimate, level, title)

    def _estimate(self) -> Estimate:
        check_is_fitted(self)
        self._check_unchanged()
        return cast("Estimate", self.protocol_.estimate())

    def _records(self, X: Any, y: Any, *, reset: bool) -> tuple[Floats, Floats]:
        rows, target = validate_finite(self, X, y=y, reset=reset, dtype=np.float64, y_numeric=True)
        return rows, as_numbers(target, "y")

    def _domain(self) -> Box:
        low, high = check_bounds_by_column(self.bounds, self)
        target_low, target_high = check_bounds(self.target_bounds, 1, "target_bounds")
        return Box.of(np.append(low, target_low), np.append(high, target_high))

    def _protocol(self, n_people: int) -> RegressionProtocol:
        box = self._domain()
        kind = InferenceProtocol if self.inference else RegressionProtocol
        return kind(**self._settings(n_people), low=box.low, high=box.high, kind=self.protocol)

    def _learn(self) -> None:
        super()._learn()
        self.coef_, self.intercept_ = self.protocol_.coefficients, self.protocol_.intercept
        times = self.protocol_.times_too_wide
        if times >= 10:
            message = f"By the reported levels, target_bounds are about {times:.0f} times too wide for most targets"
            warn(f"{message}: narrower ones need fewer people, if no rare target is beyond.", TooFewPeopleWarning)
        refusal = self.protocol_.refusal if getattr(self.protocol_, "asks_for_errors", False) else ""
        if refusal:
            warn(f"Coefficients have no intervals. {refusal}", TooFewPeopleWarning)

    def _answered(self, protocol: Any, *args: Any, **given: Any) -> Self:
        if not getattr(protocol, "asks_for_errors", True):
            warn(f"Coefficients have no intervals. {protocol.refusal}", TooFewPeopleWarning)
        return super()._answered(protocol, *args, **given)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # scikit-learn's checks have too few people.
        tags.regressor_tags.poor_score = True
        return tags
