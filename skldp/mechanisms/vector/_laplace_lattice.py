r"""Multivariate Laplace noise in real numbers, of which exactly the nearest point of a lattice is computed.

Take :math:`z = \|h\| g` with independent standard normal g in d and h in d + 1 dimensions. Given h, z is normal with
variance :math:`\|h\|^2` per coordinate, and this mixture has the density :math:`\propto e^{-\|z\|}` (the square of
:math:`\|h\|` is chi-square with d + 1 degrees of freedom: Andrews and Mallows 1974). Box and Muller's transform makes
normal numbers from uniform ones, and :math:`\|h\|^2` from exponential ones, all without rejection.

A uniform real number is a word with infinitely many further bits. Every operation keeps a bound on its error, from
these bits and from rounding, so the lattice point of a coordinate is certain unless a border between two cells is
within the bound. Then the same operations are made in decimals, with further bits of the words where they are needed.
The released point is that of the real numbers, whose law is exact, and rounding them is post-processing.

Logarithms, sines and cosines of floats are assumed to be accurate to 4 units in the last place.

References
----------
D. Andrews and C. Mallows, "Scale mixtures of normal distributions", Journal of the Royal Statistical Society B, 1974.
I. Mironov, "On significance of the least significant bits for differential privacy", CCS 2012.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from skldp._arrays import Floats, Positions, Words
from skldp.mechanisms._noise import Noise, as_uniform


@dataclass(frozen=True)
class _Arithmetic:
    """Functions of arrays of floats or decimals, the relative error of each, and the error of a uniform number."""

    log: Callable[[Any], Any]
    cosine: Callable[[Any], Any]
    sine: Callable[[Any], Any]
    turn: Any
    unit: Any
    width: Any


_FLOATS = _Arithmetic(np.log, np.cos, np.sin, 2 * math.pi, 2.0**-53, 2.0**-53)


def noisy_points(rows: Floats, noise: Noise, scale: Fraction, step: float) -> Floats:
    """Return the nearest lattice points (n, d) of rows with noise of density proportional to exp(-||z|| / scale)."""
    (n, d), in_steps = rows.shape, scale / Fraction(step)
    words = noise.words((n, n_words(d)))
    with np.errstate(all="ignore"):
        noises, errors = _noise(as_uniform(words), d, float(in_steps), _FLOATS)
        # Exact but for underflow: noise is added to what is left of a row beyond its own lattice point.
        own = rows * (1 / step)
        base = np.rint(own)
        rest = np.where(np.isfinite(base), own - base, 0.0)
        total = noises + rest
        moved = np.rint(total)
        # NaN is unsure.
        unsure = ~(np.abs(total - moved) + 2.0**-51 * (np.abs(total) + 1) + errors < 0.5)
        for row in np.flatnonzero(unsure.any(axis=1)):
            columns = np.flatnonzero(unsure[row])
            stream = noise.at(np.array([row]), n)
            moved[row, columns] = decided(words[row], stream, rest[row, columns], columns, d, in_steps)
        base += moved
        return base * step


def n_words(d: int) -> int:
    """Return the number of uniform numbers for d dimensions: for pairs of normal numbers, and for the scale."""
    return 3 * ((d + 1) // 2) + 2 * (1 - d % 2)


def decided(words: Words, noise: Noise, rest: Floats, columns: Positions, d: int, in_steps: Fraction) -> list[float]:
    """Return the lattice points of some coordinates of one row, from as many further bits as they need."""
    known, bits = [int(word) for word in words], 64
    while True:
        with localcontext(prec=bits // 3 + 40) as context:
            tiny = Decimal(10) ** (12 - context.prec)
            by = _decimals(tiny, Decimal(2) ** -bits)
            uniform = np.array([[(word + Decimal("0.5")) / 2**bits for word in known]], dtype=object)
            scale = Decimal(in_steps.numerator) / Decimal(in_steps.denominator)
            noises, errors = _noise(uniform, d, scale, by)
            total = [noises[0, column] + Decimal(float(own)) for column, own in zip(columns, rest, strict=True)]
            moved = [one.to_integral_value() for one in total]
            apart = (abs(one - near) + tiny * (abs(one) + 1) for one, near in zip(total, moved, strict=True))
            if max(apart) + errors[0, 0] < Decimal("0.5"):
                return [float(one) for one in moved]
        known = [(word << 64) + int(more) for word, more in zip(known, noise.words(len(known)), strict=True)]
        bits += 64


def _decimals(unit: Decimal, width: Decimal) -> _Arithmetic:
    """Return functions of arrays of decimals in the precision of the context."""
    turn = 2 * _pi()
    log, cosine = np.frompyfunc(Decimal.ln, 1, 1), np.frompyfunc(_cosine, 1, 1)
    return _Arithmetic(log, cosine, lambda angle: cosine(angle - turn / 4), turn, unit, width)


def _noise(uniform: np.ndarray, d: int, scale: Any, by: _Arithmetic) -> tuple[np.ndarray, np.ndarray]:
    """Return the noise in lattice steps, shape (n, d), and the bound on each row's errors, shape (n, 1)."""
    half = (d + 1) // 2
    # Radii of the pairs, their angles in turns, and for the scale the exponential numbers and a last radius and angle.
    pairs, turns, scales, last = np.split(uniform, [half, 2 * half, 3 * half], axis=1)
    radius, off, *_ = _radii(pairs, by)
    _, _, total, error = _radii(scales, by)
    total, error = total.sum(axis=1)[:, None], error.sum(axis=1)[:, None]
    # The cosine's error counts its angle.
    turned = 32 * (by.width + by.unit)
    if last.shape[1]:
        one, its, _, _ = _radii(last[:, :1], by)
        normal, its = one * by.cosine(by.turn * last[:, 1:]), its + turned * one
        total, error = total + normal**2, error + its * (2 * abs(normal) + its)
    error = error + (half + 8) * by.unit * total
    length = np.sqrt(total)
    error = error / length + 4 * by.unit * length
    angles = by.turn * turns
    normals = np.concatenate([radius * by.cosine(angles), radius * by.sine(angles)], axis=1)[:, :d] * (scale * length)
    # A normal number is at most its radius.
    most, its = radius.max(axis=1)[:, None], (off + turned * radius).max(axis=1)[:, None]
    bound = scale * (length * its + error * (most + its) + 8 * by.unit * length * most)
    # The bounds were computed with rounding themselves.
    return normals, bound + bound / 64


def _radii(uniform: np.ndarray, by: _Arithmetic) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    r"""Return radii :math:`\sqrt{-2 \ln u}` with their errors, and their squares with theirs."""
    squares = -2 * by.log(uniform)
    left = uniform - by.width
    # A word of zeros has to be extended by further bits.
    off = 2 * by.width / np.where(left > 0, left, by.width**2) + 8 * by.unit * squares
    radius = np.sqrt(squares)
    # With a square of e +- a the root is within a / sqrt(e), even where a exceeds e.
    return radius, off / radius, squares, off


def _pi() -> Decimal:
    """Return pi to the precision of the context, by the recipe of the decimal module."""
    term, total, last, n, up, below, more = Decimal(3), Decimal(3), Decimal(0), 1, 0, 0, 24
    while total != last:
        last = total
        n, up = n + up, up + 8
        below, more = below + more, more + 32
        term = term * n / below
        total += term
    return total


def _cosine(angle: Decimal) -> Decimal:
    """Return the cosine of an angle of at most one turn, by its series."""
    term = total = Decimal(1)
    n = 0
    while total + term != total:
        n += 2
        term *= -angle * angle / (n * (n - 1))
        total += term
    return total
