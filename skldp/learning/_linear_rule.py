r"""Linear rule from noisy class means, with public vectors if there are any, and from released rows."""

import math

import numpy as np
import numpy.typing as npt

from skldp.learning._tasks import noise_variance
from skldp.mechanisms._rows import RowMechanism

# Differences below three standard deviations of the noise count as 0. Shares are at least their noise and this fraction
# of an equal share; noise above a quarter of an equal share is ignored.
_CLEARLY, _LEAST_SHARE, _MOST_OF_NOISE = 3.0, 1e-3, 0.25

# Smallest fraction of the squared means that remains after subtraction of the noise.
_LEAST_PART = 0.1
# Prior of the squared differences of class means: this fraction of the variance in the main direction; in others,
# times the ratio of variances to this power.
_BETWEEN, _DECAY = 0.5, 2.0
# Iterations of the assignment of public points to classes.
_PASSES = 3
# Errors below this, on a scale of 2, need no shrinkage.
_SMALL = 0.01
# Steps of expectation maximization.
_ITERATIONS = 100

_Array = npt.NDArray[np.float64]


def linear_rule(means: _Array, noise: _Array, within: _Array, shares: _Array) -> tuple[_Array, _Array]:
    r"""Return the linear discriminant of noisy class means, in uncorrelated coordinates.

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


def clear_shares(reported: _Array, noise: float) -> _Array:
    """Return class shares, shrunk to equal ones as far as the noise requires.

    Shapes: reported (n_classes,); returns (n_classes,).
    """
    n_classes = len(reported)
    away = reported - 1 / n_classes
    degrees = n_classes - 1
    kept = _kept(float(away @ away), noise, degrees)
    least = np.clip(math.sqrt(noise / degrees), _LEAST_SHARE / n_classes, _MOST_OF_NOISE / n_classes)
    shares = np.maximum(1 / n_classes + kept * away, least)
    result: _Array = shares / shares.sum()
    return result


def _kept(size: float, noise: float, degrees: int) -> float:
    """Return the fraction of differences to keep (James and Stein); 0 unless they exceed the noise."""
    # Chi-squared with that many degrees of freedom.
    return 1 - noise / size if size > noise * (1 + _CLEARLY * math.sqrt(2 / degrees)) else 0.0


def self_trained(
    points: _Array, means: _Array, noise: _Array, variances: _Array, shares: _Array
) -> tuple[_Array, _Array, _Array]:
    """Estimate class means in all coordinates from reports of some and from classified public points.

    Shapes: points (m, r), means (n_classes, k), noise (n_classes, k), variances (r,), shares (n_classes,); returns
    means, noise (n_classes, r), within (r,).

    Notes
    -----
    Each pass assigns the points to classes. A class mean is the average of its points, its reported mean and one point
    at the centre, weighted by precision.
    """
    (n_classes, k), r = means.shape, points.shape[1]
    weight_reported = np.zeros((n_classes, r))
    weight_reported[:, :k] = 1 / noise
    reported = np.zeros((n_classes, r))
    reported[:, :k] = means * weight_reported[:, :k]
    within = _within(means, noise, variances[:k], shares)
    weights, intercepts = linear_rule(means, noise, within, shares)
    scores = points[:, :k] @ weights.T + intercepts
    for _ in range(_PASSES):
        members = np.eye(n_classes)[scores.argmax(axis=1)]
        weight = (1 + members.sum(axis=0))[:, None] / variances + weight_reported
        everywhere, left = (members.T @ points / variances + reported) / weight, 1 / weight
        within = _within(everywhere, left, variances, shares)
        weights, intercepts = linear_rule(everywhere, left, within, shares)
        scores = points @ weights.T + intercepts
    return everywhere, left, within


def _within(means: _Array, noise: _Array, variances: _Array, shares: _Array) -> _Array:
    """Return the variances within classes, at least a quarter of the total."""
    between = float(shares @ (means**2 - noise).sum(axis=1))
    return variances * float(np.clip(1 - between / variances.sum(), 0.25, 1.0))


def n_directions(variances: _Array, n_people: int, n_classes: int, epsilon: float) -> int:
    """Return the number of directions in which class means are reported: more of them add signal and noise.

    Shapes: variances (r,).
    """
    sizes = np.sqrt(variances)
    signal = np.cumsum(_BETWEEN * (variances / variances[0]) ** _DECAY * sizes)
    weighted = np.cumsum(_BETWEEN * (variances / variances[0]) ** _DECAY * variances)
    best, found = -math.inf, 1
    for k in range(1, len(variances) + 1):
        length = max(2, k * (n_classes - 1))
        noise = (n_classes - 1) ** 2 * sizes[:k].sum() * noise_variance(length, epsilon) / n_people
        # Squared distance of two projected means, in units of noise plus within-class spread.
        quality = signal[k - 1] ** 2 / (weighted[k - 1] + noise * sizes[:k].sum())
        if quality > best:
            best, found = quality, k
        elif k > 2 * found + 20:
            break
    return found


def shrunk_covariance(rows: _Array) -> _Array:
    """Return the covariance of rows, shrunk to a multiple of the identity (Ledoit and Wolf, 2004, Lemma 3.3)."""
    n, d = rows.shape
    about = rows - rows.mean(axis=0)
    covariance = about.T @ about / n
    size = np.trace(covariance) / d
    distance = np.sum((covariance - size * np.eye(d)) ** 2)
    error = (np.sum((about**2).sum(axis=1) ** 2) / n - np.sum(covariance**2)) / n
    share = min(error / distance, 1.0) if distance > 0 else 1.0
    result: _Array = (1 - share) * covariance + share * size * np.eye(d)
    return result


def likeliest_numbers(reported: _Array, error: float) -> _Array:
    """Return posterior means of numbers in [-1, 1] with normal errors, under their maximum-likelihood prior.

    Shapes: reported (n,); returns (n,).

    References
    ----------
    Kiefer and Wolfowitz, 1956; Jiang and Zhang, "General maximum likelihood empirical Bayes estimation of normal
    means", 2009.
    """
    inside = np.clip(reported, -1, 1)
    if error < _SMALL:
        return inside
    grid = np.linspace(-1, 1, 2 * math.ceil(2 / min(error, 0.1)) + 1)
    exponents = -0.5 * ((reported[:, None] - grid) / error) ** 2
    likelihood = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    law = np.full(len(grid), 1 / len(grid))
    for _ in range(_ITERATIONS):
        given = likelihood * law
        given /= given.sum(axis=1, keepdims=True)
        law = given.mean(axis=0)
    result: _Array = given @ grid
    return result


# Largest difference of class means, in units of the public covariance.
_LEAST_CONTRAST, _MOST_CONTRAST, _N_CONTRASTS = 1e-3, 10.0, 60
# In units of the ridge.
_LEAST_VARIANCE = 1e-3


def unbiased_members(codes: npt.NDArray[np.int64], flip_matrix: _Array) -> _Array:
    """Weights of released labels by class, with mean 1 for the true class and 0 for others.

    Shapes: codes (n,), flip_matrix (n_classes, n_classes); returns (n, n_classes).
    """
    try:
        undone = np.linalg.inv(flip_matrix)
    except np.linalg.LinAlgError:
        raise ValueError(
            "Released labels must tell every class from the others. Got a law under which they do not."
        ) from None
    result: _Array = undone[codes].astype(np.float64)
    return result


def discriminant_of_releases(
    released: _Array, members: _Array, mechanism: RowMechanism, public: _Array | None = None
) -> tuple[_Array, _Array]:
    r"""Return coefficients and intercepts of the logits of clean rows.

    Shapes: released (n, d), members (n, n_classes), public (n_public, d); returns coefficients (n_classes, d),
    intercepts (n_classes,).

    Notes
    -----
    The noise is taken out of the covariance within the classes, of which the nearest positive semidefinite matrix is
    taken. What is left of the noise has eigenvalues of about :math:`2 \sigma^2 \sqrt{d / n}` (Marchenko and Pastur),
    and that is the ridge: nothing is tuned.
    """
    n, d = released.shape
    sizes = np.maximum(members.sum(axis=0), 1.0)
    # Randomized labels add to the variance of the shares.
    shares = clear_shares(sizes / sizes.sum(), max(0.0, float((members**2 - members).sum())) / n**2)
    means = members.T @ released / sizes[:, None]
    variance = released.var(axis=0)
    noise = np.outer((members**2).sum(axis=0) / sizes**2, variance)
    moments, mean = released.T @ released / n, released.mean(axis=0)
    second = mechanism.original_second_moment(moments, mean)
    between = (means.T * shares) @ means - np.diag(shares @ noise)
    values, vectors = np.linalg.eigh(second - between)
    ridge = 2 * _gain(mechanism, moments, mean) * variance.mean() * math.sqrt(d / n)
    scale = np.sqrt(np.maximum(values, 0) + max(ridge, 1e-12 * max(values[-1], 1e-300)))
    whitening = vectors / scale
    # If the noise hides the variance, use the mean of the remainder.
    hidden = values <= ridge
    mean_hidden = values[hidden].mean() if hidden.any() else 0.0
    within = np.where(hidden, max(mean_hidden, _LEAST_VARIANCE * ridge), values) / scale**2
    center = np.zeros(d)
    if public is not None:
        center = public.mean(axis=0)
        means, noise = _expected_contrasts(means - shares @ means, noise.mean(), public), np.zeros_like(noise)
    weights, intercepts = linear_rule(means @ whitening, noise @ whitening**2, within, shares)
    coefficients = weights @ whitening.T
    return coefficients, intercepts - coefficients @ center


def _gain(mechanism: RowMechanism, moments: _Array, mean: _Array) -> float:
    """Return the factor by which inversion of the law amplifies errors of products."""
    d = len(moments)
    probe = np.ones((d, d)) - (np.eye(d) if d > 1 else 0)
    probe *= np.trace(moments) / d
    change = mechanism.original_second_moment(moments + probe, mean) - mechanism.original_second_moment(moments, mean)
    return float(np.abs(change).sum() / probe.sum())


def _expected_contrasts(contrasts: _Array, noise: float, public: _Array) -> _Array:
    """Return the maximum-likelihood multiple of the public covariance."""
    values, axes = np.linalg.eigh(shrunk_covariance(public))
    turned = contrasts @ axes
    squares = (turned**2).sum(axis=0) / (len(turned) - 1)
    signals = np.geomspace(_LEAST_CONTRAST, _MOST_CONTRAST, _N_CONTRASTS)[:, None] * np.maximum(values, 0)
    likelihood = -(np.log(signals + noise) + squares / (signals + noise)).sum(axis=1)
    signal = signals[likelihood.argmax()]
    result: _Array = (turned * signal / (signal + noise)) @ axes.T
    return result
