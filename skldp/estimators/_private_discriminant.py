"""A linear discriminant whose training data never leave the people they are about."""

from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from sklearn.utils import Tags

from skldp.estimators._base import warn_out_of_domain
from skldp.estimators._class_codes import declared_values, encode, labels_1d, learnt_values, warn_learnt
from skldp.estimators._guarantee_mixin import GuaranteeMixin, attach_guarantee
from skldp.estimators._learning import noise_of_more, warn_moved, warn_too_few
from skldp.estimators._linear_classifier import LinearScores
from skldp.estimators._validation import (
    BOUNDS,
    EPSILON,
    NOISE_PARAMETERS,
    Interval,
    as_table,
    check_bounds,
    check_epsilon,
    check_same_length,
    fit_context,
    validate_finite,
)
from skldp.learning._discriminant import DiscriminantProtocol
from skldp.learning._simulation import simulate
from skldp.mechanisms._domain import Ball, Box
from skldp.mechanisms._noise import noise_from

__all__ = ["PrivateDiscriminant"]


class PrivateDiscriminant(GuaranteeMixin, LinearScores, BaseEstimator):
    r"""Linear discriminant analysis under local differential privacy of every vector with its class.

    Each row of X with its y is a person, who releases one vector once, at the whole epsilon: nearly everybody the
    tensor of their row and their class. It is made for many features, such as embeddings and images, and uses vectors
    without classes that are public.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget (natural log) of one whole record: all features and the class.
    bounds : (low, high), default=(-1, 1)
        The declared domain, each end a number or one number per feature. What lies outside is moved to the nearest end.
        Or a dict that names every column of a frame, like ``{"age": (0, 100), "weight": (30, 200)}``.
        Not used with a `radius`.
    radius : float, default=None
        Declares that the rows have norms of at most this; longer ones are shortened to it. They should be about as
        long, as embeddings of norm 1 are: then nobody needs to tell how long they are.
    classes : array-like of shape (n_classes,), default=None
        The declared classes, from public knowledge. None takes those seen in y, with a warning: which classes occur is
        a fact about private data.
    public : array-like of shape (n_public, n_features), default=None
        Vectors without classes of the same kind, at least 10, that are nobody's secret and not of the people in X: such
        as texts that were published, embedded by the same model. They say in which directions rows differ, and are
        given to classes by what was learnt (self-training).
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
    protocol_ : DiscriminantProtocol
        Its public state at the end.
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
        With the number of values that were moved into the domain.

    See Also
    --------
    PrivateLogisticRegression : For few features and many people, more accurate.
    NoiseAwareDiscriminant : Of rows that were released one by one.

    Notes
    -----
    `fit` simulates a :class:`~skldp.learning.DiscriminantProtocol`: small parts of the people tell the classes' shares,
    the centre and the size of rows; the others the tensor. Without public vectors rows are taken to differ as much in
    all directions, unless there are enough people to tell their products.

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
    >>> model = PrivateDiscriminant(epsilon=1.0, bounds=(-1.5, 1.5), classes=[0, 1, 2], public=public).fit(X, y)
    >>> model.score(X, y) > 0.9, round(model.privacy_guarantee_.epsilon, 6)
    (True, 1.0)
    """

    _parameter_constraints: dict = {
        "epsilon": EPSILON,
        "bounds": BOUNDS,
        "radius": [Interval(Real, 0, None, closed="neither"), None],
        "classes": ["array-like", None],
        "public": ["array-like", None],
        **NOISE_PARAMETERS,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bounds: Any = (-1, 1),
        radius: float | None = None,
        classes: Any = None,
        public: Any = None,
        seed: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.radius = radius
        self.classes = classes
        self.public = public
        self.seed = seed
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Ask everybody once, and learn.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The private vectors.
        y : array-like of shape (n_samples,)
            Their private classes.

        Returns
        -------
        self : object
        """
        return self._fit(X, y, self.classes)

    def _fit(self, X: npt.ArrayLike, y: npt.ArrayLike, declared: Any) -> Self:
        self._forget_guarantee()
        check_epsilon(self.epsilon)
        rows = validate_finite(self, X, reset=True, dtype=np.float64)
        labels = labels_1d(y)
        check_same_length(rows, labels)
        learnt = declared is None
        classes = learnt_values(labels) if learnt else declared_values(declared, "classes")
        if len(classes) < 2:
            raise ValueError("There must be at least 2 classes. Got one class instead.")
        codes = encode(labels, classes, "y").astype(np.float64)
        low, high = self._ends(rows.shape[1])
        protocol = DiscriminantProtocol(
            rows.shape[1],
            len(rows),
            len(classes),
            epsilon=float(self.epsilon),
            low=low,
            high=high,
            in_ball=self.radius is not None,
            public=None if self.public is None else self._shortened(as_table(self.public, "public").astype(np.float64)),
        )
        if learnt:
            warn_learnt("The classes", "classes=[...]")
        warn_too_few(protocol, "the classes' shares are")
        inside = self._shortened(rows)
        simulate(protocol, inside, codes, noise_from(self.seed), n_threads=effective_n_jobs(self.n_jobs))
        self._warn_moved(rows, codes, len(classes))
        self.protocol_, self._n_calls = protocol, 0
        self._learn(classes, protocol.coefficients, protocol.intercepts)
        guarantee = protocol.guarantee()
        if self.public is not None:
            claim = "`public` is assumed to be nobody's secret, and about none of these people"
            guarantee = replace(guarantee, basis=f"{guarantee.basis}; {claim}")
        attach_guarantee(self, guarantee, "the classes" if learnt else "")
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: npt.ArrayLike, y: npt.ArrayLike, classes: npt.ArrayLike | None = None) -> Self:
        """Ask more people, who were not asked before, the question that stays open: that of the tensor.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), default=None
            The declared classes, for the first call, where the parameter `classes` declares none.

        Returns
        -------
        self : object
        """
        if "_guarantee_at_fit" not in vars(self):
            return self._fit(X, y, classes if self.classes is None else self.classes)
        self._check_unchanged()
        rows = self._checked(X)
        labels = labels_1d(y)
        check_same_length(rows, labels)
        codes = encode(labels, self.classes_, "y").astype(np.float64)
        task = self.protocol_.frozen_task
        if task is None:
            raise ValueError("Too few people were asked at first for a question that could stay open: fit with more.")
        threads = effective_n_jobs(self.n_jobs)
        noise = noise_of_more(self.seed, self._n_calls)
        self.protocol_.add(task.release(self._shortened(rows), codes, noise, n_threads=threads))
        self._n_calls += 1
        self._warn_moved(rows, codes, len(self.classes_))
        self._learn(self.classes_, self.protocol_.coefficients, self.protocol_.intercepts)
        return self

    def _ends(self, n_features: int) -> tuple[np.ndarray, np.ndarray]:
        bounds = self.bounds if self.radius is None else (-float(self.radius), float(self.radius))
        return check_bounds(bounds, n_features)

    def _shortened(self, rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return rows if self.radius is None else Ball(rows.shape[1], float(self.radius)).clip(rows).rows

    def _warn_moved(self, rows: npt.NDArray[np.float64], codes: npt.NDArray[np.float64], n_classes: int) -> None:
        if self.radius is not None:
            warn_out_of_domain(Ball(rows.shape[1], float(self.radius)).clip(rows).n_moved, rows.size)
            return
        low, high = self._ends(rows.shape[1])
        warn_moved(rows, codes, Box.of(np.append(low, 0), np.append(high, n_classes - 1)))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.seed is None
        # The tables of scikit-learn's checks are of far too few people.
        tags.classifier_tags.poor_score = True
        return tags
