"""People whose records are linked, as one object with one budget (Pan 2025, end of Section 3.2)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp._arrays import kind_of
from skldp._checks import check_whole, is_whole
from skldp.accounting._extrema.sampled_law import Bounds, checked_box
from skldp.accounting._query import RegressionQuery

__all__ = ["Household"]


@dataclass(frozen=True)
class Household:
    r"""Several people who have some features in common: one record of them all, which one budget protects.

    Each member's answer tells about what all members share. With a budget for each, a statement about that can be
    learnt at the sum of the budgets. A household is therefore asked as one person, whose record holds what is shared
    once, then what each member has of their own: a query about one member is a query about that record, and any
    filter, any ledger and any certified loss takes it.

    Parameters
    ----------
    n_members : int
        How many people, at least 1. The same for all households of a ledger; places may be left empty.
    n_features : int
        Of one person's record.
    shared : sequence of int, default=()
        The positions of the features that all members have in common, from 0.

    Attributes
    ----------
    n_record : int
        Number of features of the common record.

    Raises
    ------
    ValueError
        If a parameter is not as described.

    Notes
    -----
    The learning limit then holds for statements about the whole household: "somebody here smokes". Members who share
    nothing still have one budget. Members whose records are the same in all features are one person who was asked
    several times.

    References
    ----------
    M. Pan, "Actual Knowledge Gain as Privacy Loss in Local Privacy Accounting", 2025, Section 3.2.

    Examples
    --------
    Two people of one address, whose rent is shared, and whose age is their own:

    >>> from skldp.accounting import BayesianPrivacyFilter, Household, RegressionQuery
    >>> home = Household(2, 2, shared=[0])
    >>> rent = RegressionQuery("linear", coef=[1.0, 0.0], intercept=0.0, output_bounds=(0, 1), epsilon=0.5)
    >>> together = BayesianPrivacyFilter(0.6, bounds=home.bounds((0, 1)))
    >>> together.record(home.query(0, rent), 1)
    >>> together.admits(home.query(1, rent))
    False
    """

    n_members: int
    n_features: int
    shared: Sequence[int] = ()

    def __post_init__(self) -> None:
        check_whole("n_members", self.n_members, least=1)
        check_whole("n_features", self.n_features, least=1)
        places = list(self.shared)
        wrong = [place for place in places if not is_whole(place) or not 0 <= place < self.n_features]
        if wrong or len(set(places)) != len(places):
            raise ValueError(
                f"shared must be different positions from 0 to {self.n_features - 1}. Got {self.shared!r} instead."
            )
        object.__setattr__(self, "shared", tuple(sorted(int(place) for place in places)))

    @property
    def n_record(self) -> int:
        """Number of features of the common record."""
        return len(self.shared) + self.n_members * len(self._own)

    @property
    def _own(self) -> list[int]:
        return [place for place in range(self.n_features) if place not in self.shared]

    def _places(self, member: int) -> npt.NDArray[np.intp]:
        """Where each feature of a member stands in the common record."""
        n_own = len(self._own)
        places = np.empty(self.n_features, dtype=np.intp)
        places[list(self.shared)] = np.arange(len(self.shared))
        places[self._own] = len(self.shared) + member * n_own + np.arange(n_own)
        return places

    def query(self, member: int, query: RegressionQuery) -> RegressionQuery:
        """What asking one member is, as a query about the common record.

        Parameters
        ----------
        member : int
            From 0.
        query : RegressionQuery
            About one person's record.

        Returns
        -------
        RegressionQuery
            With the same answers, of the same law.

        Raises
        ------
        ValueError
            If there is no such member, or the query has another number of features.
        """
        check_whole("member", member, least=0, most=self.n_members - 1)
        if not isinstance(query, RegressionQuery) or query.n_features != self.n_features:
            raise ValueError(f"query must be a RegressionQuery of {self.n_features} features. Got {query!r} instead.")
        coef = np.zeros(self.n_record)
        coef[self._places(member)] = query.coef
        return replace(query, coef=coef)

    def bounds(self, bounds: Bounds) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The domain of the common record, from that of a person's.

        Parameters
        ----------
        bounds : tuple (low, high)
            Each a number, or one number per feature of a person.

        Returns
        -------
        low, high : ndarray of shape (n_record,)
        """
        box = checked_box(bounds, n_features=self.n_features)
        low, high = (np.concatenate([side[list(self.shared)], *[side[self._own]] * self.n_members]) for side in box)
        return low, high

    def records(self, X: Any) -> npt.NDArray[np.float64]:
        """The common record of each household.

        Parameters
        ----------
        X : array-like of shape (n_households, n_members, n_features)
            Everybody's own row. What is shared is taken from the first member.

        Returns
        -------
        ndarray of float64, shape (n_households, n_record)

        Raises
        ------
        ValueError
            If X has another shape. The text says nothing of what is in it.
        """
        rows = np.asarray(X)
        if rows.ndim != 3 or rows.shape[1:] != (self.n_members, self.n_features) or rows.dtype.kind not in "iufb":
            raise ValueError(
                f"X must be numbers of shape (n_households, {self.n_members}, {self.n_features}). "
                f"Got {kind_of(rows)} instead."
            )
        common = np.empty((len(rows), self.n_record))
        for member in reversed(range(self.n_members)):
            common[:, self._places(member)] = rows[:, member]
        return common
