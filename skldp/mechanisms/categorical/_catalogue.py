"""Mechanisms of categories by name, and the choice of the best one."""

from collections.abc import Callable

from skldp.mechanisms.categorical._hadamard import OneHotHadamard
from skldp.mechanisms.categorical._local_hashing import OneHotLocalHashing
from skldp.mechanisms.categorical._unary import (
    OneHotMechanism,
    OneHotRandomizedResponse,
    SubsetSelection,
    UnaryEncoding,
)

_ONE_HOT: dict[str, Callable[[float, int], OneHotMechanism]] = {
    "krr": OneHotRandomizedResponse,
    "sue": lambda epsilon, n_classes: UnaryEncoding(epsilon, n_classes, "sue"),
    "oue": lambda epsilon, n_classes: UnaryEncoding(epsilon, n_classes, "oue"),
    "subset": SubsetSelection,
    "hashing": OneHotLocalHashing,
    "hadamard": OneHotHadamard,
}
#: Names of the mechanisms of a column of categories; each releases a bit per category.
CATEGORICAL_MECHANISMS = tuple(_ONE_HOT)
# A shorter report is worth 5% of variance.
_TOLERANCE = 1.05


def make_categorical_mechanism(name: str, epsilon: float, n_classes: int) -> OneHotMechanism:
    """Make the mechanism of one of :data:`CATEGORICAL_MECHANISMS`, or of ``"best"``."""
    return best_categorical_mechanism(epsilon, n_classes)[1] if name == "best" else _ONE_HOT[name](epsilon, n_classes)


def best_categorical_mechanism(epsilon: float, n_classes: int) -> tuple[str, OneHotMechanism]:
    """Return the mechanism with the shortest report among those of nearly the least worst-case variance.

    The variance of an unbiased frequency, averaged over the categories, is the same for all populations. Subset
    selection has the least (Ye and Barg, 2018).
    """
    made = {name: make(epsilon, n_classes) for name, make in _ONE_HOT.items()}
    most = _TOLERANCE * min(mechanism.worst_case_variance for mechanism in made.values())
    near = [name for name, mechanism in made.items() if mechanism.worst_case_variance <= most]
    best = min(near, key=lambda name: made[name].report_bits)
    return best, made[best]
