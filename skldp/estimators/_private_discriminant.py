"""PrivateDiscriminant: linear discriminant analysis from reports."""

from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from skldp._arrays import Floats
from skldp.domains._domain import Ball
from skldp.estimators._base import warn_out_of_domain
from skldp.estimators._private_logistic import PrivateLinearClassifier
from skldp.estimators._validation import NumberRange, as_table, check_bounds
from skldp.learning._discriminant import DiscriminantProtocol
from skldp.mechanisms._guarantee import PrivacyGuarantee


class PrivateDiscriminant(PrivateLinearClassifier):
    r"""Linear discriminant analysis under local differential privacy of every vector with its class.

    Each row of X with its y is a person, who releases one vector once, at the full epsilon. It suits many features,
    such as embeddings and images, and can use public vectors without classes.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget (natural log) of one record: all features and the class.
    bounds : (low, high), default=(-1, 1)
        Declared domain, each end a number or one number per feature; also a dict of pairs by column name, or a list of
        one pair per feature. Values outside are clipped. Not used with a `radius`.
    radius : float, default=None
        Declared bound on the norms of rows; longer rows are scaled down to it. Norms should be close to it, as with
        embeddings of norm 1, because no people are spent on estimating norms.
    classes : array-like of shape (n_classes,), default=None
        Declared classes, from public knowledge. None learns them from y, with a warning and an infinite guarantee.
    public : array-like of shape (n_public, n_features), default=None
        Public vectors of the same kind without classes, at least 10, independent of the people in X. They provide the
        covariance of rows, and are assigned to classes by the model (self-training).
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
    classes_ : ndarray of shape (n_classes,)
        Classes.
    coef_, intercept_ : ndarray of shape (n_logits, n_features), ndarray of shape (n_logits,)
        Coefficients and intercepts; n_logits is 1 for two classes, else n_classes.
    undetected_share_ : float
        Largest share of people with outlying values that `fit` may miss. Such values are clipped.
    score_estimate_ : ScoreEstimate or None
        Share of the log loss that the model explains, by people who did not train it, with `value`,
        `error`, `interval` (95%) and `n_people`. None with too few people, or after :meth:`partial_fit`.
    protocol_ : DiscriminantProtocol
        Final state of the protocol, computed from reports alone.
    privacy_guarantee_ : PrivacyGuarantee
        For one release of record and class together; infinite if the classes were learnt.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features, and their names if X of `fit` has names.

    Raises
    ------
    ValueError
        If X holds NaN or infinity, y a class that is not declared, or a parameter is out of range.

    Warns
    -----
    TooFewPeopleWarning
        If there are too few people. The shares of the classes are predicted then.
    LearntDomainWarning
        If `classes` is None.
    OutOfDomainWarning
        Reports the number of values that were moved into the domain.

    See Also
    --------
    PrivateLogisticRegression : For few features and many people.
    NoiseAwareDiscriminant : Learns from rows that were released one by one.

    Notes
    -----
    Small cohorts report the shares of the classes, the centre and the size of rows; the others report the tensor of row
    and class. With few people and no public vectors, the covariance is assumed to be a multiple of the identity. A
    cohort between two halves of the tensor then reports the size of its scores, from which the slope of the
    probabilities follows.

    References
    ----------
    Bhowmick, Duchi, Freudiger, Kapoor and Rogers, "Protection against reconstruction and its applications in private
    federated learning", 2018, for the release. Ledoit and Wolf, "A well-conditioned estimator for large-dimensional
    covariance matrices", 2004, for the public vectors' covariance.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import PrivateDiscriminant
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=10_000)
    >>> X = rng.normal(0.5 * np.eye(3, 30)[y], 0.2)
    >>> public = rng.normal(0.5 * np.eye(3, 30)[rng.integers(3, size=200)], 0.2)
    >>> model = PrivateDiscriminant(epsilon=4.0, bounds=(-1.5, 1.5), classes=[0, 1, 2], public=public).fit(X, y)
    >>> model.score(X, y) > 0.8, round(model.privacy_guarantee_.epsilon, 6)
    (True, 4.0)
    """

    _parameter_constraints: dict = {
        **PrivateLinearClassifier._parameter_constraints,
        "radius": [NumberRange(Real, 0, None, closed="neither"), None],
        "classes": ["array-like", None],
        "public": ["array-like", None],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bounds: Any = (-1, 1),
        radius: float | None = None,
        classes: Any = None,
        public: Any = None,
        score_share: float = 0.05,
        n_people: int | None = None,
        seed: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.radius = radius
        self.classes = classes
        self.public = public
        self.score_share = score_share
        self.n_people = n_people
        self.seed = seed
        self.n_jobs = n_jobs

    def _protocol(self, n_people: int) -> DiscriminantProtocol:
        public = None if self.public is None else self._inside(as_table(self.public, "public").astype(np.float64))
        return DiscriminantProtocol(**self._settings(n_people), in_ball=self.radius is not None, public=public)

    def _bounds(self) -> tuple[Floats, Floats]:
        if self.radius is None:
            return super()._bounds()
        return check_bounds((-float(self.radius), float(self.radius)), self.n_features_in_)

    def _prepared(self, rows: Floats, target: Floats) -> tuple[Floats, Floats]:
        return self._inside(rows), target

    def _inside(self, rows: Floats) -> Floats:
        return rows if self.radius is None else Ball(rows.shape[1], float(self.radius)).clip(rows).rows

    def _promise(self, guarantee: PrivacyGuarantee) -> PrivacyGuarantee:
        if self.public is None:
            return guarantee
        claim = "`public` is assumed to be public and independent of these people"
        return replace(guarantee, basis=f"{guarantee.basis}; {claim}")

    def _warn_moved(self, rows: Floats, target: Floats) -> None:
        if self.radius is None:
            super()._warn_moved(rows, target)
        else:
            # Rows of norm 1 in half precision are longer than 1 by their rounding.
            longer = np.linalg.norm(rows, axis=1) > float(self.radius) * (1 + np.finfo(np.float16).eps)
            warn_out_of_domain(self, np.count_nonzero(longer), len(rows), "Declare a larger radius", what="rows")
