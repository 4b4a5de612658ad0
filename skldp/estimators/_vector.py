"""Transformers of vectors: directions, and noise in proportion to the distance."""

from numbers import Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from skldp.accounting import PrivacyLedger
from skldp.estimators._base import LocalTransformer, check_bounds_of_type
from skldp.estimators._charged import LEDGER, ChargesLedger
from skldp.estimators._validation import (
    BOUNDS_BY_COLUMN,
    Interval,
    Seed,
    StrOptions,
    check_bounds_by_column,
)
from skldp.mechanisms._norms import nearest_rows
from skldp.mechanisms._vector.multivariate_laplace import MultivariateLaplace
from skldp.mechanisms._vector.privunit import PrivUnit, PrivUnitBall
from skldp.mechanisms._vector.scaled_rows import ScaledRows

__all__ = ["MultivariateLaplacePrivatizer", "PrivUnitTransformer"]


class PrivUnitTransformer(ChargesLedger, OneToOneFeatureMixin, LocalTransformer):
    r"""Release directions, or vectors of bounded norm: unbiased, epsilon-LDP, with the least noise.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget (natural log) of one record, all its features together.
    norm : "unit" or float, default="unit"
        ``"unit"`` releases the direction of each row, and not its norm; a row of zeros comes out as a uniform
        direction. A number R declares that the rows have norms of at most R, and releases the vectors themselves;
        longer rows are shortened to R.
    bounds : (low, high), default=None
        Declares bounds of the features, as for :class:`BoundsScaler`: each is scaled from its own to [-1, 1] first, and
        what is released, and `norm`, is about the scaled rows. So a table of unequal columns needs no scaling by hand.
        What lies outside is moved to the nearest end.
    transform_noise : bool, default=True
        False: only `fit_transform` adds noise. `transform` then gives the direction (or the vector) as it is.
    seed : None, int, Generator or RandomState, default=None
        None draws secure noise anew in every call. Anything else is for tests and studies, and voids the guarantee
        against whoever knows it.
    n_jobs : int, default=None
        Threads, as joblib counts them.
    ledger : PrivacyLedger, default=None
        Charges each person's budget for their row, at its exact epsilon, before it is handed out. Whoever releases
        then names the people, by `ids`; if anybody is refused, nothing is released.

    Attributes
    ----------
    mechanism_ : PrivUnit, PrivUnitBall, or ScaledRows around either
        With `variance`, and `second_moments`, by which second moments of released data are turned into those of the
        clean ones.
    radius_ : float or None
        R, where it is declared.
    bounds_ : tuple of two ndarrays of shape (n_features,), or None
    privacy_guarantee_ : PrivacyGuarantee
        Of the law of real numbers; what drawing it in floating point leaves open is in the mechanism's notes.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Where X has them.

    Raises
    ------
    ValueError
        At `fit`, if there are fewer than two features.

    See Also
    --------
    skldp.mechanisms.PrivUnit : The law.
    RandomProjectionPrivatizer : With ``noise="privunit"`` the same in fewer dimensions, with less noise.

    Notes
    -----
    A released row has the norm :math:`1 / m` (times R), about :math:`2.5 \sqrt d / \varepsilon` for small epsilon and
    :math:`\sqrt{d / (2 \varepsilon)}` for a large one, whatever the row: what is private is where it points.

    References
    ----------
    Bhowmick, Duchi, Freudiger, Kapoor and Rogers, "Protection against reconstruction and its applications in private
    federated learning", 2018, Algorithm 1. Asi, Feldman and Talwar, "Optimal algorithms for mean estimation under
    local differential privacy", ICML 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import PrivUnitTransformer
    >>> X = np.random.default_rng(0).normal(size=(100, 20)) + 1
    >>> privatizer = PrivUnitTransformer(epsilon=3.0).fit(X)
    >>> print(privatizer.privacy_guarantee_)
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
        "norm": [StrOptions({"unit"}), Interval(Real, 0, None, closed="neither")],
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
        ledger: PrivacyLedger | None = None,
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
            raise ValueError(f"A direction needs at least 2 features. Got n_features = {n_features} instead.")
        epsilon = float(self.epsilon)
        radius = None if isinstance(self.norm, str) else float(self.norm)
        vectors = PrivUnit(n_features, epsilon) if radius is None else PrivUnitBall(n_features, epsilon, radius)
        self.bounds_ = None if self.bounds is None else check_bounds_by_column(self.bounds, self)
        if self.bounds_ is None:
            return vectors
        return ScaledRows(vectors, *(tuple(end.tolist()) for end in self.bounds_))

    def _release(self, rows, out=None, *, noisy=True, ids=None, keyed=None):
        if self.bounds_ is not None:
            check_bounds_of_type(self.bounds_, rows.dtype)
        return super()._release(rows, out, noisy=noisy, ids=ids, keyed=keyed)

    @property
    def radius_(self):
        """The declared norm, or None."""
        return getattr(getattr(self.mechanism_, "inner", self.mechanism_), "radius", None)


class MultivariateLaplacePrivatizer(OneToOneFeatureMixin, LocalTransformer):
    r"""Release vectors with noise calibrated to the Euclidean distance (metric privacy, M1).

    Near vectors are hard to tell apart, far ones are not: `epsilon` is the budget per unit of distance, and nothing is
    said about a whole record unless a `radius` is declared.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget (natural log) per unit of Euclidean distance.
    radius : float, default=None
        Declares that the rows have norms of at most this; longer ones are shortened to it. The guarantee then shows the
        plain epsilon over the diameter as well, ``2 * radius * epsilon``.
    vocabulary : array-like of shape (n_words, n_features), default=None
        Public vectors, such as those of the words of a language. `transform` then returns the one nearest to the
        noisy vector.
    transform_noise : bool, default=True
        False: only `fit_transform` adds noise. `transform` then gives the same vectors without it.
    seed : None, int, Generator or RandomState, default=None
        None draws secure noise anew in every call. Anything else is for tests and studies, and voids the guarantee
        against whoever knows it.
    n_jobs : int, default=None
        Threads, as joblib counts them.

    Attributes
    ----------
    mechanism_ : MultivariateLaplace
    radius_ : float or None
        The declared radius.
    privacy_guarantee_ : PrivacyGuarantee
        In unit "distance".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Where X has them.

    Raises
    ------
    ValueError
        If the vocabulary has another width, or is not finite.

    See Also
    --------
    RandomProjectionPrivatizer : The same with less noise, in fewer dimensions.
    PrivUnitTransformer : A guarantee for whole records.

    Notes
    -----
    .. math:: w = x + \kappa, \quad p(\kappa) \propto e^{-\varepsilon \|\kappa\|}

    The noise has a norm of about :math:`d / \varepsilon`.

    The guarantee does not resolve distances below the rounding of X. Rows keep their type (float32 or float64, all
    else becomes float64); what a `radius` shortens is rounded to it. The noise (from 16 dimensions on, with a direction
    from words of single precision) is added in double precision, and the sum rounded to multiples of
    ``mechanism_.step``, at most 2^-14 of the noise's standard deviation, before it takes the type of the rows. A row of
    float32 is itself known to 2^-24 of its size only, and one of float64 to 2^-53: of two rows nearer to each other
    than that, epsilon times their distance speaks about real numbers and not about what is computed. Pass float64, or
    subtract a public centre, where such distances matter.

    References
    ----------
    Feyisetan, Balle, Drake and Diethe, "Privacy- and utility-preserving textual analysis via calibrated multivariate
    perturbations", WSDM 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import MultivariateLaplacePrivatizer
    >>> X = np.random.default_rng(0).normal(size=(100, 20))
    >>> privatizer = MultivariateLaplacePrivatizer(epsilon=5.0, radius=10.0).fit(X)
    >>> privatizer.privacy_guarantee_.plain_epsilon
    100.0
    """

    _parameter_constraints: dict = {
        **LocalTransformer._parameter_constraints,
        "radius": [None, Interval(Real, 0, None, closed="neither")],
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

    def nearest_indices(self, X: Any) -> np.ndarray:
        """Release, of every row, the index in the vocabulary of the word nearest to the noisy row.

        Each call is a release of its own, with fresh noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The private rows.

        Returns
        -------
        indices : ndarray of int, shape (n_samples,)

        Raises
        ------
        ValueError
            If there is no vocabulary.
        """
        check_is_fitted(self)
        self._check_unchanged()
        if self.mechanism_.vocabulary is None:
            raise ValueError("nearest_indices needs a vocabulary. Got vocabulary=None instead.")
        words = self._release(self._rows(X, reset=False), noisy=self.transform_noise)
        return nearest_rows(words, self.mechanism_.vocabulary.astype(words.dtype))

    def _make_mechanism(self, X):
        radius = None if self.radius is None else float(self.radius)
        vocabulary = None if self.vocabulary is None else np.asarray(self.vocabulary, dtype=np.float64)
        return MultivariateLaplace(X.shape[1], float(self.epsilon), radius=radius, vocabulary=vocabulary)

    @property
    def radius_(self):
        """The declared radius, or None."""
        return self.mechanism_.radius
