r"""What the mechanisms for numbers in [-1, 1] share.

Every released number comes from an exact integer law: the mechanisms of this package choose integers from the asked
epsilon, a little to the private side, sample with exactly these integers, and compute the guarantee from them.
"""

import math
from dataclasses import fields
from fractions import Fraction
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from skldp._untold import as_numbers
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise

__all__ = [
    "EXACT",
    "LARGEST_EPSILON",
    "LEAST_EPSILON",
    "PickledByFields",
    "UnitMechanism",
    "calibration_epsilon",
    "check_positive_epsilon",
    "floor_to_double",
    "log_ratio",
    "output_dtype",
    "two_signs",
    "unit_values",
    "worst_quadratic",
]

EXACT = "exact, from the sampled integers"
LEAST_EPSILON = 1e-6
# Beyond it an event of probability exp(-epsilon) is no longer a fine integer fraction of 2^64, nor ever seen.
LARGEST_EPSILON = 24.0
# Numbers worked on at a time, so that all temporary arrays together stay in the second-level cache.
_CHUNK = 8192
# Room for the rounding of integers and of exponentials in double precision, as a part of epsilon.
_MARGIN = 2.0**-24


def check_positive_epsilon(epsilon: Any) -> None:
    """Refuse an epsilon that is not a finite number, or for which integer probabilities would round away.

    Raises
    ------
    ValueError
        With the least usable epsilon in the text.
    """
    if isinstance(epsilon, bool | np.bool_) or not isinstance(epsilon, Real) or not 0 < float(epsilon) < math.inf:
        raise ValueError(f"epsilon must be a finite number above 0. Got {epsilon!r} instead.")
    if epsilon < LEAST_EPSILON:
        raise ValueError(
            f"epsilon must be at least {LEAST_EPSILON} for each released value, because smaller ones round away in "
            f"64-bit probabilities. Got {epsilon!r} instead."
        )


def calibration_epsilon(epsilon: float) -> float:
    """Give the epsilon that the integers are chosen for: a 2^-24 part below, and at most :data:`LARGEST_EPSILON`."""
    return min(float(epsilon), LARGEST_EPSILON) * (1 - _MARGIN)


def log_ratio(high: int, low: int) -> float:
    """Bound ln(high / low) of integers ``high >= low >= 1`` from above, within a few units in the last place.

    Examples
    --------
    >>> from skldp.mechanisms._numeric.unit_interval import log_ratio
    >>> round(log_ratio(2**64, 2**63), 9)
    0.693147181
    """
    return math.log1p((high - low) / low) * (1 + 2.0**-50)


def two_signs(up: npt.NDArray[np.bool_], magnitude: float, out: np.ndarray) -> None:
    """Write `magnitude` where `up`, else its negative; faster than a choice, which branches."""
    # All steps are exact: 2 m - m and 0 - m.
    size = out.dtype.type(magnitude)
    np.copyto(out, up)
    out *= 2 * size
    out -= size


def unit_values(values: npt.ArrayLike, dtype: npt.DTypeLike = np.float64) -> np.ndarray:
    """Give the values as an array of a floating-point type, all in [-1, 1].

    Raises
    ------
    ValueError
        If one is outside, or NaN.
    """
    x = as_numbers(values, dtype=dtype)
    if x.size and not (x.min() >= -1 and x.max() <= 1):
        n_outside = x.size - np.count_nonzero((x >= -1) & (x <= 1))
        raise ValueError(f"values must lie in [-1, 1]. Got {n_outside:,} of {x.size:,} outside, or NaN, instead.")
    return x


def output_dtype(values: npt.ArrayLike) -> type:
    """Give float32 for values of float32, else float64."""
    return np.float32 if getattr(values, "dtype", None) == np.float32 else np.float64


def worst_quadratic(constant: float, linear: float, square: float) -> float:
    """Find the largest ``constant + linear * x + square * x**2`` for x in [0, 1], where ``linear >= 0``."""
    peak = min(1.0, -linear / (2 * square)) if square < 0 else 1.0
    return max(constant, constant + linear * peak + square * peak**2)


def floor_to_double(value: float | int) -> int:
    """Give the largest integer up to `value` that a double holds exactly."""
    nearest = float(value)
    return int(nearest) if int(nearest) <= value else int(np.nextafter(nearest, 0))


class PickledByFields:
    """Base of the dataclasses whose cached integers are made anew from their fields in every process."""

    # Whether float32 is worked on as it is; other mechanisms turn it into float64.
    takes_singles: ClassVar[bool] = False

    def __getstate__(self) -> dict[str, Any]:
        # A pickle must not tell whether, or what, a mechanism has released.
        return {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]  # A dataclass is.


class UnitMechanism(PickledByFields):
    """Base of the mechanisms that release numbers in [-1, 1], each one alone, unbiased and with an exact epsilon.

    A subclass is a frozen dataclass with a field `epsilon`; it gives `exact_epsilon`, `variance_coefficients`,
    `variance`, and the three hooks `_draw`, `_mean` and, where the output is finite, `output_law`.
    """

    epsilon: float
    # How many values one guarantee covers: 1 for mechanisms that treat each value alone.
    n_values: int = 1
    chunk: ClassVar[int] = _CHUNK

    @cached_property
    def exact_epsilon(self) -> float:
        """The largest log-likelihood ratio of the sampled law over all pairs of inputs."""
        raise NotImplementedError

    @cached_property
    def variance_coefficients(self) -> tuple[float, float, float]:
        """The c of a variance c[0] + c[1] abs(x) + c[2] x^2, which is never below the released one."""
        raise NotImplementedError

    @property
    def worst_variance(self) -> float:
        """The largest variance over all inputs."""
        return worst_quadratic(*self.variance_coefficients)

    def sample(self, values: npt.ArrayLike, noise: Noise, out: np.ndarray | None = None) -> np.ndarray:
        """Release each value.

        Parameters
        ----------
        values : array-like
            In [-1, 1], of any shape.
        noise : Noise
        out : ndarray of float32 or float64, default=None
            Where to write; of the shape of `values`.

        Returns
        -------
        ndarray of the shape of `values`
            float32 if `values` are, else float64.

        Raises
        ------
        ValueError
            If a value is outside [-1, 1].
        """
        x = unit_values(values, output_dtype(values))
        if out is None:
            out = np.empty(x.shape, dtype=x.dtype)
        flat = x.reshape(-1)
        written = out.reshape(-1) if out.flags.c_contiguous else np.empty(x.size, dtype=out.dtype)
        for start in range(0, x.size, self.chunk):
            part = slice(start, start + self.chunk)
            some = flat[part] if self.takes_singles else flat[part].astype(np.float64, copy=False)
            self._draw(some, noise, written[part])
        if not out.flags.c_contiguous:
            out[...] = written.reshape(out.shape)
        return out

    def encode(self, values: npt.ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """Represent the values as `sample` does, without noise."""
        x = unit_values(values)
        if out is None:
            out = np.empty(x.shape, dtype=output_dtype(values))
        out[...] = x
        return out

    def bias(self, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Mean of the released law minus x, from exact fractions; what is left is the rounding of probabilities."""
        points = unit_values(x)
        exact = [float(self._mean(value) - Fraction(value)) for value in points.ravel().tolist()]
        return np.array(exact).reshape(points.shape)

    def guarantee(self) -> PrivacyGuarantee:
        """Give the exact guarantee of one release."""
        return PrivacyGuarantee(self.exact_epsilon, stated=float(self.epsilon), basis=EXACT)

    def _draw(self, x: np.ndarray, noise: Noise, out: np.ndarray) -> None:
        raise NotImplementedError

    def _mean(self, x: float) -> Fraction:
        raise NotImplementedError
