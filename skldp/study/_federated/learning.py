"""Federated learning: Algorithm 1 of the BitRand paper, and what it is compared with."""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.utils.validation import check_consistent_length, column_or_1d

from skldp._arrays import kind_of
from skldp._checks import check_positive, check_whole, is_whole
from skldp.estimators._validation import as_table
from skldp.exceptions import OutOfDomainWarning, PrivacyGuaranteeWarning, SeededNoiseWarning
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import noise_from
from skldp.study._federated.models import FlatModel, LinearScores, Network
from skldp.study._federated.settings import FederatedSetting, noiseless

__all__ = ["FederatedRun", "federated_learning"]

_MODELS = ("softmax", "linear", "network")


def federated_learning(
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    *,
    setting: FederatedSetting | None = None,
    epsilon: float = 1.0,
    n_clients: Any = 100,
    n_rounds: int = 20,
    model: str = "softmax",
    hidden: Sequence[int] = (64, 64),
    learning_rate: float | str = "auto",
    gradient_bound: float = 0.1,
    delta: float = 1e-6,
    seed: Any = None,
) -> "FederatedRun":
    r"""Train one model by FedSGD over the clients' data, and test it.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The clients' features.
    y : array-like of shape (n_samples,) or (n_samples, n_attributes)
        Their labels, at least two classes; or several attributes of each row, 0 or 1.
    X_test, y_test : array-like
        The test data, never released.
    setting : FederatedSetting, default=None
        What is perturbed and by which mechanism; None is nothing.
    epsilon : float, default=1.0
        The epsilon that the setting's mechanism is given, as that setting counts it.
    n_clients : int or array-like of shape (n_samples,), default=100
        Into how many equal parts the rows are dealt at random, or the client of each row.
    n_rounds : int, default=20
        How often every client sends a gradient; a setting's own `n_rounds` goes before it.
    model : {"softmax", "linear", "network"}, default="softmax"
        Softmax regression, least squares on the one-hot label, or a network of rectified linear units. Of attributes,
        each is learnt by logistic regression, or is one output of the network.
    hidden : sequence of int, default=(64, 64)
        Units of each hidden layer of the network. The paper has two of 1,500.
    learning_rate : "auto" or float, default="auto"
        The step. "auto" is the inverse of the loss's smoothness on the features that the clients train on, fixed
        before the rounds as a published rate would be: it is no release, and nothing is counted for it. A network needs
        a number.
    gradient_bound : float, default=0.1
        Where gradients (or weights) are perturbed, every coordinate of what a client sends is clipped to plus or minus
        this.
    delta : float, default=1e-6
        Of the whole training, for the shuffled guarantee.
    seed : None, int, Generator or RandomState, default=None
        Of the dealing, of a network's first weights and of the mechanisms that are not seeded.

    Returns
    -------
    FederatedRun

    Raises
    ------
    ValueError
        If a parameter is out of its range, y has one class, an attribute is neither 0 nor 1, or there are fewer rows
        than clients.

    Notes
    -----
    In round t the server moves the model by the clients' mean gradients,

    .. math:: \theta_{t+1} = \theta_t - \eta \frac{1}{N} \sum_{u=1}^{N} \nabla^u_{\theta_t}, \qquad
              \nabla^u_{\theta_t} = \frac{1}{n_u} \sum_{(x, y) \in D_u} \nabla_{\theta_t} L(f(x), y).

    Features and labels are perturbed once, before the first round, so that their guarantee does not depend on the
    number of rounds. Labels that are released as rows of numbers are used as one-hot labels are. The test rows are
    encoded as the training rows are, without noise.

    References
    ----------
    BitRand paper, Section 3, Algorithm 1 (Appendix B) and Appendix L.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skldp.study import federated_learning
    >>> X, y = load_iris(return_X_y=True)
    >>> run = federated_learning(X[::2], y[::2], X[1::2], y[1::2], n_clients=25, n_rounds=50)
    >>> run.accuracy > 0.6, run.guarantee.epsilon
    (True, inf)
    """
    started = time.perf_counter()
    setting = noiseless() if setting is None else setting
    X, y, X_test, y_test, classes = _check_data(X, y, X_test, y_test)
    of_attributes = y.ndim == 2
    n_rounds = setting.n_rounds or n_rounds
    _check_numbers(model, n_rounds, gradient_bound, learning_rate, hidden)
    with warnings.catch_warnings():
        # The run holds the exact guarantee beside the stated one, and the caller chose the seed.
        warnings.simplefilter("ignore", PrivacyGuaranteeWarning)
        warnings.simplefilter("ignore", SeededNoiseWarning)
        noise = noise_from(seed)
        if setting.on_gradients:
            # Clipped on purpose, where a norm is declared as where a bound is.
            warnings.simplefilter("ignore", OutOfDomainWarning)
        clients = _deal(n_clients, len(X), noise)
        seeds = [None, None] if seed is None else noise.integers(2**31, 2).tolist()
        mechanism, label_mechanism = setting.mechanisms(epsilon, seeds)
        parts = []
        if label_mechanism is not None:
            y = np.asarray(label_mechanism.fit_transform(y))
            parts.append(label_mechanism.privacy_guarantee_)
            # A declared class that no client has may still be answered.
            if not of_attributes:
                classes = label_mechanism.classes_ if y.ndim == 2 else np.union1d(classes, y)
        if setting.perturbs == "features":
            X, X_test = _release_features(mechanism, X, X_test)
            parts.append(mechanism.privacy_guarantee_)
        X, X_test = _with_intercept(X), _with_intercept(X_test)
        one_hot = y if y.ndim == 2 else (y[:, None] == classes).astype(np.float64)
        learner = _model(model, of_attributes, X.shape[1], one_hot.shape[1], hidden)
        theta = learner.start(noise)
        step = learning_rate
        if isinstance(learner, LinearScores) and learning_rate == "auto":
            step = 1 / learner.smoothness(X)
        if setting.perturbs == "everything":
            counted = setting.count_records(parts)
        elif not setting.on_gradients:
            theta = _train(learner, theta, X, one_hot, clients, n_rounds, float(step))
            counted = setting.count_records(parts)
        else:
            release = setting.gradient_release(mechanism, gradient_bound, n_rounds)
            send = _sent(setting.perturbs == "anonymised weights", float(step), gradient_bound, release)
            theta = _train_on_released(learner, theta, X, one_hot, clients, n_rounds, send)
            counted = setting.count_gradients(release, theta.size, n_rounds, clients.max() + 1, delta)
        if setting.perturbs == "everything":
            scores = noise.uniform((len(X_test), one_hot.shape[1]))
        else:
            # What is added to all scores of a row alike says nothing about its class, but moves it among the others.
            scores = learner.predictions(learner.scores(theta, X_test))
    accuracy, auc = _evaluated(scores, y_test, classes)
    return FederatedRun(
        accuracy=accuracy,
        auc=auc,
        guarantee=counted.local,
        published_epsilon=counted.published,
        shuffled=counted.shuffled,
        closed_form_epsilon=counted.closed_form,
        seconds=time.perf_counter() - started,
    )


def _model(name: str, of_attributes: bool, n_inputs: int, n_outputs: int, hidden: Sequence[int]) -> FlatModel:
    loss = "linear" if name == "linear" else "sigmoid" if of_attributes else "softmax"
    if name == "network":
        return Network(loss, n_inputs, n_outputs, tuple(map(int, hidden)))
    return LinearScores(loss, n_inputs, n_outputs)


def _train(
    model: FlatModel,
    theta: np.ndarray,
    X: np.ndarray,
    one_hot: np.ndarray,
    clients: np.ndarray,
    n_rounds: int,
    step: float,
) -> np.ndarray:
    """FedSGD where the server needs only the mean of the clients' gradients: that of all rows, each with its weight."""
    sizes = np.bincount(clients)
    weights = 1 / (len(sizes) * sizes[clients])
    for _ in range(n_rounds):
        theta = theta - step * model.gradient(theta, X, one_hot, weights)
    return theta


def _train_on_released(
    model: FlatModel,
    theta: np.ndarray,
    X: np.ndarray,
    one_hot: np.ndarray,
    clients: np.ndarray,
    n_rounds: int,
    send: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> np.ndarray:
    """FedSGD where every client sends a release of its own, of its gradient or of what that makes of the weights."""
    rows, weights = _padded(clients)
    X, one_hot = X[rows], one_hot[rows]
    for _ in range(n_rounds):
        theta = send(theta, model.gradient(theta, X, one_hot, weights))
    return theta


def _sent(
    weights: bool, step: float, bound: float, release: Callable[[np.ndarray], np.ndarray]
) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Parameters and the clients' gradients to the next parameters."""

    def of_gradients(theta: np.ndarray, gradients: np.ndarray) -> np.ndarray:
        return np.asarray(theta - step * release(np.clip(gradients, -bound, bound)).mean(axis=0))

    def of_weights(theta: np.ndarray, gradients: np.ndarray) -> np.ndarray:
        return np.asarray(release(np.clip(theta - step * gradients, -bound, bound)).mean(axis=0))

    return of_weights if weights else of_gradients


def _padded(clients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers as (client, place), short clients filled up with rows of weight 0."""
    sizes = np.bincount(clients)
    order = np.argsort(clients, kind="stable")
    place = np.arange(sizes.max())[None, :]
    real = place < sizes[:, None]
    starts = np.cumsum(sizes) - sizes
    rows = order[np.minimum(starts[:, None] + place, len(order) - 1)]
    return rows, real / sizes[:, None]


def _deal(n_clients: Any, n_rows: int, noise: Any) -> np.ndarray:
    if np.ndim(n_clients) == 1:
        check_consistent_length(n_clients, np.empty(n_rows))
        return np.unique(np.asarray(n_clients), return_inverse=True)[1]
    if not is_whole(n_clients) or not 1 <= n_clients <= n_rows:
        raise ValueError(
            f"n_clients must be a whole number from 1 to the number of rows, {n_rows}, or one client for each row. "
            f"Got {n_clients if isinstance(n_clients, Real) else kind_of(n_clients)} instead."
        )
    return noise.permutation(n_rows) % n_clients


def _release_features(mechanism: Any, X: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    encodes = "transform_noise" in mechanism.get_params(deep=False)
    if encodes:
        mechanism.set_params(transform_noise=False)
    released = np.asarray(mechanism.fit_transform(X), dtype=np.float64)
    if encodes:
        X_test = mechanism.transform(X_test)
    if X_test.shape[1] != released.shape[1]:
        raise ValueError(
            f"A mechanism that changes the number of features must have transform_noise. Got {mechanism} instead."
        )
    return released, np.asarray(X_test, dtype=np.float64)


def _with_intercept(X: np.ndarray) -> np.ndarray:
    return np.concatenate([X, np.ones((len(X), 1))], axis=1)


def _evaluated(scores: np.ndarray, y: np.ndarray, classes: np.ndarray) -> tuple[float, float]:
    """Accuracy, and the area under the ROC curve averaged over classes (each against the rest) or attributes."""
    if y.ndim == 2:
        owns, accuracy = y == 1, np.mean((scores > 0.5) == y)
    else:
        owns, accuracy = y[:, None] == classes, np.mean(classes[scores.argmax(axis=1)] == y)
    areas = [
        roc_auc_score(own, score)
        for own, score in zip(owns.T, scores.T, strict=True)
        if 0 < np.count_nonzero(own) < len(own)
    ]
    return float(accuracy), float(np.mean(areas)) if areas else float("nan")


def _check_data(
    X: Any, y: Any, X_test: Any, y_test: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    X, X_test = as_table(X, dtype=np.float64), as_table(X_test, "X_test", dtype=np.float64)
    if np.ndim(y) == 2:
        y, y_test = as_table(y, "y", dtype=np.float64), as_table(y_test, "y_test", dtype=np.float64)
    else:
        y, y_test = column_or_1d(y, warn=True), column_or_1d(y_test, warn=True)
    check_consistent_length(X, y)
    check_consistent_length(X_test, y_test)
    if X.shape[1] != X_test.shape[1]:
        raise ValueError(f"X_test must have the {X.shape[1]} features of X. Got {X_test.shape[1]} instead.")
    if y.ndim == 2:
        if y.shape[1] != y_test.shape[1] or not all(np.isin(part, (0, 1)).all() for part in (y, y_test)):
            raise ValueError(
                "Attributes must be columns of 0 and 1, as many in y_test as in y. "
                f"Got {y.shape[1]} in y and {y_test.shape[1]} in y_test instead."
            )
        return X, y, X_test, y_test, np.arange(2)
    classes = np.unique(y)
    if len(classes) < 2:
        raise ValueError(f"y must have at least two classes to be told apart. Got {len(classes)} instead.")
    return X, y, X_test, y_test, classes


def _check_numbers(model: Any, n_rounds: Any, gradient_bound: Any, learning_rate: Any, hidden: Any) -> None:
    if model not in _MODELS:
        raise ValueError(f"model must be one of {_MODELS}. Got {model!r} instead.")
    check_whole("n_rounds", n_rounds, least=1)
    check_positive("gradient_bound", gradient_bound)
    if not (isinstance(learning_rate, str) and learning_rate == "auto"):
        check_positive("learning_rate", learning_rate)
    elif model == "network":
        raise ValueError("learning_rate must be a number for a network. Got 'auto' instead.")
    for size in hidden:
        check_whole("Every number in hidden", size, least=1)


@dataclass(frozen=True)
class FederatedRun:
    """What one training came to.

    Attributes
    ----------
    accuracy, auc : float
        On the test data; the area is the mean over the classes, each against the rest, or over the attributes.
    guarantee : PrivacyGuarantee
        What the training guarantees each person without trusting anyone; infinite for noiseless.
    published_epsilon : float
        The epsilon as the papers count it.
    shuffled : PrivacyGuarantee or None
        With an anonymiser: what a trusted shuffler guarantees; None where the mechanism's guarantee is not pure.
    closed_form_epsilon : float
        The same by the published formula, round by round; NaN where its theorem is silent.
    seconds : float
        Wall time.
    """

    accuracy: float
    auc: float
    guarantee: PrivacyGuarantee
    published_epsilon: float
    shuffled: PrivacyGuarantee | None
    closed_form_epsilon: float
    seconds: float
