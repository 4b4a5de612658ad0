"""Parts of federated learning: models with their gradients, releases of gradients, and the epsilon of a training."""

import math
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from numbers import Integral
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

from skldp.laws._odds import product_above, split_epsilon
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise
from skldp.mechanisms._rows import RowMechanism
from skldp.shuffle._shuffled import shuffled, shuffled_closed_form

_Array = npt.NDArray[np.float64]

PERTURBED = ("nothing", "features", "gradients", "anonymised gradients", "anonymised coordinates", "anonymised weights")
# An anonymiser mixes these number by number.
_ONE_BY_ONE = ("anonymised coordinates", "anonymised weights")


@dataclass(frozen=True)
class ScoreModel:
    """Scores of rows by fully connected layers with rectified linear units, whose parameters are one flat vector."""

    loss: str  # "softmax" or "sigmoid"
    n_inputs: int
    n_outputs: int
    hidden: tuple[int, ...] = ()

    @property
    def _shapes(self) -> list[tuple[int, int]]:
        """Shapes of the matrices; each but the first has a row for a constant unit, which the inputs contain."""
        outputs = [*self.hidden, self.n_outputs]
        inputs = [self.n_inputs, *(size + 1 for size in self.hidden)]
        return list(zip(inputs, outputs, strict=True))

    @property
    def n_parameters(self) -> int:
        """Length of the vector of parameters."""
        return sum(rows * columns for rows, columns in self._shapes)

    def start(self, noise: Noise) -> _Array:
        """Return public first parameters: zeros for a convex loss, else uniform as in He et al., 2015."""
        if not self.hidden:
            return np.zeros(self.n_parameters)
        layers = []
        for place, (n_in, n_out) in enumerate(self._shapes):
            layer = (2 * noise.uniform((n_in, n_out)) - 1) * (6 / n_in) ** 0.5
            if place:
                layer[-1] = 0
            layers.append(layer.ravel())
        return np.concatenate(layers)

    def scores(self, theta: _Array, rows: _Array) -> _Array:
        """Return the scores of rows, of shape (..., n, n_outputs)."""
        return self._forward(theta, rows)[-1]

    def predictions(self, scores: _Array) -> _Array:
        """Return scores on the scale of the targets."""
        return np.asarray(softmax(scores, axis=-1) if self.loss == "softmax" else expit(scores))

    def gradient(self, theta: _Array, rows: _Array, targets: _Array, weights: _Array) -> _Array:
        """Return the weighted sum of the gradients of rows (..., n, n_inputs), of shape (..., n_parameters)."""
        *units, scores = self._forward(theta, rows)
        layers = self._layers(theta)
        error = weights[..., None] * (self.predictions(scores) - targets)
        parts = []
        for place in range(len(layers) - 1, -1, -1):
            matrices = np.swapaxes(units[place], -1, -2) @ error
            parts.append(matrices.reshape(*matrices.shape[:-2], -1))
            if place:
                error = (error @ np.swapaxes(layers[place][..., :-1, :], -1, -2)) * (units[place][..., :-1] > 0)
        return np.concatenate(parts[::-1], axis=-1)

    def smoothness(self, rows: _Array) -> float:
        """Bound the smoothness of the mean loss over these rows, for linear scores."""
        largest = float(np.linalg.norm(rows.T @ rows / len(rows), 2))
        return largest * {"softmax": 0.5, "sigmoid": 0.25}[self.loss]

    def _layers(self, theta: _Array) -> list[_Array]:
        ends = np.cumsum([0, *(rows * columns for rows, columns in self._shapes)]).tolist()
        return [
            theta[..., a:b].reshape(*theta.shape[:-1], *shape)
            for (a, b), shape in zip(pairwise(ends), self._shapes, strict=True)
        ]

    def _forward(self, theta: _Array, rows: _Array) -> list[_Array]:
        """Return the inputs of each layer, and the scores."""
        entering = [rows]
        *inner, last = self._layers(theta)
        for layer in inner:
            units = np.maximum(entering[-1] @ layer, 0)
            entering.append(np.concatenate([units, np.ones((*units.shape[:-1], 1))], axis=-1))
        return [*entering, entering[-1] @ last]


# Epsilon of one training: without a trusted party, as published, behind a shuffler, and by the closed formula.
CountedTraining = tuple[PrivacyGuarantee, float, PrivacyGuarantee | None, float]


class GradientRelease:
    """Release of the gradients of all clients in each round, at the given share of the budget."""

    guarantee: PrivacyGuarantee

    def __init__(self, mechanism: Any, perturbs: str, bound: float, n_releases: int) -> None:
        changes: dict[str, Any] = {
            "epsilon": split_epsilon(mechanism.epsilon, n_releases if perturbs == "gradients" else 1)
        }
        parameters = mechanism.get_params(deep=False)
        # A declared radius is in the units of the gradients.
        if "bounds" in parameters and "norm" not in parameters:
            changes["bounds"] = (-bound, bound)
        self.mechanism = mechanism.set_params(**changes)
        self.perturbs, self.n_releases = perturbs, n_releases
        self.one_by_one = perturbs in _ONE_BY_ONE
        # A released direction has no length; this is the root mean square of a coordinate uniform in the box.
        self.size = bound / math.sqrt(3) if parameters.get("norm") == "unit" else None
        seed = parameters.get("seed")
        self._seeds = np.random.default_rng(int(seed)) if isinstance(seed, Integral) else None

    def __call__(self, gradients: np.ndarray) -> np.ndarray:
        if self._seeds is not None:
            # One seed for all rounds would repeat the noise. Consecutive seeds would share noise between studies.
            self.mechanism.set_params(seed=int(self._seeds.integers(1 << 63)))
        shape = (-1, 1) if self.one_by_one else gradients.shape
        released = np.asarray(self.mechanism.fit_transform(gradients.reshape(shape)))
        self.guarantee = self.mechanism.privacy_guarantee_
        length = 1.0 if self.size is None else self.size * math.sqrt(gradients.shape[1])
        return released.reshape(gradients.shape) * length

    @property
    def law(self) -> RowMechanism | PrivacyGuarantee:
        """Mechanism of one release, or its guarantee where the mechanism is not known."""
        own = getattr(self.mechanism, "mechanism_", None)
        if isinstance(own, RowMechanism) and own.guarantee().epsilon == self.guarantee.epsilon:
            return own
        return self.guarantee


def count_records(parts: list[PrivacyGuarantee]) -> CountedTraining:
    """Sum the guarantees of features and labels, which are released once."""
    if not parts:
        return PrivacyGuarantee(math.inf, basis="nothing is perturbed"), math.inf, None, math.nan
    total = reduce(add, parts)
    if {part.unit for part in parts} == {"label"}:
        total = replace(total, unprotected=("features",))
    elif len(parts) == 1:
        total = replace(total, unprotected=("target",))
    return total, _stated(total), None, math.nan


def count_gradients(
    release: GradientRelease, n_coordinates: int, n_rounds: int, n_clients: int, delta: float, n_sampled: int | None
) -> CountedTraining:
    """Count the releases of the gradients of `n_sampled` clients, or all, in every round."""
    once, published = release.guarantee, _stated(release.guarantee)
    times, what = n_rounds, "rounds"
    if release.perturbs == "gradients":
        times = release.n_releases
        published = product_above(published, times)
    elif release.one_by_one:
        times, what = n_rounds * n_coordinates, "coordinates and rounds"
    total = _repeated(once, times, what)
    if release.perturbs == "gradients" or once.delta or once.unit == "distance":
        return total, published, None, math.nan
    n_sampled = n_clients if n_sampled is None else n_sampled
    # All numbers of a round share one draw of clients, so that it amplifies only what is mixed together.
    out_of = None if release.one_by_one else n_clients
    mixed = replace(shuffled(release.law, n_sampled, delta, rounds=times, out_of=out_of), seeded=once.seeded)
    try:
        closed_form = product_above(shuffled_closed_form(once.epsilon, n_sampled, split_epsilon(delta, times)), times)
    except ValueError:
        closed_form = math.nan
    return total, published, mixed, closed_form


def _repeated(guarantee: PrivacyGuarantee, times: int, what: str) -> PrivacyGuarantee:
    """Basic composition of one guarantee with itself."""
    return replace(
        guarantee,
        epsilon=product_above(guarantee.epsilon, times),
        delta=min(1.0, product_above(guarantee.delta, times)),
        per_feature=None,
        stated=None,
        figures=(),
        basis=f"{times:,} {what}, each: {guarantee.basis}",
    )


def _stated(guarantee: PrivacyGuarantee) -> float:
    return guarantee.epsilon if guarantee.stated is None else guarantee.stated
