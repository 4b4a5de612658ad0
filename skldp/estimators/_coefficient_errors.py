"""What estimators of coefficients say of their errors: intervals, and the table that statisticians read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skldp._checks import check_fraction
from skldp._tables import as_frame, html_table
from skldp.learning._uncertainty import Estimate

__all__ = ["CoefficientErrorsMixin", "RegressionSummary"]


def _asked_for_errors(self: Any) -> bool:
    if not self.inference:
        raise AttributeError("Errors are known only where people were asked for them: fit with inference=True.")
    return True


@dataclass(frozen=True)
class RegressionSummary:
    """The coefficients of a regression and their errors: a table as text, in notebooks, and as a frame.

    Parameters
    ----------
    names : sequence of str
        Of the terms.
    estimate : Estimate
    level : float
        Of the intervals.
    title : str

    See Also
    --------
    PrivateLinearRegression.summary : Makes it.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import RegressionSummary
    >>> from skldp.learning import Estimate
    >>> estimate = Estimate(np.array([0.5]), np.array([[0.04]]), np.array([0.03]), 49)
    >>> print(RegressionSummary(["age"], estimate, 0.95, "Least squares"))
    Least squares
         coef  std err      t  P>|t|   [0.025  0.975]  due to privacy
    age   0.5      0.2  2.500  0.016  0.09808  0.9019             50%
    """

    names: Sequence[str]
    estimate: Estimate
    level: float
    title: str

    def to_dict(self) -> dict[str, npt.NDArray[np.float64]]:
        """The columns, one number a term; the last is the part of the standard error that is due to privacy."""
        lower, upper = self.estimate.intervals(self.level).T
        tail = (1 - self.level) / 2
        return {
            "coef": self.estimate.values,
            "std err": self.estimate.standard_errors,
            "t": self.estimate.statistics,
            "P>|t|": self.estimate.p_values,
            f"[{tail:.4g}": lower,
            f"{1 - tail:.4g}]": upper,
            "due to privacy": self.estimate.noise_shares,
        }

    def to_frame(self) -> Any:
        """The columns as a pandas DataFrame, with the terms as its index.

        Raises
        ------
        ImportError
            If pandas is missing.
        """
        return as_frame(self.to_dict(), index=list(self.names))

    def __str__(self) -> str:
        head, *rows = self._cells()
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in (head, *rows)
        ]
        return "\n".join([self.title, *lines])

    def _repr_html_(self) -> str:
        head, *rows = self._cells()
        return html_table(self.title, rows, head)

    def _cells(self) -> list[list[str]]:
        columns = self.to_dict()
        formats = ["{:.4g}", "{:.4g}", "{:.3f}", "{:.3f}", "{:.4g}", "{:.4g}", "{:.0%}"]
        rows = zip(*columns.values(), strict=True)
        return [
            ["", *columns],
            *(
                [name, *(form.format(one) for form, one in zip(formats, row, strict=True))]
                for name, row in zip(self.names, rows, strict=True)
            ),
        ]


class CoefficientErrorsMixin:
    """Mix-in for intervals and a summary, of an estimator whose `protocol_` told errors where `inference` is True."""

    # Of the estimator, beside it among the bases.
    n_features_in_: int
    protocol_: Any
    _check_unchanged: Callable[[], None]

    @available_if(_asked_for_errors)
    def confidence_intervals(self, level: float = 0.95) -> npt.NDArray[np.float64]:
        """Where the coefficients without a ridge lie, so often as the level says.

        Parameters
        ----------
        level : float, default=0.95

        Returns
        -------
        ndarray of shape (n_terms, 2)
            Lower and upper ends: of the intercept, where there is one, and the coefficients.

        Raises
        ------
        ValueError
            If the level is not between 0 and 1, or there were too few people for errors to be told, or for features to
            be told apart.
        """
        check_fraction("level", level)
        return self._estimate().intervals(level)

    @available_if(_asked_for_errors)
    def summary(self, level: float = 0.95) -> RegressionSummary:
        """The table of coefficients without a ridge, their errors, and what of these is due to privacy.

        Parameters
        ----------
        level : float, default=0.95
            Of the intervals.

        Returns
        -------
        RegressionSummary

        Raises
        ------
        ValueError
            As of :meth:`confidence_intervals`.
        """
        check_fraction("level", level)
        estimate = self._estimate()
        n_features = self.n_features_in_
        names = [*getattr(self, "feature_names_in_", [f"x{i}" for i in range(n_features)])]
        protocol = self.protocol_
        title = (
            f"Least squares of {protocol.n_people:,} people, each under epsilon {protocol.epsilon:.4g}; "
            f"t with {estimate.degrees} degrees of freedom"
        )
        return RegressionSummary(["intercept"] * (len(estimate.values) - n_features) + names, estimate, level, title)

    def _estimate(self) -> Estimate:
        check_is_fitted(self)
        self._check_unchanged()
        estimate: Estimate = self.protocol_.estimate()
        return estimate
