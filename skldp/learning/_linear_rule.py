r"""From class means that were told with noise to a linear rule, with the help of vectors that are nobody's secret."""

import math

import numpy as np
import numpy.typing as npt

from skldp.learning._tasks import noise_variance

__all__ = ["clear_shares", "likeliest_numbers", "linear_rule", "n_directions", "self_trained", "shrunk_covariance"]

# What differs from nothing by less than three times the spread of its noise is nothing. No share is taken as less than
# its noise, nor than this part of an equal one; noise beyond a quarter of an equal one does not count there.
_CLEARLY, _LEAST_SHARE, _MOST_OF_NOISE = 3.0, 1e-3, 0.25

# What is left of the means' squares when noise is taken off is at least this part of them: with less, all records would
# be given to the largest class.
_LEAST_PART = 0.1
# How far class means are expected to differ: in the direction in which records differ most by this part of their
# variance, in others by the square of how much less records differ there.
_BETWEEN, _DECAY = 0.5, 2.0
# How often public points are given to classes anew.
_PASSES = 3
# An error below this is no reason to move a number that was told, on a scale of 2.
_SMALL = 0.01
# Of expectation maximisation, of which every step is likelier than the one before.
_ITERATIONS = 100

_Array = npt.NDArray[np.float64]


def linear_rule(means: _Array, noise: _Array, within: _Array, shares: _Array) -> tuple[_Array, _Array]:
    r"""The linear discriminant of class means that are known up to noise, in coordinates without correlation.

    Shapes: means (n_classes, r), noise (n_classes, r), within (r,), shares (n_classes,); returns weights (n_classes,
    r), intercepts (n_classes,).

    Notes
    -----
    The rule is the nearest mean's: half the square of a mean stands in its intercept. The noise's own squares are taken
    off, and what is left is shrunk by its known variance (James and Stein). One factor for all scores turns them into
    logits: noise moves the difference of two scores as much as it makes them differ, so that it counts once in the
    numerator and not at all in

    .. math:: \gamma = \frac{\sum_k \pi_k (\|\mu_k\|^2 - \text{noise}_k)}{\sum_{k, j} \pi_k \mu_{kj}^2 \sigma_j^2} .
    """
    excess = means**2 - noise
    squares = excess.sum(axis=1)
    offsets = (squares.mean() - squares) / 2
    variance = np.mean((noise * (noise / 2 + np.maximum(excess, 0))).sum(axis=1)) * (len(means) - 1)
    offsets = offsets * _kept(float(np.sum(offsets**2)), float(variance), len(means) - 1)
    about = means - shares @ means
    size, spread = shares @ (about**2).sum(axis=1), shares @ (about**2 @ within)
    signal = max(size - shares @ noise.sum(axis=1), _LEAST_PART * size)
    scale = signal / spread if spread > 0 else 0.0
    return scale * about, scale * offsets + np.log(shares)


def clear_shares(told: _Array, noise: float) -> _Array:
    """The classes' shares as far as noise lets them be told from equal ones.

    Shapes: told (n_classes,); returns (n_classes,).
    """
    n_classes = len(told)
    away = told - 1 / n_classes
    degrees = n_classes - 1
    kept = _kept(float(away @ away), noise, degrees)
    least = np.clip(math.sqrt(noise / degrees), _LEAST_SHARE / n_classes, _MOST_OF_NOISE / n_classes)
    shares = np.maximum(1 / n_classes + kept * away, least)
    result: _Array = shares / shares.sum()
    return result


def _kept(size: float, noise: float, degrees: int) -> float:
    """Which part of differences to keep (James and Stein), whose square is clearly more than that of their noise."""
    # Chi-square of that many degrees of freedom.
    return 1 - noise / size if size > noise * (1 + _CLEARLY * math.sqrt(2 / degrees)) else 0.0


def self_trained(
    points: _Array, means: _Array, noise: _Array, variances: _Array, shares: _Array
) -> tuple[_Array, _Array, _Array]:
    """Class means in all coordinates, from what was told of some and from points whose classes the rule says.

    Shapes: points (m, r), means (n_classes, k), noise (n_classes, k), variances (r,), shares (n_classes,); returns
    means, noise (n_classes, r), within (r,).

    Notes
    -----
    Each pass gives the points to classes and takes the mean of what they say and what was told, both weighted by their
    precision, and of one point at the centre, as which a class without points counts.
    """
    (n_classes, k), r = means.shape, points.shape[1]
    weight_told = np.zeros((n_classes, r))
    weight_told[:, :k] = 1 / noise
    told = np.zeros((n_classes, r))
    told[:, :k] = means * weight_told[:, :k]
    within = _within(means, noise, variances[:k], shares)
    weights, intercepts = linear_rule(means, noise, within, shares)
    scores = points[:, :k] @ weights.T + intercepts
    for _ in range(_PASSES):
        members = np.eye(n_classes)[scores.argmax(axis=1)]
        weight = (1 + members.sum(axis=0))[:, None] / variances + weight_told
        everywhere, left = (members.T @ points / variances + told) / weight, 1 / weight
        within = _within(everywhere, left, variances, shares)
        weights, intercepts = linear_rule(everywhere, left, within, shares)
        scores = points @ weights.T + intercepts
    return everywhere, left, within


def _within(means: _Array, noise: _Array, variances: _Array, shares: _Array) -> _Array:
    """The variances less what lies between the means, the same part of all, at most three quarters."""
    between = float(shares @ (means**2 - noise).sum(axis=1))
    return variances * float(np.clip(1 - between / variances.sum(), 0.25, 1.0))


def n_directions(variances: _Array, n_people: int, n_classes: int, epsilon: float) -> int:
    """In how many directions class means are worth telling: more of them add signal, and noise to all.

    Shapes: variances (r,).
    """
    sizes = np.sqrt(variances)
    signal = np.cumsum(_BETWEEN * (variances / variances[0]) ** _DECAY * sizes)
    weighted = np.cumsum(_BETWEEN * (variances / variances[0]) ** _DECAY * variances)
    best, found = -math.inf, 1
    for k in range(1, len(variances) + 1):
        length = max(2, k * (n_classes - 1))
        noise = (n_classes - 1) ** 2 * sizes[:k].sum() * noise_variance(length, epsilon) / n_people
        # The squared distance of two projected means, in units of the noise's and the records' own spread there.
        quality = signal[k - 1] ** 2 / (weighted[k - 1] + noise * sizes[:k].sum())
        if quality > best:
            best, found = quality, k
        elif k > 2 * found + 20:
            break
    return found


def shrunk_covariance(rows: _Array) -> _Array:
    """Covariance of rows, shrunk to a multiple of the identity (Ledoit and Wolf, 2004, Lemma 3.3)."""
    n, d = rows.shape
    about = rows - rows.mean(axis=0)
    covariance = about.T @ about / n
    size = np.trace(covariance) / d
    distance = np.sum((covariance - size * np.eye(d)) ** 2)
    error = (np.sum((about**2).sum(axis=1) ** 2) / n - np.sum(covariance**2)) / n
    share = min(error / distance, 1.0) if distance > 0 else 1.0
    result: _Array = (1 - share) * covariance + share * size * np.eye(d)
    return result


def likeliest_numbers(told: _Array, error: float) -> _Array:
    """Numbers between -1 and 1 that were told with normal errors: their means given the likeliest law of them all.

    Shapes: told (n,); returns (n,).

    References
    ----------
    Kiefer and Wolfowitz, 1956; Jiang and Zhang, "General maximum likelihood empirical Bayes estimation of normal
    means", 2009.
    """
    inside = np.clip(told, -1, 1)
    if error < _SMALL:
        return inside
    grid = np.linspace(-1, 1, 2 * math.ceil(2 / min(error, 0.1)) + 1)
    exponents = -0.5 * ((told[:, None] - grid) / error) ** 2
    likelihood = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    law = np.full(len(grid), 1 / len(grid))
    for _ in range(_ITERATIONS):
        given = likelihood * law
        given /= given.sum(axis=1, keepdims=True)
        law = given.mean(axis=0)
    result: _Array = given @ grid
    return result
