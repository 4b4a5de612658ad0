"""Make BitRand, LATENT and OME releases from an epsilon: as published, or with the exact level that is asked for."""

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp.mechanisms._bits.bit_flip import BitFlip
from skldp.mechanisms._bits.calibration import exact_bitrand_law, exact_published_laws, least_error_sample
from skldp.mechanisms._bits.fixed_point import FixedPoint, integer_bits
from skldp.mechanisms._bits.flip_laws import (
    BitLaw,
    bitrand_law,
    latent_corrected_ratio,
    latent_law,
    ome_corrected_ratio,
    ome_laws,
)
from skldp.mechanisms._bits.unbiased import UnbiasedBitFlip, unbiased_bitrand

__all__ = ["bitrand", "latent", "ome"]

_CALIBRATIONS = ("published", "exact")


def bitrand(
    epsilon: float,
    bounds: tuple[npt.ArrayLike, npt.ArrayLike],
    *,
    n_bits: int = 10,
    n_integer_bits: int | str = "auto",
    calibration: str = "published",
    alpha: float | None = None,
    n_sampled_features: int | str | None = None,
    debias: bool = False,
) -> BitFlip | UnbiasedBitFlip:
    """Make a BitRand (f-RR) release.

    Parameters
    ----------
    epsilon : float
        Budget of one record, natural log.
    bounds : (low, high)
        Arrays of shape (n_features,).
    n_bits : int, default=10
    n_integer_bits : int or "auto", default="auto"
        "auto" is the least that holds the bounds.
    calibration : {"published", "exact"}, default="published"
    alpha : float, default=None
        Only for "published"; None is the bound of Theorem 2.
    n_sampled_features : int, "auto", "all" or None, default=None
        Features released per record.
    debias : bool, default=False

    Returns
    -------
    BitFlip or UnbiasedBitFlip
        The latter for ``calibration="exact", debias=True``.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms._bits.factories import bitrand
    >>> bounds = (-np.ones(768), np.ones(768))
    >>> print(bitrand(1.0, bounds).guarantee())
    epsilon 3311 per record (stated 1, per feature 4.311); exact, over all pairs of reachable codes
    >>> print(bitrand(1.0, bounds, calibration="exact").guarantee().epsilon <= 1.0)
    True
    """
    low, high, encoding, n_released = _setting(bounds, n_bits, n_integer_bits, calibration, n_sampled_features)
    if calibration == "exact" and alpha is not None:
        raise ValueError(f"alpha belongs to calibration='published' and must be None. Got {alpha!r} instead.")
    free = n_sampled_features is None or n_sampled_features == "auto"
    if calibration == "exact" and debias:
        return unbiased_bitrand(epsilon, low, high, n_bits, None if free else n_released)
    if calibration == "published":
        law = bitrand_law(epsilon, n_released, n_bits, alpha)
    else:
        if free:
            n_released = least_error_sample(epsilon, encoding, low, high)
        law = exact_bitrand_law(epsilon, encoding, encoding.reachable(low, high), n_released)
    return BitFlip(encoding, (law,), low, high, n_released=n_released, debias=debias, stated=epsilon)


def latent(
    epsilon: float,
    bounds: tuple[npt.ArrayLike, npt.ArrayLike],
    *,
    n_bits: int = 10,
    n_integer_bits: int | str = "auto",
    calibration: str = "published",
    alpha: float = 7.0,
    n_sampled_features: int | str | None = None,
    debias: bool = False,
) -> BitFlip:
    """Make a LATENT release; parameters as for :func:`bitrand`.

    Its guarantee also shows the level that the BitRand paper calls corrected.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms._bits.factories import latent
    >>> guarantee = latent(1.0, (-np.ones(4), np.ones(4))).guarantee()
    >>> float(round(guarantee.epsilon, 3)), guarantee.figures[0][0], round(guarantee.figures[0][1], 3)
    (0.876, 'corrected (Theorem 5)', 4.614)
    """
    low, high, encoding, n_released = _setting(bounds, n_bits, n_integer_bits, calibration, n_sampled_features)
    budget = epsilon / (n_released * n_bits)

    def laws(share: float) -> tuple[BitLaw, ...]:
        return (latent_law(share, n_bits, alpha),)

    figures = (("corrected (Theorem 5)", latent_corrected_ratio(budget, alpha) * epsilon),)
    return _two_sided(epsilon, low, high, encoding, n_released, calibration, debias, laws, figures)


def ome(
    epsilon: float,
    bounds: tuple[npt.ArrayLike, npt.ArrayLike],
    *,
    n_bits: int = 10,
    n_integer_bits: int | str = "auto",
    calibration: str = "published",
    alpha: float = 1.0,
    n_sampled_features: int | str | None = None,
    debias: bool = False,
) -> BitFlip:
    """Make an OME release; parameters as for :func:`bitrand`.

    Its guarantee also shows the level that the BitRand paper calls corrected: as printed, which is negative for
    alpha > 1, and its magnitude, which is what the paper plots.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms._bits.factories import ome
    >>> guarantee = ome(0.1, (-np.ones(1000), np.ones(1000)), alpha=100.0).guarantee()
    >>> f"{guarantee.epsilon:.4g}", [(name, f"{value:.3g}") for name, value in guarantee.figures]
    ('6.903e+04', [('corrected as printed (Theorem 6)', '-4.6e+06'), ('its magnitude', '4.6e+06')])
    """
    low, high, encoding, n_released = _setting(bounds, n_bits, n_integer_bits, calibration, n_sampled_features)

    def laws(share: float) -> tuple[BitLaw, ...]:
        return ome_laws(share, n_bits, alpha)

    corrected = ome_corrected_ratio(epsilon, n_released * n_bits, alpha) * epsilon
    figures = (("corrected as printed (Theorem 6)", corrected), ("its magnitude", abs(corrected)))
    return _two_sided(epsilon, low, high, encoding, n_released, calibration, debias, laws, figures)


def _two_sided(
    epsilon: float,
    low: npt.NDArray[np.float64],
    high: npt.NDArray[np.float64],
    encoding: FixedPoint,
    n_released: int,
    calibration: str,
    debias: bool,
    laws: Callable[[float], tuple[BitLaw, ...]],
    figures: tuple[tuple[str, float], ...],
) -> BitFlip:
    """Make a release whose laws depend on the share of one bit; `figures` belong to the published share."""
    if calibration == "published":
        chosen = laws(epsilon / (n_released * encoding.n_bits))
    else:
        chosen = exact_published_laws(laws, epsilon, encoding.reachable(low, high), n_released, encoding.n_bits)
        figures = ()
    return BitFlip(encoding, chosen, low, high, n_released, debias, stated=epsilon, figures=figures)


def _setting(
    bounds: tuple[npt.ArrayLike, npt.ArrayLike],
    n_bits: int,
    n_integer_bits: Any,
    calibration: str,
    n_sampled_features: Any,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], FixedPoint, int]:
    if calibration not in _CALIBRATIONS:
        raise ValueError(f"calibration must be one of {_CALIBRATIONS}. Got {calibration!r} instead.")
    low, high = (np.atleast_1d(np.asarray(end, dtype=np.float64)) for end in bounds)
    if low.ndim != 1 or low.shape != high.shape or not (np.isfinite([low, high]).all() and (low < high).all()):
        raise ValueError(
            f"bounds must be two finite arrays of shape (n_features,), low < high. Got {bounds!r} instead."
        )
    m = integer_bits(float(np.abs([low, high]).max())) if n_integer_bits == "auto" else n_integer_bits
    return low, high, FixedPoint(n_bits, m), _n_released(n_sampled_features, len(low))


def _n_released(n_sampled_features: Any, n_features: int) -> int:
    if n_sampled_features is None or (isinstance(n_sampled_features, str) and n_sampled_features in ("auto", "all")):
        return n_features
    is_integer = isinstance(n_sampled_features, Integral) and not isinstance(n_sampled_features, bool | np.bool_)
    if not is_integer or not 1 <= n_sampled_features <= n_features:
        raise ValueError(
            "n_sampled_features must be None, 'auto', 'all' or an integer from 1 to the number of features, "
            f"{n_features}. Got {n_sampled_features!r} instead."
        )
    return int(n_sampled_features)
