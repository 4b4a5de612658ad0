"""Categories released as a set of them, of a size that estimates frequencies best."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from skldp._checks import check_epsilon, check_whole
from skldp.mechanisms._categorical.unary import OneHotMechanism
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._odds import TWO_64, bernoulli, check_representable, least_count, log_ratio
from skldp.mechanisms._rows import Workspace

__all__ = ["SubsetSelection"]


@dataclass(frozen=True)
class SubsetSelection(OneHotMechanism):
    r"""A set of as many categories for everyone, which holds the true one more often than any single other one.

    Parameters
    ----------
    epsilon : float
        Natural-log budget of one category.
    n_classes : int
        k, how many categories there are. A single one is released as it is, at epsilon 0.

    Raises
    ------
    ValueError
        If a parameter is out of range, or epsilon too small for 64-bit probabilities.

    Notes
    -----
    The set has w categories. It holds the true one with probability p, and whether it does or not, all such sets are
    equally likely; any single other category is in it with probability q:

    .. math:: w = \max\Bigl(1, \Bigl[\frac{k}{e^\varepsilon + 1}\Bigr]\Bigr), \quad
              p = \frac{e^\varepsilon w}{e^\varepsilon w + k - w}, \quad q = \frac{w - p}{k - 1}, \quad
              e^\varepsilon = \frac{p (k - w)}{(1 - p) w}

    The papers take whichever of the two whole numbers next to :math:`k / (e^\varepsilon + 1)` estimates better; this is
    the nearest. 1 - p is rounded up to an integer out of 2^64. At w = 1 this is k-ary randomized response.

    References
    ----------
    Ye and Barg, "Optimal schemes for discrete distribution estimation under locally differential privacy", IEEE
    Transactions on Information Theory 2018; Wang et al., "Mutual information optimally local private
    discrete distribution estimation", arXiv:1607.08025, 2016.

    Examples
    --------
    >>> from skldp.mechanisms import SubsetSelection, noise_from
    >>> law = SubsetSelection(1.0, 10)
    >>> law.set_size, round(law.p, 4), law.exact_epsilon <= 1.0
    (3, 0.5381, True)
    >>> law.release([[0], [7]], noise_from()).rows.sum(axis=1).tolist()
    [3, 3]
    """

    # Picking the members one after the other costs a few calls each, which more rows share.
    block_cells: ClassVar[int] = 1 << 21

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_whole("n_classes", self.n_classes, least=1)
        # numpy's integers overflow where Python's do not.
        object.__setattr__(self, "n_classes", int(self.n_classes))
        if self.n_classes > 1:
            own, others = self.set_size, self.n_classes - self.set_size
            largest = (others * TWO_64 - 1) // self.n_classes
            check_representable(self.epsilon, self.exact_epsilon, log_ratio((TWO_64 - largest) * others, largest * own))

    @property
    def report_bits(self) -> int:
        """How many bits a report takes: those of its members' codes, or a bit for each category where that is less."""
        return min(self.n_classes, self.set_size * (self.n_classes - 1).bit_length())

    @cached_property
    def set_size(self) -> int:
        """How many categories a released set has."""
        # In this form nothing overflows.
        odds = math.exp(-self.epsilon)
        return max(1, round(self.n_classes * odds / (1 + odds)))

    @cached_property
    def miss_count(self) -> int:
        """How many of 2^64 draws release a set without the true category; 0 for a single category."""
        others = self.n_classes - self.set_size
        return least_count(self.epsilon, others, n_own=self.set_size, n_counted=others) if others else 0

    @property
    def own_count(self) -> int:
        """How many of 2^64 draws release a set with the true category; all of them for a single category."""
        return TWO_64 - self.miss_count

    @property
    def p(self) -> float:
        """The probability that the true category is in the set."""
        return self.own_count / TWO_64

    @property
    def q(self) -> float:
        """The probability that any single other category is in the set."""
        if self.n_classes == 1:
            return 0.0
        return float(Fraction(self.set_size * TWO_64 - self.own_count, (self.n_classes - 1) * TWO_64))

    @cached_property
    def exact_epsilon(self) -> float:
        """The exact worst-case log-likelihood ratio of what is sampled, rounded up."""
        # There are (k - w) / w times as many sets without the true category as with it.
        held, missed = self.own_count * (self.n_classes - self.set_size), self.miss_count * self.set_size
        return log_ratio(held, missed) if held > missed else 0.0

    def log_likelihood(self, released: npt.ArrayLike, codes: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The natural log of the probability of each released row of bits given each true code."""
        own = self.domain.clip(self.domain.as_rows(codes)).rows.reshape(-1, 1) == np.arange(self.n_classes)
        members = np.asarray(released, dtype=bool)
        k, w = self.n_classes, self.set_size
        held, missed = (
            math.log(count) - math.log(TWO_64) - math.log(math.comb(k - 1, size)) if count else -math.inf
            for count, size in ((self.own_count, w - 1), (self.miss_count, w))
        )
        logs = np.where((members & own).any(axis=-1), held, missed)
        return np.asarray(np.where(members.sum(axis=-1) == w, logs, -math.inf))

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        if self.n_classes == 1:
            self._encode(rows, out, workspace)
            return
        # Other categories alone; where the set is to hold the true one, it takes the place of any of them.
        members = noise.subsets(len(rows), self.n_classes - 1, self.set_size)
        members += members >= rows
        places = noise.integers(self.set_size, len(rows))
        held = workspace.take("held", rows.shape, bool)
        bernoulli(noise, self.own_count, held, workspace.take("words", rows.shape, np.uint16))
        holders = np.flatnonzero(held)
        members[holders, places[holders]] = rows[holders, 0]
        out[...] = False
        out[np.arange(len(rows))[:, None], members] = True
