r"""Distribution of the norms of a task's vectors, and the radius that follows from it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from skldp._arrays import Floats
from skldp.learning._constants import DETECTED, USUAL_BIAS
from skldp.learning._posterior import positive_means
from skldp.learning._tasks import N_LEVELS

# Scales of the reference, relative to the top of the levels, four for each factor of two.
_SCALES = 2.0 ** (-np.arange(-4, 4 * N_LEVELS + 1) / 4)
# Powers of the part of a reference beyond its root mean square: tails of a normal and of an exponential distribution.
_TAILS = (1, 2)


@lru_cache(maxsize=16)
def _references(degrees: int) -> Floats:
    """Shares of the levels for each tail and scale of a chi distribution with root mean square 1."""
    quantiles = np.sqrt(special.gammaincinv(degrees / 2, (np.arange(200) + 0.5) / 200) * 2 / degrees)
    tails = [np.where(quantiles > 1, quantiles**power, quantiles) for power in _TAILS]
    return np.vstack([shares_of_levels(one / np.sqrt((one**2).mean()) * _SCALES[:, None], 1.0) for one in tails])


def shares_of_levels(norms: Floats, top: float) -> Floats:
    """Return the expected shares of the levels of some norms, shape (..., n) to (..., N_LEVELS)."""
    places = -np.log2(np.clip(norms / top, 2.0 ** (1 - N_LEVELS), 1))
    return np.maximum(0, 1 - np.abs(places[..., None] - np.arange(N_LEVELS))).mean(axis=-2)


@dataclass(frozen=True)
class NormLevels:
    """Shares of people at levels top 2^-k of a norm: as reported where these differ significantly from a reference."""

    top: float
    shares: Floats
    error: float
    n_people: int
    expected: float
    degrees: int = 1
    power: float = 1.0  # Of a vector's norm by the reported norm: 1/2 if that is its square, 2 for squares of numbers.

    @cached_property
    def _levels(self) -> Floats:
        return np.asarray(np.ldexp(self.top, -np.arange(N_LEVELS)) ** self.power)

    @cached_property
    def _radii(self) -> Floats:
        return np.asarray((self.top * 2.0 ** (-np.arange(4 * N_LEVELS - 3) / 4)) ** self.power)

    @cached_property
    def _weights(self) -> Floats:
        """Posterior probabilities of the scales of the reference."""
        references = _references(self.degrees)
        variances = self.error**2 + references / self.n_people
        misfit = ((self.shares - references) ** 2 / variances).sum(axis=1)
        misfit += np.tile(np.log2(_SCALES * self.top / self.expected), len(_TAILS)) ** 2
        weights = np.exp(-(misfit - misfit.min()) / 2)
        return weights / weights.sum()

    @cached_property
    def _distribution(self) -> tuple[Floats, Floats]:
        """Shares of all levels, and what significantly exceeds the reference."""
        reference = self._weights @ _references(self.degrees)
        # Compare the sums of all neighbouring levels. The reported shares' own sampling error would hide rare records.
        beyond, found = np.cumsum(np.append(0.0, reference)), np.cumsum(np.append(0.0, self.shares))
        expected, n_levels = (np.subtract.outer(one[1:], one[:-1]) for one in (beyond, np.arange(N_LEVELS + 1)))
        away = np.abs(np.subtract.outer(found[1:], found[:-1]) - expected)
        differs = ((n_levels > 0) & (away > DETECTED * self._errors(expected, np.maximum(n_levels, 1)))).any(axis=1)
        shares = np.where(differs, np.maximum(self.shares, 0), reference)
        excess = np.where(differs, np.maximum(self.shares - reference, 0), 0)
        # Impossible reports may leave all levels empty.
        total = shares.sum()
        return (shares / total, excess / total) if total > 0 else (reference, excess)

    def _errors(self, expected: Floats, n_levels: npt.NDArray[np.intp] | int) -> Floats:
        """Return the standard errors of expected sums of the shares of some levels."""
        variances = n_levels * self.error**2 + np.maximum(expected, 1 / self.n_people) / self.n_people
        return np.asarray(np.sqrt(variances))

    @cached_property
    def _hidden(self) -> Floats:
        """Expected shares of people whom noise may hide beside the reference."""
        reference = self._weights @ _references(self.degrees)
        return positive_means(self.shares - reference, self._errors(reference, 1))

    @property
    def scale(self) -> float:
        """Root mean square of the norms."""
        of_reference = float(np.exp(self._weights @ np.tile(np.log(_SCALES), len(_TAILS)))) * self.top
        return float(np.sqrt(of_reference**2 + self._distribution[1] @ self._levels**2))

    @property
    def scale_with_hidden(self) -> float:
        """Root mean square of the norms; people whom noise may hide make it as large as expected, at most."""
        hidden = float(np.sqrt(self._hidden @ self._levels**2))
        return max(self.scale, min(float(np.hypot(self.scale, hidden)), self.expected))

    @property
    def detectable(self) -> float:
        """Share of people far out, on all levels together, from which they are seen."""
        return float(DETECTED * self._errors(np.zeros(1), N_LEVELS)[0])

    def sampling_variance(self, radius: float, n_numbers: int) -> float:
        """Variance, by the choice of people, of a number of the mean of so many numbers of people in all."""
        return min(self.scale, radius) ** 2 / n_numbers

    def kept(self, radius: Any) -> Any:
        """Fraction of people within a radius or several: that of an error which shortened gradients still show."""
        within = np.clip(np.log2(np.divide.outer(radius, self._levels)) + 0.5, 0, 1)
        return np.maximum(1e-9, within @ self._distribution[0])

    def shortened(self, radius: Any) -> Any:
        """Mean factor by which vectors are shortened to a radius, or to several."""
        return np.minimum(1, np.divide.outer(radius, self._levels)) @ self._distribution[0]

    def bias(self, radius: Any, of_reference: float = 1.0) -> Any:
        """Bound of the bias of the mean of vectors shortened to a radius, or to several."""
        beyond = np.maximum(-np.subtract.outer(radius, self._levels), 0)
        shares, excess = self._distribution
        return np.hypot(of_reference * (beyond @ shares), beyond @ excess)

    def bias_with_hidden(self, radius: float, of_reference: float) -> float:
        """Bound of the bias if people whom noise may hide are up to twice as far away as the radius."""
        # People between two levels report either.
        near = (self._levels > radius) & (self._levels < 2 * 2**self.power * radius)
        beyond = np.minimum(self._levels[near], 2 * radius) - radius
        return float(np.hypot(self.bias(radius, of_reference), self._hidden[near] @ beyond))

    def radius_of_gradients(self, noise: float, n_terms: int = 1) -> float:
        """Return the best radius of gradients for the noise that a radius of 1 has."""
        # A skewed residual biases the constant, one of the terms, and with centred features no other.
        return self._best(noise, USUAL_BIAS / n_terms**0.5, self.kept)

    def radius_of_moments(self, noise: float, of_reference: float = USUAL_BIAS) -> float:
        """Return the best radius of vectors whose mean is itself the estimate."""
        return self._best(noise, of_reference, self.shortened)

    def radius_of_residuals(self, noise: float, sizes: Floats, chances: Floats) -> float:
        """Return the best radius of these vectors times residuals of independent sizes, each with its chance."""
        norms = np.outer(sizes[chances > 0], self._levels).ravel()
        shares, excess = (np.outer(chances[chances > 0], one).ravel() for one in self._distribution)
        radii = sizes.max() * self._radii
        beyond = np.maximum(norms - radii[:, None], 0)
        bias = np.hypot(USUAL_BIAS * (beyond @ shares), beyond @ excess)
        information = norms**2 * shares
        shown = np.minimum(1, radii[:, None] / norms) @ information / information.sum()
        return float(radii[np.argmin(np.hypot(noise * radii, bias) / shown)])

    def radius_within(self, share: float, noise: float) -> float:
        """Return the smallest radius whose bias is at most a fraction of the error, the top if there is none."""
        within = self._radii[self.bias(self._radii) <= share * noise * self._radii]
        return float(within.min(initial=self.top))

    @property
    def kurtosis(self) -> float:
        """Mean square over the square of the mean of the norms."""
        shares = self._distribution[0]
        return float(shares @ self._levels**2 / (shares @ self._levels) ** 2)

    # The error of a step of radius r with noise s: ((r s)^2 + b(r)^2)^(1/2), over the share of it that is shown.
    def _best(self, noise: float, of_reference: float, shown: Callable[[Floats], Floats]) -> float:
        errors = np.hypot(noise * self._radii, self.bias(self._radii, of_reference)) / shown(self._radii)
        return float(self._radii[errors.argmin()])


@lru_cache(maxsize=64)
def reported_levels(
    top: float, shares: tuple[float, ...], error: float, n_people: int, expected: float, degrees: int
) -> NormLevels:
    """Return the levels with these reported shares; steps ask for the same ones several times."""
    return NormLevels(top, np.array(shares), error, n_people, expected, degrees)


def pooled(before: dict[str, Any] | None, top: float, shares: Floats, n_people: int) -> dict[str, Any]:
    """Add reported shares to earlier ones, whose levels may start at another power of two."""
    if before is None:
        return {"top": top, "shares": shares.tolist(), "people": n_people}
    shift = round(np.log2(top / before["top"]))
    moved = np.zeros(N_LEVELS)
    np.add.at(moved, np.clip(np.arange(N_LEVELS) + shift, 0, N_LEVELS - 1), before["shares"])
    people = before["people"] + n_people
    both = (before["people"] * moved + n_people * shares) / people
    return {"top": top, "shares": both.tolist(), "people": people}
