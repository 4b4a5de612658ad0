"""Attacks that name which of some known candidates a release was made of, and what share of them they recover."""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats
from scipy.spatial.distance import cdist
from sklearn.base import clone

from skldp._checks import check_fraction, check_whole
from skldp.estimators._table import TablePrivatizer
from skldp.exceptions import SeededNoiseWarning
from skldp.mechanisms._guarantee import PrivacyGuarantee
from skldp.mechanisms._noise import noise_from
from skldp.mechanisms._odds import product_above
from skldp.study._audit.inversion_bound import inversion_bound, metric_bound, pairwise_share
from skldp.study._audit.lower_bound import one_output_a_row
from skldp.study._audit.table_cells import (
    as_rows,
    declared_cells,
    distinct_rows,
    likeliest_records,
    likelihood_is_known,
    plain_numbers,
    record_epsilons,
    released_record,
    rows_at,
)

__all__ = ["InversionAttack", "InversionResult", "audit_inversion"]

# Releases of each candidate that a decoder learns from.
_LESSONS = 20
# Scores of trials against candidates that are held at a time.
_MOST_SCORES = 1 << 22
# Next to the mean square of what is released, so that a column without noise does not divide by 0.
_RIDGE = 1e-9
# Records of a table whose pairs are looked at one by one.
_MOST_RECORDS = 2_000


@dataclass(frozen=True)
class InversionAttack:
    """How often one attack named the right candidate.

    Attributes
    ----------
    name : str
    recovered : float
        The share of trials.
    low, high : float
        Clopper-Pearson bounds on the probability, which hold for all attacks of an audit together.
    """

    name: str
    recovered: float
    low: float
    high: float


@dataclass(frozen=True)
class InversionResult:
    """What attacks recovered, beside the most that the guarantee leaves to any attack.

    Attributes
    ----------
    attacks : tuple of InversionAttack
    n_candidates, n_trials : int
    confidence : float
    guarantee : PrivacyGuarantee or None
        Of the release, where it has one.
    epsilon : float
        The exact epsilon between the two candidates that are furthest apart (natural log); infinite without a
        guarantee.
    bound : float
        The largest share that any attack can recover; 1 without a guarantee. Where a release per unit of distance has
        a delta, which is one of its public matrix, the bound holds for the matrices that keep the guarantee.
    """

    attacks: tuple[InversionAttack, ...]
    n_candidates: int
    n_trials: int
    confidence: float
    guarantee: PrivacyGuarantee | None
    epsilon: float
    bound: float

    @property
    def chance(self) -> float:
        """The share that is guessed without looking at a release."""
        return 1 / self.n_candidates

    @property
    def best(self) -> InversionAttack:
        """The attack that recovered most."""
        return max(self.attacks, key=lambda attack: attack.recovered)

    @property
    def refutes_claim(self) -> bool:
        """Whether an attack surely recovers more than the guarantee allows."""
        return any(attack.low > self.bound for attack in self.attacks)

    @property
    def epsilon_lower(self) -> float:
        """The smallest epsilon that leaves as much as was surely recovered, at the delta of a guarantee per record."""
        delta = _delta(self.guarantee)
        low = max(attack.low for attack in self.attacks)
        odds = (self.n_candidates - 1) * max(low - delta, 0.0) / (1 - low) if low < 1 else math.inf
        return max(0.0, math.log(odds)) if odds > 0 else 0.0

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
    decoder: Any = None,
    n_lessons: int = _LESSONS,
    attacks: Mapping[str, Callable[[np.ndarray], npt.ArrayLike]] | None = None,
    seed: Any = None,
) -> InversionResult:
    r"""Try to recover words, records or labels from their releases.

    Every trial draws one of the candidates uniformly and releases it once. An attacker who knows the candidates, the
    mechanism and the release, but not the noise, names one of them.

    Parameters
    ----------
    release : callable or fitted estimator
        Takes the rows of many people and gives one output for each: a number, a category or a vector. Of an estimator,
        its ``transform``, which must be noisy.
    candidates : array-like or DataFrame of shape (n_candidates, n_features), or array-like of shape (n_candidates,)
        What may have been released, all different: a vocabulary of word vectors, the records of a table, labels.
        Records of a :class:`~skldp.TablePrivatizer` in a frame of the kind that it was fitted on.
    n_trials : int, default=10_000
    confidence : float, default=0.95
        Of all intervals together.
    decoder : classifier, default=None
        Cloned and trained on releases that the attacker makes. None takes the nearest mean release of a candidate,
        under the covariance of the noise.
    n_lessons : int, default=20
        How many releases of each candidate it is trained on. The audited trials are others.
    attacks : dict of str to callable, default=None
        Further attacks by name: functions of the outputs, shape (n_trials, n_outputs), that give the place of a
        candidate for each.
    seed : None, int, Generator or RandomState, default=None
        Of the choice of candidates alone, never of the release.

    Returns
    -------
    InversionResult
        With the attack ``"decoder"``, and where the release is an estimator that has what they need,
        ``"nearest"`` (the candidate whose encoding without noise is nearest) and ``"likelihood"`` (the candidate of
        the largest likelihood, which no attack surpasses). Of a table, the likelihood of a record is the product of
        those of its cells; there is none of ``encoding="estimates"``, nor of ``"columns"`` with dates, which are days.

    Raises
    ------
    ValueError
        If a parameter is out of range, two candidates are equal, or `release` does not give one output for each row.

    See Also
    --------
    audit_epsilon : Tells two inputs apart, where more is known of the attacker's best event.
    inversion_bound : The most that an epsilon leaves to any attack.

    Notes
    -----
    Given everything released before, a trial succeeds with a probability of at most the bound, so that the number of
    successes is stochastically no larger than a binomial one, and :attr:`InversionResult.refutes_claim` is wrong with a
    probability of at most ``1 - confidence``. Where the epsilon of two candidates is proportional to their distance,
    or is that of the columns in which two records of a table differ, the bound is that of all pairs together.

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

    Records of a table, of which some differ in one column only:

    >>> from itertools import product
    >>> import pandas as pd
    >>> from skldp import TablePrivatizer
    >>> people = pd.DataFrame(product(["Bonn", "Ulm"], [20.0, 40.0, 60.0]), columns=["city", "age"])
    >>> table = TablePrivatizer(6.0, schema={"city": ["Bonn", "Ulm"], "age": (0, 80)}).fit(people)
    >>> result = audit_inversion(table, people, n_trials=2_000)
    >>> [attack.name for attack in result.attacks], result.bound < 0.99
    (['likelihood', 'decoder'], True)
    """
    check_whole("n_trials", n_trials, least=1)
    check_whole("n_lessons", n_lessons, least=2)
    check_fraction("confidence", confidence)
    known = _as_candidates(candidates)
    guarantee = getattr(release, "privacy_guarantee_", None)
    cells = declared_cells(release, known) if isinstance(release, TablePrivatizer) else None
    epsilon, bound = _most(release, known, cells)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        # No stream of a release with the same seed, nor of its threads: what is released would depend on its noise.
        (choice,) = noise_from(seed).spawn(1)[0].spawn(1)
    chosen = choice.integers(len(known), n_trials)
    give = getattr(release, "transform", release)

    def released(places: npt.NDArray[np.int64]) -> np.ndarray:
        return one_output_a_row(lambda rows: as_rows(give(rows)), rows_at(known, places))

    outputs = released(chosen)
    lessons = np.repeat(np.arange(len(known)), n_lessons)
    shown = released(lessons)
    if cells is None:
        guesses = dict(_own_attacks(release, known, outputs))
        guesses["decoder"] = _decoded(decoder, shown, lessons, outputs)
    else:
        guesses = _attacks_on_tables(release, cells, decoder, shown, lessons, outputs)
    guesses |= {name: np.asarray(attack(outputs)) for name, attack in (attacks or {}).items()}
    risk = (1 - confidence) / len(guesses)
    made = tuple(_attack(name, guess, chosen, risk) for name, guess in guesses.items())
    return InversionResult(made, len(known), int(n_trials), float(confidence), guarantee, epsilon, bound)


def _as_candidates(candidates: Any) -> Any:
    """Candidates as an array, or in the frame that they are in."""
    if hasattr(candidates, "columns"):
        if len(candidates) < 2 or distinct_rows(candidates) < len(candidates):
            raise ValueError(
                f"candidates must be at least two records, all different. Got {len(candidates)}, or some of them twice."
            )
        return candidates
    known = np.asarray(candidates)
    if known.ndim not in (1, 2) or len(known) < 2:
        raise ValueError(
            f"candidates must be at least two rows or scalars. Got an array of shape {known.shape} instead."
        )
    rows = known.reshape(len(known), -1)
    if len(np.unique(rows if rows.dtype.kind != "O" else rows.astype(str), axis=0)) < len(rows):
        raise ValueError("candidates must all be different. Got some more than once instead.")
    return known


def _delta(guarantee: PrivacyGuarantee | None) -> float:
    """The delta of one release; that of a guarantee per unit of distance is one of the public matrix."""
    return 0.0 if guarantee is None or guarantee.unit == "distance" else guarantee.delta


def _most(release: Any, known: Any, cells: npt.NDArray[np.float64] | None) -> tuple[float, float]:
    """The epsilon between the candidates furthest apart, and the largest share that anybody recovers."""
    guarantee: PrivacyGuarantee | None = getattr(release, "privacy_guarantee_", None)
    if guarantee is None:
        return math.inf, 1.0
    if cells is not None and math.isfinite(guarantee.epsilon) and len(cells) <= _MOST_RECORDS:
        epsilons = record_epsilons(release, cells)
        return min(guarantee.epsilon, float(epsilons.max())), pairwise_share(epsilons)
    if guarantee.unit != "distance":
        return guarantee.epsilon, inversion_bound(guarantee.epsilon, len(known), delta=guarantee.delta)
    rows = known.reshape(len(known), -1).astype(np.float64)
    distances = cdist(rows, rows)
    furthest = float(distances.max() if guarantee.diameter is None else min(distances.max(), guarantee.diameter))
    return product_above(guarantee.epsilon, furthest), metric_bound(guarantee.epsilon, distances, guarantee.diameter)


def _own_attacks(release: Any, known: np.ndarray, outputs: np.ndarray) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
    """The attacks that know the mechanism of an estimator, each with its guesses."""
    mechanism = getattr(release, "mechanism_", None)
    if mechanism is None:
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


def _attacks_on_tables(
    release: TablePrivatizer,
    cells: npt.NDArray[np.float64],
    decoder: Any,
    lessons: np.ndarray,
    answers: npt.NDArray[np.int64],
    outputs: np.ndarray,
) -> dict[str, npt.NDArray[np.int64]]:
    """The attacks on records of declared columns, each with its guesses."""
    guesses = {}
    if likelihood_is_known(release):
        guesses["likelihood"] = likeliest_records(release, cells, released_record(release, outputs))
    lessons, outputs = (plain_numbers(release, part) for part in (lessons, outputs))
    return guesses | {"decoder": _decoded(decoder, lessons, answers, outputs)}


def _likeliest(mechanism: Any, known: np.ndarray, outputs: np.ndarray) -> npt.NDArray[np.int64]:
    """The first candidate of the largest likelihood: among equally likely ones no choice is better than another."""
    best = np.full(len(outputs), -np.inf)
    guess = np.zeros(len(outputs), dtype=np.int64)
    for place in range(len(known)):
        likelihood = mechanism.log_likelihood(outputs, known[place : place + 1])
        better = likelihood > best
        best[better], guess[better] = likelihood[better], place
    return guess


def _decoded(
    decoder: Any, lessons: np.ndarray, answers: npt.NDArray[np.int64], outputs: np.ndarray
) -> npt.NDArray[np.int64]:
    """What a decoder that was trained on releases of known candidates names for other releases."""
    known, asked = _as_numbers(lessons, outputs)
    if decoder is not None:
        named: npt.NDArray[np.int64] = np.asarray(clone(decoder).fit(known, answers).predict(asked))
        return named
    n_candidates = int(answers[-1]) + 1
    means = known.reshape(n_candidates, -1, known.shape[1]).mean(axis=1)
    noise = known - means[answers]
    spread = noise.T @ noise / len(noise)
    spread += np.eye(len(spread)) * max(_RIDGE * float(np.mean(known**2)), np.finfo(float).tiny)
    directions = np.linalg.solve(spread, means.T).T
    return _largest_product(asked, directions, np.einsum("ij,ij->i", means, directions) / 2)


def _as_numbers(lessons: np.ndarray, outputs: np.ndarray) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Releases as numbers: categories become one column for each that the lessons showed."""
    if outputs.dtype.kind == "f":
        # What is infinite, where noise went beyond the range of the type, lies at the end of what did not.
        finite = np.abs(lessons[np.isfinite(lessons)], dtype=np.float64)
        most = float(finite.max()) if finite.size else 1.0
        numbers = (np.asarray(part, dtype=np.float64) for part in (lessons, outputs))
        known, asked = (np.nan_to_num(part, nan=0.0, posinf=most, neginf=-most) for part in numbers)
        return known, asked
    columns: list[np.ndarray] = []
    for learnt, asked in zip(lessons.T, outputs.T, strict=True):
        values = np.unique(learnt)
        columns.append(np.concatenate([learnt, asked])[:, None] == values)
    both = np.concatenate(columns, axis=1).astype(np.float64)
    return both[: len(lessons)], both[len(lessons) :]


def _largest_product(
    outputs: npt.NDArray[np.float64], directions: npt.NDArray[np.float64], offsets: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """For each output the direction whose inner product with it, less an offset, is the largest."""
    step = max(1, _MOST_SCORES // len(directions))
    parts = [outputs[start : start + step] @ directions.T - offsets for start in range(0, len(outputs), step)]
    return np.concatenate([part.argmax(axis=1) for part in parts])


def _attack(name: str, guess: npt.NDArray[np.int64], chosen: npt.NDArray[np.int64], risk: float) -> InversionAttack:
    if guess.shape != chosen.shape:
        raise ValueError(
            f"The attack {name!r} must name one candidate for each of {len(chosen)} outputs. "
            f"Got an array of shape {guess.shape} instead."
        )
    hits, n = int((guess == chosen).sum()), len(chosen)
    low = float(stats.beta.ppf(risk / 2, hits, n - hits + 1)) if hits else 0.0
    high = float(stats.beta.isf(risk / 2, hits + 1, n - hits)) if hits < n else 1.0
    return InversionAttack(name, hits / n, low, high)
