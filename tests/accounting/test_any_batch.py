"""Each record has one law, alone or in a batch of any size, order, memory layout and type."""

import math

import numpy as np
import pytest

from skldp.accounting import FiniteQuery, RegressionQuery, realized_loss
from skldp.accounting._class_query import ClassQuery, SoftmaxQuery
from skldp.mechanisms import FieldKey, ReleaseKey

N_ROWS, N_FEATURES = 1000, 17
RNG = np.random.default_rng(0)
# Tenths are rounded; a permuted copy has the same products with a record of equal values, added in another order.
TENTHS = RNG.integers(-9, 10, N_FEATURES) / 10
PERMUTED = [TENTHS, *(RNG.permutation(TENTHS) for _ in range(7))]
# Eighths have the same value in single precision.
EQUAL, MIXED = RNG.integers(-8, 9, (800, 1)), RNG.integers(-8, 9, (N_ROWS - 800, N_FEATURES))
ROWS = np.vstack([np.repeat(EQUAL, N_FEATURES, axis=1), MIXED]) / 8
INTEGERS = RNG.integers(0, 20, N_ROWS)
KEY = FieldKey(ReleaseKey(RNG.bytes(32)), "answers")
PEOPLE = np.arange(N_ROWS)

QUERIES = {
    "linear": RegressionQuery("linear", TENTHS, 0.3, (-9, 9), 1.3),
    "truncated": RegressionQuery("truncated", TENTHS, 0.3, (-0.7, 0.4), 1.3),
    "logistic": RegressionQuery("logistic", TENTHS, 0.3, (0, 1), 1.3),
    "exponential": RegressionQuery("exponential", TENTHS, 0.3, (0.1, 7.0), 1.3),
    "two classes": ClassQuery(PERMUTED[:2], [0.0, 0.0], 0.5),
    "eight classes": ClassQuery(PERMUTED, np.zeros(8), 0.5),
    "shifted classes": ClassQuery(PERMUTED, np.full(8, 0.1), 0.5),
    "softmax": SoftmaxQuery(PERMUTED, np.zeros(8), 3, 0.5),
    "finite": FiniteQuery.from_probabilities(RNG.dirichlet(np.full(5, 30.0), size=20)),
}
LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": lambda rows: np.repeat(rows, 3, axis=rows.ndim - 1)[..., ::3],
    "backwards": lambda rows: np.ascontiguousarray(rows[..., ::-1])[..., ::-1],
    "single": lambda rows: rows.astype(np.float32 if rows.dtype.kind == "f" else np.int32),
    "list": lambda rows: rows.tolist() if rows.dtype.kind == "f" else rows,
}


def law_of(query, rows, people):
    """Return every log-likelihood and one answer of each person, drawn with that person's own noise."""
    likelihoods = [query.log_likelihood(output, rows) for output in range(query.n_outputs)]
    return np.stack(likelihoods).T, query.sample(rows, KEY._personal("noise", people.tolist()))


@pytest.mark.few(8)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", QUERIES)
def test_a_record_has_one_law_in_any_batch(kind, layout):
    query, laid_out = QUERIES[kind], LAYOUTS[layout]
    rows = INTEGERS if kind == "finite" else ROWS
    likelihoods, answers = law_of(query, rows, PEOPLE)
    for size in (1, 2, 3, 7, 64, N_ROWS):
        order = RNG.permutation(N_ROWS)
        # All rows in one batch, and 15 batches of each smaller size.
        for start in range(0, min(N_ROWS, 15 * size), size):
            batch = order[start : start + size]
            found, drawn = law_of(query, laid_out(rows[batch]), batch)
            assert found.tobytes() == likelihoods[batch].tobytes()
            assert drawn.tolist() == answers[batch].tolist()


def test_answers_at_a_tie_cost_no_more_than_is_certified():
    """A record is asked alone 7 times and with others 7 times, and answers with its class each time."""
    query = QUERIES["two classes"]
    alone = np.concatenate([query.classes(row[None]) for row in ROWS])
    kept, other = (math.log(chance) for chance in query.mechanism.support_probabilities())
    for first, second in set(zip(alone.tolist(), query.classes(ROWS).tolist(), strict=True)):
        answers = [first] * 7 + [second] * 7
        # This record's likelihood is kept^14; that of a record of one fixed class is as small as this:
        least = min(answers.count(c) * kept + (14 - answers.count(c)) * other for c in range(2))
        assert 14 * kept - least <= realized_loss([query] * 14, answers).upper
