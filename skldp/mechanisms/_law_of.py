"""From a mechanism for tables to the law of one value that its integers are, for a person's own device."""

import math
from typing import Any

from skldp.mechanisms._categorical.randomized_response import GeneralizedRandomizedResponse
from skldp.mechanisms._categorical.unary import OneHotRandomizedResponse, UnaryEncoding
from skldp.mechanisms._integer_laws import (
    IntegerLaw,
    LatticeLaw,
    MixtureLaw,
    ResponseLaw,
    ThreeAnswersLaw,
    TwoAnswersLaw,
    UnaryLaw,
)
from skldp.mechanisms._numeric.duchi import Duchi
from skldp.mechanisms._numeric.hybrid import Hybrid, HybridThreeOutputs
from skldp.mechanisms._numeric.piecewise import Piecewise
from skldp.mechanisms._numeric.three_outputs import ThreeOutputs

__all__ = ["integer_law"]


def integer_law(mechanism: Any) -> IntegerLaw:
    """The law that a mechanism samples, by its integers alone.

    Parameters
    ----------
    mechanism : RowMechanism
        Of one value: RandomizedResponse, LabelLaplaceMechanism, UnaryEncoding, OneHotRandomizedResponse, Duchi,
        ThreeOutputs, Piecewise, Hybrid or HybridThreeOutputs.

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
    match mechanism:
        case GeneralizedRandomizedResponse(n_classes=n) if n > 1:
            return ResponseLaw(n, mechanism.other_count)
        case OneHotRandomizedResponse(n_classes=n) if n > 1:
            return integer_law(mechanism.law)
        case UnaryEncoding(n_classes=n) if n > 1:
            return UnaryLaw(n, mechanism.own_count, mechanism.other_count)
        case Duchi():
            return TwoAnswersLaw(mechanism.slope)
        case ThreeOutputs():
            return ThreeAnswersLaw(*mechanism.integers)
        case Piecewise():
            return _lattice(mechanism)
        case Hybrid() | HybridThreeOutputs():
            few = integer_law(mechanism.few_valued)
            assert isinstance(few, TwoAnswersLaw | ThreeAnswersLaw)
            return MixtureLaw(mechanism.threshold, _lattice(mechanism.piecewise), few) if mechanism.threshold else few
    raise ValueError(f"The mechanism must be of integers, and of one value that tells something. Got {mechanism!r}.")


def _lattice(mechanism: Piecewise) -> LatticeLaw:
    # The step is a power of two, and frexp's fraction lies from one half to 1.
    return LatticeLaw(*mechanism.lattice, math.frexp(mechanism.step)[1] - 1)
