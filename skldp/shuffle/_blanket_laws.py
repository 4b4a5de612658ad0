r"""Blanket laws of each mechanism's answers: the laws of two inputs, and the common part of all laws.

Every law covers all pairs of inputs. If the law of an answer is linear in the input between corners, the corners
suffice, because the bound is convex in either law. If two inputs favor two sets of answers, disjoint sets are the
worst case: with four equal weights, the ratios (p, 1) and (1, p) have the same mean of X as (p, p) and (1, 1), and are
further apart. Other parts of a release, such as the choice of sampled features, only increase the bound.

Post-processing of each person's answer cannot increase the bound. A bit that flips to 1 and to 0 with different
probabilities is therefore treated as one of three answers, two of which are equally likely under both inputs. Its
common part is larger than that of a bit with symmetric flips.
"""

import decimal
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import singledispatch
from itertools import compress, pairwise, permutations, product
from typing import Any

import numpy as np

from skldp.laws._categories import ResponseLaw, UnaryLaw
from skldp.laws._few_answers import ThreeAnswersLaw, TwoAnswersLaw
from skldp.laws._lattice import LatticeLaw, MixtureLaw
from skldp.laws._numbers import SignsLaw, n_agreeing
from skldp.laws._odds import TWO_64
from skldp.mechanisms._finite_query import FiniteQuery
from skldp.mechanisms._record import CategoricalRecord
from skldp.mechanisms.bits._bit_flip import BitFlip
from skldp.mechanisms.bits._flip_laws import BitLaw
from skldp.mechanisms.bits._unbiased import UnbiasedBitFlip
from skldp.mechanisms.categorical._label_laws import RandomizedResponseWithPrior
from skldp.mechanisms.categorical._randomized_response import CategoryMechanism
from skldp.mechanisms.numeric._additive import Laplace
from skldp.mechanisms.numeric._bounded_features import BoundedFeatures, PrivUnitBox
from skldp.mechanisms.numeric._points import ResponseOnBins
from skldp.mechanisms.numeric._unit_mechanisms import UnitLawMechanism
from skldp.mechanisms.vector._privunit import PrivUnit, PrivUnitBall, ScaledRows
from skldp.shuffle._shuffle_bounds import MOST_EPSILON, BlanketLaw

# Limits of the number of kinds of answers and of a table's points. Beyond them, only epsilon is used.
_MOST_KINDS = 2_000
_MOST_POINTS = 5
# Number of parts of the losses of Laplace noise, so that two values of a person stay within the limit of kinds.
_PARTS = 20
_DIGITS = 50
# Bound on the relative errors due to a cap's probability, whose relative error is below 1e-11.
_CAP_ERROR = 1e-10
# Mechanisms whose answers are those of another one, of a mixture of its inputs, or a part of them.
_DELEGATES: dict[type, str] = {
    RandomizedResponseWithPrior: "inner",
    ResponseOnBins: "inner",
    PrivUnitBall: "sphere",
    PrivUnitBox: "inner",
    ScaledRows: "inner",
}


@dataclass(frozen=True)
class PairLaws:
    """Laws that cover all pairs of inputs; none if only epsilon is known."""

    laws: tuple[BlanketLaw, ...] = ()
    slack: float = 0.0
    chances: tuple[Fraction, Fraction] | None = None


@singledispatch
def pair_laws(mechanism: Any) -> PairLaws:
    """Return the laws of a mechanism; none if only its epsilon is used."""
    delegate = _DELEGATES.get(type(mechanism))
    return PairLaws() if delegate is None else pair_laws(getattr(mechanism, delegate))


@pair_laws.register
def _(mechanism: UnitLawMechanism) -> PairLaws:
    return pair_laws(mechanism.integer_law)


@pair_laws.register
def _(mechanism: CategoryMechanism) -> PairLaws:
    return PairLaws() if mechanism.n_classes == 1 else pair_laws(mechanism.law)


@pair_laws.register
def _(law: ResponseLaw) -> PairLaws:
    low, ratio = Fraction(law.other_count, TWO_64), Fraction(*law.ratio)
    chances = (low, 1 - low) if law.n_codes == 2 else None
    return PairLaws((_two_levels(ratio, low, low * (law.n_codes - 2)),), chances=chances)


@pair_laws.register
def _(law: UnaryLaw) -> PairLaws:
    p, q, ratio = Fraction(law.own_count, TWO_64), Fraction(law.other_count, TWO_64), Fraction(*law.ratio)
    # Every law of bits is at least the law with q for all bits, times the cost of a 0 at the true position.
    least = (1 - p) / (1 - q)
    weights = [least * weight for weight in (q * q, q * (1 - q), (1 - q) * q, (1 - q) ** 2)]
    return PairLaws((_law([ratio, ratio, 1, 1], [ratio, 1, ratio, 1], weights),))


@pair_laws.register
def _(mechanism: CategoricalRecord) -> PairLaws:
    columns = [pair_laws(column) for column in mechanism.parts if column.n_classes > 1]
    if len(columns) == 1 and mechanism.n_sampled is None:
        return columns[0]
    # A column without a law leaves the record without one, and a sample of columns has no law here.
    known = mechanism.n_sampled is None and all(one.laws for one in columns)
    return _together(law for column in columns for law in column.laws) if known else PairLaws()


@pair_laws.register
def _(law: TwoAnswersLaw) -> PairLaws:
    up, down = law.ratio
    return PairLaws(
        (_two_levels(Fraction(up, down), Fraction(down, TWO_64), Fraction(0)),),
        chances=(Fraction(down, TWO_64), Fraction(up, TWO_64)),
    )


@pair_laws.register
def _(law: SignsLaw) -> PairLaws:
    share = Fraction(n_agreeing(law.n_values), law.n_answers)
    return PairLaws((_of_caps(share, Fraction(law.agreeing_count, TWO_64)),))


@pair_laws.register
def _(law: LatticeLaw) -> PairLaws:
    if law.n_cells < 2 * law.n_inner:
        return PairLaws()
    rest = Fraction((law.n_cells - 2 * law.n_inner) * law.base, law.total)
    return PairLaws((_two_levels(Fraction(*law.ratio), Fraction(law.n_inner * law.base, law.total), rest),))


@pair_laws.register
def _(law: ThreeAnswersLaw) -> PairLaws:
    table = [law.support(x)[1] for x in (-1.0, 0.0, 1.0)]
    # Between the corners, the integers are linear up to rounding, and stay within their range.
    return PairLaws(_of_table(table), slack=2.0**-51)


@pair_laws.register
def _(law: MixtureLaw) -> PairLaws:
    few, share = pair_laws(law.few), Fraction(law.lattice_count, TWO_64)
    pairs = product(pair_laws(law.lattice).laws, few.laws)
    return PairLaws(tuple(_either(share, first, second) for first, second in pairs), few.slack)


@pair_laws.register
def _(mechanism: BoundedFeatures) -> PairLaws:
    one, times = pair_laws(mechanism.mechanism), mechanism.n_sampled // mechanism.mechanism.n_outputs
    if times == 1:
        # The released feature is part of the answer.
        return one if mechanism.n_outputs == 1 else replace(one, chances=None)
    return _together(one.laws * times) if len(one.laws) == 1 and not one.slack else PairLaws()


@pair_laws.register
def _(mechanism: Laplace) -> PairLaws:
    """Return the laws of -1 and 1, which are the worst pair."""
    # With ends -N and N and scale s in lattice steps, every answer z has at least the probability C e^{-(|z| + N) / s}.
    # The input x multiplies it by e^{(|z| + N - |z - x|) / s}, increasing in z for x >= 0 and decreasing for x <= 0.
    # The difference X of two such factors is largest in convex order if x and x' are on different sides of 0; X then
    # increases with z, and N in place of x lowers it up to some z and raises it beyond, with the same mean: larger
    # again. Rounding to the lattice mixes inputs.
    if mechanism.exact_epsilon > MOST_EPSILON:
        return PairLaws()
    n_steps, scale = 2**mechanism.lattice_exponent, mechanism.scale
    edges = sorted({1 + part * (n_steps - 1) // _PARTS for part in range(_PARTS + 1)})
    with decimal.localcontext() as context:
        context.prec = _DIGITS

        def grown(steps: int) -> decimal.Decimal:
            return (decimal.Decimal(steps) / scale).exp()

        least, one = 1 / grown(n_steps), grown(1)
        # Answers at 0 and from N are exact; others are split between the ends of their part, with the same mean.
        weights = {grown(2 * n_steps): least * least / (1 + 1 / one)}
        for low, high in pairwise(edges):
            mass = least * (1 / grown(low) - 1 / grown(high)) / (1 + 1 / one)
            mean = least * (grown(high) - grown(low)) / (1 + one)
            from_, to = grown(2 * low), grown(2 * high)
            above = (mean - from_ * mass) / (to - from_)
            weights[from_] = weights.get(from_, decimal.Decimal(0)) + mass - above
            weights[to] = weights.get(to, decimal.Decimal(0)) + above
        middle = least * (1 - 1 / one) / (1 + 1 / one)
        ratios, chances = (list(map(Fraction, part)) for part in zip(*sorted(weights.items()), strict=True))
    ones = [Fraction(1)] * len(ratios)
    own, other = [*ratios, *ones, Fraction(1)], [*ones, *ratios, Fraction(1)]
    return PairLaws((_law(own, other, [*chances, *chances, Fraction(middle)]),))


@pair_laws.register
def _(mechanism: BitFlip) -> PairLaws:
    # Sampled features with different laws have no common law.
    if len(mechanism.laws) > 1 and mechanism.n_sampled < mechanism.n_outputs:
        return PairLaws()
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
    table = mechanism.weights.tolist()
    second = [Fraction(row[-1], sum(row)) for row in table]
    return PairLaws(_of_table(table), chances=(min(second), max(second)) if len(table[0]) == 2 else None)


def _law(own: list[Any], other: list[Any], weights: list[Fraction]) -> BlanketLaw:
    """Return the law of exact numbers, without kinds of weight 0."""
    kept = [weight > 0 for weight in weights]
    first, second, shared = (np.array(list(map(float, compress(column, kept)))) for column in (own, other, weights))
    return BlanketLaw(first, second, shared)


def _two_levels(ratio: Fraction, low: Fraction, rest: Fraction) -> BlanketLaw:
    """Return the law of answers that are `ratio` times as likely under one input, the other, or neither."""
    return _law([ratio, 1, 1], [1, ratio, 1], [low, low, rest])


def _of_caps(cap: Fraction, chance: Fraction) -> BlanketLaw:
    """Return the law of an answer uniform on a set of share `cap` with this probability, else on its complement."""
    outside = (1 - chance) / (1 - cap)
    return _two_levels(chance / cap / outside, cap * outside, (1 - 2 * cap) * outside)


def _of_table(table: list[list[int]]) -> tuple[BlanketLaw, ...]:
    """Return the laws of all ordered pairs of rows of integer weights with equal sums, each once."""
    total = sum(table[0])
    columns = [column for column in zip(*table, strict=True) if min(column)]
    least = [min(column) for column in columns]

    kinds = set()
    for i, j in permutations(range(len(table)), 2):
        pairs = zip(columns, least, strict=True)
        law = [(Fraction(c[i], low), Fraction(c[j], low), Fraction(low, total)) for c, low in pairs]
        kinds.add(tuple(sorted(law)))
    return tuple(_law(*map(list, zip(*law, strict=True))) for law in sorted(kinds))


def _either(share: Fraction, first: BlanketLaw, second: BlanketLaw) -> BlanketLaw:
    """Return the law of a mixture whose parts are distinguishable."""
    weights = np.concatenate([float(share) * first.weights, float(1 - share) * second.weights])
    own, other = np.append(first.own, second.own), np.append(first.other, second.other)
    return BlanketLaw(own, other, weights)


def _together(laws: Iterable[BlanketLaw]) -> PairLaws:
    """Return the law of independent answers of one person; none if there are too many kinds."""
    whole: BlanketLaw | None = None
    for law in laws:
        whole = law if whole is None else whole.times(law)
        if whole.weights.size > _MOST_KINDS:
            return PairLaws()
    return PairLaws() if whole is None else PairLaws((whole,))


def _of_bits(laws: tuple[BitLaw, ...], n_sampled: int) -> PairLaws:
    """Return the laws of bits: codes that differ in every bit are the worst pair."""
    features = [laws[place % len(laws)] for place in range(n_sampled)]
    return _together(
        _of_bit(Fraction(one, TWO_64), Fraction(zero, TWO_64))
        for law in features
        for one, zero in zip(law.from_one.tolist(), law.from_zero.tolist(), strict=True)
        if one != zero
    )


def _of_bit(from_one: Fraction, from_zero: Fraction) -> BlanketLaw:
    """Return the law of a bit from its probabilities of 1."""
    low, high = sorted((from_one, from_zero))
    if low + high > 1:
        low, high = 1 - high, 1 - low
    return _two_levels(high / low, low, 1 - low - high)
