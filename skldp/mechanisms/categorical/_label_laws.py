"""Laws of labels: label-Laplace, as a class and as a vector, and randomized response with public priors."""

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from skldp._arrays import Floats, Ints
from skldp._checks import check_epsilon
from skldp.domains._domain import Codes
from skldp.laws._odds import DIGITS, TWO_64
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._rows import RowMechanism, Workspace
from skldp.mechanisms.categorical._frequency import checked_prior
from skldp.mechanisms.categorical._randomized_response import CodeMechanism, RandomizedResponse
from skldp.mechanisms.numeric._additive import Laplace, discrete_laplace

# Margin by which the label-Laplace integral is rounded down; it is computed to at least DIGITS digits.
_INTEGRAL_ERROR = Decimal(10) ** -40


def label_laplace_keep_count(epsilon: float, n_classes: int) -> int:
    """Return the integer k with k / 2^64 at most the probability that label-Laplace keeps the true class."""
    # With a = epsilon / 2, l = e^-a / 2 and F the law of a standard Laplace variable, the integral of e^-|u - a|
    # F(u)^(C-1) / 2 is e^-a / (C 2^C) + (e^-a / 4) int_l^1/2 (1 - v)^(C-1) / v^2 dv + e^a (1 - (1 - l)^C) / C; the
    # middle one by recursion.
    a = Decimal(min(float(epsilon), 400.0)) / 2
    with localcontext(prec=DIGITS + int(a) + len(str(n_classes))):
        growth = a.exp()
        low, high = 1 / (2 * growth), Decimal("0.5")
        # by_v and by_v2 are the integrals of (1-v)^n / v and (1-v)^n / v^2 from low to high, here for n = 0.
        by_v, by_v2 = a, 1 / low - 1 / high
        low_power, high_power = Decimal(1), Decimal(1)
        for n in range(1, n_classes):
            by_v2 -= by_v
            low_power *= 1 - low
            high_power *= high
            by_v -= (low_power - high_power) / n
        inner = by_v2 / (4 * growth) + high_power * high / (growth * n_classes)
        keep = inner + growth * (1 - low_power * (1 - low)) / n_classes
        return min(int((keep - _INTEGRAL_ERROR) * TWO_64), TWO_64 - 1)


@dataclass(frozen=True)
class LabelLaplaceMechanism(RandomizedResponse):
    """Arg max of the one-hot label with Laplace noise: k-ary randomized response at a smaller epsilon."""

    _basis = "exact, of the arg max of the noisy one-hot label, from the 64-bit integer probabilities"

    @cached_property
    def _count(self) -> int:
        others = TWO_64 - label_laplace_keep_count(self.epsilon, self.n_classes)
        return -(-others // (self.n_classes - 1))


@dataclass(frozen=True)
class RandomizedResponseWithPrior(RowMechanism):
    """Randomized response over the k* likeliest classes of a prior (Ghazi et al., NeurIPS 2021, Algorithm 2)."""

    epsilon: float
    prior: tuple[float, ...]

    released_dtype: ClassVar[np.dtype] = np.dtype(np.int64)

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        object.__setattr__(self, "prior", checked_prior(self.prior))
        # Raises if epsilon is too small.
        _ = self.inner

    @property
    def n_classes(self) -> int:
        return len(self.prior)

    @cached_property
    def domain(self) -> Codes:
        return Codes((self.n_classes,))

    @cached_property
    def support(self) -> Ints:
        """The codes that are ever released, sorted."""
        prior, others = np.array(self.prior), np.arange(self.n_classes)
        order = np.argsort(-prior, kind="stable")
        expected = np.cumsum(prior[order]) / (1 + others * math.exp(-self.epsilon))
        return np.sort(order[: expected.argmax() + 1])

    @cached_property
    def inner(self) -> RandomizedResponse:
        return RandomizedResponse(self.epsilon, self.support.size)

    @property
    def exact_epsilon(self) -> float:
        """The exact worst-case log-likelihood ratio of what is sampled, rounded up."""
        return self.inner.exact_epsilon

    def support_probabilities(self) -> tuple[float, float]:
        """Return the probabilities that the true code and that any single other code is released."""
        if self.support.size < self.n_classes:
            some = f"{self.support.size} of {self.n_classes} classes"
            raise ValueError(f"Every class must be a possible answer for unbiased frequencies; got {some}.")
        return self.inner.support_probabilities()

    @property
    def flip_matrix(self) -> Floats:
        """The probability of releasing column j when the true code is row i, shape (n_classes, n_classes)."""
        matrix = np.zeros((self.n_classes, self.n_classes))
        matrix[:, self.support] = 1 / self.support.size
        matrix[np.ix_(self.support, self.support)] = self.inner.flip_matrix
        return matrix

    def log_likelihood(self, released: npt.ArrayLike, codes: npt.ArrayLike) -> Floats:
        """Return the natural log of the probability of each released code given each true code (broadcast)."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.flip_matrix)
        return np.asarray(logs[self._inside(codes), self._inside(released)])

    def guarantee(self, unit: str = "label") -> PrivacyGuarantee:
        answers = f"{self.support.size} of {self.n_classes} classes"
        basis = f"exact, from the 64-bit integer probabilities; answers with {answers}"
        return PrivacyGuarantee(self.exact_epsilon, unit=unit, stated=self.epsilon, basis=basis)

    @cached_property
    def _places(self) -> Ints:
        """The place of each code in the support, -1 where it has none."""
        places = np.full(self.n_classes, -1, dtype=np.int64)
        places[self.support] = np.arange(self.support.size)
        return places

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        places = self._places.take(rows, mode="clip", out=workspace.take("places", rows.shape, np.int64))
        outside = np.flatnonzero(places < 0)
        places.reshape(-1)[outside] = 0
        self.inner._draw(places, noise, out, workspace)
        out.reshape(-1)[outside] = noise.at(outside, rows.size).integers(self.support.size, outside.size)
        out[...] = self.support[out]


@dataclass(frozen=True)
class LabelLaplaceVectorMechanism(CodeMechanism):
    """A one-hot label with discrete Laplace noise of scale 2 / epsilon on every entry."""

    # Two labels differ by 1 in two entries, together as much as the ends of [-1, 1]: lattice, scale and exact epsilon
    # are those of Laplace.

    released_dtype: ClassVar[np.dtype] = np.dtype(np.float64)
    _unit: ClassVar[str] = "label"
    _basis: ClassVar[str] = "exact, of the discrete Laplace noise on the whole one-hot label"

    def __post_init__(self) -> None:
        super().__post_init__()
        # Raises if epsilon has no lattice.
        _ = self.law

    @cached_property
    def law(self) -> Laplace:
        """The law of one number in [-1, 1], whose noise every entry gets."""
        return Laplace(self.epsilon)

    @property
    def n_outputs(self) -> int:
        return self.n_classes

    @property
    def exact_epsilon(self) -> float:
        return self.law.exact_epsilon if self.n_classes > 1 else 0.0

    @property
    def noise_variance(self) -> float:
        return float(self.law.variance(0.0)) if self.n_classes > 1 else 0.0

    def _encode(self, rows: np.ndarray, out: np.ndarray, workspace: Workspace) -> None:
        out[...] = 0
        out[np.arange(len(rows)), rows[:, 0]] = 1

    def _draw(self, rows: np.ndarray, noise: Noise, out: np.ndarray, workspace: Workspace) -> None:
        self._encode(rows, out, workspace)
        if self.n_classes == 1:
            return
        # Sums of lattice steps are integers: no low bit of a float depends on the true class.
        out *= math.ldexp(1.0, self.law.lattice_exponent)
        out += discrete_laplace(self.law.scale, out.size, noise).reshape(out.shape)
        out *= self.law.step
