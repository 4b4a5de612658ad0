"""A label mechanism as a step of an imbalanced-learn pipeline."""

from sklearn.base import BaseEstimator, clone

from skldp.estimators.labels import LabelRR
from skldp.estimators.notebook import ShowsGuarantee
from skldp.estimators.validation import HasMethods, check_same_length, fit_context

__all__ = ["LabelSampler"]


class LabelSampler(ShowsGuarantee, BaseEstimator):
    """A label mechanism as a step of an imbalanced-learn pipeline.

    imbalanced-learn refuses a step that has both ``transform`` and ``fit_resample``, as the label mechanisms do; this
    one has ``fit_resample`` only.

    Parameters
    ----------
    label_mechanism : LabelRR or LabelLaplace, default=None
        None is ``LabelRR()``.

    Attributes
    ----------
    label_mechanism_ : the fitted mechanism
    privacy_guarantee_ : PrivacyGuarantee
        Exact, per label. X is handed through unprotected.

    Examples
    --------
    >>> from skldp import LabelRR, LabelSampler
    >>> sampler = LabelSampler(LabelRR(epsilon=2.0, classes=[0, 1]))
    >>> X, y_released = sampler.fit_resample([[0.1], [0.2]], [0, 1])
    >>> sampler.privacy_guarantee_.epsilon
    2.0
    """

    _parameter_constraints: dict = {"label_mechanism": [HasMethods(["fit_resample"]), None]}

    def __init__(self, label_mechanism=None):
        self.label_mechanism = label_mechanism

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y):
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
        """
        check_same_length(X, y)
        self.label_mechanism_ = self._clone().fit(y)
        self.privacy_guarantee_ = self.label_mechanism_.privacy_guarantee_
        return self

    @fit_context(prefer_skip_nested_validation=False)
    def fit_resample(self, X, y):
        """Hand X through and release every label.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            The private labels.

        Returns
        -------
        X : as it came in
        y_released : ndarray of shape (n_samples,)
        """
        self.label_mechanism_ = self._clone()
        released = self.label_mechanism_.fit_resample(X, y)
        self.privacy_guarantee_ = self.label_mechanism_.privacy_guarantee_
        return released

    def _clone(self):
        return LabelRR() if self.label_mechanism is None else clone(self.label_mechanism)

    def _parameters_of_the_law(self):
        mechanism = self.label_mechanism
        within = {} if mechanism is None else mechanism.get_params()
        return {"label_mechanism": mechanism} | {f"label_mechanism__{name}": value for name, value in within.items()}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # X is handed through, whatever it is.
        tags.input_tags.two_d_array = False
        tags.input_tags.sparse = tags.input_tags.allow_nan = tags.input_tags.string = True
        tags.target_tags.required = True
        return tags
