"""Transformers of vectors: PrivUnit, and noise in proportion to the distance."""

from numbers import Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import OneToOneFeatureMixin

from skldp.estimators._base import LEDGER, LocalTransformer
from skldp.estimators._validation import BOUNDS_BY_COLUMN, NumberRange, Seed, StrOptions
from skldp.mechanisms.vector._multivariate_laplace import MultivariateLaplace
from skldp.mechanisms.vector._privunit import PrivUnit, PrivUnitBall, ScaledRows

if TYPE_CHECKING:
    from skldp.accounting.ledger._privacy_ledger import PrivacyLedger


class PrivUnitTransformer(OneToOneFeatureMixin, LocalTransformer):
    r"""Release directions, or vectors of bounded norm: unbiased, epsilon-LDP, with the least noise.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget (natural log) of one record, all its features together.
    norm : "unit" or float, default="unit"
        ``"unit"`` releases the direction of each row; a row of zeros gives a uniform direction. A number R is a
        declared bound on norms, and releases the vectors; longer rows are scaled down to R.
    bounds : (low, high), default=None
        Declared bounds of the features, as for :class:`BoundsScaler`. Rows are clipped and scaled to [-1, 1] first;
        releases and `norm` refer to the scaled rows.
    transform_noise, seed, n_jobs, ledger : optional
        As for :class:`BitRandTransformer`.

    Attributes
    ----------
    mechanism_ : PrivUnit, PrivUnitBall, or ScaledRows around either
        Has `variance`, and `second_moments`, which corrects second moments of released data.
    radius_ : float or None
        R, if declared.
    bounds_ : tuple of two ndarrays of shape (n_features,), or None
        Lower and upper bounds.
    privacy_guarantee_ : PrivacyGuarantee
        For the law on real numbers; see the mechanism's notes on floating point.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features, and their names if X of `fit` has names.

    Raises
    ------
    ValueError
        If there are fewer than two features.

    See Also
    --------
    skldp.mechanisms.PrivUnit : The law.
    RandomProjectionPrivatizer : With ``noise="privunit"`` the same in fewer dimensions, with less noise.

    Notes
    -----
    A released row has the norm :math:`1 / m` (times R), about :math:`2.5 \sqrt d / \varepsilon` for small epsilon and
    :math:`\sqrt{d / (2 \varepsilon)}` for a large one, for every row: the release protects the direction.

    References
    ----------
    Bhowmick, Duchi, Freudiger, Kapoor and Rogers, "Protection against reconstruction and its applications in private
    federated learning", 2018, Algorithm 1. Asi, Feldman and Talwar, "Optimal algorithms for mean estimation under
    local differential privacy", ICML 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import PrivUnitTransformer, privacy_guarantee
    >>> X = np.random.default_rng(0).normal(size=(100, 20)) + 1
    >>> privatizer = PrivUnitTransformer(epsilon=3.0).fit(X)
    >>> print(privacy_guarantee(privatizer))
    epsilon 3 per record (stated 3); density ratio of PrivUnit in real numbers, drawn in double precision
    >>> privatizer.transform(X).shape
    (100, 20)

    A table of people, by columns of years, kilograms and metres:

    >>> people = PrivUnitTransformer(epsilon=3.0, bounds=[(0, 100), (30, 200), (1.0, 2.2)])
    >>> people.fit_transform([[44.0, 80.0, 1.7], [61.0, 66.0, 1.6]]).shape
    (2, 3)
    """

    _parameter_constraints: dict = {
        **LocalTransformer._parameter_constraints,
        "ledger": LEDGER,
        "norm": [StrOptions({"unit"}), NumberRange(Real, 0, None, closed="neither")],
        "bounds": [*BOUNDS_BY_COLUMN, None],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        norm: float | Literal["unit"] = "unit",
        bounds: Any = None,
        transform_noise: bool = True,
        seed: Seed = None,
        n_jobs: int | None = None,
        ledger: "PrivacyLedger | None" = None,
    ) -> None:
        self.epsilon = epsilon
        self.norm = norm
        self.bounds = bounds
        self.transform_noise = transform_noise
        self.seed = seed
        self.n_jobs = n_jobs
        self.ledger = ledger

    def _make_mechanism(self, X):
        n_features = X.shape[1]
        if n_features < 2:
            raise ValueError(f"X must have at least 2 features; got n_features = {n_features}.")
        epsilon = float(self.epsilon)
        radius = None if isinstance(self.norm, str) else float(self.norm)
        vectors = PrivUnit(n_features, epsilon) if radius is None else PrivUnitBall(n_features, epsilon, radius)
        if self.bounds_ is None:
            return vectors
        return ScaledRows(vectors, *(tuple(end.tolist()) for end in self.bounds_))

    @property
    def radius_(self):
        """Declared norm, or None."""
        return getattr(getattr(self.mechanism_, "inner", self.mechanism_), "radius", None)


class MultivariateLaplacePrivatizer(OneToOneFeatureMixin, LocalTransformer):
    r"""Release vectors with noise calibrated to the Euclidean distance (metric privacy, M1).

    `epsilon` is the budget per unit of distance. A record has a finite epsilon only if a `radius` is declared.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget (natural log) per unit of Euclidean distance.
    radius : float, default=None
        Declared bound on the norms of rows; longer rows are scaled down to it. The guarantee then includes the
        plain epsilon over the diameter, ``2 * radius * epsilon``.
    vocabulary : array-like of shape (n_words, n_features), default=None
        Public vectors, such as those of words. `transform` then returns the one nearest to the noisy vector.
    transform_noise, seed, n_jobs : optional
        As for :class:`BitRandTransformer`.

    Attributes
    ----------
    mechanism_ : MultivariateLaplace
        Sampled mechanism.
    radius_ : float or None
        The declared radius.
    privacy_guarantee_ : PrivacyGuarantee
        In unit "distance".
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features, and their names if X of `fit` has names.

    Raises
    ------
    ValueError
        If the vocabulary has another number of columns, or is not finite.

    See Also
    --------
    RandomProjectionPrivatizer : The same noise after a projection to fewer dimensions.
    PrivUnitTransformer : Plain LDP of a record.

    Notes
    -----
    .. math:: w = x + \kappa, \quad p(\kappa) \propto e^{-\varepsilon \|\kappa\|}

    The noise has a norm of about :math:`d / \varepsilon`.

    The guarantee does not resolve distances below the rounding of X: 2^-24 of a row's size in float32, 2^-53 in
    float64. Rows keep their type (float32 or float64). Noise is added in double precision, and the sum rounded to
    multiples of ``mechanism_.step``, at most 2^-14 of the noise's standard deviation, then to the type of the rows.
    Pass float64, or subtract a public centre, if such distances matter.

    References
    ----------
    Feyisetan, Balle, Drake and Diethe, "Privacy- and utility-preserving textual analysis via calibrated multivariate
    perturbations", WSDM 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import MultivariateLaplacePrivatizer
    >>> X = np.random.default_rng(0).normal(size=(100, 20))
    >>> privatizer = MultivariateLaplacePrivatizer(epsilon=1.0, radius=10.0).fit(X)
    >>> privatizer.privacy_guarantee_.plain_epsilon
    20.0
    """

    _parameter_constraints: dict = {
        **LocalTransformer._parameter_constraints,
        "radius": [None, NumberRange(Real, 0, None, closed="neither")],
        "vocabulary": [None, "array-like"],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        radius: float | None = None,
        vocabulary: npt.ArrayLike | None = None,
        transform_noise: bool = True,
        seed: Seed = None,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.radius = radius
        self.vocabulary = vocabulary
        self.transform_noise = transform_noise
        self.seed = seed
        self.n_jobs = n_jobs

    def _make_mechanism(self, X):
        radius = None if self.radius is None else float(self.radius)
        vocabulary = None if self.vocabulary is None else np.asarray(self.vocabulary, dtype=np.float64)
        return MultivariateLaplace(X.shape[1], float(self.epsilon), radius=radius, vocabulary=vocabulary)

    @property
    def radius_(self):
        """Declared radius, or None."""
        return self.mechanism_.radius
