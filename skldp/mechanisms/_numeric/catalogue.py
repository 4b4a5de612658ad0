r"""All mechanisms for numbers by name, and the choice of the best one for a number of features and an epsilon."""

from collections.abc import Callable
from typing import Any

from skldp._checks import is_whole
from skldp.mechanisms._numeric.additive import Gaussian, Laplace
from skldp.mechanisms._numeric.bounded_features import automatic_n_sampled, worst_sampled_variance
from skldp.mechanisms._numeric.duchi import MOST_VALUES, Duchi, DuchiVector
from skldp.mechanisms._numeric.hybrid import Hybrid, HybridThreeOutputs
from skldp.mechanisms._numeric.piecewise import Piecewise
from skldp.mechanisms._numeric.square_wave import SquareWave
from skldp.mechanisms._numeric.three_outputs import ThreeOutputs
from skldp.mechanisms._numeric.unit_interval import LEAST_EPSILON, UnitMechanism
from skldp.mechanisms._odds import split_epsilon

__all__ = ["JOINT_MECHANISMS", "NUMERIC_MECHANISMS", "best_mechanism", "make_mechanism", "number_of_sampled_features"]

_ALONE: dict[str, Callable[[float], UnitMechanism]] = {
    "duchi": Duchi,
    "three_outputs": ThreeOutputs,
    "piecewise": Piecewise,
    "piecewise_sub": lambda epsilon: Piecewise(epsilon, "sub"),
    "piecewise_opt": lambda epsilon: Piecewise(epsilon, "opt"),
    "square_wave": SquareWave,
    "hybrid": Hybrid,
    "hybrid_tp": HybridThreeOutputs,
    "laplace": Laplace,
    # Sun, Qian and Chen, IJCAI 2021: Duchi's answer about a public centre, which is the middle of the bounds.
    "ldp_fl": Duchi,
}
JOINT_MECHANISMS = ("duchi_vector", "gaussian")
#: The names that :func:`make_mechanism` knows: those for one value, then those for several values together.
NUMERIC_MECHANISMS = (*_ALONE, *JOINT_MECHANISMS)


def number_of_sampled_features(n_sampled: Any, mechanism: str, epsilon: float, n_features: int) -> int:
    """Resolve ``"auto"``, ``"all"`` or a number into how many features are released.

    ``"auto"`` is :func:`~skldp.mechanisms._numeric.bounded_features.automatic_n_sampled` for mechanisms that release
    each feature alone, and all of them for those that release features together, Duchi's vector and the Gaussian.

    Examples
    --------
    >>> from skldp.mechanisms._numeric.catalogue import number_of_sampled_features
    >>> number_of_sampled_features("auto", "hybrid", 1.0, 64), number_of_sampled_features("auto", "gaussian", 1.0, 64)
    (1, 64)
    """
    if isinstance(n_sampled, str) and n_sampled in ("auto", "all"):
        if n_sampled == "all" or mechanism in JOINT_MECHANISMS:
            return n_features
        return automatic_n_sampled(epsilon, n_features)
    if not is_whole(n_sampled) or not 1 <= int(n_sampled) <= n_features:
        raise ValueError(
            f"n_sampled_features must be 'auto', 'all', or a whole number from 1 to the number of features, "
            f"{n_features}. Got {n_sampled!r} instead."
        )
    return int(n_sampled)


def make_mechanism(name: str, epsilon: float, n_released: int = 1, delta: float = 0.0) -> UnitMechanism:
    """Make the mechanism that releases a number of values in [-1, 1] within one epsilon.

    Parameters
    ----------
    name : str
        One of :data:`NUMERIC_MECHANISMS`.
    epsilon : float
        Natural log, for all released values together.
    n_released : int, default=1
    delta : float, default=0.0
        Above 0 for the Gaussian, 0 for the others.

    Returns
    -------
    mechanism
        For each value alone, with its share of epsilon, or for all of them together.

    Raises
    ------
    ValueError
        If there is no such mechanism, delta is missing or not wanted, or epsilon is too small for the number of
        values: the least usable one is in the text.

    Examples
    --------
    >>> from skldp.mechanisms import make_mechanism
    >>> make_mechanism("hybrid", 6.0, n_released=2)
    Hybrid(epsilon=3.0, lattice_bits=24)
    """
    if name not in NUMERIC_MECHANISMS:
        raise ValueError(f"mechanism must be one of {NUMERIC_MECHANISMS}. Got {name!r} instead.")
    if name == "gaussian":
        return Gaussian(epsilon, delta, n_released)
    if delta != 0:
        raise ValueError(f"Only the Gaussian mechanism has a delta; for {name!r} it must be 0. Got {delta!r} instead.")
    if name == "duchi_vector":
        return DuchiVector(epsilon, n_released)
    if 0 < epsilon / n_released < LEAST_EPSILON:
        raise ValueError(
            f"epsilon must be at least {LEAST_EPSILON * n_released:.3g} where {n_released} values share it, because "
            f"smaller shares round away in 64-bit probabilities. Got {epsilon!r} instead."
        )
    return _ALONE[name](split_epsilon(float(epsilon), n_released))


def best_mechanism(
    epsilon: float, n_features: int, *, n_sampled: Any = "auto", delta: float = 0.0
) -> tuple[str, UnitMechanism, int]:
    """Find the mechanism with the least worst-case variance of a feature.

    Parameters
    ----------
    epsilon : float
        Natural log, for a whole row.
    n_features : int
    n_sampled : "auto", "all" or int, default="auto"
        How many features of a row are released, as in ``number_of_sampled_features``.
    delta : float, default=0.0
        Above 0, the Gaussian is among the candidates.

    Returns
    -------
    name : str
    mechanism
    n_released : int

    Examples
    --------
    >>> from skldp.mechanisms import best_mechanism
    >>> best_mechanism(0.5, 1)[0], best_mechanism(1.0, 1)[0], best_mechanism(4.0, 1)[0]
    ('duchi', 'hybrid', 'hybrid_tp')
    """
    best = None
    for name in NUMERIC_MECHANISMS:
        if name == "ldp_fl" or (name == "gaussian" and delta == 0):
            continue
        n_released = number_of_sampled_features(n_sampled, name, epsilon, n_features)
        if name == "duchi_vector" and n_released > MOST_VALUES:
            continue
        mechanism = make_mechanism(name, epsilon, n_released, delta if name == "gaussian" else 0.0)
        variance = worst_sampled_variance(mechanism, n_features, n_released)
        # Equal laws may differ in the last digits: the simpler one, which comes first, keeps its place.
        if best is None or variance < best[0] * (1 - 1e-9):
            best = variance, name, mechanism, n_released
    assert best is not None
    return best[1:]
