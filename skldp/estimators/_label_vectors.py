"""Transformers of labels to vectors: label-Laplace of a vector, and randomized response of a label matrix."""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skldp._arrays import kind_of
from skldp.domains._columns import Columns
from skldp.domains._domain import Codes
from skldp.estimators._class_codes import declared_values, decode, encode, learnt_values
from skldp.estimators._labels import LabelReleaser
from skldp.estimators._validation import as_table
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._record import MixedRecord, sampled_shares
from skldp.mechanisms.categorical._frequency import FrequencyEstimate, estimate_frequencies
from skldp.mechanisms.categorical._label_laws import LabelLaplaceVectorMechanism


class LabelLaplaceVector(LabelReleaser):
    r"""Add Laplace noise to the one-hot label, and release all its entries.

    Each label is released as a row of numbers whose mean is its one-hot encoding, for fits by gradients or least
    squares. Classifiers do not take it.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget (natural log) of one label, at least 1e-6. The noise has scale :math:`2 / \varepsilon`.
    classes, seed : optional
        As for :class:`~skldp.LabelRR`, with the same errors and warnings.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted if possible: the columns of a release.
    mechanism_ : LabelLaplaceVectorMechanism
        Sampled mechanism.
    privacy_guarantee_ : PrivacyGuarantee
        Exact, per label, and equal to the stated one; infinite if the classes were learnt.

    See Also
    --------
    skldp.papers.LabelLaplace : Releases the largest entry alone, at about half of the stated epsilon.
    skldp.LabelRR : Randomized response.

    References
    ----------
    Phan, Thai, Hu, Jin, Sun and Dou, "Scalable differential privacy with certified robustness in adversarial learning",
    ICML 2020, as the BitRand paper describes it (Section 7).

    Examples
    --------
    >>> from skldp.papers import LabelLaplaceVector
    >>> noisy = LabelLaplaceVector(epsilon=1.0, classes=["no", "yes"])
    >>> noisy.fit_transform(["no", "yes", "yes"]).shape
    (3, 2)
    >>> print(noisy.privacy_guarantee_.headline())
    epsilon 1 per label (stated 1); this step alone; for a pipeline use privacy_guarantee(pipeline)
    """

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
        noisy = as_table(y, "y", self.classes_.size, dtype=np.float64)
        errors = np.full(self.classes_.size, (self.mechanism_.noise_variance / len(noisy)) ** 0.5)
        return FrequencyEstimate(noisy.mean(axis=0), errors, len(noisy), self.classes_)

    def _make_mechanism(self, classes):
        return LabelLaplaceVectorMechanism(float(self.epsilon), classes.size)


class LabelMatrixRR(LabelReleaser):
    """Randomize every column of a label matrix, the attributes of one record, by randomized response.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget (natural log) of all labels of one record together, split equally over the columns.
    classes : array-like of shape (n_classes,), or list of such, default=None
        Declared classes of every column, from public knowledge, or one list for all columns, such as ``[0, 1]`` for a
        multi-label indicator. None learns them from y, with a warning and an infinite guarantee.
    seed : optional
        As for :class:`~skldp.LabelRR`.

    Attributes
    ----------
    classes_ : list of ndarray
        The classes of each column, sorted if possible.
    mechanism_ : MixedRecord
        Sampled mechanism.
    privacy_guarantee_ : PrivacyGuarantee
        Exact, in unit "label": all labels of a record together, the sum over the columns. Infinite if classes were
        learnt.

    Raises
    ------
    ValueError
        If y does not have two dimensions, a label is not declared, or the number of lists is not that of columns.
        Warnings are those of :class:`~skldp.LabelRR`.

    See Also
    --------
    skldp.LabelRR : One label a record.

    Examples
    --------
    >>> from skldp.papers import LabelMatrixRR
    >>> attributes = LabelMatrixRR(epsilon=4.0, classes=[0, 1])
    >>> attributes.fit_transform([[0, 1], [1, 1], [0, 0]]).shape
    (3, 2)
    >>> print(attributes.privacy_guarantee_.headline())
    epsilon 4 per label (stated 4, per feature 2); this step alone; for a pipeline use privacy_guarantee(pipeline)
    """

    def estimate_frequencies(self, y: Any) -> list[FrequencyEstimate]:
        """Estimate without bias how often each true class occurs in each column, from released labels.

        Parameters
        ----------
        y : array-like of shape (n_samples, n_columns)
            Released labels.

        Returns
        -------
        list of FrequencyEstimate
            One for each column, in the order of ``classes_``.
        """
        check_is_fitted(self)
        codes = self._codes(self._as_given(y), self.classes_)
        estimates = []
        for column, part, own in zip(codes.T, self.mechanism_.parts, self.classes_, strict=True):
            keep, other = part.support_probabilities()
            counts = np.bincount(column, minlength=own.size)
            estimates.append(estimate_frequencies(counts, column.size, keep, other, categories=own))
        return estimates

    def _as_given(self, X):
        if X is None:
            raise ValueError("requires y to be passed, but the target y is None")
        labels = as_table(X, "y", dtype=None)
        if not labels.shape[1]:
            raise ValueError(f"y must have at least one column; got {kind_of(X)}.")
        return labels

    def _classes(self, y):
        if self.classes is None:
            return [learnt_values(column) for column in y.T]
        listed: list[Any] = list(self.classes)  # type: ignore[arg-type]  # which is no single number
        by_column = all(np.ndim(one) == 1 for one in listed)
        if by_column and len(listed) != y.shape[1]:
            raise ValueError(
                f"classes must be one list for each of {y.shape[1]} columns of y, or one list for all; "
                f"got {kind_of(self.classes)}."
            )
        each = listed if by_column else [listed] * y.shape[1]
        return [declared_values(one, "classes") for one in each]

    def _codes(self, y, classes):
        if y.shape[1] != len(classes):
            raise ValueError(f"y must have {len(classes)} columns; got {y.shape[1]}.")
        return np.column_stack([encode(column, own, "y") for column, own in zip(y.T, classes, strict=True)])

    def _make_mechanism(self, classes):
        domains = [Codes((own.size,)) for own in classes]
        columns = Columns.of({f"y{j}": domain for j, domain in enumerate(domains)})
        return _LabelRecord(columns, sampled_shares(float(self.epsilon), domains, [1] * len(domains), None))

    def _encoded(self, released, X, *, noisy=True):
        columns = zip(released.astype(np.int64).T, self.classes_, strict=True)
        return np.column_stack([decode(codes, own, np.asarray(X).dtype) for codes, own in columns])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.one_d_labels = False
        tags.target_tags.two_d_labels = True
        return tags


class _LabelRecord(MixedRecord):
    """Record of labels alone, whose guarantee is per label."""

    def guarantee(self) -> PrivacyGuarantee:
        guarantee = super().guarantee()
        return replace(guarantee, unit="label", basis=f"all labels of a record: {guarantee.basis}")
