"""Inversion attacks: recover the released candidate, with a bound on the success of any attack."""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats
from scipy.spatial.distance import cdist

from skldp._checks import check_fraction, check_integer
from skldp._reading import is_missing
from skldp.estimators._schema import columns_of
from skldp.exceptions import SeededNoiseWarning
from skldp.laws._odds import product_above
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import noise_from
from skldp.study._audit import checked_outputs

# Releases of each candidate that the decoder is trained on.
_TRAINING = 20
# Number of scores (trials times candidates) in memory at a time.
_MOST_SCORES = 1 << 22
# Ridge relative to the mean square of the releases, for columns without noise.
_RIDGE = 1e-9
# Far above the rounding errors of the sums and exponentials below.
_ROUNDING = 1e-9
# Steps of refinement; the bound is valid after each.
_STEPS = 50


@dataclass(frozen=True)
class InversionAttack:
    """Share of trials that one attack recovered, with Clopper-Pearson bounds that hold for all attacks together."""

    name: str
    recovered: float
    low: float
    high: float


@dataclass(frozen=True)
class InversionResult:
    """Result of an inversion audit; :func:`audit_inversion` describes it."""

    attacks: tuple[InversionAttack, ...]
    n_candidates: int
    n_trials: int
    confidence: float
    guarantee: PrivacyGuarantee | None
    epsilon: float
    bound: float

    @property
    def chance(self) -> float:
        """Share that a guess without the release recovers."""
        return 1 / self.n_candidates

    @property
    def best(self) -> InversionAttack:
        """Attack that recovered most."""
        return max(self.attacks, key=lambda attack: attack.recovered)

    @property
    def refutes_claim(self) -> bool:
        """True if the lower bound of an attack is above the bound of the guarantee."""
        return any(attack.low > self.bound for attack in self.attacks)

    def __str__(self) -> str:
        """One readable line."""
        shares = ", ".join(f"{attack.name} {attack.recovered:.4g}" for attack in self.attacks)
        verdict = "REFUTED" if self.refutes_claim else "not refuted"
        return (
            f"recovered of {self.n_candidates:,}: {shares}; chance {self.chance:.4g}, at most {self.bound:.4g} at "
            f"epsilon {self.epsilon:.4g}: {verdict} ({self.confidence:.4g} confidence, {self.n_trials:,} trials)"
        )


def audit_inversion(
    release: Any,
    candidates: Any,
    *,
    n_trials: int = 10_000,
    confidence: float = 0.95,
    attacks: Mapping[str, Callable[[np.ndarray], npt.ArrayLike]] | None = None,
    seed: Any = None,
) -> InversionResult:
    r"""Try to recover words, records or labels from their releases.

    Every trial draws one of the candidates uniformly and releases it once. An attacker who knows the candidates, the
    mechanism and the release, but not the noise, names one of them.

    Parameters
    ----------
    release : callable or fitted estimator
        Function from rows to one output each: a number, a category or a vector. An estimator's ``transform`` is used,
        and must add noise.
    candidates : array-like or DataFrame of shape (n_candidates, n_features), or array-like of shape (n_candidates,)
        Possible inputs, all different: word vectors, records of a table, or labels. A :class:`~skldp.TablePrivatizer`
        needs a frame of the kind that it was fitted on.
    n_trials : int, default=10_000
        Number of trials.
    confidence : float, default=0.95
        Joint confidence of all intervals.
    attacks : dict of str to callable, default=None
        Further attacks by name: functions from outputs, shape (n_trials, n_outputs), to indices of
        candidates, shape (n_trials,).
    seed : None, int, Generator or RandomState, default=None
        Seeds the choice of candidates, never the release.

    Returns
    -------
    result : InversionResult
        Result with these attributes; it prints as one line.

        - ``attacks``: for each attack its ``name``, the share ``recovered`` and bounds ``low`` and ``high`` on its
          probability. ``"decoder"`` is always there: the nearest mean of 20 further releases of each candidate, under
          the covariance of the noise. For an estimator also ``"nearest"`` (the candidate whose encoding
          without noise is nearest) and ``"likelihood"`` (the candidate of the largest likelihood, which no attack
          surpasses) if the mechanism has these. Records of tables have only the decoder.
        - ``best``: the attack that recovered most; ``chance``: the share of a guess without the release.
        - ``bound``: largest share of any attack; 1 without a guarantee. For a guarantee per unit of distance with a
          delta of its public matrix, it holds for the matrices that keep the guarantee.
        - ``epsilon``: exact epsilon between the two candidates furthest apart (nats), infinite without a guarantee;
          ``guarantee`` of the release, or None.
        - ``refutes_claim``: whether an attack certainly recovers more than the bound.
        - ``n_candidates``, ``n_trials`` and ``confidence``.

    Raises
    ------
    ValueError
        If a parameter is out of range, two candidates are equal, or `release` does not give one output for each row.

    See Also
    --------
    audit_epsilon : Lower bound on epsilon for two inputs.

    Notes
    -----
    Given everything released before, a trial succeeds with a probability of at most the bound, so that the number of
    successes is stochastically no larger than a binomial one, and ``refutes_claim`` is wrong with a
    probability of at most ``1 - confidence``. If the epsilon of two candidates is proportional to their distance, the
    bound is that of all pairs together.

    References
    ----------
    Clopper and Pearson, "The use of confidence or fiducial limits", Biometrika 26, 1934.

    Examples
    --------
    >>> from skldp import LabelRR
    >>> from skldp.study import audit_inversion
    >>> result = audit_inversion(LabelRR(2.0, classes=list("abcd")).fit(["a"]), list("abcd"), n_trials=2_000)
    >>> result.n_candidates, round(result.bound, 4), result.best.recovered > result.chance
    (4, 0.7112, True)
    """
    check_integer("n_trials", n_trials, least=1)
    check_fraction("confidence", confidence)
    known = _as_candidates(candidates)
    guarantee = getattr(release, "privacy_guarantee_", None)
    epsilon, bound = _epsilon_and_bound(release, known)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        # A stream of its own: a release with the same seed, or its threads, must not share it.
        (choice,) = noise_from(seed).spawn(1)[0].spawn(1)
    chosen = choice.integers(len(known), n_trials)
    call = getattr(release, "transform", release)

    def released(places: npt.NDArray[np.int64]) -> np.ndarray:
        return checked_outputs(call, known.iloc[places] if hasattr(known, "iloc") else known[places])

    outputs = released(chosen)
    training = np.repeat(np.arange(len(known)), _TRAINING)
    training_outputs = released(training)
    guesses = dict(_own_attacks(release, known, outputs))
    guesses["decoder"] = _decoded(training_outputs, training, outputs)
    guesses |= {name: np.asarray(attack(outputs)) for name, attack in (attacks or {}).items()}
    risk = (1 - confidence) / len(guesses)
    made = tuple(_attack(name, guess, chosen, risk) for name, guess in guesses.items())
    return InversionResult(made, len(known), int(n_trials), float(confidence), guarantee, epsilon, bound)


def _as_candidates(candidates: Any) -> Any:
    """Return different candidates as an array, or in their frame."""
    if hasattr(candidates, "columns"):
        known = candidates
        columns = [[None if is_missing(value) else value for value in values.tolist()] for values in columns_of(known)]
        n_distinct = len(set(zip(*columns, strict=True)))
    else:
        known = np.asarray(candidates)
        if known.ndim not in (1, 2) or len(known) < 2:
            raise ValueError(f"candidates must be at least two rows or scalars; got an array of shape {known.shape}.")
        rows = known.reshape(len(known), -1)
        n_distinct = len(np.unique(rows if rows.dtype.kind != "O" else rows.astype(str), axis=0))
    if len(known) < 2 or n_distinct < len(known):
        raise ValueError(f"candidates must be two or more, all different; got {n_distinct} different of {len(known)}.")
    return known


def _epsilon_and_bound(release: Any, known: Any) -> tuple[float, float]:
    """Return the epsilon between the candidates furthest apart, and the bound on the share of any attack."""
    guarantee: PrivacyGuarantee | None = getattr(release, "privacy_guarantee_", None)
    if guarantee is None:
        return math.inf, 1.0
    if guarantee.unit != "distance":
        return guarantee.epsilon, inversion_bound(guarantee.epsilon, len(known), delta=guarantee.delta)
    rows = known.reshape(len(known), -1).astype(np.float64)
    distances = cdist(rows, rows)
    if guarantee.diameter is not None:
        distances = np.minimum(distances, guarantee.diameter)
    largest = product_above(guarantee.epsilon, float(distances.max()))
    return largest, pairwise_share(guarantee.epsilon * distances * (1 + _ROUNDING))


def _own_attacks(release: Any, known: np.ndarray, outputs: np.ndarray) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
    """Yield the attacks that use the mechanism of an estimator, each with its guesses."""
    mechanism = getattr(release, "mechanism_", None)
    of_table = hasattr(known, "columns") or (known.ndim == 2 and known.dtype.kind not in "biuf")
    if mechanism is None or of_table:
        return
    if known.ndim == 1:
        classes = getattr(release, "classes_", None)
        if classes is None or not hasattr(mechanism, "log_likelihood") or outputs.shape[1] != 1:
            return
        places = {value: place for place, value in enumerate(np.asarray(classes).tolist())}
        known = np.array([places[value] for value in known.tolist()])
        outputs = np.array([places[value] for value in outputs[:, 0].tolist()])
    else:
        encoded = mechanism.encode(known).rows.astype(np.float64)
        if outputs.dtype.kind in "biuf" and encoded.shape[1] == outputs.shape[1]:
            half = np.einsum("ij,ij->i", encoded, encoded) / 2
            yield "nearest", _largest_product(outputs.astype(np.float64), encoded, half)
    if hasattr(mechanism, "log_likelihood"):
        yield "likelihood", _likeliest(mechanism, known, outputs)


def _likeliest(mechanism: Any, known: np.ndarray, outputs: np.ndarray) -> npt.NDArray[np.int64]:
    """Return the first candidate of the largest likelihood."""
    best = np.full(len(outputs), -np.inf)
    guess = np.zeros(len(outputs), dtype=np.int64)
    for place in range(len(known)):
        likelihood = mechanism.log_likelihood(outputs, known[place : place + 1])
        better = likelihood > best
        best[better], guess[better] = likelihood[better], place
    return guess


def _decoded(training: np.ndarray, answers: npt.NDArray[np.int64], outputs: np.ndarray) -> npt.NDArray[np.int64]:
    """Return the guesses of a decoder that was trained on releases of known candidates."""
    known, asked = _as_numbers(training, outputs)
    n_candidates = int(answers[-1]) + 1
    means = known.reshape(n_candidates, -1, known.shape[1]).mean(axis=1)
    noise = known - means[answers]
    spread = noise.T @ noise / len(noise)
    spread += np.eye(len(spread)) * max(_RIDGE * float(np.mean(known**2)), np.finfo(float).tiny)
    directions = np.linalg.solve(spread, means.T).T
    return _largest_product(asked, directions, np.einsum("ij,ij->i", means, directions) / 2)


def _as_numbers(training: np.ndarray, outputs: np.ndarray) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return releases as numbers; categories become indicators of the training categories."""
    if outputs.dtype.kind == "f":
        # Infinite outputs, beyond the range of the type, are set to the largest finite magnitude.
        finite = np.abs(training[np.isfinite(training)], dtype=np.float64)
        most = float(finite.max()) if finite.size else 1.0
        numbers = (np.asarray(part, dtype=np.float64) for part in (training, outputs))
        known, asked = (np.nan_to_num(part, nan=0.0, posinf=most, neginf=-most) for part in numbers)
        return known, asked
    columns: list[np.ndarray] = []
    for learnt, asked in zip(training.T, outputs.T, strict=True):
        column = np.concatenate([learnt, asked])
        try:
            # A frame may hold numbers beside categories; a missing number is 0.
            columns.append(np.nan_to_num(column.astype(np.float64))[:, None])
        except (TypeError, ValueError):
            columns.append(column.astype(str)[:, None] == np.unique(learnt.astype(str)))
    both = np.concatenate(columns, axis=1).astype(np.float64)
    return both[: len(training)], both[len(training) :]


def _largest_product(
    outputs: npt.NDArray[np.float64], directions: npt.NDArray[np.float64], offsets: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """Return for each output the index of the direction with the largest inner product minus its offset."""
    step = max(1, _MOST_SCORES // len(directions))
    parts = [outputs[start : start + step] @ directions.T - offsets for start in range(0, len(outputs), step)]
    return np.concatenate([part.argmax(axis=1) for part in parts])


def _attack(name: str, guess: npt.NDArray[np.int64], chosen: npt.NDArray[np.int64], risk: float) -> InversionAttack:
    if guess.shape != chosen.shape:
        raise ValueError(
            f"The attack {name!r} must name one candidate for each of {len(chosen)} outputs; "
            f"got an array of shape {guess.shape}."
        )
    hits, n = int((guess == chosen).sum()), len(chosen)
    low = float(stats.beta.ppf(risk / 2, hits, n - hits + 1)) if hits else 0.0
    high = float(stats.beta.isf(risk / 2, hits + 1, n - hits)) if hits < n else 1.0
    return InversionAttack(name, hits / n, low, high)


def inversion_bound(epsilon: float, n_candidates: int, *, delta: float = 0.0) -> float:
    """Bound the mean success p_x on k candidates, (e^eps + (k - 1) delta) / (e^eps + k - 1), rounded up."""
    # x is named for every other candidate with a probability of at least e^-eps (p_x - delta); all names sum to 1.
    others = (n_candidates - 1) * math.exp(-epsilon)
    return min(1.0, (1 + others * delta) / (1 + others) * (1 + _ROUNDING))


def pairwise_share(epsilons: npt.NDArray[np.float64]) -> float:
    """Bound the share of :func:`inversion_bound` with an epsilon for each pair, of shape (k, k): sum p <= sum y."""
    # With A = e^-epsilons, A p <= 1, so that any y >= 0 with A y >= 1 bounds. Rounding A down makes the bound grow.
    alike = np.exp(-epsilons) * (1 - _ROUNDING)
    np.fill_diagonal(alike, 1.0)
    y, best = 1 / alike.sum(axis=1), math.inf
    for _ in range(_STEPS):
        reached = alike @ y
        best = min(best, float(y.sum() / reached.min()))
        y = y / reached
    return min(1.0, best / len(y) * (1 + _ROUNDING))
