"""Models that see released targets only: their base, the regressor, and a step for imbalanced-learn."""

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone, is_classifier
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from skldp.estimators._guarantee_mixin import GuaranteeMixin
from skldp.estimators._labels import LabelReleaser, LabelRR
from skldp.estimators._routing import RoutingMixin
from skldp.estimators._targets import TargetPrivatizer
from skldp.estimators._validation import HasMethods, fit_context


def inner_has(name: str) -> Callable[[Any], bool]:
    """Return a check for ``available_if`` that the inner model has a method."""

    def check(self: Any) -> bool:
        getattr(getattr(self, "estimator_", self.estimator), name)
        return True

    return check


class HasTargetMechanism(GuaranteeMixin):
    """Base of estimators that apply a clone of a private mechanism, a parameter, to y."""

    # Name of the parameter, and the class of the mechanism that None stands for.
    _mechanism_name: ClassVar[str] = "label_mechanism"
    _default_mechanism: ClassVar[type[BaseEstimator]] = LabelRR

    def _new_mechanism(self, y: Any = None) -> Any:
        given = getattr(self, self._mechanism_name)
        if not isinstance(given, GuaranteeMixin | None):
            # Its errors could show targets.
            raise ValueError(
                f"`{self._mechanism_name}` must be a private mechanism, such as {self._default_mechanism.__name__}(...)"
                f"; got {type(given).__name__}."
            )
        return self._default_mechanism() if given is None else clone(given)

    def _guarantee_parameters(self) -> dict[str, Any]:
        name, given = self._mechanism_name, getattr(self, self._mechanism_name)
        within = {} if given is None else given.get_params()
        return {name: given} | {f"{name}__{inner}": value for inner, value in within.items()}


class LabelPrivate(RoutingMixin, HasTargetMechanism, MetaEstimatorMixin):
    """Base class of the classifier and the regressor whose inner `estimator` sees released targets only."""

    estimator_: Any
    privacy_guarantee_: Any
    _releases_inner_targets = True
    _absent = {"partial_fit": "Release y once by a mechanism such as LabelRR, then call partial_fit of `estimator`."}

    def _check_inner(self) -> None:
        """Raise ValueError for an unsuitable inner estimator, before a target is read."""
        raise NotImplementedError

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: npt.ArrayLike, **fit_params: Any) -> Self:
        """Release the targets, and train the estimator on them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Passed to `estimator` unprotected.
        y : array-like of shape (n_samples,)
            The private targets or labels.
        **fit_params : dict
            Passed to ``estimator.fit``, such as `sample_weight`.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        self._check_inner()
        fit_params, y = self._routed(fit_params), self._targets(y)
        mechanism, estimator = self._new_mechanism(y), clone(self.estimator)
        released = mechanism.fit_transform(y)
        estimator.fit(X, released, **fit_params)
        setattr(self, f"{self._mechanism_name}_", mechanism)
        self.estimator_ = estimator
        self.privacy_guarantee_ = mechanism.privacy_guarantee_
        for part, names in ((estimator, ("n_features_in_", "feature_names_in_")), (mechanism, ("classes_",))):
            for name in names:
                if hasattr(part, name):
                    setattr(self, name, getattr(part, name))
        return self

    def _targets(self, y: Any) -> Any:
        """Return the targets as an array."""
        raise NotImplementedError

    def _ask(self, method: str, X: Any) -> np.ndarray:
        answers: np.ndarray = getattr(self.estimator_, method)(X)
        return answers

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        given = getattr(self, self._mechanism_name)
        mechanism = self._default_mechanism() if given is None else given
        # A wrong parameter is refused by `fit` alone.
        noisy = not isinstance(mechanism, BaseEstimator) or get_tags(mechanism).non_deterministic
        tags.non_deterministic = inner.non_deterministic or noisy
        tags.input_tags = inner.input_tags
        tags.classifier_tags = inner.classifier_tags or tags.classifier_tags
        tags.regressor_tags = inner.regressor_tags or tags.regressor_tags
        return tags


class LabelPrivateRegressor(LabelPrivate, RegressorMixin, BaseEstimator):
    """Train any regressor on targets that were released under local differential privacy.

    Only the targets are protected, not X.

    Parameters
    ----------
    estimator : regressor
        Cloned and fitted on the released targets.
    target_mechanism : TargetPrivatizer, default=None
        Cloned and applied to y in `fit`. None is ``TargetPrivatizer()``, which learns the bounds of y.

    Attributes
    ----------
    estimator_, target_mechanism_ : regressor, TargetPrivatizer
        Fitted regressor of released targets, and fitted mechanism.
    privacy_guarantee_ : PrivacyGuarantee
        Exact, per label; infinite if the mechanism learnt its bounds.
    n_features_in_ : int
        If `estimator` sets it.
    feature_names_in_ : ndarray of shape (n_features,)
        If `estimator` sets it.

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
    PrivateLinearRegression : Protects the features as well.
    sklearn.compose.TransformedTargetRegressor : Takes a TargetPrivatizer too, without a finite guarantee.

    Notes
    -----
    A model that minimises squared errors is consistent with unbiased mechanisms: all but ``"bins"``, which shrinks
    targets towards their middle and has far less noise. It is better for few rows, with a bias that remains.

    Further arguments of ``fit`` go to ``estimator.fit`` (by metadata routing if enabled). Arguments that hold true
    targets, or were computed from them (weights, an evaluation set), are not protected.

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
    _default_mechanism = TargetPrivatizer

    def __init__(self, estimator: BaseEstimator, *, target_mechanism: BaseEstimator | None = None) -> None:
        self.estimator = estimator
        self.target_mechanism = target_mechanism

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Public features.
        """
        check_is_fitted(self)
        return self._ask("predict", X)

    def _targets(self, y: Any) -> Any:
        return None if y is None else column_or_1d(y, warn=True)

    def _check_inner(self) -> None:
        if is_classifier(self.estimator):
            raise ValueError(
                "estimator must be a regressor; LabelPrivateClassifier trains classifiers on released classes; "
                f"got {type(self.estimator).__name__}."
            )


class LabelSampler(HasTargetMechanism, BaseEstimator):
    """Step of an imbalanced-learn pipeline that releases labels by a label mechanism.

    Parameters
    ----------
    label_mechanism : LabelRR or LabelLaplace, default=None
        Cloned and applied to y in `fit`. None is ``LabelRR()``.

    Attributes
    ----------
    label_mechanism_ : LabelRR or LabelLaplace
        Fitted mechanism.
    privacy_guarantee_ : PrivacyGuarantee
        Exact, per label. X passes unprotected.

    Examples
    --------
    >>> from skldp import LabelRR, LabelSampler
    >>> sampler = LabelSampler(LabelRR(epsilon=2.0, classes=[0, 1]))
    >>> X, y_released = sampler.fit_resample([[0.1], [0.2]], [0, 1])
    >>> sampler.privacy_guarantee_.epsilon
    2.0
    """

    _parameter_constraints: dict = {"label_mechanism": [LabelReleaser, None]}

    def __init__(self, label_mechanism: BaseEstimator | None = None) -> None:
        self.label_mechanism = label_mechanism

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the label mechanism.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Not used.
        y : array-like of shape (n_samples,)
            The private labels.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        self._apply("fit", X, y)
        return self

    @fit_context(prefer_skip_nested_validation=False)
    def fit_resample(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        """Return X unchanged, and release every label.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Public features.
        y : array-like of shape (n_samples,)
            The private labels.

        Returns
        -------
        X : array-like of shape (n_samples, n_features)
            The argument, unchanged.
        y_released : ndarray of shape (n_samples,)
            Released labels.
        """
        return X, self._apply("fit_transform", X, y)

    def _apply(self, method: str, X: Any, y: Any) -> Any:
        check_consistent_length(X, y)
        self.label_mechanism_ = self._new_mechanism()
        result = getattr(self.label_mechanism_, method)(y)
        self.privacy_guarantee_ = self.label_mechanism_.privacy_guarantee_
        return result

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # X passes unchanged.
        tags.input_tags.two_d_array = False
        tags.input_tags.sparse = tags.input_tags.allow_nan = tags.input_tags.string = True
        tags.target_tags.required = True
        return tags
