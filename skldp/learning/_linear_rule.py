r"""Linear rule from noisy class means, with public vectors if there are any, and from released rows."""

import math

import numpy as np
import numpy.typing as npt
from scipy import special

from skldp._arrays import Floats
from skldp.learning._constants import LEAST_VARIANCE
from skldp.learning._tasks import noise_variance
from skldp.mechanisms._rows import RowMechanism

# Iterations of the assignment of public points to classes.
_PASSES = 3
# Errors below this, on a scale of 2, need no shrinkage.
_SMALL = 0.01
# Steps of expectation maximization.
_ITERATIONS = 100
# Precision of the mean of a class without public points, in points.
_NO_PRECISION = 1e-9
# Fractions of the variance that may lie between classes, besides 0.
_FRACTIONS = 0.5 ** np.arange(10)


def expected_means(means: Floats, noise: Floats, prior: Floats, shares: Floats) -> tuple[Floats, float]:
    """Return expected class means, of prior variances f p_j (1 - 2 pi_k + |pi|^2), and the chance of f > 0."""
    n_classes = len(shares)
    sizes = 1 - 2 * shares + shares @ shares
    scale = sizes[:, None] / (shares @ sizes) * prior
    variances = _FRACTIONS[:, None, None] * scale
    kept = variances / (variances + noise)
    ratios = np.log(noise / (variances + noise)) + kept * means**2 / noise
    # The K means have K - 1 degrees of freedom.
    logs = ratios.sum(axis=(1, 2)) * (1 - 1 / n_classes) / 2
    logs -= math.log(len(_FRACTIONS))
    chances = special.softmax(np.append(logs, 0.0))[:-1]
    return np.tensordot(chances, kept, 1) * means, float(chances.sum())


def nearest_mean(means: Floats, total: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Return logits along class means m: times sum pi_k m_kj^2 / sum pi_k m_kj^2 s_j^2, s^2 the variances inside."""
    between = shares @ means**2
    within = total * max(LEAST_VARIANCE, 1 - between.sum() / total.sum())
    weights = means * float(between.sum()) / max(float(between @ within), np.finfo(float).tiny)
    return weights, np.log(shares) - (weights * means).sum(axis=1) / 2


def whitened_rule(means: Floats, noise: Floats, shares: Floats, prior: Floats | float = 1.0) -> tuple[Floats, Floats]:
    """Return the logits of a linear discriminant, in coordinates in which all people have the covariance I."""
    expected, _ = expected_means(means, noise, np.broadcast_to(prior, means.shape[1]), shares)
    values, vectors = np.linalg.eigh((expected.T * shares) @ expected)
    weights = expected @ vectors / np.maximum(1 - values, LEAST_VARIANCE) @ vectors.T
    return weights, np.log(shares) - (weights * expected).sum(axis=1) / 2


def expected_shares(reported: Floats, errors: Floats | float) -> Floats:
    """Return means of class shares given reports with normal errors; they are about equal with a probability of 0.9."""
    n_classes, reported = len(reported), reported[:, None]
    errors = np.broadcast_to(errors, n_classes)[:, None]
    nearest = np.clip(reported, 0, 1)
    low, high = np.maximum(0, nearest - 8 * errors), np.minimum(1, nearest + 8 * errors)
    points = low + (high - low) * (np.arange(400) + 0.5) / 400
    # A share of a uniform point of the simplex has the density (K - 1) (1 - p)^(K - 2).
    logs = -(((points - reported) / errors) ** 2) / 2 + (n_classes - 2) * np.log1p(-points)
    means = (special.softmax(logs, axis=1) * points).sum(axis=1)
    likelihoods = special.logsumexp(logs + np.log((n_classes - 1) * (high - low) / 400), axis=1)
    # The K shares have K - 1 degrees of freedom.
    log_odds = (1 - 1 / n_classes) * (likelihoods[:, None] + ((1 / n_classes - reported) / errors) ** 2 / 2).sum()
    # Shares may differ by as many scales as means. All but the largest count as equal.
    differ = special.expit(log_odds - math.log(len(_FRACTIONS) - 1))
    return differ * means / means.sum() + (1 - differ) / n_classes


def self_trained(
    points: Floats, means: Floats, noise: Floats, variances: Floats, shares: Floats
) -> tuple[Floats, Floats]:
    """Return logits of the nearest class mean, whose public points and reported mean are weighted by precision."""
    (n_classes, k), r = means.shape, points.shape[1]
    # Class means are expected to differ more where vectors do.
    prior = variances**2 / variances[0]
    precision, weighted = np.zeros((n_classes, r)), np.zeros((n_classes, r))
    precision[:, :k], weighted[:, :k] = 1 / noise, means / noise
    expected, differs = expected_means(means, noise, prior[:k], shares)
    weights, intercepts = nearest_mean(expected, variances[:k], shares)
    scores = points[:, :k] @ weights.T + intercepts
    for _ in range(_PASSES):
        members = np.eye(n_classes)[scores.argmax(axis=1)]
        # A class without points has no mean in the other coordinates.
        left = 1 / np.maximum(precision + members.sum(axis=0)[:, None] / variances, _NO_PRECISION / variances)
        expected, chance = expected_means(left * (weighted + members.T @ points / variances), left, prior, shares)
        weights, intercepts = nearest_mean(expected * differs / max(chance, np.finfo(float).tiny), variances, shares)
        scores = points @ weights.T + intercepts
    return weights, intercepts


def n_directions(variances: Floats, n_people: int, n_classes: int, epsilon: float) -> int:
    """Return the number of directions in which class means are reported: more of them add signal and noise."""
    # In units of the deviations; the expected differences of means fall with the square of the variance.
    sizes = np.sqrt(variances)
    between = (variances / variances[0]) ** 2
    signal, weighted = np.cumsum(between * sizes), np.cumsum(between * variances)
    best, found = -math.inf, 1
    for k in range(1, len(variances) + 1):
        variance = noise_variance(k * (n_classes - 1), epsilon) / n_people
        noise = (n_classes - 1) ** 2 * sizes[:k].sum() * variance
        # Squared distance of two projected means, in units of noise plus within-class spread.
        quality = signal[k - 1] ** 2 / (weighted[k - 1] + noise * sizes[:k].sum())
        if quality > best:
            best, found = quality, k
        elif k > 2 * found + 20:
            break
    return found


def shrunk_covariance(rows: Floats) -> Floats:
    """Return the covariance of rows, shrunk to a multiple of the identity (Ledoit and Wolf, 2004, Lemma 3.3)."""
    n, d = rows.shape
    about = rows - rows.mean(axis=0)
    covariance = about.T @ about / n
    size = np.trace(covariance) / d
    distance = np.sum((covariance - size * np.eye(d)) ** 2)
    error = (np.sum((about**2).sum(axis=1) ** 2) / n - np.sum(covariance**2)) / n
    share = min(error / distance, 1.0) if distance > 0 else 1.0
    return (1 - share) * covariance + share * size * np.eye(d)


def likeliest_numbers(reported: Floats, error: float) -> Floats:
    """Return numbers in [-1, 1] expected given reports, by their likeliest prior (Kiefer and Wolfowitz, 1956)."""
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
    return given @ grid


def unbiased_members(codes: npt.NDArray[np.int64], flip_matrix: Floats) -> Floats:
    """Return weights of released labels by class, (n, n_classes), with mean 1 for the true class and 0 for others."""
    try:
        undone = np.linalg.inv(flip_matrix)
    except np.linalg.LinAlgError:
        raise ValueError(
            "Released labels must tell every class from the others; got a law under which they do not."
        ) from None
    return undone[codes].astype(np.float64)


def discriminant_of_releases(
    released: Floats, members: Floats, mechanism: RowMechanism, public: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return the logits of clean rows, with the noise's edge 2 s^2 sqrt(d / n) (Marchenko and Pastur) as the ridge."""
    n, d = released.shape
    sizes = np.maximum(members.sum(axis=0), 1.0)
    # Randomized labels add to the variance of the shares.
    variances = np.maximum((members**2 - members).sum(axis=0), 0) / n**2 + 1 / (len(sizes) * n)
    shares = expected_shares(sizes / sizes.sum(), np.sqrt(variances))
    variance = released.var(axis=0)
    # Noise of the class means less the mean of all rows, which shares their noise.
    noise = np.outer((members**2).sum(axis=0) / sizes**2 - 1 / n, variance)
    moments, mean = released.T @ released / n, released.mean(axis=0)
    about = members.T @ released / sizes[:, None] - mean
    covariance = mechanism.original_second_moment(moments, mean) - np.outer(mean, mean)
    edge = 2 * _gain(mechanism, moments, mean) * variance.mean() * math.sqrt(d / n)
    values, vectors = np.linalg.eigh(covariance)
    scale = np.maximum(values, 0) + max(edge, 1e-12 * max(values[-1], 1e-300))
    whitening = vectors / np.sqrt(scale)
    # Noise hides single variances, and not their mean.
    prior = np.clip(values.mean() / scale, 1e-6, 1)
    if public is not None:
        # Means differ along the directions in which public vectors vary.
        spread, axes = np.linalg.eigh(shrunk_covariance(public))
        about = expected_means(about @ axes, noise @ axes**2, np.maximum(spread, 0), shares)[0] @ axes.T
        noise = noise * 1e-12
    weights, intercepts = whitened_rule(about @ whitening, noise @ whitening**2, shares, prior)
    coefficients = weights @ whitening.T
    return coefficients, intercepts - coefficients @ mean


def _gain(mechanism: RowMechanism, moments: Floats, mean: Floats) -> float:
    """Return the factor by which inversion of the law amplifies errors of products."""
    d = len(moments)
    probe = np.ones((d, d)) - (np.eye(d) if d > 1 else 0)
    probe *= np.trace(moments) / d
    change = mechanism.original_second_moment(moments + probe, mean) - mechanism.original_second_moment(moments, mean)
    return float(np.abs(change).sum() / probe.sum())
