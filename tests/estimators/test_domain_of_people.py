"""Surveys of people whose records are one-hot encoded: their range, budget and file, and rows that are no record."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.preprocessing import OneHotEncoder

from skldp import BayesianFilter, PrivacyLedger, domain_from_transformer
from skldp.accounting import ledger_report
from skldp.domains._constraints import Constrained, OneHot
from skldp.estimators._from_estimator import query_from_estimator
from skldp.exceptions import LedgerError
from skldp.mechanisms import Column

COLORS, SIZES = ["red", "green", "blue"], ["S", "M", "L"]
RAW = pd.DataFrame(
    {"color": np.resize(COLORS, 36), "size": np.repeat(SIZES, 12), "age": np.resize([20.0, 35, 50, 65, 80], 36)}
)


def encoder():
    one_hot = OneHotEncoder(categories=[COLORS, SIZES], sparse_output=False)
    return ColumnTransformer([("of", one_hot, ["color", "size"]), ("rest", "passthrough", ["age"])])


PEOPLE = encoder().set_output(transform="pandas").fit_transform(RAW)
DOMAIN = domain_from_transformer(encoder(), bounds={"age": Column(18, 99, kind="integer")})
TARGET = PEOPLE.to_numpy() @ [1.0, 2, 3, 10, 20, 30, 0.1]
MODEL = LinearRegression().fit(PEOPLE, TARGET)
SEEDED = "ignore::skldp.exceptions.SeededNoiseWarning"


def survey(**options):
    return BayesianFilter(LinearRegression(), **{"bounds": DOMAIN, "epsilon": 0.5, "total_epsilon": 1.0} | options)


def test_the_range_of_answers_is_that_of_the_people():
    query = survey().fit(PEOPLE, TARGET).query_
    # A color and a size each: from 1 + 10 + 1.8 to 3 + 30 + 9.9.
    assert query.kind == "linear"
    np.testing.assert_allclose(query.output_bounds, (12.8, 42.9))
    box = survey(bounds=([0] * 6 + [18], [1] * 6 + [99])).fit(PEOPLE, TARGET).query_
    np.testing.assert_allclose(np.ptp(box.output_bounds), np.abs(MODEL.coef_[:6]).sum() + 8.1)
    assert query_from_estimator(MODEL, epsilon=0.5, bounds=DOMAIN).output_bounds == query.output_bounds


def test_inequalities_narrow_the_range():
    # Nobody who is large is over 60.
    fallback = (1, 0, 0, 1, 0, 0, 18)
    curbed = Constrained(DOMAIN, ((0, 0, 0, 0, 0, 39, 1),), (99,), fallback)
    low, high = query_from_estimator(MODEL, epsilon=0.5, bounds=curbed).output_bounds
    np.testing.assert_allclose((low, high), (12.8, 3 + 30 + 6.0))


def test_columns_in_another_order_are_refused():
    shuffled = PEOPLE[PEOPLE.columns[::-1]]
    with pytest.raises(ValueError, match="must have the columns of X"):
        survey().fit(shuffled, TARGET)
    # An array has no names.
    assert survey().fit(PEOPLE.to_numpy(), TARGET).bounds_ == DOMAIN
    with pytest.raises(ValueError, match="a column for each of 6 features"):
        survey().fit(PEOPLE.iloc[:, :6], TARGET)


@pytest.mark.filterwarnings(SEEDED)
def test_a_row_that_is_no_record_answers_as_the_one_that_it_is_moved_to():
    none = PEOPLE.copy()
    none.iloc[:, :6] = np.random.default_rng(0).uniform(-3, 3, (36, 6))
    none.iloc[:, 6] += np.resize([0.4, 900, -900], 36)
    moved = DOMAIN.clip(none.to_numpy()).rows
    answers = []
    for rows in (none, pd.DataFrame(moved, columns=PEOPLE.columns)):
        fitted = survey(epsilon=20.0, total_epsilon=20.0, seed=0, ledger=None).fit(PEOPLE, TARGET)
        answers.append(fitted.query(rows, ids=range(36)).outputs)
    assert np.array_equal(*answers)
    assert len(np.unique(answers[0])) == 2


def test_a_ledger_keeps_its_domain_and_verifies_by_it(tmp_path):
    path = tmp_path / "people.ledger"
    ways = [(sign, weight) for sign in (1, -1) for weight in (0, 1)]
    models = [LinearRegression().fit(PEOPLE, TARGET * sign + PEOPLE["rest__age"] * weight) for sign, weight in ways]
    models.append(LogisticRegression().fit(PEOPLE, TARGET > 30))
    with PrivacyLedger(1.0, bounds=DOMAIN, path=path) as ledger:
        for number, model in enumerate(models * 4):
            query = query_from_estimator(model, epsilon=0.4, bounds=DOMAIN)
            outputs = np.full(36, number % 2)
            ledger.answer(query, range(36), lambda who, outputs=outputs: outputs[who], repeat=True)
        assert ledger.bounds == DOMAIN
        assert ledger.verify().ok
        assert (ledger.realized_loss(range(36)) <= 1.0).all()
        asked = [len(ledger.history(person)) for person in range(36)]
    # More than the two that their epsilons add up to.
    assert min(asked) > 2
    with PrivacyLedger.open(path) as ledger:
        assert ledger.bounds == DOMAIN
        ledger.declare(bounds=DOMAIN)
        for other in ((0, 100), OneHot(7)):
            with pytest.raises(LedgerError, match="bounds of a ledger must not change"):
                ledger.declare(bounds=other)
    report = ledger_report(path, verify=True)
    assert json.loads(json.dumps(report))["bounds"] == DOMAIN.to_dict()
    assert report["verification"]["ok"]


def test_verification_finds_an_answer_that_the_domain_does_not_allow(tmp_path, monkeypatch):
    path = tmp_path / "people.ledger"
    query = query_from_estimator(MODEL, epsilon=0.6, bounds=DOMAIN)
    from skldp.accounting.ledger import _state as ledger_state

    with PrivacyLedger(1.0, bounds=DOMAIN, path=path) as ledger:
        monkeypatch.setattr(ledger_state, "decide", lambda rule, queries, histories, *a, **k: [True] * len(histories))
        for _ in range(3):
            ledger.answer(query, [1], lambda who: np.ones(len(who), dtype=int), repeat=True)
        found = ledger.verify()
    assert not found.ok
    assert "over their budget" in " ".join(found.problems)
