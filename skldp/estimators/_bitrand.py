"""BitRand, LATENT and OME: numbers as binary codes whose bits are flipped."""

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal

from sklearn.base import OneToOneFeatureMixin

from skldp.estimators._base import LEDGER, LocalTransformer
from skldp.estimators._validation import BOUNDS_BY_COLUMN, NumberRange, Seed, StrOptions
from skldp.mechanisms.bits._bit_flip import bitrand, latent, ome

if TYPE_CHECKING:
    from skldp.accounting.ledger._privacy_ledger import PrivacyLedger


class BitFlipTransformer(OneToOneFeatureMixin, LocalTransformer):
    """Base class of BitRand, LATENT and OME. Subclasses set `_recipe`, which makes the mechanism."""

    _parameter_constraints: dict = {
        **LocalTransformer._parameter_constraints,
        "bounds": BOUNDS_BY_COLUMN,
        "n_bits": [NumberRange(Integral, 2, 64, closed="both")],
        "n_integer_bits": [Integral, StrOptions({"auto"})],
        "calibration": [StrOptions({"published", "exact"})],
        "alpha": [NumberRange(Real, 0, None, closed="neither"), None],
        "n_sampled_features": [NumberRange(Integral, 1, None, closed="left"), StrOptions({"auto", "all"}), None],
        "debias": ["boolean"],
        "ledger": LEDGER,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        n_bits: int = 10,
        n_integer_bits: int | Literal["auto"] = "auto",
        bounds: Any = (-1, 1),
        calibration: Literal["published", "exact"] = "published",
        alpha: float | None = None,
        n_sampled_features: int | Literal["auto", "all"] | None = None,
        debias: bool = False,
        transform_noise: bool = True,
        seed: Seed = None,
        n_jobs: int | None = None,
        ledger: "PrivacyLedger | None" = None,
    ) -> None:
        self.epsilon = epsilon
        self.n_bits = n_bits
        self.n_integer_bits = n_integer_bits
        self.bounds = bounds
        self.calibration = calibration
        self.alpha = alpha
        self.n_sampled_features = n_sampled_features
        self.debias = debias
        self.transform_noise = transform_noise
        self.seed = seed
        self.n_jobs = n_jobs
        self.ledger = ledger

    def _make_mechanism(self, X):
        return self._recipe(
            float(self.epsilon),
            self.bounds_,
            n_bits=self.n_bits,
            n_integer_bits=self.n_integer_bits,
            calibration=self.calibration,
            n_sampled_features=self.n_sampled_features,
            debias=self.debias,
            **({} if self.alpha is None else {"alpha": self.alpha}),
        )


class BitRandTransformer(BitFlipTransformer):
    r"""Release every feature as a binary code whose bits are flipped, high bits less often (BitRand, f-RR).

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget (natural log) of one record, all its features together.
    n_bits : int, default=10
        Bits of a feature, 2 to 64, including the sign.
    n_integer_bits : int or "auto", default="auto"
        Bits before the binary point; may be negative. "auto" takes the least number that holds `bounds`.
    bounds : (low, high), default=(-1, 1)
        Declared domain, each end a number or one number per feature; also a dict of pairs by column name, or a list of
        one pair per feature. Values outside are clipped.
    calibration : {"published", "exact"}, default="published"
        "published" flips as in the paper, which protects far less than `epsilon`; `fit` warns with both
        figures. "exact" flips so that the exact worst-case loss is `epsilon`, with the least expected error.
    alpha : float, default=None
        The paper's parameter, for "published" only. None takes Theorem 2's bound.
    n_sampled_features : int, "auto", "all" or None, default=None
        Features released per record, scaled up to keep the mean; the others become 0 (with ``debias=True`` the centre
        of their bounds). None and "auto" release all with "published", and the number with the least error with
        "exact"; "all" releases every one.
    debias : bool, default=False
        Decode without bias. With "published", the mean of a release is the value rounded to its code; with "exact"
        it is the value itself, with the least worst-case variance, which suits most models.
    transform_noise : bool, default=True
        If False, `transform` returns the same encoding without noise; `fit_transform` still adds it.
    seed : None, int, Generator or RandomState, default=None
        None draws secure noise in every call. Any other value repeats noise, for tests, and voids the guarantee.
    n_jobs : int, default=None
        Number of threads, as in joblib.
    ledger : PrivacyLedger, default=None
        Charges each person's budget the exact epsilon before a release, which then requires `ids`.

    Attributes
    ----------
    privacy_guarantee_ : PrivacyGuarantee
        Exact guarantee of a release, beside the stated one.
    bounds_ : tuple of ndarray of shape (n_features,)
        Lower and upper bounds.
    mechanism_ : BitFlip or UnbiasedBitFlip
        Sampled mechanism.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features, and their names if X of `fit` has names.

    See Also
    --------
    skldp.papers.LatentTransformer, skldp.papers.OMETransformer : Other published laws of the flips.

    Notes
    -----
    Bit i of l (0 the sign) is flipped with probability (Equation 2)

    .. math:: q_i = \frac{\alpha e^{i \varepsilon / l}}{1 + \alpha e^{i \varepsilon / l}}

    In the standard definition the release has an epsilon of :math:`r \sum_i |\ln(\alpha e^{i \varepsilon / l})|`
    over r features, because Theorem 2 bounds another quantity.

    References
    ----------
    BitRand, Equations 1 and 2, Lemma 1, Theorems 2 and 4.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import BitRandTransformer, privacy_guarantee
    >>> X = np.linspace(-1, 1, 12).reshape(4, 3)
    >>> release = BitRandTransformer(epsilon=3.0, calibration="exact")
    >>> release.fit_transform(X).shape
    (4, 3)
    >>> print(privacy_guarantee(release))
    epsilon 3 per record (stated 3, per feature 3); exact, over all pairs of reachable codes
    """

    _recipe = staticmethod(bitrand)


class LatentTransformer(BitFlipTransformer):
    r"""Release every feature as a binary code whose ones and zeros are randomized unequally (LATENT).

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget (natural log) of one record, all its features together.
    n_bits, n_integer_bits, bounds : optional
        As for :class:`~skldp.BitRandTransformer`.
    calibration : {"published", "exact"}, default="published"
        "exact" chooses the share of one bit so that the exact worst-case loss is `epsilon`, with `alpha` kept.
    alpha : float, default=None
        The paper's parameter, > 0. None is 7.
    n_sampled_features : int, "auto", "all" or None, default=None
        Features released per record, scaled up to keep the mean; the others become 0. Anything but an int
        releases every one.
    debias : bool, default=False
        Decode without bias, at the price of a larger variance.
    transform_noise, seed, n_jobs, ledger : optional
        As for :class:`~skldp.BitRandTransformer`.

    Attributes
    ----------
    privacy_guarantee_ : PrivacyGuarantee
        Exact guarantee of a release, beside the stated one and the BitRand paper's corrected figure.
    bounds_, mechanism_ : tuple of two ndarrays of shape (n_features,), BitFlip
        Lower and upper bounds, and the sampled mechanism.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features, and their names if X of `fit` has names.

    See Also
    --------
    skldp.BitRandTransformer : Flips that depend on the weight of the bit.

    Notes
    -----
    With :math:`s = \varepsilon / (r l)` for r features of l bits

    .. math:: P(1 \to 1) = \frac{1}{1 + \alpha},\qquad P(0 \to 1) = \frac{1}{1 + \alpha e^s}

    The exact level lies below the stated epsilon (0.875 of it at alpha = 7 and small s). The paper's corrected figure,
    4.571 times the stated one, is not the level of the standard definition.

    References
    ----------
    BitRand, Equation 27 and Theorem 5.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import privacy_guarantee
    >>> from skldp.papers import LatentTransformer
    >>> X = np.linspace(-1, 1, 12).reshape(4, 3)
    >>> release = LatentTransformer(epsilon=3.0, calibration="exact")
    >>> release.fit_transform(X).shape
    (4, 3)
    >>> print(privacy_guarantee(release))
    epsilon 3 per record (stated 3, per feature 1); exact, over all pairs of reachable codes
    """

    _recipe = staticmethod(latent)


class OMETransformer(BitFlipTransformer):
    r"""Release every feature as a binary code whose ones and zeros are randomized unequally (OME).

    Parameters
    ----------
    epsilon, n_bits, n_integer_bits, bounds, calibration : optional
        As for :class:`LatentTransformer`.
    alpha : float, default=None
        The paper's parameter, > 0. None is 1.
    n_sampled_features, debias, transform_noise, seed, n_jobs, ledger : optional
        As for :class:`LatentTransformer`.

    Attributes
    ----------
    privacy_guarantee_, bounds_, mechanism_, n_features_in_, feature_names_in_
        As for :class:`LatentTransformer`.

    See Also
    --------
    skldp.BitRandTransformer : Flips that depend on the weight of the bit.

    Notes
    -----
    With :math:`s = \varepsilon / (r l)` for r features of l bits

    .. math:: P(1 \to 1) = \frac{\alpha}{1 + \alpha} \text{ (even bits)},\; \frac{1}{1 + \alpha^3} \text{ (odd)},
              \qquad P(0 \to 1) = \frac{1}{1 + \alpha e^s}

    At alpha = 1 and small s the exact level is half the stated epsilon. At alpha = 100, which the literature also uses,
    it is 69 per 10 bits however small epsilon is, and the paper's corrected formula is negative.

    References
    ----------
    BitRand, Equation 33 and Theorem 6.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import privacy_guarantee
    >>> from skldp.papers import OMETransformer
    >>> X = np.linspace(-1, 1, 12).reshape(4, 3)
    >>> release = OMETransformer(epsilon=3.0, calibration="exact")
    >>> release.fit_transform(X).shape
    (4, 3)
    >>> print(privacy_guarantee(release))
    epsilon 3 per record (stated 3, per feature 1); exact, over all pairs of reachable codes
    """

    _recipe = staticmethod(ome)
