"""The base of mechanisms whose release is one whole number, short to send, that speaks for a set of categories."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from skldp._checks import check_epsilon, check_whole
from skldp.mechanisms._categorical.frequency import FrequencyEstimate, check_reports
from skldp.mechanisms._domain import Codes
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._rows import RowMechanism

__all__ = ["ReportMechanism"]

# Of more categories than these, a frequency for each is not what anybody estimates.
_MOST_CLASSES = 2**20


@dataclass(frozen=True)
class ReportMechanism(RowMechanism):
    """Base of the mechanisms that take rows of one code, shape (n, 1), and release a report, 0 to ``n_reports - 1``."""

    n_outputs = 1

    epsilon: float
    n_classes: int

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_whole("n_classes", self.n_classes, least=1, most=_MOST_CLASSES)
        # numpy's integers overflow where Python's do not.
        object.__setattr__(self, "n_classes", int(self.n_classes))

    @property
    @abstractmethod
    def n_reports(self) -> int:
        """How many different reports there are."""

    @property
    @abstractmethod
    def exact_epsilon(self) -> float:
        """The exact worst-case log-likelihood ratio of what is sampled, rounded up."""

    @property
    @abstractmethod
    def worst_case_variance(self) -> float:
        """The mean over the categories of the variance that one report gives to an unbiased frequency, at most."""

    def estimate_frequencies(
        self, reports: npt.ArrayLike, of: Literal["sample", "population"] = "sample"
    ) -> FrequencyEstimate:
        """Estimate without bias how often each category occurs.

        Parameters
        ----------
        reports : array-like of int
            What was released, one report a person.
        of : {"sample", "population"}, default="sample"
            Whose frequencies the standard errors are about; see `estimate_frequencies`.

        Returns
        -------
        FrequencyEstimate
            Of all categories. Not clipped: that would bias it.

        Raises
        ------
        ValueError
            If a report is none of this mechanism's, or there are too few.
        """
        checked = self._reports(reports).reshape(-1)
        check_reports(checked.size, of)
        return self._frequencies(checked, of)

    @abstractmethod
    def _frequencies(self, checked: npt.NDArray[np.int64], of: Literal["sample", "population"]) -> FrequencyEstimate:
        """Estimate from reports that are enough."""

    @abstractmethod
    def log_likelihood(self, released: npt.ArrayLike, codes: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The natural log of the probability of each report given each true code (broadcast)."""

    @property
    def report_bits(self) -> int:
        """How many bits a report takes."""
        return (self.n_reports - 1).bit_length()

    @cached_property
    def domain(self) -> Codes:
        """The codes 0 to ``n_classes - 1``."""
        return Codes((self.n_classes,))

    def output_dtype(self, dtype: np.dtype) -> np.dtype:
        """The type of a release: int64."""
        return np.dtype(np.int64)

    def guarantee(self, unit: str = "record") -> PrivacyGuarantee:
        """The exact guarantee of one release."""
        basis = "exact, from the 64-bit integer probabilities that are sampled"
        return PrivacyGuarantee(self.exact_epsilon, unit=unit, stated=self.epsilon, basis=basis)

    def _reports(self, values: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Reports of any shape, or an error."""
        domain = Codes((self.n_reports,))
        reports: npt.NDArray[np.int64] = domain.clip(domain.as_rows(values)).rows
        return reports

    def _codes(self, values: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Codes of any shape, or an error."""
        codes: npt.NDArray[np.int64] = self.domain.clip(self.domain.as_rows(values)).rows
        return codes
