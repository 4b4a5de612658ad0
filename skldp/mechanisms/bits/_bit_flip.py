r"""Releases of numbers as randomized binary codes: BitRand (f-RR), LATENT and OME.

A number becomes a fixed-point code, every bit of the code is randomized independently, and the result is decoded. The
bits of one number are drawn together, from one short random word, with exactly the law of the guarantee.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from skldp._arrays import Floats, Ints
from skldp._checks import check_choice, check_epsilon, check_integer, check_positive
from skldp.domains._domain import Box
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._rows import Workspace
from skldp.mechanisms.bits._calibration import (
    Intervals,
    exact_bitrand_law,
    exact_published_laws,
    least_error_sample,
    worst_losses,
)
from skldp.mechanisms.bits._fixed_point import (
    BitDecoder,
    BitFeatures,
    FixedPoint,
    code_moments,
    decode_complement,
    encode_complement,
    fixed_point_decoder,
    integer_bits,
    is_exact,
    original_squares,
    plain_bits,
    unbiased_bits,
)
from skldp.mechanisms.bits._flip_laws import (
    BitLaw,
    bitrand_law,
    latent_corrected_ratio,
    latent_laws,
    ome_corrected_ratio,
    ome_laws,
)
from skldp.mechanisms.bits._mask_sampling import BitRandomizer, MaskSampler, loops_for, mask_sampler
from skldp.mechanisms.bits._unbiased import UnbiasedBitFlip, unbiased_bitrand

# Compiled loops encode to int32 before they clip to the largest magnitude.
_REACH = 2.0**31


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
) -> "BitFlip | UnbiasedBitFlip":
    """Make a BitRand (f-RR) release.

    Parameters
    ----------
    epsilon : float
        Budget of one record, natural log.
    bounds : (low, high)
        Arrays of shape (n_features,).
    n_bits : int, default=10
        Bits of a number, with its sign.
    n_integer_bits : int or "auto", default="auto"
        "auto" is the least that holds the bounds.
    calibration : {"published", "exact"}, default="published"
    alpha : float, default=None
        Only for "published"; None is the bound of Theorem 2.
    n_sampled_features : int, "auto", "all" or None, default=None
        Features released per record.
    debias : bool, default=False
        Whether releases are unbiased, which needs ``calibration="exact"``.

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
    >>> from skldp.mechanisms import bitrand
    >>> bounds = (-np.ones(768), np.ones(768))
    >>> print(bitrand(1.0, bounds).guarantee())
    epsilon 3311 per record (stated 1, per feature 4.311); exact, over all pairs of reachable codes
    >>> print(bitrand(1.0, bounds, calibration="exact").guarantee().epsilon <= 1.0)
    True
    """
    box, encoding, n_sampled = _setting(epsilon, bounds, n_bits, n_integer_bits, calibration, n_sampled_features)
    if calibration == "exact" and alpha is not None:
        raise ValueError(f"alpha belongs to calibration='published' and must be None; got {alpha!r}.")
    free = n_sampled_features is None or n_sampled_features == "auto"
    if calibration == "exact" and debias:
        return unbiased_bitrand(epsilon, box, n_bits, None if free else n_sampled)
    if calibration == "published":
        law = bitrand_law(epsilon, n_sampled, n_bits, alpha)
    else:
        intervals = Intervals.of(encoding, box)
        if free:
            n_sampled = least_error_sample(epsilon, encoding, box, intervals)
        law = exact_bitrand_law(epsilon, encoding, intervals, n_sampled)
    return BitFlip(box, encoding, (law,), debias, epsilon, n_sampled=n_sampled)


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
) -> "BitFlip":
    """Return the mechanism of a LATENT release.

    Its guarantee also shows the epsilon that the BitRand paper calls corrected.

    Parameters
    ----------
    epsilon, bounds, n_bits, n_integer_bits, calibration, alpha, n_sampled_features, debias : optional
        As of :func:`bitrand`.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms import latent
    >>> guarantee = latent(1.0, (-np.ones(4), np.ones(4))).guarantee()
    >>> float(round(guarantee.epsilon, 3)), guarantee.figures[0][0], round(guarantee.figures[0][1], 3)
    (0.876, 'corrected (Theorem 5)', 4.614)
    """
    box, encoding, n_sampled = _setting(epsilon, bounds, n_bits, n_integer_bits, calibration, n_sampled_features)
    check_positive("alpha", alpha)
    if calibration == "exact":
        intervals = Intervals.of(encoding, box, len(latent_laws(0.0, n_bits, alpha)))
        laws = exact_published_laws(latent_laws, alpha, epsilon, encoding, intervals, n_sampled)
        return BitFlip(box, encoding, laws, debias, epsilon, n_sampled=n_sampled)
    budget = epsilon / (n_sampled * n_bits)
    figures = (("corrected (Theorem 5)", latent_corrected_ratio(budget, alpha) * epsilon),)
    return BitFlip(box, encoding, latent_laws(budget, n_bits, alpha), debias, epsilon, figures, n_sampled=n_sampled)


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
) -> "BitFlip":
    """Return the mechanism of an OME release.

    Its guarantee also shows the epsilon that the BitRand paper calls corrected: as printed, which is negative for
    alpha > 1, and its magnitude, which is what the paper plots.

    Parameters
    ----------
    epsilon, bounds, n_bits, n_integer_bits, calibration, alpha, n_sampled_features, debias : optional
        As of :func:`bitrand`.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms import ome
    >>> guarantee = ome(0.1, (-np.ones(1000), np.ones(1000)), alpha=100.0).guarantee()
    >>> f"{guarantee.epsilon:.4g}", [(name, f"{value:.3g}") for name, value in guarantee.figures]
    ('6.903e+04', [('corrected as printed (Theorem 6)', '-4.6e+06'), ('its magnitude', '4.6e+06')])
    """
    box, encoding, n_sampled = _setting(epsilon, bounds, n_bits, n_integer_bits, calibration, n_sampled_features)
    check_positive("alpha", alpha)
    if calibration == "exact":
        intervals = Intervals.of(encoding, box, len(ome_laws(0.0, n_bits, alpha)))
        laws = exact_published_laws(ome_laws, alpha, epsilon, encoding, intervals, n_sampled)
        return BitFlip(box, encoding, laws, debias, epsilon, n_sampled=n_sampled)
    corrected = ome_corrected_ratio(epsilon, n_sampled * n_bits, alpha) * epsilon
    figures = (("corrected as printed (Theorem 6)", corrected), ("its magnitude", abs(corrected)))
    laws = ome_laws(epsilon / (n_sampled * n_bits), n_bits, alpha)
    return BitFlip(box, encoding, laws, debias, epsilon, figures, n_sampled=n_sampled)


def _setting(
    epsilon: float,
    bounds: tuple[npt.ArrayLike, npt.ArrayLike],
    n_bits: int,
    n_integer_bits: Any,
    calibration: str,
    n_sampled_features: Any,
) -> tuple[Box, FixedPoint, int]:
    check_epsilon(epsilon)
    check_choice("calibration", calibration, ("published", "exact"))
    box = Box.of(*(np.atleast_1d(np.asarray(end, dtype=np.float64)) for end in bounds))
    m = integer_bits(box.extent) if n_integer_bits == "auto" else n_integer_bits
    n_sampled = box.n_features
    if n_sampled_features is not None and n_sampled_features not in ("auto", "all"):
        check_integer("n_sampled_features, if not None, 'auto' or 'all',", n_sampled_features, least=1, most=n_sampled)
        n_sampled = int(n_sampled_features)
    return box, FixedPoint(n_bits, m), n_sampled


@dataclass(frozen=True)
class BitFlip(BitFeatures):
    """Randomized response on every bit of fixed-point codes; `bitrand`, `latent` and `ome` make it."""

    encoding: FixedPoint
    laws: tuple[BitLaw, ...]  # feature j follows laws[j % len(laws)]
    debias: bool = False  # the mean of the output is the encoded value
    stated: float | None = None
    figures: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(law.n_bits != self.encoding.n_bits for law in self.laws):
            raise ValueError(f"Every law must have {self.encoding.n_bits} bits; got {self.laws!r}.")
        if self.debias:
            for law in self.laws:
                unbiased_bits(law)

    @cached_property
    def decoders(self) -> tuple[BitDecoder, ...]:
        """One decoder a law."""
        return tuple(
            fixed_point_decoder(self.encoding, unbiased_bits(law) if self.debias else plain_bits(law.n_bits))
            for law in self.laws
        )

    @property
    def runs_compiled(self) -> bool:
        """True if large releases run compiled throughout, so that threads run in parallel."""
        whole = self.n_sampled == self.n_outputs and not self.debias
        return whole and bool(self._short_types) and self._within_reach and loops_for(self.block_cells) is not None

    def guarantee(self) -> PrivacyGuarantee:
        """Return the exact worst-case loss over the declared domain, from the integers that are sampled."""
        intervals = Intervals.of(self.encoding, self.bounds, len(self.laws))
        epsilon, per_feature = worst_losses(self.laws, intervals, self.n_sampled)
        return PrivacyGuarantee(
            epsilon,
            per_feature=per_feature,
            stated=self.stated,
            basis="exact, over all pairs of reachable codes",
            figures=self.figures,
        )

    @cached_property
    def _randomizers(self) -> tuple[BitRandomizer, ...]:
        return tuple(BitRandomizer(law) for law in self.laws)

    @cached_property
    def _complement_sampler(self) -> MaskSampler:
        """Masks for one's-complement codes."""
        return mask_sampler(tuple(map(int, self.laws[0].from_zero)), complement=True)

    @cached_property
    def _short_types(self) -> frozenset[np.dtype]:
        """The types whose numbers become one's complements: one symmetric law randomizes all, which have few bits."""
        if len(self.laws) > 1 or not self.laws[0].symmetric:
            return frozenset()
        return frozenset(kind for kind in map(np.dtype, (np.float32, np.float64)) if is_exact(self.encoding, kind))

    @property
    def _within_reach(self) -> bool:
        """True if compiled loops can encode every number of the domain."""
        return self.bounds.extent < _REACH * self.encoding.step

    def _encode(self, rows: np.ndarray, out: np.ndarray, workspace: Workspace) -> None:
        np.copyto(out, self.encoding.decode(self.encoding.encode(rows), rows.dtype))

    def _draw_features(
        self, values: np.ndarray, features: Ints | None, noise: Noise, out: np.ndarray, workspace: Workspace
    ) -> None:
        flat = out.reshape(-1)
        if out.dtype in self._short_types:
            self._draw_short(values, noise, flat, workspace)
            return
        # Masks come as 16-bit words; narrower codes would be widened at every step.
        codes = workspace.take("codes", flat.shape, np.promote_types(self.encoding.code_dtype, np.uint16))
        self.encoding.encode(values.reshape(-1), out=codes, scratch=flat)
        # Randomize all numbers by every law, the first law last; keep each number from its own law.
        numbers = workspace.take("numbers", (len(self.laws) - 1, *out.shape), out.dtype)
        randomized = workspace.take("randomized", codes.shape, codes.dtype) if len(numbers) else codes
        for decoded, randomizer, decoder in zip(numbers, self._randomizers[1:], self.decoders[1:], strict=True):
            np.copyto(randomized, codes)
            decoder.decode(randomizer.randomize(randomized, noise, workspace), decoded.reshape(-1), workspace)
        self.decoders[0].decode(self._randomizers[0].randomize(codes, noise, workspace), flat, workspace)
        followed = (np.arange(self.n_outputs) if features is None else features) % len(self.laws)
        for which, decoded in enumerate(numbers, 1):
            np.copyto(out, decoded, where=followed == which)

    def _draw_short(self, values: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        """Release through one's-complement codes."""
        loops, grid = loops_for(out.size), self.encoding
        if loops is None or not self._within_reach:
            signed = encode_complement(grid, values.reshape(-1), self.bounds.extent, out, workspace)
        else:
            signed = workspace.take("signed", out.shape, np.int16)
            # A flattened column of many still has strides, and a repeated number has stride 0; loops need contiguous
            # arrays.
            ready = np.require(values.reshape(-1), requirements=["C", "A"])
            loops.encode(ready, out.dtype.type(1 / grid.step), np.int32((1 << (grid.n_bits - 1)) - 1), signed)
        masks = self._complement_sampler.draw(noise, out.size, workspace).view(np.int16)
        if self.debias:
            signed ^= masks
            self.decoders[0].decode_complement(signed, out, workspace)
        elif loops is None:
            signed ^= masks
            decode_complement(grid, signed, out, workspace)
        else:
            loops.decode(signed, masks, out.dtype.type(grid.step), out)

    def _feature_moments(self, rows: Floats) -> tuple[Floats, Floats]:
        codes = self.encoding.encode(rows)
        mean, square = np.empty(rows.shape), np.empty(rows.shape)
        for which, (law, decoder) in enumerate(zip(self.laws, self.decoders, strict=True)):
            part = (slice(None), slice(which, None, len(self.laws)))
            mean[part], square[part] = code_moments(codes[part], law, decoder)
        return mean, square

    def _original_squares(self, squares: Floats) -> Floats:
        """Convert the mean of M(x)^2 to that of the encoded x^2."""
        if not self.debias:
            raise ValueError("`debias` must be True to estimate second moments; got False, with biased products.")
        if len(self.laws) > 1 or not self.laws[0].symmetric:
            raise ValueError("Every law must be symmetric to estimate squares; got one whose variance depends on bits.")
        return original_squares(squares, self.laws[0], self.decoders[0])
