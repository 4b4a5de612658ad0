"""Randomized response where every person has a public prior of their own."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from skldp.mechanisms._categorical.label_laws import ranked_supports
from skldp.mechanisms._categorical.randomized_response import RandomizedResponse
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import Noise

__all__ = ["RowPriorResponse", "as_priors"]


def as_priors(probabilities: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """What a model says of classes as priors, whatever it says: never an error, which would come after a release.

    Shapes: probabilities (n, n_classes).

    Examples
    --------
    >>> from skldp.mechanisms._categorical.row_priors import as_priors
    >>> as_priors([[3.0, 1.0], [float("nan"), 1.0], [0.0, 0.0]]).tolist()
    [[0.75, 0.25], [0.5, 0.5], [0.5, 0.5]]
    """
    given = np.asarray(probabilities, dtype=np.float64)
    useful = np.isfinite(given).all(axis=1, keepdims=True) & (given > 0).any(axis=1, keepdims=True)
    mass = np.where(useful, np.maximum(given, 0.0), 1.0)
    # Of the largest first: the sum of large numbers could overflow.
    mass /= mass.max(axis=1, keepdims=True)
    shares: npt.NDArray[np.float64] = mass / mass.sum(axis=1, keepdims=True)
    return shares


@dataclass(frozen=True)
class RowPriorResponse:
    r"""Randomized response with one public prior for each row (RRWithPrior).

    What is answered with is chosen from a row's prior and epsilon alone, as by :class:`RandomizedResponseWithPrior`.

    Parameters
    ----------
    epsilon : float
        Natural-log budget of one answer.
    n_classes : int
        C, at least 1.

    Raises
    ------
    ValueError
        If a parameter is out of range, or epsilon too small for 64-bit probabilities of any number of classes.

    Notes
    -----
    The priors must not depend on the label that is released with them: what earlier people released, and public
    features, may make them.

    References
    ----------
    Ghazi, Golowich, Kumar, Manurangsi and Zhang, "Deep learning with label differential privacy", NeurIPS 2021,
    Algorithms 2 and 3.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms._categorical.row_priors import RowPriorResponse
    >>> RowPriorResponse(1.0, 3).flip_matrices(np.array([[0.1, 0.5, 0.4]])).round(3).tolist()
    [[[0.0, 0.5, 0.5], [0.0, 0.731, 0.269], [0.0, 0.269, 0.731]]]
    """

    epsilon: float
    n_classes: int

    def __post_init__(self) -> None:
        # Refuses what cannot be answered with.
        _ = self.laws

    @cached_property
    def laws(self) -> tuple[RandomizedResponse, ...]:
        """The randomized response over 1, 2, ... ``n_classes`` classes."""
        return tuple(RandomizedResponse(self.epsilon, size) for size in range(1, self.n_classes + 1))

    def guarantee(self, unit: str = "label") -> PrivacyGuarantee:
        """The exact guarantee of one release, whatever the prior."""
        return PrivacyGuarantee(
            max(law.exact_epsilon for law in self.laws),
            unit=unit,
            stated=self.epsilon,
            basis="exact, from the 64-bit integer probabilities; the worst number of classes that a prior can choose",
        )

    def release(
        self, codes: npt.NDArray[np.int64], priors: npt.NDArray[np.float64], noise: Noise
    ) -> npt.NDArray[np.int64]:
        """Release every code with its row's prior.

        Parameters
        ----------
        codes : ndarray of int64, shape (n,)
            From 0 to ``n_classes - 1``.
        priors : ndarray of shape (n, n_classes)
            As by :func:`as_priors`.
        noise : Noise

        Returns
        -------
        ndarray of int64, shape (n,)
        """
        order, sizes = ranked_supports(priors, self.epsilon)
        places = (order == codes[:, None]).argmax(axis=1)
        for size, stream in zip(np.unique(sizes).tolist(), noise.spawn(np.unique(sizes).size), strict=True):
            group = np.flatnonzero(sizes == size)
            # Drawn for everybody: how much is drawn must not tell who has a class outside of the support.
            uniform = stream.integers(size, group.size)
            inside = places[group] < size
            kept = np.where(inside, places[group], 0)[:, None]
            answered = self.laws[size - 1].release(kept, stream).rows[:, 0]
            places[group] = np.where(inside, answered, uniform)
        released: npt.NDArray[np.int64] = np.take_along_axis(order, places[:, None], axis=1)[:, 0]
        return released

    def flip_matrices(self, priors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The probability of releasing class j when the true one is i, for each row, shape (n, n_classes, n_classes).

        Examples
        --------
        >>> import numpy as np
        >>> from skldp.mechanisms._categorical.row_priors import RowPriorResponse
        >>> RowPriorResponse(1.0, 2).flip_matrices(np.array([[0.99, 0.01]])).tolist()
        [[[1.0, 0.0], [1.0, 0.0]]]
        """
        order, sizes = ranked_supports(priors, self.epsilon)
        ranks = np.argsort(order, axis=1)
        inside = ranks < sizes[:, None]
        keep, other = np.array([(law.keep_probability, law.other_probability) for law in self.laws])[sizes - 1].T
        rows = np.where(inside[:, :, None], other[:, None, None], 1 / sizes[:, None, None])
        matrices = np.where(inside[:, None, :], rows, 0.0)
        diagonal = np.arange(self.n_classes)
        matrices[:, diagonal, diagonal] = np.where(inside, keep[:, None], 0.0)
        return matrices
