"""Black-box lower bound on epsilon from the outputs of a release, for two inputs or the worst pair of an estimator."""

import bisect
import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, combinations
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.utils.validation import check_is_fitted

from skldp._checks import check_fraction, check_integer, is_number
from skldp._progress import Progress
from skldp.exceptions import SeededNoiseWarning
from skldp.laws._odds import product_above
from skldp.mechanisms._noise import noise_from

# Bins of a continuous column, and the largest number of values of a discrete one.
_BINS = 32
# Minimum mean number of trials of an outcome for a likelihood ratio by outcome.
_TRIALS_PER_OUTCOME = 2
# Thresholds tried for each score.
_MAX_THRESHOLDS = 400
# The best estimate of many events is biased upwards: divide the risk by this factor when choosing one.
_RISK_DIVISOR = 50
# Pair all categories up to this number, else the first and last ones.
_MOST_VALUES = 4
# A pilot certifies nothing; a low confidence lets it detect rare events.
_PILOT_CONFIDENCE = 0.8


@dataclass(frozen=True)
class AuditResult:
    """Result of an audit; :func:`~skldp.study.audit_epsilon` describes it."""

    epsilon_lower: float
    confidence: float
    n_trials: int
    delta: float = 0.0
    event: str = ""
    claimed: float | None = None
    seconds: float = 0.0

    @property
    def refutes_claim(self) -> bool:
        """True if the bound is above the claimed epsilon."""
        return self.claimed is not None and self.epsilon_lower > self.claimed

    def against(self, epsilon: float) -> "AuditResult":
        """Return the result with another claim.

        Parameters
        ----------
        epsilon : float
            Another claimed epsilon (natural log).
        """
        return replace(self, claimed=float(epsilon))

    def __str__(self) -> str:
        """One readable line."""
        text = f"epsilon >= {self.epsilon_lower:.4g}"
        if self.delta:
            text += f" at delta {self.delta:g}"
        if self.claimed is not None:
            text += f", claimed {self.claimed:.4g}: {'REFUTED' if self.refutes_claim else 'not refuted'}"
        return f"{text} ({self.confidence:.4g} confidence, {self.n_trials:,} trials; {self.event})"


def audit_epsilon(
    release: Any,
    x: npt.ArrayLike,
    x_prime: npt.ArrayLike,
    *,
    n_trials: int = 20_000,
    confidence: float = 0.95,
    delta: float = 0.0,
    companion: npt.ArrayLike | None = None,
    rows_per_call: int | None = None,
    scores: Mapping[str, Callable[[np.ndarray], np.ndarray]] | None = None,
    seed: Any = None,
    verbose: bool = False,
) -> AuditResult:
    r"""Lower-bound epsilon by a black-box attack on a release.

    Every trial releases `x` or `x_prime` by a fair coin, and the attacker guesses the coin from the output. The outputs
    of the first half of the trials choose an event; those of the second half bound
    :math:`\ln P(S \mid x) / P(S \mid x')` from below, so that the search for the best event costs no validity.

    Parameters
    ----------
    release : callable or fitted estimator
        Takes the rows of many people and returns one output for each: a number, a category or a vector. For an
        estimator, its ``transform``.
    x, x_prime : array-like of shape (n_features,), or scalar
        Two inputs to distinguish; scalars for a release of labels, which takes an array of shape (n,). Choose the pair
        that the mechanism protects least.
    n_trials : int, default=20_000
        Number of outputs.
    confidence : float, default=0.95
        The bound is wrong with a probability of at most ``1 - confidence``.
    delta : float, default=0.0
        Delta of the claim, in [0, 1).
    companion : array-like of shape (n_features,) or scalar, default=None
        Public input that is released with every audited one, once in the same call and once in the next call. The
        attacker sees those outputs too, which finds noise that two releases share.
    rows_per_call : int, default=None
        Number of trials in one call; None is all. With 1, every trial is a call of its own: slower, and it finds what a
        release learns from its complete input, such as bounds.
    scores : dict of str to callable, default=None
        Further scores of an attacker who knows the mechanism, by name: functions of the outputs, of shape
        (n_trials, n_outputs), that return a number for each.
    seed : None, int, Generator or RandomState, default=None
        Seeds the coins, never the release.
    verbose : bool, default=False
        Show progress on standard error, from two seconds on.

    Returns
    -------
    result : AuditResult
        Result with these attributes; it prints as one line.

        - ``epsilon_lower``: the release is not private for any smaller epsilon (nats); 0 if nothing is certified.
        - ``claimed``: epsilon that the guarantee of the release gives for this pair of inputs, or None.
        - ``refutes_claim``: whether the bound is above the claim.
        - ``confidence``, ``n_trials``, ``delta``, ``event`` (the chosen event and its counts) and ``seconds``.
        - ``against(epsilon)`` returns the result with another claim.

    Raises
    ------
    ValueError
        If there are too few trials to certify anything (the error names the number), `x` equals `x_prime`, or
        `release` does not return one output for each row.

    Notes
    -----
    Of the trials whose output falls into S, those from x are binomial with probability
    :math:`P / (P + Q)`, where :math:`P = P(S \mid x)` and :math:`Q = P(S \mid x')`, and one Clopper-Pearson bound on
    that fraction bounds :math:`\ln P / Q`. With ``delta=0`` the bound stays valid even if the rows of a call depend on
    each other, as long as the call protects each of its rows: given all outputs and the earlier coins, a coin is
    guessed with probability at most :math:`e^\varepsilon / (1 + e^\varepsilon)`. With ``delta > 0``, two
    Clopper-Pearson bounds at half the risk each give :math:`\ln (P - \delta) / Q`, and the trials must be independent.

    References
    ----------
    Steinke, Nasr and Jagielski, "Privacy auditing with one (1) training run", NeurIPS 2023, for the coins.
    Clopper and Pearson, "The use of confidence or fiducial limits", Biometrika 26, 1934.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.study import audit_epsilon
    >>> no_noise = lambda rows: rows[:, 0]
    >>> result = audit_epsilon(no_noise, [1.0], [0.0], n_trials=1_000)
    >>> result.epsilon_lower > 4
    True
    """
    check_fraction("confidence", confidence)
    if not is_number(delta) or not 0 <= delta < 1:
        raise ValueError(f"delta must be a number in [0, 1); got {delta!r}.")
    check_integer("n_trials", n_trials, least=1)
    if rows_per_call is not None:
        check_integer("rows_per_call", rows_per_call, least=1)
    needed = trials_needed(confidence=confidence, delta=delta)
    if n_trials < needed:
        raise ValueError(
            f"n_trials must be at least {needed} to certify anything at confidence {confidence:g}"
            f"{f' and delta {delta:g}' if delta else ''}; got {n_trials!r}."
        )
    started = time.perf_counter()
    guarantee = getattr(release, "privacy_guarantee_", None)
    claimed = None if guarantee is None else guarantee.epsilon
    if guarantee is not None and guarantee.unit == "distance":
        claimed = product_above(guarantee.epsilon, float(np.linalg.norm(np.subtract(x, x_prime))))
    pair = _as_pair(x, x_prime)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        coins = (noise_from(seed).words(n_trials, np.uint8) & 1).astype(bool)
    starts = range(0, n_trials, rows_per_call or n_trials)
    parts = Progress("calls", len(starts), show=verbose).track(coins[start : start + starts.step] for start in starts)
    outputs = _outputs(getattr(release, "transform", release), pair, parts, companion)

    n_choose = n_trials // 2
    more = ((name, score(outputs)) for name, score in (scores or {}).items())
    candidates = chain(more, _candidate_scores(outputs, coins[: n_choose // 2], pair))
    name, direction, trials = _choose_event(candidates, coins[:n_choose], confidence, delta)
    inside, from_first = trials[n_choose:], coins[n_choose:] == (direction > 0)
    hits, misses = int((inside & from_first).sum()), int((inside & ~from_first).sum())
    lower = float(_lower_bound(hits, misses, int(from_first.sum()), int((~from_first).sum()), confidence, delta))
    return AuditResult(
        epsilon_lower=max(0.0, math.nextafter(lower, -math.inf)),
        confidence=float(confidence),
        n_trials=int(n_trials),
        delta=float(delta),
        event=f"{name} indicates {'x' if direction > 0 else 'x_prime'}: {hits} right, {misses} wrong",
        claimed=claimed,
        seconds=time.perf_counter() - started,
    )


def audit_estimator(
    estimator: Any,
    *,
    n_trials: int = 20_000,
    confidence: float = 0.95,
    **options: Any,
) -> AuditResult:
    """Audit a fitted estimator on the worst of some pairs of inputs.

    The pairs are from `bounds_`, `categories_` or `classes_` (for bounds: all low, all high, all in the middle, and all
    just below 0 if that lies inside); without them, opposite vectors of the norm `radius_`, or 1. A pilot of half the
    trials runs for each pair; the audit uses fresh outputs of the pair with the largest bound, so that the choice costs
    no validity.

    Parameters
    ----------
    estimator : fitted estimator
        Transformer to audit.
    n_trials : int, default=20_000
        Number of outputs of the audit itself.
    confidence : float, default=0.95
        Confidence of the bound.
    **options
        Further parameters of :func:`~skldp.study.audit_epsilon`.

    Returns
    -------
    result : AuditResult
        As of :func:`~skldp.study.audit_epsilon`.

    Raises
    ------
    ValueError
        As :func:`~skldp.study.audit_epsilon`.

    Examples
    --------
    >>> from sklearn.preprocessing import OrdinalEncoder
    >>> from skldp.study import audit_estimator
    >>> audit_estimator(OrdinalEncoder().fit([["a"], ["b"]]), n_trials=2_000).epsilon_lower > 4
    True
    """
    pairs = _candidate_pairs(estimator)
    worst = pairs[0]
    needed = trials_needed(confidence=_PILOT_CONFIDENCE, delta=options.get("delta", 0.0))
    if len(pairs) > 1 and n_trials >= needed:
        pilot = {**options, "n_trials": max(n_trials // 2, needed), "confidence": _PILOT_CONFIDENCE}
        results = [audit_epsilon(estimator, *pair, **pilot) for pair in pairs]
        # The claim depends on the distance of a pair: compare the bounds relative to their claims.
        shares = [result.epsilon_lower / (result.claimed or 1.0) for result in results]
        worst = pairs[int(np.argmax(shares))]
    return audit_epsilon(estimator, *worst, n_trials=n_trials, confidence=confidence, **options)


def trials_needed(epsilon: float = 0.0, *, confidence: float = 0.95, delta: float = 0.0) -> int:
    r"""Return the number of trials that certify more than `epsilon` if everything leaks.

    Parameters
    ----------
    epsilon : float, default=0.0
        Natural log.
    confidence : float, default=0.95
        Confidence of the bound.
    delta : float, default=0.0
        Delta of the claim.

    Returns
    -------
    n_trials : int
        A quarter of them must fall into the event, all from the right input.

    Notes
    -----
    With k such outputs the bound is :math:`\ln p / (1 - p)`, :math:`p = (1 - \text{confidence})^{1/k}`.

    Examples
    --------
    >>> from skldp.study import trials_needed
    >>> trials_needed(), trials_needed(5.0), trials_needed(5.0, confidence=0.99)
    (20, 1788, 2744)
    """

    def certified(k: int) -> float:
        return float(_lower_bound(k, 0, k, k, confidence, delta))

    # Bounds grow with k.
    ks = range(1, 2**60)
    first = bisect.bisect_right(ks, epsilon, key=certified)
    if first == len(ks):
        raise ValueError(f"No number of trials certifies epsilon {epsilon!r} at delta {delta!r}.")
    return 4 * ks[first]


def _lower_bound(hits: Any, misses: Any, n_hits: int, n_misses: int, confidence: float, delta: float) -> np.ndarray:
    """Clopper-Pearson lower bound on ln((P - delta) / Q) from counts in the event; minus infinity is no bound."""
    risk = 1 - confidence
    hits, misses = np.asarray(hits, dtype=float), np.asarray(misses, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        if delta == 0:
            fraction = np.where(hits > 0, stats.beta.ppf(risk, hits, misses + 1), 0.0)
            # ln p - ln(1 - p), the second from the other tail, where p is near 1.
            rest = np.where(hits > 0, stats.beta.isf(risk, misses + 1, hits), 1.0)
            return np.where(hits > 0, np.log(fraction) - np.log(rest), -np.inf)
        p_low = np.where(hits > 0, stats.beta.ppf(risk / 2, hits, n_hits - hits + 1), 0.0)
        q_high = np.where(misses < n_misses, stats.beta.isf(risk / 2, misses + 1, n_misses - misses), 1.0)
        return np.where(p_low > delta, np.log(np.maximum(p_low - delta, 0)) - np.log(q_high), -np.inf)


def _choose_event(
    scores: Iterable[tuple[str, np.ndarray]], coins: np.ndarray, confidence: float, delta: float
) -> tuple[str, int, np.ndarray]:
    """Return the name, direction and trials of the event with the largest bound on the second half of these coins."""
    own, choices = slice(len(coins) // 2, len(coins)), []
    for name, score in scores:
        for direction in (1, -1):
            from_first = coins[own] == (direction > 0)
            lower, threshold = _best_threshold(direction * score[own], from_first, confidence, delta)
            choices.append((lower, name, direction, direction * score >= threshold))
    return max(choices, key=itemgetter(0))[1:]


def _best_threshold(score: np.ndarray, from_first: np.ndarray, confidence: float, delta: float) -> tuple[float, float]:
    """Return the largest bound of an event score >= threshold, and that threshold."""
    order = np.argsort(-score, kind="stable")
    ordered, right = score[order], from_first[order]
    ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
    if len(ends) > _MAX_THRESHOLDS:
        steps = np.geomspace(1, len(ends), _MAX_THRESHOLDS)
        ends = ends[np.unique(steps.astype(int)) - 1]
    hits, misses = np.cumsum(right)[ends], np.cumsum(~right)[ends]
    stricter = 1 - (1 - confidence) / _RISK_DIVISOR
    lower = _lower_bound(hits, misses, right.sum(), (~right).sum(), stricter, delta)
    best = int(np.argmax(lower))
    return float(lower[best]), ordered[ends[best]]


def _outputs(release: Callable[..., Any], pair: np.ndarray, calls: Iterable[np.ndarray], companion: Any) -> np.ndarray:
    """Return the outputs of every trial as columns of numbers; `calls` are the coins of each call."""
    parts = []
    for coins in calls:
        rows = pair[np.where(coins, 0, 1)]
        if companion is None:
            parts.append(checked_outputs(release, rows))
            continue
        public = np.empty_like(rows)
        public[:] = companion
        both = np.split(checked_outputs(release, np.concatenate([rows, public])), 2)
        parts.append(np.concatenate([*both, checked_outputs(release, public)], axis=1))
    return _as_columns(np.concatenate(parts))


def checked_outputs(release: Callable[..., Any], rows: np.ndarray) -> np.ndarray:
    """Return the outputs of a release, of shape (n_rows, n_outputs), or raise ValueError."""
    given = release(rows)
    given = given.toarray() if hasattr(given, "toarray") else np.asarray(given)
    if given.ndim not in (1, 2) or len(given) != len(rows):
        raise ValueError(
            f"release must return one output, a number or a vector, for each of its {len(rows)} rows; "
            f"got an array of shape {given.shape}."
        )
    return given.reshape(len(rows), -1)


def _as_pair(x: npt.ArrayLike, x_prime: npt.ArrayLike) -> np.ndarray:
    """Return both inputs as one array, or raise ValueError."""
    first, second = np.asarray(x), np.asarray(x_prime)
    if first.ndim > 1 or first.shape != second.shape:
        raise ValueError(
            "x and x_prime must be two rows of the same length, or two scalars; "
            f"got shapes {first.shape} and {second.shape}."
        )
    if np.array_equal(first, second):
        raise ValueError("x and x_prime must differ; got equal inputs.")
    return np.stack([first, second])


def _as_columns(outputs: np.ndarray) -> np.ndarray:
    """Return outputs (n_trials, n_outputs) of any type as float64; categories become numbers in sorted order."""
    if outputs.dtype.kind not in "biuf":
        coded = [np.unique(column.astype(str), return_inverse=True)[1].ravel() for column in outputs.T]
        return np.stack(coded, axis=1).astype(np.float64)
    columns = outputs.astype(np.float64)
    finite = np.isfinite(columns)
    # Keep the sign of zeros, and distinguish NaN and the two infinities.
    signs = np.where((columns == 0) & np.signbit(columns), -1.0, 0.0)
    signs[~finite] = np.where(np.isnan(columns[~finite]), 3.0, np.sign(columns[~finite]) + 1.5)
    return np.concatenate([np.where(finite, columns, 0.0), signs[:, signs.any(axis=0)]], axis=1)


def _candidate_scores(outputs: np.ndarray, answers: np.ndarray, pair: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield named scores of all trials (n_trials, n_columns), trained on the first ones, whose coins are `answers`."""
    outcome = np.unique(outputs, axis=0, return_inverse=True)[1].ravel()
    # The choice of scores must not depend on the trials that are bounded.
    n_outcomes = len(np.unique(outcome[: len(answers)]))
    if n_outcomes * _TRIALS_PER_OUTCOME <= len(answers):
        yield f"the likelihood ratio of {n_outcomes} outcomes", _log_ratios(outcome, answers)[outcome]
        if n_outcomes <= _BINS:
            return
    if outputs.shape[1] == 1:
        yield "a threshold on the output", outputs[:, 0]
    # It holds if features are released one by one.
    yield "the binned likelihood ratio", sum(_log_ratios(c, answers)[c] for c in _binned(outputs, len(answers)))
    if outputs.shape[1] > 1:
        yield "a linear discriminant", _discriminant_score(outputs, answers)
    if pair.dtype.kind in "biuf" and pair.ndim == 2 and pair.shape[1] == outputs.shape[1] > 1:
        first, second = pair.astype(np.float64)
        yield "the inner product with x - x_prime", outputs @ (first - second)
        nearer = np.linalg.norm(outputs - second, axis=1) - np.linalg.norm(outputs - first, axis=1)
        yield "the difference of distances to x_prime and x", nearer


def _log_ratios(outcome: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Log of P(outcome | first) / P(outcome | second), each count raised by one half."""
    size, learnt = int(outcome.max()) + 1, outcome[: len(answers)]
    first = np.bincount(learnt[answers], minlength=size) + 0.5
    second = np.bincount(learnt[~answers], minlength=size) + 0.5
    return np.log(first / second * (second.sum() / first.sum()))


def _binned(outputs: np.ndarray, n: int) -> Iterator[np.ndarray]:
    """Yield the codes of each column, in bins of equal counts of the first n if there are many values."""
    for column in outputs.T:
        code = np.unique(column, return_inverse=True)[1].ravel()
        if len(np.unique(code[:n])) > _BINS:
            cuts = np.unique(np.quantile(column[:n], np.linspace(0, 1, _BINS + 1)[1:-1]))
            code = np.searchsorted(cuts, column, side="right")
        yield code


def _discriminant_score(outputs: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Return the linear discriminant, with so little shrinkage that noise shared by two columns cancels."""
    scale = outputs[: len(answers)].std(axis=0)
    columns = outputs / np.where(scale > 0, scale, 1.0)
    if len(np.unique(answers)) < 2:
        return columns[:, 0]
    model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=1e-9, priors=[0.5, 0.5])
    return np.asarray(model.fit(columns[: len(answers)], answers).decision_function(columns))


def _candidate_pairs(estimator: Any) -> list[tuple[Any, Any]]:
    """Return pairs of inputs from the domain that a fitted estimator declares."""
    check_is_fitted(estimator)
    if getattr(estimator, "bounds_", None) is not None:
        low, high = map(np.asarray, estimator.bounds_)
        points = [low, high, (low + high) / 2]
        if (low < 0).all() and (high > 0).all():
            # The code of a number has a sign bit: the worst pair may lie on both sides of 0.
            points.append(low * 1e-9)
    elif isinstance(by_column := getattr(estimator, "categories_", getattr(estimator, "classes_", None)), list):
        size = max(len(values) for values in by_column)
        columns = [_ends(np.resize(values, size)) for values in by_column]
        points = [np.array(row, dtype=object) for row in zip(*columns, strict=True)]
    elif hasattr(estimator, "classes_"):
        points = list(_ends(estimator.classes_))
    else:
        first = np.zeros(estimator.n_features_in_)
        first[0] = getattr(estimator, "radius_", None) or 1.0
        points = [first, -first]
    pairs = [(x, x_prime) for x, x_prime in combinations(points, 2) if not np.array_equal(x, x_prime)]
    if not pairs:
        raise ValueError(f"An audit needs two different inputs; the domain of {estimator} has one.")
    return pairs


def _ends(values: Any) -> np.ndarray:
    values = np.asarray(values)
    if len(values) <= _MOST_VALUES:
        return values
    half = _MOST_VALUES // 2
    return np.concatenate([values[:half], values[-half:]])
