"""LDP-SGD: one pass of gradient descent, with one released gradient per person."""

import math
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from skldp import PrivacyGuarantee
from skldp._checks import check_integer, check_positive
from skldp.domains._domain import Box
from skldp.estimators._class_codes import declared_values, encode, labels_1d
from skldp.estimators._validation import check_bounds, validate_finite
from skldp.mechanisms._noise import Noise, noise_from
from skldp.study import ReleasedRowsRegressor
from skldp.study._federated_parts import GradientRelease

__all__ = ["OneGradientClassifier", "OneGradientRegressor"]

_Array = npt.NDArray[np.float64]

# For features and target between -1 and 1: bound of a coordinate of a gradient, largest step, and noise of a step.
_CLIP_OF_TARGET, _CLIP_OF_CLASSES = 0.25, 0.5
_LONGEST_OF_TARGET, _LONGEST_OF_CLASSES = 1.0, 4.0
# With more terms the step is smaller: descent along the mean of all features would diverge.
_MOST_TERMS = 20
_NOISE_OF_TARGET, _NOISE_OF_CLASSES = 0.04, 0.2
# Rows from which the noise of a mechanism is estimated.
_N_MADE_UP = 2_000


class _OneGradient(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Gradient descent in one pass over cohorts. The mechanism releases one gradient of each person."""

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
        """Guarantee of the mechanism: each person releases one gradient, once."""
        check_is_fitted(self)
        return self._guarantee

    def _unit(self, rows: _Array) -> _Array:
        box = Box.of(*check_bounds(self.bounds, self.n_features_in_))
        return np.clip((box.clip(np.ascontiguousarray(rows)).rows - box.center) / box.radius, -1, 1)

    def _descend(
        self,
        rows: _Array,
        targets: _Array,
        link: Callable[[_Array], _Array],
        usual: tuple[float, float, float],
        noise: Noise,
    ) -> _Array:
        """Return the coefficients of a constant and the features, one column for each of the targets."""
        clip = usual[0] if self.clip == "auto" else self.clip
        check_positive("clip", clip)
        check_integer("n_rounds", self.n_rounds, least=1)
        terms = np.column_stack([np.ones(len(rows)), rows])
        shape = (terms.shape[1], targets.shape[1])
        mechanism = clone(self.mechanism)
        # A mechanism for vectors gets a ball of about the volume of the box.
        ball = "norm" in mechanism.get_params(deep=False)
        radius = clip * math.sqrt(math.prod(shape))
        if ball:
            mechanism.set_params(norm=radius)
        release = GradientRelease(mechanism, "gradients", clip, 1)
        if self.step == "auto":
            # Releases of zeros, which are no data.
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
                    # Slightly inside the ball: rounding must not put a gradient outside.
                    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
                    gradients *= np.minimum(1, radius * (1 - 1e-9) / np.maximum(norms, radius / 2))
                else:
                    gradients = np.clip(gradients, -clip, clip)
                theta = theta - step * release(gradients).mean(axis=0).reshape(shape)
            if done > half:
                averaged += theta / (self.n_rounds - half)
        self._guarantee = release.guarantee
        return averaged


class OneGradientRegressor(RegressorMixin, _OneGradient):  # type: ignore[misc]  # as above
    """Linear regression by LDP-SGD: each person releases one gradient, once.

    With ``clip="auto"`` the coordinates of a gradient are clipped to an eighth of the target's range. With
    ``step="auto"`` the step follows from the noise of a cohort's mean; it is at most 1, and smaller with more than 20
    features. `coef_` is the mean over the second half of the steps, for features and target between -1 and 1.

    Duchi, Jordan and Wainwright, "Minimax optimal procedures for locally private estimation", 2018, Section 5. Wang et
    al., "Collecting and analyzing multidimensional data with local differential privacy", ICDE 2019, Section 5.
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

    _records, _of_target = ReleasedRowsRegressor._records, ReleasedRowsRegressor._of_target
    _from_unit = ReleasedRowsRegressor._from_unit

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Release one gradient of each person, and learn."""
        rows, target = self._records(X, y)
        usual = (_CLIP_OF_TARGET, _LONGEST_OF_TARGET, _NOISE_OF_TARGET)
        theta = self._descend(rows, target, lambda scores: scores, usual, noise_from(self.seed))[:, 0]
        self.intercept_, self.coef_ = float(theta[0]), theta[1:]
        return self

    def predict(self, X: npt.ArrayLike) -> _Array:
        """Predict within the declared bounds."""
        check_is_fitted(self)
        rows = self._unit(validate_finite(self, X, reset=False, dtype=np.float64))
        return self._from_unit(rows @ self.coef_ + self.intercept_)


class OneGradientClassifier(ClassifierMixin, _OneGradient):  # type: ignore[misc]  # as above
    """Multinomial logistic regression by LDP-SGD; ``clip="auto"`` is 1/2, and a step is at most 4."""

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
        """Release one gradient of each person, and learn."""
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
        """Predict the most likely class."""
        scores = self._unit(validate_finite(self, X, reset=False, dtype=np.float64)) @ self.coef_ + self.intercept_
        chosen: np.ndarray = self.classes_[scores.argmax(axis=1)]
        return chosen
