"""PrivUnitTransformer: vectors under plain local differential privacy."""

from numbers import Real

from sklearn.base import OneToOneFeatureMixin

from skldp.estimators.embedding_base import RadiusTransformer
from skldp.estimators.validation import Interval, StrOptions
from skldp.mechanisms.vector.privunit import PrivUnit
from skldp.mechanisms.vector.privunit_ball import PrivUnitBall

__all__ = ["PrivUnitTransformer"]


class PrivUnitTransformer(OneToOneFeatureMixin, RadiusTransformer):
    r"""Release directions, or vectors of bounded norm: unbiased, epsilon-LDP, with the least noise.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of one row, all its features together (natural log).
    norm : "unit" or float, default="unit"
        ``"unit"`` releases the direction of each row, and not its norm; a row of zeros comes out as a uniform
        direction. A number R declares that the rows have norms
        of at most R, and releases the vectors themselves; longer rows are shortened to R.
    transform_noise : bool, default=True
        False: only `fit_transform` adds noise, `transform` passes the direction (or the vector) as it is.
    seed : None, int or Generator, default=None
        None draws from the operating system. Anything else is for tests.
    n_jobs : int, default=None
        Threads.

    Attributes
    ----------
    mechanism_ : PrivUnit or PrivUnitBall
        With `variance`, and `second_moments`, by which second moments of released data are turned into those of the
        clean ones.
    radius_ : float or None
        R, where it is declared.
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
    skldp.mechanisms.vector.privunit.PrivUnit : The law.
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
    """

    _parameter_constraints: dict = {
        **RadiusTransformer._parameter_constraints,
        "norm": [StrOptions({"unit"}), Interval(Real, 0, None, closed="neither")],
    }

    def __init__(self, epsilon=1.0, *, norm="unit", transform_noise=True, seed=None, n_jobs=None):
        self.epsilon = epsilon
        self.norm = norm
        self.transform_noise = transform_noise
        self.seed = seed
        self.n_jobs = n_jobs

    def _make_mechanism(self, X):
        n_features = X.shape[1]
        if n_features < 2:
            raise ValueError(f"A direction needs at least 2 features. Got n_features = {n_features} instead.")
        if isinstance(self.norm, str):
            self.radius_ = None
            return PrivUnit(n_features, float(self.epsilon))
        self.radius_ = float(self.norm)
        return PrivUnitBall(n_features, float(self.epsilon), self.radius_)
