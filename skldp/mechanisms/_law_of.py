"""From a mechanism for tables to the law of one value that its integers are, for a person's own device."""

import math
from typing import Any

import numpy as np

from skldp.mechanisms._bin_laws import PLACES, BinsLaw, BitsLaw, KnotsLaw
from skldp.mechanisms._bits.flip_laws import BitLaw
from skldp.mechanisms._bits.unbiased import UnbiasedBitFlip
from skldp.mechanisms._categorical.hadamard import HadamardResponse, OneHotHadamard
from skldp.mechanisms._categorical.local_hashing import LocalHashing, OneHotLocalHashing
from skldp.mechanisms._categorical.randomized_response import GeneralizedRandomizedResponse
from skldp.mechanisms._categorical.subset import SubsetSelection
from skldp.mechanisms._categorical.unary import OneHotRandomizedResponse, UnaryEncoding
from skldp.mechanisms._category_laws import HadamardLaw, HashingLaw, SubsetLaw
from skldp.mechanisms._code_laws import ResponseLaw, UnaryLaw
from skldp.mechanisms._group_laws import SampledLaw, SignsLaw
from skldp.mechanisms._integer_laws import CodeLaw, IntegerLaw, TwoStepLaw, UnitLaw
from skldp.mechanisms._number_laws import LatticeLaw, MixtureLaw, ThreeAnswersLaw, TwoAnswersLaw
from skldp.mechanisms._numeric.additive import Gaussian, Laplace
from skldp.mechanisms._numeric.bounded_features import BoundedFeatures
from skldp.mechanisms._numeric.duchi import Duchi, DuchiVector
from skldp.mechanisms._numeric.hybrid import Hybrid, HybridThreeOutputs
from skldp.mechanisms._numeric.piecewise import Piecewise
from skldp.mechanisms._numeric.response_on_bins import ResponseOnBins
from skldp.mechanisms._numeric.three_outputs import ThreeOutputs

__all__ = ["integer_law", "law_within_bounds"]


def integer_law(mechanism: Any) -> IntegerLaw:
    """The law that a mechanism samples, by its integers alone.

    Parameters
    ----------
    mechanism : RowMechanism
        Of one category: RandomizedResponse, LabelLaplaceMechanism, UnaryEncoding, OneHotRandomizedResponse,
        SubsetSelection, LocalHashing, OneHotLocalHashing, HadamardResponse, OneHotHadamard or LongitudinalCategories.
        Of one number in [-1, 1]: Duchi, ThreeOutputs, Piecewise, Hybrid or HybridThreeOutputs. Of several together:
        DuchiVector.

    Returns
    -------
    IntegerLaw
        Of the same probabilities, to the last bit; its words are read in another order.

    Raises
    ------
    ValueError
        If the mechanism is of another kind, or of a single category, of which nothing is to be released.

    Examples
    --------
    >>> from skldp.mechanisms import Duchi, integer_law
    >>> round(integer_law(Duchi(1.0)).epsilon, 6)
    1.0
    """
    if isinstance(of_two_steps := _of_two_steps(mechanism), CodeLaw):
        return of_two_steps
    match mechanism:
        case GeneralizedRandomizedResponse(n_classes=n) if n > 1:
            return ResponseLaw(n, mechanism.other_count)
        case OneHotRandomizedResponse() | OneHotLocalHashing() | OneHotHadamard() if mechanism.n_classes > 1:
            return integer_law(mechanism.law)
        case UnaryEncoding(n_classes=n) if n > 1:
            return UnaryLaw(n, mechanism.own_count, mechanism.other_count)
        case SubsetSelection(n_classes=n) if n > 1:
            return SubsetLaw(n, mechanism.set_size, mechanism.miss_count)
        case LocalHashing(n_classes=n) if n > 1:
            return HashingLaw(n, mechanism.n_buckets, mechanism.answers.other_count)
        case HadamardResponse(n_classes=n) if n > 1:
            return HadamardLaw(n, mechanism.n_blocks, mechanism.block_size, mechanism.miss_count)
        case _:
            return _of_numbers(mechanism)


def law_within_bounds(mechanism: Any) -> IntegerLaw:
    """The law that a mechanism of numbers within bounds samples of their places in [-1, 1].

    Parameters
    ----------
    mechanism : RowMechanism
        BoundedFeatures of one that :func:`integer_law` takes, UnbiasedBitFlip, ResponseOnBins, LongitudinalMean or
        LongitudinalHistogram.

    Returns
    -------
    IntegerLaw
        Which does not tell the bounds. It is of one number where each is released on its own, and of all where some are
        sampled, or all are answered together. Places of bins and knots are rounded to multiples of 2^-53, of which
        epsilon does not depend.

    Raises
    ------
    ValueError
        If the mechanism is of another kind, or tells nothing.

    Examples
    --------
    >>> from skldp.mechanisms import BoundedFeatures, Duchi, law_within_bounds
    >>> release = BoundedFeatures(Duchi(1.0), (0.0, 0.0), (9.0, 9.0), n_sampled=1, stated=1.0)
    >>> law_within_bounds(release).name
    'sampled'
    """
    if isinstance(of_two_steps := _of_two_steps(mechanism), UnitLaw):
        return of_two_steps
    match mechanism:
        case ResponseOnBins() if mechanism.answers.size > 1:
            return _on_bins(mechanism)
        case BoundedFeatures():
            return _sampled(mechanism, integer_law(mechanism.mechanism))
        case UnbiasedBitFlip():
            return _sampled(mechanism, BitsLaw(_flip_counts(mechanism.law)))
    raise ValueError(f"The mechanism must be of numbers within bounds, and tell something. Got {mechanism!r}.")


def _of_two_steps(mechanism: Any) -> TwoStepLaw | None:
    # These have their integers at hand, and need this module for the keys of their steps.
    law = getattr(mechanism, "law", None)
    return law if isinstance(law, TwoStepLaw) else None


def _of_numbers(mechanism: Any) -> IntegerLaw:
    match mechanism:
        case Duchi():
            return TwoAnswersLaw(mechanism.slope)
        case DuchiVector():
            return SignsLaw(mechanism.n_outputs, mechanism.threshold)
        case ThreeOutputs():
            return ThreeAnswersLaw(*mechanism.integers)
        case Piecewise():
            return _lattice(mechanism)
        case Hybrid() | HybridThreeOutputs():
            few = integer_law(mechanism.few_valued)
            assert isinstance(few, TwoAnswersLaw | ThreeAnswersLaw)
            return MixtureLaw(mechanism.threshold, _lattice(mechanism.piecewise), few) if mechanism.threshold else few
    why = " Its noise has no largest number." if isinstance(mechanism, Laplace | Gaussian) else ""
    raise ValueError(
        f"The mechanism must be of integers, and of one value that tells something. Got {mechanism!r}.{why}"
    )


def _lattice(mechanism: Piecewise) -> LatticeLaw:
    # The step is a power of two, and frexp's fraction lies from one half to 1.
    return LatticeLaw(*mechanism.lattice, math.frexp(mechanism.step)[1] - 1)


def _on_bins(mechanism: ResponseOnBins) -> IntegerLaw:
    response = ResponseLaw(mechanism.answers.size, mechanism.inner.other_count)
    bins = mechanism.unit_bins
    places = tuple(round(place * PLACES) for place in bins.places)
    if mechanism.unbiased:
        return KnotsLaw(response, places)
    return BinsLaw(response, places, tuple(round(answer * PLACES) for answer in bins.answers))


def _flip_counts(law: BitLaw) -> tuple[int, ...]:
    return tuple(np.asarray(law.from_zero).tolist())


def _sampled(mechanism: BoundedFeatures | UnbiasedBitFlip, alone: IntegerLaw) -> IntegerLaw:
    n, k = mechanism.n_outputs, mechanism.n_sampled
    assert isinstance(alone, UnitLaw | SignsLaw)
    return SampledLaw(n, k, alone) if k < n else alone
