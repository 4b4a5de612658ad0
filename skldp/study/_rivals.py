"""What models made for learning under local privacy are compared with: released rows, and one gradient a person."""

import math
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from skldp._arrays import as_numbers
from skldp._checks import check_positive, check_whole
from skldp.estimators._class_codes import declared_values, encode, labels_1d
from skldp.estimators._composition import privacy_guarantee
from skldp.estimators._learning import warn_moved
from skldp.estimators._validation import check_bounds, input_names, validate_finite
from skldp.mechanisms._domain import Box
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise, noise_from
from skldp.study._federated.settings import gradients_perturbed

__all__ = ["OneGradientClassifier", "OneGradientRegressor", "ReleasedRowsRegressor"]

_Array = npt.NDArray[np.float64]

# Where features, and the target of a regression, lie between -1 and 1. What a coordinate of a gradient is clipped to,
# by the largest that an error usually has; how long a step is at most; and how much noise it may carry.
_CLIP_OF_TARGET, _CLIP_OF_CLASSES = 0.25, 0.5
_LONGEST_OF_TARGET, _LONGEST_OF_CLASSES = 1.0, 4.0
# From so many terms on, less: a longer step along what all features have in common would diverge.
_MOST_TERMS = 20
_NOISE_OF_TARGET, _NOISE_OF_CLASSES = 0.04, 0.2
# So many made-up rows show how large a mechanism's noise is.
_N_MADE_UP = 2_000


class _Bounded(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Records moved into their declared bounds, and those to between -1 and 1."""

    bounds: Any

    def _unit(self, rows: _Array) -> _Array:
        low, high = check_bounds(self.bounds, self.n_features_in_)
        return _to_unit(rows, Box.of(low, high))


class _BoundedRegressor(RegressorMixin, _Bounded):  # type: ignore[misc]  # as above
    """The same with a target."""

    target_bounds: Any

    def _records(self, X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[_Array, _Array]:
        rows, target = validate_finite(self, X, y=y, reset=True, dtype=np.float64, y_numeric=True)
        target = as_numbers(target, "y")
        low, high = check_bounds(self.bounds, rows.shape[1])
        of_target = self._of_target()
        box = Box.of(np.append(low, of_target.low), np.append(high, of_target.high))
        warn_moved(rows, target, box, input_names(self))
        return self._unit(rows), _to_unit(target[:, None], of_target)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # The targets of scikit-learn's checks lie outside the default bounds, and are moved there.
        tags.regressor_tags.poor_score = True
        return tags

    def _of_target(self) -> Box:
        return Box.of(*check_bounds(self.target_bounds, 1, "target_bounds"))

    def _from_unit(self, predicted: _Array) -> _Array:
        box = self._of_target()
        result: _Array = box.center[0] + box.radius[0] * np.clip(predicted, -1, 1)
        return result


def _to_unit(rows: _Array, box: Box) -> _Array:
    inside: _Array = box.clip(np.ascontiguousarray(rows)).rows
    return np.clip((inside - box.center) / box.radius, -1, 1)


class ReleasedRowsRegressor(_BoundedRegressor):
    """Release every row with its target through one mechanism, and fit an ordinary regression on what was released.

    Parameters
    ----------
    mechanism : transformer or None
        Of rows between -1 and 1, the same columns out as in, on the same scale: PrivUnit with a declared `norm`, since
        a direction divides the target by the norm of its row. None fits on the rows as they are: no privacy.
    estimator : regressor
        Cloned and fitted.
    bounds, target_bounds : (low, high), default=(-1, 1)
        Declared bounds. What lies outside is moved to them, predictions too.

    Attributes
    ----------
    estimator_ : regressor
    mechanism_ : transformer or None
    privacy_guarantee_ : PrivacyGuarantee
        The mechanism's, of the record with its target. There is none without a mechanism.

    Raises
    ------
    ValueError
        If a release has other columns than its row, so that none of them is the target's.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skldp import NumericPrivatizer
    >>> from skldp.study import ReleasedRowsRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (5_000, 2))
    >>> mechanism = NumericPrivatizer(40.0, mechanism="piecewise", transform_noise=False)
    >>> model = ReleasedRowsRegressor(mechanism, LinearRegression()).fit(X, X @ [0.5, 0.2])
    >>> model.score(X, X @ [0.5, 0.2]) > 0.9
    True
    """

    def __init__(self, mechanism: Any, estimator: Any, *, bounds: Any = (-1, 1), target_bounds: Any = (-1, 1)) -> None:
        self.mechanism = mechanism
        self.estimator = estimator
        self.bounds = bounds
        self.target_bounds = target_bounds

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Release, and fit.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self : object
        """
        rows, target = self._records(X, y)
        self.mechanism_ = None if self.mechanism is None else clone(self.mechanism)
        if self.mechanism_ is not None:
            released = np.asarray(self.mechanism_.fit_transform(np.column_stack([rows, target])), dtype=np.float64)
            names = [f"x{i}" for i in range(rows.shape[1] + 1)]
            if list(self.mechanism_.get_feature_names_out(names)) != names:
                raise ValueError(
                    "A release must have the columns of its row, of which the last is the target. "
                    "Got a mechanism that makes other columns of them instead."
                )
            rows, target = released[:, :-1], released[:, -1:]
        self.estimator_ = clone(self.estimator).fit(rows, target[:, 0])
        return self

    def predict(self, X: npt.ArrayLike) -> _Array:
        """Predict within the declared bounds; rows come as the mechanism gives them, released or only encoded.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        rows = self._unit(validate_finite(self, X, reset=False, dtype=np.float64))
        if self.mechanism_ is not None:
            # Whose target is not known is in the middle of its bounds.
            rows = np.asarray(self.mechanism_.transform(np.column_stack([rows, np.zeros(len(rows))])))[:, :-1]
        return self._from_unit(self.estimator_.predict(rows))

    @property
    def privacy_guarantee_(self) -> PrivacyGuarantee:
        """The mechanism's."""
        if getattr(self, "mechanism_", None) is None:
            raise AttributeError("Rows that were not released have no privacy guarantee.")
        return privacy_guarantee(self.mechanism_)


class _OneGradient(_Bounded):
    """One pass of gradient descent, cohort by cohort; a person's one gradient is released by `mechanism`."""

    def __init__(
        self, mechanism: Any, *, bounds: Any = (-1, 1), clip: Any = "auto", step: Any = "auto", n_rounds: int = 50
    ) -> None:
        self.mechanism = mechanism
        self.bounds = bounds
        self.clip = clip
        self.step = step
        self.n_rounds = n_rounds

    @property
    def privacy_guarantee_(self) -> PrivacyGuarantee:
        """The mechanism's: each person releases one gradient, once."""
        check_is_fitted(self)
        return self._guarantee

    def _descend(
        self,
        rows: _Array,
        targets: _Array,
        link: Callable[[_Array], _Array],
        usual: tuple[float, float, float],
        noise: Noise,
    ) -> _Array:
        """Coefficients of a constant and the features, one column for each of the targets."""
        clip = usual[0] if self.clip == "auto" else self.clip
        check_positive("clip", clip)
        check_whole("n_rounds", self.n_rounds, least=1)
        terms = np.column_stack([np.ones(len(rows)), rows])
        shape = (terms.shape[1], targets.shape[1])
        mechanism = clone(self.mechanism)
        # A vector's mechanism is told the ball of the same volume as the box, about, a number's the box.
        ball = "norm" in mechanism.get_params(deep=False)
        radius = clip * math.sqrt(math.prod(shape))
        if ball:
            mechanism.set_params(norm=radius)
        release = gradients_perturbed(mechanism).gradient_release(mechanism, clip, 1)
        if self.step == "auto":
            # Of releases that are about nobody.
            spread = float(np.std(release(np.zeros((_N_MADE_UP, math.prod(shape))))))
            of_cohort = spread * math.sqrt(self.n_rounds / len(rows))
            carried, longest = shape[0] * of_cohort**2, usual[1] * min(1, _MOST_TERMS / shape[0])
            # At a large epsilon the releases of zero may have no spread.
            step = longest if carried * longest <= usual[2] else usual[2] / carried
        else:
            check_positive("step", self.step)
            step = self.step
        theta, averaged = np.zeros(shape), np.zeros(shape)
        half = self.n_rounds // 2
        for done, cohort in enumerate(np.array_split(noise.permutation(len(rows)), self.n_rounds), start=1):
            if len(cohort):
                errors = link(terms[cohort] @ theta) - targets[cohort]
                gradients = (terms[cohort][:, :, None] * errors[:, None, :]).reshape(len(cohort), -1)
                if ball:
                    # A hair inside, so that rounding puts nobody outside.
                    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
                    gradients *= np.minimum(1, radius * (1 - 1e-9) / np.maximum(norms, radius / 2))
                else:
                    gradients = np.clip(gradients, -clip, clip)
                theta = theta - step * release(gradients).mean(axis=0).reshape(shape)
            if done > half:
                averaged += theta / (self.n_rounds - half)
        self._guarantee = release.guarantee
        return averaged


class OneGradientRegressor(_BoundedRegressor, _OneGradient):
    r"""Linear regression by one pass of gradient descent: of each person one gradient is released, once.

    Parameters
    ----------
    mechanism : transformer with `epsilon`
        Releases gradients, all coordinates within its bounds; PrivUnit their vector within its norm.
    bounds, target_bounds : (low, high), default=(-1, 1)
        Declared bounds. What lies outside is moved to them, predictions too.
    clip : "auto" or float, default="auto"
        Where a gradient's coordinates are clipped, features and target lying between -1 and 1; times the root of
        their number where a vector is. ``"auto"`` is an eighth of the target's range.
    step : "auto" or float, default="auto"
        ``"auto"`` takes it from the noise of a cohort's mean, and 1 at most, less with more than 20 features.
    n_rounds : int, default=50
        Cohorts.
    seed : None, int, Generator or RandomState, default=None
        Who belongs to which cohort. The noise of the gradients is the mechanism's.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Of features and target between -1 and 1: the mean of the later half of the steps.
    intercept_ : float
    privacy_guarantee_ : PrivacyGuarantee
        The mechanism's, of the record with its target.

    References
    ----------
    Duchi, Jordan and Wainwright, "Minimax optimal procedures for locally private estimation", 2018, Section 5. Wang
    et al., "Collecting and analyzing multidimensional data with local differential privacy", ICDE 2019, Section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import NumericPrivatizer
    >>> from skldp.study import OneGradientRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (20_000, 2))
    >>> model = OneGradientRegressor(NumericPrivatizer(4.0, mechanism="piecewise")).fit(X, X @ [0.5, 0.2])
    >>> model.score(X, X @ [0.5, 0.2]) > 0.9
    True
    """

    def __init__(
        self,
        mechanism: Any,
        *,
        bounds: Any = (-1, 1),
        target_bounds: Any = (-1, 1),
        clip: Any = "auto",
        step: Any = "auto",
        n_rounds: int = 50,
        seed: Any = None,
    ) -> None:
        super().__init__(mechanism, bounds=bounds, clip=clip, step=step, n_rounds=n_rounds)
        self.target_bounds = target_bounds
        self.seed = seed

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Ask everybody once, and learn.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self : object
        """
        rows, target = self._records(X, y)
        usual = (_CLIP_OF_TARGET, _LONGEST_OF_TARGET, _NOISE_OF_TARGET)
        theta = self._descend(rows, target, lambda scores: scores, usual, noise_from(self.seed))[:, 0]
        self.intercept_, self.coef_ = float(theta[0]), theta[1:]
        return self

    def predict(self, X: npt.ArrayLike) -> _Array:
        """Predict within the declared bounds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        rows = self._unit(validate_finite(self, X, reset=False, dtype=np.float64))
        return self._from_unit(rows @ self.coef_ + self.intercept_)


class OneGradientClassifier(ClassifierMixin, _OneGradient):  # type: ignore[misc]  # as above
    """Multinomial logistic regression, learnt as by :class:`OneGradientRegressor`.

    Parameters
    ----------
    mechanism : transformer with `epsilon`
    classes : array-like of shape (n_classes,)
        Declared.
    bounds, clip, step, n_rounds, seed
        As there; ``clip="auto"`` is a half, and a step 4 at most.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (n_features, n_classes)
        Of features between -1 and 1.
    intercept_ : ndarray of shape (n_classes,)
    privacy_guarantee_ : PrivacyGuarantee
        The mechanism's, of the record with its class.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import NumericPrivatizer
    >>> from skldp.study import OneGradientClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, (20_000, 2))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> OneGradientClassifier(NumericPrivatizer(4.0), classes=["no", "yes"]).fit(X, y).score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        mechanism: Any,
        *,
        classes: Any,
        bounds: Any = (-1, 1),
        clip: Any = "auto",
        step: Any = "auto",
        n_rounds: int = 50,
        seed: Any = None,
    ) -> None:
        super().__init__(mechanism, bounds=bounds, clip=clip, step=step, n_rounds=n_rounds)
        self.classes = classes
        self.seed = seed

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Ask everybody once, and learn.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self : object
        """
        rows = self._unit(validate_finite(self, X, reset=True, dtype=np.float64))
        labels = labels_1d(y)
        check_consistent_length(rows, labels)
        self.classes_ = declared_values(self.classes, "classes")
        one_hot = np.eye(len(self.classes_))[encode(labels, self.classes_, "y")]
        usual = (_CLIP_OF_CLASSES, _LONGEST_OF_CLASSES, _NOISE_OF_CLASSES)
        theta = self._descend(rows, one_hot, lambda scores: softmax(scores, axis=1), usual, noise_from(self.seed))
        self.intercept_, self.coef_ = theta[0], theta[1:]
        return self

    def predict(self, X: npt.ArrayLike) -> np.ndarray:
        """Predict the most likely class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self._unit(validate_finite(self, X, reset=False, dtype=np.float64)) @ self.coef_ + self.intercept_
        chosen: np.ndarray = self.classes_[scores.argmax(axis=1)]
        return chosen
