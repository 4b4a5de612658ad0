"""RandomProjectionPrivatizer: vectors released after a public random projection."""

from numbers import Integral, Real
from typing import Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from skldp.estimators._base import LocalTransformer
from skldp.estimators._validation import NumberRange, Seed, StrOptions, as_table
from skldp.mechanisms.vector._projected_release import SENSITIVITIES, ProjectedRelease
from skldp.mechanisms.vector._projection import RandomProjection, projected_dimension, square_of_prime


class RandomProjectionPrivatizer(ClassNamePrefixFeaturesOutMixin, LocalTransformer):
    r"""Project vectors to fewer dimensions by a public random matrix, and release them there (PRIVEMB, M2).

    Fewer dimensions need noise of a smaller norm. X may be sparse, and is not made dense.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget (natural log) per unit of Euclidean distance of the inputs with ``noise="laplace"``, of one record, all
        its features together, with ``noise="privunit"``.
    delta : float, default=1e-6
        Failure probability for which the number of dimensions is chosen, with ``sensitivity="gordon"`` or ``"union"``;
        the guarantee states which delta is proved, and `fit` warns if that of ``"gordon"`` is larger.
    beta : float, default=0.9
        Distortion of distances, in (0, 1). Larger means fewer dimensions and less noise.
    n_components : "auto" or int, default="auto"
        Number of dimensions m. ``"auto"`` follows from `beta` and `delta`.
    sensitivity : {"gordon", "spectral", "orthonormal", "vocabulary", "union", "sparse"}, default="gordon"
        Bound on the stretch of a distance by Phi, which scales the Laplace noise:

        - ``"gordon"``: :math:`1 + \beta`, as published. It holds with high probability over Phi, and only for records
          whose differences point into a set of directions of small Gaussian width;
        - ``"spectral"``: the largest singular value of the drawn Phi. Holds for all vectors, without delta;
        - ``"orthonormal"``: Phi has orthonormal rows, scaled by :math:`\sqrt{d / m}`, which is the sensitivity;
        - ``"vocabulary"``: the largest stretch over all pairs of `vocabulary`;
        - ``"union"``: :math:`1 + \beta`, for records among any `vocabulary_size` vectors. It holds with high
          probability over Phi, by a union bound over their distances;
        - ``"sparse"``: for rows with at most `max_nonzeros` non-zeros, such as bags of words. It holds by construction,
          without delta, for ``projection="polynomial"``, and with `delta` for a Gaussian Phi.
    noise : {"laplace", "privunit"}, default="laplace"
        ``"privunit"`` releases the direction of the projected row under plain epsilon-LDP (or, with a `radius`, the
        projected row itself).
    projection : {"gaussian", "sparse", "polynomial"}, default="gaussian"
        ``"sparse"`` has :math:`\lceil \sqrt m \rceil` non-zeros per column: several times faster on sparse rows, with a
        fraction of the memory. Gordon's theorem is not proved for it, so Laplace noise then needs ``"spectral"``,
        ``"vocabulary"`` or ``"sparse"``. ``"polynomial"`` is as sparse, and no two columns share many rows; m is then
        the square of a prime (``"auto"`` takes the next one). Not used with ``sensitivity="orthonormal"``.
    projection_seed : int, default=0
        Seed of Phi, which is public: the same seed, d and m give the same Phi.
    radius : float, default=None
        Declared bound on the norms of rows; longer rows are scaled down to it.
    vocabulary : array-like of shape (n_words, n_features), default=None
        Public vectors that contain all rows; other rows are moved to the nearest one.
    vocabulary_size : int, default=None
        Number of possible rows, chosen independently of Phi, for ``"union"``.
    max_nonzeros : int, default=None
        Maximum number of non-zeros of a row, for ``"sparse"``; beyond it the smallest become 0.
    transform_noise, seed, n_jobs : optional
        As for :class:`BitRandTransformer`. Phi does not depend on `seed`.

    Attributes
    ----------
    n_components_ : int
        m.
    sensitivity_ : float
        Bound on the stretch of a distance.
    mechanism_ : ProjectedRelease
        Sampled mechanism.
    privacy_guarantee_ : PrivacyGuarantee
        In unit "distance" with Laplace noise, "record" with PrivUnit. Its `delta` is the proved probability over the
        draw of Phi, once for all records; its `figures` hold the published delta, and the guarantee of this Phi for any
        two vectors without delta.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features, and their names if X of `fit` has names.

    Raises
    ------
    ValueError
        If there are more components than features, `vocabulary` has another width, or parameters are incompatible.

    Warns
    -----
    PrivacyGuaranteeWarning
        With ``sensitivity="gordon"`` if the proved delta exceeds `delta`.

    See Also
    --------
    MultivariateLaplacePrivatizer : The same noise without the projection (M1).
    PrivUnitTransformer : Plain LDP without the projection.

    Notes
    -----
    .. math:: w = \Phi x + \kappa, \quad p(\kappa) \propto e^{-\varepsilon \|\kappa\| / \Delta}, \quad
              m = \operatorname{round}\Bigl(\frac{(\omega + \sqrt{\ln(1 / \delta)})^2}{\beta^2}\Bigr),
              \quad \omega = \sqrt{\log_2 d}

    With m as above the failure probability that is proved is :math:`\sqrt \delta` (:ref:`gordon`). The guarantee states
    both.

    A Phi of more than 2^25 numbers is generated block by block in every call.

    With ``noise="laplace"`` the guarantee does not resolve distances below the rounding of X. Phi has single precision;
    rows keep their type (float32 or float64), and the product with Phi is rounded to it. Noise is added in double
    precision, and the sum rounded to multiples of ``mechanism_.inner.step``. In float32 each projected coordinate has
    an error of some 2^-24 of \|x\| times the norm of its row of Phi, or more with cancellation (2^-53 in float64).

    References
    ----------
    Feyisetan and Kasiviswanathan, "Private release of text embedding vectors", 2021, Algorithm 1 and Proposition 5.
    Kane and Nelson, "Sparser Johnson-Lindenstrauss transforms", Journal of the ACM, 2014 (the sparse Phi). DeVore,
    "Deterministic constructions of compressed sensing matrices", Journal of Complexity, 2007 (the polynomial one).

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import RandomProjectionPrivatizer
    >>> X = np.random.default_rng(0).normal(size=(1000, 300))
    >>> privatizer = RandomProjectionPrivatizer(epsilon=5.0, beta=0.93, sensitivity="spectral").fit(X)
    >>> privatizer.n_components_, privatizer.transform(X).shape, privatizer.privacy_guarantee_.delta
    (50, (1000, 50), 0.0)

    For any 400,000 words:

    >>> words = privatizer.set_params(sensitivity="union", vocabulary_size=400_000).fit(X)
    >>> f"{words.privacy_guarantee_.delta:.1e}"
    '1.1e-06'

    Bags of at most ten of a million words, without delta:

    >>> from scipy import sparse
    >>> bags = sparse.csr_matrix((100, 1_000_000))
    >>> few = RandomProjectionPrivatizer(5.0, projection="polynomial", sensitivity="sparse", max_nonzeros=10).fit(bags)
    >>> few.n_components_, round(few.sensitivity_, 2), few.privacy_guarantee_.delta
    (121, 3.1, 0.0)
    """

    _parameter_constraints: dict = {
        **LocalTransformer._parameter_constraints,
        "delta": [NumberRange(Real, 0, 1, closed="neither")],
        "beta": [NumberRange(Real, 0, 1, closed="neither")],
        "n_components": [StrOptions({"auto"}), NumberRange(Integral, 1, None, closed="left")],
        "sensitivity": [StrOptions(set(SENSITIVITIES))],
        "noise": [StrOptions({"laplace", "privunit"})],
        "projection": [StrOptions({"gaussian", "sparse", "polynomial"})],
        "projection_seed": [NumberRange(Integral, 0, None, closed="left")],
        "radius": [None, NumberRange(Real, 0, None, closed="neither")],
        "vocabulary": [None, "array-like"],
        "vocabulary_size": [None, NumberRange(Integral, 2, None, closed="left")],
        "max_nonzeros": [None, NumberRange(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        beta: float = 0.9,
        n_components: int | Literal["auto"] = "auto",
        sensitivity: str = "gordon",
        noise: Literal["laplace", "privunit"] = "laplace",
        projection: str = "gaussian",
        projection_seed: int = 0,
        radius: float | None = None,
        vocabulary: npt.ArrayLike | None = None,
        vocabulary_size: int | None = None,
        max_nonzeros: int | None = None,
        transform_noise: bool = True,
        seed: Seed = None,
        n_jobs: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.beta = beta
        self.n_components = n_components
        self.sensitivity = sensitivity
        self.noise = noise
        self.projection = projection
        self.projection_seed = projection_seed
        self.radius = radius
        self.vocabulary = vocabulary
        self.vocabulary_size = vocabulary_size
        self.max_nonzeros = max_nonzeros
        self.transform_noise = transform_noise
        self.seed = seed
        self.n_jobs = n_jobs

    @property
    def components_(self):
        """Phi, an array or sparse matrix of shape (n_components, n_features)."""
        check_is_fitted(self)
        return self.mechanism_.projection.matrix

    _input: dict = {"accept_sparse": "csr"}

    def _make_mechanism(self, X):
        n_features = X.shape[1]
        m = self.n_components
        if isinstance(m, str):
            m = projected_dimension(n_features, self.beta, self.delta)
            if self.projection == "polynomial" and self.sensitivity != "orthonormal":
                m = square_of_prime(m, n_features)
        kind = "orthonormal" if self.sensitivity == "orthonormal" else self.projection
        vocabulary = None
        if self.vocabulary is not None:
            vocabulary = as_table(self.vocabulary, "vocabulary", n_features, dtype=np.float64)
        return ProjectedRelease(
            RandomProjection(n_features, int(m), int(self.projection_seed), kind),
            float(self.epsilon),
            sensitivity=self.sensitivity,
            noise=self.noise,
            beta=float(self.beta),
            stated_delta=float(self.delta),
            radius=None if self.radius is None else float(self.radius),
            vocabulary=vocabulary,
            vocabulary_size=0 if self.vocabulary_size is None else int(self.vocabulary_size),
            max_nonzeros=None if self.max_nonzeros is None else int(self.max_nonzeros),
        )

    @property
    def n_components_(self):
        """Number of released dimensions."""
        return self.mechanism_.n_outputs

    @property
    def sensitivity_(self):
        """Bound on the stretch of a distance."""
        return self.mechanism_.stretch

    @property
    def _n_features_out(self):
        return self.n_components_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
