"""Labels behind a hash: RAPPOR's Bloom filters and local hashing, as rows that estimate the one-hot label."""

import itertools
import warnings
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from skldp._checks import check_epsilon, check_integer
from skldp.estimators._class_codes import declared_values, encode, labels_1d
from skldp.estimators._validation import Seed
from skldp.exceptions import SeededNoiseWarning
from skldp.laws._odds import TWO_64, flip_threshold, log_ratio, product_above, split_epsilon
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import noise_from, public_stream
from skldp.mechanisms.categorical._one_hot import OneHotLocalHashing

__all__ = ["HashedLabels"]


class HashedLabels(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    r"""Release labels by RAPPOR or local hashing, and estimate from each the one-hot label without bias.

    A baseline of federated studies. For one label a record without a hash, see :class:`~skldp.LabelRR`.

    Parameters
    ----------
    epsilon : float, default=1.0
        Natural-log budget of a label.
    classes : array-like of shape (n_classes,)
        The declared classes.
    mechanism : {"rappor", "olh"}, default="rappor"
        Bloom filters of which every bit is kept or drawn anew, or randomized response to a hash of the label.
    n_bits, n_hashes : int
        Of the Bloom filter: k and h. Of ``"olh"`` they say nothing.
    hash_seed : int, default=0
        Of the public hash functions of the Bloom filter.
    seed : None, int, Generator or RandomState, default=None
        None draws secure noise anew in every call.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    filters_ : ndarray of shape (n_classes, n_bits), or None
        The Bloom filter of each class.
    privacy_guarantee_ : PrivacyGuarantee
        Exact, in unit "label": of the filters that differ most.

    Raises
    ------
    ValueError
        At `fit_transform`: a parameter is out of range, a label is not declared, or the filters of some classes cannot
        be told apart linearly, for which more bits or another `hash_seed` help.

    Notes
    -----
    Every bit of RAPPOR's permanent response is a fair coin with probability p and the bit itself otherwise, for which
    the paper states

    .. math:: \varepsilon = 2 h \ln\frac{1 - p / 2}{p / 2}.

    Two filters of h hash functions differ in 2 h bits at most, and in fewer where hashes meet, which is the exact
    figure. A released filter b is turned into :math:`(b - p / 2) / (1 - p)` and solved for the class by least squares.

    References
    ----------
    Erlingsson, Pihur and Korolova, "RAPPOR", CCS 2014; BitRand paper, Equation 9; Wang, Blocki, Li and Jha, "Locally
    differentially private protocols for frequency estimation", USENIX Security 2017.

    Examples
    --------
    >>> from hashed_labels import HashedLabels
    >>> labels = HashedLabels(2.0, classes=range(10))
    >>> labels.fit_transform([3, 1, 4]).shape, labels.privacy_guarantee_.epsilon <= 2.0
    ((3, 10), True)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        classes: npt.ArrayLike | None = None,
        mechanism: Literal["rappor", "olh"] = "rappor",
        n_bits: int = 32,
        n_hashes: int = 2,
        hash_seed: int = 0,
        seed: Seed = None,
    ) -> None:
        self.epsilon = epsilon
        self.classes = classes
        self.mechanism = mechanism
        self.n_bits = n_bits
        self.n_hashes = n_hashes
        self.hash_seed = hash_seed
        self.seed = seed

    def fit_transform(self, y: Any) -> npt.NDArray[np.float64]:
        """Release labels.

        Parameters
        ----------
        y : array-like of shape (n_samples,)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Each row's mean is the one-hot label.
        """
        self._prepare()
        codes = encode(labels_1d(y), self.classes_, "y")
        noise = noise_from(self.seed)
        filters = self.filters_
        if filters is None:
            law = self._hashing
            return (law.release(codes[:, None], noise).rows - law.q) / (law.p - law.q)
        return self._decoded(filters[codes] ^ noise.bernoulli(self._flip, (len(codes), self.n_bits)))

    def _decoded(self, bits: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        flip = self._flip / TWO_64
        solved = np.linalg.pinv(np.asarray(self.filters_, dtype=np.float64))
        return np.asarray(((bits - flip) / (1 - 2 * flip)) @ solved)

    def _prepare(self) -> None:
        """Everything that can be refused, before the first look at a label."""
        check_epsilon(self.epsilon)
        epsilon = float(self.epsilon)
        if self.mechanism not in ("rappor", "olh"):
            raise ValueError(f"mechanism must be 'rappor' or 'olh'; got {self.mechanism!r}.")
        if self.classes is None:
            raise ValueError("classes must be declared; got None.")
        self.classes_ = declared_values(self.classes, "classes")
        n_classes = len(self.classes_)
        if self.mechanism == "olh":
            self.filters_ = None
            self._hashing = OneHotLocalHashing(epsilon, n_classes)
            exact, basis = self._hashing.exact_epsilon, "local hashing of the label"
        else:
            check_integer("n_bits", self.n_bits, least=1, most=2**16)
            check_integer("n_hashes", self.n_hashes, least=1, most=self.n_bits)
            self.filters_ = self._bloom(n_classes)
            self._flip = int(flip_threshold(split_epsilon(epsilon, 2 * self.n_hashes)))
            apart = max(int((a ^ b).sum()) for a, b in itertools.combinations_with_replacement(self.filters_, 2))
            exact = product_above(log_ratio(TWO_64 - self._flip, self._flip), apart)
            basis = f"{self.n_bits} bits of a Bloom filter, of which at most {apart} differ"
        self.privacy_guarantee_ = PrivacyGuarantee(
            exact, unit="label", stated=epsilon, basis=basis, seeded=self.seed is not None
        )
        if self.seed is not None:
            warnings.warn("seed makes every release repeatable.", SeededNoiseWarning, stacklevel=2)

    def _bloom(self, n_classes: int) -> npt.NDArray[np.bool_]:
        places = public_stream(self.hash_seed).integers(self.n_bits, (n_classes, self.n_hashes))
        filters = np.zeros((n_classes, self.n_bits), dtype=bool)
        filters[np.arange(n_classes)[:, None], places] = True
        if np.linalg.matrix_rank(filters.astype(np.float64)) < n_classes:
            raise ValueError(
                f"The Bloom filters of {n_classes} classes must be linearly independent; got {self.n_bits} bits of "
                f"hash_seed {self.hash_seed} instead: try more, or another one."
            )
        return filters
