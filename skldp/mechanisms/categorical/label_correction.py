r"""From a classifier of randomized labels back to the true classes, through the known flip matrix T.

:math:`T_{ij}` is the probability of releasing class j when the true one is i, so that
:math:`P(y' | x) = T^\top P(y | x)`.
"""

import numpy as np
import numpy.typing as npt

__all__ = ["clean_probabilities", "project_onto_simplex"]


def clean_probabilities(
    noisy: npt.NDArray[np.floating], flip_matrix: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    r"""Probabilities of the true classes from those of the randomized ones.

    Parameters
    ----------
    noisy : ndarray of shape (n_samples, n_classes)
        Rows of :math:`P(y' | x)`.
    flip_matrix : ndarray of shape (n_classes, n_classes)
        T. Classes that are never released (columns of zeros) get probability 0: nothing is known about them.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
        The solution of :math:`T^\top p = q`, then the nearest point (Euclidean) of the probability simplex.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms.categorical.label_correction import clean_probabilities
    >>> clean_probabilities(np.array([[0.7, 0.3]]), np.array([[0.75, 0.25], [0.25, 0.75]])).round(6).tolist()
    [[0.9, 0.1]]
    """
    released = np.flatnonzero(flip_matrix.any(axis=0))
    law = flip_matrix[np.ix_(released, released)]
    solved = np.asarray(np.linalg.solve(law.T, noisy[:, released].T).T, dtype=np.float64)
    clean = np.zeros(noisy.shape)
    clean[:, released] = project_onto_simplex(solved)
    return clean


def project_onto_simplex(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The nearest point of the probability simplex to each row, in Euclidean distance.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_classes)

    Returns
    -------
    ndarray of shape (n_samples, n_classes)

    References
    ----------
    Duchi, Shalev-Shwartz, Singer and Chandra, "Efficient projections onto the l1-ball for learning in high
    dimensions", ICML 2008, Figure 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms.categorical.label_correction import project_onto_simplex
    >>> project_onto_simplex(np.array([[1.5, -0.5], [0.25, 0.25]])).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    descending = -np.sort(-rows, axis=1)
    excess = np.cumsum(descending, axis=1) - 1
    ranks = np.arange(1, rows.shape[1] + 1)
    support = np.count_nonzero(descending * ranks > excess, axis=1)
    shift = excess[np.arange(rows.shape[0]), support - 1] / support
    return np.maximum(rows - shift[:, None], 0.0)
