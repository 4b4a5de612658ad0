r"""Release numbers as randomized binary codes: BitRand (f-RR), LATENT and OME.

A number becomes a fixed-point code, every bit of the code is randomized on its own, and the result is decoded. The
bits of one number are drawn together, from one short random word, with exactly the law that the guarantee is made of.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from skldp.mechanisms._bits.buffers import LONGEST, Buffers, decode_complement, encode_complement, is_exact
from skldp.mechanisms._bits.calibration import feature_levels, record_level
from skldp.mechanisms._bits.decoding import BitDecoder, code_moments, fixed_point_decoder, plain_bits, unbiased_bits
from skldp.mechanisms._bits.fixed_point import SAFE_EXPONENT, FixedPoint
from skldp.mechanisms._bits.flip_laws import BitLaw
from skldp.mechanisms._bits.kernels import REACH, CompiledBuffers, compiled_loops
from skldp.mechanisms._bits.mask_sampling import BitRandomizer, MaskSampler
from skldp.mechanisms._bits.rows import NOT_FINITE, Inside, RowRelease
from skldp.mechanisms._domain import round_inward
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise

__all__ = ["BitFlip"]


@dataclass(frozen=True, eq=False)
class BitFlip(RowRelease):
    r"""Randomized response on every bit of fixed-point codes.

    :func:`bitrand`, :func:`latent` and :func:`ome` make the published and the exactly calibrated ones.

    Parameters
    ----------
    encoding : FixedPoint
    laws : tuple of BitLaw
        Feature j follows ``laws[j % len(laws)]``.
    low, high : ndarray of shape (n_features,)
        The declared domain; values beyond are clipped.
    n_released : int, default=None
        Features released per record, drawn anew for each one without regard to the data; the others come out as 0
        and the released ones times n_features / n_released. None is all.
    debias : bool, default=False
        Decode so that the mean of the output is the encoded value.
    stated : float, default=None
        The epsilon that was asked for.
    basis : str
    figures : tuple of (str, float)
        Of the guarantee.
    """

    encoding: FixedPoint
    laws: tuple[BitLaw, ...]
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    n_released: int | None = None
    debias: bool = False
    stated: float | None = None
    basis: str = "exact, over all pairs of reachable codes"
    figures: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        self._check_domain()
        if any(law.n_bits != self.encoding.n_bits for law in self.laws):
            raise ValueError(f"Every law must have {self.encoding.n_bits} bits. Got {self.laws!r} instead.")
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
        """Whether large releases run compiled from end to end, so that threads do not wait for each other."""
        return bool(self._limits) and not self.debias and compiled_loops() is not None

    def guarantee(self) -> PrivacyGuarantee:
        """Give the exact worst-case loss over the declared domain, from the integers that are sampled."""
        levels = feature_levels(self.laws, self._reachable)
        return PrivacyGuarantee(
            record_level(levels, self.n_drawn),
            per_feature=float(levels.max()),
            stated=self.stated,
            basis=self.basis,
            figures=self.figures,
        )

    def encode(self, values: npt.ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """The same fixed-point representation without noise: every feature, rounded towards 0 to the grid."""
        x = self._check(values)
        kept = self.encoding.decode(
            self.encoding.encode(np.clip(x, *round_inward(self.low, self.high, x.dtype))), x.dtype
        )
        if out is None:
            return kept
        np.copyto(out, kept)
        return out

    def code_law(self, code: int, column: int = 0) -> npt.NDArray[np.float64]:
        """Probability of every output code of one feature, shape (2**n_bits,), for at most 20 bits.

        Raises
        ------
        ValueError
            If there are more bits.
        """
        n_bits = self.encoding.n_bits
        if n_bits > 20:
            raise ValueError(f"The law of more than 20 bits does not fit into memory. Got {n_bits} bits instead.")
        law = np.ones(1)
        ones = self.laws[column % len(self.laws)].ones
        for place in range(n_bits):
            one = ones[code >> (n_bits - 1 - place) & 1, place]
            law = (law[:, None] * [1 - one, one]).reshape(-1)
        return law

    @cached_property
    def _reachable(self) -> npt.NDArray[np.uint64]:
        return self.encoding.reachable(self.low, self.high)

    @cached_property
    def _randomizers(self) -> tuple[BitRandomizer, ...]:
        return tuple(BitRandomizer(law) for law in self.laws)

    @cached_property
    def _complement_sampler(self) -> MaskSampler | None:
        """Masks for one's-complement codes, where one short symmetric law randomizes them all."""
        law = self.laws[0]
        if len(self.laws) > 1 or not law.symmetric or law.n_bits > LONGEST:
            return None
        return MaskSampler(tuple(int(t) for t in law.from_zero), complement=True)

    @cached_property
    def _limits(self) -> dict[np.dtype, tuple[np.floating, np.floating]]:
        """By dtype, the interval that all features are declared to have, where compiled steps can encode it."""
        of_their_own = (self.low != self.low[0]).any() or (self.high != self.high[0]).any()
        far = max(-self.low[0], self.high[0]) >= REACH * self.encoding.step
        if of_their_own or far or self.n_drawn < self.n_outputs or self._complement_sampler is None:
            return {}
        ends = {dtype: round_inward(self.low[:1], self.high[:1], dtype) for dtype in SAFE_EXPONENT}
        return {dtype: (low[0], high[0]) for dtype, (low, high) in ends.items() if is_exact(self.encoding, dtype)}

    @property
    def _code_dtype(self) -> np.dtype:
        # Masks come as 16-bit words; narrower codes would be widened at every step.
        return np.promote_types(self.encoding.code_dtype, np.uint16)

    def _release_rows(self, rows: np.ndarray, noise: Noise, released: np.ndarray, buffers: Buffers) -> int:
        limits, sampler = self._limits.get(rows.dtype), self._complement_sampler
        if limits is None or sampler is None or not isinstance(buffers, CompiledBuffers):
            return super()._release_rows(rows, noise, released, buffers)
        # Flattened, one column of many still has gaps between its numbers, and one number repeated stays a single one.
        n_moved = buffers.encode(self.encoding, np.require(rows.reshape(-1), requirements=["C", "A"]), *limits)
        if n_moved < 0:
            raise ValueError(NOT_FINITE)
        sampler.draw(noise, buffers)
        flat = released.reshape(-1)
        if self.debias:
            buffers.signed ^= buffers.mask.view(np.int16)
            self.decoders[0].decode_complement(buffers.signed, flat, buffers)
        else:
            buffers.decode(self.encoding, flat)
        return n_moved

    def _release(
        self, inside: Inside, columns: np.ndarray | None, noise: Noise, out: np.ndarray, buffers: Buffers
    ) -> None:
        flat = out.reshape(-1)
        if self._complement_sampler is not None and is_exact(self.encoding, out.dtype):
            signed = encode_complement(self.encoding, inside.rows.reshape(-1), inside.extent, flat, buffers)
            signed ^= self._complement_sampler.draw(noise, buffers).view(np.int16)
            if self.debias:
                self.decoders[0].decode_complement(signed, flat, buffers)
            else:
                decode_complement(self.encoding, signed, flat, buffers)
            return
        codes = self.encoding.encode(inside.rows.reshape(-1), out=buffers.codes, scratch=flat)
        self._randomize(codes, columns, noise, out, buffers)

    def _randomize(
        self, codes: np.ndarray, columns: np.ndarray | None, noise: Noise, out: np.ndarray, buffers: Buffers
    ) -> None:
        clean = codes.copy() if len(self.laws) > 1 else codes
        flat = out.reshape(-1)
        self._randomizers[0].randomize(codes, noise, buffers)
        self.decoders[0].decode(codes, flat, buffers)
        for which, (randomizer, decoder) in enumerate(zip(self._randomizers[1:], self.decoders[1:], strict=True), 1):
            other = randomizer.randomize(clean.copy(), noise, buffers)
            numbers = decoder.decode(other, np.empty_like(flat), buffers).reshape(out.shape)
            places = np.arange(out.shape[1]) if columns is None else columns
            np.copyto(out, numbers, where=places % len(self.laws) == which)

    def _moments(self, values: npt.ArrayLike) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Mean and mean square of the output."""
        x = np.clip(self._check(values).astype(np.float64), self.low, self.high)
        codes = self.encoding.encode(x)
        mean, square = np.empty(x.shape), np.empty(x.shape)
        for which, (law, decoder) in enumerate(zip(self.laws, self.decoders, strict=True)):
            part = (slice(None), slice(which, None, len(self.laws)))
            mean[part], square[part] = code_moments(codes[part], law, decoder)
        return mean, square * (self.n_outputs / self.n_drawn)
