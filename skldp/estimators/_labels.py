"""Label mechanisms: transformers of y by randomized response or noise on the one-hot label."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from skldp._checks import check_epsilon
from skldp.estimators._base import LEDGER, TargetTransformer
from skldp.estimators._class_codes import declared_values, decode, decoded_dtype, encode, labels_1d, learnt_values
from skldp.estimators._guarantee_mixin import attach_guarantee
from skldp.estimators._validation import EPSILON, NOISE_PARAMETERS, Seed
from skldp.mechanisms.categorical._frequency import FrequencyEstimate, estimate_frequencies
from skldp.mechanisms.categorical._label_laws import LabelLaplaceMechanism, RandomizedResponseWithPrior
from skldp.mechanisms.categorical._randomized_response import RandomizedResponse

if TYPE_CHECKING:
    from skldp.accounting.ledger._privacy_ledger import PrivacyLedger


class LabelReleaser(TargetTransformer, auto_wrap_output_keys=None):
    """Base class of the transformers of labels, with the hook ``_make_mechanism(classes)``."""

    _parameter_constraints: dict = {
        "epsilon": EPSILON,
        "classes": ["array-like", None],
        "seed": NOISE_PARAMETERS["seed"],
    }

    def __init__(self, epsilon: float = 1.0, *, classes: npt.ArrayLike | None = None, seed: Seed = None) -> None:
        self.epsilon = epsilon
        self.classes = classes
        self.seed = seed

    def _fit_rows(self, X):
        """Set the fitted attributes, and return the codes of the labels."""
        self._forget_guarantee()
        check_epsilon(self.epsilon)
        classes = self._classes(X)
        mechanism, codes = self._make_mechanism(classes), self._codes(X, classes)
        self.mechanism_, self.classes_ = mechanism, classes
        learnt = "the classes" if self.classes is None else ""
        attach_guarantee(self, mechanism.guarantee(), learnt, "classes=[...]")
        return codes

    def _as_given(self, X):
        # A pipeline gives X to its steps, which may have one column.
        return labels_1d(X, columns=0)

    def _classes(self, y):
        """Return the declared classes, or those of the labels."""
        return learnt_values(y) if self.classes is None else declared_values(self.classes, "classes")

    def _codes(self, y, classes):
        """Return the codes of labels, shape (n_samples, n_columns)."""
        return encode(y, classes, "y")[:, None]

    def _rows(self, X, *, reset):
        return self._codes(X, self.classes_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.one_d_labels = True
        return tags


class LabelPrivatizer(LabelReleaser):
    """Base class of the transformers of y that return labels of the same type."""

    _releases_its_labels = True

    def estimate_frequencies(self, y: Any, *, of: Literal["sample", "population"] = "sample") -> FrequencyEstimate:
        """Estimate without bias how often each true class occurs, from released labels.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Released labels.
        of : {"sample", "population"}, default="sample"
            Whether standard errors refer to these people or to the population that they are a random sample of.

        Returns
        -------
        FrequencyEstimate
            With `frequencies`, `standard_errors` and `categories`, in the order of ``classes_``.

        Raises
        ------
        ValueError
            If the mechanism never releases some class, whose frequency has no unbiased estimate.
        """
        check_is_fitted(self)
        codes = encode(labels_1d(y), self.classes_, "y")
        counts = np.bincount(codes, minlength=self.classes_.size)
        keep, other = self.mechanism_.support_probabilities()
        return estimate_frequencies(counts, codes.size, keep, other, of=of, categories=self.classes_)

    @property
    def flip_matrix_(self) -> np.ndarray:
        """Probability of releasing class j (column) if the true class is i (row)."""
        return self.mechanism_.flip_matrix

    def _can_be_written_to(self, dtype):
        # Classes must not depend on the dtype of the labels.
        own = self.classes_.dtype
        same_kind = own.kind == dtype.kind and np.can_cast(own, dtype, "safe")
        return same_kind or decoded_dtype(self.classes_, dtype) == dtype

    def _encoded(self, released, X, *, noisy=True):
        return decode(released[:, 0], self.classes_, np.asarray(X).dtype)


class LabelRR(LabelPrivatizer):
    r"""Randomize labels: keep each, or replace it by one of the other classes.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget (natural log) of one label.
    classes : array-like of shape (n_classes,), default=None
        Declared classes, from public knowledge. None learns them from y, with a warning and an infinite guarantee.
    prior : array-like of shape (n_classes,), default=None
        Public probabilities of the declared classes, in their order, for randomized response over the most probable
        ones (RRWithPrior).
    seed : None, int, Generator or RandomState, default=None
        None draws secure noise in every call. Any other value repeats noise, for tests, and voids the guarantee.
    ledger : PrivacyLedger, default=None
        Charges each person's budget the exact epsilon before a release, which then requires `ids`.
    part : str or sequence of str, default=None
        Attribute that the label describes, such as ``"employment"``. A `ledger` charges several releases of one part
        with the same classes by their joint loss; a person's label must not change. A list of feature names, in the
        order of the classes, is a one-hot block of the ledger's domain, whose loss is joint with that of all other
        answers about the record. None charges each release in full. Not with a prior.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted if possible.
    mechanism_ : RandomizedResponse or RandomizedResponseWithPrior
        Sampled mechanism.
    flip_matrix_ : ndarray of shape (n_classes, n_classes)
        Probability of releasing class j (column) if the true class is i (row).
    privacy_guarantee_ : PrivacyGuarantee
        Exact, per label; infinite if the classes were learnt.

    Raises
    ------
    ValueError
        If a parameter is out of range, or a label is not declared.

    Warns
    -----
    LearntDomainWarning
        If `classes` is None.

    See Also
    --------
    skldp.papers.LabelLaplace : Laplace noise on the one-hot label.
    LabelPrivateClassifier : A classifier that is trained on such labels.
    LabelSampler : The same as a step of an imbalanced-learn pipeline.

    Notes
    -----
    .. math:: P(y' = y) = \frac{e^\varepsilon}{e^\varepsilon + C - 1}, \quad
              P(y' = z) = \frac{1}{e^\varepsilon + C - 1} \text{ for each } z \ne y

    A single class is released unchanged, at epsilon 0.

    References
    ----------
    BitRand, Eq. 3 and Theorem 3; Ghazi, Golowich, Kumar, Manurangsi and Zhang, "Deep learning with label differential
    privacy", NeurIPS 2021, for the prior.

    Examples
    --------
    >>> from skldp import LabelRR
    >>> label_rr = LabelRR(epsilon=1.0, classes=["no", "yes"])
    >>> label_rr.fit_transform(["no", "yes", "yes"]).shape
    (3,)
    >>> print(label_rr.privacy_guarantee_.headline())
    epsilon 1 per label (stated 1); this step alone; for a pipeline use privacy_guarantee(pipeline)
    """

    _parameter_constraints: dict = {
        **LabelPrivatizer._parameter_constraints,
        "prior": ["array-like", None],
        "ledger": LEDGER,
        "part": [str, list, tuple, None],
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        classes: npt.ArrayLike | None = None,
        prior: npt.ArrayLike | None = None,
        seed: Seed = None,
        ledger: "PrivacyLedger | None" = None,
        part: str | Sequence[str] | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.classes = classes
        self.prior = prior
        self.seed = seed
        self.ledger = ledger
        self.part = part

    @property
    def _part(self):
        if self.part is None or not isinstance(self.part, str):
            return self.part
        # The same code is another label among other classes.
        return json.dumps([self.part, self.classes_.tolist()], default=str)

    def _make_mechanism(self, classes):
        if self.part is not None and (self.ledger is None or self.prior is not None):
            raise ValueError(
                "part needs a ledger and no prior; "
                f"got part={self.part!r} with {'no ledger' if self.ledger is None else 'a prior'}."
            )
        if self.prior is None:
            return RandomizedResponse(float(self.epsilon), classes.size)
        if self.classes is None:
            raise ValueError("prior needs declared classes in the same order; got classes=None.")
        if np.shape(self.prior) != classes.shape:
            raise ValueError(f"prior must hold one probability for each class; got {self.prior!r}.")
        places = encode(np.asarray(self.classes, dtype=classes.dtype), classes, "classes")
        prior = np.empty(classes.size)
        prior[places] = self.prior
        return RandomizedResponseWithPrior(float(self.epsilon), tuple(prior.tolist()))


class LabelLaplace(LabelPrivatizer):
    r"""Add Laplace noise to the one-hot label, and release the arg max.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget (natural log) of one label, for which the noise is scaled: its scale is :math:`2 / \varepsilon`.
    classes, seed : optional
        As for :class:`~skldp.LabelRR`, with the same errors and warnings.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes.
    mechanism_ : LabelLaplaceMechanism
        Sampled mechanism.
    flip_matrix_ : ndarray of shape (n_classes, n_classes)
        Probability of releasing class j (column) if the true class is i (row).
    privacy_guarantee_ : PrivacyGuarantee
        Exact, per label: about half of the stated one, because only the arg max is released. Infinite if the classes
        were learnt.

    See Also
    --------
    LabelLaplaceVector : Releases all entries of the noisy one-hot label, at the stated epsilon.
    skldp.LabelRR : Randomized response, which uses the full budget.

    Notes
    -----
    The law of the arg max is sampled directly, as exact integers: no floating-point noise is drawn.

    Examples
    --------
    >>> from skldp.papers import LabelLaplace
    >>> label_laplace = LabelLaplace(epsilon=1.0, classes=[0, 1]).fit([0, 1])
    >>> round(label_laplace.privacy_guarantee_.epsilon, 4), label_laplace.privacy_guarantee_.stated
    (0.4934, 1.0)
    """

    def _make_mechanism(self, classes):
        return LabelLaplaceMechanism(float(self.epsilon), classes.size)
