r"""Central guarantees of a trusted shuffler, from a mechanism's law, over rounds, and with colluding people."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skldp._arrays import Floats
from skldp._checks import check_between, check_fraction, check_integer
from skldp.mechanisms._finite_query import FiniteQuery
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._rows import RowMechanism
from skldp.shuffle._blanket_laws import pair_laws
from skldp.shuffle._shuffle_bounds import (
    MOST_COUNTED,
    MOST_EPSILON,
    MOST_PEOPLE,
    BlanketLaw,
    LossLattice,
    Measure,
    TwoAnswers,
    any_law,
    shuffled_delta,
    shuffled_epsilon,
    sum_of_copies,
)

# Number of points of the grid of one round's privacy losses, up to a negligible delta.
_LOSSES = 96
# Numbers of positions of the law of a sum: of one round at each loss, and of all rounds.
_PLACES_OF_ROUND = 1024
_PLACES = 4096
# Part of delta reserved for the error of a law.
_SLACK = 2.0**-10
_MOST_EXPONENT = 700.0


def shuffled(
    mechanism: RowMechanism | FiniteQuery | PrivacyGuarantee,
    n: int,
    delta: float,
    *,
    rounds: int = 1,
    out_of: int | None = None,
) -> PrivacyGuarantee:
    r"""Return the central guarantee after a trusted shuffler has mixed the answers of `n` people.

    Parameters
    ----------
    mechanism : RowMechanism, FiniteQuery or PrivacyGuarantee
        Mechanism of each person's answer, or its guarantee. Only the epsilon of a guarantee is used.
    n : int
        Number of people who answer in a round, each once. Those whose answers the analyst knows do not count.
    delta : float
        Delta of all rounds together, in (0, 1).
    rounds : int, default=1
        Number of rounds. Each round is shuffled separately and may depend on earlier rounds.
    out_of : int, default=None
        Number of people of whom the `n` of each round are drawn at random, without replacement. The analyst must not
        learn who was drawn. None is `n`: everybody answers in every round.

    Returns
    -------
    PrivacyGuarantee
        Guarantee of each of the `n` people, with ``model="central"``. Its epsilon is proved: all rounding is upward,
        and delta includes truncation.

    Raises
    ------
    ValueError
        If the mechanism's guarantee is not pure or is per unit of distance, or a number is out of range.

    See Also
    --------
    shuffled_closed_form : Published formula, with a several times larger epsilon.

    Notes
    -----
    Answers of one round are independent. With the common part :math:`\omega` of all laws and independent copies of X,

    .. math:: \delta(\varepsilon) \le \frac1n E\Bigl[\Bigl(\sum_{i=1}^n X_i\Bigr)_+\Bigr], \quad
              X = \frac{R_0(y) - e^\varepsilon R_1(y)}{\omega(y)} \text{ with chance } \omega(y), \text{ else } 0.

    A draw of n out of N people amplifies each round: with :math:`q = n / N`,
    :math:`\delta_N(\ln(1 + q (e^\varepsilon - 1))) \le q\, \delta(\varepsilon)`.

    The laws of k-ary and unary responses, of the numeric mechanisms, of bits (three answers each for LATENT and OME)
    and of PrivUnit follow from the sampled integers (for PrivUnit, from real numbers known to ten digits). Only epsilon
    is used for other mechanisms and for records of many bits or values; binary randomized response is then the worst
    law. Rounds are composed as privacy losses on a grid. A curve through bounds of one round at 96 points, linear in
    :math:`e^\varepsilon` between them, dominates the loss, and its losses are added.

    Two answers have the exact figure, at most 0.3% above it: the worst data set is found among those in
    which every other person has one of the two extreme laws. The bound is nearly attained for ten classes or more.
    The loss of other numbers may be up to a third smaller, since the common part of all laws is smaller than each law.
    ``benchmarks/shuffling.py`` shows all. The variation-ratio reduction of Wang et al. (VLDB 2024) is not used, since
    some mechanisms have a larger loss.

    References
    ----------
    Balle, Bell, Gascon and Nissim, "The privacy blanket of the shuffle model", CRYPTO 2019, Lemma 5.3; Balle, Barthe
    and Gaboardi, "Privacy amplification by subsampling", NeurIPS 2018, Theorem 2, for the draw; Feldman,
    McMillan and Talwar, "Stronger privacy amplification by shuffling for Renyi and approximate differential privacy",
    SODA 2023, with its erratum; Su, Cheng and Wang, "Decomposition-based optimal bounds for privacy amplification via
    shuffling", 2025; Doroshenko, Ghazi, Kamath, Kumar and Manurangsi, "Connect the dots: tighter discrete
    approximations of privacy loss distributions", PoPETs 2022.

    Examples
    --------
    >>> from skldp import PrivacyGuarantee
    >>> from skldp.accounting import shuffled
    >>> from skldp.mechanisms import RandomizedResponse
    >>> round(shuffled(PrivacyGuarantee(2.0), 8_000, 1e-6).epsilon, 3)
    0.129
    >>> round(shuffled(RandomizedResponse(2.0, 100), 8_000, 1e-6).epsilon, 3)
    0.033
    >>> round(shuffled(RandomizedResponse(2.0, 2), 8_000, 1e-6).epsilon, 3)
    0.099
    """
    local = _local_guarantee(mechanism)
    check_integer("n", n, least=1, most=2**62)
    check_integer("rounds", rounds, least=1, most=2**30)
    check_fraction("delta", delta)
    if out_of is not None:
        check_integer("out_of", out_of, least=n, most=2**62)
    everybody = n if out_of is None else out_of
    share = min(1.0, n / everybody * (1 + 2.0**-50))
    found, honest = pair_laws(mechanism), min(n, MOST_PEOPLE)
    one_round: TwoAnswers | _Blanket = _Blanket(found.laws, honest, local.epsilon)
    if found.chances and n <= MOST_COUNTED:
        one_round = TwoAnswers(*found.chances, n)
    exact = math.inf
    if found.laws:
        exact = _Rounds(one_round, delta * (1 - _SLACK), rounds, local.epsilon, share).epsilon()
    # The slack of the law is added to delta.
    known = exact < _MOST_EXPONENT and rounds * found.slack * (1 + math.exp(exact)) <= delta * _SLACK
    epsilon = exact if known else math.inf
    if (
        not known
        or max(float(np.log(law.own / law.other).max()) for law in found.laws) > local.epsilon * (1 + 1e-6) + 1e-9
    ):
        worst = _Blanket((any_law(min(local.epsilon, MOST_EPSILON)),), honest, local.epsilon)
        epsilon = min(epsilon, _Rounds(worst, delta, rounds, local.epsilon, share).epsilon())
    people = f"{n:,} people" + ("" if everybody == n else f", drawn from {everybody:,}")
    times = "" if rounds == 1 else f" in each of {rounds:,} rounds"
    of = "the sampled law" if known else "epsilon alone"
    return replace(
        local,
        epsilon=epsilon,
        delta=delta,
        per_feature=None,
        figures=(),
        model="central",
        basis=f"shuffled answers of {people}{times}, bounded from {of}; each one's own: {local.basis}",
    )


def shuffled_closed_form(epsilon: float, n: int, delta: float) -> float:
    r"""Return the central epsilon of a trusted shuffler by a published formula, rounded up.

    Parameters
    ----------
    epsilon : float
        Epsilon of each person's answer.
    n : int
        Number of people.
    delta : float
        Delta, in (0, 1).

    Raises
    ------
    ValueError
        If epsilon is too large for the theorem, or a number is out of range.

    See Also
    --------
    shuffled : Numerical bound without a condition on epsilon.

    Notes
    -----
    .. math:: \varepsilon = \ln\Bigl(1 + (e^{\varepsilon_0} - 1)\Bigl(4 \sqrt{\tfrac{2 \ln(4 / \delta)}
              {(e^{\varepsilon_0} + 1) n}} + \tfrac{4}{n}\Bigr)\Bigr),\quad
              \varepsilon_0 \le \ln\Bigl(\tfrac{n}{8 \ln(2 / \delta)} - 1\Bigr)

    References
    ----------
    Feldman, McMillan and Talwar, "Hiding among the clones", FOCS 2021 (2022 version), Theorem 3.1.

    Examples
    --------
    >>> from skldp.accounting import shuffled_closed_form
    >>> round(shuffled_closed_form(2.0, 8_000, 1e-6), 3)
    0.436
    """
    check_between("epsilon", epsilon, 0, math.inf)
    check_integer("n", n, least=1, most=2**62)
    check_fraction("delta", delta)
    largest_odds = n / (8 * math.log(2 / delta)) - 1
    if largest_odds <= 0 or epsilon > math.log(largest_odds):
        most = f"{math.log(largest_odds):.4g}" if largest_odds > 0 else "-inf, so that no epsilon is possible"
        raise ValueError(f"epsilon must be at most ln(n / (8 ln(2 / delta)) - 1) = {most}; got {epsilon!r}.")
    spread = 4 * math.sqrt(2 * math.log(4 / delta) / ((math.exp(epsilon) + 1) * n)) + 4 / n
    # A dozen operations have errors of a few units in the last place each.
    return math.log1p(math.expm1(epsilon) * spread) * (1 + 2.0**-46)


def _local_guarantee(mechanism: Any) -> PrivacyGuarantee:
    if isinstance(mechanism, PrivacyGuarantee):
        local = mechanism
    elif isinstance(mechanism, FiniteQuery):
        local = PrivacyGuarantee(mechanism.epsilon, basis="exact, from the 53-bit integer weights")
    elif isinstance(mechanism, RowMechanism):
        local = mechanism.guarantee()
    else:
        kinds = "a RowMechanism, a FiniteQuery or a PrivacyGuarantee"
        raise ValueError(f"mechanism must be {kinds}; got {type(mechanism).__name__}.")
    if local.delta > 0 or local.model != "local" or local.unit == "distance":
        raise ValueError(f"The guarantee must be local, pure and per record or label; got {local}.")
    return local


@dataclass(frozen=True)
class _Blanket:
    """Shuffled answers of n people; their inputs have any of these laws."""

    laws: tuple[BlanketLaw, ...]
    n: int
    local: float

    def cover(self, delta: float, *, rounds: bool) -> tuple[float, Callable[[float], float]]:
        """Return epsilon at this delta, rounded up, and delta at each e^epsilon - 1."""
        worst, budget = 0.0, delta * 2.0**-14
        for law in self.laws:
            known = worst and shuffled_delta(law, math.expm1(worst) * (1 - 2.0**-50), self.n, budget=budget)
            if not worst or known > delta:
                worst = max(worst, shuffled_epsilon(law, self.n, delta, self.local))

        def curve(odds_excess: float) -> float:
            budget = delta * 2.0**-4
            deltas = (
                shuffled_delta(law, odds_excess, self.n, budget=budget, places=_PLACES_OF_ROUND) for law in self.laws
            )
            return max(deltas)

        return worst, curve


@dataclass(frozen=True)
class _Rounds:
    """Rounds of shuffled answers."""

    one: _Blanket | TwoAnswers
    delta: float
    rounds: int
    local: float
    share: float

    def epsilon(self) -> float:
        """Return the smallest proved epsilon, rounded up."""
        alone = self._drawn(self.local) * self.rounds * (1 + 2.0**-50)
        if self.rounds == 1:
            return min(alone, self._cover(self.delta, rounds=False)[0])
        end, curve = self._cover(self.delta / self.rounds * 2.0**-10, rounds=True)
        together = self._composed(end, curve) if end > 0 and self.local <= MOST_EPSILON else math.inf
        if math.isinf(together):
            together = self._cover(self.delta / self.rounds, rounds=False)[0] * self.rounds * (1 + 2.0**-50)
        return min(alone, together)

    def _drawn(self, loss: float) -> float:
        """Return the loss that a draw of this share leaves of a loss, rounded up."""
        if self.share == 1 or loss > _MOST_EXPONENT:
            return loss
        return math.log1p(self.share * math.expm1(loss) * (1 + 2.0**-50)) * (1 + 2.0**-50)

    def _cover(self, delta: float, *, rounds: bool) -> tuple[float, Callable[[float], float]]:
        """Return epsilon of one round at this delta, and its delta at each e^epsilon - 1, of people who are drawn."""
        # The bound is made for deltas below 1.
        end, curve = self.one.cover(min(delta / self.share, max(delta, 0.5)), rounds=rounds)
        return self._drawn(end), lambda odds_excess: self.share * curve(odds_excess / self.share)

    def _composed(self, end: float, curve: Callable[[float], float]) -> float:
        losses = np.arange(_LOSSES + 1) * (end / _LOSSES)
        # Rounding down makes delta larger.
        deltas = np.array([curve(excess) for excess in (np.expm1(losses) * (1 - 2.0**-50)).tolist()])
        beyond = float(deltas[-1])
        single = _loss_law(deltas, end / _LOSSES)
        # Rounding can push the total above 1; powers of it would diverge.
        if not self.rounds * (float(single.masses.sum()) - 1) <= _SLACK:
            return math.inf
        measure = _LossExceeded(end / _LOSSES)
        budget = self.delta * 2.0**-14
        law, level, lost = sum_of_copies(single, self.rounds, measure, budget=budget, most=_PLACES)
        lost += self.rounds * beyond * (1 + 2.0**-50)
        places = np.arange(law.first, law.first + law.masses.size)
        sums = places * (measure.step * 2.0**level)
        sums += 2.0**-50 * np.abs(sums)

        def excess(epsilon: float) -> float:
            above = -np.expm1(np.minimum(epsilon - sums, 0.0))
            return float(law.masses @ above) * math.exp(law.error) * (1 + 2.0**-40) + lost - self.delta

        low, high = 0.0, max(float(sums[-1]), 0.0)
        if not excess(high) <= 0:
            return math.inf
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (low, middle) if excess(middle) <= 0 else (middle, high)
        return high


@dataclass(frozen=True)
class _LossExceeded(Measure):
    """Delta of a sum of privacy losses on a lattice of this step, under the first of the two laws."""

    step: float

    def shares(self, level: int) -> tuple[float, float]:
        # These shares preserve the mass of both laws; the second law's mass is exp(-loss) times the first's.
        gap = self.step * 2.0**level
        return 1 / (1 + math.exp(gap)) * (1 + 2.0**-50), 1 / (1 + math.exp(-gap)) * (1 + 2.0**-50)

    def worth(self, law: LossLattice, single: LossLattice, level: int, n_copies: int) -> Floats:
        return np.ones(law.masses.size)


def _loss_law(curve: Floats, step: float) -> LossLattice:
    """Return the losses 0, step, 2 step, ... of a symmetric pair whose delta is at least this curve."""
    n = curve.size - 1
    # expm1 keeps the digits for a small step.
    excess = np.expm1(step * np.arange(n + 1))
    convex = _convex_below(excess, curve)
    slopes = np.append(np.diff(convex) / np.diff(excess), 0.0)
    under_first = (1 + excess[1:]) * np.maximum(np.diff(slopes), 0.0)
    # Rounding can make the curve of these masses too low; the difference is added.
    parts = np.maximum(-np.expm1(-step * (np.arange(1, n + 1) - np.arange(n)[:, None])), 0.0)
    missing = np.max((convex[:-1] - convex[-1]) / np.maximum(parts @ under_first, 1e-300), initial=1.0)
    under_first *= missing * (1 + 2.0**-40)
    under_second = under_first / (1 + excess[1:]) * (1 + 2.0**-40)
    rest = 1 - convex[-1] - under_first.sum() - under_second.sum()
    masses = np.concatenate([under_second[::-1], [max(rest, 0.0) + 2.0**-48], under_first])
    return LossLattice(masses, -n, 2.0**-48)


def _convex_below(x: Floats, y: Floats) -> Floats:
    """Return the largest convex curve below points."""
    corners: list[int] = []
    for i in range(x.size):
        while len(corners) > 1:
            a, b = corners[-2:]
            if (y[b] - y[a]) * (x[i] - x[a]) < (y[i] - y[a]) * (x[b] - x[a]):
                break
            corners.pop()
        corners.append(i)
    return np.interp(x, x[corners], y[corners])
