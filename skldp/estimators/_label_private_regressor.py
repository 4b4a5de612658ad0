"""A regressor that sees only released targets."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin, is_classifier
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted, column_or_1d

from skldp.estimators._label_private import LabelPrivate
from skldp.estimators._targets import TargetPrivatizer
from skldp.estimators._validation import HasMethods, fit_context

__all__ = ["LabelPrivateRegressor"]


class LabelPrivateRegressor(LabelPrivate, RegressorMixin, BaseEstimator):
    """Train any regressor on targets that were released under local differential privacy.

    Only the targets are protected: the regressor sees X as it is.

    Parameters
    ----------
    estimator : regressor
        Cloned and fitted on the released targets. ``partial_fit`` is there where it has it.
    target_mechanism : TargetPrivatizer, default=None
        Cloned and applied to y in `fit`. None is ``TargetPrivatizer()``, which learns the bounds of y.

    Attributes
    ----------
    estimator_ : the fitted regressor of released targets
    target_mechanism_ : the fitted mechanism
    privacy_guarantee_ : PrivacyGuarantee
        Exact, per label; infinite where the mechanism learnt its bounds.
    n_features_in_ : int
        Where `estimator` sets it.
    feature_names_in_ : ndarray of shape (n_features,)
        Where `estimator` sets it.

    Raises
    ------
    ValueError
        If `estimator` is a classifier.

    Warns
    -----
    LearntDomainWarning
        If the mechanism learns its bounds from y.

    See Also
    --------
    LabelPrivateClassifier : The same for classes.
    PrivateLinearRegression : Where the features are private as well.
    sklearn.compose.TransformedTargetRegressor : Takes a TargetPrivatizer too, without a finite guarantee of the whole.

    Notes
    -----
    A model that minimises square errors learns the mean of released targets, which is that of the true ones where the
    mechanism is unbiased, as all but ``"bins"`` are. With that one it learns targets that are drawn towards their
    middle, and has far less noise: better for few rows, but more rows do not undo it.

    Anything else that is passed to ``fit`` goes to ``estimator.fit`` (by metadata routing where that is enabled).
    What holds the true targets, or was computed from them (weights, an evaluation set), is not protected there.

    References
    ----------
    Ghazi, Kamath, Kumar, Leeman, Manurangsi, Varadarajan and Zhang, "Regression with label differential privacy", ICLR
    2023.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from skldp import LabelPrivateRegressor, TargetPrivatizer
    >>> X, y = load_diabetes(return_X_y=True)
    >>> progression = TargetPrivatizer(epsilon=4.0, bounds=(0, 350))
    >>> regressor = LabelPrivateRegressor(Ridge(), target_mechanism=progression).fit(X, y)
    >>> regressor.predict(X).shape, regressor.privacy_guarantee_.epsilon
    ((442,), 4.0)
    """

    _parameter_constraints: dict = {
        "estimator": [HasMethods(["fit"])],
        "target_mechanism": [HasMethods(["fit_transform"]), None],
    }
    _mechanism_name = "target_mechanism"
    _domain_name = "bounds"

    def __init__(self, estimator: BaseEstimator, *, target_mechanism: BaseEstimator | None = None) -> None:
        self.estimator = estimator
        self.target_mechanism = target_mechanism

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: npt.ArrayLike, **fit_params: Any) -> Self:
        """Release the targets and train the regressor on them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Handed to `estimator` unprotected.
        y : array-like of shape (n_samples,)
            The private targets.
        **fit_params : dict
            Such as `sample_weight`, for ``estimator.fit``.

        Returns
        -------
        self : object
        """
        return self._train(X, y, fit_params)

    def predict(self, X: Any) -> np.ndarray:
        """Predict the target, as `estimator` learnt it from released ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self._ask("predict", X)

    def _default_mechanism(self) -> Any:
        return TargetPrivatizer()

    def _targets(self, y: Any) -> Any:
        return None if y is None else column_or_1d(y, warn=True)

    def _check_inner(self) -> None:
        if is_classifier(self.estimator):
            raise ValueError(
                "estimator must be a regressor; LabelPrivateClassifier trains classifiers on released classes. "
                f"Got {type(self.estimator).__name__} instead."
            )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        if inner.regressor_tags is not None:
            tags.regressor_tags.poor_score = inner.regressor_tags.poor_score
        return tags
