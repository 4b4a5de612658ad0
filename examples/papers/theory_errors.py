"""The theory figures of the BitRand paper that compare mechanisms for numbers, with the exact epsilon beside."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from bit_laws import baseline_laws, exact_epsilon, expected_error
from theory_table import TheoryTable

from skldp.domains._domain import Box
from skldp.laws._odds import product_above, split_epsilon
from skldp.mechanisms.bits._bit_flip import BitFlip
from skldp.mechanisms.bits._fixed_point import FixedPoint
from skldp.mechanisms.numeric._additive import Gaussian, Laplace
from skldp.mechanisms.numeric._bounded_features import JOINT_MECHANISMS, BoundedFeatures, make_mechanism
from skldp.mechanisms.numeric._unit_mechanisms import Duchi, Hybrid, HybridThreeOutputs, Piecewise, ThreeOutputs

__all__ = ["expected_errors", "mean_errors"]

# Coarse enough to sum over all outputs, fine enough for three digits.
_LATTICE_BITS = 12
_FINITE: dict[str, Callable[[float], Any]] = {
    "Duchi": Duchi,
    "Three-Outputs": ThreeOutputs,
    "PM": lambda epsilon: Piecewise(epsilon, "pm", _LATTICE_BITS),
    "PM-SUB": lambda epsilon: Piecewise(epsilon, "sub", _LATTICE_BITS),
    "HM": lambda epsilon: Hybrid(epsilon, _LATTICE_BITS),
    "HM-TP": lambda epsilon: HybridThreeOutputs(epsilon, _LATTICE_BITS),
}
_NUMERIC = {
    "Duchi, all features": "duchi_vector",
    "Three-Outputs": "three_outputs",
    "PM": "piecewise",
    "PM-SUB": "piecewise_sub",
    "HM": "hybrid",
    "HM-TP": "hybrid_tp",
    "Laplace": "laplace",
    "Gaussian": "gaussian",
}


def expected_errors(
    epsilons: Iterable[float] = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0),
    *,
    n_features: int = 1000,
    n_bits: int = 10,
    n_integer_bits: int = 5,
    delta: float = 1e-5,
) -> TheoryTable:
    r"""Tabulate the expected absolute error of one feature for all mechanisms (Figure 3).

    Parameters
    ----------
    epsilons : iterable of float
        Stated, for the whole record.
    n_features, n_bits, n_integer_bits : int
        r, l and m. Values are spread evenly over all codes, from -a to a with :math:`a = 2^m - 2^{m-l+1}`.
    delta : float, default=1e-5
        Of the Gaussian.

    Returns
    -------
    TheoryTable
        Columns mechanism, epsilon, error, exact_epsilon; drawn over either epsilon.

    Notes
    -----
    For laws of bits it is Theorem 4's bound :math:`\sum_i q_i \Delta_i`. The others release every feature with an equal
    share of epsilon (the Gaussian all features together). "Constant 0" releases nothing at all.

    References
    ----------
    BitRand, Theorem 4 and Figure 3.

    Examples
    --------
    >>> from theory_errors import expected_errors
    >>> table = expected_errors([1.0])
    >>> error = dict(zip(table.columns["mechanism"].tolist(), table.columns["error"].round(1).tolist()))
    >>> error["f-RR"], error["Constant 0"], error["Laplace"]
    (29.6, 16.0, 63875.0)
    """
    encoding = FixedPoint(n_bits, n_integer_bits)
    reach = _largest(encoding)
    rows = []
    for epsilon in epsilons:
        for name, laws in baseline_laws(epsilon, n_features, n_bits, n_integer_bits).items():
            rows.append((name, epsilon, expected_error(laws, n_integer_bits), exact_epsilon(laws, n_features)))
        share = split_epsilon(epsilon, n_features)
        for name, make in _FINITE.items():
            exact = product_above(make(share).exact_epsilon, n_features)
            rows.append((name, epsilon, reach * _mean_absolute_error(make(share)), exact))
        laplace, gaussian = Laplace(share), Gaussian(epsilon, delta, n_features)
        spread = math.sqrt(laplace.worst_variance / 2)
        rows.append(("Laplace", epsilon, reach * spread, product_above(laplace.exact_epsilon, n_features)))
        spread = math.sqrt(gaussian.worst_variance * 2 / math.pi)
        rows.append(("Gaussian", epsilon, reach * spread, gaussian.guarantee().epsilon))
        rows.append(("Constant 0", epsilon, reach / 2, 0.0))
    return TheoryTable.of_rows(
        "Figure 3: expected error of one feature",
        "mechanism, epsilon, error, exact_epsilon",
        rows,
        x="epsilon",
        y="error",
        lines=("mechanism",),
        log_x=True,
        log_y=True,
    )


def mean_errors(
    epsilons: Iterable[float] = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0),
    *,
    n_samples: int = 1000,
    n_features: int = 768,
    n_bits: int = 10,
    n_integer_bits: int = 5,
    delta: float = 1e-5,
    centers: Iterable[float] = (0.0, 0.5),
) -> TheoryTable:
    r"""Tabulate the root mean square error of a mean over people, for all mechanisms (Figure 10).

    Parameters
    ----------
    epsilons : iterable of float
        Stated, for the whole record.
    n_samples, n_features, n_bits, n_integer_bits : int
        N, d, l and m.
    delta : float, default=1e-5
        Of the Gaussian.
    centers : iterable of float, default=(0.0, 0.5)
        Values are spread evenly over half of the domain [-a, a], around this part of a. The paper does not say how its
        data are spread; 0 is the case that hides a bias.

    Returns
    -------
    TheoryTable
        Columns mechanism, center, epsilon, rmse, exact_epsilon.

    Notes
    -----
    With bias b(x) and variance v(x) of a release, over N independent values,

    .. math:: \mathrm{RMSE}^2 = (\mathbb{E} b)^2 + \frac{\mathrm{Var}\, b + \mathbb{E} v}{N}.

    Mechanisms for numbers sample features as :class:`~skldp.NumericPrivatizer` does by default. "Constant 0" releases
    nothing at all, and has a small error around 0 as well.

    References
    ----------
    BitRand, Figure 10.

    Examples
    --------
    >>> from theory_errors import mean_errors
    >>> for center in (0.0, 0.5):
    ...     table = mean_errors([1.0], centers=[center]).where(mechanism="f-RR")
    ...     print(f"{table.columns['rmse'][0]:.2g} at an exact epsilon of {table.columns['exact_epsilon'][0]:.0f}")
    0.49 at an exact epsilon of 3311
    9.4 at an exact epsilon of 3311
    """
    encoding = FixedPoint(n_bits, n_integer_bits)
    reach = _largest(encoding)
    everywhere = np.full(n_features, reach)
    epsilons, rows = list(epsilons), []
    for center in centers:
        x = reach * (center + np.linspace(-0.5, 0.5, 257)[:-1] + 0.5 / 256)

        def add(
            name: str, epsilon: float, bias: np.ndarray, variance: np.ndarray, exact: float, center: float = center
        ) -> None:
            rmse = math.sqrt(np.mean(bias) ** 2 + (np.var(bias) + np.mean(variance)) / n_samples)
            rows.append((name, center, epsilon, rmse, exact))

        for epsilon in epsilons:
            for name, laws in baseline_laws(epsilon, n_features, n_bits, n_integer_bits).items():
                columns = len(laws)
                box = Box.of(-everywhere[:columns], everywhere[:columns])
                flip = BitFlip(box, encoding, laws, n_sampled=columns)
                values = np.repeat(x[:, None], columns, axis=1)
                add(name, epsilon, flip.bias(values), flip.variance(values), exact_epsilon(laws, n_features))
            for name, key in _NUMERIC.items():
                k = n_features if key in JOINT_MECHANISMS else max(1, min(n_features, int(epsilon // 2.5)))
                mechanism = make_mechanism(key, epsilon, k, delta if key == "gaussian" else 0.0)
                low, high = tuple(-everywhere), tuple(everywhere)
                release = BoundedFeatures(mechanism, low, high, n_sampled=k, stated=epsilon)
                variance = release.variance(np.repeat(x[:, None], n_features, axis=1))
                add(name, epsilon, np.zeros(1), variance, release.guarantee().epsilon)
            add("Constant 0", epsilon, -x, np.zeros(1), 0.0)
    return TheoryTable.of_rows(
        "Figure 10: error of the mean over people",
        "mechanism, center, epsilon, rmse, exact_epsilon",
        rows,
        x="epsilon",
        y="rmse",
        lines=("mechanism",),
        panels="center",
        log_x=True,
        log_y=True,
    )


def _largest(encoding: FixedPoint) -> float:
    return float(np.sum(encoding.weights))


def _mean_absolute_error(mechanism: Any) -> float:
    """E|M(x) - x| for x spread evenly over [-1, 1], from the integer law."""
    errors = []
    for x in (np.arange(16) + 0.5) / 8 - 1:
        outputs, weights = mechanism.output_law(float(x))
        weights = np.array(weights, dtype=np.float64)
        errors.append(np.abs(outputs - x) @ weights / weights.sum())
    return float(np.mean(errors))
