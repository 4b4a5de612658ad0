"""An attack on one release for a task of a model: the two records that differ most, and an audit of them."""

import itertools
from functools import partial

import numpy as np

from skldp.domains._norms import row_norms
from skldp.learning._tasks import N_LEVELS
from skldp.learning._vectors import symmetric_matrix
from skldp.mechanisms._noise import noise_from, public_stream
from skldp.mechanisms.vector._privunit import PrivUnitBall
from skldp.study import audit_epsilon

# Largest number of corners of the bounds that are tried.
_MOST_CORNERS = 1 << 10
# Coordinate search: rounds over all coordinates of both records, and positions between the bounds.
_ROUNDS, _PLACES = 8, np.linspace(-1, 1, 17)


def worst_records(task):
    """Return two records within the declared bounds whose releases for a task differ most.

    Vectors of norm at most 1 are released through their lifts to a sphere, whose caps overlap least if the lifts have
    the smallest inner product: for opposite vectors at the radius. Of axes, whose products are released, those at a
    right angle differ most. The result is the best of the corners of the bounds and of
    some points within, each then moved number by number.
    """
    points = _candidates(task)
    vectors = _lifted(task, points)
    first, second = divmod(int((vectors @ vectors.T).argmin()), len(vectors))
    pair, least = [points[first], points[second]], float(vectors[first] @ vectors[second])
    for _ in range(_ROUNDS):
        before = least
        for side, j in itertools.product((0, 1), range(len(task.low))):
            moved = np.tile(pair[side], (len(_PLACES), 1))
            moved[:, j] = _PLACES
            products = _lifted(task, moved) @ _lifted(task, pair[1 - side][None])[0]
            if products.min() < least:
                least, pair[side] = float(products.min()), moved[products.argmin()]
        if least >= before:
            break
    x, x_prime = (_as_record(task, point) for point in pair)
    return x, x_prime


def audit_task(task, *, n_trials, confidence):
    """Lower-bound the epsilon of one release for a task, by an attacker who knows the mechanism."""
    x, x_prime = worst_records(task)

    def release(rows):
        return task.answers(rows[:, :-1], rows[:, -1], noise_from())

    scores = {}
    if task.answer == "vector":
        law = partial(log_likelihood_of_products, task._mechanism)
        if task.form != "products":
            law = PrivUnitBall(task.n_outputs, task.epsilon, 1.0).log_likelihood
        vectors = task.encode(np.stack([x, x_prime])[:, :-1], np.array([x[-1], x_prime[-1]]))

        def likelihood_ratio(outputs):
            return law(outputs, vectors[:1]) - law(outputs, vectors[1:])

        scores["the likelihood ratio"] = likelihood_ratio
    elif task.answer == "levels":
        pair = np.stack([x, x_prime])
        own, other = np.rint(task.encode(pair[:, :-1], pair[:, -1])[:, 0]).astype(np.intp)
        scores["the difference of the two levels"] = lambda outputs: outputs[:, own] - outputs[:, other]
    result = audit_epsilon(release, x, x_prime, n_trials=n_trials, confidence=confidence, scores=scores)
    return result.against(task.guarantee().epsilon)


def log_likelihood_of_products(mechanism, outputs, values):
    """The log density of released products of a vector in the ball of radius 1, but for a constant.

    The axis follows from the products of its first numbers; its last one has either sign alike.
    """
    k = mechanism.n_features
    shift = (1 - mechanism.mean_square) / k
    products = np.array([symmetric_matrix(one, k) for one in outputs]) * mechanism.slope + shift * np.eye(k)
    squares, axes = np.linalg.eigh(products)
    square = np.clip(squares[:, -1], 0, 1)
    lifted, last = lifts(values)[0], np.sqrt(1 - square)
    along = axes[:, :, -1] @ lifted[:-1] * np.sqrt(square)
    c, p = mechanism.cap_probability, mechanism.cap_threshold / 2**64
    of_signs = [
        np.where(np.abs(along + sign * last * lifted[-1]) >= 1 - mechanism.height, p / c, (1 - p) / (1 - c))
        for sign in (1, -1)
    ]
    return np.log(np.mean(of_signs, axis=0))


def lifts(vectors):
    """Points of the sphere whose first numbers are vectors of norm at most 1."""
    vectors = vectors / np.maximum(row_norms(vectors), 1)[:, None]
    return np.column_stack([vectors, np.sqrt(np.maximum(1 - row_norms(vectors) ** 2, 0))])


def _candidates(task):
    """Return points of the domain, scaled to [-1, 1]."""
    width = len(task.low)
    if 2**width <= _MOST_CORNERS:
        corners = np.array(list(itertools.product((-1.0, 1.0), repeat=width)))
    else:
        # Pairs of opposite corners.
        half = np.where(public_stream(0).words((_MOST_CORNERS // 2, width), np.uint8) & 1, 1.0, -1.0)
        corners = np.concatenate([half, -half])
    matrix = np.array(task.matrix)
    # The point with the shortest vector.
    shortest = np.clip(-np.linalg.pinv(matrix[:, 1:]) @ matrix[:, 0], -1, 1)
    inside = np.concatenate([np.zeros((1, width)), shortest[None], np.eye(width), -np.eye(width)])
    return np.concatenate([corners, inside])


def _as_record(task, point):
    low, high = np.array(task.low), np.array(task.high)
    return np.clip(low / 2 + high / 2 + point * (high / 2 - low / 2), low, high)


def _lifted(task, points):
    """Lift the encoded vectors to the unit sphere, or numbers and levels to a half circle; products of axes."""
    records = _as_record(task, points)
    vectors = task.encode(records[:, :-1], records[:, -1])
    if task.answer == "levels":
        vectors = 2 * vectors / (N_LEVELS - 1) - 1
    points = lifts(vectors)
    if task.form == "products" and task.answer == "vector":
        # Axes, not directions: their inner products are those of the points, squared.
        points = (points[:, :, None] * points[:, None]).reshape(len(points), -1)
    return points
