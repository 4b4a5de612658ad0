r"""A row of numbers within declared bounds: map to [-1, 1], release k of d features, map back without bias."""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from skldp._untold import as_floats
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._numeric.unit_interval import PickledByFields
from skldp.mechanisms._odds import round_up

__all__ = ["BoundedFeatures", "UnitRelease", "automatic_n_sampled", "worst_sampled_variance"]

# Single precision serves rows of it where centres are at most so many half-widths, and half-widths within this range.
_NEAR = 4.0
_SINGLE_RADII = (1e-30, 1e30)


class UnitRelease(Protocol):
    """What a mechanism for numbers in [-1, 1] offers."""

    @property
    def n_values(self) -> int:
        """How many values are released under one guarantee."""

    @property
    def takes_singles(self) -> bool:
        """Whether float32 is worked on as it is, not as float64."""

    @property
    def worst_variance(self) -> float:
        """The largest variance of one value over all inputs."""

    def sample(self, values: npt.ArrayLike, noise: Noise, out: np.ndarray | None = None) -> np.ndarray:
        """Release each value."""

    def variance(self, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Variance of the released law, element by element."""

    def bias(self, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Mean of the released law minus x."""

    def guarantee(self) -> PrivacyGuarantee:
        """Give the exact guarantee of one release."""


def automatic_n_sampled(epsilon: float, n_features: int) -> int:
    """Choose how many of the features to release: one for each 2.5 of epsilon, at least one and at most all.

    Examples
    --------
    >>> from skldp.mechanisms._numeric.bounded_features import automatic_n_sampled
    >>> automatic_n_sampled(1.0, 768), automatic_n_sampled(6.0, 768), automatic_n_sampled(100.0, 8)
    (1, 2, 8)

    References
    ----------
    Wang et al., "Collecting and analyzing multidimensional data with local differential privacy", ICDE 2019, Eq. 12.
    """
    return max(1, int(min(n_features, epsilon // 2.5)))


def worst_sampled_variance(mechanism: UnitRelease, n_features: int, n_sampled: int) -> float:
    r"""Find the largest variance over x of one feature of [-1, 1], of which k of d are released times d / k.

    Notes
    -----
    .. math:: \mathrm{Var}(x) = \tfrac{d}{k} (\mathrm{Var}_1(x) + x^2) - x^2

    where the mechanism of the released ones has the variance :math:`\mathrm{Var}_1`.

    Examples
    --------
    >>> from skldp.mechanisms._numeric.bounded_features import worst_sampled_variance
    >>> from skldp.mechanisms._numeric.hybrid import Hybrid
    >>> round(worst_sampled_variance(Hybrid(1.0), 768, 1))
    4061
    """
    scale = n_features / n_sampled
    if scale == 1:
        return mechanism.worst_variance
    size = np.linspace(0, 1, 4097)
    return float((scale * (mechanism.variance(size) + size**2) - size**2).max())


@dataclass(frozen=True)
class BoundedFeatures(PickledByFields):
    r"""Rows of numbers within bounds, released by a mechanism for [-1, 1].

    Parameters
    ----------
    mechanism : UnitRelease
        For each of the released features alone, or for `n_sampled` of them together.
    low, high : tuple of float
        Bounds of each feature, finite and ``low < high``.
    n_sampled : int
        How many features k of a row's d are released: a fresh uniform choice for each row.
    stated : float
        The epsilon that was asked for.

    Raises
    ------
    ValueError
        If `n_sampled` is not from 1 to the number of features, or no multiple of the mechanism's values.

    Notes
    -----
    Feature j has centre :math:`c_j` and half-width :math:`r_j`. A released one is
    :math:`c_j + r_j \frac{d}{k} M((x_j - c_j) / r_j)`, the others are :math:`c_j`, which is unbiased. The mapping
    back is the same for all inputs, so that it cannot leak.

    Examples
    --------
    >>> from skldp.mechanisms._numeric.bounded_features import BoundedFeatures
    >>> from skldp.mechanisms._numeric.duchi import Duchi
    >>> release = BoundedFeatures(Duchi(0.5), low=(0.0, 0.0, 0.0), high=(1.0, 1.0, 8.0), n_sampled=2, stated=1.0)
    >>> print(release.guarantee())
    epsilon 1 per record (stated 1, per feature 0.5); 2 of 3 features; exact, from the sampled integers
    """

    mechanism: UnitRelease
    low: tuple[float, ...] = field(repr=False)
    high: tuple[float, ...] = field(repr=False)
    n_sampled: int
    stated: float

    def __post_init__(self) -> None:
        if not 1 <= self.n_sampled <= len(self.low) or self.n_sampled % self.mechanism.n_values:
            raise ValueError(
                f"n_sampled must be from 1 to the number of features, {len(self.low)}, and a multiple of the values "
                f"that the mechanism releases together, {self.mechanism.n_values}. Got {self.n_sampled!r} instead."
            )

    @property
    def n_outputs(self) -> int:
        """The number of features."""
        return len(self.low)

    @cached_property
    def center(self) -> npt.NDArray[np.float64]:
        """The middle of each feature's bounds."""
        # Halved before the difference: bounds near the largest double must not overflow.
        return np.asarray(self.low) / 2 + np.asarray(self.high) / 2

    @cached_property
    def radius(self) -> npt.NDArray[np.float64]:
        """Half the width of each feature's bounds."""
        return np.asarray(self.high) / 2 - np.asarray(self.low) / 2

    @property
    def worst_variance(self) -> npt.NDArray[np.float64]:
        """The largest variance of each feature."""
        return self.radius**2 * worst_sampled_variance(self.mechanism, self.n_outputs, self.n_sampled)

    def guarantee(self) -> PrivacyGuarantee:
        """Give the exact guarantee of one row."""
        of_one = self.mechanism.guarantee()
        n_releases = self.n_sampled // self.mechanism.n_values
        alone = of_one.epsilon if self.mechanism.n_values == 1 else None
        some = "" if self.n_sampled == self.n_outputs else f"{self.n_sampled} of {self.n_outputs} features; "
        return PrivacyGuarantee(
            round_up(n_releases * Fraction(of_one.epsilon)),
            delta=n_releases * of_one.delta,
            per_feature=alone if self.n_outputs > 1 else None,
            stated=self.stated,
            basis=some + of_one.basis,
        )

    def variance(self, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Variance of what is released for each value of rows of shape (n, n_outputs)."""
        x = self._to_unit(as_floats(values), slice(None))
        scale = self.n_outputs / self.n_sampled
        return self.radius**2 * (scale * (self.mechanism.variance(x) + x**2) - x**2)

    def bias(self, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Mean of what is released minus each value, of rows of shape (n, n_outputs)."""
        return self.radius * self.mechanism.bias(self._to_unit(as_floats(values), slice(None)))

    def encode(self, values: npt.ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """Represent the values as `sample` does, without noise: unchanged."""
        if out is None:
            return np.array(as_floats(values))
        out[...] = as_floats(values)
        return out

    def sample(self, values: npt.ArrayLike, noise: Noise, out: np.ndarray | None = None) -> np.ndarray:
        """Release each row.

        Parameters
        ----------
        values : array-like of shape (n, n_outputs)
            Within the bounds; what is outside is moved to them.
        noise : Noise
        out : ndarray of float32 or float64, default=None
            Where to write; of the shape of `values`.

        Returns
        -------
        ndarray of shape (n, n_outputs)
            float32 if `values` are, else float64.
        """
        rows = as_floats(values)
        if out is None:
            out = np.empty(rows.shape, dtype=np.float32 if rows.dtype == np.float32 else np.float64)
        center, radius = self._scales(rows.dtype)
        if self.n_sampled == self.n_outputs:
            released = self.mechanism.sample(self._to_unit(rows, slice(None)), noise)
            released *= radius
            np.add(released, center, out=out, casting="same_kind")
            return out
        chosen = noise.subsets(len(rows), self.n_outputs, self.n_sampled)
        picked = np.take_along_axis(rows, chosen, axis=1)
        released = self.mechanism.sample(self._to_unit(picked, chosen), noise)
        released *= radius[chosen] * (self.n_outputs / self.n_sampled)
        released += center[chosen]
        out[...] = center
        np.put_along_axis(out, chosen, released.astype(out.dtype, copy=False), axis=1)
        return out

    def _to_unit(self, values: np.ndarray, features: slice | npt.NDArray[np.int64]) -> np.ndarray:
        center, radius = self._scales(values.dtype)
        unit = values - center[features]
        unit /= radius[features]
        return np.clip(unit, -1, 1, out=unit)

    def _scales(self, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
        """Centre and half-width, in single precision where rows are and these lose nothing to speak of by it."""
        single = dtype == np.float32 and self.mechanism.takes_singles and self._fit_singles
        return self._singles if single else (self.center, self.radius)

    @cached_property
    def _singles(self) -> tuple[np.ndarray, np.ndarray]:
        return self.center.astype(np.float32), self.radius.astype(np.float32)

    @cached_property
    def _fit_singles(self) -> bool:
        # A centre far from 0 for its width would be rounded by much of the width.
        near = np.abs(self.center) <= _NEAR * self.radius
        return bool((near & (self.radius > _SINGLE_RADII[0]) & (self.radius < _SINGLE_RADII[1])).all())
