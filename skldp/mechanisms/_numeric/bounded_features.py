r"""A row of numbers within declared bounds: map to [-1, 1], release k of d features, map back without bias."""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from skldp.mechanisms._domain import Box
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._numeric.unit_interval import UnitMechanism
from skldp.mechanisms._odds import round_up
from skldp.mechanisms._rows import SampledFeatures, Workspace

__all__ = ["BoundedFeatures", "automatic_n_sampled", "worst_sampled_variance"]

# Single precision serves rows of it where centres are at most so many half-widths, and half-widths within this range.
_NEAR = 4.0
_SINGLE_RADII = (1e-30, 1e30)


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


def worst_sampled_variance(mechanism: UnitMechanism, n_features: int, n_sampled: int) -> float:
    r"""Find the largest variance over x of one feature of [-1, 1], of which k of d are released times d / k.

    Notes
    -----
    .. math:: \mathrm{Var}(x) = \tfrac{d}{k} (\mathrm{Var}_1(x) + x^2) - x^2

    where the mechanism of the released ones has the variance :math:`\mathrm{Var}_1`.

    Examples
    --------
    >>> from skldp.mechanisms import Hybrid
    >>> from skldp.mechanisms._numeric.bounded_features import worst_sampled_variance
    >>> round(worst_sampled_variance(Hybrid(1.0), 768, 1))
    4061
    """
    scale = n_features / n_sampled
    if scale == 1:
        return mechanism.worst_variance
    size = np.linspace(0, 1, 4097)
    return float((scale * (mechanism.variance(size) + size**2) - size**2).max())


@dataclass(frozen=True)
class BoundedFeatures(SampledFeatures):
    r"""Rows of numbers within bounds, released by a mechanism for [-1, 1].

    Parameters
    ----------
    mechanism : RowMechanism
        For numbers in [-1, 1]: for each of the released features alone, or for several of them together.
    low, high : tuple of float
        Bounds of each feature, finite and ``low < high``.
    n_sampled : int
        How many features k of a row's d are released: a fresh uniform choice for each row.
    stated : float
        The epsilon that was asked for.

    Raises
    ------
    ValueError
        If the bounds are not as above, or `n_sampled` is not from 1 to the number of features, or no multiple of the
        mechanism's values.

    Notes
    -----
    Feature j has centre :math:`c_j` and half-width :math:`r_j`. A released one is
    :math:`c_j + r_j \frac{d}{k} M((x_j - c_j) / r_j)`, the others are :math:`c_j`, which is unbiased. The mapping
    back is the same for all inputs, so that it cannot leak.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms import BoundedFeatures, Duchi, noise_from
    >>> release = BoundedFeatures(Duchi(0.5), low=(0.0, 0.0, 0.0), high=(1.0, 1.0, 8.0), n_sampled=2, stated=1.0)
    >>> print(release.guarantee())
    epsilon 1 per record (stated 1, per feature 0.5); 2 of 3 features; exact, from the sampled integers
    >>> release.release(np.array([[0.5, 0.5, 9.0]]), noise_from()).n_moved
    1
    """

    mechanism: UnitMechanism
    low: tuple[float, ...] = field(repr=False)
    high: tuple[float, ...] = field(repr=False)
    stated: float = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("low", "high"):
            object.__setattr__(self, name, getattr(self.domain, name))
        together = self.mechanism.n_outputs
        if self.n_sampled % together:
            raise ValueError(
                f"n_sampled must be a multiple of the values that the mechanism releases together, {together}. "
                f"Got {self.n_sampled!r} instead."
            )

    @cached_property
    def domain(self) -> Box:
        """The declared bounds."""
        return Box(self.low, self.high)

    @cached_property
    def center(self) -> npt.NDArray[np.float64]:
        """The middle of each feature's bounds."""
        return self.domain.center

    @cached_property
    def radius(self) -> npt.NDArray[np.float64]:
        """Half the width of each feature's bounds."""
        return self.domain.radius

    @property
    def worst_variance(self) -> npt.NDArray[np.float64]:
        """The largest variance of each feature."""
        return self.radius**2 * worst_sampled_variance(self.mechanism, self.n_outputs, self.n_sampled)

    def guarantee(self) -> PrivacyGuarantee:
        """Give the exact guarantee of one row."""
        of_one = self.mechanism.guarantee()
        n_releases = self.n_sampled // self.mechanism.n_outputs
        alone = of_one.epsilon if self.mechanism.n_outputs == 1 else None
        some = "" if self.n_sampled == self.n_outputs else f"{self.n_sampled} of {self.n_outputs} features; "
        return PrivacyGuarantee(
            round_up(n_releases * Fraction(of_one.epsilon)),
            delta=n_releases * of_one.delta,
            per_feature=alone if self.n_outputs > 1 else None,
            stated=self.stated,
            basis=some + of_one.basis,
        )

    @property
    def zcdp(self) -> Fraction | None:
        r"""The :math:`\rho` of one row: that of each release in turn, whichever features were chosen."""
        of_one = self.mechanism.zcdp
        return None if of_one is None else of_one * (self.n_sampled // self.mechanism.n_outputs)

    def variance(self, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Variance of what is released for each value of rows of shape (n, n_outputs)."""
        x = self._as_unit(values)
        scale = self.n_outputs / self.n_sampled
        return self.radius**2 * (scale * (self.mechanism.variance(x) + x**2) - x**2)

    def bias(self, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Mean of what is released minus each value, of rows of shape (n, n_outputs)."""
        return self.radius * self.mechanism.bias(self._as_unit(values))

    def working_dtype(self, dtype: np.dtype) -> np.dtype:
        """Single precision where rows are, and mechanism and bounds lose nothing to speak of by it."""
        single = dtype == np.float32 and self.mechanism.takes_singles and self._fit_singles
        return np.dtype(np.float32 if single else np.float64)

    def _encode(self, rows: np.ndarray, out: np.ndarray, workspace: Workspace) -> None:
        out[...] = rows

    def _draw_features(
        self,
        values: np.ndarray,
        features: npt.NDArray[np.int64] | None,
        noise: Noise,
        out: np.ndarray,
        workspace: Workspace,
    ) -> None:
        center, radius = self.center.astype(out.dtype, copy=False), self.radius.astype(out.dtype, copy=False)
        if features is not None:
            center, radius = center[features], radius[features]
        unit = np.subtract(values, center, out=workspace.take("unit", values.shape, out.dtype))
        unit /= radius
        # What was within the bounds may lie beyond 1 by a rounding.
        np.clip(unit, -1, 1, out=unit)
        self.mechanism._draw_numbers(unit.reshape(-1), noise, out.reshape(-1))
        out *= radius

    def _original_squares(self, squares: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return self.radius**2 * self.mechanism.original_squares(squares / self.radius**2)

    def _as_unit(self, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        return np.clip((self._as_rows(values) - self.center) / self.radius, -1, 1)

    @cached_property
    def _fit_singles(self) -> bool:
        # A centre far from 0 for its width would be rounded by much of the width.
        near = np.abs(self.center) <= _NEAR * self.radius
        return bool((near & (self.radius > _SINGLE_RADII[0]) & (self.radius < _SINGLE_RADII[1])).all())
