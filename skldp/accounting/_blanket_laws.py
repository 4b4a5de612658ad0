r"""What each mechanism's answers look like to a shuffler: laws of two inputs beside what everybody answers with.

Every law here covers all pairs of inputs. Where the law of an answer is linear in the input between corners, corners
are enough, because the bound is convex in either law. Where two sets of answers are likely to two inputs, disjoint sets
are the worst: of four equal weights, ratios (p, 1) and (1, p) have the same mean of X as (p, p) and (1, 1), further
apart. Whatever else a release tells, such as which features were sampled, only makes the bound larger.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from itertools import permutations, product
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp.accounting._finite_query import FiniteQuery
from skldp.mechanisms._bits.bit_flip import BitFlip
from skldp.mechanisms._bits.flip_laws import BitLaw
from skldp.mechanisms._bits.unbiased import UnbiasedBitFlip
from skldp.mechanisms._categorical.label_laws import RandomizedResponseWithPrior
from skldp.mechanisms._categorical.randomized_response import GeneralizedRandomizedResponse
from skldp.mechanisms._categorical.record import CategoricalRecord
from skldp.mechanisms._categorical.unary import OneHotRandomizedResponse, UnaryEncoding
from skldp.mechanisms._numeric.bounded_features import BoundedFeatures
from skldp.mechanisms._numeric.duchi import Duchi, DuchiVector
from skldp.mechanisms._numeric.hybrid import Hybrid, HybridThreeOutputs
from skldp.mechanisms._numeric.piecewise import Piecewise
from skldp.mechanisms._numeric.private_prior import PriorQuestion
from skldp.mechanisms._numeric.response_on_bins import ResponseOnBins
from skldp.mechanisms._numeric.three_outputs import ThreeOutputs
from skldp.mechanisms._odds import TWO_64
from skldp.mechanisms._shuffling import BlanketLaw
from skldp.mechanisms._vector.privunit import PrivUnit, PrivUnitBall
from skldp.mechanisms._vector.scaled_rows import ScaledRows

__all__ = ["PairLaws", "pair_laws"]

# More kinds of answers than these are left to the bound by epsilon alone, and so are more points of a table.
_MOST_KINDS = 2_000
_MOST_POINTS = 5
# The relative error of a cap's probability is below 1e-11, and that of what follows from it below this.
_CAP_ERROR = 1e-10
# Whose answers are those of another mechanism, of a mixture of its inputs, or a part of them.
_DELEGATES: dict[type, str] = {
    OneHotRandomizedResponse: "law",
    RandomizedResponseWithPrior: "inner",
    ResponseOnBins: "inner",
    PriorQuestion: "inner",
    PrivUnitBall: "sphere",
    ScaledRows: "inner",
}


@dataclass(frozen=True)
class PairLaws:
    """The laws that cover all pairs of inputs, or none where only epsilon is known.

    Parameters
    ----------
    laws : tuple of BlanketLaw
    slack : float, default=0.0
        How far in total variation an answer's law may be from what these cover.
    """

    laws: tuple[BlanketLaw, ...] = ()
    slack: float = 0.0


@singledispatch
def pair_laws(mechanism: Any) -> PairLaws:
    """Give the laws of a mechanism; none for a mechanism of which only epsilon is used here.

    Parameters
    ----------
    mechanism : RowMechanism or FiniteQuery

    Returns
    -------
    PairLaws
    """
    delegate = _DELEGATES.get(type(mechanism))
    return PairLaws() if delegate is None else pair_laws(getattr(mechanism, delegate))


@pair_laws.register
def _(mechanism: GeneralizedRandomizedResponse) -> PairLaws:
    if mechanism.n_classes == 1:
        return PairLaws()
    low = Fraction(mechanism.other_count, TWO_64)
    ratio = Fraction(mechanism.keep_count, mechanism.other_count)
    return PairLaws((_two_levels(ratio, low, low * (mechanism.n_classes - 2)),))


@pair_laws.register
def _(mechanism: UnaryEncoding) -> PairLaws:
    if mechanism.n_classes == 1:
        return PairLaws()
    p, q = Fraction(mechanism.own_count, TWO_64), Fraction(mechanism.other_count, TWO_64)
    # Everybody's bits are at least as likely as q alone makes them, times what a 0 in the true place costs.
    least = (1 - p) / (1 - q)
    ratio = p * (1 - q) / ((1 - p) * q)
    weights = [q * q, q * (1 - q), (1 - q) * q, (1 - q) ** 2]
    return PairLaws((_law([ratio, ratio, 1, 1], [ratio, 1, ratio, 1], [least * weight for weight in weights]),))


@pair_laws.register
def _(mechanism: CategoricalRecord) -> PairLaws:
    columns = [pair_laws(column) for column in mechanism.columns if column.n_classes > 1]
    # A column of which only epsilon is known here is not nothing: without its law there is none of the record.
    known = all(one.laws for one in columns)
    return _together(law for column in columns for law in column.laws) if known else PairLaws()


@pair_laws.register
def _(mechanism: Duchi) -> PairLaws:
    up, down = 2**63 + mechanism.slope, 2**63 - mechanism.slope
    return PairLaws((_two_levels(Fraction(up, down), Fraction(down, TWO_64), Fraction(0)),))


@pair_laws.register
def _(mechanism: DuchiVector) -> PairLaws:
    return PairLaws((_of_caps(mechanism.agreeing_share, Fraction(mechanism.threshold, TWO_64)),))


@pair_laws.register
def _(mechanism: Piecewise) -> PairLaws:
    n_cells, n_inner, base, extra = mechanism.lattice
    if n_cells < 2 * n_inner:
        return PairLaws()
    total = n_cells * base + n_inner * extra
    rest = Fraction((n_cells - 2 * n_inner) * base, total)
    return PairLaws((_two_levels(Fraction(base + extra, base), Fraction(n_inner * base, total), rest),))


@pair_laws.register
def _(mechanism: ThreeOutputs) -> PairLaws:
    table = [mechanism.output_law(x)[1] for x in (-1.0, 0.0, 1.0)]
    # Between the corners the integers follow straight lines but for their rounding, and never leave their range.
    return PairLaws(_of_table(table), slack=2.0**-51)


@pair_laws.register(Hybrid)
@pair_laws.register(HybridThreeOutputs)
def _(mechanism: Hybrid | HybridThreeOutputs) -> PairLaws:
    few, share = pair_laws(mechanism.few_valued), Fraction(mechanism.threshold, TWO_64)
    if not mechanism.threshold:
        return few
    pairs = product(pair_laws(mechanism.piecewise).laws, few.laws)
    return PairLaws(tuple(_either(share, first, second) for first, second in pairs), few.slack)


@pair_laws.register
def _(mechanism: BoundedFeatures) -> PairLaws:
    one, times = pair_laws(mechanism.mechanism), mechanism.n_sampled // mechanism.mechanism.n_outputs
    if times == 1:
        return one
    return _together(one.laws * times) if len(one.laws) == 1 and not one.slack else PairLaws()


@pair_laws.register
def _(mechanism: BitFlip) -> PairLaws:
    return _of_bits(mechanism.laws, mechanism.n_sampled)


@pair_laws.register
def _(mechanism: UnbiasedBitFlip) -> PairLaws:
    return _of_bits((mechanism.law,), mechanism.n_sampled)


@pair_laws.register
def _(mechanism: PrivUnit) -> PairLaws:
    cap = Fraction(mechanism.cap_probability)
    law = _of_caps(cap, Fraction(mechanism.cap_threshold, TWO_64))
    surer = BlanketLaw(law.own * (1 + _CAP_ERROR), law.other * (1 + _CAP_ERROR), law.weights * (1 - _CAP_ERROR))
    return PairLaws((surer,), slack=float(law.weights[0]) * _CAP_ERROR / 2)


@pair_laws.register
def _(mechanism: FiniteQuery) -> PairLaws:
    if mechanism.n_points > _MOST_POINTS:
        return PairLaws()
    return PairLaws(_of_table(mechanism.weights.tolist()))


def _law(own: list[Any], other: list[Any], weights: list[Fraction]) -> BlanketLaw:
    """From exact numbers; kinds without weight are left out."""
    kept = [i for i, weight in enumerate(weights) if weight > 0]

    def floats(values: list[Any]) -> npt.NDArray[np.float64]:
        return np.array([float(values[i]) for i in kept])

    return BlanketLaw(floats(own), floats(other), floats(weights))


def _two_levels(ratio: Fraction, low: Fraction, rest: Fraction) -> BlanketLaw:
    """Answers that are `ratio` times as likely to one input as to the other, or to none more than to the other."""
    return _law([ratio, 1, 1], [1, ratio, 1], [low, low, rest])


def _of_caps(cap: Fraction, chance: Fraction) -> BlanketLaw:
    """An answer uniform on a set of share `cap`, by this chance, else on its complement; opposite sets are disjoint."""
    outside = (1 - chance) / (1 - cap)
    return _two_levels(chance / cap / outside, cap * outside, (1 - 2 * cap) * outside)


def _of_table(table: list[list[int]]) -> tuple[BlanketLaw, ...]:
    """Rows of integer weights of equal sums: all ordered pairs of them, but one of those with the same law."""
    total = sum(table[0])
    columns = [column for column in zip(*table, strict=True) if min(column)]
    least = [min(column) for column in columns]

    kinds = {
        tuple(
            sorted(
                (Fraction(c[i], low), Fraction(c[j], low), Fraction(low, total))
                for c, low in zip(columns, least, strict=True)
            )
        )
        for i, j in permutations(range(len(table)), 2)
    }
    return tuple(_law(*map(list, zip(*law, strict=True))) for law in sorted(kinds))


def _either(share: Fraction, first: BlanketLaw, second: BlanketLaw) -> BlanketLaw:
    """The first mechanism's answer by this chance, else the second's, told apart."""
    parts = [(float(share), first), (float(1 - share), second)]

    def joined(name: str) -> npt.NDArray[np.float64]:
        return np.concatenate([getattr(law, name) for _, law in parts])

    return BlanketLaw(joined("own"), joined("other"), np.concatenate([part * law.weights for part, law in parts]))


def _together(laws: Iterable[BlanketLaw]) -> PairLaws:
    """Independent answers of one person; nothing where there are too many kinds of them."""
    whole: BlanketLaw | None = None
    for law in laws:
        whole = law if whole is None else whole.times(law)
        if whole.weights.size > _MOST_KINDS:
            return PairLaws()
    return PairLaws() if whole is None else PairLaws((whole,))


def _of_bits(laws: tuple[BitLaw, ...], n_sampled: int) -> PairLaws:
    """Codes of which every bit differs are the worst where bits flip either way alike."""
    if len(laws) > 1 or not laws[0].symmetric:
        return PairLaws()
    flips = [min(int(flip), TWO_64 - int(flip)) for flip in laws[0].from_zero if int(flip) != TWO_64 // 2]
    bits = [_two_levels(Fraction(TWO_64 - flip, flip), Fraction(flip, TWO_64), Fraction(0)) for flip in flips]
    return _together(law for law in bits for _ in range(n_sampled))
