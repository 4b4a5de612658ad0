"""Federated learning by FedSGD with local privacy: Algorithm 1 of the BitRand paper."""

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.utils.validation import check_consistent_length, column_or_1d

from skldp._arrays import kind_of
from skldp._checks import check_choice, check_integer, check_positive, is_integer
from skldp._progress import Progress
from skldp.estimators._validation import as_table
from skldp.exceptions import OutOfDomainWarning, PrivacyGuaranteeWarning, SeededNoiseWarning
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import noise_from
from skldp.study._federated_parts import PERTURBED, GradientRelease, ScoreModel, count_gradients, count_records

_MODELS = ("softmax", "network")


def federated_learning(
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    *,
    perturbs: str = "nothing",
    mechanism: Any = None,
    label_mechanism: Any = None,
    epsilon: float = 1.0,
    n_clients: Any = 100,
    n_rounds: int = 20,
    n_sampled_clients: int | None = None,
    local_steps: int = 1,
    model: str = "softmax",
    hidden: Sequence[int] = (64, 64),
    learning_rate: float | str = "auto",
    gradient_bound: float = 0.1,
    delta: float = 1e-6,
    seed: Any = None,
    verbose: bool = False,
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
    perturbs : str, default="nothing"
        Data that `mechanism` releases:

        - ``"nothing"``: no features and no gradients; `label_mechanism` may release labels.
        - ``"features"``: the features of every row, once before the first round.
        - ``"gradients"``: every client's gradient in every round, with an equal share of the budget.
        - ``"anonymised gradients"``, ``"anonymised coordinates"``: every client's gradient, or every coordinate of it,
          with the full budget in each round. An anonymiser mixes the messages of the clients.
        - ``"anonymised weights"``: every weight of the model after the client's own step, as LDP-FL does.
    mechanism : transformer with `epsilon`, default=None
        Mechanism of the data that `perturbs` names.
    label_mechanism : label transformer with `epsilon`, default=None
        Releases the labels once. Without a `mechanism` it takes `epsilon`, else it keeps its own epsilon.
    epsilon : float, default=1.0
        Budget (natural log) of the mechanism.
    n_clients : int or array-like of shape (n_samples,), default=100
        Number of clients, to which rows are assigned at random, or the client of each row.
    n_rounds : int, default=20
        Number of rounds in which clients send a gradient.
    n_sampled_clients : int, default=None
        Number of clients that take part in a round; None is all. With an anonymiser they are drawn at random in each
        round, otherwise in turn from a random order: no client is asked more often than needed.
    local_steps : int, default=1
        Number of steps that a client makes on its own data in a round. It sends the sum of their gradients.
    model : {"softmax", "network"}, default="softmax"
        Softmax regression, or a network of rectified linear units. Of attributes, each is learnt by logistic
        regression, or is one output of the network.
    hidden : sequence of int, default=(64, 64)
        Units of each hidden layer of the network. The paper has two of 1,500.
    learning_rate : "auto" or float, default="auto"
        The step. "auto" is the inverse of the loss's smoothness on the features that the clients
        train on, fixed before the rounds as a published rate would be: it is no release, and nothing is counted for it.
        A network needs numbers.
    gradient_bound : float, default=0.1
        Released gradients and weights are clipped to plus or minus this bound, number by number.
    delta : float, default=1e-6
        Delta of the complete training, for the shuffled guarantee.
    seed : None, int, Generator or RandomState, default=None
        Seeds the assignment of rows, a network's first weights and the mechanisms without a seed.
    verbose : bool, default=False
        Show progress on standard error, from two seconds on.

    Returns
    -------
    run : FederatedRun
        Result with these attributes:

        - ``accuracy``, ``auc``: scores on the test data. The area is the mean over the classes, each against the rest,
          or over the attributes.
        - ``guarantee``: :class:`~skldp.PrivacyGuarantee` of the training without a trusted party; infinite if nothing
          is perturbed.
        - ``published_epsilon``: epsilon as the papers count it.
        - ``shuffled``: guarantee behind a trusted shuffler; None without an anonymiser, or with a delta.
        - ``closed_form_epsilon``: the same by the published formula, round by round; NaN where its theorem does not
          apply.
        - ``seconds``: wall time.

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

    Of n clients that are drawn from N in each of T rounds, the guarantee without a trusted party counts all T rounds.
    The shuffled guarantee of gradients counts the draw: the anonymiser hides who took part. Mixed number by number, the
    numbers of a round share one draw, and it is not counted. Clients that are asked in turn release at most
    :math:`\lceil T n / N \rceil` gradients, which share the budget.

    Features and labels are perturbed once, before the first round, so that their guarantee does not depend on the
    number of rounds. Labels that are released as rows of numbers are used as one-hot labels are. The test rows are
    encoded as the training rows are, without noise.

    The papers count an anonymised training as if nothing accumulated over messages. Each client's own loss does add up,
    and so does the central guarantee of a trusted shuffler.

    Of d coordinates clipped to plus or minus b, :class:`~skldp.PrivUnitTransformer` with a declared `norm` releases the
    gradient, shortened to that norm. Without one it releases the direction of the gradient, and the length is taken to
    be :math:`b \sqrt{d / 3}`, the root mean square length of a vector that is uniform in the box. That depends on no
    gradient, but the released vector is then not an unbiased gradient.

    References
    ----------
    BitRand paper, Section 3, Algorithm 1 (Appendix B) and Appendix L. Sun, Qian and Chen, "LDP-FL: Practical private
    aggregation in federated learning with local differential privacy", IJCAI 2021, Equation 2. Feldman, McMillan and
    Talwar, "Hiding among the clones", FOCS 2021 (the closed form).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skldp.study import federated_learning
    >>> X, y = load_iris(return_X_y=True)
    >>> run = federated_learning(X[::2], y[::2], X[1::2], y[1::2], n_clients=25, n_rounds=50)
    >>> run.accuracy > 0.6, run.guarantee.epsilon
    (True, inf)
    """
    started, on_gradients = time.perf_counter(), perturbs not in ("nothing", "features")
    _check_mechanisms(perturbs, mechanism, label_mechanism)
    X, y, X_test, y_test, classes = _check_data(X, y, X_test, y_test)
    of_attributes = y.ndim == 2
    _check_numbers(model, n_rounds, local_steps, gradient_bound, learning_rate, hidden)
    with warnings.catch_warnings():
        # The result holds both epsilons, and the caller chose the seed.
        warnings.simplefilter("ignore", PrivacyGuaranteeWarning)
        warnings.simplefilter("ignore", SeededNoiseWarning)
        noise = noise_from(seed)
        if on_gradients:
            # Gradients are clipped on purpose.
            warnings.simplefilter("ignore", OutOfDomainWarning)
        clients = _assign(n_clients, len(X), noise)
        n_clients = int(clients.max()) + 1
        asked = _asked(n_clients, n_sampled_clients, n_rounds, perturbs, noise)
        seeds = [None, None] if seed is None else noise.integers(2**31, 2).tolist()
        label_mechanism = _seeded_clone(label_mechanism, epsilon if mechanism is None else None, seeds[1])
        mechanism = _seeded_clone(mechanism, epsilon, seeds[0])
        parts = []
        if label_mechanism is not None:
            y = np.asarray(label_mechanism.fit_transform(y))
            parts.append(label_mechanism.privacy_guarantee_)
            # A release may hold declared classes that no client has.
            if not of_attributes:
                classes = label_mechanism.classes_ if y.ndim == 2 else np.union1d(classes, y)
        if perturbs == "features":
            X, X_test = _release_features(mechanism, X, X_test)
            parts.append(mechanism.privacy_guarantee_)
        X, X_test = _with_intercept(X), _with_intercept(X_test)
        one_hot = y if y.ndim == 2 else (y[:, None] == classes).astype(np.float64)
        loss = "sigmoid" if of_attributes else "softmax"
        layers = tuple(map(int, hidden)) if model == "network" else ()
        learner = ScoreModel(loss, X.shape[1], one_hot.shape[1], layers)
        step = 1 / learner.smoothness(X) if isinstance(learning_rate, str) else float(learning_rate)
        release, update = None, None
        if on_gradients:
            most_asked = n_rounds if asked is None else int(np.bincount(asked.ravel()).max())
            release = GradientRelease(mechanism, perturbs, gradient_bound, most_asked)
            of_weights = perturbs == "anonymised weights"
            update = partial(_step_on_releases, bound=gradient_bound, release=release, of_weights=of_weights)
        start, data = learner.start(noise), (X, one_hot, clients)
        rounds = Progress("rounds", n_rounds, show=verbose).track(range(n_rounds))
        theta = _train(learner, start, *data, rounds, step, update, asked=asked, n_steps=local_steps)
        # Compare rows by predictions: a constant added to all scores of a row would change their order.
        scores = learner.predictions(learner.scores(theta, X_test))
    counted = (
        count_records(parts)
        if release is None
        else count_gradients(release, theta.size, n_rounds, n_clients, delta, n_sampled_clients)
    )
    return FederatedRun(*(*_evaluated(scores, y_test, classes), *counted, time.perf_counter() - started))


def _check_mechanisms(perturbs: Any, mechanism: Any, label_mechanism: Any) -> None:
    check_choice("perturbs", perturbs, PERTURBED)
    if perturbs == "nothing" and mechanism is not None:
        raise ValueError("`mechanism` needs `perturbs`, the data that it releases; got 'nothing'.")
    needed = {"mechanism": mechanism} if perturbs != "nothing" else {}
    for name, given in (needed | ({} if label_mechanism is None else {"label_mechanism": label_mechanism})).items():
        if not hasattr(given, "get_params") or "epsilon" not in given.get_params(deep=False):
            raise ValueError(f"{name} must be an estimator with a parameter epsilon; got {given!r}.")


def _seeded_clone(mechanism: Any, epsilon: float | None, seed: int | None) -> Any:
    """Clone a mechanism, at `epsilon` if one is given, and with the seed if it has none."""
    if mechanism is None:
        return None
    own = clone(mechanism)
    seeded = {"seed": seed} if own.get_params(deep=False).get("seed", 0) is None else {}
    return own.set_params(**seeded, **({} if epsilon is None else {"epsilon": epsilon}))


def _train(
    model: ScoreModel,
    theta: np.ndarray,
    X: np.ndarray,
    one_hot: np.ndarray,
    clients: np.ndarray,
    rounds: Iterable[int],
    step: float,
    update: Callable[..., np.ndarray] | None = None,
    *,
    asked: np.ndarray | None = None,
    n_steps: int = 1,
) -> np.ndarray:
    """Run FedSGD with the clients' mean gradient, or with an `update` of the parameters by each client's gradient."""
    together = update is None and asked is None and n_steps == 1
    if together:
        # The mean of the clients' gradients is a weighted gradient of all rows.
        sizes = np.bincount(clients)
        weights = 1 / (len(sizes) * sizes[clients])
    else:
        rows, weights = _padded(clients)
        X, one_hot = X[rows], one_hot[rows]
    for place in rounds:
        own = slice(None) if asked is None else asked[place]
        data = X[own], one_hot[own], weights[own]
        gradients = model.gradient(theta, *data)
        for _ in range(n_steps - 1):
            gradients = gradients + model.gradient(theta - step * gradients, *data)
        if update is not None:
            theta = update(theta, gradients, step=step)
        else:
            theta = theta - step * (gradients if together else gradients.mean(axis=0))
    return theta


def _asked(n_clients: int, n_sampled: Any, n_rounds: int, perturbs: str, noise: Any) -> np.ndarray | None:
    """Return the clients of each round, of shape (n_rounds, n_sampled); None is everybody."""
    if n_sampled is None:
        return None
    check_integer("n_sampled_clients", n_sampled, least=1, most=n_clients)
    if n_sampled == n_clients:
        return None
    if perturbs.startswith("anonymised"):
        return np.stack([noise.permutation(n_clients)[:n_sampled] for _ in range(n_rounds)])
    return np.resize(noise.permutation(n_clients), (n_rounds, n_sampled))


def _step_on_releases(
    theta: np.ndarray, gradients: np.ndarray, *, step: float, bound: float, release: Any, of_weights: bool
) -> np.ndarray:
    """Return the next parameters, from releases of the clients' gradients or of their weights after a step."""
    sent = theta - step * gradients if of_weights else gradients
    mean = release(np.clip(sent, -bound, bound)).mean(axis=0)
    return np.asarray(mean if of_weights else theta - step * mean)


def _padded(clients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return row numbers as (client, place); short clients are filled up with rows of weight 0."""
    sizes = np.bincount(clients)
    order = np.argsort(clients, kind="stable")
    place = np.arange(sizes.max())[None, :]
    real = place < sizes[:, None]
    starts = np.cumsum(sizes) - sizes
    rows = order[np.minimum(starts[:, None] + place, len(order) - 1)]
    return rows, real / sizes[:, None]


def _assign(n_clients: Any, n_rows: int, noise: Any) -> np.ndarray:
    if np.ndim(n_clients) == 1:
        check_consistent_length(n_clients, np.empty(n_rows))
        return np.unique(np.asarray(n_clients), return_inverse=True)[1]
    if not is_integer(n_clients) or not 1 <= n_clients <= n_rows:
        raise ValueError(
            f"n_clients must be an integer from 1 to the number of rows, {n_rows}, or one client for each row; "
            f"got {n_clients if isinstance(n_clients, Real) else kind_of(n_clients)}."
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
        raise ValueError(f"A mechanism that changes the number of features must have transform_noise; got {mechanism}.")
    return released, np.asarray(X_test, dtype=np.float64)


def _with_intercept(X: np.ndarray) -> np.ndarray:
    return np.concatenate([X, np.ones((len(X), 1))], axis=1)


def _evaluated(scores: np.ndarray, y: np.ndarray, classes: np.ndarray) -> tuple[float, float]:
    """Return the accuracy, and the mean area under the ROC curve over classes (each against the rest) or attributes."""
    if y.ndim == 2:
        owns, accuracy = y == 1, np.mean((scores > 0.5) == y)
    else:
        owns, accuracy = y[:, None] == classes, np.mean(classes[scores.argmax(axis=1)] == y)
    both = [(own, score) for own, score in zip(owns.T, scores.T, strict=True) if 0 < np.count_nonzero(own) < len(own)]
    return float(accuracy), float(np.mean([roc_auc_score(*one) for one in both])) if both else float("nan")


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
        raise ValueError(f"X_test must have the {X.shape[1]} features of X; got {X_test.shape[1]}.")
    if y.ndim == 2:
        if y.shape[1] != y_test.shape[1] or not all(np.isin(part, (0, 1)).all() for part in (y, y_test)):
            raise ValueError(
                "Attributes must be columns of 0 and 1, as many in y_test as in y; "
                f"got {y.shape[1]} in y and {y_test.shape[1]} in y_test."
            )
        return X, y, X_test, y_test, np.arange(2)
    classes = np.unique(y)
    if len(classes) < 2:
        raise ValueError(f"y must have at least two classes; got {len(classes)}.")
    return X, y, X_test, y_test, classes


def _check_numbers(
    model: Any, n_rounds: Any, local_steps: Any, gradient_bound: Any, learning_rate: Any, hidden: Any
) -> None:
    check_choice("model", model, _MODELS)
    check_integer("n_rounds", n_rounds, least=1)
    check_integer("local_steps", local_steps, least=1)
    for size in hidden:
        check_integer("Every number in hidden", size, least=1)
    check_positive("gradient_bound", gradient_bound)
    if not (isinstance(learning_rate, str) and learning_rate == "auto"):
        check_positive("learning_rate", learning_rate)
    elif model == "network":
        raise ValueError("learning_rate must be a number for a network; got 'auto'.")


@dataclass(frozen=True)
class FederatedRun:
    """Result of one training; :func:`federated_learning` describes it."""

    accuracy: float
    auc: float
    guarantee: PrivacyGuarantee
    published_epsilon: float
    shuffled: PrivacyGuarantee | None
    closed_form_epsilon: float
    seconds: float
