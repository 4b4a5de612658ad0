"""Label-Laplace as a vector: the noisy one-hot label itself, and not only its largest entry."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from skldp.estimators._class_codes import decode
from skldp.estimators._labels import LabelReleaser
from skldp.estimators._validation import Seed, as_table
from skldp.mechanisms._categorical.frequency import FrequencyEstimate
from skldp.mechanisms._categorical.label_vector import LabelLaplaceVectorMechanism

__all__ = ["LabelLaplaceVector"]


class LabelLaplaceVector(LabelReleaser):
    r"""Laplace noise on the one-hot label, all of whose entries are released.

    What is released is a row of numbers for each label, whose mean is its one-hot encoding: a target to fit by
    gradients or least squares, and no label, so that no classifier takes it.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget (natural log) of one label, at least 1e-6. The noise has scale :math:`2 / \varepsilon`.
    classes : array-like of shape (n_classes,), default=None
        The declared classes, from public knowledge. None takes those seen in y, with a warning: which classes occur is
        a fact about private data.
    seed : None, int, Generator or RandomState, default=None
        None draws secure noise anew in every call. Anything else is for tests and studies, and voids the guarantee
        against whoever knows it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted where they can be: the columns of what is released.
    mechanism_ : LabelLaplaceVectorMechanism
    privacy_guarantee_ : PrivacyGuarantee
        Exact, per label, and all of what is stated; infinite where the classes were learnt.

    Raises
    ------
    ValueError
        If a parameter is out of range, or a label is not declared.

    Warns
    -----
    LearntDomainWarning
        If `classes` is None.
    SeededNoiseWarning
        If `seed` is not None.

    See Also
    --------
    LabelLaplace : The largest entry alone, which spends about half of what it states.
    LabelRR : Randomized response, which releases a label.

    References
    ----------
    Phan, Thai, Hu, Jin, Sun and Dou, "Scalable differential privacy with certified robustness in adversarial learning",
    ICML 2020, as the BitRand paper describes it (Section 7).

    Examples
    --------
    >>> from skldp import LabelLaplaceVector
    >>> noisy = LabelLaplaceVector(epsilon=1.0, classes=["no", "yes"])
    >>> noisy.fit_transform(["no", "yes", "yes"]).shape
    (3, 2)
    >>> print(noisy.privacy_guarantee_)
    epsilon 1 per label (stated 1); exact, of the discrete Laplace noise on the whole one-hot label
    """

    def __init__(self, epsilon: float = 1.0, *, classes: npt.ArrayLike | None = None, seed: Seed = None) -> None:
        self.epsilon = epsilon
        self.classes = classes
        self.seed = seed

    def inverse_transform(self, y: Any) -> np.ndarray:
        """Give the label of the largest entry of every released row.

        Parameters
        ----------
        y : array-like of shape (n_samples, n_classes)
            Released rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return decode(self._noisy(y).argmax(axis=1), self.classes_, self.classes_.dtype)

    def estimate_frequencies(self, y: Any) -> FrequencyEstimate:
        """Estimate without bias how often each class occurs among these people, from released rows.

        Parameters
        ----------
        y : array-like of shape (n_samples, n_classes)
            Released rows.

        Returns
        -------
        FrequencyEstimate
            With `frequencies`, `standard_errors` and `categories`, in the order of ``classes_``.
        """
        check_is_fitted(self)
        noisy = self._noisy(y)
        errors = np.full(self.classes_.size, (self.mechanism_.noise_variance / len(noisy)) ** 0.5)
        return FrequencyEstimate(noisy.mean(axis=0), errors, len(noisy), self.classes_)

    def _make_mechanism(self, classes):
        return LabelLaplaceVectorMechanism(float(self.epsilon), classes.size)

    def _noisy(self, y):
        noisy = as_table(y, "y", dtype=np.float64)
        if noisy.shape[1] != self.classes_.size:
            raise ValueError(f"y must have a column for each of {self.classes_.size} classes. Got {noisy.shape[1]}.")
        return noisy

    def _decoded(self, answers, dtype):
        return answers
