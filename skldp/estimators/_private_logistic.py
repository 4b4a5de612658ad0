"""Logistic regression whose training data never leave the people they are about."""

from numbers import Real
from typing import Any, Literal

from skldp.estimators._linear_classifier import PrivateLinearClassifier
from skldp.estimators._validation import (
    BOUNDS_BY_COLUMN,
    EPSILON,
    NOISE_PARAMETERS,
    Interval,
    StrOptions,
    check_bounds_by_column,
)
from skldp.learning._classification import ClassificationProtocol

__all__ = ["PrivateLogisticRegression"]


class PrivateLogisticRegression(PrivateLinearClassifier):
    r"""Logistic regression, binary or multinomial, under local differential privacy of every record with its class.

    Each row of X with its y is a person, who releases one vector once, at the whole epsilon.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget (natural log) of the whole record: all features and the class.
    bounds : (low, high), default=(-1, 1)
        The declared domain, each end a number or one number per feature. What lies outside is moved to the nearest end.
        Or a dict that names every column of a frame, like ``{"age": (0, 100), "weight": (30, 200)}``, or a list of one
        such pair per feature.
    classes : array-like of shape (n_classes,), default=None
        The declared classes, from public knowledge. None takes those seen in y, with a warning: which classes occur is
        a fact about private data.
    protocol : {"rounds", "once"}, default="rounds"
        ``"rounds"`` asks small cohorts one after the other for gradients at the model so far: the most accurate.
        ``"once"`` asks some cohorts for the scale and a first model, and then everybody else one and the same question,
        their gradient at that model; :meth:`partial_fit` takes more people at any time.
    alpha : "auto" or float, default="auto"
        Ridge: the inverse of the variance that is expected of the coefficients of whitened features, between a class
        and the others, before anybody has answered. It matters less the more is told. ``"auto"`` is 4. The ``alpha``
        of :class:`PrivateLinearRegression` is another thing, in units of the noise of what was told.
    fit_intercept : bool, default=True
        Without one, the log odds are 0 where all features are.
    class_weight : None, "balanced" or dict, default=None
        Factors of the classes' odds, by class; 1 where none is given. They move intercepts alone, as weights in the
        likelihood would where the model holds, and cost nothing. ``"balanced"`` takes one over each class's share,
        which 5% of the people are asked for, who are then asked nothing else.
    seed : None, int, Generator or RandomState, default=None
        None draws secure noise anew in every call. Anything else is for tests and studies, and voids the guarantee
        against whoever knows it.
    n_jobs : int, default=None
        Threads, as joblib counts them.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    protocol_ : ClassificationProtocol
        Its public state at the end, with the open task of ``protocol="once"``.
    privacy_guarantee_ : PrivacyGuarantee
        Of one person's release, record and class together; infinite where the classes were learnt.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Where X has them.

    Raises
    ------
    ValueError
        If X holds NaN or infinity, y a class that is not declared, or a parameter is not as above.

    Warns
    -----
    TooFewPeopleWarning
        If there are too few people for anything to be learnt: then the classes' shares are predicted.
    LearntDomainWarning
        If `classes` is None.
    OutOfDomainWarning
        With the number of values that were moved into the bounds.

    See Also
    --------
    PrivateLinearRegression : The same for numbers.
    LabelPrivateClassifier : Where only the labels are private.

    Notes
    -----
    `fit` simulates a :class:`~skldp.learning.ClassificationProtocol` on the rows it is given: a first part of the
    people tells the features' products, the others gradients of the likelihood at the model so far, which a Kalman
    filter puts together by their known noise. Nothing is learnt where the ``sufficiency`` of `protocol_`, which is that
    of a regression over the number of classes less one, is below 8. People's records are moved into `bounds`; rows
    to be predicted are taken as they are. There is no `sample_weight`: a weight would tell about a person.

    References
    ----------
    Duchi, Jordan and Wainwright, "Minimax optimal procedures for locally private estimation", 2018, section 4. King and
    Zeng, "Logistic regression in rare events data", 2001, equation 7.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import PrivateLogisticRegression
    >>> X = np.random.default_rng(0).uniform(-1, 1, (20_000, 3))
    >>> y = np.where(X @ [2.0, -1.0, 0.5] > 0.2, "yes", "no")
    >>> model = PrivateLogisticRegression(epsilon=2.0, classes=["no", "yes"]).fit(X, y)
    >>> model.score(X, y) > 0.85, round(model.privacy_guarantee_.epsilon, 6)
    (True, 2.0)
    """

    _parameter_constraints: dict = {
        "epsilon": EPSILON,
        "bounds": BOUNDS_BY_COLUMN,
        "classes": ["array-like", None],
        "protocol": [StrOptions({"rounds", "once"})],
        "alpha": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        **NOISE_PARAMETERS,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bounds: Any = (-1, 1),
        classes: Any = None,
        protocol: Literal["rounds", "once"] = "rounds",
        alpha: float | Literal["auto"] = "auto",
        fit_intercept: bool = True,
        class_weight: Any = None,
        seed: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.classes = classes
        self.protocol = protocol
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.seed = seed
        self.n_jobs = n_jobs

    def _protocol(self, n_people: int) -> ClassificationProtocol:
        low, high = check_bounds_by_column(self.bounds, self)
        return ClassificationProtocol(
            self.n_features_in_,
            n_people,
            len(self.classes_),
            epsilon=float(self.epsilon),
            low=low,
            high=high,
            kind=self.protocol,
            fit_intercept=self.fit_intercept,
            class_weight=self._weights(),
            **({} if self.alpha == "auto" else {"ridge": self.alpha}),
        )

    def _weights(self) -> Literal["balanced"] | list[float] | None:
        """Of every class, in the order of the classes."""
        given = self.class_weight
        if not isinstance(given, dict):
            return given
        if not set(given) <= set(self.classes_.tolist()):
            raise ValueError(f"class_weight must be a dict of weights by class. Got {given!r} instead.")
        return [given.get(one, 1.0) for one in self.classes_.tolist()]
