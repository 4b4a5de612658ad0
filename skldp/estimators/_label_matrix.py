"""LabelMatrixRR: several labels of one record, each by randomized response, for one epsilon."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from skldp._arrays import kind_of
from skldp.estimators._class_codes import declared_values, decode, decoded_dtype, encode, learnt_values
from skldp.estimators._labels import LabelReleaser
from skldp.estimators._validation import Seed, as_table
from skldp.mechanisms._categorical.frequency import FrequencyEstimate, estimate_frequencies
from skldp.mechanisms._columns import Columns
from skldp.mechanisms._domain import Codes
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._record import MixedRecord, share_out

__all__ = ["LabelMatrixRR"]


class LabelMatrixRR(LabelReleaser):
    """Randomized response on every column of a matrix of labels: several attributes of one record.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget (natural log) of all labels of one record together, split equally over the columns.
    classes : array-like of shape (n_classes,), or list of such, default=None
        The declared classes of every column, from public knowledge, or one list for all columns, such as ``[0, 1]`` for
        a multi-label indicator. None takes those seen in y, with a warning: which occur is a fact about private data.
    seed : None, int, Generator or RandomState, default=None
        None draws secure noise anew in every call. Anything else is for tests and studies, and voids the guarantee
        against whoever knows it.

    Attributes
    ----------
    classes_ : list of ndarray
        The classes of each column, sorted where they can be.
    mechanism_ : MixedRecord
    privacy_guarantee_ : PrivacyGuarantee
        Exact, in unit "label": that of all labels of a record, the sum over the columns. Infinite where classes were
        learnt.

    Raises
    ------
    ValueError
        If y has not two dimensions, a label is not declared, or there are not as many lists as columns.

    Warns
    -----
    LearntDomainWarning
        If `classes` is None.
    SeededNoiseWarning
        If `seed` is not None.

    See Also
    --------
    LabelRR : One label a record.

    Examples
    --------
    >>> from skldp import LabelMatrixRR
    >>> attributes = LabelMatrixRR(epsilon=4.0, classes=[0, 1])
    >>> attributes.fit_transform([[0, 1], [1, 1], [0, 0]]).shape
    (3, 2)
    >>> print(attributes.privacy_guarantee_)
    epsilon 4 per label (stated 4, per feature 2); all labels of a record: sum over 2 columns: y0 2, y1 2
    """

    def __init__(self, epsilon: float = 1.0, *, classes: npt.ArrayLike | None = None, seed: Seed = None) -> None:
        self.epsilon = epsilon
        self.classes = classes
        self.seed = seed

    def inverse_transform(self, y: Any) -> np.ndarray:
        """Give released labels back as they are: they are labels already, and their noise cannot be undone.

        Parameters
        ----------
        y : array-like of shape (n_samples, n_columns)
            Released labels.

        Returns
        -------
        y : ndarray of shape (n_samples, n_columns)
        """
        check_is_fitted(self)
        labels = self._labels(y)
        self._codes(labels, self.classes_)
        return labels

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
        codes = self._codes(self._labels(y), self.classes_)
        estimates = []
        for column, part, own in zip(codes.T, self.mechanism_.parts, self.classes_, strict=True):
            keep, other = part.support_probabilities()
            counts = np.bincount(column, minlength=own.size)
            estimates.append(estimate_frequencies(counts, column.size, keep, other, categories=own))
        return estimates

    def _labels(self, y):
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        labels = as_table(y, "y", dtype=None)
        if not labels.shape[1]:
            raise ValueError(f"y must have at least one column. Got {kind_of(y)} instead.")
        return labels

    def _classes(self, y):
        if self.classes is None:
            return [learnt_values(column) for column in y.T]
        listed: list[Any] = list(self.classes)  # type: ignore[arg-type]  # which is no single number
        by_column = all(np.ndim(one) == 1 for one in listed)
        if by_column and len(listed) != y.shape[1]:
            raise ValueError(
                f"classes must be one list for each of {y.shape[1]} columns of y, or one for all. "
                f"Got {self.classes!r} instead."
            )
        each = listed if by_column else [listed] * y.shape[1]
        return [declared_values(one, "classes") for one in each]

    def _codes(self, y, classes):
        if y.shape[1] != len(classes):
            raise ValueError(f"y must have {len(classes)} columns. Got {y.shape[1]} instead.")
        return np.column_stack([encode(column, own, "y") for column, own in zip(y.T, classes, strict=True)])

    def _make_mechanism(self, classes):
        columns = Columns.of({f"y{j}": Codes((own.size,)) for j, own in enumerate(classes)})
        return _LabelRecord(columns, share_out(float(self.epsilon), [1] * len(classes)))

    def _empty_release(self, n_rows, dtype):
        dtypes = [decoded_dtype(own, dtype) for own in self.classes_]
        return np.empty((n_rows, len(dtypes)), dtype=np.result_type(*dtypes))

    def _decoded(self, answers, dtype):
        decoded = [
            decode(column, own, dtype) for column, own in zip(answers.astype(np.int64).T, self.classes_, strict=True)
        ]
        return np.column_stack(decoded)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.one_d_labels = False
        tags.target_tags.two_d_labels = True
        return tags


class _LabelRecord(MixedRecord):
    """A record of labels alone, whose guarantee is that of the labels."""

    def guarantee(self) -> PrivacyGuarantee:
        whole = super().guarantee()
        return replace(whole, unit="label", basis=f"all labels of a record: {whole.basis}")
