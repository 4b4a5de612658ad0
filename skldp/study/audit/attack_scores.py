"""Scores that tell two inputs apart from the outputs of a release: the higher, the more it looks like the first."""

import numpy as np

__all__ = ["as_columns", "candidate_scores"]

# Bins of a continuous column, and the largest number of values of one that is taken to be discrete.
_BINS = 32
# Trials that an outcome should have on average before its own frequencies are trusted.
_TRIALS_PER_OUTCOME = 2


def as_columns(outputs):
    """Outputs of any type as a float64 matrix; categories become numbers in their sorted order.

    Parameters
    ----------
    outputs : ndarray of shape (n_trials, n_outputs)

    Returns
    -------
    ndarray of float64, shape (n_trials, n_columns)
        Columns with NaN, infinity or a negative zero have another one at the end that tells them apart.
    """
    if outputs.dtype.kind not in "biuf":
        coded = [np.unique(column.astype(str), return_inverse=True)[1].ravel() for column in outputs.T]
        return np.stack(coded, axis=1).astype(np.float64)
    columns = outputs.astype(np.float64)
    finite = np.isfinite(columns)
    # What equal numbers hide: the sign of a zero, and which of the values that are no numbers it is.
    told = np.where((columns == 0) & np.signbit(columns), -1.0, 0.0)
    told[~finite] = np.where(np.isnan(columns[~finite]), 3.0, np.sign(columns[~finite]) + 1.5)
    return np.concatenate([np.where(finite, columns, 0.0), told[:, told.any(axis=0)]], axis=1)


def candidate_scores(outputs, from_first, learn, pair):
    """Yield named scores of all trials, each learnt from the trials of `learn` alone.

    Parameters
    ----------
    outputs : ndarray of shape (n_trials, n_columns)
    from_first : ndarray of bool, shape (n_trials,)
        Which input each trial had.
    learn : slice
    pair : ndarray of shape (2,) or (2, n_features)
        The two inputs.

    Yields
    ------
    name : str
    score : ndarray of shape (n_trials,)
    """
    answers = from_first[learn]
    outcome = _outcomes(outputs)
    # Counted among the trials to learn from: which scores there are must not depend on the trials to bound.
    n_outcomes = len(np.unique(outcome[learn]))
    if n_outcomes * _TRIALS_PER_OUTCOME <= len(answers):
        yield f"the likelihood ratio of {n_outcomes} outcomes", _log_ratios(outcome, answers, learn)[outcome]
        if n_outcomes <= _BINS:
            return
    if outputs.shape[1] == 1:
        yield "a threshold on the output", outputs[:, 0]
    yield "the binned likelihood ratio", _product_score(outputs, answers, learn)
    if outputs.shape[1] > 1:
        yield "a linear discriminant", _discriminant_score(outputs, answers, learn)
    if pair.dtype.kind in "biuf" and pair.ndim == 2 and pair.shape[1] == outputs.shape[1] > 1:
        first, second = pair.astype(np.float64)
        yield "the inner product with x - x'", outputs @ (first - second)
        nearer = np.linalg.norm(outputs - second, axis=1) - np.linalg.norm(outputs - first, axis=1)
        yield "the distance to x' less that to x", nearer


def _outcomes(outputs):
    """Number the distinct outputs."""
    code = np.zeros(len(outputs), dtype=np.int64)
    for column in outputs.T:
        values = np.unique(column, return_inverse=True)[1].ravel()
        code = np.unique(code * (values.max() + 1) + values, return_inverse=True)[1].ravel()
    return code


def _log_ratios(outcome, answers, learn):
    """Log of P(outcome | first) / P(outcome | second), each count raised by one half."""
    size = int(outcome.max()) + 1
    first = np.bincount(outcome[learn][answers], minlength=size) + 0.5
    second = np.bincount(outcome[learn][~answers], minlength=size) + 0.5
    return np.log(first / second * (second.sum() / first.sum()))


def _product_score(outputs, answers, learn):
    """The likelihood ratio as if columns were independent, which they are where features are released one by one."""
    score = np.zeros(len(outputs))
    for column in outputs.T:
        code = np.unique(column, return_inverse=True)[1]
        if len(np.unique(code[learn])) > _BINS:
            cuts = np.unique(np.quantile(column[learn], np.linspace(0, 1, _BINS + 1)[1:-1]))
            code = np.searchsorted(cuts, column, side="right")
        code = code.ravel()
        score += _log_ratios(code, answers, learn)[code]
    return score


def _discriminant_score(outputs, answers, learn):
    """Fisher's linear discriminant, with so little ridge that noise shared by two columns cancels."""
    scale = outputs[learn].std(axis=0)
    columns = outputs / np.where(scale > 0, scale, 1.0)
    first, second = columns[learn][answers], columns[learn][~answers]
    if not len(first) or not len(second):
        return columns[:, 0]
    centred = np.concatenate([first - first.mean(axis=0), second - second.mean(axis=0)])
    spread = centred.T @ centred / len(centred) + 1e-9 * np.eye(columns.shape[1])
    return columns @ np.linalg.solve(spread, first.mean(axis=0) - second.mean(axis=0))
