"""What is trained by federated learning: its scores, and the gradient of its loss."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

from skldp.mechanisms._noise import Noise

__all__ = ["LOSSES", "FlatModel", "LinearScores", "Network"]

_Array = npt.NDArray[np.float64]

LOSSES = ("softmax", "sigmoid", "linear")


@dataclass(frozen=True)
class FlatModel(ABC):
    """Scores of rows by one flat vector of parameters.

    Parameters
    ----------
    loss : {"softmax", "sigmoid", "linear"}
        Cross entropy of classes, cross entropy of every attribute by itself, or squared error.
    n_inputs, n_outputs : int
        Columns of the rows (a constant one among them) and of the targets.
    """

    loss: str
    n_inputs: int
    n_outputs: int

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """Numbers in the vector of parameters."""

    @abstractmethod
    def start(self, noise: Noise) -> _Array:
        """Parameters before the first round, which everybody knows."""

    @abstractmethod
    def scores(self, theta: _Array, rows: _Array) -> _Array:
        """Scores of rows, of shape (..., n, n_outputs)."""

    @abstractmethod
    def gradient(self, theta: _Array, rows: _Array, targets: _Array, weights: _Array) -> _Array:
        """The weighted sum of the gradients of rows of shape (..., n, n_inputs), of shape (..., n_parameters)."""

    def predictions(self, scores: _Array) -> _Array:
        """Scores on the scale of the targets."""
        if self.loss == "softmax":
            return np.asarray(softmax(scores, axis=-1))
        return np.asarray(expit(scores)) if self.loss == "sigmoid" else scores


@dataclass(frozen=True)
class LinearScores(FlatModel):
    """Every score is a linear function of the row."""

    @property
    def n_parameters(self) -> int:
        """One for each pair of an input and an output."""
        return self.n_inputs * self.n_outputs

    def start(self, noise: Noise) -> _Array:
        """Zeros: the loss is convex."""
        return np.zeros(self.n_parameters)

    def scores(self, theta: _Array, rows: _Array) -> _Array:
        """The product of rows and parameters."""
        return rows @ theta.reshape(self.n_inputs, self.n_outputs)

    def gradient(self, theta: _Array, rows: _Array, targets: _Array, weights: _Array) -> _Array:
        """The product of rows and weighted residuals."""
        residuals = weights[..., None] * (self.predictions(self.scores(theta, rows)) - targets)
        return _flat(np.swapaxes(rows, -1, -2) @ residuals)

    def smoothness(self, rows: _Array) -> float:
        """A bound on how fast the gradient of the mean loss over these rows changes."""
        largest = float(np.linalg.norm(rows.T @ rows / len(rows), 2))
        return largest * {"softmax": 0.5, "sigmoid": 0.25, "linear": 1.0}[self.loss]


@dataclass(frozen=True)
class Network(FlatModel):
    """Fully connected layers with rectified linear units between them.

    Parameters
    ----------
    loss, n_inputs, n_outputs
        As for :class:`FlatModel`.
    hidden : tuple of int
        Units of each hidden layer.
    """

    hidden: tuple[int, ...]

    @property
    def _shapes(self) -> list[tuple[int, int]]:
        """Of the layers' matrices; each but the first has a row for a constant unit, which the inputs have already."""
        outputs = [*self.hidden, self.n_outputs]
        inputs = [self.n_inputs, *(size + 1 for size in self.hidden)]
        return list(zip(inputs, outputs, strict=True))

    @property
    def n_parameters(self) -> int:
        """Of all layers."""
        return sum(rows * columns for rows, columns in self._shapes)

    def start(self, noise: Noise) -> _Array:
        """Uniform numbers of variance 2 over the layer's inputs, and constants of 0 (He et al., 2015)."""
        layers = []
        for place, (n_in, n_out) in enumerate(self._shapes):
            layer = (2 * noise.uniform((n_in, n_out)) - 1) * (6 / n_in) ** 0.5
            if place:
                layer[-1] = 0
            layers.append(layer.ravel())
        return np.concatenate(layers)

    def scores(self, theta: _Array, rows: _Array) -> _Array:
        """The last layer's."""
        return self._forward(theta, rows)[-1]

    def gradient(self, theta: _Array, rows: _Array, targets: _Array, weights: _Array) -> _Array:
        """By backpropagation."""
        *units, scores = self._forward(theta, rows)
        layers = self._layers(theta)
        error = weights[..., None] * (self.predictions(scores) - targets)
        parts = []
        for place in range(len(layers) - 1, -1, -1):
            parts.append(_flat(np.swapaxes(units[place], -1, -2) @ error))
            if place:
                error = (error @ layers[place][:-1].T) * (units[place][..., :-1] > 0)
        return np.concatenate(parts[::-1], axis=-1)

    def _layers(self, theta: _Array) -> list[_Array]:
        ends = np.cumsum([0, *(rows * columns for rows, columns in self._shapes)]).tolist()
        return [theta[a:b].reshape(shape) for (a, b), shape in zip(pairwise(ends), self._shapes, strict=True)]

    def _forward(self, theta: _Array, rows: _Array) -> list[_Array]:
        """What enters each layer, and the scores."""
        entering = [rows]
        *inner, last = self._layers(theta)
        for layer in inner:
            units = np.maximum(entering[-1] @ layer, 0)
            entering.append(np.concatenate([units, np.ones((*units.shape[:-1], 1))], axis=-1))
        return [*entering, entering[-1] @ last]


def _flat(matrices: Any) -> _Array:
    return np.asarray(matrices).reshape(*matrices.shape[:-2], -1)
