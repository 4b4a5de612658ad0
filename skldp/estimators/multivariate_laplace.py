"""MultivariateLaplacePrivatizer: noise in proportion to the Euclidean distance."""

from numbers import Real

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from skldp.estimators.embedding_base import RadiusTransformer
from skldp.estimators.validation import Interval
from skldp.mechanisms.randomness import noise_from
from skldp.mechanisms.vector.multivariate_laplace import MultivariateLaplace, nearest_rows

__all__ = ["MultivariateLaplacePrivatizer"]


class MultivariateLaplacePrivatizer(OneToOneFeatureMixin, RadiusTransformer):
    r"""Release vectors with noise calibrated to the Euclidean distance (metric privacy, M1).

    Near vectors are hard to tell apart, far ones are not: `epsilon` is the budget per unit of distance, and nothing is
    said about a whole record unless a `radius` is declared.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget per unit of Euclidean distance (natural log).
    radius : float, default=None
        Declares that the rows have norms of at most this. Longer ones are shortened to it, and the guarantee shows
        the plain epsilon over the diameter, ``2 * radius * epsilon``.
    vocabulary : array-like of shape (n_words, n_features), default=None
        Public vectors, such as those of the words of a language. `transform` then returns the one nearest to the
        noisy vector.
    transform_noise : bool, default=True
        False: only `fit_transform` adds noise.
    seed : None, int or Generator, default=None
        None draws from the operating system. Anything else is for tests.
    n_jobs : int, default=None
        Threads.

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
        **RadiusTransformer._parameter_constraints,
        "radius": [None, Interval(Real, 0, None, closed="neither")],
        "vocabulary": [None, "array-like"],
    }

    def __init__(
        self,
        epsilon=1.0,
        *,
        radius=None,
        vocabulary=None,
        transform_noise=True,
        seed=None,
        n_jobs=None,
    ):
        self.epsilon = epsilon
        self.radius = radius
        self.vocabulary = vocabulary
        self.transform_noise = transform_noise
        self.seed = seed
        self.n_jobs = n_jobs

    def nearest_indices(self, X):
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
        self._check_promise()
        if self.mechanism_.vocabulary is None:
            raise ValueError("nearest_indices needs a vocabulary. Got vocabulary=None instead.")
        X = self._validate(X, reset=False)
        words = self._release(X, noise_from(self.seed) if self.transform_noise else None)
        return nearest_rows(words, self.mechanism_.vocabulary.astype(words.dtype))

    def _make_mechanism(self, X):
        self.radius_ = None if self.radius is None else float(self.radius)
        vocabulary = None if self.vocabulary is None else np.asarray(self.vocabulary, dtype=np.float64)
        return MultivariateLaplace(X.shape[1], float(self.epsilon), radius=self.radius_, vocabulary=vocabulary)
